"""Labels: which rows have one, and what it is."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_array, column_or_1d

from ._frames import MISSING_WORDS, is_missing

UNLABELED = -1
"""The mark of a row without a label, where labels are whole numbers; elsewhere it is None or NaN."""
UNLABELED_WORDS = (*MISSING_WORDS, "-1", "-1.0")
"""Text that stands for no label in a column of `obs`: the words for a missing cell, and −1 as text."""


class KnownLabels(NamedTuple):
    """Which rows of a table have a label, and the labels."""

    rows: NDArray[np.intp]
    """The places of the rows that have a label. [n labeled]"""
    values: NDArray[Any]
    """Their labels. [n labeled]"""


def find_class_labels(y: Any) -> KnownLabels:
    """Return the rows with a label: neither None nor NaN nor, where labels are whole numbers, −1."""
    if y is None:
        raise ValueError("This classifier requires y to be passed, but the target y is None.")
    labels = labeled_rows(y, " Give at least one label per class; to learn from unlabeled rows alone, fit the representation by itself.")
    _refuse_minus_one_as_a_class(labels, _num_samples(y))
    _check_classes(labels.values)
    return labels


def labeled_rows(y: Any, advice: str = "") -> KnownLabels:
    """Return the rows with a label, for scores and pictures, where there need not be several classes."""
    values = as_labels(y)
    rows = np.flatnonzero(~missing(values))
    labels = _tidy(values[rows])
    if _are_whole_numbers(labels):
        rows, labels = rows[labels != UNLABELED], labels[labels != UNLABELED]
    if len(rows) == 0:
        raise ValueError(f"No row has a label: all are marked as unlabeled (-1 for whole numbers, None or NaN otherwise).{advice}")
    return KnownLabels(rows, labels)


def find_targets(y: Any) -> KnownLabels:
    """Return the rows with a number to predict: those that are not NaN."""
    if y is None:
        raise ValueError("This regressor requires y to be passed, but the target y is None.")
    values = column_or_1d(y, warn=True)
    values = check_array(values, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y")
    rows = np.flatnonzero(~np.isnan(values))
    if len(rows) == 0:
        raise ValueError("No row has a target: all of y is NaN, which marks unlabeled rows. Give some rows a number.")
    return KnownLabels(rows, values[rows])


def encode_classes(y: Any, weight: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[np.intp]]:
    """Return the classes of rows of positive weight, sorted [K]; each such row's place among them [n used]; and these rows [n used]."""
    y = column_or_1d(y, warn=True)
    _check_classes(y)
    used = np.flatnonzero(weight > 0)
    classes, codes = np.unique(y[used], return_inverse=True)
    check_at_least_two(classes)
    return classes, codes, used


def _check_classes(labels: NDArray[Any]) -> None:
    """Check labels as scikit-learn does, without its warning that many classes of few rows look like numbers: labels are few here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes")
        check_classification_targets(labels)


def check_at_least_two(classes: NDArray[Any]) -> None:
    """Raise ValueError for a single class, or none."""
    if len(classes) == 0:
        raise ValueError("All rows with a label have weight zero. Give some of them, of two classes at least, a positive weight.")
    if len(classes) < 2:
        raise ValueError(
            f"The labeled rows, but for those of sample_weight zero, have only one class, {classes.tolist()[0]!r}: a classifier needs at "
            "least two. Label some rows of another class."
        )


def missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values are None, NaN or pandas' NA. [n]"""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    return np.array([is_missing(value) for value in values], dtype=bool)


def as_labels(y: Any) -> NDArray[Any]:
    """Return one label per row, as an array: of objects where NumPy would turn NaN into a string, as in a list of strings."""
    numpy_knows = isinstance(getattr(y, "dtype", None), np.dtype)
    return column_or_1d(np.asarray(y) if numpy_knows else np.asarray(y, dtype=object), warn=True)


def _tidy(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels of one kind as an array of this kind, although None or NaN among them had made it one of objects."""
    if labels.dtype.kind != "O" or len(labels) == 0:
        return labels
    kinds = sorted({type(label).__name__ for label in labels})
    if len(kinds) > 1 and "str" in kinds:
        raise ValueError(
            f"y mixes labels of several kinds ({', '.join(kinds)}). Where labels are strings, mark rows without one by None or NaN, not "
            "by -1."
        )
    tidy = np.array(labels.tolist())
    strings = tidy.dtype.kind == "U" and all(isinstance(label, str) for label in labels)
    return tidy if tidy.ndim == 1 and (tidy.dtype.kind in "iufb" or strings) else labels


def _are_whole_numbers(values: NDArray[Any]) -> bool:
    if values.dtype.kind == "f":
        return bool(len(values) > 0 and np.all(values == np.floor(values)))
    return values.dtype.kind in "iu"


def _refuse_minus_one_as_a_class(labels: KnownLabels, n_rows: int) -> None:
    """Raise ValueError for labels −1 and 1 alone: they are likely two classes, and to take −1 for "unlabeled" would be a silent guess."""
    if len(labels.rows) < n_rows and _are_whole_numbers(labels.values) and np.all(labels.values == 1):
        raise ValueError(
            "y has no class but 1 besides -1. Here -1 marks a row without a label, which leaves a single class. If -1 is a class of yours, "
            "call it 0, or use strings; if it is the mark, label some rows of another class."
        )


TargetKind = Literal["class", "number"]


@dataclass(frozen=True, eq=False)
class Target:
    """What is to be predicted."""

    name: str
    kind: TargetKind
    values: NDArray[Any]
    """Numbers with NaN, or texts with None, where it is not known. [n]"""
    is_chosen: bool = False
    """Whether a person said that these are classes, or numbers; else the cells decide."""

    @cached_property
    def is_known(self) -> NDArray[np.bool_]:
        """Which rows have a label. [n]"""
        if self.kind == "number":
            return ~np.isnan(self.values.astype(np.float64))
        return np.array([value is not None for value in self.values], dtype=bool)

    @property
    def labels(self) -> NDArray[Any]:
        """The labels of the rows that have one: numbers, or texts. [n labeled]"""
        return self.values[self.is_known].astype(np.float64 if self.kind == "number" else str)
