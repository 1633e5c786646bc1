"""What a person should know about how the cells of a table were understood."""

from __future__ import annotations

from collections.abc import Iterable

from ._columns import Column, n_odd_cells
from ._decisions import is_ambiguous_date
from ._errors import listed
from ._readings import DATES, NUMBERS, SHAPE, Reading
from ._units import DIFFERENT, FRACTIONS, PERCENT, factor, unit_of

MOST_NOTES = 10
"""The most columns that get a sentence of the same sort of their own."""
MOST_WORDS = 3
DATE_WORDS = {
    "year-month-day": ("year-month-day",),
    "day.month.year": ("day.month.year",),
    "day/month/year": ("day/month",),
    "month/day/year": ("month/day",),
    "month in words": ("month in words",),
}


def notes_on_reading(columns: list[Column]) -> list[str]:
    """Return sentences on what was understood, and on cells that were not."""
    notes = []
    told: dict[Reading, str] = {"comma": "Numbers with decimal commas", "grouped": "Numbers with commas between thousands"}
    for reading, what in told.items():
        found = [column.name for column in columns if column.reading == reading]
        notes += [f"{what}: {listed(found)}."] if found else []
    texts = [column.name for column in columns if column.kind == "text"]
    notes += [f"Free text, compared by its words: {listed(texts)}."] if texts else []
    notes += _notes_on_units(columns) + _notes_on_signs(columns) + _notes_on_dates(columns) + _notes_on_times(columns)
    infinite = [column for column in columns if column.kind == "number" and column.findings.n_infinite]
    if infinite:
        n_cells = sum(column.findings.n_infinite for column in infinite)
        notes.append(f"{n_cells:,} infinite number(s) count as missing, in {listed(column.name for column in infinite)}.")
    return notes + _notes_on_odd_cells(columns)


def _notes_on_units(columns: list[Column]) -> list[str]:
    with_units = [column for column in columns if column.reading in NUMBERS and (column.way.unit or any(_units(column)))]
    named = [f"{one.name!r} ({_unit_in_words(one)})" for one in with_units if one.way.unit != DIFFERENT and any(_units(one))]
    notes = [f"Numbers with units: {_shown(named)}."] if named else []
    of_columns = [note for column in with_units for note in _notes_on_differing_units(column)]
    more = [f"{len(of_columns) - MOST_NOTES:,} more notes on units are left out."] if len(of_columns) > MOST_NOTES else []
    return [*notes, *of_columns[:MOST_NOTES], *more]


def _units(column: Column) -> dict[str, int]:
    """Return how many cells have each unit that counts, by its usual name; "" where there is none but something else."""
    units: dict[str, int] = {}
    for written, count in (column.findings.tally.units or {}).items():
        if factor(written.strip(), column.way.unit) is not None:
            name = unit_of(written).name
            units[name] = units.get(name, 0) + count
    return units


def _unit_in_words(column: Column) -> str:
    return PERCENT if column.way.unit == FRACTIONS else column.way.unit


def _notes_on_differing_units(column: Column) -> list[str]:
    found, unit, name = column.findings, column.way.unit, column.name
    units = _units(column)
    different = sorted((one for one in units if one), key=lambda one: (-units[one], one))
    n_without = found.n_values - sum(units[one] for one in different)
    if unit == DIFFERENT:
        note = f"The units of {name!r} differ ({', '.join(different)}): its numbers are taken as they stand."
        return [note] if len(different) > 1 else []
    notes = []
    if unit == FRACTIONS and n_without:
        notes.append(f"{n_without:,} cell(s) of {name!r} have no sign of percent: they are taken as fractions, times 100.")
    elif n_without:
        notes.append(f"{n_without:,} cell(s) of {name!r} have no unit and are taken as {unit}.")
    if len(different) == 1 and different[0] != _unit_in_words(column):
        notes.append(f"The numbers of {name!r} are in {different[0]}, and were turned into {_unit_in_words(column)}.")
    elif len(different) > 1:
        notes.append(f"The units of {name!r} differ ({', '.join(different)}): all numbers were turned into {_unit_in_words(column)}.")
    return notes


def _notes_on_signs(columns: list[Column]) -> list[str]:
    numbers = [column for column in columns if column.reading in NUMBERS]
    notes = []
    spelled = [column.name for column in numbers if column.findings.tally.n_spelled]
    if spelled:
        notes.append(
            f"Numbers with spaces or apostrophes between thousands, in parentheses (negative) or with k for thousands: {listed(spelled)}."
        )
    bounds = [f"{column.name!r} ({column.findings.tally.n_bounds:,} cells)" for column in numbers if column.findings.tally.n_bounds]
    if bounds:
        notes.append(f"Numbers with signs such as < or ≥ are taken as the bound itself: {_shown(bounds)}.")
    rough = [f"{column.name!r} ({column.findings.tally.n_rough:,} cells)" for column in numbers if column.findings.tally.n_rough]
    if rough:
        notes.append(f"Numbers with ~ or a word for about are taken as they stand: {_shown(rough)}.")
    return notes


def _notes_on_dates(columns: list[Column]) -> list[str]:
    dates = [column for column in columns if column.reading in DATES]
    formats = {column.name: _formats(column) for column in dates}
    notes = []
    for one in list(DATE_WORDS)[1:]:
        names = [name for name, found in formats.items() if found == [one]]
        notes += [f"Dates read as {one}: {listed(names)}."] if names else []
    mixed = [f"{name!r} ({', '.join(found)})" for name, found in formats.items() if len(found) > 1]
    notes += [f"Dates in several formats: {_shown(mixed)}."] if mixed else []
    for column in dates:
        shapes = column.findings.shapes
        n_either, by_day, by_month = (int(shapes[SHAPE[name]]) for name in ("day/month or month/day", "day/month", "month/day"))
        if n_either and bool(by_day) == bool(by_month):
            reason = "as most others of the column" if by_day else "as other dates of the table"
            notes.append(
                f"{n_either:,} date(s) of {column.name!r} could have day or month first: read with the {column.reading}, {reason}."
            )
    ambiguous = [column.name for column in columns if column.reading == "text" and is_ambiguous_date(column.findings.shapes)]
    if ambiguous:
        notes.append(f"Dates of which day and month cannot be told apart count as text: {listed(ambiguous)}. Write them as 2024-12-31.")
    return notes


def _formats(column: Column) -> list[str]:
    """Return the formats of dates that a column has; those that could be either are of its own order."""
    shapes = column.findings.shapes
    found = {name: sum(int(shapes[SHAPE[shape]]) for shape in among) for name, among in DATE_WORDS.items()}
    own = "day/month/year" if column.reading == "day first" else "month/day/year"
    found[own] += int(shapes[SHAPE["day/month or month/day"]])
    return [name for name, count in found.items() if count]


def _notes_on_times(columns: list[Column]) -> list[str]:
    notes = []
    for cycle, what in (("day", "Times of day"), ("week", "Weekdays"), ("year", "Months")):
        names = [column.name for column in columns if column.cycle is not None and column.cycle.name == cycle]
        if names:
            notes.append(f"{what}, of which the last is near the first (learned from as sine and cosine): {listed(names)}.")
    lasting = [column.name for column in columns if column.reading == "duration"]
    return [*notes, f"Durations read as seconds: {listed(lasting)}."] if lasting else notes


def _notes_on_odd_cells(columns: list[Column]) -> list[str]:
    odd = [column for column in columns if n_odd_cells(column)]
    notes = [
        f"{n_odd_cells(one):,} cell(s) of {one.name!r} are no {_in_words(one)} and count as missing{_examples(one)}."
        for one in odd[:MOST_NOTES]
    ]
    return [*notes, f"{len(odd) - MOST_NOTES:,} more columns have such cells."] if len(odd) > MOST_NOTES else notes


def _in_words(column: Column) -> str:
    cycles = {"day": "times of day", "week": "weekdays", "year": "months"}
    if column.cycle is not None:
        return cycles[column.cycle.name]
    if column.reading == "duration":
        return "durations"
    return {"number": "numbers", "date": "dates", "boolean": "true or false"}.get(column.kind, "numbers")


def _examples(column: Column) -> str:
    """Return the words that count as missing, the most frequent first, or a single cell."""
    words = column.findings.tally.words or {}
    shown = sorted(words, key=lambda word: (-words[word], word))[:MOST_WORDS]
    if not shown and column.findings.odd is not None:
        shown = [column.findings.odd]
    return f", such as {', '.join(repr(word[:40]) for word in shown)}" if shown else ""


def _shown(columns: Iterable[str], most: int = 20) -> str:
    """Return what is said of columns for a sentence, the first few of many."""
    columns = list(columns)
    shown = ", ".join(columns[:most])
    return shown if len(columns) <= most else f"{shown} and {len(columns) - most:,} more"
