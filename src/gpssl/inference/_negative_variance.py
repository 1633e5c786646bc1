"""Modes and starts for the negative variance, −Var, which the paper's proposition 1 has in the place of VICReg's hinge.

The objective then is a quadratic function of the weights, −(c_V/J) Σ λ_a v_ja² + (τ/2) |v|², plus a covariance loss that a single
dimension does not feel. It has a minimum only where the temperature outweighs the variance of the first direction:

    τ > 2 c_V λ₁ / J      the mode is zero, and so is the mean; the first direction is the widest
    τ = 2 c_V λ₁ / J      every multiple of the first kernel principal component is a mode: proposition 1. No normal distribution is best
    τ < 2 c_V λ₁ / J      the longer the first component, the better: neither has a minimum
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core._moments import Spectrum
from ..core._objective import Objective, expected_covariance_loss

Array = NDArray[np.float64]

SAME_TEMPERATURE = 1e-9
"""Temperatures that differ by less than this share count as equal: more digits than those of an eigenvalue's cannot tell them apart."""
SWEEPS = 20
"""The fixed-point iteration for the widths makes so many sweeps."""


def least_temperature(spectrum: Spectrum, objective: Objective, n_components: int) -> float:
    """Return 2 c_V λ₁ / J, below which the objective has no minimum."""
    return 2 * objective.variance_weight * float(spectrum.eigenvalues[0]) / n_components


def check_normal_minimum(spectrum: Spectrum, objective: Objective, n_components: int) -> None:
    """Raise ValueError unless there is a best normal distribution."""
    least = least_temperature(spectrum, objective, n_components)
    if objective.temperature <= least * (1 + SAME_TEMPERATURE):
        _refuse(objective, least)


def negative_variance_mode(spectrum: Spectrum, objective: Objective, n_components: int) -> Array:
    """Return the mode: zero, or at the least temperature the first direction with length one, as kernel PCA has it. [J, r]

    Raise ValueError where there is no mode.
    """
    least = least_temperature(spectrum, objective, n_components)
    weights = np.zeros((n_components, spectrum.rank))
    if objective.temperature < least * (1 - SAME_TEMPERATURE):
        _refuse(objective, least)
    if objective.temperature <= least * (1 + SAME_TEMPERATURE):
        weights[0, 0] = 1.0
    return weights


def _refuse(objective: Objective, least: float) -> None:
    weight = objective.variance_weight * objective.temperature / least
    raise ValueError(
        f'With variance_loss="negative" the objective has no minimum at a temperature of {objective.temperature:.6g}: '
        f"raise the temperature above {least:.6g}, or lower variance_weight below {weight:.6g}."
    )


def widths_of_free_dimensions(spectrum: Spectrum, objective: Objective, n_components: int) -> Array:
    """Return standard deviations that nearly balance the losses and the divergence at a mean of zero, by a fixed point. [J, r]

    s² = τ / (τ − 2 c_V λ_a / J + h),      h = c_C (∂ℓ_cov/∂s) / s

    Dimensions in turn, the first of which begins alone: it takes the first direction, where the others become narrow.
    """
    stiffness = objective.temperature - 2 * objective.variance_weight * spectrum.eigenvalues / n_components
    mean = np.zeros((n_components, spectrum.rank))
    std = np.full_like(mean, np.finfo(float).eps)
    for _ in range(SWEEPS):
        for dimension in range(n_components):
            by_std = expected_covariance_loss(mean, std, spectrum).by_std[dimension]
            felt = objective.covariance_weight * by_std / std[dimension]
            std[dimension] = np.sqrt(objective.temperature / (stiffness + felt))
    return std
