"""Finding the files of a section under the names that they go by, and a sentence where they are missing, broken or of another one."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def existing_folder(folder: str | Path) -> Path:
    """The folder, or a sentence."""
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise FileNotFoundError(f"{path} is {'a file, no' if path.is_file() else 'no'} folder: give the one that the counts are in.")
    return path


def first_file(folders: Iterable[Path], names: Iterable[str]) -> Path | None:
    """The first of these files that is there, compressed or not: all names in the first folder, then in the next."""
    endings = [f"{name}{ending}" for name in names for ending in ("", ".gz")]
    return next((folder / name for folder in folders for name in endings if (folder / name).is_file()), None)


@contextmanager
def readable(path: Path, what: str) -> Iterator[None]:
    """Within it, whatever a file that is not what its name says leads to becomes a sentence."""
    try:
        yield
    except (ValueError, OSError, EOFError, KeyError, TypeError, zlib.error, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as {what} ({error}). Restore the file.") from error


def with_position(spots: Any, positions: Any, source: str) -> NDArray[np.bool_]:
    """Whether each spot of the counts is among those of which the position is known; a sentence if none is. [n]"""
    known = np.asarray(spots.isin(positions), dtype=bool)
    if not known.any():
        mine, theirs = (next(iter(names), "none") for names in (spots, positions))
        raise ValueError(f"Counts and {source} share no spots: counts have {mine}, positions have {theirs}. Are they of one section?")
    return known
