"""Pictures of representation functions on the plane. Needs matplotlib: `pip install "gpssl[cli]"`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


class Grid(NamedTuple):
    """A square grid of points around the origin."""

    points: Array
    """[n², 2]"""
    extent: tuple[float, float, float, float]
    n_points: int

    @classmethod
    def around_origin(cls, half_width: float, n_points: int = 121) -> Grid:
        """N × n points in [−half_width, half_width]²."""
        axis = np.linspace(-half_width, half_width, n_points)
        points = np.column_stack([grid.ravel() for grid in np.meshgrid(axis, axis)])
        return cls(points, (-half_width, half_width, -half_width, half_width), n_points)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that is not tied to any screen."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('Pictures need matplotlib: pip install "gpssl[cli]".') from error
    return Figure(figsize=(width, height), layout="constrained", dpi=120)


def plot_panels(values: Array, titles: list[str], grid: Grid, rows: Array, *, label: str, diverging: bool) -> Figure:
    """One map per column of `values` [n², panels], with the training rows on top and one colour scale for all."""
    n_panels = values.shape[1]
    figure = new_figure(2.5 * n_panels + 1.4, 3.2)
    axes = figure.subplots(1, n_panels, squeeze=False)[0]
    low, high = (-np.abs(values).max(), np.abs(values).max()) if diverging else (values.min(), values.max())
    for axis, column, title in zip(axes, values.T, titles, strict=True):
        image = axis.imshow(
            column.reshape(grid.n_points, grid.n_points),
            origin="lower",
            extent=grid.extent,
            cmap="RdBu_r" if diverging else "viridis",
            vmin=low,
            vmax=high,
        )
        axis.scatter(*rows.T, s=3, color="black" if diverging else "white", alpha=0.5, linewidths=0)
        axis.set(title=title, xlim=grid.extent[:2], ylim=grid.extent[2:], xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    figure.colorbar(image, ax=list(axes), label=label, shrink=0.85)
    return figure
