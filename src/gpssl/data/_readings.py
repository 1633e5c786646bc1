"""What a cell of text may stand for, and the value it then has.

Every cell has one shape, which depends on the cell alone; a column has one reading, which follows from the shapes of all its cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, types

from ._frames import MISSING_WORDS
from ._source import Storage

Array = NDArray[np.float64]

Reading = Literal[
    "point", "comma", "grouped", "boolean", "year-month-day", "day.month.year", "day/month/year", "month/day/year", "text", "typed"
]
"""Numbers with a decimal point, a decimal comma, or commas between thousands; true and false; dates; text; values of a known type."""
NUMBERS: tuple[Reading, ...] = ("point", "comma", "grouped")
DATES: tuple[Reading, ...] = ("year-month-day", "day.month.year", "day/month/year", "month/day/year")

TRUE, FALSE = ("true", "yes"), ("false", "no")
DASHES = ("-", ".", "--", "–", "—")
"""A missing number, in a column of numbers."""

_EXPONENT = r"([eE][+-]?\d+)?"
_SHAPES = {
    "whole": rf"^[+-]?\d+{_EXPONENT}$",
    "point or thousands": r"^[+-]?[1-9]\d{0,2}\.\d{3}$",
    "point": rf"^[+-]?(\d+\.\d*|\.\d+){_EXPONENT}$",
    "comma or thousands": r"^[+-]?[1-9]\d{0,2},\d{3}$",
    "comma": rf"^[+-]?(\d*,\d+|[1-9]\d{{0,2}}(\.\d{{3}})+,\d*|[1-9]\d{{0,2}}(\.\d{{3}}){{2,}}){_EXPONENT}$",
    "grouped": r"^[+-]?[1-9]\d{0,2}((,\d{3})+\.\d*|(,\d{3}){2,})$",
}
_TIME = r"(?:[ T]+(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d(?:[.,]\d+)?))?)?"
_ZONE = r"(?: ?(?P<zone>Z|UTC|[+-]\d{2}:?(?:\d{2})?))?"
_DAY, _MONTH = r"(?P<day>0?[1-9]|[12]\d|3[01])", r"(?P<month>0?[1-9]|1[0-2])"
_DATES: dict[Reading, str] = {
    "year-month-day": rf"^(?P<year>\d{{4}})[-/]{_MONTH}[-/]{_DAY}{_TIME}{_ZONE}$",
    "day.month.year": rf"^{_DAY}\.{_MONTH}\.(?P<year>\d{{4}}){_TIME}{_ZONE}$",
    "day/month/year": rf"^{_DAY}[/-]{_MONTH}[/-](?P<year>\d{{4}}){_TIME}{_ZONE}$",
    "month/day/year": rf"^{_MONTH}[/-]{_DAY}[/-](?P<year>\d{{4}}){_TIME}{_ZONE}$",
}
SHAPES = (
    "unsplit number",  # by the fast way, which takes whole numbers and those with a point alike
    *_SHAPES,
    "infinite",
    "dash",
    "boolean",
    *DATES[:2],
    "day/month",
    "month/day",
    "day/month or month/day",
    "text",
)
SHAPE = {name: place for place, name in enumerate(SHAPES)}

NO_TEXT = pa.scalar(None, pa.string())
"""The null of strings."""
UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""How many of each make a second."""


class Cells(NamedTuple):
    """The different cells of a column, without space around them, and which of them each row has."""

    distinct: pa.Array
    """Strings, null for what counts as missing; some may be equal."""
    places: NDArray[np.int32]
    """Which of the different cells each row has, −1 where it is missing. [n]"""

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many rows have each of the different cells."""
        return np.bincount(self.places[self.places >= 0], minlength=len(self.distinct))


def cells_of(column: Any, words: Sequence[str] = MISSING_WORDS) -> Cells:
    """Return the cells of a column of text, of which these words count as missing."""
    return cells_of_each([column], words)[0]


def cells_of_each(columns: Sequence[Any], words: Sequence[str] = MISSING_WORDS) -> list[Cells]:
    """Return the cells of several columns at once: for a few rows, each call of Arrow takes longer than its work."""
    encoded = [column.dictionary_encode() for column in columns]
    trimmed = compute.utf8_trim_whitespace(concatenated([one.dictionary for one in encoded]))
    missing = compute.is_in(trimmed, pa.array(words))
    distinct = compute.if_else(missing, NO_TEXT, trimmed)
    gone = _mask(missing)
    cells, start = [], 0
    for one in encoded:
        end = start + len(one.dictionary)
        places = one.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
        if gone[start:end].any():
            places = np.where(np.append(gone[start:end], True)[places], np.int32(-1), places)
        cells.append(Cells(distinct.slice(start, end - start), places))
        start = end
    return cells


def concatenated(columns: Sequence[Any]) -> pa.Array:
    """Return one array of all strings."""
    return pa.concat_arrays([column.cast(pa.string()) for column in columns]) if len(columns) != 1 else columns[0]


def fast_numbers(column: Any) -> pa.Array | None:
    """Return numbers with a decimal point, null for missing cells; None where other cells are there. Infinite numbers stay.

    Words for missing cells are rare in columns of numbers, so that they are looked for only where the cells cannot be read without.
    """
    numbers = _cast_to_numbers(column)
    if numbers is None or np.count_nonzero(np.isfinite(as_floats(numbers))) < len(numbers) - numbers.null_count:
        numbers = _cast_to_numbers(without_missing_words(column))
    return numbers


def _cast_to_numbers(column: Any) -> pa.Array | None:
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid:
        return None


def without_missing_words(column: Any) -> pa.Array:
    """Return strings with null in the place of words that count as missing."""
    return compute.if_else(compute.is_in(column, pa.array(MISSING_WORDS)), NO_TEXT, column)


def values_of(column: Any, reading: Reading) -> Array:
    """Return numbers, 1 and 0 for true and false, seconds since 1970 for dates; NaN for what is missing or cannot be read so."""
    if reading == "typed":
        return typed_values(column)
    column = plain(column)
    numbers = fast_numbers(column) if reading == "point" else None
    if numbers is not None:
        return finite_or_nan(as_floats(numbers))
    cells = cells_of(column)
    return spread_values(read_cells(cells.distinct, reading), cells)


def spread_values(values: Array, cells: Cells) -> Array:
    """Return the value of each row, from the values of the different cells."""
    return finite_or_nan(np.append(values, np.nan)[cells.places])


def finite_or_nan(values: Array) -> Array:
    """Return NaN in the place of infinite values."""
    return np.where(np.isfinite(values), values, np.nan)


def read_cells(cells: pa.Array, reading: Reading) -> Array:
    """Return the values of different cells, NaN for those that the reading does not fit."""
    if reading == "boolean":
        lower = compute.utf8_lower(cells)
        known = np.where(_mask(compute.is_in(lower, pa.array((*FALSE, "0")))), 0.0, np.nan)
        return np.where(_mask(compute.is_in(lower, pa.array((*TRUE, "1")))), 1.0, known)
    if reading in NUMBERS:
        fits, pointed = _with_points(cells, reading)
        return as_floats(compute.if_else(fits, pointed, NO_TEXT).cast(pa.float64()))
    return _read_dates(cells, _DATES[reading])


def shapes_of(cells: pa.Array) -> NDArray[np.int8]:
    """Return the shape of each cell, as a place in `SHAPES`."""
    shapes = np.full(len(cells), SHAPE["text"], dtype=np.int8)
    lower = compute.utf8_lower(cells)
    shapes[_mask(compute.is_in(lower, pa.array((*TRUE, *FALSE))))] = SHAPE["boolean"]
    shapes[_mask(compute.is_in(cells, pa.array(DASHES)))] = SHAPE["dash"]
    shapes[_mask(compute.match_substring_regex(lower, r"^[+-]?(inf|infinity|nan)$"))] = SHAPE["infinite"]
    left = np.flatnonzero(_mask(compute.match_substring_regex(cells, r"^[+-]?[.,]?\d")))
    patterns = [(SHAPE[name], pattern) for name, pattern in _SHAPES.items()]
    patterns += [(SHAPE[name], _DATES[name]) for name in DATES[:2]]
    for shape, pattern in patterns:
        fits = _mask(compute.match_substring_regex(cells.take(pa.array(left)), pattern))
        shapes[left[fits]] = shape
        left = left[~fits]
    by_day, by_month = (_mask(compute.match_substring_regex(cells.take(pa.array(left)), _DATES[name])) for name in DATES[2:])
    shapes[left[by_day & ~by_month]] = SHAPE["day/month"]
    shapes[left[by_month & ~by_day]] = SHAPE["month/day"]
    shapes[left[by_day & by_month]] = SHAPE["day/month or month/day"]
    return shapes


_FITTING: dict[Reading, tuple[str, ...]] = {
    "point": ("whole", "point or thousands", "point"),
    "comma": ("whole", "point or thousands", "comma or thousands", "comma"),
    "grouped": ("whole", "point or thousands", "point", "comma or thousands", "grouped"),
}


def fitting_shapes(reading: Reading) -> list[int]:
    """Return the places of the shapes that a reading of numbers can read."""
    split = [SHAPE[name] for name in _FITTING[reading]]
    return split if reading == "comma" else [SHAPE["unsplit number"], *split]


def with_points(column: Any, reading: Reading) -> pa.Array:
    """Return text with the same digits, where cells that the reading fits have decimal points; all others as they were."""
    fits, pointed = _with_points(compute.utf8_trim_whitespace(column), reading)
    return compute.if_else(fits, pointed, column)


def _with_points(cells: pa.Array, reading: Reading) -> tuple[pa.Array, pa.Array]:
    """Return which cells the reading of numbers fits, and their text with decimal points."""
    fits = compute.match_substring_regex(cells, "|".join(_SHAPES[name] for name in _FITTING[reading]))
    if reading == "comma":  # a point that does not stand before three digits is a decimal point also here
        return fits, compute.replace_substring(compute.replace_substring(cells, ".", ""), ",", ".")
    return fits, compute.replace_substring(cells, ",", "") if reading == "grouped" else cells


def _read_dates(cells: pa.Array, pattern: str) -> Array:
    """Return seconds since 1970, in Greenwich time; NaN for days that no calendar has."""
    found = compute.extract_regex(cells, pattern)
    fits = _mask(found.is_valid())
    field = {name: compute.struct_field(found, name) for name in ("year", "month", "day", "hour", "minute", "second", "zone")}
    year, month, day, hour, minute, second = (_field(field[name], fits) for name in list(field)[:6])
    months = (12 * (year - 1970) + month - 1).astype("M8[M]")
    days = months.astype("M8[D]") + (day - 1).astype("m8[D]")
    exists = fits & (days.astype("M8[M]") == months)
    seconds = days.astype("M8[s]").astype(np.int64) + 3600 * hour + 60 * minute + second - _zone_seconds(field["zone"])
    return np.where(exists, seconds, np.nan)


def _field(field: pa.Array, fits: NDArray[np.bool_]) -> Array:
    """Return year, month or another field of dates as numbers; 0 where it is not given, 1 where there is no date."""
    text = compute.replace_substring(field, ",", ".")
    given = compute.and_(compute.not_equal(text, ""), pa.array(fits))
    values = as_floats(compute.if_else(given, text, NO_TEXT).cast(pa.float64()))
    return np.where(np.isnan(values), np.where(fits, 0.0, 1.0), values)


def _zone_seconds(zone: pa.Array) -> Array:
    """Return how many seconds zones like +02:00 are ahead of Greenwich."""
    parts = compute.extract_regex(zone.fill_null(""), r"^(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d*)$")
    fits = _mask(parts.is_valid())
    hours, minutes = (np.where(fits, _field(compute.struct_field(parts, name), fits), 0.0) for name in ("hours", "minutes"))
    sign = np.where(_mask(compute.equal(compute.struct_field(parts, "sign"), "-")), -1.0, 1.0)
    return sign * (3600 * hours + 60 * minutes)


def storage_of(kind: Any) -> Storage | None:
    """Return what a column of an Arrow type holds; None for what cannot be used."""
    if types.is_dictionary(kind):
        inside = storage_of(kind.value_type)
        return "category" if inside == "text" else inside
    if types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind) or str(kind) == "string_view":
        return "text"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_timestamp(kind) or types.is_date(kind):
        return "date"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_duration(kind) or types.is_time(kind):
        return "number"
    return None


def plain(column: pa.Array) -> pa.Array:
    """Return the same values, but all text as strings, without a dictionary: each part of a file may have its own."""
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.string()) if storage_of(column.type) == "text" else column


def canonical(column: pa.Array) -> pa.Array:
    """Return strings without words that count as missing, double precision, or microseconds in Greenwich time."""
    column = plain(column)
    kind = column.type
    storage = storage_of(kind)
    if storage == "text":
        return without_missing_words(column)
    if storage == "date":
        return column.cast(pa.timestamp("us", tz=getattr(kind, "tz", None)), safe=False).cast(pa.timestamp("us"), safe=False)
    if types.is_duration(kind) or types.is_time(kind):
        whole = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
        return compute.divide(whole.cast(pa.float64(), safe=False), UNITS[kind.unit])
    if types.is_boolean(kind):
        column = column.cast(pa.int8())
    return column.cast(pa.float64(), safe=False)


def typed_values(column: Any) -> Array:
    """Return numbers, or seconds since 1970."""
    column = canonical(column)
    if types.is_timestamp(column.type):
        return as_floats(column.cast(pa.int64()).cast(pa.float64(), safe=False)) / 1e6
    return as_floats(column)


def as_floats(column: Any) -> Array:
    """Return double precision, NaN for null."""
    return column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)


def _mask(values: Any) -> NDArray[np.bool_]:
    """Return truth values, false for null."""
    return values.fill_null(False).to_numpy(zero_copy_only=False).astype(bool, copy=False)
