"""The map of the page: where the rows are drawn, and what is shown of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

from ..data._labels import Target
from ..workflows._subject import Subject, concatenate
from ._content import ClassColoring, HoverColumn, NumberColoring, Points

Array = NDArray[np.float64]
Places = NDArray[np.intp]

MAX_POINTS = 50_000
HOVER_COLUMNS, FEW_HOVER_COLUMNS = 12, 6
MANY_POINTS = 10_000
TSNE_ROWS = 4000
"""Rows that t-SNE arranges; it takes long with more."""
FEWEST_ROWS = 10
N_NEIGHBORS = 5


def shown_places(n_rows: int, seed: int) -> Places:
    """Return at most MAX_POINTS rows, sampled, so that the page stays responsive."""
    if n_rows <= MAX_POINTS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, MAX_POINTS, replace=False))


def shown_rows(subject: Subject, places: Places) -> tuple[Any, Any]:
    """Return the rows at these places as the model takes them, and as the person had them."""
    chosen = np.zeros(subject.n_rows, dtype=bool)
    chosen[places] = True
    parts = [(part.rows[chosen[where]], part.cells(typed=False)[chosen[where]]) for part, where in subject.numbered_parts()]
    rows, cells = zip(*parts, strict=True)
    return concatenate(list(rows)), concatenate(list(cells))


def points_of(subject: Subject, places: Places, mean: Array, std: Array, seed: int) -> Points:
    """Return where the rows are drawn: on the tissue, or in a plane of the representation."""
    names = [f"{place + 1}" for place in places]
    sampled = subject.n_rows if len(places) < subject.n_rows else None
    tissue = subject.coordinates()
    if tissue is not None:
        x, y = tissue[places].T
        return Points(x=x, y=y, axes="place on the tissue", rows=names, equal_aspect=True, flip_y=True, sampled_from=sampled)
    plane = plane_of(mean, std, seed)
    return Points(x=plane.x, y=plane.y, axes=plane.axes, rows=names, sampled_from=sampled)


class Plane(NamedTuple):
    """Where rows are drawn."""

    x: Array
    y: Array
    axes: str


def plane_of(mean: Array, std: Array, seed: int) -> Plane:
    """Draw two dimensions as they are, and arrange more of them by t-SNE."""
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
    """Average the places of the nearest known rows, weighted by their inverse distance: a known row stays where it is. [n, 2]"""
    distances, places = NearestNeighbors(n_neighbors=N_NEIGHBORS).fit(known).kneighbors(mean)
    weights = 1 / np.maximum(distances, 1e-9)
    return np.einsum("nk,nkd->nd", weights / weights.sum(axis=1, keepdims=True), arranged[places])


def hover_columns(cells: Any, target: Target | None) -> list[HoverColumn]:
    """Return the person's columns, the one to predict first."""
    limit = FEW_HOVER_COLUMNS if len(cells) > MANY_POINTS else HOVER_COLUMNS
    first = [target.name] if target is not None and target.name in cells.columns else []
    names = [*first, *(name for name in cells.columns if name not in first)][:limit]
    return [HoverColumn(str(name), _texts(cells[name])) for name in names]


def _texts(column: Any) -> list[str]:
    """Return cells as texts for people: short numbers, and nothing for missing cells."""
    values = zip(column.tolist(), column.isna(), strict=True)
    return ["" if missing else f"{value:.6g}" if isinstance(value, float) else str(value) for value, missing in values]


def labels_coloring(target: Target, places: Places) -> ClassColoring | NumberColoring:
    """Return a coloring by the labels that were given."""
    name = f"{target.name}, as given"
    if target.kind == "number":
        return NumberColoring(name, target.values[places].astype(np.float64))
    levels, codes = np.unique(target.labels, return_inverse=True)
    all_codes = np.full(len(target.values), -1)
    all_codes[target.is_known] = codes
    return ClassColoring(name, all_codes[places], [str(level) for level in levels])
