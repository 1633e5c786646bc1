"""Counts as 10x Genomics' programs write them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse

from .packages import need
from .section_files import first_file, readable

MATRIX = "matrix.mtx"

GENE_EXPRESSION = "Gene Expression"
"""What was counted, beside antibodies and the like."""


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
    with _shared_symbols():
        try:
            return scanpy.read_10x_h5(path)
        except Exception as error:  # what scanpy raises for a file without the fields has no class of its own
            raise ValueError(f"{path} cannot be read as counts of 10x Genomics' format ({error}). Restore the file.") from error


def _read_mtx(path: Path) -> Any:
    """Genes by spots in path; their names beside it, in files whose names begin as its does."""
    prefix = path.name[: path.name.index(MATRIX)]
    barcodes = _read_names(path, [f"{prefix}barcodes.tsv"])[0]
    genes = _read_names(path, [f"{prefix}features.tsv", f"{prefix}genes.tsv"])
    with readable(path, "a matrix"):
        counts = scipy.sparse.csr_matrix(scipy.io.mmread(path).T, dtype=np.float32)
    if counts.shape != (len(barcodes), len(genes)):
        raise ValueError(
            f"{path} has {counts.shape[1]} genes and {counts.shape[0]} spots; the names beside it are {len(genes)} and {len(barcodes)}. "
            "Restore the files."
        )
    # One column has symbols; two have an identifier and a symbol; a third one says what was counted.
    if genes.shape[1] > 2:
        expressed = (genes[2] == GENE_EXPRESSION).to_numpy()
        counts, genes = counts[:, expressed], genes[expressed]
    pandas = need("pandas")
    symbols = pandas.Index(genes[min(1, genes.shape[1] - 1)].to_numpy(), name=None)
    var = pandas.DataFrame({"gene_ids": genes[0].to_numpy()}, index=symbols)
    with _shared_symbols():
        return need("anndata").AnnData(counts, obs=pandas.DataFrame(index=barcodes.to_numpy()), var=var)


def _read_names(beside: Path, names: list[str]) -> Any:
    """A table of text without header."""
    path = first_file([beside.parent], names)
    if path is None:
        raise FileNotFoundError(f"{beside.parent} has {beside.name}, but no {' or '.join(names)}, compressed or not.")
    with readable(path, "a list of names"):
        # A gene may well be called NA.
        return need("pandas").read_csv(path, sep="\t", header=None, dtype=str, keep_default_na=False)


@contextmanager
def _shared_symbols() -> Iterator[None]:
    """Within it, no word of symbols that several genes share: `read_counts` numbers them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Variable names are not unique")
        yield
