"""Tables as people have them, in files of any dialect; results, written so that a file is whole or not there."""

from .columns import Column
from .encoded_rows import EncodedRows
from .errors import FileError
from .piece import Piece
from .table import UserTable, names_in, open_table
from .writing import check_writable, is_typed, replacing, write_table

__all__ = [
    "Column",
    "EncodedRows",
    "FileError",
    "Piece",
    "UserTable",
    "check_writable",
    "is_typed",
    "names_in",
    "open_table",
    "replacing",
    "write_table",
]
