"""Files with one JSON object in each line, read as cells of text a block at a time."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import types
from pyarrow.json import ParseOptions, ReadOptions, read_json

from ._delimited import Storage, as_sentence, unique_names
from ._dialect import open_bytes
from ._errors import FileError

BLOCK_BYTES = 8 * 2**20


class _Block(NamedTuple):
    """Consecutive lines, as columns of text."""

    columns: dict[str, pa.Array]
    nested: set[str]
    n_rows: int
    n_bytes: int


class JsonLinesFile:
    """The keys of all objects are the columns; a key that an object lacks is a missing cell. Lists and objects within are left out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        keys: dict[str, None] = {}
        nested: set[str] = set()
        self._n_bytes = 0
        for block in self._blocks():
            self._n_bytes += block.n_bytes
            keys.update(dict.fromkeys(block.columns))
            keys.update(dict.fromkeys(sorted(block.nested)))
            nested |= block.nested
        if not keys:
            raise FileError(f"{path} has no JSON objects: it needs one in each line.")
        self._keys = list(keys)
        self.names, self.unnamed, self.notes = unique_names(self._keys)
        key_of = dict(zip(self.names, self._keys, strict=True))
        self.storage: dict[str, Storage] = {name: "text" for name, key in key_of.items() if key not in nested}
        self.unusable = {name: "holds lists or records, neither numbers, text nor dates" for name, key in key_of.items() if key in nested}
        self._key_of = key_of
        self.index: list[str] = []
        self.separator, self.knows_types = ";", False

    @property
    def text_bytes(self) -> int:
        """Of the whole file, not compressed."""
        return self._n_bytes

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """A batch for each block of lines."""
        for block in self._blocks():
            empty = pa.nulls(block.n_rows, pa.string())
            columns = [block.columns.get(self._key_of[name], empty) for name in names]
            yield pa.RecordBatch.from_arrays(columns, names=list(names))

    def cells(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The same: words that count as missing are left to the reader."""
        return self.batches(names)

    def _blocks(self) -> Iterator[_Block]:
        first = 1
        with as_sentence(self.path):
            for text in _whole_lines(self.path):
                block = _read_fast(text)
                yield _read_slowly(text, first, self.path) if block is None else block
                first += text.count(b"\n")


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Blocks that end where a line does."""
    rest = b""
    with open_bytes(path)[0] as stream:
        start = stream.read(BLOCK_BYTES)
        if not start.strip():
            raise FileError(f"{path} is empty.")
        block = start.removeprefix(b"\xef\xbb\xbf")
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
    """By Arrow, which wants every key to have one type; None where that does not hold."""
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
    return _Block(columns, nested, table.num_rows, len(text))


def _as_text(column: Any) -> pa.Array:
    return pa.nulls(len(column), pa.string()) if types.is_null(column.type) else column.cast(pa.string())


def _read_slowly(text: bytes, first: int, path: Path) -> _Block:
    """Line by line: cells of one key may be of several types."""
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(text.splitlines(), start=first):
        if line.strip():
            rows.append(_object(line, number, path))
    keys = dict.fromkeys(key for row in rows for key in row)
    nested = {key for row in rows for key, value in row.items() if isinstance(value, list | dict)}
    columns = {key: pa.array([_cell(row.get(key)) for row in rows], pa.string()) for key in keys if key not in nested}
    return _Block(columns, nested, len(rows), len(text))


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
