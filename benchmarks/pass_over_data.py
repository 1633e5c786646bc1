"""The pass over the data against its floor: what the three unavoidable operations cost by themselves."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_info, threadpool_limits

from gpssl.checked_rows import rows_in_memory
from gpssl.features import Features
from gpssl.moments import moments_of_rows
from gpssl.rows import BLOCK_ROWS, row_blocks

from .data import latent_table, shared_lengthscale
from .measurement import describe_seconds, in_fresh_process, seconds_of
from .report import Comparison, Finding

Array = NDArray[np.float64]

TARGET_RATIO = 1.3
N_POINTS = 512
ROUNDS = 5

SETTING = """\
{n_rows:,} rows of 30 columns, {n_points} inducing points. The floor is, for each block of {block:,} rows, one matrix product
for the distances, one `exp` in place and one product of the block's transpose with the block, on arrays that were allocated and
scaled beforehand; it checks nothing and sums nothing. Both run on {n_threads} threads with BLAS held to one thread in each, in
the same process, taking turns; medians of {rounds} rounds, after one that does not count."""


class PassTimes(NamedTuple):
    """Seconds of each round, and on how many threads."""

    moments: list[float]
    floor: list[float]
    n_threads: int


def time_pass(n_rows: int, lengthscale: float, n_points: int) -> PassTimes:
    """Time the pass and its floor in turn, after one round that is not counted."""
    X = latent_table(n_rows)
    features = Features.build(RBF(lengthscale), X[:n_points])
    n_threads = max(pool["num_threads"] for pool in threadpool_info())
    floor = prepare_floor(X, X[:n_points], lengthscale, n_threads)

    def moments() -> object:
        return moments_of_rows(features, rows_in_memory(X))

    rounds = [(seconds_of(moments), seconds_of(floor)) for _ in range(ROUNDS + 1)][1:]
    return PassTimes([first for first, _ in rounds], [second for _, second in rounds], n_threads)


def prepare_floor(X: Array, points: Array, lengthscale: float, n_threads: int) -> Callable[[], None]:
    """Set up the bare operations on prepared arrays.

    −½|x − u|² is the inner product of (x, −½|x|², 1) and (u, 1, −½|u|²): `exp` then sees the values that it sees in the
    library, on which its speed depends.
    """
    rows, right = X / lengthscale, points / lengthscale
    rows = np.column_stack([rows, -0.5 * (rows**2).sum(axis=1), np.ones(len(rows))])
    right = np.column_stack([right, np.ones(len(right)), -0.5 * (right**2).sum(axis=1)]).T.copy()
    buffers: SimpleQueue[tuple[Array, Array]] = SimpleQueue()
    for _ in range(n_threads):
        buffers.put((np.ones((BLOCK_ROWS, len(points))), np.ones((len(points), len(points)))))

    def compute(block: slice) -> None:
        buffer, product = buffers.get()
        columns = buffer[: block.stop - block.start]
        np.matmul(rows[block], right, out=columns)
        np.exp(columns, out=columns)
        np.matmul(columns.T, columns, out=product)
        buffers.put((buffer, product))

    def floor() -> None:
        with threadpool_limits(limits=1), ThreadPoolExecutor(n_threads) as executor:
            list(executor.map(compute, row_blocks(len(rows))))

    return floor


def compare(*, quick: bool) -> Comparison:
    """Compare both."""
    n_rows = 20_000 if quick else 200_000
    times = in_fresh_process("pass over the data", partial(time_pass, n_rows, shared_lengthscale(), N_POINTS))
    ratio = median(times.moments) / median(times.floor)
    setting = SETTING.format(n_rows=n_rows, n_points=N_POINTS, block=BLOCK_ROWS, n_threads=times.n_threads, rounds=ROUNDS)
    return Comparison(
        title="The pass over the data",
        setting=setting,
        header=("", "seconds (range)"),
        rows=[("`moments_of_rows`", describe_seconds(times.moments)), ("floor", describe_seconds(times.floor))],
        findings=[Finding(f"at most {TARGET_RATIO} times the floor", f"{ratio:.2f} times", ratio <= TARGET_RATIO)],
    )
