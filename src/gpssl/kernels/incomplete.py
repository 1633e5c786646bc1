"""A squared exponential for rows in which cells are missing, without filling them in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import RBF, Kernel
from sklearn.utils import check_array

from .._validation import check_number
from ..data._arrays import in_double_precision, row_blocks
from ..data._rows import MappedRows
from ._protocol import (
    LARGEST_HALF_NORM,
    BlockKernel,
    CallByBlocks,
    TakesMissingCells,
    UnitDiagonal,
    block_kernel,
    not_resolved,
    short_repr,
    training_rows,
)
from .vectors import NeighborRBF

Array = NDArray[np.float64]

MAX_COLUMNS = 200
"""Beyond which columns are taken as independent: the work grows with the cube of their number."""
MAX_STEPS = 30
STILL = 1e-3
"""Relative change of the variances, at which the fit ends."""
RIDGE = 0.01
"""Added to each variance, relative to it: columns that copy each other, and tables with hardly more rows than columns."""
PATTERNS_AT_A_TIME = 64
ROUNDING = 1e-14
"""Spread of a column, relative to its mean, that rounding alone may cause."""
SMALLEST_VARIANCE = 1e-12
"""Of a column in its own units: one of zero could not be inverted."""


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
    """Σ, or its diagonal where columns are independent. [D, D] or [D]"""

    def fill(self, X: Array) -> Array:
        """The rows with E[x_m | x_o] in the place of missing cells. [n, D]"""
        if self.covariance.ndim == 1:
            return np.where(np.isnan(X), self.mean, X)
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
        # In units of the standard deviations, so that columns of any size keep their digits.
        unit = np.sqrt(self.covariance.diagonal())
        precision = np.linalg.inv(self.covariance / np.outer(unit, unit))
        known = np.where(missing, 0.0, (X - self.mean) / unit)
        for block in row_blocks(len(patterns), PATTERNS_AT_A_TIME):
            both = patterns[block][:, :, None] & patterns[block][:, None, :]
            # On the known cells the identity, so that one inverse serves all patterns of a block.
            inverses = np.linalg.inv(np.where(both, precision, np.eye(len(precision)))) * both
            for rows, inverse in zip(members[block], inverses, strict=True):
                shift = -(known[rows] @ precision) @ inverse
                values = np.where(missing[rows], self.mean + unit * shift, X[rows])
                yield rows, values, inverse * np.outer(unit, unit)


class FittedCells(NamedTuple):
    """A Gaussian for rows, and how far missing cells typically are from their prediction."""

    gaussian: GaussianRows
    open_variance: Array
    """Mean conditional variance of the missing cells of each column; where none is missing, that given all other columns. [D]"""


def fit_gaussian(X: Array, weight: Array) -> FittedCells:
    """Maximum likelihood from incomplete rows by expectation maximization (Dempster, Laird and Rubin, 1977), with a small ridge."""
    known = ~np.isnan(X)
    count = np.maximum(weight @ known, np.finfo(float).tiny)
    center = weight @ np.where(known, X, 0.0) / count
    spread = np.sqrt(weight @ np.where(known, X - center, 0.0) ** 2 / count)
    # A column without spread is known wherever it is missing, and has no unit of its own.
    unit = np.where(spread > ROUNDING * np.abs(center), spread, np.maximum(np.abs(center), 1.0))
    cells = _fit_standardized((X - center) / unit, weight)
    units = np.outer(unit, unit) if cells.gaussian.covariance.ndim == 2 else unit**2
    return FittedCells(GaussianRows(center + unit * cells.gaussian.mean, cells.gaussian.covariance * units), cells.open_variance * unit**2)


def _fit_standardized(X: Array, weight: Array) -> FittedCells:
    """The same for columns of mean zero and standard deviation one, or zero."""
    n_columns = X.shape[1]
    variance = weight @ np.where(np.isnan(X), 0.0, X) ** 2 / np.maximum(weight @ ~np.isnan(X), np.finfo(float).tiny)
    variances = np.maximum(variance, SMALLEST_VARIANCE)
    if n_columns > MAX_COLUMNS:
        return FittedCells(GaussianRows(np.zeros(n_columns), variances), variance)
    gaussian = GaussianRows(np.zeros(n_columns), np.diag(variances))
    moments = gaussian.expectations(X, weight)
    for _ in range(MAX_STEPS if np.isnan(X).any() else 1):
        before = gaussian.covariance.diagonal()
        gaussian = _maximize(moments, weight.sum())
        moments = gaussian.expectations(X, weight)
        if np.abs(gaussian.covariance.diagonal() / before - 1).max() < STILL:
            break
    given_all_others = 1 / np.linalg.inv(gaussian.covariance).diagonal()
    present = moments.missing_weight > 0
    where_missing = moments.open_variance / np.where(present, moments.missing_weight, 1.0)
    return FittedCells(gaussian, np.where(present, where_missing, given_all_others))


def _maximize(moments: Moments, total_weight: float) -> GaussianRows:
    mean = moments.total / total_weight
    covariance = moments.products / total_weight - np.outer(mean, mean)
    return GaussianRows(mean, covariance + np.diag(np.maximum(RIDGE * covariance.diagonal(), SMALLEST_VARIANCE)))


class IncompleteRBF(CallByBlocks, TakesMissingCells, UnitDiagonal, Kernel):
    """The expected squared exponential where NaN marks a missing cell.

    Rows are taken as Gaussian, x ~ N(μ, Σ), for what is missing: a missing cell has a mean m_d(x) given the known cells of its row, and
    is off by a variance v_d, typical of its column. The kernel is the expectation of the squared exponential under that, independently
    for each cell and row, divided by its value on the diagonal so that k(x, x) = 1. With v_d(x) = v_d for a missing cell and 0 for a
    known one, and m_d(x) = x_d for a known one:

        k(x, y) ∝ Π_d (1 + (v_d(x) + v_d(y)) / l_d²)^−½ exp(−½ (m_d(x) − m_d(y))² / (l_d² + v_d(x) + v_d(y)))

    It is an inner product of expected features, so it is positive semi-definite whatever is missing; where nothing is, it is `RBF`.
    The assumptions: cells are missing for reasons that have nothing to do with what they would be (where missing is a message in itself,
    add a column that says so), and columns are related linearly. With more than 200 columns, they are taken as independent.

    Parameters
    ----------
    neighborhood, reduce, per_column
        As in `NeighborRBF`, which finds the lengthscales, with m_d(x) in the place of missing cells.
    stretch
        What the lengthscales of that rule are multiplied with.
    max_rows
        With more distinct rows than this, μ, Σ and v come from a sample of this size.
    length_scale, mean, covariance, open_variance
        l, μ, Σ (or its diagonal, for independent columns) and v. Found at `fit` where they are None.
    """

    def __init__(
        self,
        neighborhood: float = 10,
        *,
        reduce: Literal["max", "median"] = "max",
        per_column: bool = True,
        stretch: float = 1.0,
        max_rows: int = 1000,
        length_scale: float | ArrayLike | None = None,
        mean: ArrayLike | None = None,
        covariance: ArrayLike | None = None,
        open_variance: ArrayLike | None = None,
    ) -> None:
        self.neighborhood = neighborhood
        self.reduce = reduce
        self.per_column = per_column
        self.stretch = stretch
        self.max_rows = max_rows
        self.length_scale = length_scale
        self.mean = mean
        self.covariance = covariance
        self.open_variance = open_variance

    def prepare(self, X: Any) -> Array:
        """Numbers, of which NaN are missing."""
        return check_array(X, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=0)

    @property
    def is_resolved(self) -> bool:
        """Whether nothing is left to be taken from the training rows."""
        return not any(value is None for value in (self.length_scale, self.mean, self.covariance, self.open_variance))

    def resolve(self, X: Any, sample_weight: Array | None = None, seed: int = 0) -> IncompleteRBF:
        """The kernel with everything that the training rows tell."""
        check_number("max_rows", self.max_rows, Integral, at_least=2)
        check_number("stretch", self.stretch, Real, above=0)
        rows = training_rows(self, X, sample_weight)
        parameters = self.get_params(deep=False)
        if any(parameters[name] is None for name in ("mean", "covariance", "open_variance")):
            sample = rows.sample(self.max_rows, seed)
            cells = fit_gaussian(sample.rows, sample.weight)
            parameters |= {"mean": cells.gaussian.mean, "covariance": cells.gaussian.covariance, "open_variance": cells.open_variance}
        if self.length_scale is None:
            gaussian = GaussianRows(np.asarray(parameters["mean"]), np.asarray(parameters["covariance"]))
            rule = NeighborRBF(self.neighborhood, reduce=self.reduce, per_column=self.per_column, max_rows=self.max_rows)
            parameters["length_scale"] = (
                self.stretch * rule.resolve(MappedRows(rows, gaussian.fill, rows.n_columns), seed=seed).length_scale
            )
        return IncompleteRBF(**parameters)

    def block_kernel(self, points: Array) -> BlockKernel:
        """Where nothing is missing, `RBF`'s own; else one matrix product and one `exp`."""
        if not self.is_resolved:
            raise not_resolved(self, "lengthscales")
        fill_complete = None if np.isnan(points).any() else block_kernel(RBF(np.asarray(self.length_scale)), points)
        filled_points = self._cells(points)
        factors = self._factors(filled_points)

        def fill(X: Array, out: Array) -> None:
            X = in_double_precision(X)
            if fill_complete and not np.isnan(X).any():
                fill_complete(X, out)
                return
            rows = self._cells(X)
            if max(rows.half_norm, filled_points.half_norm) < LARGEST_HALF_NORM[np.dtype(np.float64)]:
                np.matmul(rows.features(), factors, out=out)
            else:  # too far out for differences from inner products
                out[...] = self._column_by_column(rows, filled_points)
            np.exp(np.minimum(out, 0.0, out=out), out=out)

        return fill

    def _cells(self, X: Array) -> _Cells:
        gaussian = GaussianRows(np.asarray(self.mean), np.asarray(self.covariance))
        return _Cells((gaussian.fill(X) - gaussian.mean) / np.asarray(self.length_scale), np.isnan(X))

    def _exponents(self) -> tuple[Array, Array, Array]:
        """With v/l² = r: precisions 1/(1 + r) with one cell missing and 1/(1 + 2r) with both, and log k for equal means. [D] each

        log k = −½ (m(x) − m(y))² / (1 + r) − ½ log(1 + r) + ¼ log(1 + 2r) with one missing, where ¼ log(1 + 2r) is from the diagonal.
        """
        ratio = np.asarray(self.open_variance) / np.asarray(self.length_scale) ** 2
        one, both = 1 / (1 + ratio), 1 / (1 + 2 * ratio)
        return one, both, 0.5 * np.log(one) - 0.25 * np.log(both)

    def _factors(self, points: _Cells) -> Array:
        """What the features of a row are multiplied with, to give log k(x, u). [6 D, M]"""
        one, both, log_one = self._exponents()
        missing = points.missing
        for_known = np.where(missing, one, 1.0)
        for_missing = np.where(missing, both, one)
        parts = []
        for precision, constant in ((for_known, np.where(missing, log_one, 0.0)), (for_missing, np.where(missing, 0.0, log_one))):
            parts += [-0.5 * precision, precision * points.values, constant - 0.5 * precision * points.values**2]
        return np.ascontiguousarray(np.hstack(parts).T)

    def _column_by_column(self, rows: _Cells, points: _Cells) -> Array:
        """log k(x, u) from differences: slower, and exact for rows of any size."""
        one, both, log_one = self._exponents()
        out = np.zeros((len(rows.values), len(points.values)))
        for d in range(rows.values.shape[1]):
            n_missing = rows.missing[:, d, None].astype(np.intp) + points.missing[:, d]
            difference = rows.values[:, d, None] - points.values[:, d]
            out += np.array([0.0, log_one[d], 0.0])[n_missing] - 0.5 * np.array([1.0, one[d], both[d]])[n_missing] * difference**2
        return out

    def is_stationary(self) -> bool:
        """Only where nothing is missing."""
        return False

    def __repr__(self) -> str:
        return short_repr(self)


class _Cells(NamedTuple):
    """Rows with predictions for what is missing, in units of the lengthscales."""

    values: Array
    missing: NDArray[np.bool_]

    @property
    def half_norm(self) -> float:
        """The largest ½|x|²."""
        return 0.5 * float((self.values**2).sum(axis=1).max(initial=0.0))

    def features(self) -> Array:
        """x², x and 1 of each column, once for known cells and once for missing ones. [n, 6 D]"""
        powers = (self.values**2, self.values, np.ones_like(self.values))
        return np.hstack([power * mask for mask in (~self.missing, self.missing) for power in powers])
