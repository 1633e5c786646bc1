"""The paper's kernel: a squared exponential whose lengthscale comes from nearest neighbors."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, Kernel, NormalizedKernelMixin, StationaryKernelMixin

from .._validation import check_number
from ..data._arrays import hash_rows, row_blocks
from ..data._opening import open_rows
from ..data._rows import Part, Rows
from ._protocol import not_resolved

ANCHORS_AT_A_TIME = 512

Metric = Literal["euclidean", "hamming"]


def check_rule(neighborhood: float, reduce: str, max_rows: int) -> None:
    """A sentence for parameters that make no rule."""
    check_number("neighborhood", neighborhood, Real, above=0)
    if reduce not in ("max", "median"):
        raise ValueError(f'reduce must be "max" or "median", got {reduce!r}.')
    check_number("max_rows", max_rows, Integral, at_least=2)


def neighbor_lengthscale(
    rows: NDArray[np.float64],
    weight: NDArray[np.float64],
    *,
    neighborhood: float,
    reduce: str,
    outlying: NDArray[np.float64] | None = None,
    metric: Metric = "euclidean",
) -> float:
    """The distance to the K-th neighbor, reduced over these rows and over anchors that lie outside them."""
    distances = _kth_neighbor_distances(rows, weight, rows, weight, neighborhood, metric)
    outlying = rows[:0] if outlying is None else outlying
    beyond = _kth_neighbor_distances(outlying, np.zeros(len(outlying)), rows, weight, neighborhood, metric)
    largest = max(distances.max(), beyond.max(initial=0.0))
    lengthscale = largest if reduce == "max" else _weighted_median(distances, weight)
    # Where most rows coincide with their neighbors (few distinct values), the shortest distance that is one.
    return float(lengthscale) if lengthscale > 0 else _smallest_positive_distance(rows, metric)


def _kth_neighbor_distances(
    anchors: NDArray[np.float64],
    own_weight: NDArray[np.float64],
    neighbors: NDArray[np.float64],
    weight: NDArray[np.float64],
    neighborhood: float,
    metric: Metric,
) -> NDArray[np.float64]:
    """Distance from each anchor to its K-th neighbor, where a row of weight w stands for w rows. [n anchors]

    An anchor that is itself among the neighbors (`own_weight` > 0) is not its own neighbor; its further copies are.
    """
    k = max(1, int(weight.sum() // neighborhood))
    itself = np.minimum(own_weight, 1.0)
    parts = [
        _weighted_kth(cdist(anchors[block], neighbors, metric), weight, k + itself[block])
        for block in row_blocks(len(anchors), ANCHORS_AT_A_TIME)
    ]
    return np.concatenate(parts) if parts else np.empty(0)


def _weighted_kth(distances: NDArray[np.float64], weight: NDArray[np.float64], k: NDArray[np.float64]) -> NDArray[np.float64]:
    """In each row, the smallest distance within which the weights add up to k."""
    if (weight == 1).all() and (k == k[0]).all():
        nth = min(int(k[0]), distances.shape[1]) - 1
        return np.partition(distances, nth, axis=1)[:, nth]
    order = np.argsort(distances, axis=1)
    reached = np.cumsum(weight[order], axis=1) >= (k * (1 - 1e-12))[:, None]
    reached[:, -1] = True
    nth = order[np.arange(len(order)), reached.argmax(axis=1)]
    return distances[np.arange(len(distances)), nth]


def _weighted_median(values: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """The median of the values, each repeated as often as its weight says."""
    order = np.argsort(values)
    cumulative = np.cumsum(weight[order])
    half = cumulative[-1] / 2
    lower = np.searchsorted(cumulative, half * (1 - 1e-12))
    upper = min(np.searchsorted(cumulative, half * (1 + 1e-12), side="right"), len(values) - 1)
    return float((values[order[lower]] + values[order[upper]]) / 2)


def _smallest_positive_distance(rows: NDArray[np.float64], metric: Metric) -> float:
    """The smallest distance between two rows that differ; 1 where all coincide and any lengthscale is as good."""
    distances = cdist(rows, rows, metric)
    positive = distances[distances > 0]
    return float(positive.min()) if len(positive) > 0 else 1.0


Array = NDArray[np.float64]

ROUNDING = 1e-14
"""Spread of a column, relative to its largest entry, that rounding alone may cause."""


def column_scale(rows: Array, weight: Array, *, per_column: bool) -> Array:
    """The standard deviation of each column, 1 for a constant one; or a common factor for all columns. [D]"""
    largest = _largest_entries(rows)
    if not per_column:
        # One common factor, and out of it again: distances of 1e±150 would not survive being squared.
        return np.full(rows.shape[1], max(largest.max(initial=0.0), np.finfo(float).tiny))
    scaled = rows / largest
    mean = weight @ scaled / weight.sum()
    deviation = np.sqrt(weight @ (scaled - mean) ** 2 / weight.sum())
    # A constant column has no spread to measure by; it adds nothing to any distance either.
    return np.where(deviation > ROUNDING, deviation, 1.0) * largest


def _largest_entries(rows: Array) -> Array:
    """The largest absolute value of each column, 1 where all are zero. [D]"""
    largest = np.maximum(rows.max(axis=0), -rows.min(axis=0))
    return np.where(largest > 0, largest, 1.0)


FARTHEST_ROWS = 64


class NeighborRBF(StationaryKernelMixin, NormalizedKernelMixin, Kernel):
    """Unit-variance squared exponential with the lengthscale rule of the paper's section 3.1.

        k(x, y) = exp(−½ (x − y)ᵀ L⁻² (x − y)),      L = diag(l₁ … l_D)
        l       = reduce over rows of the distance to the K-th neighbor,      K = max(1, ⌊N / neighborhood⌋)

    With `per_column` the distances are measured in units of each column's standard deviation s_d, and l_d = s_d·l: the
    kernel then does not depend on the units a table happens to be written in. On columns of equal standard deviation it is
    the isotropic kernel. Set it to false where the columns share a unit and their relative scale carries meaning
    (coordinates, pixels, principal components).

    Parameters
    ----------
    neighborhood
        The neighbor that sets the lengthscale is the K = ⌊N / neighborhood⌋-th; larger values give shorter lengthscales.
    reduce
        "max" is the paper's rule, "median" ignores outlying rows: one row far from all others stretches the maximum,
        and with it the kernel, at will.
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

    def resolve(self, X: Any, sample_weight: NDArray[np.float64] | None = None, seed: int = 0) -> RBF:
        """scikit-learn's `RBF` with the lengthscale that the rule gives for these rows, in memory or not.

        At most two passes over the rows, one for the sample and one for the rows farthest out; neighbors are searched in the sample.
        """
        check_rule(self.neighborhood, self.reduce, self.max_rows)
        rows = open_rows(X, sample_weight)
        sample = rows.sample(self.max_rows, seed)
        scale = column_scale(sample.rows, sample.weight, per_column=self.per_column)
        # A full sample may lack the outlying rows that the largest distance belongs to.
        sampled = len(sample.rows) == self.max_rows
        outlying = _farthest_rows(rows, scale, sample.rows, seed) if sampled and self.reduce == "max" else sample.rows[:0] / scale
        lengthscale = scale * neighbor_lengthscale(
            sample.rows / scale, sample.weight, neighborhood=self.neighborhood, reduce=self.reduce, outlying=outlying
        )
        return RBF(lengthscale if self.per_column else float(lengthscale[0]), length_scale_bounds="fixed")

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> NoReturn:
        """An error: there is no lengthscale yet."""
        raise not_resolved(self, "lengthscale")

    def __repr__(self) -> str:
        return (
            f"NeighborRBF(neighborhood={self.neighborhood!r}, reduce={self.reduce!r}, "
            f"per_column={self.per_column!r}, max_rows={self.max_rows!r})"
        )


class _Outlying(NamedTuple):
    """Distinct rows and their squared distances from the center, in units of the columns' scale."""

    rows: NDArray[np.float64]
    squared: NDArray[np.float64]
    hashes: NDArray[np.uint64]

    def farthest(self) -> _Outlying:
        """Only the farthest of them; among those at the same distance, the ones with the smallest hashes, in any order of the rows."""
        _, first = np.unique(self.hashes, return_index=True)
        kept = first[np.lexsort((self.hashes[first], -self.squared[first]))[:FARTHEST_ROWS]]
        return _Outlying(self.rows[kept], self.squared[kept], self.hashes[kept])


def _farthest_rows(rows: Rows, scale: NDArray[np.float64], sample: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """The rows farthest from the center of the sample, in units of `scale`."""
    center = (sample / scale).mean(axis=0)

    def summarize(part: Part) -> _Outlying:
        squared = [((part.rows[block] / scale - center) ** 2).sum(axis=1) for block in row_blocks(len(part.rows))]
        distances = np.where(part.weight > 0, np.concatenate(squared), -1.0)
        return _farthest_of_part(part.rows, distances, scale, seed)

    def combine(one: _Outlying, other: _Outlying) -> _Outlying:
        return _Outlying(*(np.concatenate(pair) for pair in zip(one, other, strict=True))).farthest()

    return rows.reduce(summarize, combine).rows


def _farthest_of_part(rows: NDArray[Any], squared: NDArray[np.float64], scale: NDArray[np.float64], seed: int) -> _Outlying:
    """The farthest distinct rows; those with a negative distance do not count."""
    n_present = int((squared >= 0).sum())
    count = min(FARTHEST_ROWS, n_present)
    while True:
        far = np.flatnonzero(squared >= np.partition(squared, -count)[-count]) if count else np.empty(0, np.intp)
        hashes = hash_rows(rows[far], seed)
        if count == n_present or len(np.unique(hashes)) >= FARTHEST_ROWS:
            return _Outlying(np.asarray(rows[far] / scale, dtype=np.float64), squared[far], hashes).farthest()
        count = min(4 * count, n_present)  # there were copies among them
