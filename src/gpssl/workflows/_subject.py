"""What a command works on: the rows of a person's file, what is to be predicted, and a way to write results beside them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from .._runtime.progress import Progress
from ..data._column_facts import ColumnFacts
from ..data._labels import Target
from ..estimator import GPSSL
from ..evaluation._held_out import Labeled
from ._settings import Settings

Array = NDArray[np.float64]


class Piece(NamedTuple):
    """Consecutive rows."""

    rows: Any
    """As the model takes them: a data frame, or an array."""
    cells: Callable[[bool], Any]
    """All columns as the person had them, in a data frame: numbers and dates as such if called with true, else as they stood there."""


class Subject(ABC):
    """A file with rows."""

    path: Path
    n_rows: int
    notes: list[str]
    """What was done to read it, in sentences."""
    facts: Sequence[ColumnFacts]
    """Of the columns that the model learns from."""
    kind: Literal["table", "tissue"]
    dropped: Mapping[str, str]
    """Columns that the model does not look at, and why."""
    group: str | None
    """The column that says which rows belong together."""
    target_name: str | None
    """The column to predict."""

    @abstractmethod
    def kernel(self, settings: Settings) -> Kernel:
        """What says which rows are alike."""

    @abstractmethod
    def fit(self, settings: Settings) -> GPSSL:
        """A representation of all rows."""

    @abstractmethod
    def pieces(self) -> Iterator[Piece]:
        """All rows, in order, some at a time."""

    @abstractmethod
    def target(self) -> Target:
        """The column to predict."""

    @abstractmethod
    def groups(self) -> NDArray[Any] | None:
        """Which rows belong together. [n]"""

    @abstractmethod
    def coordinates(self) -> Array | None:
        """Where the rows are on tissue. [n, 2]"""

    @abstractmethod
    def write(self, out: Path, new_columns: Callable[[Piece, slice], Any], *, only_new: bool, force: bool) -> None:
        """A file with the rows and, for each piece and its place in the file, a data frame of new columns."""

    def labeled(self) -> Labeled:
        """The rows with a label."""
        target, groups = self.target(), self.groups()
        places = np.flatnonzero(target.is_known)
        return Labeled(places, self.rows_at(places), target.labels, None if groups is None else groups[places])

    def card_notes(self) -> dict[str, Any]:
        """For the card of a model that was learned from this file."""
        notes = {"kind": self.kind, "table": self.path.name, "rows": self.n_rows, "target": self.target_name, "group": self.group}
        return {name: value for name, value in notes.items() if value is not None}

    def rows_at(self, places: NDArray[np.intp]) -> Any:
        """Some of the rows, in the order of the file, in memory."""
        chosen = np.zeros(self.n_rows, dtype=bool)
        chosen[places] = True
        return one_below_the_other([piece.rows[chosen[where]] for piece, where in self.numbered_pieces()])

    def numbered_pieces(self, task: str = "reading") -> Iterator[tuple[Piece, slice]]:
        """The pieces, and where each is in the file."""
        progress = Progress(task, self.n_rows)
        start = 0
        for piece in self.pieces():
            yield piece, slice(start, start + len(piece.rows))
            start += len(piece.rows)
            progress.advance(len(piece.rows))
        progress.finish()


def one_below_the_other(parts: list[Any]) -> Any:
    """Data frames or arrays, as one."""
    if hasattr(parts[0], "columns"):
        import pandas as pd

        return pd.concat(parts, ignore_index=True)
    return np.concatenate(parts)
