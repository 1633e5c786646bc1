"""Multinomial logistic regression by Laplace's approximation, for many sets of features at once."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from .._runtime.threads import map_on_threads
from ..data._arrays import row_blocks

Array = NDArray[np.float64]

INTERCEPT_PRECISION = 1e-2
"""Prior precision of the intercepts: wide, and enough to keep them finite where all labels are alike."""

PRECISION_RANGE = (1e-4, 1e4)
"""Range in which the evidence may put the prior precision of the weights, in units of the features' mean variance."""

EVIDENCE_TOLERANCE = 1e-3
"""Relative change of the prior precision at which it has settled: the evidence is flat around its maximum."""

LARGEST_SHIFT = 3.0
"""Largest step from the mode to the mean, in posterior standard deviations of the weight that moves most. Where the next order of the
expansion is that large (hardly any labels, a very wide prior), it is not to be trusted further."""

HYPERPRIOR_PRECISION, HYPERPRIOR_COUNT = 0.3, 2.0
"""The prior of α is exponential with mean 0.3, in units of the features' mean variance: as if two weights of this precision had been seen.
With one label or two per class the evidence alone, in MacKay's form, shrinks all probabilities to equality."""

START = 0.1
"""Fraction of the linear discriminant at which Newton's method begins."""

LONGEST_STEP, FLATTEST_SLOPE = 3.0, 0.1
"""Bounds on a step of the search for the logarithm of the prior precision, and on the slope that it divides by."""

HARDLY_DEFINITE = 2e-8
"""What is added to a covariance that cannot be factorized, relative to its largest variance."""

BLOCK_NUMBERS = 2**22
"""Numbers in the largest array of a block of draws: 32 MB."""

WORTH_A_THREAD = 2**17
"""Numbers in the largest array above which a second thread gains more than it costs to start."""


def blocks_of_draws(n_draws: int, numbers_per_draw: int) -> list[slice]:
    """Divide the draws into blocks: one where they are small, two for two threads, or more to stay within memory."""
    size = n_draws if n_draws * numbers_per_draw < WORTH_A_THREAD else -(-n_draws // 2)
    return list(row_blocks(n_draws, max(1, min(size, BLOCK_NUMBERS // max(numbers_per_draw, 1)))))


@dataclass(frozen=True)
class OneHotLabels:
    """What all draws share: the labels of the rows as indicators of their classes, and the weights of the rows."""

    one_hot: Array
    """One in the class of each row, zero elsewhere. [K, n]"""
    weight: Array
    """Weights of the rows. [n]"""
    contrasts: Array
    """H, orthonormal columns that span the directions in which K logits can differ. [K, K − 1]"""

    @classmethod
    def of(cls, codes: NDArray[np.intp], n_classes: int, weight: Array) -> OneHotLabels:
        """Return the indicators of classes that are given by numbers 0, …, K − 1."""
        return cls(np.eye(n_classes)[:, codes], weight, np.ascontiguousarray(helmert(n_classes).T))


@dataclass(frozen=True)
class Laplace:
    """N(v; mean, Λ⁻¹) for each of S draws: the weights v [K − 1, J + 1] of the contrasts for centered features, the intercept last.

    Adding the same number to all logits changes no probability, so that W = H v with W [K, J + 1] loses nothing: a prior N(0, I / α) on W
    is the prior N(0, I / α) on v.

    The posterior of a logistic regression leans away from zero, so that its mean lies beyond its mode. Laplace's approximation, centered
    at the mode, is too timid; the mean is used, to the next order in 1/n (see `_Newton`).
    """

    center: Array
    """Mean of the features, which the intercepts belong to. [S, J]"""
    mode: Array
    """Mode of v. [S, K − 1, J + 1]"""
    mean: Array
    """Mean of v. [S, K − 1, J + 1]"""
    covariance: Array
    """Λ⁻¹, Λ being the Hessian of the negative log posterior at the mode. [S, (K − 1)(J + 1), (K − 1)(J + 1)]"""
    precision: Array
    """α. [S]"""
    log_evidence: Array
    """Laplace's approximation of log p(y | α). [S]"""
    n_iterations: NDArray[np.intp]
    """Newton steps. [S]"""
    converged: NDArray[np.bool_]
    """Whether the steps have converged. [S]"""


def fit_laplace(Z: Array, labels: OneHotLabels, precision: float | None, *, max_iterations: int, tolerance: float) -> Laplace:
    """Fit the approximation to each of S sets of features, Z [S, n, J]; without a precision, find one from the evidence."""
    n_draws, n_rows, n_features = Z.shape
    n_weights = labels.contrasts.shape[1] * (n_features + 1)
    blocks = blocks_of_draws(n_draws, max(n_weights**2, n_rows * n_weights))

    def fit(block: slice) -> Laplace:
        return _Newton(Z[block], labels, precision).run(max_iterations, tolerance)

    parts = map_on_threads(fit, blocks)
    return Laplace(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Laplace)))


class _Newton:
    """Newton's method on  ℓ(v) = −Σ_n w_n log softmax(H v x_n)_{y_n} + ½ Σ a v²,  with a = α, and `INTERCEPT_PRECISION` for intercepts.

    gradient   Σ_n w_n Hᵀ(p_n − y_n) x_nᵀ + a v
    Hessian    Σ_n w_n Hᵀ(diag p_n − p_n p_nᵀ)H ⊗ x_n x_nᵀ + diag a
    evidence   log p(y | α) ≈ −ℓ(v) + ½ Σ log a − ½ log |Λ|
    precision  α = (γ + c) / (Σ v² + c/α₀),  γ = Σ (1 − α (Λ⁻¹)_ii),  sums over the weights
    mean       v − ½ Λ⁻¹ t,  t = Σ_n w_n Hᵀc_n x_nᵀ,  c_k = p_k (q_k − Σ_l p_l q_l),  q_k = (e_k − p)ᵀ S_n (e_k − p)

    The precision is the maximum of evidence times hyperprior (α₀, c: `HYPERPRIOR_PRECISION` and `_COUNT`) as far as the curvature of the
    likelihood does not change with α (MacKay, 1992). It is solved along with the steps. In the mean, S_n [K, K] is the covariance of the
    logits at row n; t is the third derivative of ℓ contracted with Λ⁻¹ (Tierney and Kadane, 1986). Rows are the last axis of arrays where
    possible: the innermost loops are then long.
    """

    def __init__(self, Z: Array, labels: OneHotLabels, precision: float | None) -> None:
        n_draws, n_rows, n_features = Z.shape
        self.labels = labels
        self.center = labels.weight @ Z / labels.weight.sum()
        self.X = np.ones((n_draws, n_features + 1, n_rows))
        self.X[:, :-1] = Z.swapaxes(1, 2) - self.center[:, :, None]
        products = self.X[:, :, None] * self.X[:, None, :]
        self.products = products.reshape(n_draws, -1, n_rows).swapaxes(1, 2)
        # The largest array, and the costliest to allocate anew for every step.
        self.workspace = np.empty((n_draws, labels.contrasts.shape[1], n_features + 1, n_rows))
        self.by_evidence = precision is None
        variance = (labels.weight @ (self.X[:, :-1] ** 2).mean(axis=1).T) / labels.weight.sum()
        # Features that do not vary have no unit, and weights that no row feels may have any precision.
        self.unit = np.where(variance > 0, np.maximum(variance, np.finfo(float).tiny ** 0.5), 1.0)
        self.alpha = self.unit.copy() if precision is None else np.full(n_draws, float(precision))
        self.v = self._discriminant()
        self.loss, self.proba = self._evaluate(self.v)

    def run(self, max_iterations: int, tolerance: float) -> Laplace:
        """Step until the Newton decrement, gᵀ Λ⁻¹ g, is below the tolerance for all draws and their precisions have settled."""
        n_draws = len(self.v)
        n_iterations = np.ones(n_draws, dtype=np.intp)
        for _ in range(max_iterations):
            gradient, hessian = self._gradient(), self._hessian()
            moved = self._move_precision(gradient, hessian) if self.by_evidence else np.zeros(n_draws)
            total = gradient + self._prior() * self.v
            step = np.linalg.solve(self._with_prior(hessian), total.reshape(n_draws, -1, 1)).reshape(self.v.shape).astype(np.float64)
            decrement = (total * step).sum(axis=(1, 2))
            unfinished = (decrement > tolerance) | (moved > EVIDENCE_TOLERANCE)
            if not unfinished.any():
                break
            n_iterations += unfinished
            self._move(step, decrement)
        else:  # the steps ran out, and the last was taken
            hessian, step = self._hessian(), np.zeros_like(self.v)
        precision = self._with_prior(hessian)
        covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
        # The last step is there already, and squares the distance to the mode.
        mode = self.v - step
        mean = mode + self._shift(covariance)
        return Laplace(self.center, mode, mean, covariance, self.alpha, self._log_evidence(precision), n_iterations, ~unfinished)

    def _discriminant(self) -> Array:
        """Return the start: a fraction of the linear discriminant, W_k = Σ⁻¹μ_k and b_k = −½ μ_kᵀΣ⁻¹μ_k. [S, K − 1, J + 1]

        μ_k are the means of the classes, Σ the covariance within them, with J rows of the mean variance added. The direction of this start
        is right and its size too small, so that Newton's steps grow and do not overshoot, as they do from zero.
        """
        n_draws, n_features = len(self.X), self.X.shape[1] - 1
        members = self.labels.one_hot * self.labels.weight
        counts = members.sum(axis=1)
        means = (members / counts[:, None]) @ self.X[:, :-1].swapaxes(1, 2)
        total = (self.labels.weight @ self.products).reshape(n_draws, n_features + 1, -1)[:, :-1, :-1]
        within = total - (means * counts[:, None]).swapaxes(1, 2) @ means + n_features * self.unit[:, None, None] * np.eye(n_features)
        weights = np.linalg.solve(within / counts.sum(), means.swapaxes(1, 2)).swapaxes(1, 2)
        intercepts = -0.5 * (weights * means).sum(axis=2, keepdims=True)
        return START * self.labels.contrasts.T @ np.concatenate([weights, intercepts], axis=2)

    def _evaluate(self, v: Array) -> tuple[Array, Array]:
        """Return −Σ_n w_n log softmax(H v x_n)_{y_n} [S] and the probabilities [S, K, n]."""
        logits = (self.labels.contrasts @ v) @ self.X
        logits -= logits.max(axis=1, keepdims=True)
        of_label = (logits * self.labels.one_hot).sum(axis=1)
        proba = np.exp(logits, out=logits)
        total = proba.sum(axis=1)
        proba /= total[:, None]
        return (np.log(total) - of_label) @ self.labels.weight, proba

    def _prior(self) -> Array:
        """Return the prior precisions a. [S, 1, J + 1]"""
        prior = np.repeat(self.alpha[:, None, None], self.X.shape[1], axis=2)
        prior[:, :, -1] = INTERCEPT_PRECISION
        return prior

    def _penalty(self, v: Array) -> Array:
        """Return ½ Σ a v². [S]"""
        return 0.5 * (self._prior() * v**2).sum(axis=(1, 2))

    def _gradient(self) -> Array:
        """Return the gradient of ℓ without the prior's term. [S, K − 1, J + 1]"""
        error = (self.proba - self.labels.one_hot) * self.labels.weight
        return (self.labels.contrasts.T @ error) @ self.X.swapaxes(1, 2)

    def _hessian(self) -> Array:
        """Return the Hessian of ℓ without the prior's term, from sums over rows of few numbers each.

        Σ_k h_k h_kᵀ ⊗ (Σ_n w_n p_nk x_n x_nᵀ) − Σ_n w_n (Hᵀp_n ⊗ x_n)(Hᵀp_n ⊗ x_n)ᵀ
        """
        n_draws, n_contrasts, n_columns = self.v.shape
        n_weights = n_contrasts * n_columns
        contrasts, weight = self.labels.contrasts, self.labels.weight
        squares = (contrasts[:, :, None] * contrasts[:, None, :]).reshape(len(contrasts), -1)
        within = squares.T @ ((self.proba * weight) @ self.products)
        within = within.reshape(n_draws, n_contrasts, n_contrasts, n_columns, n_columns).swapaxes(2, 3)
        mean = contrasts.T @ (self.proba * np.sqrt(weight))
        np.multiply(mean[:, :, None], self.X[:, None, :], out=self.workspace)
        spread = self.workspace.reshape(n_draws, n_weights, -1)
        return within.reshape(n_draws, n_weights, n_weights) - spread @ spread.swapaxes(1, 2)

    def _with_prior(self, hessian: Array) -> Array:
        """Return Λ, the Hessian with the prior's term."""
        precision = hessian.copy()
        diagonal = np.arange(hessian.shape[1])
        precision[:, diagonal, diagonal] += np.tile(self._prior()[:, 0], self.v.shape[1])
        return precision

    def _move(self, step: Array, decrement: Array) -> None:
        """Set v ← v − t step, with t halved for the draws whose loss would rise."""
        size = np.ones(len(self.v))
        before = self.loss + self._penalty(self.v)
        for _ in range(30):
            v = self.v - size[:, None, None] * step
            loss, proba = self._evaluate(v)
            rises = loss + self._penalty(v) > before - 1e-4 * size * decrement + 1e-12 * np.abs(before)
            if not rises.any():
                break
            size[rises] /= 2
        self.v, self.loss, self.proba = v, loss, proba

    def _move_precision(self, gradient: Array, hessian: Array) -> Array:
        """Move each log α by a Newton step, for the quadratic that a step of v minimizes; return how far it moved. [S]

        d = log(γ + c) − log(Σ m² + c/α₀) − log α = 0,   with m its minimum, C its inverse Hessian, and sums over the weights:
        ∂γ/∂α = Σ_i (α Σ_j C_ij² − C_ii),   ∂m/∂α = −C m
        """
        n_draws = len(hessian)
        inverse = np.asarray(np.linalg.inv(self._with_prior(hessian)), dtype=np.float64)
        total = gradient + self._prior() * self.v
        minimum = self.v - (inverse @ total.reshape(n_draws, -1, 1)).reshape(self.v.shape)
        is_weight = np.tile(np.arange(self.v.shape[2]) < self.v.shape[2] - 1, self.v.shape[1])
        m = minimum.reshape(n_draws, -1) * is_weight
        C = inverse * (is_weight[:, None] & is_weight)
        diagonal = np.diagonal(C, axis1=1, axis2=2).sum(axis=1)
        n_determined = np.maximum(is_weight.sum() - self.alpha * diagonal, 0.0) + HYPERPRIOR_COUNT
        squares = (m**2).sum(axis=1) + HYPERPRIOR_COUNT / (HYPERPRIOR_PRECISION * self.unit)
        by_determined = self.alpha * (self.alpha * (C**2).sum(axis=(1, 2)) - diagonal) / n_determined
        by_squares = -2 * self.alpha * (m * (C @ m[:, :, None])[:, :, 0]).sum(axis=1) / squares
        difference = np.log(n_determined / squares) - np.log(self.alpha)
        # Where the slope is flat or rises, there is no root close by; a few times a step of the fixed-point iteration goes the right way.
        slope = np.minimum(by_determined - by_squares - 1, -FLATTEST_SLOPE)
        low, high = np.log(self.unit) + np.log(PRECISION_RANGE)[:, None]
        position = np.clip(np.log(self.alpha) + np.clip(-difference / slope, -LONGEST_STEP, LONGEST_STEP), low, high)
        moved = np.abs(position - np.log(self.alpha))
        self.alpha = np.exp(position)
        return moved

    def _shift(self, covariance: Array) -> Array:
        """Return −½ Λ⁻¹ t, the step from the mode to the mean. [S, K − 1, J + 1]"""
        n_draws, n_classes, n_rows = self.proba.shape
        of_logits = logit_covariance(covariance, self.labels.contrasts).reshape(n_draws, -1, n_classes**2)
        third = np.zeros_like(self.v)
        for rows in row_blocks(n_rows, max(16, BLOCK_NUMBERS // (n_draws * n_classes**2))):
            spread = (self.products[:, rows] @ of_logits).reshape(n_draws, -1, n_classes, n_classes)
            proba = self.proba[:, :, rows].swapaxes(1, 2)
            along = (spread @ proba[..., None])[..., 0]
            distance = np.diagonal(spread, axis1=2, axis2=3) - 2 * along + (proba * along).sum(axis=2, keepdims=True)
            excess = proba * (distance - (proba * distance).sum(axis=2, keepdims=True)) * self.labels.weight[rows, None]
            third += self.labels.contrasts.T @ excess.swapaxes(1, 2) @ self.X[:, :, rows].swapaxes(1, 2)
        shift = -0.5 * (covariance @ third.reshape(n_draws, -1, 1)).reshape(third.shape)
        std = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)).reshape(third.shape)
        largest = (np.abs(shift) / std).max(axis=(1, 2), keepdims=True)
        return shift * np.minimum(1.0, LARGEST_SHIFT / np.maximum(largest, LARGEST_SHIFT))

    def _log_evidence(self, precision: Array) -> Array:
        log_prior = self.v.shape[1] * np.log(self._prior()[:, 0]).sum(axis=1)
        return -self.loss - self._penalty(self.v) + 0.5 * log_prior - 0.5 * np.linalg.slogdet(precision)[1]


def covariance_factor(covariance: Array) -> Array:
    """Return F with F Fᵀ = covariance, but for a little on the diagonal where rounding has left a matrix that is hardly definite. [P, P]"""
    try:
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    except np.linalg.LinAlgError:
        largest = max(float(covariance.diagonal().max(initial=0.0)), np.finfo(float).tiny)
        factor = np.linalg.cholesky(covariance / largest + HARDLY_DEFINITE * np.eye(len(covariance)))
        return np.asarray(np.sqrt(largest) * factor, dtype=np.float64)


def logit_covariance(covariance: Array, contrasts: Array) -> Array:
    """Return T with Cov(η_k, η_l) = Σ_ab x_a x_b T_abkl, the covariance of the logits at x. [S, J + 1, J + 1, K, K]"""
    n_draws, n_contrasts = len(covariance), contrasts.shape[1]
    blocks = covariance.reshape(n_draws, n_contrasts, -1, n_contrasts, covariance.shape[1] // n_contrasts)
    return contrasts @ blocks.transpose(0, 2, 4, 1, 3) @ contrasts.T
