"""Counts as 10x Genomics' programs write them, and finding files under the names that they go by."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse

from .packages import need

MATRIX = "matrix.mtx"


def existing_folder(folder: str | Path) -> Path:
    """The folder, or a sentence."""
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise FileNotFoundError(f"{path} is {'a file, no' if path.is_file() else 'no'} folder: give the one that the counts are in.")
    return path


def first_file(folders: Iterable[Path], names: Iterable[str]) -> Path | None:
    """The first of these files that is there, compressed or not: all names in the first folder, then in the next."""
    choices = [(folder, f"{name}{ending}") for folder in folders for name in names for ending in ("", ".gz")]
    return next((folder / name for folder, name in choices if (folder / name).is_file()), None)


def read_counts(path: Path) -> Any:
    """Spots by genes, from an .h5 file, a matrix.mtx or the folder with one; float32 by rows, names of genes unique.

    `var["gene_ids"]` has the names under which the file lists the genes, of which several can share a symbol.
    """
    matrix = first_file([path], [MATRIX]) if path.is_dir() else path
    if matrix is None:
        raise FileNotFoundError(f"{path} has no {MATRIX}, compressed or not.")
    adata = _read_h5(matrix) if matrix.suffix == ".h5" else _read_mtx(matrix)
    adata.X = scipy.sparse.csr_matrix(adata.X, dtype=np.float32)
    adata.var_names_make_unique()
    return adata


def _read_h5(path: Path) -> Any:
    scanpy = need("scanpy")
    with warnings.catch_warnings():
        # Symbols which several genes share are numbered by `read_counts`, so this is no news.
        warnings.filterwarnings("ignore", "Variable names are not unique")
        try:
            return scanpy.read_10x_h5(path)
        except Exception as error:  # what scanpy raises for a file without the fields has no class of its own
            raise ValueError(f"{path} cannot be read as counts of 10x Genomics' format ({error}). Restore the file.") from error


def _read_mtx(path: Path) -> Any:
    """Genes by spots in path; their names beside it, in files whose names begin as its does."""
    prefix = path.name[: path.name.index(MATRIX)]
    barcodes = _read_names(path, [f"{prefix}barcodes.tsv"])[0]
    genes = _read_names(path, [f"{prefix}features.tsv", f"{prefix}genes.tsv"])
    try:
        counts = scipy.sparse.csr_matrix(scipy.io.mmread(path).T, dtype=np.float32)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as a matrix ({error}). Restore the file.") from error
    if counts.shape != (len(barcodes), len(genes)):
        raise ValueError(
            f"{path} has {counts.shape[1]} genes and {counts.shape[0]} spots; the names beside it are {len(genes)} and {len(barcodes)}. "
            "Restore the files."
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Variable names are not unique")
        adata = need("anndata").AnnData(counts)
        adata.obs_names = barcodes.to_numpy()
        # One column has symbols; two have an identifier and a symbol; a third one says what was counted.
        adata.var_names = genes.iloc[:, min(1, genes.shape[1] - 1)].to_numpy()
    adata.var["gene_ids"] = genes[0].to_numpy()
    if genes.shape[1] < 3:
        return adata
    adata.var["feature_types"] = genes[2].to_numpy()
    return adata[:, adata.var["feature_types"] == "Gene Expression"].copy()


def _read_names(beside: Path, names: list[str]) -> Any:
    """A table of text without header."""
    path = first_file([beside.parent], names)
    if path is None:
        raise FileNotFoundError(f"{beside.parent} has {beside.name}, but no {' or '.join(names)}, compressed or not.")
    # A gene may well be called NA.
    return need("pandas").read_csv(path, sep="\t", header=None, dtype=str, keep_default_na=False)
