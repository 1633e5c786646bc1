"""Kernels on the columns of any table, made comparable: numbers in standard units or as scores, categories one by one, gaps marked."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, GenericKernelMixin, Kernel

from .._validation import check_number
from ..data._arrays import in_double_precision
from ._columns import ColumnCode, are_categories, encode, find_columns
from ._protocol import Array, BlockKernel, CallByBlocks, TakesTables, block_kernel, not_resolved, training_rows

_Shape = Literal["squared exponential", "laplace", "linear"]

_PAIRED_ROWS = 500
"""Rows whose distances give the lengthscale."""


class StandardizedKernel(CallByBlocks, TakesTables, GenericKernelMixin, Kernel):
    """A kernel on the columns of a table, which may be of any kind, after they have been made comparable.

        "squared exponential"   k(x, y) = exp(−½ |z(x) − z(y)|² / l²)
        "laplace"               k(x, y) = exp(−Σ_d |z_d(x) − z_d(y)| / l)
        "linear"                k(x, y) = z(x)ᵀz(y) / mean |z|²          the columns themselves

    z(x) has a number for each column of numbers, in units of its standard deviation from its mean, or its normal score Φ⁻¹(rank); an
    indicator for each of the 50 most frequent levels of a column of text or categories, a gap being a level; zero for a gap among
    numbers, and an indicator of gaps in such columns. Columns whose cells are all alike, and text that differs in more than half of the
    rows, are left out. The lengthscale l is the median distance between two rows, times `stretch`.

    Parameters
    ----------
    shape
        One of the three above. The squared exponential sees rows as a whole; the Laplace kernel is a product over columns, and lets rows
        differ much in few of them.
    scores
        Whether numbers are replaced by their normal scores, so that the shape of a column's distribution and outlying cells do not count.
    stretch
        The factor by which the median distance is multiplied.
    max_rows
        With more distinct rows than this, a sample of this size sets units, levels and lengthscale.
    columns, length_scale
        How each column is encoded, and l. None: found at `fit`.
    """

    def __init__(
        self,
        shape: _Shape = "squared exponential",
        *,
        scores: bool = False,
        stretch: float = 1.0,
        max_rows: int = 2000,
        columns: list[ColumnCode] | None = None,
        length_scale: float | None = None,
    ) -> None:
        self.shape = shape
        self.scores = scores
        self.stretch = stretch
        self.max_rows = max_rows
        self.columns = columns
        self.length_scale = length_scale

    @property
    def is_resolved(self) -> bool:
        """Whether nothing is left to be taken from the training rows."""
        return self.columns is not None and self.length_scale is not None

    def resolve(self, X: Any, sample_weight: Array | None = None, seed: int = 0) -> StandardizedKernel:
        """Return the kernel with units, levels and lengthscale of these rows."""
        self._check_parameters()
        if self.is_resolved:
            return StandardizedKernel(**self.get_params(deep=False))
        rows = training_rows(self, X, sample_weight)
        sample = rows.sample(int(self.max_rows), seed)
        columns = find_columns(in_double_precision(sample.rows), sample.weight, are_categories(rows.header), scores=bool(self.scores))
        if not any(column.width for column in columns):
            raise ValueError("No column of these rows distinguishes them: there is nothing to learn from.")
        encoded = encode(sample.rows[:_PAIRED_ROWS], columns)
        scale = self._scale_of(encoded, sample.weight[:_PAIRED_ROWS])
        return StandardizedKernel(**{**self.get_params(deep=False), "columns": columns, "length_scale": float(scale)})

    def _scale_of(self, encoded: Array, weight: Array) -> float:
        """Return the lengthscale; for the linear kernel the root of the mean of |z|²."""
        if self.shape == "linear":
            return float(np.sqrt(weight @ (encoded**2).sum(axis=1) / weight.sum())) or 1.0
        return float(self.stretch) * _median_distance(encoded, weight, "cityblock" if self.shape == "laplace" else "euclidean")

    def block_kernel(self, points: Array) -> BlockKernel:
        """Encode the points once; each block is encoded as it comes."""
        columns, scale = self.columns, self.length_scale
        if columns is None or scale is None:
            raise not_resolved(self, "units and lengthscale")
        encoded_points = encode(points, columns)
        if self.shape == "squared exponential":
            fill_encoded = block_kernel(RBF(scale), encoded_points)
            return lambda X, out: fill_encoded(encode(X, columns), out)
        if self.shape == "linear":
            scaled_points = encoded_points.T / scale**2

            def fill_products(X: Array, out: Array) -> None:
                np.matmul(encode(X, columns), scaled_points, out=out)

            return fill_products

        def fill(X: Array, out: Array) -> None:
            np.exp(np.divide(cdist(encode(X, columns), encoded_points, "cityblock"), -scale, out=out), out=out)

        return fill

    def diag(self, X: Any) -> Array:
        """Return k(x, x) for each row. [n]"""
        X = self.prepare(X)
        if self.shape != "linear":
            return np.ones(len(X))
        if self.columns is None or self.length_scale is None:
            raise not_resolved(self, "units and lengthscale")
        return (encode(X, self.columns) ** 2).sum(axis=1) / self.length_scale**2

    def _check_parameters(self) -> None:
        if self.shape not in get_args(_Shape):
            raise ValueError(f"shape must be one of {', '.join(map(repr, get_args(_Shape)))}, got {self.shape!r}.")
        check_number("stretch", self.stretch, Real, above=0)
        check_number("max_rows", self.max_rows, Integral, at_least=2)


def _median_distance(rows: Array, weight: Array, metric: Literal["euclidean", "cityblock"]) -> float:
    """Return the weighted median of the distances between rows that differ; one where all are alike."""
    one, other = np.triu_indices(len(rows), 1)
    distances = cdist(rows, rows, metric)[one, other]
    between, pairs = distances[distances > 0], (weight[one] * weight[other])[distances > 0]
    if len(between) == 0:
        return 1.0
    order = np.argsort(between, kind="stable")
    cumulative = np.cumsum(pairs[order])
    return float(between[order[np.searchsorted(cumulative, cumulative[-1] / 2)]])
