"""What all cells of a column look like, and the values they have in one way to read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from .._runtime.progress import Progress
from .._runtime.threads import map_in_order, n_workers
from ._arrays import mixed_bits, smallest_distinct
from ._frames import MOST_LEVELS, are_codes
from ._quantities import FEW_NUMBERS, MOST_WORDS, NO_TALLY, Tally, count_words
from ._readings import (
    NUMBER_SHAPES,
    SHAPE,
    SHAPES,
    Cells,
    Looks,
    Way,
    as_floats,
    cells_of_each,
    concatenated,
    fast_numbers,
    finite_or_nan,
    looks_of,
    plain,
    plain_sizes,
    read_cells,
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


@dataclass(frozen=True)
class Findings:
    """About a column of some rows, read in one way."""

    n_rows: int
    n_missing: int
    """Empty cells and the like, before what cannot be read."""
    shapes: Shapes
    odd: str | None
    """The first cell that cannot be read in this way."""
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
    tally: Tally = NO_TALLY
    """What is written around numbers, and which cells are none."""

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
            self.tally + other.tally,
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


def profile(source: TableSource, ways_of: dict[str, Way], progress: Progress | None = None) -> dict[str, Findings]:
    """Go over all rows once. The source keeps the values of the columns that are no text."""
    names = list(ways_of)
    ways = [ways_of[name] for name in names]
    total: list[Findings] = []

    def summarize(part: SourcePart) -> list[Profiled]:
        return _profiled(part.cells.columns, ways)

    def values_of_parts() -> Iterator[dict[str, Array]]:
        for found in map_in_order(summarize, source.parts(names), n_threads=n_workers()):
            new = [one.findings for one in found]
            total[:] = [one + other for one, other in zip(total, new, strict=True)] if total else new
            if progress and new:
                progress.advance(new[0].n_rows)
            yield {name: one.values for name, one in zip(names, found, strict=True) if one.values is not None}

    source.keep_values(names, values_of_parts())
    return dict(zip(names, total, strict=True)) if total else {}


class Evidence(NamedTuple):
    """What the reading of a column follows from."""

    shapes: Shapes
    tally: Tally


def first_evidence(source: TableSource, names: Sequence[str]) -> dict[str, Evidence]:
    """Return what the first cells of columns of text look like, for a guess at what is to come."""
    part = next(source.parts(names), None) if names else None
    if part is None:
        return {}
    n_rows = min(max(FIRST_CELLS // len(names), FIRST_ROWS[0]), FIRST_ROWS[1])
    cells = cells_of_each([column.slice(0, n_rows) for column in part.cells.columns])
    looks = _looks_of_each(cells)
    return {name: _first_guess(one, look) for name, one, look in zip(names, cells, looks, strict=True)}


def _first_guess(cells: Cells, looks: Looks) -> Evidence:
    are_plain = not len(looks.places) and bool(np.isin(looks.shapes, NUMBER_SHAPES).all())
    return Evidence(_count(cells, looks.shapes), NO_TALLY if are_plain else _tally(cells, looks))


def _profiled(columns: Sequence[Any], ways: Sequence[Way]) -> list[Profiled]:
    """Look through columns of some rows, each read in its way."""
    found = [_of_easy_column(column, way) for column, way in zip(columns, ways, strict=True)]
    hard = [place for place, one in enumerate(found) if one is None]
    cells = cells_of_each([plain(columns[place]) for place in hard]) if hard else []
    for place, one, looks in zip(hard, cells, _looks_of_each(cells), strict=True):
        found[place] = _of_cells(one, looks, ways[place])
    return [one for one in found if one is not None]


def _of_easy_column(column: Any, way: Way) -> Profiled | None:
    """Look through values of a known type, and text that holds numbers with points only; return None for other text."""
    if way.reading == "typed":
        values = typed_values(column)
        return Profiled(_of_values(values, _no_shapes(), len(column), int(np.isnan(values).sum())), None)
    numbers = fast_numbers(plain(column)) if way.is_plain else None
    if numbers is None:
        return None
    values, shapes = as_floats(numbers), _no_shapes()
    shapes[SHAPE["unsplit number"]] = np.isfinite(values).sum()
    shapes[SHAPE["infinite"]] = len(column) - numbers.null_count - shapes[SHAPE["unsplit number"]]
    found = _of_values(values, shapes, len(column), numbers.null_count)
    return Profiled(replace(found, tally=_tally_of_plain(found)), finite_or_nan(values))


def _tally_of_plain(found: Findings) -> Tally:
    """Return the tally of numbers that have nothing around them."""
    few = frozenset(found.sketch.tolist()) if len(found.sketch) <= FEW_NUMBERS else None
    return Tally({}, {}, few, largest_plain=max(-found.minimum, found.maximum, 0.0))


def _tally(cells: Cells, looks: Looks) -> Tally:
    """Return what is written around the numbers of cells, and the cells that are none."""
    counts, texts = cells.counts, np.flatnonzero(looks.shapes == SHAPE["text"])
    texts = texts[counts[texts] > 0]
    words = None if len(texts) > MOST_WORDS else count_words((cells.distinct[int(place)].as_py(), int(counts[place])) for place in texts)
    here, dressed = counts[looks.places], looks.dressed
    units = count_words((unit, count) for unit, count in zip(dressed.units.tolist(), here.tolist(), strict=True) if count)
    is_plain = np.isin(looks.shapes, NUMBER_SHAPES) & (counts > 0)
    is_plain[looks.places] = False
    sizes = plain_sizes(cells.distinct.take(pa.array(np.flatnonzero(is_plain)))) + 0.0
    numbers = smallest_distinct(_hashes(sizes), FEW_NUMBERS + 1)
    return Tally(
        units,
        words,
        frozenset(numbers.tolist()) if len(numbers) <= FEW_NUMBERS else None,
        n_dressed=int(here.sum()),
        n_bounds=int(here[dressed.bounds].sum()),
        n_rough=int(here[dressed.rough].sum()),
        n_spelled=int(here[dressed.spelled].sum()),
        n_accounting=int(here[dressed.accounting].sum()),
        largest_plain=float(np.abs(sizes).max(initial=0.0)),
    )


def _of_cells(cells: Cells, looks: Looks, way: Way) -> Profiled:
    counts = cells.counts
    present = counts > 0
    n_rows, n_missing, n_of_shapes = len(cells.places), int((cells.places < 0).sum()), _count(cells, looks.shapes)
    tally = _tally(cells, looks)
    if way.reading != "text":
        values = read_cells(cells.distinct, way, looks)
        unread = np.isnan(values) & present & ~np.isin(looks.shapes, _GAPS)
        found = _of_values(values, n_of_shapes, n_rows, n_missing, _first(cells, unread), counts)
        return Profiled(replace(found, tally=tally), spread_values(values, cells))
    known = cells.distinct.to_numpy(zero_copy_only=False)[present]
    levels = frozenset(known.tolist())
    sketch = smallest_distinct(pd.util.hash_array(known, categorize=False), SKETCH_SIZE)
    few = levels if len(levels) <= MOST_LEVELS else None
    odd = _first(cells, (looks.shapes == SHAPE["text"]) & present)
    return Profiled(Findings(n_rows, n_missing, n_of_shapes, odd, int(counts[present].sum()), sketch, few, tally=tally), None)


_GAPS = [SHAPE["infinite"], SHAPE["dash"]]


def _first(cells: Cells, which: NDArray[np.bool_]) -> str | None:
    return str(cells.distinct[int(which.argmax())].as_py()) if which.any() else None


def _looks_of_each(cells: Sequence[Cells]) -> list[Looks]:
    if not cells:
        return []
    looks = looks_of(concatenated([one.distinct for one in cells]))
    ends = np.cumsum([len(one.distinct) for one in cells]).tolist()
    return [looks.part(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


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
