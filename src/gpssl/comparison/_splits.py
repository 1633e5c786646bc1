"""Who sees which rows and labels where methods compete on a person's table, and how each chooses its settings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from experiments.methods import Model
from experiments.protocol import by_accuracy, by_likelihood, validate
from experiments.splits import LabeledRows

from ..evaluation._held_out import Labeled
from ..workflows._subject import Subject

Places = NDArray[np.intp]

HELD_OUT_SHARE = 0.2
FEWEST_TO_CHOOSE_BY = 20
"""Labels: with fewer, methods keep their defaults."""
MAX_ROWS = 3000
"""Kernel PCA needs a matrix of rows by rows."""


def at(labeled: Labeled, places: Places) -> Labeled:
    """Some of the labeled rows, by their places among these."""
    groups = None if labeled.groups is None else labeled.groups[places]
    return Labeled(labeled.places[places], _safe_indexing(labeled.rows, places), labeled.y[places], groups)


def take(labeled: Labeled, places: Places) -> LabeledRows:
    """Rows and labels of some of the labeled rows, as models take them."""
    some = at(labeled, places)
    return LabeledRows(some.rows, some.y)


def at_most(subject: Subject, labeled: Labeled, max_rows: int, seed: int) -> tuple[Any, Labeled]:
    """All rows, in the order of the file, and those with a label.

    Of a table with more than `max_rows`, a random part, of which labeled rows are half at most; a note says so.
    """
    if subject.n_rows <= max_rows:
        return subject.rows_at(np.arange(subject.n_rows)), labeled
    rng = np.random.default_rng(seed)
    n_labels = len(labeled.y)
    chosen = np.sort(rng.choice(n_labels, min(n_labels, max_rows // 2), replace=False))
    others = np.setdiff1d(np.arange(subject.n_rows), labeled.places[chosen])
    others = rng.choice(others, max_rows - len(chosen), replace=False)
    subject.notes.append(f"Compared on {max_rows:,} of {subject.n_rows:,} rows, with {len(chosen):,} of {n_labels:,} labels.")
    return subject.rows_at(np.union1d(labeled.places[chosen], others)), at(labeled, chosen)


def choose(models: list[Model], labeled: Labeled, places: Places, seed: int, *, regression: bool) -> Model:
    """The candidate that is best on a fifth of these labels, trained on the others; the first where too few are left for either."""
    if len(models) == 1 or len(places) < FEWEST_TO_CHOOSE_BY:
        return models[0]
    rng = np.random.default_rng([seed, 1])
    training, held_out = divide(at(labeled, places), HELD_OUT_SHARE, rng, stratify=not regression)
    if len(held_out) == 0 or not can_train(labeled.y[places[training]], regression=regression):
        return models[0]
    rows = [take(labeled, places[chosen]) for chosen in (training, held_out)]
    criterion = by_likelihood if regression else by_accuracy
    validations = [criterion(validate(model.estimator, rows[0], rows[1])) for model in models]
    return models[max(range(len(models)), key=lambda place: validations[place])]


def can_train(y: NDArray[Any], *, regression: bool) -> bool:
    """Two numbers, or two classes, are the least that heads are trained on."""
    return len(y) > 1 if regression else len(np.unique(y)) > 1


def divide(labeled: Labeled, share: float, rng: np.random.Generator, *, stratify: bool) -> tuple[Places, Places]:
    """Places to train on and places to judge by. Of each class, or of all, or of all groups, about this share is judged by.

    No group is on both sides. Rows of a held-out group whose class no other group has are on neither: nothing can be said of a class that
    is not trained on.
    """
    if labeled.groups is not None:
        units = np.unique(labeled.groups)
        n_held_out = min(max(1, round(share * len(units))), len(units) - 1)
        held_out = np.isin(labeled.groups, rng.permutation(units)[:n_held_out])
        known = np.isin(labeled.y, labeled.y[~held_out]) | (not stratify)
        return np.flatnonzero(~held_out), np.flatnonzero(held_out & known)
    strata = [np.flatnonzero(labeled.y == value) for value in np.unique(labeled.y)] if stratify else [np.arange(len(labeled.y))]
    test = [rng.permutation(rows)[: min(round(share * len(rows)), len(rows) - 1)] for rows in strata]
    judged = np.isin(np.arange(len(labeled.y)), np.concatenate(test))
    return np.flatnonzero(~judged), np.flatnonzero(judged)
