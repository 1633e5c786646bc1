"""A table in a file, of any dialect and size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from .. import GPSSL
from ..column_facts import ColumnFacts
from ..files import UserTable, open_table, write_table
from .settings import Settings, kernel_for, new_representation
from .subject import Array, Piece, Subject, Target, TargetKind

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
    ) -> None:
        apart = [*ignore, *([] if group is None else [group])]
        self.table: UserTable = open_table(path, keep=keep, ignore=apart, target=target, target_kind=target_kind, columns=columns)
        self.path = path
        self.n_rows = self.table.n_rows
        self.notes = [*self.table.notes, *_left_out(self.table.dropped, apart)]
        self.facts = self.table.facts
        self._target, self._group = target, group
        self._frame = self.table.frame(extra=self._others) if self.table.fits_in_memory else None

    @property
    def _others(self) -> list[str]:
        """Columns that the model does not look at, but that are the person's."""
        used = set(self.table.used)
        return [name for name in self.table.names if name not in used]

    def kernel(self, settings: Settings) -> Kernel:
        """One that suits the columns."""
        return kernel_for(self.table.sample()[self.table.used], settings.alike)

    def fit(self, settings: Settings) -> GPSSL:
        """A representation of all rows."""
        rows = self.table.rows() if self._frame is None else self._frame[self.table.used]
        return new_representation(self.kernel(settings), settings).fit(rows)

    def pieces(self) -> Iterator[Piece]:
        """One if the table fits in memory."""
        for frame in self.table.frames(extra=self._others) if self._frame is None else [self._frame]:
            yield Piece(frame[self.table.used], frame[self.table.names])

    def target(self) -> Target:
        """The column that was named when the file was opened."""
        if self._target is None or self.table.target_kind is None:
            raise ValueError("Name the column to predict: --target COLUMN.")
        return Target(self._target, self.table.target_kind, self.table.target())

    def groups(self) -> NDArray[Any] | None:
        """The column that was named; a row without a group is one of its own."""
        if self._group is None:
            return None
        names = np.concatenate([piece.cells[self._group].astype(object).to_numpy() for piece in self.pieces()])
        return np.array([f"row {row}" if name is None or name != name else str(name) for row, name in enumerate(names)])

    def coordinates(self) -> Array | None:
        """Tables have none."""
        return None

    def write(self, out: Path, new_columns: Callable[[Piece, slice], Any], *, only_new: bool, force: bool) -> None:
        """The rows as they were read, and the new columns."""
        write_table(out, self._with(new_columns, only_new), force=force)

    def _with(self, new_columns: Callable[[Piece, slice], Any], only_new: bool) -> Iterator[Any]:
        for piece, where in self.numbered_pieces("writing"):
            new = new_columns(piece, where)
            new.index = piece.cells.index
            yield new if only_new else _without_clashes(piece.cells, new).join(new)


def _left_out(dropped: Mapping[str, str], asked: Sequence[str]) -> list[str]:
    """A sentence about columns that are not learnt from, though nobody asked for that."""
    reasons = [f"{name!r} ({reason})" for name, reason in dropped.items() if name not in asked]
    if not reasons:
        return []
    more = f" and {len(reasons) - MOST_REASONS:,} more" if len(reasons) > MOST_REASONS else ""
    return [
        f"Not learnt from: {', '.join(reasons[:MOST_REASONS])}{more}. Pass --keep COLUMN to learn from one that looks like an identifier."
    ]


def _without_clashes(cells: Any, new: Any) -> Any:
    """A second run replaces the columns of the first."""
    return cells.drop(columns=[name for name in new.columns if name in cells.columns])
