"""The posterior over representation functions: mean and standard deviation, from a distribution over the weights v of the directions.

That distribution is normal, a single point, or draws. Each kind answers the questions of `Weights`, and `Posterior` need not know which.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._runtime.threads import map_on_threads, one_blas_thread
from ..data._arrays import BLOCK_ROWS, result_dtype, row_blocks, rows_in_cache
from ..kernels._protocol import kernel_diagonal
from ._draws import FunctionDraws
from ._features import Features
from ._objective import Objective, kl_divergence, normal_draws

Array = NDArray[np.float64]

SCORE_DRAWS = 1024
FEWEST_BLOCKS = 16
"""Blocks that rows are cut into, where these are not too small."""


class Weights(Protocol):
    """A distribution over v [J, r], along the leading r directions; the prior holds along the others."""

    @property
    def mean(self) -> Array:
        """E[v]. [J, r]"""
        ...

    def variance_along(self, projections: Array) -> Array:
        """Return Var(bᵀ v_j) for each row b of the projections [n, r]. [n, J]"""
        ...

    def second_moment(self) -> Array:
        """Return (1/J) Σ_j E v_ja² for each direction. [r]"""
        ...

    def draw(self, n_draws: int, rng: np.random.Generator) -> Array:
        """Draw v independently so many times. [S, J, r]"""
        ...

    def expected_loss(self, covariance: Array, residual: float, objective: Objective) -> float:
        """Return E[ℓ(C)] for rows whose projections have this covariance A [M, M], the tail at the prior: C = V A Vᵀ + ρ I."""
        ...

    def divergence(self) -> float:
        """Return the divergence from the prior, which the objective multiplies by the temperature."""
        ...


@dataclass(frozen=True)
class Posterior:
    """f_j(x) = Σ_{a≤r} b_a(x) v_ja + (the prior along the other directions) + e_j(x),      b(x) = Qᵀ a(x).

    Away from the data b vanishes and f returns to the prior.
    """

    features: Features
    basis: Array
    """Q, the learned directions. [M, r]"""
    weights: Weights

    def mean(self, X: NDArray[Any]) -> Array:
        """Return E f_j(x) = Σ_a b_a(x) E v_ja. [n, J]"""
        with one_blas_thread():
            directions = self.basis @ self.weights.mean.T
        return self.features.project(X, directions)

    def std(self, X: NDArray[Any]) -> Array:
        """Return sqrt(k(x, x) − Σ_a b_a(x)² + Var(Σ_a b_a(x) v_ja)). [n, J]"""
        std = np.empty((len(X), len(self.weights.mean)), dtype=result_dtype(X))
        self._fill(X, std)
        return std

    def mean_and_std(self, X: NDArray[Any]) -> Array:
        """Return `mean` and `std` from one evaluation of the kernel. [2, n, J]"""
        both = np.empty((2, len(X), len(self.weights.mean)), dtype=result_dtype(X))
        self._fill(X, both[1], both[0])
        return both

    def mean_and_stds(self, X: NDArray[Any], center: Array) -> Array:
        """Return `mean`, `std`, and the standard deviation of f_j(x) − āᵀv_j, from one evaluation of the kernel. [3, n, J]

        ā, the center, is the mean of a(x) over some rows [M], so that āᵀv_j is the mean of f_j over these rows, but for what the features
        leave open there, which nearly cancels in the mean. A shift that all rows share is thus left out:

            Var(f_j(x) − āᵀv_j) = k(x, x) − 2 aᵀā + |ā|² − |b − b̄|² + Var((b − b̄)ᵀ v_j),      b̄ = Qᵀ ā
        """
        found = np.empty((3, len(X), len(self.weights.mean)), dtype=result_dtype(X))
        self._fill(X, found[1], found[0], _Centered(found[2], center))
        return found

    def _fill(self, X: NDArray[Any], std: Array, mean: Array | None = None, centered: _Centered | None = None) -> None:
        """Fill in the standard deviation, and the mean where it is asked for, block by block on threads."""
        with one_blas_thread():
            directions, weights = self.features.unwhiten(self.basis), self.features.unwhiten(self.basis @ self.weights.mean.T)
        center = np.zeros(self.features.n_points) if centered is None else self.features.unwhiten(centered.center[:, None])[:, 0]
        self.features.columns(X[:1])  # builds what the threads share

        def std_along(prior: Array, projections: Array) -> Array:
            open_variance = prior - np.einsum("nr,nr->n", projections, projections)
            return np.sqrt(np.maximum(open_variance, 0.0)[:, None] + self.weights.variance_along(projections))

        def fill(block: slice) -> None:
            columns = self.features.columns(X[block])
            if mean is not None:
                mean[block] = columns @ weights
            projections, prior = columns @ directions, kernel_diagonal(self.features.kernel, X[block])
            std[block] = std_along(prior, projections)
            if centered is not None:
                without = prior - 2 * (columns @ center) + centered.center @ centered.center
                centered.std[block] = std_along(without, projections - self.basis.T @ centered.center)

        # Blocks suit the cache, and are enough to keep all threads busy.
        size = min(rows_in_cache(self.features.n_points), len(X) // FEWEST_BLOCKS)
        map_on_threads(fill, list(row_blocks(len(X), max(BLOCK_ROWS, size))))

    @classmethod
    def of_prior(cls, features: Features, n_components: int) -> Posterior:
        """Return the prior: a posterior without learned directions."""
        nothing = np.empty((n_components, 0))
        return cls(features, np.empty((features.n_points, 0)), GaussianWeights(nothing, nothing))

    def full_basis(self) -> Array:
        """Return the learned directions, completed to an orthonormal basis by directions along which the prior holds. [M, M]"""
        n_points, rank = self.basis.shape
        if rank == 0:
            return np.eye(n_points)
        with one_blas_thread():
            completed, _ = np.linalg.qr(self.basis, mode="complete")
        return np.concatenate([self.basis, completed[:, rank:]], axis=1)

    def kernel_weights(self, basis: Array) -> Array:
        """Return g along an orthonormal basis that begins with the learned directions: the weights of the posterior kernel. [M]

        E[(1/J) Σ_j f_j(x) f_j(y)] = Σ_a g_a b_a(x) b_a(y) + (what the inducing points leave open),      b(x) = Qᵀ a(x)
        g_a = (1/J) Σ_j E v_ja², and 1 along the other directions.

        It lies between the prior's kernel (τ → ∞, g = 1) and that of the first J kernel principal components (τ → 0). These are whitened,
        g_a = γ² / (J λ_a), up to a factor 1 + O(λ_a / γ²): the hinge lets q stay wide above its target γ.
        """
        weights = np.ones(basis.shape[1])
        weights[: self.basis.shape[1]] = self.weights.second_moment()
        return weights

    def kernel_features(self, X: NDArray[Any]) -> Array:
        """Return φ(x) = sqrt(g) ∘ b(x), with φ(x)ᵀφ(y) the posterior kernel. [n, M]"""
        basis = self.full_basis()
        return self.features.project(X, basis * np.sqrt(self.kernel_weights(basis)))

    def draw_functions(self, n_draws: int, seed: int) -> FunctionDraws:
        """Draw functions from the posterior, which can be evaluated at any rows."""
        rng = np.random.default_rng(seed)
        learned = self.weights.draw(n_draws, rng)
        n_components = learned.shape[1]
        prior = rng.standard_normal((self.features.n_points, n_draws * n_components))
        with one_blas_thread():
            change = learned.reshape(n_draws * n_components, -1).T - self.basis.T @ prior
            directions = prior + self.basis @ change
        return FunctionDraws(self.features, directions, n_components, seed)


class _Centered(NamedTuple):
    """What the standard deviation around the mean over rows is filled into, and that mean of the features."""

    std: Array
    """[n, J]"""
    center: Array
    """ā. [M]"""


@dataclass(frozen=True)
class GaussianWeights:
    """Independent normal weights: the variational family."""

    mean: Array
    std: Array

    def variance_along(self, projections: Array) -> Array:
        """Return Σ_a b_a² s_ja²."""
        return projections**2 @ (self.std**2).T

    def second_moment(self) -> Array:
        """Return (1/J) Σ_j (m_ja² + s_ja²)."""
        return (self.mean**2 + self.std**2).mean(axis=0)

    def draw(self, n_draws: int, rng: np.random.Generator) -> Array:
        """Return m + s η."""
        return self.mean + self.std * rng.standard_normal((n_draws, *self.mean.shape))

    def expected_loss(self, covariance: Array, residual: float, objective: Objective) -> float:
        """Return the expectation: of the covariance loss and the negative variance in closed form, of the hinge by quasi-random draws."""
        mean = _pad(self.mean, len(covariance), 0.0)
        std = _pad(self.std, len(covariance), 1.0)
        off_diagonal = _expected_squared_covariances(mean, std, covariance)
        np.fill_diagonal(off_diagonal, 0.0)
        of_draws = _expected_variances if objective.variance_loss == "negative" else _drawn_variances
        variances = of_draws(mean, std, covariance) + residual
        spread = objective.spread_loss(variances[..., None] * np.eye(len(mean)))
        return float(objective.variance_weight * spread.mean() + objective.covariance_weight * off_diagonal.sum() / len(mean))

    def divergence(self) -> float:
        """Return KL(q ‖ p)."""
        return kl_divergence(self.mean, self.std).value


def warn_if_mean_is_zero(posterior: Posterior, stacklevel: int) -> None:
    """Warn where functions differ and their mean is zero at all rows. At a mode of zero they do not differ, and no draw is of use."""
    if isinstance(posterior.weights, GaussianWeights) and not posterior.weights.mean.any():
        warnings.warn(
            "The posterior mean is zero at this temperature, so that the mean representation says nothing about the rows: "
            "lower the temperature, or use draws.",
            UserWarning,
            stacklevel=stacklevel,
        )


@dataclass(frozen=True)
class PointWeights:
    """All mass on one value: the posterior mode. What the features leave open stays random."""

    mean: Array

    def variance_along(self, projections: Array) -> Array:
        """Return zero."""
        return np.zeros((len(projections), len(self.mean)))

    def second_moment(self) -> Array:
        """Return the squares at the mode, averaged over dimensions."""
        return (self.mean**2).mean(axis=0)

    def draw(self, n_draws: int, rng: np.random.Generator) -> Array:
        """Return the mode for every draw."""
        return np.tile(self.mean, (n_draws, 1, 1))

    def expected_loss(self, covariance: Array, residual: float, objective: Objective) -> float:
        """Return the loss at the mode."""
        return GaussianWeights(self.mean, np.zeros_like(self.mean)).expected_loss(covariance, residual, objective)

    def divergence(self) -> float:
        """Return ½|v|², the negative log density of the prior without its constant."""
        return 0.5 * float((self.mean**2).sum())


@dataclass(frozen=True)
class DrawnWeights:
    """Weights known through draws: the sampled posterior."""

    draws: Array
    """[S, J, r]"""

    @property
    def mean(self) -> Array:
        """The average of the draws."""
        return self.draws.mean(axis=0)

    def variance_along(self, projections: Array) -> Array:
        """Return the variance of the draws along each row."""
        deviations = self.draws - self.mean
        return np.stack([((projections @ deviations[:, j].T) ** 2).mean(axis=1) for j in range(deviations.shape[1])], 1)

    def second_moment(self) -> Array:
        """Return the mean square of the draws, averaged over dimensions."""
        return (self.draws**2).mean(axis=(0, 1))

    def draw(self, n_draws: int, rng: np.random.Generator) -> Array:
        """Choose stored draws at random; none twice while there are enough."""
        n_stored = len(self.draws)
        if n_draws <= n_stored:
            return self.draws[rng.permutation(n_stored)[:n_draws]]
        return self.draws[rng.integers(n_stored, size=n_draws)]

    def expected_loss(self, covariance: Array, residual: float, objective: Objective) -> float:
        """Return the loss averaged over the draws, with a draw from the prior along the tail."""
        n_draws, n_components, rank = self.draws.shape
        tail = np.random.default_rng(0).standard_normal((n_draws, n_components, len(covariance) - rank))
        weights = np.concatenate([self.draws, tail], axis=-1)
        represented = weights @ covariance @ weights.swapaxes(-2, -1) + residual * np.eye(n_components)
        return float(objective.loss(represented).mean())

    def divergence(self) -> float:
        """Return zero: the divergence of the exact posterior needs its unknown normalizing constant."""
        return 0.0


def _pad(values: Array, n_directions: int, fill: float) -> Array:
    """Return the values along the learned directions, followed by the prior's along the tail."""
    tail = np.full((len(values), n_directions - values.shape[1]), fill)
    return np.concatenate([values, tail], axis=1)


def _drawn_variances(mean: Array, std: Array, covariance: Array) -> Array:
    """Return v_jᵀ A v_j for quasi-random draws of v. [S, J]"""
    draws = normal_draws(SCORE_DRAWS, len(covariance), seed=0)
    weights = mean[:, None] + std[:, None] * draws
    return np.einsum("jsa,jsa->sj", weights @ covariance, weights)


def _expected_variances(mean: Array, std: Array, covariance: Array) -> Array:
    """Return E[v_jᵀ A v_j] = m_jᵀ A m_j + Σ_a s_ja² A_aa, which is all that a linear loss needs. [1, J]"""
    return (((mean @ covariance) * mean).sum(axis=1) + std**2 @ covariance.diagonal())[None]


def _expected_squared_covariances(mean: Array, std: Array, covariance: Array) -> Array:
    """Return E[(v_jᵀ A v_k)²] for j ≠ k and any A. [J, J]

    (m_jᵀ A m_k)² + m_jᵀ A S_k A m_j + m_kᵀ A S_j A m_k + tr(S_j A S_k A),      S = diag(s²)
    """
    images = mean @ covariance
    cross = images**2 @ (std**2).T
    return (images @ mean.T) ** 2 + cross + cross.T + (std**2 @ covariance**2) @ (std**2).T
