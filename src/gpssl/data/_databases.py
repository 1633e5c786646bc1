"""Tables of databases in one file: SQLite and DuckDB."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from .._runtime.files import forget, temporary_folder
from ._cell_texts import cell_as_text
from ._errors import FileError, listed
from ._source import Storage, TableSource, TextColumns, file_identity, store_rows, unique_names

SQLITE, DUCKDB = b"SQLite format 3\0", b"DUCK"
SQLITE_TABLES = "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT GLOB 'sqlite_*'"
DUCKDB_TABLES = "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'main'"
DUCKDB_AT = 8
"""Where the mark of DuckDB begins."""
ROWS_AT_A_TIME = 65_536


def open_database(path: Path, content: Path, table: str | None) -> TableSource:
    """Open one table of a database; what wrote the file is told by its first bytes."""
    with open(content, "rb") as file:
        start = file.read(16)
    if start == SQLITE:
        return SQLiteTable(path, content, table)
    if start[DUCKDB_AT:].startswith(DUCKDB):
        return _open_duckdb(path, content, table)
    raise FileError(f"{path} is {'empty' if not start else 'neither a SQLite nor a DuckDB database, or damaged'}.")


def _opened_sqlite(content: Path) -> sqlite3.Connection:
    """Open a database to read it: not even its journal is written, and nothing in it is trusted."""
    base = sqlite3.connect(f"file:{quote(str(content.resolve()))}?mode=ro", uri=True)
    base.execute("PRAGMA trusted_schema = OFF")
    base.execute("PRAGMA cell_size_check = ON")
    return base


class SQLiteTable(TextColumns):
    """A table of a SQLite database. Its columns may hold anything, so that the cells are read as those of a file of text."""

    def __init__(self, path: Path, content: Path, table: str | None) -> None:
        self.path = path
        with _in_a_sentence(path, sqlite3.Error), closing(_opened_sqlite(content)) as base:
            base.text_factory = lambda text: text.decode(errors="replace")
            found = dict(base.execute(SQLITE_TABLES))
            name, notes = _chosen([one for one in found if found[one] == "table"], list(found), table, path)
            self.identity = f"{file_identity(content)} {name}"
            cursor = base.execute(f'SELECT * FROM "{name.replace(chr(34), chr(34) * 2)}"')  # an identifier cannot be a parameter
            columns = [column[0] for column in cursor.description]
            blobs = set[int]()
            text = store_rows(_texts(cursor, blobs))
        self.names, self.unnamed, self.repeated, more = unique_names(columns)
        super().__init__(text, {one: str(place) for place, one in enumerate(self.names)})
        self.unusable = {one: "holds bytes, neither numbers, text nor dates" for place, one in enumerate(self.names) if place in blobs}
        self.storage: dict[str, Storage] = {one: "text" for one in self.names if one not in self.unusable}
        self.separator = ";"
        self.text_bytes = sum(text.part(place).nbytes for place in range(len(text)))
        self.notes = [*notes, *more]


def _texts(rows: Iterator[Sequence[Any]], blobs: set[int]) -> Iterator[list[str | None]]:
    """Iterate over rows as text, and remember the columns that hold bytes."""
    for row in rows:
        blobs.update(place for place, value in enumerate(row) if isinstance(value, bytes))
        yield [None if value is None else value if isinstance(value, str) else _text(value) for value in row]


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return cell_as_text(value)
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else repr(value)


def _open_duckdb(path: Path, content: Path, table: str | None) -> TableSource:
    """Copy a table of a DuckDB database into an Arrow file, which has the types of its columns, and is read part by part."""
    try:
        import duckdb
    except ImportError as error:
        raise ImportError('DuckDB databases need duckdb: pip install "gpssl[duckdb]".') from error
    from ._formats import TypedFile

    with _in_a_sentence(path, duckdb.Error), closing(_opened_duckdb(content)) as base:
        found = dict(base.execute(DUCKDB_TABLES).fetchall())
        name, notes = _chosen([one for one in found if found[one] == "BASE TABLE"], list(found), table, path)
        folder = temporary_folder()
        copy = folder / "table.arrow"
        try:
            relation = base.table(f'"{name.replace(chr(34), chr(34) * 2)}"')
            batches = getattr(relation, "to_arrow_reader", relation.fetch_record_batch)(ROWS_AT_A_TIME)
            with pa.OSFile(str(copy), "wb") as file, pa.ipc.new_file(file, batches.schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
        except BaseException:
            forget(folder)
            raise
    source = TypedFile(path, copy, is_parquet=False)
    weakref.finalize(source, forget, folder)
    source.notes[:0] = notes
    return source


def _opened_duckdb(content: Path) -> Any:
    """Open a database to read it: a view in it may read no other file, and nothing from a network."""
    import duckdb

    return duckdb.connect(str(content), read_only=True, config={"enable_external_access": "false"})


def _chosen(tables: list[str], known: list[str], asked: str | None, path: Path) -> tuple[str, list[str]]:
    """Return the table that was asked for, or the only one, and a note that names it.

    Views calculate what the file says, for as long as it says: they are read only if somebody asks for them.
    """
    if asked is not None:
        if asked not in known:
            raise FileError(f"{path} has no table {asked!r}; its tables are {listed(known, 12)}." if known else f"{path} has no tables.")
        return asked, []
    if not tables and known:
        raise FileError(f"{path} has no tables, but the views {listed(known, 12)}: name one, sheet={known[0]!r}.")
    if not tables:
        raise FileError(f"{path} has no tables.")
    if len(tables) > 1:
        raise FileError(f"{path} is a database of {len(tables):,} tables, {listed(tables, 12)}: name one, sheet={tables[0]!r}.")
    return tables[0], [f"It was read from the table {tables[0]!r} of the database."]


@contextmanager
def _in_a_sentence(path: Path, errors: type[Exception]) -> Iterator[None]:
    try:
        yield
    except FileError:
        raise
    except (errors, pa.ArrowException, ValueError, OverflowError) as error:  # names of columns may be no text
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise FileError(f"{path} cannot be read as a database ({reason}): it may be damaged, or in use by another program.") from error
