"""Labels as people write them: spellings of one class, words for "no label", several labels in a cell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ._errors import FileError, listed
from ._labels import UNLABELED_WORDS, Target, TargetKind

NO_LABEL = frozenset(
    {
        *("-", "--", "–", "—", ".", "..", "...", "?", "??", "???", "x?", "n/a", "na", "n.a.", "nan", "null", "none", "nil"),
        *("unknown", "unk", "not known", "unclear", "undetermined", "undecided", "undefined", "unspecified", "not specified"),
        *("tbd", "t.b.d.", "tba", "to be determined", "to be done", "todo", "to do", "pending", "open", "later", "not yet"),
        *("unlabeled", "unlabelled", "not labeled", "not labelled", "no label", "without label", "unclassified", "unassigned"),
        *("missing", "empty", "blank", "not available", "not applicable", "not annotated", "unannotated"),
    }
)
"""Texts that may mean "no label", without regard to case."""
MINUS_ONE = frozenset({"-1", "-1.0"})
"""Text that means "no label" in scikit-learn, and beside names of classes hardly anything else."""
SEVERAL = re.compile(r"\s*[;,|/+&]\s*|\s+and\s+")
"""What stands between several labels in a cell."""
MOST_SHOWN = 3
FEWEST_NUMBERS = 20
"""Numbers with fractions, or more different ones than these, are a number and no names of classes."""


@dataclass(frozen=True)
class TidyLabels:
    """A target in which each class has one name."""

    target: Target
    notes: list[str]
    """What was made of the cells, and what a person may want to change."""
    candidates: dict[str, int]
    """Texts that count as classes and may mean "no label", and how many cells say so."""

    @property
    def question(self) -> str:
        """What to pass if these texts mean "no label"; empty where there are none."""
        if not self.candidates:
            return ""
        cells = " and ".join(f"{_cells(count)} {word!r}" for word, count in self.candidates.items())
        mean = "they mean" if sum(self.candidates.values()) > 1 else "it means"
        return f"{cells}: if {mean} 'no label', pass unlabeled={[*self.candidates]!r}"


def tidy_labels(target: Target, unlabeled: Sequence[str] = (), kind: TargetKind | None = None) -> TidyLabels:
    """Return the target with one name for each class, and without the words that a person says mean "no label".

    Texts that differ in case or blanks alone are one class, which has the name of the commonest. Where numbers are left when the words
    are gone, they are a number to predict, unless `kind` says that they are names of classes. Raise FileError for a word that no cell
    holds, and for texts where a person wants numbers.
    """
    words = {key_of(word): word for word in unlabeled}
    if target.kind == "number":
        return TidyLabels(_without_numbers(target, unlabeled), [], {})
    codes, texts = pd.factorize(target.values)
    counts = dict(zip(texts.tolist(), np.bincount(codes[codes >= 0], minlength=len(texts)).tolist(), strict=True))
    _check_words(words, counts, target.name)
    names = one_name_each({text: count for text, count in counts.items() if key_of(text) not in words})
    found = np.array([*(names.get(text) for text in texts), None], dtype=object)[codes]
    tidy = replace(target, values=found)
    if kind == "number" or (kind is None and words):
        tidy = _as_numbers(tidy, is_sure=kind == "number")
    if tidy.kind == "number":
        return TidyLabels(tidy, [], {})
    totals: dict[str, int] = {}
    for text, name in names.items():
        totals[name] = totals.get(name, 0) + counts[text]
    candidates = {name: count for name, count in totals.items() if _may_mean_no_label(name, totals)}
    return TidyLabels(tidy, [*_notes_on_spellings(names, counts, target.name), *_notes_on_several(totals, target.name)], candidates)


def key_of(text: str) -> str:
    """Return what spellings of one class have in common: no blanks around it, single ones within, lower case."""
    return " ".join(str(text).split()).casefold()


def one_name_each(counts: Mapping[str, int]) -> dict[str, str]:
    """Return the name of the class of each text: the commonest spelling, of equally common ones the first in the alphabet."""
    best: dict[str, str] = {}
    for text in sorted(counts):
        key = key_of(text)
        if key not in best or counts[text] > counts[best[key]]:
            best[key] = text
    return {text: best[key_of(text)] for text in counts}


def _check_words(words: Mapping[str, str], counts: Mapping[str, int], name: str) -> None:
    known = {key_of(text) for text in counts}
    strange = [word for key, word in words.items() if key not in known and word.strip() not in UNLABELED_WORDS]
    if strange:
        raise FileError(
            f"No cell of the target {name!r} says {strange[0]!r}, which is to mean 'no label'; it has {listed(sorted(counts))}."
        )


def _without_numbers(target: Target, unlabeled: Sequence[str]) -> Target:
    """Return a target of numbers, of which some numbers, such as −999, mean that there is none."""
    values = target.values.astype(np.float64)
    for word in unlabeled:
        try:
            number = float(word)
        except ValueError:
            continue  # words in a column of numbers count as missing anyway, and a note says so
        if not (values == number).any():
            raise FileError(f"No cell of the target {target.name!r} is {word}, which is to mean 'no label'.")
        values = np.where(values == number, np.nan, values)
    return replace(target, values=values)


def _as_numbers(target: Target, *, is_sure: bool) -> Target:
    """Return a target of numbers, where numbers are left when the words for "no label" are gone, and they are no names of classes."""
    try:
        numbers = np.array([float(text) for text in target.labels.tolist()])
    except ValueError as error:
        if is_sure:
            raise FileError(f"The target {target.name!r} holds text, not numbers: predict it as a class, or mend its cells.") from error
        return target
    are_numbers = len(numbers) > 0 and bool((numbers % 1 != 0).any() or len(np.unique(numbers)) > FEWEST_NUMBERS)
    if not is_sure and not are_numbers:
        return target
    values = np.full(len(target.values), np.nan)
    values[target.is_known] = numbers
    return replace(target, kind="number", values=values)


def _may_mean_no_label(name: str, totals: Mapping[str, int]) -> bool:
    if key_of(name) in NO_LABEL:
        return True
    return name in MINUS_ONE and len(totals) > 2


def _notes_on_spellings(names: Mapping[str, str], counts: Mapping[str, int], target: str) -> list[str]:
    merged = [text for text, name in names.items() if text != name]
    if not merged:
        return []
    shown = [f"{text!r} ({_count(counts[text])}) is {names[text]!r} ({_count(counts[names[text]])})" for text in merged[:MOST_SHOWN]]
    more = f" and {len(merged) - MOST_SHOWN:,} more" if len(merged) > MOST_SHOWN else ""
    return [f"Spellings that differ in case or blanks are one class of the target {target!r}: {', '.join(shown)}{more}."]


def _notes_on_several(totals: Mapping[str, int], target: str) -> list[str]:
    known = {key_of(name) for name in totals}
    several = {name: count for name, count in totals.items() if _parts(name) and all(part in known for part in _parts(name))}
    if not several:
        return []
    return [
        f"{_cells(sum(several.values()), 'hold')} several labels in the target {target!r}, such as {next(iter(several))!r}, which counts "
        "as a class of its own: leave one label in each cell, or empty it."
    ]


def _parts(name: str) -> list[str]:
    """Return the labels that a cell may list; none where it holds one."""
    parts = [key_of(part) for part in SEVERAL.split(name) if part.strip()]
    return parts if len(parts) > 1 else []


def _cells(count: int, verb: str = "say") -> str:
    return f"{count:,} cell {verb}s" if count == 1 else f"{count:,} cells {verb}"


def _count(count: int) -> str:
    return f"{count:,} cell{'' if count == 1 else 's'}"
