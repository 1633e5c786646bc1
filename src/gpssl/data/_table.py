"""A table as a person has it: opened, understood, and read whole or part by part."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._runtime.progress import Progress
from .._runtime.threads import map_in_order, n_workers
from ._arrays import mixed_bits
from ._calendar import wave_named
from ._columns import (
    OF_TEXT,
    Column,
    MissingLabels,
    TablePart,
    UnusedColumn,
    check_kinds,
    header_of_columns,
    keep_codes,
    missing_labels,
    origins,
    settle_columns,
    waves_of,
)
from ._decisions import Wanted
from ._errors import FileError, beginning, listed, no_such_column, quoted
from ._formats import open_source
from ._frames import MISSING_WORDS, ColumnFacts, ColumnKind
from ._labels import TargetKind
from ._left_out import looks_like_id, why_not
from ._outputs import Style
from ._reading_notes import notes_on_reading
from ._source import TableSource, Where
from ._table_files import EncodedRows

MEMORY_BYTES = 256 * 2**20
"""The most bytes of a table that is held in memory as a whole."""
CELL_BYTES: dict[ColumnKind, int] = {"number": 8, "boolean": 8, "date": 8, "category": 64, "text": 128}
MOST_CLASSES = 20
CLASS_SHARE = 0.05
"""Whole numbers are classes while there are at most so many different ones, or such a share of the rows."""


def open_table(
    path: str | PathLike[str],
    *,
    keep: Sequence[str] = (),
    ignore: Sequence[str | re.Pattern[str]] = (),
    target: str | None = None,
    columns: Sequence[ColumnFacts] | None = None,
    target_kind: TargetKind | None = None,
    title: str | None = None,
    sheet: str | None = None,
) -> FileTable:
    """Read a file once from beginning to end, to learn what its columns hold.

    Parameters
    ----------
    path
        A file of separated values in any dialect (.csv, .tsv, .txt) or of JSON lines (.jsonl, .ndjson), compressed or not (.gz, .bz2,
        .zst); a Parquet file (.parquet, .pq) or an Arrow file (.arrow, .feather, .ipc); a workbook (.xlsx, .xlsm); a SQLite (.sqlite,
        .sqlite3, .db) or DuckDB (.duckdb) database; a .zip with one of these; or "-", standard input.
    keep
        Columns to learn from though they look like IDs.
    ignore
        Columns to leave out: names, or compiled patterns that match all of a name. The target stays, also where a pattern matches it.
    target
        The column to predict, which is never learned from.
    columns
        What a model's card says about its columns: read these, in this order and as these kinds.
    target_kind
        Whether the target is classes or a number; by default its cells decide.
    title
        What errors call the table; by default the path.
    sheet
        The sheet of a workbook, or the table of a database. By default the first sheet with a table, and the only table.
    """
    named = [one for one in ignore if isinstance(one, str)]
    patterns = [one for one in ignore if isinstance(one, re.Pattern)]
    said = [*([] if target is None else [target]), *keep, *named, *(fact.name for fact in columns or ())]
    source = open_source(Path(path), Where(sheet, tuple(said)))
    matched = [name for name in source.names if name != target and any(pattern.fullmatch(name) for pattern in patterns)]
    table = FileTable(source, title or source.path, keep=keep, ignore=[*named, *matched], target=target, wanted=columns)
    if target is not None:
        table.target_kind = target_kind or table.likely_target_kind
        if table.target_kind == "number" and table.column(target).kind == "date":
            raise FileError(f"The target {target!r} holds dates, which are no numbers: give a column of days or years since some date.")
        if table.target_kind == "number" and table.column(target).kind in OF_TEXT:
            raise FileError(f"The target {target!r} of {title or path} holds text, not numbers: predict it as a class, or mend its cells.")
        table.notes += table._missing_labels.notes
    return table


class FileTable:
    """A table in a file. `open_table` makes it.

    Attributes
    ----------
    n_rows
        Rows that can be read.
    used, facts
        The columns to learn from, and what is known of them.
    dropped
        The other columns, and why.
    notes
        Sentences about what was done to read the file.
    target_name, target_kind
        The target, and whether it is classes or a number.
    """

    def __init__(
        self,
        source: TableSource,
        title: str | Path,
        *,
        keep: Sequence[str],
        ignore: Sequence[str],
        target: str | None,
        wanted: Sequence[ColumnFacts] | None,
    ) -> None:
        self._source, self._title = source, title
        self._with_codes: set[str] = set()
        self.target_name = target
        self.target_kind: TargetKind | None = None
        self.dropped: dict[str, str] = dict(source.unusable)
        self._check_names([*keep, *ignore], [] if wanted is None else [fact.name for fact in wanted])
        asked = {name: one for fact in wanted or () for name, one in [self._asked(fact)]}
        if wanted is None:
            asked = dict.fromkeys((name for name in source.names if name in source.storage and name not in ignore), Wanted())
            self.dropped |= dict.fromkeys(ignore, "it is to be ignored")
        if target is not None:
            asked.setdefault(target, Wanted())
        self._profile(asked)
        if wanted is None:
            self._choose(keep)
        else:
            self.used = [fact.name for fact in wanted]
            check_kinds(self._columns_named(self.used), self._title)
        self.notes = [*source.notes, *notes_on_reading([column for column in self._columns.values() if column.wave is None])]

    def _check_names(self, asked_for: Sequence[str], trained_on: Sequence[str]) -> None:
        """Raise FileError for a column that is not there, and for a target that cannot be predicted."""
        source, target = self._source, self.target_name
        for name in (*asked_for, *([] if target is None else [target])):
            if name not in source.names:
                raise no_such_column(name, source.names, self._title)
        if target is not None and target in source.unusable:
            raise FileError(f"The target {target!r} of {self._title} {source.unusable[target]}.")
        missing = [name for name in trained_on if name not in source.storage and wave_named(name, source.storage) is None]
        if missing:
            raise FileError(f"{beginning(self._title)} lacks {len(missing):,} column(s) that the model was trained on: {listed(missing)}.")

    def _asked(self, fact: ColumnFacts) -> tuple[str, Wanted]:
        """Return the column of the file that a model learned from, and how it is to be read."""
        made = wave_named(fact.name, self._source.storage) if fact.name not in self._source.storage else None
        return (fact.name, Wanted(fact.kind, fact.unit)) if made is None else (made.origin, Wanted("number", made.cycle.reading))

    def _profile(self, asked: dict[str, Wanted]) -> None:
        """Find out what the columns hold, from all their cells."""
        report = Progress("reading", None, enabled=False)
        self._columns = settle_columns(self._source, asked, report)
        if self.target_name is not None and self._columns[self.target_name].kind == "text":  # long names of classes
            self._columns[self.target_name] = replace(self._columns[self.target_name], kind="category")
        report.finish()
        self.n_rows = max((column.findings.n_rows for column in self._columns.values()), default=0)
        if self.n_rows == 0:
            raise FileError(f"{beginning(self._title)} has names of columns, but no rows.")

    def _choose(self, keep: Sequence[str]) -> None:
        """Choose the columns to learn from."""
        self.used = []
        for name, column in list(self._columns.items()):
            if name == self.target_name:
                continue
            reason = why_not(column)
            if reason is None and name not in keep:
                reason = "it is the index of a pandas data frame" if name in self._source.index else None
                reason = reason or looks_like_id(column, is_unnamed=name in self._source.unnamed)
            if reason:
                self.dropped[name] = reason
            else:
                self.used += [made.name for made in self._waves_of(column)]
        if not self.used:
            reasons = (
                "; ".join(f"{quoted(name)}: {reason}" for name, reason in list(self.dropped.items())[:3]) or "it holds the target alone"
            )
            is_like_id = next((name for name, reason in self.dropped.items() if "looks like an ID" in reason), None)
            advice = "" if is_like_id is None else f" Pass keep=[{quoted(is_like_id)}] to learn from a column that looks like an ID."
            raise FileError(f"{beginning(self._title)} has no column to learn from in its {self.n_rows:,} row(s) ({reasons}).{advice}")

    # What is known

    @property
    def names(self) -> list[str]:
        """All columns that can be read, in the order of the file."""
        return [name for name in self._source.names if name in self._source.storage]

    def column(self, name: str) -> Column:
        """Return one column, by its name."""
        return self._columns_named([name])[0]

    def _columns_named(self, names: Sequence[str]) -> list[Column]:
        """Return these columns; find out what they hold where they were not asked for at first."""
        made = {name: wave_named(name, self._source.storage) for name in names if name not in self._source.storage}
        new: dict[str, Wanted] = {}
        for name in names:
            wave = made.get(name)
            if name in made and wave is None:
                raise no_such_column(name, self._source.names, self._title)
            origin, wanted = (name, Wanted()) if wave is None else (wave.origin, Wanted("number", wave.cycle.reading))
            new |= {origin: wanted} if origin not in self._columns else {}
        self._columns |= settle_columns(self._source, new)
        for wave in made.values():
            if wave is not None and wave.name not in self._columns:
                self._waves_of(self._columns[wave.origin])
        return [self._columns[name] for name in names]

    def _waves_of(self, column: Column) -> list[Column]:
        """Return the columns to learn from that are made of one of the file: two where its values come again, else itself."""
        waves = waves_of(column)
        if any(wave.name in self._source.names for wave in waves):
            return [column]
        self._columns |= {wave.name: wave for wave in waves}
        return waves

    @property
    def facts(self) -> list[ColumnFacts]:
        """What is known of the columns to learn from."""
        return [column.facts for column in self._columns_named(self.used)]

    @property
    def texts_used(self) -> list[str]:
        """The columns to learn from that hold free text."""
        return [column.name for column in self._columns_named(self.used) if column.kind == "text"]

    @property
    def fits_in_memory(self) -> bool:
        """Whether the data frame of all rows is small, together with all cells of the file as the person had them."""
        a_row = sum(CELL_BYTES[column.kind] for column in self._columns_named(self.used)) + 8 * len(self.names)
        numbers = self.n_rows * a_row
        return numbers <= MEMORY_BYTES and numbers + self._source.text_bytes <= MEMORY_BYTES

    @property
    def likely_target_kind(self) -> TargetKind:
        """Numbers with fractions, or many different whole ones, are a number; all else are classes."""
        column = self._target_column
        if column.kind != "number":
            return "class"
        n_distinct, n_values = column.findings.n_distinct, column.findings.n_values
        are_many = n_distinct > MOST_CLASSES and n_distinct > CLASS_SHARE * n_values
        return "number" if are_many or not column.findings.is_whole else "class"

    @property
    def style(self) -> Style:
        """How a file of text is written that shall look as this one: with decimal commas if most numbers with a fraction have them."""
        fractions = [column.reading for column in self._columns.values() if column.kind == "number" and not column.findings.is_whole]
        commas = [column.reading for column in self._columns.values() if column.reading == "comma"]
        return replace(self._source.style, decimal="," if commas and len(commas) >= fractions.count("point") else ".")

    # Rows

    def lines(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the line of the file that each of these rows has, counted from 1; where a file has no lines, the number of the row."""
        return self._source.lines(places)

    def frame(self, extra: Sequence[str] = ()) -> pd.DataFrame:
        """Return all rows, with further columns. Numbers and booleans are float64, dates datetime64, categories text."""
        return pd.concat([header_of_columns(self._used_and(extra)), *self.frames(extra)], ignore_index=True)

    def frames(self, extra: Sequence[str] = ()) -> Iterator[pd.DataFrame]:
        """Yield the same, part by part; the index counts the rows of the file."""
        columns = self._used_and(extra)
        return map_in_order(TablePart.rows, self._parts(columns, columns), n_threads=n_workers())

    def parts(self) -> Iterator[TablePart]:
        """Iterate over all rows: the columns to learn from, and all columns as the person had them."""
        unused = {name: UnusedColumn(name) for name in self._source.names if name not in self._source.storage}
        usable = dict(zip(self.names, self._columns_named(self.names), strict=True))
        return self._parts([unused.get(name) or usable[name] for name in self._source.names], self._columns_named(self.used))

    def _parts(self, columns: Sequence[Column | UnusedColumn], used: list[Column]) -> Iterator[TablePart]:
        first = 0
        for part in self._source.parts(origins(columns)):
            yield TablePart(part, columns, used, first, lambda: self._kept_as_text)
            first += part.cells.num_rows

    @cached_property
    def _kept_as_text(self) -> frozenset[str]:
        """The columns whose cells say more than the numbers or dates that they can be read as; found by a look at all of them."""
        left = {column.name: column for column in self._columns_named(self.names) if column.may_be_values}
        kept = set[str]()
        for part in self._source.parts(list(left)) if left else ():
            found = {name for name, column in left.items() if name not in kept and column.loses_something(part.cells.column(name))}
            kept |= found
        return frozenset(kept)

    def rows(self) -> EncodedRows:
        """Return the columns to learn from as encoded numbers, for a fit that reads part by part."""
        columns = self._columns_named(self.used)
        keep_codes(self._source, [column for column in columns if column.name not in self._with_codes])
        self._with_codes.update(self.used)
        return EncodedRows(self._source, columns, self.n_rows)

    def sample(self, n_rows: int = 20_000, seed: int = 0) -> pd.DataFrame:
        """Return at most so many rows, each as likely as any other, in the order of the file: the same ones however the file is read."""
        if n_rows >= self.n_rows:
            return self.frame()
        last = np.partition(_row_hashes(0, self.n_rows, seed), n_rows - 1)[n_rows - 1]
        parts = [part[_row_hashes(part.index[0], len(part), seed) <= last] for part in self.frames()]
        return pd.concat([header_of_columns(self._used_and(())), *parts])

    def target(self) -> NDArray[Any]:
        """Return the target of each row: numbers with NaN, or classes as text with None, where it is missing."""
        return self._target_values.copy()

    @cached_property
    def _target_values(self) -> NDArray[Any]:
        column = self._target_column
        if self.target_kind == "number":
            return np.concatenate([column.values(part) for part in self._source.parts([column.name])]).astype(np.float64)
        return self._texts_of(column, self._missing_labels.words)

    @cached_property
    def _missing_labels(self) -> MissingLabels:
        column = self._target_column
        is_complete = column.findings.n_values == column.findings.n_rows
        return missing_labels(column, () if is_complete else self._cells_of(column))

    def texts(self, name: str) -> NDArray[Any]:
        """Return one column of all rows as text, None where it is missing."""
        column = self.column(name)
        return np.concatenate([column.labels(part, keep_words=True) for part in self._cells_of(column)]).astype(object)

    def _texts_of(self, column: Column, missing: Sequence[str] = MISSING_WORDS) -> NDArray[Any]:
        return np.concatenate([column.labels(part, missing) for part in self._cells_of(column)]).astype(object)

    def _cells_of(self, column: Column) -> Iterator[Any]:
        """Return one column as it stands in the file, part by part."""
        return (part.cells.column(0) for part in self._source.parts([column.name]))

    @property
    def _target_column(self) -> Column:
        if self.target_name is None:
            raise ValueError("This table was opened without a target.")
        return self.column(self.target_name)

    def _used_and(self, extra: Sequence[str]) -> list[Column]:
        return self._columns_named(list(dict.fromkeys([*self.used, *extra])))


def _row_hashes(first: int, n_rows: int, seed: int) -> NDArray[np.uint64]:
    """Return a random number for each row, from its place in the file alone."""
    start = mixed_bits(np.array([seed], dtype=np.uint64))
    return mixed_bits(mixed_bits(np.arange(first, first + n_rows, dtype=np.uint64) + np.uint64(1)) ^ start)
