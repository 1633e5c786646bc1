"""The number beside a row is the line of the file that an editor shows."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpssl.data import open_table
from gpssl.data._lines import lines_of_rows
from gpssl.workflows._subject import Roles, open_subject

N_ROWS = 60


def plain(row: int) -> str:
    return f"k{row},{row % 7},{row % 5}"


def with_newlines(row: int) -> str:
    return f'"k{row}\nand {row}",{row % 7},"{row % 5}"' if row % 9 == 0 else plain(row)


TABLES: dict[str, Callable[[], str]] = {
    "plain": lambda: "\n".join(["key,a,b", *map(plain, range(N_ROWS))]) + "\n",
    "no newline at the end": lambda: "\n".join(["key,a,b", *map(plain, range(N_ROWS))]),
    "title": lambda: "A title\n\n" + "\n".join(["key,a,b", *map(plain, range(N_ROWS))]) + "\n",
    "comments": lambda: "# one\n# two\n" + "\n".join(["key,a,b", *map(plain, range(N_ROWS))]) + "\n",
    "line of Excel": lambda: "sep=,\n" + "\n".join(["key,a,b", *map(plain, range(N_ROWS))]) + "\n",
    "empty lines": lambda: "\n".join(["key,a,b", *(plain(row) + "\n" * (row % 3 == 0) for row in range(N_ROWS))]) + "\n\n",
    "newlines in cells": lambda: "\n".join(["key,a,b", *map(with_newlines, range(N_ROWS))]) + "\n",
    "a newline in a name": lambda: "\n".join(["key,a,'b'".replace("'b'", '"b\nc"'), *map(with_newlines, range(N_ROWS))]) + "\n",
    "a row that is left out": lambda: "\n".join(["key,a,b", *map(plain, range(9)), "odd", *map(plain, range(9, N_ROWS))]) + "\n",
    "quotes within cells": lambda: "\n".join(["key,a,b", *(f'k{row},{row % 7},5" pipe{row % 2}' for row in range(N_ROWS))]) + "\n",
}


def expected_lines(text: str) -> list[int]:
    """Where each key stands, found by looking at each line."""
    lines = text.splitlines()
    return [next(place + 1 for place, line in enumerate(lines) if line.lstrip('"').split(",")[0] == f"k{row}") for row in range(N_ROWS)]


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("block", [7, 4096])
def test_lines_of_files_of_text(tmp_path: Path, kind: str, end: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpssl.data._lines.BLOCK_BYTES", block)
    text = TABLES[kind]()
    (tmp_path / "table.csv").write_bytes(text.replace("\n", end).encode())
    table = open_table(tmp_path / "table.csv")
    assert table.n_rows == N_ROWS
    places = np.arange(N_ROWS)
    assert table.lines(places).tolist() == expected_lines(text)
    assert table.lines(places[[7, 3]]).tolist() == [expected_lines(text)[7], expected_lines(text)[3]]


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252", "utf-8-sig"])
def test_lines_of_other_encodings(tmp_path: Path, encoding: str) -> None:
    text = TABLES["newlines in cells"]().replace("and", "grün Ċ" if encoding != "cp1252" else "grün")
    (tmp_path / "table.csv.gz").write_bytes(gzip.compress(text.encode(encoding)))
    assert open_table(tmp_path / "table.csv.gz").lines(np.arange(N_ROWS)).tolist() == expected_lines(text)


def test_lines_of_old_macintosh_files(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(TABLES["empty lines"]().replace("\n", "\r").encode())
    assert open_table(tmp_path / "table.csv").lines(np.arange(N_ROWS)).tolist() == expected_lines(TABLES["empty lines"]())


def test_lines_of_json(tmp_path: Path) -> None:
    objects = [f'{{"key": "k{row}", "a": {row % 7}}}' for row in range(N_ROWS)]
    (tmp_path / "table.jsonl").write_text("\n".join(objects))
    assert open_table(tmp_path / "table.jsonl").lines(np.array([0, 5])).tolist() == [1, 6]
    (tmp_path / "table.jsonl").write_text("\n\n".join(objects))
    assert open_table(tmp_path / "table.jsonl").lines(np.array([0, 5])).tolist() == [1, 11]


def test_rows_of_other_files_are_counted_and_frames_have_an_index(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": np.arange(30) % 7, "b": np.arange(30) % 5})
    frame.to_parquet(tmp_path / "table.parquet")
    places = np.array([0, 29])
    lines = open_subject(tmp_path / "table.parquet", Roles()).lines(places)
    assert lines is not None
    assert lines.tolist() == [1, 30]
    assert open_subject(frame, Roles()).lines(places) is None


def test_a_text_without_rows() -> None:
    assert lines_of_rows(lambda _: b"", 3, quoted=True).tolist() == []
