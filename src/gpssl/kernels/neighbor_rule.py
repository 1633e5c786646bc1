"""The lengthscale rule of the paper's section 3.1: the distance to the K-th neighbor, K = max(1, ⌊N / neighborhood⌋)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..rows import row_blocks
from ..validation import check_number

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
