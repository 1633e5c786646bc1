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

from ._calendar import MONTHS, WEEKDAYS, date_formats, read_dates, read_long_times, read_times, read_words
from ._frames import MISSING_WORDS
from ._quantities import Dressed, mask_of, read_in_unit, undress
from ._source import Storage
from ._units import FRACTIONS

Array = NDArray[np.float64]

Reading = Literal[
    "point", "comma", "grouped", "boolean", "day first", "month first", "time", "weekday", "month", "duration", "text", "typed"
]
"""Numbers with a decimal point, a decimal comma, or commas between thousands; true and false; dates, by what comes first where day and
month could be either; times of day, weekdays and months, which come again; durations; text; values of a known type."""
NUMBERS: tuple[Reading, ...] = ("point", "comma", "grouped")
DATES: tuple[Reading, ...] = ("day first", "month first")

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
DATE_SHAPES = ("year-month-day", "day.month.year", "day/month", "month/day", "day/month or month/day", "month in words")
SHAPES = (
    "unsplit number",  # by the fast way, which takes whole numbers and those with a point alike
    *_SHAPES,
    "infinite",
    "dash",
    "boolean",
    *DATE_SHAPES,
    "time",
    "long time",
    "weekday",
    "month",
    "text",
)
SHAPE = {name: place for place, name in enumerate(SHAPES)}
NUMBER_SHAPES = [SHAPE[name] for name in ("unsplit number", *_SHAPES)]
"""Of plain numbers, and of those with something around them."""

NO_TEXT = pa.scalar(None, pa.string())
"""The null of strings."""
UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""How many of each make a second."""


class Way(NamedTuple):
    """How to read a column."""

    reading: Reading
    unit: str = ""
    """What numbers are given in."""

    @property
    def is_plain(self) -> bool:
        """Whether numbers with decimal points and nothing around them are taken as they stand."""
        return self.reading == "point" and self.unit != FRACTIONS


class Looks(NamedTuple):
    """What different cells look like."""

    shapes: NDArray[np.int8]
    """The shape of each, as a place in `SHAPES`; that of its number where it holds one and more. [n]"""
    places: NDArray[np.intp]
    """Which cells hold a number and more. [n dressed]"""
    dressed: Dressed
    """These cells. [n dressed]"""

    def part(self, start: int, end: int) -> Looks:
        """Return the looks of some cells."""
        first, last = np.searchsorted(self.places, [start, end])
        return Looks(self.shapes[start:end], self.places[first:last] - start, self.dressed.only(np.arange(first, last)))


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
    gone = mask_of(missing)
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


def values_of(column: Any, way: Way) -> Array:
    """Return numbers, 1 and 0 for true and false, seconds since 1970 for dates; NaN for what is missing or cannot be read so."""
    if way.reading == "typed":
        return finite_or_nan(typed_values(column))
    column = plain(column)
    numbers = fast_numbers(column) if way.is_plain else None
    if numbers is not None:
        return finite_or_nan(as_floats(numbers))
    cells = cells_of(column)
    return spread_values(read_cells(cells.distinct, way), cells)


def spread_values(values: Array, cells: Cells) -> Array:
    """Return the value of each row, from the values of the different cells."""
    return finite_or_nan(np.append(values, np.nan)[cells.places])


def finite_or_nan(values: Array) -> Array:
    """Return NaN in the place of infinite values."""
    return np.where(np.isfinite(values), values, np.nan)


def read_cells(cells: pa.Array, way: Way, looks: Looks | None = None) -> Array:
    """Return the values of different cells, NaN for those that the reading does not fit; their looks, where known, save work."""
    reading = way.reading
    if reading == "boolean":
        lower = compute.utf8_lower(cells)
        known = np.where(mask_of(compute.is_in(lower, pa.array((*FALSE, "0")))), 0.0, np.nan)
        return np.where(mask_of(compute.is_in(lower, pa.array((*TRUE, "1")))), 1.0, known)
    if reading in NUMBERS:
        return _read_numbers(cells, way, looks)
    if reading == "duration":
        clocks = read_long_times(cells)
        return np.where(np.isnan(clocks), _read_numbers(cells, Way("point", "s"), looks), clocks)
    if reading == "time":
        return read_times(cells)
    if reading in ("weekday", "month"):
        return read_words(cells, WEEKDAYS if reading == "weekday" else MONTHS)
    return read_dates(cells, reading == "day first")


def _read_numbers(cells: pa.Array, way: Way, looks: Looks | None) -> Array:
    fits, pointed = _with_points(cells, way.reading)
    numbers = compute.if_else(fits, pointed, NO_TEXT)
    if way.unit == FRACTIONS:
        n_cells = len(cells)
        values = read_in_unit(numbers, np.full(n_cells, "", dtype=object), np.ones(n_cells), way.unit)
    else:
        values = as_floats(numbers.cast(pa.float64()))
    if looks is None:
        left = np.flatnonzero(np.isnan(values) & ~mask_of(compute.is_null(cells)))
        looks = looks_of(cells.take(pa.array(left)))
        looks = looks._replace(places=left[looks.places])
    if len(looks.places):
        dressed = looks.dressed
        fits, pointed = _with_points(dressed.cores, way.reading)
        values[looks.places] = read_in_unit(compute.if_else(fits, pointed, NO_TEXT), dressed.units, dressed.many, way.unit)
    return values


def looks_of(cells: pa.Array) -> Looks:
    """Return what different cells look like, each by itself."""
    shapes = np.full(len(cells), SHAPE["text"], dtype=np.int8)
    has_digit = mask_of(compute.match_substring_regex(cells, r"^[+-]?[.,]?\d"))
    digits, others = np.flatnonzero(has_digit), np.flatnonzero(~has_digit)
    shapes[digits] = _number_shapes(cells.take(pa.array(digits)))
    shapes[others] = _word_shapes(cells.take(pa.array(others)))
    left = np.flatnonzero((shapes == SHAPE["text"]) & ~mask_of(compute.is_null(cells)))
    shapes[left] = _calendar_shapes(cells.take(pa.array(left)))
    left = left[shapes[left] == SHAPE["text"]]
    dressed = undress(cells.take(pa.array(left)))
    of_cores = _number_shapes(dressed.cores)
    are = np.flatnonzero(of_cores != SHAPE["text"])
    shapes[left[are]] = of_cores[are]
    return Looks(shapes, left[are], dressed.only(are))


def _word_shapes(cells: pa.Array) -> NDArray[np.int8]:
    """Return the shapes of words that stand for something; text for all others."""
    shapes = np.full(len(cells), SHAPE["text"], dtype=np.int8)
    if len(cells):
        lower = compute.utf8_lower(cells)
        for words, shape in ((WEEKDAYS, "weekday"), (MONTHS, "month")):
            shapes[~np.isnan(read_words(cells, words))] = SHAPE[shape]
        shapes[mask_of(compute.is_in(lower, pa.array((*TRUE, *FALSE))))] = SHAPE["boolean"]
        shapes[mask_of(compute.is_in(cells, pa.array(DASHES)))] = SHAPE["dash"]
        shapes[mask_of(compute.match_substring_regex(lower, r"^[+-]?(inf|infinity|nan)$"))] = SHAPE["infinite"]
    return shapes


def _number_shapes(cells: pa.Array) -> NDArray[np.int8]:
    """Return the shapes of numbers; text for all other cells."""
    shapes = np.full(len(cells), SHAPE["text"], dtype=np.int8)
    left = np.arange(len(cells))
    for name, pattern in _SHAPES.items():
        if not len(left):
            break
        fits = mask_of(compute.match_substring_regex(cells.take(pa.array(left)), pattern))
        shapes[left[fits]] = SHAPE[name]
        left = left[~fits]
    return shapes


def _calendar_shapes(cells: pa.Array) -> NDArray[np.int8]:
    """Return the shapes of dates and times; text for all other cells."""
    shapes = np.full(len(cells), SHAPE["text"], dtype=np.int8)
    if not len(cells):
        return shapes
    formats = date_formats(cells)
    by_day, by_month = formats["day/month/year"], formats["month/day/year"]
    shapes[by_day & ~by_month] = SHAPE["day/month"]
    shapes[by_month & ~by_day] = SHAPE["month/day"]
    shapes[by_day & by_month] = SHAPE["day/month or month/day"]
    for name in ("year-month-day", "day.month.year", "month in words"):
        shapes[formats[name]] = SHAPE[name]
    shapes[~np.isnan(read_long_times(cells))] = SHAPE["long time"]
    shapes[~np.isnan(read_times(cells))] = SHAPE["time"]
    return shapes


def plain_sizes(cells: pa.Array) -> Array:
    """Return plain numbers, however the column is to be read: what could have thousands has a decimal point or comma. NaN for others."""
    values = np.full(len(cells), np.nan)
    for reading in NUMBERS:
        fits, pointed = _with_points(cells, reading)
        values = np.where(np.isnan(values), as_floats(compute.if_else(fits, pointed, NO_TEXT).cast(pa.float64())), values)
    return values


_FITTING: dict[Reading, tuple[str, ...]] = {
    "point": ("whole", "point or thousands", "point"),
    "comma": ("whole", "point or thousands", "comma or thousands", "comma"),
    "grouped": ("whole", "point or thousands", "point", "comma or thousands", "grouped"),
}


def fitting_shapes(reading: Reading) -> list[int]:
    """Return the places of the shapes that a reading of numbers can read."""
    split = [SHAPE[name] for name in _FITTING[reading]]
    return split if reading == "comma" else [SHAPE["unsplit number"], *split]


def are_plain_numbers(cells: pa.Array, reading: Reading) -> NDArray[np.bool_]:
    """Return which cells are numbers with nothing around them."""
    return mask_of(_with_points(cells, reading)[0])


def _with_points(cells: pa.Array, reading: Reading) -> tuple[pa.Array, pa.Array]:
    """Return which cells the reading of numbers fits, and their text with decimal points."""
    fits = compute.match_substring_regex(cells, "|".join(_SHAPES[name] for name in _FITTING[reading]))
    if reading == "comma":  # a point that does not stand before three digits is a decimal point also here
        return fits, compute.replace_substring(compute.replace_substring(cells, ".", ""), ",", ".")
    return fits, compute.replace_substring(cells, ",", "") if reading == "grouped" else cells


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
    if types.is_time(kind):
        return "time"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_duration(kind):
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
