"""Write results into files of any format: a file is whole or not there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute
from pyarrow.parquet import ParquetWriter

from .._runtime import written_beside
from .._runtime.threads import InOrder, n_blas_threads
from ._errors import FileError
from ._readings import canonical

Write = Callable[[pd.DataFrame], None]

LINES_AT_A_TIME = 2**14


def write_table(path: str | PathLike[str], frames: pd.DataFrame | Iterable[pd.DataFrame], *, force: bool = False) -> None:
    """Write a data frame, or several with the same columns one after the other; the ending of the name says how.

    Known are .csv and .tsv (UTF-8, numbers with all their digits), .parquet, .arrow and .feather, and .jsonl. An index is not written.
    """
    path = Path(path)
    if path.suffix.lower() not in _WRITERS:
        raise FileError(f"{path} ends in {path.suffix or 'nothing'}; tables are written as {', '.join(_WRITERS)}.")
    with replacing(path, force=force) as temporary:
        parts = iter([frames] if isinstance(frames, pd.DataFrame) else frames)
        first = next(parts, None)
        if first is None:
            raise FileError(f"There is nothing to write to {path}.")
        with _WRITERS[path.suffix.lower()](temporary, first) as write:
            write(first)
            for part in parts:
                if list(first.columns) != list(part.columns):
                    raise ValueError("The parts of a table must have the same columns.")
                write(part)


@contextmanager
def replacing(path: str | PathLike[str], *, force: bool) -> Iterator[Path]:
    """Yield a temporary path beside `path`, of the same ending: moved to `path` at the end, removed when something fails."""
    path = Path(path)
    check_writable(path, force=force)
    with written_beside(path) as temporary:
        yield temporary
        check_writable(path, force=force)  # hours may have passed


def check_writable(path: str | PathLike[str], *, force: bool) -> None:
    """Raise FileError if a file cannot be written: before the work, not after it."""
    path = Path(path)
    if path.is_dir():
        raise FileError(f"{path} is a folder: name a file.")
    if not path.parent.is_dir():
        raise FileError(f"There is no folder {path.parent}: make it first.")
    if path.exists() and not force:
        raise FileError(f"{path} exists: pass force=True to replace it, or choose another name.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise FileError(f"Nothing may be written in the folder {path.parent}: choose another, or change its permissions.")


def _arrow_table(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame.rename(columns=str), preserve_index=False)


@contextmanager
def _csv(path: Path, first: pd.DataFrame, separator: str = ",") -> Iterator[Write]:
    with open(path, "wb") as file:
        names = _quoted(pa.array([str(name) for name in first.columns]), separator)
        file.write((separator.join(names.to_pylist()) + "\n").encode())
        to_lines, n_threads = partial(_lines, separator=separator), n_blas_threads()
        with InOrder(to_lines, n_threads) as lines:

            def write(frame: pd.DataFrame) -> None:  # threads make lines of these rows, while the caller makes the next
                table = _arrow_table(frame)
                for start in range(0, len(frame), LINES_AT_A_TIME):
                    lines.add(table.slice(start, LINES_AT_A_TIME))
                    file.writelines(lines.results(max_waiting=2 * n_threads))

            yield write
            file.writelines(lines.results(max_waiting=0))


def _lines(table: pa.Table, separator: str) -> memoryview:
    """Return all cells as text, joined by Arrow: the bytes of its array of lines are the lines of the file."""
    cells = [_cells(column.combine_chunks(), separator) for column in table.columns]
    if len(cells) == 1:  # an empty line would be no row
        cells = [compute.if_else(compute.equal(cells[0], ""), '""', cells[0])]
    last = compute.binary_join_element_wise(cells[-1], "", "\n")
    lines = compute.binary_join_element_wise(*cells[:-1], last, separator) if len(cells) > 1 else last
    offsets = np.frombuffer(lines.buffers()[1], dtype=np.int32)
    return memoryview(lines.buffers()[2])[offsets[lines.offset] : offsets[lines.offset + len(lines)]]


def _cells(column: Any, separator: str) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    if pa.types.is_floating(column.type):
        is_nan = compute.is_nan(column)
        if compute.any(is_nan).as_py():  # most columns have none, and need no copy
            column = compute.if_else(is_nan, None, column)
    if pa.types.is_duration(column.type):
        column = canonical(column)
    if pa.types.is_timestamp(column.type):
        return _times(column).fill_null("")
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    text = column.cast(pa.string())
    text = text.fill_null("") if text.null_count else text
    return _quoted(text, separator) if is_text else text


def _times(column: Any) -> pa.Array:
    """Return times like 2024-12-31, with the time of the day and the zone where there are any."""
    text = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False).cast(pa.string())
    if column.type.tz:
        return compute.replace_substring_regex(text, r"\.0+(Z|[+-]\d+)$", r"\1")
    return compute.replace_substring_regex(text, r"( 00:00:00)?\.0+$", "")


def _quoted(text: pa.Array, separator: str) -> pa.Array:
    """Return the cells with quotes around those that need them."""
    start, end = np.frombuffer(text.buffers()[1], dtype=np.int32)[[text.offset, text.offset + len(text)]]
    content = b"" if start == end else memoryview(text.buffers()[2])[start:end].tobytes()
    if not any(sign in content for sign in (*(b'"', b"\r", b"\n", b"\t", b"\f", b" "), separator.encode())):
        return text  # far quicker than to look at each cell
    needs = compute.match_substring_regex(text, f'["\r\n{separator}]|^\\s|\\s$')
    if not compute.any(needs).as_py():
        return text
    doubled = compute.replace_substring(text, '"', '""')
    return compute.if_else(needs, compute.binary_join_element_wise('"', doubled, '"', ""), text)


@contextmanager
def _typed(path: Path, first: pd.DataFrame, writer_of: Callable[..., Any]) -> Iterator[Write]:
    """Write all parts with the schema of the first; a column without values there may have text further on."""
    fields = _arrow_table(first).schema
    schema = pa.schema([pa.field(field.name, pa.string()) if pa.types.is_null(field.type) else field for field in fields])
    with pa.OSFile(str(path), "wb") as file, writer_of(file, schema) as writer:
        yield lambda frame: writer.write_table(_arrow_table(frame).replace_schema_metadata(None).cast(schema))


_parquet = partial(_typed, writer_of=partial(ParquetWriter, compression="zstd"))
_arrow = partial(_typed, writer_of=pa.ipc.new_file)


@contextmanager
def _json_lines(path: Path, _first: pd.DataFrame) -> Iterator[Write]:
    with open(path, "w", encoding="utf-8", newline="\n") as file:

        def write(frame: pd.DataFrame) -> None:
            for row in _arrow_table(frame).to_pylist():
                file.write(json.dumps({name: _plain(value) for name, value in row.items()}, ensure_ascii=False) + "\n")

        yield write


def _plain(value: Any) -> Any:
    """Return what JSON knows; None for what is not finite, seconds for spans of time, and dates as text."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


_WRITERS: dict[str, Any] = {
    ".csv": _csv,
    ".tsv": partial(_csv, separator="\t"),
    ".parquet": _parquet,
    ".pq": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
}


def is_typed(path: str | PathLike[str]) -> bool:
    """Return whether a file of this name tells numbers and dates from text."""
    return Path(path).suffix.lower() not in (".csv", ".tsv")
