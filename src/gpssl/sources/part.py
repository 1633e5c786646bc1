"""A part of the rows: what every source gives, whatever it reads from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

PART_BYTES = 16 * 2**20
PART_ROWS = (256, 65_536)
"""Fewest and most rows of a part."""


class Part(NamedTuple):
    """Consecutive rows, in memory."""

    rows: NDArray[Any]
    """Numbers [n, D], dense and checked; or objects [n]."""
    weight: NDArray[np.float64]


def rows_of_a_part(n_columns: int) -> int:
    """How many rows to hold in memory at a time."""
    fewest, most = PART_ROWS
    return min(max(PART_BYTES // (8 * max(1, n_columns)), fewest), most)


def check_part(rows: Any, place: str, first: int | None = None, names: Sequence[str] | None = None) -> NDArray[Any]:
    """The rows as finite numbers, or an error that says where they are not.

    `place` names the part ("partition 3"), `first` is the position of its first row and `names` are the columns', where they are known.
    """
    try:
        return check_array(rows, dtype=[np.float64, np.float32], ensure_min_samples=0, ensure_all_finite=True)
    except (ValueError, TypeError) as error:
        message = f"In {place}{_row_range(rows, first)}: {error}{_first_that_is_not_finite(rows, first, names)}"
        raise (TypeError if isinstance(error, TypeError) else ValueError)(message) from error


def _row_range(rows: Any, first: int | None) -> str:
    n_rows = len(rows)
    return f" ({n_rows:,} rows)" if first is None else f" (rows {first:,} to {first + n_rows - 1:,})"


def _first_that_is_not_finite(rows: Any, first: int | None, names: Sequence[str] | None) -> str:
    """Which row and which column, for a table in which they can be told."""
    try:
        values = np.asarray(rows, dtype=np.float64)
    except (ValueError, TypeError):
        return ""
    if values.ndim != 2 or np.isfinite(values).all():
        return ""
    bad_rows, bad_columns = np.nonzero(~np.isfinite(values))
    names = getattr(rows, "columns", names)
    column = bad_columns[0] if names is None else repr(names[bad_columns[0]])
    row = f"row {bad_rows[0]:,} of the part" if first is None else f"row {first + bad_rows[0]:,}"
    return f"\nThe first of {len(bad_rows):,} such values is in {row}, column {column}. Drop or impute these rows."
