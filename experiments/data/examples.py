"""Texts and sequences of letters with classes."""

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
    """The lines that are not empty."""

    def broken(self, what: str) -> BrokenTableError:
        """Return the error for a file that is not what its name says."""
        return BrokenTableError(f"{self.path} {what}. {RESTORE}")


def read_lines(file: str) -> TextFile:
    """Read the lines of a file of the user's folder; these data sets are fetched from nowhere else."""
    found = TextFile(path_of(file), [])
    found.lines.extend(line for line in read_text(found.path, RESTORE).splitlines() if line.strip())
    if not found.lines:
        raise found.broken("has no rows")
    return found


def path_of(file: str) -> Path:
    """Return where a file of the user's folder is, or raise FileNotFoundError with advice."""
    path = find_file(file)
    if path is None:
        raise FileNotFoundError(f"The data set was not found: {where_it_belongs(file)}.")
    return path


SMS_SPAM = "sms_spam/SMSSpamCollection"
SPLICE = "dna_splice/splice.dat"
SPLICE_LENGTH = 60


def load_sms_spam() -> Examples:
    """Load text messages, "ham" or "spam": 5,574 of them, of which 747 are spam."""
    file = read_lines(SMS_SPAM)
    cells = [line.split("\t", 1) for line in file.lines]
    for number, row in enumerate(cells, start=1):
        if len(row) != 2 or row[0] not in ("ham", "spam"):
            raise file.broken(f"has no label and text in row {number}")
    return Examples("sms_spam", [text for _, text in cells], np.array([label for label, _ in cells]))


def load_splice() -> Examples:
    """Load splice junctions in DNA, 3,190 sequences of 60 letters: an exon ends (EI) or begins (IE) in the middle, or neither (N).

    Letters are A, C, G and T, and a few N, D, R and S where the base was not certain.
    """
    file = read_lines(SPLICE)
    rows = [[cell.strip() for cell in line.split(",")] for line in file.lines if not line.startswith("@")]
    for number, row in enumerate(rows, start=1):
        if len(row) != SPLICE_LENGTH + 1:
            raise file.broken(f"has {len(row)} cells in row {number} where {SPLICE_LENGTH} letters and a class are expected")
    return Examples("splice", ["".join(row[:-1]) for row in rows], np.array([row[-1] for row in rows]))
