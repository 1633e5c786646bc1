"""Parquet and Arrow files: columns of known types, read a part at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute, types
from pyarrow.parquet import ParquetFile

from ._delimited import repeated_names, unique_names
from ._errors import FileError, as_sentence
from ._readings import without_missing_words
from ._store import Array, SourcePart, Storage, file_identity

PART_CELLS = 2**21
PART_ROWS = (1024, 65_536)
SECONDS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


class TypedFile:
    """A Parquet file, or an Arrow file as `pandas.to_feather` and others write it."""

    def __init__(self, path: Path, *, is_parquet: bool) -> None:
        self.path, self.is_parquet = path, is_parquet
        with as_sentence(path):
            schema = self.schema = self._schema()
        self.names, self.unnamed, self.notes = unique_names(schema.names)
        self._places = {name: place for place, name in enumerate(self.names)}
        self._are_unique = self.names == list(schema.names)
        self.storage: dict[str, Storage] = {}
        self.unusable: dict[str, str] = {}
        for name, kind in zip(self.names, schema.types, strict=True):
            storage = _storage(kind)
            if storage is None:
                self.unusable[name] = f"holds {_in_words(kind)}, neither numbers, text nor dates"
            else:
                self.storage[name] = storage
        index = [name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
        self.index = [name for name in index if name in self._places]
        self.separator, self.knows_types = ";", True
        self.repeated = repeated_names(schema.names)
        self.left_out: str | None = None

    @property
    def identity(self) -> str:
        """The file, its size and its time of change, as it is now: the file is read in each pass."""
        return file_identity(self.path)

    @cached_property
    def n_rows(self) -> int:
        """Rows of the file, when they were first counted."""
        with as_sentence(self.path):
            if self.is_parquet:
                with ParquetFile(self.path) as file:
                    return int(file.metadata.num_rows)
            return sum(batch.num_rows for batch in self._raw_batches(self.names[:1], PART_ROWS[1]))

    @cached_property
    def text_bytes(self) -> int:
        """The bytes of its columns of text, however they are packed: counted by reading them."""
        names = [name for name, storage in self.storage.items() if storage in ("text", "category")]
        return sum(canonical(column).nbytes for part in self.parts(names) for column in part.cells.columns) if names else 0

    def parts(self, names: Sequence[str]) -> Iterator[SourcePart]:
        """Iterate over parts of the row groups, or of the record batches of the file, of the types that the file has."""
        fewest, most = PART_ROWS
        size = min(max(PART_CELLS // max(1, len(names)), fewest), most)
        with as_sentence(self.path):
            for batch in self._raw_batches(list(names), size):
                for start in range(0, batch.num_rows, size):
                    part = batch.slice(start, size)
                    columns = part.columns if self._are_unique else [part.column(self._places[name]) for name in names]
                    yield SourcePart(pa.RecordBatch.from_arrays(columns, names=list(names)), {})

    def keep_values(self, names: Iterable[str], parts: Iterable[Mapping[str, Array]]) -> None:  # noqa: ARG002  (of other sources)
        """Go through the values and keep none of them: the file itself has them."""
        deque(parts, maxlen=0)

    def _schema(self) -> pa.Schema:
        if self.is_parquet:
            with ParquetFile(self.path) as file:
                return file.schema_arrow
        with _open_arrow(self.path) as reader:
            return reader.schema

    def _raw_batches(self, names: list[str], size: int) -> Iterator[pa.RecordBatch]:
        if self.is_parquet:
            # Threads would decode whole row groups ahead, which may be the whole file.
            with ParquetFile(self.path, pre_buffer=False, buffer_size=2**20) as file:
                for batch in file.iter_batches(size, columns=names if self._are_unique else None, use_threads=False):
                    yield batch.select(names) if self._are_unique else batch
            return
        with _open_arrow(self.path) as reader:
            count = getattr(reader, "num_record_batches", None)
            for batch in reader if count is None else map(reader.get_batch, range(count)):
                yield batch.select(names) if self._are_unique else batch


def _open_arrow(path: Path) -> Any:
    with open(path, "rb") as file:
        start = file.read(6)
    if start.startswith(b"FEA1"):
        raise FileError(f"{path} is a Feather file of version 1: write it again with a newer pandas or as Parquet.")
    if start == b"ARROW1":
        return pa.ipc.open_file(pa.memory_map(str(path)))
    return pa.ipc.open_stream(pa.memory_map(str(path)))


def _storage(kind: Any) -> Storage | None:
    if types.is_dictionary(kind):
        inside = _storage(kind.value_type)
        return "category" if inside == "text" else inside
    if types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind) or str(kind) == "string_view":
        return "text"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_timestamp(kind) or types.is_date(kind):
        return "date"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_duration(kind) or types.is_time(kind):
        return "number"
    return None


def _in_words(kind: Any) -> str:
    if types.is_nested(kind):
        return "lists or records"
    return "bytes" if "binary" in str(kind) else str(kind)


def plain(column: pa.Array) -> pa.Array:
    """Return the same values, but all text as strings, without a dictionary: each part of a file may have its own."""
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.string()) if _storage(column.type) == "text" else column


def canonical(column: pa.Array) -> pa.Array:
    """Return strings without words that count as missing, double precision, or microseconds in Greenwich time."""
    column = plain(column)
    kind = column.type
    storage = _storage(kind)
    if storage == "text":
        return without_missing_words(column)
    if storage == "date":
        return column.cast(pa.timestamp("us", tz=getattr(kind, "tz", None)), safe=False).cast(pa.timestamp("us"), safe=False)
    if types.is_duration(kind) or types.is_time(kind):
        whole = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
        return compute.divide(whole.cast(pa.float64(), safe=False), SECONDS[kind.unit])
    if types.is_boolean(kind):
        column = column.cast(pa.int8())
    return column.cast(pa.float64(), safe=False)
