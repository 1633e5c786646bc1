"""Which cells of a target say that a row has no label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyarrow import compute

from .columns import Column
from .delimited import MISSING
from .readings import DASHES, NUMBERS

MAY_BE_A_CLASS = "None"
"""A word for a missing cell, and a class such as no pain: a class where empty cells mark the rows without a label."""


@dataclass(frozen=True)
class MissingLabels:
    """Words in a target that count as missing, how often each occurs, and what a person should know of that."""

    words: tuple[str, ...]
    """All that would count, also where they do not occur; an empty cell is one of them."""
    notes: list[str]


def missing_labels(column: Column, parts: Iterable[Any]) -> MissingLabels:
    """From all cells of the target, as they stand in the file."""
    if column.storage not in ("text", "category"):
        return MissingLabels(MISSING, [])
    known = (*MISSING, *(DASHES if column.reading in NUMBERS else ()))
    counts = Counter[str]()
    for part in parts:
        counts.update(_counts(column.text(part), known))
    is_class = counts[""] > 0 and counts[MAY_BE_A_CLASS] > 0 and column.reading not in NUMBERS
    words = tuple(word for word in known if word != MAY_BE_A_CLASS or not is_class)
    notes = _note_on_missing(column.name, {word: counts[word] for word in words if word and counts[word]})
    if is_class:
        n_cells, n_empty = _cells(counts[MAY_BE_A_CLASS], MAY_BE_A_CLASS), f"{counts['']:,}"
        notes.append(f"{n_cells} of the target {column.name!r} count as a class, because {n_empty} other(s) are empty.")
    return MissingLabels(words, notes)


def _counts(text: Any, words: tuple[str, ...]) -> dict[str, int]:
    """How often each word occurs."""
    trimmed = compute.utf8_trim_whitespace(text).fill_null("")
    return {one["values"]: one["counts"] for one in compute.value_counts(trimmed).to_pylist() if one["values"] in words}


def _note_on_missing(name: str, counts: dict[str, int]) -> list[str]:
    if not counts:
        return []
    verb = "counts as a row" if sum(counts.values()) == 1 else "count as rows"
    return [f"{', '.join(_cells(count, word) for word, count in counts.items())} of the target {name!r} {verb} without a label."]


def _cells(count: int, word: str) -> str:
    return f"{count:,} cell{'' if count == 1 else 's'} {word!r}"
