"""Draw maps over the plane: of any functions, of representations, and of what classifiers predict, with their uncertainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..downstream._predictors import MarginalizedClassifier
from ..estimator import GPSSL
from ._figures import ColorScale, RowGroup, check_some, choose_dimensions, dimension_name, group_by_class, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

MARGIN = 0.25
"""The share of the rows' range that is added on each side: maps show what happens beyond the rows."""
N_POINTS = 61
"""On each side of the grid. It is small because the probabilities of a hundred draws take a millisecond or more at each place."""

PANEL_SIZE = 2.5
COLORBAR_SIZE = 1.4
TITLE_SIZE = 0.6


class Grid(NamedTuple):
    """A rectangular grid of places in the plane, n × n."""

    points: Array
    """The first coordinate runs fastest. [n², 2]"""
    low: tuple[float, float]
    high: tuple[float, float]
    n_points: int
    """n, along each side."""

    @classmethod
    def between(cls, low: tuple[float, float], high: tuple[float, float], n_points: int = 121) -> Grid:
        """Return the grid from one corner to the opposite one, both included."""
        axes = [np.linspace(start, stop, n_points) for start, stop in zip(low, high, strict=True)]
        return cls(np.column_stack([places.ravel() for places in np.meshgrid(*axes)]), low, high, n_points)

    @classmethod
    def around(cls, X: Any, n_points: int = 121) -> Grid:
        """Return the grid over the rows and a margin around them."""
        rows = check_plane(X)
        low, high = rows.min(axis=0), rows.max(axis=0)
        margin = np.where(high > low, MARGIN * (high - low), 1.0)
        (left, bottom), (right, top) = (low - margin).tolist(), (high + margin).tolist()
        return cls.between((left, bottom), (right, top), n_points)

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top edge of the picture whose pixels have the points at their centers."""
        half = [(high - low) / (self.n_points - 1) / 2 for low, high in zip(self.low, self.high, strict=True)]
        return self.low[0] - half[0], self.high[0] + half[0], self.low[1] - half[1], self.high[1] + half[1]

    def rows_like(self, X: Any) -> Any:
        """Return the points as rows of the same type as X, because estimators check the column names of a data frame."""
        return type(X)(self.points, columns=X.columns) if hasattr(X, "iloc") else self.points


def plot_maps(values: ArrayLike, grid: Grid, X: Any = None, *, titles: Sequence[str], label: str, diverging: bool = False) -> NDArray[Any]:
    """Draw a map of each column of `values`, with the same colors for all, and the rows X on top.

    Parameters
    ----------
    values
        The values at `grid.points`. [n², panels]
    grid
        The places of the values.
    X
        Rows in the plane, drawn as points. [n rows, 2]
    titles
        One for each panel.
    label
        What the colors stand for.
    diverging
        Whether values below and above zero have different colors.

    Returns
    -------
    axes
        [panels]
    """
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (len(grid.points), len(titles)):
        raise ValueError(f"values must be [{len(grid.points)} points of the grid, {len(titles)} titles], got shape {values.shape}.")
    axes = new_panels(1, titles)[0]
    draw_maps(axes, values, grid, label=label, scale=ColorScale.symmetric(values) if diverging else ColorScale.rising(values))
    for ax in axes if X is not None else ():
        draw_rows(ax, X)
    return axes


def plot_representation(ssl: GPSSL, X: Any, *, grid: Grid | None = None, dimensions: Sequence[int] | None = None) -> NDArray[Any]:
    """Draw posterior mean (top) and standard deviation (bottom) of each representation dimension over the plane.

    Parameters
    ----------
    ssl
        Fitted to rows with two columns.
    X
        Rows to draw on top. [n, 2]
    grid
        The places to evaluate, by default around X.
    dimensions
        Which dimensions, counted from 0; by default all.

    Returns
    -------
    axes
        [2, dimensions]
    """
    check_plane(X)
    grid = Grid.around(X) if grid is None else grid
    mean, std = ssl.mean_and_std(grid.rows_like(X))
    chosen = choose_dimensions(mean.shape[1], dimensions)
    axes = new_panels(2, [dimension_name(dimension) for dimension in chosen])
    draw_maps(axes[0], mean[:, chosen], grid, label="mean", scale=ColorScale.symmetric(mean[:, chosen]))
    draw_maps(axes[1], std[:, chosen], grid, label="standard deviation", scale=ColorScale.rising(std[:, chosen]))
    for ax in axes.flat:
        draw_rows(ax, X)
    return axes


def plot_probabilities(classifiers: Mapping[str, Any], X: Any, y: Any, *, positive: Any = None, grid: Grid | None = None) -> NDArray[Any]:
    """Draw the probability of one class (top) and its standard deviation (bottom) over the plane, a column for each classifier.

    Parameters
    ----------
    classifiers
        By name, fitted to rows with two columns, with `predict_proba`, `predict_proba_std` and `classes_`.
    X
        Rows; those with a label are drawn as crosses. [n, 2]
    y
        Their labels. [n]
    positive
        The class, by default the last of the first classifier.
    grid
        The places to evaluate, by default around X.

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
    axes = new_panels(2, list(classifiers))
    draw_maps(axes[0], proba, grid, label=f"probability of class {positive}", scale=ColorScale("RdBu_r", 0.0, 1.0))
    draw_maps(axes[1], std, grid, label="standard deviation", scale=ColorScale("viridis", 0.0, float(std.max())))
    for ax in axes.flat:
        _draw_crosses(ax, rows, groups)
    handles, names = axes[0, 0].get_legend_handles_labels()
    axes[0, 0].figure.legend(handles, [f"class {name}" for name in names], loc="outside lower center", ncols=4, fontsize="small")
    return axes


def plot_uncertainty(classifier: MarginalizedClassifier, X: Any, *, grid: Grid | None = None) -> NDArray[Any]:
    """Draw the entropy of the prediction over the plane, and its two parts: the head's and the representation's. Axes [3]

    The parts sum to the total; see `MarginalizedClassifier.predict_uncertainty`. The rows X are drawn on top.
    """
    grid = Grid.around(X) if grid is None else grid
    uncertainty = classifier.predict_uncertainty(grid.rows_like(X))
    titles = ("total", "from the head", "from the representation")
    return plot_maps(np.column_stack(uncertainty), grid, X, titles=titles, label="entropy (nats)")


def _predict(classifiers: Mapping[str, Any], positive: Any, places: Any) -> tuple[Array, Array]:
    """Return each classifier's probability of the class, and its standard deviation. [n², classifiers] each"""
    of_class: list[tuple[Array, Array]] = []
    for name, classifier in classifiers.items():
        classes = classifier.classes_.tolist()
        if positive not in classes:
            raise ValueError(f"The classifier {name} knows no class {positive!r}, only {classes}: choose another with positive=.")
        if isinstance(classifier, MarginalizedClassifier):  # both from one evaluation of the draws
            found = classifier.predict_distribution(places)
            proba, std = found.proba, found.proba_std
        else:
            proba, std = classifier.predict_proba(places), classifier.predict_proba_std(places)
        column = classes.index(positive)
        of_class.append((proba[:, column], std[:, column]))
    all_proba, all_std = (np.column_stack(columns) for columns in zip(*of_class, strict=True))
    return all_proba, all_std


def _draw_crosses(ax: Axes, rows: Array, groups: list[RowGroup]) -> None:
    """Draw labeled rows in the color of their class, with an outline that separates them from the map."""
    from matplotlib.patheffects import withStroke

    outline = [withStroke(linewidth=2.6, foreground="white")]
    for group in groups:
        x, y = rows[group.rows].T
        ax.scatter(x, y, s=24, marker="x", color=group.style.color, linewidths=1.3, path_effects=outline, label=group.name)


def new_panels(n_rows: int, titles: Sequence[str]) -> NDArray[Any]:
    """Return empty panels for maps, in a new figure, with a title above each column. [n_rows, titles]"""
    figure = new_figure(PANEL_SIZE * len(titles) + COLORBAR_SIZE, PANEL_SIZE * n_rows + TITLE_SIZE)
    axes = figure.subplots(n_rows, len(titles), squeeze=False, sharex=True, sharey=True)
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_title(title)
    return axes


def draw_maps(axes: NDArray[Any], values: Array, grid: Grid, *, label: str, scale: ColorScale) -> None:
    """Draw a map of each column of `values` [n², panels] on one row of axes, and a color bar beside them."""
    for ax, column in zip(axes, values.T, strict=True):
        image = ax.imshow(
            column.reshape(grid.n_points, grid.n_points),
            origin="lower",
            extent=grid.extent,
            aspect="auto",
            interpolation="bilinear",
            cmap=scale.colors,
            vmin=scale.low,
            vmax=scale.high,
        )
        ax.set(xlim=(grid.low[0], grid.high[0]), ylim=(grid.low[1], grid.high[1]), box_aspect=1)
        ax.locator_params(nbins=4, prune="both")
    figure: Figure = axes[0].figure
    figure.colorbar(image, ax=list(axes), label=label, shrink=0.9, aspect=15, pad=0.08 / len(axes))


def draw_rows(ax: Axes, X: Any) -> None:
    """Draw the rows as small white points with a black edge, so that they are seen on any color."""
    x, y = check_plane(X).T
    ax.scatter(x, y, s=3, color="white", edgecolors="black", linewidths=0.25)


def check_plane(X: Any) -> Array:
    """Return rows with two columns. Raise ValueError for others. [n, 2]"""
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2 or len(rows) == 0:
        raise ValueError(f"A map over the plane needs rows with two columns, got shape {rows.shape}; for others there is plot_pairs.")
    return rows
