"""Rows of files, for a fit that reads them part by part."""

from __future__ import annotations

import glob
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ._arrays import row_blocks
from ._columns import Column, check_kinds, column_of, encoded_arrays, header_of_columns, identity_of, keep_codes
from ._errors import FileError
from ._formats import TypedFile, open_source
from ._profile import NO_FINDINGS, settle_readings
from ._rows import Array, Part, Rows, check_part, is_file_name, rows_of_a_part
from ._source import TableSource


class EncodedRows(Rows):
    """Numbers as they are, dates as seconds, codes for categories and NaN for gaps, as `encode_table` has them."""

    are_encoded = True

    def __init__(self, source: TableSource, columns: list[Column], n_rows: int) -> None:
        super().__init__()
        self.source, self.columns = source, columns
        self.n_rows: int = n_rows
        self.n_columns = len(columns)
        self.names = [column.name for column in columns]
        self.header = header_of_columns(columns)

    @property
    def identity(self) -> str:
        """The file with size and time of change, and how its columns are read."""
        return identity_of([self.source], self.columns)

    def only(self, places: list[int]) -> EncodedRows:
        """Return the same rows with these columns only: the others are not read."""
        other = EncodedRows(self.source, [self.columns[place] for place in places], self.n_rows)
        other.sample_weight = self.sample_weight
        return other

    def parts(self) -> Iterator[Part]:
        """Iterate over parts of the file, cut to a size that suits the memory."""
        size, first = rows_of_a_part(self.n_columns), 0
        for array in encoded_arrays(self.source, self.columns):
            for block in row_blocks(len(array), size):
                rows = array[block]
                yield Part(rows, self.weight_of(first, len(rows)))
                first += len(rows)
        if first != self.n_rows:
            raise FileError(f"{self.source.path} has {first:,} rows now, but had {self.n_rows:,}: leave it alone while it is read.")
        self.check_weights_are_as_many(first)


class TableFiles(Rows):
    """The rows of one or several files with the same columns, in the order of the files' names.

    Each file is understood as `open_table` does it: dialect, words for missing cells, numbers, truth values, dates and categories. All
    columns are rows' content, also those that `open_table` would leave out as IDs. Text is read once, Parquet and Arrow files in each pass.

    Parameters
    ----------
    path
        A file that `open_table` reads, a folder of CSV, TSV and Parquet files, a pattern like "rows/part-*.parquet", or a list of files.
    columns
        The columns to read, by default all. Unless the kernel is one for tables (`gpssl.kernels.for_table`), they must hold numbers.
    sample_weight
        One for each row, in the order of the rows.

    Examples
    --------
    >>> TableFiles("rows.parquet", columns=["height", "weight"])  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | PathLike[str] | Sequence[str | PathLike[str]],
        columns: Sequence[str] | None = None,
        *,
        sample_weight: Array | None = None,
    ) -> None:
        super().__init__(sample_weight)
        paths: list[Any] = list(path) if isinstance(path, list | tuple) else [path]
        self.files = [file for one in paths for file in _expand(os.path.expanduser(os.fspath(one)))]
        if columns is not None:
            _check_choice(columns)
        self._sources: list[TableSource] = [open_source(file) for file in self.files]
        self.names = self._common_names(None if columns is None else list(columns))
        self.n_columns = len(self.names)
        self.n_rows = sum(source.n_rows for source in self._sources)
        self._columns = self._columns_of_each()
        self._dtype = _common_dtype(self._sources, self.names)
        for note in (source.left_out for source in self._sources):
            if note:
                warnings.warn(note, UserWarning, stacklevel=3)

    @property
    def identity(self) -> str:
        """The files with size and time of change, and how their columns are read."""
        return identity_of(self._sources, (column for each in self._columns for column in each))

    def for_tables(self) -> TableFiles:
        """Return the same rows with codes for categories and NaN for missing cells, which are not refused."""
        other = copy(self)
        other.are_encoded, other._sample, other._dtype = True, None, np.float64
        other.header = header_of_columns(self._columns[0])
        return other

    def parts(self) -> Iterator[Part]:
        """Iterate over parts of each file, cut to a size that suits the memory."""
        if not self.are_encoded:
            self._check_numbers()
        size, first = rows_of_a_part(self.n_columns), 0
        for file, source, columns in zip(self.files, self._sources, self._columns, strict=True):
            for array in encoded_arrays(source, columns, self._dtype):
                for block in row_blocks(len(array), size):
                    rows = array[block] if self.are_encoded else check_part(array[block], file.name, first, self.names)
                    yield Part(rows, self.weight_of(first, len(rows)))
                    first += len(rows)
        self.check_weights_are_as_many(first)

    def _common_names(self, chosen: list[str] | None) -> list[str]:
        """Return the names of the columns to read, which all files must have."""
        names = [_names_of(source, chosen) for source in self._sources]
        for file, others in zip(self.files, names, strict=True):
            if others != names[0]:
                different = [f"{one!r} instead of {other!r}" for one, other in zip(others, names[0], strict=False) if one != other]
                what = different[0] if different else f"{len(others)} instead of {len(names[0])}"
                raise ValueError(f"{file} has other columns than {self.files[0]}: {what}.")
        return names[0]

    def _columns_of_each(self) -> list[list[Column]]:
        """Return how to read the columns of each file: the first file with rows says what they hold."""
        filled = next((source for source in self._sources if source.n_rows), self._sources[0])
        first = _columns_of(filled, self.names or [], {})
        kinds = {column.name: column.kind for column in first}
        return [first if source is filled else _columns_of(source, self.names or [], kinds) for source in self._sources]

    def _check_numbers(self) -> None:
        """Raise ValueError for a column of text or dates, which kernels for vectors cannot compare."""
        for file, columns in zip(self.files, self._columns, strict=True):
            for column in columns:
                if column.kind in ("category", "date"):
                    raise ValueError(
                        f"Column {column.name!r} of {file} holds {'text' if column.kind == 'category' else 'dates'}, not numbers: pass "
                        "kernel=gpssl.kernels.for_table(frame), with a data frame of some of the rows, or name the columns to use: "
                        "gpssl.data.TableFiles(path, columns=[...])."
                    )


def _columns_of(source: TableSource, names: Sequence[str], kinds: dict[str, Any]) -> list[Column]:
    """Return how to read these columns, as the kinds that are wanted. Only cells of text have to be looked at for that."""
    text = {name: kinds.get(name) for name in names if source.storage[name] in ("text", "category")}
    readings, findings = settle_readings(source, text) if text and source.n_rows else ({}, {})
    columns = [column_of(source, name, kinds.get(name), readings.get(name, "typed"), findings.get(name, NO_FINDINGS)) for name in names]
    if kinds and source.n_rows:
        check_kinds(columns, source.path, "in the files before it")
    keep_codes(source, columns)
    return columns


def _names_of(source: TableSource, chosen: list[str] | None) -> list[str]:
    """Return the names of the columns to read; raise ValueError for names that cannot be told apart."""
    if source.unnamed and chosen is None:
        raise ValueError(f"{source.path} has a column without a name; is it an index? Write it without (index=False), or give it a name.")
    if source.repeated:
        raise ValueError(f"{source.path} has more than one column named {source.repeated[0]!r}: rename one of them.")
    missing = [name for name in chosen or [] if name not in source.names]
    if missing:
        raise ValueError(f"{source.path} has no column {missing[0]!r}; it has {', '.join(source.names)}.")
    # The index of a data frame, which pandas and Dask write as columns, is read if it is asked for.
    names = [name for name in source.names if name not in source.index] if chosen is None else chosen
    for name in names:
        if name in source.unusable:
            raise ValueError(f"Column {name!r} of {source.path} {source.unusable[name]}: name the columns to use.")
    return names


def _expand(path: str) -> list[Path]:
    """Return the file, those of a folder, or those that a pattern matches."""
    if os.path.isdir(path):
        files = [file for file in Path(path).iterdir() if is_file_name(file.name) and file.is_file() and file.name[0] not in "._"]
        if not files:
            raise FileNotFoundError(
                f"The folder {path} has no Parquet or CSV files. For folders in folders: dask.dataframe.read_parquet({path!r})."
            )
        return sorted(files, key=_in_natural_order)
    if os.path.exists(path):
        return [Path(path)]
    if "://" in path:
        raise ValueError(f"{path} is no file on this machine. Read it through Dask: dask.dataframe.read_parquet({path!r}).")
    files = sorted((Path(name) for name in glob.glob(path)), key=_in_natural_order)
    if not files:
        raise FileNotFoundError(f"There is no file {path!r}.")
    return files


def _in_natural_order(file: Path) -> list[tuple[int, str]]:
    """Return a key that sorts part-2 before part-10, as Dask does."""
    texts = re.split(r"(\d+)", str(file))
    return [(int(text), "") if text.isdigit() else (-1, text) for text in texts]


def _common_dtype(sources: Sequence[TableSource], names: Sequence[str]) -> type[np.floating[Any]]:
    """Return the type of an array of all columns, if it is single or double precision, and double otherwise, as scikit-learn does."""
    kinds: list[np.dtype[Any]] = []
    for source in sources:
        if not isinstance(source, TypedFile):
            return np.float64
        kinds += [np.dtype(source.schema.types[source.names.index(name)].to_pandas_dtype()) for name in names]
    return np.float32 if all(kind.kind in "fiub" for kind in kinds) and np.result_type(*kinds) == np.float32 else np.float64


def _check_choice(columns: Sequence[str]) -> None:
    if not columns:
        raise ValueError("columns is empty: name at least one, or leave it out for all.")
    repeated = [name for name, count in Counter(columns).items() if count > 1]
    if repeated:
        raise ValueError(f"columns has {repeated[0]!r} more than once.")
