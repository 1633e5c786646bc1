"""Which way of reading suits a column: decided on the shapes of all its cells, never on the first rows alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from .._runtime.progress import Progress
from ._calendar import CYCLES
from ._frames import ColumnKind
from ._profile import Evidence, Findings, Shapes, first_evidence, profile
from ._readings import DATE_SHAPES, DATES, NUMBER_SHAPES, NUMBERS, SHAPE, Reading, Way, fitting_shapes
from ._source import TableSource
from ._units import is_money, unit_of

ENOUGH = 0.99
"""The share of the known cells that must be numbers or dates to read a column so; the other cells then count as missing."""
WITH_FEW_WORDS = ((0.9, 8), (0.5, 3))
"""The same where the other cells are at most so many different words, and the numbers are too many to be codes of classes."""
MOST_BOUNDS = 0.5
"""The largest share of numbers such as "<5" in a column of few different numbers: with more, they are names of ranges."""
LASTS = re.compile(r"(?i).*(duration|elapsed|runtime|run[ _]time|dauer|laufzeit|time[ _](taken|spent|to)\b).*")
"""Names of columns in which 01:20:00 is no time of day."""
MAX_PASSES = 6


class Wanted(NamedTuple):
    """What a model knows of a column, or the person who asks for it."""

    kind: ColumnKind | None = None
    unit: str | None = None
    """What its numbers were given in, or "day first", "month first" or a part of `CYCLES`; None where the cells decide."""


def settle_ways(
    source: TableSource, wanted: Mapping[str, Wanted], progress: Progress | None = None
) -> tuple[dict[str, Way], dict[str, Findings]]:
    """Return how to read each column and what was found so. `wanted` names the columns, with the kind that is wanted, or None.

    A pass has to assume a reading for each column to find its smallest value and the like. The first rows tell which one, nearly always
    rightly; where the whole file tells another, these columns are read again.
    """
    text = [name for name in wanted if source.storage[name] == "text"]
    guess = _decide_all(source, first_evidence(source, text), wanted)
    ways = {name: guess.get(name, _without_looking(source, name, wanted[name].kind) or Way("point")) for name in wanted}
    findings: dict[str, Findings] = {}
    evidence: dict[str, Evidence] = {}
    todo = ways
    for _ in range(MAX_PASSES):
        if not todo:
            break
        found = profile(source, todo, progress)
        findings.update(found)
        for name, one in found.items():
            if name not in evidence or evidence[name].shapes[SHAPE["unsplit number"]] > 0:
                evidence[name] = Evidence(one.shapes, one.tally)
        decided = _decide_all(source, evidence, wanted)
        todo = {name: decided[name] for name in evidence if decided[name] != ways[name]}
        ways = {**ways, **todo}
    return ways, findings


def _decide_all(source: TableSource, evidence: Mapping[str, Evidence], wanted: Mapping[str, Wanted]) -> dict[str, Way]:
    separator = source.separator
    has_commas = any(_has_commas(one, separator) for one in evidence.values())
    habits = _Habits(separator, has_commas, _likely_order([one.shapes for one in evidence.values()]))
    return {
        name: _without_looking(source, name, wanted[name].kind) or _Decision(name, one, wanted[name], habits).way()
        for name, one in evidence.items()
    }


def _has_commas(evidence: Evidence, separator: str) -> bool:
    """Return whether a column has numbers with decimal commas, which nobody can take for thousands."""
    shapes, tally = evidence
    if not shapes[SHAPE["comma"]] or _number_reading(shapes, separator, False) != "comma":
        return False
    unit = tally.unit(int(shapes[NUMBER_SHAPES].sum()))
    n_numbers = shapes[[SHAPE["unsplit number"], *fitting_shapes("comma")]].sum() - tally.n_without(unit)
    return bool(n_numbers >= ENOUGH * _n_of_known(shapes))


def _without_looking(source: TableSource, name: str, kind: ColumnKind | None) -> Way | None:
    """Return the reading of a column that is no text, or is to be text; None where the cells decide."""
    if source.storage[name] == "category" or kind in ("category", "text"):
        return Way("text")
    return Way("typed") if source.storage[name] != "text" else None


class _Habits(NamedTuple):
    """How the person writes, as all columns of the file tell."""

    separator: str
    has_commas: bool
    """Whether a column has decimal commas."""
    order: Reading | None
    """What comes first in dates, where that can be told."""


class _Decision:
    """How to read one column of text."""

    def __init__(self, name: str, evidence: Evidence, wanted: Wanted, habits: _Habits) -> None:
        self._name, self._wanted, self._habits = name, wanted, habits
        self._shapes, self._tally = evidence
        self._n_known = _n_of_known(self._shapes)

    def way(self) -> Way:
        """Return the way that suits most cells, or the kind that is wanted."""
        kind, shapes = self._wanted.kind, self._shapes
        if kind == "number":
            return self._wanted_number()
        if kind is not None:
            order = self._order or "month first"
            return Way({"boolean": "boolean", "date": order, "category": "text"}.get(kind, "text"))
        number = self._number()
        if self._n_known == 0:
            return number
        if shapes[SHAPE["boolean"]] == self._n_known + shapes[SHAPE["infinite"]] + shapes[SHAPE["dash"]]:
            return Way("boolean")
        if shapes[SHAPE["unsplit number"]] > 0 and number.reading == "comma":
            return number  # so that the cells are told apart
        if self._are_numbers(number):
            return number
        return self._date() or self._cycle() or Way("text")

    def _wanted_number(self) -> Way:
        if self._wanted.unit in CYCLES:
            return Way(self._wanted.unit)  # type: ignore[arg-type]
        number = self._number()
        if self._n("time", "long time") > self._n_numbers(number):
            return Way("duration")
        return number

    def _number(self) -> Way:
        reading = _number_reading(self._shapes, self._habits.separator, self._habits.has_commas)
        unit = self._wanted.unit
        if unit is None or unit in DATES:
            unit = self._tally.unit(int(self._shapes[NUMBER_SHAPES].sum()))
        if is_money(unit) or self._tally.n_accounting:  # money, which nobody counts in thousandths
            if self._n("point or thousands") and not self._n("point", "grouped", "comma or thousands"):
                reading = "comma"
            elif self._n("comma or thousands") and not self._n("comma", "point or thousands"):
                reading = "grouped"
        return Way(reading, unit)

    def _n_numbers(self, way: Way) -> int:
        return int(self._shapes[fitting_shapes(way.reading)].sum()) - self._tally.n_without(way.unit)

    def _are_numbers(self, way: Way) -> bool:
        n_numbers = self._n_numbers(way)
        are_many = self._tally.numbers is None
        if self._tally.n_bounds > MOST_BOUNDS * n_numbers and not are_many:
            return False
        return self._are_enough(n_numbers, are_many=are_many or self._tally.n_dressed > 0)

    def _are_enough(self, n_fitting: int, *, are_many: bool = True) -> bool:
        """Return whether the cells that do not fit may count as missing."""
        if n_fitting >= ENOUGH * self._n_known:
            return True
        words = self._tally.words
        if not are_many or words is None or sum(words.values()) < self._n_known - n_fitting:
            return False
        return any(n_fitting >= share * self._n_known and len(words) <= most for share, most in WITH_FEW_WORDS)

    def _date(self) -> Way | None:
        n_dates = self._n(*DATE_SHAPES)
        if not self._are_enough(n_dates):
            return None
        order = self._order
        if order is None and self._n("day/month or month/day"):
            return None
        return Way(order or "month first")

    @property
    def _order(self) -> Reading | None:
        if self._wanted.unit in DATES:
            return self._wanted.unit
        return _likely_order([self._shapes]) or self._habits.order

    def _cycle(self) -> Way | None:
        """Return the reading of times of day, weekdays, months, and of times that last."""
        n_times, n_long = self._n("time"), self._n("long time")
        if n_times + n_long:
            in_units = [count for unit, count in (self._tally.units or {}).items() if unit_of(unit).dimension == "time"]
            if self._are_enough(n_times + n_long + sum(in_units)):
                return Way("duration" if n_long or in_units or LASTS.fullmatch(self._name) else "time")
        for shape in ("weekday", "month"):
            if self._n(shape) >= ENOUGH * self._n_known:
                return Way(shape)
        return None

    def _n(self, *shapes: str) -> int:
        return int(self._shapes[[SHAPE[shape] for shape in shapes]].sum())


def _n_of_known(shapes: Shapes) -> int:
    """Return the number of cells that are not missing, if the column holds numbers."""
    return int(shapes.sum() - shapes[SHAPE["infinite"]] - shapes[SHAPE["dash"]])


def is_ambiguous_date(shapes: Shapes) -> bool:
    """Return whether all cells are dates, and nobody can tell day and month of some."""
    if not shapes[SHAPE["day/month or month/day"]] or _likely_order([shapes]):
        return False
    return int(shapes[[SHAPE[shape] for shape in DATE_SHAPES]].sum()) >= ENOUGH * _n_of_known(shapes)


def _likely_order(all_shapes: list[Shapes]) -> Reading | None:
    """Return what comes first where day and month could be either, by the cells that tell; those with points begin with the day."""
    by_day, by_month, with_points = (
        sum(int(one[SHAPE[shape]]) for one in all_shapes) for shape in ("day/month", "month/day", "day.month.year")
    )
    if by_day or by_month:
        return "day first" if by_day >= by_month else "month first"
    return "day first" if with_points else None


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


def kind_of(reading: Reading, storage: str) -> ColumnKind:
    """Return the kind of a column with this reading."""
    if reading in NUMBERS or reading in CYCLES or reading == "duration":
        return "number"
    if reading in DATES:
        return "date"
    if reading == "typed":
        return "number" if storage == "time" else storage  # type: ignore[return-value]
    return "boolean" if reading == "boolean" else "category"
