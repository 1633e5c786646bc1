"""Rows seen through a function: some of their columns, or their values on another scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from .._runtime.progress import Progress
from .._runtime.threads import map_in_order, n_blas_threads
from ._arrays import DistinctRows, distinct_rows, merge_distinct_rows

PART_BYTES = 16 * 2**20
PART_ROWS = (256, 65_536)
"""Fewest and most rows of a part."""


class Part(NamedTuple):
    """Consecutive rows, in memory."""

    rows: NDArray[Any]
    """Numbers [n, D], dense and checked; or objects [n]."""
    weight: NDArray[np.float64]


def rows_of_a_part(n_columns: int) -> int:
    """How many rows to hold in memory at a time."""
    fewest, most = PART_ROWS
    return min(max(PART_BYTES // (8 * max(1, n_columns)), fewest), most)


def check_part(rows: Any, place: str, first: int | None = None, names: Sequence[str] | None = None) -> NDArray[Any]:
    """The rows as finite numbers, or an error that says where they are not.

    `place` names the part ("partition 3"), `first` is the position of its first row and `names` are the columns', where they are known.
    """
    try:
        return check_array(rows, dtype=[np.float64, np.float32], ensure_min_samples=0, ensure_all_finite=True)
    except (ValueError, TypeError) as error:
        message = f"In {place}{_row_range(rows, first)}: {error}{_first_that_is_not_finite(rows, first, names)}"
        raise (TypeError if isinstance(error, TypeError) else ValueError)(message) from error


def _row_range(rows: Any, first: int | None) -> str:
    n_rows = len(rows)
    return f" ({n_rows:,} rows)" if first is None else f" (rows {first:,} to {first + n_rows - 1:,})"


def _first_that_is_not_finite(rows: Any, first: int | None, names: Sequence[str] | None) -> str:
    """Which row and which column, for a table in which they can be told."""
    try:
        values = np.asarray(rows, dtype=np.float64)
    except (ValueError, TypeError):
        return ""
    if values.ndim != 2 or np.isfinite(values).all():
        return ""
    bad_rows, bad_columns = np.nonzero(~np.isfinite(values))
    names = getattr(rows, "columns", names)
    column = bad_columns[0] if names is None else repr(names[bad_columns[0]])
    row = f"row {bad_rows[0]:,} of the part" if first is None else f"row {first + bad_rows[0]:,}"
    return f"\nThe first of {len(bad_rows):,} such values is in {row}, column {column}. Drop or impute these rows."


Array = NDArray[np.float64]
Summary = TypeVar("Summary")


SAMPLE_ROWS = 2048
"""Rows of a sample at least, so that one pass is enough for most that ask."""


class Keeper(Protocol):
    """Keeps what a pass has summed up so far, so that it can go on after an interruption."""

    def recall(self) -> tuple[Any, int]:
        """The summary kept, and of how many parts it is; None and 0 where there is none."""
        ...

    def keep(self, summary: Any, n_parts: int, *, finished: bool = False) -> None:
        """The summary of the first `n_parts` parts, which are all if the pass is finished."""
        ...


class Rows:
    """Rows of one table, in a fixed order, that need not fit in memory together.

    A source says how to read its parts; whatever is to be known about the rows is a summary of each part, and a way to combine two
    summaries. Every pass over the data is such a reduction: a sample, the rows farthest out, and the moments.
    """

    n_columns: int
    n_rows: int | None = None
    """None where only reading them tells."""
    names: list[str] | None = None
    """Of the columns, where they have names."""
    header: Any = None
    """The names and types of the columns, as a data frame without rows, where the rows are those of a data frame."""
    are_encoded: bool = False
    """Whether parts are tables of any kind as `gpssl.data` encodes them, with codes for categories and NaN for gaps."""
    come_at_once: bool = False
    """Whether `map` calls the function once, with all rows."""
    are_deferred: bool = False
    """Whether `map` returns before the function has been called, which may then happen in any order and in other processes."""

    def __init__(self, sample_weight: Array | None = None) -> None:
        self.sample_weight = sample_weight
        self._sample: tuple[int, str | None, int, DistinctRows] | None = None

    @property
    def identity(self) -> str | None:
        """Tells the rows in these files, as they are now, from others, for a pass that is resumed; None for rows that are not in files."""
        return None

    def count(self) -> int:
        """The number of rows, by reading them if need be."""
        return sum(len(part.rows) for part in self.parts()) if self.n_rows is None else self.n_rows

    def weighted(self, sample_weight: Array) -> Rows:
        """The same rows with these weights."""
        other = copy(self)
        other.sample_weight, other._sample = sample_weight, None
        return other

    def parts(self) -> Iterator[Part]:
        """All rows, in order, some at a time."""
        raise NotImplementedError

    def reduce(
        self,
        summarize: Callable[[Part], Summary],
        combine: Callable[[Summary, Summary], Summary],
        *,
        progress: Progress | None = None,
        max_threads: int | None = None,
        keeper: Keeper | None = None,
    ) -> Summary:
        """The summaries of all parts, combined in the order of the parts: the same bits for any number of threads."""
        total, n_parts = keeper.recall() if keeper else (None, 0)
        n_threads = min(n_blas_threads(), max_threads or n_blas_threads())

        def count_and_summarize(part: Part) -> tuple[int, Summary]:
            return len(part.rows), summarize(part)

        parts = self.parts()
        for part in islice(parts, n_parts):
            if progress:
                progress.skip(len(part.rows))
        for n_rows, summary in map_in_order(count_and_summarize, parts, n_threads=n_threads):
            total = summary if total is None else combine(total, summary)
            n_parts += 1
            if progress:
                progress.advance(n_rows)
            if keeper:
                keeper.keep(total, n_parts)
        if total is None:
            raise ValueError("Found 0 rows: there is nothing to learn from.")
        if keeper:
            keeper.keep(total, n_parts, finished=True)
        if progress:
            progress.finish()
        return total

    def map(self, function: Callable[[NDArray[Any]], NDArray[Any]], shape: tuple[int | None, ...]) -> Any:
        """`function` of the rows of each part, side by side. None in `shape` stands for the rows."""
        axis = shape.index(None)
        if self.n_rows is None:
            pieces = [function(part.rows) for part in self.parts()]
            self._check_number_of_rows(sum(piece.shape[axis] for piece in pieces))
            return np.concatenate(pieces, axis=axis)
        out: NDArray[Any] | None = None
        done = 0
        for part in self.parts():
            values = function(part.rows)
            if out is None:
                out = np.empty([self.n_rows if size is None else size for size in shape], dtype=values.dtype)
            out[(slice(None),) * axis + (slice(done, done + len(part.rows)),)] = values
            done += len(part.rows)
        self._check_number_of_rows(done)
        return out

    def _check_number_of_rows(self, n_rows: int) -> None:
        if n_rows == 0:
            raise ValueError("Found 0 rows; at least 1 is needed.")
        if self.n_rows not in (None, n_rows):
            raise ValueError(f"There are {n_rows:,} rows, but there were {self.n_rows:,} when they were opened: open them again.")

    def sample(self, limit: int, seed: int) -> DistinctRows:
        """At most `limit` distinct rows and their weights: the same ones for any order of the rows and any parts.

        A smaller sample is the beginning of a larger one, so one pass serves the kernel and the choice of inducing points.
        """
        identity = self.identity
        if self._sample is None or self._sample[:2] != (seed, identity) or self._sample[2] < limit:
            n_kept = max(limit, SAMPLE_ROWS)
            summarize = partial(_sample_of_part, limit=n_kept, seed=seed)
            self._sample = (seed, identity, n_kept, self.reduce(summarize, partial(merge_distinct_rows, limit=n_kept)))
        sample = self._sample[3]
        return DistinctRows(sample.rows[:limit], sample.weight[:limit], sample.hashes[:limit])

    def check_weights_are_as_many(self, n_rows: int) -> None:
        """For sources that learn only by reading how many rows they have."""
        if self.sample_weight is not None and len(self.sample_weight) != n_rows:
            raise ValueError(f"sample_weight has {len(self.sample_weight):,} entries, but there are {n_rows:,} rows.")

    def weight_of(self, first: int, n_rows: int) -> Array:
        """The weights of consecutive rows."""
        if self.sample_weight is None:
            return np.ones(n_rows)
        weight = self.sample_weight[first : first + n_rows]
        if len(weight) < n_rows:
            raise ValueError(f"sample_weight has {len(self.sample_weight):,} entries, fewer than there are rows.")
        return weight


def _sample_of_part(part: Part, *, limit: int, seed: int) -> DistinctRows:
    return distinct_rows(part.rows, part.weight, limit=limit, seed=seed)


class MappedRows(Rows):
    """Rows whose parts are those of another source, each mapped by a function that works row by row."""

    def __init__(self, rows: Rows, function: Callable[[NDArray[Any]], NDArray[Any]], n_columns: int, header: Any = None) -> None:
        super().__init__(rows.sample_weight)
        self.rows, self.function = rows, function
        self.n_columns, self.n_rows = n_columns, rows.n_rows
        self.header = header

    def parts(self) -> Iterator[Part]:
        """As many as the other source has."""
        for part in self.rows.parts():
            yield Part(self.function(part.rows), part.weight)
