"""Files that are rare, damaged or none: which reader takes them, and what the sentence says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from gpssl.data import FileError, open_table
from gpssl.data._formats import TypedFile, open_source
from gpssl.data._source import store_rows

N_ROWS = 40
FRAME = pd.DataFrame({"a": np.arange(N_ROWS) % 7 / 2, "b": [("red", "green", "blue")[i % 3] for i in range(N_ROWS)]})


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# Which reader


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("t.ods", "is a workbook of another kind: save it as .xlsx"),
        ("t.xlsb", "is a workbook of another kind"),
        ("t.h5ad", "holds AnnData"),
        ("t.json", r"should have one object in each line and be called \.jsonl"),
        ("t.xyz", r"ends in .xyz; tables are read from \.csv, \.tsv, \.txt, \.parquet, \.pq, \.arrow, \.feather, \.ipc, \.jsonl"),
    ],
)
def test_endings_that_are_not_read_say_what_to_do(tmp_path: Path, name: str, sentence: str) -> None:
    with pytest.raises(FileError, match=sentence):
        open_table(written(tmp_path / name, "a,b\n1,2\n"))


def test_a_file_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    written(tmp_path / "measurements.csv", "a,b\n1,2\n")
    with pytest.raises(FileError, match=r"There is no file .*mesurements.csv; did you mean '.*/measurements.csv'\?$"):
        open_table(tmp_path / "mesurements.csv")
    with pytest.raises(FileError, match=r"There is no file .*zzz\.$"):
        open_table(tmp_path / "zzz")
    with pytest.raises(FileError, match=r"There is no file .*x.csv\.$"):
        open_table(tmp_path / "absent" / "x.csv")
    with pytest.raises(FileError, match="is a folder: name a file"):
        open_table(tmp_path)


# Text


def text_table(n_rows: int, last: bytes = b"") -> bytes:
    """A table that is longer than what is looked at first."""
    return b"a,b\n" + b"".join(f"{i % 7},w{i % 5}\n".encode() for i in range(n_rows)) + last


@pytest.mark.parametrize("n_rows", [10, 60_000])
def test_bytes_of_other_encodings_far_down(tmp_path: Path, n_rows: int) -> None:
    """Bytes that are no UTF-8 make it Windows-1252; 0x81, which that does not have, makes it Latin-1; zeros are no text."""
    for byte, cell in ((b"\xe9", "é"), (b"\x80", "€"), (b"\x81", "\x81")):
        table = open_source(written(tmp_path / "table.csv", text_table(n_rows, b"1,w" + byte + b"\n")))
        cells = [part.cells.column("b").to_pylist() for part in table.parts(["b"])]
        assert cells[-1][-1] == f"w{cell}"
        assert table.n_rows == n_rows + 1
    with pytest.raises(FileError, match=r"is no text|bytes that are zero"):
        open_source(written(tmp_path / "zero.csv", text_table(n_rows, b"1,\0\n")))


def test_a_file_without_names_of_columns(tmp_path: Path) -> None:
    for content in ("# nothing but a comment\n", ",,\n1,2,3\n", "\n\n"):
        with pytest.raises(FileError, match=r"no names of columns|is empty"):
            open_table(written(tmp_path / "table.csv", content))


def test_lines_of_rows_with_line_breaks_in_their_cells(tmp_path: Path) -> None:
    lines = ["a,b", *(f'{i},"two\nlines"' if i % 10 == 3 else f"{i},one" for i in range(N_ROWS))]
    source = open_source(written(tmp_path / "table.csv", "\n".join(lines) + "\n"))
    expected = 2 + np.arange(N_ROWS) + (np.arange(N_ROWS) + 6) // 10
    np.testing.assert_array_equal(source.lines(np.arange(N_ROWS)), expected)
    plain = open_source(written(tmp_path / "plain.csv", "a,b\n1,2\n3,4\n"))
    np.testing.assert_array_equal(plain.lines(np.array([1, 0])), [3, 2])


def test_lines_of_a_file_that_is_another_one_now(tmp_path: Path) -> None:
    """Each row then counts as a line: nothing better is known."""
    lines = ["a,b", *(f'{i},"two\nlines"' if i % 10 == 3 else f"{i},one" for i in range(N_ROWS))]
    path = written(tmp_path / "table.csv", "\n".join(lines) + "\n")
    source = open_source(path)
    written(path, "other\n")
    np.testing.assert_array_equal(source.lines(np.array([0, 39])), [2, 41])


def test_rows_of_cells_may_grow() -> None:
    store = store_rows([["1", None], ["2", "x", "y"], []])
    batch = store.part(0)
    assert batch.schema.names == ["0", "1", "2"]
    assert batch.to_pydict() == {"0": ["1", "2", None], "1": [None, "x", None], "2": [None, "y", None]}


# JSON lines


def test_json_lines_with_a_mark_gaps_and_records(tmp_path: Path) -> None:
    lines = [json.dumps({"a": i % 7, "b": {"deep": [i]}, **({"c": "x"} if i % 2 else {})}) for i in range(N_ROWS)]
    table = open_table(written(tmp_path / "t.jsonl", b"\xef\xbb\xbf" + "\n\n".join(lines).encode()))
    assert table.n_rows == N_ROWS
    assert table.frame()["a"].tolist() == [i % 7 for i in range(N_ROWS)]
    assert table.dropped["b"] == "holds lists or records, neither numbers, text nor dates"
    np.testing.assert_array_equal(table.lines(np.array([0, 1, 39])), [1, 3, 79])
    for content in ("{}\n{}\n", "\n \n", ""):
        with pytest.raises(FileError, match=r"no JSON objects|is empty"):
            open_table(written(tmp_path / "none.jsonl", content))


@pytest.mark.parametrize("depth", [50, 5000])
def test_objects_in_objects_are_read_or_refused(tmp_path: Path, depth: int) -> None:
    lines = ['{"a": 1, "b": ' + "[" * depth + "]" * depth + "}"] + [f'{{"a": {i}}}' for i in range(N_ROWS)]
    path = written(tmp_path / "t.jsonl", "\n".join(lines) + "\n")
    if depth < sys.getrecursionlimit():
        assert open_source(path).n_rows == N_ROWS + 1
    else:
        with pytest.raises(FileError):
            open_source(path)


# Parquet and Arrow


def arrow_file(path: Path, table: pa.Table) -> Path:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=17)
    return path


def arrow_stream(path: Path, table: pa.Table) -> Path:
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=17)
    return path


def parquet_file(path: Path, table: pa.Table) -> Path:
    pa.parquet.write_table(table, path, row_group_size=17)
    return path


@pytest.mark.parametrize(("write", "name"), [(arrow_file, "t.arrow"), (arrow_stream, "t.ipc"), (parquet_file, "t.pq")])
def test_typed_files_of_every_kind_hold_the_same(tmp_path: Path, write: Any, name: str) -> None:
    table = pa.table({"a": FRAME["a"], "b": FRAME["b"], "raw": [b"x"] * N_ROWS, "list": [[1]] * N_ROWS})
    source = open_source(write(tmp_path / name, table))
    assert isinstance(source, TypedFile)
    assert (source.names, source.n_rows) == (["a", "b", "raw", "list"], N_ROWS)
    assert source.unusable == {
        "raw": "holds bytes, neither numbers, text nor dates",
        "list": "holds lists or records, neither numbers, text nor dates",
    }
    parts = [part.cells for part in source.parts(["b", "a"])]
    assert {tuple(part.schema.names) for part in parts} == {("b", "a")}
    assert [cell for part in parts for cell in part.column("b").to_pylist()] == FRAME["b"].tolist()
    assert [cell for part in parts for cell in part.column("a").to_pylist()] == FRAME["a"].tolist()
    np.testing.assert_array_equal(source.lines(np.array([0, 39])), [1, 40])
    assert source.text_bytes >= sum(map(len, FRAME["b"]))


@pytest.mark.parametrize(("write", "name"), [(arrow_file, "t.arrow"), (parquet_file, "t.parquet")])
def test_columns_of_the_same_name_are_told_apart(tmp_path: Path, write: Any, name: str) -> None:
    table = pa.table([pa.array(FRAME["a"]), pa.array(FRAME["a"] + 100)], names=["a", "a"])
    source = open_source(write(tmp_path / name, table))
    assert source.names[0] == "a"
    assert len(set(source.names)) == 2
    cells: dict[str, list[Any]] = {name: [] for name in source.names}
    for part in source.parts(source.names[::-1]):
        assert part.cells.schema.names == source.names[::-1]
        for each in source.names:
            cells[each] += part.cells.column(each).to_pylist()
    assert cells[source.names[0]] == FRAME["a"].tolist()
    assert cells[source.names[1]] == (FRAME["a"] + 100).tolist()


def test_text_that_is_none_is_refused_before_it_is_used(tmp_path: Path) -> None:
    bad = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 1, 2], np.int32).tobytes()), pa.py_buffer(b"\xff\xfe"))
    for write, name in ((arrow_file, "t.arrow"), (parquet_file, "t.parquet")):
        source = open_source(write(tmp_path / name, pa.table({"a": bad, "b": [1, 2]})))
        with pytest.raises(FileError):
            list(source.parts(["a"]))


def test_the_index_of_a_data_frame_is_known_unless_what_says_so_is_damaged(tmp_path: Path) -> None:
    FRAME.set_index("b").to_parquet(tmp_path / "named.parquet")
    assert open_source(tmp_path / "named.parquet").index == ["b"]
    FRAME.to_parquet(tmp_path / "plain.parquet")
    plain = open_source(tmp_path / "plain.parquet")
    assert (plain.index, plain.notes) == ([], [])
    table = pa.table({"a": FRAME["a"], "b": FRAME["b"]})
    for damaged in (b"{", b"\xff", b"[]", b'{"index_columns": 3}', b"{}", b"[" * 100_000):
        source = open_source(parquet_file(tmp_path / "damaged.parquet", table.replace_schema_metadata({b"pandas": damaged})))
        assert source.index == []
        assert source.notes == ["What pandas has written into it about the index of a data frame is damaged, and not used."]
    bare = open_source(parquet_file(tmp_path / "bare.parquet", table.replace_schema_metadata({b"other": b"x"})))
    assert (bare.index, bare.notes) == ([], [])


def test_a_feather_file_of_the_first_version_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is a Feather file of version 1"):
        open_table(written(tmp_path / "old.feather", b"FEA1" + bytes(60)))
    pa.feather.write_feather(pa.table({"a": FRAME["a"], "b": FRAME["b"]}), tmp_path / "new.feather")
    assert open_table(tmp_path / "new.feather").n_rows == N_ROWS


def test_a_file_that_goes_away_or_changes_while_it_is_open(tmp_path: Path) -> None:
    table = pa.table({"a": FRAME["a"], "b": FRAME["b"]})
    path = parquet_file(tmp_path / "t.parquet", table)
    source = open_source(path)
    parquet_file(path, table.slice(0, 30))
    with pytest.raises(FileError, match="has changed since it was opened"):
        list(source.parts(["a"]))
    path.unlink()
    with pytest.raises(FileError, match="was there, and is gone"):
        list(source.parts(["a"]))
