"""The paper's inference: the closest normal distribution to the generalized posterior, down to a point that rounding does not move."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from .._runtime.progress import SILENT, Steps, Task
from .._validation import check_number
from ..core._moments import Spectrum
from ..core._objective import Expectation, Objective
from ..core._posterior import GaussianWeights
from ._mode import ADVANTAGE, Start, leading_directions, shared_start, sharing_pays, spectral_start, with_fixed_signs
from ._negative_variance import check_normal_minimum

Array = NDArray[np.float64]

STAGE = 50
NEWTON_STEPS = 8
DIFFERENCE = 1e-5
LBFGS_TOLERANCES = (1e-3, 1e-5, 1e-7)
NEWTON_TOLERANCE = 1e-9
POLISHED = 1e-6
STALLED_ERROR = 1e-2
"""A descent that ends with a larger error, in standard deviations of the posterior, has not come to an end."""
TRIAL_ITERATIONS = 150
"""The steps of L-BFGS after which a descent with free means is given up, if it is still far from an end."""
ROUGH_ITERATIONS = 10
"""The steps of L-BFGS from each start where `precise` is false."""
JUDGING_DRAWS = 1024
"""The fresh draws on which a minimum is judged."""
DRAW_FACTORS = (1, 8, 64)
"""Multiples of `n_draws` that are tried in turn until the minimum holds on fresh draws."""
MOST_NUMBERS_DRAWN = 50_000
"""More draws are affordable while draws × directions × dimensions stay below this."""
NUMERICALLY_ZERO = 1e-6
"""A mean below this share of its standard deviation is zero up to rounding."""
ROUNDED_BITS = 33
"""The spectrum is rounded to so many bits of its largest eigenvalue, which are ten digits."""


class OptimizationReport(NamedTuple):
    """How a minimization went."""

    start: str
    """The start that led to the better minimum: "spectral" or "shared"."""
    n_iterations: int
    error: float
    """Size of the gradient at the end: about the distance to the minimum in standard deviations of the posterior."""
    n_tied: int = 0
    """Leading directions that the rows do not tell from others, because their eigenvalues are the same: see `gpssl.core.Spectrum.ties`."""
    n_left_out: int = 0
    """Equals of theirs that are not among the leading directions, and could have been as well."""


class Variational(BaseEstimator):
    """Minimizes E_q[ℓ] + τ KL(q ‖ p) over normal q, by L-BFGS on fixed quasi-random draws and a few Newton steps.

    In the eigenbasis of the moments the best q among those with independent dimensions, which the paper's are, is diagonal, with means
    m_ja = R_ja t_a in the J leading directions a. A joint normal distribution of all dimensions is better, and `Sampling`, which is exact,
    finds other variances of single weights; what is predicted is nearly the same (docs/mathematics.md has numbers).

    There are two starts:

    - *spectral*: R = I, dimension j along direction j. The objective does not change when direction a and dimension a change sign
      together, so off the diagonal the gradient with respect to the means is zero, in expectation over the draws, and they stay zero.
    - *shared*: the dimensions share the leading directions as at the mode (`shared_mode`). At middling temperatures, or with many
      dimensions, where it does not pay to give every dimension a direction of its own, this leads to a better minimum. It is tried
      where the mode gains by it, and kept if it is better by one per cent. The losses hardly tell one R from another with the same
      diagonal of the covariance: a minimum over R lies in a flat and winding valley. It is taken if the descent comes to an end
      there; if not, R stays as it is, which costs about one per cent.

    Parameters
    ----------
    n_draws
        Quasi-random draws over which the variance loss is averaged; a power of two. Where fresh draws judge the minimum to be more than
        one per cent worse, it is sought again with 8 and then 64 times as many, while that stays affordable.
    max_iterations
        Limit for L-BFGS.
    precise
        Whether to go on to the minimum, to machine precision, and judge it on fresh draws. Without, at most ten steps are made from each
        start, in a fraction of the time: enough to tell good settings from bad ones. The objective is then usually within one per cent
        of its minimum, and within several where dimensions share directions.
    """

    def __init__(self, n_draws: int = 64, max_iterations: int = 300, precise: bool = True) -> None:
        self.n_draws = n_draws
        self.max_iterations = max_iterations
        self.precise = precise

    def infer(
        self, spectrum: Spectrum, objective: Objective, n_components: int, seed: int, *, verbose: bool = False, task: Task = SILENT
    ) -> tuple[GaussianWeights, float, OptimizationReport]:
        """Return the optimal q, the objective there, and how the minimization went."""
        if not isinstance(self.n_draws, Integral) or self.n_draws < 1 or self.n_draws & (self.n_draws - 1):
            raise ValueError(f"n_draws must be a power of two, got {self.n_draws!r}.")
        check_number("max_iterations", self.max_iterations, Integral, at_least=1)
        if objective.variance_loss == "negative":
            check_normal_minimum(spectrum, objective, n_components)
        with task.steps("variational inference", "iteration") as steps:
            problem = _VariationalProblem(spectrum, rounded(spectrum), objective, n_components, seed, steps)
            if self.precise:
                start, minimum, value = self._minimize(problem)
                _warn_if_stalled(minimum)
            else:
                start, minimum = problem.solve(self.n_draws, min(ROUGH_ITERATIONS, self.max_iterations), precise=False)
                value = minimum.value
        mean = without_rounding_errors(minimum.mean, minimum.std)
        weights = GaussianWeights(with_fixed_signs(mean, spectrum.eigenvalues), minimum.std)
        return weights, value, OptimizationReport(start, minimum.n_iterations, minimum.error, *spectrum.ties(n_components))

    def _minimize(self, problem: _VariationalProblem) -> tuple[str, Minimum, float]:
        """Return the start, the minimum on as many draws as it takes, and the objective there on fresh ones."""
        spectrum, n_components = problem.exact, problem.n_components
        judge = problem.objective.expected_spread_loss(spectrum, np.arange(n_components) % spectrum.rank, JUDGING_DRAWS, problem.seed + 1)
        for factor in DRAW_FACTORS:
            start, minimum = problem.solve(factor * self.n_draws, self.max_iterations, precise=True)
            # The draws that were minimized over flatter the minimum. It is judged on others; where those disagree, as they may
            # where no covariance loss keeps the widths small, more draws are needed.
            value = problem.objective.expected(minimum.mean, minimum.std, spectrum, judge).value
            too_many = 8 * factor * self.n_draws * spectrum.rank * n_components > MOST_NUMBERS_DRAWN
            if value - minimum.value <= ADVANTAGE * abs(value) or too_many or problem.steps.stopped:
                break
        return start, minimum, value


def without_rounding_errors(mean: Array, std: Array) -> Array:
    """Return the means with zero for each dimension whose means are zero up to rounding: what is left of them has a shape, but no size."""
    learned = (np.abs(mean) > NUMERICALLY_ZERO * std).any(axis=1, keepdims=True)
    return np.where(learned, mean, 0.0)


def rounded(spectrum: Spectrum) -> Spectrum:
    """Round the spectrum to ten digits of its largest eigenvalue, so that rounding errors leave the same bits."""
    quantum = np.exp2(np.floor(np.log2(spectrum.eigenvalues[0])) - ROUNDED_BITS)
    return replace(
        spectrum,
        eigenvalues=np.maximum(np.round(spectrum.eigenvalues / quantum), 1.0) * quantum,
        residual=round(spectrum.residual / quantum) * quantum,
        tail_sum=round(spectrum.tail_sum / quantum) * quantum,
        tail_sum_of_squares=round(spectrum.tail_sum_of_squares / quantum) * quantum,
    )


@dataclass(frozen=True)
class _VariationalProblem:
    """The two descents.

    A descent through a flat valley amplifies every rounding error, and so would the choice between its ends. Descents and choices are
    therefore made with the `rounded` spectrum, and the Newton steps that end them, which forget where they came from, with the exact one.
    """

    exact: Spectrum
    spectrum: Spectrum
    """The exact one, `rounded`."""
    objective: Objective
    n_components: int
    seed: int
    steps: Steps

    def solve(self, n_draws: int, max_iterations: int, *, precise: bool) -> tuple[str, Minimum]:
        """Return the minimum from the spectral start, or from the shared one where that is clearly better, and the start's name.

        To machine precision if `precise`; else after at most `max_iterations` steps from the starts, which are close to minima themselves.
        """
        descent = self._descent(spectral_start(self.spectrum, self.objective, self.n_components), n_draws)
        minimum = descent.minimize(max_iterations)
        if sharing_pays(self.spectrum, self.objective, self.n_components):
            shared_descent = self._descent(shared_start(self.spectrum, self.objective, self.n_components), n_draws)
            shared = shared_descent.minimize(max_iterations)
            if shared.value < minimum.value - ADVANTAGE * abs(minimum.value):
                return "shared", self._settle_in_the_valley(shared_descent, shared, max_iterations) if precise else shared
        return "spectral", descent.refine(minimum, max_iterations) if precise else minimum

    def _settle_in_the_valley(self, descent: Minimization, minimum: Minimum, max_iterations: int) -> Minimum:
        """Return the minimum with all means free, if the descent comes to an end; otherwise the one with the mixing of the start."""
        free, trial = descent.with_free_means(minimum, min(TRIAL_ITERATIONS, max_iterations))
        if trial.error < STALLED_ERROR:
            trial = free.refine(trial, max_iterations)
            if trial.error < POLISHED and trial.value < minimum.value:
                return trial
        return descent.refine(minimum, max_iterations)

    def _descent(self, start: Start, n_draws: int) -> Minimization:
        """Prepare the descent from a start, whose leading direction in each dimension is the one that is integrated out."""
        mean = np.tensordot(start.sizes, start.patterns, axes=1)
        own = leading_directions(mean, self.spectrum.eigenvalues[: mean.shape[1]])
        search, function = (
            self._function(spectrum, self.objective.expected_spread_loss(spectrum, own, n_draws, self.seed))
            for spectrum in (self.spectrum, self.exact)
        )
        return Minimization(search, function, start, self.objective.temperature, self.steps)

    def _function(self, spectrum: Spectrum, expected_variance: Expectation) -> Expectation:
        return partial(self.objective.expected, spectrum=spectrum, expected_variance=expected_variance)


def _warn_if_stalled(minimum: Minimum) -> None:
    if not minimum.error < STALLED_ERROR:
        warnings.warn(
            f"The optimizer stopped early, with an error of about {minimum.error:.1e}: the representation may depend on the seed. "
            "Raise the temperature, lower n_components, or pass inference=Variational(max_iterations=...).",
            ConvergenceWarning,
            stacklevel=3,
        )


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

    def __init__(self, search: Expectation, function: Expectation, start: Start, temperature: float, steps: Steps) -> None:
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
