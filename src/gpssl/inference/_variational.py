"""The paper's inference: the closest normal distribution to the generalized posterior."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from .._runtime.progress import SILENT, Steps, Task
from .._validation import check_number
from ..core._moments import Spectrum
from ..core._objective import TARGET, ExpectedVarianceLoss, Objective, expected_covariance_loss
from ..core._posterior import GaussianWeights
from ._minimization import POLISHED, Minimization, Minimum, Start
from ._mode import ADVANTAGE, Arrangement, leading_directions, own_directions, shared_mode, sharing_pays, with_fixed_signs

Array = NDArray[np.float64]

STALLED_ERROR = 1e-2
"""A descent that ends with a larger error, in standard deviations of the posterior, has not come to an end."""
FIRST_STD = 0.5
SWEEPS = 20
"""The fixed-point iteration for the widths at a start begins with this standard deviation and makes so many sweeps."""
LEAST_ENERGY = 1e-4
"""The least variance that a start gives to a direction: at zero the gradient is zero by symmetry."""
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
ROUNDED_BITS = 33
"""The spectrum is rounded to so many bits of its largest eigenvalue, which are ten digits."""


class OptimizationReport(NamedTuple):
    """How a minimization went."""

    start: str
    """The start that led to the better minimum: "spectral" or "shared"."""
    n_iterations: int
    error: float
    """Size of the gradient at the end: about the distance to the minimum in standard deviations of the posterior."""


class Variational(BaseEstimator):
    """Minimizes E_q[ℓ] + τ KL(q ‖ p) over normal q, by L-BFGS on fixed quasi-random draws and a few Newton steps.

    In the eigenbasis of the moments the best q is diagonal, with means m_ja = R_ja t_a in the J leading directions a. There are two
    starts:

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
        with task.steps("variational inference", "iteration") as steps:
            if self.precise:
                minimum, value, report = self._minimize(spectrum, objective, n_components, seed, steps)
                _warn_if_stalled(minimum)
            else:
                problem = _VariationalProblem(spectrum, objective, n_components, self.n_draws, seed, steps)
                minimum, report = problem.solve_roughly(self.max_iterations)
                value = minimum.value
        return GaussianWeights(with_fixed_signs(minimum.mean, spectrum.eigenvalues), minimum.std), value, report

    def _minimize(
        self, spectrum: Spectrum, objective: Objective, n_components: int, seed: int, steps: Steps
    ) -> tuple[Minimum, float, OptimizationReport]:
        """Return the minimum on as many draws as it takes, and the objective there on fresh ones."""
        own = np.arange(n_components) % spectrum.rank
        judge = ExpectedVarianceLoss(spectrum, own, JUDGING_DRAWS, seed + 1)
        for factor in DRAW_FACTORS:
            problem = _VariationalProblem(spectrum, objective, n_components, factor * self.n_draws, seed, steps)
            minimum, report = problem.solve(self.max_iterations)
            # The draws that were minimized over flatter the minimum. It is judged on others; where those disagree, as they may
            # where no covariance loss keeps the widths small, more draws are needed.
            value = objective.expected(minimum.mean, minimum.std, spectrum, judge).value
            too_many = 8 * factor * self.n_draws * spectrum.rank * n_components > MOST_NUMBERS_DRAWN
            if value - minimum.value <= ADVANTAGE * value or too_many or steps.stopped:
                break
        return minimum, value, report


def spectral_start(spectrum: Spectrum, objective: Objective, n_components: int) -> Start:
    """Start with dimension j along direction j, close to the minimum.

    There C_jj^½ is about normal, with mean sqrt(λ_j m_j² + c_j) and width σ_j (`deviation_of`). With the mean at γ + z σ_j the hinge
    of the variance loss pulls on it by (c_V/J) Φ(−z), which the divergence balances, and on σ_j by (c_V/J) φ(z):

        (c_V/J) √λ_j Φ(−z) = τ m_j ≈ τ γ/√λ_j
    """
    mixing = own_directions(spectrum, n_components)
    root = np.sqrt(spectrum.eigenvalues[: mixing.shape[1]])
    pull = objective.variance_weight / n_components
    below = objective.temperature * TARGET / np.maximum(pull * root**2, objective.temperature)  # at most one, also without a pull
    z = ndtri(1 - np.clip(below, 1e-15, 0.5))
    mean = Arrangement(mixing, TARGET / root).weights(spectrum.rank)
    std = fitting_widths(mean, mixing @ (pull * norm.pdf(z)), spectrum, objective)
    deviation = deviation_of(mean, std, spectrum)
    first = slice(len(root))  # where dimensions double up, the first one of each direction stands for all
    length = (TARGET + z * deviation.width[first]) ** 2 - deviation.others[first]
    return tied(Arrangement(mixing, np.sqrt(np.maximum(length, LEAST_ENERGY)) / root), std)


def shared_start(spectrum: Spectrum, objective: Objective, n_components: int) -> Start:
    """Start at the mode among functions whose dimensions share the leading directions."""
    mixing, scale = shared_mode(spectrum, objective, n_components)
    # At zero, where the mode leaves out a direction, the gradient is zero by symmetry; a little of it is free to grow.
    least = np.sqrt(LEAST_ENERGY / spectrum.eigenvalues[: len(scale)])
    arrangement = Arrangement(mixing, np.maximum(scale, least))
    return tied(arrangement, fitting_widths(arrangement.weights(spectrum.rank), np.zeros(n_components), spectrum, objective))


def tied(arrangement: Arrangement, std: Array) -> Start:
    """Start with m_ja = R_ja t_a, where R stays fixed: one pattern for each direction."""
    n_directions = len(arrangement.scale)
    patterns = np.zeros((n_directions, *arrangement.mixing.shape))
    patterns[np.arange(n_directions), :, np.arange(n_directions)] = arrangement.mixing.T
    return Start(patterns, arrangement.scale, std)


def fitting_widths(mean: Array, pull: Array, spectrum: Spectrum, objective: Objective) -> Array:
    """Return the standard deviations that balance the losses and the divergence at these means, by a fixed point. [J, r]

    c_C ∂ℓ_cov/∂s + p_j ∂σ_j/∂s + τ (s − 1/s) = 0, where p_j is the pull of the variance loss on the width of dimension j, of which only
    the part along the mean is counted. The first two are h s with an h that depends on s only weakly: s² = τ / (τ + h).
    """
    std = np.full_like(mean, FIRST_STD)
    along = _squared_cosines(mean, spectrum)
    for _ in range(SWEEPS):
        stiffness = objective.temperature + objective.covariance_weight * expected_covariance_loss(mean, std, spectrum).by_std / std
        stiffness += (pull / deviation_of(mean, std, spectrum).width)[:, None] * along * spectrum.eigenvalues
        # Wide dimensions make the others narrow and the other way round; the geometric mean of old and new does not oscillate.
        std = np.sqrt(std * np.sqrt(objective.temperature / stiffness))
    return std


class Deviation(NamedTuple):
    """The distribution of C_jj^½ under q, for each dimension."""

    width: Array
    """σ_j, its standard deviation near γ. [J]"""
    others: Array
    """c_j, what the directions across the mean, the tail and the residual contribute to E C_jj. [J]"""


def deviation_of(mean: Array, std: Array, spectrum: Spectrum) -> Deviation:
    """Return σ_j² ≈ Σ_a λ_a s_ja² cos²_ja + ½ Σ_a (λ_a s_ja² (1 − cos²_ja))² / γ², with the cosine between mean and direction.

    The first sum is along the mean, to first order; the second is across it, where only squares enter.
    """
    along = _squared_cosines(mean, spectrum)
    variances = spectrum.eigenvalues * std**2
    across = variances * (1 - along)
    width = np.sqrt((variances * along).sum(axis=1) + (across**2).sum(axis=1) / (2 * TARGET**2))
    return Deviation(width, across.sum(axis=1) + spectrum.residual + spectrum.tail_sum)


def _squared_cosines(mean: Array, spectrum: Spectrum) -> Array:
    contributions = mean**2 * spectrum.eigenvalues
    return contributions / np.maximum(contributions.sum(axis=1, keepdims=True), np.finfo(float).tiny)


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


class _VariationalProblem:
    """The two descents, on one set of draws.

    A descent through a flat valley amplifies every rounding error, and so would the choice between its ends. Descents and choices are
    therefore made with the `rounded` spectrum, and the Newton steps that end them, which forget where they came from, with the exact one.
    """

    def __init__(self, spectrum: Spectrum, objective: Objective, n_components: int, n_draws: int, seed: int, steps: Steps) -> None:
        self.exact = spectrum
        self.spectrum = rounded(spectrum)
        self.objective = objective
        self.n_components = n_components
        self.n_draws = n_draws
        self.seed = seed
        self.steps = steps

    def solve_roughly(self, max_iterations: int) -> tuple[Minimum, OptimizationReport]:
        """Take a few steps from the starts, which are close to minima themselves, and choose by the same rule as `solve`."""
        n_steps = min(ROUGH_ITERATIONS, max_iterations)
        minimum = self._descent(spectral_start(self.spectrum, self.objective, self.n_components)).minimize(n_steps)
        if sharing_pays(self.spectrum, self.objective, self.n_components):
            shared = self._descent(shared_start(self.spectrum, self.objective, self.n_components)).minimize(n_steps)
            if shared.value < minimum.value - ADVANTAGE * abs(minimum.value):
                return _reported("shared", shared)
        return _reported("spectral", minimum)

    def solve(self, max_iterations: int) -> tuple[Minimum, OptimizationReport]:
        """Return the minimum from the spectral start, or from the shared one where that is clearly better, to machine precision."""
        descent = self._descent(spectral_start(self.spectrum, self.objective, self.n_components))
        minimum = descent.minimize(max_iterations)
        if sharing_pays(self.spectrum, self.objective, self.n_components):
            shared_descent = self._descent(shared_start(self.spectrum, self.objective, self.n_components))
            shared = shared_descent.minimize(max_iterations)
            if shared.value < minimum.value - ADVANTAGE * abs(minimum.value):
                return _reported("shared", self._settle_in_the_valley(shared_descent, shared, max_iterations))
        return _reported("spectral", descent.refine(minimum, max_iterations))

    def _settle_in_the_valley(self, descent: Minimization, minimum: Minimum, max_iterations: int) -> Minimum:
        """Return the minimum with all means free, if the descent comes to an end; otherwise the one with the mixing of the start."""
        free, trial = descent.with_free_means(minimum, min(TRIAL_ITERATIONS, max_iterations))
        if trial.error < STALLED_ERROR:
            trial = free.refine(trial, max_iterations)
            if trial.error < POLISHED and trial.value < minimum.value:
                return trial
        return descent.refine(minimum, max_iterations)

    def _descent(self, start: Start) -> Minimization:
        """Prepare the descent from a start, whose leading direction in each dimension is the one that is integrated out."""
        mean = np.tensordot(start.sizes, start.patterns, axes=1)
        own = leading_directions(mean, self.spectrum.eigenvalues[: mean.shape[1]])
        search, function = (
            partial(
                self.objective.expected,
                spectrum=spectrum,
                expected_variance=ExpectedVarianceLoss(spectrum, own, self.n_draws, self.seed),
            )
            for spectrum in (self.spectrum, self.exact)
        )
        return Minimization(search, function, start, self.objective.temperature, self.steps)


def _reported(start: str, minimum: Minimum) -> tuple[Minimum, OptimizationReport]:
    return minimum, OptimizationReport(start, minimum.n_iterations, minimum.error)


def _warn_if_stalled(minimum: Minimum) -> None:
    if not minimum.error < STALLED_ERROR:
        warnings.warn(
            f"The optimizer stopped early, with an error of about {minimum.error:.1e}: the representation may depend on the seed. "
            "Raise the temperature, lower n_components, or pass inference=Variational(max_iterations=...).",
            ConvergenceWarning,
            stacklevel=3,
        )
