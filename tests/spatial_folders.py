"""Small folders in the layouts that Space Ranger, GEO, Wu et al. and the authors of HER2ST use."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from numpy.typing import NDArray

GENES = ["SOX2", "NA", "TWIN", "TWIN", "MKI67"]
UNIQUE_GENES = ["SOX2", "NA", "TWIN", "TWIN-1", "MKI67"]
GENE_IDS = [f"ENSG{number}" for number in range(len(GENES))]

BARCODES = [f"SPOT{number}-1" for number in range(8)]
COUNTS = np.random.default_rng(0).poisson(2.0, size=(len(BARCODES), len(GENES)))
"""[spots, genes]"""

IN_TISSUE = [1, 1, 0, 1, 1, 1, 0, 1]
ARRAY = [(number // 3, number % 3) for number in range(len(BARCODES))]
"""Row and column."""

PIXELS = [(100 + 40 * row, 200 + 50 * column) for row, column in ARRAY]
"""Row and column of the full image, which is 10 times as large as the one that is kept."""

SCALE = {"tissue_hires_scalef": 0.1, "tissue_lowres_scalef": 0.05, "spot_diameter_fullres": 40.0, "fiducial_diameter_fullres": 60.0}

HEADER = "barcode,in_tissue,array_row,array_col,pxl_row_in_fullres,pxl_col_in_fullres\n"

MATRIX = "filtered_feature_bc_matrix"


def write(path: Path, content: str | bytes) -> None:
    """A file, compressed where its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def write_h5(path: Path, barcodes: list[str] = BARCODES, feature_types: list[str] | None = None) -> None:
    """Counts in the format of 10x Genomics, version 3: genes by spots, by columns."""
    import h5py

    path.parent.mkdir(parents=True, exist_ok=True)
    counts = scipy.sparse.csr_matrix(COUNTS.astype(np.int32))
    with h5py.File(path, "w") as file:
        matrix = file.create_group("matrix")
        for name in ("data", "indices", "indptr"):
            matrix[name] = getattr(counts, name)
        matrix["shape"] = np.array([len(GENES), len(barcodes)], dtype=np.int32)
        matrix["barcodes"] = np.array(barcodes, dtype="S")
        features = {
            "id": GENE_IDS,
            "name": GENES,
            "feature_type": feature_types or ["Gene Expression"] * len(GENES),
            "genome": ["G"] * len(GENES),
        }
        for name, values in features.items():
            matrix[f"features/{name}"] = np.array(values, dtype="S")


def write_mtx(folder: Path, *, prefix: str = "", ending: str = ".gz", names: str = "features.tsv", columns: int = 3) -> None:
    """Counts as a matrix in text, with 1 to 3 columns in the file of genes."""
    buffer = io.BytesIO()
    scipy.io.mmwrite(buffer, scipy.sparse.coo_matrix(COUNTS.T))
    write(folder / f"{prefix}matrix.mtx{ending}", buffer.getvalue())
    write(folder / f"{prefix}barcodes.tsv{ending}", "".join(f"{barcode}\n" for barcode in BARCODES))
    kinds = ["Gene Expression"] * (len(GENES) - 1) + ["Antibody Capture"]
    rows = [(name,) if columns == 1 else (number, name, kind)[:columns] for number, name, kind in zip(GENE_IDS, GENES, kinds, strict=True)]
    write(folder / f"{prefix}{names}{ending}", "".join("\t".join(row) + "\n" for row in rows))


def positions_text(*, header: bool) -> str:
    """The table of spots: those of the counts backwards, after one that counts do not have."""
    rows = [("EMPTY-1", 0, 9, 9, 500, 500)]
    rows += [(barcode, tissue, *array, *pixel) for barcode, tissue, array, pixel in zip(BARCODES, IN_TISSUE, ARRAY, PIXELS, strict=True)][
        ::-1
    ]
    return (HEADER if header else "") + "".join(",".join(map(str, row)) + "\n" for row in rows)


def image_bytes(height: int, width: int, kind: str = "PNG") -> bytes:
    """An image that is red from left to right and green from top to bottom."""
    from PIL import Image

    image = np.zeros((height, width, 3), dtype=np.uint8)
    image[:, :, 0] = np.linspace(0, 255, width)
    image[:, :, 1] = np.linspace(0, 255, height)[:, None]
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, kind)
    return buffer.getvalue()


def write_spatial(folder: Path, *, prefix: str = "", ending: str = "") -> None:
    """Positions without header, scale factors and both images."""
    write(folder / f"{prefix}tissue_positions_list.csv{ending}", positions_text(header=False))
    write(folder / f"{prefix}scalefactors_json.json{ending}", json.dumps(SCALE))
    write(folder / f"{prefix}tissue_hires_image.png{ending}", image_bytes(50, 60))
    write(folder / f"{prefix}tissue_lowres_image.png{ending}", image_bytes(25, 30))


def write_space_ranger(folder: Path) -> Path:
    """The folder `outs`, or what Starfysh has of it."""
    write_h5(folder / f"{MATRIX}.h5")
    write_spatial(folder / "spatial")
    return folder


def write_wu(folder: Path, sample: str = "CID44971") -> Path:
    """The archives of Wu et al., unpacked."""
    write_mtx(folder / "filtered_count_matrices" / f"{sample}_filtered_count_matrix", columns=1)
    write_spatial(folder / "spatial" / f"{sample}_spatial")
    words = ["Stroma", "Stroma", "", "Invasive cancer", "Lymphocytes", "", "Stroma", "Stroma"]
    rows = "".join(f"{barcode},{number},{word}\n" for number, (barcode, word) in enumerate(zip(BARCODES, words, strict=True)))
    write(folder / "metadata" / f"{sample}_metadata.csv", ",nCount_RNA,Classification\n" + rows)
    return folder


HER2ST_GENES = ["ERBB2", "KRT5", "CD8A"]
HER2ST_SPOTS = ["10x13", "11x13", "10x14", "12x15"]
HER2ST_COUNTS = np.array([[0, 6, 1], [2, 0, 0], [0, 0, 3], [5, 5, 5]])
HER2ST_PIXELS = {"10x13": (200.5, 150.0), "11x13": (300.5, 150.0), "10x14": (200.5, 250.0), "12x15": (400.5, 350.0), "30x30": (1, 1)}
HER2ST_TYPES = ["B-cells", "Plasma Cells"]

FLAT = {
    "counts": "ST-cnts",
    "spots": "ST-spotfiles",
    "labels": "ST-pat-lbl",
    "clusters": "ST-cluster-lbl",
    "proportions": "ST-deconv-props",
    "images": "ST-imgs",
}
REPOSITORY = {
    "counts": "data/ST-cnts",
    "spots": "data/ST-spotfiles",
    "labels": "data/ST-pat/lbl",
    "clusters": "res/ST-cluster/lbl",
    "proportions": "res/ST-deconv/props",
    "images": "data/ST-imgs",
}


def write_her2st(folder: Path, section: str = "C2", names: dict[str, str] = FLAT) -> Path:
    """A section with everything but an image."""
    rows = [f"{spot}\t" + "\t".join(map(str, row)) for spot, row in zip(HER2ST_SPOTS, HER2ST_COUNTS.tolist(), strict=True)]
    write(folder / names["counts"] / f"{section}.tsv.gz", "\n".join(["\t" + "\t".join(HER2ST_GENES), *rows]) + "\n")
    spots = [(*spot.split("x"), *spot.split("x"), x, y, 1) for spot, (x, y) in HER2ST_PIXELS.items()]
    lines = ["x\ty\tnew_x\tnew_y\tpixel_x\tpixel_y\tselected", *("\t".join(map(str, row)) for row in spots)]
    write(folder / names["spots"] / f"{section}_selection.tsv", "\n".join(lines) + "\n")
    labels = "Row.names\tx\ty\tpixel_x\tpixel_y\tlabel\n1x1\t10.02\t12.994\t1\t1\tinvasive cancer\n2x2\t9.98\t14.01\t2\t2\tadipose tissue\n"
    write(folder / names["labels"] / f"{section}_labeled_coordinates.tsv", labels + "3x3\tNA\tNA\tNA\tNA\timmune infiltrate\n")
    write(folder / names["clusters"] / f"{section}-cluster-annotation.tsv.gz", "\tids\tlabel\tx\ty\na\tC2\t5\t12\t15\nb\tC2\t0\t10\t13\n")
    table = ["\t" + "\t".join(HER2ST_TYPES), *(f"{spot}\t{0.25 * place}\t{1 - 0.25 * place}" for place, spot in enumerate(HER2ST_SPOTS))]
    archive = folder / names["proportions"] / "major.zip"
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(f"major/{section}-proportion.tsv", "\n".join(table) + "\n")
    return folder


def dense(adata: Any) -> NDArray[Any]:
    """Counts [n, genes]."""
    return np.asarray(adata.X.toarray())


KEPT = np.flatnonzero(IN_TISSUE)


def check_spots(adata: Any, *, genes: list[str] = UNIQUE_GENES) -> None:
    """Spots under the tissue in the order of the counts, where the tables say."""
    assert adata.obs_names.tolist() == [BARCODES[place] for place in KEPT]
    assert adata.var_names.tolist() == genes
    assert np.array_equal(dense(adata), COUNTS[KEPT][:, : len(genes)])
    assert (adata.X.format, adata.X.dtype) == ("csr", np.float32)
    assert adata.obs["in_tissue"].tolist() == [1] * len(KEPT)
    assert list(zip(adata.obs["array_row"], adata.obs["array_col"], strict=True)) == [ARRAY[place] for place in KEPT]
    assert [(y, x) for x, y in adata.obsm["spatial"]] == [PIXELS[place] for place in KEPT]


def check_file(adata: Any, path: Path) -> None:
    """Every field is the same after a file."""
    adata.write_h5ad(path)
    again = pytest.importorskip("anndata").read_h5ad(path)
    assert again.obs.equals(adata.obs)
    assert again.var.equals(adata.var)
    assert np.array_equal(dense(again), dense(adata))
    assert np.array_equal(again.obsm["spatial"], adata.obsm["spatial"])
    assert set(again.obsm) == set(adata.obsm)
    if "image" in adata.obsm:
        assert again.obsm["image"].equals(adata.obsm["image"])
    for name, library in adata.uns["spatial"].items():
        assert again.uns["spatial"][name]["scalefactors"] == library["scalefactors"]
        assert again.uns["spatial"][name]["images"].keys() == library["images"].keys()
        for kind, image in library["images"].items():
            assert np.array_equal(again.uns["spatial"][name]["images"][kind], image)
