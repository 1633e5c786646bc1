"""Rows that need not fit in memory: what all sources of rows share, rows of arrays, which can be sliced, and `open_rows`."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from copy import copy
from functools import partial
from itertools import islice
from operator import itemgetter
from os import PathLike
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import check_array

from .._runtime.progress import Progress
from .._runtime.threads import map_in_order, n_workers
from ._arrays import DistinctRows, distinct_rows, merge_distinct_rows, row_blocks

PART_BYTES = 16 * 2**20
PART_ROWS = (256, 65_536)
"""Fewest and most rows of a part."""
MIN_PARTS = 16
"""Fewest parts of an array, so that some thousands of rows keep all threads busy to the end."""
MIN_ROWS = 1024
"""Fewest rows of a part of an array."""
SAMPLE_ROWS = 2048
"""Fewest rows of a sample, so that one pass is enough for most that ask."""
STORED = ("h5py", "zarr", "anndata")
"""Libraries whose arrays are read from files by slicing them."""
COMPRESSED = (".gz", ".bz2", ".zst", ".zstd")
TYPED_FILES, TEXT_FILES = (".parquet", ".pq", ".arrow", ".feather", ".ipc"), (".csv", ".tsv", ".jsonl", ".ndjson")
OTHER_FILES = (".xlsx", ".xlsm", ".sqlite", ".sqlite3", ".duckdb")
FILE_ENDINGS = (*TYPED_FILES, *OTHER_FILES, *(f"{ending}{packed}" for ending in TEXT_FILES for packed in ("", *COMPRESSED)))
"""Endings of names that make a list of texts a list of files, and a file in a folder one of the table; .txt may be a note."""

Array = NDArray[np.float64]
Summary = TypeVar("Summary")


class Part(NamedTuple):
    """Consecutive rows that are read together."""

    rows: NDArray[Any]
    """Numbers [n, D], dense and checked; or objects [n]."""
    weight: NDArray[np.float64]


def rows_of_a_part(n_columns: int) -> int:
    """Return the number of rows to hold in memory at a time."""
    fewest, most = PART_ROWS
    return min(max(PART_BYTES // (8 * max(1, n_columns)), fewest), most)


def check_part(rows: Any, place: str, first: int | None = None, names: Sequence[str] | None = None) -> NDArray[Any]:
    """Return the rows as finite numbers. Raise an error that says where they are not.

    `place` names the part ("partition 3"), `first` is the position of its first row and `names` are the columns', where they are known.
    """
    try:
        return check_array(rows, dtype=[np.float64, np.float32], ensure_min_samples=0, ensure_all_finite=True)
    except (ValueError, TypeError) as error:
        where = f"{len(rows):,} rows" if first is None else f"rows {first:,} to {first + len(rows) - 1:,}"
        message = f"In {place} ({where}): {error}{_first_that_is_not_finite(rows, first, names)}"
        raise (TypeError if isinstance(error, TypeError) else ValueError)(message) from error


def _first_that_is_not_finite(rows: Any, first: int | None, names: Sequence[str] | None) -> str:
    """Return a sentence that names row and column, for a table in which they are known."""
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
    return (
        f"\nThe first of {len(bad_rows):,} such values is in {row}, column {column}. Drop or fill in these rows, or use a "
        "kernel that takes missing cells: kernel=gpssl.kernels.IncompleteRBF()."
    )


class Keeper(Protocol):
    """Keeps what a pass has summed up so far, so that it can go on after an interruption."""

    def recall(self) -> tuple[Any, int]:
        """Return the summary that was kept, and the number of its parts; None and 0 where there is none."""
        ...

    def check_passed(self, n_parts: int, weight: float) -> None:
        """Raise ValueError unless what was kept sums up so many parts, of rows with this weight in all."""
        ...

    def keep(self, summary: Any, n_parts: int, *, finished: bool = False) -> None:
        """Keep the summary of the first `n_parts` parts, which are all if the pass is finished."""
        ...


class Rows:
    """Rows of one table, in a fixed order, that need not fit in memory together.

    A source says how to read its parts; whatever is to be known about the rows is a summary of each part, and a way to combine two
    summaries. Every pass over the data is such a reduction: a sample, the rows farthest out, and the moments.
    """

    n_columns: int
    n_rows: int | None = None
    """None where it is not known before they are read."""
    names: list[str] | None = None
    """Names of the columns, where they have some."""
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
        """A text that changes with the files that hold the rows, for a pass that is resumed; None for rows that are not in files."""
        return None

    def count(self) -> int:
        """Return the number of rows, by reading them if need be."""
        return sum(len(part.rows) for part in self.parts()) if self.n_rows is None else self.n_rows

    def weighted(self, sample_weight: Array) -> Rows:
        """Return the same rows with these weights."""
        other = copy(self)
        other.sample_weight, other._sample = sample_weight, None
        return other

    @property
    def text_names(self) -> list[str]:
        """Names of the columns that hold free text, where that is known."""
        return []

    def for_tables(self, texts: Sequence[Hashable] = ()) -> Rows:  # noqa: ARG002  (for sources that have texts)
        """Return the same rows for a kernel that takes tables, with categories and missing cells; these columns stay text."""
        return self

    def only(self, places: list[int]) -> Rows:
        """Return the same rows with these columns only."""
        return MappedRows(self, itemgetter((slice(None), places)), len(places))

    def parts(self) -> Iterator[Part]:
        """Yield all rows, in order, some at a time."""
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
        """Combine the summaries of all parts, in the order of the parts: the same bits for any number of threads."""
        total, n_parts = keeper.recall() if keeper else (None, 0)
        n_threads = min(n_workers(), max_threads or n_workers())

        def count_and_summarize(part: Part) -> tuple[int, Summary]:
            return len(part.rows), summarize(part)

        parts, n_passed, weight = self.parts(), 0, 0.0
        for part in islice(parts, n_parts):
            n_passed, weight = n_passed + 1, weight + float(part.weight.sum())
            if progress:
                progress.skip(len(part.rows))
        if keeper:
            keeper.check_passed(n_passed, weight)
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
        """Apply `function` to the rows of each part and join the results. None in `shape` stands for the rows."""
        axis = shape.index(None)
        if self.n_rows is None:
            results = [function(part.rows) for part in self.parts()]
            self._check_number_of_rows(sum(result.shape[axis] for result in results))
            return np.concatenate(results, axis=axis)
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
        """Return at most `limit` distinct rows and their weights: the same ones for any order of the rows and any parts.

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
        """Raise ValueError unless there is a weight for each row, for sources that know their number of rows only after reading."""
        if self.sample_weight is not None and len(self.sample_weight) != n_rows:
            raise ValueError(f"sample_weight has {len(self.sample_weight):,} entries, but there are {n_rows:,} rows.")

    def weight_of(self, first: int, n_rows: int) -> Array:
        """Return the weights of consecutive rows."""
        if self.sample_weight is None:
            return np.ones(n_rows)
        weight = self.sample_weight[first : first + n_rows]
        if len(weight) < n_rows:
            raise ValueError(f"sample_weight has {len(self.sample_weight):,} entries, fewer than there are rows.")
        return weight


def _sample_of_part(part: Part, *, limit: int, seed: int) -> DistinctRows:
    return distinct_rows(part.rows, part.weight, limit=limit, seed=seed)


class SliceableRows(Rows):
    """Rows of an object with a shape, of which slices give arrays or sparse matrices.

    Parameters
    ----------
    X
        A NumPy array, in memory or mapped from a file; a sparse matrix in CSR format; a dataset of h5py or zarr; the `X` of an
        AnnData object in backed mode.
    sample_weight
        One for each row.
    checked
        Whether X is known to hold finite numbers, or objects. Otherwise each part is checked when it is read.
    place, first
        For errors: what X is called, and the position of its first row in a larger table, or None.
    """

    def __init__(
        self, X: Any, sample_weight: Array | None = None, *, checked: bool = False, place: str = "the part", first: int | None = 0
    ) -> None:
        super().__init__(sample_weight)
        self.X = X
        self.n_rows = int(X.shape[0])
        self.n_columns = int(X.shape[1]) if len(X.shape) > 1 else 1
        self.checked = checked
        self.place, self.first = place, first
        self.come_at_once = checked and isinstance(X, np.ndarray) and not isinstance(X, np.memmap)

    @property
    def identity(self) -> str | None:
        """File, size, time of change and place in the file, for a mapped array."""
        filename = getattr(self.X, "filename", None) if isinstance(self.X, np.memmap) else None
        if not filename:
            return None
        whole = self.X
        while isinstance(whole.base, np.memmap):
            whole = whole.base
        position = int(whole.offset + self.X.__array_interface__["data"][0] - whole.__array_interface__["data"][0])
        state = os.stat(filename)
        layout = f"{self.X.dtype} {self.X.shape} {self.X.strides} {position} {MIN_PARTS} {MIN_ROWS}"
        return f"{os.path.abspath(filename)} {state.st_size} {state.st_mtime_ns} {layout}"

    def parts(self) -> Iterator[Part]:
        """Yield dense slices of the rows."""
        n_rows = self.n_rows or 0
        size = min(rows_of_a_part(self.n_columns), max(MIN_ROWS, -(-n_rows // MIN_PARTS)))
        for block in row_blocks(n_rows, size):
            rows = self.X[block]
            rows = rows.toarray() if issparse(rows) else np.asarray(rows)
            if not self.checked:
                rows = check_part(rows, self.place, None if self.first is None else self.first + block.start)
            yield Part(rows, self.weight_of(block.start, len(rows)))
            _release_pages(self.X)

    def map(self, function: Callable[[NDArray[Any]], NDArray[Any]], shape: tuple[int | None, ...]) -> Any:
        """Apply `function` as for all rows, but at once to all rows in memory."""
        return function(self.X) if self.come_at_once else super().map(function, shape)


def _release_pages(X: Any) -> None:
    """Tell the system that the pages of a mapped file are not needed for now: they would count as memory of this process."""
    if not isinstance(X, np.memmap) or X.mode not in ("r", "r+") or not hasattr(mmap, "MADV_DONTNEED"):
        return
    owner: Any = X
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, mmap.mmap):
        owner.madvise(mmap.MADV_DONTNEED)


class MappedRows(Rows):
    """Rows whose parts are those of another source, each mapped by a function that works row by row."""

    def __init__(self, rows: Rows, function: Callable[[NDArray[Any]], NDArray[Any]], n_columns: int, header: Any = None) -> None:
        super().__init__(rows.sample_weight)
        self.rows, self.function = rows, function
        self.n_columns, self.n_rows = n_columns, rows.n_rows
        self.header = header

    def parts(self) -> Iterator[Part]:
        """Yield the parts of the other source, mapped."""
        yield from map(self._mapped, self.rows.parts())

    def reduce(
        self,
        summarize: Callable[[Part], Summary],
        combine: Callable[[Summary, Summary], Summary],
        **options: Any,
    ) -> Summary:
        """Reduce the other source, and let its threads map the parts."""

        def map_and_summarize(part: Part) -> Summary:
            return summarize(self._mapped(part))

        return self.rows.reduce(map_and_summarize, combine, **options)

    def _mapped(self, part: Part) -> Part:
        return Part(self.function(part.rows), part.weight)


def is_lazy(X: Any) -> bool:
    """Return whether the rows of X are read part by part, because they may not fit in memory."""
    return isinstance(X, Rows | np.memmap) or is_path(X) or _is_dask(X) or _is_stored(X)


def open_rows(X: Any, sample_weight: Array | None = None) -> Rows:
    """Return the rows of a Dask array or data frame, of files, of an array in a file, or of one in memory."""
    if isinstance(X, Rows):
        return X if sample_weight is None else X.weighted(sample_weight)
    if is_path(X):
        from ._table_files import TableFiles

        return TableFiles(X, sample_weight=sample_weight)
    if _is_dask(X):
        from ._dask import DaskRows

        return DaskRows(X, sample_weight)
    if _is_stored(X) and type(X).__name__ == "AnnData":
        if X.X is None:
            raise ValueError("This AnnData object has no X. Pass the matrix to learn from, such as adata.layers[...] or adata.obsm[...].")
        rows = open_rows(X.X, sample_weight)
        rows.names = [str(name) for name in X.var_names]
        return rows
    if _is_stored(X):
        _check_stored(X)
        return SliceableRows(X, sample_weight)
    if issparse(X):
        return SliceableRows(csr_array(X), sample_weight)
    return SliceableRows(X if isinstance(X, np.ndarray) else np.asarray(X), sample_weight)


def is_path(X: Any) -> bool:
    """Tell the name of a file, or of several, from rows."""
    if isinstance(X, str | PathLike):
        return True
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(item, PathLike) or is_file_name(item) for item in X)


def is_file_name(item: Any) -> bool:
    """Return whether an item of a list is a text that ends as names of files do."""
    return isinstance(item, str) and item.lower().endswith(FILE_ENDINGS)


def _is_dask(X: Any) -> bool:
    """Return whether X is a Dask array or data frame, without importing Dask."""
    module = type(X).__module__
    return module.startswith("dask.array") or (module.startswith("dask.dataframe") and hasattr(X, "npartitions"))


def _is_stored(X: Any) -> bool:
    return type(X).__module__.split(".")[0] in STORED


def _check_stored(X: Any) -> None:
    """Raise an error unless X is a matrix in a file that can be read by rows."""
    if not hasattr(X, "shape"):
        raise TypeError(f"{type(X).__name__} is no array of rows and columns: pass one of its datasets.")
    if len(X.shape) != 2:
        raise ValueError(f"Expected 2D array, got one of shape {tuple(X.shape)} instead. Reshape your data: rows and columns.")
    if getattr(X, "format", "csr") == "csc":
        raise ValueError(
            "This sparse matrix is stored by columns (CSC), so that each block of rows would mean reading all of it. Store it by rows: "
            "adata.X = adata.to_memory().X.tocsr(), and write it again."
        )
