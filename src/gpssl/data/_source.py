"""What all files of tables share: the columns as their readers see them, names that differ, and a store for text that is read once."""

from __future__ import annotations

import mmap
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ._errors import FileError, listed
from ._outputs import Style

STORE_BYTES = 64 * 2**20
"""The most bytes that a table's cells, or their values, may take in memory; the rest is kept in a file."""

ROWS_AT_A_TIME = 4096
"""Rows of a part, of those that come one by one."""

ALIGNMENT = 64
"""Bytes at whose multiples Arrow wants its parts to begin."""

LEAVE_ALONE = "run again, and leave the file alone while it is read."

Array = NDArray[np.float64]
Storage = Literal["text", "category", "number", "boolean", "date", "time"]
"""What a file holds of a column: cells of text, which may be anything, or values of a known type."""


@dataclass(frozen=True)
class Where:
    """Where in a file the table is, as far as a person has said so."""

    sheet: str | None = None
    """The sheet of a workbook, or the table of a database."""
    names: tuple[str, ...] = ()
    """Columns that the table has."""


NOWHERE = Where()


class SourcePart(NamedTuple):
    """Consecutive rows of a file."""

    cells: pa.RecordBatch
    """Some columns as they stand in the file: of any type, and with words that count as missing."""
    values: Mapping[str, Array]
    """The numbers that stand for the cells of columns, as `encode_column` has them, where they are known already. [n] each"""
    as_json: Callable[[str], pa.Array] | None = None
    """From a column to its cells as JSON, for files that have them as JSON."""


class TableSource(Protocol):
    """Named columns of one file, given some rows at a time, as often as needed."""

    path: Path
    names: list[str]
    storage: dict[str, Storage]
    """The columns that can be used, and how the file stores each of them."""
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
    texts: Collection[str]
    """Columns of text that is meant as text in a file that does not know types otherwise."""
    repeated: list[str]
    """Names that several columns of the file have."""
    style: Style
    """How a table of text is written that shall look as this one."""
    notes: list[str]
    left_out: str | None
    """The note about rows that could not be read."""

    @property
    def identity(self) -> str:
        """The file, its size and its time of change."""
        ...

    @property
    def n_rows(self) -> int:
        """Rows that can be read."""
        ...

    @property
    def text_bytes(self) -> int:
        """About as many as all its cells of text have."""
        ...

    def parts(self, names: Sequence[str]) -> Iterator[SourcePart]:
        """Iterate over all rows in order, with these columns."""
        ...

    def lines(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the number that a person sees beside each of these rows: the line of a file of text, else the row, counted from 1."""
        ...

    def keep_values(self, names: Iterable[str], parts: Iterable[Mapping[str, Array]]) -> None:
        """Go through the values of columns, and keep them where that is quicker than to find them again.

        Values of these columns that were kept before are forgotten, also where no new ones come.
        """
        ...


class Unchanged:
    """A file as it was when it was opened: rows of before and after a change do not mix."""

    def __init__(self, content: Path, path: Path) -> None:
        self._content, self._path = content, path
        self._state = self._now()

    def _now(self) -> tuple[int, ...] | None:
        state = self._content.stat()
        return (state.st_ino, state.st_size, state.st_mtime_ns) if S_ISREG(state.st_mode) else None  # pipes are read once

    @contextmanager
    def while_read(self) -> Iterator[None]:
        """Check the file before this block and after it, also where it cannot be read: that may be the reason."""
        self.check()
        try:
            yield
        except Exception:
            self.check()
            raise
        self.check()

    def check(self) -> None:
        """Raise FileError where the file is another one now, or has changed."""
        try:
            state = self._now()
        except OSError as error:
            raise FileError(f"{self._path} was there, and is gone or cannot be opened now: {LEAVE_ALONE}") from error
        if state != self._state:
            raise FileError(f"{self._path} has changed since it was opened: {LEAVE_ALONE}")


def file_identity(path: Path) -> str:
    """Return the file with its size and time of change."""
    state = path.stat()
    return f"{path.resolve()} {state.st_size} {state.st_mtime_ns}"


def unique_names(raw: Sequence[str]) -> tuple[list[str], set[str], list[str], list[str]]:
    """Return names for all columns, those that were made up, those that several columns had, and a note where some had none or the same."""
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
    return names, unnamed, [name for name, count in Counter(raw).items() if name and count > 1], notes


class ColumnStore:
    """Parts of a table, kept in memory up to `STORE_BYTES` and in a temporary file beyond.

    The file has no name, so that it is gone when it is closed, however the program ends.
    """

    def __init__(self) -> None:
        self._schemas: list[pa.Schema] = []
        self._in_memory: list[pa.Buffer] = []
        self._places: list[tuple[int, int]] = []
        self._n_bytes = self.n_rows = self._n_cut = 0
        self._file: BinaryIO | None = None
        self._mapped: mmap.mmap | None = None

    def __len__(self) -> int:
        return len(self._schemas)

    def append(self, batch: pa.RecordBatch) -> None:
        """Add a part. Its columns need not be those of the parts before."""
        packed = batch.serialize()  # one block of memory, where a reader of text leaves many with room to spare
        self._schemas.append(batch.schema)
        self._in_memory.append(packed)
        self._n_bytes += packed.size
        self.n_rows += batch.num_rows
        if self._file is not None or self._n_bytes > STORE_BYTES:
            self._move_to_file()

    def part(self, place: int) -> pa.RecordBatch:
        """Return a part; its pages are read from the file when they are looked at."""
        batch = self._whole_part(place)
        return batch.slice(0, batch.num_rows - self._n_cut) if self._n_cut and place == len(self) - 1 else batch

    def cut(self, n_rows: int) -> None:
        """Leave out the last rows, which are fewer than the last part has."""
        self._n_cut += n_rows
        self.n_rows -= n_rows

    def _whole_part(self, place: int) -> pa.RecordBatch:
        if self._file is None:
            return pa.ipc.read_record_batch(self._in_memory[place], self._schemas[place])
        if self._mapped is None:
            self._mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        start, length = self._places[place]
        return pa.ipc.read_record_batch(pa.py_buffer(memoryview(self._mapped)[start : start + length]), self._schemas[place])

    def release(self) -> None:
        """Tell the system that the pages of the file are not needed for now: they would count as memory of this process."""
        if self._mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._mapped.madvise(mmap.MADV_DONTNEED)

    def _move_to_file(self) -> None:
        """Write the parts that are in memory at the end of the file."""
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="gpssl-")  # noqa: SIM115  (it lives as long as the store)
                weakref.finalize(self, self._file.close)
            for packed in self._in_memory:
                start = self._file.seek(0, 2)
                self._file.write(packed)
                self._file.write(bytes(-packed.size % ALIGNMENT))
                self._places.append((start, packed.size))
            self._file.flush()
        except OSError as error:
            raise FileError(
                f"There is no room for the columns of the table in the folder {tempfile.gettempdir()}, where those that do not fit in "
                f"memory are kept ({error.strerror or error}): make room there, or set TMPDIR to another folder."
            ) from error
        self._in_memory, self._mapped = [], None


def store_rows(rows: Iterable[Sequence[str | None]]) -> ColumnStore:
    """Keep rows of cells of text, in columns called 0, 1, …; later rows may have more cells."""
    store, rest = ColumnStore(), iter(rows)
    while block := list(islice(rest, ROWS_AT_A_TIME)):
        columns = [pa.array(cells, pa.string()) for cells in zip_longest(*block)]
        store.append(pa.RecordBatch.from_arrays(columns, names=[str(place) for place in range(len(columns))]))
    return store


class TextColumns:
    """Columns of text that were read from a file once, and the values of those that hold numbers, dates or categories."""

    def __init__(self, text: ColumnStore, keys: Mapping[str, str]) -> None:
        self._text = text
        self._keys = keys
        self.n_rows = text.n_rows
        self.index: list[str] = []
        self.knows_types = False
        self.texts: Collection[str] = frozenset()
        self.left_out: str | None = None
        self.style = Style()
        self._values: dict[str, ColumnStore] = {}

    def lines(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the numbers of these rows, counted from 1."""
        return np.asarray(places, dtype=np.int64) + 1

    def parts(self, names: Sequence[str]) -> Iterator[SourcePart]:
        """Iterate over the parts that were read."""
        for place in range(len(self._text)):
            batch = self._text.part(place)
            empty = pa.nulls(batch.num_rows, pa.string())
            present = {name: place for place, name in enumerate(batch.schema.names)}
            columns = [batch.column(present[key]) if (key := self._keys[name]) in present else empty for name in names]
            stores = {store: store.part(place) for store in {self._values[name] for name in names if name in self._values}}
            values = {name: stores[self._values[name]].column(name).to_numpy() for name in names if name in self._values}
            yield SourcePart(pa.RecordBatch.from_arrays(columns, names=list(names)), values, self._json_of(place))
            for store in (self._text, *stores):
                store.release()

    def _json_of(self, place: int) -> Callable[[str], pa.Array] | None:  # noqa: ARG002  (of files of JSON)
        """Return how to get the cells of a part as JSON; None for text that is none."""
        return None

    def keep_values(self, names: Iterable[str], parts: Iterable[Mapping[str, Array]]) -> None:
        """Keep the values of columns, in the parts that the cells have."""
        store, kept = ColumnStore(), dict[str, ColumnStore]()
        for part in parts:
            store.append(pa.RecordBatch.from_arrays([pa.array(values) for values in part.values()], names=list(part)))
            kept = dict.fromkeys(part, store)
        gone = set(names)
        self._values = {name: store for name, store in self._values.items() if name not in gone} | kept
