"""The paper's inference: the closest normal distribution to the generalised posterior."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from ..moments import Spectrum
from ..objective import ExpectedVarianceLoss, Gradient, Objective, normal_draws
from .minimisation import Minimum, Start, minimise, polish
from .weights import GaussianWeights

Array = NDArray[np.float64]

GRADIENT_TOLERANCE = 1e-6
STALLED_GRADIENT = 1e-2
FIRST_STD = 0.5
TRIAL_ITERATIONS = 100
ADVANTAGE = 0.01


class OptimisationReport(NamedTuple):
    """How a minimisation went."""

    start: str
    """The start that led to the better minimum: "spectral" or "rotated"."""
    n_iterations: int
    gradient_norm: float
    """Largest entry of the gradient at the end."""


class Variational(BaseEstimator):
    """Minimises E_q[ℓ] + τ KL(q ‖ p) over normal q, by L-BFGS on fixed quasi-random draws and a few Newton steps.

    In the eigenbasis of the moments the best q is diagonal. Two starts are tried:

    - *spectral*: dimension j along direction j, at unit variance. The objective does not change when direction a and dimension a
      change sign together, so off the diagonal the gradient with respect to the means is zero and stays zero: J means are
      optimised instead of J·r.
    - *rotated*: every dimension along a mix of the leading directions, all means free. At middling temperatures, where it does not
      pay to give every dimension a direction of its own, this leads to a better minimum; it is kept if it is better by one per cent.

    Parameters
    ----------
    n_draws
        Quasi-random draws over which the variance loss is averaged; a power of two.
    max_iterations
        Limit for L-BFGS.
    """

    def __init__(self, n_draws: int = 256, max_iterations: int = 2000) -> None:
        self.n_draws = n_draws
        self.max_iterations = max_iterations

    def infer(
        self, spectrum: Spectrum, objective: Objective, n_components: int, seed: int
    ) -> tuple[GaussianWeights, float, OptimisationReport]:
        """The optimal q, the objective there, and how the minimisation went."""
        draws = normal_draws(self.n_draws, spectrum.rank, seed)
        variance = ExpectedVarianceLoss(spectrum, own_directions(spectrum, n_components), draws)

        def function(mean: Array, std: Array) -> Gradient:
            return objective.expected(mean, std, spectrum, variance)

        free_std = np.ones((n_components, spectrum.rank), dtype=bool)
        starts = (
            spectral_start(spectrum, n_components, FIRST_STD, free_std),
            rotated_start(spectrum, n_components, FIRST_STD, free_std),
        )
        minimum, report = best_minimum(function, starts, self.max_iterations)
        return GaussianWeights(minimum.mean, minimum.std), minimum.value, report


def own_directions(spectrum: Spectrum, n_components: int) -> NDArray[np.intp]:
    """The leading direction of each dimension; dimensions share them where there are too few. [J]"""
    return np.arange(n_components, dtype=np.intp) % spectrum.rank


def spectral_start(spectrum: Spectrum, n_components: int, std: float, free_std: NDArray[np.bool_]) -> Start:
    """m_j = e_j / √λ_j: unit variance along the j-th direction. Only these means are free."""
    own = (np.arange(n_components), own_directions(spectrum, n_components))
    mean = np.zeros((n_components, spectrum.rank))
    mean[own] = 1 / np.sqrt(spectrum.eigenvalues[own[1]])
    return Start(mean, np.full_like(mean, std), mean != 0, free_std)


def rotated_start(spectrum: Spectrum, n_components: int, std: float, free_std: NDArray[np.bool_]) -> Start:
    """m = R Λ^(−½), with the rows of an orthogonal cosine transform for R. All means are free."""
    n_directions = min(n_components, spectrum.rank)
    rotation = dct(np.eye(n_components), norm="ortho", axis=0)[:, :n_directions]
    rotation /= np.linalg.norm(rotation, axis=1, keepdims=True)
    mean = np.zeros((n_components, spectrum.rank))
    mean[:, :n_directions] = rotation / np.sqrt(spectrum.eigenvalues[:n_directions])
    return Start(mean, np.full_like(mean, std), np.ones_like(mean, dtype=bool), free_std)


def best_minimum(
    function: Callable[[Array, Array], Gradient], starts: tuple[Start, Start], max_iterations: int
) -> tuple[Minimum, OptimisationReport]:
    """The better of the two minima, found to machine precision."""
    spectral, rotated = starts
    name, start = "spectral", spectral
    minimum = minimise(function, spectral, max_iterations=max_iterations, tolerance=GRADIENT_TOLERANCE)
    if len(spectral.mean) > 1:
        trial = minimise(function, rotated, max_iterations=TRIAL_ITERATIONS, tolerance=GRADIENT_TOLERANCE)
        if trial.value < minimum.value - ADVANTAGE * abs(minimum.value):
            name, start = "rotated", rotated._replace(mean=trial.mean, std=trial.std)
            minimum = minimise(function, start, max_iterations=max_iterations, tolerance=GRADIENT_TOLERANCE)
    minimum = polish(function, start, minimum)
    if not minimum.gradient_norm < STALLED_GRADIENT:
        warnings.warn(
            f"The optimiser stopped with a gradient of {minimum.gradient_norm:.1e}; the representation may depend on the seed. "
            "Raise the temperature, lower n_components, or pass inference=Variational(max_iterations=...).",
            ConvergenceWarning,
            stacklevel=2,
        )
    return minimum, OptimisationReport(name, minimum.n_iterations, minimum.gradient_norm)
