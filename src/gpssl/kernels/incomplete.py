"""A kernel for rows of numbers in which cells are missing, and the Gaussian that predicts what is missing from what is known."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import RBF, Kernel
from sklearn.utils import check_array

from .._validation import check_number
from ..data._arrays import DistinctRows, in_double_precision
from ..data._rows import MappedRows
from ._protocol import (
    LARGEST_HALF_NORM,
    Array,
    BlockKernel,
    CallByBlocks,
    TakesMissingCells,
    UnitDiagonal,
    block_kernel,
    not_resolved,
    training_rows,
)
from .vectors import NeighborRBF

_MAX_COLUMNS = 200
"""Beyond so many columns they are taken as independent: the work grows with the cube of their number."""
_MAX_STEPS = 30
_SMALLEST_CHANGE = 1e-3
"""Relative change of the variances at which the fit ends."""
_RIDGE = 0.01
"""Added to each variance, relative to it: some columns copy each other, some tables have hardly more rows than columns."""
_MAX_PATTERNS = 1000
"""Patterns of missing cells whose inverses are remembered."""
_ROUNDING = 1e-14
"""Spread of a column, relative to its mean, that rounding alone may cause."""
_SMALLEST_VARIANCE = 1e-12
"""The least variance of a column in its own units: zero could not be inverted."""
_UNITS = (1e-150, 1e150)
"""Standard deviations of columns whose squares are numbers."""


class IncompleteRBF(CallByBlocks, TakesMissingCells, UnitDiagonal, Kernel):
    """The expected squared exponential where NaN marks a missing cell.

    For what is missing, rows are taken as Gaussian, x ~ N(μ, Σ): a missing cell has a mean m_d(x) given the known cells of its row, and
    differs from it by a variance v_d, typical of its column. The kernel is the expectation of the squared exponential under that,
    independently for each cell and row, divided by its value on the diagonal so that k(x, x) = 1. With v_d(x) = v_d for a missing cell
    and 0 for a known one, and m_d(x) = x_d for a known one:

        k(x, y) ∝ Π_d (1 + (v_d(x) + v_d(y)) / l_d²)^−½ exp(−½ (m_d(x) − m_d(y))² / (l_d² + v_d(x) + v_d(y)))

    It is an inner product of expected features, so it is positive semi-definite whatever is missing; where nothing is, it is `RBF`.
    It assumes that cells are missing for reasons that have nothing to do with their values (where a missing cell means something,
    add a column that says so), and that columns are related linearly. More than 200 columns are taken as independent.

    Parameters
    ----------
    neighborhood, reduce, per_column
        As in `NeighborRBF`, which finds the lengthscales, with m_d(x) in the place of missing cells.
    stretch
        The factor by which the lengthscales of that rule are multiplied.
    max_rows
        With more distinct rows than this, μ, Σ and v come from a sample of this size.
    length_scale, mean, covariance, open_variance
        l, μ, Σ (or its diagonal, for independent columns) and v. Those that are None are found at `fit`.
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
        """Return the rows as numbers, with NaN for missing cells. [n, D]"""
        return check_array(X, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=0)

    @property
    def is_resolved(self) -> bool:
        """Whether nothing is left to be taken from the training rows."""
        return not any(value is None for value in (self.length_scale, self.mean, self.covariance, self.open_variance))

    def resolve(self, X: Any, sample_weight: Array | None = None, seed: int = 0) -> IncompleteRBF:
        """Return the kernel with the Gaussian and the lengthscales of these rows."""
        check_number("max_rows", self.max_rows, Integral, at_least=2)
        check_number("stretch", self.stretch, Real, above=0)
        rows = training_rows(self, X, sample_weight)
        parameters = self.get_params(deep=False)
        if any(parameters[name] is None for name in ("mean", "covariance", "open_variance")):
            sample = rows.sample(self.max_rows, seed)
            gaussian, open_variance = _fit_gaussian(sample.rows, sample.weight, None if rows.header is None else list(rows.header.columns))
            parameters |= {"mean": gaussian.mean, "covariance": gaussian.covariance, "open_variance": open_variance}
        if self.length_scale is None:
            gaussian = _GaussianRows(np.asarray(parameters["mean"]), np.asarray(parameters["covariance"]))
            rule = NeighborRBF(self.neighborhood, reduce=self.reduce, per_column=self.per_column, max_rows=self.max_rows)
            filled = _RowsWithoutGaps(rows, gaussian.fill, rows.n_columns)
            parameters["length_scale"] = self.stretch * rule.resolve(filled, seed=seed).length_scale
        return IncompleteRBF(**parameters)

    def block_kernel(self, points: Array) -> BlockKernel:
        """Return `RBF`'s own function where nothing is missing, else one that needs a matrix product and an `exp`."""
        gaussian, filled_points, factors = self._points_and_factors(points)
        fill_complete = None if np.isnan(points).any() else block_kernel(RBF(np.asarray(self.length_scale)), points)

        def fill(X: Array, out: Array) -> None:
            X = in_double_precision(X)
            if fill_complete and not np.isnan(X).any():
                fill_complete(X, out)
                return
            rows = self._filled(X, gaussian)
            if max(rows.half_norm, filled_points.half_norm) < LARGEST_HALF_NORM[np.dtype(np.float64)]:
                np.matmul(rows.features(), factors, out=out)
            else:  # too far out for differences from inner products
                out[...] = self._column_by_column(rows, filled_points)
            np.exp(np.minimum(out, 0.0, out=out), out=out)

        return fill

    def _points_and_factors(self, points: Array) -> tuple[_GaussianRows, _FilledRows, Array]:
        """Return the Gaussian, the points, and the matrix that, multiplied by the features of a row, gives log k(x, u). [6 D, M]"""
        if not self.is_resolved:
            raise not_resolved(self, "lengthscales")
        gaussian = _GaussianRows(np.asarray(self.mean), np.asarray(self.covariance))
        filled = self._filled(points, gaussian)
        one, both, log_one = self._exponents()
        for_known = np.where(filled.missing, one, 1.0)
        for_missing = np.where(filled.missing, both, one)
        constants = np.where(filled.missing, log_one, 0.0), np.where(filled.missing, 0.0, log_one)
        blocks = []
        for precision, constant in zip((for_known, for_missing), constants, strict=True):
            blocks += [-0.5 * precision, precision * filled.values, constant - 0.5 * precision * filled.values**2]
        return gaussian, filled, np.ascontiguousarray(np.hstack(blocks).T)

    def _filled(self, X: Array, gaussian: _GaussianRows) -> _FilledRows:
        return _FilledRows((gaussian.fill(X) - gaussian.mean) / np.asarray(self.length_scale), np.isnan(X))

    def _exponents(self) -> tuple[Array, Array, Array]:
        """Return precisions 1/(1 + r) with one cell missing and 1/(1 + 2r) with both, r = v/l², and log k for equal means. [D] each

        log k = −½ (m(x) − m(y))² / (1 + r) − ½ log(1 + r) + ¼ log(1 + 2r) with one missing, where ¼ log(1 + 2r) is from the diagonal.
        """
        ratio = np.asarray(self.open_variance) / np.asarray(self.length_scale) ** 2
        one, both = 1 / (1 + ratio), 1 / (1 + 2 * ratio)
        return one, both, 0.5 * np.log(one) - 0.25 * np.log(both)

    def _column_by_column(self, rows: _FilledRows, points: _FilledRows) -> Array:
        """Return log k(x, u) from differences, which is slower but exact for rows of any size. [n, M]"""
        one, both, log_one = self._exponents()
        out = np.zeros((len(rows.values), len(points.values)))
        for d in range(rows.values.shape[1]):
            n_missing = rows.missing[:, d, None].astype(np.intp) + points.missing[:, d]
            difference = rows.values[:, d, None] - points.values[:, d]
            out += np.array([0.0, log_one[d], 0.0])[n_missing] - 0.5 * np.array([1.0, one[d], both[d]])[n_missing] * difference**2
        return out


class _RowsWithoutGaps(MappedRows):
    """Rows with predictions in the place of missing cells."""

    def sample(self, limit: int, seed: int) -> DistinctRows:
        """Return distinct rows, chosen before they are filled in: rounding makes predictions of copies in different parts differ."""
        found = self.rows.sample(limit, seed)
        return DistinctRows(self.function(found.rows), found.weight, found.hashes)


class _FilledRows(NamedTuple):
    """Rows with predictions in the place of missing cells, in units of the lengthscales."""

    values: Array
    missing: NDArray[np.bool_]

    @property
    def half_norm(self) -> float:
        """The largest ½|x|²."""
        return 0.5 * float((self.values**2).sum(axis=1).max(initial=0.0))

    def features(self) -> Array:
        """Return x², x and 1 of each column, once for known cells and once for missing ones. [n, 6 D]"""
        powers = (self.values**2, self.values, np.ones_like(self.values))
        return np.hstack([power * mask for mask in (~self.missing, self.missing) for power in powers])


class _ExpectedSums(NamedTuple):
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
class _GaussianRows:
    """x ~ N(μ, Σ); missing cells are predicted from known ones.

    With P = Σ⁻¹ and m the missing cells of a row:  Var[x_m | x_o] = (P_mm)⁻¹,  E[x_m | x_o] = μ_m − (P_mm)⁻¹ P_mo (x_o − μ_o).
    """

    mean: Array
    covariance: Array
    """Σ, or its diagonal where columns are independent. [D, D] or [D]"""

    def fill(self, X: Array) -> Array:
        """Return the rows with E[x_m | x_o] in the place of missing cells. [n, D]"""
        missing = np.isnan(X)
        if self.covariance.ndim == 1:
            return np.where(missing, self.mean, X)
        filled = X.copy()
        incomplete = np.flatnonzero(missing.any(axis=1))
        rows, missing = X[incomplete], missing[incomplete]
        known = np.where(missing, 0.0, (rows - self.mean) / self._unit)
        shift = np.empty_like(rows)
        for pattern, members in _patterns(missing):
            shift[members] = -(known[members] @ self._precision) @ self._inverse_of(pattern)
        filled[incomplete] = np.where(missing, self.mean + self._unit * shift, rows)
        return filled

    def expectations(self, X: Array, weight: Array) -> _ExpectedSums:
        """Return the sums over rows that the next step of the fit needs."""
        filled, missing = self.fill(X), np.isnan(X)
        incomplete = np.flatnonzero(missing.any(axis=1))
        products = np.zeros_like(self.covariance)
        open_variance = np.zeros(X.shape[1])
        for pattern, members in _patterns(missing[incomplete]):
            variances = self._inverse_of(pattern) * np.outer(self._unit, self._unit)
            total_weight = weight[incomplete[members]].sum()
            products += total_weight * variances
            open_variance += total_weight * variances.diagonal()
        return _ExpectedSums(weight @ filled, products + (filled * weight[:, None]).T @ filled, open_variance, weight @ missing)

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
        """Return (P_mm)⁻¹ in units of the standard deviations, 0 for known cells; blocks of rows share their patterns. [D, D]"""
        key = pattern.tobytes()
        if key not in self._inverses:
            both = pattern[:, None] & pattern
            inverse = np.linalg.inv(np.where(both, self._precision, np.eye(len(pattern)))) * both
            if len(self._inverses) >= _MAX_PATTERNS:
                return inverse
            self._inverses[key] = inverse
        return self._inverses[key]


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


def _fit_gaussian(X: Array, weight: Array, names: list[Hashable] | None = None) -> tuple[_GaussianRows, Array]:
    """Fit by maximum likelihood to incomplete rows: expectation maximization (Dempster, Laird and Rubin, 1977) with a small ridge.

    Return also how far missing cells typically are from their prediction: the mean conditional variance of the missing cells of each
    column, or, where none is missing, that given all other columns. [D]
    """
    known = ~np.isnan(X)
    count = np.maximum(weight @ known, np.finfo(float).tiny)
    largest = np.abs(np.where(known, X, 0.0)).max(axis=0, initial=0.0)
    largest = np.where(largest > 0, largest, 1.0)
    shares = X / largest  # whose squares are finite
    middle = weight @ np.where(known, shares, 0.0) / count
    spread = np.sqrt(weight @ np.where(known, shares - middle, 0.0) ** 2 / count)
    # A column without spread is known wherever it is missing, and has no unit of its own.
    center, varies = largest * middle, spread > _ROUNDING * np.abs(middle)
    unit = np.where(varies, largest * spread, np.maximum(np.abs(center), 1.0))
    if ((unit < _UNITS[0]) | (unit > _UNITS[1])).any():
        place = int(np.abs(np.log(unit)).argmax())
        raise ValueError(
            f"The cells of column {place if names is None else names[place]!r} spread over {unit[place]:.1g}, whose square is no number: "
            "give it another unit, or drop it."
        )
    standardized, open_variance = _fit_standardized((X - center) / unit, weight)
    units = np.outer(unit, unit) if standardized.covariance.ndim == 2 else unit**2
    return _GaussianRows(center + unit * standardized.mean, standardized.covariance * units), open_variance * unit**2


def _fit_standardized(X: Array, weight: Array) -> tuple[_GaussianRows, Array]:
    """Fit columns of mean zero whose standard deviation is one, or zero."""
    n_columns = X.shape[1]
    variance = weight @ np.where(np.isnan(X), 0.0, X) ** 2 / np.maximum(weight @ ~np.isnan(X), np.finfo(float).tiny)
    variances = np.maximum(variance, _SMALLEST_VARIANCE)
    if n_columns > _MAX_COLUMNS:
        return _GaussianRows(np.zeros(n_columns), variances), variance
    gaussian = _GaussianRows(np.zeros(n_columns), np.diag(variances))
    sums = gaussian.expectations(X, weight)
    for _ in range(_MAX_STEPS if np.isnan(X).any() else 1):
        before = gaussian.covariance.diagonal()
        mean = sums.total / weight.sum()
        covariance = sums.products / weight.sum() - np.outer(mean, mean)
        gaussian = _GaussianRows(mean, covariance + np.diag(np.maximum(_RIDGE * covariance.diagonal(), _SMALLEST_VARIANCE)))
        sums = gaussian.expectations(X, weight)
        if np.abs(gaussian.covariance.diagonal() / before - 1).max() < _SMALLEST_CHANGE:
            break
    given_all_others = 1 / np.linalg.inv(gaussian.covariance).diagonal()
    present = sums.missing_weight > 0
    where_missing = sums.open_variance / np.where(present, sums.missing_weight, 1.0)
    return gaussian, np.where(present, where_missing, given_all_others)
