"""Kernels built on nearest neighbors: diffusion on their graph, and the nearest-neighbor Gaussian process.

`NeighborDiffusion` follows the clusters and bands of the rows; `NearestNeighborGP` approximates another kernel. Each becomes a concrete
kernel at `fit`, which keeps the training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from numbers import Integral, Real
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import SuperLU, splu
from sklearn.gaussian_process.kernels import Kernel

from .._validation import check_number
from ..data._arrays import hash_rows, in_double_precision
from ..data._rows import open_rows
from ._neighbor_graph import KernelSpace, VectorSpace, diffusion_coordinates, neighbor_graph
from ._protocol import (
    Array,
    BlockKernel,
    CallByBlocks,
    NonStationary,
    UnitDiagonal,
    kernel_diagonal,
    not_resolved,
    preparing_kernel,
    resolve_kernel,
    short_repr,
    takes_vectors,
    training_rows,
)
from .vectors import NeighborRBF, _column_scale

_JITTER = 1e-10
"""Added to the covariance of a few neighbors, relative to the prior variance."""
_SMALLEST_VARIANCE = 1e-12
"""The prior variance by which the jitter is measured where the kernel is zero."""


class NeighborDiffusion(NonStationary, UnitDiagonal, Kernel):
    """Diffusion on the graph of nearest neighbors, which follows the clusters and bands of the unlabeled rows.

    The distinct training rows are the nodes of a graph. Each is connected with its K nearest, and with the rows that have it among their
    K nearest; W_ij = exp(−d_ij² / (σ_i σ_j)), where σ is the distance to the K-th neighbor. A walk that stays or goes to a neighbor with
    equal chances has the symmetric transition matrix ½ (I + D^−½ W D^−½) = Σ_a λ_a ψ_a ψ_aᵀ, and t steps of it make the kernel

        k(x_i, x_j) = φ(x_i)ᵀ φ(x_j),      φ(x_i) ∝ (λ_a^{t/2} ψ_a(i))_a,      |φ| = 1

    Any row, of the training rows or not, has the average φ(x) ∝ Σ_j (1 − d_j² / d_{K+1}²) φ(x_j) over its K nearest training rows, which
    changes continuously where neighbors change. Far from the training rows that would be as certain as among them, so there the kernel
    gives way to a background kernel k₀, and the prior variance is 1 everywhere:

        k(x, y) = s(x) s(y) φ(x)ᵀφ(y) + sqrt(1 − s(x)²) sqrt(1 − s(y)²) k₀(x, y)

    s is 1 up to a certain root mean square distance from the K nearest rows, and falls like a Gaussian beyond. Components of the graph
    without a connection are independent under the prior; each has at least one eigenvector.

    Neighbors are the nearest in Euclidean distance; k₀ is then a squared exponential whose lengthscale is where s begins to fall, at twice
    the distance that 99 % of the training rows have. Or they are the nearest by another kernel, for rows of any kind:
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
        How many eigenvectors to keep, those of the largest λ. λ_a^t is small for most of them.
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
        """Whether the kernel by which rows are neighbors is for vectors."""
        return takes_vectors(self.kernel)

    def resolve(self, X: Any, sample_weight: Array | None = None, seed: int = 0) -> DiffusionKernel:
        """Return the kernel with the graph of these rows. How often a row occurs makes no difference."""
        self._check_parameters()
        preparing = preparing_kernel(self)
        rows = open_rows(X, sample_weight) if preparing is None else training_rows(preparing, X, sample_weight)
        kernel = None if self.kernel is None else resolve_kernel(self.kernel, rows, seed)
        sample = rows.sample(self.max_rows, seed)
        if len(sample.rows) < 3:
            raise ValueError(f"A graph of neighbors needs at least 3 distinct rows, but there are {len(sample.rows)}.")
        scale = _column_scale(sample.rows, sample.weight, per_column=self.per_column) if kernel is None else None
        space = _space(sample.rows, scale, kernel)
        k = min(int(self.n_neighbors), len(sample.rows) - 1)
        found = space.search(sample.rows, k + 1)
        time = None if isinstance(self.time, str) else float(self.time)
        coordinates = diffusion_coordinates(neighbor_graph(found), time=time, n_eigenvectors=int(self.n_eigenvectors), seed=seed)
        reach, fading = space.border(_typical_distance(found.distances[:, 1:]))
        return DiffusionKernel(sample.rows, coordinates, scale=scale, kernel=kernel, n_neighbors=k, reach=reach, fading=fading)

    def _check_parameters(self) -> None:
        check_number("n_neighbors", self.n_neighbors, Integral, at_least=1)
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise TypeError(f"The kernel by which rows are neighbors must be a kernel object or None, got {self.kernel!r}.")
        if not (isinstance(self.time, str) and self.time == "auto"):
            check_number("time", self.time, Real, at_least=0, otherwise='or "auto"')
        check_number("n_eigenvectors", self.n_eigenvectors, Integral, at_least=1)
        check_number("max_rows", self.max_rows, Integral, at_least=3)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> NoReturn:
        """Raise ValueError: there is no graph yet."""
        raise not_resolved(self, "graph")

    def __repr__(self) -> str:
        return short_repr(self)


class DiffusionKernel(CallByBlocks, UnitDiagonal, Kernel):
    """The concrete kernel that `NeighborDiffusion` becomes at `fit`.

    Parameters
    ----------
    rows, coordinates
        The training rows and their φ. [n, …] and [n, r]
    scale
        The unit of distance in each column, for vectors. [D]
    kernel
        The kernel by which rows are neighbors, for other rows.
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
        """Whether the kernel by which rows are neighbors is for vectors."""
        return takes_vectors(self.kernel)

    @cached_property
    def _space(self) -> VectorSpace | KernelSpace:
        return _space(self.rows, self.scale, self.kernel)

    def block_kernel(self, points: NDArray[Any]) -> BlockKernel:
        """Locate the points once; each block then needs a search for its neighbors and two matrix products."""
        points_inside, points_outside = self._locate(points)
        some_outside = points_outside.any()

        def fill(X: NDArray[Any], out: Array) -> None:
            inside, outside = self._locate(X)
            np.matmul(inside, points_inside.T, out=out)
            if some_outside and outside.any():
                out += np.outer(outside, points_outside) * self._space.background(X, points, self.reach)

        return fill

    def _locate(self, X: NDArray[Any]) -> tuple[Array, Array]:
        """Return s(x) φ(x), averaged over neighbors [n, r], and sqrt(1 − s(x)²), how far outside the data a row is. [n]"""
        places, distances = self._space.search(X, self.n_neighbors + 1)
        farthest = np.maximum(distances[:, -1:], np.finfo(float).tiny)
        places, distances = places[:, :-1], distances[:, :-1]
        weights = 1 - (distances / farthest) ** 2
        weights[weights.max(axis=1) <= 0] = 1.0  # all neighbors are at the same distance
        average = np.einsum("nk,nkr->nr", weights, self.coordinates[places])
        average /= np.maximum(np.linalg.norm(average, axis=1, keepdims=True), np.finfo(float).tiny)
        beyond = np.maximum(_typical_distance(distances) - self.reach, 0.0)
        share = np.exp(-0.5 * (beyond / self.fading) ** 2)
        return share[:, None] * average, np.sqrt(1 - share**2)

    def __repr__(self) -> str:
        n_rows, n_coordinates = np.shape(self.coordinates)
        return f"DiffusionKernel({n_rows} rows, {n_coordinates} eigenvectors, n_neighbors={self.n_neighbors}, reach={self.reach:.3g})"


def _space(rows: NDArray[Any], scale: Array | None, kernel: Kernel | None) -> VectorSpace | KernelSpace:
    if kernel is not None:
        return KernelSpace(rows, kernel)
    return VectorSpace(rows, 1.0 if scale is None else scale)


def _typical_distance(distances: Array) -> Array:
    """Return the root mean square distance from the neighbors. [n]"""
    return np.sqrt((distances**2).mean(axis=1))


class NearestNeighborGP(NonStationary, Kernel):
    """The process of Datta et al. (2016), which the paper's section 2.3.1 names: a sparse approximation of a process with a kernel k.

    The distinct training rows x_1, x_2, …, in a random order, are drawn one after the other, each given its K nearest among those
    before it; any other row is drawn given its K nearest of all of them:

        f(x) = b(x)ᵀ f(N(x)) + e(x),      b(x) = k(N, N)⁻¹ k(N, x),      Var e(x) = v(x) = k(x, x) − k(x, N) b(x)

    With B the rows b(x_i)ᵀ and V the variances v(x_i), its covariance at the training rows is C = (I − B)⁻¹ V (I − B)⁻ᵀ, and elsewhere

        k̃(x, y) = b(x)ᵀ C b(y) + v(x) if x and y are the same row

    With as many neighbors as rows it is k at the training rows. With few, it forgets what only distant rows tell, and rows between the
    training rows have noise of their own, v(x): it is rougher than k. It approximates k, so with few labels it is no better than k is;
    for few labels there is `NeighborDiffusion`.

    Parameters
    ----------
    n_neighbors
        K.
    kernel
        k. The default is `NeighborRBF()`.
    max_rows
        With more distinct rows than this, a sample of this size takes the place of the training rows.
    """

    def __init__(self, n_neighbors: int = 10, *, kernel: Kernel | None = None, max_rows: int = 2000) -> None:
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.max_rows = max_rows

    def resolve(self, X: Any, sample_weight: Array | None = None, seed: int = 0) -> NearestNeighborKernel:
        """Return the kernel in which all other rows are drawn given these."""
        check_number("n_neighbors", self.n_neighbors, Integral, at_least=1)
        check_number("max_rows", self.max_rows, Integral, at_least=2)
        if self.kernel is not None and (preparing_kernel(self.kernel) is not None or not self.kernel.requires_vector_input):
            raise ValueError(
                f"NearestNeighborGP finds neighbors among vectors, but {self.kernel} is for other rows: pass a kernel for vectors."
            )
        rows = open_rows(X, sample_weight)
        base = resolve_kernel(NeighborRBF() if self.kernel is None else self.kernel, rows, seed)
        sample = rows.sample(self.max_rows, seed)
        scale = _column_scale(sample.rows, sample.weight, per_column=True)
        return NearestNeighborKernel(base, sample.rows, scale, n_neighbors=min(int(self.n_neighbors), len(sample.rows)))

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> NoReturn:
        """Raise ValueError: there are no rows yet."""
        raise not_resolved(self, "neighbors")

    def diag(self, X: Any) -> NoReturn:
        """Raise ValueError: there are no rows yet."""
        raise not_resolved(self, "neighbors")

    def __repr__(self) -> str:
        return f"NearestNeighborGP({self.n_neighbors!r}, kernel={self.kernel!r})"


class NearestNeighborKernel(CallByBlocks, Kernel):
    """The concrete kernel that `NearestNeighborGP` becomes at `fit`: k, the training rows, and the unit of distance in each column."""

    def __init__(self, kernel: Kernel, rows: Array, scale: Array, *, n_neighbors: int) -> None:
        self.kernel = kernel
        self.rows = rows
        self.scale = scale
        self.n_neighbors = n_neighbors

    def block_kernel(self, points: Array) -> BlockKernel:
        """Compute C b(u) for the points once; each block then needs a search for neighbors and a sparse product."""
        covariances = self._covariance_with(self._given_neighbors(points)[0])
        own_hashes = hash_rows(points, 0)

        def fill(X: Array, out: Array) -> None:
            X = in_double_precision(X)
            weights, variance = self._given_neighbors(X)
            out[...] = weights @ covariances
            row, point = np.nonzero(hash_rows(X, 0)[:, None] == own_hashes)
            out[row, point] += variance[row]

        return fill

    def diag(self, X: Any) -> Array:
        """Return k̃(x, x) = b(x)ᵀ C b(x) + v(x) for each row. [n]"""
        weights, variance = self._given_neighbors(np.asarray(X, dtype=np.float64))
        return np.asarray(weights.multiply(self._covariance_with(weights).T).sum(axis=1)).ravel() + variance

    def _covariance_with(self, weights: csr_array) -> Array:
        """Return C bᵀ for rows b. [rows, n]"""
        factor, variance = self._factor
        return factor.solve(variance[:, None] * factor.solve(weights.T.toarray(), trans="T"))

    @cached_property
    def _factor(self) -> tuple[SuperLU, Array]:
        """I − B, which is triangular and so its own factor, and V."""
        before = [
            VectorSpace(self.rows[:place], self.scale).search(self.rows[[place]], min(self.n_neighbors, place)).places[0]
            for place in range(1, len(self.rows))
        ]
        weights, variance = self._conditionals(self.rows, [np.empty(0, np.intp), *before])
        return splu((eye_array(len(self.rows)) - weights).tocsc(), permc_spec="NATURAL", diag_pivot_thresh=0.0), variance

    @cached_property
    def _space(self) -> VectorSpace:
        return VectorSpace(self.rows, self.scale)

    def _given_neighbors(self, X: Array) -> tuple[csr_array, Array]:
        return self._conditionals(X, list(self._space.search(X, self.n_neighbors).places))

    def _conditionals(self, X: Array, neighbors: Sequence[NDArray[np.intp]]) -> tuple[csr_array, Array]:
        """Return b of each row, in the columns of the training rows that are its neighbors [n, rows], and v. [n]"""
        variance = kernel_diagonal(self.kernel, X)
        jitter = _JITTER * max(float(variance.mean()), _SMALLEST_VARIANCE)
        weights = []
        for row, places in enumerate(neighbors):
            near = self.rows[places]
            covariance = self.kernel(near) + jitter * np.eye(len(near)) if len(near) else np.empty((0, 0))
            cross = self.kernel(near, X[[row]])[:, 0] if len(near) else np.empty(0)
            weights.append(np.linalg.solve(covariance, cross))
            variance[row] = max(variance[row] - weights[-1] @ cross, 0.0)
        starts = np.cumsum([0, *map(len, neighbors)])
        indices = np.concatenate([np.empty(0, np.intp), *neighbors])
        data = np.concatenate([np.empty(0), *weights])
        return csr_array((data, indices, starts), shape=(len(X), len(self.rows))), variance

    def __repr__(self) -> str:
        return f"NearestNeighborKernel({self.kernel!r}, {len(self.rows)} rows, n_neighbors={self.n_neighbors})"
