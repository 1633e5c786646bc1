"""A table in a file, of any dialect and size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from .. import data as files
from ..data._column_facts import ColumnFacts
from ..data._labels import Target, TargetKind
from ..data._table import UserTable, names_in, open_table
from ..data._writing import is_typed, write_table
from ..estimator import GPSSL
from ._settings import Settings, kernel_for, new_representation
from ._subject import Array, Piece, Subject

MOST_REASONS = 5


class TableSubject(Subject):
    """CSV, TSV, Parquet, Arrow or JSON lines. What does not fit in memory is read a part at a time, in each pass anew."""

    kind = "table"

    def __init__(
        self,
        path: Path,
        *,
        target: str | None = None,
        target_kind: TargetKind | None = None,
        group: str | None = None,
        keep: Sequence[str] = (),
        ignore: Sequence[str] = (),
        columns: Sequence[ColumnFacts] | None = None,
        results: re.Pattern[str] | None = None,
    ) -> None:
        earlier = [] if results is None else [name for name in names_in(path) if results.fullmatch(name) and name != target]
        apart = [*ignore, *earlier, *([] if group is None else [group])]
        self.table: UserTable = open_table(path, keep=keep, ignore=apart, target=target, target_kind=target_kind, columns=columns)
        self.path = path
        self.n_rows = self.table.n_rows
        self.notes = [*self.table.notes, *_left_out(self.table.dropped, apart)]
        if earlier:
            self.notes.append(
                f"Columns of an earlier run are not learned from, and replaced in the results: {', '.join(earlier[:MOST_REASONS])}."
            )
        self.facts, self.dropped = self.table.facts, self.table.dropped
        self.target_name, self.group = target, group
        self._frame = self.table.frame() if self.table.fits_in_memory else None

    def kernel(self, settings: Settings) -> Kernel:
        """One that suits the columns."""
        return kernel_for(self.table.sample(), settings.alike)

    def fit(self, settings: Settings) -> GPSSL:
        """A representation of all rows."""
        rows = self.table.rows() if self._frame is None else self._frame
        return new_representation(self.kernel(settings), settings).fit(rows)

    def pieces(self) -> Iterator[Piece]:
        """One if the table fits in memory."""
        if self._frame is not None:
            yield Piece(self._frame, self._cells)
            return
        for piece in self.table.pieces():
            yield Piece(piece.rows(), partial(_cells_of, piece))

    def _cells(self, typed: bool) -> Any:
        import pandas as pd

        return pd.concat([piece.cells(typed=typed) for piece in self.table.pieces()], ignore_index=True)

    def target(self) -> Target:
        """The column that was named when the file was opened."""
        if self.target_name is None or self.table.target_kind is None:
            raise ValueError("Name the column to predict: --target COLUMN.")
        return Target(self.target_name, self.table.target_kind, self.table.target())

    def groups(self) -> NDArray[Any] | None:
        """The column that was named; a row without a group is one of its own."""
        if self.group is None:
            return None
        return np.array([f"row {row}" if name is None else name for row, name in enumerate(self.table.texts(self.group))])

    def coordinates(self) -> Array | None:
        """Tables have none."""
        return None

    def write(self, out: Path, new_columns: Callable[[Piece, slice], Any], *, only_new: bool, force: bool) -> None:
        """The rows as they were read, and the new columns."""
        write_table(out, self._with(new_columns, only_new, is_typed(out)), force=force)

    def _with(self, new_columns: Callable[[Piece, slice], Any], only_new: bool, typed: bool) -> Iterator[Any]:
        for piece, where in self.numbered_pieces("writing"):
            new = new_columns(piece, where)
            if only_new:
                yield new
                continue
            cells = piece.cells(typed)
            yield _without_clashes(cells, new).join(new.set_index(cells.index))


def _cells_of(piece: files.Piece, typed: bool) -> Any:
    return piece.cells(typed=typed)


def _left_out(dropped: Mapping[str, str], asked: Sequence[str]) -> list[str]:
    """A sentence about columns that are not learned from, though nobody asked for that."""
    reasons = [f"{name!r} ({reason})" for name, reason in dropped.items() if name not in asked]
    if not reasons:
        return []
    more = f" and {len(reasons) - MOST_REASONS:,} more" if len(reasons) > MOST_REASONS else ""
    advice = (
        " Pass --keep COLUMN to learn from one that looks like an ID." if any("looks like an ID" in reason for reason in reasons) else ""
    )
    return [f"Not learned from: {', '.join(reasons[:MOST_REASONS])}{more}.{advice}"]


def _without_clashes(cells: Any, new: Any) -> Any:
    """A second run replaces the columns of the first."""
    return cells.drop(columns=[name for name in new.columns if name in cells.columns])
