"""Files of separated values in any dialect, read once.

The dialect is how a file is written: compression, encoding, separator, the lines above the names of the columns, and these names.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, open_csv

from ._byte_stream import ENCODING_MARKS, HEAD_BYTES, NOT_IN_CP1252, ByteStream, NotCp1252Error
from ._errors import FileError, as_sentence
from ._layout import (
    FOOTER,
    HEAD_ROWS,
    MOST_BELOW,
    MOST_LINES_ABOVE,
    NUMBER,
    check_names,
    is_below,
    look_like_names,
    note_above,
    note_below,
    place_of_names,
    rows_below,
)
from ._lines import lines_in_file
from ._outputs import Style
from ._rows import COMPRESSED
from ._source import ColumnStore, Storage, TextColumns, file_identity, unique_names

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "pipes", " ": "spaces"}
OTHER_FILES = {
    b"PK\x03\x04": "a workbook or a zip archive, not a table of text: save the sheet as CSV, or unpack it",
    b"\xd0\xcf\x11\xe0": "a workbook of an old Excel, not a table of text: save the sheet as CSV",
    b"PAR1": "a Parquet file by its content: rename it to end in .parquet",
    b"ARROW1": "an Arrow file by its content: rename it to end in .arrow",
    b"\x89HDF": "an HDF5 file, not a table of text: save the table as CSV or Parquet",
    b"%PDF": "a PDF, not a table of text: save the table as CSV",
}
BLOCK_BYTES = (4 * 2**20, 64 * 2**20)
"""The fewest and the most bytes of a block."""
BLOCK_ROWS = 4096
"""A block has at least so many rows, where they fit: each of its columns costs something."""
UNCLOSED_LINES = 20
"""So many lines in one cell, or in a row of the wrong length, mean that a quote is not closed, if the file's quotes are odd in number."""
BAD_ROWS = (3, 0.01)
"""Rows with too few or too many cells that may be left out: so many, or such a share."""


class DelimitedFile(TextColumns):
    """A CSV file, or the like, in any dialect. Rows that have too few or too many cells are left out while they are few."""

    def __init__(self, path: Path, content: Path | None = None, wanted: Sequence[str] = ()) -> None:
        self.path, self._content = path, content or path
        with as_sentence(path):
            self.identity = file_identity(self._content)
            dialect, text, bad = self._read(wanted)
        self._dialect, self._n_read, self._bad = dialect, text.n_rows, [row.number for row in bad]
        below = _leave_out_below(text, bad, dialect)
        self.names, self.unnamed, self.repeated, notes = unique_names(dialect.names)
        super().__init__(text, dict(zip(self.names, map(str, range(len(self.names))), strict=True)))
        self.storage: dict[str, Storage] = dict.fromkeys(self.names, "text")
        self.unusable: dict[str, str] = {}
        self.separator = dialect.separator
        is_told = dialect.separator == _promised_separator(self._content.name) or dialect.separator == " "
        self.style = Style(None if is_told else dialect.separator, encoding=dialect.encoding)
        left_out = [*([self._note_on_bad_rows(bad)] if bad else []), *self._note_below(below)]
        self.left_out = " ".join(left_out) or None
        self.notes = [*dialect.notes, *notes, *left_out]

    def _read(self, wanted: Sequence[str]) -> tuple[Dialect, ColumnStore, list[_BadRow]]:
        """Read as the first bytes suggest, and again only where a byte further on tells another encoding."""
        encoding = None
        while True:
            with ByteStream(self._content, self.path) as stream:
                dialect = _read_dialect(self.path, self._content.name, stream, encoding, wanted)
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
        names = self._dialect.skipped_lines + 1
        is_regular = self._n_lines == names + self._n_read + len(self._bad)
        if is_regular and (not self._bad or self._bad[0] > names + self.n_rows):
            return np.asarray(places, dtype=np.int64) + names + 1
        good = np.delete(self._lines_of_rows, [0, *(number - names for number in self._bad)])
        return good[places]

    @cached_property
    def _lines_of_rows(self) -> NDArray[np.int64]:
        """The lines of the names and of each row, good or bad, from another look at the file."""
        names, n_found = self._dialect.skipped_lines + 1, 1 + self._n_read + len(self._bad)
        if self._content.is_file() and file_identity(self._content) == self.identity:
            found = lines_in_file(self._content, self._dialect.encoding, names - 1, quoted=True)
            if len(found) == n_found:
                return found
        return names + np.arange(n_found, dtype=np.int64)  # a pipe, or quotes that are no quotes: as if each row were a line

    def _line(self, number: int) -> int:
        """Return the line of a row from its number as Arrow counts."""
        return int(self._lines_of_rows[number - self._dialect.skipped_lines - 1])

    def _note_below(self, below: Sequence[str]) -> list[str]:
        last = self._dialect.skipped_lines + 1 + self._n_read + len(self._bad)
        return note_below(below, [self._line(last - place) for place in range(len(below))])

    def _note_on_bad_rows(self, bad: list[_BadRow]) -> str:
        """Return the note that a few rows were left out, and raise FileError for many."""
        n_bad, n_rows, what = len(bad), self.n_rows, f"line {self._line(bad[0].number):,} has {bad[0].what}"
        few, share = BAD_ROWS
        if n_bad > n_rows or n_bad > max(few, share * n_rows):
            raise FileError(
                f"{n_bad:,} of {n_bad + n_rows:,} rows of {self.path} have more or fewer cells than there are names of columns; "
                f"{what}. Mend these lines, or write the table with quotes around cells that have separators in them."
            )
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
    last: pa.RecordBatch | None = None

    def leave_out(row: Any) -> str:
        bad.append(_BadRow(row.number, f"{row.actual_columns} cells instead of {row.expected_columns}", row.text[:200]))
        return "error" if row.text.count("\n") > UNCLOSED_LINES else "skip"

    stream.wants_cp1252 = dialect.encoding == "cp1252"
    try:
        with open_csv(stream, *_options(dialect, leave_out)) if dialect.has_rows else nullcontext(()) as batches:
            for batch in batches:
                if batch.num_rows:
                    text.append(batch)
                    last = batch
    except pa.ArrowInvalid as error:
        if not bad or "Expected" not in str(error):
            raise
        raise _unclosed(bad[-1].number, path) from error
    pa.default_memory_pool().release_unused()
    cells = [] if last is None or stream.n_quotes % 2 == 0 else [column[-1].as_py() or "" for column in last.columns]
    if any(cell.count("\n") > UNCLOSED_LINES for cell in cells):  # the rest of the file is one cell
        raise _unclosed(text.n_rows + 1 + dialect.skipped_lines, path)
    return text, bad


def _unclosed(line: int, path: Path) -> FileError:
    return FileError(f"A quote in line {line:,} of {path} is opened and not closed: close it, or remove it.")


def _leave_out_below(text: ColumnStore, bad: list[_BadRow], dialect: Dialect) -> list[str]:
    """Leave out the last rows that are none, and return them: totals, sources and remarks, of which some may be too short for rows."""
    below: list[str] = []
    while len(below) < MOST_BELOW:
        found = _short_ones(bad, dialect.skipped_lines + 1 + text.n_rows + len(bad), dialect.separator)
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
        cells = [cell.strip() for cell in next(csv.reader([row.text], delimiter=separator), [])]
        if row.number != number or not (is_below(cells) or FOOTER.fullmatch(row.text)):
            break
        found = [row.text, *found]
    return found


def _options(dialect: Dialect, leave_out: Callable[[Any], str]) -> tuple[ReadOptions, ParseOptions, ConvertOptions]:
    fewest, most = BLOCK_BYTES
    names = [str(place) for place in range(len(dialect.names))]
    read = ReadOptions(
        use_threads=False,  # line numbers of bad rows are known only then
        block_size=min(max(dialect.row_bytes * BLOCK_ROWS, fewest), most),
        column_names=names,
        skip_rows=dialect.skipped_lines,
        skip_rows_after_names=1,
        encoding="utf8" if dialect.encoding.startswith("utf-8") else dialect.encoding,
    )
    parse = ParseOptions(delimiter=dialect.separator, newlines_in_values=True, invalid_row_handler=leave_out)
    convert = ConvertOptions(column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True)
    return read, parse, convert


@dataclass(frozen=True)
class Dialect:
    """Everything that is needed to read a file of separated values."""

    encoding: str
    separator: str
    names: tuple[str, ...]
    """The names that the file has, one for each cell of a row."""
    skipped_lines: int
    """How many lines come before the line of names."""
    row_bytes: int
    """The bytes of a typical row."""
    has_rows: bool
    notes: tuple[str, ...]


def _read_dialect(path: Path, name: str, stream: ByteStream, encoding: str | None, wanted: Sequence[str]) -> Dialect:
    """Return the dialect of a file of this name from its first bytes, and its encoding where a byte further on has told that."""
    _check_is_text(stream.head, path)
    encoding = encoding or _encoding(stream.head)
    text = stream.head.decode(encoding, errors="replace")
    is_whole = len(stream.head) < HEAD_BYTES
    layout = _layout(text, name, wanted, is_whole=is_whole)
    rows = layout.rows
    if not rows or not any(cell.strip() for cell in rows[0]):
        raise FileError(f"{path} has no names of columns: its first line that is neither empty nor a comment (#) should hold them.")
    names, note = _complete_names(rows)
    check_names(names, path)
    notes = (*_notes(stream.compression, encoding, layout, name), *note)
    row_bytes = len(text) // max(1, text.count("\n"))
    return Dialect(encoding, layout.separator, tuple(names), layout.skipped_lines, row_bytes, len(rows) > 1 or not is_whole, notes)


def _check_is_text(head: bytes, path: Path) -> None:
    """Raise FileError for an empty file, and for a file that is known to be no text."""
    if not head.strip():
        raise FileError(f"{path} is empty.")
    for mark, what in OTHER_FILES.items():
        if head.startswith(mark):
            raise FileError(f"{path} is {what}.")
    if b"\0" in head and not head.startswith(tuple(ENCODING_MARKS)):
        raise FileError(f"{path} is no text: it has bytes that are zero. Save the table as CSV.")


def _encoding(head: bytes) -> str:
    """Return the encoding that a mark at the beginning tells, else UTF-8 unless the first bytes are not."""
    marked = next((name for mark, name in ENCODING_MARKS.items() if head.startswith(mark)), None)
    if marked:
        return marked
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) < HEAD_BYTES)  # a letter may be cut off at the end
    except UnicodeDecodeError:
        return "cp1252" if NOT_IN_CP1252.search(head) is None else "latin-1"
    return "utf-8"


class _Layout(NamedTuple):
    """Where the names of the columns are, and what separates them."""

    separator: str
    rows: list[list[str]]
    """The first rows, from the names of the columns on."""
    skipped_lines: int
    above: list[str]
    """Comments and titles among the lines that are skipped; Excel's line that names the separator is none of them."""


def _layout(text: str, name: str, wanted: Sequence[str], *, is_whole: bool) -> _Layout:
    text = text.removeprefix("\ufeff")
    found = re.match(r'"?sep=(.)"?\r?\n', text)  # Excel may write "sep=;" before the names
    given, n_given = (found[1], 1) if found else (None, 0)
    text = text[found.end() :] if found else text
    if not is_whole:
        text = text[: text.rfind("\n") + 1] or text  # without a last row that may be cut off
    comments = list(islice(takewhile(lambda line: line.startswith("#"), io.StringIO(text, newline="")), MOST_LINES_ABOVE))
    separator, rows, lines = _guess(text, comments, given, name, wanted)
    if comments and _holds_names(comments[-1], rows, separator):
        n_cells = _n_cells(comments.pop(), separator)
        while comments and not comments[-1][1:2].isspace() and _n_cells(comments[-1], separator) == n_cells:
            comments.pop()  # the names and some rows begin with #: the first of these lines holds the names
        separator, rows, lines = _guess(text, comments, given, name, wanted)
    first = place_of_names(rows, wanted)
    n_above = len(comments) + (lines[first] if rows else 0)
    above = list(islice(io.StringIO(text, newline=""), n_above))
    return _Layout(separator, rows[first:], n_given + n_above, above)


def _guess(
    text: str, comments: Sequence[str], given: str | None, name: str, wanted: Sequence[str]
) -> tuple[str, list[list[str]], list[int]]:
    """Return the separator that suits the text below the comments, its first rows, and the number of lines above each."""
    rest = text[sum(map(len, comments)) :]
    rows_of = {separator: list(_rows(rest, separator)) for separator in ([given] if given else SEPARATORS)}
    separator = given or _best_separator(rows_of, name, wanted)
    return separator, [row for row, _ in rows_of[separator]], [n_above for _, n_above in rows_of[separator]]


def _holds_names(comment: str, rows: Sequence[Sequence[str]], separator: str) -> bool:
    """Return whether the last comment above the rows holds the names of their columns, as in "#id,x,y"."""
    n_cells = _n_cells(comment, separator)
    if n_cells < 2 or not rows or n_cells not in (len(rows[0]), len(rows[0]) - 1):
        return False
    if any(NUMBER.fullmatch(cell.strip()) for cell in rows[0]):
        return True  # no name of a column is a number, so that the names are not in the first row
    return not comment[1:2].isspace() and not look_like_names(rows)


def _n_cells(line: str, separator: str) -> int:
    return len(next(csv.reader([line], delimiter=separator), []))


def _rows(text: str, separator: str) -> Iterator[tuple[list[str], int]]:
    """Iterate over the first rows that are not empty, each with the number of lines above it."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    n_rows, above = 0, 0
    try:
        for row in reader:
            if row:
                yield row, above
                n_rows += 1
            above = reader.line_num
            if n_rows == HEAD_ROWS:
                return
    except csv.Error:  # a cell of more than 128 kB
        return


def _best_separator(rows_of: dict[str, list[tuple[list[str], int]]], name: str, wanted: Sequence[str]) -> str:
    """Return that with which most rows have as many cells as the names; a tab where the file's name promises it."""
    first = _promised_separator(name)

    def merit(separator: str) -> tuple[float, float, float]:
        rows = [row for row, _ in rows_of[separator]]
        place = place_of_names(rows, wanted)
        counts = [len(row) for row in rows[place:]]
        if not counts or max(counts) == 1:
            return (-1.0, separator == first, 0)
        # Rows may have one cell more than there are names: row names of R, or a separator at the end.
        alike = sum(count in (counts[0], counts[0] + 1) for count in counts[1:]) / max(1, len(counts) - 1)
        is_named = bool(wanted) and set(wanted) <= {cell.strip() for cell in rows[place]}
        return (alike + is_named - 0.6 * (counts[0] == 1) - 0.5 * (separator == " "), separator == first, counts[0])

    return max(rows_of, key=merit)


def _promised_separator(name: str) -> str:
    return "\t" if ".tsv" in name.lower() or ".tab" in name.lower() else ","


def _complete_names(rows: list[list[str]]) -> tuple[list[str], list[str]]:
    """Return a name for each cell, also where rows have one cell more than there are names."""
    names = [name.strip() for name in rows[0]]
    longer = [row for row in rows[1:] if len(row) == len(names) + 1]
    if len(longer) < max(1, 0.9 * (len(rows) - 1)):
        return names, []
    if all(not row[-1].strip() for row in longer):
        return [*names, ""], []
    return ["", *names], ["The rows have one cell more than there are names; the first cell was taken as a name of the row."]


def _notes(compression: str | None, encoding: str, layout: _Layout, name: str) -> list[str]:
    notes = note_above(layout.above)
    if encoding != "utf-8":
        what = {"utf-8-sig": "UTF-8 with a byte order mark", "utf-16": "UTF-16", "cp1252": "Windows-1252, as it is no UTF-8"}
        notes.append(f"Its text was read as {what.get(encoding, 'Latin-1, as it is no UTF-8')}.")
    if layout.separator != _promised_separator(name):
        notes.append(f"Its columns are separated by {SEPARATORS.get(layout.separator, repr(layout.separator))}.")
    if compression and "." in name and not name.lower().endswith(COMPRESSED):
        notes.append(f"It is compressed ({compression}), whatever its name says.")
    return notes
