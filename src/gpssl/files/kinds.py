"""Which reading suits a column: decided on the shapes of all its cells, never on the first rows alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..column_facts import ColumnKind
from ..progress import Progress
from .delimited import TableSource
from .profile import Findings, first_shapes, profile
from .readings import DATES, NUMBERS, SHAPE, Reading, fitting_shapes

Shapes = NDArray[np.int64]

ENOUGH = 0.99
"""Of the known cells, to take a column as numbers or dates; the others then count as missing."""
MAX_PASSES = 6


def settle_readings(
    source: TableSource, kinds: Mapping[str, ColumnKind | None], progress: Progress | None = None
) -> tuple[dict[str, Reading], dict[str, Findings]]:
    """The reading of each column and what was found with it. `kinds` names the columns, with the kind that is wanted, or None.

    A pass has to assume a reading for each column to find its smallest value and the like. The first rows tell which one, nearly always
    rightly; where the whole file tells another, these columns are read again.
    """
    readings = _first_guess(source, kinds)
    findings: dict[str, Findings] = {}
    shapes: dict[str, Shapes] = {}
    todo = readings
    for _ in range(MAX_PASSES):
        found = profile(source, todo, progress)
        findings.update(found)
        for name, one in found.items():
            if name not in shapes or shapes[name][SHAPE["unsplit number"]] > 0:
                shapes[name] = one.shapes
        decided = _decide_all(source, shapes, kinds)
        todo = {name: decided[name] for name in shapes if decided[name] != readings[name]}
        readings = {**readings, **todo}
        if not todo:
            break
    return readings, findings


def _first_guess(source: TableSource, kinds: Mapping[str, ColumnKind | None]) -> dict[str, Reading]:
    text = [name for name in kinds if source.storage[name] == "text"]
    guess = _decide_all(source, first_shapes(source, text), kinds)
    return {name: guess.get(name, _without_looking(source, name, kinds[name]) or "point") for name in kinds}


def _decide_all(source: TableSource, shapes: Mapping[str, Shapes], kinds: Mapping[str, ColumnKind | None]) -> dict[str, Reading]:
    separator = source.separator
    has_commas = any(
        _number_reading(one, separator, False) == "comma" and one[SHAPE["comma"]] > 0 and _is_number(one) for one in shapes.values()
    )
    return {
        name: _without_looking(source, name, kinds[name]) or decide(one, kinds[name], separator, has_commas) for name, one in shapes.items()
    }


def _without_looking(source: TableSource, name: str, kind: ColumnKind | None) -> Reading | None:
    """The reading of a column that is no text, or is to be text; None where the cells decide."""
    if source.storage[name] == "category" or kind == "category":
        return "text"
    return "typed" if source.storage[name] != "text" else None


def decide(shapes: Shapes, kind: ColumnKind | None, separator: str, has_commas: bool) -> Reading:
    """The reading of a column of text with cells of such shapes, in a file that has decimal commas elsewhere, or not."""
    number, date = _number_reading(shapes, separator, has_commas), _date_reading(shapes)
    if kind is not None:
        return {"number": number, "boolean": "boolean", "date": date or "month/day/year", "category": "text"}[kind]
    n_known = n_of_known(shapes)
    if n_known == 0:
        return number
    if shapes[SHAPE["boolean"]] == n_known + shapes[SHAPE["infinite"]] + shapes[SHAPE["dash"]]:
        return "boolean"
    if shapes[SHAPE["unsplit number"]] > 0 and number == "comma":
        return "comma"  # so that the cells are told apart
    if shapes[fitting_shapes(number)].sum() >= ENOUGH * n_known:
        return number
    return date if date and not _is_ambiguous(shapes) and _n_dates(shapes, date) >= ENOUGH * n_known else "text"


def n_of_known(shapes: Shapes) -> int:
    """Cells that are not missing, if the column holds numbers."""
    return int(shapes.sum() - shapes[SHAPE["infinite"]] - shapes[SHAPE["dash"]])


def is_ambiguous_date(shapes: Shapes) -> bool:
    """Whether all cells are dates of which nobody can tell day and month."""
    return _is_ambiguous(shapes) and _n_dates(shapes, "month/day/year") >= ENOUGH * n_of_known(shapes) > 0


def _is_number(shapes: Shapes) -> bool:
    commas = ("unsplit number", "whole", "point or thousands", "comma or thousands", "comma")
    return sum(int(shapes[SHAPE[name]]) for name in commas) >= ENOUGH * n_of_known(shapes)


def _number_reading(shapes: Shapes, separator: str, has_commas: bool) -> Reading:
    comma, grouped, either, point, thousands, unsplit = (
        int(shapes[SHAPE[name]]) for name in ("comma", "grouped", "comma or thousands", "point", "point or thousands", "unsplit number")
    )
    if comma or grouped:
        if unsplit:
            return "comma"
        return max(("comma", "grouped", "point"), key=lambda one: shapes[fitting_shapes(one)].sum())
    if either:
        return "grouped" if point or (separator == "," and not has_commas) else "comma"
    return "comma" if has_commas and not point and (thousands or unsplit) else "point"


def _date_reading(shapes: Shapes) -> Reading | None:
    counts = {reading: _n_dates(shapes, reading) for reading in DATES}
    best = max(counts, key=lambda reading: counts[reading])
    return best if counts[best] else None


def _n_dates(shapes: Shapes, reading: Reading) -> int:
    if reading in DATES[:2]:
        return int(shapes[SHAPE[reading]])
    return int(shapes[SHAPE["day/month" if reading == "day/month/year" else "month/day"]] + shapes[SHAPE["day/month or month/day"]])


def _is_ambiguous(shapes: Shapes) -> bool:
    return shapes[SHAPE["day/month or month/day"]] > 0 and shapes[SHAPE["day/month"]] == shapes[SHAPE["month/day"]] == 0


def kind_of(reading: Reading, storage: str) -> ColumnKind:
    """The kind of a column with this reading."""
    if reading in NUMBERS:
        return "number"
    if reading in DATES:
        return "date"
    if reading == "typed":
        return storage  # type: ignore[return-value]
    return "boolean" if reading == "boolean" else "category"
