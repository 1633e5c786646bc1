"""Which rows to label next, and why: uncertain ones that are unlike what is labeled or suggested already."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples, check_consistent_length

from .._runtime import percent
from .._validation import check_number, seed_from
from ..data._labels import UNLABELED, as_labels, missing
from ._greedy import Chosen, Nearest, choose, squared_distances
from ._representation import represent

Array = NDArray[np.float64]

LEAST_UNCERTAINTY = 0.05
"""What a row counts at least however sure its prediction is: predictions are sure of classes that no label has named, too."""
UNSURE = 0.5
"""A difference of the two largest probabilities below which a row is "between" two classes."""
FAR = 0.75
"""The share of the rows without a label that are nearer to a labeled row, from which on a row is called unlike any."""
MOST_COMPARED = 2000
"""Labeled rows whose distances to each other are looked at."""
ALONE = 2
"""A row that is typical of fewer is unusual."""


class Beliefs(NamedTuple):
    """What a model predicts for all rows."""

    predicted: NDArray[Any]
    """[n]"""
    uncertainty: Array
    """How little is known: 1 − (p₁ − p₂) for classes, p₁ and p₂ being the largest probabilities; a standard deviation for numbers. [n]"""
    proba: Array | None = None
    """[n, K], for classes."""
    classes: NDArray[Any] | None = None
    """[K]"""

    @classmethod
    def of(cls, model: Any, X: Any) -> Beliefs:
        """Predict all rows. Raise TypeError for a model that does not say how sure it is."""
        if hasattr(model, "predict_proba"):
            return cls.of_classes(np.asarray(model.predict_proba(X), dtype=np.float64), np.asarray(model.classes_))
        mean, std = _mean_and_std(model, X)
        return cls(np.asarray(mean, dtype=np.float64), np.asarray(std, dtype=np.float64))

    @classmethod
    def of_classes(cls, proba: Array, classes: NDArray[Any]) -> Beliefs:
        """Return what probabilities [n, K] say."""
        largest = np.sort(proba, axis=1)[:, ::-1]
        second = largest[:, 1] if proba.shape[1] > 1 else np.zeros(len(proba))
        return cls(classes[proba.argmax(axis=1)], 1 - (largest[:, 0] - second), proba, classes)

    @classmethod
    def joined(cls, parts: Sequence[Beliefs]) -> Beliefs:
        """Return those of consecutive parts as one."""
        proba = None if parts[0].proba is None else np.concatenate([part.proba for part in parts if part.proba is not None])
        predicted, uncertainty = (np.concatenate([part[field] for part in parts]) for field in (0, 1))
        return cls(predicted, uncertainty, proba, parts[0].classes)


def _mean_and_std(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the predictive mean and standard deviation of a regressor."""
    if hasattr(model, "predict_distribution"):
        found = model.predict_distribution(X)
        return found.mean, found.std
    if hasattr(model, "predict"):
        try:
            mean, std = model.predict(X, return_std=True)
        except (TypeError, ValueError):
            pass
        else:
            return mean, std
    raise TypeError(
        f"{type(model).__name__} has neither predict_proba nor a predict that takes return_std=True: which rows to label next depends on "
        "how sure a model is. Wrap a classifier in sklearn.calibration.CalibratedClassifierCV, or pass None to cover the rows."
    )


@dataclass(frozen=True)
class Suggestion:
    """One row to label."""

    place: int
    """Its place among the rows, from 0."""
    reason: str
    """Why this row, in words."""
    predicted: Any = None
    """The likeliest class, or the predicted number; None without a model."""
    probability: float | None = None
    """The probability of the likeliest class; None for numbers."""
    probabilities: dict[Any, float] | None = None
    """The probability of each class; None for numbers."""
    uncertainty: float | None = None
    """1 − (p₁ − p₂), where p₁ and p₂ are the largest probabilities; for numbers the standard deviation."""
    n_near: int = 1
    """Rows without a label to which this one is nearer than any labeled or suggested row, itself among them."""


@dataclass(frozen=True)
class Suggestions:
    """Rows to label, the most informative first."""

    rows: list[Suggestion]
    n_candidates: int
    """Rows without a label that these were chosen from."""

    @property
    def places(self) -> NDArray[np.intp]:
        """The places of the rows. [n]"""
        return np.array([row.place for row in self.rows], dtype=np.intp)


def suggest(
    model: Any,
    X: Any,
    n: int = 20,
    *,
    y: Any = None,
    labeled: Any = None,
    representation: Any = None,
    random_state: Any = 0,
) -> Suggestions:
    """Suggest rows to label next: a batch that is informative and diverse.

    One row after the other is chosen: the one that brings most of what is uncertain near to something labeled or chosen,

        i* = argmax_i Σ_j u_j max(0, d_j − |z_i − z_j|),      u_j = 1 − (p₁(x_j) − p₂(x_j)),      d_j = min_c |z_j − z_c|

    The sum is over rows j without a label, p₁ and p₂ are the two largest probabilities of one (for numbers u is the predictive standard
    deviation), z is the representation, and c runs over labeled and chosen rows. An outlier brings only itself near, while a group of rows
    without any label is found early: classes that nobody has labeled yet are sought. Without a model, all rows count alike, and what is
    chosen covers them. The work is linear in the rows.

    Parameters
    ----------
    model
        A fitted classifier with `predict_proba`, or a regressor with a predictive standard deviation (`predict(X, return_std=True)`, or
        those of gpssl). None where there is no label yet.
    X
        Rows, as the model takes them.
    n
        How many rows to suggest. Where fewer have no label, all of them are, with a warning.
    y
        The labels of the rows of X as `fit` takes them: −1, None or NaN for rows without one, which are the candidates. Without it, all
        rows of X are.
    labeled
        Rows with labels that are not in X.
    representation
        Where distances are measured: a fitted estimator with `transform`, a fitted `RepresentationPool`, a function of the rows, or an
        array with a row for each. None is what the model itself has learned; for a pool, its members as far as the labels believe in them.
    random_state
        Seed of what is drawn where there is no model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from gpssl import MarginalizedClassifier
    >>> from gpssl.active import suggest
    >>> X, y = load_wine(return_X_y=True)
    >>> few = np.where(np.arange(len(y)) % 20 == 0, y, -1)
    >>> model = MarginalizedClassifier(random_state=0).fit(X, few)
    >>> len(suggest(model, X, 5, y=few).places)
    5
    """
    is_open = _open_rows(X, y)
    points, outside = represent(model, X, representation, labeled)
    beliefs = None if model is None else Beliefs.of(model, X)
    return suggest_among(points, beliefs, is_open, n, outside=outside, random_state=random_state)


def _open_rows(X: Any, y: Any) -> NDArray[np.bool_]:
    """Return which rows have no label. [n]"""
    if y is None:
        return np.ones(_num_samples(X), dtype=bool)
    check_consistent_length(X, y)
    values = as_labels(y)
    is_open = missing(values)
    known = values[~is_open]
    if known.dtype.kind in "iu" or (known.dtype.kind == "O" and all(isinstance(value, Integral) for value in known)):
        is_open[~is_open] = known == UNLABELED
    return is_open


def suggest_among(
    points: Array,
    beliefs: Beliefs | None,
    is_open: NDArray[np.bool_],
    n: int,
    *,
    outside: Array | None = None,
    random_state: Any = 0,
) -> Suggestions:
    """Suggest rows, given their points [n, D], what a model believes of them, and which may be chosen [n]."""
    check_number("n", n, Integral, at_least=1)
    n_open = int(is_open.sum())
    if n_open == 0:
        raise ValueError("All rows have a label already: there is none to suggest.")
    if n > n_open:
        warnings.warn(f"Only {n_open:,} rows have no label: all of them are suggested.", UserWarning, stacklevel=3)
    centers = points[~is_open] if outside is None else np.vstack([outside, points[~is_open]])
    rng = np.random.default_rng(seed_from(random_state))
    chosen = choose(points, _weight(beliefs, len(points)), is_open, centers, min(n, n_open), rng)
    reasons = _reasons(chosen, beliefs, points, is_open, centers)
    return Suggestions([_suggestion(chosen, number, beliefs, reason) for number, reason in enumerate(reasons)], n_open)


def _weight(beliefs: Beliefs | None, n_rows: int) -> Array:
    """Return how much each row counts: as far as it is uncertain; without a model, all count alike. [n]"""
    if beliefs is None:
        return np.ones(n_rows)
    return beliefs.uncertainty + LEAST_UNCERTAINTY if beliefs.proba is not None else beliefs.uncertainty


def _suggestion(chosen: Chosen, number: int, beliefs: Beliefs | None, reason: str) -> Suggestion:
    place, n_near = int(chosen.places[number]), int(chosen.n_near[number])
    if beliefs is None:
        return Suggestion(place, reason, n_near=n_near)
    predicted = beliefs.predicted[place]
    predicted = predicted.item() if hasattr(predicted, "item") else predicted
    uncertainty = float(beliefs.uncertainty[place])
    if beliefs.proba is None or beliefs.classes is None:
        return Suggestion(place, reason, predicted, uncertainty=uncertainty, n_near=n_near)
    proba = beliefs.proba[place]
    by_class = dict(zip(beliefs.classes.tolist(), proba.tolist(), strict=True))
    return Suggestion(place, reason, predicted, float(proba.max()), by_class, uncertainty, n_near)


# Reasons in words


def _reasons(chosen: Chosen, beliefs: Beliefs | None, points: Array, is_open: NDArray[np.bool_], centers: Array) -> list[str]:
    """Return a reason for each chosen row."""
    to_labeled = Nearest.of(points, centers).squared
    ordered, mine = np.sort(to_labeled[is_open]), to_labeled[chosen.places]
    share_nearer = np.searchsorted(ordered, mine) / len(ordered) * np.isfinite(mine)
    is_alone = mine > _largest_gap(centers)
    found = []
    for number, place in enumerate(chosen.places):
        if beliefs is not None and beliefs.proba is not None and is_alone[number]:
            found.append("far from every labeled row: perhaps a class that nobody has labeled yet")
            continue
        distance = _about_distance(float(share_nearer[number]), int(chosen.n_near[number]))
        found.append(distance if beliefs is None else f"{_about_belief(beliefs, int(place))}, {distance}")
    return found


def _largest_gap(centers: Array) -> float:
    """Return the largest squared distance of a labeled row to the nearest other one: what is farther from all is like none of them."""
    some = centers[:: max(1, -(-len(centers) // MOST_COMPARED))]
    if len(some) < 2:
        return np.inf
    squared = squared_distances(some, some)
    np.fill_diagonal(squared, np.inf)
    return float(squared.min(axis=1).max())


def _about_belief(beliefs: Beliefs, place: int) -> str:
    if beliefs.proba is None or beliefs.classes is None:
        return f"predicted {beliefs.predicted[place]:.4g} ± {beliefs.uncertainty[place]:.2g}"
    order = np.argsort(-beliefs.proba[place], kind="stable")[:2]
    shares = beliefs.proba[place][order]
    names = [f"{beliefs.classes[one]!s}" for one in order]
    if len(order) > 1 and shares[0] - shares[1] < UNSURE:
        return f"between {names[0]!r} and {names[1]!r} ({percent(shares[0], 0)} / {percent(shares[1], 0)})"
    return f"probably {names[0]!r} ({percent(shares[0], 0)})"


def _about_distance(share_nearer: float, n_near: int) -> str:
    if share_nearer >= FAR:
        return "unlike any labeled row"
    return f"typical of {n_near:,} rows without a label" if n_near >= ALONE else "an unusual row"
