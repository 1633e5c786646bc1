"""Open a file of a table by the ending of its name. Parquet and Arrow files are read in each pass, text once."""

from __future__ import annotations

import codecs
import difflib
import io
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types
from pyarrow.json import ParseOptions, ReadOptions, read_json
from pyarrow.parquet import ParquetFile

from ._byte_stream import ByteStream
from ._delimited import DelimitedFile
from ._errors import FileError, as_sentence
from ._lines import lines_in_file
from ._readings import canonical, storage_of
from ._rows import COMPRESSED
from ._source import Array, ColumnStore, SourcePart, Storage, TableSource, TextColumns, file_identity, unique_names

TEXT, JSON = (".csv", ".tsv", ".txt", ".tab", ".dat"), (".jsonl", ".ndjson")
PARQUET, ARROW = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")
OTHER = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "is a workbook: save the sheet as CSV"),
    ".h5ad": "holds AnnData, not a table of columns",
    ".json": "should have one object in each line and be called .jsonl",
}
PART_CELLS = 2**21
PART_ROWS = (1024, 65_536)
"""The fewest and the most rows of a part of a Parquet or Arrow file."""
JSON_BLOCK_BYTES = 8 * 2**20
ROWS = "\0rows"
"""The name of a column that no JSON object has."""


def open_source(path: Path) -> TableSource:
    """Open a file by the ending of its name. A file of text is read to its end."""
    if path.is_dir():
        raise FileError(f"{path} is a folder: name a file.")
    if not path.exists():
        raise FileError(f"There is no file {path}{_files_like(path)}")
    name = path.name.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    ending = Path(name).suffix
    if ending in OTHER:
        raise FileError(f"{path} {OTHER[ending]}.")
    if ending in PARQUET + ARROW:
        return TypedFile(path, is_parquet=ending in PARQUET)
    if ending in JSON:
        return JsonLinesFile(path)
    if ending in TEXT or ending == "":
        return DelimitedFile(path)
    raise FileError(f"{path} ends in {ending}; tables are read from {', '.join(TEXT[:3] + PARQUET + ARROW + JSON)}, compressed or not.")


def _files_like(path: Path) -> str:
    try:
        names = [file.name for file in path.parent.iterdir()]
    except OSError:
        return "."
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.75)
    return f"; did you mean {str(path.with_name(near[0]))!r}?" if near else "."


class TypedFile:
    """A Parquet file, or an Arrow file as `pandas.to_feather` and others write it."""

    def __init__(self, path: Path, *, is_parquet: bool) -> None:
        self.path, self.is_parquet = path, is_parquet
        with as_sentence(path):
            schema = self.schema = self._schema()
        self.names, self.unnamed, self.repeated, self.notes = unique_names(schema.names)
        self._places = {name: place for place, name in enumerate(self.names)}
        self._are_unique = self.names == list(schema.names)
        types_of = dict(zip(self.names, schema.types, strict=True))
        self.storage: dict[str, Storage] = {name: storage for name, kind in types_of.items() if (storage := storage_of(kind))}
        unusable = {name: kind for name, kind in types_of.items() if name not in self.storage}
        self.unusable = {name: f"holds {_in_words(kind)}, neither numbers, text nor dates" for name, kind in unusable.items()}
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        self.index = [name for name in index if isinstance(name, str) and name in self._places]
        self.separator, self.knows_types = ";", True
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
                    columns = [part.column(name if self._are_unique else self._places[name]) for name in names]
                    yield SourcePart(pa.RecordBatch.from_arrays(columns, names=list(names)), {})

    def lines(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the numbers of these rows, counted from 1."""
        return np.asarray(places, dtype=np.int64) + 1

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
        """Iterate over rows with these columns, and perhaps more."""
        if self.is_parquet:
            # Threads would decode whole row groups ahead, which may be the whole file.
            with ParquetFile(self.path, pre_buffer=False, buffer_size=2**20) as file:
                yield from file.iter_batches(size, columns=names if self._are_unique else None, use_threads=False)
        else:
            with _open_arrow(self.path) as reader:
                count = getattr(reader, "num_record_batches", None)
                yield from reader if count is None else map(reader.get_batch, range(count))


def _open_arrow(path: Path) -> Any:
    with open(path, "rb") as file:
        start = file.read(6)
    if start.startswith(b"FEA1"):
        raise FileError(f"{path} is a Feather file of version 1: write it again with a newer pandas or as Parquet.")
    open_it = pa.ipc.open_file if start == b"ARROW1" else pa.ipc.open_stream
    return open_it(pa.memory_map(str(path)))


def _in_words(kind: Any) -> str:
    if types.is_nested(kind):
        return "lists or records"
    return "bytes" if "binary" in str(kind) else str(kind)


class _Block(NamedTuple):
    """Consecutive lines, as columns of text."""

    columns: dict[str, pa.Array]
    nested: set[str]
    n_rows: int


class JsonLinesFile(TextColumns):
    """The keys of all objects are the columns; a key that an object lacks is a missing cell. Lists and objects within are left out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text, keys, nested = ColumnStore(), dict[str, None](), set[str]()
        with as_sentence(path), ByteStream(path) as stream:
            self.identity = file_identity(path)
            for block in _blocks(stream, path):
                keys.update(dict.fromkeys([*block.columns, *sorted(block.nested)]))
                nested |= block.nested
                # A column of nothing holds the number of rows also where no object has a key that can be read.
                columns = {**block.columns, ROWS: pa.nulls(block.n_rows, pa.string())}
                text.append(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))
            self.text_bytes = stream.n_bytes
            self._has_gaps = stream.n_lines != text.n_rows
        if not keys:
            raise FileError(f"{path} has no JSON objects: it needs one in each line.")
        self.names, self.unnamed, self.repeated, self.notes = unique_names(list(keys))
        key_of = dict(zip(self.names, keys, strict=True))
        super().__init__(text, key_of)
        self.storage: dict[str, Storage] = {name: "text" for name, key in key_of.items() if key not in nested}
        self.unusable = {name: "holds lists or records, neither numbers, text nor dates" for name, key in key_of.items() if key in nested}
        self.separator = ";"

    def lines(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the lines of these rows, counted from 1: empty ones are no rows."""
        if not self._has_gaps:
            return np.asarray(places, dtype=np.int64) + 1
        return self._lines_of_objects[places]

    @cached_property
    def _lines_of_objects(self) -> NDArray[np.int64]:
        return lines_in_file(self.path, "utf-8", 0, quoted=False)


def _blocks(stream: ByteStream, path: Path) -> Iterator[_Block]:
    first = 1
    for text in _whole_lines(stream, path):
        block = _read_fast(text)
        yield _read_slowly(text, first, path) if block is None else block
        first += text.count(b"\n")


def _whole_lines(stream: ByteStream, path: Path) -> Iterator[bytes]:
    """Iterate over blocks that end where a line does."""
    if not stream.head.strip():
        raise FileError(f"{path} is empty.")
    if stream.head.startswith(codecs.BOM_UTF8):
        stream.read(len(codecs.BOM_UTF8))
    rest = b""
    while block := stream.read(JSON_BLOCK_BYTES):
        lines, end, rest = (rest + block).rpartition(b"\n")
        if lines.strip():
            yield lines + end
    if rest.strip():
        yield rest


def _read_fast(text: bytes) -> _Block | None:
    """Read lines by Arrow, which wants every key to have one type; return None where that does not hold."""
    try:
        at_once = ReadOptions(block_size=len(text) + 1, use_threads=False)
        table = read_json(io.BytesIO(text), at_once, ParseOptions(newlines_in_values=False))
    except pa.ArrowException:
        return None
    if len(set(table.column_names)) < len(table.column_names):
        return None
    nested = {field.name for field in table.schema if types.is_nested(field.type)}
    columns = {name: table.column(name).combine_chunks().cast(pa.string()) for name in table.column_names if name not in nested}
    return _Block(columns, nested, table.num_rows)


def _read_slowly(text: bytes, first: int, path: Path) -> _Block:
    """Read line by line: cells of one key may be of several types."""
    rows = [_object(line, number, path) for number, line in enumerate(text.splitlines(), start=first) if line.strip()]
    keys = dict.fromkeys(key for row in rows for key in row)
    nested = {key for row in rows for key, value in row.items() if isinstance(value, list | dict)}
    columns = {key: pa.array([_cell(row.get(key)) for row in rows], pa.string()) for key in keys if key not in nested}
    return _Block(columns, nested, len(rows))


def _object(line: bytes, number: int, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise FileError(f'Line {number:,} of {path} is no JSON object: each line should be like {{"name": value, …}}.')
    return found


def _cell(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)
