"""Find fields of AnnData, check them, and put expression, place and color of each spot side by side: a row, and a kernel for such rows.

Errors say what is there instead of what is missing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from sklearn.gaussian_process.kernels import RBF, Kernel

from ..kernels.tables import ColumnKernel
from ..kernels.vectors import NeighborRBF

Array = NDArray[np.float64]
Combine = Literal["sum", "product", "concatenate"]

COMBINATIONS = get_args(Combine)
STRETCH = 2.0
"""Lengthscales in units of the distance to the K-th neighbor: of 1, 2 and 4, the best on tumor sections with a pathologist's labels."""
DECIMALS = 6
"""Rows, in units of lengthscales, are rounded to so many decimals."""
FAR_APART = 100.0
"""The distance from one slice to the next, in units of half the extent of the largest: no kernel reaches so far."""
MOST_ON_TOP = 0.2
"""The share of spots that may coincide with others without a warning."""


def need(name: str) -> Any:
    """Import a module that the extra "spatial" installs."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f'This needs {name}: pip install "gpssl[spatial]".') from error


def quoted(names: Iterable[Any]) -> str:
    """Return all names in quotes, or "nothing"."""
    return ", ".join(map(repr, names)) or "nothing"


def first_few(names: Sequence[Any], limit: int = 5) -> str:
    """Return the first few of many names."""
    shown = ", ".join(map(str, names[:limit]))
    return shown if len(names) <= limit else f"{shown}, …"


def check_anndata(adata: Any) -> None:
    """Raise TypeError unless this is AnnData."""
    if not any(kind.__name__ == "AnnData" for kind in type(adata).__mro__):
        raise TypeError(f"Expected AnnData, got {type(adata).__name__}. gpssl.spatial.read_visium reads a Space Ranger folder into one.")


def make_writable(adata: Any) -> None:
    """Make sure that fields can be added: a view becomes an object of its own, as scanpy's functions do it."""
    check_anndata(adata)
    if adata.is_view:
        if adata.isbacked:
            raise ValueError("This is a part of an AnnData in a file, to which nothing can be added: take adata[...].to_memory().")
        adata._init_as_actual(adata.copy())


def column(table: Any, name: str, argument: str, where: str) -> Any:
    """Return a column of `obs` or `var`."""
    if name not in table:
        raise ValueError(f"{argument}={name!r} is no column of {where}; the columns are {quoted(table.columns)}.")
    return table[name]


def numbers(adata: Any, name: str, *, hint: str = "") -> Array:
    """Return a field of `obsm` as finite numbers. [n, D]"""
    if name not in adata.obsm:
        raise ValueError(f"There is no obsm[{name!r}]; obsm has {quoted(adata.obsm)}.{hint}")
    try:
        values = np.asarray(adata.obsm[name], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"obsm[{name!r}] must be numbers: {error}.") from error
    if len(values) == 0:
        raise ValueError("There are no spots.")
    bad = int((~np.isfinite(values.reshape(len(values), -1))).any(axis=1).sum())
    if values.ndim != 2 or bad:
        raise ValueError(
            f"obsm[{name!r}] must be finite numbers, [spots, columns]; its shape is {values.shape}, and {bad} spots have NaN or infinity."
        )
    return values


def coordinates(adata: Any, spatial_key: str) -> Array:
    """Return the places of the spots. [n, 2] or, for a stack of slices, [n, 3]"""
    hint = " Readers such as read_visium put the coordinates of the spots there; with spatial_key=None, embed leaves the place out."
    values = numbers(adata, spatial_key, hint=hint)
    if values.shape[1] not in (2, 3):
        raise ValueError(f"obsm[{spatial_key!r}] must be two or three coordinates for each spot, got {values.shape[1]}.")
    return values


def slice_codes(adata: Any, batch_key: str | None) -> tuple[NDArray[np.intp], int]:
    """Return the number of each spot's slice, counted from 0, and how many slices there are. [n]"""
    if batch_key is None:
        return np.zeros(adata.n_obs, dtype=np.intp), 1
    slices = column(adata.obs, batch_key, "batch_key", "obs").astype("category").cat.remove_unused_categories().cat
    if (slices.codes < 0).any():
        raise ValueError(f"obs[{batch_key!r}] is missing for {(slices.codes < 0).sum()} spots: say which slice they are from.")
    return slices.codes.to_numpy().astype(np.intp), len(slices.categories)


def counts_of(adata: Any, layer: str | None, *, hint: str = "") -> Any:
    """Return `X` or a layer, in memory, in a file or on Dask, after checking that the names of genes are unique. [n, genes]"""
    check_anndata(adata)
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"There is no layer {layer!r}; the layers are {quoted(adata.layers)}.")
    matrix = adata.X if layer is None else adata.layers[layer]
    if matrix is None:
        raise ValueError(f"This AnnData has no X: name the layer with the counts, layer=...{hint}")
    if not adata.var_names.is_unique:
        repeated = adata.var_names[adata.var_names.duplicated()].unique()
        raise ValueError(
            f"{len(repeated)} gene names occur more than once ({first_few(repeated)}): call adata.var_names_make_unique() first, or keep "
            "one of each."
        )
    return matrix


class Modalities(NamedTuple):
    """The rows of all spots, in units of the kernel's lengthscales, and which columns are of which modality."""

    rows: Array
    """[n, D]"""
    columns: dict[str, slice]

    def kernel(self, combine: Combine, weights: Mapping[str, float] | None = None) -> Kernel:
        """Return the kernel on these rows. With a squared exponential k_g for each modality g,

        - "sum": k = Σ_g w_g k_g; spots are alike if they are alike in some modalities,
        - "product": k = Π_g (1 − w_g + w_g k_g); if they are alike in all of them,
        - "concatenate": one squared exponential of all columns, as in the paper.
        """
        if combine == "concatenate":
            return RBF(1.0, length_scale_bounds="fixed")
        groups = [(name, RBF(1.0, length_scale_bounds="fixed"), columns) for name, columns in self.columns.items()]
        return ColumnKernel(groups, combine=combine, weights=None if weights is None else [weights[name] for name in self.columns])


def gather(
    adata: Any,
    expression: Array,
    *,
    spatial_key: str | None,
    image_key: str | None,
    batch_key: str | None,
    combine: Combine,
    neighborhood: float,
) -> Modalities:
    """Return the rows of all spots, each modality divided by its lengthscale.

    For "concatenate", modalities first get equal standard deviations and then share one lengthscale.

    The lengthscale is twice the distance to the K-th neighbor, K = ⌊n / neighborhood⌋ for n spots in a slice, as the median over
    spots. Slices are laid side by side, far apart: spots of different slices may be alike in expression and color, never in place.
    """
    codes, n_slices = slice_codes(adata, batch_key)
    found = {"expression": expression}
    if spatial_key is not None:
        found["place"] = _lay_side_by_side(coordinates(adata, spatial_key), codes, n_slices)
    if image_key is not None:
        hint = " gpssl.spatial.image_features(adata) makes it from the image of a slice."
        found["color"] = standardized(numbers(adata, image_key, hint=hint))
    if combine == "concatenate":
        found["expression"] = standardized(expression)
        if "place" in found:
            centers = np.stack([found["place"][codes == code].mean(axis=0) for code in range(n_slices)])
            found["place"] /= float((found["place"] - centers[codes]).std()) or 1.0
        scale = STRETCH * _lengthscale(np.hstack(list(found.values())), neighborhood * n_slices)
        scaled = {name: values / scale for name, values in found.items()}
    else:
        # Neighbors in place are from the same slice.
        counts = {name: neighborhood * (n_slices if name == "place" else 1) for name in found}
        scaled = {name: values / (STRETCH * _lengthscale(values, counts[name])) for name, values in found.items()}
    # The last digits depend on how counts were stored and read; which spots become inducing points should not.
    rows = np.hstack(list(scaled.values())).round(DECIMALS)
    ends = np.cumsum([values.shape[1] for values in scaled.values()]).tolist()
    return Modalities(rows, {name: slice(start, end) for name, start, end in zip(scaled, [0, *ends], ends, strict=False)})


def _lay_side_by_side(values: Array, codes: NDArray[np.intp], n_slices: int) -> Array:
    """Return coordinates in units of the distance between neighboring spots, one slice far from the next. [n, 2 or 3]

    Slices may have been scanned at different resolutions; what they have in common is the distance between spots.
    """
    laid_out = np.empty_like(values)
    for code in range(n_slices):
        here = codes == code
        distance, on_top = spacing(values[here])
        if on_top > MOST_ON_TOP:
            warnings.warn(
                f"{on_top:.0%} of the spots lie exactly on top of others. If these are several slices, pass batch_key=..., "
                "the column of obs that tells them apart.",
                UserWarning,
                stacklevel=2,
            )
        laid_out[here] = (values[here] - values[here].mean(axis=0)) / distance
    laid_out[:, 0] += FAR_APART * np.abs(laid_out).max() * codes
    return laid_out


def spacing(places: Array) -> tuple[float, float]:
    """Return the median distance from a spot to its nearest neighbor, and the share of spots exactly on top of others, left out of it."""
    nearest = cKDTree(places).query(places, 2)[0][:, 1] if len(places) > 1 else np.ones(1)
    apart = nearest[nearest > 0]
    return float(np.median(apart)) if len(apart) else 1.0, float((nearest == 0).mean())


def standardized(values: Array) -> Array:
    """Return columns with mean 0 and standard deviation 1; constant ones become 0."""
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _lengthscale(values: Array, neighborhood: float) -> float:
    rule = NeighborRBF(neighborhood, reduce="median", per_column=False)
    return float(rule.resolve(values).length_scale)
