"""Draw the dimensions of a representation against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._validation import seed_from
from ..estimator import GPSSL
from ._figures import GRAY, RowGroup, Style, choose_dimensions, dimension_name, frame, group_by_class, new_figure, style_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

PANEL_SIZE = 2.2
TICKS_SIZE = 0.6
LEGEND_SIZE = 1.2
LEGEND_LINES = 10


def plot_pairs(
    ssl: GPSSL,
    X: Any,
    labels: Any = None,
    *,
    dimensions: Sequence[int] | None = None,
    n_ellipses: int = 25,
    random_state: Any = 0,
) -> NDArray[Any]:
    """Draw each pair of representation dimensions: where the rows are, and how uncertain that is.

    A point is a row's posterior mean. The ellipse around some points extends one posterior standard deviation in each dimension.

    Parameters
    ----------
    ssl
        A fitted representation.
    X
        Rows.
    labels
        The class of each row; rows marked as unlabeled are gray.
    dimensions
        Which dimensions, counted from 0; by default all.
    n_ellipses
        The largest number of rows with an ellipse, which are chosen at random.
    random_state
        The seed of that choice.

    Returns
    -------
    axes
        Panel [j, k] shows dimension j + 1 against k; None above the diagonal. [dimensions − 1, dimensions − 1]
    """
    mean, std = ssl.mean_and_std(X)
    chosen = choose_dimensions(mean.shape[1], dimensions)
    if len(chosen) < 2:
        raise ValueError("A pair needs two dimensions: raise n_components, or choose at least two with dimensions=.")
    groups = _group_rows(labels, len(mean))
    order = np.random.default_rng(seed_from(random_state)).permutation(len(mean))
    with_ellipse = order[:n_ellipses]
    axes = _triangle_of_axes(len(chosen) - 1, space=LEGEND_SIZE if labels is not None and len(chosen) == 2 else 0.0)
    for j, k in zip(*np.tril_indices(len(chosen) - 1), strict=True):
        pair = chosen[[k, j + 1]]
        _draw_pair(axes[j, k], mean[:, pair], std[:, pair], groups, with_ellipse)
        frame(
            axes[j, k],
            xlabel=dimension_name(pair[0]) if j == len(axes) - 1 else "",
            ylabel=dimension_name(pair[1]) if k == 0 else "",
        )
        axes[j, k].locator_params(nbins=4)
    if labels is not None:
        _add_legend_beside(axes[0, 0], len(groups), takes_space=len(axes) == 1)
    return axes


def _group_rows(labels: Any, n_rows: int) -> list[RowGroup]:
    """Return the rows without a label, which are drawn first so that they cover no others, and those of each class."""
    if labels is None:
        return [RowGroup("rows", style_of(0), np.arange(n_rows))]
    groups = group_by_class(labels, n_rows)
    without = np.setdiff1d(np.arange(n_rows), np.concatenate([group.rows for group in groups]))
    return [RowGroup("no label", Style(GRAY, "-", "."), without), *groups] if len(without) > 0 else groups


def _triangle_of_axes(n: int, space: float) -> NDArray[Any]:
    """Return panels on and below the diagonal, with space to the right of them. [n, n]"""
    figure = new_figure(PANEL_SIZE * n + TICKS_SIZE + space, PANEL_SIZE * n + TICKS_SIZE)
    axes = figure.subplots(n, n, squeeze=False, sharex="col", sharey="row")
    for place in zip(*np.triu_indices(n, 1), strict=True):
        axes[place].remove()
        axes[place] = None
    return axes


def _draw_pair(ax: Axes, mean: Array, std: Array, groups: list[RowGroup], with_ellipse: NDArray[np.intp]) -> None:
    """Draw points and ellipses of two dimensions: `mean` and `std` are [n, 2]."""
    from matplotlib.collections import EllipseCollection

    for group in groups:
        rows = np.intersect1d(group.rows, with_ellipse)
        ellipses = EllipseCollection(
            widths=2 * std[rows, 0],
            heights=2 * std[rows, 1],
            angles=np.zeros(len(rows)),
            units="xy",
            offsets=mean[rows],
            offset_transform=ax.transData,
            facecolors="none",
            edgecolors=group.style.color,
            linewidths=0.8,
            alpha=0.5,
        )
        ax.add_collection(ellipses, autolim=False)
        x, y = mean[group.rows].T
        ax.scatter(x, y, s=7, color=group.style.color, marker=group.style.marker, alpha=0.6, linewidths=0, label=group.name)
    # Ellipses do not widen the axes by themselves.
    ax.update_datalim(np.vstack([mean[with_ellipse] - std[with_ellipse], mean[with_ellipse] + std[with_ellipse]]))


def _add_legend_beside(ax: Axes, n_entries: int, *, takes_space: bool) -> None:
    """Add a legend to the right of the first panel, where no other panel is."""
    n_columns = -(-n_entries // LEGEND_LINES)
    legend = ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize="small", markerscale=2, ncols=n_columns)
    legend.set_in_layout(takes_space)
