"""Tables as people write them, from the command line: nothing that is data is lost, and what was understood is told."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from command import FEW, as_json, done, refused
from gpssl.data import open_table

TARGET = "target"


def _bounds(value: str, place: int) -> str:
    return f"<{value}" if place % 5 == 0 else value


def _shares(value: str, _: int) -> str:
    return f"{Decimal(value).scaleb(2):f} %"


def _masses(value: str, place: int) -> str:
    return f"{Decimal(value).scaleb(-3):f} g" if place % 3 == 0 else f"{value} mg"


WRITERS: dict[str, Callable[[str, int], str]] = {
    "mean radius": lambda value, _: f"{value} mm",
    "mean texture": lambda value, _: f"{value}kg",
    "mean perimeter": _masses,
    "mean area": lambda value, _: f"${Decimal(value):,}",
    "worst radius": lambda value, _: f"{value} mg/dL",
    "worst texture": _bounds,
    "worst perimeter": lambda value, _: f"{Decimal(value):,}".replace(",", "\u202f"),
    "worst area": lambda value, _: f"CHF {Decimal(value):,}".replace(",", "'"),
    "worst smoothness": _shares,
    "worst concavity": lambda value, _: f"~{value}",
}
"""Columns of the table of breast cancer, and how a person may write them."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The table of breast cancer with 150 labels, plain and with units, money, percent and signs in ten columns."""
    folder = tmp_path_factory.mktemp("tables")
    plain, written = folder / "plain.csv", folder / "written.csv"
    done("datasets", "breast_cancer", "--labels", 150, "-o", plain)
    cells = pd.read_csv(plain, dtype=str, keep_default_na=False)
    for name, writer in WRITERS.items():
        cells[name] = [writer(value, place) for place, value in enumerate(cells[name])]
    cells.to_csv(written, index=False)
    return plain, written


def test_units_and_money_are_read_as_the_plain_numbers(tables: tuple[Path, Path]) -> None:
    plain, written = (open_table(path, target=TARGET) for path in tables)
    assert written.used == plain.used
    assert written.dropped == {}
    expected, found = plain.frame(), written.frame()
    expected["worst smoothness"] = [float(Decimal(value).scaleb(2)) for value in pd.read_csv(tables[0], dtype=str)["worst smoothness"]]
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_units_and_money_do_not_raise_the_error(tables: tuple[Path, Path], tmp_path: Path) -> None:
    errors = {}
    for path in tables:
        found = as_json("label", path, "--target", TARGET, "-o", tmp_path / path.name, *FEW)
        errors[path.stem] = found["expectation"]["risk"]
        notes = " ".join(found["notes"])
        if path.stem == "written":
            assert "Numbers with units: 'mean radius' (mm), 'mean texture' (kg), 'mean perimeter' (mg)" in notes
            assert "The units of 'mean perimeter' differ (mg, g): all numbers were turned into mg." in notes
            assert "taken as the bound itself: 'worst texture' (114 cells)" in notes
    assert errors["written"] == pytest.approx(errors["plain"], abs=0.015)  # two of 150 labels
    given = pd.read_csv(tables[1], dtype=str)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "written.csv", dtype=str)[list(WRITERS)], given[list(WRITERS)])


def clinic(n_rows: int, seed: int, *, in_grams: bool = False) -> pd.DataFrame:
    """Visits with a dose, a time, a weekday, dates in three formats and durations; the hour tells the class."""
    rng = np.random.default_rng(seed)
    hours, days = rng.integers(0, 24, n_rows), pd.Timestamp("2024-01-13") + pd.to_timedelta(rng.integers(0, 300, n_rows), unit="D")
    doses = rng.integers(1, 900, n_rows)
    formats = ["%Y-%m-%d", "%d.%m.%Y", "%b %d, %Y"]
    return pd.DataFrame(
        {
            "dose": [f"{dose / 1000} g" if in_grams else f"{dose} mg" for dose in doses],
            "opened": [f"{hour:02d}:{minute:02d}" for hour, minute in zip(hours, rng.integers(0, 60, n_rows), strict=True)],
            "weekday": [day.strftime("%a") for day in days],
            "day": [day.strftime(formats[place % 3]) for place, day in enumerate(days)],
            "stay": [f"{minutes // 60}h {minutes % 60}m" for minutes in rng.integers(61, 900, n_rows)],
            "crp": ["n.d." if place % 40 == 7 else f"{value:.1f}" for place, value in enumerate(rng.uniform(0, 50, n_rows))],
            "shift": np.where((hours >= 22) | (hours < 6), "night", "day"),
        }
    )


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    frame = clinic(150, 0)
    frame.loc[frame.index[80:], "shift"] = None
    frame.to_csv(tmp_path / "visits.csv", index=False)
    return tmp_path / "visits.csv"


def test_times_dates_and_durations_are_told_and_used(visits: Path, tmp_path: Path) -> None:
    found: Any = as_json("label", visits, "--target", "shift", "-o", tmp_path / "out.csv", *FEW)
    notes = " ".join(found["notes"])
    assert "Not learned from" not in notes
    for note in (
        "Numbers with units: 'dose' (mg), 'stay' (s).",
        "Dates in several formats: 'day' (year-month-day, day.month.year, month in words).",
        "Times of day, of which the last is near the first (learned from as sine and cosine): 'opened'.",
        "Weekdays, of which the last is near the first (learned from as sine and cosine): 'weekday'.",
        "4 cell(s) of 'crp' are no numbers and count as missing, such as 'n.d.'.",
    ):
        assert note in notes, notes
    expectation = found["expectation"]
    assert expectation["risk"] < 0.6 * expectation["baseline_risk"]
    out, given = pd.read_csv(tmp_path / "out.csv", dtype=str), pd.read_csv(visits, dtype=str)
    pd.testing.assert_frame_equal(out[list(given.columns[:-1])], given[list(given.columns[:-1])])


def test_a_model_reads_new_files_in_its_own_units(visits: Path, tmp_path: Path) -> None:
    done("embed", visits, "-o", tmp_path / "map.csv", "--ignore", "shift", "--model", tmp_path / "map.gpssl")
    model = tmp_path / "map.gpssl"
    for in_grams in (False, True):
        clinic(20, 5, in_grams=in_grams).drop(columns="shift").to_csv(tmp_path / "new.csv", index=False)
        done("transform", model, tmp_path / "new.csv", "-o", tmp_path / f"new-{in_grams}.csv")
    columns = [name for name in pd.read_csv(tmp_path / "new-True.csv").columns if name not in clinic(1, 0).columns]
    in_mg, in_g = (pd.read_csv(tmp_path / f"new-{in_grams}.csv")[columns] for in_grams in (False, True))
    assert len(columns) > 0
    pd.testing.assert_frame_equal(in_g, in_mg)
    clinic(20, 5).assign(dose="5 ml").drop(columns="shift").to_csv(tmp_path / "bad.csv", index=False)
    assert "held numbers in mg when the model was trained, but not here (such as '5 ml')" in refused(
        "transform", model, tmp_path / "bad.csv", "-o", tmp_path / "bad-out.csv"
    )


def test_targets_with_units_are_numbers_and_ranges_are_classes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    amounts = [f"€ {value:.2f}".replace(".", ",") if place < 60 else "" for place, value in enumerate(50 + 10 * x)]
    sizes = np.where(x < -0.4, "<5", np.where(x < 0.4, "5-10", ">10")).astype(object)
    sizes[60:] = None
    pd.DataFrame({"x": x, "amount": amounts}).to_csv(tmp_path / "amounts.csv", index=False)
    pd.DataFrame({"x": x, "size": sizes}).to_csv(tmp_path / "sizes.csv", index=False)
    amount = as_json("label", tmp_path / "amounts.csv", "--target", "amount", "-o", tmp_path / "a.csv", *FEW)
    assert amount["kind"] == "number"
    assert "Numbers with units: 'amount' (€)." in " ".join(amount["notes"])
    size = as_json("label", tmp_path / "sizes.csv", "--target", "size", "-o", tmp_path / "b.csv", *FEW)
    assert (size["kind"], size["classes"]) == ("class", ["5-10", "<5", ">10"])


def test_each_column_that_is_left_out_is_named_with_the_reason(tmp_path: Path) -> None:
    rows = range(60)
    frame = pd.DataFrame({"x": np.sin(rows), "mixed": [f"{place * 7}" if place % 4 else f"{place}/a" for place in rows]})
    for name in ("who", "nick", "mail"):
        frame[name] = [f"{name}{place}" for place in rows]
    few = " ".join(as_json("embed", _csv(frame, tmp_path / "few.csv"), "-o", tmp_path / "few-map.csv")["notes"])
    assert "'who' (it looks like an ID: 60 different texts in 60 rows)" in few
    assert "60 different texts in 60 rows, 45 of them with a number: if it is a measure, mend the other cells, such as '0/a'" in few
    for name in ("alike", "same", "one"):
        frame[name] = 3
    many = " ".join(as_json("embed", _csv(frame, tmp_path / "many.csv"), "-o", tmp_path / "many-map.csv")["notes"])
    told = "'mixed', 'who', 'nick', 'mail' (each: it looks like an ID), 'alike', 'same', 'one' (each: all its cells are alike)."
    assert f"Not learned from: {told}" in many


def _csv(frame: pd.DataFrame, path: Path) -> Path:
    frame.to_csv(path, index=False)
    return path
