"""Write results into files of any format: a file is whole or not there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow.parquet import ParquetWriter

from .._runtime import is_standard
from ._cell_texts import as_json, values_of_cells
from ._csv_writing import Write, arrow_table, csv_writer, text_file
from ._errors import FileError
from ._outputs import Style, check_table_name, ending_of, replacing


def write_table(
    path: str | PathLike[str],
    frames: pd.DataFrame | Iterable[pd.DataFrame],
    *,
    force: bool = False,
    style: Style | None = None,
) -> None:
    """Write a data frame, or several with the same columns one after the other; the ending of the name says how.

    Known are .csv and .tsv (UTF-8, numbers with all their digits), .parquet, .arrow and .feather, and .jsonl; .csv.gz, .tsv.gz and
    .jsonl.gz are compressed, and "-" is standard output, as CSV. An index is not written. `style` is the dialect of a table of text.
    """
    path = Path(path)
    check_table_name(path)
    if is_standard(path):
        _write(path, path, frames, style or Style())
        return
    with replacing(path, force=force) as temporary:
        _write(path, temporary, frames, style or Style())


def _write(path: Path, temporary: Path, frames: pd.DataFrame | Iterable[pd.DataFrame], style: Style) -> None:
    parts = iter([frames] if isinstance(frames, pd.DataFrame) else frames)
    first = next(parts, None)
    if first is None:
        raise FileError(f"There is nothing to write to {path}.")
    with _WRITERS[ending_of(path)[0]](temporary, first, style) as write:
        with _holding(path):
            write(first)
        for part in parts:
            if list(first.columns) != list(part.columns):
                raise ValueError("The parts of a table must have the same columns.")
            with _holding(path):
                write(part)


@contextmanager
def _holding(path: Path) -> Iterator[None]:
    """Raise FileError for cells that files of this kind cannot hold, such as years beyond those of Parquet."""
    try:
        yield
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise FileError(f"{path} cannot hold all cells as they are ({reason}): write CSV, which has them as text.") from error


@contextmanager
def _typed(path: Path, first: pd.DataFrame, _style: Style, writer_of: Callable[..., Any]) -> Iterator[Write]:
    """Write all parts with the schema of the first; a column without values there may have text further on."""
    fields = arrow_table(first).schema
    schema = pa.schema([pa.field(field.name, pa.string()) if pa.types.is_null(field.type) else field for field in fields])
    with pa.OSFile(str(path), "wb") as file, writer_of(file, schema) as writer:
        yield lambda frame: writer.write_table(arrow_table(frame).replace_schema_metadata(None).cast(schema))


_parquet = partial(_typed, writer_of=partial(ParquetWriter, compression="zstd"))
_arrow = partial(_typed, writer_of=pa.ipc.new_file)


@contextmanager
def _json_lines(path: Path, _first: pd.DataFrame, style: Style) -> Iterator[Write]:
    with text_file(path) as file:

        def write(frame: pd.DataFrame) -> None:
            table = arrow_table(frame)
            names = table.column_names
            readers = [_nested if name in style.nested else as_json for name in names]
            for row in zip(*(values_of_cells(column.combine_chunks()) for column in table.columns), strict=True):
                cells = {name: read(value) for name, read, value in zip(names, readers, row, strict=True)}
                file.write((json.dumps(cells, ensure_ascii=False) + "\n").encode())

        yield write


def _nested(text: str | None) -> Any:
    return None if text is None else json.loads(text)


_WRITERS: dict[str, Any] = {
    **dict.fromkeys((".csv", ".tsv"), csv_writer),
    **dict.fromkeys((".parquet", ".pq"), _parquet),
    **dict.fromkeys((".arrow", ".feather"), _arrow),
    **dict.fromkeys((".jsonl", ".ndjson"), _json_lines),
}
