"""The dialect of a file of separated values: compression, encoding, separator, lines above the names of the columns, and these names."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path
from typing import NamedTuple

from ._byte_stream import ENCODING_MARKS, HEAD_BYTES, NOT_IN_CP1252, ByteStream
from ._errors import FileError
from ._layout import (
    HEAD_ROWS,
    MOST_LINES_ABOVE,
    NUMBER,
    check_names,
    is_grand_total,
    look_like_names,
    note_above,
    place_of_names,
)
from ._rows import COMPRESSED

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "pipes", " ": "spaces"}
NEARLY_ALL = 0.8
"""The share of rows with as many cells as there are names, below which blanks are no separators."""
OTHER_FILES = {
    b"PK\x03\x04": "a workbook or a zip archive by its content: rename it to end in .xlsx or .zip",
    b"SQLite format 3": "a SQLite database by its content: rename it to end in .sqlite",
    b"\xd0\xcf\x11\xe0": "a workbook of an old Excel, not a table of text: save the sheet as CSV",
    b"PAR1": "a Parquet file by its content: rename it to end in .parquet",
    b"ARROW1": "an Arrow file by its content: rename it to end in .arrow",
    b"\x89HDF": "an HDF5 file, not a table of text: save the table as CSV or Parquet",
    b"%PDF": "a PDF, not a table of text: save the table as CSV",
}


@dataclass(frozen=True)
class Dialect:
    """Everything that is needed to read a file of separated values."""

    encoding: str
    separator: str
    names: tuple[str, ...]
    """The names that the file has, one for each cell of a row."""
    skipped_lines: int
    """How many lines come before the line of names."""
    has_grand_total: bool
    """Whether the row below the names is none, but the sum of those below it."""
    row_bytes: int
    """The bytes of a typical row."""
    has_rows: bool
    notes: tuple[str, ...]

    @property
    def last_names(self) -> int:
        """The number, as Arrow counts, of the last line that is above the rows."""
        return self.skipped_lines + 1 + self.has_grand_total


def read_dialect(path: Path, name: str, stream: ByteStream, encoding: str | None, wanted: Sequence[str]) -> Dialect:
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
    return Dialect(
        encoding,
        layout.separator,
        tuple(names),
        layout.skipped_lines,
        layout.has_grand_total,
        row_bytes,
        len(rows) > 1 or not is_whole,
        notes,
    )


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
    has_grand_total: bool


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
    has_grand_total = is_grand_total(rows[first:]) and lines[first + 1] == lines[first] + 1
    return _Layout(separator, rows[first:], n_given + n_above, above, has_grand_total)


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
    first = promised_separator(name)

    def merit(separator: str) -> tuple[float, float, float]:
        rows = [row for row, _ in rows_of[separator]]
        place = place_of_names(rows, wanted)
        counts = [len(row) for row in rows[place:]]
        if not counts or max(counts) == 1:
            return (-1.0, separator == first, 0)
        # Rows may have one cell more than there are names: row names of R, or a separator at the end.
        alike = sum(count in (counts[0], counts[0] + 1) for count in counts[1:]) / max(1, len(counts) - 1)
        if separator == " " and alike < NEARLY_ALL:
            return (-2.0, False, 0)  # sentences, in the only column
        is_named = bool(wanted) and counts[0] > 1 and set(wanted) <= {cell.strip() for cell in rows[place]}
        # Decimal commas may be as many in each row, but are not in the names, which would then be a title above the rows.
        below_titles = 0.1 * place / (place + 1)
        return (alike + is_named - 0.6 * (counts[0] == 1) - 0.5 * (separator == " ") - below_titles, separator == first, counts[0])

    return max(rows_of, key=merit)


def promised_separator(name: str) -> str:
    """Return what separates the cells of a file of this name, as long as nothing tells otherwise."""
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
    if layout.has_grand_total:
        notes.append(f"The line below the names of the columns is no row and left out: {' '.join(filter(None, layout.rows[1]))!r}.")
    if encoding != "utf-8":
        what = {"utf-8-sig": "UTF-8 with a byte order mark", "utf-16": "UTF-16", "cp1252": "Windows-1252, as it is no UTF-8"}
        notes.append(f"Its text was read as {what.get(encoding, 'Latin-1, as it is no UTF-8')}.")
    if layout.separator != promised_separator(name):
        notes.append(f"Its columns are separated by {SEPARATORS.get(layout.separator, repr(layout.separator))}.")
    if compression and "." in name and not name.lower().endswith(COMPRESSED):
        notes.append(f"It is compressed ({compression}), whatever its name says.")
    return notes
