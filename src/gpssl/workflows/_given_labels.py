"""Labels that a person gave elsewhere, such as in the page of `gpssl annotate`: read, matched to their rows, and merged."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data._errors import FileError, listed
from ..data._formats import open_source
from ..data._frames import MISSING_WORDS
from ..data._labels import Target
from ._row_checksums import NUMBER, Places, row_checksums, row_names, text_of

if TYPE_CHECKING:
    from ._subject import Subject

MOST_NAMED = 8
"""The most rows that a sentence names."""
GUARDED = re.compile(r"'[=+\-@\t\r]")
"""How texts begin that spreadsheets would take for a formula, after an apostrophe has made them harmless."""


class KeyColumns(NamedTuple):
    """Columns of a file of labels that say which row a label belongs to."""

    row: str
    checksum: str


def key_columns(target: str) -> KeyColumns:
    """Return their names, which differ from that of the target."""
    return KeyColumns("row", "checksum") if target not in ("row", "checksum") else KeyColumns("gpssl_row", "gpssl_checksum")


def empty_labels(target: str, rows: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Return labels to be filled in, for these rows and their checksums. [n]"""
    return pd.DataFrame([(*row, None) for row in rows], columns=[*key_columns(target), target])


class Entry(NamedTuple):
    """A label as it stands in a file of labels."""

    file: str
    row: str
    checksum: str
    label: str


@dataclass(frozen=True, eq=False)
class GivenLabels:
    """Labels that are merged into a table."""

    places: Places
    """Which rows they belong to. [n]"""
    values: NDArray[Any]
    """Numbers, or names of classes. [n]"""

    def merged(self, target: Target) -> Target:
        """Return the target with these labels too."""
        values = target.values.copy()
        values[self.places] = self.values
        return replace(target, values=values)

    def in_cells(self, column: Any, where: slice, decimal: str = ".") -> Any:
        """Return the cells of the target in some consecutive rows, with these labels in them, numbers in text with this decimal sign."""
        inside = (self.places >= where.start) & (self.places < where.stop)
        cells, values = column.astype(object), self._like(column, decimal)
        cells.iloc[self.places[inside] - where.start] = values[inside]
        if isinstance(values[0], str):
            return cells.where(cells.notna(), None).map(lambda cell: cell if cell is None or isinstance(cell, str) else text_of(cell))
        return cells.where(cells.notna(), None).astype(column.dtype if column.dtype.kind != "i" else "Int64")

    def in_json(self, column: Any, where: slice) -> Any:
        """Return cells that are JSON with these labels in them: numbers as numbers, also those that name classes, if no cell is text."""
        inside = (self.places >= where.start) & (self.places < where.stop)
        cells = column.astype(object)
        cells = cells.where(cells.notna(), None)
        are_texts = any(cell.startswith('"') for cell in cells if cell is not None)
        texts = [text_of(value) for value in self.values[inside]]
        labels = [text if NUMBER.fullmatch(text) and not are_texts else json.dumps(text) for text in texts]
        cells.iloc[self.places[inside] - where.start] = labels
        return cells

    def _like(self, column: Any, decimal: str) -> NDArray[Any]:
        """Return the labels as the column has its cells: numbers where it holds numbers, if all of them are, and otherwise texts."""
        is_whole, is_number = column.dtype.kind in "iu", column.dtype.kind in "iuf"
        try:
            numbers = np.array([float(value) for value in self.values])
        except ValueError:
            is_number = False
        if not is_number or (is_whole and (numbers % 1 != 0).any()):
            return np.array(
                [value if isinstance(value, str) else f"{value:.15g}".replace(".", decimal) for value in self.values], dtype=object
            )
        return np.array([int(number) if is_whole else number for number in numbers.tolist()], dtype=object)


def give_labels(subject: Subject, labels: Any) -> None:
    """Merge files or data frames of labels into the target of a subject; where rows have several labels, the last one counts.

    Raise ValueError for labels of rows that have changed or have another label, and for labels of another table.
    """
    sources = [labels] if isinstance(labels, str | PathLike | pd.DataFrame) else list(labels)
    target = subject.target()
    entries = [entry for number, source in enumerate(sources) for entry in _entries(source, target.name, number, len(sources), subject)]
    if not entries:
        return
    places = _matched(subject, entries)
    values = _numbers(entries) if target.kind == "number" else _classes(entries, target, subject.notes)
    last = {place: number for number, place in enumerate(places)}
    _note_repeated(entries, places, values, last, subject.notes)
    _check_against(target, [(place, entries[number], values[number]) for place, number in last.items()], subject.name)
    order = sorted(last)
    kept = np.array([values[last[place]] for place in order], dtype=np.float64 if target.kind == "number" else object)
    n_new = int((~target.is_known[order]).sum())
    subject.notes.append(f"{n_new:,} label{'' if n_new == 1 else 's'} of {_and({entry.file for entry in entries})} merged.")
    subject.take(GivenLabels(np.array(order, dtype=np.intp), kept))


def _entries(source: Any, target: str, number: int, n_sources: int, subject: Subject) -> list[Entry]:
    """Return the labels of one file or data frame. Cells without a label are left out, with a note."""
    is_frame = isinstance(source, pd.DataFrame)
    if not is_frame and not isinstance(source, str | PathLike):
        raise TypeError(f"Labels are paths or pandas data frames, got {type(source).__name__}.")
    name = Path(source).name if not is_frame else "the frame of labels" if n_sources == 1 else f"labels[{number}]"
    keys = key_columns(target)
    columns = _columns_of_frame(source) if is_frame else _columns_of_file(Path(source))
    for needed in (*keys, target):
        if needed not in columns:
            raise FileError(
                f"{name} has no column {needed!r}: labels have the columns {keys.row!r}, {keys.checksum!r} and {target!r}, as the page of "
                "gpssl annotate writes them."
            )
    rows, checksums = ([text_of(cell) for cell in columns[key]] for key in keys)
    found = [_plain_label(cell) for cell in columns[target]]
    entries = [Entry(name, *entry) for entry in zip(rows, checksums, found, strict=True) if entry[2] not in MISSING_WORDS]
    n_empty = len(found) - len(entries)
    if not found:
        subject.notes.append(f"There are no labels in {name}.")
    if n_empty:
        subject.notes.append(f"{n_empty:,} row{' has' if n_empty == 1 else 's have'} no label in {name}.")
    return entries


def _columns_of_frame(frame: pd.DataFrame) -> dict[str, list[Any]]:
    return {str(name): frame[name].tolist() for name in frame.columns}


def _columns_of_file(path: Path) -> dict[str, list[Any]]:
    source = open_source(path)
    names = [name for name in source.names if name in source.storage]
    parts = [part.cells for part in source.parts(names)]
    return {name: [cell for part in parts for cell in part.column(place).to_pylist()] for place, name in enumerate(names)}


def _plain_label(cell: Any) -> str:
    """Return a label without space around it, and without the apostrophe that keeps spreadsheets from calculating it."""
    if not isinstance(cell, str):
        return text_of(cell)
    text = cell.strip()
    return text[1:] if GUARDED.match(text) else text


def _matched(subject: Subject, entries: Sequence[Entry]) -> list[int]:
    """Return the place of each label: the row of its name if the checksum is right, otherwise the one row with this checksum."""
    called = row_names(subject, np.arange(subject.n_rows))
    wanted = {entry.row for entry in entries}
    candidates: dict[str, list[int]] = {}
    for place, name in enumerate(called):
        if name in wanted:
            candidates.setdefault(name, []).append(place)
    named = np.array(sorted(place for places in candidates.values() for place in places), dtype=np.intp)
    checksums = dict(zip(named.tolist(), row_checksums(subject, named), strict=True))
    places = [next((place for place in candidates.get(one.row, ()) if checksums[place] == one.checksum), None) for one in entries]
    if None in places:
        places = _moved(subject, entries, places)
    return [place for place in places if place is not None]


def _moved(subject: Subject, entries: Sequence[Entry], places: Sequence[int | None]) -> list[int | None]:
    """Return places with those of rows that stand elsewhere now, as after sorting, with a note; raise ValueError for rows that are gone."""
    rows_of: dict[str, list[int]] = {}
    taken = {place for place in places if place is not None}
    for place, checksum in enumerate(row_checksums(subject, np.arange(subject.n_rows))):
        if place not in taken:
            rows_of.setdefault(checksum, []).append(place)
    found: list[int | None] = list(places)
    of_entry: dict[tuple[str, str], int] = {}
    for number, entry in enumerate(entries):
        key = (entry.row, entry.checksum)
        if found[number] is None and key not in of_entry and rows_of.get(entry.checksum):
            of_entry[key] = rows_of[entry.checksum].pop(0)
        if found[number] is None:
            found[number] = of_entry.get(key)
    _check_all_found(entries, found, subject.name)
    moved = [entry.row for entry, before in zip(entries, places, strict=True) if before is None]
    subject.notes.append(f"Rows that have moved since they were labeled were found by their cells: {_rows(moved)}.")
    return found


def _check_all_found(entries: Sequence[Entry], found: Sequence[int | None], table: str) -> None:
    of_file = Counter(entry.file for entry in entries)
    lost = [entry for entry, place in zip(entries, found, strict=True) if place is None]
    if not lost:
        return
    file, n_lost = Counter(entry.file for entry in lost).most_common(1)[0]
    if n_lost == of_file[file]:
        raise ValueError(
            f"{file} belongs to another table: none of its {n_lost:,} row{'' if n_lost == 1 else 's'} is in {table} as it was labeled. "
            "Pass the table that gpssl annotate was given."
        )
    rows = [entry.row for entry in lost if entry.file == file]
    raise ValueError(
        f"{table} has changed since it was labeled: the cells of {_rows(rows)} are not those that {file} has labels for. Restore "
        f"{'this row' if len(rows) == 1 else 'these rows'}, or remove {'it' if len(rows) == 1 else 'them'} from {file}."
    )


def _numbers(entries: Iterable[Entry]) -> list[float]:
    """Return labels as numbers, with a decimal point or comma."""
    numbers = []
    for entry in entries:
        try:
            number = float(entry.label.replace(",", ".") if entry.label.count(",") == 1 and "." not in entry.label else entry.label)
        except ValueError:
            number = np.nan
        if not np.isfinite(number):
            raise ValueError(
                f"{entry.file} has {entry.label[:40]!r} for row {entry.row}, which is no number: correct it or remove the row."
            )
        numbers.append(number)
    return numbers


def _classes(entries: Iterable[Entry], target: Target, notes: list[str]) -> list[str]:
    """Return labels as names of classes. Those that differ from a class in case or blanks alone are that class; new ones get a note."""
    known = dict.fromkeys(target.labels.tolist())
    folded: dict[str, str] = {}
    for name in known:
        folded.setdefault(_folded(name), name)
    classes, spelled, new = [], dict[str, str](), Counter[str]()
    for entry in entries:
        name = entry.label if entry.label in known else folded.setdefault(_folded(entry.label), entry.label)
        if name != entry.label:
            spelled[entry.label] = name
        if name not in known:
            new[name] += 1
        classes.append(name)
    if spelled:
        notes.append(f"Labels taken as classes that are there: {', '.join(f'{one!r} as {other!r}' for one, other in spelled.items())}.")
    if new and known:
        notes.append(f"New classes: {', '.join(f'{name!r} ({count:,})' for name, count in new.items())}.")
    return classes


def _folded(name: str) -> str:
    return text_of(name).casefold()


def _note_repeated(
    entries: Sequence[Entry], places: Sequence[int], values: Sequence[Any], last: Mapping[int, int], notes: list[str]
) -> None:
    """Add a note on rows that were given different labels."""
    rows = [entries[last[place]].row for place, value in zip(places, values, strict=True) if values[last[place]] != value]
    if rows:
        notes.append(f"More than one label was given for {_rows(rows)}: the last one counts.")


def _check_against(target: Target, given: Sequence[tuple[int, Entry, Any]], table: str) -> None:
    """Raise ValueError for rows that have another label in the table."""
    known = target.is_known
    other = [(entry, target.values[place], value) for place, entry, value in given if known[place] and target.values[place] != value]
    if not other:
        return
    entry, has, value = other[0]
    has, value = (one if isinstance(one, str) else text_of(one) for one in (has, value))
    more = f" ({len(other):,} such rows: {_rows([one.row for one, *_ in other])})" if len(other) > 1 else ""
    raise ValueError(f"Row {entry.row} has the label {has!r} in {table} and {value!r} in {entry.file}: remove one of the two{more}.")


def _rows(names: Iterable[str]) -> str:
    """Return "row 3" or "rows 3, 5 and 7", the first few of many."""
    unique = list(dict.fromkeys(names))
    shown = unique[:MOST_NAMED]
    more = f" and {len(unique) - len(shown):,} more" if len(unique) > len(shown) else ""
    return f"row{'' if len(unique) == 1 else 's'} {', '.join(shown)}{more}"


def _and(names: Iterable[str]) -> str:
    return listed(sorted(names)).replace("'", "")
