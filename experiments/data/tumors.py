"""Sections of breast tumors, in the layouts of the authors who published them: HER2ST, and Wu et al. (2021)."""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from gpssl.spatial import read_visium
from gpssl.spatial._fields import need
from gpssl.spatial._images import image_features, open_image, read_image
from gpssl.spatial._visium import existing_folder, first_file, readable, with_position

FOLDERS = {
    "counts": ("ST-cnts", "data/ST-cnts"),
    "spots": ("ST-spotfiles", "data/ST-spotfiles"),
    "labels": ("ST-pat-lbl", "ST-pat/lbl", "data/ST-pat/lbl"),
    "images": ("ST-imgs", "data/ST-imgs"),
    "clusters": ("ST-cluster-lbl", "res/ST-cluster/lbl", "../res/ST-cluster/lbl"),
    "proportions": ("ST-deconv-props", "res/ST-deconv/props", "../res/ST-deconv/props"),
}
"""Where the files of each kind are, by the folder of the data, or of the repository, or of its part `data`."""

LONGEST_SIDE = 2000
"""Pixels of the image that is kept, as for Visium."""

DIAMETER = 0.5
"""The diameter of a spot, as a part of the distance between neighboring spots: 100 μm of 200 μm."""


def read_her2st(folder: str | Path, section: str, *, texture: bool = False) -> Any:
    """Read a section of a HER2-positive breast tumor (Andersson et al., 2021, "Spatial deconvolution of HER2-positive breast cancer …").

    The layout is that of the authors' repository (almaan/her2st), or the same files in the flat folders `ST-cnts`, `ST-spotfiles`,
    `ST-pat-lbl`, `ST-cluster-lbl`, `ST-deconv-props` and `ST-imgs`. All but the counts may be missing, and are then missing in the result.

    Parameters
    ----------
    folder
        Of the repository, of its part `data`, or of the flat folders.
    section
        Patient and number, such as "H1".
    texture
        Whether `obsm["image"]` also has the standard deviation of each color.

    Returns
    -------
    AnnData
        - `X`: counts, sparse by rows [n, genes]; spots are called "10x13" by their place in the array.
        - `obs["array_x"]`, `obs["array_y"]`: that place.
        - `obs["pathologist_label"]`, `obs["cluster"]`: categories, NaN for spots without one.
        - `obsm["cell_type_proportions"]`: the authors' estimates for eight major types. [n, 8]
        - `obsm["spatial"]`: pixels of the full image, else the place in the array. [n, 2]
        - `uns["spatial"][section]`: "scalefactors", and under "images" the image at no more than 2,000 pixels a side.
        - `obsm["image"]`: colors under the spots, where there is an image.

        An image on which not all of the spots lie is not the section's at its full size; it is left out, and a warning says so. The dark
        cut-outs of the authors' web application are left out without a word.
    """
    place = existing_folder(folder)
    adata = _read_counts(place, section)
    spots = _read_table(place, "spots", f"{section}_selection.tsv")
    if spots is not None:
        adata = _on_the_slide(adata, spots, section)
    coordinates = adata.obs[["array_x", "array_y"]] if spots is None else spots.loc[adata.obs_names, ["pixel_x", "pixel_y"]]
    adata.obsm["spatial"] = coordinates.to_numpy(dtype=np.float64)
    adata.uns["spatial"] = {section: {"images": {}, "scalefactors": {"spot_diameter_fullres": DIAMETER * _pitch(adata)}}}
    _add_labels(adata, "pathologist_label", _read_table(place, "labels", f"{section}_labeled_coordinates.tsv"))
    _add_labels(adata, "cluster", _read_table(place, "clusters", f"{section}-cluster-annotation.tsv"))
    proportions = _read_proportions(place, section)
    if proportions is not None:
        adata.obsm["cell_type_proportions"] = proportions.reindex(adata.obs_names)
    image = _find_image(place, section)
    if image is not None and spots is not None:
        _add_image(adata, image, section, texture=texture)
    return adata


def _folders(place: Path, kind: str) -> list[Path]:
    return [path for path in (place / name for name in FOLDERS[kind]) if path.is_dir()]


def _read_counts(place: Path, section: str) -> Any:
    folders = _folders(place, "counts")
    path = first_file(folders, [f"{section}.tsv"])
    if path is None:
        there = sorted({file.name.split(".")[0] for folder in folders for file in folder.glob("*.tsv*")})
        if not there:
            raise FileNotFoundError(f"{place} has no counts: ST-cnts/{section}.tsv.gz or data/ST-cnts/{section}.tsv.gz is expected.")
        raise ValueError(f"There is no section {section!r} in {place}; there are {', '.join(there)}.")
    with readable(path, "a table of counts"):
        table = need("pandas").read_csv(path, sep="\t", index_col=0)
        counts = scipy.sparse.csr_matrix(table.to_numpy(dtype=np.float32))
    names = table.index.astype(str)
    strange = [name for name in names if not re.fullmatch(r"\d+x\d+", name)]
    if strange:
        raise ValueError(f"{path} has a row {strange[0]!r}; rows are named by their place in the array, such as 10x13.")
    adata = need("anndata").AnnData(counts)
    adata.obs_names, adata.var_names = names.to_numpy(), table.columns.astype(str).to_numpy()
    array = np.array([name.split("x") for name in names], dtype=np.int64)
    adata.obs["array_x"], adata.obs["array_y"] = array.T
    return adata


def _read_table(place: Path, kind: str, name: str) -> Any:
    """Read a table with the columns x and y, by the place in the array that they round to; None if there is none."""
    path = first_file(_folders(place, kind), [name])
    if path is None:
        return None
    with readable(path, "a table of spots"):
        table = need("pandas").read_csv(path, sep="\t", dtype={"label": str})
    needed = ["x", "y", *(["pixel_x", "pixel_y"] if kind == "spots" else ["label"])]
    missing = [column for column in needed if column not in table]
    if missing:
        raise ValueError(f"{path} has no column {', '.join(missing)}. Restore the file.")
    table = table.dropna(subset=["x", "y"])  # pathologists' words for no spot
    places = table[["x", "y"]].to_numpy(dtype=np.float64).round().astype(np.int64)
    table.index = [f"{x}x{y}" for x, y in places]
    if not table.index.is_unique:
        raise ValueError(f"{path} has the spot {table.index[table.index.duplicated()][0]} more than once.")
    return table


def _on_the_slide(adata: Any, spots: Any, section: str) -> Any:
    """Return the spots with a known position: those under the tissue."""
    known = with_position(adata.obs_names, spots.index, f"positions of section {section}")
    return adata if known.all() else adata[known].copy()


def _add_labels(adata: Any, name: str, table: Any) -> None:
    if table is not None:
        adata.obs[name] = table["label"].reindex(adata.obs_names).astype("category")


def _pitch(adata: Any) -> float:
    """Return distance between neighboring spots in the unit of `obsm["spatial"]`, from the spread of the spots there and in the array."""
    in_array = adata.obs[["array_x", "array_y"]].to_numpy().var(axis=0).sum()
    return float(np.sqrt(adata.obsm["spatial"].var(axis=0).sum() / in_array)) if in_array else 1.0


def _read_proportions(place: Path, section: str) -> Any:
    """Read estimated proportions of major cell types, by spot; None if there are none."""
    pandas, name = need("pandas"), f"{section}-proportion.tsv"
    folders = _folders(place, "proportions")
    path = first_file([folder / "major" for folder in folders], [name]) or first_file(folders, ["major.zip"])
    if path is None:
        return None
    with readable(path, "proportions"):
        if path.suffix != ".zip":
            return pandas.read_csv(path, sep="\t", index_col=0)
        with zipfile.ZipFile(path) as files:
            there = f"major/{name}" in files.namelist()
            return pandas.read_csv(io.BytesIO(files.read(f"major/{name}")), sep="\t", index_col=0) if there else None


def _find_image(place: Path, section: str) -> Path | None:
    """Return the path of `C2_….jpg`, or of any image in `C/C2`."""
    for folder in _folders(place, "images"):
        files = [*sorted(folder.glob(f"{section}_*")), *sorted((folder / section[:1] / section).glob("*"))]
        for path in files:
            if path.suffix.lower() in (".jpg", ".jpeg", ".png", ".tif", ".tiff") and not path.stem.endswith("_dark"):
                return path
    return None


def _add_image(adata: Any, path: Path, section: str, *, texture: bool) -> None:
    with open_image(path) as opened:
        size = np.array(opened.size)
    spots = adata.obsm["spatial"]
    if (spots < 0).any() or (spots > size).any():
        (right, bottom), (width, height) = spots.max(axis=0), size
        warnings.warn(
            f"Spots of section {section} lie outside of {path.name}, which is left out: it has {width} × {height} pixels, they reach to "
            f"x = {right:.0f}, y = {bottom:.0f}.",
            UserWarning,
            stacklevel=3,
        )
        return
    library = adata.uns["spatial"][section]
    library["images"]["hires"] = image = read_image(path, longest=LONGEST_SIDE)
    library["scalefactors"]["tissue_hires_scalef"] = float(max(image.shape[:2]) / size.max())
    image_features(adata, library_id=section, texture=texture)


def read_wu(folder: str | Path, sample: str = "CID44971", *, texture: bool = False) -> Any:
    """Read a Visium section of Wu et al. (2021), "A single-cell and spatially resolved atlas of human breast cancers".

    The archives are expected unpacked. The layout is taken from the published description (Zenodo, record 4739739), with S for the sample:

        filtered_count_matrices/S_filtered_count_matrix/{matrix.mtx.gz, barcodes.tsv.gz, features.tsv.gz}
        spatial/S_spatial/{tissue_positions_list.csv, scalefactors_json.json, tissue_hires_image.png, tissue_lowres_image.png}
        metadata/S_metadata.csv

    CID44971 is the paper's breast cancer sample. In the tutorials of Starfysh the same section comes in a folder of Space Ranger's layout,
    for `read_visium`.

    Returns
    -------
    AnnData
        As from `read_visium`, and `obs["classification"]`, the pathologists' word for each spot, where the metadata have it.
    """
    place = existing_folder(folder)
    matrices = place / "filtered_count_matrices"
    counts = matrices / f"{sample}_filtered_count_matrix"
    if not counts.is_dir():
        there = sorted(path.name.removesuffix("_filtered_count_matrix") for path in matrices.glob("*_filtered_count_matrix"))
        raise FileNotFoundError(f"{matrices} has no counts of {sample!r}; it has {', '.join(there) or 'none at all'}.")
    adata = read_visium(place / "spatial" / f"{sample}_spatial", counts=str(counts.resolve()), library_id=sample, texture=texture)
    path = first_file([place / "metadata"], [f"{sample}_metadata.csv"])
    if path is not None:
        with readable(path, "a table"):
            metadata = need("pandas").read_csv(path, index_col=0)
        if "Classification" in metadata:
            adata.obs["classification"] = metadata["Classification"].reindex(adata.obs_names).astype("category")
    return adata
