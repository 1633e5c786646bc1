"""Where a table comes from: a folder of the user's, else OpenML through scikit-learn, else a sentence that says what to do."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml

Array = NDArray[np.float64]

FOLDER_VARIABLE = "GPSSL_DATA"
"""The environment variable that names the user's folder."""

RESTORE = f"Restore the file, or unset {FOLDER_VARIABLE} to fetch the table from OpenML."

MISSING = ("", "?")
"""How files write a value that is not there."""


@dataclass(frozen=True)
class Source:
    """The two places of a table, and how it is laid out there."""

    file: str
    """Path in the user's folder; a name that ends with .gz is of a compressed file."""
    openml_id: int | None
    """Number of the data set on OpenML, or None where none is known."""
    columns: tuple[str, ...]
    """Names of the inputs, in the order of the file. [D]"""
    delimiter: str | None = None
    """Between the cells of a line of the file; None for white space."""
    header: bool = False
    """Whether the file's first line holds names."""
    first: int = 0
    """Position of the first input in a line; the others follow it."""
    target: int = -1
    """Position of the target in a line."""
    group: int | None = None
    """Position of the cell that says which rows belong together."""
    other_targets: tuple[str, ...] = ()
    """Further targets, by their name on OpenML; they are no inputs."""
    constants: Mapping[int, float] = field(default_factory=dict)
    """Inputs that have one value in all rows, by their position in `columns`: OpenML may leave such columns out."""


class SourceTable(NamedTuple):
    """A table as its source has it."""

    X: Array
    """Inputs, NaN where a value is missing. [n, D]"""
    y: NDArray[Any]
    """Labels or targets, as text or as numbers. [n]"""
    groups: NDArray[Any] | None
    """The cells that say which rows belong together, where the source has them. [n]"""


def read_source(source: Source) -> SourceTable:
    """Read the table from the user's folder if the file is there, else from OpenML or scikit-learn's cache of it."""
    path = find_file(source.file)
    return _read_openml(source) if path is None else _read_file(path, source)


def find_file(file: str) -> Path | None:
    """Return the file in the user's folder, if there is one."""
    folder = os.environ.get(FOLDER_VARIABLE)
    path = Path(folder).expanduser() / file if folder else None
    return path if path is not None and path.is_file() else None


def where_it_belongs(file: str) -> str:
    """Return what to do about a file that was not found."""
    folder = os.environ.get(FOLDER_VARIABLE)
    return f"set {FOLDER_VARIABLE} to a folder that has {file}" + (f" ({folder} has not)" if folder else "")


class BrokenTableError(OSError):
    """A file that is not what its name says."""


def _read_file(path: Path, source: Source) -> SourceTable:
    lines = [line for line in read_text(path).splitlines() if line.strip()][1 if source.header else 0 :]
    cells = [[cell.strip() for cell in line.split(source.delimiter)] for line in lines]
    last = source.first + len(source.columns)
    _check_cells(path, cells, at_least=max(last, source.target) + 1)
    inputs = [["nan" if cell in MISSING else cell for cell in row[source.first : last]] for row in cells]
    groups = None if source.group is None else np.array([row[source.group] for row in cells])
    try:
        X = np.array(inputs, dtype=np.float64)
    except ValueError as error:
        raise BrokenTableError(f"{path} has cells that are no numbers ({error}). {RESTORE}") from error
    return SourceTable(X, np.array([row[source.target] for row in cells]), groups)


def read_text(path: Path, advice: str = RESTORE) -> str:
    """Read a file of text, compressed where its name says so; the error for one that cannot be read ends with the advice."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return content.decode("utf-8-sig")
    except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
        raise BrokenTableError(f"{path} cannot be read ({error}). {advice}") from error


def _check_cells(path: Path, cells: list[list[str]], *, at_least: int) -> None:
    """Raise BrokenTableError unless all rows are as long as the first, and that is long enough."""
    if not cells:
        raise BrokenTableError(f"{path} has no rows. {RESTORE}")
    n_cells = len(cells[0])
    if n_cells < at_least:
        raise BrokenTableError(f"{path} has {n_cells} cells in a row where at least {at_least} are expected. {RESTORE}")
    for number, row in enumerate(cells, start=1):
        if len(row) != n_cells:
            raise BrokenTableError(f"{path}: row {number} has {len(row)} cells, the first has {n_cells}. {RESTORE}")


def _read_openml(source: Source) -> SourceTable:
    bunch = _fetch(source)
    names = list(bunch.feature_names)
    X = np.array(bunch.data, dtype=np.float64)
    for name, categories in (bunch.categories or {}).items():
        X[:, names.index(name)] = _decode(X[:, names.index(name)], categories)
    kept = [position for position, name in enumerate(names) if name not in source.other_targets]
    # Inputs are told by their position: OpenML spells their names in its own way, but keeps the order of the original file.
    return SourceTable(_with_constants(X[:, kept], source), np.asarray(bunch.target), None)


def _fetch(source: Source) -> Any:
    here = where_it_belongs(source.file)
    if source.openml_id is None:
        raise FileNotFoundError(f"The table was not found: {here}. No copy on OpenML is known.")
    try:
        # As arrays, and with the parser that does not need pandas.
        return fetch_openml(data_id=source.openml_id, as_frame=False, parser="liac-arff", n_retries=1)
    except (OSError, HTTPException, ValueError) as error:  # URLError, HTTPError and time-outs are OSErrors, OpenML's own a ValueError
        raise FileNotFoundError(
            f"The table was not found: {here}, or connect to the internet once so that scikit-learn can fetch OpenML's data set "
            f"{source.openml_id} ({error})."
        ) from error


def _decode(codes: Array, categories: list[str]) -> Array:
    """Return the values of a column that OpenML declares as a choice of few: the parser returns places in the list of choices."""
    values = np.array([np.nan if str(category) in MISSING else float(category) for category in categories])
    known = ~np.isnan(codes)
    decoded = np.full(len(codes), np.nan)
    decoded[known] = values[codes[known].astype(int)]
    return decoded


def _with_constants(X: Array, source: Source) -> Array:
    """Return all D columns, where those of a single value may have been left out."""
    if X.shape[1] == len(source.columns) - len(source.constants):
        for position, value in sorted(source.constants.items()):
            X = np.insert(X, position, value, axis=1)
    if X.shape[1] != len(source.columns):
        raise ValueError(
            f"OpenML's data set {source.openml_id} has {X.shape[1]} columns where {len(source.columns)} were expected: it has changed. Set "
            f"{FOLDER_VARIABLE} to a folder that has {source.file}."
        )
    return X
