"""Minimize the objective over means and standard deviations, down to a point that rounding errors do not move."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg

from .._runtime.progress import Steps
from ..core._objective import Gradient

Array = NDArray[np.float64]
Function = Callable[[Array, Array], Gradient]

STAGE = 50
NEWTON_STEPS = 8
DIFFERENCE = 1e-5
LBFGS_TOLERANCES = (1e-3, 1e-5, 1e-7)
NEWTON_TOLERANCE = 1e-9
POLISHED = 1e-6


class Start(NamedTuple):
    """Where a minimization begins. The mean is a sum of patterns, Σ_p t_p B_p, in the n leading directions, and zero beyond them."""

    patterns: Array
    """B [P, J, n]"""
    sizes: Array
    """t [P]"""
    std: Array
    """[J, r]"""


class Minimum(NamedTuple):
    """Where a minimization ended."""

    mean: Array
    std: Array
    value: float
    n_iterations: int
    error: float
    """Size of the gradient in the variables of the minimization, over √τ: about the distance to the minimum in standard deviations of the
    posterior."""
    point: Array
    """The same in the variables of the minimization."""


class Minimization:
    """One objective, one start: L-BFGS, then Newton steps.

    The long way from the start follows `search`, which may be an approximation; `refine` ends at the minimum of `function`.

    Each iteration of L-BFGS is one of `steps`. A callback that asks to stop ends the descent, and every further one at its first iteration.

    The variables are the sizes t of the patterns and the logarithms of the standard deviations, divided by a unit: one over the root of
    (an estimate of) the diagonal of the Hessian. That matters: along a direction that the losses hardly see, the curvature is that of the
    divergence, 2τ; along one that carries a dimension it is that of the variance loss, larger by any factor.
    """

    def __init__(self, search: Function, function: Function, start: Start, temperature: float, steps: Steps) -> None:
        self.search = search
        self.function = function
        self.followed = search
        self.temperature = temperature
        self.steps = steps
        self.patterns = start.patterns.reshape(len(start.patterns), -1)
        self.mean_shape = start.patterns.shape[1:]
        self.shape = start.std.shape
        self.n_sizes = len(start.sizes)
        self.start = np.concatenate([start.sizes, np.log(start.std).ravel()])
        self.unit = np.full_like(self.start, 1 / np.sqrt(2 * temperature))

    def minimize(self, max_iterations: int) -> Minimum:
        """Run L-BFGS from the start. The curvatures change on the way, so that they are measured again after every stage."""
        self._measure_sizes(self.start)
        minimum = self._descend(self.start / self.unit, min(STAGE, max_iterations), LBFGS_TOLERANCES[0])
        n_iterations = minimum.n_iterations
        while minimum.n_iterations == STAGE and n_iterations < max_iterations:
            position = minimum.point * self.unit
            self._measure_sizes(position)
            self._measure_stds(position)
            minimum = self._descend(position / self.unit, min(STAGE, max_iterations - n_iterations), LBFGS_TOLERANCES[0])
            n_iterations += minimum.n_iterations
        return minimum._replace(n_iterations=n_iterations)

    def with_free_means(self, minimum: Minimum, max_iterations: int) -> tuple[Minimization, Minimum]:
        """Run L-BFGS from a minimum on, with all means in the leading directions free. There must be one pattern for each direction."""
        patterns = np.eye(self.patterns.shape[1]).reshape(-1, *self.mean_shape)
        start = Start(patterns, minimum.mean[:, : self.mean_shape[1]].ravel(), minimum.std)
        free = Minimization(self.search, self.function, start, self.temperature, self.steps)
        free.unit = np.concatenate([np.tile(self.unit[: self.n_sizes], self.mean_shape[0]), self.unit[self.n_sizes :]])
        trial = free._descend(free.start / free.unit, max_iterations, LBFGS_TOLERANCES[0])
        return free, trial._replace(n_iterations=minimum.n_iterations + trial.n_iterations)

    def refine(self, minimum: Minimum, max_iterations: int) -> Minimum:
        """Take Newton steps from a minimum; where they fail, run L-BFGS to a tighter tolerance before trying them again."""
        self.followed = self.function
        for tolerance in LBFGS_TOLERANCES[1:]:
            minimum = self.polish(minimum)
            if minimum.error < POLISHED:
                return minimum
            further = self._descend(minimum.point, max_iterations, tolerance)
            minimum = further._replace(n_iterations=minimum.n_iterations + further.n_iterations)
        return self.polish(minimum)

    def _descend(self, point: Array, max_iterations: int, tolerance: float) -> Minimum:
        # The first step of L-BFGS has length one: over √τ that is one standard deviation of the posterior.
        root = np.sqrt(self.temperature)

        def in_deviations(point: Array) -> tuple[float, Array]:
            value, gradient = self._evaluate(point * root)
            return value / self.temperature, gradient / root

        options = {"maxiter": max_iterations, "maxfun": 10 * max_iterations, "ftol": 0.0, "maxcor": 20, "gtol": tolerance}
        result = minimize(in_deviations, point / root, jac=True, method="L-BFGS-B", options=options, callback=self._report)
        return self._minimum(result.x * root, result.nit)

    def _report(self, point: Array) -> None:
        self.steps.advance()
        if self.steps.stopped:
            raise StopIteration

    def polish(self, minimum: Minimum) -> Minimum:
        """Take Newton steps from a point that is nearly a minimum.

        A line search compares values, which agree to 16 digits while the point is still off by 8; Newton's method compares
        gradients. The Hessian is applied by differences of the gradient and inverted by conjugate gradients. A step that does not
        halve the gradient is not taken.
        """
        point = minimum.point
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

    def _measure_sizes(self, position: Array) -> None:
        """Set the units of the sizes to 1/√h with the curvature h along t_p, at least that of the divergence, by one difference each."""
        least = self.temperature * (self.patterns**2).sum(axis=1)
        steps = DIFFERENCE * np.maximum(np.abs(position[: self.n_sizes]), 1.0)
        self._measure(position, [slice(p, p + 1) for p in range(self.n_sizes)], steps, least)

    def _measure_stds(self, position: Array) -> None:
        """Set the units of log s in the leading directions, where losses add to the divergence's 2τ.

        One difference for all dimensions together, since near a minimum they hardly depend on one another.
        """
        n_directions = self.mean_shape[1]
        directions = [slice(self.n_sizes + a, None, self.shape[1]) for a in range(n_directions)]
        self._measure(position, directions, np.full(n_directions, DIFFERENCE), np.full(n_directions, 2 * self.temperature))

    def _measure(self, position: Array, groups: list[slice], steps: Array, least: Array) -> None:
        gradient = self._evaluate(position / self.unit)[1] / self.unit
        curvatures = []
        for group, step in zip(groups, steps, strict=True):
            shifted = position.copy()
            shifted[group] += step
            curvatures.append((self._evaluate(shifted / self.unit)[1] / self.unit - gradient)[group] / step)
        for group, curvature, bound in zip(groups, curvatures, least, strict=True):
            self.unit[group] = 1 / np.sqrt(np.maximum(curvature, bound))

    def _unpack(self, point: Array) -> tuple[Array, Array]:
        sizes, log_std = np.split(point * self.unit, [self.n_sizes])
        mean = np.zeros(self.shape)
        mean[:, : self.mean_shape[1]] = (sizes @ self.patterns).reshape(self.mean_shape)
        # exp(±30) is as good as infinite here and leaves room for squares and products.
        return mean, np.exp(np.clip(log_std, -30, 30)).reshape(self.shape)

    def _evaluate(self, point: Array) -> tuple[float, Array]:
        mean, std = self._unpack(point)
        value, by_mean, by_std = self.followed(mean, std)
        by_size = self.patterns @ by_mean[:, : self.mean_shape[1]].ravel()
        return value, np.concatenate([by_size, (by_std * std).ravel()]) * self.unit

    def _hessian(self, point: Array, gradient: Array) -> LinearOperator:
        size = DIFFERENCE * np.sqrt(self.temperature)

        def times(direction: Array) -> Array:
            step = size / max(float(np.linalg.norm(direction)), np.finfo(float).tiny)
            return (self._evaluate(point + step * direction)[1] - gradient) / step

        return LinearOperator((len(point), len(point)), matvec=times, dtype=np.float64)

    def _minimum(self, point: Array, n_iterations: int) -> Minimum:
        value, gradient = self._evaluate(point)
        error = np.linalg.norm(gradient) / np.sqrt(self.temperature)
        return Minimum(*self._unpack(point), value, int(n_iterations), float(error), point)
