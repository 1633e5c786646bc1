"""Dates, times of day, weekdays and months as people write them: each cell has its own format, and a column may have several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from ._quantities import mask_of

Array = NDArray[np.float64]

DateFormat = Literal["year-month-day", "day.month.year", "day/month/year", "month/day/year", "month in words"]
DATE_FORMATS: tuple[DateFormat, ...] = ("year-month-day", "day.month.year", "day/month/year", "month/day/year", "month in words")
LONGEST = 40
"""The most letters of a date."""
CENTURY = 69
"""Years of two digits from here on are of the century before the last."""

_CLOCK = r"(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d(?:[.,]\d+)?))?"
_HALF = r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?"
_TIME = rf"(?:[ T,]+{_CLOCK}{_HALF})?"
_ZONE = r"(?: ?(?P<zone>Z|(?:UTC|GMT)(?:[+-]\d{1,2}(?::?\d{2})?)?|[+-]\d{2}:?(?:\d{2})?))?"
_END = rf"{_TIME}{_ZONE}$"
_DAY, _MONTH, _YEAR = r"(?P<day>0?[1-9]|[12]\d|3[01])", r"(?P<month>0?[1-9]|1[0-2])", r"(?P<year>\d{4})"
_DAY2, _MONTH2, _SHORT = r"(?P<day>0[1-9]|[12]\d|3[01])", r"(?P<month>0[1-9]|1[0-2])", r"(?P<year>\d{2})"
_WORD, _ORDINAL = r"(?P<word>\p{L}+)\.?", r"(?:\.|st|nd|rd|th)?"
_BEFORE = r"^(?:\p{L}+\.?,? )?"
_PATTERNS: dict[DateFormat, tuple[str, ...]] = {
    "year-month-day": (rf"^{_YEAR}[-/]{_MONTH}[-/]{_DAY}{_END}", rf"^(?P<year>(?:1[89]|2[01])\d\d)-{_MONTH2}$"),
    "day.month.year": (rf"^{_DAY}\.{_MONTH}\.{_YEAR}{_END}", rf"^{_DAY2}\.{_MONTH2}\.{_SHORT}{_END}"),
    "day/month/year": (
        rf"^{_DAY}[/-]{_MONTH}[/-]{_YEAR}{_END}",
        rf"^{_DAY}/{_MONTH}/{_SHORT}{_END}",
        rf"^{_DAY2}-{_MONTH2}-{_SHORT}{_END}",
    ),
    "month/day/year": (
        rf"^{_MONTH}[/-]{_DAY}[/-]{_YEAR}{_END}",
        rf"^{_MONTH}/{_DAY}/{_SHORT}{_END}",
        rf"^{_MONTH2}-{_DAY2}-{_SHORT}{_END}",
    ),
    "month in words": (
        rf"{_BEFORE}{_DAY}{_ORDINAL}[ -]?(?:of )?{_WORD}(?:, ?| |-)(?P<year>\d{{4}}|\d{{2}}){_END}",
        rf"{_BEFORE}{_WORD} {_DAY}{_ORDINAL}(?:, ?| ){_YEAR}{_END}",
        rf"^{_WORD}[ -]{_YEAR}$",
        rf"^{_YEAR}[- ]{_WORD}[- ]{_DAY}$",
    ),
}
_NUMBERED = r"^\d{1,4}[-/.]\d{1,2}(?:$|[-/.]\d)"
_IN_WORDS = r"^[\d\p{L}][^:]{5,}\d\d"
_TIME_OF_DAY = rf"^{_CLOCK}{_HALF}(?: ?Uhr)?$"
_HOUR_OF_HALF = r"^(?P<hour>0?\d|1[0-2]) ?(?P<half>[AaPp])\.?[Mm]\.?$"
_LONG_TIME = r"^(?P<hour>\d{1,5}):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d(?:[.,]\d+)?))?$"


def _numbered(*names: str) -> dict[str, int]:
    """Return the place of each word in its list of words."""
    return {word: place for name in names for place, word in enumerate(name.split())}


MONTHS = _numbered(
    "jan feb mar apr may jun jul aug sep oct nov dec",
    "january february march april may june july august september october november december",
    "jan feb mär apr mai jun jul aug sept okt nov dez",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "jänner feber mrz",
)
WEEKDAYS = _numbered(
    "mon tue wed thu fri sat sun",
    "monday tuesday wednesday thursday friday saturday sunday",
    "mo di mi do fr sa so",
    "montag dienstag mittwoch donnerstag freitag samstag sonntag",
    "mon tues weds thurs fri sonnabend sun",
)


class Cycle(NamedTuple):
    """What comes again: after its last value comes its first."""

    reading: str
    """The one that finds where in the cycle a cell is."""
    name: str
    period: float


CYCLES = {cycle.reading: cycle for cycle in (Cycle("time", "day", 86_400.0), Cycle("weekday", "week", 7.0), Cycle("month", "year", 12.0))}


class Wave(NamedTuple):
    """One of two columns that tell where in a cycle a value is: its end is near its beginning in them."""

    origin: str
    is_sine: bool
    cycle: Cycle

    @property
    def name(self) -> str:
        """What the column is called."""
        return f"{self.origin} ({'sine' if self.is_sine else 'cosine'} of the {self.cycle.name})"

    def of(self, values: Array) -> Array:
        """Return sin(2π v / period) or cos(2π v / period)."""
        angle = 2 * np.pi * (values % self.cycle.period) / self.cycle.period
        return np.sin(angle) if self.is_sine else np.cos(angle)


def wave_named(name: str, names: Iterable[str]) -> Wave | None:
    """Return the wave of one of these columns that has this name; None where there is none."""
    known = set(names)
    for cycle in CYCLES.values():
        for is_sine in (True, False):
            ending = Wave("", is_sine, cycle).name
            if name.endswith(ending) and name.removesuffix(ending) in known:
                return Wave(name.removesuffix(ending), is_sine, cycle)
    return None


def words_of(cells: pa.Array) -> pa.Array:
    """Return cells in small letters, without the point of an abbreviation."""
    return compute.utf8_rtrim(compute.utf8_lower(cells), ".")


def read_words(cells: pa.Array, known: dict[str, int]) -> Array:
    """Return the number of each word; NaN for those that are not known."""
    places = compute.index_in(words_of(cells), pa.array(list(known)))
    numbers = np.append(np.array(list(known.values()), dtype=np.float64), np.nan)
    return numbers[places.fill_null(len(known)).to_numpy(zero_copy_only=False)]


def date_formats(cells: pa.Array) -> dict[DateFormat, NDArray[np.bool_]]:
    """Return which cells each format of dates fits; days that no calendar has count as well."""
    fits = {name: np.zeros(len(cells), dtype=bool) for name in DATE_FORMATS}
    short = mask_of(compute.less_equal(compute.utf8_length(cells), LONGEST))
    numbered = short & mask_of(compute.match_substring_regex(cells, _NUMBERED))
    others = short & ~numbered & mask_of(compute.match_substring_regex(cells, _IN_WORDS))
    for name in DATE_FORMATS:
        places = np.flatnonzero(others if name == "month in words" else numbered)
        if len(places):
            here = cells.take(pa.array(places))
            for pattern in _PATTERNS[name]:
                fits[name][places] |= _fits(here, pattern)
    return fits


def _fits(cells: pa.Array, pattern: str) -> NDArray[np.bool_]:
    if "<word>" not in pattern:
        return mask_of(compute.match_substring_regex(cells, pattern))
    found = compute.extract_regex(cells, pattern)
    return ~np.isnan(read_words(compute.struct_field(found, "word"), MONTHS))


def read_dates(cells: pa.Array, day_first: bool) -> Array:
    """Return seconds since 1970, in Greenwich time; NaN for what is no date and for days that no calendar has.

    Where day and month could be either, `day_first` says which.
    """
    seconds = np.full(len(cells), np.nan)
    order = list(DATE_FORMATS)
    if not day_first:
        order[2], order[3] = order[3], order[2]
    fits = date_formats(cells)
    for name in order:
        places = np.flatnonzero(fits[name] & np.isnan(seconds))
        for pattern in _PATTERNS[name] if len(places) else ():
            found = _read_dates(cells.take(pa.array(places)), pattern)
            seconds[places] = np.where(np.isnan(seconds[places]), found, seconds[places])
    return seconds


def _read_dates(cells: pa.Array, pattern: str) -> Array:
    found = compute.extract_regex(cells, pattern)
    fits = mask_of(found.is_valid())
    fields = _Fields(found, fits)
    year, day = fields.number("year"), np.maximum(fields.number("day"), 1.0)
    if fields.has("word"):
        month = read_words(fields.text("word"), MONTHS) + 1
        fits &= ~np.isnan(month)
        month = np.where(fits, month, 1.0)
    else:
        month = fields.number("month")
    short = mask_of(compute.equal(compute.utf8_length(fields.text("year")), 2))
    year = np.where(short, year + np.where(year >= CENTURY, 1900, 2000), year)
    months = (12 * (year - 1970) + month - 1).astype("M8[M]")
    days = months.astype("M8[D]") + (day - 1).astype("m8[D]")
    exists = fits & (days.astype("M8[M]") == months)
    seconds = days.astype("M8[s]").astype(np.int64) + fields.clock() - fields.zone()
    return np.where(exists, seconds, np.nan)


def read_times(cells: pa.Array) -> Array:
    """Return the seconds after midnight of times of day; NaN for what is none."""
    seconds = np.full(len(cells), np.nan)
    for pattern in (_TIME_OF_DAY, _HOUR_OF_HALF):
        found = compute.extract_regex(cells, pattern)
        fits = mask_of(found.is_valid())
        seconds = np.where(fits, _Fields(found, fits).clock(), seconds)
    return np.where(seconds <= 86_400, seconds, np.nan)


def read_long_times(cells: pa.Array) -> Array:
    """Return the seconds of hours, minutes and seconds, however many hours they are; NaN for what is none."""
    found = compute.extract_regex(cells, _LONG_TIME)
    fits = mask_of(found.is_valid())
    return np.where(fits, _Fields(found, fits).clock(), np.nan)


class _Fields:
    """The parts of dates or times that a pattern has found."""

    def __init__(self, found: pa.Array, fits: NDArray[np.bool_]) -> None:
        self._found, self._fits = found, fits
        self._names = {field.name for field in found.type}

    def has(self, name: str) -> bool:
        """Return whether the pattern has such a part."""
        return name in self._names

    def text(self, name: str) -> pa.Array:
        """Return a part as text."""
        return compute.struct_field(self._found, name)

    def number(self, name: str) -> Array:
        """Return year, month or another part as numbers; 0 where it is not given, 1 where there is no date."""
        if not self.has(name):
            return np.zeros(len(self._fits))
        return number_of(self.text(name), self._fits)

    def clock(self) -> Array:
        """Return the seconds after midnight."""
        hour = self.number("hour")
        if self.has("half"):
            half = compute.utf8_lower(self.text("half"))
            hour = np.where(mask_of(compute.equal(half, "p")), hour % 12 + 12, np.where(mask_of(compute.equal(half, "a")), hour % 12, hour))
        return 3600 * hour + 60 * self.number("minute") + self.number("second")

    def zone(self) -> Array:
        """Return how many seconds zones like +02:00 are ahead of Greenwich."""
        if not self.has("zone"):
            return np.zeros(len(self._fits))
        parts = compute.extract_regex(self.text("zone").fill_null(""), r"^(?:UTC|GMT)?(?P<sign>[+-])(?P<hours>\d{1,2}):?(?P<minutes>\d*)$")
        fits = mask_of(parts.is_valid())
        hours, minutes = (np.where(fits, number_of(compute.struct_field(parts, name), fits), 0.0) for name in ("hours", "minutes"))
        sign = np.where(mask_of(compute.equal(compute.struct_field(parts, "sign"), "-")), -1.0, 1.0)
        return sign * (3600 * hours + 60 * minutes)


def number_of(field: Any, fits: NDArray[np.bool_]) -> Array:
    """Return text as numbers; 0 where nothing is given, 1 where the cell does not fit."""
    text = compute.replace_substring(field, ",", ".")
    given = compute.and_(compute.not_equal(text, ""), pa.array(fits))
    values = compute.if_else(given, text, pa.scalar(None, pa.string())).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.where(np.isnan(values), np.where(fits, 0.0, 1.0), values)
