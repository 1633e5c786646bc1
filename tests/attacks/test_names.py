"""Names of files and columns, and cells, that a terminal would obey: nothing of them reaches it raw, and JSON stays JSON."""

from __future__ import annotations

import json
import os
import shutil
import unicodedata
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command_server import Ended, Server

from people import two_groups

pytest_plugins = ["command_fixtures"]

STRANGE = {
    "escapes": "a\x1b[31m\x1b[2J\x1b]0;owned\x07\x9b2J\x08\x7fb",
    "lines": "a\nError: all is well\nNote: b\r\x0b\x85\u2028c\u2029d",
    "hidden": "a\u202egpj\u2066\u2067x\u2069\U000e0041\u200b\ufeffb",
    "bytes": "\udcff\udc9b2Ja" + "é" * 50 + "\x1b[0m",
    "markup": "-rf [red]a[_red] :smile: \t {0} %s",
}
UNSEEN, JOINERS = ("Cc", "Cf", "Cs", "Zl", "Zp"), "\u200c\u200d\n"


def raw_signs(text: str) -> set[str]:
    """Return the signs of a text that a terminal obeys or does not show, or that were no text at all."""
    return {sign for sign in text if (unicodedata.category(sign) in UNSEEN and sign not in JOINERS) or sign == "\ufffd"}


def wrong_output(ended: Ended, strange: str, *, is_json: bool) -> list[str]:
    """Return what is wrong about what a command has printed."""
    raw = raw_signs(ended.stdout) | raw_signs(ended.stderr)
    wrong = [f"raw {sorted(raw)!a}"] if raw else []
    if "Traceback" in ended.stderr or "mistake in gpssl" in ended.stderr or ended.code not in (0, 1, 2):
        wrong.append(f"exit code {ended.code}: {ended.stderr[-400:]!r}")
    forged = ("Error: all is well", "Note: b")
    if "\n" in strange and any(line.startswith(forged) for line in (ended.stdout + ended.stderr).splitlines()):
        wrong.append("a name has made a line of its own")
    if is_json and ended.code == 0:
        try:
            json.loads(ended.stdout)
        except ValueError as error:
            wrong.append(f"no JSON: {error}")
    return wrong


def strange_table(strange: str) -> pd.DataFrame:
    """Return a table with a strange column, strange cells and a strange class."""
    name = strange.encode("utf-8", "replace").decode()  # a table is text
    frame = two_groups(40, 20).drop(columns="number")
    frame["kind"] = frame["kind"].replace("stone", f"stone {name}")
    frame["color"] = frame["color"].replace("gray", f"gray {name}")
    return frame.rename(columns={"size": f"size {name}"}).assign(**{name: range(40), f"same {name}": "1"})


def calls(strange: str, table: str, out: str) -> list[list[str]]:
    """Return calls of all commands: those that succeed, and some that do not."""
    name = strange.encode("utf-8", "replace").decode()
    fixed = ["--draws", "4", "--components", "2", "--alike", "columns", "--temperature", "auto"]
    model = f"{out}.gpssl"
    return [
        ["embed", table, "-o", f"{out}.csv", "--components", "2", "-m", f"{out}-e.gpssl", f"--keep={name}"],
        ["label", table, "--target", "kind", "-o", f"{out}-l.csv", "-m", model, *fixed],
        ["transform", model, table, "-o", f"{out}-t.csv"],
        ["next", table, "--target", "kind", "-n", "2", "-m", model, "-o", f"{out}-n.csv"],
        ["annotate", table, "--target", "kind", "-n", "2", "-m", model, "-o", f"{out}-a.html"],
        ["cluster", table, "-k", "2", "--draws", "3", "--components", "2", "-o", f"{out}-c.csv"],
        ["report", model, table, "--no-rivals", "-o", f"{out}-r.html"],
        ["info", model],
        ["datasets", "wine", "-o", f"{out}-w.csv"],
        ["embed", table, "-o", f"{out}.csv", "--components", "2"],  # it exists
        ["embed", f"none-{table}", "-o", f"{out}-x.csv"],
        ["embed", table, "-o", f"{out}.{strange}"],
        ["embed", table, "-o", f"none{strange}/{out}.csv"],
        ["label", table, f"--target={name}x", "-o", f"{out}-x.csv"],
        ["embed", table, "-o", f"{out}-x.csv", f"--ignore={name}x"],
        ["embed", table, "-o", f"{out}-x.csv", f"--sheet={strange}"],
        ["info", table],
        ["transform", table, table, "-o", f"{out}-x.csv"],
        ["compare", table, f"--target={name}y"],
        ["datasets", strange],
        [strange],
        ["embed", f"--{strange}"],
        ["cluster", table, "-k", strange, "-o", f"{out}-x.csv"],
        ["label", table, "--target", "kind", "--max-risk", strange, "-o", f"{out}-x.csv"],
    ]


@pytest.mark.parametrize("which", STRANGE)
def test_nothing_of_a_strange_name_reaches_the_terminal(which: str, server: Server, tmp_path: Path) -> None:
    strange = STRANGE[which]
    folder = tmp_path / "run"
    (folder / "tmp").mkdir(parents=True)
    table, out = f"t{strange}.csv", f"o{strange}"
    if strange.startswith("-"):
        table, out = f"./{strange}.csv", f"./{strange}-o"
    strange_table(strange).to_csv(folder / table, index=False)
    failures: list[Any] = []
    n_done = 0
    for place, words in enumerate(calls(strange, table, out)):
        is_json = place % 2 == len(which) % 2 and words[0] != strange
        ended = server.run(*words, *(["--json"] if is_json else []), folder=folder)
        n_done += ended.code == 0
        wrong = wrong_output(ended, strange, is_json=is_json)
        if wrong:
            failures.append((words, is_json, wrong))
    assert not failures, f"{len(failures)} of {place + 1}: {failures[:4]!a}"
    assert n_done >= 9
    assert all(name.startswith(("t", "o", "-", "labels")) for name in os.listdir(folder))
    shutil.rmtree(folder)


def test_the_attack_sees_raw_signs() -> None:
    assert raw_signs("a\x1b\u202e\ufffd\n") == {"\x1b", "\u202e", "\ufffd"}
    ended = Ended(0, "{}x\n", "Note: b\n", 0, (), 0.0)
    assert len(wrong_output(ended, "a\nNote: b", is_json=True)) == 2
