"""What a missing cell could be, given the known cells of its row: a Gaussian for the rows of a table, from incomplete rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..rows import row_blocks

Array = NDArray[np.float64]

MAX_COLUMNS = 200
"""Beyond which columns are taken as independent: the work grows with the cube of their number."""
MAX_STEPS = 30
STILL = 1e-3
"""Relative change of the variances, at which the fit ends."""
RIDGE = 0.01
"""Added to each variance, relative to it: columns that copy each other, and tables with hardly more rows than columns."""
PATTERNS_AT_A_TIME = 64


class Moments(NamedTuple):
    """Of rows with missing cells, under the current Gaussian."""

    total: Array
    """Σ w E[x]. [D]"""
    products: Array
    """Σ w E[x xᵀ]. [D, D]"""
    open_variance: Array
    """Σ w Var[x_d] over the missing cells of each column. [D]"""
    missing_weight: Array
    """Σ w over them. [D]"""


@dataclass(frozen=True)
class GaussianRows:
    """x ~ N(μ, Σ); cells that are missing are predicted from those that are known.

    With P = Σ⁻¹ and m the missing cells of a row:  Var[x_m | x_o] = (P_mm)⁻¹,  E[x_m | x_o] = μ_m − (P_mm)⁻¹ P_mo (x_o − μ_o).
    """

    mean: Array
    covariance: Array
    """Σ. [D, D]"""

    def fill(self, X: Array) -> Array:
        """The rows with E[x_m | x_o] in the place of missing cells. [n, D]"""
        filled = X.copy()
        for members, values, _ in self._conditional(X):
            filled[members] = values
        return filled

    def expectations(self, X: Array, weight: Array) -> Moments:
        """Sums over rows, for the next step of the fit."""
        filled, missing = X.copy(), np.isnan(X)
        products = np.zeros_like(self.covariance)
        open_variance = np.zeros(X.shape[1])
        for members, values, variances in self._conditional(X):
            filled[members] = values
            products += weight[members].sum() * variances
            open_variance += weight[members].sum() * variances.diagonal()
        return Moments(weight @ filled, products + (filled * weight[:, None]).T @ filled, open_variance, weight @ missing)

    def _conditional(self, X: Array) -> Iterator[tuple[NDArray[np.intp], Array, Array]]:
        """For each pattern of missing cells: its rows, their filled values, and the covariance of the missing cells, zero elsewhere."""
        missing = np.isnan(X)
        gappy = np.flatnonzero(missing.any(axis=1))
        patterns, which = np.unique(missing[gappy], axis=0, return_inverse=True)
        order = np.argsort(which.ravel(), kind="stable")
        members = np.split(gappy[order], np.cumsum(np.bincount(which.ravel(), minlength=len(patterns)))[:-1])
        precision = np.linalg.inv(self.covariance)
        known = np.where(missing, 0.0, X - self.mean)
        for block in row_blocks(len(patterns), PATTERNS_AT_A_TIME):
            both = patterns[block][:, :, None] & patterns[block][:, None, :]
            # On the known cells the identity, so that one inverse serves all patterns of a block.
            inverses = np.linalg.inv(np.where(both, precision, np.eye(len(precision)))) * both
            for rows, inverse in zip(members[block], inverses, strict=True):
                shift = -(known[rows] @ precision) @ inverse
                yield rows, self.mean + known[rows] + shift, inverse


class FittedCells(NamedTuple):
    """A Gaussian for rows, and how far missing cells typically are from their prediction."""

    gaussian: GaussianRows
    open_variance: Array
    """Mean conditional variance of the missing cells of each column; where none is missing, that given all other columns. [D]"""


def fit_gaussian(X: Array, weight: Array) -> FittedCells:
    """Maximum likelihood from incomplete rows by expectation maximisation (Dempster, Laird and Rubin, 1977), with a small ridge."""
    known = ~np.isnan(X)
    count = np.maximum(weight @ known, np.finfo(float).tiny)
    mean = weight @ np.where(known, X, 0.0) / count
    variance = weight @ np.where(known, X - mean, 0.0) ** 2 / count
    # A column without spread is known wherever it is missing; a variance of zero could not be inverted.
    floor = 1e-12 * np.maximum(mean**2, 1.0)
    gaussian = GaussianRows(mean, np.diag(np.maximum(variance, floor)))
    if X.shape[1] > MAX_COLUMNS:
        return FittedCells(gaussian, variance)
    moments = gaussian.expectations(X, weight)
    for _ in range(MAX_STEPS if np.isnan(X).any() else 1):
        before = gaussian.covariance.diagonal()
        gaussian = _maximise(moments, weight.sum(), floor)
        moments = gaussian.expectations(X, weight)
        if np.abs(gaussian.covariance.diagonal() / before - 1).max() < STILL:
            break
    given_all_others = 1 / np.linalg.inv(gaussian.covariance).diagonal()
    present = moments.missing_weight > 0
    return FittedCells(
        gaussian, np.where(present, moments.open_variance / np.where(present, moments.missing_weight, 1.0), given_all_others)
    )


def _maximise(moments: Moments, total_weight: float, floor: Array) -> GaussianRows:
    mean = moments.total / total_weight
    covariance = moments.products / total_weight - np.outer(mean, mean)
    return GaussianRows(mean, covariance + np.diag(np.maximum(RIDGE * covariance.diagonal(), floor)))
