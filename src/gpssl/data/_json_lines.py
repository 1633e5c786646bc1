"""Files of JSON with one object in each line."""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types
from pyarrow.json import ParseOptions, ReadOptions, read_json

from ._byte_stream import ByteStream
from ._errors import FileError, as_sentence
from ._lines import lines_in_file
from ._outputs import Style
from ._source import ColumnStore, Storage, TextColumns, Unchanged, file_identity, unique_names

JSON_BLOCK_BYTES = 8 * 2**20
MOST_NESTED = 200
"""Lists and objects of a line that Arrow reads."""
ROWS = "\0rows"
"""The name of a column that no JSON object has."""


class _Block(NamedTuple):
    """Consecutive lines, as columns of text."""

    columns: dict[str, pa.Array]
    nested: set[str]
    n_rows: int


class JsonLinesFile(TextColumns):
    """The keys of all objects are the columns; a key that an object lacks is a missing cell. Lists and objects within are kept as JSON."""

    def __init__(self, path: Path, content: Path | None = None) -> None:
        self.path, self._content = path, content or path
        text, keys, nested = ColumnStore(), dict[str, None](), set[str]()
        with as_sentence(path), Unchanged(self._content, path).while_read(), ByteStream(self._content, path) as stream:
            self.identity = file_identity(self._content)
            for block in _blocks(stream, path):
                keys.update(dict.fromkeys(block.columns))
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
        self.separator, self.style = ";", Style(nested=frozenset(self.unusable))

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
    """Read lines by Arrow, which wants every key to have one type; return None where that does not hold."""
    if _is_deep(text):
        return None
    try:
        at_once = ReadOptions(block_size=len(text) + 1, use_threads=False)
        table = read_json(io.BytesIO(text), at_once, ParseOptions(newlines_in_values=False))
        table.validate(full=True)  # text that is no UTF-8
    except pa.ArrowException:
        return None
    if len(set(table.column_names)) < len(table.column_names):
        return None
    nested = {field.name for field in table.schema if types.is_nested(field.type)}
    # Arrow would give all records of a column the same keys.
    objects = [json.loads(line) for line in text.splitlines() if line.strip()] if nested else []
    columns = {name: _cells(objects, name) if name in nested else _texts(table.column(name)) for name in table.column_names}
    return _Block(columns, nested, table.num_rows)


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
    rows = [_object(line, number, path) for number, line in enumerate(text.splitlines(), start=first) if line.strip()]
    keys = dict.fromkeys(key for row in rows for key in row)
    nested = {key for row in rows for key, value in row.items() if isinstance(value, list | dict)}
    return _Block({key: _cells(rows, key) for key in keys}, nested, len(rows))


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
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value, ensure_ascii=False)
