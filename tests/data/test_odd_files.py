"""Files that once failed: they are read as they are, or refused in a sentence."""

from __future__ import annotations

import io
import zipfile
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
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "table.csv").read_bytes()


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


def test_a_row_beyond_the_end_of_all_sheets_is_none(tmp_path: Path) -> None:
    pd.DataFrame({"a": ["x", "y", "x"], "b": [1, 2, 3]}).to_excel(tmp_path / "table.xlsx", index=False)
    with zipfile.ZipFile(tmp_path / "table.xlsx") as old, zipfile.ZipFile(tmp_path / "far.xlsx", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b'<row r="4"', b'<row r="99999999999999999"'))
    assert open_table(tmp_path / "far.xlsx", keep=["b"]).n_rows == 2


def test_sentences_about_long_names_are_short(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(f"{'n' * 9000}\nx\nx\n")
    for read in (open_table, lambda path: list(TableFiles(path).parts())):
        with pytest.raises(ValueError, match="nnn…") as caught:
            read(tmp_path / "table.csv")
        assert len(str(caught.value)) < 600


def test_totals_of_very_large_numbers_do_not_warn(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("id,x\n" + "".join(f"r{place},{place + 1}e307\n" for place in range(9)) + "Total,1e308\n")
    assert open_table(tmp_path / "table.csv").n_rows in (9, 10)


def test_a_claim_for_which_there_is_no_memory_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = arrow_file(tmp_path / "table.arrow", pa.table({"x": range(9), "y": ["a", "b", "c"] * 3}))

    def claiming(size: int) -> Callable[..., Any]:
        def fail(*_: Any, **__: Any) -> Any:
            raise pa.ArrowMemoryError(f"malloc of size {size} failed")

        return fail

    monkeypatch.setattr("gpssl.data._formats._open_arrow", claiming(2**40))
    with pytest.raises(FileError, match=r"table\.arrow says that it holds 1,099,511,627,776 bytes in one piece"):
        open_table(path)
    monkeypatch.setattr("gpssl.data._formats._open_arrow", claiming(1000))
    with pytest.raises(MemoryError):
        open_table(path)
