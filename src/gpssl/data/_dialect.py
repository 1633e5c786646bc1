"""How a text file is written: compression, encoding, separator and the line of names."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ._errors import FileError, listed

SCAN_BYTES = 8 * 2**20
HEAD_BYTES = 2**20
HEAD_ROWS = 200
"""From which the separator is guessed; whether it holds is seen when the rows are read."""
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "pipes", " ": "spaces"}
COMPRESSIONS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
ENCODING_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
NOT_IN_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
OTHER_FILES = {
    b"PK\x03\x04": "a workbook or a zip archive, not a table of text: save the sheet as CSV, or unpack it",
    b"\xd0\xcf\x11\xe0": "a workbook of an old Excel, not a table of text: save the sheet as CSV",
    b"PAR1": "a Parquet file by its content: rename it to end in .parquet",
    b"ARROW1": "an Arrow file by its content: rename it to end in .arrow",
    b"\x89HDF": "an HDF5 file, not a table of text: save the table as CSV or Parquet",
    b"%PDF": "a PDF, not a table of text: save the table as CSV",
}


@dataclass(frozen=True)
class Dialect:
    """Everything that is needed to read a file of separated values."""

    compression: str | None
    encoding: str
    separator: str
    names: tuple[str, ...]
    """As the file has them; one for each cell of a row."""
    skipped_lines: int
    """Before the line of names."""
    row_bytes: int
    """Of a typical row."""
    n_bytes: int
    """Of the whole file, not compressed."""
    has_odd_quotes: bool
    """Whether the number of quotes is odd: one may be opened and not closed."""
    notes: tuple[str, ...]


def open_bytes(path: Path) -> tuple[pa.NativeFile, str | None]:
    """The bytes of a file, unpacked if it is compressed, whatever its name says."""
    with open(path, "rb") as file:
        start = file.read(8)
    compression = next((kind for mark, kind in COMPRESSIONS.items() if start.startswith(mark)), None)
    return pa.input_stream(str(path), compression=compression, buffer_size=2**20), compression


def read_dialect(path: Path) -> Dialect:
    """The dialect of a file. All of its bytes are looked at, because one of them may tell the encoding."""
    head, encoding, n_bytes, has_odd_quotes, compression = _scan(path)
    text = head.decode(encoding, errors="replace")
    skipped, text, given = _separator_line(text)
    rows_of = {separator: list(_rows(text, separator)) for separator in ([given] if given else SEPARATORS)}
    separator = given or _best_separator(rows_of, path)
    rows = rows_of[separator]
    if not rows or not any(cell.strip() for cell in rows[0]):
        raise FileError(f"{path} begins with an empty line; its first line should hold the names of the columns.")
    if len(rows) == 1 and len(head) < HEAD_BYTES:
        raise FileError(f"{path} has a line of names, but no rows.")
    notes = _notes(compression, encoding, separator, path)
    names, note = _complete_names(rows)
    _check_names_are_no_numbers(names, path)
    row_bytes = len(text) // max(1, text.count("\n"))
    return Dialect(compression, encoding, separator, tuple(names), skipped, row_bytes, n_bytes, has_odd_quotes, (*notes, *note))


def _scan(path: Path) -> tuple[bytes, str, int, bool, str | None]:
    """The first bytes, the encoding of them all, how many they are, whether their quotes are odd, and the compression."""
    stream, compression = open_bytes(path)
    with stream:
        head = stream.read(HEAD_BYTES)
        _check_is_text(head, path)
        marked = next((name for mark, name in ENCODING_MARKS.items() if head.startswith(mark)), None)
        encoding, n_bytes, n_quotes = _look_through(head, stream, marked, path)
        return head, encoding, n_bytes, n_quotes % 2 == 1, compression


def _look_through(head: bytes, stream: pa.NativeFile, marked: str | None, path: Path) -> tuple[str, int, int]:
    """The encoding, which a mark at the beginning may tell, and the numbers of bytes and of quotes."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_utf8, is_cp1252, n_bytes, n_quotes = True, True, 0, 0
    for block in _blocks(head, stream):
        n_bytes += len(block)
        n_quotes += block.count(b'"')
        if marked:
            continue
        if b"\0" in block:
            raise FileError(f"{path} is no text: it has bytes that are zero. Save the table as CSV.")
        if is_utf8:
            try:
                decoder.decode(block)
            except UnicodeDecodeError:
                is_utf8 = False
        is_cp1252 = is_cp1252 and NOT_IN_CP1252.search(block) is None
    is_utf8 = is_utf8 and decoder.getstate()[0] == b""  # no letter is cut off at the end
    return marked or ("utf-8" if is_utf8 else "cp1252" if is_cp1252 else "latin-1"), n_bytes, n_quotes


def _blocks(head: bytes, stream: pa.NativeFile) -> Iterator[bytes]:
    block = head
    while block:
        yield block
        block = stream.read(SCAN_BYTES)


def _check_is_text(head: bytes, path: Path) -> None:
    if not head.strip():
        raise FileError(f"{path} is empty.")
    for mark, what in OTHER_FILES.items():
        if head.startswith(mark):
            raise FileError(f"{path} is {what}.")
    if b"\0" in head and not head.startswith(tuple(ENCODING_MARKS)):
        raise FileError(f"{path} is no text: it has bytes that are zero. Save the table as CSV.")


def _separator_line(text: str) -> tuple[int, str, str | None]:
    """Excel may write "sep=;" before the names."""
    text = text.removeprefix("\ufeff")
    found = re.match(r'"?sep=(.)"?\r?\n', text)
    return (1, text[found.end() :], found[1]) if found else (0, text, None)


def _rows(text: str, separator: str) -> Iterator[list[str]]:
    """The first rows, without a last one that may be cut off."""
    whole = text if len(text) < HEAD_BYTES // 4 else text[: text.rfind("\n") + 1] or text
    reader = csv.reader(io.StringIO(whole, newline=""), delimiter=separator)
    try:
        filled = (row for row in reader if row)
        for row, _ in zip(filled, range(HEAD_ROWS), strict=False):
            yield row
    except csv.Error:  # a cell of more than 128 kB
        return


def _best_separator(rows_of: dict[str, list[list[str]]], path: Path) -> str:
    """That with which most rows have as many cells as the first one; a tab where the file's name promises it."""
    first = "\t" if ".tsv" in path.name.lower() else ","

    def merit(separator: str) -> tuple[float, float, float]:
        counts = [len(row) for row in rows_of[separator]]
        if not counts or max(counts) == 1:
            return (-1.0, separator == first, 0)
        # Rows may have one cell more than there are names: row names of R, or a separator at the end.
        alike = sum(count in (counts[0], counts[0] + 1) for count in counts[1:]) / max(1, len(counts) - 1)
        return (alike - 0.6 * (counts[0] == 1) - 0.5 * (separator == " "), separator == first, counts[0])

    return max(rows_of, key=merit)


def _complete_names(rows: list[list[str]]) -> tuple[list[str], list[str]]:
    """A name for each cell, where rows have one cell more than there are names."""
    names = [name.strip() for name in rows[0]]
    longer = [row for row in rows[1:] if len(row) == len(names) + 1]
    if len(longer) < max(1, 0.9 * (len(rows) - 1)):
        return names, []
    if all(not row[-1].strip() for row in longer):
        return [*names, ""], []
    return ["", *names], ["The rows have one cell more than there are names; the first cell was taken as a name of the row."]


def _check_names_are_no_numbers(names: list[str], path: Path) -> None:
    given = [name for name in names if name]
    if all(re.fullmatch(r"[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?", name) for name in given):
        raise FileError(f"The first line of {path} holds numbers ({listed(given, 3)}), not names of columns: give it a line of names.")


def _notes(compression: str | None, encoding: str, separator: str, path: Path) -> list[str]:
    notes = []
    if encoding != "utf-8":
        what = {"utf-8-sig": "UTF-8 with a byte order mark", "utf-16": "UTF-16", "cp1252": "Windows-1252, as it is no UTF-8"}
        notes.append(f"Its text was read as {what.get(encoding, 'Latin-1, as it is no UTF-8')}.")
    expected = "\t" if ".tsv" in path.name.lower() else ","
    if separator != expected:
        notes.append(f"Its columns are separated by {SEPARATORS.get(separator, repr(separator))}.")
    if compression and not path.name.lower().endswith((".gz", ".bz2", ".zst", ".zstd")):
        notes.append(f"It is compressed ({compression}), whatever its name says.")
    return notes
