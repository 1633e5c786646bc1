"""The rules of the experiments with few labels: which rows have a label, and how probabilities for the others are scored.

All rows of a sample are known, few of their labels are: a method learns from all rows and these labels, and predicts the rows without one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpssl.comparison import numbers_from, split_seed
from gpssl.evaluation import aurc, expected_calibration_error

from .data.examples import Examples

Array = NDArray[np.float64]

MAX_ROWS = 1000
N_LABELS = (10, 30, 100)
UNLABELED = -1
LEAST_PROBABILITY = 1e-6
"""Smaller probabilities count as this one in log losses, for all methods alike: a sure error costs 13.8 and not infinity."""


@dataclass(frozen=True)
class Split:
    """A sample of a table. Methods see the rows, and of `y` only what `marked` shows."""

    frame: Any
    """The rows as a data frame of numbers and categories. [n]"""
    numbers: Array
    """The same rows as numbers: standardized, gaps filled with means, a column of zeros and ones for each category. [n, D]"""
    y: NDArray[np.intp]
    """Classes of the sample, numbered from 0. [n]"""
    order: NDArray[np.intp]
    """The rows in the order in which they get their labels. [n]"""
    seed: int
    """The seed of everything random in this sample."""

    @property
    def n_classes(self) -> int:
        """How many classes the sample has."""
        return int(self.y.max()) + 1

    def marked(self, n_labels: int) -> NDArray[np.intp]:
        """Return the first labels, and −1 for all other rows. [n]"""
        y = np.full(len(self.y), UNLABELED)
        y[self.order[:n_labels]] = self.y[self.order[:n_labels]]
        return y


def few_labels_split(table: Examples, split: int, seed: int = 0) -> Split:
    """Draw at most `MAX_ROWS` rows, and the order in which they get labels, which is drawn anew until the first ten have two classes."""
    own_seed = split_seed(seed, split)
    rng = np.random.default_rng(own_seed)
    rows = rng.permutation(len(table.y))[:MAX_ROWS]
    frame = table.X.iloc[rows].reset_index(drop=True)
    classes, y = np.unique(table.y[rows], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"All {len(rows)} rows drawn from {table.name} are of one class: there is nothing to tell apart.")
    return Split(frame, numbers_of(frame), y.astype(np.intp), _label_order(y, rng), own_seed)


def numbers_of(frame: Any) -> Array:
    """Return the rows as numbers of comparable size, of which a category is a column for each level. [n, D]"""
    filled = frame.assign(**{name: _gaps_named(frame[name]) for name in frame.columns[frame.dtypes == "category"]})
    return np.asarray(numbers_from(filled).fit_transform(filled), dtype=np.float64)


def _gaps_named(column: Any) -> Any:
    """Return a column of categories in which a gap is a category of its own."""
    return column.cat.add_categories("(missing)").fillna("(missing)") if column.isna().any() else column


def _label_order(y: NDArray[Any], rng: np.random.Generator) -> NDArray[np.intp]:
    order = rng.permutation(len(y))
    while len(np.unique(y[order[: N_LABELS[0]]])) < 2:
        order = rng.permutation(len(y))
    return order


def all_classes(proba: Array, marked: NDArray[np.intp], n_classes: int) -> Array:
    """Return probabilities of all classes, from those of the classes with a label: the others get zero. [n, K]"""
    every = np.zeros((len(proba), n_classes))
    every[:, np.unique(marked[marked != UNLABELED])] = proba
    return every


def score(truth: NDArray[np.intp], proba: Array, marked: NDArray[np.intp]) -> dict[str, float]:
    """Return the scores of probabilities [n, K] for rows without a label, whose classes are `truth` [n].

    What a class without any label costs in "log loss" is luck of the draw, and the same for all methods; "log loss (seen)" is over the
    rows of classes with a label.
    """
    losses = -np.log(np.maximum(proba[np.arange(len(truth)), truth], LEAST_PROBABILITY))
    seen = np.isin(truth, marked[marked != UNLABELED])
    classes = np.arange(proba.shape[1])
    return {
        "accuracy": float((proba.argmax(axis=1) == truth).mean()),
        "log loss": float(losses.mean()),
        "log loss (seen)": float(losses[seen].mean()),
        "AURC": aurc(truth, proba, labels=classes),
        "ECE": expected_calibration_error(truth, proba, labels=classes),
    }
