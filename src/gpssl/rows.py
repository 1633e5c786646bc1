"""Rows: which of them are the same, a sample that does not depend on their order, and a walk over them in blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, NamedTuple, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")

BLOCK_ROWS = 1024
"""Rows in a block: large enough that BLAS runs at full speed, small enough that a block stays in cache."""

PHASES = 10.0
"""Phases per standard deviation: enough to be random, few enough that a small change of a row is a small change of its phase."""


class DistinctRows(NamedTuple):
    """Distinct rows in an order that depends on their content alone."""

    first: NDArray[np.intp]
    """Where each distinct row first occurs. [n]"""
    weight: NDArray[np.float64]
    """The summed weight of all its copies. [n]"""


def as_object_rows(X: Any) -> NDArray[Any]:
    """Rows that are not vectors (strings, graphs, …) as an array of objects; of a data frame with one column, that column."""
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    if isinstance(values, np.ndarray):
        return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    items = list(values)
    rows = np.empty(len(items), dtype=object)
    rows[:] = items
    return rows


def in_double_precision(X: NDArray[Any]) -> NDArray[Any]:
    """Numbers as float64, without a copy where they are; objects as they are."""
    return np.asarray(X, dtype=np.float64) if X.dtype.kind in "fiub" else X


def distinct_rows(X: NDArray[Any], sample_weight: NDArray[np.float64], *, limit: int, seed: int) -> DistinctRows:
    """At most `limit` distinct rows of positive weight, the same ones in the same order for any order of the rows.

    Each row is hashed, with the seed; the rows with the smallest hashes form the sample. A row that occurs twice counts
    once, with its weights added, so that weight 2 and the row twice lead to the same sample.
    """
    present = np.flatnonzero(sample_weight > 0)
    hashes = hash_rows(X, seed)[present]
    kept = present
    if len(present) > limit:
        below = hashes <= _nth_distinct(hashes, limit)
        hashes, kept = hashes[below], present[below]
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    weight = np.bincount(inverse, weights=sample_weight[kept])
    return DistinctRows(kept[first], weight.astype(np.float64))


def _nth_distinct(values: NDArray[np.uint64], n: int) -> np.uint64:
    """The n-th smallest distinct value, or the largest if there are fewer; without sorting them all."""
    n_smallest = 2 * n
    while n_smallest < len(values):
        smallest = np.unique(np.partition(values, n_smallest)[:n_smallest])
        if len(smallest) >= n:
            return smallest[n - 1]
        n_smallest *= 4
    distinct = np.unique(values)
    return distinct[min(n, len(distinct)) - 1]


def hash_rows(X: NDArray[Any], seed: int) -> NDArray[np.uint64]:
    """A 64-bit hash of each row's content: equal rows have equal hashes, in any array, process or machine."""
    if X.dtype.kind in "fiub" and X.ndim == 2:
        coefficients = np.random.default_rng(seed).integers(2**63, size=X.shape[1] + 1, dtype=np.uint64)
        hashes = [_hash_vectors(X[block], coefficients) for block in row_blocks(len(X))]
        return np.concatenate(hashes) if hashes else np.empty(0, np.uint64)
    key = seed.to_bytes(8, "little")
    return np.array([_hash_object(row, key) for row in X], dtype=np.uint64)


def _hash_vectors(block: NDArray[Any], coefficients: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Multilinear hash of the bit patterns, then the finaliser of SplitMix64."""
    values = np.ascontiguousarray(block, dtype=np.float64) + 0.0  # −0.0 and 0.0 are the same number
    bits = values.view(np.uint64)
    # Short decimals and integers leave the low half of a double empty; fold the high half onto it.
    bits ^= bits >> np.uint64(32)
    return _mixed((bits * (coefficients[1:] | np.uint64(1))).sum(axis=1, dtype=np.uint64) + coefficients[0])


def _mixed(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64: each bit of the result depends on every bit of the state."""
    mixed = state
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def _hash_object(row: Any, key: bytes) -> int:
    try:
        content = joblib.hash(row).encode()
    except Exception as error:
        raise ValueError(
            f"Rows of type {type(row).__name__} cannot be told apart by their content ({error}). They must be objects that can be pickled."
        ) from error
    return int.from_bytes(hashlib.blake2b(content, digest_size=8, key=key).digest(), "little")


def hash_normals(hashes: NDArray[np.uint64], n_columns: int) -> NDArray[np.float64]:
    """Standard normal numbers for each row, a function of its hash alone: the SplitMix64 sequence that starts there. [n, n_columns]"""
    steps = np.arange(1, n_columns + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits = _mixed(hashes[:, None] + steps)
    # The 53 bits of a double, in the middle of their intervals: neither 0 nor 1.
    normal: NDArray[np.float64] = ndtri(((bits >> np.uint64(11)) + 0.5) * 2.0**-53)
    return normal


def random_phases(X: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """A number in [0, 1) for each row, random but a function of the row's content; rounding errors in the row hardly move it. [n]"""
    standard = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), np.finfo(float).tiny)
    return standard @ np.random.default_rng([seed, 1]).normal(scale=PHASES, size=X.shape[1]) % 1.0


def row_blocks(n_rows: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    """Consecutive slices of at most `size` rows."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


@cache
def _thread_pools() -> ThreadpoolController:
    """The BLAS libraries of this process; finding them takes longer than many a fit spends on anything else."""
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """For work on small matrices: a second thread brings nothing there, waits for a busy core, and changes the last digits."""
    return _thread_pools().limit(limits=1)


def map_on_threads(function: Callable[[slice], Result], parts: Sequence[slice]) -> list[Result]:
    """`function` of each part, on as many threads as BLAS would use, with BLAS held to one thread in each.

    The result does not depend on the number of threads: each part is computed by one thread from start to end.
    """
    n_threads = max((pool["num_threads"] for pool in _thread_pools().info()), default=1)
    with one_blas_thread():
        if n_threads == 1 or len(parts) == 1:
            return [function(part) for part in parts]
        with ThreadPoolExecutor(n_threads) as executor:
            return list(executor.map(function, parts))
