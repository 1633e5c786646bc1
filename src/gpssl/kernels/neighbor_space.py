"""Where neighbors are searched: among vectors, or among rows of any kind by a kernel for them."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Kernel

from ..rows import row_blocks
from ..threads import map_on_threads
from .evaluation import block_kernel, kernel_diagonal
from .nearest_rows import ROWS_AT_A_TIME, NearestRows, Neighbors

Array = NDArray[np.float64]

USUAL = 0.99
"""Of the training rows that are surely inside."""
REACH_FACTOR, FADING = 2.0, 0.5
"""Among vectors: the data reach to twice the usual distance from neighbors, and fade over half of that."""
DIGITS = 12
"""Of similarities, beyond which rounding would decide between neighbors."""
LARGEST = 1e100
FADED = 3.0
"""By a kernel: widths over which the data fade between the edge and where a row has nothing in common with any."""


class Border(NamedTuple):
    """Up to which distance from its neighbors a row is one of the data, and over which they fade."""

    reach: float
    fading: float


class NeighborSpace(Protocol):
    """Rows that know their neighbors."""

    def search(self, X: NDArray[Any], k: int) -> Neighbors:
        """The k nearest of the rows."""
        ...

    def border(self, distances: Array) -> Border:
        """Of the data, from the root mean square distances of the training rows from their neighbors."""
        ...

    def background(self, X: NDArray[Any], Y: NDArray[Any], border: Border) -> Array:
        """A kernel with k(x, x) = 1 for rows outside the data. [n, m]"""
        ...


class VectorSpace:
    """Vectors with the distances that they have when each column has its unit."""

    def __init__(self, rows: Array, scale: Array) -> None:
        self.scale = scale
        self.nearest = NearestRows(self._in_units(rows))

    def _in_units(self, X: Array) -> Array:
        """In units of each column; within a range that survives being squared."""
        return np.clip(X / self.scale, -LARGEST, LARGEST)

    def search(self, X: Array, k: int) -> Neighbors:
        """The k nearest of the rows."""
        return self.nearest.search(self._in_units(X), k)

    def border(self, distances: Array) -> Border:
        """At twice the usual distance."""
        reach = REACH_FACTOR * float(np.quantile(distances, USUAL)) or 1.0
        return Border(reach, FADING * reach)

    def background(self, X: Array, Y: Array, border: Border) -> Array:
        """exp(−½ |x − y|² / l²), l being the reach."""
        return np.exp(-0.5 * cdist(self._in_units(X), self._in_units(Y), "sqeuclidean") / border.reach**2)


class KernelSpace:
    """Rows of any kind, with the distances that a kernel gives them: d² = 2 − 2 k(x, y), where k is scaled to k(x, x) = 1."""

    def __init__(self, rows: NDArray[Any], kernel: Kernel) -> None:
        self.rows, self.kernel = rows, kernel

    @cached_property
    def _fill(self) -> Any:
        return block_kernel(self.kernel, self.rows), self._sizes(self.rows)

    def search(self, X: NDArray[Any], k: int) -> Neighbors:
        """The k most similar of the rows."""
        places = np.empty((len(X), k), dtype=np.intp)
        distances = np.empty((len(X), k))
        fill, sizes = self._fill

        def search_block(block: slice) -> None:
            similarity = np.empty((len(X[block]), len(self.rows)))
            fill(X[block], similarity)
            similarity /= np.outer(self._sizes(X[block]), sizes)
            # Among rows that are equally similar, the first count as nearer.
            order = np.argsort(-np.round(similarity, DIGITS), axis=1, kind="stable")[:, :k]
            places[block] = order
            distances[block] = np.sqrt(np.maximum(2 - 2 * np.take_along_axis(similarity, order, axis=1), 0.0))

        map_on_threads(search_block, list(row_blocks(len(X), ROWS_AT_A_TIME)))
        return Neighbors(places, distances)

    def border(self, distances: Array) -> Border:
        """Halfway between what is typical of the training rows and √2, where a row has nothing in common with any."""
        farthest = np.sqrt(2.0)
        reach = float(np.median(distances) + farthest) / 2
        return Border(reach, (farthest - reach) / FADED)

    def background(self, X: NDArray[Any], Y: NDArray[Any], border: Border) -> Array:
        """The kernel itself."""
        return np.asarray(self.kernel(X, Y), dtype=np.float64) / np.outer(self._sizes(X), self._sizes(Y))

    def _sizes(self, X: NDArray[Any]) -> Array:
        """√k(x, x), which is what rows are divided by. [n]"""
        sizes = np.sqrt(kernel_diagonal(self.kernel, X))
        if sizes.min(initial=1.0) == 0:
            raise ValueError(
                f"Under the kernel {self.kernel} row {int(sizes.argmin())} has k(x, x) = 0, and so no distance from others. Neighbors "
                "need a kernel that is positive on all rows."
            )
        return sizes
