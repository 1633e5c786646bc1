"""How the command speaks: bars on terminals only, JSON that any reader takes, tables of any text."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from gpssl._runtime.progress import Progress
from gpssl.cli._console import progress_bars, show_facts, show_json, show_table


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def count_to_three() -> None:
    progress = Progress("counting", 3, unit="sheep")
    for _ in range(3):
        progress._shown = 0.0  # long ago, so that each step is shown
        progress.advance(1)
    progress.finish()


@pytest.mark.parametrize(("stream", "is_shown"), [(Terminal(), True), (io.StringIO(), False)], ids=["terminal", "file"])
def test_bars_are_for_terminals(stream: io.StringIO, is_shown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bars():
        count_to_three()
    assert ("counting" in stream.getvalue()) is is_shown
    assert is_shown or stream.getvalue() == ""


@dataclass(frozen=True)
class Result:
    path: Path
    risk: float
    counts: dict[str, int]
    values: tuple[float, ...]


def test_json_has_no_infinity_and_no_objects(capsys: pytest.CaptureFixture[str]) -> None:
    show_json(Result(Path("a") / "b", float("inf"), {"é": int(np.int64(2))}, (0.1, float("nan"))))
    assert json.loads(capsys.readouterr().out) == {"path": str(Path("a") / "b"), "risk": None, "counts": {"é": 2}, "values": [0.1, None]}


def test_any_text_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    show_table("[bold]title[/x]", ["[red]name", "n"], [["[/nothing]", ":smile:"]])
    show_facts("facts", {"a [b]": "[c]"})
    printed = capsys.readouterr().out
    for text in ("[bold]title[/x]", "[red]name", "[/nothing]", ":smile:", "a [b]  [c]"):
        assert text in printed
