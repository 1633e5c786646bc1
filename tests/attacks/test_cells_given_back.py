"""Every cell that a person gives comes back as it was in the results, whatever the dialect and the format."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from budget import n_inputs
from csv_inputs import Dialect, name_of, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

import gpssl
from gpssl.data import open_table, write_table
from gpssl.data._outputs import asked_for

ODD = (
    "=1+1",
    "+49170",
    "-0",
    "007",
    "1.50",
    "1,5",
    "1.234,5",
    "01.02.2024",
    "2024-03",
    "NA",
    "?",
    "-",
    "inf",
    "1e5",
    '"',
    '""',
    " a ",
    "a;b,c\td|e",
    "12 mg",
    "10:30",
)
CELLS = st.one_of(st.sampled_from(ODD), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r"), max_size=8))
MANY = settings(max_examples=n_inputs(60), deadline=None)


def tables(cells: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, list[str]]]:
    """Return tables of text with a first column and a second one that are no totals, and are learned from."""

    def with_keys(columns: list[list[str]]) -> dict[str, list[str]]:
        n_rows = len(columns[0])
        first = {"id": [f"r{place}" for place in range(n_rows)], "x": [f"{place % 3}.5" for place in range(n_rows)]}
        return first | {f"c{place}": column for place, column in enumerate(columns)}

    shapes = st.tuples(st.integers(3, 12), st.integers(1, 3))
    return shapes.flatmap(
        lambda size: st.lists(st.lists(cells, min_size=size[0], max_size=size[0]), min_size=size[1], max_size=size[1])
    ).map(with_keys)


DIALECTS = st.builds(
    Dialect,
    separator=st.sampled_from([",", ";", "\t", "|"]),
    end=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-16-le"]),
    quotes_all=st.booleans(),
    ends_last_line=st.booleans(),
    packed=st.sampled_from(["", ".gz"]),
    has_mark=st.just(True),
)


def copied(path: Path, out: Path) -> Path:
    """Write the cells of a table as the results of a command have them."""
    table = open_table(path)
    asked, style = asked_for(out, table.style)
    write_table(out, (part.cells(**asked) for part in table.parts()), style=style, force=True)
    return out


def cells_of(path: Path) -> dict[str, list[str | None]]:
    """Return the cells of a file as text."""
    table = open_table(path)
    found = pd.concat([part.cells(typed=False) for part in table.parts()])
    return {name: [None if pd.isna(cell) else cell for cell in found[name].tolist()] for name in found}


@MANY
@given(tables(CELLS), DIALECTS)
def test_text_comes_back_in_the_dialect_of_the_table(table: dict[str, list[str]], dialect: Dialect) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name_of(dialect)
        path.write_bytes(dialect.bytes_of(rows_of(table)))
        expected = {name: [cell or None for cell in cells] for name, cells in table.items()}
        assert cells_of(path) == expected
        assert cells_of(copied(path, Path(folder) / "out.csv")) == expected
        assert open_table(Path(folder) / "out.csv").style.separator == open_table(path).style.separator or dialect.separator == "\t"


MISSING = {"", "NA", "N/A", "n/a", "na", "NaN", "nan", "null", "NULL", "None", "?", "#N/A", "<NA>", "NaT", "-", ".", "--", "–", "—"}
"""What an empty cell of numbers or dates may stand for in a file that knows types."""


@MANY
@given(tables(CELLS), st.sampled_from(["parquet", "arrow", "jsonl"]))
def test_text_comes_back_from_files_that_know_types(table: dict[str, list[str]], ending: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_bytes(Dialect(has_mark=True).bytes_of(rows_of(table)))
        written = copied(path, Path(folder) / f"out.{ending}")
        found = values_of(written)
        for name, cells in table.items():
            for cell, value in zip(cells, found[name], strict=True):
                assert is_the_same(cell, value), (name, cell, value)


def values_of(path: Path) -> dict[str, list[Any]]:
    """Return the values of a file that knows types, as another program reads them."""
    if path.suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return {name: [line[name] for line in lines] for name in lines[0]}
    table = pa.parquet.read_table(path) if path.suffix == ".parquet" else pa.feather.read_table(path)
    return table.to_pydict()


def is_the_same(cell: str, value: Any) -> bool:
    """Return whether a value says what the text said."""
    if isinstance(value, str):
        return value == cell or (value[:10] == cell.strip()[:10])
    if value is None or value != value:
        return cell.strip() in MISSING
    if isinstance(value, float):
        plain = cell.strip()
        readings = [plain, plain.replace(".", "").replace(",", "."), plain.replace(",", "")]
        return any(_number(one) == value for one in readings)
    return str(value.year) in cell or str(value.year)[2:] in cell


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


JSON_VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**30), 10**30),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from([*ODD, "2024-01-01", "2024-01-01T10:00:00Z", "true", "null"]),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    ),
    lambda inside: st.one_of(st.lists(inside, max_size=2), st.dictionaries(st.sampled_from("ab"), inside, max_size=2)),
    max_leaves=4,
)


@MANY
@given(st.lists(st.lists(JSON_VALUES, min_size=2, max_size=2), min_size=2, max_size=10), st.booleans())
def test_json_comes_back_as_it_was(rows: list[list[Any]], is_one_type: bool) -> None:
    lines = [
        {"x": place % 3 + 0.5, "a": row[0], "b": rows[0][1] if is_one_type else row[1], "y": place % 2} for place, row in enumerate(rows)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.jsonl"
        path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
        written = copied(path, Path(folder) / "out.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.dumps(json.loads(line), sort_keys=True) for line in written] == [json.dumps(line, sort_keys=True) for line in lines]


SERIES: dict[str, Callable[[int], Any]] = {
    "whole": lambda n: pd.Series([2**60 + place for place in range(n)]),
    "small": lambda n: pd.Series(np.arange(n, dtype=np.uint8)),
    "unsigned": lambda n: pd.Series([2**64 - 1 - place for place in range(n)], dtype="uint64"),
    "number": lambda n: pd.Series([[0.1 + 0.2, -0.0, np.nan, np.inf, 5e-324][place % 5] for place in range(n)]),
    "single": lambda n: pd.Series(np.linspace(0, 1, n, dtype=np.float32)),
    "flag": lambda n: pd.Series([place % 2 == 0 for place in range(n)]),
    "whole or nothing": lambda n: pd.Series([None if place % 3 else 2**60 + place for place in range(n)], dtype="Int64"),
    "number or nothing": lambda n: pd.Series([None if place % 3 else place + 0.5 for place in range(n)], dtype="Float64"),
    "flag or nothing": lambda n: pd.Series([None if place % 3 else place % 2 == 0 for place in range(n)], dtype="boolean"),
    "text": lambda n: pd.Series([["007", "=1+1", "", None, " x ", "NA", "a\nb", "1.50"][place % 8] for place in range(n)]),
    "text type": lambda n: pd.Series([["007", "", None][place % 3] for place in range(n)], dtype="string"),
    "category": lambda n: pd.Series(["b", "a", None] * n, dtype="category")[:n],
    "number category": lambda n: pd.Series([3, 1] * n, dtype="category")[:n],
    "moment": lambda n: pd.Series(pd.date_range("1700-01-01", periods=n, freq="31h1ns")),
    "zoned": lambda n: pd.Series(pd.date_range("2024-03-30", periods=n, freq="7h", tz="Europe/Berlin")),
    "span": lambda n: pd.Series(pd.to_timedelta(np.arange(n) * 10**15 + 1, unit="ns")),
    "day": lambda n: pd.Series([pd.Timestamp(2024, 1, 1 + place % 28).date() for place in range(n)]),
    "decimal": lambda n: pd.Series([Decimal(place) / 8 for place in range(n)]),
    "list": lambda n: pd.Series([[place, None] for place in range(n)]),
    "record": lambda n: pd.Series([{"a": place, "b": "x"} for place in range(n)]),
    "bytes": lambda n: pd.Series([bytes([place, 255]) for place in range(n)]),
    "arrow": lambda n: pd.Series([f"t{place}" for place in range(n)], dtype=pd.ArrowDtype(pa.large_string())),
}


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_data_frames_come_back_with_their_values(tmp_path: Path, ending: str) -> None:
    frame = pd.DataFrame({"x": [place % 3 + 0.5 for place in range(12)], **{name: make(12) for name, make in SERIES.items()}})
    out = tmp_path / f"out.{ending}"
    gpssl.embed(frame, n_components=1, max_inducing=6, out=out)
    found = values_of(out)
    given = pa.Table.from_pandas(frame, preserve_index=False).to_pydict()
    for name, cells in given.items():
        assert str(found[name]) == str(cells), name


@pytest.mark.parametrize(("source", "out"), [("csv", "csv"), ("csv", "jsonl"), ("jsonl", "jsonl"), ("parquet", "parquet"), ("xlsx", "csv")])
def test_whole_commands_keep_all_cells(tmp_path: Path, source: str, out: str) -> None:
    frame = pd.DataFrame({"x": [f"{place % 3}.5" for place in range(24)], "zip": [f"0{place % 5}" for place in range(24)]})
    frame["said"] = [ODD[place % len(ODD)] for place in range(24)]
    frame["kind"] = [["a", "b"][place % 2] if place < 16 else None for place in range(24)]
    path = tmp_path / f"table.{source}"
    writers: dict[str, Callable[[], Any]] = {
        "csv": lambda: write_table(path, frame),
        "jsonl": lambda: write_table(path, frame),
        "parquet": lambda: frame.to_parquet(path),
        "xlsx": lambda: frame.to_excel(path, index=False),
    }
    writers[source]()
    results = tmp_path / f"out.{out}"
    labeled = gpssl.label(path, "kind", n_components=1, n_draws=3, max_inducing=6, out=results)
    again = tmp_path / f"again.{out}"
    gpssl.transform(labeled.model, path, out=again)
    for written in (results, again):
        found = open_table(written, keep=["zip", "said"])
        for name in frame.columns.drop("x"):
            cells = pd.concat([part.cells(typed=False) for part in found.parts()])[name]
            # Excel's own readers take an empty cell of a formula, and blanks around text, for what they are.
            expected = [None if cell is None or (source == "xlsx" and cell == "=1+1") else cell for cell in frame[name]]
            assert [None if pd.isna(cell) else cell for cell in cells] == expected, (written.name, name)
