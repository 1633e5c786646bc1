"""Rows, and every reader of them: arrays in memory or in files, sparse matrices, Dask, AnnData, tables in files of any dialect.

Nothing is imported before it is asked for: tables in files need pandas and pyarrow, rows in memory do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._runtime.lazy import lazy_names

if TYPE_CHECKING:
    from ._column_facts import ColumnFacts as ColumnFacts
    from ._columns import Column as Column
    from ._columns import TablePart as TablePart
    from ._dask import DaskRows as DaskRows
    from ._errors import FileError as FileError
    from ._opening import is_lazy as is_lazy
    from ._opening import open_rows as open_rows
    from ._rows import Keeper as Keeper
    from ._rows import MappedRows as MappedRows
    from ._rows import Part as Part
    from ._rows import Rows as Rows
    from ._rows import SliceableRows as SliceableRows
    from ._table import EncodedRows as EncodedRows
    from ._table import FileTable as FileTable
    from ._table import open_table as open_table
    from ._table_files import TableFiles as TableFiles
    from ._writing import check_writable as check_writable
    from ._writing import is_typed as is_typed
    from ._writing import replacing as replacing
    from ._writing import write_table as write_table

__all__ = [
    "Column",
    "ColumnFacts",
    "DaskRows",
    "EncodedRows",
    "FileError",
    "FileTable",
    "Keeper",
    "MappedRows",
    "Part",
    "Rows",
    "SliceableRows",
    "TableFiles",
    "TablePart",
    "check_writable",
    "is_lazy",
    "is_typed",
    "open_rows",
    "open_table",
    "replacing",
    "write_table",
]

_HOMES = {
    "Column": "_columns",
    "ColumnFacts": "_column_facts",
    "DaskRows": "_dask",
    "EncodedRows": "_table",
    "FileError": "_errors",
    "Keeper": "_rows",
    "MappedRows": "_rows",
    "Part": "_rows",
    "TablePart": "_columns",
    "Rows": "_rows",
    "SliceableRows": "_rows",
    "TableFiles": "_table_files",
    "FileTable": "_table",
    "check_writable": "_writing",
    "is_lazy": "_opening",
    "is_typed": "_writing",
    "open_rows": "_opening",
    "open_table": "_table",
    "replacing": "_writing",
    "write_table": "_writing",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
