"""The pass over the data against its floor: what the three unavoidable operations cost by themselves."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_info, threadpool_limits

from gpssl.core._checked_rows import rows_in_memory
from gpssl.core._features import Features
from gpssl.core._moments import moments_of_rows
from gpssl.data._arrays import row_blocks, rows_in_cache

from .data import latent_table, shared_lengthscale
from .measurement import describe_seconds, in_fresh_process, seconds_of
from .report import Comparison, Finding

Array = NDArray[np.float64]

TARGET_RATIO = 1.3
N_POINTS = 512
ROUNDS = 3
FLOOR = "floor"
FLOORS: dict[str, dict[str, tuple[str, str]]] = {
    "float64": {FLOOR: ("float64", "float64")},
    "float32": {FLOOR: ("float32", "float64"), "floor, all in float32": ("float32", "float32")},
}
"""The precision of distances and `exp`, and that of the product, for rows in each precision."""

SETTING = """\
{n_rows:,} rows of 30 columns, {n_points} inducing points. The floor is, for each block of {block:,} rows, one matrix product
for the distances, one `exp` in place and one product of the block's transpose with the block, on arrays that were allocated and
scaled beforehand; it checks nothing and sums nothing. For rows in float32, distances and `exp` are in float32 and the product is in
float64, in the floor as in the library: whitening would amplify the rounding errors of a product in float32. What that precision
costs is the distance to the last line, which has no target. All run on {n_threads} threads with BLAS held to one thread in each, in
the same process, taking turns; medians of {rounds} rounds, after one that does not count."""


class PassTimes(NamedTuple):
    """Seconds of each round, by what was timed, and on how many threads."""

    seconds: dict[str, list[float]]
    n_threads: int


def time_pass(n_rows: int, lengthscale: float, n_points: int, dtype: str) -> PassTimes:
    """Time the pass and its floors in turn, after one round that is not counted."""
    X = latent_table(n_rows, dtype=dtype)
    features = Features.build(RBF(lengthscale), X[:n_points])
    n_threads = max(pool["num_threads"] for pool in threadpool_info())
    calls: dict[str, Callable[[], object]] = {"`moments_of_rows`": lambda: moments_of_rows(features, rows_in_memory(X))}
    for name, (columns, product) in FLOORS[dtype].items():
        calls[name] = prepare_floor(X, X[:n_points], lengthscale, n_threads, columns, product)
    rounds = [{name: seconds_of(call) for name, call in calls.items()} for _ in range(ROUNDS + 1)][1:]
    return PassTimes({name: [one[name] for one in rounds] for name in calls}, n_threads)


def prepare_floor(
    X: Array, points: Array, lengthscale: float, n_threads: int, columns_in: DTypeLike, product_in: DTypeLike
) -> Callable[[], None]:
    """Set up the bare operations on prepared arrays, in these precisions.

    −½|x − u|² is the inner product of (x, −½|x|², 1) and (u, 1, −½|u|²): `exp` then sees the values that it sees in the
    library, on which its speed depends.
    """
    rows, right = X / lengthscale, points / lengthscale
    rows = np.column_stack([rows, -0.5 * (rows**2).sum(axis=1), np.ones(len(rows))]).astype(columns_in)
    right = np.column_stack([right, np.ones(len(right)), -0.5 * (right**2).sum(axis=1)]).T.astype(columns_in, order="C")
    size = rows_in_cache(len(points))
    buffers: SimpleQueue[tuple[Array, Array, Array]] = SimpleQueue()
    for _ in range(n_threads):
        exponents = np.ones((size, len(points)), columns_in)
        kept = exponents if columns_in == product_in else np.ones(exponents.shape, product_in)
        buffers.put((exponents, kept, np.ones((len(points), len(points)), product_in)))

    def compute(block: slice) -> None:
        exponents, kept, product = buffers.get()
        n_rows = block.stop - block.start
        columns = np.matmul(rows[block], right, out=exponents[:n_rows])
        np.exp(columns, out=columns)
        if kept is not exponents:
            kept[:n_rows] = columns
        np.matmul(kept[:n_rows].T, kept[:n_rows], out=product)
        buffers.put((exponents, kept, product))

    def floor() -> None:
        with threadpool_limits(limits=1), ThreadPoolExecutor(n_threads) as executor:
            list(executor.map(compute, row_blocks(len(rows), size)))

    return floor


def compare(*, quick: bool) -> Comparison:
    """Compare the pass with its floor in both precisions."""
    n_rows = 20_000 if quick else 1_000_000
    rows: list[tuple[str, ...]] = []
    findings = []
    for dtype in FLOORS:
        job = partial(time_pass, n_rows, shared_lengthscale(), N_POINTS, dtype)
        times, n_threads = in_fresh_process(f"pass over the data in {dtype}", job)
        rows += [(dtype, name, describe_seconds(seconds)) for name, seconds in times.items()]
        ratio = median(times["`moments_of_rows`"]) / median(times[FLOOR])
        findings.append(Finding(f"{dtype}: at most {TARGET_RATIO} times the floor", f"{ratio:.2f} times", ratio <= TARGET_RATIO))
    block = rows_in_cache(N_POINTS)
    return Comparison(
        title="The pass over the data",
        setting=SETTING.format(n_rows=n_rows, n_points=N_POINTS, block=block, n_threads=n_threads, rounds=ROUNDS),
        header=("rows in", "", "seconds (range)"),
        rows=rows,
        findings=findings,
    )
