"""What casts doubt on labels: held-out predictions that contradict them, columns that give them away, equal rows that disagree."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._held_out import HeldOutClasses, HeldOutNumbers, Labeled

Array = NDArray[np.float64]

SURE = 0.8
"""The probability of another class from which on a label is perhaps wrong."""
FEWEST_OF_CLASS = 3
"""A class with fewer labels cannot be learned while one of them is held out: predictions that contradict it say nothing."""
LARGEST_CHANCE = 0.05
"""The largest chance that any of the numbers that are listed is that far from its prediction by accident."""
MOST_DOUBTS = 100
"""The most labels that are listed."""
FEWEST_LABELS = 30
"""With fewer labels, a column may agree with them by accident: one that errs at 10 % of the rows shows no error in 29 with 5 %."""
HONEST_ERROR = 0.05
"""The error rate of a measurement that is good and no more than that, which must not be taken for the label itself."""
FEWEST_OF_VALUE = 3
"""A value or range of values with fewer rows proves nothing."""
SHARE_PROVED = 0.98
"""The share of rows with values that prove something, in a column that gives the label away."""
SAME_ORDER = 0.9999
"""The correlation of ranks from which on two columns hold the same number."""


class Doubt(NamedTuple):
    """A label that a prediction contradicts, by a model that has not seen it."""

    place: int
    """Where the row is among the labeled ones."""
    label: str | float
    predicted: str | float
    probability: float
    """Of the predicted class; for numbers, that the number is nearer to the prediction than the label is."""


def doubtful_labels(held_out: HeldOutClasses | HeldOutNumbers) -> list[Doubt]:
    """Return labels that are perhaps wrong, the most doubtful first.

    A class is doubtful where another one has a probability of at least 80 %; they are sorted by the probability of the label itself. A
    number is doubtful where it is so far from its prediction that, among n numbers that follow their predicted distributions, one so far
    out is found with a probability of 5 %: 2 min(F(y), 1 − F(y)) < 0.05 / n.
    """
    found = _doubtful_classes(held_out) if isinstance(held_out, HeldOutClasses) else _doubtful_numbers(held_out)
    return found[:MOST_DOUBTS]


def _doubtful_classes(held_out: HeldOutClasses) -> list[Doubt]:
    own = np.searchsorted(held_out.classes, held_out.y)
    of_label = held_out.proba[np.arange(len(own)), own]
    is_common = np.bincount(own, minlength=len(held_out.classes))[own] >= FEWEST_OF_CLASS
    is_judged = True if held_out.is_judged is None else held_out.is_judged
    places = np.flatnonzero(held_out.is_wrong & (held_out.certainty >= SURE) & is_common & is_judged)
    predicted = held_out.classes[held_out.proba.argmax(axis=1)]
    order = places[np.argsort(of_label[places], kind="stable")]
    return [Doubt(int(n), str(held_out.y[n]), str(predicted[n]), float(held_out.certainty[n])) for n in order]


def _doubtful_numbers(held_out: HeldOutNumbers) -> list[Doubt]:
    outside = 2 * np.minimum(held_out.level, 1 - held_out.level)
    places = np.flatnonzero(outside < LARGEST_CHANCE / len(held_out.y))
    distance = np.abs(held_out.y - held_out.mean) / np.maximum(held_out.std, np.finfo(np.float64).tiny)
    order = places[np.argsort(-distance[places], kind="stable")]
    return [Doubt(int(n), float(held_out.y[n]), float(held_out.mean[n]), float(1 - outside[n])) for n in order]


class Contradiction(NamedTuple):
    """Rows with the same cells and different labels."""

    places: list[int]
    """Among the labeled rows, at least two."""


def contradictions(labeled: Labeled) -> list[Contradiction]:
    """Return the groups of labeled rows that agree in all columns and not in their labels, in the order of their first rows."""
    codes = np.stack([_codes(values) for values in columns_of(labeled.rows).values()], axis=1)
    _, group = np.unique(codes, axis=0, return_inverse=True)
    group = group.reshape(-1)
    by_group: dict[int, list[int]] = {}
    for place, number in enumerate(group.tolist()):
        by_group.setdefault(number, []).append(place)
    return [Contradiction(places) for places in by_group.values() if len({labeled.y[place] for place in places}) > 1]


def telling_columns(labeled: Labeled) -> list[str]:
    """Return the columns that tell the label without error, each by itself.

    Classes: sorted by the column, labels change only between ranges of values of at least 3 rows; or each text of the column has rows of
    one class only. If one row is left out, the others tell its label, but for rows next to where the label changes. Numbers: the column
    has the order of the labels.

    It must be no accident. A column with at most two values for each class, as codes have, needs 30 labels. One with more needs n labels,
    where one of D columns that err at 5 % of the rows would show no error with a chance of 5 %: D 0.95ⁿ ≤ 0.05.
    """
    columns, n_labels = columns_of(labeled.rows), len(labeled.y)
    if n_labels < FEWEST_LABELS:
        return []
    if labeled.y.dtype.kind == "f":
        return [name for name, values in columns.items() if _has_the_order(values, labeled.y)]
    is_sure = len(columns) * (1 - HONEST_ERROR) ** n_labels <= LARGEST_CHANCE
    most_values = n_labels if is_sure else 2 * len(np.unique(labeled.y))
    return [name for name, values in columns.items() if _separates(values, labeled.y, most_values)]


def columns_of(rows: Any) -> dict[str, NDArray[Any]]:
    """Return the columns of a data frame or of an array, by name. [n] each"""
    if hasattr(rows, "columns"):
        return {str(name): rows[name].to_numpy() for name in rows.columns}
    return {f"column {place + 1}": np.asarray(rows)[:, place] for place in range(np.asarray(rows).shape[1])}


def _codes(values: NDArray[Any]) -> NDArray[np.intp]:
    """Return whole numbers in the order of the values, the same for the same value; missing cells are alike. [n]"""
    if values.dtype.kind == "O":
        values = np.array(["" if value is None or value != value else f"={value}" for value in values])
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def _separates(values: NDArray[Any], y: NDArray[Any], most_values: int) -> bool:
    """Return whether each range of numbers, or each text, has rows of one class, and nearly all have several rows."""
    codes, (classes, labels) = _codes(values), np.unique(y, return_inverse=True)
    n_rows, n_values = len(codes), int(codes.max()) + 1
    if not len(classes) <= n_values <= most_values:
        return False
    counts = np.zeros((n_values, len(classes)), dtype=np.intp)
    np.add.at(counts, (codes, labels.reshape(-1)), 1)
    if ((counts > 0).sum(axis=1) > 1).any():
        return False
    if values.dtype.kind == "O":
        sizes = counts.sum(axis=1)
    else:
        of_value = counts.argmax(axis=1)
        ranges = np.concatenate([[0], np.cumsum(of_value[1:] != of_value[:-1])])
        sizes = np.bincount(ranges, counts.sum(axis=1)).astype(np.intp)
        if len(sizes) > max(2 * len(classes), len(classes) + 1):
            return False
    return bool(sizes[sizes >= FEWEST_OF_VALUE].sum() >= SHARE_PROVED * n_rows)


def _has_the_order(values: NDArray[Any], y: NDArray[Any]) -> bool:
    if values.dtype.kind != "f" or np.isnan(values).any() or len(np.unique(values)) < 2:
        return False
    from scipy.stats import rankdata

    return bool(abs(np.corrcoef(rankdata(values), rankdata(y))[0, 1]) >= SAME_ORDER)
