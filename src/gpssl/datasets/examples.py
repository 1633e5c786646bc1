"""Rows that are no table of numbers, and the files of the user's folder that they are read from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .sources import BrokenTableError, find_file, read_text, where_it_belongs

RESTORE = "Restore the file."


@dataclass(frozen=True)
class Examples:
    """Texts, graphs or the rows of a data frame, and their classes."""

    name: str
    X: Any
    """A list of strings, a list of graphs, or a data frame. [n]"""
    y: NDArray[np.str_]
    """[n]"""
    groups: NDArray[np.str_] | None = None
    """Which rows belong together and should not be split. [n]"""


class TextFile(NamedTuple):
    """A file that was found and read."""

    path: Path
    lines: list[str]
    """Those that are not empty."""

    def broken(self, what: str) -> BrokenTableError:
        """The error for a file that is not what its name says."""
        return BrokenTableError(f"{self.path} {what}. {RESTORE}")


def read_lines(file: str) -> TextFile:
    """The lines of a file of the user's folder; these data sets are fetched from nowhere else."""
    found = TextFile(path_of(file), [])
    found.lines.extend(line for line in read_text(found.path, RESTORE).splitlines() if line.strip())
    if not found.lines:
        raise found.broken("has no rows")
    return found


def path_of(file: str) -> Path:
    """Where a file of the user's folder is, or a sentence that says where it should be."""
    path = find_file(file)
    if path is None:
        raise FileNotFoundError(f"The data set was not found: {where_it_belongs(file)}.")
    return path
