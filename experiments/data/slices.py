"""Cells and sections of tissue, as AnnData, and marker genes of cell types."""

from __future__ import annotations

import csv
import io
import warnings
import zipfile
from typing import Any, Literal

import numpy as np
import scipy.sparse

from gpssl.spatial._fields import need
from gpssl.spatial._visium import read_visium

from .examples import RESTORE, path_of, read_lines
from .sources import BrokenTableError, find_file
from .tumors import read_her2st

PBMC3K = "pbmc3k"
PBMC68K_REDUCED = "pbmc68k_reduced/10x_pbmc68k_reduced.h5ad"

HER2ST_SECTIONS = ("A1", "B1", "B4", "C1", "C2", "D1", "E1", "F1", "G2", "H1")

HER2ST_LABELED_SECTIONS = ("A1", "B1", "C1", "D1", "E1", "F1", "G2", "H1")
"""The sections that have pathologists' labels."""

TNBC_SAMPLES = {"396A": "GSM6433617_396A_", "397D": "GSM6433623_397D_"}
"""What the files of each section begin with."""

SIGNATURES = {"tnbc": "starfysh_signatures/tnbc_signature.csv", "full": "starfysh_signatures/full_sigs.csv"}


def load_pbmc3k() -> Any:
    """Load 2,700 blood cells by 32,738 genes: counts, and `obs["cell_type"]`, which is NaN for 62 cells.

    The paper's simulation uses the types "B" (344 cells), "CD8 T" (271), "Memory CD4 T" (483) and "Naive CD4 T" (697).
    """
    pandas, anndata = need("pandas"), need("anndata")
    path = path_of(f"{PBMC3K}/counts_cells_by_genes_csr.npz")
    try:
        counts = scipy.sparse.csr_matrix(scipy.sparse.load_npz(path), dtype=np.float32)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise BrokenTableError(f"{path} cannot be read ({error}). {RESTORE}") from error
    genes, cells = read_lines(f"{PBMC3K}/genes.txt"), read_lines(f"{PBMC3K}/cells.csv")
    rows = list(csv.reader(cells.lines[1:]))
    if counts.shape != (len(rows), len(genes.lines)):
        raise BrokenTableError(
            f"{path} has {counts.shape} cells and genes; the lists beside it have {len(rows), len(genes.lines)}. {RESTORE}"
        )
    types = [row[1] or None if len(row) == 2 else None for row in rows]
    obs = pandas.DataFrame({"cell_type": pandas.Categorical(types)}, index=[row[0] for row in rows])
    return anndata.AnnData(counts, obs=obs, var=pandas.DataFrame(index=genes.lines))


def load_pbmc68k_reduced() -> Any:
    """Load 700 blood cells by 765 genes, from the user's folder or from scanpy, which brings it.

    No counts: `X` is scaled, `raw` log-normalized. `obs["bulk_labels"]` has ten types.
    """
    path = find_file(PBMC68K_REDUCED)
    with warnings.catch_warnings():
        # The file is older than AnnData's present format.
        warnings.simplefilter("ignore")
        return need("scanpy").datasets.pbmc68k_reduced() if path is None else need("anndata").read_h5ad(path)


def load_her2st(section: str = "H1") -> Any:
    """Load a section of a HER2-positive breast tumor, with pathologists' labels for eight of the ten: see `read_her2st`.

    Sections H1 (613 spots) and G2 (467) have seven classes each. C2 and B4 have an image, and no labels.
    """
    if section not in HER2ST_SECTIONS:
        raise ValueError(f"There is no section {section!r}; there are {', '.join(HER2ST_SECTIONS)}.")
    return read_her2st(path_of(f"her2st/ST-cnts/{section}.tsv.gz").parent.parent, section)


def load_tnbc_visium(sample: Literal["396A", "397D"] = "397D") -> Any:
    """Load a Visium section of a triple-negative breast cancer (GSE210616), without image and labels.

    "396A" has 554 spots, "397D" has 901, by 36,601 genes. See `gpssl.spatial.read_visium`.
    """
    if sample not in TNBC_SAMPLES:
        raise ValueError(f"There is no sample {sample!r}; there are {', '.join(TNBC_SAMPLES)}.")
    prefix = TNBC_SAMPLES[sample]
    folder = path_of(f"tnbc_visium_gse210616/{prefix}filtered_feature_bc_matrix.h5").parent
    return read_visium(folder, prefix=prefix, library_id=sample)


def load_signatures(name: Literal["tnbc", "full"] = "tnbc") -> dict[str, list[str]]:
    """Load marker genes by cell type, from Starfysh: "tnbc" has 30 for each of 5 types in breast tumors, "full" 3 to 71 for each of 25."""
    if name not in SIGNATURES:
        raise ValueError(f"There are no signatures {name!r}; there are {', '.join(SIGNATURES)}.")
    file = read_lines(SIGNATURES[name])
    types, *rows = csv.reader(io.StringIO("\n".join(file.lines)))
    if not rows or any(len(row) != len(types) for row in rows):
        raise file.broken("has rows of different lengths, or none")
    columns = zip(types, zip(*rows, strict=True), strict=True)
    # A column without a name numbers the rows.
    return {kind.strip(): [gene.strip() for gene in genes if gene.strip()] for kind, genes in columns if kind.strip()}
