"""Fit how often each gene is counted 0, 1, 2, … times in a cell of one type: Poisson or negative binomial, perhaps zero-inflated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array
from scipy.special import betainc, gammaincc, gammaln, psi
from scipy.stats import chi2

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEVEL = 0.05
"""The level of the likelihood-ratio test of zero inflation, as in scDesign2."""

FEWEST_EXPRESSING = 3
"""A gene that is found in fewer cells has its mean estimated, and nothing else."""

SMALLEST_SIZE = 1e-8

LARGEST_SIZE_PER_RATE = 1e4
"""Beyond r = 10⁴ λ the variance is within 0.01 % of Poisson's, and rounding errors exceed the slope of the likelihood."""

BISECTIONS = 60
NEWTON_STEPS = 40
NEWTON_TOLERANCE = 1e-13
TAIL = 1e-13

VALUES = np.concatenate([np.arange(1024), np.unique(np.ceil(1024 * 1.001 ** np.arange(14_000)))])
"""Counts at which distributions are tabulated: all up to 1,023, and then in steps of 0.1 % up to 10⁹."""


class CountTable(NamedTuple):
    """The distribution of a count. A count between two values belongs to the larger one."""

    values: NDArray[np.int64]
    """[m]"""
    cumulative: Array
    """F(x) = P(count ≤ x) at these values. [m]"""

    def quantile(self, level: Array) -> NDArray[np.int64]:
        """Return the smallest value with F(x) ≥ level. [n] → [n]"""
        return self.values[np.minimum(np.searchsorted(self.cumulative, level), len(self.values) - 1)]

    def place(self, count: Array) -> NDArray[np.intp]:
        """Return the position of the value that each count belongs to. [n] → [n]"""
        return np.minimum(np.searchsorted(self.values, count), len(self.values) - 1)


@dataclass(frozen=True)
class CountMargins:
    """Zero-inflated negative binomials, one for each gene; all arrays are [p].

        P(x = 0) = π + (1 − π) NB(0)      P(x) = (1 − π) NB(x)      NB(x) = Γ(x + r) / (Γ(r) x!) · (r / (r + λ))^r · (λ / (r + λ))^x

    has mean λ and variance λ + λ²/r before the inflation; r = ∞ is Poisson.
    """

    rate: Array
    """λ"""
    size: Array
    """r"""
    zero_inflation: Array
    """π"""

    @property
    def mean(self) -> Array:
        """(1 − π) λ. [p]"""
        return (1 - self.zero_inflation) * self.rate

    @property
    def variance(self) -> Array:
        """(1 − π) (λ + λ²/r + π λ²). [p]"""
        return (1 - self.zero_inflation) * (self.rate + self.rate**2 * (1 / self.size + self.zero_inflation))

    @property
    def zero_fraction(self) -> Array:
        """P(x = 0). [p]"""
        return self.zero_inflation + (1 - self.zero_inflation) * _zero_probability(self.rate, self.size)

    def of(self, genes: NDArray[Any]) -> CountMargins:
        """Return the margins of some genes, by position or mask."""
        return CountMargins(self.rate[genes], self.size[genes], self.zero_inflation[genes])

    def table(self, gene: int) -> CountTable:
        """Return the distribution of one gene's counts, up to a remaining probability of 10⁻¹³."""
        n_values = 16
        while (cumulative := self._cumulative(gene, VALUES[:n_values]))[-1] < 1 - TAIL and n_values < len(VALUES):
            n_values *= 2
        n_values = int(np.searchsorted(cumulative, 1 - TAIL)) + 1
        return CountTable(VALUES[:n_values].astype(np.int64), cumulative[:n_values])

    def _cumulative(self, gene: int, values: Array) -> Array:
        rate, size, zero = self.rate[gene], self.size[gene], self.zero_inflation[gene]
        below = gammaincc(values + 1, rate) if np.isinf(size) else betainc(size, values + 1, size / (size + rate))
        return zero + (1 - zero) * below


class _Counts(NamedTuple):
    """What the likelihood of the counts of p genes in n cells depends on; zeros are not stored."""

    n_cells: int
    n_positive: Array
    """n₊, the number of cells in which each gene is found. [p]"""
    total: Array
    """[p]"""
    gene: NDArray[np.intp]
    """Genes. [m]"""
    value: Array
    """A positive count of each of these genes. [m]"""
    times: Array
    """The number of cells with this count of the gene. [m]"""

    def sum_by_gene(self, term: Array) -> Array:
        """Return the sum of a term over the cells with a positive count. [p]"""
        return np.bincount(self.gene, weights=self.times * term, minlength=len(self.total)).astype(np.float64)

    def of(self, genes: Mask) -> _Counts:
        kept = genes[self.gene]
        renumbered = np.cumsum(genes) - 1
        return _Counts(
            self.n_cells, self.n_positive[genes], self.total[genes], renumbered[self.gene[kept]], self.value[kept], self.times[kept]
        )


def fit_margins(counts: Any) -> CountMargins:
    """Fit the margins of each gene to counts of cells of one type, sparse or dense. [n, p]

    This is maximum likelihood as in scDesign2 (Sun et al. 2021): Poisson where the variance does not exceed the mean, else negative
    binomial; and with zero inflation where a likelihood-ratio test at the level of 5 % asks for it. Genes found in fewer than three
    cells are Poisson.
    """
    table = _tabulate(counts)
    rate = table.total / table.n_cells
    variance = table.sum_by_gene(table.value**2) / table.n_cells - rate**2
    enough = table.n_positive >= FEWEST_EXPRESSING

    size = np.full(len(rate), np.inf)
    dispersed = enough & (variance > rate)
    size[dispersed] = _fit_size(table.of(dispersed))
    plain = CountMargins(rate, size, np.zeros(len(rate)))

    # The likelihood rises with π at π = 0 only where there are more zeros than the plain distribution has.
    candidate = enough & (1 - table.n_positive / table.n_cells > plain.zero_fraction)
    return _with_zero_inflation(table, plain, candidate)


def _tabulate(counts: Any) -> _Counts:
    by_gene = csc_array(counts)
    by_gene.sum_duplicates()
    by_gene.eliminate_zeros()
    n_genes = by_gene.shape[1]
    gene = np.repeat(np.arange(n_genes), np.diff(by_gene.indptr))
    values = by_gene.data.astype(np.int64)
    base = values.max(initial=0) + 1
    pairs, times = np.unique(gene * base + values, return_counts=True)
    return _Counts(
        by_gene.shape[0],
        n_positive=np.diff(by_gene.indptr).astype(np.float64),
        total=np.bincount(gene, weights=values, minlength=n_genes).astype(np.float64),
        gene=pairs // base,
        value=(pairs % base).astype(np.float64),
        times=times.astype(np.float64),
    )


def _fit_size(counts: _Counts) -> Array:
    """Return the most likely r of negative binomials with mean λ. [p]

    It is the only root of  Σ_i [ψ(x_i + r) − ψ(r)] − n log(1 + λ/r),  which falls from +∞ through zero where the variance exceeds
    the mean (Levin and Reeds 1977).
    """
    rate = counts.total / counts.n_cells

    def slope(size: Array) -> Array:
        return _growth(counts, size) - counts.n_cells * np.log1p(rate / size)

    return _bisect(slope, np.full(len(rate), SMALLEST_SIZE), rate)


def _growth(counts: _Counts, size: Array) -> Array:
    """Return Σ_i [ψ(x_i + r) − ψ(r)], to which zeros add nothing. [p]"""
    return counts.sum_by_gene(psi(counts.value + size[counts.gene])) - counts.n_positive * psi(size)


def _bisect(slope: Callable[[Array], Array], low: Array, rate: Array) -> Array:
    """Return the r at which a slope falls below zero, by bisection in log r; infinity where it does not. [p]"""
    high = LARGEST_SIZE_PER_RATE * np.maximum(rate, 1)
    unbounded = slope(high) > 0
    for _ in range(BISECTIONS):
        middle = np.sqrt(low * high)
        rising = slope(middle) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return np.where(unbounded, np.inf, np.sqrt(low * high))


def _with_zero_inflation(table: _Counts, plain: CountMargins, candidate: Mask) -> CountMargins:
    """Replace plain margins by zero-inflated ones where twice the gain in log likelihood exceeds the 95 % quantile of χ²₁."""
    counts, start = table.of(candidate), plain.of(candidate)
    inflated = _fit_zero_inflated(counts, start)
    better = 2 * (_log_likelihood(counts, inflated) - _log_likelihood(counts, start)) > chi2.ppf(1 - LEVEL, 1)
    where = np.flatnonzero(candidate)[better & (inflated.zero_inflation > 0)]
    chosen = inflated.of(better & (inflated.zero_inflation > 0))
    rate, size, zero = plain.rate.copy(), plain.size.copy(), plain.zero_inflation.copy()
    rate[where], size[where], zero[where] = chosen.rate, chosen.size, chosen.zero_inflation
    return CountMargins(rate, size, zero)


def _fit_zero_inflated(counts: _Counts, plain: CountMargins) -> CountMargins:
    """Return the most likely λ, r and π; plain Poisson margins stay Poisson. All arrays [p].

    Positive counts are draws from a negative binomial without its zeros and determine λ and r; the number of zeros determines π:

        1 − π = (n₊ / n) / (1 − NB(0))

    where this gives a π above zero; where it does not, the plain margin is the most likely. Given r, λ is such that the mean without
    zeros is that of the positive counts. r is found by bisection upwards from the plain r: zero inflation explains some of the
    dispersion, so that r can only grow.
    """
    positive_mean = counts.total / counts.n_positive

    def slope(size: Array) -> Array:
        rate = _rate_without_zeros(positive_mean, size)
        return _growth(counts, size) - counts.total / rate * np.log1p(rate / size)

    grown = _bisect(slope, np.minimum(plain.size, LARGEST_SIZE_PER_RATE), plain.rate)
    size = np.where(np.isinf(plain.size), np.inf, grown)
    rate = _rate_without_zeros(positive_mean, size)
    return CountMargins(rate, size, 1 - counts.total / (counts.n_cells * rate))


def _rate_without_zeros(positive_mean: Array, size: Array) -> Array:
    """Return λ with λ / (1 − NB(0)) = the mean of the positive counts, by Newton's method. [p]

    λ − m (1 − NB(0)) is convex and positive at λ = m, so that no step from there goes beyond the root.
    """
    rate = positive_mean.copy()
    for _ in range(NEWTON_STEPS):
        zero = _zero_probability(rate, size)
        slope = 1 - positive_mean * zero / (1 + rate / size)
        excess = rate - positive_mean * (1 - zero)
        step = np.where((excess > 0) & (slope > 0), excess / np.where(slope > 0, slope, 1), 0)
        rate = rate - step
        if not (step > NEWTON_TOLERANCE * rate).any():
            break
    return rate


def _zero_probability(rate: Array, size: Array) -> Array:
    """Return NB(0) = (1 + λ/r)^−r, and e^−λ for r = ∞. [p]"""
    finite = np.where(np.isinf(size), 1, size)
    return np.exp(np.where(np.isinf(size), -rate, -finite * np.log1p(rate / finite)))


def _log_likelihood(counts: _Counts, margins: CountMargins) -> Array:
    """Return the log likelihood of each gene's counts, without Σ log x!, which all margins share. [p]"""
    rate, zero = margins.rate, margins.zero_inflation
    poisson = np.isinf(margins.size)
    size = np.where(poisson, 1, margins.size)
    dispersed = counts.sum_by_gene(gammaln(counts.value + size[counts.gene]))
    dispersed += counts.total * np.log(rate / (size + rate)) - counts.n_positive * (gammaln(size) + size * np.log1p(rate / size))
    positive = np.where(poisson, counts.total * np.log(rate) - counts.n_positive * rate, dispersed)
    n_zero = counts.n_cells - counts.n_positive
    with np.errstate(divide="ignore", invalid="ignore"):  # outside [0, 1) there is no likelihood, and the comparison is false
        return positive + counts.n_positive * np.log1p(-zero) + n_zero * np.log(margins.zero_fraction)
