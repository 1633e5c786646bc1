"""Who sees which rows and labels where methods compete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation._held_out import Labeled
from ..workflows._subject import Subject

Places = NDArray[np.intp]


def split_seed(seed: int, number: int) -> int:
    """Return the seed of the split with this number: a whole number that differs between splits and between seeds."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0] // 2)


def divide(
    y: NDArray[Any], groups: NDArray[Any] | None, share: float, permute: Callable[[NDArray[Any]], NDArray[Any]], *, stratify: bool
) -> tuple[Places, Places]:
    """Return places to train on and places to judge by: about this share of each class, of all rows, or of all groups is judged by.

    `permute` puts rows or groups into an order of chance, of which the first are judged by; a generator's `permutation` does it. No group
    is on both sides. Rows of a held-out group whose class no other group has are on neither side if classes are stratified: nothing can
    be said of a class that is not trained on.
    """
    if groups is not None:
        units = np.unique(groups)
        n_held_out = min(max(1, round(share * len(units))), len(units) - 1)
        held_out = np.isin(groups, permute(units)[:n_held_out])
        known = np.isin(y, y[~held_out]) | (not stratify)
        return np.flatnonzero(~held_out), np.flatnonzero(held_out & known)
    strata = [np.flatnonzero(y == value) for value in np.unique(y)] if stratify else [np.arange(len(y))]
    test = [permute(rows)[: min(round(share * len(rows)), len(rows) - 1)] for rows in strata]
    judged = np.isin(np.arange(len(y)), np.concatenate(test))
    return np.flatnonzero(~judged), np.flatnonzero(judged)


def can_train(y: NDArray[Any], *, regression: bool) -> bool:
    """Return whether heads can be trained: on at least two numbers, or two classes."""
    return len(y) > 1 if regression else len(np.unique(y)) > 1


def at_most(subject: Subject, labeled: Labeled, max_rows: int, seed: int) -> tuple[Any, Labeled]:
    """Return all rows, in the order of the file, and those with a label.

    Of a table with more than `max_rows`, take a random sample, of which labeled rows are half at most; a note says so.
    """
    if subject.n_rows <= max_rows:
        return subject.rows_at(np.arange(subject.n_rows)), labeled
    rng = np.random.default_rng(seed)
    n_labels = len(labeled.y)
    chosen = np.sort(rng.choice(n_labels, min(n_labels, max_rows // 2), replace=False))
    others = np.setdiff1d(np.arange(subject.n_rows), labeled.places[chosen])
    others = rng.choice(others, max_rows - len(chosen), replace=False)
    subject.notes.append(f"Compared on {max_rows:,} of {subject.n_rows:,} rows, with {len(chosen):,} of {n_labels:,} labels.")
    return subject.rows_at(np.union1d(labeled.places[chosen], others)), labeled.take(chosen)
