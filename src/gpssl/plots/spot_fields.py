"""What pictures of spots need from AnnData: places, the image behind them, and classes or numbers with their colors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..spatial.fields import check_anndata, column, listed
from ..spatial.images import Picture, picture_of
from ..spatial.packages import need
from .figures import COLORS

Array = NDArray[np.float64]

TISSUE = "spatial"

NO_CLASS = ("", "nan", "-1", "-1.0")
"""What tables have in the place of a missing label."""

FIRST_CALL = {
    "tsne": "call scanpy.tl.tsne(adata) first",
    "umap": "call scanpy.pp.neighbors(adata) and scanpy.tl.umap(adata) first",
    "pca": "call scanpy.pp.pca(adata) first",
    "spatial": "readers such as gpssl.spatial.read_visium put the places of the spots there",
}


class Classes(NamedTuple):
    """Spots by class."""

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
    """The first two columns of a field of `obsm`. [n, 2]"""
    check_anndata(adata)
    name = basis.removeprefix("X_")
    found = [key for key in (basis, name, f"X_{name}") if key in adata.obsm]
    if not found:
        advice = FIRST_CALL.get(name, "name a field of obsm")
        raise ValueError(f"There is no obsm[{basis!r}] to draw the spots in; obsm has {listed(adata.obsm)}: {advice}.")
    places = np.asarray(adata.obsm[found[0]], dtype=np.float64)
    if places.ndim != 2 or places.shape[1] < 2 or not np.isfinite(places[:, :2]).all():
        raise ValueError(f"obsm[{found[0]!r}] must be two finite coordinates for each spot, got shape {places.shape}.")
    return places[:, :2]


def find_picture(adata: Any, library_id: str | None = None) -> Picture | None:
    """The image of `uns["spatial"]`, as scanpy keeps it: the finer one of which the scale is known."""
    check_anndata(adata)
    libraries = adata.uns.get(TISSUE, {})
    if library_id is not None and library_id not in libraries:
        raise ValueError(f'library_id={library_id!r} is not in uns["spatial"], which has {listed(libraries)}.')
    if library_id is None and len(libraries) != 1:
        return None
    chosen = next(iter(libraries)) if library_id is None else library_id
    return picture_of(libraries, chosen, "hires") or picture_of(libraries, chosen, "lowres")


def values_of(adata: Any, color: str | ArrayLike) -> Classes | Array:
    """The classes or numbers of a column of `obs`, or of what was given for each spot."""
    check_anndata(adata)
    pandas = need("pandas")
    if isinstance(color, str):
        if color not in adata.obs:
            raise ValueError(f"color={color!r} is no column of obs; the columns are {listed(adata.obs.columns)}.")
        values = adata.obs[color]
    else:
        values = pandas.Series(color) if not hasattr(color, "dtype") or np.ndim(color) == 1 else pandas.Series(np.ravel(color))
    if len(values) != adata.n_obs:
        raise ValueError(f"There are {adata.n_obs} spots and {len(values)} values: pass one for each spot, or the name of a column of obs.")
    kind = pandas.api.types
    if kind.is_numeric_dtype(values.dtype) and not kind.is_bool_dtype(values.dtype):
        return np.asarray(values, dtype=np.float64)
    return classes_of(values, adata.uns.get(f"{color}_colors") if isinstance(color, str) else None)


def labels_of(adata: Any, label_key: str) -> Classes:
    """The classes of labels, which numbers may stand for too."""
    labels = column(adata.obs, label_key, "label_key", "obs").astype("category").cat
    colors, categories = adata.uns.get(f"{label_key}_colors"), list(labels.categories)
    missing = [name for name in categories if str(name) in NO_CLASS]
    if colors is not None and len(colors) >= len(categories):
        colors = [color for name, color in zip(categories, colors, strict=False) if name not in missing]
    return classes_of(labels.remove_categories(missing), colors)


def dominant_types(adata: Any, key: str, proba: Any) -> Classes:
    """The likeliest type of each spot, among all types that labels know: one without a labeled spot has no column, but a color."""
    name = f"{key}_label"
    every = list(adata.obs[name].cat.categories) if name in adata.obs and hasattr(adata.obs[name], "cat") else []
    every += [type_name for type_name in proba.columns if type_name not in every]
    likeliest = proba.columns[proba.to_numpy().argmax(axis=1)]
    return classes_of(likeliest.to_series().astype(need("pandas").CategoricalDtype(every)), adata.uns.get(f"{name}_colors"))


def classes_of(values: Any, colors: Any = None) -> Classes:
    """The classes of a pandas Series, with their colors: those given or, where they do not fit, those of the house.

    The latter go by the names of all categories in alphabetical order, also of those without a spot, so that a class looks the same in a
    column that has its classes in another order, or fewer of them at its spots.
    """
    categories = values.astype("category").cat
    names = [str(name) for name in categories.categories]
    if colors is None or len(colors) < len(names):
        colors = [color for _, color in sorted(zip(np.argsort(names, kind="stable"), class_colors(len(names)), strict=True))]
    return Classes(names, categories.codes.to_numpy().astype(np.intp), list(colors[: len(names)]))


def class_colors(n: int) -> list[Any]:
    """Colors that are told apart: Okabe and Ito's as far as they go, then matplotlib's twenty, then a rainbow."""
    from matplotlib import colormaps

    if n <= len(COLORS):
        return list(COLORS[:n])
    if n <= 20:
        return [colormaps["tab20"](k) for k in range(n)]
    return [colormaps["turbo"](k / (n - 1)) for k in range(n)]
