"""Rows of Dask arrays and data frames: passes are sums over chunks on whatever scheduler is active, results are lazy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from .._runtime.progress import Progress
from .._runtime.threads import one_blas_thread
from ._rows import Array, Keeper, Part, Rows, SliceableRows, Summary, check_part

FAN_IN = 8
"""Summaries that are combined at a time: a tree, so that no worker holds them all."""

OUR_NOTE = "This happened while gpssl summarized a partition."
"""Tells errors about what rows hold, which are sentences already, from those of tasks that were to bring the rows."""


class DaskRows(Rows):
    """The rows of a Dask array or data frame.

    Each chunk is summarized where it is, by one task; only summaries travel. They are combined in the order of the chunks, so that the
    result does not depend on the scheduler, on the number of workers, or on a task that had to run twice.

    Parameters
    ----------
    X
        A Dask array of known chunk sizes with all columns in one chunk, or a Dask data frame.
    sample_weight
        One for each row, in memory.
    """

    are_deferred = True

    def __init__(self, X: Any, sample_weight: Array | None = None) -> None:
        super().__init__(sample_weight)
        self.is_frame = type(X).__module__.startswith("dask.dataframe")
        (_check_columns if self.is_frame else _check_chunks)(X)
        self.X = X
        self.n_columns = len(X.columns) if self.is_frame else int(X.shape[1])
        named = self.is_frame and all(isinstance(name, str) for name in X.columns)
        self.names = list(X.columns) if named else None
        self._frame_lengths: list[int] | None = None
        self.n_rows = None if self.is_frame else int(X.shape[0])

    def reduce(
        self,
        summarize: Callable[[Part], Summary],
        combine: Callable[[Summary, Summary], Summary],
        *,
        progress: Progress | None = None,
        max_threads: int | None = None,  # noqa: ARG002  (the scheduler decides)
        keeper: Keeper | None = None,
    ) -> Summary:
        """Combine the summaries as for all rows, by tree reduction over the chunks."""
        import dask

        if keeper:
            raise ValueError("A checkpoint is for rows in files that this process reads; Dask repeats lost tasks by itself.")
        chunks = list(self.X.to_delayed() if self.is_frame else self.X.to_delayed()[:, 0])
        lengths = self._lengths(chunks)
        starts = [None] * len(lengths) if None in lengths else np.cumsum([0, *lengths])[:-1].tolist()
        # One task each for what all chunks share: it travels once to each worker.
        shared_summarize, shared_combine = dask.delayed(summarize), dask.delayed(combine)
        summaries = []
        for i, (chunk, start) in enumerate(zip(chunks, starts, strict=True)):
            length = lengths[i]
            weight = None if self.sample_weight is None or length is None else self.weight_of(start, length)
            summaries.append(_delayed(_summarize_chunk)(chunk, shared_summarize, shared_combine, weight, f"partition {i}", start))
        counts = [1 if length is None else length for length in lengths]
        if progress is not None and None in lengths:
            progress.unit, progress.total = "partitions", len(chunks)
        total = _compute(_tree(summaries, shared_combine), summaries, self._retries, progress, counts)
        if total is None:
            raise ValueError("Found 0 rows: there is nothing to learn from.")
        return total

    def map(self, function: Callable[[NDArray[Any]], NDArray[Any]], shape: tuple[int | None, ...]) -> Any:
        """Return a lazy Dask array, chunked along the rows as X is."""
        import dask

        array = self.X.to_dask_array() if self.is_frame else self.X
        axis = shape.index(None)
        dtype = np.float32 if array.dtype == np.float32 else np.float64
        return array.map_blocks(
            _evaluate,
            function=dask.delayed(function),
            axis=axis,
            new_axis=list(range(len(shape) - 2)),
            chunks=tuple(array.chunks[0] if size is None else (size,) for size in shape),
            dtype=dtype,
            meta=np.empty((0,) * len(shape), dtype=dtype),
        )

    @property
    def _retries(self) -> int:
        """How often to repeat a task that fails, as `dask.annotate` has it here or had it where the rows were made."""
        import dask

        # Where Dask optimizes a graph, annotations of its layers are lost, so that they are read from the collection.
        layers = [] if self.is_frame else self.X.__dask_graph__().layers.values()
        annotations = [dask.get_annotations(), *(layer.annotations or {} for layer in layers)]
        wanted = [found["retries"] for found in annotations if isinstance(found.get("retries"), int)]
        return max(wanted, default=0)

    def _lengths(self, chunks: list[Any]) -> Sequence[int | None]:
        """Return the number of rows of each chunk. A data frame has to be read for this, which is done only where there are weights."""
        import dask

        if not self.is_frame:
            return [int(length) for length in self.X.chunks[0]]
        if self.sample_weight is None:
            return [None] * len(chunks)
        if self._frame_lengths is None:
            # Dask may have merged partitions on the way to these chunks: what counts is theirs.
            lengths = [_delayed(len)(chunk) for chunk in chunks]
            self._frame_lengths = _compute(dask.delayed(lengths), lengths, self._retries)
            self.check_weights_are_as_many(sum(self._frame_lengths))
        return self._frame_lengths


def _check_columns(X: Any) -> None:
    from pandas.api.types import is_numeric_dtype

    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a Dask {type(X).__name__} instead. For a table of one column: series.to_frame().")
    for name, dtype in X.dtypes.items():
        if not is_numeric_dtype(dtype):
            raise ValueError(
                f"Column {name!r} holds {dtype}, not numbers. Encode it (for example with OneHotEncoder), or choose columns: df[[...]]."
            )


def _check_chunks(X: Any) -> None:
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a Dask array with {X.ndim} dimension(s). Reshape your data: rows and columns.")
    if math.isnan(X.shape[1]):
        raise ValueError("This Dask array does not know how many columns it has. Call X = X.compute_chunk_sizes() first.")
    if any(math.isnan(length) for length in X.chunks[0]):
        raise ValueError(
            "This Dask array does not know how many rows its chunks have, as after a filter or to_dask_array(). Call "
            "X = X.compute_chunk_sizes() first, or df.to_dask_array(lengths=True), or pass the data frame itself."
        )
    if X.numblocks[1] > 1:
        raise ValueError(
            f"This Dask array has its {X.shape[1]} columns in {X.numblocks[1]} chunks, but a kernel compares whole rows. Call "
            "X = X.rechunk({1: -1}) first; with many columns, give fewer rows to a chunk: X.rechunk({0: 'auto', 1: -1})."
        )


def _as_rows(chunk: Any) -> Any:
    """Return sparse chunks by rows, data frames as they are, everything else as an array."""
    if issparse(chunk):
        return csr_array(chunk)
    return chunk if hasattr(chunk, "iloc") else np.asarray(chunk)


def _parts_of_chunk(rows: Any, weight: Array, place: str, first: int | None) -> Iterator[Part]:
    """Yield a dense chunk as a whole, a sparse one in dense parts."""
    if issparse(rows):
        yield from SliceableRows(rows, weight, place=place, first=first).parts()
    elif rows.shape[0] > 0:
        yield Part(check_part(rows, place, first), weight)


def _summarize_chunk(
    chunk: Any,
    summarize: Callable[[Part], Summary],
    combine: Callable[[Summary, Summary], Summary],
    weight: Array | None,
    place: str,
    first: int | None,
) -> Summary | None:
    """Summarize a chunk on a worker; return None for an empty one. The scheduler has its own threads, so that BLAS gets one."""
    try:
        rows = _as_rows(chunk)
        weight = np.ones(rows.shape[0]) if weight is None else weight
        with one_blas_thread():
            return _combine_all(combine, [summarize(part) for part in _parts_of_chunk(rows, weight, place, first)])
    except Exception as error:
        error.add_note(OUR_NOTE)
        raise


def _combine_all(combine: Callable[[Summary, Summary], Summary], summaries: list[Summary | None]) -> Summary | None:
    """Combine summaries in order, without those of empty chunks."""
    known = [summary for summary in summaries if summary is not None]
    return functools.reduce(combine, known) if known else None


def _evaluate(
    chunk: Any, *, function: Callable[[NDArray[Any]], NDArray[Any]], axis: int, block_id: tuple[int, ...] | None = None
) -> NDArray[Any]:
    """Apply `function` to the rows of a chunk."""
    rows = _as_rows(chunk)
    with one_blas_thread():
        place = f"partition {block_id[axis] if block_id else 0}"
        if not issparse(rows):
            return function(check_part(rows, place))
        results = [function(part.rows) for part in SliceableRows(rows, place=place, first=None).parts()]
        return np.concatenate(results, axis=axis) if results else function(rows.toarray())


def _delayed(function: Callable[..., Any]) -> Any:
    import dask

    return dask.delayed(function, pure=True, traverse=False)


def _tree(summaries: list[Any], combine: Any) -> Any:
    """Return one delayed summary of all chunks, by a tree of combinations."""
    level = summaries
    while len(level) > 1:
        level = [_delayed(_combine_all)(combine, level[i : i + FAN_IN]) for i in range(0, len(level), FAN_IN)]
    return level[0]


def _compute(root: Any, leaves: list[Any], retries: int, progress: Progress | None = None, counts: Sequence[int] = ()) -> Any:
    """Compute what combines the leaves, one for each partition, on the active scheduler; count each as its leaf is finished."""
    from dask.base import get_scheduler
    from dask.callbacks import Callback

    client = getattr(get_scheduler(collections=[root]), "__self__", None)
    watched = progress if progress is not None and progress.is_watched else None
    if type(client).__module__.startswith("distributed"):
        result = _compute_on_cluster(client, root, leaves, retries, watched, counts)
    elif watched is None:
        result = _compute_here(root)
    else:
        count_of = {leaf.key: count for leaf, count in zip(leaves, counts, strict=True)}
        with Callback(posttask=lambda key, *_: watched.advance(count_of.get(key, 0))):
            result = _compute_here(root)
    if watched:
        watched.finish()
    return result


def _compute_here(root: Any) -> Any:
    """Compute on threads or processes of this machine, which tell no partition where a task fails."""
    try:
        return root.compute()
    except Exception as error:
        if OUR_NOTE in getattr(error, "__notes__", ()):
            raise
        raise RuntimeError(f"Dask could not compute a partition of the rows: {_in_words(error)}") from error


def _compute_on_cluster(client: Any, root: Any, leaves: list[Any], retries: int, progress: Progress | None, counts: Sequence[int]) -> Any:
    """Compute on workers. Where a leaf fails for good, drop the rest and say which partition it was."""
    from distributed import as_completed

    total, *futures = client.compute([root, *leaves], retries=retries)
    places = {leaf.key: i for i, leaf in enumerate(leaves)}
    try:
        for future in as_completed(futures):
            if future.status == "error":
                _raise_for_partition(places[future.key], future)
            if progress is not None:
                progress.advance(counts[places[future.key]])
            future.release()  # the summary may go as soon as it has been added
        return total.result()
    finally:
        for future in (total, *futures):
            future.release()  # after a failure, nobody wants the rest; to cancel what has failed would break the connection


def _raise_for_partition(place: int, future: Any) -> NoReturn:
    """Raise the error of a partition that failed for good: our own as it is, any other in a sentence that names the partition."""
    from distributed.scheduler import KilledWorker

    error = future.exception()
    if OUR_NOTE in getattr(error, "__notes__", ()):
        raise error
    if isinstance(error, KilledWorker):
        raise RuntimeError(
            f"Workers died again and again while they computed partition {place} of the rows or had it waiting, as they do where memory "
            "runs out: make the partitions smaller (rechunk, repartition), or give the workers more memory."
        ) from error
    raise RuntimeError(
        f"Dask could not compute partition {place} of the rows: {_in_words(error)} Where another try may succeed, tell Dask to repeat what "
        "fails: with dask.annotate(retries=3): model.fit(X)."
    ) from error


def _in_words(error: BaseException) -> str:
    """Return type and message of an error, as the end of a sentence."""
    message = f"{type(error).__name__}: {error}".rstrip(" :.")
    return f"{message}."
