"""A kernel that follows the data: rows are alike if a random walk from neighbour to neighbour leads from one to the other."""

from __future__ import annotations

from functools import cached_property
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Kernel, NormalizedKernelMixin

from ..rows import in_double_precision
from ..sources import open_rows
from ..validation import check_number
from .column_scale import column_scale
from .evaluation import BlockKernel, CallByBlocks, UnitDiagonal
from .nearest_rows import NearestRows, Neighbours
from .neighbour_graph import diffusion_coordinates, neighbour_graph
from .resolution import not_resolved

Array = NDArray[np.float64]

REACH_QUANTILE, REACH_FACTOR = 0.99, 2.0
"""A row counts as one of the data up to twice the distance from its neighbours that 99 of 100 training rows have."""
FADING = 0.5
"""Of the reach, beyond it: over how much distance the data fade out."""


class NeighborDiffusion(NormalizedKernelMixin, Kernel):
    """Diffusion on the graph of nearest neighbours, which follows the clusters and bands of the unlabelled rows.

    The distinct training rows are the nodes of a graph, in which each is connected with its K nearest, and with those whose K nearest it is
    among; W_ij = exp(−d_ij² / (σ_i σ_j)), where σ is the distance to the K-th neighbour. A walk that stays or goes to a neighbour with
    equal chances has the symmetric transition matrix ½ (I + D^−½ W D^−½) = Σ_a λ_a ψ_a ψ_aᵀ, and t steps of it make the kernel

        k(x_i, x_j) = φ(x_i)ᵀ φ(x_j),      φ(x_i) ∝ (λ_a^{t/2} ψ_a(i))_a,      |φ| = 1

    Any row, of the training rows or not, has the average φ(x) ∝ Σ_j exp(−d_j² / d_K²) φ(x_j) over its K nearest training rows. Far from
    them that would be as certain as among them, so there the kernel gives way to a squared exponential with the lengthscale l, the reach
    of the data, and the prior variance is 1 everywhere:

        k(x, y) = s(x) s(y) φ(x)ᵀφ(y) + sqrt(1 − s(x)²) sqrt(1 − s(y)²) exp(−½ |x − y|² / l²)

    s is 1 where the root mean square distance to the K nearest rows is at most l (twice what 99 % of the training rows have), and falls
    like a Gaussian beyond. Parts of the graph without a connection are independent under the prior; each has at least one eigenvector.

    With few labels, and where classes are clusters or bands, this is much better than a squared exponential; where classes cut
    through clusters it is worse. Let labels choose between it, `NeighborRBF()` and their sum, with `gpssl.selection.RepresentationSearch`.

    Parameters
    ----------
    n_neighbors
        K.
    time
        t, the steps of the walk: after more of them, only coarser structure is left. "auto" leaves about six directions.
    n_eigenvectors
        Eigenvectors to keep, those of the largest λ. λ_a^t is small for most of them.
    per_column
        Whether distances are measured in units of each column's standard deviation.
    max_rows
        With more distinct rows than this, a sample of this size makes the graph. Neighbours are searched exactly, so the work grows
        with its square.
    """

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        time: float | Literal["auto"] = "auto",
        n_eigenvectors: int = 60,
        per_column: bool = True,
        max_rows: int = 20_000,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.time = time
        self.n_eigenvectors = n_eigenvectors
        self.per_column = per_column
        self.max_rows = max_rows

    def resolve(self, X: Any, sample_weight: Array | None = None, seed: int = 0) -> DiffusionKernel:
        """The kernel with the graph of these rows. How often a row occurs makes no difference."""
        self._check_parameters()
        sample = open_rows(X, sample_weight).sample(self.max_rows, seed)
        scale = column_scale(sample.rows, sample.weight, per_column=self.per_column)
        rows = sample.rows / scale
        if len(rows) < 3:
            raise ValueError(f"{len(rows)} distinct rows make no graph of neighbours; at least 3 are needed.")
        k = min(int(self.n_neighbors), len(rows) - 1)
        graph = neighbour_graph(NearestRows(rows), k)
        time = None if isinstance(self.time, str) else float(self.time)
        coordinates = diffusion_coordinates(graph, time=time, n_eigenvectors=int(self.n_eigenvectors), seed=seed)
        kernel = DiffusionKernel(rows, coordinates, scale, n_neighbors=k)
        kernel.reach = kernel.find_reach()
        return kernel

    def _check_parameters(self) -> None:
        check_number("n_neighbors", self.n_neighbors, Integral, at_least=1)
        if self.time != "auto":
            check_number("time", self.time, Real, at_least=0, otherwise='or "auto"')
        check_number("n_eigenvectors", self.n_eigenvectors, Integral, at_least=1)
        check_number("max_rows", self.max_rows, Integral, at_least=3)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> NoReturn:
        """An error: there is no graph yet."""
        raise not_resolved(self, "graph")

    def is_stationary(self) -> bool:
        """It depends on where the rows are."""
        return False

    def __repr__(self) -> str:
        return f"NeighborDiffusion({self.n_neighbors!r}, time={self.time!r}, n_eigenvectors={self.n_eigenvectors!r})"


class DiffusionKernel(CallByBlocks, UnitDiagonal, Kernel):
    """What `NeighborDiffusion` becomes at `fit`.

    Parameters
    ----------
    rows, coordinates
        The training rows, in units of `scale`, and their φ. [n, D] and [n, r]
    scale
        What one unit of distance is in each column. [D]
    n_neighbors
        K.
    reach
        l, the distance from its neighbours at which a row leaves the data.
    """

    def __init__(self, rows: Array, coordinates: Array, scale: Array, *, n_neighbors: int, reach: float = np.inf) -> None:
        self.rows = rows
        self.coordinates = coordinates
        self.scale = scale
        self.n_neighbors = n_neighbors
        self.reach = reach

    @cached_property
    def _nearest(self) -> NearestRows:
        return NearestRows(self.rows)

    def __getstate__(self) -> dict[str, Any]:
        """Without what follows from the parameters."""
        return {name: value for name, value in self.__dict__.items() if name != "_nearest"}

    def find_reach(self) -> float:
        """From the distances that the training rows have."""
        distances = _typical_distance(self._nearest.search(self.rows, self.n_neighbors))
        return REACH_FACTOR * float(np.quantile(distances, REACH_QUANTILE)) or 1.0

    def block_kernel(self, points: Array) -> BlockKernel:
        """The points' coordinates once; for each block a search for its neighbours, and two matrix products."""
        of_points = self._located(points)

        def fill(X: Array, out: Array) -> None:
            rows = self._located(in_double_precision(X))
            np.matmul(rows.inside, of_points.inside.T, out=out)
            if rows.outside.any() and of_points.outside.any():
                out += np.outer(rows.outside, of_points.outside) * self._background(rows.rows, of_points.rows)

        return fill

    def _background(self, X: Array, Y: Array) -> Array:
        """exp(−½ |x − y|² / l²)"""
        return np.exp(-0.5 * cdist(X, Y, "sqeuclidean") / self.reach**2)

    def _located(self, X: Array) -> _Located:
        rows = X / self.scale
        neighbours = self._nearest.search(rows, self.n_neighbors)
        farthest = np.maximum(neighbours.distances[:, -1:], np.finfo(float).tiny)
        weights = np.exp(-((neighbours.distances / farthest) ** 2))
        average = np.einsum("nk,nkr->nr", weights, self.coordinates[neighbours.places])
        average /= np.maximum(np.linalg.norm(average, axis=1, keepdims=True), np.finfo(float).tiny)
        beyond = np.maximum(_typical_distance(neighbours) / self.reach - 1, 0.0)
        share = np.exp(-0.5 * (beyond / FADING) ** 2)
        return _Located(rows, share[:, None] * average, np.sqrt(1 - share**2))

    def is_stationary(self) -> bool:
        """It depends on where the rows are."""
        return False

    def __repr__(self) -> str:
        n_rows, n_coordinates = np.shape(self.coordinates)
        return f"DiffusionKernel({n_rows} rows, {n_coordinates} eigenvectors, n_neighbors={self.n_neighbors}, reach={self.reach:.3g})"


class _Located(NamedTuple):
    """Rows, and where they are with respect to the data."""

    rows: Array
    """In units of the columns' scale. [n, D]"""
    inside: Array
    """s(x) φ(x). [n, r]"""
    outside: Array
    """sqrt(1 − s(x)²). [n]"""


def _typical_distance(neighbours: Neighbours) -> Array:
    """Root mean square. [n]"""
    return np.sqrt((neighbours.distances**2).mean(axis=1))
