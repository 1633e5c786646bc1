"""The losses and the divergence from the prior, each with its equation, its constants and its gradient.

Notation: J representation dimensions, r learned directions with eigenvalues λ, ρ the residual variance, and
v_ja ~ N(m_ja, s_ja²) the weight of direction a in dimension j. All functions take and return float64.

| paper                        | here                                                     |
|------------------------------|----------------------------------------------------------|
| ℓ_var, eq. 2                 | `variance_loss`, in expectation `ExpectedVarianceLoss`   |
| −Var, proposition 1          | `negative_variance`, in expectation `expected_negative_variance` |
| ℓ_cov, eq. 3 (VICReg's form) | `covariance_loss`, in expectation `expected_covariance_loss` |
| ℓ, eq. 4                     | `Objective.loss`                                         |
| KL(q ‖ p), section 2.2       | `kl_divergence`                                          |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from numbers import Real
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import qmc

from .._validation import check_number
from ._moments import Spectrum

Array = NDArray[np.float64]
VarianceForm = Literal["hinge", "negative"]
VARIANCE_FORMS: tuple[VarianceForm, ...] = get_args(VarianceForm)

TARGET = 1.0
"""The paper's γ: the standard deviation below which the variance loss pulls a dimension apart."""
EPSILON = 1e-7
"""The paper's ε: keeps the square root differentiable at zero."""

NEGLECTED_VARIANCE = 1e-4
"""Share of the prior variance of C_jj that directions without draws may have; see `ExpectedVarianceLoss`."""

QUADRATURE_NODES, QUADRATURE_WEIGHTS = np.polynomial.legendre.leggauss(48)
QUADRATURE_WINDOW = 7.0
"""Standard deviations of a normal variable that the quadrature covers; beyond them lies 3e-12 of the mass. That is small against the
temperature, which is 1e-6 for a million rows: a share of about Jτ of the draws decides where the minimum lies.

For an offset above 1e-2 the error is below 1e-10, above 1e-3 below 1e-8. A smaller offset, which takes weights near zero in all other
directions, leaves a kink at y = 0 that costs digits: 1e-4 at 1e-7."""


def variance_loss(covariance: Array, target_std: float = TARGET, epsilon: float = EPSILON) -> Array:
    """Return ℓ_var = (1/J) Σ_j max(0, γ − sqrt(C_jj + ε)), for each matrix C in an array [..., J, J]. [...]"""
    deviations = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1) + epsilon)
    return np.maximum(0.0, target_std - deviations).mean(axis=-1)


def negative_variance(covariance: Array) -> Array:
    """Return −(1/J) Σ_j C_jj, for each matrix C in an array [..., J, J]. [...]"""
    return -np.diagonal(covariance, axis1=-2, axis2=-1).mean(axis=-1)


def covariance_loss(covariance: Array) -> Array:
    """Return ℓ_cov = (1/J) Σ_{j≠k} C_jk², for each matrix C in an array [..., J, J]. [...]"""
    squares = covariance**2
    off_diagonal = squares.sum(axis=(-2, -1)) - np.trace(squares, axis1=-2, axis2=-1)
    return off_diagonal / covariance.shape[-1]


def represented_covariance(weights: Array, spectrum: Spectrum) -> Array:
    """Return C_jk = Σ_a λ_a v_ja v_ka + δ_jk (ρ + tail), for weights [..., J, r]. [..., J, J]"""
    covariance = (weights * spectrum.eigenvalues) @ weights.swapaxes(-2, -1)
    return covariance + (spectrum.residual + spectrum.tail_sum) * np.eye(weights.shape[-2])


class Gradient(NamedTuple):
    """A value and its derivatives with respect to means and standard deviations."""

    value: float
    by_mean: Array
    """[J, r]"""
    by_std: Array
    """[J, r]"""


Expectation = Callable[[Array, Array], Gradient]
"""The expectation of a loss over q, from its means and standard deviations."""


def kl_divergence(mean: Array, std: Array) -> Gradient:
    """Return KL(q ‖ p) = ½ Σ (m² + s² − 1) − Σ log s, from q = N(m, s²) to the prior p = N(0, 1)."""
    value = 0.5 * float((mean**2 + std**2 - 1).sum()) - float(np.log(std).sum())
    return Gradient(value, mean, std - 1 / std)


def expected_covariance_loss(mean: Array, std: Array, spectrum: Spectrum) -> Gradient:
    """Return E_q[ℓ_cov] = (1/J) Σ_{j≠k} E[C_jk²] in closed form, where C_jk = Σ_a λ_a v_ja v_ka:

    E[C_jk²] = (Σ λ m_j m_k)² − Σ λ² m_j² m_k² + Σ λ² (m_j² + s_j²)(m_k² + s_k²)      j ≠ k

    The last sum runs over the tail too, where m = 0 and s = 1.
    """
    n_components = len(mean)
    eigenvalues, squared_eigenvalues = spectrum.eigenvalues, spectrum.eigenvalues**2
    mean_square, raw_square = mean**2, mean**2 + std**2
    overlap = (mean * eigenvalues) @ mean.T
    expected = overlap**2
    expected -= (mean_square * squared_eigenvalues) @ mean_square.T
    expected += (raw_square * squared_eigenvalues) @ raw_square.T
    expected += spectrum.tail_sum_of_squares
    np.fill_diagonal(expected, 0.0)
    np.fill_diagonal(overlap, 0.0)
    value = float(expected.sum()) / n_components
    others_mean_square = mean_square.sum(axis=0) - mean_square
    others_raw_square = raw_square.sum(axis=0) - raw_square
    by_mean = overlap @ (mean * eigenvalues) + mean * squared_eigenvalues * (others_raw_square - others_mean_square)
    by_std = std * squared_eigenvalues * others_raw_square
    return Gradient(value, 4 / n_components * by_mean, 4 / n_components * by_std)


def expected_negative_variance(mean: Array, std: Array, spectrum: Spectrum) -> Gradient:
    """Return E_q[−(1/J) Σ_j C_jj] = −(1/J) Σ_ja λ_a (m_ja² + s_ja²) − tail − ρ."""
    scale = spectrum.eigenvalues / len(mean)
    value = -float((scale * (mean**2 + std**2)).sum()) - spectrum.tail_sum - spectrum.residual
    return Gradient(value, -2 * scale * mean, -2 * scale * std)


class HingeExpectation(NamedTuple):
    """E max(0, γ − sqrt(c + y²)) over y ~ N(b, σ²), and its derivatives."""

    value: Array
    by_offset: Array
    by_mean: Array
    by_std: Array


def expected_hinge(offset: Array, mean: Array, std: Array, target_std: float = TARGET) -> HingeExpectation:
    """Return E max(0, γ − sqrt(c + y²)) over y ~ N(b, σ²), elementwise, for c = `offset` > 0.

    With y = √c sinh u the root becomes √c cosh u and the integrand is smooth on the interval where it is positive,
    |u| < arcosh(γ/√c), cut to the window where the normal density is; Gauss–Legendre quadrature does the rest. The integrand
    vanishes at the ends of the interval, so the derivatives are those under the integral sign:

        ∂/∂c = −E[1{q<γ} / 2q]      ∂/∂b = −E[1{q<γ} y/q]      ∂/∂σ = −E[1{q<γ} y/q · (y−b)/σ]      q = sqrt(c + y²)
    """
    root = np.sqrt(offset)
    reach = np.arccosh(np.maximum(target_std / root, 1.0))
    lower = np.maximum(-reach, np.arcsinh((mean - QUADRATURE_WINDOW * std) / root))
    upper = np.minimum(reach, np.arcsinh((mean + QUADRATURE_WINDOW * std) / root))
    half_width = np.maximum(upper - lower, 0.0) / 2
    # y = ½√c e^u − ½√c e^(−u), and q = sqrt(c + y²) is their sum.
    rising = np.exp(((upper + lower) / 2 + np.log(root / 2))[..., None] + half_width[..., None] * QUADRATURE_NODES)
    falling = (offset / 4)[..., None] / rising
    y, q = rising - falling, rising + falling
    standard = (y - mean[..., None]) / std[..., None]
    # φ((y − b)/σ)/σ · dy/du · du, with dy/du = q; divided by q this is the weight of 1/q in the derivatives.
    density = np.exp(-0.5 * standard**2)
    factor = half_width / (np.sqrt(2 * np.pi) * std)
    weighted_y = density * y
    return HingeExpectation(
        value=factor * ((density * q * (target_std - q)) @ QUADRATURE_WEIGHTS),
        by_offset=-0.5 * factor * (density @ QUADRATURE_WEIGHTS),
        by_mean=-factor * (weighted_y @ QUADRATURE_WEIGHTS),
        by_std=-factor * ((weighted_y * standard) @ QUADRATURE_WEIGHTS),
    )


class ExpectedVarianceLoss:
    """E_q[ℓ_var] = (1/J) Σ_j E max(0, γ − sqrt(C_jj + ε)), with C_jj = Σ_a λ_a v_ja² + tail + ρ.

    One direction of each dimension, its own, is integrated out exactly (`expected_hinge`); the fluctuation of the others is averaged
    over quasi-random draws η that stay fixed: v_a = m_a + s_a η_a. Averaging the hinge itself over draws would leave a kink for each
    draw, and the minimum lies on kinks, where no gradient method converges and every rounding error is amplified.

        c_j(η) = Σ_{a≠own} λ_a (m_a² + s_a²) + tail + ρ + ε  +  Σ_{a≠own, a≤d} λ_a (2 m_a s_a η_a + s_a² (η_a² − 1))

    The draws cover the d leading directions; all others together have less than 1e-4 of Σ λ², which is half the prior variance of C_jj,
    and enter by their mean.
    """

    def __init__(
        self,
        spectrum: Spectrum,
        own: NDArray[np.intp],
        n_draws: int,
        seed: int,
        target_std: float = TARGET,
        epsilon: float = EPSILON,
    ) -> None:
        self.eigenvalues = spectrum.eigenvalues
        self.target_std = target_std
        self.constant = spectrum.residual + spectrum.tail_sum + epsilon
        self.own = own
        self.dimensions = np.arange(len(own))
        self.others = np.tile(self.eigenvalues, (len(own), 1))
        self.others[self.dimensions, own] = 0.0
        beyond = np.cumsum(self.eigenvalues[::-1] ** 2)[::-1]
        self.n_drawn = max(1, int((beyond > NEGLECTED_VARIANCE * beyond[0]).sum()))
        self.draws = normal_draws(n_draws, self.n_drawn, seed)
        self.excess = self.draws**2 - 1

    def __call__(self, mean: Array, std: Array) -> Gradient:
        """Return the value and its gradient."""
        drawn = np.s_[:, : self.n_drawn]
        drawn_others, drawn_mean, drawn_std = self.others[drawn], mean[drawn], std[drawn]
        offset = (self.others * (mean**2 + std**2)).sum(axis=1) + self.constant
        offset = offset + 2 * self.draws @ (drawn_others * drawn_mean * drawn_std).T
        offset += self.excess @ (drawn_others * drawn_std**2).T
        own, root = (self.dimensions, self.own), np.sqrt(self.eigenvalues[self.own])
        shape = offset.shape
        own_mean, own_std = np.broadcast_to(root * mean[own], shape), np.broadcast_to(root * std[own], shape)
        hinge = expected_hinge(offset, own_mean, own_std, self.target_std)
        scale = 1 / hinge.value.size
        slope = scale * hinge.by_offset
        total, along, excess = slope.sum(axis=0)[:, None], slope.T @ self.draws, slope.T @ self.excess
        by_mean, by_std = 2 * self.others * mean * total, 2 * self.others * std * total
        by_mean[drawn] += 2 * drawn_others * drawn_std * along
        by_std[drawn] += 2 * drawn_others * (drawn_mean * along + drawn_std * excess)
        by_mean[own] += scale * root * hinge.by_mean.sum(axis=0)
        by_std[own] += scale * root * hinge.by_std.sum(axis=0)
        return Gradient(scale * float(hinge.value.sum()), by_mean, by_std)


@lru_cache(maxsize=8)
def normal_draws(n_draws: int, n_dimensions: int, seed: int) -> Array:
    """Return scrambled Sobol points mapped to the standard normal: one read-only array for equal arguments. [n_draws, n_dimensions]"""
    sobol = qmc.Sobol(n_dimensions, rng=np.random.default_rng(seed))
    draws: Array = ndtri(np.clip(sobol.random(n_draws), 1e-12, 1 - 1e-12))
    draws.setflags(write=False)
    return draws


@dataclass(frozen=True)
class Objective:
    """c_V·variance loss + c_C·covariance loss + τ·divergence from the prior."""

    variance_weight: float
    """c_V"""
    covariance_weight: float
    """c_C"""
    temperature: float
    """τ"""
    target_std: float = TARGET
    """γ"""
    epsilon: float = EPSILON
    """ε"""
    variance_loss: VarianceForm = "hinge"
    """The form of ℓ_var: VICReg's hinge, or the negative variance of proposition 1, which has neither γ nor ε."""

    @classmethod
    def checked(
        cls, variance_weight: Any, covariance_weight: Any, temperature: float, target_std: Any, epsilon: Any, variance_loss: Any
    ) -> Objective:
        """Return the objective that a user describes. Raise ValueError for the first value that has no meaning."""
        check_number("variance_weight", variance_weight, Real, at_least=0)
        check_number("covariance_weight", covariance_weight, Real, at_least=0)
        check_number("target_std", target_std, Real, above=0)
        check_number("epsilon", epsilon, Real, above=0)
        if not isinstance(variance_loss, str) or variance_loss not in VARIANCE_FORMS:
            raise ValueError(f"variance_loss must be one of {', '.join(VARIANCE_FORMS)}, got {variance_loss!r}.")
        return cls(float(variance_weight), float(covariance_weight), temperature, float(target_std), float(epsilon), variance_loss)

    def loss(self, covariance: Array) -> Array:
        """Return ℓ(C) = c_V ℓ_var + c_C ℓ_cov, for each matrix in an array [..., J, J]. [...]"""
        return self.variance_weight * self.spread_loss(covariance) + self.covariance_weight * covariance_loss(covariance)

    def spread_loss(self, covariance: Array) -> Array:
        """Return ℓ_var, for each matrix in an array [..., J, J]. [...]"""
        if self.variance_loss == "negative":
            return negative_variance(covariance)
        return variance_loss(covariance, self.target_std, self.epsilon)

    def expected_spread_loss(self, spectrum: Spectrum, own: NDArray[np.intp], n_draws: int, seed: int) -> Expectation:
        """Return E_q[ℓ_var] as a function of the means and standard deviations of q."""
        if self.variance_loss == "negative":
            return partial(expected_negative_variance, spectrum=spectrum)
        return ExpectedVarianceLoss(spectrum, own, n_draws, seed, self.target_std, self.epsilon)

    def expected(self, mean: Array, std: Array, spectrum: Spectrum, expected_variance: Expectation) -> Gradient:
        """Return E_q[ℓ] + τ KL(q ‖ p), the negative ELBO of the paper's section 2.2, with its gradient."""
        terms = (
            (self.variance_weight, expected_variance(mean, std)),
            (self.covariance_weight, expected_covariance_loss(mean, std, spectrum)),
            (self.temperature, kl_divergence(mean, std)),
        )
        return Gradient(
            sum(weight * term.value for weight, term in terms),
            np.add.reduce([weight * term.by_mean for weight, term in terms]),
            np.add.reduce([weight * term.by_std for weight, term in terms]),
        )
