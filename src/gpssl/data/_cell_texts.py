"""Cells of any type as text, and as what JSON knows."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, types

from ._readings import UNITS, storage_of

MOST_EXACT = 2**53
"""Up to this size, whole numbers of a unit of time are told from each other in seconds of double precision."""


def as_text(column: Any) -> pa.Array:
    """Return cells of any type as text: lists and records as JSON, bytes as the text that they are, or with their codes."""
    if is_time(column.type):
        return texts_of_times(column)
    if storage_of(column.type) is not None:
        return column.cast(pa.string())
    return pa.array([None if cell is None else cell_as_text(cell) for cell in values_of_cells(column)], pa.string())


def cell_as_text(cell: Any) -> str:
    """Return a list, a record or bytes as text, and text as it is.

    >>> cell_as_text([1, {"a": None}]), cell_as_text("é".encode()), cell_as_text(bytes([0, 255]))[1:]
    ('[1, {"a": null}]', 'é', 'x00ff')
    """
    if isinstance(cell, str):
        return cell
    if not isinstance(cell, bytes):
        return json.dumps(as_json(cell), ensure_ascii=False)
    try:
        text = cell.decode()
    except UnicodeDecodeError:
        return f"\\x{cell.hex()}"
    return text if text.isprintable() else f"\\x{cell.hex()}"


def values_of_cells(column: Any) -> list[Any]:
    """Return cells as Python has them, but dates and times as text, and spans of time as seconds: Python has no place for some of them."""
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if is_time(column.type):
        texts = texts_of_times(column).to_pylist()
        return [None if text is None else Decimal(text) for text in texts] if types.is_duration(column.type) else texts
    try:
        return column.cast(_without_times(column.type)).to_pylist()
    except (pa.ArrowException, OverflowError, ValueError):  # what Arrow cannot turn into text, or Python not into its own
        return [_as_py(cell) for cell in column]


def _as_py(cell: Any) -> Any:
    try:
        return cell.as_py()
    except (OverflowError, ValueError):
        return str(cell)


def is_time(kind: Any) -> bool:
    """Return whether cells are dates, times, or spans of time."""
    return types.is_temporal(kind) and not types.is_interval(kind)


def _without_times(kind: Any) -> Any:
    if is_time(kind) and not types.is_duration(kind):
        return pa.string()
    if types.is_list(kind) or types.is_large_list(kind):
        return (pa.list_ if types.is_list(kind) else pa.large_list)(kind.value_field.with_type(_without_times(kind.value_type)))
    if types.is_struct(kind):
        return pa.struct([kind.field(place).with_type(_without_times(kind.field(place).type)) for place in range(kind.num_fields)])
    return kind


def as_json(value: Any) -> Any:
    """Return what JSON knows; None for what is not finite, and text for numbers with more digits than double precision has."""
    if isinstance(value, dict):
        return {str(name): as_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return _of_decimal(value)
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if isinstance(value, bytes):
        return cell_as_text(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _of_decimal(value: Decimal) -> int | float | str:
    if value == int(value):
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else str(value)


def texts_of_times(column: Any) -> pa.Array:
    """Return times like 2024-12-31, with the time of the day and the zone where there are any; spans of time in seconds."""
    kind = column.type
    if types.is_duration(kind):
        return _seconds(column)
    if not types.is_timestamp(kind):
        return column.cast(pa.string())
    try:
        text = column.cast(pa.string())
    except pa.ArrowInvalid:  # a zone that this machine does not know
        text = column.cast(pa.timestamp(kind.unit, tz="UTC")).cast(pa.string())
    if kind.tz:
        return compute.replace_substring_regex(text, r"\.0+(Z|[+-]\d+)$", r"\1")
    return compute.replace_substring_regex(text, r"( 00:00:00)?(\.0+)?$", "")


def _seconds(spans: Any) -> pa.Array:
    """Return spans of time in seconds, with all their digits."""
    whole, unit = spans.cast(pa.int64()), UNITS[spans.type.unit]
    sizes = compute.abs(whole.fill_null(0))
    if unit == 1 or len(whole) == 0:
        return whole.cast(pa.string())
    if compute.max(sizes).as_py() <= MOST_EXACT and compute.min(sizes).as_py() >= 0:  # the size of the smallest number is none
        return compute.divide(whole.cast(pa.float64()), unit).cast(pa.string())
    exact = [None if one is None else f"{Decimal(one) / int(unit):f}" for one in whole.to_pylist()]
    return pa.array(exact, pa.string())
