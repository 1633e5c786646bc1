"""Files that once failed: they are read as they are, or refused in a sentence."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from gpssl.data import FileError, TableFiles, open_table, write_table
from gpssl.data._outputs import is_typed

GERMAN = ["id;x;y;z", *(f"r{place};1,{place};0,{place % 9};{place % 4}" for place in range(1, 30))]


@pytest.mark.parametrize("above", [[], ["Bericht 2024", "Stand: heute"]])
def test_decimal_commas_are_no_separators_though_they_are_as_many_in_each_row(tmp_path: Path, above: list[str]) -> None:
    (tmp_path / "table.csv").write_text("\n".join([*above, *GERMAN]) + "\n")
    table = open_table(tmp_path / "table.csv")
    assert table.names == ["id", "x", "y", "z"]
    assert table.frame()["x"].tolist()[:2] == [1.1, 1.2]


def test_a_file_of_bad_rows_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpssl.data._delimited.SURELY_BAD", 50)
    (tmp_path / "table.csv").write_text("a,b,c\n" + "1,2,3\n" * 20 + "1,2\n" * 400 + "1,2,3\n" * 100_000)
    with pytest.raises(FileError, match=r"50 of the first 70 rows of .*table.csv have more or fewer cells.*'1,2' has 2 cells instead of 3"):
        open_table(tmp_path / "table.csv")


@pytest.mark.parametrize("separator", ["]", "^", "$", "-", "\\", "."])
def test_signs_of_patterns_separate_cells_in_results_too(tmp_path: Path, separator: str) -> None:
    lines = ["id", "text"], *([f"r{place}", f'"a{separator}b {place % 3}"'] for place in range(30))
    (tmp_path / "table.csv").write_text(f"sep={separator}\n" + "\n".join(map(separator.join, lines)) + "\n")
    table = open_table(tmp_path / "table.csv")
    write_table(tmp_path / "out.csv", (part.cells(typed=False) for part in table.parts()), style=table.style)
    assert (tmp_path / "out.csv").read_text().splitlines() == list(map(separator.join, lines))


def arrow_file(path: Path, table: pa.Table, rows_of_a_batch: int = 10_000) -> Path:
    file = io.BytesIO()
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows_of_a_batch)
    path.write_bytes(file.getvalue())
    return path


def test_batches_of_a_few_rows_are_read_together(tmp_path: Path) -> None:
    texts = ["a", "b", None] * 1000
    table = pa.table({"x": range(3000), "level": pa.array(texts).dictionary_encode(), "bytes": [b"x"] * 3000})
    opened = open_table(arrow_file(tmp_path / "table.arrow", table, 5))
    parts = list(opened.parts())
    assert len(parts) == 3
    assert pd.concat(part.cells(typed=False) for part in parts)["level"].tolist() == [text or pd.NA for text in texts]


def test_a_zone_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = arrow_file(tmp_path / "table.arrow", pa.table({"when": pa.array([1] * 9, pa.timestamp("s", tz="ABCD")), "x": range(9)}))
    path.write_bytes(path.read_bytes().replace(b"ABCD", b"A\xff\x93D"))
    for read in (open_table, TableFiles):
        with pytest.raises(FileError, match=r"table\.arrow cannot be read as a table"):
            read(path)


def test_a_file_without_columns_is_refused(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({}), tmp_path / "table.parquet")
    with pytest.raises(FileError, match=r"table\.parquet has no columns"):
        TableFiles(tmp_path / "table.parquet")


ODD: dict[str, Callable[[], Any]] = {
    "years beyond Python's": lambda: pa.array([10**12] * 9, pa.timestamp("s")),
    "days beyond Python's": lambda: pa.array([2**30] * 9, pa.date32()),
    "unknown zone": lambda: pa.array([0] * 9, pa.timestamp("ms", tz="Mars/Base")),
    "long spans": lambda: pa.array([2**62] * 9, pa.duration("s")),
    "levels that are lists": lambda: pa.DictionaryArray.from_arrays(pa.array([0] * 9, pa.int32()), pa.array([[1, 2]])),
    "intervals": lambda: pa.array([(1, 2, 3)] * 9, pa.month_day_nano_interval()),
    "runs": lambda: pa.RunEndEncodedArray.from_arrays(pa.array([9], pa.int32()), pa.array(["x"])),
    "lists of years": lambda: pa.array([[10**12]] * 9, pa.list_(pa.timestamp("s"))),
}


@pytest.mark.parametrize("ending", ["csv", "jsonl", "arrow", "parquet"])
@pytest.mark.parametrize("what", ODD)
def test_cells_of_odd_types_are_written_as_far_as_a_file_can_hold_them(tmp_path: Path, what: str, ending: str) -> None:
    table = open_table(arrow_file(tmp_path / "table.arrow", pa.table([ODD[what](), pa.array([1, 2, 3] * 3)], names=["odd", "x"])))
    out = tmp_path / f"out.{ending}"
    write_table(out, (part.cells(typed=is_typed(out)) for part in table.parts()))
    assert open_table(out, keep=["x"]).n_rows == 9


def test_what_a_format_cannot_hold_is_said(tmp_path: Path) -> None:
    frame = pd.DataFrame({"when": pd.array([pd.Timestamp(0)] * 3).astype("datetime64[s]")})
    frame["when"] = pd.arrays.ArrowExtensionArray(pa.array([2**60] * 3, pa.timestamp("s")))
    with pytest.raises(FileError, match=r"out\.parquet cannot hold all cells as they are .*: write CSV"):
        write_table(tmp_path / "out.parquet", frame)
    assert list(tmp_path.iterdir()) == []


def test_nanoseconds_are_written(tmp_path: Path) -> None:
    frame = pd.DataFrame({"when": pd.to_datetime(["2024-01-01 00:00:00.000000001"]), "span": pd.to_timedelta([1], unit="ns")})
    write_table(tmp_path / "out.csv", frame)
    assert (tmp_path / "out.csv").read_text() == "when,span\n2024-01-01 00:00:00.000000001,1e-9\n"
    write_table(tmp_path / "out.jsonl", frame)
    assert (tmp_path / "out.jsonl").read_text() == '{"when": "2024-01-01 00:00:00.000000001", "span": 1e-09}\n'
