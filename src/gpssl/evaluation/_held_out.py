"""Predictions for labeled rows by models that have not seen their labels: they show what error rate to expect."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import _safe_indexing

from .._runtime.progress import Progress
from ._calibration import distribution_at

Array = NDArray[np.float64]
Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]

N_FOLDS = 10


class Labeled(NamedTuple):
    """Rows with their labels or targets, in memory."""

    places: NDArray[np.intp]
    """Where the rows are in the file or table that they come from. [n]"""
    rows: Any
    y: NDArray[Any]
    """[n]"""
    groups: NDArray[Any] | None = None
    """Which rows belong together and are held out together; None where each stands for itself. [n]"""

    @classmethod
    def of(cls, rows: Any, y: Any, groups: NDArray[Any] | None = None) -> Labeled:
        """Return rows and labels that are no part of a larger table."""
        return cls(np.arange(len(y)), rows, np.asarray(y), groups)

    def take(self, places: NDArray[np.intp]) -> Labeled:
        """Return some of the rows, by their places among these."""
        groups = None if self.groups is None else self.groups[places]
        return Labeled(self.places[places], _safe_indexing(self.rows, places), self.y[places], groups)


class HeldOutClasses(NamedTuple):
    """Labeled rows, and the probabilities from models that have not seen their labels."""

    y: NDArray[Any]
    """[n]"""
    proba: Array
    """[n, K]"""
    classes: NDArray[Any]
    """[K]"""
    groups: NDArray[Any] | None = None
    """Which rows belong together and are not independent. [n]"""
    is_judged: NDArray[np.bool_] | None = None
    """False where no model could be trained and all classes are equally probable; None where there is no such row. [n]"""

    @property
    def is_wrong(self) -> NDArray[np.bool_]:
        """Whether the likeliest class is another. [n]"""
        return self.classes[self.proba.argmax(axis=1)] != self.y

    @property
    def certainty(self) -> Array:
        """The probability of the likeliest class. [n]"""
        return self.proba.max(axis=1)

    def independent(self) -> NDArray[np.intp]:
        """Return rows that are independent of each other: all, or a random one of each group."""
        if self.groups is None:
            return np.arange(len(self.y))
        order = np.random.default_rng(0).permutation(len(self.y))
        return np.sort(order[np.unique(self.groups[order], return_index=True)[1]])

    def error_interval(self) -> tuple[float, float]:
        """Return the interval that holds the error rate with 95 % confidence (Wilson's), in which rows of a group count as fewer.

        n_eff = r (1 − r) / Var r, where Var r = G / (G − 1) Σ_g (e_g − r n_g)² / n² is the variance of the rate r over G groups with e_g
        errors in n_g rows; at least G and at most n.
        """
        rate, n_rows = float(self.is_wrong.mean()), len(self.y)
        if self.groups is None:
            return _wilson(rate, n_rows)
        _, group = np.unique(self.groups, return_inverse=True)
        n_groups = int(group.max()) + 1
        excess = np.bincount(group, self.is_wrong - rate)
        variance = n_groups / max(1, n_groups - 1) * float((excess**2).sum()) / n_rows**2
        effective = rate * (1 - rate) / variance if variance > 0 else n_groups
        return _wilson(rate, min(max(effective, n_groups), n_rows))


def _wilson(rate: float, n_rows: float) -> tuple[float, float]:
    """Return (r + z²/2n ± z sqrt(r (1 − r) / n + z²/4n²)) / (1 + z²/n),   z = 1.96."""
    z = float(ndtri(0.975))
    middle, width = rate + z**2 / (2 * n_rows), z * np.sqrt(rate * (1 - rate) / n_rows + z**2 / (4 * n_rows**2))
    return float((middle - width) / (1 + z**2 / n_rows)), float((middle + width) / (1 + z**2 / n_rows))


class HeldOutNumbers(NamedTuple):
    """Rows with a target, and the predictions of models that have not seen it."""

    y: Array
    mean: Array
    std: Array
    level: Array
    """Predicted distribution function at the target: see `distribution_at`. [n]"""

    def interval_coverage(self, nominal: float) -> float:
        """Return the share of targets in the central interval of this probability."""
        return float((np.abs(self.level - 0.5) <= nominal / 2).mean())


def probabilities_of(model: Any, rows: Any, classes: NDArray[Any]) -> Array:
    """Return the probability of each of `classes`, which is zero for a class that the model has not seen. [n, K]

    `classes` are sorted and hold those of the model.
    """
    predicted = model.predict_proba(rows)
    proba = np.zeros((len(predicted), len(classes)))
    proba[:, np.searchsorted(classes, model.classes_)] = predicted
    return proba


def hold_out_classes(
    model: Any,
    rows: Any,
    y: NDArray[Any],
    *,
    groups: NDArray[Any] | None = None,
    n_folds: int = N_FOLDS,
    random_state: int | None = 0,
    task: str = "cross-validation",
) -> HeldOutClasses:
    """Return each labeled row's probabilities by a model that was trained without it, and without its group.

    A class that is missing from a training fold has probability zero there, so that its rows count as errors. Where a fold leaves fewer
    than two classes to learn from, all are equally probable. `random_state` shuffles the rows before they are dealt to folds; None deals
    them in their order. Progress is shown under the name `task`.
    """
    classes = np.unique(y)
    proba = np.full((len(y), len(classes)), 1 / len(classes))
    is_judged = np.zeros(len(y), dtype=bool)
    for training, held_out in _counted(_class_folds(y, groups, n_folds, random_state), task):
        if len(held_out) == 0 or len(np.unique(y[training])) < 2:
            continue
        fitted = clone(model).fit(_safe_indexing(rows, training), y[training])
        proba[held_out] = probabilities_of(fitted, _safe_indexing(rows, held_out), classes)
        is_judged[held_out] = True
    if not is_judged.any():
        raise ValueError(
            f"{len(y)} labels are too few to hold some of them out: label at least two rows of two classes"
            f"{'' if groups is None else ', in several groups'}."
        )
    return HeldOutClasses(y, proba, classes, groups, is_judged)


def hold_out_numbers(
    model: Any,
    rows: Any,
    y: Array,
    *,
    groups: NDArray[Any] | None = None,
    random_state: int | None = 0,
    task: str = "cross-validation",
) -> HeldOutNumbers:
    """Return each labeled row's prediction by a model that was trained without it, and without its group."""
    mean, std, level = np.empty(len(y)), np.empty(len(y)), np.empty(len(y))
    for training, held_out in _counted(_number_folds(y, groups, random_state), task):
        fitted = clone(model).fit(_safe_indexing(rows, training), y[training])
        means, stds = fitted.predict_draws(_safe_indexing(rows, held_out))
        mean[held_out] = means.mean(axis=0)
        std[held_out] = np.sqrt((stds**2).mean(axis=0) + means.var(axis=0))
        level[held_out] = distribution_at(y[held_out], means, stds)
    return HeldOutNumbers(y, mean, std, level)


def _class_folds(y: NDArray[Any], groups: NDArray[Any] | None, n_folds: int, random_state: int | None) -> Folds:
    commonest = int(np.unique(y, return_counts=True)[1].max())
    n_groups = commonest if groups is None else len(np.unique(groups))
    n_folds = min(n_folds, commonest, n_groups)
    if n_folds < 2:
        return []
    splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")  # its rows then count as errors
        return _deal(splitter, n_folds, random_state, y, groups)


def _number_folds(y: Array, groups: NDArray[Any] | None, random_state: int | None) -> Folds:
    n_groups = len(y) if groups is None else len(np.unique(groups))
    n_folds = min(N_FOLDS, n_groups)
    if n_folds < 2 or len(y) < 4:
        what = f"{len(y)} rows with a number" if groups is None else f"Rows with a number in {n_groups} group(s)"
        raise ValueError(f"{what} are too few to hold some of them out: fill in more cells.")
    return _deal(KFold if groups is None else GroupKFold, n_folds, random_state, y, groups)


def _deal(splitter: Any, n_folds: int, random_state: int | None, y: NDArray[Any], groups: NDArray[Any] | None) -> Folds:
    folds = splitter(n_folds, shuffle=random_state is not None, random_state=random_state)
    return list(folds.split(np.zeros(len(y)), y, groups))


def _counted(folds: Folds, task: str) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    progress = Progress(task, len(folds), unit="folds")
    for fold in folds:
        yield fold
        progress.advance(1)
    progress.finish()
