"""Nearest neighbors: the search for them, the graph that they make, and a random walk on it.

Neighbors are searched in a space: among vectors by distance (`VectorSpace`), or among rows of any kind by a kernel (`KernelSpace`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Kernel

from .._runtime.threads import map_on_threads
from ..data._arrays import row_blocks
from ._protocol import Array, block_kernel, kernel_diagonal

ROUNDING = 1e-12
"""How far half a squared distance from inner products may be off, relative to ½|x|² and ½|r|²."""
ROWS_AT_A_TIME = 256
PAIRS_AT_A_TIME = 65_536
DIGITS = 12
"""Digits of similarities that are compared: beyond them rounding would decide between neighbors."""
LARGEST = 1e100
"""Coordinates are cut at this size, so that their squares are finite."""
USUAL = 0.99
"""The share of the training rows that is surely inside the data."""
REACH_FACTOR, FADING = 2.0, 0.5
"""Among vectors, the data reach to twice the usual distance from neighbors, and fade over half of that."""
FADED = 3.0
"""Where a kernel measures distances, the data fade over so many widths, from their edge to rows that have nothing in common with them."""
DENSE_NODES = 400
"""Components of a graph up to this size are decomposed with dense matrices."""
PRECISION = 1e-6
"""Precision of the eigenvalues of larger components."""
DIRECTIONS_LEFT = 5.0
"""Directions that the automatic time leaves, besides the one in which all nodes of a component are alike."""
TIMES = (1.0, 1e6)
"""The shortest and the longest automatic time."""


class FoundNeighbors(NamedTuple):
    """The nearest rows of each row of a query, nearest first."""

    places: NDArray[np.intp]
    """The positions of these rows. [n, k]"""
    distances: Array
    """[n, k]"""


class VectorSpace:
    """Vectors, with Euclidean distances in which each column has its own unit, and an exact search among them.

    Inner products, which are fast, tell which rows may be among the nearest; the distances of those are computed again from differences.
    Otherwise rounding errors, which depend on the other rows of the query, would choose between rows at nearly the same distance, and no
    kernel could be built on the result. Among rows at the same distance, the first ones count as nearer.
    """

    def __init__(self, rows: Array, scale: Array | float = 1.0) -> None:
        self.scale = scale
        self.rows = self._in_units(rows)
        self.center = np.median(self.rows, axis=0)  # one row far out would shift the mean away from all others
        self.centered = self.rows - self.center
        self.half_norms = 0.5 * (self.centered**2).sum(axis=1)

    def _in_units(self, X: Array) -> Array:
        """Return X in units of each column, within a range that survives being squared."""
        return np.clip(X / self.scale, -LARGEST, LARGEST)

    def search(self, X: Array, k: int) -> FoundNeighbors:
        """Return the k nearest training rows of each row of X, among which it may be itself."""
        return _search_in_blocks(lambda block: self._search_block(block, k), self._in_units(X), k)

    def _search_block(self, X: Array, k: int) -> FoundNeighbors:
        from_center = X - self.center
        # ½|x − r|² without ½|x|², which is the same for all r.
        approximate = self.half_norms - from_center @ self.centered.T
        own, theirs = ROUNDING * (from_center**2).sum(axis=1), ROUNDING * self.half_norms
        limit = np.partition(approximate + theirs, k - 1, axis=1)[:, k - 1] + own
        row, place = np.nonzero(approximate - theirs <= limit[:, None])
        squared = self._squared_distances(X, row, place)
        order = np.lexsort((place, squared, row))
        first = np.searchsorted(row[order], np.arange(len(X)))
        nearest = order[first[:, None] + np.arange(k)]
        return FoundNeighbors(place[nearest], np.sqrt(squared[nearest]))

    def _squared_distances(self, X: Array, row: NDArray[np.intp], place: NDArray[np.intp]) -> Array:
        """Return |x − r|² from differences, pair by pair: the same bits whatever else is in the query."""
        squared = np.empty(len(row))
        for pairs in row_blocks(len(row), PAIRS_AT_A_TIME):
            difference = X[row[pairs]] - self.rows[place[pairs]]
            squared[pairs] = (difference * difference).sum(axis=1)
        return squared

    def border(self, distances: Array) -> tuple[float, float]:
        """Return how far the data reach beyond their neighbors, twice the usual distance, and the width over which they fade there.

        `distances` are the root mean square distances of the training rows from their neighbors.
        """
        reach = REACH_FACTOR * float(np.quantile(distances, USUAL)) or 1.0
        return reach, FADING * reach

    def background(self, X: Array, Y: Array, reach: float) -> Array:
        """Return a kernel for rows outside the data: exp(−½ |x − y|² / l²), where l is the reach. [n, m]"""
        return np.exp(-0.5 * cdist(self._in_units(X), self._in_units(Y), "sqeuclidean") / reach**2)


class KernelSpace:
    """Rows of any kind, with distances from a kernel: d² = 2 − 2 k(x, y), where k is scaled to k(x, x) = 1."""

    def __init__(self, rows: NDArray[Any], kernel: Kernel) -> None:
        self.kernel = kernel
        self.fill = block_kernel(kernel, rows)
        self.sizes = self._sizes(rows)

    def search(self, X: NDArray[Any], k: int) -> FoundNeighbors:
        """Return the k training rows that are most similar to each row of X."""

        def search_block(block: NDArray[Any]) -> FoundNeighbors:
            similarity = np.empty((len(block), len(self.sizes)))
            self.fill(block, similarity)
            similarity /= np.outer(self._sizes(block), self.sizes)
            order = _smallest(-np.round(similarity, DIGITS), k)
            return FoundNeighbors(order, np.sqrt(np.maximum(2 - 2 * np.take_along_axis(similarity, order, axis=1), 0.0)))

        return _search_in_blocks(search_block, X, k)

    def border(self, distances: Array) -> tuple[float, float]:
        """Return the same as for vectors, with the border halfway from the typical distance to √2, where rows have nothing in common."""
        farthest = np.sqrt(2.0)
        reach = float(np.median(distances) + farthest) / 2
        return reach, (farthest - reach) / FADED

    def background(self, X: NDArray[Any], Y: NDArray[Any], reach: float) -> Array:
        """Return the kernel itself, scaled to k(x, x) = 1. [n, m]"""
        return np.asarray(self.kernel(X, Y), dtype=np.float64) / np.outer(self._sizes(X), self._sizes(Y))

    def _sizes(self, X: NDArray[Any]) -> Array:
        """Return √k(x, x), by which similarities are divided. [n]"""
        sizes = np.sqrt(kernel_diagonal(self.kernel, X))
        if sizes.min(initial=1.0) == 0:
            raise ValueError(
                f"Under the kernel {self.kernel} row {int(sizes.argmin())} has k(x, x) = 0, and so no distance from others. Choose a "
                "kernel that is positive on all rows."
            )
        return sizes


def _smallest(values: Array, k: int) -> NDArray[np.intp]:
    """Return the places of the k smallest values of each row, in rising order; of equal ones, the first. [n, k]

    A partition finds the k-th smallest value v in time that is linear in the columns. The places are those below v, and as many of those
    that equal v as are missing, from the left. Only these k are sorted.
    """
    if k >= values.shape[1]:
        return np.argsort(values, axis=1, kind="stable")[:, :k]
    largest = np.partition(values, k - 1, axis=1)[:, k - 1 : k]
    chosen = values <= largest
    tied = np.flatnonzero(chosen.sum(axis=1) > k)
    if len(tied):  # more than k are chosen: of those that equal v, the last ones are too many
        equal = values[tied] == largest[tied]
        missing = k - (chosen[tied] & ~equal).sum(axis=1, keepdims=True)
        chosen[tied] &= ~(equal & (np.cumsum(equal, axis=1) > missing))
    found = np.nonzero(chosen)[1].reshape(len(values), k)
    order = np.argsort(np.take_along_axis(values, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)


def _search_in_blocks(search_block: Callable[[NDArray[Any]], FoundNeighbors], X: NDArray[Any], k: int) -> FoundNeighbors:
    """Search the neighbors of blocks of rows on several threads."""
    found = FoundNeighbors(np.empty((len(X), k), dtype=np.intp), np.empty((len(X), k)))

    def search(block: slice) -> None:
        found.places[block], found.distances[block] = search_block(X[block])

    map_on_threads(search, list(row_blocks(len(X), ROWS_AT_A_TIME)))
    return found


def neighbor_graph(found: FoundNeighbors) -> csr_array:
    """Connect each row with its K nearest, and with the rows that have it among theirs; W_ij = exp(−d_ij² / (σ_i σ_j)). [n, n]

    `found` has the K + 1 nearest of each row among all of them, one of which is the row itself.
    """
    n_rows, n_neighbors = len(found.places), found.places.shape[1] - 1
    others = found.places != np.arange(n_rows)[:, None]
    others[others.all(axis=1), -1] = False  # among many rows that are alike, a row need not be among its own nearest
    places, distances = (values[others].reshape(n_rows, n_neighbors) for values in found)
    width = np.maximum(distances[:, -1], np.finfo(float).tiny)
    ratios = (distances / width[:, None]) * (distances / width[places])
    edges = coo_array(
        (np.exp(-ratios).ravel(), (np.repeat(np.arange(n_rows), n_neighbors), places.ravel())), shape=(n_rows, n_rows)
    ).tocsr()
    return edges.maximum(edges.T).tocsr()


def diffusion_coordinates(graph: csr_array, *, time: float | None, n_eigenvectors: int, seed: int) -> Array:
    """Return φ(x_i) ∝ (λ_a^{t/2} ψ_a(i))_a with |φ(x_i)| = 1, for the walk that stays or goes with equal chances. [n, r]

    The directions of the largest eigenvalues of all components are kept, and of each component at least the one in which all its nodes
    are alike. Where `time` is None, it is chosen so that Σ_a λ_a^t, which counts the directions that are left, is `DIRECTIONS_LEFT` more
    than that one of each component.
    """
    n_components, component = connected_components(graph, directed=False)
    order = np.argsort(component, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(component, minlength=n_components))[:-1])
    walks = [_walk_eigenvectors(graph, nodes, n_eigenvectors, seed) for nodes in members]
    kept = _numbers_to_keep([eigenvalues for eigenvalues, _ in walks], n_eigenvectors)
    if time is None:
        time = _time_that_leaves(DIRECTIONS_LEFT, np.concatenate([eigenvalues[1:] for eigenvalues, _ in walks]))
    coordinates = np.zeros((graph.shape[0], sum(kept)))
    done = 0
    for nodes, (eigenvalues, eigenvectors), n_kept in zip(members, walks, kept, strict=True):
        coordinates[nodes, done : done + n_kept] = eigenvectors[:, :n_kept] * eigenvalues[:n_kept] ** (time / 2)
        done += n_kept
    return coordinates / np.linalg.norm(coordinates, axis=1, keepdims=True)


def _time_that_leaves(n_directions: float, eigenvalues: Array) -> float:
    """Return the t with Σ λ^t = n, a sum that falls with t."""

    def excess(logarithm: float) -> float:
        return float((eigenvalues ** np.exp(logarithm)).sum()) - n_directions

    shortest, longest = np.log(TIMES)
    if excess(shortest) <= 0:
        return float(TIMES[0])
    return float(TIMES[1]) if excess(longest) >= 0 else float(np.exp(brentq(excess, shortest, longest)))


def _walk_eigenvectors(graph: csr_array, nodes: NDArray[np.intp], n_eigenvectors: int, seed: int) -> tuple[Array, Array]:
    """Return the eigenvalues of the lazy walk on one component, from 1 down to at least 0 [r], and their eigenvectors. [n nodes, r]"""
    weights = graph[nodes][:, nodes]
    degree = np.asarray(weights.sum(axis=1)).ravel()
    normalize = diags_array(1 / np.sqrt(degree))
    walk = normalize @ weights @ normalize
    n_directions = min(n_eigenvectors, len(nodes))
    if len(nodes) <= max(DENSE_NODES, 2 * n_eigenvectors):
        eigenvalues, eigenvectors = np.linalg.eigh(walk.toarray())
    else:
        start = np.random.default_rng(seed).standard_normal(len(nodes))
        eigenvalues, eigenvectors = eigsh(walk, k=n_directions, which="LA", v0=start, tol=PRECISION)
    falling = np.argsort(-eigenvalues)[:n_directions]
    lazy = np.clip((1 + eigenvalues[falling]) / 2, 0.0, 1.0)
    return lazy, eigenvectors[:, falling]


def _numbers_to_keep(eigenvalues: list[Array], n_eigenvectors: int) -> list[int]:
    """Return how many directions each component keeps: one, and those whose eigenvalues are among the largest of all."""
    further = np.concatenate([values[1:] for values in eigenvalues])
    component = np.repeat(np.arange(len(eigenvalues)), [len(values) - 1 for values in eigenvalues])
    n_further = max(0, n_eigenvectors - len(eigenvalues))
    largest = np.argsort(-further, kind="stable")[:n_further]
    return list(1 + np.bincount(component[largest], minlength=len(eigenvalues)))
