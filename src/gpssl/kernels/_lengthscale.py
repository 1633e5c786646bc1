"""Lengthscales from the rows: the distance to the K-th neighbor, and the unit in which each column is measured."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from .._validation import check_number
from ..data._arrays import hash_rows, row_blocks
from ..data._rows import Part, Rows
from ._protocol import Array

Metric = Literal["euclidean", "hamming"]

ANCHORS_AT_A_TIME = 512
FARTHEST_ROWS = 64
ROUNDING = 1e-14
"""Spread of a column, relative to its largest entry, that rounding alone may cause."""


def check_rule(neighborhood: float, reduce: str, max_rows: int) -> None:
    """Raise ValueError unless the parameters of the rule have a meaning."""
    check_number("neighborhood", neighborhood, Real, above=0)
    if reduce not in ("max", "median"):
        raise ValueError(f'reduce must be "max" or "median", got {reduce!r}.')
    check_number("max_rows", max_rows, Integral, at_least=2)


def neighbor_lengthscale(
    rows: Array,
    weight: Array,
    *,
    neighborhood: float,
    reduce: str,
    outlying: Array | None = None,
    metric: Metric = "euclidean",
) -> float:
    """Return the distance to the K-th neighbor, reduced over these rows and over anchors that lie outside them."""
    distances = _kth_neighbor_distances(rows, weight, rows, weight, neighborhood, metric)
    outlying = rows[:0] if outlying is None else outlying
    beyond = _kth_neighbor_distances(outlying, np.zeros(len(outlying)), rows, weight, neighborhood, metric)
    largest = max(distances.max(), beyond.max(initial=0.0))
    lengthscale = largest if reduce == "max" else _weighted_median(distances, weight)
    # Where most rows coincide with their neighbors (few distinct values), the shortest distance between rows that differ.
    return float(lengthscale) if lengthscale > 0 else _smallest_positive_distance(rows, metric)


def _kth_neighbor_distances(
    anchors: Array, own_weight: Array, neighbors: Array, weight: Array, neighborhood: float, metric: Metric
) -> Array:
    """Return the distance from each anchor to its K-th neighbor, where a row of weight w stands for w rows. [n anchors]

    An anchor that is itself among the neighbors (`own_weight` > 0) is not its own neighbor; its further copies are.
    """
    k = max(1, int(weight.sum() // neighborhood))
    itself = np.minimum(own_weight, 1.0)
    blocks = [
        _weighted_kth(cdist(anchors[block], neighbors, metric), weight, k + itself[block])
        for block in row_blocks(len(anchors), ANCHORS_AT_A_TIME)
    ]
    return np.concatenate(blocks) if blocks else np.empty(0)


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


def _smallest_positive_distance(rows: Array, metric: Metric) -> float:
    """Return the smallest distance between two rows that differ; 1 where all coincide and no lengthscale is better than another."""
    distances = cdist(rows, rows, metric)
    positive = distances[distances > 0]
    return float(positive.min()) if len(positive) > 0 else 1.0


def column_scale(rows: Array, weight: Array, *, per_column: bool) -> Array:
    """Return the standard deviation of each column, 1 for a constant one; or one common factor for all columns. [D]"""
    largest = _largest_entries(rows)
    if not per_column:
        # One common factor, which the lengthscale is multiplied by again: distances of 1e±150 would not survive being squared.
        return np.full(rows.shape[1], max(largest.max(initial=0.0), np.finfo(float).tiny))
    scaled = rows / largest
    mean = weight @ scaled / weight.sum()
    deviation = np.sqrt(weight @ (scaled - mean) ** 2 / weight.sum())
    # A constant column has no spread to measure by, and adds nothing to any distance.
    return np.where(deviation > ROUNDING, deviation, 1.0) * largest


def _largest_entries(rows: Array) -> Array:
    """Return the largest absolute value of each column, 1 where all are zero. [D]"""
    largest = np.maximum(rows.max(axis=0), -rows.min(axis=0))
    return np.where(largest > 0, largest, 1.0)


class OutlyingRows(NamedTuple):
    """Distinct rows and their squared distances from the center, in units of the columns' scale."""

    rows: Array
    squared: Array
    hashes: NDArray[np.uint64]

    def farthest(self) -> OutlyingRows:
        """Return the farthest of them. Of rows at the same distance those with the smallest hashes, so that order makes no difference."""
        _, first = np.unique(self.hashes, return_index=True)
        kept = first[np.lexsort((self.hashes[first], -self.squared[first]))[:FARTHEST_ROWS]]
        return OutlyingRows(self.rows[kept], self.squared[kept], self.hashes[kept])


def farthest_rows(rows: Rows, scale: Array, sample: Array, seed: int) -> Array:
    """Return the rows farthest from the center of the sample, in units of `scale`."""
    center = (sample / scale).mean(axis=0)

    def summarize(part: Part) -> OutlyingRows:
        squared = [((part.rows[block] / scale - center) ** 2).sum(axis=1) for block in row_blocks(len(part.rows))]
        distances = np.where(part.weight > 0, np.concatenate(squared), -1.0)
        return _farthest_of_part(part, distances, scale, seed)

    def combine(one: OutlyingRows, other: OutlyingRows) -> OutlyingRows:
        return OutlyingRows(*(np.concatenate(pair) for pair in zip(one, other, strict=True))).farthest()

    return rows.reduce(summarize, combine).rows


def _farthest_of_part(part: Part, squared: Array, scale: Array, seed: int) -> OutlyingRows:
    """Return the farthest distinct rows of a part, without those whose distance is negative."""
    n_present = int((squared >= 0).sum())
    count = min(FARTHEST_ROWS, n_present)
    while True:
        far = np.flatnonzero(squared >= np.partition(squared, -count)[-count]) if count else np.empty(0, np.intp)
        hashes = hash_rows(part.rows[far], seed)
        if count == n_present or len(np.unique(hashes)) >= FARTHEST_ROWS:
            return OutlyingRows(np.asarray(part.rows[far] / scale, dtype=np.float64), squared[far], hashes).farthest()
        count = min(4 * count, n_present)  # there were copies among them
