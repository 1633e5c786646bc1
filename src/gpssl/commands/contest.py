"""Who sees which rows and labels where methods compete on a person's table, and how each chooses its settings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from ..experiments.methods import Model
from ..experiments.protocol import by_accuracy, by_likelihood, validate
from ..experiments.splits import LabelledRows
from .subject import Labelled, Subject

Places = NDArray[np.intp]

HELD_OUT_SHARE = 0.2
FEWEST_TO_CHOOSE_BY = 20
"""Labels: with fewer, methods keep their defaults."""
MAX_ROWS = 3000
"""Kernel PCA needs a matrix of rows by rows."""


def at_most(subject: Subject, labelled: Labelled, max_rows: int, seed: int) -> tuple[Any, Labelled]:
    """All rows; of a large table a random part, in which labelled rows come first."""
    rng = np.random.default_rng(seed)
    chosen = np.arange(len(labelled.y))
    if len(chosen) > max_rows // 2:
        chosen = np.sort(rng.choice(chosen, max_rows // 2, replace=False))
    others = np.setdiff1d(np.arange(subject.n_rows), labelled.places)
    unused = np.setdiff1d(labelled.places, labelled.places[chosen])
    others = np.concatenate([others, unused])
    n_others = min(len(others), max_rows - len(chosen))
    if n_others < len(others):
        others = rng.choice(others, n_others, replace=False)
        subject.notes.append(f"Compared on {len(chosen) + n_others:,} of {subject.n_rows:,} rows, with {len(chosen):,} of the labels.")
    rows = subject.rows_at(np.union1d(labelled.places[chosen], others))
    groups = None if labelled.groups is None else labelled.groups[chosen]
    return rows, Labelled(labelled.places[chosen], _safe_indexing(labelled.rows, chosen), labelled.y[chosen], groups)


def choose(models: list[Model], labelled: Labelled, places: Places, seed: int, *, regression: bool) -> Model:
    """The candidate that is best on a fifth of these labels, trained on the others."""
    if len(models) == 1 or len(places) < FEWEST_TO_CHOOSE_BY:
        return models[0]
    rng = np.random.default_rng([seed, 1])
    training, held_out = divide(_part(labelled, places), HELD_OUT_SHARE, rng, stratify=not regression)
    if len(held_out) == 0:
        return models[0]
    rows = [take(labelled, places[chosen]) for chosen in (training, held_out)]
    criterion = by_likelihood if regression else by_accuracy
    validations = [criterion(validate(model.estimator, rows[0], rows[1])) for model in models]
    return models[max(range(len(models)), key=lambda place: validations[place])]


def divide(labelled: Labelled, share: float, rng: np.random.Generator, *, stratify: bool) -> tuple[Places, Places]:
    """Places to train on and places to judge by. Of each class, or of all, or of all groups, about this share is judged by."""
    if labelled.groups is not None:
        units = np.unique(labelled.groups)
        judged = np.isin(labelled.groups, rng.permutation(units)[: max(1, round(share * len(units)))])
        judged &= np.isin(labelled.y, labelled.y[~judged]) | (not stratify)  # nothing can be said of a class that is not trained on
        return np.flatnonzero(~judged), np.flatnonzero(judged)
    strata = [np.flatnonzero(labelled.y == value) for value in np.unique(labelled.y)] if stratify else [np.arange(len(labelled.y))]
    test = [rng.permutation(rows)[: min(round(share * len(rows)), len(rows) - 1)] for rows in strata]
    judged = np.isin(np.arange(len(labelled.y)), np.concatenate(test))
    return np.flatnonzero(~judged), np.flatnonzero(judged)


def _part(labelled: Labelled, rows: Places) -> Labelled:
    groups = None if labelled.groups is None else labelled.groups[rows]
    return Labelled(labelled.places[rows], None, labelled.y[rows], groups)


def take(labelled: Labelled, rows: Places) -> LabelledRows:
    """Some of the labelled rows."""
    return LabelledRows(_safe_indexing(labelled.rows, rows), labelled.y[rows])
