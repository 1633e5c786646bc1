"""A kernel that follows the data: rows are alike if a random walk from neighbor to neighbor leads from one to the other."""

from __future__ import annotations

from functools import cached_property
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from .._validation import check_number
from ..data._opening import open_rows
from ._neighbor_graph import Border, KernelSpace, NeighborSpace, VectorSpace, diffusion_coordinates, neighbor_graph
from ._protocol import (
    BlockKernel,
    CallByBlocks,
    UnitDiagonal,
    not_resolved,
    preparing_kernel,
    resolve_kernel,
    short_repr,
    takes_vectors,
    training_rows,
)
from .vectors import column_scale

Array = NDArray[np.float64]


class NeighborDiffusion(UnitDiagonal, Kernel):
    """Diffusion on the graph of nearest neighbors, which follows the clusters and bands of the unlabeled rows.

    The distinct training rows are the nodes of a graph, in which each is connected with its K nearest, and with those whose K nearest it is
    among; W_ij = exp(−d_ij² / (σ_i σ_j)), where σ is the distance to the K-th neighbor. A walk that stays or goes to a neighbor with
    equal chances has the symmetric transition matrix ½ (I + D^−½ W D^−½) = Σ_a λ_a ψ_a ψ_aᵀ, and t steps of it make the kernel

        k(x_i, x_j) = φ(x_i)ᵀ φ(x_j),      φ(x_i) ∝ (λ_a^{t/2} ψ_a(i))_a,      |φ| = 1

    Any row, of the training rows or not, has the average φ(x) ∝ Σ_j (1 − d_j² / d_{K+1}²) φ(x_j) over its K nearest training rows, which
    changes continuously where neighbors change. Far from them that would be as certain as among them, so there the kernel gives way to a
    background kernel k₀, and the prior variance is 1 everywhere:

        k(x, y) = s(x) s(y) φ(x)ᵀφ(y) + sqrt(1 − s(x)²) sqrt(1 − s(y)²) k₀(x, y)

    s is 1 up to a certain root mean square distance from the K nearest rows, and falls like a Gaussian beyond. Parts of the graph
    without a connection are independent under the prior; each has at least one eigenvector.

    Neighbors are those in Euclidean distance; k₀ is then a squared exponential whose lengthscale is where s begins to fall, at twice the
    distance that 99 % of the training rows have. Or they are those by another kernel, for rows of any kind:
    `NeighborDiffusion(kernel=TfidfKernel())`. Then the distance is sqrt(2 − 2 k(x, y)), with k(x, x) scaled to 1, k₀ is that kernel, and s
    begins to fall halfway between what is typical of the training rows and √2, where a row has nothing in common with any.

    With few labels, and where classes are clusters or bands, this is much better than a squared exponential; where classes cut
    through clusters it is worse. Let labels choose between it, `NeighborRBF()` and their sum, with `gpssl.downstream.RepresentationSearch`.

    Parameters
    ----------
    n_neighbors
        K.
    kernel
        The kernel by which rows are neighbors. None: the distance between vectors.
    time
        t, the steps of the walk: after more of them, only coarser structure is left. "auto" leaves about six directions.
    n_eigenvectors
        Eigenvectors to keep, those of the largest λ. λ_a^t is small for most of them.
    per_column
        Whether distances between vectors are measured in units of each column's standard deviation.
    max_rows
        With more distinct rows than this, a sample of this size makes the graph. Neighbors are searched exactly, so the work grows
        with its square.
    """

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        kernel: Kernel | None = None,
        time: float | Literal["auto"] = "auto",
        n_eigenvectors: int = 60,
        per_column: bool = True,
        max_rows: int = 20_000,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.time = time
        self.n_eigenvectors = n_eigenvectors
        self.per_column = per_column
        self.max_rows = max_rows

    @property
    def requires_vector_input(self) -> bool:
        """What the kernel says by which rows are neighbors."""
        return takes_vectors(self.kernel)

    def resolve(self, X: Any, sample_weight: Array | None = None, seed: int = 0) -> DiffusionKernel:
        """The kernel with the graph of these rows. How often a row occurs makes no difference."""
        self._check_parameters()
        preparing = preparing_kernel(self)
        rows = open_rows(X, sample_weight) if preparing is None else training_rows(preparing, X, sample_weight)
        kernel = None if self.kernel is None else resolve_kernel(self.kernel, rows, seed)
        sample = rows.sample(self.max_rows, seed)
        if len(sample.rows) < 3:
            raise ValueError(f"{len(sample.rows)} distinct rows make no graph of neighbors; at least 3 are needed.")
        scale = column_scale(sample.rows, sample.weight, per_column=self.per_column) if kernel is None else None
        space = _space(sample.rows, scale, kernel)
        k = min(int(self.n_neighbors), len(sample.rows) - 1)
        found = space.search(sample.rows, k + 1)
        time = None if isinstance(self.time, str) else float(self.time)
        coordinates = diffusion_coordinates(neighbor_graph(found), time=time, n_eigenvectors=int(self.n_eigenvectors), seed=seed)
        border = space.border(_typical_distance(found.distances[:, 1:]))
        return DiffusionKernel(
            sample.rows, coordinates, scale=scale, kernel=kernel, n_neighbors=k, reach=border.reach, fading=border.fading
        )

    def _check_parameters(self) -> None:
        check_number("n_neighbors", self.n_neighbors, Integral, at_least=1)
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise TypeError(f"The kernel by which rows are neighbors must be a kernel object or None, got {self.kernel!r}.")
        if not (isinstance(self.time, str) and self.time == "auto"):
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
        return short_repr(self)


class DiffusionKernel(CallByBlocks, UnitDiagonal, Kernel):
    """What `NeighborDiffusion` becomes at `fit`.

    Parameters
    ----------
    rows, coordinates
        The training rows and their φ. [n, …] and [n, r]
    scale
        What one unit of distance is in each column, for vectors. [D]
    kernel
        By which rows are neighbors, for others.
    n_neighbors
        K.
    reach, fading
        The distance from its neighbors at which a row leaves the data, and the width over which s falls.
    """

    def __init__(
        self,
        rows: NDArray[Any],
        coordinates: Array,
        *,
        scale: Array | None = None,
        kernel: Kernel | None = None,
        n_neighbors: int,
        reach: float,
        fading: float,
    ) -> None:
        self.rows = rows
        self.coordinates = coordinates
        self.scale = scale
        self.kernel = kernel
        self.n_neighbors = n_neighbors
        self.reach = reach
        self.fading = fading

    @property
    def requires_vector_input(self) -> bool:
        """What the kernel says by which rows are neighbors."""
        return takes_vectors(self.kernel)

    @cached_property
    def _space(self) -> NeighborSpace:
        return _space(self.rows, self.scale, self.kernel)

    def __getstate__(self) -> dict[str, Any]:
        """Without what follows from the parameters."""
        return {name: value for name, value in self.__dict__.items() if name != "_space"}

    def block_kernel(self, points: NDArray[Any]) -> BlockKernel:
        """The points' coordinates once; for each block a search for its neighbors, and two matrix products."""
        of_points = self._located(points)
        some_outside = of_points.outside.any()

        def fill(X: NDArray[Any], out: Array) -> None:
            rows = self._located(X)
            np.matmul(rows.inside, of_points.inside.T, out=out)
            if some_outside and rows.outside.any():
                background = self._space.background(X, points, Border(self.reach, self.fading))
                out += np.outer(rows.outside, of_points.outside) * background

        return fill

    def _located(self, X: NDArray[Any]) -> _Located:
        places, distances = self._space.search(X, self.n_neighbors + 1)
        farthest = np.maximum(distances[:, -1:], np.finfo(float).tiny)
        places, distances = places[:, :-1], distances[:, :-1]
        weights = 1 - (distances / farthest) ** 2
        weights[weights.max(axis=1) <= 0] = 1.0  # all neighbors are at the same distance
        average = np.einsum("nk,nkr->nr", weights, self.coordinates[places])
        average /= np.maximum(np.linalg.norm(average, axis=1, keepdims=True), np.finfo(float).tiny)
        beyond = np.maximum(_typical_distance(distances) - self.reach, 0.0)
        share = np.exp(-0.5 * (beyond / self.fading) ** 2)
        return _Located(share[:, None] * average, np.sqrt(1 - share**2))

    def is_stationary(self) -> bool:
        """It depends on where the rows are."""
        return False

    def __repr__(self) -> str:
        n_rows, n_coordinates = np.shape(self.coordinates)
        return f"DiffusionKernel({n_rows} rows, {n_coordinates} eigenvectors, n_neighbors={self.n_neighbors}, reach={self.reach:.3g})"


class _Located(NamedTuple):
    """Where rows are with respect to the data."""

    inside: Array
    """s(x) φ(x). [n, r]"""
    outside: Array
    """sqrt(1 − s(x)²). [n]"""


def _space(rows: NDArray[Any], scale: Array | None, kernel: Kernel | None) -> NeighborSpace:
    if kernel is not None:
        return KernelSpace(rows, kernel)
    return VectorSpace(rows, np.ones(rows.shape[1]) if scale is None else scale)


def _typical_distance(distances: Array) -> Array:
    """The root mean square distance from the neighbors. [n]"""
    return np.sqrt((distances**2).mean(axis=1))
