"""Where the rows are drawn and what they are called: in the plane, rows that are alike lie together. All of it is linear in the rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..workflows._row_checksums import row_names
from ..workflows._subject import Subject
from ._content import Points

Array = NDArray[np.float64]
Places = NDArray[np.intp]

TSNE_ROWS = 1500
"""Rows that t-SNE arranges: 2 s on one core. The others are placed among them."""
TSNE_STEPS = 500
"""Half of them with exaggerated attraction, as in scikit-learn; from PCA, more change the picture little."""
FEWEST_ROWS = 10
N_NEIGHBORS = 5


def points_of(subject: Subject, places: Places, mean: Array, std: Array, seed: int) -> Points:
    """Return where the rows are drawn: on the tissue, or in a plane of the representation."""
    tissue = subject.coordinates()
    plane, axes = plane_of(mean, std, seed) if tissue is None else (tissue[places], "place on the tissue")
    return Points(
        x=plane[:, 0],
        y=plane[:, 1],
        axes=axes,
        rows=row_names(subject, places),
        numbering=_numbering(subject),
        equal_aspect=tissue is not None,
        flip_y=tissue is not None,
        sampled_from=subject.n_rows if len(places) < subject.n_rows else None,
    )


def _numbering(subject: Subject) -> str:
    """Return what the names of the rows are, in a sentence."""
    if subject.index is not None:
        return "Rows have the names that the index gives them."
    return "" if subject.path is None else f"Rows have the numbers of their lines in {subject.name}."


def plane_of(mean: Array, std: Array, seed: int) -> tuple[Array, str]:
    """Return places [n, 2] and what they are: two dimensions are drawn as they are, and more of them are arranged by t-SNE."""
    if mean.shape[1] == 1:
        return np.column_stack([mean, std]), "dimension 1 of the representation, and its standard deviation"
    if mean.shape[1] == 2 or len(mean) < FEWEST_ROWS:
        return mean[:, :2], "dimensions 1 and 2 of the representation"
    if len(mean) <= TSNE_ROWS:
        return _t_sne(mean, seed), "t-SNE of the mean representation"
    chosen = np.random.default_rng(seed).permutation(len(mean))[:TSNE_ROWS]
    axes = f"t-SNE of the mean representation of {TSNE_ROWS:,} rows; the others are placed among their {N_NEIGHBORS} nearest"
    return _among_neighbors(mean, mean[chosen], _t_sne(mean[chosen], seed)), axes


def _t_sne(mean: Array, seed: int) -> Array:
    """Return places on one thread: several gain little here, and on a busy machine they wait for each other."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    perplexity = min(30.0, (len(mean) - 1) / 3)
    t_sne = TSNE(perplexity=perplexity, init="pca", max_iter=TSNE_STEPS, random_state=seed, n_jobs=1)
    with threadpool_limits(1):
        arranged: Array = t_sne.fit_transform(mean).astype(np.float64)
    return arranged


def _among_neighbors(mean: Array, known: Array, arranged: Array) -> Array:
    """Average the places of the nearest known rows, weighted by their inverse distance: a known row stays where it is. [n, 2]"""
    from sklearn.neighbors import NearestNeighbors

    distances, places = NearestNeighbors(n_neighbors=N_NEIGHBORS).fit(known).kneighbors(mean)
    weights = 1 / np.maximum(distances, 1e-9)
    return np.einsum("nk,nkd->nd", weights / weights.sum(axis=1, keepdims=True), arranged[places])
