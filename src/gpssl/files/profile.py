"""What a pass over a file finds out about each column. Findings of parts add up to those of the file, however it is cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..progress import Progress
from ..rows import mixed_bits
from ..tables import are_codes
from ..threads import map_in_order, n_blas_threads
from .delimited import TableSource
from .readings import SHAPE, SHAPES, Cells, Reading, cells_of_each, concatenated, fast_numbers, read_cells, shapes_of, typed_values

Array = NDArray[np.float64]
Hashes = NDArray[np.uint64]

SKETCH_SIZE = 1024
"""Different values that are counted exactly; beyond, their number is estimated, to about 3 %."""
MAX_LEVELS = 1000
FIRST_CELLS = 200_000
FIRST_ROWS = (20, 1000)
"""Fewest and most, of which a first guess is made."""


@dataclass(frozen=True)
class Findings:
    """About a column of some rows, read in one way."""

    n_rows: int
    n_missing: int
    """Empty cells and the like, before what cannot be read."""
    shapes: NDArray[np.int64]
    """How many cells have each shape."""
    n_values: int
    minimum: float
    maximum: float
    is_whole: bool
    sum_of_hashes: int
    """Of all values: tells a permutation of other numbers."""
    n_infinite: int
    n_like_codes: int
    """Numbers that cannot be told from codes of categories."""
    sketch: Hashes
    """The smallest hashes of different values, in rising order."""
    levels: frozenset[str] | None
    """Of text, while there are few."""
    odd: str | None
    """The first cell of the shape text."""

    def __add__(self, other: Findings) -> Findings:
        """Those of both sets of rows together."""
        levels = None if self.levels is None or other.levels is None else self.levels | other.levels
        return Findings(
            self.n_rows + other.n_rows,
            self.n_missing + other.n_missing,
            self.shapes + other.shapes,
            self.n_values + other.n_values,
            min(self.minimum, other.minimum),
            max(self.maximum, other.maximum),
            self.is_whole and other.is_whole,
            (self.sum_of_hashes + other.sum_of_hashes) % 2**64,
            self.n_infinite + other.n_infinite,
            self.n_like_codes + other.n_like_codes,
            _smallest(np.concatenate([self.sketch, other.sketch])),
            None if levels is not None and len(levels) > MAX_LEVELS else levels,
            self.odd if self.odd is not None else other.odd,
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


def profile(source: TableSource, readings: dict[str, Reading], progress: Progress | None = None) -> dict[str, Findings]:
    """One pass over the file."""
    names = list(readings)
    ways = [readings[name] for name in names]
    total: list[Findings] | None = None

    def summarize(batch: Any) -> list[Findings]:
        return _findings(batch.columns, ways)

    for found in map_in_order(summarize, source.batches(names), n_threads=n_blas_threads()):
        total = found if total is None else [one + other for one, other in zip(total, found, strict=True)]
        if progress and found:
            progress.advance(found[0].n_rows)
    return {} if total is None else dict(zip(names, total, strict=True))


def first_shapes(source: TableSource, names: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """The shapes of the first cells of columns of text, for a guess at what is to come."""
    first = next(source.batches(names), None) if names else None
    if first is None:
        return {}
    n_rows = min(max(FIRST_CELLS // len(names), FIRST_ROWS[0]), FIRST_ROWS[1])
    cells = cells_of_each([column.slice(0, n_rows) for column in first.columns])
    return {name: _count(one, shapes) for name, one, shapes in zip(names, cells, _shapes_of_each(cells), strict=True)}


def _findings(columns: Sequence[Any], ways: Sequence[Reading]) -> list[Findings]:
    """Of columns of some rows, each read in its way."""
    found = [_of_easy_column(column, way) for column, way in zip(columns, ways, strict=True)]
    hard = [place for place, one in enumerate(found) if one is None]
    cells = cells_of_each([columns[place] for place in hard]) if hard else []
    for place, one, shapes in zip(hard, cells, _shapes_of_each(cells), strict=True):
        found[place] = _of_cells(one, shapes, ways[place])
    return [one for one in found if one is not None]


def _of_easy_column(column: Any, reading: Reading) -> Findings | None:
    """Of values of a known type, and of text that holds numbers with points only; None for other text."""
    if reading == "typed":
        values = typed_values(column)
        return _of_values(values, None, _no_shapes(), len(column), int(np.isnan(values).sum()))
    numbers = fast_numbers(column) if reading == "point" else None
    if numbers is None:
        return None
    shapes = _no_shapes()
    shapes[SHAPE["unsplit number"]] = np.isfinite(numbers).sum()
    shapes[SHAPE["infinite"]] = len(column) - column.null_count - shapes[SHAPE["unsplit number"]]
    return _of_values(numbers, None, shapes, len(column), column.null_count)


def _of_cells(cells: Cells, shapes: NDArray[np.int8], reading: Reading) -> Findings:
    counts = cells.counts
    present = counts > 0
    is_text = (shapes == SHAPE["text"]) & present
    odd = cells.distinct[int(is_text.argmax())].as_py() if is_text.any() else None
    n_rows, n_missing = len(cells.places), int((cells.places < 0).sum())
    if reading == "text":
        known = cells.distinct.to_numpy(zero_copy_only=False)[present]
        return _of_text(known, counts[present], _count(cells, shapes), n_rows, n_missing, odd)
    return _of_values(read_cells(cells.distinct, reading), counts, _count(cells, shapes), n_rows, n_missing, odd)


def _shapes_of_each(cells: Sequence[Cells]) -> list[NDArray[np.int8]]:
    if not cells:
        return []
    shapes = shapes_of(concatenated([one.distinct for one in cells]))
    return np.split(shapes, np.cumsum([len(one.distinct) for one in cells])[:-1])


def _count(cells: Cells, shapes: NDArray[np.int8]) -> NDArray[np.int64]:
    """How many rows have cells of each shape."""
    return np.bincount(shapes, weights=cells.counts, minlength=len(SHAPES)).astype(np.int64)


def _of_values(
    values: Array, counts: NDArray[np.int64] | None, shapes: NDArray[np.int64], n_rows: int, n_missing: int, odd: str | None = None
) -> Findings:
    finite = np.isfinite(values)
    infinite = np.isinf(values)
    if counts is not None:
        finite &= counts > 0
    known = values[finite] + 0.0  # −0.0 and 0.0 are the same number
    hashes = _hashes(known)
    weighted = hashes if counts is None else hashes * counts[finite].astype(np.uint64)
    n_infinite = int(infinite.sum()) if counts is None else int(shapes[SHAPE["infinite"]])
    return Findings(
        n_rows=n_rows,
        n_missing=n_missing,
        shapes=shapes,
        n_values=len(known) if counts is None else int(counts[finite].sum()),
        minimum=float(known.min(initial=np.inf)),
        maximum=float(known.max(initial=-np.inf)),
        is_whole=bool((known == np.floor(known)).all()),
        sum_of_hashes=int(weighted.sum(dtype=np.uint64)),
        n_infinite=n_infinite,
        n_like_codes=int(are_codes(known).sum()),
        sketch=_smallest(hashes),
        levels=frozenset(),
        odd=odd,
    )


def _of_text(
    cells: NDArray[Any], counts: NDArray[np.int64], shapes: NDArray[np.int64], n_rows: int, n_missing: int, odd: str | None
) -> Findings:
    levels = frozenset(cells.tolist())
    return Findings(
        n_rows=n_rows,
        n_missing=n_missing,
        shapes=shapes,
        n_values=int(counts.sum()),
        minimum=np.inf,
        maximum=-np.inf,
        is_whole=False,
        sum_of_hashes=0,
        n_infinite=0,
        n_like_codes=0,
        sketch=_smallest(pd.util.hash_array(cells, categorize=False)),
        levels=levels if len(levels) <= MAX_LEVELS else None,
        odd=odd,
    )


def _no_shapes() -> NDArray[np.int64]:
    return np.zeros(len(SHAPES), dtype=np.int64)


def _hashes(values: Array) -> Hashes:
    return mixed_bits(np.ascontiguousarray(values).view(np.uint64))


def _smallest(hashes: Hashes) -> Hashes:
    """The smallest different ones, at most as many as a sketch holds."""
    if len(hashes) > 8 * SKETCH_SIZE:
        few = np.unique(np.partition(hashes, 4 * SKETCH_SIZE)[: 4 * SKETCH_SIZE])
        if len(few) >= SKETCH_SIZE:
            return few[:SKETCH_SIZE]
    return np.unique(hashes)[:SKETCH_SIZE]
