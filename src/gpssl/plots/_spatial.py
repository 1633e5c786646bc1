"""Draw slices of tissue in several panels: representation, labels, types and their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..spatial._fields import need, numbers, quoted
from ._figures import MAX_DIMENSIONS, ColorScale, choose_dimensions, dimension_name, new_figure
from ._spots import (
    AXIS_NAMES,
    BAR_WIDTH,
    TISSUE,
    TITLE_HEIGHT,
    Classes,
    add_key,
    dominant_types,
    draw_spots,
    height_over_width,
    key_width,
    labels_of,
    places_of,
)

Array = NDArray[np.float64]

Column = tuple[str, Classes | Array, ColorScale | None]
"""The title of a column of panels, what is drawn in them, and in which colors."""

BASES = ("tsne", TISSUE)
PANEL_WIDTH = 2.6
AXIS_NAME_WIDTH = 0.3
MOST_COLUMNS = 5
PROBABILITY = ColorScale("viridis", 0.0, 1.0)


def plot_dimensions(
    adata: Any,
    *,
    key: str = "gpssl",
    basis: str = TISSUE,
    values: Literal["mean", "std"] = "mean",
    dimensions: Sequence[int] | None = None,
) -> NDArray[Any]:
    """Draw each dimension of the representation, or its standard deviation, over the tissue or another plane, in the same colors.

    Parameters
    ----------
    adata
        After `gpssl.spatial.embed`.
    key
        Its `key_added`.
    basis
        A key of `obsm`, with or without its "X_".
    values
        "mean" or "std".
    dimensions
        Which dimensions, counted from 0; by default all.

    Returns
    -------
    axes
        [dimensions]
    """
    if values not in ("mean", "std"):
        raise ValueError(f'values must be "mean" or "std", got {values!r}.')
    name = f"X_{key}" if values == "mean" else f"X_{key}_std"
    table = numbers(adata, name, hint=f" Call gpssl.spatial.embed(adata, key_added={key!r}) first.")
    chosen = choose_dimensions(table.shape[1], dimensions)
    shown = table[:, chosen]
    scale = ColorScale.symmetric(shown) if values == "mean" else ColorScale.rising(shown)
    n_columns = min(len(chosen), MOST_COLUMNS)
    panels = _panels(adata, [basis] * -(-len(chosen) // n_columns), n_columns, room=BAR_WIDTH)
    for ax, column, dimension in zip(panels.flat, shown.T, chosen, strict=False):
        draw_spots(adata, column, basis, ax, scale)
        ax.set_title(dimension_name(dimension))
    for ax in panels.flat[len(chosen) :]:
        ax.remove()
    axes = panels.ravel()[: len(chosen)]
    _add_shared_bar(axes, "mean" if values == "mean" else "standard deviation")
    return axes


def plot_composition(adata: Any, *, key: str = "gpssl", of: str | None = None, bases: Sequence[str] = BASES) -> NDArray[Any]:
    """Draw the dominant type, the standard deviation of its probability, and the probability of one type.

    Parameters
    ----------
    adata
        After `gpssl.spatial.composition`.
    key
        Its `key`.
    of
        The type of the last column, by default the most frequent dominant one.
    bases
        Keys of `obsm`, with or without their "X_": one row of panels for each.

    Returns
    -------
    axes
        [bases, 3]
    """
    proba, std = _table(adata, f"{key}_proba"), _table(adata, f"{key}_proba_std")
    dominant = proba.to_numpy().argmax(axis=1)
    of = str(proba.columns[np.bincount(dominant).argmax()]) if of is None else of
    if of not in proba:
        raise ValueError(f"of={of!r} is no type; the types are {quoted(proba.columns)}.")
    classes, of_dominant = dominant_types(adata, key, proba), std.to_numpy()[np.arange(len(std)), dominant]
    columns: list[Column] = [
        ("dominant type", classes, None),
        ("its standard deviation", of_dominant, None),
        (f"probability of {of}", proba[of].to_numpy(), PROBABILITY),
    ]
    axes = _draw_columns(adata, bases, columns, room=key_width(classes) + 2 * BAR_WIDTH)
    for row in axes:
        for ax, (_, values, _) in zip(row[1:], columns[1:], strict=True):
            add_key(ax, values)
    add_key(axes[0, 0], classes)
    return axes


def plot_types(adata: Any, *, key: str = "gpssl", types: Sequence[str] | None = None, bases: Sequence[str] = BASES) -> NDArray[Any]:
    """Draw the probability, or the proportion, of each type.

    Parameters
    ----------
    adata
        After `gpssl.spatial.composition`, or with another data frame in `obsm` that has a column for each type.
    key
        The `key` of `composition`, or the name of the data frame, such as "proportions".
    types
        Which types, by default all.
    bases
        Keys of `obsm`, with or without their "X_": one row of panels for each.

    Returns
    -------
    axes
        [bases, types]
    """
    table = _table(adata, key if isinstance(adata.obsm.get(key), need("pandas").DataFrame) else f"{key}_proba")
    types = list(table.columns) if types is None else list(types)
    unknown = [name for name in types if name not in table]
    if unknown:
        raise ValueError(f"{quoted(unknown)} are no types; the types are {quoted(table.columns)}.")
    if not 1 <= len(types) <= MAX_DIMENSIONS:
        raise ValueError(f"{len(types)} types do not fit into one picture: choose 1 to {MAX_DIMENSIONS} with types=.")
    columns: list[Column] = [(str(name), table[name].to_numpy(), PROBABILITY) for name in types]
    axes = _draw_columns(adata, bases, columns, room=BAR_WIDTH)
    _add_shared_bar(axes.ravel(), "probability")
    return axes


def plot_labels(adata: Any, label_key: str, *, bases: Sequence[str] = BASES) -> NDArray[Any]:
    """Draw the labeled spots in the colors of their classes, the others gray.

    Parameters
    ----------
    adata
        With labels in `obs`.
    label_key
        The column of the labels: text, categories or whole numbers; missing (NaN, None, −1 or a word such as "NA") at unlabeled spots.
    bases
        Keys of `obsm`, with or without their "X_": one row for each.

    Returns
    -------
    axes
        [bases, 1]
    """
    classes = labels_of(adata, label_key)
    axes = _draw_columns(adata, bases, [(label_key, classes, None)], room=key_width(classes))
    add_key(axes[0, 0], classes)
    return axes


def _draw_columns(adata: Any, bases: Sequence[str], columns: Sequence[Column], *, room: float) -> NDArray[Any]:
    """Draw the values of each column in every basis, with its title at the top. [bases, columns]"""
    axes = _panels(adata, bases, len(columns), room=room)
    for row, basis in zip(axes, bases, strict=True):
        for ax, (_, values, scale) in zip(row, columns, strict=True):
            draw_spots(adata, values, basis, ax, scale)
    for ax, (title, _, _) in zip(axes[0], columns, strict=True):
        ax.set_title(title)
    return axes


def _panels(adata: Any, bases: Sequence[str], n_columns: int, *, room: float) -> NDArray[Any]:
    """Return empty panels, one row for each basis in the shape of its plane, with room for legends and color bars. [bases, n_columns]"""
    if isinstance(bases, str) or len(bases) == 0:
        raise ValueError(f'bases must be a list of names such as ("tsne", "spatial"), got {bases!r}.')
    heights = [PANEL_WIDTH * height_over_width(places_of(adata, basis)) for basis in bases]
    figure = new_figure(PANEL_WIDTH * n_columns + AXIS_NAME_WIDTH + room, sum(heights) + TITLE_HEIGHT)
    axes = figure.subplots(len(bases), n_columns, squeeze=False, gridspec_kw={"height_ratios": heights})
    for ax, basis in zip(axes[:, 0], bases, strict=True):
        name = basis.removeprefix("X_")
        ax.set_ylabel(AXIS_NAMES.get(name, name))
    return axes


def _add_shared_bar(axes: NDArray[Any], label: str) -> None:
    """Add one color bar to the right of all panels."""
    drawn = axes[0].collections[-1]
    bar = axes[0].figure.colorbar(drawn, ax=list(axes), label=label, shrink=0.9, aspect=25, pad=0.02)
    bar.outline.set_visible(False)


def _table(adata: Any, name: str) -> Any:
    """Return a data frame of `obsm` with a column for each type."""
    if not isinstance(adata.obsm.get(name), need("pandas").DataFrame):
        raise ValueError(
            f"There is no data frame obsm[{name!r}]; obsm has {quoted(adata.obsm)}: call gpssl.spatial.composition(adata, label_key) first."
        )
    return adata.obsm[name]
