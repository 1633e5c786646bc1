"""Representations in a plane, for people to look at."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

Array = NDArray[np.float64]

TSNE_ROWS = 4000
"""Rows that t-SNE arranges; it takes long with more."""
FEWEST_ROWS = 10
N_NEIGHBORS = 5


class Plane(NamedTuple):
    """Where rows are drawn."""

    x: Array
    y: Array
    axes: str


def plane_of(mean: Array, std: Array, seed: int) -> Plane:
    """Two dimensions as they are, more of them by t-SNE."""
    if mean.shape[1] == 1:
        return Plane(mean[:, 0], std[:, 0], "dimension 1 of the representation, and its standard deviation")
    if mean.shape[1] == 2 or len(mean) < FEWEST_ROWS:
        return Plane(mean[:, 0], mean[:, 1], "dimensions 1 and 2 of the representation")
    if len(mean) <= TSNE_ROWS:
        x, y = _t_sne(mean, seed).T
        return Plane(x, y, "t-SNE of the mean representation")
    chosen = np.random.default_rng(seed).permutation(len(mean))[:TSNE_ROWS]
    arranged = _t_sne(mean[chosen], seed)
    axes = f"t-SNE of the mean representation of {TSNE_ROWS:,} rows; the others are placed among their {N_NEIGHBORS} nearest"
    x, y = _among_neighbors(mean, mean[chosen], arranged).T
    return Plane(x, y, axes)


def _t_sne(mean: Array, seed: int) -> Array:
    perplexity = min(30.0, (len(mean) - 1) / 3)
    arranged: Array = TSNE(perplexity=perplexity, init="pca", random_state=seed, n_jobs=-1).fit_transform(mean).astype(np.float64)
    return arranged


def _among_neighbors(mean: Array, known: Array, arranged: Array) -> Array:
    """The average place of the nearest known rows, weighted by their inverse distance: a known row stays where it is. [n, 2]"""
    distances, places = NearestNeighbors(n_neighbors=N_NEIGHBORS).fit(known).kneighbors(mean)
    weights = 1 / np.maximum(distances, 1e-9)
    return np.einsum("nk,nkd->nd", weights / weights.sum(axis=1, keepdims=True), arranged[places])
