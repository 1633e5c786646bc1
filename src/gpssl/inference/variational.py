"""The paper's inference: the closest normal distribution to the generalised posterior."""

from __future__ import annotations

import warnings
from functools import partial
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from ..moments import Spectrum
from ..objective import TARGET, ExpectedVarianceLoss, Objective, expected_covariance_loss
from ..validation import check_number
from .minimisation import POLISHED, Minimisation, Minimum, Start
from .weights import GaussianWeights

Array = NDArray[np.float64]

STALLED_ERROR = 1e-2
FIRST_STD = 0.5
SWEEPS = 10
TRIAL_ITERATIONS = 100
ADVANTAGE = 0.01
WORTH_TRYING = 0.05
JUDGING_DRAWS = 1024
DRAW_FACTORS = (1, 8, 64)
MOST_NUMBERS_DRAWN = 50_000


class OptimisationReport(NamedTuple):
    """How a minimisation went."""

    start: str
    """The start that led to the better minimum: "spectral" or "rotated"."""
    n_iterations: int
    error: float
    """Size of the gradient at the end, in units of the divergence's curvature."""


class Variational(BaseEstimator):
    """Minimises E_q[ℓ] + τ KL(q ‖ p) over normal q, by L-BFGS on fixed quasi-random draws and a few Newton steps.

    In the eigenbasis of the moments the best q is diagonal. There are two starts:

    - *spectral*: dimension j along direction j, at unit variance. The objective does not change when direction a and dimension a
      change sign together, so off the diagonal the gradient with respect to the means is zero, in expectation over the draws, and
      stays zero: J means are optimised instead of J·r.
    - *rotated*: every dimension along a mix of the leading directions, all means free. At middling temperatures, where it does not
      pay to give every dimension a direction of its own, this leads to a better minimum. It is tried where that may be so, and kept
      if it is better by one per cent and the descent comes to an end.

    Parameters
    ----------
    n_draws
        Quasi-random draws over which the variance loss is averaged; a power of two. Where fresh draws judge the minimum to be more than
        one per cent worse, it is sought again with 8 and then 64 times as many, while that stays affordable.
    max_iterations
        Limit for L-BFGS.
    """

    def __init__(self, n_draws: int = 64, max_iterations: int = 300) -> None:
        self.n_draws = n_draws
        self.max_iterations = max_iterations

    def infer(
        self, spectrum: Spectrum, objective: Objective, n_components: int, seed: int, *, verbose: bool = False
    ) -> tuple[GaussianWeights, float, OptimisationReport]:
        """The optimal q, the objective there, and how the minimisation went."""
        if not isinstance(self.n_draws, Integral) or self.n_draws < 1 or self.n_draws & (self.n_draws - 1):
            raise ValueError(f"n_draws must be a power of two, got {self.n_draws!r}.")
        check_number("max_iterations", self.max_iterations, Integral, at_least=1)
        own = own_directions(spectrum, n_components)
        judge = ExpectedVarianceLoss(spectrum, own, JUDGING_DRAWS, seed + 1)
        for factor in DRAW_FACTORS:
            problem = _VariationalProblem(spectrum, objective, n_components, factor * self.n_draws, seed)
            minimum, report = problem.solve(self.max_iterations)
            # The draws that were minimised over flatter the minimum. It is judged on others; where those disagree, as they may
            # where no covariance loss keeps the widths small, more draws are needed.
            value = objective.expected(minimum.mean, minimum.std, spectrum, judge).value
            too_many = 8 * factor * self.n_draws * spectrum.rank * n_components > MOST_NUMBERS_DRAWN
            if value - minimum.value <= ADVANTAGE * value or too_many:
                break
        _warn_if_stalled(minimum)
        return GaussianWeights(with_fixed_signs(minimum.mean, spectrum), minimum.std), value, report


def own_directions(spectrum: Spectrum, n_components: int) -> NDArray[np.intp]:
    """The leading direction of each dimension; dimensions share them where there are too few. [J]"""
    return np.arange(n_components, dtype=np.intp) % spectrum.rank


def spectral_start(spectrum: Spectrum, objective: Objective, n_components: int) -> Start:
    """Dimension j along direction j. Only these means are free.

    Near the minimum the pull of the variance loss on m_j balances that of the divergence: the share of draws below γ is
    p = Jτ / (c_V λ_j), so that √λ_j m_j = γ + z σ_j with Φ(−z) = p and σ_j = √λ_j s_j.
    """
    own = (np.arange(n_components), own_directions(spectrum, n_components))
    root = np.sqrt(spectrum.eigenvalues[own[1]])
    mean = np.zeros((n_components, spectrum.rank))
    mean[own] = TARGET / root
    std = fitting_widths(mean, spectrum, objective)
    below = n_components * objective.temperature / np.maximum(objective.variance_weight * root**2, np.finfo(float).tiny)
    mean[own] += ndtri(1 - np.clip(below, 1e-15, 0.5)) * std[own]
    return Start(mean, std, mean != 0, std_is_free=True)


def rotated_start(spectrum: Spectrum, objective: Objective, n_components: int) -> Start:
    """The means are m = R Λ^(−½) with an orthogonal R; all are free.

    R is fixed but has no symmetry: from a symmetric start the descent reaches saddle points, which only rounding errors lead away from.
    """
    n_directions = min(n_components, spectrum.rank)
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((n_components, n_components)))[0][:, :n_directions]
    rotation /= np.linalg.norm(rotation, axis=1, keepdims=True)
    mean = np.zeros((n_components, spectrum.rank))
    mean[:, :n_directions] = rotation / np.sqrt(spectrum.eigenvalues[:n_directions])
    return Start(mean, fitting_widths(mean, spectrum, objective), np.ones_like(mean, dtype=bool), std_is_free=True)


def fitting_widths(mean: Array, spectrum: Spectrum, objective: Objective) -> Array:
    """Standard deviations that balance covariance loss and divergence at these means, by a fixed point. [J, r]

    c_C ∂ℓ_cov/∂s + τ (s − 1/s) = 0, and ∂ℓ_cov/∂s = h s with h independent of the dimension's own s: s² = τ / (τ + c_C h).
    """
    std = np.full_like(mean, FIRST_STD)
    for _ in range(SWEEPS):
        slope = expected_covariance_loss(mean, std, spectrum).by_std / std
        std = np.sqrt(objective.temperature / (objective.temperature + objective.covariance_weight * slope))
    return std


def with_fixed_signs(mean: Array, spectrum: Spectrum) -> Array:
    """Each dimension with the sign that makes its largest contribution positive; the objective does not tell the two apart."""
    largest = np.argmax(mean**2 * spectrum.eigenvalues, axis=1)
    return mean * np.where(mean[np.arange(len(mean)), largest] < 0, -1.0, 1.0)[:, None]


def may_share_directions(spectrum: Spectrum, objective: Objective, n_components: int) -> bool:
    """Whether a dimension may do better without a direction of its own, so that the rotated start is worth trying.

    A direction of its own costs dimension j about τγ²/2λ_j. Going without costs up to c_V γ/J in the variance loss; sharing, about
    2 c_C γ⁴/J in the covariance loss.
    """
    if n_components == 1:
        return False
    if n_components > spectrum.rank:
        return True
    own_cost = objective.temperature * TARGET**2 / (2 * spectrum.eigenvalues[n_components - 1])
    other_cost = min(objective.variance_weight, 2 * objective.covariance_weight) / n_components
    return bool(own_cost > WORTH_TRYING * other_cost)


class _VariationalProblem:
    """The two descents, on one set of draws."""

    def __init__(self, spectrum: Spectrum, objective: Objective, n_components: int, n_draws: int, seed: int) -> None:
        self.spectrum = spectrum
        self.objective = objective
        self.n_components = n_components
        self.n_draws = n_draws
        self.seed = seed

    def solve(self, max_iterations: int) -> tuple[Minimum, OptimisationReport]:
        """The minimum from the spectral start, or from the rotated one where that is clearly better, to machine precision."""
        spectral = self._descent(spectral_start(self.spectrum, self.objective, self.n_components))
        minimum = spectral.minimise(max_iterations)
        if may_share_directions(self.spectrum, self.objective, self.n_components):
            start = rotated_start(self.spectrum, self.objective, self.n_components)
            trial = self._descent(start).minimise(TRIAL_ITERATIONS)
            if trial.value < minimum.value - ADVANTAGE * abs(minimum.value):
                rotated = self._descent(start._replace(mean=trial.mean, std=trial.std))
                other = rotated.refine(rotated.minimise(max_iterations), max_iterations)
                # In a valley too flat for the descent to end, the result would depend on rounding errors.
                if other.error < POLISHED:
                    return other, OptimisationReport("rotated", other.n_iterations, other.error)
        minimum = spectral.refine(minimum, max_iterations)
        return minimum, OptimisationReport("spectral", minimum.n_iterations, minimum.error)

    def _descent(self, start: Start) -> Minimisation:
        """Each dimension's leading direction at the start is the one that is integrated out."""
        own = np.argmax(start.mean**2 * self.spectrum.eigenvalues, axis=1)
        variance = ExpectedVarianceLoss(self.spectrum, own, self.n_draws, self.seed)
        function = partial(self.objective.expected, spectrum=self.spectrum, expected_variance=variance)
        return Minimisation(function, start, self.spectrum.eigenvalues, self.objective.temperature)


def _warn_if_stalled(minimum: Minimum) -> None:
    if not minimum.error < STALLED_ERROR:
        warnings.warn(
            f"The optimiser stopped early, with an error of about {minimum.error:.1e}: the representation may depend on the seed. "
            "Raise the temperature, lower n_components, or pass inference=Variational(max_iterations=...).",
            ConvergenceWarning,
            stacklevel=3,
        )
