"""Find fields of AnnData and check them, with error messages that say what is there instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


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


def check_type_names(types: Sequence[str]) -> None:
    """Raise ValueError if the name of a type cannot be a key of `uns` in a file."""
    torn = [name for name in types if "/" in str(name)]
    if torn:
        better = first_few([str(name).replace("/", "-") for name in torn])
        raise ValueError(f'"/" separates levels in h5ad files: rename {first_few(torn)}, for example to {better}.')


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
    hint = " Name the coordinates of the spots with spatial_key=..., or pass spatial_key=None to leave the place out."
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
