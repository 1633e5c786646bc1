"""Units that people write beside numbers: what they are called, what they measure, and how to turn one into another."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

DIFFERENT = "different"
"""The unit of a column whose units cannot be turned into each other: its numbers are taken as they stand."""
FRACTIONS = "% or fraction"
"""The unit of a column of percentages that holds fractions of 1 as well: those without a sign are taken times 100."""
PERCENT = "%"

FEWEST = {"beside the number": 0.5, "after a space": 0.1}
"""The share of the numbers that must have a unit nobody knows, to be a unit: "12a" is a house, "12 boxes" are twelve."""
MOST_DIFFERENT = 3
"""The most units that may differ where nobody knows one of them."""
COVERED = 0.9
"""The share of the cells with a unit that such units must have."""


class Unit(NamedTuple):
    """A unit that is written beside numbers."""

    name: str
    dimension: str
    size: Fraction
    """How many of the dimension's own unit it is."""


def _several(dimension: str, sizes: Mapping[str, Fraction | int]) -> dict[str, Unit]:
    """Return units by each way of writing them. The first word of a key is the name, the others mean the same."""
    return {word: Unit(key.split()[0], dimension, Fraction(size)) for key, size in sizes.items() for word in key.split()}


def _decimal(dimension: str, root: str, prefixes: str) -> dict[str, Unit]:
    """Return the decimal multiples of a unit."""
    powers = {"n": -9, "µ": -6, "m": -3, "c": -2, "d": -1, "": 0, "h": 2, "k": 3, "M": 6, "G": 9, "T": 12}
    sizes = {f"{prefix}{root}": Fraction(10) ** powers[prefix] for prefix in (*prefixes, "")}
    return _several(dimension, sizes)


_DAY = 86_400
KNOWN: dict[str, Unit] = {
    **_decimal("mass", "g", "nµmk"),
    **_several("mass", {"µg ug mcg": Fraction(1, 10**6), "kg Kg KG kilo kilos": 1000, "g gr gram grams Gramm": 1}),
    **_several("mass", {"t to Tonnen tonnes": 10**6, "lb lbs Pfund": Fraction("453.59237"), "oz": Fraction("28.349523125")}),
    **_decimal("length", "m", "nµmcdk"),
    **_several("length", {"µm um": Fraction(1, 10**6), "in inch inches": Fraction("0.0254"), "ft foot feet": Fraction("0.3048")}),
    **_several("length", {"yd": Fraction("0.9144"), "mi mile miles": Fraction("1609.344"), "m meter meters metre metres Meter": 1}),
    **_decimal("volume", "L", "nµmcdh"),
    **_several(
        "volume", {"mL ml": Fraction(1, 1000), "cL cl": Fraction(1, 100), "dL dl": Fraction(1, 10), "L l liter liters litre Liter": 1}
    ),
    **_several("volume", {"µL µl uL ul": Fraction(1, 10**6)}),
    **_several("time", {"ns": Fraction(1, 10**9), "µs us": Fraction(1, 10**6), "ms msec": Fraction(1, 1000)}),
    **_several("time", {"s sec secs second seconds Sek Sek. Sekunde Sekunden S": 1}),
    **_several("time", {"min mins min. minute minutes Min Min. Minute Minuten": 60}),
    **_several("time", {"h hr hrs hour hours Std Std. Stunde Stunden": 3600}),
    **_several("time", {"d day days Tag Tage Tagen": _DAY, "week weeks wk wks Woche Wochen": 7 * _DAY}),
    **_several("time", {"month months mo mos Monat Monate Monaten": Fraction("30.4375") * _DAY}),
    **_several("time", {"year years yr yrs y Jahr Jahre Jahren": Fraction("365.25") * _DAY}),
    **_several("share", {"% percent Prozent pct": Fraction(1, 100), "‰ promille Promille": Fraction(1, 1000), "ppm": Fraction(1, 10**6)}),
    **_decimal("frequency", "Hz", "kMG"),
    **_decimal("power", "W", "mkMG"),
    **_decimal("energy", "J", "kMG"),
    **_several("energy", {"cal": Fraction("4.184"), "kcal": 4184, "Wh": 3600, "kWh": 3_600_000}),
    **_decimal("pressure", "Pa", "hkM"),
    **_several("pressure", {"mbar": 100, "bar": 10**5, "mmHg": Fraction("133.322387415")}),
    **_decimal("amount", "mol", "nµm"),
    **_several("data", {"kB KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "bytes": 1}),
    **_several("rank", {"th st nd rd": 1}),
    **_several("Celsius", {"°C ℃ C degC": 1}),
    **_several("Fahrenheit", {"°F ℉ F degF": 1}),
}
_MONEY = {
    "€": "EUR Euro euro Euros euros",
    "$": "USD US$ usd dollar dollars",
    "£": "GBP gbp",
    "¥": "JPY jpy",
    "CHF": "chf Fr. Fr SFr. SFr",
    "₹": "INR Rs Rs.",
    "元": "CNY RMB CN¥",
    "kr": "kr. SEK NOK DKK",
    "zł": "PLN zl",
    **dict.fromkeys(("₽", "₩", "₺", "₪", "฿", "₴", "A$", "C$", "R$", "AUD", "CAD", "BRL", "CZK", "HUF", "MXN", "ZAR", "SGD", "HKD"), ""),
}
MONEY: dict[str, Unit] = {word: Unit(name, f"money {name}", Fraction(1)) for name, same in _MONEY.items() for word in (name, *same.split())}
_ALIKE: dict[str, set[Unit]] = {}
"""Units by small letters."""
for _word, _unit in (KNOWN | MONEY).items():
    _ALIKE.setdefault(_word.casefold(), set()).add(_unit)
MANY = {
    **dict.fromkeys(("k", "K", "Tsd", "Tsd.", "thousand"), 10**3),
    **dict.fromkeys(("M", "m", "mn", "mio", "Mio", "Mio.", "million", "millions", "Millionen"), 10**6),
    **dict.fromkeys(("B", "b", "bn", "Mrd", "Mrd.", "billion", "billions", "Milliarden"), 10**9),
}
"""Words for thousands and more; single letters besides k mean them beside money only."""


@lru_cache(maxsize=10_000)
def unit_of(written: str) -> Unit:
    """Return the unit that is written so; one that nobody knows measures something of its own."""
    text = written.strip().replace("μ", "µ")
    if text in KNOWN or text in MONEY:
        return KNOWN.get(text) or MONEY[text]
    if len(text) > 1 and len(alike := _ALIKE.get(text.casefold(), ())) == 1:
        return next(iter(alike))  # MG are milligrams, but MW may be milliwatts, and a single letter anything
    above, slash, below = text.partition("/")
    over, under = KNOWN.get(above) or MONEY.get(above), KNOWN.get(below)
    if slash and over and under:
        return Unit(f"{over.name}/{under.name}", f"{over.dimension}/{under.dimension}", over.size / under.size)
    return Unit(text, f"unknown {text}", Fraction(1))


def is_money(unit: str) -> bool:
    """Return whether a unit is a currency."""
    return unit_of(unit).dimension.startswith("money ")


def is_known(written: str) -> bool:
    """Return whether a unit measures what many people would say it does."""
    return not unit_of(written).dimension.startswith("unknown")


def power_of_ten(ratio: Fraction) -> int | None:
    """Return the exponent of a power of ten; None for other numbers."""
    for whole, sign in ((ratio, 1), (1 / ratio, -1)):
        digits = str(whole.numerator)
        if whole.denominator == 1 and digits.rstrip("0") == "1":
            return sign * (len(digits) - 1)
    return None


@lru_cache(maxsize=10_000)
def factor(written: str, unit: str) -> Fraction | None:
    """Return how many of the column's unit one of the written units is; None where it is none of its dimension."""
    if not written:
        return Fraction(100 if unit == FRACTIONS else 1)
    if unit == DIFFERENT:
        return Fraction(1)
    one, other = unit_of(written), unit_of(PERCENT if unit == FRACTIONS else unit)
    if other.dimension == "time" and one.name == "m":
        one = KNOWN["min"]
    return one.size / other.size if one.dimension == other.dimension else None


def common_unit(written: Mapping[str, int], n_plain: int, largest_plain: float) -> str:
    """Return the unit of a column; nothing where its numbers have none, or what is written beside them are no units.

    `written` has the units as they are written, those that stand after a space with it, and how many cells have each; `n_plain` cells
    have none. Few cells with something that nobody knows do not count: they are no numbers then, as "12a" among house numbers.
    """
    n_numbers = n_plain + sum(written.values())
    n_plain += written.get("", 0)
    counted = {one: count for one, count in written.items() if one and (is_known(one) or count >= _fewest(one) * n_numbers)}
    if not counted:
        return ""
    names = dict[str, int]()
    for one, count in counted.items():
        names[unit_of(one).name] = names.get(unit_of(one).name, 0) + count
    dimensions = {unit_of(one).dimension for one in counted}
    if dimensions == {"time", "length"} and {name for name in names if unit_of(name).dimension == "length"} == {"m"}:
        return max((name for name in names if name != "m"), key=lambda name: (names[name], name))  # minutes, as in 1h 20m
    if dimensions == {"share"} and PERCENT in names:
        return FRACTIONS if n_plain and largest_plain <= 1 else PERCENT
    if dimensions == {"time"} and "s" in names:
        return "s"
    if len(dimensions) == 1:
        return max(names, key=lambda name: (names[name], name))
    if sum(counted.values()) < COVERED * sum(count for one, count in written.items() if one):
        return ""
    knows_all = all(map(is_known, counted))
    return DIFFERENT if knows_all or (len(names) <= MOST_DIFFERENT and all(one.startswith(" ") for one in counted)) else ""


def _fewest(written: str) -> float:
    return FEWEST["after a space" if written.startswith(" ") else "beside the number"]
