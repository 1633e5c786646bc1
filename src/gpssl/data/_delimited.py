"""Files of separated values, read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv

from ._dialect import ByteStream, Dialect, NotCp1252Error, read_dialect
from ._errors import FileError, as_sentence, listed
from ._store import ColumnStore, Storage, TextColumns, file_identity

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

    def __init__(self, path: Path) -> None:
        self.path = path
        with as_sentence(path):
            self.identity = file_identity(path)
            reading = self._read()
        self.names, self.unnamed, notes = unique_names(reading.dialect.names)
        super().__init__(reading.text, dict(zip(self.names, map(str, range(len(self.names))), strict=True)))
        self.text_bytes = reading.n_bytes
        self.storage: dict[str, Storage] = dict.fromkeys(self.names, "text")
        self.unusable: dict[str, str] = {}
        self.index: list[str] = []
        self.separator, self.knows_types = reading.dialect.separator, False
        self.repeated = repeated_names(reading.dialect.names)
        self.left_out = reading.left_out
        self.notes = [*reading.dialect.notes, *notes, *([] if self.left_out is None else [self.left_out])]

    def _read(self) -> _Reading:
        """Read as the first bytes suggest, and again only where a byte further on tells another encoding."""
        encoding = None
        while True:
            with ByteStream(self.path) as stream:
                dialect = read_dialect(self.path, stream, encoding)
                try:
                    return _Reading(self.path, stream, dialect)
                except NotCp1252Error:
                    encoding = "latin-1"
                except pa.ArrowInvalid as error:
                    if dialect.encoding != "utf-8" or "UTF8" not in str(error):
                        raise
                    encoding = "cp1252"
            if not self.path.is_file():
                raise FileError(f"{self.path} is no UTF-8, and can be read only once: write it into a file first.")


class _Reading:
    """One pass over the text: cells as they are, where only empty ones are null. The columns are called 0, 1, …"""

    def __init__(self, path: Path, stream: ByteStream, dialect: Dialect) -> None:
        self.path, self.dialect = path, dialect
        self.text = ColumnStore()
        self.left_out: str | None = None
        self._bad: list[tuple[int, str]] = []
        stream.wants_cp1252 = dialect.encoding == "cp1252"
        n_rows, last = 0, None
        try:
            for batch in csv.open_csv(stream, *_options(dialect, self._leave_out)) if dialect.has_rows else ():
                n_rows += batch.num_rows
                if batch.num_rows:
                    self.text.append(batch)
                    last = batch
        except pa.ArrowInvalid as error:
            if not self._bad or "Expected" not in str(error):
                raise
            raise self._unclosed(self._bad[-1][0]) from error
        pa.default_memory_pool().release_unused()
        self.n_bytes = stream.n_bytes
        if stream.n_quotes % 2 == 1:
            self._check_last_row(last, n_rows)
        self._judge(n_rows)

    def _leave_out(self, row: Any) -> str:
        self._bad.append((row.number, f"{row.actual_columns} cells instead of {row.expected_columns}"))
        return "error" if row.text.count("\n") > UNCLOSED_LINES else "skip"

    def _check_last_row(self, batch: pa.RecordBatch | None, n_rows: int) -> None:
        """Raise FileError for a quote that is not closed: the rest of the file is one cell then."""
        cells = [] if batch is None else [column[-1].as_py() or "" for column in batch.columns]
        if any(cell.count("\n") > UNCLOSED_LINES for cell in cells):
            raise self._unclosed(n_rows + 1 + self.dialect.skipped_lines)

    def _unclosed(self, line: int) -> FileError:
        return FileError(f"A quote in line {line:,} of {self.path} is opened and not closed: close it, or remove it.")

    def _judge(self, n_rows: int) -> None:
        """Note that a few rows were left out, and raise FileError for many."""
        if not self._bad:
            return
        n_bad, what = len(self._bad), f"line {self._bad[0][0]:,} has {self._bad[0][1]}"
        few, share = BAD_ROWS
        if n_bad > n_rows or n_bad > max(few, share * n_rows):
            raise FileError(
                f"{n_bad:,} of {n_bad + n_rows:,} rows of {self.path} have more or fewer cells than there are names of columns; "
                f"{what}. Mend these lines, or write the table with quotes around cells that have separators in them."
            )
        self.left_out = f"{n_bad:,} row(s) have too few or too many cells and were left out; {what}."


def _options(dialect: Dialect, leave_out: Any) -> tuple[Any, Any, Any]:
    fewest, most = BLOCK_BYTES
    names = [str(place) for place in range(len(dialect.names))]
    read = csv.ReadOptions(
        use_threads=False,  # line numbers of bad rows are known only then
        block_size=min(max(dialect.row_bytes * BLOCK_ROWS, fewest), most),
        column_names=names,
        skip_rows=dialect.skipped_lines,
        skip_rows_after_names=1,
        encoding="utf8" if dialect.encoding.startswith("utf-8") else dialect.encoding,
    )
    parse = csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True, invalid_row_handler=leave_out)
    convert = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True)
    return read, parse, convert


def repeated_names(raw: Sequence[str]) -> list[str]:
    """Return the names that several columns have."""
    return [name for name, count in Counter(raw).items() if name and count > 1]


def unique_names(raw: Sequence[str]) -> tuple[list[str], set[str], list[str]]:
    """Return names for all columns, those that were made up, and a note where some had none or the same."""
    names: list[str] = []
    unnamed, renamed = set(), []
    taken = set(raw)
    counts: Counter[str] = Counter()
    for place, given in enumerate(raw):
        name = given or f"column {place + 1}"
        base, counts[name] = name, counts[name] + 1
        while counts[base] > 1 or (not given and name in taken):
            name = f"{base}.{counts[base] - 1}"
            if name not in taken:
                break
            counts[base] += 1
        if not given:
            unnamed.add(name)
        elif name != given:
            renamed.append(name)
        taken.add(name)
        names.append(name)
    notes = [f"Columns without a name were called {listed(sorted(unnamed))}."] if unnamed else []
    notes += [f"Columns that share a name with another were renamed: {listed(renamed)}."] if renamed else []
    return names, unnamed, notes
