"""Gaussian process draws on a grid of spots."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def grid_coordinates(shape: tuple[int, int]) -> Array:
    """Where the spots of a grid are, row by row: x to the right, y down. [rows · columns, 2]

    Spots are the centers of squares whose side is one over the longer side of the grid, so that the grid lies in the unit square.
    """
    rows, columns = np.indices(shape).reshape(2, -1)
    return (np.column_stack([columns, rows]) + 0.5) / max(shape)


def grid_traces(n_traces: int, shape: tuple[int, int], lengthscale: float, rng: np.random.Generator) -> Array:
    """Independent draws of a Gaussian process at the spots of a grid. [T, rows · columns]

        k(s, s′) = exp(−‖s − s′‖² / 2ℓ²) = k_y(y, y′) k_x(x, x′)      K = K_y ⊗ K_x      f = vec(R_y E R_xᵀ)

    with R Rᵀ the covariance along one axis and E standard normal: exact, and no matrix is larger than the grid.
    """
    noise = rng.standard_normal((n_traces, *shape))
    root_y, root_x = (_axis_root(n_spots, 1 / max(shape), lengthscale) for n_spots in shape)
    return (root_y @ noise @ root_x.T).reshape(n_traces, -1)


def _axis_root(n_spots: int, spacing: float, lengthscale: float) -> Array:
    """The symmetric square root of exp(−(i − j)² δ² / 2ℓ²). [n, n]

    Eigenvalues that rounding makes negative are zero: a smooth kernel on a fine grid has no Cholesky factor without jitter.
    """
    steps = np.arange(n_spots) * spacing / lengthscale
    values, vectors = np.linalg.eigh(np.exp(-((steps[:, None] - steps) ** 2) / 2))
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
