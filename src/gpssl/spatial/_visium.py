"""Read Visium sections from the output folders of Space Ranger."""

from __future__ import annotations

import gzip
import json
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse
from numpy.typing import NDArray

from ._fields import need
from ._images import image_features, read_image

MATRIX = "matrix.mtx"

GENE_EXPRESSION = "Gene Expression"
"""What 10x Genomics call counts of genes, in contrast to those of antibodies and others."""

FILTERED = "filtered_feature_bc_matrix"

COUNTS = (f"{FILTERED}.h5", FILTERED, MATRIX, f"{MATRIX}.gz")
"""Endings of the names of files and folders with counts, the best choice first; the second is a folder."""

POSITIONS = ("tissue_positions.csv", "tissue_positions_list.csv", "tissue_positions.parquet")

POSITION_COLUMNS = ("barcode", "in_tissue", "array_row", "array_col", "pxl_row_in_fullres", "pxl_col_in_fullres")


def read_visium(
    folder: str | Path,
    *,
    counts: str | Path | None = None,
    prefix: str = "",
    library_id: str | None = None,
    texture: bool = False,
) -> Any:
    """Read the spots under the tissue of a section, from the files of Space Ranger or those that GEO has.

    Counts are `filtered_feature_bc_matrix.h5`, else the folder `filtered_feature_bc_matrix`, else `matrix.mtx` with its names beside it.
    The positions of spots (`tissue_positions.csv`, `tissue_positions_list.csv` or `tissue_positions.parquet`), `scalefactors_json.json` and
    the images `tissue_hires_image.png` and `tissue_lowres_image.png` are in the folder `spatial`, or beside the counts; scale factors and
    images may be missing. Text files and images may be compressed with gzip.

    Parameters
    ----------
    folder
        The folder of one section (`outs`, or the folder that has it), or of several whose files have different prefixes.
    counts
        Another file or folder of counts, by its path in the folder, such as "raw_feature_bc_matrix.h5".
    prefix
        The prefix of the names of the section's files, such as "GSM6433617_396A_". Needed only if the folder has several sections.
    library_id
        The name of the section in `uns["spatial"]`; by default the prefix, else the folder's name.
    texture
        Whether `obsm["image"]` also has the standard deviation of each color.

    Returns
    -------
    AnnData
        - `X`: counts, sparse by rows. [n, genes] Symbols which several genes share are made unique with "-1", "-2", …; `var["gene_ids"]`
          has the identifiers.
        - `obs["in_tissue"]`, `obs["array_row"]`, `obs["array_col"]`.
        - `obsm["spatial"]`: x to the right and y down, in pixels of the full image. [n, 2]
        - `uns["spatial"][library_id]`: "images" and "scalefactors".
        - `obsm["image"]`: colors under the spots, from `image_features`, if there is an image and its scale factor.
    """
    place = existing_folder(folder)
    if counts is None:
        place, prefix, path = _find_counts(place, prefix)
    else:
        path = place / counts  # an absolute path stays what it is
        if not path.exists():
            raise FileNotFoundError(f"{path} is not there: give counts by their place in {place}.")
    name = library_id or prefix.strip("_-. ") or place.resolve().name
    return _assemble(read_counts(path), [place / "spatial", place], prefix, name, texture=texture)


def _find_counts(folder: Path, prefix: str) -> tuple[Path, str, Path]:
    """Return the folder of the section, the prefix of its files, and its counts."""
    found: dict[str, Path] = {}
    for place in (folder, folder / "outs"):
        for ending in COUNTS:
            for path in sorted(place.glob(f"*{ending}")):
                found.setdefault(path.name.removesuffix(ending), path)
        if found:
            break
    else:
        raise FileNotFoundError(f"{folder} has no counts: {FILTERED}.h5, the folder {FILTERED}, or {MATRIX}.gz is expected.")
    for choice in (prefix, f"{prefix}_"):
        if choice in found:
            return place, choice, found[choice]
    if prefix or len(found) > 1:
        there = ", ".join(repr(name) for name in found)
        raise ValueError(f"{place} has the sections {there}: give one of them as prefix{f', not {prefix!r}' if prefix else ''}.")
    ((only, path),) = found.items()
    return place, only, path


def _assemble(adata: Any, folders: Sequence[Path], prefix: str, library_id: str, *, texture: bool) -> Any:
    """Add positions, images and colors of the spots, found in these folders, to the counts."""
    path = first_file(folders, [f"{prefix}{name}" for name in POSITIONS])
    if path is None:
        raise FileNotFoundError(f"{folders[0]} has no positions of spots: {prefix}{' or '.join(POSITIONS)} is expected.")
    adata = _place_spots(adata, _read_positions(path), path)
    factors = first_file(folders, [f"{prefix}scalefactors_json.json"])
    scale = {} if factors is None else _read_scale_factors(factors)
    files = {name: first_file(folders, [f"{prefix}tissue_{name}_image.png"]) for name in ("hires", "lowres")}
    images = {name: read_image(file) for name, file in files.items() if file is not None}
    adata.uns["spatial"] = {library_id: {"images": images, "scalefactors": scale}}
    usable = [name for name in images if f"tissue_{name}_scalef" in scale and "spot_diameter_fullres" in scale]
    if usable:
        image_features(adata, library_id=library_id, resolution=usable[0], texture=texture)
    elif images:
        warnings.warn(
            f"The images in {folders[0]} have no scale factors, so spots have no colors: scalefactors_json.json is expected.",
            UserWarning,
            stacklevel=3,
        )
    return adata


def _read_positions(path: Path) -> Any:
    """Read the table of spots, by barcode."""
    pandas = need("pandas")
    if ".parquet" in path.suffixes:
        table = pandas.read_parquet(path)
    else:
        with readable(path, "a table of spots"):
            table = pandas.read_csv(path, header=None, dtype=str)
        if table.iloc[0, 0] == POSITION_COLUMNS[0]:
            table = table[1:].set_axis(table.iloc[0], axis=1)
        elif table.shape[1] == len(POSITION_COLUMNS):
            table.columns = POSITION_COLUMNS
    missing = [name for name in POSITION_COLUMNS if name not in table.columns]
    if missing:
        raise ValueError(f"{path} has no column {', '.join(missing)}; without a header, {len(POSITION_COLUMNS)} columns are expected.")
    table = table.set_index(table[POSITION_COLUMNS[0]].astype(str))[list(POSITION_COLUMNS[1:])]
    if not table.index.is_unique:
        raise ValueError(f"{path} has the barcode {table.index[table.index.duplicated()][0]} more than once.")
    with readable(path, "numbers"):
        return table.astype(np.float64)


def _place_spots(adata: Any, positions: Any, path: Path) -> Any:
    """Return the spots under the tissue, with their positions."""
    known = with_position(adata.obs_names, positions.index, str(path))
    if not known.all():
        warnings.warn(f"{(~known).sum()} of {len(known)} spots have no position in {path} and are left out.", UserWarning, stacklevel=4)
    table = positions.reindex(adata.obs_names)
    under_tissue = (table["in_tissue"] == 1).to_numpy()
    if not under_tissue.any():
        raise ValueError(f"No spot is under the tissue: {path} has in_tissue = 0 for all of them.")
    adata, table = adata[under_tissue].copy(), table[under_tissue]
    for name in POSITION_COLUMNS[1:4]:
        adata.obs[name] = table[name].to_numpy().astype(np.int64)
    adata.obsm["spatial"] = table[["pxl_col_in_fullres", "pxl_row_in_fullres"]].to_numpy()
    return adata


def _read_scale_factors(path: Path) -> dict[str, float]:
    with readable(path, "scale factors"):
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return {name: float(value) for name, value in dict(json.loads(content)).items() if isinstance(value, int | float)}


def read_counts(path: Path) -> Any:
    """Read spots by genes from an .h5 file, a matrix.mtx or the folder with one, as float32 by rows with unique names of genes.

    `var["gene_ids"]` has the identifiers of the genes in the file, because several genes can share a symbol.
    """
    matrix = first_file([path], [MATRIX]) if path.is_dir() else path
    if matrix is None:
        raise FileNotFoundError(f"{path} has no {MATRIX}, compressed or not.")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Variable names are not unique")  # genes that share a symbol are numbered below
        adata = _read_h5(matrix) if matrix.suffix == ".h5" else _read_mtx(matrix)
    adata.X = scipy.sparse.csr_matrix(adata.X, dtype=np.float32)
    adata.var_names_make_unique()
    return adata


def _read_h5(path: Path) -> Any:
    scanpy = need("scanpy")
    try:
        return scanpy.read_10x_h5(path)
    except Exception as error:  # scanpy raises errors of many classes
        raise ValueError(f"{path} cannot be read as counts of 10x Genomics' format ({error}). Restore the file.") from error


def _read_mtx(path: Path) -> Any:
    """Read genes by spots from a matrix, and their names from the files beside it with the same prefix."""
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
    # One column: symbols. Two: identifiers and symbols. A third one says what was counted.
    if genes.shape[1] > 2:
        expressed = (genes[2] == GENE_EXPRESSION).to_numpy()
        counts, genes = counts[:, expressed], genes[expressed]
    pandas = need("pandas")
    symbols = pandas.Index(genes[min(1, genes.shape[1] - 1)].to_numpy(), name=None)
    var = pandas.DataFrame({"gene_ids": genes[0].to_numpy()}, index=symbols)
    return need("anndata").AnnData(counts, obs=pandas.DataFrame(index=barcodes.to_numpy()), var=var)


def _read_names(beside: Path, names: list[str]) -> Any:
    """Read a table of text without a header."""
    path = first_file([beside.parent], names)
    if path is None:
        raise FileNotFoundError(f"{beside.parent} has {beside.name}, but no {' or '.join(names)}, compressed or not.")
    with readable(path, "a list of names"):
        # A gene may be called NA.
        return need("pandas").read_csv(path, sep="\t", header=None, dtype=str, keep_default_na=False)


def existing_folder(folder: str | Path) -> Path:
    """Return the path of a folder. Raise FileNotFoundError unless it exists."""
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise FileNotFoundError(f"{path} is {'a file, no' if path.is_file() else 'no'} folder: give the folder that has the counts.")
    return path


def first_file(folders: Iterable[Path], names: Iterable[str]) -> Path | None:
    """Return the first of these files that exists, compressed or not: all names in the first folder, then in the next."""
    endings = [f"{name}{ending}" for name in names for ending in ("", ".gz")]
    return next((folder / name for folder in folders for name in endings if (folder / name).is_file()), None)


@contextmanager
def readable(path: Path, what: str) -> Iterator[None]:
    """Turn every error in this context that a broken file can cause into a ValueError that names the file."""
    try:
        yield
    except (ValueError, OSError, EOFError, KeyError, TypeError, zlib.error, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as {what} ({error}). Restore the file.") from error


def with_position(spots: Any, positions: Any, source: str) -> NDArray[np.bool_]:
    """Return whether the position of each spot of the counts is known. Raise ValueError if none is. [n]"""
    known = np.asarray(spots.isin(positions), dtype=bool)
    if not known.any():
        mine, theirs = (next(iter(names), "none") for names in (spots, positions))
        raise ValueError(f"Counts and {source} share no spots: counts have {mine}, positions have {theirs}. Are they of one section?")
    return known
