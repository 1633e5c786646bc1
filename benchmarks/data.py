"""The table that the large comparisons share: five latent factors behind every column, and noise."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpssl.kernels import NeighborRBF

from .measurement import in_fresh_process

Array = NDArray[np.float64]

N_FACTORS = 5
NOISE = 0.5
ROWS_AT_A_TIME = 2000
SAMPLE_ROWS = 2000
WARM_UP_ROWS = 300
"""Rows of the tiny fit before the clock starts."""


def latent_table(n_rows: int, n_columns: int = 30, seed: int = 0, dtype: DTypeLike = np.float64) -> Array:
    """Generate factors @ loadings + noise, all standard normal, as an array [n_rows, n_columns].

    It is written block by block, so that generating it leaves no memory peak above its own size, in single precision either.
    """
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((N_FACTORS, n_columns))
    X = np.empty((n_rows, n_columns), dtype=dtype)
    for start in range(0, n_rows, ROWS_AT_A_TIME):
        block = X[start : start + ROWS_AT_A_TIME]
        block[...] = _latent_rows(len(block), loadings, rng)
    return X


def latent_block(n_rows: int, block: int, n_columns: int = 30, seed: int = 0) -> Array:
    """Generate one block of a table of the same kind that is too large to hold: each block has a generator of its own."""
    loadings = np.random.default_rng(seed).standard_normal((N_FACTORS, n_columns))
    return _latent_rows(n_rows, loadings, np.random.default_rng([seed, 1 + block]))


def _latent_rows(n_rows: int, loadings: Array, rng: np.random.Generator) -> Array:
    return rng.standard_normal((n_rows, N_FACTORS)) @ loadings + NOISE * rng.standard_normal((n_rows, loadings.shape[1]))


@cache
def shared_lengthscale(n_columns: int = 30) -> float:
    """Find one lengthscale for the table, once and on a sample, to give to everything that is compared."""
    return in_fresh_process(f"lengthscale for {n_columns} columns", partial(neighbor_lengthscale, n_columns))


def neighbor_lengthscale(n_columns: int) -> float:
    """Apply the paper's rule to a sample of the table."""
    kernel = NeighborRBF(per_column=False).resolve(latent_table(SAMPLE_ROWS, n_columns))
    return float(kernel.length_scale)


def gamma(lengthscale: float) -> float:
    """Give the lengthscale scikit-learn's other name: exp(−γ|x − y|²) = exp(−|x − y|² / 2l²)."""
    return 1 / (2 * lengthscale**2)


@contextmanager
def residual_accepted() -> Iterator[None]:
    """Silence the warning that the inducing points leave more open than the tolerance.

    Their number is part of the comparison, or GPSSL's own limit; what they leave open is written with the results.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*inducing points leave.*", category=UserWarning)
        yield
