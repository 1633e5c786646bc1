"""Files as people have them: every dialect gives the table, or one sentence."""

from __future__ import annotations

import bz2
import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from gpssl.data import FileError, FileTable, open_table
from gpssl.data._byte_stream import HEAD_BYTES

ROWS = 40


def plain_text(separator: str = ",", decimal: str = ".") -> str:
    """A table of 40 rows with numbers, names with an umlaut, and classes."""
    rng = np.random.default_rng(0)
    lines = [separator.join(["größe", "farbe", "klasse"])]
    for row in range(ROWS):
        number = f"{rng.normal():.3f}".replace(".", decimal)
        lines.append(separator.join([number, "grün" if row % 3 else "weiß", "ab"[row % 2]]))
    return "\n".join(lines) + "\n"


def written(folder: Path, content: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def opened(folder: Path, content: str | bytes, name: str = "table.csv", **options: Any) -> FileTable:
    return open_table(written(folder, content, name), **options)


def test_plain_file_needs_no_notes(tmp_path: Path) -> None:
    table = opened(tmp_path, plain_text())
    assert table.used == ["größe", "farbe", "klasse"]
    assert table.n_rows == len(table.frame()) == ROWS
    assert table.notes == []
    assert table.dropped == {}


@pytest.mark.parametrize(
    ("encoding", "note"),
    [
        ("utf-8-sig", "byte order mark"),
        ("utf-16", "UTF-16"),
        ("utf-16-be", "UTF-16"),
        ("cp1252", "Windows-1252"),
        ("latin-1", "Windows-1252"),
    ],
)
def test_encodings(tmp_path: Path, encoding: str, note: str) -> None:
    expected = opened(tmp_path, plain_text()).frame()
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    table = opened(tmp_path, mark + plain_text().encode(encoding), "other.csv")
    pd.testing.assert_frame_equal(table.frame(), expected)
    assert note in table.notes[0]


def test_encoding_is_told_by_the_last_byte_of_a_long_file(tmp_path: Path) -> None:
    line = b"1.5,red\n2.5,blue\n"
    content = b"size,color\n" + line * (HEAD_BYTES // len(line) + 1) + "3.5,grün\n".encode("cp1252")
    table = opened(tmp_path, content)
    assert table.frame()["color"].iloc[-1] == "grün"


def test_bytes_that_only_latin_1_has(tmp_path: Path) -> None:
    table = opened(tmp_path, plain_text().encode("latin-1").replace(b"ab", b"a") + b"1.0,\x81,a\n")
    assert "Latin-1" in table.notes[0]


@pytest.mark.parametrize("separator", [";", "\t", "|", " "])
@pytest.mark.parametrize("decimal", [".", ","])
def test_separators(tmp_path: Path, separator: str, decimal: str) -> None:
    expected = opened(tmp_path, plain_text()).frame()
    table = opened(tmp_path, plain_text(separator, decimal), "other.txt")
    pd.testing.assert_frame_equal(table.frame(), expected)
    assert any("separated by" in note for note in table.notes)
    assert any("decimal commas: 'größe'" in note for note in table.notes) == (decimal == ",")


def test_tab_separated_file_needs_no_note(tmp_path: Path) -> None:
    assert opened(tmp_path, plain_text("\t"), "table.tsv").notes == []


def test_line_of_excel_that_names_the_separator(tmp_path: Path) -> None:
    table = opened(tmp_path, "sep=;\n" + plain_text(";"))
    assert table.used == ["größe", "farbe", "klasse"]
    assert table.n_rows == ROWS


def test_windows_line_ends_quotes_and_spaces(tmp_path: Path) -> None:
    text = 'x ,"a, b","two\nlines"\n1,"p, q" ,"one\ntwo"\n2,"say ""hi""",b\n 3,"p, q","one\ntwo"\n4,"p, q",b\n5, p ,b\n6,p,b\n'
    text = text.replace("\n", "\r\n")
    table = opened(tmp_path, text)
    assert table.used == ["x", "a, b", "two\r\nlines"]
    frame = table.frame()
    assert frame["two\r\nlines"].tolist() == ["one\r\ntwo", "b", "one\r\ntwo", "b", "b", "b"]
    assert frame["a, b"].tolist() == ["p, q", 'say "hi"', "p, q", "p, q", "p", "p"]
    assert frame["x"].tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst", "csv"])
def test_compressed_files(tmp_path: Path, ending: str) -> None:
    content = plain_text().encode()
    packed = {"gz": gzip.compress(content), "bz2": bz2.compress(content), "zst": bytes(pa.compress(content, "zstd", asbytes=True))}
    table = opened(tmp_path, packed.get(ending, packed["gz"]), "table.csv" if ending == "csv" else f"table.csv.{ending}")
    assert table.n_rows == ROWS
    assert (table.notes != []) == (ending == "csv")


def test_duplicated_and_blank_names(tmp_path: Path) -> None:
    table = opened(tmp_path, "x,x,,x.1,\n" + "".join(f"{i % 7},{i % 5},{i % 3},{i % 4},{i % 6}\n" for i in range(30)))
    assert table.used == ["x", "x.2", "column 3", "x.1", "column 5"]
    assert any("share a name" in note and "'x.2'" in note for note in table.notes)
    assert any("without a name" in note and "'column 3'" in note for note in table.notes)
    np.testing.assert_array_equal(table.frame()["x.2"], [i % 5 for i in range(30)])


def test_row_names_of_r_and_separators_at_the_end(tmp_path: Path) -> None:
    rows = [f"r{i},{i % 7},{i % 5}" for i in range(30)]
    table = opened(tmp_path, "a,b\n" + "\n".join(rows) + "\n")
    assert table.used == ["a", "b"]
    assert "ID" in table.dropped["column 1"]
    table = opened(tmp_path, "r,a,b\n" + ",\n".join(rows) + ",\n", "other.csv")
    assert table.used == ["a", "b"]
    assert table.dropped["column 4"] == "it is empty"


def test_few_ragged_rows_are_left_out_with_a_note(tmp_path: Path) -> None:
    lines = ["a,b"] + [f"{i % 7},{i % 5}" for i in range(50)]
    lines[10], lines[20] = "1", "1,2,3"
    table = opened(tmp_path, "\n".join(lines) + "\n")
    assert table.n_rows == len(table.frame()) == 48
    assert [note for note in table.notes if "left out" in note] == [
        "2 row(s) have too few or too many cells and were left out; line 11 has 1 cells instead of 2."
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("a,b\n", "no rows"),
        ("a,b", "no rows"),
        ("1,2\n3,4\n", "give it a line of names"),
        ("a,b\n" + "1,2\n1,2,3\n" * 20, "line 3 has 3 cells instead of 2"),
        ("a,b\n1,2\n", "no column to learn from in its 1 row"),
        (b"PK\x03\x04rest", "rename it to end in .xlsx or .zip"),
        (b"SQLite format 3\0rest", "rename it to end in .sqlite"),
        (b"a,b\n1,\x00\x00\n", "is no text"),
        (b"PAR1rest", "rename it to end in .parquet"),
        (gzip.compress(plain_text().encode() * 50)[:200], "cut off"),
    ],
)
def test_files_that_cannot_be_read_get_a_sentence(tmp_path: Path, content: str | bytes, sentence: str) -> None:
    with pytest.raises(FileError, match=sentence):
        opened(tmp_path, content)


def test_one_row_is_enough_for_a_model(tmp_path: Path) -> None:
    facts = opened(tmp_path, plain_text()).facts
    table = opened(tmp_path, "klasse,farbe,größe\na,grün,2.5\n", "new.csv", columns=facts)
    assert table.used == ["größe", "farbe", "klasse"]
    assert table.frame().iloc[0].tolist() == [2.5, "grün", "a"]


def test_paths_that_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, plain_text(), "measurements.csv")
    with pytest.raises(FileError, match=r"did you mean '.*measurements\.csv'"):
        open_table(tmp_path / "measurement.csv")
    with pytest.raises(FileError, match="is a folder"):
        open_table(tmp_path)
    for name, sentence in {"a.xls": "the sheet as CSV", "a.h5ad": "AnnData", "a.json": "jsonl", "a.doc": "are read from"}.items():
        with pytest.raises(FileError, match=sentence):
            open_table(written(tmp_path, "x", name))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("no")

    monkeypatch.setattr("gpssl.data._byte_stream.open", refuse, raising=False)  # a test may run as one who may read all
    with pytest.raises(FileError, match="may not be read"):
        open_table(path)


def test_names_that_are_not_there(tmp_path: Path) -> None:
    path = written(tmp_path, plain_text())
    with pytest.raises(FileError, match="no column 'Klase'; did you mean 'klasse'"):
        open_table(path, target="Klase")
    with pytest.raises(FileError, match="its columns are 'größe', 'farbe', 'klasse'"):
        open_table(path, keep=["zzz"])
    with pytest.raises(FileError, match="lacks 1 column"):
        open_table(path, columns=opened(tmp_path, plain_text().replace("farbe", "color"), "other.csv").facts)


def test_ignored_columns_and_targets_are_not_used(tmp_path: Path) -> None:
    table = opened(tmp_path, plain_text(), ignore=["farbe"], target="klasse")
    assert table.used == ["größe"]
    assert table.dropped == {"farbe": "it is to be ignored"}
    assert table.frame(extra=["klasse", "farbe"]).columns.tolist() == ["größe", "klasse", "farbe"]


@pytest.mark.parametrize("line", ['1,"2', '"1,2'])
def test_quote_that_is_not_closed(tmp_path: Path, line: str) -> None:
    lines = ["a,b", *(f"{i % 7},{i % 5}" for i in range(100))]
    lines[30] = line
    with pytest.raises(FileError, match=r"A quote in line 31 of .* is opened and not closed"):
        opened(tmp_path, "\n".join(lines) + "\n")


JSON_LINES = [
    '{"x": 1.5, "c": "a"}',
    '{"c": "b", "x": 2, "new": true}',
    '{"x": "3.5", "c": "a"}',
    '{"x": null, "c": "b", "new": false}',
] * 5


def test_json_lines(tmp_path: Path) -> None:
    table = opened(tmp_path, "\n".join(JSON_LINES), "table.jsonl")
    frame = table.frame()
    assert table.used == ["x", "c", "new"]
    np.testing.assert_array_equal(frame["x"][:4], [1.5, 2.0, 3.5, np.nan])
    np.testing.assert_array_equal(frame["new"][:4], [np.nan, 1.0, np.nan, 0.0])


def test_json_lines_with_lists(tmp_path: Path) -> None:
    table = opened(tmp_path, "\n".join([*JSON_LINES, '{"x": 1, "l": [1], "o": {"p": 2}}']), "table.ndjson.gz")
    assert table.used == ["x", "c", "new"]
    assert set(table.dropped) == {"l", "o"}


@pytest.mark.parametrize(("line", "sentence"), [("[1, 2]", "Line 21 "), ("{", "Line 21 "), ("3", "Line 21 ")])
def test_json_that_is_no_object(tmp_path: Path, line: str, sentence: str) -> None:
    with pytest.raises(FileError, match=sentence):
        opened(tmp_path, "\n".join([*JSON_LINES, line]), "table.jsonl")
    with pytest.raises(FileError, match="is empty"):
        opened(tmp_path, "", "table.jsonl")


@pytest.mark.skipif(not hasattr(os, "mkfifo") or os.geteuid() == 0, reason="all may be read")
def test_file_without_permission(tmp_path: Path) -> None:
    path = written(tmp_path, plain_text())
    path.chmod(0)
    with pytest.raises(FileError, match="may not be read"):
        open_table(path)
