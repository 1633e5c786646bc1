"""Rows of Parquet and CSV files, read with pyarrow a part at a time."""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._rows import Array, Part, Rows, check_part, rows_of_a_part

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET = (".parquet", ".pq")
TSV = (".tsv", ".tsv.gz", ".tsv.bz2")
CSV = (".csv", ".csv.gz", ".csv.bz2", *TSV)
CSV_BLOCK_BYTES = 4 * 2**20
READ_BUFFER_BYTES = 2**20


class TableFiles(Rows):
    """The rows of one or several Parquet or CSV files with the same columns, in the order of the files' names.

    Parameters
    ----------
    path
        A file (.parquet, .pq, .csv, .tsv, compressed or not), a folder of such files, a pattern like "rows/part-*.parquet", or a list of
        files.
    columns
        The columns to read, by default all. They must hold numbers.
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
        self.files = _find_files(path)
        self.columns = None if columns is None else list(columns)
        if self.columns is not None:
            _check_choice(self.columns)
        schemas = self._schemas()
        self.names = list(schemas[0].names)
        self.n_columns = len(self.names)
        self._dtype = _common_dtype(schemas)
        self.n_rows = self._count_rows()

    @property
    def identity(self) -> str:
        """The files with size and time of change, the columns, and how the rows are cut."""
        states = [(file.resolve(), os.stat(file)) for file in self.files]
        files = [f"{file} {state.st_size} {state.st_mtime_ns}" for file, state in states]
        return "\n".join([*files, *(self.names or []), str(CSV_BLOCK_BYTES)])

    def parts(self) -> Iterator[Part]:
        """The batches of each file, as arrays."""
        first = 0
        for file in self.files:
            for batch in filter(len, self._batches(file)):
                rows = check_part(self._array(batch), file.name, first, self.names)
                yield Part(rows, self.weight_of(first, len(rows)))
                first += len(rows)
        self.check_weights_are_as_many(first)

    def _schemas(self) -> list[pa.Schema]:
        """Names and types of the columns to read from each file: numbers everywhere, and the same names."""
        schemas = [self._file_schema(file) for file in self.files]
        for file, schema in zip(self.files, schemas, strict=True):
            if schema.names != schemas[0].names:
                raise ValueError(f"{file} has other columns than {self.files[0]}: {_difference(schema.names, schemas[0].names)}.")
            _check_numbers(schema, file)
        return schemas

    def _file_schema(self, file: Path) -> pa.Schema:
        if _is_parquet(file):
            schema = _without_index(_open_parquet(file).schema_arrow, keep=self.columns or [])
        else:
            with _open_csv(file) as reader:
                schema = reader.schema
        _check_names(schema.names, file)
        missing = [name for name in self.columns or [] if name not in schema.names]
        if missing:
            raise ValueError(f"{file} has no column {missing[0]!r}; it has {', '.join(schema.names)}.")
        return schema if self.columns is None else _arrow().schema([schema.field(name) for name in self.columns])

    def _count_rows(self) -> int | None:
        """Parquet files say how many rows they have."""
        if not all(_is_parquet(file) for file in self.files):
            return None
        return sum(_open_parquet(file).metadata.num_rows for file in self.files)

    def _batches(self, file: Path) -> Iterator[pa.RecordBatch]:
        size = rows_of_a_part(self.n_columns)
        if _is_parquet(file):
            # Threads would decode whole row groups ahead, which may be the whole file.
            with _as_sentence(file):
                yield from _open_parquet(file).iter_batches(size, columns=self.names, use_threads=False)
            return
        with _open_csv(file, self.names) as reader, _as_sentence(file):
            for batch in reader:
                for start in range(0, batch.num_rows, size):
                    yield batch.slice(start, size)

    def _array(self, batch: pa.RecordBatch) -> NDArray[Any]:
        """Columns beside each other; missing values are NaN."""
        out = np.empty((batch.num_rows, self.n_columns), dtype=self._dtype)
        for j, name in enumerate(self.names or []):
            out[:, j] = batch.column(name).to_numpy(zero_copy_only=False)
        return out


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError('Reading files needs pyarrow: pip install "gpssl[dask]", or pip install pyarrow.') from error
    return pyarrow


@contextmanager
def _as_sentence(file: Path) -> Iterator[None]:
    """Arrow's errors, with the name of the file."""
    try:
        yield
    except (FileNotFoundError, PermissionError):
        raise  # they say it themselves
    except (_arrow().ArrowInvalid, OSError) as error:
        raise ValueError(f"{file} cannot be read as a table of numbers: {error}") from error


def _open_parquet(file: Path) -> Any:
    with _as_sentence(file):
        from pyarrow.parquet import ParquetFile

        return ParquetFile(file, buffer_size=READ_BUFFER_BYTES, pre_buffer=False)


def _open_csv(file: Path, numbers: Sequence[str] | None = None) -> Any:
    """A reader of blocks. With `numbers`, only these columns, as floating-point numbers: a column may begin with whole ones."""
    arrow = _arrow()
    from pyarrow import csv

    convert = csv.ConvertOptions()
    if numbers is not None:
        convert = csv.ConvertOptions(include_columns=list(numbers), column_types=dict.fromkeys(numbers, arrow.float64()))
    with _as_sentence(file):
        return csv.open_csv(
            file,
            read_options=csv.ReadOptions(block_size=CSV_BLOCK_BYTES, use_threads=False),
            parse_options=csv.ParseOptions(delimiter="\t" if file.name.lower().endswith(TSV) else ","),
            convert_options=convert,
        )


def _is_parquet(file: Path) -> bool:
    return file.name.lower().endswith(PARQUET)


def _find_files(path: Any) -> list[Path]:
    """The files that are meant, or a sentence."""
    paths = list(path) if isinstance(path, list | tuple) else [path]
    files = [file for one in paths for file in _expand(os.path.expanduser(os.fspath(one)))]
    unknown = [file for file in files if not file.name.lower().endswith((*PARQUET, *CSV))]
    if unknown:
        raise ValueError(f"{unknown[0]} is neither a Parquet nor a CSV file by its name; known are {', '.join((*PARQUET, *CSV))}.")
    return files


def is_file_name(name: str) -> bool:
    """Tell by the ending whether a file holds a table."""
    return name.lower().endswith((*PARQUET, *CSV))


def _expand(path: str) -> list[Path]:
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
    """part-2 before part-10, as Dask has it."""
    pieces = re.split(r"(\d+)", str(file))
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in pieces]


def _common_dtype(schemas: Sequence[pa.Schema]) -> type[np.floating[Any]]:
    """That of an array of all columns, if it is single or double precision, and double otherwise: as scikit-learn has it."""
    kinds = [np.dtype(kind.to_pandas_dtype()) for schema in schemas for kind in schema.types if str(kind) != "null"]
    return np.float32 if kinds and np.result_type(*kinds) == np.float32 else np.float64


def _without_index(schema: pa.Schema, keep: Sequence[str]) -> pa.Schema:
    """Without the columns that pandas and Dask write for a data frame's index, unless they are asked for."""
    index = [name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
    return _arrow().schema([field for field in schema if field.name not in index or field.name in keep])


def _check_choice(columns: Sequence[str]) -> None:
    if not columns:
        raise ValueError("columns is empty: name at least one, or leave it out for all.")
    repeated = [name for name, count in Counter(columns).items() if count > 1]
    if repeated:
        raise ValueError(f"columns has {repeated[0]!r} more than once.")


def _difference(names: Sequence[str], others: Sequence[str]) -> str:
    different = [f"{one!r} instead of {other!r}" for one, other in zip(names, others, strict=False) if one != other]
    return different[0] if different else f"{len(names)} instead of {len(others)}"


def _check_names(names: Sequence[str], file: Path) -> None:
    if "" in names:
        raise ValueError(f"{file} has a column without a name; is it an index? Write it without (index=False), or give it a name.")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"{file} has more than one column named {repeated[0]!r}: rename one of them.")
    if not _is_parquet(file) and all(_is_number(name) for name in names):
        raise ValueError(f"The first line of {file} holds numbers ({', '.join(names[:3])}), not names of columns. Give it a line of names.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_numbers(schema: pa.Schema, file: Path) -> None:
    types = _arrow().types
    for field in schema:
        kind = field.type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind)):
            raise ValueError(
                f"Column {field.name!r} of {file} holds {kind}, not numbers. Encode it (for example with OneHotEncoder), or name the "
                "columns to use: gpssl.data.TableFiles(path, columns=[...]). CSV files have commas between columns, TSV files tabs."
            )
