"""Kernels for rows of numbers: the paper's squared exponential, and one for rows in which cells are missing.

Both take their lengthscales from nearest neighbors.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import RBF, Kernel, NormalizedKernelMixin, StationaryKernelMixin
from sklearn.utils import check_array

from .._validation import check_number
from ..data._arrays import in_double_precision
from ..data._opening import open_rows
from ..data._rows import MappedRows, Rows
from ._incomplete_gaussian import GaussianRows, fit_gaussian
from ._lengthscale import check_rule, column_scale, farthest_rows, neighbor_lengthscale
from ._protocol import (
    LARGEST_HALF_NORM,
    Array,
    BlockKernel,
    CallByBlocks,
    ExponentialKernel,
    TakesMissingCells,
    UnitDiagonal,
    block_kernel,
    not_resolved,
    short_repr,
    training_rows,
)


class NeighborRBF(StationaryKernelMixin, NormalizedKernelMixin, Kernel):
    """Unit-variance squared exponential with the lengthscale rule of the paper's section 3.1.

        k(x, y) = exp(−½ (x − y)ᵀ L⁻² (x − y)),      L = diag(l₁ … l_D)
        l       = reduce over rows of the distance to the K-th neighbor,      K = max(1, ⌊N / neighborhood⌋)

    With `per_column` the distances are measured in units of each column's standard deviation s_d, and l_d = s_d·l: the
    kernel then does not depend on the units in which a table is written. On columns of equal standard deviation it is
    the isotropic kernel. Set it to false where the columns share a unit and their relative scale carries meaning
    (coordinates, pixels, principal components).

    Parameters
    ----------
    neighborhood
        The neighbor that sets the lengthscale is the K = ⌊N / neighborhood⌋-th; larger values give shorter lengthscales.
    reduce
        "max" is the paper's rule. "median" ignores outlying rows: a single row far from all others stretches the maximum,
        and with it the kernel, without limit.
    per_column
        One lengthscale per column, or one for all.
    max_rows
        With more distinct rows than this, the rule is computed on a sample of this size. K scales with the sample, and the rows
        farthest from the center are added to it as anchors, so that the result stays close to the rule on all rows.
    """

    def __init__(
        self,
        neighborhood: float = 10,
        *,
        reduce: Literal["max", "median"] = "max",
        per_column: bool = True,
        max_rows: int = 1000,
    ) -> None:
        self.neighborhood = neighborhood
        self.reduce = reduce
        self.per_column = per_column
        self.max_rows = max_rows

    def resolve(self, X: Any, sample_weight: Array | None = None, seed: int = 0) -> RBF:
        """Return scikit-learn's `RBF` with the lengthscale that the rule gives for these rows, in memory or not.

        It reads the rows at most twice, for the sample and for the rows farthest out; neighbors are searched in the sample.
        """
        check_rule(self.neighborhood, self.reduce, self.max_rows)
        rows = X if isinstance(X, Rows) and sample_weight is None else open_rows(X, sample_weight)
        sample = rows.sample(self.max_rows, seed)
        scale = column_scale(sample.rows, sample.weight, per_column=self.per_column)
        # A full sample may lack the outlying rows that the largest distance belongs to.
        sampled = len(sample.rows) == self.max_rows
        outlying = farthest_rows(rows, scale, sample.rows, seed) if sampled and self.reduce == "max" else sample.rows[:0] / scale
        lengthscale = scale * neighbor_lengthscale(
            sample.rows / scale, sample.weight, neighborhood=self.neighborhood, reduce=self.reduce, outlying=outlying
        )
        return RBF(lengthscale if self.per_column else float(lengthscale[0]), length_scale_bounds="fixed")

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> NoReturn:
        """Raise ValueError: there is no lengthscale yet."""
        raise not_resolved(self, "lengthscale")

    def __repr__(self) -> str:
        return (
            f"NeighborRBF(neighborhood={self.neighborhood!r}, reduce={self.reduce!r}, "
            f"per_column={self.per_column!r}, max_rows={self.max_rows!r})"
        )


class IncompleteRBF(CallByBlocks, ExponentialKernel, TakesMissingCells, UnitDiagonal, Kernel):
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
            gaussian, open_variance = fit_gaussian(sample.rows, sample.weight)
            parameters |= {"mean": gaussian.mean, "covariance": gaussian.covariance, "open_variance": open_variance}
        if self.length_scale is None:
            gaussian = GaussianRows(np.asarray(parameters["mean"]), np.asarray(parameters["covariance"]))
            rule = NeighborRBF(self.neighborhood, reduce=self.reduce, per_column=self.per_column, max_rows=self.max_rows)
            filled = MappedRows(rows, gaussian.fill, rows.n_columns)
            parameters["length_scale"] = self.stretch * rule.resolve(filled, seed=seed).length_scale
        return IncompleteRBF(**parameters)

    def block_kernel(self, points: Array) -> BlockKernel:
        """Return `RBF`'s own function where nothing is missing, else one that needs a matrix product and an `exp`."""
        if not self.is_resolved:
            raise not_resolved(self, "lengthscales")
        fill_complete = None if np.isnan(points).any() else block_kernel(RBF(np.asarray(self.length_scale)), points)
        gaussian = self._gaussian()
        filled_points = self._filled(points, gaussian)
        factors = self._factors(filled_points)

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

    def log_block_kernel(self, points: Array) -> BlockKernel:
        """Return a function for log k(x, u), which needs fewer features for complete rows than for the others."""
        if not self.is_resolved:
            raise not_resolved(self, "lengthscales")
        gaussian = self._gaussian()
        filled_points = self._filled(points, gaussian)
        factors, n_columns = self._factors(filled_points), points.shape[1]
        length_scale = np.asarray(self.length_scale)
        of_complete = np.vstack([factors[: 2 * n_columns], factors[2 * n_columns : 3 * n_columns].sum(axis=0)])

        def fill(X: Array, out: Array) -> None:
            X = in_double_precision(X)
            features = np.ones((len(X), 2 * n_columns + 1))  # x² and x of each column, and 1
            squares, values = features[:, :n_columns], features[:, n_columns:-1]
            np.subtract(X, gaussian.mean, out=values)
            values /= length_scale
            norms = np.einsum("nd,nd->n", values, values)
            incomplete = np.flatnonzero(np.isnan(norms))
            norms[incomplete] = 0.0
            values[incomplete] = 0.0
            rest = self._filled(X[incomplete], gaussian)
            if max(0.5 * norms.max(initial=0.0), rest.half_norm, filled_points.half_norm) >= LARGEST_HALF_NORM[X.dtype]:
                out[...] = self._column_by_column(self._filled(X, gaussian), filled_points)
                return
            np.square(values, out=squares)
            np.matmul(features, of_complete, out=out)
            if len(incomplete):
                out[incomplete] = rest.features() @ factors

        return fill

    def _gaussian(self) -> GaussianRows:
        return GaussianRows(np.asarray(self.mean), np.asarray(self.covariance))

    def _filled(self, X: Array, gaussian: GaussianRows) -> _FilledRows:
        return _FilledRows((gaussian.fill(X) - gaussian.mean) / np.asarray(self.length_scale), np.isnan(X))

    def _exponents(self) -> tuple[Array, Array, Array]:
        """Return precisions 1/(1 + r) with one cell missing and 1/(1 + 2r) with both, r = v/l², and log k for equal means. [D] each

        log k = −½ (m(x) − m(y))² / (1 + r) − ½ log(1 + r) + ¼ log(1 + 2r) with one missing, where ¼ log(1 + 2r) is from the diagonal.
        """
        ratio = np.asarray(self.open_variance) / np.asarray(self.length_scale) ** 2
        one, both = 1 / (1 + ratio), 1 / (1 + 2 * ratio)
        return one, both, 0.5 * np.log(one) - 0.25 * np.log(both)

    def _factors(self, points: _FilledRows) -> Array:
        """Return the matrix that, multiplied by the features of a row, gives log k(x, u). [6 D, M]"""
        one, both, log_one = self._exponents()
        missing = points.missing
        for_known = np.where(missing, one, 1.0)
        for_missing = np.where(missing, both, one)
        blocks = []
        for precision, constant in ((for_known, np.where(missing, log_one, 0.0)), (for_missing, np.where(missing, 0.0, log_one))):
            blocks += [-0.5 * precision, precision * points.values, constant - 0.5 * precision * points.values**2]
        return np.ascontiguousarray(np.hstack(blocks).T)

    def _column_by_column(self, rows: _FilledRows, points: _FilledRows) -> Array:
        """Return log k(x, u) from differences, which is slower but exact for rows of any size. [n, M]"""
        one, both, log_one = self._exponents()
        out = np.zeros((len(rows.values), len(points.values)))
        for d in range(rows.values.shape[1]):
            n_missing = rows.missing[:, d, None].astype(np.intp) + points.missing[:, d]
            difference = rows.values[:, d, None] - points.values[:, d]
            out += np.array([0.0, log_one[d], 0.0])[n_missing] - 0.5 * np.array([1.0, one[d], both[d]])[n_missing] * difference**2
        return out

    def __repr__(self) -> str:
        return short_repr(self)


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
