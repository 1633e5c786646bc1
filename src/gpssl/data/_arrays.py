"""Arrays of rows: which rows are equal, samples that do not depend on the order of rows, and blocks that suit the cache."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib.hashing import NumpyHasher
from numpy.typing import NDArray
from scipy.special import ndtri

BLOCK_ROWS = 1024
"""Rows in a block where the cache is not known."""
BLOCK_LIMITS = (256, 4096)
"""Smaller blocks keep BLAS waiting, larger ones bring nothing."""

PHASES = 10.0
"""Phases per standard deviation: enough to be random, few enough that a small change of a row is a small change of its phase."""


class DistinctRows(NamedTuple):
    """Distinct rows in an order that depends on their content alone. Those of several sets of rows can be merged."""

    rows: NDArray[Any]
    weight: NDArray[np.float64]
    """The summed weight of all copies of a row. [n]"""
    hashes: NDArray[np.uint64]
    """Hashes of the rows' content, in rising order. [n]"""


def as_object_rows(X: Any) -> NDArray[Any]:
    """Return rows that are not vectors (strings, graphs, …) as an array of objects; of a data frame with one column, that column."""
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    if isinstance(values, np.ndarray):
        return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    return np.fromiter(values, dtype=object)


def in_double_precision(X: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as float64, without a copy where they are; objects as they are."""
    return np.asarray(X, dtype=np.float64) if X.dtype.kind in "fiub" else X


def result_dtype(X: NDArray[Any]) -> type[np.floating[Any]]:
    """Return single precision for rows in single precision, double for all others."""
    return np.float32 if X.dtype == np.float32 else np.float64


def distinct_rows(X: NDArray[Any], sample_weight: NDArray[np.float64], *, limit: int, seed: int) -> DistinctRows:
    """Return at most `limit` distinct rows of positive weight, the same ones in the same order for any order of the rows.

    Each row is hashed, with the seed; the rows with the smallest hashes form the sample. A row that occurs twice counts
    once, with its weights added, so that weight 2 and the row twice lead to the same sample.
    """
    present = np.flatnonzero(sample_weight > 0)
    hashes = hash_rows(X, seed)[present]
    kept = present
    if len(present) > limit:
        below = hashes <= smallest_distinct(hashes, limit)[-1]
        hashes, kept = hashes[below], present[below]
    distinct, first, weight = _summed(hashes, sample_weight[kept])
    return DistinctRows(in_double_precision(X[kept[first]]), weight, distinct)


def merge_distinct_rows(one: DistinctRows, other: DistinctRows, *, limit: int) -> DistinctRows:
    """Return the sample of both sets of rows together.

    It is exact: a row with one of the `limit` smallest hashes of all is among those of each set that it occurs in.
    """
    hashes, weights = np.concatenate([one.hashes, other.hashes]), np.concatenate([one.weight, other.weight])
    distinct, first, weight = _summed(hashes, weights)
    rows = np.concatenate([one.rows, other.rows])[first[:limit]]
    return DistinctRows(rows, weight[:limit], distinct[:limit])


def _summed(hashes: NDArray[np.uint64], weights: NDArray[np.float64]) -> tuple[NDArray[np.uint64], NDArray[np.intp], NDArray[np.float64]]:
    """Return the different hashes in rising order, where each occurs first, and its summed weight."""
    distinct, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    return distinct, first, np.bincount(inverse, weights=weights, minlength=len(distinct)).astype(np.float64)


def smallest_distinct(hashes: NDArray[np.uint64], limit: int) -> NDArray[np.uint64]:
    """Return the `limit` smallest different hashes, or all if there are fewer, in rising order.

    Hashes are spread evenly, so that the smallest ones are found below a bound, without sorting them all.
    """
    share = 2 * limit / max(1, len(hashes))
    while share < 1:
        smallest = np.sort(hashes[hashes < np.uint64(share * 2.0**64)])
        distinct = smallest[np.diff(smallest, prepend=~smallest[:1]) != 0]
        if len(distinct) >= limit:
            return distinct[:limit]
        share *= 4
    return np.unique(hashes)[:limit]


def hash_rows(X: NDArray[Any], seed: int) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each row's content: equal rows have equal hashes, in any array, process or machine."""
    if X.dtype.kind in "fiub" and X.ndim == 2:
        coefficients = np.random.default_rng(seed).integers(2**63, size=X.shape[1] + 1, dtype=np.uint64)
        hashes = [_hash_vectors(X[block], coefficients) for block in row_blocks(len(X))]
        return np.concatenate(hashes) if hashes else np.empty(0, np.uint64)
    key = seed.to_bytes(8, "little")
    if X.dtype == object and X.ndim == 2 and all(type(cell) in (float, str) for cell in X.ravel().tolist()):
        return _hash_cells(X, seed, key)
    return np.array([_hash_object(row, key) for row in X], dtype=np.uint64)


def _hash_cells(X: NDArray[Any], seed: int, key: bytes) -> NDArray[np.uint64]:
    """Hash rows of numbers and texts: the numbers as those of vectors, the texts one by one."""
    are_texts = np.array([[type(cell) is str for cell in row] for row in X.tolist()], dtype=bool).reshape(X.shape)
    coefficients = np.random.default_rng([seed, 2]).integers(2**63, size=X.shape[1] + 1, dtype=np.uint64)
    hashes = _hash_vectors(np.where(are_texts, 0.0, X).astype(np.float64), coefficients)
    for column in np.flatnonzero(are_texts.any(axis=0)):
        texts = X[are_texts[:, column], column]
        digests = b"".join(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest() for text in texts)
        hashes[are_texts[:, column]] += np.frombuffer(digests, dtype="<u8") * (coefficients[column] | np.uint64(1))
    return mixed_bits(hashes)


def _hash_vectors(block: NDArray[Any], coefficients: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply a multilinear hash to the bit patterns, then the finalizer of SplitMix64."""
    values = np.ascontiguousarray(block, dtype=np.float64) + 0.0  # −0.0 and 0.0 are the same number
    if np.isnan(values.sum()):
        values[np.isnan(values)] = np.nan  # there are many, with different bits
    bits = values.view(np.uint64)
    # Short decimals and integers leave the low half of a double empty; fold the high half onto it.
    bits ^= bits >> np.uint64(32)
    return mixed_bits((bits * (coefficients[1:] | np.uint64(1))).sum(axis=1, dtype=np.uint64) + coefficients[0])


def mixed_bits(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply the finalizer of SplitMix64: each bit of the result depends on every bit of the state."""
    mixed = state
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


class _ContentHasher(NumpyHasher):
    """joblib's hash of an object, in which a class with an attribute `hashed_as` goes by that name.

    Drawn functions depend on the hashes of rows, so that these must not change when a class moves to another module.
    """

    dispatch = NumpyHasher.dispatch.copy()

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write the name of a class or function, which is all that the hash depends on."""
        hashed_as = vars(obj).get("hashed_as") if isinstance(obj, type) else None
        if hashed_as is None:
            super().save_global(obj, name)
        else:
            module, _, name = hashed_as.rpartition(".")
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
            self.memoize(obj)

    dispatch[type] = save_global


def _hash_object(row: Any, key: bytes) -> int:
    try:
        content = _ContentHasher("md5").hash(row).encode()
    except Exception as error:
        raise ValueError(
            f"Rows of type {type(row).__name__} cannot be told apart by their content ({error}). They must be objects that can be pickled."
        ) from error
    return int.from_bytes(hashlib.blake2b(content, digest_size=8, key=key).digest(), "little")


def hash_normals(hashes: NDArray[np.uint64], n_columns: int) -> NDArray[np.float64]:
    """Return standard normal numbers for each row, from its hash alone: the SplitMix64 sequence that starts there. [n, n_columns]"""
    steps = np.arange(1, n_columns + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits = mixed_bits(hashes[:, None] + steps)
    # The 53 bits of a double, in the middle of their intervals: neither 0 nor 1.
    normal: NDArray[np.float64] = ndtri(((bits >> np.uint64(11)) + 0.5) * 2.0**-53)
    return normal


def random_phases(X: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each row, pseudo-random by the row's content; rounding errors in the row hardly change it. [n]"""
    standard = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), np.finfo(float).tiny)
    return standard @ np.random.default_rng([seed, 1]).normal(scale=PHASES, size=X.shape[1]) % 1.0


def row_blocks(n_rows: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    """Yield consecutive slices of at most `size` rows."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def rows_in_cache(n_columns: int) -> int:
    """Return how many rows of so many numbers to work on at a time: half of one core's share of the cache, as a power of two."""
    share = _cache_of_one_core() // 2 // (8 * max(1, n_columns))
    if share == 0:
        return BLOCK_ROWS
    smallest, largest = BLOCK_LIMITS
    return int(min(max(2 ** (share.bit_length() - 1), smallest), largest))


@cache
def _cache_of_one_core() -> int:
    """Return the bytes of the largest cache, divided among the cores that share it; 0 where the system does not tell."""
    return max(map(_share, Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")), default=0)


def _share(folder: Path) -> int:
    """Return one core's share of a cache as Linux describes it: a size like 512K, and cores as bits of a number like 00000000,00000003."""
    try:
        size = int((folder / "size").read_text().strip().removesuffix("K")) * 1024
        sharing = int((folder / "shared_cpu_map").read_text().strip().replace(",", ""), 16).bit_count()
    except (OSError, ValueError):
        return 0
    return size // max(1, sharing)
