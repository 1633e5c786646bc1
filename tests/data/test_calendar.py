"""Dates of several formats, and what comes again: each cell is read by its own format, and the last is near the first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpssl.data import FileError, FileTable, TableFiles, open_table, write_table
from gpssl.data._calendar import read_dates, read_long_times, read_times

REPEATS = 10


def table_of(folder: Path, cells: Sequence[str], *, name: str = "v", repeats: int = REPEATS, **options: Any) -> FileTable:
    """A table with a column of these cells, and one of other numbers."""
    path = folder / "table.csv"
    path.write_text("\n".join([f"{name};other", *(f"{cell};{place % 7}" for place, cell in enumerate([*cells] * repeats))]) + "\n")
    return open_table(path, **options)


def days(table: FileTable, n_cells: int) -> list[str]:
    return [str(value)[:16].removesuffix(" 00:00") for value in table.frame()["v"][:n_cells]]


@pytest.mark.parametrize(
    ("cells", "expected", "note"),
    [
        (
            ["2024-12-31", "31.12.2024", "Dec 31, 2024", "31 Dec 2024", "12/30/2024"],
            ["2024-12-31"] * 4 + ["2024-12-30"],
            "Dates in several formats: 'v' (year-month-day, day.month.year, month/day/year, month in words).",
        ),
        (
            ["31. Dezember 2024", "1. März 2023", "2 May 2022"],
            ["2024-12-31", "2023-03-01", "2022-05-02"],
            "Dates read as month in words: 'v'.",
        ),
        (["Tue, 31 Dec 2024", "1-Jan-99", "July 4th, 1976"], ["2024-12-31", "1999-01-01", "1976-07-04"], "Dates read as month in words"),
        (["31.12.24", "01.02.99"], ["2024-12-31", "1999-02-01"], "Dates read as day.month.year: 'v'."),
        (["12/31/24", "1/2/24"], ["2024-12-31", "2024-01-02"], "Dates read as month/day/year: 'v'."),
        (["12/31/2024 2:30 PM", "1/2/2024 12:05 am"], ["2024-12-31 14:30", "2024-01-02 00:05"], "Dates read as month/day/year: 'v'."),
        (
            ["31.12.2024", "1/2/2024"],
            ["2024-12-31", "2024-02-01"],
            "10 date(s) of 'v' could have day or month first: read with the day first",
        ),
        (
            ["31/12/2024", "30/12/2024", "12/29/2024", "1/2/2024"],
            ["2024-12-31", "2024-12-30", "2024-12-29", "2024-02-01"],
            "could have day",
        ),
        (["2024-11", "Dec 2024", "2023-01"], ["2024-11-01", "2024-12-01", "2023-01-01"], "Dates in several formats"),
    ],
)
def test_dates_in_several_formats(tmp_path: Path, cells: list[str], expected: list[str], note: str) -> None:
    table = table_of(tmp_path, cells)
    assert table.facts[0].kind == "date"
    assert days(table, len(cells)) == expected
    assert any(note in one for one in table.notes), table.notes


def test_other_columns_tell_what_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rows = [f"{day}/{month}/2024;{20 + day}/{month}/2024" for day in (1, 2, 3) for month in (4, 5, 6)]
    path.write_text("\n".join(["v;w", *rows]) + "\n")
    table = open_table(path)
    assert days(table, 3) == ["2024-04-01", "2024-05-01", "2024-06-01"]
    assert "9 date(s) of 'v' could have day or month first: read with the day first, as other dates of the table." in table.notes


def test_a_model_knows_what_came_first(tmp_path: Path) -> None:
    facts = table_of(tmp_path, ["31/12/2024", "1/2/2024"]).facts
    assert facts[0].unit == "day first"
    assert days(table_of(tmp_path, ["3/4/2024", "5/6/2024"], columns=facts), 2) == ["2024-04-03", "2024-06-05"]


def test_dates_that_could_be_either_are_named_when_they_are_left_out(tmp_path: Path) -> None:
    cells = [f"{place % 12 + 1}/{place // 12 + 1}/2024" for place in range(60)]
    table = table_of(tmp_path, cells, repeats=1)
    assert table.dropped["v"] == "day and month of its dates cannot be told apart: write them as 2024-12-31"


FORMATS = ["%Y-%m-%d", "%d.%m.%Y", "%d %b %Y", "%B %d, %Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%b-%Y"]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.dates(date(1600, 1, 1), date(2200, 1, 1)), st.sampled_from(FORMATS)), min_size=1, max_size=30))
def test_a_date_is_the_same_in_all_formats(written: list[tuple[date, str]]) -> None:
    cells = pa.array([day.strftime(form) for day, form in written])
    np.testing.assert_array_equal(
        read_dates(cells, day_first=False), [(day - date(1970, 1, 1)) / timedelta(seconds=1) for day, _ in written]
    )


@settings(max_examples=30)
@given(st.times())
def test_times_of_day(moment: time) -> None:
    expected = 3600 * moment.hour + 60 * moment.minute + moment.second
    forms = ["%H:%M:%S", "%I:%M:%S %p", "%H:%M:%S Uhr"]
    np.testing.assert_array_equal(read_times(pa.array([moment.strftime(form) for form in forms])), expected)
    np.testing.assert_array_equal(read_long_times(pa.array([moment.strftime("%H:%M")])), expected - moment.second)


def positions(table: FileTable, period: str, name: str = "v") -> Any:
    return table.frame()[[f"{name} (sine of the {period})", f"{name} (cosine of the {period})"]].to_numpy()


def test_the_end_of_a_day_is_near_its_beginning(tmp_path: Path) -> None:
    table = table_of(tmp_path, ["23:59", "00:01", "12:00", "6:00 pm", "18:00:00"], name="opened")
    assert table.used == ["opened (sine of the day)", "opened (cosine of the day)", "other"]
    found = positions(table, "day", "opened")
    minute = 2 * np.pi / (24 * 60)
    np.testing.assert_allclose(np.linalg.norm(found[0] - found[1]), 2 * np.sin(minute))
    np.testing.assert_allclose(found[2:5], [[0, -1], [-1, 0], [-1, 0]], atol=1e-12)
    assert "Times of day, of which the last is near the first (learned from as sine and cosine): 'opened'." in table.notes
    assert next(table.parts()).cells(typed=True)["opened"].tolist()[:2] == ["23:59", "00:01"]
    assert [facts.maximum for facts in table.facts[:2]] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("cells", "period", "n_steps"),
    [
        (["Mon", "Tuesday", "Mittwoch", "Do", "fri", "SA.", "sunday"], "week", 7),
        (["Jan", "Februar", "march", "Apr.", "Mai", "June", "Juli", "Aug", "Sept", "Oct", "Nov", "Dezember"], "year", 12),
    ],
)
def test_weekdays_and_months_stand_in_a_circle(tmp_path: Path, cells: list[str], period: str, n_steps: int) -> None:
    table = table_of(tmp_path, cells)
    found = positions(table, period)[:n_steps]
    steps = np.linalg.norm(found - np.roll(found, 1, axis=0), axis=1)  # the first follows the last
    np.testing.assert_allclose(steps, 2 * np.sin(np.pi / n_steps))
    as_target = table_of(tmp_path, cells, target="v")
    assert as_target.target()[:n_steps].tolist() == cells


def test_what_was_a_time_in_training_is_one_in_other_files(tmp_path: Path) -> None:
    facts = table_of(tmp_path, ["23:59", "00:01", "12:00"]).facts
    table = table_of(tmp_path, ["06:00", "", "18:00"], columns=facts, repeats=1)
    np.testing.assert_allclose(positions(table, "day"), [[1.0, 0.0], [np.nan, np.nan], [-1.0, 0.0]], atol=1e-12)
    with pytest.raises(FileError, match=r"Column 'v' of .* held parts of a day when the model was trained, but not here"):
        table_of(tmp_path, ["red", "blue"], columns=facts)
    path = tmp_path / "table.parquet"
    pa.parquet.write_table(pa.table({"v": pa.array([time(6), None, time(18)], pa.time64("us")), "other": [1.0, 2.0, 3.0]}), path)
    np.testing.assert_allclose(positions(open_table(path, columns=facts), "day"), [[1.0, 0.0], [np.nan, np.nan], [-1.0, 0.0]], atol=1e-12)


def test_times_that_a_file_knows_as_such(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pa.parquet.write_table(pa.table({"v": pa.array([time(23, 59), time(0, 1), time(12)] * 9, pa.time64("us")), "other": range(27)}), path)
    table = open_table(path)
    assert table.used[:2] == ["v (sine of the day)", "v (cosine of the day)"]
    np.testing.assert_allclose(positions(table, "day")[2], [0, -1], atol=1e-12)
    (tmp_path / "table.csv").write_text("v,other\n06:00,3\n12:00,4\n")
    rows = TableFiles([path, tmp_path / "table.csv"])
    assert rows.names == ["v (sine of the day)", "v (cosine of the day)", "other"]
    expected = np.concatenate([positions(table, "day"), [[1.0, 0.0], [0.0, -1.0]]])
    np.testing.assert_allclose(np.concatenate([part.rows for part in rows.parts()])[:, :2], expected, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "cells", "expected"),
    [
        ("v", ["01:20:00", "30:00:00", "00:00:30"], [4800, 108000, 30]),
        ("duration", ["1:20:00", "0:05:00", "0:00:30.5"], [4800, 300, 30.5]),
        ("v", ["01:20:00", "90 min", "PT30S"], [4800, 5400, 30]),
    ],
)
def test_durations_are_seconds(tmp_path: Path, name: str, cells: list[str], expected: list[float]) -> None:
    table = table_of(tmp_path, cells, name=name)
    assert table.frame()[name][:3].tolist() == expected
    assert f"Durations read as seconds: {name!r}." in table.notes
    again = table_of(tmp_path, ["02:00:00", "00:00:01"], name=name, columns=table.facts)
    assert again.frame()[name][:2].tolist() == [7200, 1]


def test_data_frames_are_read_in_the_same_way(tmp_path: Path) -> None:
    frame = pd.DataFrame({"v": ["23:59", "00:01", "12:00"] * 9, "w": ["1 mg", "2 g", "3 mg"] * 9})
    write_table(tmp_path / "table.arrow", frame)
    table = open_table(tmp_path / "table.arrow")
    assert table.used == ["v (sine of the day)", "v (cosine of the day)", "w"]
    assert table.frame()["w"][:3].tolist() == [1, 2000, 3]
