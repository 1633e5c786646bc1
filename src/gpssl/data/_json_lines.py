"""Files with one JSON object in each line, read once, as cells of text."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import types
from pyarrow.json import ParseOptions, ReadOptions, read_json

from ._delimited import unique_names
from ._dialect import ByteStream
from ._errors import FileError, as_sentence
from ._store import ColumnStore, Storage, TextColumns, file_identity

BLOCK_BYTES = 8 * 2**20


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
        if not keys:
            raise FileError(f"{path} has no JSON objects: it needs one in each line.")
        self.names, self.unnamed, self.notes = unique_names(list(keys))
        key_of = dict(zip(self.names, keys, strict=True))
        super().__init__(text, key_of)
        self.storage: dict[str, Storage] = {name: "text" for name, key in key_of.items() if key not in nested}
        self.unusable = {name: "holds lists or records, neither numbers, text nor dates" for name, key in key_of.items() if key in nested}
        self.index: list[str] = []
        self.repeated: list[str] = []
        self.separator, self.knows_types = ";", False


ROWS = "\0rows"
"""The name of a column that no object has."""


def _blocks(stream: ByteStream, path: Path) -> Iterator[_Block]:
    first = 1
    for text in _whole_lines(stream, path):
        block = _read_fast(text)
        yield _read_slowly(text, first, path) if block is None else block
        first += text.count(b"\n")


def _whole_lines(stream: ByteStream, path: Path) -> Iterator[bytes]:
    """Iterate over blocks that end where a line does."""
    rest = b""
    block = stream.read(BLOCK_BYTES)
    if not stream.head.strip():
        raise FileError(f"{path} is empty.")
    block = block.removeprefix(b"\xef\xbb\xbf")
    while block:
        block = rest + block
        end = block.rfind(b"\n") + 1
        rest = block[end:]
        if block[:end].strip():
            yield block[:end]
        block = stream.read(BLOCK_BYTES)
    if rest.strip():
        yield rest


def _read_fast(text: bytes) -> _Block | None:
    """Read lines by Arrow, which wants every key to have one type; return None where that does not hold."""
    try:
        table = read_json(
            io.BytesIO(text), ReadOptions(block_size=len(text) + 1, use_threads=False), ParseOptions(newlines_in_values=False)
        )
    except pa.ArrowException:
        return None
    nested = {field.name for field in table.schema if types.is_nested(field.type)}
    if len(set(table.column_names)) < len(table.column_names):
        return None
    columns = {name: _as_text(table.column(name).combine_chunks()) for name in table.column_names if name not in nested}
    return _Block(columns, nested, table.num_rows)


def _as_text(column: Any) -> pa.Array:
    return pa.nulls(len(column), pa.string()) if types.is_null(column.type) else column.cast(pa.string())


def _read_slowly(text: bytes, first: int, path: Path) -> _Block:
    """Read line by line: cells of one key may be of several types."""
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(text.splitlines(), start=first):
        if line.strip():
            rows.append(_object(line, number, path))
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
