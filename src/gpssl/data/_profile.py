"""Which reading suits a column: decided on the shapes of all its cells, never on the first rows alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._runtime.progress import Progress
from .._runtime.threads import map_in_order, n_blas_threads
from ._arrays import mixed_bits, smallest_distinct
from ._frames import MOST_LEVELS, ColumnKind, are_codes
from ._readings import (
    DATES,
    NUMBERS,
    SHAPE,
    SHAPES,
    Cells,
    Reading,
    as_floats,
    cells_of_each,
    concatenated,
    fast_numbers,
    finite_or_nan,
    fitting_shapes,
    plain,
    read_cells,
    shapes_of,
    spread_values,
    typed_values,
)
from ._source import SourcePart, TableSource

Array = NDArray[np.float64]
Hashes = NDArray[np.uint64]
Shapes = NDArray[np.int64]
"""How many cells have each of the `SHAPES`."""

SKETCH_SIZE = 1024
"""Different values that are counted exactly; beyond, their number is estimated, to about 3 %."""
FIRST_CELLS = 200_000
FIRST_ROWS = (20, 1000)
"""Fewest and most, of which a first guess is made."""
ENOUGH = 0.99
"""The share of the known cells that must be numbers or dates to read a column so; the other cells then count as missing."""
MAX_PASSES = 6


@dataclass(frozen=True)
class Findings:
    """About a column of some rows, read in one way."""

    n_rows: int
    n_missing: int
    """Empty cells and the like, before what cannot be read."""
    shapes: Shapes
    odd: str | None
    """The first cell of the shape text."""
    n_values: int
    sketch: Hashes
    """The smallest hashes of different values, in rising order."""
    levels: frozenset[str] | None = frozenset()
    """The different texts, while there are few; None otherwise."""
    minimum: float = np.inf
    maximum: float = -np.inf
    is_whole: bool = False
    sum_of_hashes: int = 0
    """The sum of the hashes of all values, which tells whether two columns hold the same numbers in another order."""
    n_infinite: int = 0
    n_like_codes: int = 0
    """Numbers that cannot be told from codes of categories."""

    def __add__(self, other: Findings) -> Findings:
        """Return the findings about both sets of rows together."""
        levels = None if self.levels is None or other.levels is None else self.levels | other.levels
        return Findings(
            self.n_rows + other.n_rows,
            self.n_missing + other.n_missing,
            self.shapes + other.shapes,
            self.odd if self.odd is not None else other.odd,
            self.n_values + other.n_values,
            smallest_distinct(np.concatenate([self.sketch, other.sketch]), SKETCH_SIZE),
            None if levels is not None and len(levels) > MOST_LEVELS else levels,
            min(self.minimum, other.minimum),
            max(self.maximum, other.maximum),
            self.is_whole and other.is_whole,
            (self.sum_of_hashes + other.sum_of_hashes) % 2**64,
            self.n_infinite + other.n_infinite,
            self.n_like_codes + other.n_like_codes,
        )

    @property
    def n_distinct(self) -> float:
        """Different values: their number while they are few, else an estimate from the density of their hashes."""
        if len(self.sketch) < SKETCH_SIZE:
            return len(self.sketch)
        return min((SKETCH_SIZE - 1) * 2.0**64 / float(self.sketch[-1]), float(self.n_values))

    @property
    def are_consecutive(self) -> bool:
        """Whether the values are whole numbers without a gap between them, each once, in any order."""
        if not self.is_whole or self.n_values < 2 or self.maximum - self.minimum + 1 != self.n_values:
            return False
        total = 0
        for start in range(0, self.n_values, 2**20):
            values = self.minimum + np.arange(start, min(start + 2**20, self.n_values), dtype=np.float64)
            total += int(_hashes(values).sum(dtype=np.uint64))
        return total % 2**64 == self.sum_of_hashes


class Profiled(NamedTuple):
    """What was found in a column of some rows, and the values of its cells; None for text. [n]"""

    findings: Findings
    values: Array | None


def profile(source: TableSource, readings: dict[str, Reading], progress: Progress | None = None) -> dict[str, Findings]:
    """Go over all rows once. The source keeps the values of the columns that are no text."""
    names = list(readings)
    ways = [readings[name] for name in names]
    total: list[Findings] = []

    def summarize(part: SourcePart) -> list[Profiled]:
        return _profiled(part.cells.columns, ways)

    def values_of_parts() -> Iterator[dict[str, Array]]:
        for found in map_in_order(summarize, source.parts(names), n_threads=n_blas_threads()):
            new = [one.findings for one in found]
            total[:] = [one + other for one, other in zip(total, new, strict=True)] if total else new
            if progress and new:
                progress.advance(new[0].n_rows)
            yield {name: one.values for name, one in zip(names, found, strict=True) if one.values is not None}

    source.keep_values(names, values_of_parts())
    return dict(zip(names, total, strict=True)) if total else {}


def _first_shapes(source: TableSource, names: Sequence[str]) -> dict[str, Shapes]:
    """Return the shapes of the first cells of columns of text, for a guess at what is to come."""
    part = next(source.parts(names), None) if names else None
    if part is None:
        return {}
    n_rows = min(max(FIRST_CELLS // len(names), FIRST_ROWS[0]), FIRST_ROWS[1])
    cells = cells_of_each([column.slice(0, n_rows) for column in part.cells.columns])
    return {name: _count(one, shapes) for name, one, shapes in zip(names, cells, _shapes_of_each(cells), strict=True)}


def _profiled(columns: Sequence[Any], ways: Sequence[Reading]) -> list[Profiled]:
    """Look through columns of some rows, each read in its way."""
    found = [_of_easy_column(column, way) for column, way in zip(columns, ways, strict=True)]
    hard = [place for place, one in enumerate(found) if one is None]
    cells = cells_of_each([plain(columns[place]) for place in hard]) if hard else []
    for place, one, shapes in zip(hard, cells, _shapes_of_each(cells), strict=True):
        found[place] = _of_cells(one, shapes, ways[place])
    return [one for one in found if one is not None]


def _of_easy_column(column: Any, reading: Reading) -> Profiled | None:
    """Look through values of a known type, and text that holds numbers with points only; return None for other text."""
    if reading == "typed":
        values = typed_values(column)
        return Profiled(_of_values(values, _no_shapes(), len(column), int(np.isnan(values).sum())), None)
    numbers = fast_numbers(plain(column)) if reading == "point" else None
    if numbers is None:
        return None
    values, shapes = as_floats(numbers), _no_shapes()
    shapes[SHAPE["unsplit number"]] = np.isfinite(values).sum()
    shapes[SHAPE["infinite"]] = len(column) - numbers.null_count - shapes[SHAPE["unsplit number"]]
    return Profiled(_of_values(values, shapes, len(column), numbers.null_count), finite_or_nan(values))


def _of_cells(cells: Cells, shapes: NDArray[np.int8], reading: Reading) -> Profiled:
    counts = cells.counts
    present = counts > 0
    is_text = (shapes == SHAPE["text"]) & present
    odd = cells.distinct[int(is_text.argmax())].as_py() if is_text.any() else None
    n_rows, n_missing, n_of_shapes = len(cells.places), int((cells.places < 0).sum()), _count(cells, shapes)
    if reading != "text":
        values = read_cells(cells.distinct, reading)
        return Profiled(_of_values(values, n_of_shapes, n_rows, n_missing, odd, counts), spread_values(values, cells))
    known = cells.distinct.to_numpy(zero_copy_only=False)[present]
    levels = frozenset(known.tolist())
    sketch = smallest_distinct(pd.util.hash_array(known, categorize=False), SKETCH_SIZE)
    few = levels if len(levels) <= MOST_LEVELS else None
    return Profiled(Findings(n_rows, n_missing, n_of_shapes, odd, int(counts[present].sum()), sketch, few), None)


def _shapes_of_each(cells: Sequence[Cells]) -> list[NDArray[np.int8]]:
    if not cells:
        return []
    shapes = shapes_of(concatenated([one.distinct for one in cells]))
    return np.split(shapes, np.cumsum([len(one.distinct) for one in cells])[:-1])


def _count(cells: Cells, shapes: NDArray[np.int8]) -> Shapes:
    """Return how many rows have cells of each shape."""
    return np.bincount(shapes, weights=cells.counts, minlength=len(SHAPES)).astype(np.int64)


def _of_values(
    values: Array, shapes: Shapes, n_rows: int, n_missing: int, odd: str | None = None, counts: NDArray[np.int64] | None = None
) -> Findings:
    """Return the findings about values, each of which occurs once, or as often as `counts` says."""
    finite = np.isfinite(values)
    if counts is not None:
        finite &= counts > 0
    known = values[finite] + 0.0  # −0.0 and 0.0 are the same number
    hashes = _hashes(known)
    weighted = hashes if counts is None else hashes * counts[finite].astype(np.uint64)
    return Findings(
        n_rows,
        n_missing,
        shapes,
        odd,
        n_values=len(known) if counts is None else int(counts[finite].sum()),
        sketch=smallest_distinct(hashes, SKETCH_SIZE),
        minimum=float(known.min(initial=np.inf)),
        maximum=float(known.max(initial=-np.inf)),
        is_whole=bool((known == np.floor(known)).all()),
        sum_of_hashes=int(weighted.sum(dtype=np.uint64)),
        n_infinite=int(np.isinf(values).sum()) if counts is None else int(shapes[SHAPE["infinite"]]),
        n_like_codes=int(are_codes(known).sum()),
    )


def _no_shapes() -> Shapes:
    return np.zeros(len(SHAPES), dtype=np.int64)


def _hashes(values: Array) -> Hashes:
    return mixed_bits(np.ascontiguousarray(values).view(np.uint64))


NO_FINDINGS = _of_values(np.empty(0), _no_shapes(), 0, 0)
"""About a column without rows, or one that nobody has looked at."""


def settle_readings(
    source: TableSource, kinds: Mapping[str, ColumnKind | None], progress: Progress | None = None
) -> tuple[dict[str, Reading], dict[str, Findings]]:
    """Return the reading of each column and what was found with it. `kinds` names the columns, with the kind that is wanted, or None.

    A pass has to assume a reading for each column to find its smallest value and the like. The first rows tell which one, nearly always
    rightly; where the whole file tells another, these columns are read again.
    """
    text = [name for name in kinds if source.storage[name] == "text"]
    guess = _decide_all(source, _first_shapes(source, text), kinds)
    readings = {name: guess.get(name, _without_looking(source, name, kinds[name]) or "point") for name in kinds}
    findings: dict[str, Findings] = {}
    shapes: dict[str, Shapes] = {}
    todo = readings
    for _ in range(MAX_PASSES):
        if not todo:
            break
        found = profile(source, todo, progress)
        findings.update(found)
        for name, one in found.items():
            if name not in shapes or shapes[name][SHAPE["unsplit number"]] > 0:
                shapes[name] = one.shapes
        decided = _decide_all(source, shapes, kinds)
        todo = {name: decided[name] for name in shapes if decided[name] != readings[name]}
        readings = {**readings, **todo}
    return readings, findings


def _decide_all(source: TableSource, shapes: Mapping[str, Shapes], kinds: Mapping[str, ColumnKind | None]) -> dict[str, Reading]:
    separator = source.separator
    with_commas = [one for one in shapes.values() if one[SHAPE["comma"]] > 0 and _number_reading(one, separator, False) == "comma"]
    readable = [SHAPE["unsplit number"], *fitting_shapes("comma")]
    has_commas = any(one[readable].sum() >= ENOUGH * _n_of_known(one) for one in with_commas)
    return {
        name: _without_looking(source, name, kinds[name]) or _decide(one, kinds[name], separator, has_commas)
        for name, one in shapes.items()
    }


def _without_looking(source: TableSource, name: str, kind: ColumnKind | None) -> Reading | None:
    """Return the reading of a column that is no text, or is to be text; None where the cells decide."""
    if source.storage[name] == "category" or kind in ("category", "text"):
        return "text"
    return "typed" if source.storage[name] != "text" else None


def _decide(shapes: Shapes, kind: ColumnKind | None, separator: str, has_commas: bool) -> Reading:
    """Return the reading of a column of text with cells of such shapes, in a file that has decimal commas elsewhere, or not."""
    number = _number_reading(shapes, separator, has_commas)
    n_dates = {reading: _n_dates(shapes, reading) for reading in DATES}
    date = max(DATES, key=lambda reading: n_dates[reading])
    if kind is not None:
        dates: Reading = date if n_dates[date] else "month/day/year"
        return {"number": number, "boolean": "boolean", "date": dates, "category": "text", "text": "text"}[kind]
    n_known = _n_of_known(shapes)
    if n_known == 0:
        return number
    if shapes[SHAPE["boolean"]] == n_known + shapes[SHAPE["infinite"]] + shapes[SHAPE["dash"]]:
        return "boolean"
    if shapes[SHAPE["unsplit number"]] > 0 and number == "comma":
        return "comma"  # so that the cells are told apart
    if shapes[fitting_shapes(number)].sum() >= ENOUGH * n_known:
        return number
    return date if not _is_ambiguous(shapes) and n_dates[date] >= ENOUGH * n_known else "text"


def _n_of_known(shapes: Shapes) -> int:
    """Return the number of cells that are not missing, if the column holds numbers."""
    return int(shapes.sum() - shapes[SHAPE["infinite"]] - shapes[SHAPE["dash"]])


def is_ambiguous_date(shapes: Shapes) -> bool:
    """Return whether all cells are dates of which nobody can tell day and month."""
    return _is_ambiguous(shapes) and _n_dates(shapes, "month/day/year") >= ENOUGH * _n_of_known(shapes) > 0


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


def _n_dates(shapes: Shapes, reading: Reading) -> int:
    if reading in DATES[:2]:
        return int(shapes[SHAPE[reading]])
    return int(shapes[SHAPE["day/month" if reading == "day/month/year" else "month/day"]] + shapes[SHAPE["day/month or month/day"]])


def _is_ambiguous(shapes: Shapes) -> bool:
    return shapes[SHAPE["day/month or month/day"]] > 0 and shapes[SHAPE["day/month"]] == shapes[SHAPE["month/day"]] == 0


def kind_of(reading: Reading, storage: str) -> ColumnKind:
    """Return the kind of a column with this reading."""
    if reading in NUMBERS:
        return "number"
    if reading in DATES:
        return "date"
    if reading == "typed":
        return storage  # type: ignore[return-value]
    return "boolean" if reading == "boolean" else "category"
