"""Visium sections from generated folders of each layout, and sentences for those that cannot be read."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spatial_folders as folders
from gpssl.plots import plot_spots
from gpssl.spatial import image_features, read_visium
from spatial_folders import check_file, check_spots

anndata = pytest.importorskip("anndata")
pd = pytest.importorskip("pandas")
pytest.importorskip("scanpy")

KEPT = np.flatnonzero(folders.IN_TISSUE)

TNBC = Path(os.environ.get("GPSSL_DATA", "")) / "tnbc_visium_gse210616"
needs_data = pytest.mark.skipif(not TNBC.is_dir(), reason="GPSSL_DATA names no folder with the Visium sections")


def test_space_ranger_s_folder(tmp_path: Path) -> None:
    adata = read_visium(folders.write_space_ranger(tmp_path / "CID44971_TNBC"))
    check_spots(adata)
    assert adata.var["gene_ids"].tolist() == folders.GENE_IDS
    library = adata.uns["spatial"]["CID44971_TNBC"]
    assert library["scalefactors"] == folders.SCALE
    assert {name: image.shape for name, image in library["images"].items()} == {"hires": (50, 60, 3), "lowres": (25, 30, 3)}
    assert all(image.min() == 0 and image.max() == 1 for image in library["images"].values())
    check_file(adata, tmp_path / "section.h5ad")


def test_colors_are_those_of_the_high_resolution(tmp_path: Path) -> None:
    """Red is x / width and green y / height of the generated image."""
    adata = read_visium(folders.write_space_ranger(tmp_path))
    x, y = adata.obsm["spatial"].T * folders.SCALE["tissue_hires_scalef"]
    np.testing.assert_allclose(adata.obsm["image"]["red"], (x - 0.5) / 59, atol=0.01)
    np.testing.assert_allclose(adata.obsm["image"]["green"], (y - 0.5) / 49, atol=0.01)
    np.testing.assert_allclose(adata.obsm["image"]["blue"], 0, atol=1e-12)
    image_features(adata, resolution="lowres", key_added="coarse")
    np.testing.assert_allclose(adata.obsm["coarse"], adata.obsm["image"], atol=0.02)


def test_texture(tmp_path: Path) -> None:
    features = read_visium(folders.write_space_ranger(tmp_path), texture=True).obsm["image"]
    assert list(features) == ["red", "green", "blue", "red_std", "green_std", "blue_std"]
    assert (features[["red_std", "green_std"]] > 0).all(axis=None)


def with_header(spatial: Path) -> None:
    (spatial / "tissue_positions_list.csv").unlink()
    folders.write(spatial / "tissue_positions.csv", folders.positions_text(header=True))


def with_parquet(spatial: Path) -> None:
    pytest.importorskip("pyarrow")
    (spatial / "tissue_positions_list.csv").unlink()
    pd.read_csv(io.StringIO(folders.positions_text(header=True))).to_parquet(spatial / "tissue_positions.parquet")


def beside_the_counts(spatial: Path) -> None:
    for path in spatial.iterdir():
        path.rename(spatial.parent / path.name)


@pytest.mark.parametrize("change", [with_header, with_parquet, beside_the_counts])
def test_positions_of_each_kind(tmp_path: Path, change: Callable[[Path], None]) -> None:
    expected = read_visium(folders.write_space_ranger(tmp_path / "section"))
    change(tmp_path / "section" / "spatial")
    adata = read_visium(tmp_path / "section")
    check_spots(adata)
    assert adata.obs.equals(expected.obs)
    assert adata.obsm["image"].equals(expected.obsm["image"])


@pytest.mark.parametrize("place", [".", folders.MATRIX])
@pytest.mark.parametrize(
    ("layout", "genes"),
    [
        ({}, folders.UNIQUE_GENES[:-1]),  # the last is an antibody
        ({"columns": 2, "names": "genes.tsv", "ending": ""}, folders.UNIQUE_GENES),
        ({"columns": 1}, folders.UNIQUE_GENES),
    ],
    ids=["three columns", "two, not compressed", "one"],
)
def test_counts_in_text(tmp_path: Path, place: str, layout: dict[str, Any], genes: list[str]) -> None:
    folders.write_mtx(tmp_path / place, **layout)
    folders.write_spatial(tmp_path / "spatial")
    adata = read_visium(tmp_path)
    check_spots(adata, genes=genes)
    assert adata.var["gene_ids"].tolist() == (folders.GENES if layout.get("columns") == 1 else folders.GENE_IDS)[: len(genes)]
    check_file(adata, tmp_path / "section.h5ad")


def test_antibodies_are_no_genes(tmp_path: Path) -> None:
    folders.write_h5(tmp_path / f"{folders.MATRIX}.h5", feature_types=["Gene Expression"] * 4 + ["Antibody Capture"])
    folders.write_spatial(tmp_path / "spatial")
    check_spots(read_visium(tmp_path), genes=folders.UNIQUE_GENES[:-1])


def test_other_counts_and_the_folder_above(tmp_path: Path) -> None:
    folders.write_space_ranger(tmp_path / "run" / "outs")
    check_spots(read_visium(tmp_path / "run"))
    assert list(read_visium(tmp_path / "run").uns["spatial"]) == ["outs"]
    folders.write_h5(tmp_path / "raw.h5")
    outs = tmp_path / "run" / "outs"
    (outs / f"{folders.MATRIX}.h5").unlink()
    check_spots(read_visium(outs, counts=tmp_path / "raw.h5"))
    shutil.move(tmp_path / "raw.h5", outs / "raw_feature_bc_matrix.h5")
    check_spots(read_visium(str(outs), counts="raw_feature_bc_matrix.h5", library_id="raw"))
    with pytest.raises(FileNotFoundError, match=r"has no counts: filtered_feature_bc_matrix\.h5"):
        read_visium(outs)
    with pytest.raises(FileNotFoundError, match=r"other\.h5 is not there"):
        read_visium(outs, counts="other.h5")


@pytest.fixture
def geo(tmp_path: Path) -> Path:
    """Two sections in one folder."""
    folders.write_h5(tmp_path / f"GSM1_396A_{folders.MATRIX}.h5")
    folders.write_spatial(tmp_path, prefix="GSM1_396A_", ending=".gz")
    folders.write_mtx(tmp_path, prefix="GSM2_397D_", columns=2)
    folders.write_spatial(tmp_path, prefix="GSM2_397D_")
    return tmp_path


@pytest.mark.parametrize("prefix", ["GSM1_396A_", "GSM2_397D_", "GSM2_397D"])
def test_several_sections_in_a_folder(geo: Path, prefix: str) -> None:
    adata = read_visium(geo, prefix=prefix)
    check_spots(adata)
    assert list(adata.uns["spatial"]) == [prefix.rstrip("_")]
    assert "image" in adata.obsm


@pytest.mark.parametrize("prefix", ["", "GSM3"])
def test_prefixes_are_listed(geo: Path, prefix: str) -> None:
    with pytest.raises(ValueError, match="'GSM1_396A_', 'GSM2_397D_': give one of them as prefix"):
        read_visium(geo, prefix=prefix)


def test_a_prefix_that_is_the_only_one_need_not_be_given(tmp_path: Path) -> None:
    folders.write_mtx(tmp_path, prefix="P_", columns=2)
    folders.write_spatial(tmp_path, prefix="P_")
    check_spots(read_visium(tmp_path))


def test_without_images_there_are_no_colors(tmp_path: Path) -> None:
    folders.write_space_ranger(tmp_path)
    for name in ("hires", "lowres"):
        (tmp_path / "spatial" / f"tissue_{name}_image.png").unlink()
    adata = read_visium(tmp_path)
    assert "image" not in adata.obsm
    assert adata.uns["spatial"][tmp_path.name]["images"] == {}
    check_file(adata, tmp_path / "section.h5ad")


def test_images_without_scale_factors(tmp_path: Path) -> None:
    folders.write_space_ranger(tmp_path)
    (tmp_path / "spatial" / "scalefactors_json.json").unlink()
    with pytest.warns(UserWarning, match=r"no scale factors.*scalefactors_json\.json is expected"):
        adata = read_visium(tmp_path)
    assert "image" not in adata.obsm
    check_spots(adata)
    assert not plot_spots(adata, "array_row").images


def test_spots_without_position_are_left_out_with_a_warning(tmp_path: Path) -> None:
    folders.write_space_ranger(tmp_path)
    path = tmp_path / "spatial" / "tissue_positions_list.csv"
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if "SPOT0" not in line))
    with pytest.warns(UserWarning, match="1 of 8 spots have no position"):
        adata = read_visium(tmp_path)
    assert adata.obs_names.tolist() == [folders.BARCODES[place] for place in KEPT[1:]]


# Sentences


def rewrite(name: str, content: str | bytes) -> Callable[[Path], None]:
    return lambda folder: folders.write(folder / name, content)


LIST = "spatial/tissue_positions_list.csv"

BROKEN: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: (folder / LIST).unlink(), "no positions of spots"),
    (
        lambda folder: folders.write_h5(folder / f"{folders.MATRIX}.h5", [f"{place}" for place in range(8)]),
        "share no spots: counts have 0, positions have EMPTY-1",
    ),
    (rewrite(LIST, folders.positions_text(header=True).splitlines()[0]), "share no spots: .* positions have none"),
    (rewrite(LIST, folders.positions_text(header=False).replace("-1,1,", "-1,0,")), "No spot is under the tissue"),
    (rewrite(LIST, folders.positions_text(header=False) * 2), "EMPTY-1 more than once"),
    (rewrite(LIST, "a,b\n1,2\n"), "no column barcode, in_tissue"),
    (rewrite(LIST, folders.positions_text(header=False).replace("100", "left")), "cannot be read as numbers"),
    (rewrite(LIST, ""), "cannot be read as a table of spots"),
    (rewrite("spatial/scalefactors_json.json", "{"), "json cannot be read as scale factors"),
    (rewrite("spatial/scalefactors_json.json", "[1]"), "json cannot be read as scale factors"),
    (rewrite("spatial/tissue_hires_image.png", b"no image"), "cannot be read as an image .*remove it to read without an image"),
    (rewrite("spatial/tissue_hires_image.png", folders.image_bytes(50, 60)[:100]), "cannot be read as an image"),
    (rewrite("spatial/tissue_hires_image.png", folders.image_bytes(4, 5)), "Image and spots do not overlap"),
    (rewrite(f"{folders.MATRIX}.h5", b"no counts"), "cannot be read as counts"),
]


@pytest.mark.parametrize(("change", "sentence"), BROKEN, ids=[sentence for _, sentence in BROKEN])
def test_sentences(tmp_path: Path, change: Callable[[Path], object], sentence: str) -> None:
    folders.write_space_ranger(tmp_path)
    change(tmp_path)
    with pytest.raises((ValueError, FileNotFoundError), match=sentence):
        read_visium(tmp_path)


def test_sentences_for_counts_in_text(tmp_path: Path) -> None:
    folders.write_mtx(tmp_path)
    folders.write_spatial(tmp_path)
    folders.write(tmp_path / "barcodes.tsv.gz", "A-1\n")
    with pytest.raises(ValueError, match="5 genes and 8 spots; the names beside it are 5 and 1"):
        read_visium(tmp_path)
    (tmp_path / "barcodes.tsv.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"but no barcodes\.tsv"):
        read_visium(tmp_path)
    folders.write_mtx(tmp_path)
    folders.write(tmp_path / "matrix.mtx.gz", "no matrix")
    with pytest.raises(ValueError, match="cannot be read as a matrix"):
        read_visium(tmp_path)


def test_folders_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is no folder"):
        read_visium(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError, match="is a file, no folder"):
        read_visium(tmp_path / "file")
    with pytest.raises(FileNotFoundError, match="has no counts"):
        read_visium(tmp_path)
    (tmp_path / folders.MATRIX).mkdir()
    with pytest.raises(FileNotFoundError, match=r"has no matrix\.mtx"):
        read_visium(tmp_path)


@needs_data
def test_prefixes_of_real_sections() -> None:
    with pytest.raises(ValueError, match="'GSM6433617_396A_', 'GSM6433623_397D_'"):
        read_visium(TNBC)
    adata = read_visium(TNBC, prefix="GSM6433617_396A")
    assert adata.shape == (554, 36601)
    assert adata.var_names.is_unique
    assert adata.var["gene_ids"].is_unique
