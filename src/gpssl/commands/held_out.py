"""Predictions for labelled rows by models that have not seen their labels: what error rate to expect."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import _safe_indexing

from ..progress import Progress
from .subject import Labelled

Array = NDArray[np.float64]
Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]

N_FOLDS = 10


class HeldOutClasses(NamedTuple):
    """Labelled rows, and the probabilities that models without their labels give."""

    y: NDArray[Any]
    """[n]"""
    proba: Array
    """[n, K]"""
    classes: NDArray[Any]
    """[K]"""

    @property
    def is_wrong(self) -> NDArray[np.bool_]:
        """Whether the likeliest class is another. [n]"""
        return self.classes[self.proba.argmax(axis=1)] != self.y

    @property
    def certainty(self) -> Array:
        """The probability of the likeliest class. [n]"""
        return self.proba.max(axis=1)


class HeldOutNumbers(NamedTuple):
    """Rows with a target, and the predictions of models without it."""

    y: Array
    mean: Array
    std: Array
    level: Array
    """Predicted distribution function at the target, (1/S) Σ_s Φ((y − μ_s) / σ_s): uniform where predictions can be believed. [n]"""

    def interval_coverage(self, nominal: float) -> float:
        """Share of targets in the central interval of this probability."""
        return float((np.abs(self.level - 0.5) <= nominal / 2).mean())


class Share(NamedTuple):
    """How often something happened, and where its rate may be with 95 % confidence (Wilson's interval)."""

    n_times: int
    n_rows: int
    low: float
    high: float

    @property
    def rate(self) -> float:
        """n_times / n_rows."""
        return self.n_times / self.n_rows if self.n_rows else float("nan")

    @classmethod
    def of(cls, happened: NDArray[np.bool_]) -> Share:
        """Of these rows."""
        if len(happened) == 0:
            return cls(0, 0, 0.0, 1.0)
        interval = binomtest(int(happened.sum()), len(happened)).proportion_ci(0.95, "wilson")
        return cls(int(happened.sum()), len(happened), float(interval.low), float(interval.high))


def hold_out_classes(model: Any, labelled: Labelled, seed: int, task: str = "cross-validation") -> HeldOutClasses:
    """Each labelled row's probabilities by a model that was trained without it, and without its group.

    A class that is missing from a training fold has probability zero there, so that its rows count as errors. Rows whose fold leaves
    fewer than two classes to learn from are left out.
    """
    classes = np.unique(labelled.y)
    proba = np.full((len(labelled.y), len(classes)), np.nan)
    for training, held_out in _counted(_class_folds(labelled, seed), task):
        if len(np.unique(labelled.y[training])) < 2:
            continue
        fitted = clone(model).fit(_safe_indexing(labelled.rows, training), labelled.y[training])
        proba[held_out] = 0.0
        proba[np.ix_(held_out, np.searchsorted(classes, fitted.classes_))] = fitted.predict_proba(_safe_indexing(labelled.rows, held_out))
    judged = ~np.isnan(proba[:, 0])
    if not judged.any():
        raise ValueError(
            f"{len(labelled.y)} labels are too few to hold some of them out: label at least two rows of two classes"
            f"{'' if labelled.groups is None else ', in several groups'}."
        )
    return HeldOutClasses(labelled.y[judged], proba[judged], classes)


def hold_out_numbers(model: Any, labelled: Labelled, seed: int, task: str = "cross-validation") -> HeldOutNumbers:
    """Each labelled row's prediction by a model that was trained without it, and without its group."""
    n_rows = len(labelled.y)
    mean, std, level = np.empty(n_rows), np.empty(n_rows), np.empty(n_rows)
    for training, held_out in _counted(_number_folds(labelled, seed), task):
        fitted = clone(model).fit(_safe_indexing(labelled.rows, training), labelled.y[training])
        means, stds = fitted.predict_draws(_safe_indexing(labelled.rows, held_out))
        mean[held_out] = means.mean(axis=0)
        std[held_out] = np.sqrt((stds**2).mean(axis=0) + means.var(axis=0))
        level[held_out] = ndtr((labelled.y[held_out] - means) / stds).mean(axis=0)
    return HeldOutNumbers(labelled.y, mean, std, level)


def _class_folds(labelled: Labelled, seed: int) -> Folds:
    commonest = int(np.unique(labelled.y, return_counts=True)[1].max())
    n_groups = commonest if labelled.groups is None else len(np.unique(labelled.groups))
    n_folds = min(N_FOLDS, commonest, n_groups)
    if n_folds < 2:
        return []
    splitter = StratifiedKFold if labelled.groups is None else StratifiedGroupKFold
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")  # its rows then count as errors
        return list(splitter(n_folds, shuffle=True, random_state=seed).split(np.zeros(len(labelled.y)), labelled.y, labelled.groups))


def _number_folds(labelled: Labelled, seed: int) -> Folds:
    n_groups = len(labelled.y) if labelled.groups is None else len(np.unique(labelled.groups))
    n_folds = min(N_FOLDS, n_groups)
    if n_folds < 2 or len(labelled.y) < 4:
        raise ValueError(f"{len(labelled.y)} rows with a number are too few to hold some of them out: fill in more cells.")
    splitter = KFold if labelled.groups is None else GroupKFold
    return list(splitter(n_folds, shuffle=True, random_state=seed).split(np.zeros(len(labelled.y)), labelled.y, labelled.groups))


def _counted(folds: Folds, task: str) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    progress = Progress(task, len(folds), enabled=False, unit="folds")
    for fold in folds:
        yield fold
        progress.advance(1)
    progress.finish()
