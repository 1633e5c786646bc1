"""Minimising the objective over means and standard deviations, to a point that rounding errors do not move."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg

from ..objective import Gradient

Array = NDArray[np.float64]
Function = Callable[[Array, Array], Gradient]

NEWTON_STEPS = 8
DIFFERENCE = 1e-5
LBFGS_TOLERANCES = (1e-3, 1e-5, 1e-7)
NEWTON_TOLERANCE = 1e-9
POLISHED = 1e-6


class Start(NamedTuple):
    """Where a minimisation begins and what it may change."""

    mean: Array
    """[J, r]"""
    std: Array
    """[J, r]"""
    free_mean: NDArray[np.bool_]
    """Which means are optimised; the others stay. [J, r]"""
    std_is_free: bool
    """Whether the standard deviations are optimised."""


class Minimum(NamedTuple):
    """Where a minimisation ended."""

    mean: Array
    std: Array
    value: float
    n_iterations: int
    error: float
    """Size of the gradient in units that make the Hessian of the divergence 1: about the distance to the minimum."""


class Minimisation:
    """One objective, one start: L-BFGS, then Newton steps.

    The variables are the free means and the logarithms of the standard deviations, scaled by the root of (an estimate of) the diagonal of
    the Hessian. That matters: along a direction that the losses hardly see, the curvature is that of the divergence, 2τ; along one that
    carries a dimension it is that of the variance loss, larger by any factor.
    """

    def __init__(self, function: Function, start: Start, eigenvalues: Array, temperature: float) -> None:
        self.function = function
        self.start = start
        self.temperature = temperature
        self.n_means = int(start.free_mean.sum())
        self.scale = np.sqrt(self._curvatures(eigenvalues))

    def minimise(self, max_iterations: int, tolerance: float = LBFGS_TOLERANCES[0]) -> Minimum:
        """L-BFGS from the start."""
        return self._descend(self._pack(self.start.mean, self.start.std), max_iterations, tolerance)

    def refine(self, minimum: Minimum, max_iterations: int) -> Minimum:
        """Newton steps from a minimum; where they do not take, L-BFGS to a tighter tolerance before trying them again."""
        for tolerance in LBFGS_TOLERANCES[1:]:
            minimum = self.polish(minimum)
            if minimum.error < POLISHED:
                return minimum
            further = self._descend(self._pack(minimum.mean, minimum.std), max_iterations, tolerance)
            minimum = further._replace(n_iterations=minimum.n_iterations + further.n_iterations)
        return self.polish(minimum)

    def _descend(self, point: Array, max_iterations: int, tolerance: float) -> Minimum:
        options = {"maxiter": max_iterations, "maxfun": 2 * max_iterations, "ftol": 0.0, "maxcor": 20}
        options["gtol"] = tolerance * np.sqrt(self.temperature)
        result = minimize(self._evaluate, point, jac=True, method="L-BFGS-B", options=options)
        return self._minimum(result.x, result.nit)

    def polish(self, minimum: Minimum) -> Minimum:
        """Newton steps from a minimum that is nearly one.

        A line search compares values, which agree to 16 digits while the point is still off by 8; Newton's method compares
        gradients. The Hessian is applied by differences of the gradient and inverted by conjugate gradients. A step that does not
        halve the gradient is not taken.
        """
        point = self._pack(minimum.mean, minimum.std)
        gradient = self._evaluate(point)[1]
        for _ in range(NEWTON_STEPS):
            norm = np.linalg.norm(gradient)
            if norm < NEWTON_TOLERANCE * np.sqrt(self.temperature):
                break
            with np.errstate(all="ignore"):  # a Hessian of rounding errors gives a step of NaN, which is not taken
                step, _ = cg(self._hessian(point, gradient), -gradient, rtol=1e-4, maxiter=300)
            if not np.isfinite(step).all():
                break
            candidate = self._evaluate(point + step)[1]
            if not np.linalg.norm(candidate) < 0.5 * norm:
                break
            point, gradient = point + step, candidate
        return self._minimum(point, minimum.n_iterations)

    def _curvatures(self, eigenvalues: Array) -> Array:
        """Estimate of the Hessian's diagonal: 2τ for log s, and τ + κ_j λ_a for the mean m_ja.

        κ_j is measured along the mean of dimension j at the start, where the curvature is τ + κ_j Σλm²/Σm².
        """
        mean, std, free_mean, std_is_free = self.start
        step = DIFFERENCE * mean
        change = self.function(mean + step, std).by_mean - self.function(mean - step, std).by_mean
        curvature = (change * mean).sum(axis=1) / (2 * DIFFERENCE * (mean**2).sum(axis=1))
        eigenvalue = (mean**2 * eigenvalues).sum(axis=1) / (mean**2).sum(axis=1)
        strength = np.maximum(curvature - self.temperature, 0.0) / eigenvalue
        by_mean = self.temperature + strength[:, None] * eigenvalues
        by_log_std = np.full(std.size if std_is_free else 0, 2 * self.temperature)
        return np.concatenate([by_mean[free_mean], by_log_std])

    def _pack(self, mean: Array, std: Array) -> Array:
        log_std = np.log(std).ravel() if self.start.std_is_free else np.empty(0)
        return np.concatenate([mean[self.start.free_mean], log_std]) * self.scale

    def _unpack(self, point: Array) -> tuple[Array, Array]:
        point = point / self.scale
        mean, std = self.start.mean.copy(), self.start.std
        mean[self.start.free_mean] = point[: self.n_means]
        if self.start.std_is_free:
            # exp(±30) is as good as infinite here and leaves room for squares and products.
            std = np.exp(np.clip(point[self.n_means :], -30, 30)).reshape(mean.shape)
        return mean, std

    def _evaluate(self, point: Array) -> tuple[float, Array]:
        mean, std = self._unpack(point)
        value, by_mean, by_std = self.function(mean, std)
        by_log_std = (by_std * std).ravel() if self.start.std_is_free else np.empty(0)
        return value, np.concatenate([by_mean[self.start.free_mean], by_log_std]) / self.scale

    def _hessian(self, point: Array, gradient: Array) -> LinearOperator:
        size = DIFFERENCE * np.sqrt(self.temperature)

        def times(direction: Array) -> Array:
            step = size / max(float(np.linalg.norm(direction)), np.finfo(float).tiny)
            return (self._evaluate(point + step * direction)[1] - gradient) / step

        return LinearOperator((len(point), len(point)), matvec=times, dtype=np.float64)

    def _minimum(self, point: Array, n_iterations: int) -> Minimum:
        value, gradient = self._evaluate(point)
        error = np.linalg.norm(gradient) / np.sqrt(self.temperature)
        return Minimum(*self._unpack(point), value, int(n_iterations), float(error))
