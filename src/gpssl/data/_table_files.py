"""Rows of files, for a fit that reads them part by part."""

from __future__ import annotations

import glob
import os
import re
import warnings
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from copy import copy
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from ._arrays import row_blocks
from ._columns import OF_TEXT, Column, check_kinds, column_of, encoded_arrays, header_of_columns, keep_codes, settle_columns, waves_of
from ._decisions import Wanted
from ._errors import FileError, no_such_column, quoted
from ._formats import TypedFile, open_source
from ._free_text import places_of
from ._rows import Array, Part, Rows, check_part, is_file_name, rows_of_a_part
from ._source import TableSource, Where


class _OpenedFile(NamedTuple):
    """A file, how to read its columns, and how many rows it had when it was opened."""

    source: TableSource
    columns: list[Column]
    n_rows: int


class _RowsOfFiles(Rows):
    """The rows of opened files, whose columns have the same names and kinds."""

    _dtype: type[np.floating[Any]] = np.float64
    _texts: tuple[int, ...] = ()
    """Columns whose cells stay text."""

    def __init__(self, opened: list[_OpenedFile], sample_weight: Array | None = None) -> None:
        super().__init__(sample_weight)
        self._opened = opened
        self.n_rows: int = sum(file.n_rows for file in opened)
        self.names = [column.name for column in opened[0].columns]
        self.n_columns = len(self.names)
        self.check_weights_are_as_many(self.n_rows)

    @property
    def identity(self) -> str:
        """The files with size and time of change, and how their columns are read."""
        readings = [f"{column.name} {column.kind} {column.way}" for file in self._opened for column in file.columns]
        return "\n".join([*(file.source.identity for file in self._opened), *readings])

    @property
    def text_names(self) -> list[str]:
        """Names of the columns that hold free text."""
        return [column.name for column in self._opened[0].columns if column.kind == "text"]

    def for_tables(self, texts: Sequence[Hashable] = ()) -> Self:
        """Return the same rows with codes for categories and NaN for missing cells, which are not refused; these columns stay text."""
        places = tuple(sorted(places_of(texts, self.names, self.n_columns)))
        if self.are_encoded and places == self._texts:
            return self
        other = copy(self)
        other.are_encoded, other._sample, other._dtype, other._texts = True, None, np.float64, places
        other.header = header_of_columns(self._opened[0].columns)
        return other

    def parts(self) -> Iterator[Part]:
        """Iterate over parts of each file, cut to a size that suits the memory."""
        size, first = rows_of_a_part(self.n_columns), 0
        for source, columns, n_rows in self._opened:
            n_seen = 0
            for array in encoded_arrays(source, columns, self._dtype, self._texts):
                n_seen += len(array)
                if n_seen > n_rows:
                    continue  # the rest is only counted, for the error
                for block in row_blocks(len(array), size):
                    rows = array[block] if self.are_encoded else check_part(array[block], source.path.name, first, self.names)
                    yield Part(rows, self.weight_of(first, len(rows)))
                    first += len(rows)
            if n_seen != n_rows:
                raise FileError(f"{source.path} has {n_seen:,} rows now, but had {n_rows:,}: leave it alone while it is read.")


class EncodedRows(_RowsOfFiles):
    """Numbers as they are, dates as seconds, codes for categories and NaN for gaps, as `encode_table` has them."""

    are_encoded = True

    def __init__(self, source: TableSource, columns: list[Column], n_rows: int) -> None:
        super().__init__([_OpenedFile(source, columns, n_rows)])
        self.header = header_of_columns(columns)

    def only(self, places: list[int]) -> EncodedRows:
        """Return the same rows with these columns only: the others are not read."""
        source, columns, n_rows = self._opened[0]
        other = EncodedRows(source, [columns[place] for place in places], n_rows)
        other.sample_weight = self.sample_weight
        other._texts = tuple(new for new, place in enumerate(places) if place in self._texts)
        return other


class TableFiles(_RowsOfFiles):
    """The rows of one or several files with the same columns, in the order of the files' names.

    Each file is understood as `open_table` does it: dialect, words for missing cells, numbers, truth values, dates and categories. All
    columns are rows' content, also those that `open_table` would leave out as IDs. Text is read once, Parquet and Arrow files in each pass.

    Parameters
    ----------
    path
        A file that `open_table` reads, a folder of such files (not .txt), a pattern like "rows/part-*.parquet", or a list of files.
    columns
        The columns to read, by default all. Unless the kernel is one for tables (`gpssl.kernels.for_table`), they must hold numbers.
    sample_weight
        One for each row, in the order of the rows.
    sheet
        The sheet of workbooks, or the table of databases, as for `open_table`.

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
        sheet: str | None = None,
    ) -> None:
        paths: list[Any] = list(path) if isinstance(path, list | tuple) else [path]
        self.files = [file for one in paths for file in _expand(os.path.expanduser(os.fspath(one)))]
        if columns is not None and not columns:
            raise ValueError("columns is empty: name at least one, or leave it out for all.")
        where = Where(sheet, tuple(columns or ()))
        sources = [open_source(file, where) for file in self.files]
        names = _common_names(sources, None if columns is None else list(columns))
        super().__init__(_opened(sources, names), sample_weight)
        self._dtype = _common_dtype(sources, names)
        for source in sources:
            if source.left_out:
                warnings.warn(source.left_out, UserWarning, stacklevel=3)

    def parts(self) -> Iterator[Part]:
        """Iterate over the rows. Raise ValueError for a column of text or dates, which kernels for vectors cannot compare."""
        for file in [] if self.are_encoded else self._opened:
            for column in file.columns:
                if column.kind in (*OF_TEXT, "date"):
                    raise ValueError(
                        f"Column {quoted(column.name)} of {file.source.path} holds {'text' if column.kind in OF_TEXT else 'dates'}, not "
                        "numbers: pass kernel=gpssl.kernels.for_table(gpssl.data.open_table(path).sample()), or name the columns to use: "
                        "gpssl.data.TableFiles(path, columns=[...])."
                    )
        yield from super().parts()


def _common_names(sources: Sequence[TableSource], chosen: list[str] | None) -> list[str]:
    """Return the names of the columns to read, which all files must have."""
    repeated = [name for name, count in Counter(chosen).items() if count > 1]
    if repeated:
        raise ValueError(f"columns has {repeated[0]!r} more than once.")
    names = [_names_of(source, chosen) for source in sources]
    for source, others in zip(sources, names, strict=True):
        if others != names[0]:
            different = [f"{quoted(one)} instead of {quoted(other)}" for one, other in zip(others, names[0], strict=False) if one != other]
            what = different[0] if different else f"{len(others)} instead of {len(names[0])}"
            raise ValueError(f"{source.path} has other columns than {sources[0].path}: {what}.")
    return names[0]


def _opened(sources: Sequence[TableSource], names: Sequence[str]) -> list[_OpenedFile]:
    """Find out how to read these columns of each file: the first file with rows says what they hold."""
    filled = next((source for source in sources if source.n_rows), sources[0])
    first = _columns_of(filled, names, {})
    wanted = {column.origin: Wanted(column.kind, column.unit if column.cycle is None else column.cycle.reading) for column in first}
    return [_OpenedFile(one, first if one is filled else _columns_of(one, names, wanted), one.n_rows) for one in sources]


def _columns_of(source: TableSource, names: Sequence[str], wanted: dict[str, Wanted]) -> list[Column]:
    """Return how to read these columns, as the kinds that are wanted. Only cells of text have to be looked at for that."""
    asked = {name: wanted.get(name, Wanted()) for name in names}
    text = settle_columns(source, {name: one for name, one in asked.items() if source.storage[name] in ("text", "category")})
    found = [text[name] if name in text else column_of(source, name, asked[name].kind) for name in names]
    columns = [made for column in found for made in waves_of(column)]
    if wanted and source.n_rows:
        check_kinds(columns, source.path, "in the files before it")
    keep_codes(source, columns)
    return columns


def _names_of(source: TableSource, chosen: list[str] | None) -> list[str]:
    """Return the names of the columns to read; raise ValueError for names that cannot be told apart."""
    if source.unnamed and chosen is None:
        raise ValueError(f"{source.path} has a column without a name; is it an index? Write it without (index=False), or give it a name.")
    if source.repeated:
        raise ValueError(f"{source.path} has more than one column named {quoted(source.repeated[0])}: rename one of them.")
    # The index of a data frame, which pandas and Dask write as columns, is read if it is asked for.
    names = [name for name in source.names if name not in source.index] if chosen is None else chosen
    if not names:
        raise FileError(f"{source.path} has no columns.")
    for name in names:
        if name not in source.names:
            raise no_such_column(name, source.names, source.path)
        if name in source.unusable:
            raise ValueError(f"Column {quoted(name)} of {source.path} {source.unusable[name]}: name the columns to use.")
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
    from pyarrow import types

    kinds: list[np.dtype[Any]] = []
    for source in sources:
        if not isinstance(source, TypedFile):
            return np.float64
        stored = [source.schema.types[source.names.index(name)] for name in names]
        if not all(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) for kind in stored):
            return np.float64
        kinds += [np.dtype(kind.to_pandas_dtype()) for kind in stored]
    return np.float32 if np.result_type(*kinds) == np.float32 else np.float64
