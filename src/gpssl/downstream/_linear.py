"""Bayesian linear regression: one head, or one for each of many draws at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._runtime.threads import one_blas_thread
from .._validation import check_draws

Array = NDArray[np.float64]

LOG_RATIO_RANGE = (-12.0, 12.0)
"""Range of log10 of the ratio of precisions λ, in units of the mean eigenvalue of the features."""

LOG_RATIO_WIDTH = 4.0
"""Standard deviation of the prior on log10 of the ratio."""

NOISE_FLOOR = 1e-10
"""Fraction of the targets' variance that is always taken for noise: keeps the evidence finite where the fit is perfect."""


@dataclass(frozen=True)
class LinearHeads:
    """One head for each of S draws: y = b + wᵀz + noise, with a Gaussian posterior for b and w."""

    center: Array
    """Mean of the features. [S, J]"""
    intercept: float
    """Mean of the targets."""
    coefficients: Array
    """Posterior mean of w. [S, J]"""
    covariance: Array
    """Posterior covariance of w. [S, J, J]"""
    intercept_variance: Array
    """Posterior variance of the value at the center. [S]"""
    noise_variance: Array
    """1/β. [S]"""
    prior_precision: Array
    """α. [S]"""
    log_evidence: Array | None = None
    """log p(y | features) at the chosen ratio of precisions, but for a constant that depends on the targets alone; None for heads of files
    from before it was stored. [S]"""

    def predict_normal(self, Z: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of y at each draw's features, Z [S, n, J]. [S, n] each

        mean = b + wᵀ(z − z̄),   variance = noise + Var b + (z − z̄)ᵀ Cov(w) (z − z̄)
        """
        centered = Z - self.center[:, None, :]
        mean = self.intercept + (centered @ self.coefficients[:, :, None])[:, :, 0]
        of_weights = ((centered @ self.covariance) * centered).sum(axis=2)
        return mean, np.sqrt((self.noise_variance + self.intercept_variance)[:, None] + np.maximum(of_weights, 0.0))


class BayesianLinearRegression(RegressorMixin, BaseEstimator):
    """Linear regression with a Gaussian prior on the weights; prior precision and noise maximize the evidence.

    y = b + wᵀx + N(0, 1/β),  w ~ N(0, I/α),  b with a flat prior. With λ = α/β and centered X and y of total weight n,

        log p(y | λ) = −½ log|I + XXᵀ/λ| − ½(n − 1) log R(λ) + constant,   R = yᵀ(I + XXᵀ/λ)⁻¹y

    is maximized over λ by a singular value decomposition, a grid and golden sections, with a prior on log λ four decades wide for rows that
    tell nothing about it. 1/β is its posterior mean for the prior β⁻¹, which is R / (n − 3): with few rows the noise may well be larger
    than it looks. (With three rows or fewer that mean is infinite, and R stands for it.)

    As a head of `MarginalizedRegressor` it is trained for all draws at once. scikit-learn's `BayesianRidge` looks for the same maximum by
    fixed-point iterations, from one start, and takes the likeliest noise.

    Attributes
    ----------
    coef_, intercept_
        Posterior mean of the weights. [J] and a number
    prior_precision_, noise_variance_
        α and 1/β.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gpssl.downstream import BayesianLinearRegression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> mean, std = BayesianLinearRegression().fit(X[::2], y[::2]).predict_normal(X[1::2])
    >>> bool(abs((y[1::2] - mean) / std).mean() < 1)
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BayesianLinearRegression:
        """Learn from rows and their targets. Weight 2 is the row twice."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        with one_blas_thread():
            self.heads_ = self.fit_draws(X[None], y, sample_weight)
        self.coef_ = self.heads_.coefficients[0]
        self.intercept_ = self.heads_.intercept - float(self.heads_.center[0] @ self.coef_)
        self.prior_precision_ = float(self.heads_.prior_precision[0])
        self.noise_variance_ = float(self.heads_.noise_variance[0])
        return self

    def fit_draws(self, Z: Array, y: Any, sample_weight: Any = None) -> LinearHeads:
        """Train one head for each of S sets of features of the same rows, Z [S, n, J]; this estimator stays as it is."""
        Z, weight = check_draws(Z, y, sample_weight)
        y, total = np.asarray(y, dtype=np.float64), weight.sum()
        if total <= 1:
            raise ValueError("n_samples=1: a single target tells nothing about the noise around it. Give at least two rows a target.")
        intercept = float(weight @ y / total)
        scale = float(np.sqrt(weight @ (y - intercept) ** 2 / total)) or abs(intercept) or 1.0
        center = weight @ Z / total
        eye = np.eye(Z.shape[2])
        centered = Z - center[:, None, :]
        target = (y - intercept) / scale
        root = np.sqrt(weight)
        left, singular, right = np.linalg.svd(centered * root[:, None], full_matrices=False)
        projections = (left.swapaxes(1, 2) @ (root * target)[:, None])[:, :, 0]
        unexplained = root * target - (left @ projections[:, :, None])[:, :, 0]
        problem = _Evidence(singular**2, projections, (unexplained**2).sum(axis=1), max(total - 1, 1.0), min(Z.shape[2], total))
        ratio = problem.best_ratio()
        noise = scale**2 * problem.misfit(ratio) / max(total - 3, 1.0)
        shrunk = 1 / (problem.eigenvalues + ratio[:, None])
        return LinearHeads(
            center=center,
            intercept=intercept,
            coefficients=scale * ((shrunk * singular * projections)[:, None, :] @ right)[:, 0],
            covariance=noise[:, None, None]
            * ((right.swapaxes(1, 2) * (shrunk - 1 / ratio[:, None])[:, None, :]) @ right + eye / ratio[:, None, None]),
            intercept_variance=noise / total,
            noise_variance=noise,
            prior_precision=ratio / noise,
            log_evidence=problem.log_evidence(ratio),
        )

    def predict(self, X: Any) -> Array:
        """Return the mean of the target. [n]"""
        return self.predict_normal(X)[0]

    def predict_normal(self, X: Any) -> tuple[Array, Array]:
        """Return mean and standard deviation of the target, noise included. [n] each"""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)[None]
        with one_blas_thread():
            mean, std = self.heads_.predict_normal(rows)
        return mean[0], std[0]


@dataclass(frozen=True)
class _Evidence:
    """The evidence log p(y | λ) of S regressions, from X = U diag(√e) Vᵀ; targets have unit variance."""

    eigenvalues: Array
    """e, the eigenvalues of XᵀX. [S, J or n]"""
    projections: Array
    """Uᵀy. [S, J or n]"""
    unexplained: Array
    """|y − UUᵀy|². [S]"""
    degrees: float
    """Degrees of freedom, n − 1."""
    n_directions: float
    """How many eigenvalues can differ from zero, J or n, where weight 2 is the row twice."""

    def misfit(self, ratio: Array) -> Array:
        """Return R(λ) = |y − UUᵀy|² + Σ (Uᵀy)² λ / (e + λ) plus the noise floor. No digits are lost: all terms are positive. [S]"""
        left = ratio[:, None] / (self.eigenvalues + ratio[:, None])
        return self.unexplained + (self.projections**2 * left).sum(axis=1) + NOISE_FLOOR * (self.degrees + 1)

    def value(self, log_ratio: Array) -> Array:
        """Return −½ Σ log(1 + e/λ) − ½(n − 1) log R(λ) plus the log prior. [S]"""
        ratio = self.unit * 10**log_ratio
        volume = np.log1p(self.eigenvalues / ratio[:, None]).sum(axis=1)
        return -0.5 * volume - 0.5 * self.degrees * np.log(self.misfit(ratio)) - 0.5 * (log_ratio / LOG_RATIO_WIDTH) ** 2

    def log_evidence(self, ratio: Array) -> Array:
        """Return `value` at the ratio λ, the noise integrated out. [S]"""
        return self.value(np.log10(ratio / self.unit))

    @property
    def unit(self) -> Array:
        """The unit of λ: the mean eigenvalue. [S]"""
        mean = self.eigenvalues.sum(axis=1) / self.n_directions
        return np.where(mean > 0, mean, 1.0)

    def best_ratio(self) -> Array:
        """Return the λ with the largest value. [S]"""
        grid = np.linspace(*LOG_RATIO_RANGE, 49)
        values = np.array([self.value(np.full(len(self.unexplained), point)) for point in grid])
        best = np.clip(values.argmax(axis=0), 1, len(grid) - 2)
        low, high = grid[best - 1], grid[best + 1]
        golden = (np.sqrt(5) - 1) / 2
        for _ in range(40):
            left, right = high - golden * (high - low), low + golden * (high - low)
            rises = self.value(left) < self.value(right)
            low, high = np.where(rises, left, low), np.where(rises, high, right)
        return self.unit * 10 ** ((low + high) / 2)
