"""Which columns say nothing about what a row is like, and why: each reason is a true sentence that a person can act on."""

from __future__ import annotations

import re

from ._columns import OF_TEXT, Column
from ._decisions import is_ambiguous_date
from ._frames import MOST_CATEGORIES
from ._profile import SKETCH_SIZE, Findings
from ._readings import NUMBER_SHAPES

ID_NAME = re.compile(r"(?i:unnamed: ?\d+|index|idx|row|row ?names?|(.*[ _.-])?(id|uuid|guid))|.*[a-z](ID|Id)")
FEWEST_CONSECUTIVE = 8
"""The fewest consecutive numbers that are no accident."""
NEARLY = 0.95
MANY_NUMBERS = 0.5
"""The share of cells with numbers from which on a column of text may have been meant as numbers."""


def why_not(column: Column) -> str | None:
    """Return why a column says nothing about what a row is like; None where it may."""
    found = column.findings
    if found.n_values == 0:
        return "it is empty" if found.n_missing == found.n_rows else f"none of its cells is a {column.kind} that can be used"
    if found.n_distinct < 2 and column.has_too_many_digits:
        return "its numbers have the same first 15 digits, and more cannot be told apart"
    tells_gaps = column.kind in OF_TEXT and found.n_values < found.n_rows
    if found.n_distinct < 2 and not tells_gaps:
        return "all its cells are alike" if found.n_values == found.n_rows else "all its cells that can be read are alike"
    if column.kind == "number" and found.n_like_codes:
        return "it has numbers between 4.5e15 and 9e15, which cannot be told from categories; divide it by 1,000"
    return None


def looks_like_id(column: Column, *, is_unnamed: bool) -> str | None:
    """Return why a column seems to say who a row is, not what it is like; None where it does not."""
    found = column.findings
    if column.kind == "category" and found.n_distinct > MOST_CATEGORIES * found.n_values:
        if is_ambiguous_date(found.shapes):
            return "day and month of its dates cannot be told apart: write them as 2024-12-31"
        many = f"{found.n_distinct:,.0f}" if found.n_distinct < SKETCH_SIZE else f"about {found.n_distinct:,.0f}"
        return f"it looks like an ID: {many} different texts in {found.n_values:,} rows{_numbers_among(found)}"
    if column.kind != "number" or not found.is_whole or column.unit not in (None, "th"):
        return None  # nobody gives rows a number with a unit, but for the first, the second, …
    if found.n_values >= FEWEST_CONSECUTIVE and found.are_consecutive:
        return f"it looks like an ID: it counts the rows from {found.minimum:.0f} to {found.maximum:.0f}"
    if not is_unnamed and not ID_NAME.fullmatch(column.name):
        return None
    if column.has_too_many_digits:
        return "it looks like an ID: by its name, and its numbers have more than 15 digits"
    if found.n_distinct >= (1 if found.n_distinct < SKETCH_SIZE else NEARLY) * found.n_values:
        return "it looks like an ID: by its name, and all its numbers are different"
    return None


def _numbers_among(found: Findings) -> str:
    """Return what to do with a column of text that perhaps was to be one of numbers."""
    n_numbers = int(found.shapes[NUMBER_SHAPES].sum())
    if n_numbers < MANY_NUMBERS * found.n_values:
        return ""
    example = f", such as {found.odd[:40]!r}" if found.odd is not None else ""
    return f", {n_numbers:,} of them with a number: if it is a measure, mend the other cells{example}"
