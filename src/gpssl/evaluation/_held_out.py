"""Predictions for labeled rows by models that have not seen their labels."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import _safe_indexing

from .._runtime.progress import Progress
from ..data._labels import Target
from ._calibration import component_weights, distribution_at, log_density, mixture_moments

Array = NDArray[np.float64]
Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]
WatchFold = Callable[[Any, NDArray[np.intp]], None]
"""Called with a model, and the places of labeled rows that it has not seen."""

N_FOLDS = 10
NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")


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
    fold: NDArray[np.intp] | None = None
    """Which rows were held out together; −1 where no model could be trained. [n]"""

    @property
    def is_wrong(self) -> NDArray[np.bool_]:
        """Whether the likeliest class is another. [n]"""
        return self.classes[self.proba.argmax(axis=1)] != self.y

    @property
    def certainty(self) -> Array:
        """The probability of the likeliest class. [n]"""
        return self.proba.max(axis=1)

    def take(self, places: NDArray[np.intp]) -> HeldOutClasses:
        """Return some of the rows; their classes stay all classes."""
        return _take(self, places, whole=("classes",))

    def independent(self) -> NDArray[np.intp]:
        """Return rows that are independent of each other: all, or a random one of each group."""
        if self.groups is None:
            return np.arange(len(self.y))
        order = np.random.default_rng(0).permutation(len(self.y))
        return np.sort(order[np.unique(self.groups[order], return_index=True)[1]])

    def error_interval(self, weight: Array | None = None) -> tuple[float, float]:
        """Return the interval that holds the error rate with 95 % confidence (Wilson's), in which rows of a group count as fewer.

        As many as `effective_rows` says: n_eff = r (1 − r) / Var r for the error rate r. With weights, (Σ w)² / Σ w² in the place of n.
        """
        wrong = self.is_wrong.astype(np.float64)
        n_rows = len(self.y) if self.groups is None else effective_rows(wrong, self.groups)
        if weight is None:
            return _wilson(float(wrong.mean()), n_rows)
        share = float(weight.sum() ** 2 / (weight**2).sum()) / len(weight)
        return _wilson(float(np.average(wrong, weights=weight)), n_rows * share)


def effective_rows(values: Array, groups: NDArray[Any]) -> float:
    """Return how many independent rows would give a mean that is as certain, where rows of a group are alike.

    n_eff = Var v / Var v̄, where Var v̄ = G / (G − 1) Σ_g (Σ_{n in g} (v_n − v̄))² / n² is the variance of the mean over G groups; at least
    G and at most n.
    """
    _, group = np.unique(groups, return_inverse=True)
    n_groups, n_rows = int(group.max()) + 1, len(values)
    excess = np.bincount(group, values - values.mean())
    variance = n_groups / max(1, n_groups - 1) * float((excess**2).sum()) / n_rows**2
    effective = float(values.var()) / variance if variance > 0 else n_groups
    return min(max(effective, n_groups), n_rows)


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
    log_density: Array | None = None
    """Logarithm of the predicted density at the target. [n]"""
    fold: NDArray[np.intp] | None = None
    """Which rows were held out together. [n]"""

    def take(self, places: NDArray[np.intp]) -> HeldOutNumbers:
        """Return some of the rows."""
        return _take(self, places)

    def interval_coverage(self, nominal: float) -> float:
        """Return the share of targets in the central interval of this probability."""
        return float((np.abs(self.level - 0.5) <= nominal / 2).mean())


def _take(held_out: Any, places: NDArray[np.intp], whole: Sequence[str] = ()) -> Any:
    """Return the same with these places of all arrays but those that are about all rows."""
    arrays = {name: value for name, value in held_out._asdict().items() if value is not None and name not in whole}
    return held_out._replace(**{name: value[places] for name, value in arrays.items()})


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
    watch: WatchFold | None = None,
) -> HeldOutClasses:
    """Return each labeled row's probabilities by a model that was trained without it, and without its group.

    A class that is missing from a training fold has probability zero there, so that its rows count as errors. Where a fold leaves fewer
    than two classes to learn from, all are equally probable. `random_state` shuffles the rows before they are dealt to folds; None deals
    them in their order. Progress is shown under the name `task`. `watch` is called with the model of each fold and the places of its
    rows, while the model is there.
    """
    classes = np.unique(y)
    proba = np.full((len(y), len(classes)), 1 / len(classes))
    is_judged = np.zeros(len(y), dtype=bool)
    commonest = int(np.unique(y, return_counts=True)[1].max())
    folds = _folds(StratifiedKFold if groups is None else StratifiedGroupKFold, min(n_folds, commonest), y, groups, random_state)
    folds = [(training, held_out) for training, held_out in folds if len(held_out) > 0 and len(np.unique(y[training])) > 1]
    fold = np.full(len(y), -1)
    for number, (fitted, held_out) in enumerate(_models_of_folds(model, rows, y, folds, task, watch)):
        proba[held_out] = probabilities_of(fitted, _safe_indexing(rows, held_out), classes)
        is_judged[held_out], fold[held_out] = True, number
    if not is_judged.any():
        raise ValueError(
            f"{len(y)} labels are too few to hold some of them out: label at least two rows of two classes"
            f"{'' if groups is None else ', in several groups'}."
        )
    return HeldOutClasses(y, proba, classes, groups, is_judged, fold)


def hold_out_numbers(
    model: Any,
    rows: Any,
    y: Array,
    *,
    groups: NDArray[Any] | None = None,
    random_state: int | None = 0,
    task: str = "cross-validation",
    watch: WatchFold | None = None,
) -> HeldOutNumbers:
    """Return each labeled row's prediction by a model that was trained without it, and without its group."""
    folds = _folds(KFold if groups is None else GroupKFold, N_FOLDS, y, groups, random_state)
    if not folds or len(y) < 4:
        what = f"{len(y)} rows with a number" if groups is None else f"Rows with a number in {len(np.unique(groups))} group(s)"
        raise ValueError(f"{what} are too few to hold some of them out: fill in more cells.")
    mean, std, level, density = np.empty((4, len(y)))
    fold = np.empty(len(y), dtype=np.intp)
    for number, (fitted, held_out) in enumerate(_models_of_folds(model, rows, y, folds, task, watch)):
        means, stds = fitted.predict_draws(_safe_indexing(rows, held_out))
        weights = component_weights(fitted)
        mean[held_out], within, between = mixture_moments(means, stds, weights)
        std[held_out] = np.sqrt(within + between)
        level[held_out] = distribution_at(y[held_out], means, stds, weights)
        density[held_out] = log_density(y[held_out], means, stds, weights=weights)
        fold[held_out] = number
    return HeldOutNumbers(y, mean, std, level, density, fold)


def _folds(splitter: Any, n_folds: int, y: NDArray[Any], groups: NDArray[Any] | None, random_state: int | None) -> Folds:
    """Deal the rows to at most `n_folds` folds; return none where they are too few for two."""
    n_folds = min(n_folds, len(y) if groups is None else len(np.unique(groups)))
    if n_folds < 2:
        return []
    folds = splitter(n_folds, shuffle=random_state is not None, random_state=random_state)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")  # its rows then count as errors
        return list(folds.split(np.zeros(len(y)), y, groups))


def _models_of_folds(
    model: Any, rows: Any, y: NDArray[Any], folds: Folds, task: str, watch: WatchFold | None
) -> Iterator[tuple[Any, NDArray[np.intp]]]:
    """Yield, for each fold, a model that was fitted without it, and its rows."""
    parts = [training for training, _ in folds]
    # Models that know how share between folds what does not depend on labels.
    models = model.fit_parts(rows, y, parts) if hasattr(model, "fit_parts") else _fit_parts(model, rows, y, parts)
    for _, held_out in Progress(task, len(folds), unit="folds").each(folds):
        fitted = next(models)
        yield fitted, held_out
        if watch is not None:
            watch(fitted, held_out)


def _fit_parts(model: Any, rows: Any, y: NDArray[Any], parts: Sequence[NDArray[np.intp]]) -> Iterator[Any]:
    """Yield a clone of the model that is fitted to each part of the rows."""
    for part in parts:
        yield clone(model).fit(_safe_indexing(rows, part), y[part])


def check_labels(target: Target, file: str, notes: list[str]) -> None:
    """Raise ValueError for labels that nothing can be learned from, and add a note for labels that little can be learned from."""
    labels = target.labels
    if len(labels) == 0:
        raise ValueError(f"No row of {file} has a label in {target.name!r}: fill in some of its cells.")
    values, counts = np.unique(labels, return_counts=True)
    if len(values) < 2:
        raise ValueError(
            f"All {len(labels)} labels in {target.name!r} are {values[0]!s}: there is nothing to tell apart. Label rows of another "
            "class, or choose another column."
        )
    if target.kind == "class" and counts.min() == 1:
        rare = ", ".join(map(str, values[counts == 1][:5]))
        notes.append(f"Classes with a single labeled row count as errors when it is held out: {rare}.")
    if target.kind == "class" and len(values) > len(labels) / 2:
        are_numbers = all(NUMBER.fullmatch(str(value)) for value in values)
        advice = " If they are numbers, pass target_kind='number'." if are_numbers and not target.is_chosen else ""
        notes.append(f"{target.name!r} has {len(values)} classes for {len(labels)} labels.{advice}")


def hold_out(model: Any, target: Target, labeled: Labeled, seed: int, watch: WatchFold | None = None) -> HeldOutClasses | HeldOutNumbers:
    """Return what models predict for labels that they have not seen."""
    of_kind: Any = hold_out_classes if target.kind == "class" else hold_out_numbers
    held_out: HeldOutClasses | HeldOutNumbers = of_kind(
        model, labeled.rows, labeled.y, groups=labeled.groups, random_state=seed, watch=watch
    )
    return held_out
