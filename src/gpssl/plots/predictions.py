"""Maps of what a classifier predicts over the plane, and of how far it can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..downstream import MarginalizedClassifier
from .classes import RowGroup, group_by_class
from .figures import check_some
from .plane import ColorScale, Grid, check_plane, draw_maps, new_panels, plot_maps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

N_POINTS = 61
"""On each side of the grid: the standard deviation of the probabilities of a hundred draws takes a millisecond or more a place."""


def plot_probabilities(classifiers: Mapping[str, Any], X: Any, y: Any, *, positive: Any = None, grid: Grid | None = None) -> NDArray[Any]:
    """Probability of one class (top) and its standard deviation (bottom) over the plane, a column for each classifier.

    Parameters
    ----------
    classifiers
        By name, fitted to rows with two columns, with `predict_proba`, `predict_proba_std` and `classes_`.
    X
        Rows, of which those with a label are drawn as crosses. [n, 2]
    y
        Their labels. [n]
    positive
        The class, by default the last of the first classifier.
    grid
        Where to look, by default around X.

    Returns
    -------
    axes
        [2, classifiers]
    """
    check_some(classifiers, "fitted classifier")
    rows = check_plane(X)
    groups = group_by_class(y, len(rows))
    grid = Grid.around(X, n_points=N_POINTS) if grid is None else grid
    positive = next(iter(classifiers.values())).classes_[-1] if positive is None else positive
    proba, std = _predict(classifiers, positive, grid.rows_like(X))
    axes = new_panels(2, len(classifiers))
    draw_maps(axes[0], proba, grid, label=f"probability of class {positive}", scale=ColorScale("RdBu_r", 0.0, 1.0))
    draw_maps(axes[1], std, grid, label="standard deviation", scale=ColorScale("viridis", 0.0, float(std.max())))
    for ax in axes.flat:
        _draw_crosses(ax, rows, groups)
    for ax, name in zip(axes[0], classifiers, strict=True):
        ax.set_title(name)
    handles, names = axes[0, 0].get_legend_handles_labels()
    axes[0, 0].figure.legend(handles, [f"class {name}" for name in names], loc="outside lower center", ncols=4, fontsize="small")
    return axes


def plot_uncertainty(classifier: MarginalizedClassifier, X: Any, *, grid: Grid | None = None) -> NDArray[Any]:
    """Entropy of the prediction over the plane, and its two parts: the head's and the representation's. Axes [3]

    The sum of the parts is the whole; see `MarginalizedClassifier.predict_uncertainty`. The rows X are drawn on top.
    """
    grid = Grid.around(X) if grid is None else grid
    uncertainty = classifier.predict_uncertainty(grid.rows_like(X))
    titles = ("total", "from the head", "from the representation")
    return plot_maps(np.column_stack(uncertainty), grid, X, titles=titles, label="entropy (nats)")


def _predict(classifiers: Mapping[str, Any], positive: Any, places: Any) -> tuple[Array, Array]:
    """Each classifier's probability of the class, and its standard deviation. [n², classifiers] each"""
    columns = [_column_of(classifier, positive, name) for name, classifier in classifiers.items()]
    pairs = list(zip(classifiers.values(), columns, strict=True))
    proba = [classifier.predict_proba(places)[:, column] for classifier, column in pairs]
    std = [classifier.predict_proba_std(places)[:, column] for classifier, column in pairs]
    return np.column_stack(proba), np.column_stack(std)


def _column_of(classifier: Any, positive: Any, name: str) -> int:
    """Where the classifier has the probability of the class."""
    classes = classifier.classes_.tolist()
    if positive not in classes:
        raise ValueError(f"The classifier {name} knows no class {positive!r}, only {classes}: choose another with positive=.")
    return classes.index(positive)


def _draw_crosses(ax: Axes, rows: Array, groups: list[RowGroup]) -> None:
    """Labeled rows, colored by class; an outline keeps them apart from the map."""
    from matplotlib.patheffects import withStroke

    outline = [withStroke(linewidth=2.6, foreground="white")]
    for group in groups:
        x, y = rows[group.rows].T
        ax.scatter(x, y, s=24, marker="x", color=group.style.color, linewidths=1.3, path_effects=outline, label=group.name)
