"""Where results go: names of files, checked before any work, and how a table of text is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from .._runtime import is_standard
from .._runtime.files import SPECIAL, is_special, written_beside
from ._errors import FileError

PACKED = ".gz"
TEXT_ENDINGS = (".csv", ".tsv")
ENDINGS = (*TEXT_ENDINGS, ".parquet", ".pq", ".arrow", ".feather", ".jsonl", ".ndjson")
"""Of tables that can be written; those of text may be compressed."""
JSON_ENDINGS = (".jsonl", ".ndjson")
PACKABLE = (*TEXT_ENDINGS, *JSON_ENDINGS)


@dataclass(frozen=True)
class Style:
    """How a table of text is written: as the file was that a person gave, so that the program that wrote it reads the results."""

    separator: str | None = None
    """None: what the ending of the name says."""
    decimal: str = "."
    encoding: str = "utf-8"
    nested: frozenset[str] = frozenset()
    """Columns whose cells are JSON: a file of JSON lines has lists and objects there, others their text."""
    as_json: frozenset[str] = frozenset()
    """Columns of a file of JSON lines, which has all their cells as JSON too."""


def ending_of(path: str | PathLike[str]) -> tuple[str, bool]:
    """Return the ending of a name that says how the table is written, and whether it is compressed.

    >>> ending_of("results.csv.gz"), ending_of("results.Parquet"), ending_of("-")
    (('.csv', True), ('.parquet', False), ('.csv', False))
    """
    if is_standard(path):
        return ".csv", False
    name = Path(path).name.lower()
    is_packed = name.endswith(PACKED)
    return Path(name.removesuffix(PACKED)).suffix, is_packed


def check_table_name(path: str | PathLike[str], others: tuple[str, ...] = ()) -> None:
    """Raise FileError unless the ending of a name is one that tables are written with, or one of the others."""
    ending, is_packed = ending_of(path)
    if ending in (PACKABLE if is_packed else (*ENDINGS, *others)):
        return
    known = f"{', '.join((*ENDINGS, *others))}, and .csv.gz, .tsv.gz and .jsonl.gz"
    raise FileError(f"{path} ends in {Path(path).suffix or 'nothing'}; tables are written as {known}: choose one of these.")


def is_typed(path: str | PathLike[str]) -> bool:
    """Return whether a file of this name tells numbers and dates from text."""
    return ending_of(path)[0] not in TEXT_ENDINGS


def asked_for(path: str | PathLike[str], style: Style) -> tuple[dict[str, bool], Style]:
    """Return how to ask a part of a table of this style for the cells that a file of this name will hold, and the style to write them in.

    JSON lines of JSON lines have each cell as it stood there: 1.0, "1" and true.
    """
    if style.as_json and ending_of(path)[0] in JSON_ENDINGS:
        return {"typed": True, "as_json": True}, replace(style, nested=style.as_json)
    return {"typed": is_typed(path)}, style


def beside(out: Path, ending: str) -> Path:
    """Return the file beside the results with another ending.

    >>> beside(Path("results.csv.gz"), ".gpssl").name
    'results.gpssl'
    """
    name = out.name[: -len(PACKED)] if ending_of(out)[1] else out.name
    return out.with_name(name).with_suffix(ending)


@contextmanager
def replacing(path: str | PathLike[str], *, force: bool) -> Iterator[Path]:
    """Yield a temporary path beside `path`, of the same ending: moved to `path` at the end, removed when something fails."""
    path = Path(path)
    check_writable(path, force=force)
    with written_beside(path) as temporary:
        yield temporary
        check_writable(path, force=force)  # hours may have passed


def check_writable(path: str | PathLike[str], *, force: bool) -> None:
    """Raise FileError if a file cannot be written: before the work, not after it."""
    path = Path(path)
    if path.is_dir():
        raise FileError(f"{path} is a folder: name a file.")
    if is_special(path):
        raise FileError(f"{path} cannot be replaced: {SPECIAL}; name a file.")
    if not path.parent.is_dir():
        raise FileError(f"There is no folder {path.parent}: make it first.")
    if path.is_symlink() and not path.exists():
        raise FileError(f"{path} is a link to {os.readlink(path)}, which is not there: remove the link, or choose another name.")
    if path.exists() and not force:
        raise FileError(f"{path} exists: pass force=True to replace it, or choose another name.")
    folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError(f"Nothing may be written in the folder {folder}: choose another, or change its permissions.")
