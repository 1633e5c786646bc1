"""Files of separated values, read as text a block at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa
from pyarrow import csv

from ._dialect import Dialect, open_bytes, read_dialect
from ._errors import FileError, listed

Storage = Literal["text", "category", "number", "boolean", "date"]
"""What a file holds of a column: cells of text, which may be anything, or values of a known type."""

BLOCK_BYTES = (8 * 2**20, 64 * 2**20)
"""Fewest and most of a block."""
BLOCK_ROWS = 4096
"""At least, where they fit: columns cost something by themselves in each block."""
MISSING = ("", "NA", "N/A", "n/a", "na", "NaN", "nan", "null", "NULL", "None", "?", "#N/A", "<NA>", "NaT")
UNCLOSED_LINES = 20
"""In one cell or a row of the wrong length, if the quotes of the file are odd: one of them is not closed."""
BAD_ROWS = (3, 0.01)
"""Rows with too few or too many cells that may be left out: so many, or such a share."""


class TableSource(Protocol):
    """Named columns in a file, read some rows at a time, as often as needed."""

    path: Path
    names: list[str]
    storage: dict[str, Storage]
    """Of the columns that can be used."""
    unusable: dict[str, str]
    """The other columns, and why."""
    unnamed: set[str]
    """Columns whose names are made up."""
    index: list[str]
    """Columns that were the index of a data frame."""
    separator: str
    """Between its cells; a semicolon where nothing is, so that commas may be decimal ones."""
    knows_types: bool
    """Whether text in it is meant as text, also where it looks like a number."""
    notes: list[str]

    @property
    def text_bytes(self) -> int:
        """About as many as all its cells of text have."""
        ...

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """These columns of all rows in order: strings, double precision or microseconds; missing cells are null."""
        ...

    def cells(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The same, as they stand in the file: of any type, and with words that count as missing."""
        ...


class DelimitedFile:
    """A CSV file, or the like, in any dialect."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with as_sentence(path):
            self.dialect = read_dialect(path)
        self.names, self.unnamed, notes = unique_names(self.dialect.names)
        self.storage: dict[str, Storage] = dict.fromkeys(self.names, "text")
        self.unusable: dict[str, str] = {}
        self.index: list[str] = []
        self.separator, self.knows_types = self.dialect.separator, False
        self.notes = [*self.dialect.notes, *notes]
        self._said_bad = False

    @property
    def text_bytes(self) -> int:
        """Of the whole file, not compressed."""
        return self.dialect.n_bytes

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Cells of text; rows that have too few or too many are left out while they are few."""
        return self._read(names, MISSING)

    def cells(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The same, where only empty cells are null."""
        return self._read(names, ("",))

    def _read(self, names: Sequence[str], missing: Sequence[str]) -> Iterator[pa.RecordBatch]:
        bad: list[tuple[int, str]] = []

        def leave_out(row: Any) -> str:
            bad.append((row.number + self.dialect.skipped_lines, f"{row.actual_columns} cells instead of {row.expected_columns}"))
            return "error" if row.text.count("\n") > UNCLOSED_LINES else "skip"

        n_rows, last = 0, None
        with as_sentence(self.path), open_bytes(self.path)[0] as stream:
            try:
                for batch in csv.open_csv(stream, *_options(self.dialect, self.names, names, missing, leave_out)):
                    n_rows += batch.num_rows
                    if batch.num_rows:
                        yield batch
                        last = batch
            except pa.ArrowInvalid as error:
                if not bad or "Expected" not in str(error):
                    raise
                raise self._unclosed(bad[-1][0]) from error
        self._check_last_row(last, n_rows)
        self._judge(bad, n_rows)

    def _check_last_row(self, batch: pa.RecordBatch | None, n_rows: int) -> None:
        """After a quote that is not closed, the rest of the file is one cell."""
        if batch is None or not self.dialect.has_odd_quotes:
            return
        cells = [column[-1].as_py() or "" for column in batch.columns]
        if any(cell.count("\n") > UNCLOSED_LINES for cell in cells):
            raise self._unclosed(n_rows + 1)

    def _unclosed(self, line: int) -> FileError:
        return FileError(f"A quote in line {line:,} of {self.path} is opened and not closed: close it, or remove it.")

    def _judge(self, bad: list[tuple[int, str]], n_rows: int) -> None:
        """A note for a few rows that were left out, an error for many."""
        if not bad:
            return
        what = f"line {bad[0][0]:,} has {bad[0][1]}"
        few, share = BAD_ROWS
        if len(bad) > n_rows or len(bad) > max(few, share * n_rows):
            raise FileError(
                f"{len(bad):,} of {len(bad) + n_rows:,} rows of {self.path} have more or fewer cells than there are names of columns; "
                f"{what}. Mend these lines, or write the table with quotes around cells that have separators in them."
            )
        if not self._said_bad:
            self.notes.append(f"{len(bad):,} row(s) have too few or too many cells and were left out; {what}.")
            self._said_bad = True


def _options(dialect: Dialect, all_names: list[str], names: Sequence[str], missing: Sequence[str], leave_out: Any) -> tuple[Any, Any, Any]:
    fewest, most = BLOCK_BYTES
    read = csv.ReadOptions(
        use_threads=False,  # line numbers of bad rows are known only then
        block_size=min(max(dialect.row_bytes * BLOCK_ROWS, fewest), most),
        column_names=all_names,
        skip_rows=dialect.skipped_lines,
        skip_rows_after_names=1,
        encoding="utf8" if dialect.encoding.startswith("utf-8") else dialect.encoding,
    )
    parse = csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True, invalid_row_handler=leave_out)
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), include_columns=list(names), null_values=list(missing), strings_can_be_null=True
    )
    return read, parse, convert


def unique_names(raw: Sequence[str]) -> tuple[list[str], set[str], list[str]]:
    """Names for all columns, those that were made up, and a note where some had none or the same."""
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


@contextmanager
def as_sentence(path: Path) -> Iterator[None]:
    """Errors of the system and of Arrow as one sentence."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileError(f"There is no file {path}.") from error
    except IsADirectoryError as error:
        raise FileError(f"{path} is a folder: name a file.") from error
    except PermissionError as error:
        raise FileError(f"{path} may not be read: change its permissions.") from error
    except (EOFError, OSError, pa.ArrowException, UnicodeError) as error:
        raise FileError(f"{path} cannot be read: {_reason(str(error))}") from error


def _reason(message: str) -> str:
    if "runcated" in message or "EOF" in message or "ended before" in message:
        return "it is cut off; copy or download it again."
    if "straddling" in message:
        return "one of its rows is very long; perhaps a quote is opened and not closed."
    return f"{message.splitlines()[0].rstrip('.')}. It may be damaged or of another kind than its name says."
