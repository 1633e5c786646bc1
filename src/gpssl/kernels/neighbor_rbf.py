"""The paper's kernel: a squared exponential whose lengthscale comes from nearest neighbors."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF, Kernel, NormalizedKernelMixin, StationaryKernelMixin

from ..rows import hash_rows, row_blocks
from ..sources import Part, Rows, open_rows
from .column_scale import column_scale
from .neighbor_rule import check_rule, neighbor_lengthscale
from .resolution import not_resolved

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
