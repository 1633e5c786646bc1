"""The objective by brute force, as the paper writes it: joint samples of the representations at all rows.

Nothing here is taken from the library under test, so that it judges both solutions alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

VARIANCE_WEIGHT, COVARIANCE_WEIGHT, TARGET, EPSILON = 50.0, 10.0, 1.0, 1e-7
SAMPLES_AT_A_TIME = 256


class Solution(NamedTuple):
    """q(U) = Π_j N(L m_j, L R_j R_jᵀ Lᵀ) with Kuu + jitter·I = L Lᵀ: normal, and whitened."""

    seconds: float
    """What it took to find it."""
    lengthscale: Array
    """[D]"""
    points: Array
    """U. [M, D]"""
    jitter: float
    mean: Array
    """m. [J, M]"""
    root: Array
    """R. [J, M, M]"""


class Estimate(NamedTuple):
    """A mean of samples and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.4f} ± {self.error:.4f}"


def objective(X: Array, solution: Solution, n_samples: int, seed: int = 0) -> Estimate:
    """Estimate E[c_V ℓ_var + c_C ℓ_cov] + KL(q ‖ p) / N, the expectation over joint samples at all rows of X."""
    rng = np.random.default_rng(seed)
    features, residual_root = _features(X, solution)
    batches = [_losses(_sample(features, residual_root, solution, rng)) for _ in range(n_samples // SAMPLES_AT_A_TIME)]
    losses = np.concatenate(batches)
    return Estimate(float(losses.mean()) + _divergence(solution) / len(X), float(losses.std() / np.sqrt(len(losses))))


def _features(X: Array, solution: Solution) -> tuple[Array, Array]:
    """Compute A = Kxu L⁻ᵀ [N, M] and a root of Kxx − A Aᵀ [N, N], so that f(X) = A v + e."""
    rows, points = X / solution.lengthscale, solution.points / solution.lengthscale
    factor = np.linalg.cholesky(_rbf(points, points) + solution.jitter * np.eye(len(points)))
    features = np.linalg.solve(factor, _rbf(points, rows)).T
    eigenvalues, vectors = np.linalg.eigh(_rbf(rows, rows) - features @ features.T)
    return features, vectors * np.sqrt(np.maximum(eigenvalues, 0.0))


def _rbf(X: Array, Y: Array) -> Array:
    values: Array = np.exp(-0.5 * ((X[:, None] - Y) ** 2).sum(axis=-1))
    return values


def _sample(features: Array, residual_root: Array, solution: Solution, rng: np.random.Generator) -> Array:
    """Draw Z ~ q(U) p(Z | U), an array [S, N, J]."""
    n_components, n_points = solution.mean.shape
    noise = rng.standard_normal((n_components, n_points, SAMPLES_AT_A_TIME))
    residual_noise = rng.standard_normal((n_components, len(features), SAMPLES_AT_A_TIME))
    v = solution.mean[:, :, None] + solution.root @ noise
    return (features @ v + residual_root @ residual_noise).transpose(2, 1, 0)


def _losses(Z: Array) -> Array:
    """Compute c_V ℓ_var + c_C ℓ_cov of each sample, an array [S]."""
    centered = Z - Z.mean(axis=1, keepdims=True)
    covariance = centered.swapaxes(1, 2) @ centered / (Z.shape[1] - 1)
    variances = np.diagonal(covariance, axis1=1, axis2=2)
    hinge: Array = np.maximum(0.0, TARGET - np.sqrt(variances + EPSILON)).mean(axis=1)
    off_diagonal: Array = ((covariance**2).sum(axis=(1, 2)) - (variances**2).sum(axis=1)) / Z.shape[2]
    return VARIANCE_WEIGHT * hinge + COVARIANCE_WEIGHT * off_diagonal


def _divergence(solution: Solution) -> float:
    """Compute KL(q ‖ p) = ½ Σ_j (tr R_j R_jᵀ + |m_j|² − M − log det R_j R_jᵀ)."""
    _, log_determinants = np.linalg.slogdet(solution.root)
    squares = (solution.root**2).sum() + (solution.mean**2).sum()
    return 0.5 * float(squares - solution.mean.size - 2 * log_determinants.sum())
