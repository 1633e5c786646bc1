"""The graph of nearest neighbors and its slowest directions of diffusion."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

from .nearest_rows import Neighbors

Array = NDArray[np.float64]

DENSE_NODES = 400
"""Parts of a graph up to this size are decomposed as a whole."""
PRECISION = 1e-6
"""Of the eigenvalues of larger parts."""


DIRECTIONS_LEFT = 5.0
"""At the automatic time, besides the one in which all nodes of a part are alike."""
TIMES = (1.0, 1e6)
"""The shortest and the longest automatic time."""


class Directions(NamedTuple):
    """Eigenvectors of the lazy walk on one connected part of a graph, in falling order of their eigenvalues."""

    nodes: NDArray[np.intp]
    eigenvalues: Array
    """In [0, 1]; the first is 1. [r]"""
    eigenvectors: Array
    """[n nodes, r]"""


def neighbor_graph(found: Neighbors) -> csr_array:
    """Each row connected with its K nearest, and with those whose K nearest it is among; W_ij = exp(−d_ij² / (σ_i σ_j)). [n, n]

    From the K + 1 nearest of each row among all of them, of which one is the row itself.
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
    """φ(x_i) ∝ (λ_a^{t/2} ψ_a(i))_a with |φ(x_i)| = 1, for the walk that stays or goes with equal chances. [n, r]

    Of all parts of the graph together, the directions of the largest eigenvalues are kept; of each part at least one, in which all its
    nodes are alike. Without a time, it is the one at which Σ_a λ_a^t, which counts the directions that are left, is `DIRECTIONS_LEFT` more
    than the unavoidable one of each part.
    """
    n_parts, part = connected_components(graph, directed=False)
    order = np.argsort(part, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(part, minlength=n_parts))[:-1])
    directions = [_directions(graph, nodes, n_eigenvectors, seed) for nodes in members]
    kept = _share_out([found.eigenvalues for found in directions], n_eigenvectors)
    if time is None:
        time = _time_that_leaves(DIRECTIONS_LEFT, np.concatenate([found.eigenvalues[1:] for found in directions]))
    coordinates = np.zeros((graph.shape[0], sum(kept)))
    done = 0
    for found, n_kept in zip(directions, kept, strict=True):
        strengths = found.eigenvalues[:n_kept] ** (time / 2)
        coordinates[found.nodes, done : done + n_kept] = found.eigenvectors[:, :n_kept] * strengths
        done += n_kept
    return coordinates / np.linalg.norm(coordinates, axis=1, keepdims=True)


def _time_that_leaves(n_directions: float, eigenvalues: Array) -> float:
    """t with Σ λ^t = n; the sum falls with t."""

    def excess(logarithm: float) -> float:
        return float((eigenvalues ** np.exp(logarithm)).sum()) - n_directions

    shortest, longest = np.log(TIMES)
    if excess(shortest) <= 0:
        return float(TIMES[0])
    return float(TIMES[1]) if excess(longest) >= 0 else float(np.exp(brentq(excess, shortest, longest)))


def _directions(graph: csr_array, nodes: NDArray[np.intp], n_eigenvectors: int, seed: int) -> Directions:
    """The slowest directions of one connected part."""
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
    return Directions(nodes, lazy, eigenvectors[:, falling])


def _share_out(eigenvalues: list[Array], n_eigenvectors: int) -> list[int]:
    """How many directions each part keeps: one, and more where their eigenvalues are among the largest of all."""
    further = np.concatenate([values[1:] for values in eigenvalues])
    part = np.repeat(np.arange(len(eigenvalues)), [len(values) - 1 for values in eigenvalues])
    n_further = max(0, n_eigenvectors - len(eigenvalues))
    largest = np.argsort(-further, kind="stable")[:n_further]
    return list(1 + np.bincount(part[largest], minlength=len(eigenvalues)))
