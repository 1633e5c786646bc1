"""A table: a file of any dialect and size, or a data frame."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import Kernel

from .._runtime import MOST_TEXTS, RESIDUAL_TOLERANCE, TEXT_TOLERANCE, is_standard
from .._runtime.files import forget, temporary_folder
from ..data._errors import FileError, listed
from ..data._frames import ColumnFacts, check_names
from ..data._labels import Target
from ..data._table import FileTable, open_table
from ..data._writing import write_table
from ..downstream._pool import RepresentationPool
from ..downstream._pool_members import Member
from ..estimator import GPSSL
from ..kernels.tables import for_table
from ._choices import Alike, Settings
from ._subject import Roles, Subject, SubjectPart, left_out_notes

MOST_REASONS = 5
"""The most columns that are left out with a reason of their own in a note."""
MOST_NAMES = 50


class TableSubject(Subject):
    """CSV, TSV, Parquet, Arrow, JSON lines or a data frame. What does not fit in memory is given a part at a time."""

    kind = "table"

    def __init__(
        self, table: Any, roles: Roles, columns: Sequence[ColumnFacts] | None = None, results: re.Pattern[str] | None = None
    ) -> None:
        super().__init__(table, roles)
        asked = [*roles.ignore, *([] if roles.group is None else [roles.group])]
        self.table: FileTable = open_table(
            self._arrow_file(table) if self.path is None else self.path,
            keep=roles.keep,
            ignore=asked if results is None else [*asked, results],
            target=roles.target,
            # With words for "no label" the cells may hold numbers that only `tidy_labels` can see.
            target_kind=None if roles.unlabeled and roles.target_kind == "number" else roles.target_kind,
            columns=columns,
            title=self.name if self.path is None or is_standard(self.path) else None,
            sheet=roles.sheet,
        )
        earlier = [] if results is None else [name for name in self.table.names if results.fullmatch(name) and name != roles.target]
        self.n_rows = self.table.n_rows
        self.notes = [*self.table.notes, *_left_out(self.table.dropped, [*asked, *earlier], roles.keep)]
        if earlier:
            self.notes.append(f"Columns of an earlier run are not learned from, and replaced in the results: {listed(earlier)}.")
        self.facts, self.dropped, self.style = self.table.facts, self.table.dropped, self.table.style
        self._frame = self.table.frame() if self.table.fits_in_memory else None

    def _arrow_file(self, table: Any) -> Path:
        """Return the Arrow file that a data frame makes, from which it is read as other files are."""
        if not isinstance(table, pd.DataFrame):
            raise TypeError(f"A table is a path, a pandas data frame or AnnData, got {type(table).__name__}.")
        check_names(table)
        folder = temporary_folder()
        weakref.finalize(self, forget, folder)
        try:
            write_table(folder / "table.arrow", table)
        except pa.ArrowException as error:
            raise FileError(f"The table cannot be read: {'. '.join(map(str, error.args))}. Give each column values of one type.") from error
        self.index = table.index
        return folder / "table.arrow"

    def kernel(self, settings: Settings) -> Kernel:
        """Return a kernel that suits the columns."""
        texts = self.table.texts_used
        if settings.alike is Alike.COLUMNS:
            return for_table(self.table.sample(), texts=texts)
        from ..kernels.documents import TfidfKernel
        from ..kernels.neighbors import NeighborDiffusion

        return NeighborDiffusion(kernel=for_table(self.table.sample(), texts=texts, text_kernel=TfidfKernel(max_rows=MOST_TEXTS)))

    def fit(self, settings: Settings) -> GPSSL:
        """Learn a representation of all rows."""
        ssl = GPSSL(
            settings.n_components_for(self.kind, self.n_rows),
            kernel=self.kernel(settings),
            temperature=settings.temperature,
            residual_tolerance=TEXT_TOLERANCE if self.table.texts_used else RESIDUAL_TOLERANCE,
            max_inducing=settings.max_inducing,
            random_state=settings.seed,
        )
        return ssl.fit(self.table.rows() if self._frame is None else self._frame)

    def pool(self, ssl: GPSSL, seed: int) -> RepresentationPool:
        """Return the default pool for tables, with the representation among its members."""
        rows = self.table.rows() if self._frame is None else self._frame
        members = RepresentationPool.for_rows(rows, n_rows=self.n_rows, texts=self.table.texts_used).members or []
        own = Member(f"{ssl.n_components} dimensions of the map", FrozenEstimator(ssl), "kernel")
        pool = RepresentationPool([*members, own], random_state=seed).fit(rows)
        self.notes.extend(left_out_notes(pool))
        return pool

    def parts(self) -> Iterator[SubjectPart]:
        """Yield the rows: all at once if the table fits in memory."""
        if self._frame is not None:
            frame = self._frame
            yield SubjectPart(len(frame), lambda: frame, self._cells)
            return
        for part in self.table.parts():
            yield SubjectPart(len(part), part.rows, part.cells, part.encoded)

    def _cells(self, *, typed: bool, as_json: bool = False) -> Any:
        return pd.concat([part.cells(typed=typed, as_json=as_json) for part in self.table.parts()], ignore_index=True)

    def lines(self, places: NDArray[np.intp]) -> NDArray[np.int64] | None:
        """Return the lines of these rows in the file; a data frame has an index."""
        return None if self.path is None else self.table.lines(places)

    def _read_target(self) -> Target:
        """Return the column that was named when the table was opened."""
        if self.roles.target is None or self.table.target_kind is None:
            raise ValueError("Name the column to predict.")
        is_chosen = self.roles.target_kind is not None
        return Target(self.roles.target, self.table.target_kind, self.table.target(), is_chosen)

    def groups(self) -> NDArray[Any] | None:
        """Return the groups that were named; a row without a group is one of its own."""
        if self.roles.group is None:
            return None
        return np.array([f"row {row}" if name is None else name for row, name in enumerate(self.table.texts(self.roles.group))])


def _left_out(dropped: Mapping[str, str], asked: Sequence[str], keep: Sequence[str]) -> list[str]:
    """Return a note on columns that are not learned from, though nobody asked for that. Many are named together with what they share."""
    reasons = {name: reason for name, reason in dropped.items() if name not in asked}
    if not reasons:
        return []
    told = [f"{name!r} ({reason})" for name, reason in reasons.items()]
    if len(reasons) > MOST_REASONS:
        shared: dict[str, list[str]] = {}
        for name, reason in reasons.items():
            shared.setdefault(reason.partition(":")[0], []).append(name)
        told = [f"{listed(names, MOST_NAMES)} ({'each: ' if len(names) > 1 else ''}{reason})" for reason, names in shared.items()]
    is_advised = not keep and any("looks like an ID" in reason for reason in reasons.values())  # who keeps some knows how
    advice = " Pass keep=[COLUMN] to learn from one that looks like an ID." if is_advised else ""
    return [f"Not learned from: {', '.join(told)}.{advice}"]
