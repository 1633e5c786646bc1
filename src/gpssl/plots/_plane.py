"""Draw maps of functions over the plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._figures import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

MARGIN = 0.25
"""The share of the rows' range that is added on each side: maps show what happens beyond the rows."""

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


class ColorScale(NamedTuple):
    """The colors that stand for values from low to high."""

    colors: str
    low: float
    high: float

    @classmethod
    def symmetric(cls, values: Array) -> ColorScale:
        """Return blue below zero, white at zero, red above."""
        largest = float(np.abs(values).max())
        return cls("RdBu_r", -largest, largest)

    @classmethod
    def rising(cls, values: Array) -> ColorScale:
        """Return colors from dark to bright."""
        return cls("viridis", float(values.min()), float(values.max()))


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
    axes = new_panels(1, len(titles))[0]
    draw_maps(axes, values, grid, label=label, scale=ColorScale.symmetric(values) if diverging else ColorScale.rising(values))
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title)
        if X is not None:
            draw_rows(ax, X)
    return axes


def new_panels(n_rows: int, n_columns: int) -> NDArray[Any]:
    """Return empty panels for maps, in a new figure. [n_rows, n_columns]"""
    figure = new_figure(PANEL_SIZE * n_columns + COLORBAR_SIZE, PANEL_SIZE * n_rows + TITLE_SIZE)
    return figure.subplots(n_rows, n_columns, squeeze=False, sharex=True, sharey=True)


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
