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

NEWTON_STEPS = 6
DIFFERENCE = 1e-5
CONVERGED = 1e-10


class Start(NamedTuple):
    """Where a minimisation begins and what it may change."""

    mean: Array
    """[J, r]"""
    std: Array
    """[J, r]"""
    free_mean: NDArray[np.bool_]
    """Which means are optimised; the others stay. [J, r]"""
    free_std: NDArray[np.bool_]
    """Which standard deviations are optimised. [J, r]"""


class Minimum(NamedTuple):
    """Where a minimisation ended."""

    mean: Array
    std: Array
    value: float
    n_iterations: int
    gradient_norm: float


def minimise(function: Callable[[Array, Array], Gradient], start: Start, *, max_iterations: int, tolerance: float) -> Minimum:
    """L-BFGS over the means and the logarithms of the standard deviations."""
    problem = _Problem(function, start)
    result = minimize(
        problem,
        problem.pack(start.mean, start.std),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iterations, "maxfun": 2 * max_iterations, "ftol": 0.0, "gtol": tolerance, "maxcor": 20},
    )
    return problem.minimum(result.x, result.nit)


def polish(function: Callable[[Array, Array], Gradient], start: Start, minimum: Minimum) -> Minimum:
    """Newton steps from a minimum that is nearly one.

    A line search compares values, which agree to 16 digits while the point is still off by 8; Newton's method compares
    gradients. The Hessian is applied by central differences of the gradient and inverted by conjugate gradients. A step that does
    not halve the gradient is not taken.
    """
    problem = _Problem(function, start)
    point = problem.pack(minimum.mean, minimum.std)
    gradient = problem(point)[1]
    for _ in range(NEWTON_STEPS):
        norm = np.linalg.norm(gradient)
        if norm < CONVERGED:
            break
        step, _ = cg(problem.hessian(point), -gradient, rtol=1e-5, maxiter=200)
        candidate = problem(point + step)[1]
        if not np.linalg.norm(candidate) < 0.5 * norm:
            break
        point, gradient = point + step, candidate
    return problem.minimum(point, minimum.n_iterations)


class _Problem:
    """The objective as a function of one vector: the free means, then the free log standard deviations."""

    def __init__(self, function: Callable[[Array, Array], Gradient], start: Start) -> None:
        self.function = function
        self.start = start
        self.n_means = int(start.free_mean.sum())

    def pack(self, mean: Array, std: Array) -> Array:
        return np.concatenate([mean[self.start.free_mean], np.log(std[self.start.free_std])])

    def unpack(self, point: Array) -> tuple[Array, Array]:
        mean, std = self.start.mean.copy(), self.start.std.copy()
        mean[self.start.free_mean] = point[: self.n_means]
        # exp(±30) is as good as infinite here and leaves room for squares and products.
        std[self.start.free_std] = np.exp(np.clip(point[self.n_means :], -30, 30))
        return mean, std

    def __call__(self, point: Array) -> tuple[float, Array]:
        mean, std = self.unpack(point)
        value, by_mean, by_std = self.function(mean, std)
        free_std = self.start.free_std
        return value, np.concatenate([by_mean[self.start.free_mean], (by_std * std)[free_std]])

    def hessian(self, point: Array) -> LinearOperator:
        def times(direction: Array) -> Array:
            step = DIFFERENCE / max(float(np.linalg.norm(direction)), np.finfo(float).tiny)
            ahead, behind = self(point + step * direction)[1], self(point - step * direction)[1]
            return (ahead - behind) / (2 * step)

        return LinearOperator((len(point), len(point)), matvec=times, dtype=np.float64)

    def minimum(self, point: Array, n_iterations: int) -> Minimum:
        value, gradient = self(point)
        return Minimum(*self.unpack(point), value, int(n_iterations), float(np.abs(gradient).max(initial=0.0)))
