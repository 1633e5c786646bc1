"""Sections of Wu et al. and HER2ST sections from generated folders of both layouts, and the figures of the real ones."""

from __future__ import annotations

import gzip
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spatial_folders as folders
from experiments.data.tumors import read_her2st, read_wu

anndata = pytest.importorskip("anndata")
pytest.importorskip("pandas")

HER2ST = Path(os.environ.get("GPSSL_DATA", "")) / "her2st"
needs_data = pytest.mark.skipif(not HER2ST.is_dir(), reason="GPSSL_DATA names no folder with the HER2ST sections")


def words(column: Any) -> list[str | None]:
    """Categories, and None for NaN."""
    assert column.dtype == "category"
    return [None if code < 0 else column.cat.categories[code] for code in column.cat.codes]


def check_section(adata: Any) -> None:
    assert adata.obs_names.tolist() == folders.HER2ST_SPOTS
    assert adata.var_names.tolist() == folders.HER2ST_GENES
    assert np.array_equal(folders.dense(adata), folders.HER2ST_COUNTS)
    assert (adata.X.format, adata.X.dtype) == ("csr", np.float32)
    assert adata.obs["array_x"].tolist() == [10, 11, 10, 12]
    assert adata.obs["array_y"].tolist() == [13, 13, 14, 15]
    assert list(map(tuple, adata.obsm["spatial"])) == [folders.HER2ST_PIXELS[spot] for spot in folders.HER2ST_SPOTS]
    assert words(adata.obs["pathologist_label"]) == ["invasive cancer", None, "adipose tissue", None]
    assert words(adata.obs["cluster"]) == ["0", None, None, "5"]
    assert list(adata.obsm["cell_type_proportions"]) == folders.HER2ST_TYPES
    assert adata.obsm["cell_type_proportions"]["B-cells"].tolist() == [0, 0.25, 0.5, 0.75]
    # Neighbors are 100 pixels apart, and a spot is half as wide.
    assert adata.uns["spatial"]["C2"]["scalefactors"]["spot_diameter_fullres"] == pytest.approx(50)


@pytest.mark.parametrize(("names", "start"), [(folders.FLAT, "."), (folders.REPOSITORY, "."), (folders.REPOSITORY, "data")])
def test_both_layouts(tmp_path: Path, names: dict[str, str], start: str) -> None:
    folders.write_her2st(tmp_path, names=names)
    check_section(read_her2st(tmp_path / start, "C2"))


def test_unpacked_files(tmp_path: Path) -> None:
    folders.write_her2st(tmp_path)
    counts, archive = tmp_path / "ST-cnts" / "C2.tsv.gz", tmp_path / "ST-deconv-props" / "major.zip"
    counts.with_suffix("").write_bytes(gzip.decompress(counts.read_bytes()))
    with zipfile.ZipFile(archive) as files:
        files.extractall(archive.parent)
    counts.unlink()
    archive.unlink()
    check_section(read_her2st(tmp_path, "C2"))


@pytest.mark.parametrize(
    ("names", "file"), [(folders.FLAT, "C2_5714_HE.png"), (folders.REPOSITORY, "C/C2/5714_HE_BT_C2.png"), (folders.FLAT, "C2_HE.jpg")]
)
def test_image_under_the_spots(tmp_path: Path, names: dict[str, str], file: str) -> None:
    """Red is x / width and green y / height of an image of 2,500 × 1,000 pixels, which is kept at 2,000 × 800."""
    folders.write_her2st(tmp_path, names=names)
    kind = "JPEG" if file.endswith("jpg") else "PNG"
    folders.write(tmp_path / names["images"] / file, folders.image_bytes(1000, 2500, kind))
    adata = read_her2st(tmp_path, "C2", texture=True)
    check_section(adata)
    library = adata.uns["spatial"]["C2"]
    assert library["images"]["hires"].shape == (800, 2000, 3)
    assert library["scalefactors"]["tissue_hires_scalef"] == pytest.approx(0.8)
    np.testing.assert_allclose(adata.obsm["image"]["red"], adata.obsm["spatial"][:, 0] / 2500, atol=0.01)
    np.testing.assert_allclose(adata.obsm["image"]["green"], adata.obsm["spatial"][:, 1] / 1000, atol=0.01)
    assert "red_std" in adata.obsm["image"]


def test_every_field_survives_a_file(tmp_path: Path) -> None:
    folders.write_her2st(tmp_path)
    folders.write(tmp_path / "ST-imgs" / "C2_HE.png", folders.image_bytes(400, 500))
    adata = read_her2st(tmp_path, "C2")
    adata.write_h5ad(tmp_path / "section.h5ad")
    again = anndata.read_h5ad(tmp_path / "section.h5ad")
    check_section(again)
    assert again.obs.equals(adata.obs)
    assert again.obsm["image"].equals(adata.obsm["image"])
    assert again.obsm["cell_type_proportions"].equals(adata.obsm["cell_type_proportions"])
    assert np.array_equal(again.uns["spatial"]["C2"]["images"]["hires"], adata.uns["spatial"]["C2"]["images"]["hires"])
    assert again.uns["spatial"]["C2"]["scalefactors"] == adata.uns["spatial"]["C2"]["scalefactors"]


def test_an_image_of_another_size_is_left_out(tmp_path: Path) -> None:
    folders.write_her2st(tmp_path)
    folders.write(tmp_path / "ST-imgs" / "C2_HE.png", folders.image_bytes(349, 500))
    with pytest.warns(
        UserWarning, match=r"outside of C2_HE\.png, which is left out: it has 500 × 349 pixels, they reach to x = 400, y = 350"
    ):
        adata = read_her2st(tmp_path, "C2")
    check_section(adata)
    assert "image" not in adata.obsm


def test_cut_outs_of_the_web_application_are_left_out(tmp_path: Path) -> None:
    folders.write_her2st(tmp_path)
    folders.write(tmp_path / "ST-imgs" / "C2_HE_image_dark.png", folders.image_bytes(400, 500))
    assert "image" not in read_her2st(tmp_path, "C2").obsm


def test_counts_alone(tmp_path: Path) -> None:
    folders.write_her2st(tmp_path)
    for name in ("ST-spotfiles", "ST-pat-lbl", "ST-cluster-lbl", "ST-deconv-props"):
        shutil.rmtree(tmp_path / name)
    folders.write(tmp_path / "ST-imgs" / "C2_HE.png", folders.image_bytes(400, 500))
    adata = read_her2st(tmp_path, "C2")
    assert (list(adata.obs), list(adata.obsm)) == (["array_x", "array_y"], ["spatial"])
    assert adata.obsm["spatial"].tolist() == [[10, 13], [11, 13], [10, 14], [12, 15]]
    assert adata.uns["spatial"]["C2"] == {"images": {}, "scalefactors": {"spot_diameter_fullres": 0.5}}


def test_spots_beyond_the_tissue_are_left_out(tmp_path: Path) -> None:
    folders.write_her2st(tmp_path)
    path = tmp_path / "ST-spotfiles" / "C2_selection.tsv"
    path.write_text(path.read_text().replace("11\t13\t", "1\t1\t", 1))
    assert read_her2st(tmp_path, "C2").obs_names.tolist() == ["10x13", "10x14", "12x15"]


# Sentences


def rewrite(name: str, content: str | bytes) -> Callable[[Path], None]:
    return lambda folder: folders.write(folder / name, content)


BROKEN: list[tuple[Callable[[Path], None], str]] = [
    (
        rewrite("ST-spotfiles/C2_selection.tsv", "x\ty\tpixel_x\tpixel_y\n1\t1\t5\t5\n"),
        "share no spots: counts have 10x13, positions have 1x1",
    ),
    (rewrite("ST-spotfiles/C2_selection.tsv", "x\ty\tpixel_x\tpixel_y\n"), "share no spots: counts have 10x13, positions have none"),
    (rewrite("ST-spotfiles/C2_selection.tsv", "x\ty\n10\t13\n"), "no column pixel_x, pixel_y"),
    (rewrite("ST-pat-lbl/C2_labeled_coordinates.tsv", "x\ty\tlabel\n10.1\t13\ta\n9.9\t13\tb\n"), "spot 10x13 more than once"),
    (rewrite("ST-cluster-lbl/C2-cluster-annotation.tsv.gz", ""), "cannot be read as a table of spots"),
    (rewrite("ST-cnts/C2.tsv.gz", "\tA\tB\nfirst\t1\t2\n"), "has a row 'first'"),
    (rewrite("ST-cnts/C2.tsv.gz", "\tA\tB\n1x1\tmany\t2\n"), "cannot be read as a table of counts"),
    (rewrite("ST-cnts/C2.tsv", b"\x1f\x8b"), "cannot be read as a table of counts"),
    (rewrite("ST-deconv-props/major.zip", b"no archive"), "cannot be read as proportions"),
    (rewrite("ST-imgs/C2_HE.jpg", b"no image"), "cannot be read as an image"),
]


@pytest.mark.parametrize(("change", "sentence"), BROKEN, ids=[sentence for _, sentence in BROKEN])
def test_sentences(tmp_path: Path, change: Callable[[Path], None], sentence: str) -> None:
    folders.write_her2st(tmp_path)
    change(tmp_path)
    with pytest.raises(ValueError, match=sentence):
        read_her2st(tmp_path, "C2")


def test_sections_are_listed(tmp_path: Path) -> None:
    folders.write_her2st(folders.write_her2st(tmp_path), "H1")
    with pytest.raises(ValueError, match=r"no section 'Z9' in .*; there are C2, H1"):
        read_her2st(tmp_path, "Z9")
    with pytest.raises(FileNotFoundError, match=r"has no counts: ST-cnts/H1\.tsv\.gz"):
        read_her2st(tmp_path / "ST-cnts", "H1")
    with pytest.raises(FileNotFoundError, match="is no folder"):
        read_her2st(tmp_path / "nowhere", "H1")


@needs_data
def test_real_images_show_tissue_under_the_spots() -> None:
    """Tissue is darker than the slide around it."""
    adata = read_her2st(HER2ST, "C2")
    image = adata.uns["spatial"]["C2"]["images"]["hires"]
    assert image.shape == (2000, 1871, 3)
    assert adata.obsm["image"].shape == (187, 3)
    assert (adata.obsm["image"].mean(axis=1) < image.mean() - 0.05).all()


@needs_data
def test_the_first_section_s_image_is_not_used() -> None:
    adata = read_her2st(HER2ST, "A1")
    assert "image" not in adata.obsm
    assert adata.obs["pathologist_label"].notna().sum() == 346


# The layout of Wu et al.


def test_the_archives_of_wu(tmp_path: Path) -> None:
    adata = read_wu(folders.write_wu(tmp_path))
    folders.check_spots(adata)
    assert adata.var["gene_ids"].tolist() == folders.GENES
    assert adata.obs["classification"].dtype == "category"
    assert adata.obs["classification"].astype(object).where(adata.obs["classification"].notna(), None).tolist() == [
        *("Stroma", "Stroma", "Invasive cancer", "Lymphocytes"),
        *(None, "Stroma"),
    ]
    assert list(adata.uns["spatial"]) == ["CID44971"]
    folders.check_file(adata, tmp_path / "section.h5ad")


def test_the_archives_of_wu_without_metadata(tmp_path: Path) -> None:
    folders.write_wu(tmp_path)
    shutil.rmtree(tmp_path / "metadata")
    adata = read_wu(tmp_path, texture=True)
    folders.check_spots(adata)
    assert "classification" not in adata.obs
    assert adata.obsm["image"].shape == (len(folders.KEPT), 6)


def test_samples_of_wu_are_listed(tmp_path: Path) -> None:
    folders.write_wu(folders.write_wu(tmp_path), "CID4290")
    with pytest.raises(FileNotFoundError, match="no counts of 'CID1'; it has CID4290, CID44971"):
        read_wu(tmp_path, "CID1")
    with pytest.raises(FileNotFoundError, match="none at all"):
        read_wu(tmp_path / "metadata")
