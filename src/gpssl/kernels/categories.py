"""A kernel for categories: rows are as alike as they have cells in common."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import GenericKernelMixin, Kernel

from ..tables import encode_table
from ..validation import check_number
from .evaluation import BlockKernel, CallByBlocks, UnitDiagonal, describe
from .neighbor_rule import check_rule, neighbor_lengthscale
from .preparation import training_rows
from .resolution import not_resolved

Array = NDArray[np.float64]

MISSING = np.inf
"""Missing cells are a category of their own: a number that no cell can be."""


class CategoryKernel(CallByBlocks, UnitDiagonal, GenericKernelMixin, Kernel):
    """k(x, y) = exp(−½ H(x, y) / h), where H is the number of columns in which x and y differ (Hamming distance).

    It is a product over columns of 1 for equal and e^(−1/2h) for different cells, which is positive semi-definite. Text, categories and
    numbers are compared for equality only. A missing cell is a category of its own: equal to other missing cells and to nothing else. A
    category that the training rows did not have differs from all others, and is as far from each of them as they are from each other.

    Parameters
    ----------
    neighborhood, reduce
        The rule of `NeighborRBF` for h: the Hamming distance to the ⌊N / neighborhood⌋-th neighbor.
    stretch
        What √h of that rule is multiplied with, as a lengthscale would be.
    max_rows
        With more distinct rows than this, the rule is computed on a sample of this size.
    scale
        h. Found at `fit` where it is None.
    """

    kind_of_rows = "table"
    takes_gaps = True
    takes_codes = True

    def __init__(
        self,
        neighborhood: float = 10,
        *,
        reduce: Literal["max", "median"] = "max",
        stretch: float = 1.0,
        max_rows: int = 1000,
        scale: float | None = None,
    ) -> None:
        self.neighborhood = neighborhood
        self.reduce = reduce
        self.stretch = stretch
        self.max_rows = max_rows
        self.scale = scale

    def prepare(self, X: Any) -> Array:
        """Every cell as a number: a data frame, or an array of rows and columns."""
        return encode_table(X)

    @property
    def is_resolved(self) -> bool:
        """Whether nothing is left to be taken from the training rows."""
        return self.scale is not None

    def resolve(self, X: Any, sample_weight: Array | None = None, seed: int = 0) -> CategoryKernel:
        """The kernel with the scale that the rule gives for these rows."""
        check_rule(self.neighborhood, self.reduce, self.max_rows)
        check_number("stretch", self.stretch, Real, above=0)
        if self.scale is not None:
            check_number("scale", self.scale, Real, above=0)
            return CategoryKernel(**self.get_params(deep=False))
        sample = training_rows(self, X, sample_weight).sample(self.max_rows, seed)
        share = neighbor_lengthscale(
            _comparable(sample.rows), sample.weight, neighborhood=self.neighborhood, reduce=self.reduce, metric="hamming"
        )
        return CategoryKernel(**{**self.get_params(deep=False), "scale": self.stretch**2 * share * sample.rows.shape[1]})

    def block_kernel(self, points: Array) -> BlockKernel:
        """Columns are compared one after the other, in bytes."""
        if self.scale is None:
            raise not_resolved(self, "scale")
        columns = np.ascontiguousarray(_comparable(points).T)
        similarities = np.exp(-0.5 / self.scale * np.arange(len(columns) + 1))

        def fill(X: Array, out: Array) -> None:
            n_different = np.zeros(out.shape, dtype=np.min_scalar_type(len(columns)))
            for column, cells in zip(columns, _comparable(X).T, strict=True):
                n_different += cells[:, None] != column
            out[...] = similarities[n_different]

        return fill

    def is_stationary(self) -> bool:
        """Cells are compared, not subtracted."""
        return False

    def __repr__(self) -> str:
        return describe(self)


def _comparable(rows: Array) -> Array:
    """Missing cells, of which no two are equal as NaN, as a category."""
    return np.where(np.isnan(rows), MISSING, rows)
