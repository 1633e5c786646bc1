"""Units of measurement: how much each way of writing one is worth, by its definition."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gpssl.data._units import KNOWN, MANY, MONEY, factor, is_known, is_money, unit_of

PREFIXES = {"n": "1e-9", "µ": "1e-6", "m": "1e-3", "c": "1e-2", "d": "1e-1", "": "1", "h": "1e2", "k": "1e3", "M": "1e6", "G": "1e9"}
DECIMAL = {
    "mass": ("g", ["n", "µ", "m", "", "k"]),
    "length": ("m", ["n", "µ", "m", "c", "d", "", "k"]),
    "volume": ("L", ["n", "µ", "m", "c", "d", "", "h"]),
    "frequency": ("Hz", ["", "k", "M", "G"]),
    "power": ("W", ["m", "", "k", "M", "G"]),
    "energy": ("J", ["", "k", "M", "G"]),
    "pressure": ("Pa", ["", "h", "k", "M"]),
    "amount": ("mol", ["n", "µ", "m", ""]),
}
"""Units with decimal prefixes: the unit of each dimension, and the prefixes that it takes."""

OTHERS = {
    "mass": {
        "1": "gr gram grams Gramm",
        "1e3": "Kg KG kilo kilos",
        "1e-6": "ug mcg",
        "1e6": "t to Tonnen tonnes",
        "453.59237": "lb lbs Pfund",  # the international avoirdupois pound, 1959
        "28.349523125": "oz",
    },
    "length": {
        "1": "meter meters metre metres Meter",
        "1e-6": "um",
        "0.0254": "in inch inches",
        "0.3048": "ft foot feet",
        "0.9144": "yd",
        "1609.344": "mi mile miles",
    },
    "volume": {"1": "l liter liters litre Liter", "1e-3": "ml", "1e-2": "cl", "1e-1": "dl", "1e-6": "µl uL ul"},
    "time": {
        "1e-9": "ns",
        "1e-6": "µs us",
        "1e-3": "ms msec",
        "1": "s sec secs second seconds Sek Sek. Sekunde Sekunden S",
        "60": "min mins min. minute minutes Min Min. Minute Minuten",
        "3600": "h hr hrs hour hours Std Std. Stunde Stunden",
        "86400": "d day days Tag Tage Tagen",
        "604800": "week weeks wk wks Woche Wochen",
        "2629800": "month months mo mos Monat Monate Monaten",  # a twelfth of the Julian year
        "31557600": "year years yr yrs y Jahr Jahre Jahren",
    },
    "share": {"0.01": "% percent Prozent pct", "0.001": "‰ promille Promille", "1e-6": "ppm"},
    "energy": {"4.184": "cal", "4184": "kcal", "3600": "Wh", "3600000": "kWh"},
    "pressure": {"100": "mbar", "1e5": "bar", "133.322387415": "mmHg"},
    "data": {"1": "bytes", "1e3": "kB KB", "1e6": "MB", "1e9": "GB", "1e12": "TB"},
    "rank": {"1": "th st nd rd"},
    "Celsius": {"1": "°C ℃ C degC"},
    "Fahrenheit": {"1": "°F ℉ F degF"},
}


def expected() -> dict[str, tuple[str, Fraction]]:
    """Return the dimension of each way of writing a unit, and how many of the dimension's own unit it is."""
    decimal = {
        prefix + root: (dimension, Fraction(PREFIXES[prefix])) for dimension, (root, prefixes) in DECIMAL.items() for prefix in prefixes
    }
    others = {
        word: (dimension, Fraction(size)) for dimension, sizes in OTHERS.items() for size, words in sizes.items() for word in words.split()
    }
    return decimal | others


def test_every_unit_is_worth_what_its_definition_says() -> None:
    assert {word: (unit.dimension, unit.size) for word, unit in KNOWN.items()} == expected()


def test_ways_of_writing_the_same_have_one_name() -> None:
    """The name is one of the ways of writing it, and tells units of different worth apart."""
    by_worth: dict[tuple[str, Fraction], set[str]] = {}
    for word, unit in KNOWN.items():
        assert KNOWN[unit.name] == unit, word
        by_worth.setdefault((unit.dimension, unit.size), set()).add(unit.name)
    assert [names for names in by_worth.values() if len(names) > 1] == [{"hPa", "mbar"}]


CURRENCIES = [
    *("€ EUR Euro euro Euros euros", "$ USD US$ usd dollar dollars", "£ GBP gbp", "¥ JPY jpy", "CHF chf Fr. Fr SFr. SFr", "₹ INR Rs Rs."),
    *("元 CNY RMB CN¥", "kr kr. SEK NOK DKK", "zł PLN zl"),
    *["₽", "₩", "₺", "₪", "฿", "₴", "A$", "C$", "R$", "AUD", "CAD", "BRL", "CZK", "HUF", "MXN", "ZAR", "SGD", "HKD"],
]


def test_currencies_are_units_of_their_own() -> None:
    expected = {word: words.split()[0] for words in CURRENCIES for word in words.split()}
    assert {word: unit.name for word, unit in MONEY.items()} == expected
    for word, name in expected.items():
        assert is_money(word)
        assert is_known(word)
        assert MONEY[word].size == 1
        assert {other for other in ("€", "$", "£") if factor(word, other) is not None} == {"€", "$", "£"} & {name}


def test_words_for_many() -> None:
    many = {1000: "k K Tsd Tsd. thousand", 10**6: "M m mn mio Mio Mio. million millions Millionen"}
    many[10**9] = "B b bn Mrd Mrd. billion billions Milliarden"
    assert {word: size for size, words in many.items() for word in words.split()} == MANY


@pytest.mark.parametrize(
    ("written", "name", "dimension"),
    [
        (" kg ", "kg", "mass"),
        ("μg", "µg", "mass"),  # the Greek letter for the sign of micro
        ("MG", "mg", "mass"),
        ("MW", "MW", "power"),
        ("mw", "unknown", "unknown"),  # milliwatts or megawatts
        ("G", "unknown", "unknown"),  # a single letter may be anything
        ("eur", "€", "money €"),
        ("mg/dL", "mg/dL", "mass/volume"),
        ("€/kg", "€/kg", "money €/mass"),
        ("kg/€", "unknown", "unknown"),
        ("mg/", "unknown", "unknown"),
        ("/kg", "unknown", "unknown"),
        ("sheep", "unknown", "unknown"),
    ],
)
def test_units_as_they_are_written(written: str, name: str, dimension: str) -> None:
    unit = unit_of(written)
    if name == "unknown":
        assert (unit.name, unit.dimension, unit.size) == (written.strip(), f"unknown {written.strip()}", Fraction(1))
    else:
        assert (unit.name, unit.dimension) == (name, dimension)
    assert is_known(written) == (name != "unknown")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("kg", "g", 1000),
        ("g", "kg", "1/1000"),
        ("mg/dL", "g/L", "1/100"),
        ("h", "min", 60),
        ("m", "h", "1/60"),  # minutes among hours
        ("m", "km", "1/1000"),
        ("", "kg", 1),
        ("kg", "m", None),
        ("°C", "°F", None),
        ("‰", "%", "1/10"),
    ],
)
def test_factors_between_units(one: str, other: str, expected: int | str | None) -> None:
    assert factor(one, other) == (None if expected is None else Fraction(expected))
