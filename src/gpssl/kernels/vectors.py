"""The paper's kernel for rows of numbers, and its rule for lengthscales: the distance to the K-th neighbor, in units of each column."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, Kernel, NormalizedKernelMixin, StationaryKernelMixin

from .._validation import check_number
from ..data._arrays import hash_rows, row_blocks
from ..data._rows import Part, Rows, open_rows
from ._protocol import Array, full_repr, not_resolved

_Metric = Literal["euclidean", "hamming"]

_ANCHORS_AT_A_TIME = 512
_FARTHEST_ROWS = 64
_ROUNDING = 1e-14
"""Spread of a column, relative to its largest entry, that rounding alone may cause."""


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
        _check_rule(self.neighborhood, self.reduce, self.max_rows)
        rows = open_rows(X, sample_weight)
        sample = rows.sample(self.max_rows, seed)
        scale = _column_scale(sample.rows, sample.weight, per_column=self.per_column)
        # A full sample may lack the outlying rows that the largest distance belongs to.
        sampled = len(sample.rows) == self.max_rows
        outlying = _farthest_rows(rows, scale, sample.rows, seed) if sampled and self.reduce == "max" else None
        lengthscale = scale * _neighbor_lengthscale(
            sample.rows / scale, sample.weight, neighborhood=self.neighborhood, reduce=self.reduce, outlying=outlying
        )
        return RBF(lengthscale if self.per_column else float(lengthscale[0]), length_scale_bounds="fixed")

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> NoReturn:
        """Raise ValueError: there is no lengthscale yet."""
        raise not_resolved(self, "lengthscale")

    def __repr__(self) -> str:
        return full_repr(self)


def _check_rule(neighborhood: float, reduce: str, max_rows: int) -> None:
    """Raise ValueError unless the parameters of the rule have a meaning."""
    check_number("neighborhood", neighborhood, Real, above=0)
    if reduce not in ("max", "median"):
        raise ValueError(f'reduce must be "max" or "median", got {reduce!r}.')
    check_number("max_rows", max_rows, Integral, at_least=2)


def _neighbor_lengthscale(
    rows: Array,
    weight: Array,
    *,
    neighborhood: float,
    reduce: str,
    outlying: Array | None = None,
    metric: _Metric = "euclidean",
) -> float:
    """Return the distance to the K-th neighbor, reduced over these rows and over anchors that lie outside them.

    A row of weight w stands for w rows. It is not its own neighbor; its further copies are.
    """
    k = max(1, int(weight.sum() // neighborhood))
    distances = _distances_within(k + np.minimum(weight, 1.0), rows, rows, weight, metric)
    largest = distances.max()
    if outlying is not None:
        beyond = _distances_within(np.full(len(outlying), float(k)), outlying, rows, weight, metric)
        largest = max(largest, beyond.max(initial=0.0))
    lengthscale = largest if reduce == "max" else _weighted_median(distances, weight)
    if lengthscale > 0:
        return float(lengthscale)
    # Most rows coincide with their neighbors (few distinct values): take the shortest distance between rows that differ. Where all
    # coincide, no lengthscale is better than another.
    between = cdist(rows, rows, metric)
    positive = between[between > 0]
    return float(positive.min()) if len(positive) > 0 else 1.0


def _distances_within(k: Array, anchors: Array, rows: Array, weight: Array, metric: _Metric) -> Array:
    """Return the distance from each anchor within which the weights of rows add up to k. [n anchors]"""
    blocks = [
        _weighted_kth(cdist(anchors[block], rows, metric), weight, k[block]) for block in row_blocks(len(anchors), _ANCHORS_AT_A_TIME)
    ]
    return np.concatenate([np.empty(0), *blocks])


def _weighted_kth(distances: Array, weight: Array, k: Array) -> Array:
    """Return, for each row, the smallest distance within which the weights add up to k."""
    if (weight == 1).all() and (k == k[0]).all():
        nth = min(int(k[0]), distances.shape[1]) - 1
        return np.partition(distances, nth, axis=1)[:, nth]
    order = np.argsort(distances, axis=1)
    reached = np.cumsum(weight[order], axis=1) >= (k * (1 - 1e-12))[:, None]
    reached[:, -1] = True
    nth = order[np.arange(len(order)), reached.argmax(axis=1)]
    return distances[np.arange(len(distances)), nth]


def _weighted_median(values: Array, weight: Array) -> float:
    """Return the median of the values, each repeated as often as its weight says."""
    order = np.argsort(values)
    cumulative = np.cumsum(weight[order])
    half = cumulative[-1] / 2
    lower = np.searchsorted(cumulative, half * (1 - 1e-12))
    upper = min(np.searchsorted(cumulative, half * (1 + 1e-12), side="right"), len(values) - 1)
    return float((values[order[lower]] + values[order[upper]]) / 2)


def _column_scale(rows: Array, weight: Array, *, per_column: bool) -> Array:
    """Return the standard deviation of each column, 1 for a constant one; or one common factor for all columns. [D]"""
    largest = np.maximum(rows.max(axis=0), -rows.min(axis=0))
    largest = np.where(largest > 0, largest, 1.0)
    if not per_column:
        # One common factor, which the lengthscale is multiplied by again: distances of 1e±150 would not survive being squared.
        return np.full(rows.shape[1], max(largest.max(initial=0.0), np.finfo(float).tiny))
    scaled = rows / largest
    mean = weight @ scaled / weight.sum()
    deviation = np.sqrt(weight @ (scaled - mean) ** 2 / weight.sum())
    # A constant column has no spread to measure by, and adds nothing to any distance.
    return np.where(deviation > _ROUNDING, deviation, 1.0) * largest


class _OutlyingRows(NamedTuple):
    """Distinct rows and their squared distances from the center, in units of the columns' scale."""

    rows: Array
    squared: Array
    hashes: NDArray[np.uint64]

    def farthest(self) -> _OutlyingRows:
        """Return the farthest of them. Of rows at the same distance those with the smallest hashes, so that order makes no difference."""
        _, first = np.unique(self.hashes, return_index=True)
        kept = first[np.lexsort((self.hashes[first], -self.squared[first]))[:_FARTHEST_ROWS]]
        return _OutlyingRows(self.rows[kept], self.squared[kept], self.hashes[kept])


def _farthest_rows(rows: Rows, scale: Array, sample: Array, seed: int) -> Array:
    """Return the distinct rows of positive weight farthest from the center of the sample, in units of `scale`."""
    center = (sample / scale).mean(axis=0)

    def summarize(part: Part) -> _OutlyingRows:
        squared = np.concatenate([((part.rows[block] / scale - center) ** 2).sum(axis=1) for block in row_blocks(len(part.rows))])
        squared[part.weight <= 0] = -1.0
        n_present = int((squared >= 0).sum())
        count = min(_FARTHEST_ROWS, n_present)
        while True:
            far = np.flatnonzero(squared >= np.partition(squared, -count)[-count]) if count else np.empty(0, np.intp)
            hashes = hash_rows(part.rows[far], seed)
            if count == n_present or len(np.unique(hashes)) >= _FARTHEST_ROWS:
                return _OutlyingRows(np.asarray(part.rows[far] / scale, dtype=np.float64), squared[far], hashes).farthest()
            count = min(4 * count, n_present)  # there were copies among them

    def combine(one: _OutlyingRows, other: _OutlyingRows) -> _OutlyingRows:
        return _OutlyingRows(*(np.concatenate(pair) for pair in zip(one, other, strict=True))).farthest()

    return rows.reduce(summarize, combine).rows
