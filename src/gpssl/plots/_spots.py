"""Draw spots and histology in one panel: circles on the image, and beside it what their colors stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data._labels import UNLABELED_WORDS
from ..spatial._fields import check_anndata, column, need, numbers, quoted, spacing
from ..spatial._images import Picture, find_picture
from ._figures import COLORS, ColorScale, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

TISSUE = "spatial"
RESOLUTIONS = ("hires", "lowres")

FIRST_CALL = {
    "tsne": "Call scanpy.tl.tsne(adata) first",
    "umap": "Call scanpy.pp.neighbors(adata) and scanpy.tl.umap(adata) first",
    "pca": "Call scanpy.pp.pca(adata) first",
    "spatial": "Readers such as gpssl.spatial.read_visium put the places of the spots there",
}

UNLABELED_COLOR = "#d0d0d0"
"""The color of spots without a label or a number, lighter than any color of a class."""
UNLABELED_NAME = "unlabeled"
LEGEND_ROWS = 14
BAR_WIDTH = 0.8
"""The width of a color bar with its numbers, in inches."""
LETTER_WIDTH, MARKER_WIDTH = 0.08, 0.35
"""The widths of a letter and of a marker in a legend, in inches."""
PANEL = 4.0
TITLE_HEIGHT = 0.5
FILL = 0.6
"""The diameter of points that form no grid, relative to the side of the square that each has if they fill the panel evenly."""
AXIS_NAMES = {"tsne": "t-SNE", "umap": "UMAP", "pca": "PCA", "spatial": "tissue"}


def plot_spots(
    adata: Any,
    color: str | ArrayLike,
    *,
    basis: str = TISSUE,
    ax: Axes | None = None,
    image: bool = True,
    size: float | None = None,
    title: str | None = None,
    scale: ColorScale | None = None,
    library_id: str | None = None,
) -> Axes:
    """Draw each spot in the color of its class or number, in tissue coordinates on the histology image, or in another plane.

    Spots without a class or number are gray. The legend or color bar is beside the panel. Slices that were concatenated share one plane
    and would be drawn on top of each other: draw them one by one, such as `adata[adata.obs["slice"] == "one"]`.

    Parameters
    ----------
    adata
        With the places of its spots in `obsm`.
    color
        A column of `obs`, or one value for each spot: numbers, or classes (text, categories, yes or no). Colors of classes are those of
        `uns["<column>_colors"]` if scanpy has written them.
    basis
        A key of `obsm`, with or without its "X_".
    ax
        Where to draw, by default in a new figure.
    image
        Whether to draw the histology image behind the spots, if there is one.
    size
        The diameter of the spots in units of the coordinates, by default the distance between neighbors in tissue.
    title
        By default the name of the column.
    scale
        The colors of numbers, by default from the smallest to the largest.
    library_id
        Which image of `uns["spatial"]`; by default the only one, and none if there are several.
    """
    values = values_of(adata, color)
    if ax is None:
        ax = new_panel(places_of(adata, basis), key_width(values))
    draw_spots(adata, values, basis, ax, scale, image=image, library_id=library_id, size=size)
    ax.set_title(color if title is None and isinstance(color, str) else title or "")
    add_key(ax, values)
    return ax


def plot_histology(adata: Any, *, ax: Axes | None = None, library_id: str | None = None, outline: str | None = "black") -> Axes:
    """Draw the histology image, with the spots outlined.

    Parameters
    ----------
    adata
        With an image in `uns["spatial"]`.
    ax
        Where to draw, by default in a new figure.
    library_id
        Which image, if there are several.
    outline
        The color of the outlines, None for the image alone.
    """
    picture = find_picture(adata, library_id, *RESOLUTIONS)
    if picture is None:
        names = quoted(adata.uns.get(TISSUE, {}))
        raise ValueError(
            f'There is no single image: uns["spatial"] has {names}. Readers put it there with its scale factor, such as '
            "tissue_hires_scalef; of several, name one with library_id=..."
        )
    places = places_of(adata, TISSUE)
    left, right, bottom, top = picture.extent
    ax = new_panel(np.array([[left, top], [right, bottom]]), 0.0) if ax is None else ax
    distance = spacing(places)[0]
    prepare(ax, places, distance, TISSUE, picture)
    ax.set(xlim=(left, right), ylim=(bottom, top))
    if outline is not None:
        add_circles(ax, places, 0.7 * distance, {"facecolor": "none", "edgecolor": outline, "linewidth": 0.5})
    return ax


def draw_spots(
    adata: Any,
    values: Classes | Array,
    basis: str,
    ax: Axes,
    scale: ColorScale | None = None,
    *,
    image: bool = True,
    library_id: str | None = None,
    size: float | None = None,
) -> None:
    """Draw the spots alone, without a legend or color bar, in tissue on the image if there is one."""
    places = places_of(adata, basis)
    diameter = _diameter(places, basis) if size is None else size
    prepare(ax, places, diameter, basis, find_picture(adata, library_id, *RESOLUTIONS) if image else None)
    known = values.codes >= 0 if isinstance(values, Classes) else ~np.isnan(values)
    if not known.all():
        add_circles(ax, places[~known], diameter, {"facecolor": UNLABELED_COLOR})
    if isinstance(values, Classes):
        add_circles(ax, places[known], diameter, {"facecolor": [values.colors[code] for code in values.codes[known]]})
    elif known.any():
        scale = ColorScale.rising(values[known]) if scale is None else scale
        add_circles(ax, places[known], diameter, {"array": values[known], "cmap": scale.colors, "clim": (scale.low, scale.high)})


def add_key(ax: Axes, values: Classes | Array) -> None:
    """Add what the colors stand for, to the right of the panel: a color bar, or a legend of the classes that occur."""
    if not isinstance(values, Classes):
        if not np.isnan(values).all():
            ax.figure.colorbar(ax.collections[-1], ax=ax, pad=0.02, aspect=22).outline.set_visible(False)
        return
    from matplotlib.lines import Line2D

    shown = values.occurring + ([(UNLABELED_NAME, UNLABELED_COLOR)] if (values.codes < 0).any() else [])
    handles = [Line2D([], [], linestyle="", marker="o", markersize=5, color=color, label=name) for name, color in shown]
    ax.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(1.02, 0.5),
        fontsize="small",
        frameon=False,
        ncols=-(-len(handles) // LEGEND_ROWS),
        handletextpad=0.2,
        borderaxespad=0.0,
    )


def key_width(values: Classes | Array) -> float:
    """Return the width of the legend or color bar, in inches: panels with equal scales cannot shrink in one direction for it."""
    if not isinstance(values, Classes):
        return BAR_WIDTH
    names = [*(name for name, _ in values.occurring), UNLABELED_NAME]
    return -(-len(names) // LEGEND_ROWS) * (MARKER_WIDTH + LETTER_WIDTH * max(map(len, names)))


def new_panel(places: Array, room: float) -> Axes:
    """Return a panel of the shape of the plane in a new figure, with some room to its right."""
    figure = new_figure(PANEL + room, PANEL * height_over_width(places) + TITLE_HEIGHT)
    return figure.add_subplot()


def height_over_width(places: Array) -> float:
    """Return the shape of the plane, within what fits on a page."""
    width, height = np.maximum(np.ptp(places, axis=0), 1e-12)
    return float(np.clip(height / width, 0.4, 2.0))


def prepare(ax: Axes, places: Array, diameter: float, basis: str, picture: Picture | None) -> None:
    """Prepare an empty panel around the spots with equal scales on both axes, on the image, y downwards in tissue."""
    (left, low), (right, high) = places.min(axis=0) - diameter, places.max(axis=0) + diameter
    if picture is not None and basis == TISSUE:
        ax.imshow(picture.pixels, extent=picture.extent, aspect="equal", interpolation="bilinear")
    ax.set(xlim=(left, right), ylim=(high, low) if basis == TISSUE else (low, high), aspect="equal", xticks=[], yticks=[])
    ax.set_anchor("W")  # empty space is to the right, where the legend is
    ax.spines[:].set_color("#cccccc")


def add_circles(ax: Axes, places: Array, diameter: float, style: Mapping[str, Any]) -> None:
    """Add circles whose diameter is in units of the coordinates, so that neighbors touch at any size of the figure."""
    from matplotlib.collections import EllipseCollection

    sizes = np.full(len(places), diameter)
    circles = EllipseCollection(sizes, sizes, np.zeros(len(places)), units="xy", offsets=places, offset_transform=ax.transData)
    circles.set(**({"edgecolor": "none", "linewidth": 0.0, "rasterized": True} | dict(style)))
    ax.add_collection(circles, autolim=False)


def _diameter(places: Array, basis: str) -> float:
    if basis == TISSUE:
        return spacing(places)[0]
    area = np.prod(np.maximum(np.ptp(places, axis=0), 1e-12))
    return float(FILL * np.sqrt(area / len(places)))


class Classes(NamedTuple):
    """The class of each spot."""

    names: list[str]
    codes: NDArray[np.intp]
    """−1 for none. [n]"""
    colors: list[Any]
    """One for each name."""

    @property
    def occurring(self) -> list[tuple[str, Any]]:
        """Names and colors of the classes that some spot has."""
        return [(name, color) for k, (name, color) in enumerate(zip(self.names, self.colors, strict=True)) if (self.codes == k).any()]


def places_of(adata: Any, basis: str) -> Array:
    """Return the first two columns of a field of `obsm`. [n, 2]"""
    check_anndata(adata)
    name = basis.removeprefix("X_")
    key = next((key for key in (basis, name, f"X_{name}") if key in adata.obsm), basis)
    places = numbers(adata, key, hint=f" {FIRST_CALL.get(name, 'Name a field of obsm')}.")
    if places.shape[1] < 2:
        raise ValueError(f"obsm[{key!r}] has one column: two coordinates of each spot are needed to draw it.")
    return places[:, :2]


def values_of(adata: Any, color: str | ArrayLike) -> Classes | Array:
    """Return the classes or numbers of a column of `obs`, or of what was given for each spot."""
    check_anndata(adata)
    pandas = need("pandas")
    if isinstance(color, str):
        values = column(adata.obs, color, "color", "obs")
    else:
        values = pandas.Series(color.ravel() if isinstance(color, np.ndarray) else color)
    if len(values) != adata.n_obs:
        raise ValueError(f"There are {adata.n_obs} spots and {len(values)} values: pass one for each spot, or the name of a column of obs.")
    kind = pandas.api.types
    if kind.is_numeric_dtype(values.dtype) and not kind.is_bool_dtype(values.dtype):
        return np.asarray(values, dtype=np.float64)
    return classes_of(values, adata.uns.get(f"{color}_colors") if isinstance(color, str) else None)


def labels_of(adata: Any, label_key: str) -> Classes:
    """Return the classes of labels, which may be numbers."""
    labels = column(adata.obs, label_key, "label_key", "obs").astype("category").cat
    colors, categories = adata.uns.get(f"{label_key}_colors"), list(labels.categories)
    missing = [name for name in categories if str(name) in UNLABELED_WORDS]
    if colors is not None and len(colors) >= len(categories):
        colors = [color for name, color in zip(categories, colors, strict=False) if name not in missing]
    return classes_of(labels.remove_categories(missing), colors)


def dominant_types(adata: Any, key: str, proba: Any) -> Classes:
    """Return the likeliest type of each spot. Types without a labeled spot have no column in `proba`, but keep their color."""
    pandas, name = need("pandas"), f"{key}_label"
    every = list(adata.obs[name].cat.categories) if name in adata.obs and isinstance(adata.obs[name].dtype, pandas.CategoricalDtype) else []
    every += [type_name for type_name in proba.columns if type_name not in every]
    likeliest = proba.columns[proba.to_numpy().argmax(axis=1)]
    return classes_of(likeliest.to_series().astype(pandas.CategoricalDtype(every)), adata.uns.get(f"{name}_colors"))


def classes_of(values: Any, colors: Any = None) -> Classes:
    """Return the classes of a pandas Series, with the colors given or, if these are too few, with default colors.

    Default colors follow the alphabetical order of all categories, with those that no spot has, so that a class looks the same in a column
    with another order of classes, or with fewer of them.
    """
    categories = values.astype("category").cat
    names = [str(name) for name in categories.categories]
    if colors is None or len(colors) < len(names):
        colors = [color for _, color in sorted(zip(np.argsort(names, kind="stable"), class_colors(len(names)), strict=True))]
    return Classes(names, categories.codes.to_numpy().astype(np.intp), list(colors[: len(names)]))


def class_colors(n: int) -> list[Any]:
    """Return colors that can be told apart: Okabe and Ito's if there are enough, else matplotlib's twenty, else a rainbow."""
    from matplotlib import colormaps

    if n <= len(COLORS):
        return list(COLORS[:n])
    if n <= 20:
        return [colormaps["tab20"](k) for k in range(n)]
    return [colormaps["turbo"](k / (n - 1)) for k in range(n)]
