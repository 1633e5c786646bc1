"""When to stop labeling: how errors fall with more labels, and how many it takes until an error rate can be promised.

Labels are held out in turn, and heads trained on nested parts of the others: representations need no labels and stay. Errors are
described by an inverse power law,

    r(n) = a + b n^(−c),      a, b ≥ 0,

fitted to labels that are weighed at random, again and again (the Bayesian bootstrap): the spread of the answers is their uncertainty.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import _safe_indexing

from .._runtime import CONFIDENCE
from .._runtime.progress import Progress
from .._validation import check_number
from ..downstream._marginal import Marginalized
from ..evaluation._conformal import ROUNDING

Array = NDArray[np.float64]

N_FOLDS = 5
N_SIZES, LEAST_SIZE = 5, 6
"""How many numbers of labels make the curve, and the smallest of them."""
LEAST_LABELS = 12
"""Labels below which there is no curve."""
N_REPLICATES = 400
EXPONENTS = np.array([0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0])
"""c: errors of classifiers fall with exponents between a quarter and two, mostly about one half to one."""
INTERVAL = (0.1, 0.9)
"""Quantiles of the replicates that are the ends of intervals."""
LARGEST_FACTOR = 50
"""How many times the labels that there are to look for an answer."""
N_STEPS = 400
HARDLY = 0.01
"""What twice as many labels must save to be worth a word: errors per row, or for numbers this share of their standard deviation."""


@dataclass(frozen=True)
class LearningCurve:
    """Losses of held-out labels by models that have seen fewer and more of the other labels."""

    sizes: NDArray[np.intp]
    """Numbers of labels that models were trained on, rising. [s]"""
    losses: Array
    """Loss of each held-out label after training on so many: 1 for an error, 0 else; for numbers the squared error. [n, s]"""
    is_class: bool
    groups: NDArray[np.intp] | None = None
    """Which labels belong together; None where each stands for itself. [n]"""
    scale: float = 1.0
    """Standard deviation of the numbers."""
    random_state: int = 0

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return len(self.losses)

    @property
    def risk(self) -> Array:
        """Error rate at each size; for numbers the root mean squared error. [s]"""
        mean = self.losses.mean(axis=0)
        return mean if self.is_class else np.sqrt(mean)

    @cached_property
    def replicates(self) -> PowerLaws:
        """Power laws that are fitted to labels weighed at random; for numbers to mean squared errors.

        The weights are Dirichlet, of labels or groups. For classes, one label that is half wrong is added (Jeffreys' prior): no error among
        ten labels does not mean that there will be none.
        """
        rng = np.random.default_rng(self.random_state)
        unit = np.arange(self.n_labels) if self.groups is None else self.groups
        weight = rng.exponential(size=(N_REPLICATES, int(unit.max()) + 1))[:, unit]
        total, lost = weight.sum(axis=1), weight @ self.losses
        if self.is_class:
            extra = rng.exponential(size=N_REPLICATES)
            total, lost = total + extra, lost + 0.5 * extra[:, None]
        return fit_power_laws(self.sizes, lost / total[:, None], seed=self.random_state)

    def predicted_risk(self, n_labels: float) -> tuple[float, float, float]:
        """Return the risk with so many labels: median, and the ends of an 80 % interval."""
        values = self.replicates.at(np.array([float(n_labels)]))[:, 0]
        middle, low, high = np.quantile(values if self.is_class else np.sqrt(values), (0.5, *INTERVAL))
        return float(middle), float(low), float(high)

    @property
    def gain_of_twice_as_many(self) -> tuple[float, float]:
        """By how much twice as many labels lower the risk: median, and a value that it exceeds with a probability of 10 %."""
        now, then = self.replicates.at(np.array([self.n_labels, 2 * self.n_labels], dtype=np.float64)).T
        saved = now - then if self.is_class else np.sqrt(now) - np.sqrt(then)
        return float(np.median(saved)), float(np.quantile(saved, INTERVAL[1]))

    @property
    def is_flat(self) -> bool:
        """Whether twice as many labels hardly change anything, with a probability of 90 %."""
        return self.gain_of_twice_as_many[1] < HARDLY * (1.0 if self.is_class else self.scale)

    def labels_until(self, max_risk: float, confidence: float | None = CONFIDENCE) -> LabelsNeeded:
        """Return how many labels it takes in all until an error rate of all predictions can be promised.

        Of n labels that are held out in turn, k ~ Binomial(n, r(n)) are wrong. The promise can be made once P[Binomial(n, α) ≤ k] ≤ 1 −
        confidence or, on average (None), once (k + 1) / (n + 1) ≤ α: see `average_risk_threshold`. In each replicate the smallest such n
        is found, with a k of its own luck. For numbers there is no bound: the smallest n with r(n) ≤ max_risk, a root mean squared error.
        """
        steps = np.unique(np.geomspace(self.n_labels, LARGEST_FACTOR * self.n_labels, N_STEPS).round())
        risks = self.replicates.at(steps)
        is_enough = self._can_be_promised(steps, risks, max_risk, confidence) if self.is_class else np.sqrt(risks) <= max_risk
        first = np.where(is_enough.any(axis=1), steps[is_enough.argmax(axis=1)], np.inf)
        middle, low, high = np.quantile(first, (0.5, *INTERVAL), method="higher")
        return LabelsNeeded(float(middle), float(low), float(high))

    def _can_be_promised(self, steps: Array, risks: Array, max_risk: float, confidence: float | None) -> NDArray[np.bool_]:
        """Return for each replicate and number of labels whether the bound is met. [replicates, steps]"""
        from scipy.stats import binom

        n_units = self.n_labels if self.groups is None else int(self.groups.max()) + 1
        n_judged = np.maximum(1.0, np.floor(steps * n_units / self.n_labels))  # of a group one label counts
        luck = np.random.default_rng(self.random_state + 1).random((len(risks), 1))
        if confidence is None:
            allowed = np.floor(max_risk * (n_judged + 1) * (1 + ROUNDING)) - 1
        else:
            allowed = binom.ppf(1 - confidence, n_judged, max_risk)
            allowed -= binom.cdf(allowed, n_judged, max_risk) > 1 - confidence  # the largest k with P[Binomial(n, α) ≤ k] ≤ 1 − confidence
        # k ≤ allowed, where k is the quantile of its distribution at the luck of the replicate
        return binom.cdf(allowed, n_judged, np.clip(risks, 0.0, 1.0)) >= luck


class LabelsNeeded(NamedTuple):
    """A number of labels in all, those that there are among them; infinity where it is out of reach."""

    middle: float
    low: float
    high: float
    """Ends of an 80 % interval."""


class PowerLaws(NamedTuple):
    """Curves r(n) = a + b n^(−c), one for each replicate."""

    a: Array
    b: Array
    c: Array

    def at(self, n_labels: Array) -> Array:
        """Return the values at numbers of labels. [replicates, n]"""
        return self.a[:, None] + self.b[:, None] * n_labels ** -self.c[:, None]


def fit_power_laws(sizes: NDArray[Any], risks: Array, seed: int = 0) -> PowerLaws:
    """Fit a power law to each row of risks [replicates, s] at sizes [s], by least squares with a, b ≥ 0.

    Points count in proportion to their size, as what follows lies beyond the largest. Each exponent of `EXPONENTS` is fitted with a free
    and with a = 0, and one of these fits is drawn with probability ∝ exp(−½ S / σ²), S being the squares that it leaves and σ² their mean
    for the best fit: what fits equally well is equally likely.
    """
    sizes = np.asarray(sizes, dtype=np.float64)
    weight = sizes / sizes.sum()
    fits = [_fit_with_exponent(sizes, risks, weight, float(c), to_zero=to_zero) for c in EXPONENTS for to_zero in (False, True)]
    squares = np.stack([left for _, _, left in fits], axis=1)
    noise = np.maximum(squares.min(axis=1, keepdims=True), 1e-12) / max(1, len(sizes) - 2)
    chances = np.exp(-0.5 * (squares - squares.min(axis=1, keepdims=True)) / noise)
    steps = np.cumsum(chances, axis=1)
    luck = np.random.default_rng(seed + 2).random((len(risks), 1)) * steps[:, -1:]
    best = (steps < luck).sum(axis=1)
    rows = np.arange(len(risks))
    a, b = (np.stack([fit[place] for fit in fits], axis=1)[rows, best] for place in (0, 1))
    return PowerLaws(a, b, EXPONENTS[best // 2])


def _fit_with_exponent(sizes: Array, risks: Array, weight: Array, c: float, *, to_zero: bool) -> tuple[Array, Array, Array]:
    """Return a, b and the weighted squares that are left, for one exponent; a = 0 where the curve goes to zero. [replicates] each"""
    x = sizes**-c
    mean_x, mean_r = weight @ x, risks @ weight
    variance = weight @ (x - mean_x) ** 2
    b = np.maximum((risks - mean_r[:, None]) @ (weight * (x - mean_x)) / variance, 0.0)
    a = mean_r - b * mean_x
    through_zero = (risks @ (weight * x)) / (weight @ x**2)
    is_zero = (a < 0) | to_zero
    a, b = np.where(is_zero, 0.0, a), np.where(is_zero, through_zero, b)
    left = ((risks - a[:, None] - b[:, None] * x) ** 2) @ weight
    return a, b, left


# The curve from labels


def learning_curve(model: Any, X: Any, y: Any, *, groups: Any = None, n_folds: int = N_FOLDS, random_state: int = 0) -> LearningCurve:
    """Return how errors on held-out labels fall as models are trained on more of the other labels.

    Parameters
    ----------
    model
        A classifier or regressor. Of those of gpssl that are fitted, the representation stays and heads alone are trained.
    X, y
        Rows with labels, and the labels; at least 12.
    groups
        Which rows belong together: they are held out together.
    n_folds
        How many parts the labels are dealt to.
    random_state
        Seed of the parts, and of the labels that smaller models see.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from gpssl.active import learning_curve
    >>> X, y = load_wine(return_X_y=True)
    >>> curve = learning_curve(make_pipeline(StandardScaler(), LogisticRegression()), X[::2], y[::2])
    >>> curve.sizes.tolist()
    [6, 11, 21, 38, 71]
    """
    check_number("n_folds", n_folds, Integral, at_least=2)
    y = np.asarray(y)
    if len(y) < LEAST_LABELS:
        raise ValueError(f"A learning curve needs at least {LEAST_LABELS} labels, got {len(y)}.")
    is_class = is_classifier(model)
    unit = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1].astype(np.intp)
    folds = _folds(y, unit, n_folds, random_state, is_class=is_class)
    smallest = min(len(training) for training, _ in folds)
    sizes = np.unique(np.geomspace(min(LEAST_SIZE, smallest), smallest, N_SIZES).round()).astype(np.intp)
    losses = np.empty((len(y), len(sizes)))
    trained = with_fitted_representation(model)
    rng = np.random.default_rng(random_state)
    for training, held_out in Progress("learning curve", len(folds), unit="folds").each(folds):
        order = _order(training, y, rng, is_class=is_class)
        rows, truth = _safe_indexing(X, held_out), y[held_out]
        for place, size in enumerate(sizes):
            known = order[:size]
            predicted = _predictions(trained, _safe_indexing(X, known), y[known], rows)
            losses[held_out, place] = predicted != truth if is_class else (np.asarray(predicted, dtype=np.float64) - truth) ** 2
    return LearningCurve(sizes, losses, is_class, unit, 1.0 if is_class else float(y.astype(np.float64).std()), random_state)


def _predictions(model: Any, X: Any, y: NDArray[Any], others: Any) -> Any:
    """Train on some labels and predict other rows; labels that are all alike predict themselves."""
    if len(np.unique(y)) == 1:
        return np.full(len(others), y[0])
    return clone(model).fit(X, y).predict(others)


def with_fitted_representation(model: Any) -> Any:
    """Return a model of which only heads are trained, where its representation is fitted; else the model itself."""
    if isinstance(model, Marginalized) and hasattr(model, "representation_"):
        fitted = model.representation_
        return clone(model).set_params(representation=fitted if isinstance(fitted, FrozenEstimator) else FrozenEstimator(fitted))
    return model


def _folds(
    y: NDArray[Any], groups: NDArray[np.intp] | None, n_folds: int, seed: int, *, is_class: bool
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    if groups is not None and groups.max() < 1:
        raise ValueError("All labels are of one group: a learning curve needs labels of several groups.")
    n_folds = min(n_folds, len(y) if groups is None else int(groups.max()) + 1)
    kinds: Any = (StratifiedKFold, StratifiedGroupKFold) if is_class else (KFold, GroupKFold)
    commonest = int(np.unique(y, return_counts=True)[1].max())
    splitter = kinds[groups is not None](max(2, min(n_folds, commonest)) if is_class else n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")
        found = splitter.split(np.zeros(len(y)), y, groups)
        return [(training, held_out) for training, held_out in found if len(held_out) > 0]


def _order(training: NDArray[np.intp], y: NDArray[Any], rng: np.random.Generator, *, is_class: bool) -> NDArray[np.intp]:
    """Return labels in random order; for classes, the second is the first one of another class, so that all parts have two."""
    order = rng.permutation(training)
    others = np.flatnonzero(y[order] != y[order[0]]) if is_class else np.empty(0, dtype=np.intp)
    if len(others):
        order[[1, others[0]]] = order[[others[0], 1]]
    return order
