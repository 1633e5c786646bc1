"""Rows, and every reader of them: arrays in memory or in files, sparse matrices, Dask, AnnData, tables in files of any dialect.

Nothing is imported before it is asked for: tables in files need pandas and pyarrow, rows in memory do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._runtime import lazy_names

if TYPE_CHECKING:
    from ._columns import TablePart
    from ._errors import FileError
    from ._frames import ColumnFacts
    from ._rows import Part, Rows, open_rows
    from ._table import FileTable, open_table
    from ._table_files import TableFiles
    from ._writing import write_table

__all__ = [
    "ColumnFacts",
    "FileError",
    "FileTable",
    "Part",
    "Rows",
    "TableFiles",
    "TablePart",
    "open_rows",
    "open_table",
    "write_table",
]

__getattr__, __dir__ = lazy_names(__name__, __file__)
