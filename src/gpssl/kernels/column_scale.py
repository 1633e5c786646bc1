"""What one unit of distance is in each column of a table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUNDING = 1e-14
"""Spread of a column, relative to its largest entry, that rounding alone may cause."""


def column_scale(rows: Array, weight: Array, *, per_column: bool) -> Array:
    """The standard deviation of each column, 1 for a constant one; or a common factor for all columns. [D]"""
    largest = _largest_entries(rows)
    if not per_column:
        # One common factor, and out of it again: distances of 1e±150 would not survive being squared.
        return np.full(rows.shape[1], max(largest.max(initial=0.0), np.finfo(float).tiny))
    scaled = rows / largest
    mean = weight @ scaled / weight.sum()
    deviation = np.sqrt(weight @ (scaled - mean) ** 2 / weight.sum())
    # A constant column has no spread to measure by; it adds nothing to any distance either.
    return np.where(deviation > ROUNDING, deviation, 1.0) * largest


def _largest_entries(rows: Array) -> Array:
    """The largest absolute value of each column, 1 where all are zero. [D]"""
    largest = np.maximum(rows.max(axis=0), -rows.min(axis=0))
    return np.where(largest > 0, largest, 1.0)
