"""What columns hold is decided on all of their cells, and told."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from gpssl.data import FileError, FileTable, open_table, write_table
from gpssl.data._frames import ColumnFacts
from gpssl.data._outputs import is_typed
from people import json_lines

REPEATS = 20


def table_of(folder: Path, cells: Sequence[str], *, separator: str = ";", repeats: int = REPEATS, **options: Any) -> FileTable:
    """A table with the column "v" of these cells, and one of other numbers."""
    lines = [f"v{separator}other", *(f"{cell}{separator}{place % 7}" for place, cell in enumerate([*cells] * repeats))]
    path = folder / "table.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return open_table(path, **options)


def values(table: FileTable, n_cells: int) -> list[Any]:
    return table.frame()["v"].tolist()[:n_cells]


@pytest.mark.parametrize(
    ("cells", "kind", "expected"),
    [
        (["1", "2.5", "-3e2", "+4", ".5"], "number", [1, 2.5, -300, 4, 0.5]),
        (["1,5", "1.234,5", "-0,25", "7", "1.234"], "number", [1.5, 1234.5, -0.25, 7, 1234]),
        (["1,234.5", "12", "1,234,567", "-3.25"], "number", [1234.5, 12, 1234567, -3.25]),
        (["1", "NA", "n/a", "?", "null", " #N/A ", "-", ".", "2"], "number", [1, *[np.nan] * 7, 2]),
        (["1", "inf", "-Infinity", "2"], "number", [1, np.nan, np.nan, 2]),
        (["true", "FALSE", "", "True"], "boolean", [1, 0, np.nan, 1]),
        (["yes", "No", "no"], "boolean", [1, 0, 0]),
        (["12 kg", "13 kg", "-", "NA"], "number", [12, 13, np.nan, np.nan]),
        (["10%", "20%", "30%"], "number", [10, 20, 30]),
        (["1", "2", "red"], "category", ["1", "2", "red"]),
        (["2024-02-29", "2023-12-31"], "date", [pd.Timestamp("2024-02-29"), pd.Timestamp("2023-12-31")]),
        (
            ["2024-02-29T12:30:00Z", "2024-02-29 14:30:01.5+02:00"],
            "date",
            [pd.Timestamp("2024-02-29 12:30"), pd.Timestamp("2024-02-29 12:30:01.5")],
        ),
        (["31.12.2023", "1.2.2024"], "date", [pd.Timestamp("2023-12-31"), pd.Timestamp("2024-02-01")]),
        (["12/31/2023", "1/2/2024"], "date", [pd.Timestamp("2023-12-31"), pd.Timestamp("2024-01-02")]),
        (["31/12/2023", "1/2/2024"], "date", [pd.Timestamp("2023-12-31"), pd.Timestamp("2024-02-01")]),
        (["1/2/2024", "3/4/2024"], "category", ["1/2/2024", "3/4/2024"]),
        (["31/12/2023", "12/30/2023"], "date", [pd.Timestamp("2023-12-31"), pd.Timestamp("2023-12-30")]),
        (["9999-12-31", "0001-01-01"], "date", [pd.Timestamp("9999-12-31"), pd.Timestamp("0001-01-01")]),
    ],
)
def test_kinds_and_values(tmp_path: Path, cells: list[str], kind: str, expected: list[Any]) -> None:
    table = table_of(tmp_path, cells)
    assert table.facts[0].kind == kind
    found = table.frame()["v"]
    if kind in ("number", "boolean"):
        np.testing.assert_array_equal(found[: len(cells)].to_numpy(float), expected)
    elif kind == "date":
        np.testing.assert_array_equal(found[: len(cells)].to_numpy(), np.array([one.as_unit("us") for one in expected], dtype="M8[us]"))
    else:
        assert found.tolist()[: len(cells)] == expected


def test_commas_between_thousands_in_a_file_with_commas(tmp_path: Path) -> None:
    table = table_of(tmp_path, ['"1,234"', '"12,345"', "7"], separator=",")
    assert values(table, 3) == [1234, 12345, 7]
    assert any("between thousands" in note for note in table.notes)


def test_points_before_three_digits_are_thousands_where_the_file_has_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("v;w;p\n" + "1.234;0,5;1.5\n5.678;1,5;2.123\n9;2,5;3.5\n" * 10)
    frame = open_table(path).frame()
    assert frame.iloc[:3].to_numpy().tolist() == [[1234, 0.5, 1.5], [5678, 1.5, 2.123], [9, 2.5, 3.5]]


def test_decimal_commas_that_begin_late(tmp_path: Path) -> None:
    cells = ["7"] * 3000 + ["1.250", "2,5"] * 3000
    found = table_of(tmp_path, cells, repeats=1).frame()["v"]
    np.testing.assert_array_equal(found[[0, 3000, 3001]], [7, 1250, 2.5])


def test_few_words_among_numbers_count_as_missing(tmp_path: Path) -> None:
    table = table_of(tmp_path, [*(str(i % 31) for i in range(199)), "broken"], repeats=2)
    assert table.facts[0] == ColumnFacts("v", "number", "float64", 2, 0.0, 30.0, None)
    assert "2 cell(s) of 'v' are no numbers and count as missing, such as 'broken'." in table.notes


def test_a_word_in_the_last_row_counts(tmp_path: Path) -> None:
    numbers = [str(i % 31) for i in range(3000)]
    assert table_of(tmp_path, numbers + ["red"] * 3100, repeats=1).facts[0].kind == "category"
    assert table_of(tmp_path, numbers + [f"red {i % 20}" for i in range(100)], repeats=1).facts[0].kind == "category"
    few = table_of(tmp_path, numbers + ["red"] * 100, repeats=1)
    assert few.facts[0].kind == "number"
    assert "100 cell(s) of 'v' are no numbers and count as missing, such as 'red'." in few.notes


def test_facts(tmp_path: Path) -> None:
    facts = table_of(tmp_path, ["a", "b", ""]).facts[0]
    assert facts == ColumnFacts("v", "category", "object", REPEATS, None, None, ("a", "b"))
    facts = table_of(tmp_path, ["1970-01-02", "1970-01-01"]).facts[0]
    assert facts == ColumnFacts("v", "date", "datetime64[us]", 0, 0.0, 86400.0, None)
    many = table_of(tmp_path, [f"w{i}" for i in range(1500)], repeats=3).facts[0]
    assert many.levels is None


def test_notes_tell_what_was_done(tmp_path: Path) -> None:
    assert "40 infinite number(s) count as missing, in 'v'." in table_of(tmp_path, ["1", "inf", "-inf", "2"]).notes
    assert "Dates read as day.month.year: 'v'." in table_of(tmp_path, ["31.12.2023", "1.2.2024"]).notes
    assert any("cannot be told apart" in note for note in table_of(tmp_path, ["1/2/2024", "3/4/2024"]).notes)


@pytest.mark.parametrize(
    ("name", "cells", "reason"),
    [
        ("empty", ["", "NA"] * 20, "empty"),
        ("constant", ["3"] * 40, "alike"),
        ("constant text", ["x"] * 40, "alike"),
        ("constant with gaps", ["3", ""] * 20, "alike"),
        ("who", [f"person {i}" for i in range(40)], "40 different texts in 40 rows"),
        ("counter", [str(i + 100) for i in range(40)], "from 100 to 139"),
        ("shuffled", [str(i * 7 % 40) for i in range(40)], "from 0 to 39"),
        ("customer_id", [str(i**2) for i in range(40)], "by its name"),
        ("rowID", [str(i**2) for i in range(40)], "by its name"),
        ("Unnamed: 0", [str(i**2) for i in range(40)], "by its name"),
        ("", [str(i**2) for i in range(40)], "by its name"),
        ("huge", [str(2**52 + i % 7) for i in range(40)], "cannot be told from categories"),
    ],
)
def test_columns_that_say_nothing(tmp_path: Path, name: str, cells: list[str], reason: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"{name},x\n" + "".join(f"{cell},{i % 7}\n" for i, cell in enumerate(cells)))
    table = open_table(path)
    assert table.used == ["x"]
    assert reason in table.dropped[name or "column 1"]
    if "ID" in table.dropped[name or "column 1"]:
        assert open_table(path, keep=[name or "column 1"]).used == [name or "column 1", "x"]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("valid", [str(i**2) for i in range(40)]),
        ("id", [str(i % 20) for i in range(40)]),
        ("category", ["x", ""] * 20),
        ("short", list("1234567")),
    ],
)
def test_columns_that_say_something(tmp_path: Path, name: str, cells: list[str]) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"{name},x\n" + "".join(f"{cell},{i % 3}\n" for i, cell in enumerate(cells)))
    assert open_table(path).used == [name, "x"]


@pytest.mark.parametrize(
    ("cells", "kind", "first"),
    [
        (["1", "0", "", "1"], "class", ["1", "0", None, "1"]),
        (["1.0", "0.0", "NA", "1"], "class", ["1", "0", None, "1"]),
        (["TRUE", "FALSE"], "class", ["TRUE", "FALSE"]),
        (["red", "green", "?"], "class", ["red", "green", None]),
        (["0.5", "1.5", ""], "number", [0.5, 1.5, np.nan]),
        ([str(i) for i in range(50)], "class", ["0", "1"]),
    ],
)
def test_targets(tmp_path: Path, cells: list[str], kind: str, first: list[Any]) -> None:
    table = table_of(tmp_path, cells, repeats=30, target="v")
    assert table.used == ["other"]
    assert table.target_kind == kind
    found = table.target()
    assert len(found) == table.n_rows
    if kind == "number":
        np.testing.assert_array_equal(found[: len(first)], first)
    else:
        assert found.tolist()[: len(first)] == first


def test_whole_numbers_that_are_many_are_a_number(tmp_path: Path) -> None:
    cells = [str(i % 50) for i in range(200)]
    assert table_of(tmp_path, cells, repeats=1, target="v").target_kind == "number"
    forced = table_of(tmp_path, cells, repeats=1, target="v", target_kind="class")
    assert forced.target()[49] == "49"
    with pytest.raises(FileError, match="holds text"):
        table_of(tmp_path, ["a", "b"], target="v", target_kind="number")


def test_model_s_columns_are_read_as_it_knew_them(tmp_path: Path) -> None:
    facts = table_of(tmp_path, ["1", "2", "red"]).facts
    table = table_of(tmp_path, ["1", "2"], repeats=1, columns=facts)
    assert table.facts[0].kind == "category"
    assert values(table, 2) == ["1", "2"]
    numbers = table_of(tmp_path, ["1", "2"]).facts
    with pytest.raises(FileError, match=r"held numbers when the model was trained, but not here \(such as 'red'\)"):
        table_of(tmp_path, ["red", "blue"], columns=numbers)
    flags = table_of(tmp_path, ["yes", "no"]).facts
    assert values(table_of(tmp_path, ["1", "0"], columns=flags), 2) == [1.0, 0.0]


def written_frame() -> pd.DataFrame:
    n_rows = 40
    return pd.DataFrame(
        {
            7: np.arange(n_rows) % 5 + 0.5,
            "whole": pd.array([None if i % 9 == 0 else i % 6 for i in range(n_rows)], dtype="Int64"),
            "price": [Decimal(i % 7) / 4 for i in range(n_rows)],
            "flag": pd.array([None if i % 8 == 0 else i % 3 == 0 for i in range(n_rows)], dtype="boolean"),
            "when": pd.date_range("2024-01-01", periods=n_rows, tz="Europe/Berlin"),
            "level": pd.Categorical([str(i % 3) for i in range(n_rows)]),
            "text": [f"{i % 4}.5" for i in range(n_rows)],
            "list": [[i] for i in range(n_rows)],
            "bytes": [b"x"] * n_rows,
            "span": pd.to_timedelta(np.arange(n_rows) % 5, unit="s"),
        },
        index=pd.Index(np.arange(n_rows) % 10, name="place"),
    )


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_typed_files(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"table.{ending}"
    frame = written_frame().rename(columns=str)
    if ending == "parquet":
        frame.to_parquet(path)
    else:
        frame.reset_index(drop=True).to_feather(path)
    table = open_table(path)
    kinds = {facts.name: facts.kind for facts in table.facts}
    assert kinds == {
        "7": "number",
        "whole": "number",
        "price": "number",
        "flag": "boolean",
        "when": "date",
        "level": "category",
        "text": "number",
        "span": "number",
    }
    assert "lists or records" in table.dropped["list"]
    assert "bytes" in table.dropped["bytes"]
    assert ending == "feather" or "index" in table.dropped["place"]
    found = table.frame()
    assert found["when"][0] == pd.Timestamp("2023-12-31 23:00")
    assert found["level"].tolist()[:3] == ["0", "1", "2"]
    np.testing.assert_array_equal(found["flag"][:3], [np.nan, 0.0, 0.0])
    np.testing.assert_array_equal(found["span"][:3], [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(open_table(path, target="flag").target()[:4], [None, "false", "false", "true"])


def test_names_that_parquet_has_twice(tmp_path: Path) -> None:
    columns = [pa.array(np.arange(30) % 7), pa.array(np.arange(30) % 5)]
    pyarrow.parquet.write_table(pa.Table.from_arrays(columns, names=["x", "x"]), tmp_path / "table.parquet")
    table = open_table(tmp_path / "table.parquet")
    assert table.used == ["x", "x.1"]
    np.testing.assert_array_equal(table.frame()["x.1"], np.arange(30) % 5)


def test_damaged_parquet(tmp_path: Path) -> None:
    (tmp_path / "table.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(FileError, match="cannot be read"):
        open_table(tmp_path / "table.parquet")
    (tmp_path / "table.arrow").write_bytes(b"something else")
    with pytest.raises(FileError, match="cannot be read"):
        open_table(tmp_path / "table.arrow")


WORDS = ["NA", "N/A", "n/a", "na", "NaN", "nan", "null", "NULL", "None", "?", "#N/A", "<NA>", "NaT"]


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl"])
def test_cells_of_text_are_given_back_as_they_stood(tmp_path: Path, ending: str) -> None:
    texts = [*WORDS, " padded ", "word", "007", ""]
    numbers = ["1.50", "NA", "-", "2", "", "null"]
    lines = ["text,number,day,flag"]
    for place in range(3 * len(texts)):
        day = ["2024-01-31", "n/a", "2024-12-01T10:00"][place % 3]
        lines.append(f"{texts[place % len(texts)]},{numbers[place % len(numbers)]},{day},{['yes', 'None', 'no'][place % 3]}")
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    table, out = open_table(tmp_path / "table.csv"), tmp_path / f"out.{ending}"
    assert {facts.name: facts.kind for facts in table.facts} == {"text": "category", "number": "number", "day": "date", "flag": "boolean"}
    write_table(out, (part.cells(typed=is_typed(out)) for part in table.parts()))
    if ending in ("csv", "tsv"):
        found = pd.read_csv(out, sep="\t" if ending == "tsv" else ",", dtype=str, keep_default_na=False)
        given = pd.read_csv(tmp_path / "table.csv", dtype=str, keep_default_na=False)
        pd.testing.assert_frame_equal(found, given)
        return
    found = pd.read_parquet(out) if ending == "parquet" else json_lines(out)
    assert found["text"][: len(texts)].tolist() == [*texts[:-1], None]
    assert found["flag"].tolist()[:3] == ["yes", "None", "no"]
    np.testing.assert_array_equal(found["number"][:6].astype(float), [1.5, np.nan, np.nan, 2, np.nan, np.nan])
    days = pd.to_datetime(found["day"][:3], format="mixed").tolist()
    assert days[0] == pd.Timestamp("2024-01-31")
    assert days[1] is pd.NaT
    assert days[2] == pd.Timestamp("2024-12-01 10:00")


def test_numbers_stay_as_they_were_written(tmp_path: Path) -> None:
    table = table_of(tmp_path, ["1,50", "1.234,5", "NA", "-", "7", "-0,25"])
    cells = next(table.parts()).cells(typed=False)["v"]
    assert cells.tolist()[:6] == ["1,50", "1.234,5", "NA", "-", "7", "-0,25"]
    assert table.style.decimal == ","


@pytest.mark.parametrize(
    ("cells", "labels", "notes"),
    [
        (
            ["None", "Mild", "", "Severe"],
            ["None", "Mild", None, "Severe"],
            ["20 cells 'None' of the target 'v' count as a class"],
        ),
        (
            ["None", "Mild", " ", "Severe"],
            ["None", "Mild", None, "Severe"],
            ["20 cells 'None' of the target 'v' count as a class"],
        ),
        (["None", "Mild", "Severe"], [None, "Mild", "Severe"], ["20 cells 'None' of the target 'v' count as rows without a label."]),
        (["NA", "a", "b", ""], [None, "a", "b", None], ["20 cells 'NA' of the target 'v' count as rows without a label."]),
        (["NA", "a", "? ", "b"], [None, "a", None, "b"], ["20 cells 'NA', 20 cells '?' of the target 'v' count as rows without a label."]),
        (["1", "0", "None", "-", ""], ["1", "0", *[None] * 3], ["20 cells 'None', 20 cells '-' of the target 'v' count as rows without"]),
        (["0.5", "1.5", "nan"], [0.5, 1.5, np.nan], ["20 cells 'nan' of the target 'v' count as rows without a label."]),
        (["a", "b", ""], ["a", "b", None], []),
    ],
)
@pytest.mark.parametrize("is_typed_file", [False, True])
def test_words_of_a_target_that_are_no_labels(
    tmp_path: Path, cells: list[str], labels: list[Any], notes: list[str], is_typed_file: bool
) -> None:
    table = table_of(tmp_path, cells, target="v")
    if is_typed_file:
        columns = {"v": [cell or None for cell in cells] * REPEATS, "other": np.arange(len(cells) * REPEATS) % 7}
        write_table(tmp_path / "table.parquet", pd.DataFrame(columns))
        table = open_table(tmp_path / "table.parquet", target="v")
    found = [note for note in table.notes if "the target" in note]
    assert len(found) == len(notes)
    assert all(one.startswith(note) for one, note in zip(found, notes, strict=True))
    np.testing.assert_array_equal(table.target(), np.array(labels * REPEATS, dtype=float if labels[0] == 0.5 else object))


def test_a_single_word_of_a_target(tmp_path: Path) -> None:
    table = table_of(tmp_path, ["a", "b", "a", "b", "NA"], repeats=1, target="v")
    assert "1 cell 'NA' of the target 'v' counts as a row without a label." in table.notes
