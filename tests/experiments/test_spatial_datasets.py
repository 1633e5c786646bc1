"""Cells, sections and signatures: counts as documented, generated folders, and sentences where the folder does not have them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import spatial_folders as folders
from experiments.data.slices import (
    HER2ST_LABELED_SECTIONS,
    HER2ST_SECTIONS,
    load_her2st,
    load_pbmc3k,
    load_pbmc68k_reduced,
    load_signatures,
    load_tnbc_visium,
)
from experiments.data.sources import BrokenTableError

anndata = pytest.importorskip("anndata")
pytest.importorskip("scanpy")

has_data = (Path(os.environ.get("GPSSL_DATA", "")) / "pbmc3k" / "cells.csv").is_file()
needs_data = pytest.mark.skipif(not has_data, reason="GPSSL_DATA names no folder with the data sets")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, empty."""
    monkeypatch.setenv("GPSSL_DATA", str(tmp_path))
    return tmp_path


def write_cells(folder: Path, *, types: str = "a,B\nb,\nc,CD8 T\n") -> None:
    folders.write(folder / "pbmc3k" / "genes.txt", "CD3D\nNA\n")
    folders.write(folder / "pbmc3k" / "cells.csv", "barcode,cell_type\n" + types)
    counts = scipy.sparse.csr_matrix(np.array([[0, 3], [1, 0], [2, 2]], dtype=np.int32))
    scipy.sparse.save_npz(folder / "pbmc3k" / "counts_cells_by_genes_csr.npz", counts)


def test_cells_of_a_small_folder(folder: Path) -> None:
    write_cells(folder)
    adata = load_pbmc3k()
    assert folders.dense(adata).tolist() == [[0, 3], [1, 0], [2, 2]]
    assert (adata.X.format, adata.X.dtype) == ("csr", np.float32)
    assert (adata.obs_names.tolist(), adata.var_names.tolist()) == (["a", "b", "c"], ["CD3D", "NA"])
    assert (adata.obs["cell_type"].cat.categories.tolist(), adata.obs["cell_type"].cat.codes.tolist()) == (["B", "CD8 T"], [0, -1, 1])
    adata.write_h5ad(folder / "cells.h5ad")
    assert anndata.read_h5ad(folder / "cells.h5ad").obs.equals(adata.obs)


def test_broken_cells(folder: Path) -> None:
    write_cells(folder, types="a,B\n")
    with pytest.raises(BrokenTableError, match=r"\(3, 2\) cells and genes; the lists beside it have \(1, 2\)"):
        load_pbmc3k()
    folders.write(folder / "pbmc3k" / "counts_cells_by_genes_csr.npz", b"nothing")
    with pytest.raises(BrokenTableError, match="cannot be read"):
        load_pbmc3k()


def test_signatures_of_a_small_folder(folder: Path) -> None:
    folders.write(folder / "starfysh_signatures" / "tnbc_signature.csv", "CAFs,T-cells\nDCN,CCL5 \nLUM,\n")
    folders.write(folder / "starfysh_signatures" / "full_sigs.csv", ",NK\n0,GNLY\n1,\n")
    assert load_signatures("tnbc") == {"CAFs": ["DCN", "LUM"], "T-cells": ["CCL5"]}
    assert load_signatures("full") == {"NK": ["GNLY"]}
    folders.write(folder / "starfysh_signatures" / "full_sigs.csv", ",NK\n0,GNLY,XCL1\n")
    with pytest.raises(BrokenTableError, match="rows of different lengths"):
        load_signatures("full")


def test_sections_of_a_small_folder(folder: Path) -> None:
    folders.write_her2st(folder / "her2st", "H1")
    prefix = "GSM6433617_396A_"
    folders.write_h5(folder / "tnbc_visium_gse210616" / f"{prefix}{folders.MATRIX}.h5")
    folders.write_spatial(folder / "tnbc_visium_gse210616", prefix=prefix)
    assert load_her2st("H1").obs_names.tolist() == folders.HER2ST_SPOTS
    assert list(load_tnbc_visium("396A").uns["spatial"]) == ["396A"]


@pytest.mark.usefixtures("folder")
def test_reduced_cells_come_with_scanpy() -> None:
    adata = load_pbmc68k_reduced()
    assert adata.shape == (700, 765)
    assert adata.obs["bulk_labels"].value_counts().to_dict()["Dendritic"] == 240


MISSING: list[tuple[Callable[[], object], str]] = [
    (load_pbmc3k, "pbmc3k/counts_cells_by_genes_csr.npz"),
    (load_her2st, "her2st/ST-cnts/H1.tsv.gz"),
    (load_tnbc_visium, "tnbc_visium_gse210616/GSM6433623_397D_filtered_feature_bc_matrix.h5"),
    (load_signatures, "starfysh_signatures/tnbc_signature.csv"),
]


@pytest.mark.parametrize(("load", "file"), MISSING, ids=[load.__name__ for load, _ in MISSING])
@pytest.mark.usefixtures("folder")
def test_where_the_files_belong(load: Callable[[], object], file: str) -> None:
    with pytest.raises(FileNotFoundError) as error:
        load()
    assert f"set GPSSL_DATA to a folder that has {file}" in str(error.value)


def test_names_that_are_none() -> None:
    with pytest.raises(ValueError, match="no section 'Z9'; there are A1, B1, B4"):
        load_her2st("Z9")
    with pytest.raises(ValueError, match="no sample '1'; there are 396A, 397D"):
        load_tnbc_visium("1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no signatures 'all'; there are tnbc, full"):
        load_signatures("all")  # type: ignore[arg-type]


# As documented


@needs_data
def test_cells() -> None:
    adata = load_pbmc3k()
    assert (adata.shape, adata.X.nnz) == ((2700, 32738), 2_286_884)
    types = adata.obs["cell_type"].value_counts()
    assert types[["CD8 T", "B", "Memory CD4 T", "Naive CD4 T"]].tolist() == [271, 344, 483, 697]
    assert adata.obs["cell_type"].isna().sum() == 62
    markers = {gene: adata[:, gene].X.toarray().ravel() for gene in ("MS4A1", "GNLY")}
    means = {gene: adata.obs.assign(count=counts).groupby("cell_type", observed=True)["count"].mean() for gene, counts in markers.items()}
    assert (means["MS4A1"].idxmax(), means["GNLY"].idxmax()) == ("B", "NK")


@needs_data
def test_reduced_cells_of_the_folder() -> None:
    assert load_pbmc68k_reduced().shape == (700, 765)


@needs_data
@pytest.mark.parametrize(("sample", "n_spots"), [("396A", 554), ("397D", 901)])
def test_visium_sections(sample: str, n_spots: int) -> None:
    adata = load_tnbc_visium(sample)  # type: ignore[arg-type]
    assert adata.shape == (n_spots, 36601)
    assert np.array_equal(adata.X.data, adata.X.data.round())
    assert adata.obs["in_tissue"].eq(1).all()
    # Neighbors in a row of the array have columns 2 apart and are 100 μm apart; Space Ranger takes spots for 65 μm wide.
    pitch = np.ptp(adata.obsm["spatial"][:, 1]) / np.ptp(adata.obs["array_col"]) * 2
    diameter = adata.uns["spatial"][sample]["scalefactors"]["spot_diameter_fullres"]
    assert diameter / pitch == pytest.approx(0.65, abs=0.01)


@needs_data
def test_labeled_section() -> None:
    adata = load_her2st("H1")
    assert adata.shape == (613, 15029)
    assert adata.obs["pathologist_label"].value_counts().to_dict() == {
        "connective tissue": 169,
        "adipose tissue": 112,
        "cancer in situ": 97,
        "invasive cancer": 90,
        "undetermined": 83,
        "breast glands": 39,
        "immune infiltrate": 23,
    }
    assert adata.obs["cluster"].isna().sum() == 6
    np.testing.assert_allclose(adata.obsm["cell_type_proportions"].sum(axis=1), 1, atol=1e-5)


@needs_data
def test_sections_that_are_there() -> None:
    here = Path(os.environ["GPSSL_DATA"]) / "her2st"
    assert sorted(path.name.split(".")[0] for path in (here / "ST-cnts").iterdir()) == list(HER2ST_SECTIONS)
    assert sorted(path.name.split("_")[0] for path in (here / "ST-pat-lbl").iterdir()) == list(HER2ST_LABELED_SECTIONS)


@needs_data
def test_signatures() -> None:
    tnbc, full = load_signatures("tnbc"), load_signatures("full")
    assert list(tnbc) == ["CAFs", "Cancer Epithelial", "Myeloid", "Normal Epithelial", "T-cells"]
    assert {len(genes) for genes in tnbc.values()} == {30}
    assert (len(full), min(map(len, full.values())), max(map(len, full.values()))) == (25, 3, 71)
