"""Where rows come from: arrays in memory or in files, sparse matrices, Parquet and CSV files, Dask, AnnData. All are read in parts."""

from .dask_rows import DaskRows
from .mapped import MappedRows
from .opening import is_lazy, open_rows
from .part import Part, rows_of_a_part
from .sliceable import SliceableRows
from .source import Keeper, Rows
from .table_files import TableFiles

__all__ = ["DaskRows", "Keeper", "MappedRows", "Part", "Rows", "SliceableRows", "TableFiles", "is_lazy", "open_rows", "rows_of_a_part"]
