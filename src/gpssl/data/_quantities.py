"""Numbers as people write them: with units and money, signs of comparison, spaces between thousands, in words and parentheses.

A cell such as "< € 1.234,50" has a core, "1.234,50", which a reading of numbers reads, and what is around it. Long and short durations
("1h 20m", "PT1H20M") are numbers of seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from ._units import MANY, MONEY, common_unit, factor, power_of_ten

Array = NDArray[np.float64]

LONGEST = 40
"""The most letters of a cell that is a number."""
MOST_WORDS = 64
"""The most different units, or cells that are no numbers, that are counted; beyond, nobody asks which."""
FEW_NUMBERS = 20
"""So many different numbers may be codes of classes; more are a measure."""

_SPACES, _MINUS = "[\u00a0\u2007\u2009\u202f]", "[\u2212\u2012]"
_MONEY = "|".join(sorted((word.replace("$", r"\$").replace(".", r"\.") for word in MONEY), key=len, reverse=True))
_NUMBER = r"[1-9]\d{0,2}(?:[ '’]\d{3})+(?:[.,]\d+)?|(?:\d[\d.,]*|[.,]\d+)(?:[eE][+-]?\d+)?"
_LETTER = r"[\p{L}%‰°℃℉€$£¥₹₽₩₺₪฿₴″′\"'×]"
# Without a bound on their length, since such patterns take long to prepare: `LONGEST` is one.
_UNIT = rf"{_LETTER}[\p{{L}}\d%°$/.·*^²³⁻¹⁹-]*(?: [\p{{L}}/][\p{{L}}\d/.·*^²³]*)?"
_ROUGH = ("~", "≈", "ca.", "ca", "circa", "about", "approx.", "approx", "etwa")
_DRESSED = (
    rf"^(?P<bound><=|>=|=<|=>|[<>≤≥~≈]|(?:ca\.?|circa|about|approx\.?|etwa) )? ?(?P<open>\()? ?(?P<sign>[+-])? ?(?P<front>{_MONEY})? ?"
    rf"(?P<sign_within>[+-])?(?P<number>{_NUMBER})(?P<unit> ?(?:{_UNIT})?)(?P<close>\))?$"
)
_MAYBE = r"^[<>≤≥=~≈(+\-−‒.,\d\p{Sc}]|^(?:ca|circa|about|approx|etwa|[A-Z]{0,3}\$|[A-Zk-z]\p{L}{1,2})\.? ?[\d+-]|^P[T\d]"
_PARTS = ("bound", "open", "sign", "front", "sign_within", "number", "unit", "close")
_N = r"\d+(?:[.,]\d+)?"
_COMPOUND = (
    rf"(?i)^(?:(?P<days>{_N}) ?(?:d|days?|tage?n?),? ?)?(?:(?P<hours>{_N}) ?(?:h|hrs?|hours?|std\.?|stunden?),? ?)?"
    rf"(?:(?P<minutes>{_N}) ?(?:m|mins?|minutes?|min\.|minuten?|'),? ?)?(?:(?P<seconds>{_N}) ?(?:s|secs?|seconds?|sek\.?|sekunden?|\"))?$"
)
_IN_PARTS = r"^P|\d ?[A-Za-z'][A-Za-z.,' ]*\d"
_WITH_CLOCK = rf"^(?P<days>\d+) days?,? (?P<hours>\d{{1,2}}):(?P<minutes>[0-5]\d)(?::(?P<seconds>{_N}))?$"
_ISO = rf"^P(?:(?P<weeks>{_N})W)?(?:(?P<days>{_N})D)?(?:T(?:(?P<hours>{_N})H)?(?:(?P<minutes>{_N})M)?(?:(?P<seconds>{_N})S)?)?$"
_SECONDS = {"weeks": 604_800, "days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}


class Dressed(NamedTuple):
    """Cells that hold a number and more, and the rest of them."""

    cores: pa.Array
    """The text of the number alone, with its sign; null for cells that hold none. [n]"""
    units: NDArray[Any]
    """What stands for a unit, with the space before it where there is one. [n]"""
    many: Array
    """What the number is to be taken times: 1,000 in "3.5k". [n]"""
    bounds: NDArray[np.bool_]
    """Whether the number is a bound, as in "<0.5". [n]"""
    rough: NDArray[np.bool_]
    """Whether the number is about that, as in "~5". [n]"""
    spelled: NDArray[np.bool_]
    """Whether its digits are written in another way: 1 234, 1'234, (5) for −5, or 3.5k. [n]"""
    accounting: NDArray[np.bool_]
    """Whether it is negative by parentheses. [n]"""

    def only(self, places: NDArray[np.intp]) -> Dressed:
        """Return these of the cells."""
        cores, units, many, *flags = self
        return Dressed(cores.take(pa.array(places)), units[places], many[places], *(flag[places] for flag in flags))


def undress(cells: pa.Array) -> Dressed:
    """Return the numbers that cells of text hold, and what is written around them."""
    if not len(cells):
        return _nothing(0)
    likely = compute.and_(compute.match_substring_regex(cells, _MAYBE), compute.less_equal(compute.utf8_length(cells), LONGEST))
    places = np.flatnonzero(mask_of(likely))
    if not len(places):
        return _nothing(len(cells))
    texts = compute.replace_substring_regex(cells.take(pa.array(places)), _SPACES, " ")
    texts = compute.replace_substring_regex(texts, _MINUS, "-")
    seconds = _durations(texts)
    in_parts = np.flatnonzero(~np.isnan(seconds))
    found = compute.extract_regex(texts, _DRESSED)
    part = {name: compute.struct_field(found, name).fill_null("") for name in _PARTS}
    is_minus = compute.or_(compute.equal(part["sign"], "-"), compute.equal(part["sign_within"], "-"))
    is_open, is_closed = compute.equal(part["open"], "("), compute.equal(part["close"], ")")
    two_signs = compute.and_(compute.not_equal(part["sign"], ""), compute.not_equal(part["sign_within"], ""))
    wrong = compute.or_(compute.or_(compute.not_equal(is_open, is_closed), compute.and_(is_open, is_minus)), two_signs)
    digits = compute.replace_substring_regex(part["number"], "[ '’]", "")
    sign = compute.if_else(compute.or_(is_minus, is_open), "-", "")
    fits = mask_of(found.is_valid()) & ~mask_of(wrong)
    fits[in_parts] = False

    cores = np.full(len(cells), None, dtype=object)
    cores[places[fits]] = compute.binary_join_element_wise(sign, digits, "").to_numpy(zero_copy_only=False)[fits]
    cores[places[in_parts]] = [f"{value:.0f}" if value.is_integer() else repr(value) for value in seconds[in_parts].tolist()]
    bound = compute.utf8_rtrim_whitespace(part["bound"])
    is_rough = mask_of(compute.is_in(bound, pa.array(_ROUGH))) & fits
    rest = compute.binary_join_element_wise(part["front"], part["unit"], "\0").dictionary_encode()
    both = [_unit_and_many(*one.split("\0")) for one in rest.dictionary.to_pylist()]
    of_cells = rest.indices.to_numpy()[fits]
    units, many = np.full(len(cells), "", dtype=object), np.ones(len(cells))
    units[places[in_parts]] = " s"
    units[places[fits]] = np.array([unit for unit, _ in both], dtype=object)[of_cells]
    many[places[fits]] = np.array([times for _, times in both])[of_cells]
    bounds, rough = np.zeros(len(cells), dtype=bool), np.zeros(len(cells), dtype=bool)
    rough[places], bounds[places] = is_rough, mask_of(compute.not_equal(bound, "")) & fits & ~is_rough
    spelled, accounting = many != 1, np.zeros(len(cells), dtype=bool)
    accounting[places] = fits & mask_of(is_open)
    spelled[places] |= fits & mask_of(compute.or_(is_open, compute.not_equal(digits, part["number"])))
    return Dressed(pa.array(cores, pa.string()), units, many, bounds, rough, spelled, accounting)


def _nothing(n_cells: int) -> Dressed:
    no = np.zeros(n_cells, dtype=bool)
    return Dressed(pa.nulls(n_cells, pa.string()), np.full(n_cells, "", dtype=object), np.ones(n_cells), no, no, no, no)


def mask_of(values: Any) -> NDArray[np.bool_]:
    """Return truth values, false for null."""
    return values.fill_null(False).to_numpy(zero_copy_only=False).astype(bool, copy=False)


def _unit_and_many(front: str, behind: str) -> tuple[str, float]:
    """Return the unit and what "k" or "million" stands for; a word for money before the number is its unit."""
    word, _, rest = behind.strip().partition(" ")
    is_many = word in MANY and (len(word) > 1 or bool(front) or rest in MONEY or (word in "kK" and not behind.startswith(" ")))
    many, unit = (float(MANY[word]), rest) if is_many else (1.0, behind.strip())
    if front:
        return (f" {front}" if not unit else f" {front} {unit}"), many
    space = " " if unit and behind.startswith(" ") else ""
    return space + unit, many


def _durations(texts: pa.Array) -> Array:
    """Return the seconds of durations with several parts, and of ISO's; NaN for all other cells."""
    seconds = np.full(len(texts), np.nan)
    likely = np.flatnonzero(mask_of(compute.match_substring_regex(texts, _IN_PARTS)))
    here = texts.take(pa.array(likely))
    for pattern, fewest in ((_COMPOUND, 2), (_WITH_CLOCK, 2), (_ISO, 1)) if len(likely) else ():
        found = compute.extract_regex(here, pattern)
        for place in np.flatnonzero(mask_of(found.is_valid())):
            parts = {name: float(part.replace(",", ".")) for name, part in found[int(place)].as_py().items() if part}
            if len(parts) >= fewest and np.isnan(seconds[likely[place]]):
                seconds[likely[place]] = sum(_SECONDS[name] * part for name, part in parts.items())
    return seconds


def read_in_unit(numbers: pa.Array, units: NDArray[Any], many: Array, unit: str) -> Array:
    """Return numbers, from their text with decimal points, in the unit of the column; NaN for those whose unit is none of its dimension.

    Where one unit is a power of ten of another, the exponent is written behind the number before it is read, so that 0.037 g are 37 mg
    and not a number near it, and each number is the same however it was written.
    """
    pairs = list(zip(units.tolist(), many.tolist(), strict=True))
    ratios = {pair: _ratio(*pair, unit) for pair in set(pairs)}
    is_exact = mask_of(compute.match_substring_regex(numbers, r"^[^eE]*$")).tolist()
    powers = {pair: None if ratio is None else power_of_ten(ratio) for pair, ratio in ratios.items()}
    shifts = [f"e{powers[pair]}" if exact and powers[pair] else "" for pair, exact in zip(pairs, is_exact, strict=True)]
    times = {pair: np.nan if ratio is None else float(ratio) for pair, ratio in ratios.items()}
    factors = [1.0 if shift or powers[pair] == 0 else times[pair] for pair, shift in zip(pairs, shifts, strict=True)]
    texts = compute.binary_join_element_wise(numbers, pa.array(shifts, pa.string()), "")
    return texts.cast(pa.float64()).to_numpy(zero_copy_only=False) * np.array(factors, dtype=np.float64)


def _ratio(written: str, many: float, unit: str) -> Fraction | None:
    """Return how many of the column's unit so many of the written ones are; None where they are of another dimension."""
    ratio = factor(written.strip(), unit)
    return None if ratio is None else ratio * int(many)


@dataclass(frozen=True)
class Tally:
    """What is written around the numbers of some cells, and which cells are no numbers. Those of two sets of rows add up."""

    units: dict[str, int] | None = None
    """How many cells have each unit, as it is written; "" where a number has something else around it; None for very many."""
    words: dict[str, int] | None = None
    """How many cells are each text that is no number; None for very many."""
    numbers: frozenset[int] | None = frozenset()
    """Hashes of the different plain numbers; None for more than a few."""
    n_dressed: int = 0
    """Numbers with something around them."""
    n_bounds: int = 0
    n_rough: int = 0
    n_spelled: int = 0
    n_accounting: int = 0
    largest_plain: float = 0.0
    """The largest size of a number without anything around it."""

    def __add__(self, other: Tally) -> Tally:
        """Return the tally of both sets of cells."""
        numbers = None if self.numbers is None or other.numbers is None else self.numbers | other.numbers
        return Tally(
            _added(self.units, other.units),
            _added(self.words, other.words),
            None if numbers is not None and len(numbers) > FEW_NUMBERS else numbers,
            self.n_dressed + other.n_dressed,
            self.n_bounds + other.n_bounds,
            self.n_rough + other.n_rough,
            self.n_spelled + other.n_spelled,
            self.n_accounting + other.n_accounting,
            max(self.largest_plain, other.largest_plain),
        )

    def unit(self, n_numbers: int) -> str:
        """Return the unit of a column with so many numbers, plain or not."""
        if self.units is None:
            return ""
        return common_unit(self.units, n_numbers - self.n_dressed, self.largest_plain)

    def n_without(self, unit: str) -> int:
        """Return how many numbers have a unit that cannot be turned into that of the column."""
        if self.units is None:
            return self.n_dressed
        return sum(count for written, count in self.units.items() if factor(written.strip(), unit) is None)


NO_TALLY = Tally({}, {})


def count_words(words: Iterable[tuple[str, int]]) -> dict[str, int] | None:
    """Return how many cells have each word; None for very many words."""
    counts = Counter[str]()
    for word, count in words:
        counts[word] += count
        if len(counts) > MOST_WORDS:
            return None
    return dict(counts)


def _added(one: dict[str, int] | None, other: dict[str, int] | None) -> dict[str, int] | None:
    return None if one is None or other is None else count_words([*one.items(), *other.items()])
