"""Numbers as people write them are read as the numbers they are, and what was understood is told."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpssl.data import FileError, FileTable, open_table
from gpssl.data._quantities import undress
from gpssl.data._readings import Way, cells_of, looks_of, read_cells
from gpssl.data._units import factor, power_of_ten, unit_of

REPEATS = 10


def table_of(folder: Path, cells: Sequence[str], *, repeats: int = REPEATS, **options: Any) -> FileTable:
    """A table with the column "v" of these cells, and one of other numbers."""
    rows = [*cells] * repeats
    path = folder / "table.csv"
    path.write_text("\n".join(["v;other", *(f"{cell};{place % 7}" for place, cell in enumerate(rows))]) + "\n", encoding="utf-8")
    return open_table(path, **options)


def numbers(table: FileTable, n_cells: int) -> list[float]:
    return [float(value) for value in table.frame()["v"][:n_cells]]


@pytest.mark.parametrize(
    ("cells", "expected", "unit", "note"),
    [
        (["12 mg", "7.5 mg", "1e2 mg"], [12, 7.5, 100], "mg", "Numbers with units: 'v' (mg)."),
        (["12mg", "7.5mg", "12"], [12, 7.5, 12], "mg", "10 cell(s) of 'v' have no unit and are taken as mg."),
        (["€ 1.234,50", "€ 2,75", "-€ 3,00"], [1234.5, 2.75, -3], "€", "Numbers with units: 'v' (€)."),
        (["1.234,50 EUR", "2,75 €"], [1234.5, 2.75], "€", "Numbers with units: 'v' (€)."),
        (["$1,234.50", "$7.25", "($3.00)"], [1234.5, 7.25, -3], "$", "Numbers with units: 'v' ($)."),
        (["$1,234", "$12,345", "$7"], [1234, 12345, 7], "$", "Numbers with commas between thousands: 'v'."),
        (["€ 1.234", "€ 12.345", "€ 7"], [1234, 12345, 7], "€", "Numbers with decimal commas: 'v'."),
        (["$1.2M", "$3.5k", "$950"], [1.2e6, 3500, 950], "$", "with k for thousands: 'v'."),
        (["37 %", "2.5 %", "40%"], [37, 2.5, 40], "%", "Numbers with units: 'v' (%)."),
        (["37 %", "0.21", "4 %"], [37, 21, 4], "% or fraction", "10 cell(s) of 'v' have no sign of percent: they are taken as"),
        (["37 %", "21", "4 %"], [37, 21, 4], "%", "10 cell(s) of 'v' have no unit and are taken as %."),
        (["<0.5", "0.7", "1.25", ">= 100"], [0.5, 0.7, 1.25, 100], None, "taken as the bound itself: 'v' (20 cells)."),
        (["≤ 3 mg", "7 mg", "9 mg"], [3, 7, 9], "mg", "taken as the bound itself: 'v' (10 cells)."),
        (["~5", "ca. 7", "about 9.5"], [5, 7, 9.5], None, "a word for about are taken as they stand: 'v' (30 cells)."),
        (["1 234,5", "12\u00a0345,25", "7\u202f000,5"], [1234.5, 12345.25, 7000.5], None, "spaces or apostrophes between thousands"),
        (["1'234.50", "12’345.25"], [1234.5, 12345.25], None, "spaces or apostrophes between thousands"),
        (["(1,234)", "5,678", "12"], [-1234, 5678, 12], None, "in parentheses (negative)"),
        (["\u22125 °C", "12 °C"], [-5, 12], "°C", "Numbers with units: 'v' (°C)."),
        (["3.5k", "950", "12k"], [3500, 950, 12000], None, "with k for thousands: 'v'."),
        (["1st", "2nd", "3rd", "11th"], [1, 2, 3, 11], "th", "Numbers with units: 'v' (th)."),
        (
            ["500 mg", "0.037 g", "250 µg", "7 mg"],
            [500, 37, 0.25, 7],
            "mg",
            "The units of 'v' differ (mg, g, µg): all numbers were turned into mg.",
        ),
        (
            ["12 cm", "0.5 m", "30 mm", "8 cm"],
            [12, 50, 3, 8],
            "cm",
            "The units of 'v' differ (cm, m, mm): all numbers were turned into cm.",
        ),
        (["90 min", "2 h", "45 min"], [90, 120, 45], "min", "The units of 'v' differ (min, h): all numbers were turned into min."),
        (["1.5 mg/dL", "0.02 g/L", "3 mg/dL"], [1.5, 2, 3], "mg/dL", "all numbers were turned into mg/dL."),
        (
            ["12 kg", "3 boxes", "5 kg"],
            [12, 3, 5],
            "different",
            "The units of 'v' differ (kg, boxes): its numbers are taken as they stand.",
        ),
        (["12 MG", "3 mg", "5 Mg"], [12, 3, 5], "mg", "Numbers with units: 'v' (mg)."),
        (["37.5C", "36.25C"], [37.5, 36.25], "°C", "Numbers with units: 'v' (°C)."),
        (["<0.5"] * 30 + [f"{place}.25" for place in range(25)], [0.5] * 30 + [place + 0.25 for place in range(25)], None, "(300 cells)"),
        (["$12", "€3", "$5"], [12, 3, 5], "different", "The units of 'v' differ ($, €): its numbers are taken as they stand."),
        (["1h 20m", "90 min", "PT2H", "45m", "3 days"], [4800, 5400, 7200, 2700, 259200], "s", "all numbers were turned into s."),
        (["0 days 01:20:00", "2 days 00:00:30"], [4800, 172830], "s", "Numbers with units: 'v' (s)."),
    ],
)
def test_numbers_with_something_around_them(tmp_path: Path, cells: list[str], expected: list[float], unit: str | None, note: str) -> None:
    table = table_of(tmp_path, cells)
    assert table.facts[0].kind == "number"
    assert numbers(table, len(cells)) == expected
    assert table.facts[0].unit == unit
    assert any(note in one for one in table.notes), table.notes


@pytest.mark.parametrize(
    "cells",
    [
        ["<5", "5-10", ">10"],
        ["<=50K", ">50K"],
        ["1a", "1b", "2a", "2b", "3"],
        ["12A", "14B", "3C", "7D"],
        ["12 Main Street", "4 Oak Avenue", "7 Elm Street", "1 High Road", "9 Park Lane"],
        ["1.2.3", "1.2.4", "2.0.1"],
        ["5 to 10", "10 to 20"],
        ["3x2", "4x1", "7x7"],
        ["(5", "7)", "3"],
    ],
)
def test_what_is_no_number(tmp_path: Path, cells: list[str]) -> None:
    table = table_of(tmp_path, cells)
    assert table.facts[0].kind == "category"
    assert table.frame()["v"].tolist()[: len(cells)] == cells


def test_classes_stay_classes_and_numbers_with_units_are_numbers_as_targets(tmp_path: Path) -> None:
    classes = table_of(tmp_path, ["<5", "5-10", ">10"], target="v")
    assert (classes.target_kind, classes.target()[:3].tolist()) == ("class", ["<5", "5-10", ">10"])
    doses = table_of(tmp_path, ["10 mg", "20 mg", "40 mg"], target="v")
    assert (doses.target_kind, doses.target()[:3].tolist()) == ("class", ["10 mg", "20 mg", "40 mg"])
    amounts = table_of(tmp_path, [f"{place / 4} %" for place in range(40)], target="v")
    assert amounts.target_kind == "number"
    np.testing.assert_array_equal(amounts.target()[:40], np.arange(40) / 4)


def test_few_words_among_many_numbers_count_as_missing_and_are_named(tmp_path: Path) -> None:
    cells = [str(place * 1.5) for place in range(97)] + ["n.d.", "hemolyzed", "n.d."]
    table = table_of(tmp_path, cells, repeats=1)
    assert table.facts[0].n_missing == 3
    assert "3 cell(s) of 'v' are no numbers and count as missing, such as 'n.d.', 'hemolyzed'." in table.notes
    assert table.texts("v")[[0, 2, 97, 98]].tolist() == ["0", "3", "n.d.", "hemolyzed"]  # as names of groups, they stay
    half = [str(place * 1.5) for place in range(60)] + ["not detected"] * 40
    assert table_of(tmp_path, half, repeats=1).facts[0].n_missing == 40
    codes = [str(place % 9) for place in range(95)] + ["other"] * 5  # classes with a name among them
    assert table_of(tmp_path, codes, repeats=1).facts[0].kind == "category"
    many = [str(place * 1.5) for place in range(91)] + [f"word {place}" for place in range(9)]
    assert "100 different texts" in table_of(tmp_path, many, repeats=1).dropped["v"]


def test_a_model_s_unit_holds_for_other_files(tmp_path: Path) -> None:
    facts = table_of(tmp_path, ["500 mg", "250 mg", "7 mg"]).facts
    in_grams = table_of(tmp_path, ["0.5 g", "1 g", "2.25 g"], columns=facts)
    assert numbers(in_grams, 3) == [500, 1000, 2250]
    assert "The numbers of 'v' are in g, and were turned into mg." in in_grams.notes
    without = table_of(tmp_path, ["3", "4"], columns=facts)
    assert numbers(without, 2) == [3, 4]
    assert "20 cell(s) of 'v' have no unit and are taken as mg." in without.notes
    with pytest.raises(FileError, match=r"Column 'v' of .* held numbers in mg when the model was trained, but not here \(such as '5 ml'\)"):
        table_of(tmp_path, ["5 ml", "6 ml"], columns=facts)
    shares = table_of(tmp_path, ["37 %", "0.21", "4 %"]).facts
    assert numbers(table_of(tmp_path, ["0.5", "0.037"], columns=shares), 2) == [50, 3.7]


def test_cells_come_back_as_they_were(tmp_path: Path) -> None:
    cells = ["€ 1.234,50", "2,75 €", "< € 3,00"]
    part = next(table_of(tmp_path, cells).parts())
    for typed in (False, True):
        assert part.cells(typed=typed)["v"].tolist()[:3] == cells


def _with_thin_spaces(text: str) -> str:
    return text.replace(",", "\u202f")


WRITERS: dict[str, Callable[[Decimal], str]] = {
    "grams": lambda value: f"{value} g",
    "beside it": lambda value: f"{value}kg",
    "dollars": lambda value: f"{'-' if value < 0 else ''}${abs(value):,}",
    "euros": lambda value: f"{value:,} €".replace(",", " ").replace(".", ","),
    "German": lambda value: f"{value:,} EUR".replace(",", "X").replace(".", ",").replace("X", "."),
    "thin": lambda value: _with_thin_spaces(f"{value:,}"),
    "Swiss": lambda value: f"CHF {value:,}".replace(",", "'"),
    "accounting": lambda value: f"({abs(value):,})" if value < 0 else f"{value:,}",
    "percent": lambda value: f"{value} %",
    "about": lambda value: f"~ {value}",
    "some bounds": lambda value: f"<{value}" if abs(value) < 100 else f"{value}",
}


@settings(max_examples=8)
@given(values=st.lists(st.decimals(-(10**7), 10**7, places=2), min_size=3, max_size=20))
def test_what_is_written_is_read_exactly(tmp_path_factory: pytest.TempPathFactory, values: list[Decimal]) -> None:
    values = [*values, Decimal("12345.67"), Decimal("4711.25"), Decimal("815.50"), Decimal("9000.75")] * 3  # most are no bounds
    values += [Decimal("1234.5") + place for place in range(len(values))]
    path = tmp_path_factory.mktemp("numbers") / "table.csv"
    lines = [";".join(writer(value) for writer in WRITERS.values()) for value in values]
    path.write_text("\n".join([";".join(WRITERS), *lines]) + "\n", encoding="utf-8")
    frame = open_table(path).frame()
    for name in WRITERS:
        np.testing.assert_array_equal(frame[name], [float(value) for value in values], err_msg=name)


@settings(max_examples=15)
@given(
    values=st.lists(st.decimals(0, 10**6, places=3), min_size=2, max_size=12),
    powers=st.lists(st.sampled_from([-3, 0, 3]), min_size=12, max_size=12),
)
def test_units_of_one_dimension_are_turned_exactly(
    tmp_path_factory: pytest.TempPathFactory, values: list[Decimal], powers: list[int]
) -> None:
    """A number of milligrams is the same double in whatever unit it was written."""
    units = {-3: "µg", 0: "mg", 3: "g"}
    written = [(value, power) for value, power in zip(values, powers, strict=False)] + [(Decimal("1.5"), 0)] * 13
    cells = [f"{value.scaleb(-power):f} {units[power]}" for value, power in written]
    table = table_of(tmp_path_factory.mktemp("units"), cells, repeats=1)
    assert table.column("v").way.unit == "mg"
    if "v" in table.used:
        np.testing.assert_array_equal(table.frame()["v"], [float(value) for value, _ in written])


PIECES = st.sampled_from(
    ["12 mg", "0.5 g", "7", "<3 mg", "1 234 mg", "x", "", "NA", "-", "2024-01-31", "31.1.2024", "3/4/2024", "14:30", "Mon"]
)


@settings(max_examples=25)
@given(cells=st.lists(PIECES, min_size=1, max_size=60), sizes=st.lists(st.integers(1, 30), min_size=2, max_size=2))
def test_parts_do_not_matter(tmp_path_factory: pytest.TempPathFactory, cells: list[str], sizes: list[int]) -> None:
    path = tmp_path_factory.mktemp("parts") / "table.parquet"
    pd.DataFrame({"v": ["12 mg", "x", *cells], "other": [0.5, *[1.5] * (len(cells) + 1)]}).to_parquet(path)
    found = []
    for size in (10**6, *sizes):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("gpssl.data._formats.PART_ROWS", (size, size))
            patch.setattr("gpssl.data._formats.PART_CELLS", 1)
            table = open_table(path)
            found.append((table.column("v").way, table.notes, table.column("v").facts, table.texts("v").tolist()))
    assert found[1] == found[0]
    assert found[2] == found[0]


@settings(max_examples=50)
@given(st.text(max_size=45))
def test_any_text_can_be_looked_at(text: str) -> None:
    try:
        cells = pa.array([text, None, "12 mg"])
    except UnicodeEncodeError:
        return
    dressed = undress(cells)
    assert dressed.cores.to_pylist()[1:] == [None, "12"]
    assert dressed.units.tolist()[1:] == ["", " mg"]


def test_factors() -> None:
    assert float(factor("µg", "g") or 0) == 1e-6
    assert factor("kg", "m") is None
    assert factor("lb", "kg") == unit_of("lb").size / 1000
    assert math.isclose(float(factor("lb", "kg") or 0), 0.45359237)
    assert [power_of_ten(unit_of(one).size) for one in ("kg", "µm", "min", "lb")] == [3, -6, None, None]
    assert factor("m", "min") == 1  # 20m beside 1h


WORDS = st.sampled_from(
    [
        *[
            "1",
            "12",
            ",234",
            ".5",
            "-",
            "(",
            ")",
            "<",
            ">=",
            "€",
            "$",
            "mg",
            "%",
            "k",
            "h",
            "m",
            "PT",
            "1H",
            ":",
            "30",
            "24",
            "2024",
            "/",
            "am",
            "PM",
            "Dec",
            "Mon",
            "Z",
            "'",
            "−",
            "days",
            "inf",
            "NA",
        ],
        " ",
        "\u00a0",
    ]
)


@settings(max_examples=20)
@given(st.lists(st.lists(WORDS, min_size=1, max_size=6).map("".join), min_size=1, max_size=40))
def test_a_cell_has_one_value_whoever_reads_it(written: list[str]) -> None:
    """What was looked at before and what was not are read alike."""
    cells = cells_of(pa.array(written)).distinct
    looks = looks_of(cells)
    for way in (
        Way("point"),
        Way("comma", "mg"),
        Way("grouped", "different"),
        Way("point", "% or fraction"),
        Way("duration"),
        Way("day first"),
    ):
        np.testing.assert_array_equal(read_cells(cells, way, looks), read_cells(cells, way))
