"""Sheets of workbooks: the values that a person sees in the cells, as text."""

from __future__ import annotations

import warnings
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._errors import FileError, listed
from ._layout import HEAD_ROWS, check_names, note_above, note_below, place_of_names, rows_below
from ._source import NOWHERE, Storage, TextColumns, Unchanged, Where, file_identity, store_rows, unique_names

OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
"""How workbooks begin that are protected by a password, or those of an old Excel."""
ERRORS = ("#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!", "#SPILL!", "#CALC!")
"""Results of formulas that went wrong: they count as missing."""

MOST_ROWS = 2**20
"""Of a sheet: openpyxl would make up the rows before one that says it is further below."""

Cells = list[str | None]


class _Row(NamedTuple):
    """A row of a sheet that is not empty."""

    number: int
    cells: Cells


class WorkbookFile(TextColumns):
    """One sheet of an Excel workbook. Formulas are what they gave when the workbook was saved."""

    def __init__(self, path: Path, content: Path | None = None, where: Where = NOWHERE) -> None:
        self.path, content = path, content or path
        self.identity, unchanged = f"{file_identity(content)} {where.sheet}", Unchanged(content, path)
        self._lines = array("q")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl tells of styles that it does not know
            book = _opened(content, path)
            try:
                self._read(book, where)
            except (FileError, ImportError):
                raise
            except Exception as error:  # damaged sheets raise errors of many kinds
                raise _damaged(path, error) from error
            finally:
                book.close()
            unchanged.check()
            self.notes += _note_on_formulas(content, self._title, [(name, int(key)) for name, key in self._keys.items()], self._empty)

    def _read(self, book: Any, where: Where) -> None:
        sheet, rows, notes = _chosen(book, where, self.path)
        self._title = sheet.title
        width = max(len(row.cells) for row in rows)
        texts = [[cell or "" for cell in row.cells] + [""] * (width - len(row.cells)) for row in rows]
        first = place_of_names(texts, where.names)
        names = [name.strip() for name in texts[first]]
        check_names(names, self.path, f"Row {rows[first].number:,} of the sheet {sheet.title!r}")
        errors = Counter[str]()
        table = store_rows(self._counted(_rows(sheet), rows[first].number, errors))
        below = rows_below(table, len(names))
        table.cut(len(below))
        n_columns, filled = _columns_of(table, len(names))
        used = [place for place in range(n_columns) if place in filled or (place < len(names) and names[place])]
        unique = unique_names([names[place] if place < len(names) else "" for place in used])
        self.names, self.unnamed, self.repeated, more = unique
        super().__init__(table, {name: str(place) for name, place in zip(self.names, used, strict=True)})
        self.storage: dict[str, Storage] = dict.fromkeys(self.names, "text")
        self.unusable: dict[str, str] = {}
        self.separator = ";"
        self.text_bytes = sum(table.part(place).nbytes for place in range(len(table)))
        self._empty = {name for name, place in zip(self.names, used, strict=True) if place not in filled}
        above = [" ".join(filter(None, row.cells)) for row in rows[:first]]
        numbers = list(self._lines[len(self._lines) - len(below) :])
        left_out = note_below(below, numbers, "row")
        self.left_out = " ".join(left_out) or None
        self.notes = [*notes, *note_above(above, "row"), *more, *_note_on_errors(errors), *left_out]

    def _counted(self, rows: Iterator[_Row], names: int, errors: Counter[str]) -> Iterator[Cells]:
        """Iterate over the cells below the names; remember the row of the sheet of each, and count the errors."""
        for row in rows:
            if row.number <= names:
                continue
            self._lines.append(row.number)
            found = [cell for cell in row.cells if cell in ERRORS]
            errors.update(filter(None, found))
            yield [None if cell in ERRORS else cell for cell in row.cells] if found else row.cells

    def lines(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the rows of the sheet, counted from 1."""
        return np.frombuffer(self._lines, dtype=np.int64)[places]


def _opened(content: Path, path: Path) -> Any:
    """Open a workbook; raise FileError for what is none, and for one that is encrypted."""
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise ImportError('Workbooks need openpyxl: pip install "gpssl[cli]".') from error
    with open(content, "rb") as file:
        start = file.read(4)
    if not start:
        raise FileError(f"{path} is empty.")
    if start == OLD_WORKBOOK:
        raise FileError(f"{path} is protected by a password, or a workbook of an old Excel: save it as .xlsx without a password.")
    try:
        return load_workbook(content, read_only=True, data_only=True)
    except Exception as error:  # files of many other kinds raise errors of many kinds
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> FileError:
    reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    return FileError(f"{path} cannot be read as a workbook ({reason}): open it in a spreadsheet program, and save it again as .xlsx.")


def _chosen(book: Any, where: Where, path: Path) -> tuple[Any, list[_Row], list[str]]:
    """Return the sheet that was asked for, or the first that holds a table; its first rows; and a note that names the others."""
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    if where.sheet is not None:
        if where.sheet not in sheets:
            raise FileError(f"{path} has no sheet {where.sheet!r}; its sheets are {listed(sheets, 12)}.")
        rows = _head(sheets[where.sheet])
        if not rows:
            raise FileError(f"The sheet {where.sheet!r} of {path} is empty; its sheets are {listed(sheets, 12)}.")
        return sheets[where.sheet], rows, []
    heads = ((sheet, _head(sheet)) for sheet in sheets.values() if sheet.sheet_state == "visible")
    named = set(where.names)
    maybe = None
    for sheet, rows in heads:
        if _is_table(rows) and (not named or any(named <= {(cell or "").strip() for cell in row.cells} for row in rows)):
            maybe = sheet, rows
            break
        maybe = maybe or ((sheet, rows) if _is_table(rows) else None)
    maybe = maybe or next(((sheet, rows) for sheet in sheets.values() if len(rows := _head(sheet)) > 1), None)
    if maybe is None:
        raise FileError(f"{path} holds no table: its sheets ({listed(sheets, 12)}) are empty, or have a single row.")
    sheet, rows = maybe
    others = [name for name in sheets if name != sheet.title]
    if not others:
        return sheet, rows, []
    return sheet, rows, [f"It was read from the sheet {sheet.title!r}; the others are {listed(others)} (sheet={others[0]!r} reads one)."]


def _head(sheet: Any) -> list[_Row]:
    return list(islice(_rows(sheet), HEAD_ROWS))


def _is_table(rows: Sequence[_Row]) -> bool:
    """Return whether at least two rows have at least two cells."""
    return sum(sum(cell is not None for cell in row.cells) > 1 for row in rows) > 1


def _rows(sheet: Any) -> Iterator[_Row]:
    """Iterate over the rows that are not empty."""
    sheet.reset_dimensions()  # what a workbook says about its size need not be so
    for number, values in enumerate(sheet.iter_rows(values_only=True, max_row=MOST_ROWS), start=1):
        cells = [None if value is None else _text(value) for value in values]
        while cells and cells[-1] is None:  # cells may have a color and nothing else, up to the last column that there is
            cells.pop()
        if cells:
            yield _Row(number, cells)


def _text(value: Any) -> str | None:
    """Return a value as text that is read as numbers, dates and truth values are in other files; None for blanks."""
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, datetime):
        value = (value + timedelta(milliseconds=0.5)).replace(microsecond=0) if value.microsecond % 10**6 > 999_000 else value
        return str(value.date()) if value.time() == time() else value.isoformat(" ")
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _columns_of(table: Any, n_names: int) -> tuple[int, set[int]]:
    """Return how many columns there are, and which of them have a cell that is not empty."""
    parts = [table.part(place) for place in range(len(table))]
    filled = {int(name) for part in parts for name in part.schema.names if part.column(name).null_count < part.num_rows}
    return max(chain([n_names], (part.num_columns for part in parts))), filled


def _note_on_errors(errors: Counter[str]) -> list[str]:
    if not errors:
        return []
    return [f"{errors.total():,} cell(s) hold errors of formulas ({', '.join(errors)}) and count as missing."]


def _note_on_formulas(content: Path, title: str, columns: Sequence[tuple[str, int]], empty: set[str]) -> list[str]:
    """Return a note on columns of formulas without results, which programs write that do not calculate."""
    if not empty:
        return []
    from openpyxl import load_workbook

    book = load_workbook(content, read_only=True)
    found = set()
    for values in islice(book[title].iter_rows(values_only=True), HEAD_ROWS):
        found |= {place for place, value in enumerate(values) if isinstance(value, str) and value.startswith("=")}
    book.close()
    names = [name for name, place in columns if name in empty and place in found]
    advice = "open the workbook in a spreadsheet program and save it"
    return [f"The formulas of {listed(names)} have no stored results, so that these columns are empty: {advice}."] if names else []
