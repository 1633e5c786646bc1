"""The mode of the generalised posterior: one function instead of a distribution."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ..moments import Spectrum
from ..objective import EPSILON, TARGET, ExpectedVarianceLoss, Gradient, Objective, represented_covariance
from ..validation import check_number
from .minimisation import Minimisation
from .variational import ADVANTAGE, OptimisationReport, may_share_directions, own_directions, rotated_start, with_fixed_signs
from .weights import PointWeights

Array = NDArray[np.float64]

SMOOTHING = (1e-1, 1e-2, 1e-3)


class Mode(BaseEstimator):
    """Minimises ℓ(C(v)) + τ/2 |v|², the negative log density of the generalised posterior times τ.

    Among functions with one direction for each dimension the minimum is known in closed form (`spectral_mode`). A rotated start, from
    which the dimensions may share directions, is tried as well and kept if it is better by one per cent. There the kink of the
    variance loss, on which the mode lies, is smoothed by giving the weights a fixed standard deviation that shrinks to 1e-3.

    Parameters
    ----------
    max_iterations
        Limit for L-BFGS at each width.
    """

    def __init__(self, max_iterations: int = 500) -> None:
        self.max_iterations = max_iterations

    def infer(
        self, spectrum: Spectrum, objective: Objective, n_components: int, seed: int, *, verbose: bool = False
    ) -> tuple[PointWeights, float, OptimisationReport]:
        """The mode, the objective there, and how it was found. Needs no draws, so the seed is not used."""
        check_number("max_iterations", self.max_iterations, Integral, at_least=1)
        n_directions = len(spectrum.basis)
        spectrum = replace(spectrum, tail_sum=0.0, tail_sum_of_squares=0.0)  # at the mode the tail is zero
        weights = spectral_mode(spectrum, objective, n_components)
        value = _negative_log_density(weights, spectrum, objective)
        report = OptimisationReport("spectral", 0, 0.0)
        if may_share_directions(spectrum, objective, n_components):
            other, other_report = self._rotated_mode(spectrum, objective, n_components)
            other_value = _negative_log_density(other, spectrum, objective)
            if other_value < value - ADVANTAGE * abs(value):
                weights, value, report = other, other_value, other_report
        weights = with_fixed_signs(weights, spectrum)
        return PointWeights(np.pad(weights, ((0, 0), (0, n_directions - spectrum.rank)))), value, report

    def _rotated_mode(self, spectrum: Spectrum, objective: Objective, n_components: int) -> tuple[Array, OptimisationReport]:
        variance = ExpectedVarianceLoss(spectrum, own_directions(spectrum, n_components), n_draws=0, seed=0)

        def function(mean: Array, std: Array) -> Gradient:
            return objective.expected(mean, std, spectrum, variance)

        start = rotated_start(spectrum, objective, n_components)._replace(std_is_free=False)
        n_iterations, scales = 0, (spectrum.eigenvalues, objective.temperature)
        for width in SMOOTHING:
            start = start._replace(std=np.full_like(start.std, width))
            minimum = Minimisation(function, start, *scales).minimise(self.max_iterations)
            start = start._replace(mean=minimum.mean)
            n_iterations += minimum.n_iterations
        return minimum.mean, OptimisationReport("rotated", n_iterations, minimum.error)


def spectral_mode(spectrum: Spectrum, objective: Objective, n_components: int) -> Array:
    """The mode among v_j = μ_j e_j, dimension j along direction j, for as many directions as dimensions. [J, r]

    With q = sqrt(λ μ² + c), c = ρ + tail + ε, dimension j contributes (c_V/J) max(0, γ − q) + τ (q² − c) / 2λ, which is least at

        q = c_V λ / (J τ), or the nearer of √c and γ if that lies outside of [√c, γ].
    """
    own = own_directions(spectrum, n_components)
    eigenvalues = spectrum.eigenvalues[own]
    constant = spectrum.residual + spectrum.tail_sum + EPSILON
    unbounded = objective.variance_weight * eigenvalues / (n_components * objective.temperature)
    deviation = np.maximum(np.minimum(unbounded, TARGET), np.sqrt(constant))
    weights = np.zeros((n_components, spectrum.rank))
    weights[np.arange(n_components), own] = np.sqrt((deviation**2 - constant).clip(0) / eigenvalues)
    return weights


def _negative_log_density(weights: Array, spectrum: Spectrum, objective: Objective) -> float:
    """ℓ(C(v)) + τ/2 |v|²."""
    loss = float(objective.loss(represented_covariance(weights, spectrum)))
    return loss + objective.temperature * PointWeights(weights).divergence()
