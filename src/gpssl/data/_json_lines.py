"""Files of JSON with one object in each line."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, types
from pyarrow.json import ParseOptions, ReadOptions, read_json

from ._byte_stream import ByteStream
from ._errors import FileError, as_sentence
from ._lines import lines_in_file
from ._outputs import Style
from ._source import ColumnStore, Storage, TextColumns, Unchanged, file_identity, unique_names

JSON_BLOCK_BYTES = 8 * 2**20
LARGEST_WHOLE = 2**53
"""Up to this size each whole number has a double of its own."""
MOST_NESTED = 200
"""Lists and objects of a line that Arrow reads."""
ROWS, AS_JSON = "\0rows", "\0json "
"""The name of a column that no JSON object has, and the beginning of those of columns that keep cells of several types as JSON."""
LONG_NUMBER = re.compile(rb"\d{16}")
"""Perhaps more digits than double precision has."""


Values = Literal["text", "numbers", "others"]
"""What a column holds in some lines: text; numbers, which lose their points where they are whole; or what is JSON as it is."""


class _Block(NamedTuple):
    """Consecutive lines, as columns of text."""

    columns: dict[str, pa.Array]
    nested: set[str]
    n_rows: int
    values: dict[str, Values]
    """What columns hold, where all cells are the same."""
    repeated: list[int]
    """Lines that have a key more than once."""


class JsonLinesFile(TextColumns):
    """The keys of all objects are the columns; a key that an object lacks is a missing cell. Lists and objects within are kept as JSON."""

    def __init__(self, path: Path, content: Path | None = None) -> None:
        self.path, self._content = path, content or path
        text, keys, nested = ColumnStore(), dict[str, None](), set[str]()
        kinds: list[dict[str, Values]] = []
        repeated: list[int] = []
        with as_sentence(path), Unchanged(self._content, path).while_read(), ByteStream(self._content, path) as stream:
            self.identity = file_identity(self._content)
            for block in _blocks(stream, path):
                keys.update(dict.fromkeys(key for key in block.columns if not key.startswith(AS_JSON)))
                kinds.append(block.values)
                repeated += block.repeated
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
        self.separator, self.style = ";", Style(nested=frozenset(self.unusable), as_json=frozenset(self.names))
        self._kinds, self._key_of = kinds, key_of
        self.texts = frozenset(name for name, key in key_of.items() if all(one.get(key, "text") == "text" for one in kinds))
        if repeated:
            self.notes.append(f"{len(repeated):,} line(s), such as line {repeated[0]:,}, have a key more than once: its last value counts.")

    def _json_of(self, place: int) -> Callable[[str], pa.Array]:
        batch, kinds = self._text.part(place), self._kinds[place]

        def as_json(name: str) -> pa.Array:
            key = self._key_of[name]
            written = AS_JSON + key if AS_JSON + key in batch.schema.names else key
            if written not in batch.schema.names:
                return pa.nulls(batch.num_rows, pa.string())
            cells, kind = batch.column(written), kinds.get(key)
            if kind == "text":
                return pa.array([None if cell is None else json.dumps(cell) for cell in cells.to_pylist()], pa.string())
            return compute.replace_substring_regex(cells, r"^(-?\d+)$", r"\1.0") if kind == "numbers" else cells

        return as_json

    def lines(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the lines of these rows, counted from 1: empty ones are no rows."""
        if not self._has_gaps:
            return np.asarray(places, dtype=np.int64) + 1
        return self._lines_of_objects[places]

    @cached_property
    def _lines_of_objects(self) -> NDArray[np.int64]:
        return lines_in_file(self._content, "utf-8", 0, quoted=False)


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
    """Read lines by Arrow, which wants every key to have one type; return None where that does not hold, or digits would be lost."""
    if _is_deep(text):
        return None
    at_once = ReadOptions(block_size=len(text) + 1, use_threads=False)
    try:
        table = read_json(io.BytesIO(text), at_once, ParseOptions(newlines_in_values=False))
        moments = [pa.field(field.name, pa.string()) for field in table.schema if types.is_timestamp(field.type)]
        if moments:  # Arrow takes text for a moment where it can, and would write it in its own way
            as_text = ParseOptions(newlines_in_values=False, explicit_schema=pa.schema(moments))
            table = read_json(io.BytesIO(text), at_once, as_text).select(table.column_names)
        table.validate(full=True)  # text that is no UTF-8
    except pa.ArrowException:
        return None
    if len(set(table.column_names)) < len(table.column_names):
        return None
    if LONG_NUMBER.search(text) and any(types.is_floating(kind) for kind in table.schema.types):
        return None
    nested = {field.name for field in table.schema if types.is_nested(field.type)}
    # Arrow would give all records of a column the same keys.
    objects = [json.loads(line) for line in text.splitlines() if line.strip()] if nested else []
    columns = {name: _cells(objects, name) if name in nested else _texts(table.column(name)) for name in table.column_names}
    values = {field.name: _values_of(field.type) for field in table.schema}
    return _Block(columns, nested, table.num_rows, values, [])


def _values_of(kind: Any) -> Values:
    return "text" if types.is_string(kind) else "numbers" if types.is_floating(kind) else "others"


def _is_deep(text: bytes) -> bool:
    """Return whether a line may hold so many lists and objects in each other that Arrow, which calls itself for each, has no stack left."""
    if text.count(b"{") + text.count(b"[") <= text.count(b"\n") + MOST_NESTED:
        return False
    return any(line.count(b"{") + line.count(b"[") > MOST_NESTED for line in text.splitlines())


def _texts(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks().cast(pa.string())


def _cells(objects: list[dict[str, Any]], key: str) -> pa.Array:
    return pa.array([_cell(one.get(key)) for one in objects], pa.string())


def _read_slowly(text: bytes, first: int, path: Path) -> _Block:
    """Read line by line: cells of one key may be of several types."""
    repeated: list[int] = []
    rows = [_object(line, number, path, repeated) for number, line in enumerate(text.splitlines(), start=first) if line.strip()]
    keys = dict.fromkeys(key for row in rows for key in row)
    nested = {key for row in rows for key, value in row.items() if isinstance(value, list | dict)}
    columns, values = {key: _cells(rows, key) for key in keys}, dict[str, Values]()
    for key in keys:
        kinds = {type(row.get(key)) for row in rows} - {type(None)}
        values[key] = "text" if kinds <= {str} else "others"
        if len(kinds) > 1 or kinds == {float}:
            columns[AS_JSON + key] = pa.array([None if row.get(key) is None else json.dumps(row[key]) for row in rows], pa.string())
    return _Block(columns, nested, len(rows), values, repeated)


def _object(line: bytes, number: int, path: Path, repeated: list[int]) -> dict[str, Any]:
    pairs_of: list[list[tuple[str, Any]]] = []

    def unite(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs_of[:] = [pairs]  # at last, those of the line
        return dict(pairs)

    try:
        found = json.loads(line, object_pairs_hook=unite)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise FileError(f'Line {number:,} of {path} is no JSON object: each line should be like {{"name": value, …}}.')
    if len(pairs_of[0]) > len(found):
        repeated.append(number)
    return found


def _cell(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_WHOLE
    return json.dumps(int(value) if is_whole else value, ensure_ascii=False)
