"""What `label` finds out about the labels themselves, in the words of its notes: what to mend before the predictions are used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._runtime import percent
from ..data._errors import listed
from ..data._labels import Target
from ..evaluation._doubts import contradictions, doubtful_labels, telling_columns
from ..evaluation._held_out import HeldOutClasses, HeldOutNumbers, Labeled, hold_out
from ..evaluation._importance import ColumnImportance, ShuffledColumns, class_losses, squared_errors
from ..evaluation._promises import Expectation, RiskLimit, expect, what_cannot_be_promised, without_promise
from ..evaluation._shift import find_shift
from ._evidence import Others, find_evidence, notes_on_evidence
from ._row_checksums import row_names
from ._subject import Subject

SHOWN_CONTRADICTIONS = 3
MOST_OTHERS = 500
"""Rows without a label that are compared with those that have one."""


@dataclass(frozen=True)
class SuspiciousLabel:
    """A label that is perhaps wrong: a prediction that has not seen it contradicts it."""

    place: int
    """Where the row is in the table, from 0."""
    line: Any
    """The line of the file; for a data frame, its index."""
    label: str | float
    predicted: str | float
    probability: float
    """Of the predicted class; for numbers, that the number is nearer to the prediction than the label is."""

    @property
    def text(self) -> str:
        """The doubt in words."""
        says, predicted = _quoted(self.label), _quoted(self.predicted)
        return f"row {self.line} says {says}, held-out prediction {predicted} ({percent(self.probability, 0)})"


def _quoted(value: str | float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


def suspicious_labels(held_out: HeldOutClasses | HeldOutNumbers, labeled: Labeled, subject: Subject) -> list[SuspiciousLabel]:
    """Return the labels that are perhaps wrong, the most doubtful first."""
    doubts = doubtful_labels(held_out)
    places = labeled.places[[doubt.place for doubt in doubts]]
    lines = names_of_rows(subject, places)
    return [
        SuspiciousLabel(int(place), line, doubt.label, doubt.predicted, doubt.probability)
        for place, line, doubt in zip(places, lines, doubts, strict=True)
    ]


def names_of_rows(subject: Subject, places: NDArray[np.intp]) -> list[Any]:
    """Return what a person calls these rows: numbers of lines, or the index of a data frame."""
    names = row_names(subject, places) if len(places) else []
    return [int(name) for name in names] if subject.index is None else [subject.index[place] for place in places]


def notes_on_rows(labeled: Labeled, subject: Subject) -> list[str]:
    """Return what a person should know of columns that give the label away, and of equal rows with different labels."""
    if subject.kind != "table":
        return []
    return [*_telling(telling_columns(labeled), labeled), *_contradicting(labeled, subject)]


def _telling(names: Sequence[str], labeled: Labeled) -> list[str]:
    if not names:
        return []
    verb, they = ("predict", "they were") if len(names) > 1 else ("predicts", "it was")
    return [
        f"{listed(names)} alone {verb} all {len(labeled.y):,} labels without error: if {they} filled in after the label, pass "
        f"ignore=[{', '.join(map(repr, names))}]."
    ]


def _contradicting(labeled: Labeled, subject: Subject) -> list[str]:
    groups = contradictions(labeled)
    if not groups:
        return []
    examples = []
    for group in groups[:SHOWN_CONTRADICTIONS]:
        first = group.places[0]
        other = next(place for place in group.places if labeled.y[place] != labeled.y[first])
        lines = names_of_rows(subject, labeled.places[[first, other]])
        word = "lines" if subject.index is None else "rows"
        examples.append(f"{word} {lines[0]} ({_quoted_label(labeled.y[first])}) and {lines[1]} ({_quoted_label(labeled.y[other])})")
    n_rows = sum(len(group.places) for group in groups)
    return [f"{n_rows:,} rows have the same cells as another row and a different label, such as {'; '.join(examples)}."]


def _quoted_label(label: Any) -> str:
    return _quoted(label.item() if hasattr(label, "item") else label)


def nothing_to_predict(subject: Subject, target: Target) -> list[str]:
    """Return a sentence where all rows have a label."""
    if not target.is_known.all():
        return []
    words = subject.tidy.candidates
    advice = f", or pass unlabeled={[*words]!r} if {listed(words)} means 'no label'" if words else ""
    return [f"All {subject.n_rows:,} rows have a label in {target.name!r}, so that there is none to predict: empty some cells{advice}."]


def worse_than_guessing(expectation: Expectation) -> list[str]:
    """Return a sentence where guessing is expected to be as good as the predictions, or may be."""
    guess = "the most frequent class" if expectation.interval is not None else "the mean"
    if expectation.risk >= expectation.baseline_risk:
        return [f"Worse than guessing: do not use these predictions. Always guessing {guess} is wrong no more often; label more rows."]
    if expectation.interval is not None and expectation.interval[1] >= expectation.baseline_risk:
        low, high = expectation.interval
        return [
            f"Perhaps no better than guessing: of {expectation.n_judged:,} labels, always guessing {guess} gets "
            f"{percent(expectation.baseline_risk)} wrong, which is within the interval of these predictions ({percent(low)} to "
            f"{percent(high)}). Label more rows before you use them."
        ]
    return []


class Foreseen(NamedTuple):
    """What the model predicts for all rows without a label, in their order, where they are few enough to be predicted at once."""

    n_rows: int
    distribution: Any


@dataclass(frozen=True)
class Findings:
    """What the labels say, and what is to be said of them."""

    fitted: Any
    """The model, trained on all labels."""
    n_labeled: int
    expectation: Expectation
    importance: list[ColumnImportance]
    suspicious: list[SuspiciousLabel]
    foreseen: Foreseen | None = None

    def notes(self) -> dict[str, Any]:
        """Return what the card of the model says."""
        shift = self.expectation.shift
        return {
            "expectation": _finite(asdict(self.expectation)),
            "baseline": self.expectation.baseline_risk,
            "shift": None if shift is None else asdict(shift),
            "importance": [asdict(one) for one in self.importance],
            "suspicious": [{**asdict(one), "line": str(one.line)} for one in self.suspicious],
        }


def find_out(model: Any, subject: Subject, target: Target, limit: RiskLimit, seed: int) -> Findings:
    """Hold the labels out in turn, once, and train the model on all of them; what a person should know is added to the subject's notes."""
    labeled, others = _labeled_and_others(subject, target, seed)
    subject.notes.extend(notes_on_rows(labeled, subject))
    losses = class_losses(np.unique(labeled.y)) if target.kind == "class" else squared_errors
    shuffled = ShuffledColumns(labeled.rows, labeled.y, losses, seed=seed) if subject.kind == "table" else None
    held_out = hold_out(model, target, labeled, seed, None if shuffled is None else shuffled.watch)
    fitted = model.fit(labeled.rows, labeled.y)
    distribution = fitted.predict_distribution(others.rows) if len(others.rows) else None
    is_chosen = subject.is_chosen()[labeled.places]
    evidence = find_evidence(held_out, limit, fitted, labeled, others, _certainties(distribution, target), is_chosen)
    shift = find_shift(evidence.judged, evidence.others, None if evidence.sample is None else evidence.sample.weight)
    expectation = without_promise(expect(held_out, limit, evidence), shift, limit)
    subject.notes.extend(notes_on_evidence(evidence) if shift is None else [])
    subject.notes.extend(_what_is_promised(expectation, limit, target))
    if shuffled is not None and shuffled.note is not None:
        subject.notes.append(shuffled.note)
    importance = [] if shuffled is None else shuffled.importance()
    # Predictions that are worse than guessing say nothing against a label.
    suspicious = suspicious_labels(held_out, labeled, subject) if expectation.risk < expectation.baseline_risk else []
    n_others = len(others.rows)
    foreseen = Foreseen(n_others, distribution) if n_others == (~target.is_known).sum() else None
    return Findings(fitted, len(labeled.y), expectation, importance, suspicious, foreseen)


def _labeled_and_others(subject: Subject, target: Target, seed: int) -> tuple[Labeled, Others]:
    """Return the rows with a label, and a random part of the others, after one pass over all rows."""
    known, unknown = np.flatnonzero(target.is_known), np.flatnonzero(~target.is_known)
    chosen = np.random.default_rng(seed).permutation(unknown)[:MOST_OTHERS]
    places = np.sort(np.concatenate([known, chosen]))
    rows, is_known, groups = subject.rows_at(places), target.is_known[places], subject.groups()
    labeled = Labeled(known, rows[is_known], target.labels, None if groups is None else groups[known])
    return labeled, Others(rows[~is_known], None if groups is None else groups[places[~is_known]])


def _certainties(distribution: Any, target: Target) -> NDArray[np.float64]:
    """Return how sure the predictions of rows without a label are, as `find_shift` takes it; none for None."""
    if distribution is None:
        return np.empty(0)
    certainty: NDArray[np.float64] = distribution.certainty if target.kind == "class" else distribution.std
    return certainty


def _what_is_promised(expectation: Expectation, limit: RiskLimit, target: Target) -> list[str]:
    """Return why nothing is promised, or what else speaks against the predictions."""
    if expectation.shift is not None:
        left = "" if limit.max_risk is None else "All predictions are left to a person, because the labels are not like the other rows."
        return [left] if left else []
    return [*what_cannot_be_promised(expectation, limit, target), *worse_than_guessing(expectation)]


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """Replace infinity and NaN, which JSON has not, by words that `float` takes."""
    return {name: str(value) if isinstance(value, float) and not np.isfinite(value) else value for name, value in values.items()}
