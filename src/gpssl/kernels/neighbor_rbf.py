"""The paper's kernel: a squared exponential whose lengthscale comes from nearest neighbours."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, Kernel, NormalizedKernelMixin, StationaryKernelMixin

from ..rows import hash_rows, row_blocks
from ..sources import Part, Rows, open_rows
from ..validation import check_number

ANCHORS_AT_A_TIME = 512
FARTHEST_ROWS = 64
ROUNDING = 1e-14
"""Spread of a column, relative to its largest entry, that rounding alone may cause."""


class NeighborRBF(StationaryKernelMixin, NormalizedKernelMixin, Kernel):
    """Unit-variance squared exponential with the lengthscale rule of the paper's section 3.1.

        k(x, y) = exp(−½ (x − y)ᵀ L⁻² (x − y)),      L = diag(l₁ … l_D)
        l       = reduce over rows of the distance to the K-th neighbour,      K = max(1, ⌊N / neighborhood⌋)

    With `per_column` the distances are measured in units of each column's standard deviation s_d, and l_d = s_d·l: the
    kernel then does not depend on the units a table happens to be written in. On columns of equal standard deviation it is
    the isotropic kernel. Set it to false where the columns share a unit and their relative scale carries meaning
    (coordinates, pixels, principal components).

    Parameters
    ----------
    neighborhood
        The neighbour that sets the lengthscale is the K = ⌊N / neighborhood⌋-th; larger values give shorter lengthscales.
    reduce
        "max" is the paper's rule, "median" ignores outlying rows: one row far from all others stretches the maximum,
        and with it the kernel, at will.
    per_column
        One lengthscale per column, or one for all.
    max_rows
        With more distinct rows than this, the rule is computed on a sample of this size. K scales with the sample, and the rows
        farthest from the centre are added to it as anchors, so that the result stays close to the rule on all rows.
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

        At most two passes over the rows, one for the sample and one for the rows farthest out; neighbours are searched in the sample.
        """
        self._check_parameters()
        rows = open_rows(X, sample_weight)
        sample = rows.sample(self.max_rows, seed)
        scale = self._column_scale(sample.rows, sample.weight)
        # A full sample may lack the outlying rows that the largest distance belongs to.
        sampled = len(sample.rows) == self.max_rows
        outlying = _farthest_rows(rows, scale, sample.rows, seed) if sampled and self.reduce == "max" else sample.rows[:0] / scale
        lengthscale = self._rule(sample.rows / scale, sample.weight, outlying) * scale
        return RBF(lengthscale if self.per_column else float(lengthscale[0]), length_scale_bounds="fixed")

    def _check_parameters(self) -> None:
        check_number("neighborhood", self.neighborhood, Real, above=0)
        if self.reduce not in ("max", "median"):
            raise ValueError(f'reduce must be "max" or "median", got {self.reduce!r}.')
        check_number("max_rows", self.max_rows, Integral, at_least=2)

    def _column_scale(self, rows: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """What one unit of distance is in each column. [D]"""
        largest = _largest_entries(rows)
        if not self.per_column:
            # One common factor, and out of it again: distances of 1e±150 would not survive being squared.
            return np.full(rows.shape[1], max(largest.max(initial=0.0), np.finfo(float).tiny))
        scaled = rows / largest
        mean = weight @ scaled / weight.sum()
        deviation = np.sqrt(weight @ (scaled - mean) ** 2 / weight.sum())
        # A constant column has no spread to measure by; it adds nothing to any distance either.
        return np.where(deviation > ROUNDING, deviation, 1.0) * largest

    def _rule(self, rows: NDArray[np.float64], weight: NDArray[np.float64], outlying: NDArray[np.float64]) -> float:
        """The lengthscale of the paper's rule for these rows, and for anchors that lie outside them."""
        distances = _kth_neighbour_distances(rows, weight, rows, weight, self.neighborhood)
        beyond = _kth_neighbour_distances(outlying, np.zeros(len(outlying)), rows, weight, self.neighborhood)
        largest = max(distances.max(), beyond.max(initial=0.0))
        lengthscale = largest if self.reduce == "max" else _weighted_median(distances, weight)
        # Where most rows coincide with their neighbours (few distinct values), the shortest distance that is one.
        return float(lengthscale) if lengthscale > 0 else _smallest_positive_distance(rows)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> NoReturn:
        """An error: there is no lengthscale yet."""
        raise ValueError(
            "NeighborRBF takes its lengthscale from the training rows: pass it to GPSSL(kernel=...), whose fit resolves it, "
            "or call NeighborRBF(...).resolve(X) for the concrete kernel."
        )

    def __repr__(self) -> str:
        return (
            f"NeighborRBF(neighborhood={self.neighborhood!r}, reduce={self.reduce!r}, "
            f"per_column={self.per_column!r}, max_rows={self.max_rows!r})"
        )


def _largest_entries(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest absolute value of each column, 1 where all are zero. [D]"""
    largest = np.maximum(rows.max(axis=0), -rows.min(axis=0))
    return np.where(largest > 0, largest, 1.0)


def _kth_neighbour_distances(
    anchors: NDArray[np.float64],
    own_weight: NDArray[np.float64],
    neighbours: NDArray[np.float64],
    weight: NDArray[np.float64],
    neighborhood: float,
) -> NDArray[np.float64]:
    """Distance from each anchor to its K-th neighbour, where a row of weight w stands for w rows. [n anchors]

    An anchor that is itself among the neighbours (`own_weight` > 0) is not its own neighbour; its further copies are.
    """
    k = max(1, int(weight.sum() // neighborhood))
    itself = np.minimum(own_weight, 1.0)
    parts = [
        _weighted_kth(cdist(anchors[block], neighbours), weight, k + itself[block]) for block in row_blocks(len(anchors), ANCHORS_AT_A_TIME)
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


class _Outlying(NamedTuple):
    """Distinct rows and their squared distances from the centre, in units of the columns' scale."""

    rows: NDArray[np.float64]
    squared: NDArray[np.float64]
    hashes: NDArray[np.uint64]

    def farthest(self) -> _Outlying:
        """Only the farthest of them; among those at the same distance, the ones with the smallest hashes, in any order of the rows."""
        _, first = np.unique(self.hashes, return_index=True)
        kept = first[np.lexsort((self.hashes[first], -self.squared[first]))[:FARTHEST_ROWS]]
        return _Outlying(self.rows[kept], self.squared[kept], self.hashes[kept])


def _farthest_rows(rows: Rows, scale: NDArray[np.float64], sample: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """The rows farthest from the centre of the sample, in units of `scale`."""
    centre = (sample / scale).mean(axis=0)

    def summarise(part: Part) -> _Outlying:
        squared = [((part.rows[block] / scale - centre) ** 2).sum(axis=1) for block in row_blocks(len(part.rows))]
        distances = np.where(part.weight > 0, np.concatenate(squared), -1.0)
        return _farthest_of_part(part.rows, distances, scale, seed)

    def combine(one: _Outlying, other: _Outlying) -> _Outlying:
        return _Outlying(*(np.concatenate(pair) for pair in zip(one, other, strict=True))).farthest()

    return rows.reduce(summarise, combine).rows


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


def _smallest_positive_distance(rows: NDArray[np.float64]) -> float:
    """The smallest distance between two rows that differ; 1 where all coincide and any lengthscale is as good."""
    distances = cdist(rows, rows)
    positive = distances[distances > 0]
    return float(positive.min()) if len(positive) > 0 else 1.0
