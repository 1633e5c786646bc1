"""The mode of the generalized posterior, in closed form: one function instead of a distribution, near which variational descents start."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import norm
from sklearn.base import BaseEstimator

from .._runtime.progress import SILENT, Task
from ..core._moments import Spectrum
from ..core._objective import Objective, expected_covariance_loss, represented_covariance
from ..core._posterior import PointWeights
from ._negative_variance import negative_variance_mode, widths_of_free_dimensions

Array = NDArray[np.float64]

ADVANTAGE = 0.01
"""Dimensions share directions only where that is better by one per cent; otherwise each keeps its own, which is easier to read."""
LEAST_COVARIANCE_WEIGHT = 1e-9
NEARLY = 0.8
TIE = 1e-12
FIRST_STD = 0.5
SWEEPS = 20
"""The fixed-point iteration for the widths at a start begins with this standard deviation and makes so many sweeps."""
LEAST_ENERGY = 1e-4
"""The least variance that a start gives to a direction, over γ²: at zero the gradient is zero by symmetry."""


class Arrangement(NamedTuple):
    """Weights v_ja = R_ja t_a: how the dimensions are made of the n leading directions. Beyond those the weights are zero."""

    mixing: Array
    """R [J, n]"""
    scale: Array
    """t [n]"""

    def weights(self, n_directions: int) -> Array:
        """Return v. [J, n_directions]"""
        weights = np.zeros((len(self.mixing), n_directions))
        weights[:, : len(self.scale)] = self.mixing * self.scale
        return weights


class ModeReport(NamedTuple):
    """Which of the two arrangements has the higher density."""

    arrangement: str
    """ "spectral" or "shared"."""
    n_tied: int = 0
    """Leading directions that the rows do not tell from others, because their eigenvalues are the same: see `gpssl.core.Spectrum.ties`."""
    n_left_out: int = 0
    """Equals of theirs that are not among the leading directions, and could have been as well."""


class Mode(BaseEstimator):
    """Minimizes ℓ(C(v)) + τ/2 |v|², the negative log density of the generalized posterior times τ.

    There are two arrangements, both in closed form: each dimension along a direction of its own (`spectral_mode`), or all
    dimensions sharing the leading directions (`shared_mode`), which is kept if it is better by one per cent. With the negative
    variance as the loss, the mode is zero, or at one temperature the first kernel principal component (`negative_variance_mode`).
    """

    def infer(
        self, spectrum: Spectrum, objective: Objective, n_components: int, seed: int, *, verbose: bool = False, task: Task = SILENT
    ) -> tuple[PointWeights, float, ModeReport]:
        """Return the mode, the objective there, and its arrangement. There are no draws, so the seed is not used."""
        spectrum = replace(spectrum, tail_sum=0.0, tail_sum_of_squares=0.0)  # at the mode the tail is zero
        name, weights = _mode(spectrum, objective, n_components)
        weights = with_fixed_signs(weights, spectrum.eigenvalues)
        value = _negative_log_density(weights, spectrum, objective)
        unused = len(spectrum.basis) - spectrum.rank
        return PointWeights(np.pad(weights, ((0, 0), (0, unused)))), value, ModeReport(name, *spectrum.ties(n_components))


def _mode(spectrum: Spectrum, objective: Objective, n_components: int) -> tuple[str, Array]:
    """Return the name of the arrangement with the higher density, and its weights. [J, r]"""
    if objective.variance_loss == "negative":
        return "spectral", negative_variance_mode(spectrum, objective, n_components)
    if sharing_pays(spectrum, objective, n_components):
        return "shared", shared_mode(spectrum, objective, n_components).weights(spectrum.rank)
    return "spectral", spectral_mode(spectrum, objective, n_components).weights(spectrum.rank)


def sharing_pays(spectrum: Spectrum, objective: Objective, n_components: int) -> bool:
    """Return whether the mode is better by one per cent where the dimensions share directions.

    Where dimensions outnumber directions they share in any case, and the spectral arrangement is no minimum, only a way to share. The
    negative variance leaves nothing to share: at its mode all weights are zero, or all but one.
    """
    if objective.variance_loss == "negative":
        return False
    spectral, shared = (
        _negative_log_density(mode(spectrum, objective, n_components).weights(spectrum.rank), spectrum, objective)
        for mode in (spectral_mode, shared_mode)
    )
    return shared < spectral - ADVANTAGE * abs(spectral)


def own_directions(spectrum: Spectrum, n_components: int) -> Array:
    """Return R for dimension j along direction j; where directions are too few, dimensions double up. [J, min(J, r)]"""
    n_directions = min(n_components, spectrum.rank)
    return np.eye(n_directions)[np.arange(n_components) % n_directions]


def spectral_mode(spectrum: Spectrum, objective: Objective, n_components: int) -> Arrangement:
    """Return the mode among v_j = μ_j e_j, dimension j along direction j, for as many directions as dimensions.

    With q = sqrt(λ μ² + c), c = ρ + tail + ε, dimension j contributes (c_V/J) max(0, γ − q) + τ (q² − c) / 2λ, which is least at

        q = c_V λ / (J τ), or the nearer of √c and γ if that lies outside of [√c, γ].
    """
    mixing = own_directions(spectrum, n_components)
    eigenvalues = spectrum.eigenvalues[: mixing.shape[1]]
    constant = _constant(spectrum, objective)
    unbounded = objective.variance_weight * eigenvalues / (n_components * objective.temperature)
    deviation = np.maximum(np.minimum(unbounded, objective.target_std), np.sqrt(constant))
    return Arrangement(mixing, np.sqrt((deviation**2 - constant).clip(0) / eigenvalues))


def shared_mode(spectrum: Spectrum, objective: Objective, n_components: int) -> Arrangement:
    """Return the mode among functions whose dimensions all have the same variance d.

    Let e_a be the eigenvalues of the covariance C of the representations, without the constant c. With C_jj = d for all j,

        ℓ_var = γ − sqrt(d + c)      ℓ_cov = (Σ e² − J d²) / J      |v|² ≥ Σ e/λ      Σ e = J d

    with equality where v = R E^½ Λ^(−½) for an orthogonal R. So R does not matter beyond making the diagonal equal (`equalizing`),
    and the rest is water-filling: at a given d the minimum over e has e_a = max(0, ν − p_a) / c_C with the price p_a = Jτ/4λ_a and
    a level ν. The derivative with respect to d increases with d, so that its zero, or else one of the ends, is the minimum:

        −c_V / (2 sqrt(d + c)) + 2 (ν(d) − c_C d) = 0      or      d = γ² − c      or      d = 0
    """
    n_directions = min(n_components, spectrum.rank)
    eigenvalues = spectrum.eigenvalues[:n_directions]
    prices = n_components * objective.temperature / (4 * eigenvalues)
    # Without a covariance loss all dimensions take the first direction. A tiny weight has the same effect and avoids a division by zero.
    covariance_weight = max(objective.covariance_weight, LEAST_COVARIANCE_WEIGHT * float(prices[0]))
    constant = _constant(spectrum, objective)

    def slope(variance: float) -> float:
        level = _water_level(prices, covariance_weight * n_components * variance)
        return 2 * (level - covariance_weight * variance) - objective.variance_weight / (2 * np.sqrt(variance + constant))

    variance = largest = max(0.0, objective.target_std**2 - constant)
    if slope(largest) > 0:
        variance = brentq(slope, 0.0, largest, xtol=1e-15, rtol=1e-14) if slope(0.0) < 0 else 0.0
    level = _water_level(prices, covariance_weight * n_components * variance)
    energies = np.maximum(0.0, level - prices)
    energies *= n_components * variance / max(float(energies.sum()), np.finfo(float).tiny)
    mixing = equalizing(np.pad(energies, (0, n_components - n_directions)))[:, :n_directions]
    return Arrangement(mixing, np.sqrt(energies / eigenvalues))


def _water_level(prices: Array, amount: float) -> float:
    """Return ν with Σ max(0, ν − p_a) = amount, for rising prices p."""
    levels = (amount + np.cumsum(prices)) / np.arange(1, len(prices) + 1)
    n_used = max(1, int((levels > prices).sum()))
    return float(levels[n_used - 1])


def equalizing(eigenvalues: Array) -> Array:
    """Return an orthogonal R for which all diagonal entries of R diag(eigenvalues) Rᵀ are equal (Schur and Horn). [J, J]

    `eigenvalues` fall. A rotation of one row above the mean and one below brings one of the two to the mean; the other takes
    what is left. Rows that wait have met no other that waits, so their block of the matrix is still diagonal.
    """
    target = float(eigenvalues.mean())
    diagonal = eigenvalues.copy()
    rotation = np.eye(len(diagonal))
    high, low = 0, len(diagonal) - 1
    while high < low:
        above, below = max(diagonal[high] - target, 0.0), max(target - diagonal[low], 0.0)
        if above + below > TIE * target:
            # cos²·above = sin²·below makes the row `high` equal to the target.
            cosine, sine = np.sqrt(below / (above + below)), np.sqrt(above / (above + below))
            left = diagonal[high] + diagonal[low] - target
            turned = cosine * rotation[high] + sine * rotation[low]
            waiting = cosine * rotation[low] - sine * rotation[high]
        else:
            left, turned, waiting = target, rotation[high], rotation[low]
        # Where both are at the target, as the last two always are, a rounding error must not decide on their order.
        if left > target * (1 + TIE) and high + 1 < low:
            rotation[low], rotation[high], diagonal[high] = turned, waiting, left
            low -= 1
        else:
            rotation[high], rotation[low], diagonal[low] = turned, waiting, left
            high += 1
    return rotation


def leading_directions(mean: Array, eigenvalues: Array) -> NDArray[np.intp]:
    """Return for each dimension the first direction that contributes nearly as much as any. [J]

    The largest contribution would not do: where directions are shared, two may be equal, and a rounding error would decide.
    """
    contributions = mean**2 * eigenvalues
    return np.argmax(contributions >= NEARLY * contributions.max(axis=1, keepdims=True), axis=1)


def with_fixed_signs(mean: Array, eigenvalues: Array) -> Array:
    """Make the leading direction of each dimension positive; the objective is the same for both signs."""
    leading = np.take_along_axis(mean, leading_directions(mean, eigenvalues)[:, None], axis=1)
    return mean * np.where(leading < 0, -1.0, 1.0)


def _constant(spectrum: Spectrum, objective: Objective) -> float:
    """Return c, the part of C_jj + ε that the leading directions do not decide."""
    return spectrum.residual + spectrum.tail_sum + objective.epsilon


def _negative_log_density(weights: Array, spectrum: Spectrum, objective: Objective) -> float:
    """Return ℓ(C(v)) + τ/2 |v|²."""
    loss = float(objective.loss(represented_covariance(weights, spectrum)))
    return loss + objective.temperature * (0.5 * float((weights**2).sum()))


# Starts of the variational descents, near the modes


class Start(NamedTuple):
    """Where a minimization begins. The mean is a sum of patterns, Σ_p t_p B_p, in the n leading directions, and zero beyond them."""

    patterns: Array
    """B [P, J, n]"""
    sizes: Array
    """t [P]"""
    std: Array
    """[J, r]"""


def spectral_start(spectrum: Spectrum, objective: Objective, n_components: int) -> Start:
    """Start with dimension j along direction j, close to the minimum.

    There C_jj^½ is about normal, with mean sqrt(λ_j m_j² + c_j) and width σ_j (`widths_and_others`). With the mean at γ + z σ_j the hinge
    of the variance loss pulls on it by (c_V/J) Φ(−z), which the divergence balances, and on σ_j by (c_V/J) φ(z):

        (c_V/J) √λ_j Φ(−z) = τ m_j ≈ τ γ/√λ_j

    The negative variance pulls on the widths alone, and the means start at zero.
    """
    mixing = own_directions(spectrum, n_components)
    if objective.variance_loss == "negative":
        return tied(Arrangement(mixing, np.zeros(mixing.shape[1])), widths_of_free_dimensions(spectrum, objective, n_components))
    root = np.sqrt(spectrum.eigenvalues[: mixing.shape[1]])
    pull, target = objective.variance_weight / n_components, objective.target_std
    below = objective.temperature * target / np.maximum(pull * root**2, objective.temperature)  # at most one, also without a pull
    z = ndtri(1 - np.clip(below, 1e-15, 0.5))
    mean = Arrangement(mixing, target / root).weights(spectrum.rank)
    std = fitting_widths(mean, mixing @ (pull * norm.pdf(z)), spectrum, objective)
    width, others = widths_and_others(mean, std, spectrum, target)
    first = slice(len(root))  # where dimensions double up, the first one of each direction stands for all
    length = (target + z * width[first]) ** 2 - others[first]
    return tied(Arrangement(mixing, np.sqrt(np.maximum(length, LEAST_ENERGY * target**2)) / root), std)


def shared_start(spectrum: Spectrum, objective: Objective, n_components: int) -> Start:
    """Start at the mode among functions whose dimensions share the leading directions."""
    mixing, scale = shared_mode(spectrum, objective, n_components)
    # At zero, where the mode leaves out a direction, the gradient is zero by symmetry; a little of it is free to grow.
    least = np.sqrt(LEAST_ENERGY * objective.target_std**2 / spectrum.eigenvalues[: len(scale)])
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
        stiffness += (pull / widths_and_others(mean, std, spectrum, objective.target_std)[0])[:, None] * along * spectrum.eigenvalues
        # Wide dimensions make the others narrow and the other way round; the geometric mean of old and new does not oscillate.
        std = np.sqrt(std * np.sqrt(objective.temperature / stiffness))
    return std


def widths_and_others(mean: Array, std: Array, spectrum: Spectrum, target_std: float) -> tuple[Array, Array]:
    """Return σ_j, the standard deviation of C_jj^½ under q near γ, and c_j, what all but the mean's direction add to E C_jj. [J] each

    σ_j² ≈ Σ_a λ_a s_ja² cos²_ja + ½ Σ_a (λ_a s_ja² (1 − cos²_ja))² / γ², with the cosine between mean and direction. The first sum is
    along the mean, to first order; the second is across it, where only squares enter.
    """
    along = _squared_cosines(mean, spectrum)
    variances = spectrum.eigenvalues * std**2
    across = variances * (1 - along)
    width = np.sqrt((variances * along).sum(axis=1) + (across**2).sum(axis=1) / (2 * target_std**2))
    return width, across.sum(axis=1) + spectrum.residual + spectrum.tail_sum


def _squared_cosines(mean: Array, spectrum: Spectrum) -> Array:
    contributions = mean**2 * spectrum.eigenvalues
    return contributions / np.maximum(contributions.sum(axis=1, keepdims=True), np.finfo(float).tiny)
