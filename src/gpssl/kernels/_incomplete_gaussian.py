"""A Gaussian for rows with missing cells: fitted to what is known, it predicts what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._protocol import Array

MAX_COLUMNS = 200
"""Beyond so many columns they are taken as independent: the work grows with the cube of their number."""
MAX_STEPS = 30
SMALLEST_CHANGE = 1e-3
"""Relative change of the variances at which the fit ends."""
RIDGE = 0.01
"""Added to each variance, relative to it: some columns copy each other, some tables have hardly more rows than columns."""
MAX_PATTERNS = 1000
"""Patterns of missing cells whose inverses are remembered."""
ROUNDING = 1e-14
"""Spread of a column, relative to its mean, that rounding alone may cause."""
SMALLEST_VARIANCE = 1e-12
"""The least variance of a column in its own units: zero could not be inverted."""


class ExpectedSums(NamedTuple):
    """Expected sums over rows with missing cells, under the current Gaussian."""

    total: Array
    """Σ w E[x]. [D]"""
    products: Array
    """Σ w E[x xᵀ]. [D, D]"""
    open_variance: Array
    """Σ w Var[x_d] over the missing cells of each column. [D]"""
    missing_weight: Array
    """Σ w over the missing cells of each column. [D]"""


@dataclass(frozen=True)
class GaussianRows:
    """x ~ N(μ, Σ); missing cells are predicted from known ones.

    With P = Σ⁻¹ and m the missing cells of a row:  Var[x_m | x_o] = (P_mm)⁻¹,  E[x_m | x_o] = μ_m − (P_mm)⁻¹ P_mo (x_o − μ_o).
    """

    mean: Array
    covariance: Array
    """Σ, or its diagonal where columns are independent. [D, D] or [D]"""

    def fill(self, X: Array) -> Array:
        """Return the rows with E[x_m | x_o] in the place of missing cells. [n, D]"""
        if self.covariance.ndim == 1:
            return np.where(np.isnan(X), self.mean, X)
        missing = np.isnan(X)
        incomplete = np.flatnonzero(missing.any(axis=1))
        filled = X.copy()
        if len(incomplete):
            filled[incomplete] = self._filled(X[incomplete], missing[incomplete])
        return filled

    def _filled(self, X: Array, missing: NDArray[np.bool_]) -> Array:
        """Fill rows that all have missing cells; the inverse of each pattern is remembered, as blocks of rows share their patterns."""
        known = np.where(missing, 0.0, (X - self.mean) / self._unit)
        shift = np.empty_like(X)
        for pattern, members in _patterns(missing):
            shift[members] = -(known[members] @ self._precision) @ self._inverse_of(pattern)
        return np.where(missing, self.mean + self._unit * shift, X)

    @cached_property
    def _unit(self) -> Array:
        """The standard deviations: in units of them, columns of any size keep their digits. [D]"""
        unit: Array = np.sqrt(self.covariance.diagonal())
        return unit

    @cached_property
    def _precision(self) -> Array:
        return np.asarray(np.linalg.inv(self.covariance / np.outer(self._unit, self._unit)), dtype=np.float64)

    @cached_property
    def _inverses(self) -> dict[bytes, Array]:
        return {}

    def _inverse_of(self, pattern: NDArray[np.bool_]) -> Array:
        """Return (P_mm)⁻¹ in units of the standard deviations, 0 for known cells. [D, D]"""
        key = pattern.tobytes()
        if key not in self._inverses:
            both = pattern[:, None] & pattern
            inverse = np.linalg.inv(np.where(both, self._precision, np.eye(len(pattern)))) * both
            if len(self._inverses) >= MAX_PATTERNS:
                return inverse
            self._inverses[key] = inverse
        return self._inverses[key]

    def expectations(self, X: Array, weight: Array) -> ExpectedSums:
        """Return the sums over rows that the next step of the fit needs."""
        filled, missing = X.copy(), np.isnan(X)
        products = np.zeros_like(self.covariance)
        open_variance = np.zeros(X.shape[1])
        for members, values, variances in self._conditional(X):
            filled[members] = values
            products += weight[members].sum() * variances
            open_variance += weight[members].sum() * variances.diagonal()
        return ExpectedSums(weight @ filled, products + (filled * weight[:, None]).T @ filled, open_variance, weight @ missing)

    def _conditional(self, X: Array) -> Iterator[tuple[NDArray[np.intp], Array, Array]]:
        """Yield, for each pattern of missing cells, its rows, their filled values and the covariance of the cells (0 for known ones)."""
        missing = np.isnan(X)
        incomplete = np.flatnonzero(missing.any(axis=1))
        filled = self.fill(X)
        for pattern, members in _patterns(missing[incomplete]):
            rows = incomplete[members]
            yield rows, filled[rows], self._inverse_of(pattern) * np.outer(self._unit, self._unit)


def _patterns(missing: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.intp]]]:
    """Yield the different rows of a mask, each with the places where it occurs."""
    n_rows, n_columns = missing.shape
    if n_rows == 0:
        return
    if n_columns > 64:
        _, which = np.unique(np.packbits(missing, axis=1), axis=0, return_inverse=True)
    else:  # as numbers, much faster
        packed = np.zeros((n_rows, 8), dtype=np.uint8)
        packed[:, : -(-n_columns // 8)] = np.packbits(missing, axis=1)
        which = packed.view(">u8").astype(np.uint64)
    which = which.ravel()
    order = np.argsort(which, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(which[order])) + 1):
        yield missing[members[0]], members


class FittedGaussian(NamedTuple):
    """A Gaussian for rows, and how far missing cells typically are from their prediction."""

    gaussian: GaussianRows
    open_variance: Array
    """Mean conditional variance of the missing cells of each column; where none is missing, that given all other columns. [D]"""


def fit_gaussian(X: Array, weight: Array) -> FittedGaussian:
    """Fit by maximum likelihood to incomplete rows: expectation maximization (Dempster, Laird and Rubin, 1977) with a small ridge."""
    known = ~np.isnan(X)
    count = np.maximum(weight @ known, np.finfo(float).tiny)
    center = weight @ np.where(known, X, 0.0) / count
    spread = np.sqrt(weight @ np.where(known, X - center, 0.0) ** 2 / count)
    # A column without spread is known wherever it is missing, and has no unit of its own.
    unit = np.where(spread > ROUNDING * np.abs(center), spread, np.maximum(np.abs(center), 1.0))
    standardized, open_variance = _fit_standardized((X - center) / unit, weight)
    units = np.outer(unit, unit) if standardized.covariance.ndim == 2 else unit**2
    return FittedGaussian(GaussianRows(center + unit * standardized.mean, standardized.covariance * units), open_variance * unit**2)


def _fit_standardized(X: Array, weight: Array) -> FittedGaussian:
    """Fit columns of mean zero whose standard deviation is one, or zero."""
    n_columns = X.shape[1]
    variance = weight @ np.where(np.isnan(X), 0.0, X) ** 2 / np.maximum(weight @ ~np.isnan(X), np.finfo(float).tiny)
    variances = np.maximum(variance, SMALLEST_VARIANCE)
    if n_columns > MAX_COLUMNS:
        return FittedGaussian(GaussianRows(np.zeros(n_columns), variances), variance)
    gaussian = GaussianRows(np.zeros(n_columns), np.diag(variances))
    sums = gaussian.expectations(X, weight)
    for _ in range(MAX_STEPS if np.isnan(X).any() else 1):
        before = gaussian.covariance.diagonal()
        gaussian = _maximize(sums, weight.sum())
        sums = gaussian.expectations(X, weight)
        if np.abs(gaussian.covariance.diagonal() / before - 1).max() < SMALLEST_CHANGE:
            break
    given_all_others = 1 / np.linalg.inv(gaussian.covariance).diagonal()
    present = sums.missing_weight > 0
    where_missing = sums.open_variance / np.where(present, sums.missing_weight, 1.0)
    return FittedGaussian(gaussian, np.where(present, where_missing, given_all_others))


def _maximize(sums: ExpectedSums, total_weight: float) -> GaussianRows:
    """Return the Gaussian with the largest expected likelihood, plus the ridge."""
    mean = sums.total / total_weight
    covariance = sums.products / total_weight - np.outer(mean, mean)
    return GaussianRows(mean, covariance + np.diag(np.maximum(RIDGE * covariance.diagonal(), SMALLEST_VARIANCE)))
