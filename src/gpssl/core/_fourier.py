"""Functions of a Gaussian process with a stationary kernel, as sums of waves: random Fourier features (Rahimi and Recht, 2007)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammainccinv, gammaincinv, ndtri
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Exponentiation,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from ..data._arrays import result_dtype

Array = NDArray[np.float64]

MAX_TERMS = 16
"""Products of sums are multiplied out; each term has frequencies of its own, and costs as much as a kernel by itself."""

TAILS = np.array([1.0, 0.775, 0.55, 0.325, 0.1, 0.01, 0.001, 0.0001, 0.0])
"""Edges of the strata of a spectral density that have the same number of frequencies, by the share of the density beyond them."""

SHORTEST_WAVE = 1e-6
"""The shortest wave in units of lengthscales. Shorter ones, of which rough kernels have many, would turn a row's rounding error
into another value."""


@dataclass(frozen=True)
class FourierFeatures:
    """φ(x) = (α_i cos ω_iᵀ(x − c), α_i sin ω_iᵀ(x − c))_i, with E[φ(x)ᵀφ(y)] = k(x, y) over the frequencies.

    A function φ(x)ᵀ w with w ~ N(0, I) then is, approximately, one of the Gaussian process with kernel k, without its white noise.
    φ(x)ᵀφ(x) = Σ α_i² = k(x, x) holds for any frequencies.
    """

    center: Array
    """c: no kernel here depends on it, but the rounding error of the phases does. [D]"""
    frequencies: Array
    """ω. [D, F]"""
    amplitudes: Array
    """α. [F]"""
    nugget: float
    """Variance of the kernel's white noise, which belongs to single rows and has no features."""

    @property
    def n_features(self) -> int:
        """2F: a cosine and a sine for each frequency."""
        return 2 * len(self.amplitudes)

    @property
    def variance(self) -> float:
        """Σ α_i² = k(x, x), without the white noise."""
        return float((self.amplitudes**2).sum())

    def __call__(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return φ(x) for a block of rows. [n, 2F]

        For rows in single precision the phases are found in double, and brought into (−π, π) before the waves are computed in single.
        """
        phases = (X - self.center) @ self.frequencies
        dtype = result_dtype(X)
        if dtype is np.float32:
            phases -= 2 * np.pi * np.rint(phases / (2 * np.pi))
            phases = phases.astype(np.float32)
        out = np.empty((len(X), 2, phases.shape[1]), dtype=dtype)
        np.cos(phases, out=out[:, 0])
        np.sin(phases, out=out[:, 1])
        out *= self.amplitudes.astype(dtype)
        return out.reshape(len(X), -1)


def fourier_features(kernel: Kernel, center: Array, n_frequencies: int, rng: np.random.Generator) -> FourierFeatures | None:
    """Draw so many frequencies (8 or more) for each term of the kernel; return None for kernels other than those below.

    RBF, Matern and RationalQuadratic, with constants and white noise, their sums, products and whole powers. The frequencies are those
    of a scrambled Sobol sequence: each by itself has the right distribution, and together they fill it more evenly than independent ones.
    Half of them are from the highest tenth of the spectrum, with smaller amplitudes, because what inducing points leave open is there.
    """
    density = _spectral_density(kernel)
    if density is None or len(density.terms) > MAX_TERMS:
        return None
    none = np.empty((len(center), 0)), np.empty(0)
    waves = [none, *(_waves(term, len(center), n_frequencies, rng) for term in density.terms)]
    frequencies, amplitudes = zip(*waves, strict=True)
    return FourierFeatures(center, np.hstack(frequencies), np.concatenate(amplitudes), density.nugget)


# A kernel as a sum of terms


@dataclass(frozen=True)
class Term:
    """variance · Π factors, each of them one of `RADII` with unit variance; without factors, a constant."""

    variance: float
    factors: tuple[Kernel, ...] = ()


@dataclass(frozen=True)
class SpectralDensity:
    """k(x, y) = Σ terms + nugget·[x = y]."""

    terms: tuple[Term, ...]
    nugget: float = 0.0

    @property
    def variance(self) -> float:
        """k(x, x) without the white noise."""
        return sum(term.variance for term in self.terms)

    def __add__(self, other: SpectralDensity) -> SpectralDensity:
        return SpectralDensity(self.terms + other.terms, self.nugget + other.nugget)

    def __mul__(self, other: SpectralDensity) -> SpectralDensity:
        """Multiply each term with each. The rest of the product of the diagonals is white noise, which times anything is white noise."""
        terms = [Term(one.variance * two.variance, one.factors + two.factors) for one in self.terms for two in other.terms]
        nugget = self.nugget * other.variance + self.variance * other.nugget + self.nugget * other.nugget
        return SpectralDensity(tuple(terms), nugget)


def _spectral_density(kernel: Kernel) -> SpectralDensity | None:
    """Multiply the kernel out. Only exact types count: a subclass may be another function, as Matern is a subclass of RBF."""
    kind = type(kernel)
    if kind in RADII:
        return SpectralDensity((Term(1.0, (kernel,)),))
    if kind is ConstantKernel:
        return SpectralDensity((Term(float(kernel.constant_value)),))
    if kind is WhiteKernel:
        return SpectralDensity((), float(kernel.noise_level))
    if kind in (Sum, Product):
        one, two = _spectral_density(kernel.k1), _spectral_density(kernel.k2)
        if one is None or two is None:
            return None
        return one + two if kind is Sum else one * two
    if kind is Exponentiation:  # only whole powers of a kernel are kernels in general
        base, exponent = _spectral_density(kernel.kernel), float(kernel.exponent)
        if base is None or not exponent.is_integer() or not 0 <= exponent <= MAX_TERMS or len(base.terms) ** exponent > MAX_TERMS:
            return None
        return reduce(SpectralDensity.__mul__, [base] * int(exponent), SpectralDensity((Term(1.0),)))
    return None


# Frequencies of a term


def _waves(term: Term, n_columns: int, n_frequencies: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return ω [D, F] and α [F]. ω sums the frequencies of the factors: the density of a product is the convolution of theirs.

    The first factor's frequencies are stratified: equally many for each stratum in `TAILS`, with amplitudes that make up for it.
    """
    if not term.factors:
        return np.zeros((n_columns, 1)), np.array([np.sqrt(term.variance)])
    first, *others = np.split(_uniform(n_frequencies, len(term.factors) * (n_columns + 2), rng), len(term.factors))
    place = first[0] * (len(TAILS) - 1)
    stratum = place.astype(int)
    mass = TAILS[stratum] - TAILS[stratum + 1]
    first[0] = TAILS[stratum + 1] + mass * (place - stratum)
    uniform = [first, *others]
    frequencies = np.sum([_frequencies(factor, numbers) for factor, numbers in zip(term.factors, uniform, strict=True)], axis=0)
    return frequencies, np.sqrt(term.variance * mass / np.bincount(stratum)[stratum])


def _frequencies(kernel: Any, uniform: Array) -> Array:
    """Return frequencies r d / l, with directions d uniform on the sphere, from uniform numbers: two for r and D for d. [D, F]"""
    radius = np.minimum(RADII[type(kernel)](kernel, uniform[0], uniform[1], len(uniform) - 2), 1 / SHORTEST_WAVE)
    normal = ndtri(uniform[2:])
    lengthscale = np.broadcast_to(np.asarray(kernel.length_scale, dtype=np.float64), len(normal))
    frequencies: Array = radius * (normal / np.sqrt((normal**2).sum(axis=0))) / lengthscale[:, None]
    return frequencies


def _normal_radius(tail: Array, n_columns: int) -> Array:
    """Return the length that a standard normal vector exceeds with these probabilities: r² ~ χ²(D)."""
    radius: Array = np.sqrt(2 * gammainccinv(n_columns / 2, tail))
    return radius


def _matern(kernel: Matern, tail: Array, _: Array, n_columns: int) -> Array:
    """Return the length of a multivariate t with 2ν degrees of freedom: 1 / (1 + r²/2ν) ~ Beta(ν, D/2)."""
    if np.isinf(kernel.nu):
        return _normal_radius(tail, n_columns)
    share = np.maximum(betaincinv(kernel.nu, n_columns / 2, tail), np.finfo(float).tiny)
    return np.sqrt(2 * kernel.nu * (1 / share - 1))


def _rational_quadratic(kernel: RationalQuadratic, tail: Array, uniform: Array, n_columns: int) -> Array:
    """Return an RBF's frequencies times √s: (1 + d²/(2αl²))^−α = E exp(−½ s d²/l²) with s ~ Gamma(α, rate α)."""
    return _normal_radius(tail, n_columns) * np.sqrt(gammaincinv(kernel.alpha, uniform) / kernel.alpha)


RADII: dict[type[Kernel], Callable[[Any, Array, Array, int], Array]] = {
    RBF: lambda _, tail, __, n_columns: _normal_radius(tail, n_columns),
    Matern: _matern,
    RationalQuadratic: _rational_quadratic,
}
"""r = |ω l| for each frequency, by the kernel's exact type, from how rarely it is exceeded and one more uniform number."""


def _uniform(n_points: int, n_dimensions: int, rng: np.random.Generator) -> Array:
    """Return scrambled Sobol points in the open unit cube, or independent ones where the sequence has too few dimensions. [D, n_points]"""
    if n_dimensions > qmc.Sobol.MAXDIM:
        points = rng.random((n_points, n_dimensions))
        points[:, 0] = (np.arange(n_points) + points[:, 0]) / n_points  # some of them in each stratum
    else:
        points = qmc.Sobol(n_dimensions, rng=rng).random_base2((n_points - 1).bit_length())[:n_points]
    return np.clip(points.T, 1e-12, 1 - 1e-12)
