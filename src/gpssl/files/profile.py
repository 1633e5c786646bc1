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
from .readings import SHAPE, SHAPES, Reading, cells_of, fast_numbers, read_cells, shapes_of, typed_values

Array = NDArray[np.float64]
Hashes = NDArray[np.uint64]

SKETCH_SIZE = 1024
"""Different values that are counted exactly; beyond, their number is estimated, to about 3 %."""
MAX_LEVELS = 1000
FIRST_ROWS = 200


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

    def summarise(batch: Any) -> list[Findings]:
        return [_findings(batch.column(place), way) for place, way in enumerate(ways)]

    for found in map_in_order(summarise, source.batches(names), n_threads=n_blas_threads()):
        total = found if total is None else [one + other for one, other in zip(total, found, strict=True)]
        if progress and found:
            progress.advance(found[0].n_rows)
    return {} if total is None else dict(zip(names, total, strict=True))


def first_findings(source: TableSource, names: Sequence[str], reading: Reading) -> dict[str, Findings]:
    """Those of the first rows, for a guess at what is to come."""
    first = next(source.batches(names), None)
    return {} if first is None else {name: _findings(first.column(name).slice(0, FIRST_ROWS), reading) for name in names}


def _findings(column: Any, reading: Reading) -> Findings:
    if reading == "typed":
        values = typed_values(column)
        return _of_values(values, None, _no_shapes(), len(column), int(np.isnan(values).sum()))
    fast = fast_numbers(column) if reading == "point" else None
    if fast is not None:
        shapes = _no_shapes()
        shapes[SHAPE["unsplit number"]] = int(np.isfinite(fast).sum())
        shapes[SHAPE["infinite"]] = len(column) - column.null_count - shapes[SHAPE["unsplit number"]]
        return _of_values(fast, None, shapes, len(column), column.null_count)
    cells = cells_of(column)
    counts = cells.counts
    kinds = shapes_of(cells.distinct)
    shapes = np.bincount(kinds, weights=counts, minlength=len(SHAPES)).astype(np.int64)
    n_missing = int((cells.places < 0).sum())
    present = counts > 0
    is_text = (kinds == SHAPE["text"]) & present
    odd = cells.distinct[int(is_text.argmax())].as_py() if is_text.any() else None
    if reading == "text":
        return _of_text(cells.distinct.to_numpy(zero_copy_only=False)[present], counts[present], shapes, len(column), n_missing, odd)
    values = read_cells(cells.distinct, reading)
    return _of_values(values, counts, shapes, len(column), n_missing, odd)


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
