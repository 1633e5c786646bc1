"""Maps of a representation of the plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..estimator import GPSSL
from .figures import choose_dimensions, dimension_name
from .plane import ColorScale, Grid, check_plane, draw_maps, draw_rows, new_panels


def plot_representation(ssl: GPSSL, X: Any, *, grid: Grid | None = None, dimensions: Sequence[int] | None = None) -> NDArray[Any]:
    """Posterior mean (top) and standard deviation (bottom) of each representation dimension over the plane.

    Parameters
    ----------
    ssl
        Fitted to rows with two columns.
    X
        Rows to draw on top. [n, 2]
    grid
        Where to look, by default around X.
    dimensions
        Which dimensions, counted from 0; by default all.

    Returns
    -------
    axes
        [2, dimensions]
    """
    check_plane(X)
    grid = Grid.around(X) if grid is None else grid
    places = grid.rows_like(X)
    mean, std = np.asarray(ssl.transform(places)), ssl.std(places)
    chosen = choose_dimensions(mean.shape[1], dimensions)
    axes = new_panels(2, len(chosen))
    draw_maps(axes[0], mean[:, chosen], grid, label="mean", scale=ColorScale.symmetric(mean[:, chosen]))
    draw_maps(axes[1], std[:, chosen], grid, label="standard deviation", scale=ColorScale.rising(std[:, chosen]))
    for ax, dimension in zip(axes[0], chosen, strict=True):
        ax.set_title(dimension_name(dimension))
    for ax in axes.flat:
        draw_rows(ax, X)
    return axes
