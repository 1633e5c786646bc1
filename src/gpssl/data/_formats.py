"""Open a file of a table by the ending of its name. Parquet and Arrow files are read in each pass, text once."""

from __future__ import annotations

import difflib
import json
import re
import weakref
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types
from pyarrow.parquet import ParquetFile

from .._runtime import is_standard
from .._runtime.files import forget
from ._archives import Located, located
from ._delimited import DelimitedFile
from ._errors import FileError, as_sentence
from ._outputs import Style
from ._readings import canonical, storage_of
from ._source import NOWHERE, Array, SourcePart, Storage, TableSource, Unchanged, Where, file_identity, unique_names

TEXT, JSON = (".csv", ".tsv", ".txt", ".tab", ".dat"), (".jsonl", ".ndjson")
PARQUET, ARROW = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")
WORKBOOKS = (".xlsx", ".xlsm")
DATABASES = (".sqlite", ".sqlite3", ".db", ".duckdb")
OTHER = {
    **dict.fromkeys((".xls", ".xlsb", ".ods", ".numbers"), "is a workbook of another kind: save it as .xlsx, or the sheet as CSV"),
    ".h5ad": "holds AnnData, not a table of columns",
    ".json": "should have one object in each line and be called .jsonl",
}
PART_CELLS = 2**21
CLAIMED_BYTES = (2**26, 100)
"""What a file is believed to hold: so many bytes, and so many times its size, as compression may be that good."""
PART_ROWS = (1024, 65_536)
"""The fewest and the most rows of a part of a Parquet or Arrow file."""
LARGE_BATCH_BYTES = 256 * 2**20
"""From this size on, batches of an Arrow file are looked at in the file, and not read into memory."""


def open_source(path: Path, where: Where = NOWHERE) -> TableSource:
    """Open a file by the ending of its name; standard input by its content. A file of text is read to its end."""
    if path.is_dir():
        raise FileError(f"{path} is a folder: name a file.")
    if not path.exists() and not is_standard(path):
        raise FileError(f"There is no file {path}{_files_like(path)}")
    with as_sentence(path):
        found = located(path)
    try:
        source = _reader(found, where)
    except BaseException:
        if found.folder is not None:
            forget(found.folder)
        raise
    source.notes[:0] = found.notes
    if found.folder is not None:
        weakref.finalize(source, forget, found.folder)
    return source


def _reader(file: Located, where: Where) -> TableSource:
    path, content, ending = file.path, file.content, file.ending
    if ending in OTHER:
        raise FileError(f"{path} {OTHER[ending]}.")
    if ending in WORKBOOKS:
        from ._workbooks import WorkbookFile

        return WorkbookFile(path, content, where)
    if ending in DATABASES:
        from ._databases import open_database

        return open_database(path, content, where.sheet)
    if where.sheet is not None:
        raise FileError(f"{path} has no sheets or tables to choose from: leave out sheet={where.sheet!r}.")
    if ending in PARQUET + ARROW:
        return TypedFile(path, content, is_parquet=ending in PARQUET)
    if ending in JSON:
        from ._json_lines import JsonLinesFile

        return JsonLinesFile(path, content)
    if ending in TEXT or ending == "":
        return DelimitedFile(path, content, where.names)
    known = ", ".join(TEXT[:3] + PARQUET + ARROW + JSON + WORKBOOKS + DATABASES)
    raise FileError(f"{path} ends in {ending}; tables are read from {known}, compressed or not, and .zip.")


def _files_like(path: Path) -> str:
    try:
        names = [file.name for file in path.parent.iterdir()]
    except OSError:
        return "."
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.75)
    return f"; did you mean {str(path.with_name(near[0]))!r}?" if near else "."


class TypedFile:
    """A Parquet file, or an Arrow file as `pandas.to_feather` and others write it."""

    def __init__(self, path: Path, content: Path | None = None, *, is_parquet: bool) -> None:
        self.path, self._content, self.is_parquet = path, content or path, is_parquet
        with as_sentence(path), self._as_large_as_it_is():
            self._unchanged = Unchanged(self._content, path)
            schema = self.schema = self._schema()
            _check_is_text(schema)
            self.names, self.unnamed, self.repeated, self.notes = unique_names(schema.names)
            index, note = _index_of_frame(schema)
        self._places = {name: place for place, name in enumerate(self.names)}
        self._are_unique = self.names == list(schema.names)
        types_of = dict(zip(self.names, schema.types, strict=True))
        self.storage: dict[str, Storage] = {name: storage for name, kind in types_of.items() if (storage := storage_of(kind))}
        unusable = {name: kind for name, kind in types_of.items() if name not in self.storage}
        self.unusable = {name: f"holds {_in_words(kind)}, neither numbers, text nor dates" for name, kind in unusable.items()}
        self.index = [name for name in index if name in self._places]
        self.notes += note
        self.separator, self.knows_types = ";", True
        self.texts: Collection[str] = ()
        self.left_out: str | None = None
        self.style = Style()

    @property
    def identity(self) -> str:
        """The file, its size and its time of change, as it is now: the file is read in each pass."""
        return file_identity(self._content)

    @cached_property
    def n_rows(self) -> int:
        """Rows of the file, when they were first counted."""
        self._unchanged.check()
        with as_sentence(self.path), self._as_large_as_it_is():
            if self.is_parquet:
                with ParquetFile(self._content) as file:
                    return int(file.metadata.num_rows)
            return sum(batch.num_rows for batch in self._raw_batches(self.names[:1], PART_ROWS[1]))

    @cached_property
    def text_bytes(self) -> int:
        """The bytes of its columns of text, however they are packed: counted by reading them."""
        names = [name for name in self.names if self.storage.get(name) in ("text", "category", None)]
        columns = (column for part in self.parts(names) for column in part.cells.columns) if names else ()
        return sum((canonical(column) if storage_of(column.type) else column).nbytes for column in columns)

    def parts(self, names: Sequence[str]) -> Iterator[SourcePart]:
        """Iterate over parts of the row groups, or of the record batches of the file, of the types that the file has."""
        fewest, most = PART_ROWS
        size = min(max(PART_CELLS // max(1, len(names)), fewest), most)
        with self._unchanged.while_read(), as_sentence(self.path), self._as_large_as_it_is():
            for batch in _joined((self._only(names, batch) for batch in self._raw_batches(list(names), size)), fewest):
                for start in range(0, batch.num_rows, size):
                    yield SourcePart(batch.slice(start, size), {})

    @contextmanager
    def _as_large_as_it_is(self) -> Iterator[None]:
        """Raise FileError where a file that is small claims to hold something for which there is no memory."""
        try:
            yield
        except pa.ArrowMemoryError as error:
            claimed = max(map(int, re.findall(r"\d+", str(error))), default=0)
            if claimed < CLAIMED_BYTES[0] + CLAIMED_BYTES[1] * self._content.stat().st_size:
                raise
            raise FileError(
                f"{self.path} says that it holds {claimed:,} bytes in one piece, for which there is no memory: it may be damaged; "
                "copy or download it again."
            ) from error

    def _only(self, names: Sequence[str], batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return these columns of some rows."""
        columns = [batch.column(name if self._are_unique else self._places[name]) for name in names]
        return pa.RecordBatch.from_arrays(columns, names=list(names))

    def lines(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the numbers of these rows, counted from 1."""
        return np.asarray(places, dtype=np.int64) + 1

    def keep_values(self, names: Iterable[str], parts: Iterable[Mapping[str, Array]]) -> None:  # noqa: ARG002  (of other sources)
        """Go through the values and keep none of them: the file itself has them."""
        deque(parts, maxlen=0)

    def _schema(self) -> pa.Schema:
        if self.is_parquet:
            with ParquetFile(self._content) as file:
                return file.schema_arrow
        with _open_arrow(self._content, self.path) as reader:
            return reader.schema

    def _raw_batches(self, names: list[str], size: int) -> Iterator[pa.RecordBatch]:
        """Iterate over rows with these columns, and perhaps more, whose bytes are checked."""
        if self.is_parquet:
            # Threads would decode whole row groups ahead, which may be the whole file.
            with ParquetFile(self._content, pre_buffer=False, buffer_size=2**20) as file:
                for batch in file.iter_batches(size, columns=names if self._are_unique else None, use_threads=False):
                    batch.validate(full=True)  # text that is no UTF-8
                    yield batch
        else:
            with _open_arrow(self._content, self.path, names if self._are_unique else None) as reader:
                count = getattr(reader, "num_record_batches", None)
                for batch in reader if count is None else map(reader.get_batch, range(count)):
                    # Arrow takes the places of texts and of levels from the file as they are: wrong ones lie outside its memory.
                    batch.validate(full=True)
                    yield batch


def _joined(batches: Iterator[pa.RecordBatch], fewest: int) -> Iterator[pa.RecordBatch]:
    """Iterate over the same rows, at least so many at a time: what a part costs hardly depends on how many rows it has."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= fewest or not batch.num_columns:
            yield from _as_few(waiting)
            waiting = []
    yield from _as_few(waiting)


def _as_few(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(batches) < 2:
        return batches
    try:
        return pa.Table.from_batches(batches).combine_chunks().to_batches()
    except pa.ArrowException:  # of types that Arrow cannot join, such as dictionaries of lists
        return batches


def _check_is_text(schema: pa.Schema) -> None:
    """Raise UnicodeDecodeError where a name or a zone is no text: whoever asks Arrow for it later would."""
    for name, kind in zip(schema.names, schema.types, strict=True):
        inside = kind.value_type if types.is_dictionary(kind) else kind
        _ = name, str(kind), getattr(inside, "tz", None)


def _open_arrow(content: Path, path: Path, names: Sequence[str] | None = None) -> Any:
    """Open an Arrow file for its batches, with these columns or all.

    The file is mapped into memory only where its batches are too large to be read: when somebody cuts a mapped file, the process ends.
    """
    with open(content, "rb") as file:
        start = file.read(6)
    if start.startswith(b"FEA1"):
        raise FileError(f"{path} is a Feather file of version 1: write it again with a newer pandas or as Parquet.")
    open_it = pa.ipc.open_file if start == b"ARROW1" else pa.ipc.open_stream
    with open_it(pa.OSFile(str(content))) as reader:
        n_batches = max(1, getattr(reader, "num_record_batches", 1))
        wanted = None if names is None else [place for place, name in enumerate(reader.schema.names) if name in {*names}]
    open_bytes = pa.OSFile if content.stat().st_size / n_batches <= LARGE_BATCH_BYTES else pa.memory_map
    return open_it(open_bytes(str(content)), options=pa.ipc.IpcReadOptions(included_fields=wanted))


def _index_of_frame(schema: pa.Schema) -> tuple[list[str], list[str]]:
    """Return the columns that were the index of a data frame, and a note where what pandas has written about them is damaged.

    Nothing else is needed of it: the types of the columns are those of the file.
    """
    written = (schema.metadata or {}).get(b"pandas")
    if written is None:
        return [], []
    try:
        index = json.loads(written.decode())["index_columns"]
        return [name for name in index if isinstance(name, str)], []
    except (ValueError, TypeError, LookupError, RecursionError):
        return [], ["What pandas has written into it about the index of a data frame is damaged, and not used."]


def _in_words(kind: Any) -> str:
    if types.is_nested(kind):
        return "lists or records"
    return "bytes" if "binary" in str(kind) else str(kind)
