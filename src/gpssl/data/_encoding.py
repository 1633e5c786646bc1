"""Encode tables with columns of several kinds as numbers. A cell does not depend on other rows, so that parts of a table agree.

Numbers stay what they are, true and false are 1 and 0, dates are seconds since 1970. Text and categories become codes: large whole numbers
that follow from the category alone, so that equal cells have equal codes in every table, and a category nobody has seen before
differs from all others. NaN is a missing cell of any kind.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

MISSING_WORDS = ("", "NA", "N/A", "n/a", "na", "NaN", "nan", "null", "NULL", "None", "?", "#N/A", "<NA>", "NaT")
"""Text that stands for a missing cell."""

SMALLEST_CODE = 2.0**52
"""Codes of categories lie between this and twice this, where doubles are the whole numbers."""


def encode_table(X: Any) -> NDArray[np.float64]:
    """Return the cells of a data frame (pandas, polars) or an array as numbers, as the top of this file says. [n, D]"""
    _check_is_table(X)
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
        columns = X.astype(np.float64, copy=False)
    elif hasattr(X, "columns"):
        check_names(X)
        columns = _stack([encode_column(X[name]) for name in X.columns], _n_rows(X))
    else:
        cells = _as_cells(X)
        columns = _stack([encode_column(cells[:, place]) for place in range(cells.shape[1])], len(cells))
    if columns.ndim != 2:
        raise ValueError(f"Expected a table of rows and columns, got an array of shape {columns.shape}. Reshape your data.")
    if np.isinf(columns).any():
        raise ValueError(f"The table contains infinity, in column {_name_of(X, int(np.isinf(columns).any(axis=0).argmax()))!r}.")
    return columns


def encode_column(column: Any) -> NDArray[np.float64]:
    """Return one column as numbers; its name does not matter. [n]"""
    if type(getattr(column, "dtype", None)).__name__ == "CategoricalDtype":  # pandas
        codes = np.asarray(column.cat.codes)
        levels = np.array([encode_cell(level) for level in column.cat.categories] + [np.nan])
        return levels[codes]  # −1, for a missing cell, is the last
    values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    if values.dtype.kind in "Mm":
        return np.where(np.isnat(values), np.nan, _seconds_of(values))
    return _encode_cells(values.tolist())


def _seconds_of(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return seconds, counted in microseconds, since nanoseconds span only three centuries; in nanoseconds where the values are."""
    unit, per_second = ("ns", 1e9) if np.datetime_data(values.dtype)[0] == "ns" else ("us", 1e6)
    return values.astype(f"{values.dtype.kind}8[{unit}]").astype(np.int64) / per_second


def _encode_cells(cells: list[Any]) -> NDArray[np.float64]:
    """Encode each distinct cell once, where cells can be hashed: equal cells have equal codes."""
    try:
        codes = {cell: encode_cell(cell) for cell in set(cells)}
    except TypeError:  # a cell that cannot be hashed: `encode_cell` raises the error
        return np.array([encode_cell(cell) for cell in cells], dtype=np.float64)
    return np.array([codes[cell] for cell in cells], dtype=np.float64)


def encode_cell(cell: Any) -> float:
    """Return a number as it is, NaN for what is missing, a code for anything else."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return np.nan
    if isinstance(cell, Real | Decimal | np.bool_):
        return float(cell)
    if isinstance(cell, date) or hasattr(cell, "to_timestamp"):
        return _seconds(cell.to_timestamp() if hasattr(cell, "to_timestamp") else cell)
    if isinstance(cell, complex) or not isinstance(cell, Hashable):
        raise TypeError(f"A cell of a table must be a number, text, a category or a date, got {type(cell).__name__}: {str(cell)[:50]!r}.")
    return _code(str(cell))


def _seconds(moment: date) -> float:
    """Return the seconds since 1970, in UTC where no time zone is given."""
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


@lru_cache(maxsize=100_000)
def _code(text: str) -> float:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return SMALLEST_CODE + (int.from_bytes(digest, "little") >> 12)


def are_codes(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which cells are text or categories."""
    return (values >= SMALLEST_CODE) & (values < 2 * SMALLEST_CODE)


def header_of(X: Any) -> Any:
    """Return a data frame without its rows, which has the names and types of its columns; None for an array."""
    if not hasattr(X, "columns"):
        return None
    return X.iloc[:0] if hasattr(X, "iloc") else X[:0]


def _stack(columns: list[NDArray[np.float64]], n_rows: int) -> NDArray[np.float64]:
    return np.column_stack(columns) if columns else np.empty((n_rows, 0))


def _check_is_table(X: Any) -> None:
    if isinstance(X, str | bytes) or X is None:
        raise TypeError(f"Expected a table of rows and columns in memory, got {X!r:.60}: read it first.")
    if issparse(X):
        raise TypeError("Expected a table of numbers, text and categories, got a sparse matrix: pass X.toarray(), or a kernel for vectors.")
    if type(X).__name__ == "LazyFrame":
        raise TypeError(f"Expected a table in memory, got {type(X).__name__}: pass X.collect().")


def check_names(frame: Any) -> None:
    """Raise ValueError where columns share a name."""
    twice = [name for name, count in Counter(frame.columns).items() if count > 1]
    if twice:
        raise ValueError(f"Several columns are called {twice[0]!r}: give each its own name.")


def _n_rows(frame: Any) -> int:
    return int(frame.shape[0])


def _as_cells(X: Any) -> NDArray[Any]:
    cells = np.asarray(X, dtype=object)
    if cells.ndim != 2:
        raise ValueError(f"Expected a table of rows and columns, got an array of shape {cells.shape}. Reshape your data.")
    return cells


def _name_of(X: Any, place: int) -> Any:
    return list(X.columns)[place] if hasattr(X, "columns") else place
