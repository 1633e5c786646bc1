"""Files of separated values in any dialect, read once: the cells, the rows that are none, and the lines that rows are in."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from sys import getrefcount
from time import sleep
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, open_csv

from ._byte_stream import ByteStream, NotCp1252Error
from ._dialect import Dialect, promised_separator, read_dialect
from ._errors import FileError, as_sentence
from ._layout import (
    FOOTER,
    MOST_BELOW,
    SHOWN,
    are_texts,
    is_below,
    note_below,
    rows_below,
)
from ._lines import lines_in_file
from ._outputs import Style
from ._source import ColumnStore, Storage, TextColumns, Unchanged, file_identity, unique_names

BLOCK_BYTES = (4 * 2**20, 64 * 2**20)
"""The fewest and the most bytes of a block."""
BLOCK_ROWS = 4096
"""A block has at least so many rows, where they fit: each of its columns costs something."""
UNCLOSED_LINES = 20
"""So many lines in one cell, or in a row of the wrong length, mean that a quote is not closed, if the file's quotes are odd in number."""
RELEASE_MILLISECONDS = 1000
"""The longest wait for Arrow's threads to let go of a file that is read."""
BAD_ROWS = (3, 0.01)
"""Rows with too few or too many cells that may be left out: so many, or such a share."""
SURELY_BAD = 20_000
"""After so many such rows, and no more good ones before them, nobody reads on: each costs far more time than a good one, and is kept."""


class DelimitedFile(TextColumns):
    """A CSV file, or the like, in any dialect. Rows that have too few or too many cells are left out while they are few."""

    def __init__(self, path: Path, content: Path | None = None, wanted: Sequence[str] = ()) -> None:
        self.path, self._content = path, content or path
        with as_sentence(path):
            self.identity = file_identity(self._content)
            with Unchanged(self._content, path).while_read():
                dialect, text, bad = self._read(wanted)
        self._dialect, self._n_read, self._bad = dialect, text.n_rows, [row.number for row in bad]
        other = self._other_table(bad)
        below = _leave_out_below(text, bad, dialect)
        self.names, self.unnamed, self.repeated, notes = unique_names(dialect.names)
        super().__init__(text, dict(zip(self.names, map(str, range(len(self.names))), strict=True)))
        self.storage: dict[str, Storage] = dict.fromkeys(self.names, "text")
        self.unusable: dict[str, str] = {}
        self.separator = dialect.separator
        is_told = dialect.separator == promised_separator(self._content.name) or dialect.separator == " "
        self.style = Style(None if is_told else dialect.separator, encoding=dialect.encoding)
        left_out = [*([self._note_on_bad_rows(bad)] if bad else []), *self._note_below(below, len(other)), *self._note_on_other(other)]
        self.left_out = " ".join(left_out) or None
        self.notes = [*dialect.notes, *notes, *left_out]

    def _read(self, wanted: Sequence[str]) -> tuple[Dialect, ColumnStore, list[_BadRow]]:
        """Read as the first bytes suggest, and again only where a byte further on tells another encoding."""
        encoding = None
        while True:
            with ByteStream(self._content, self.path) as stream:
                dialect = read_dialect(self.path, self._content.name, stream, encoding, wanted)
                try:
                    text, bad = _read_cells(self.path, stream, dialect)
                except NotCp1252Error:
                    encoding = "latin-1"
                except pa.ArrowInvalid as error:
                    if dialect.encoding != "utf-8" or "UTF8" not in str(error):
                        raise
                    encoding = "cp1252"
                else:
                    self.text_bytes, self._n_lines = stream.n_bytes, stream.n_lines
                    return dialect, text, bad
            if not self._content.is_file():
                raise FileError(f"{self.path} is no UTF-8, and can be read only once: write it into a file first.")

    def lines(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the lines at which these rows begin, counted from 1."""
        first = self._dialect.last_names + 1
        is_regular = self._n_lines == first - 1 + self._n_read + len(self._bad)
        if is_regular and (not self._bad or self._bad[0] >= first + self.n_rows):
            return np.asarray(places, dtype=np.int64) + first
        return np.delete(self._lines_of_rows, [number - first for number in self._bad])[places]

    @cached_property
    def _lines_of_rows(self) -> NDArray[np.int64]:
        """The lines of each row, good or bad, from another look at the file."""
        dialect, n_rows = self._dialect, self._n_read + len(self._bad)
        if self._content.is_file() and file_identity(self._content) == self.identity:
            found = lines_in_file(self._content, dialect.encoding, dialect.skipped_lines, quoted=True)
            n_names = dialect.last_names - dialect.skipped_lines
            if len(found) == n_names + n_rows:
                return found[n_names:]
        return dialect.last_names + 1 + np.arange(n_rows, dtype=np.int64)  # a pipe, or quotes that are no quotes: each row is a line

    def _line(self, number: int) -> int:
        """Return the line of a row from its number as Arrow counts."""
        return int(self._lines_of_rows[number - self._dialect.last_names - 1])

    def _other_table(self, bad: list[_BadRow]) -> list[_BadRow]:
        """Take the rows of another table out of the bad ones: all at the end, below an empty line, with another number of cells."""
        last, n_rows = self._dialect.last_names + self._n_read + len(bad), 0
        while n_rows < len(bad) and bad[-1 - n_rows].number == last - n_rows and bad[-1 - n_rows].what == bad[-1].what:
            n_rows += 1
        if n_rows < 2 or n_rows == self._n_read + len(bad) or self._line(last - n_rows + 1) == self._line(last - n_rows) + 1:
            return []
        other = bad[len(bad) - n_rows :]
        if not are_texts(_split(other[0].text, self._dialect.separator)):
            return []
        del bad[len(bad) - n_rows :]
        return other

    def _note_on_other(self, other: Sequence[_BadRow]) -> list[str]:
        if not other:
            return []
        return [
            f"Another table below, of {len(other):,} lines from line {self._line(other[0].number):,} on, is left out: {other[0].text!r}."
        ]

    def _note_below(self, below: Sequence[str], n_further: int) -> list[str]:
        last = self._dialect.last_names + self._n_read + len(self._bad) - n_further
        return note_below(below, [self._line(last - place) for place in range(len(below))])

    def _note_on_bad_rows(self, bad: list[_BadRow]) -> str:
        """Return the note that a few rows were left out, and raise FileError for many."""
        n_bad, n_rows, what = len(bad), self.n_rows, f"line {self._line(bad[0].number):,} has {bad[0].what}"
        few, share = BAD_ROWS
        if n_bad > n_rows or n_bad > max(few, share * n_rows):
            raise _too_many_bad(self.path, n_bad, f"{n_bad + n_rows:,}", what)
        return f"{n_bad:,} row(s) have too few or too many cells and were left out; {what}."


class _BadRow(NamedTuple):
    """A row that has too few or too many cells."""

    number: int
    """As Arrow counts: lines above the names, and then rows that are not empty, from 1."""
    what: str
    text: str


def _read_cells(path: Path, stream: ByteStream, dialect: Dialect) -> tuple[ColumnStore, list[_BadRow]]:
    """Read the cells as they are, where only empty ones are null, in columns called 0, 1, …; return also the rows that are left out."""
    text, bad = ColumnStore(), list[_BadRow]()

    def leave_out(row: Any) -> str:
        bad.append(_BadRow(row.number, f"{row.actual_columns} cells instead of {row.expected_columns}", row.text[:200]))
        is_hopeless = len(bad) >= SURELY_BAD and len(bad) > row.number / 2
        return "error" if is_hopeless or row.text.count("\n") > UNCLOSED_LINES else "skip"

    def read() -> pa.RecordBatch | None:
        last = None
        with open_csv(stream, *_options(dialect, leave_out)) if dialect.has_rows else nullcontext(()) as batches:
            for batch in batches:
                if batch.num_rows:
                    text.append(batch)
                    last = batch
        return last

    stream.wants_cp1252 = dialect.encoding == "cp1252"
    n_references = [getrefcount(held) for held in (stream, leave_out)]
    try:
        last = read()
        _wait_until_released([stream, leave_out], n_references)
    except pa.ArrowInvalid as error:
        if not bad or "Expected" not in str(error):
            raise
        if len(bad) >= SURELY_BAD:
            n_rows = bad[-1].number - dialect.last_names
            raise _too_many_bad(path, len(bad), f"the first {n_rows:,}", f"{bad[0].text[:SHOWN]!r} has {bad[0].what}") from error
        raise _unclosed(bad[-1].number, path) from error
    pa.default_memory_pool().release_unused()
    cells = [] if last is None or stream.n_quotes % 2 == 0 else [column[-1].as_py() or "" for column in last.columns]
    if any(cell.count("\n") > UNCLOSED_LINES for cell in cells):  # the rest of the file is one cell
        raise _unclosed(text.n_rows + dialect.last_names, path)
    return text, bad


def _wait_until_released(held: Sequence[Any], n_references: Sequence[int]) -> None:
    """Wait until no more refers to these objects than before: Arrow's threads let go of them a moment after the last row.

    They need Python for it, and a process that ends in that moment, as a command with a wrong name of a column does, is aborted.
    """
    for _ in range(RELEASE_MILLISECONDS):
        if all(getrefcount(one) <= before + 1 for one, before in zip(held, n_references, strict=True)):  # the list is one more
            return
        sleep(0.001)


def _unclosed(line: int, path: Path) -> FileError:
    return FileError(f"A quote in line {line:,} of {path} is opened and not closed: close it, or remove it.")


def _too_many_bad(path: Path, n_bad: int, rows: str, what: str) -> FileError:
    return FileError(
        f"{n_bad:,} of {rows} rows of {path} have more or fewer cells than there are names of columns; {what}. "
        "Mend these lines, or write the table with quotes around cells that have separators in them."
    )


def _leave_out_below(text: ColumnStore, bad: list[_BadRow], dialect: Dialect) -> list[str]:
    """Leave out the last rows that are none, and return them: totals, sources and remarks, of which some may be too short for rows."""
    below: list[str] = []
    while len(below) < MOST_BELOW:
        found = _short_ones(bad, dialect.last_names + text.n_rows + len(bad), dialect.separator)
        del bad[len(bad) - len(found) :]
        if not found:
            found = rows_below(text, len(dialect.names))
            text.cut(len(found))
        if not found:
            break
        below = [*found, *below]
    return below


def _short_ones(bad: Sequence[_BadRow], last: int, separator: str) -> list[str]:
    """Return the rows at the very end that have too few cells and are totals, or have text in one cell at most."""
    found: list[str] = []
    for number, row in zip(range(last, 0, -1), reversed(bad[-MOST_BELOW:]), strict=False):
        if row.number != number or not (is_below(_split(row.text, separator)) or FOOTER.fullmatch(row.text)):
            break
        found = [row.text, *found]
    return found


def _split(line: str, separator: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]


def _options(dialect: Dialect, leave_out: Callable[[Any], str]) -> tuple[ReadOptions, ParseOptions, ConvertOptions]:
    fewest, most = BLOCK_BYTES
    names = [str(place) for place in range(len(dialect.names))]
    read = ReadOptions(
        use_threads=False,  # line numbers of bad rows are known only then
        block_size=min(max(dialect.row_bytes * BLOCK_ROWS, fewest), most),
        column_names=names,
        skip_rows=dialect.skipped_lines,
        skip_rows_after_names=dialect.last_names - dialect.skipped_lines,
        encoding="utf8" if dialect.encoding.startswith("utf-8") else dialect.encoding,
    )
    parse = ParseOptions(delimiter=dialect.separator, newlines_in_values=True, invalid_row_handler=leave_out)
    convert = ConvertOptions(column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True)
    return read, parse, convert
