"""Open whatever a user has as rows that are read part by part."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from ._rows import Array, Rows, SliceableRows

STORED = ("h5py", "zarr", "anndata")
"""Libraries whose arrays are read from files by slicing them."""


def is_lazy(X: Any) -> bool:
    """Return whether the rows of X are read part by part, because they may not fit in memory."""
    return isinstance(X, Rows | np.memmap) or is_path(X) or _is_dask(X) or _is_stored(X)


def open_rows(X: Any, sample_weight: Array | None = None) -> Rows:
    """Return the rows of a Dask array or data frame, of files, of an array in a file, or of one in memory."""
    if isinstance(X, Rows):
        return X if sample_weight is None else X.weighted(sample_weight)
    if is_path(X):
        from ._table_files import TableFiles

        return TableFiles(X, sample_weight=sample_weight)
    if _is_dask(X):
        from ._dask import DaskRows

        return DaskRows(X, sample_weight)
    if _is_anndata(X):
        if X.X is None:
            raise ValueError("This AnnData object has no X. Pass the matrix to learn from, such as adata.layers[...] or adata.obsm[...].")
        rows = open_rows(X.X, sample_weight)
        rows.names = [str(name) for name in X.var_names]
        return rows
    if _is_stored(X):
        return _open_stored(X, sample_weight)
    if issparse(X):
        return SliceableRows(csr_array(X), sample_weight)
    return SliceableRows(X if isinstance(X, np.ndarray) else np.asarray(X), sample_weight)


def _open_stored(X: Any, sample_weight: Array | None) -> Rows:
    if not hasattr(X, "shape"):
        raise TypeError(f"{type(X).__name__} is no array of rows and columns: pass one of its datasets.")
    if len(X.shape) != 2:
        raise ValueError(f"Expected 2D array, got one of shape {tuple(X.shape)} instead. Reshape your data: rows and columns.")
    if getattr(X, "format", "csr") == "csc":
        raise ValueError(
            "This sparse matrix is stored by columns (CSC), so that each block of rows would mean reading all of it. Store it by rows: "
            "adata.X = adata.to_memory().X.tocsr(), and write it again."
        )
    return SliceableRows(X, sample_weight)


def is_path(X: Any) -> bool:
    """Tell the name of a file, or of several, from rows."""
    if isinstance(X, str | PathLike):
        return True
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(item, PathLike) or _is_file_name(item) for item in X)


def _is_file_name(item: Any) -> bool:
    from ._table_files import is_file_name

    return isinstance(item, str) and is_file_name(item)


def _is_dask(X: Any) -> bool:
    if not type(X).__module__.startswith("dask."):
        return False
    from ._dask import is_dask_array, is_dask_frame

    return is_dask_array(X) or is_dask_frame(X)


def _is_stored(X: Any) -> bool:
    return type(X).__module__.split(".")[0] in STORED


def _is_anndata(X: Any) -> bool:
    return _is_stored(X) and type(X).__name__ == "AnnData"
