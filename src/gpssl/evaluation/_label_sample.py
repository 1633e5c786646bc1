"""Whether labels were drawn at random from the rows of a table, and how much each counts where they were not."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu
from sklearn.model_selection import StratifiedKFold, cross_val_predict

Array = NDArray[np.float64]
Places = NDArray[np.intp]

FALSE_ALARMS = 0.01
"""The share of random samples that are taken for others, about."""
MOST_DIRECTIONS = 8
"""Leading directions of the points in which labeled rows and others are compared."""
PENALTY = 0.1
"""C of the logistic regression: few labels must not move weights far from one."""
N_FOLDS = 5
LEAST_ROWS = 10
"""Rows with a label, and without one, that it takes to compare them."""


class LabelSample(NamedTuple):
    """How labeled rows differ from the others of their table."""

    weight: Array
    """How many of the other rows each labeled one stands for, relatively: the density of the others over that of the labeled. [n]"""
    other_weight: Array
    """The same ratio at the other rows. [m]"""
    p_value: float
    """Of the hypothesis that the labeled rows are a random sample of the table."""

    @property
    def is_random(self) -> bool:
        """Whether nothing speaks against a random sample."""
        return self.p_value > FALSE_ALARMS

    @property
    def n_effective(self) -> float:
        """How many labels that count alike would tell as much: (Σ w)² / Σ w²."""
        return float(self.weight.sum() ** 2 / (self.weight**2).sum())


def compare_with_others(
    points: Array, other_points: Array, groups: NDArray[Any] | None = None, other_groups: NDArray[Any] | None = None
) -> LabelSample:
    """Return how labeled rows, as points [n, D] of a representation, differ from others [m, D].

    A logistic regression on the leading directions z of all points, and on z², tells labeled rows (c = 1) from others (c = 0). If its
    log odds of rows that it has not seen (five folds) are larger at labeled rows than at others, by the test of Mann and Whitney, the
    labeled ones are no random sample. Then the ratio of the densities is, by Bayes' rule,

        w(x) = p(x | c = 0) / p(x | c = 1) = n / m · exp(−log odds(x))

    Where rows belong together, as `groups` [n] and `other_groups` [m] say, the test looks at one row of each group.
    """
    n_labeled, n_others = len(points), len(other_points)
    X = np.concatenate([points, other_points])
    if min(n_labeled, n_others) < LEAST_ROWS or not np.ptp(X, axis=0).any():
        return LabelSample(np.ones(n_labeled), np.ones(n_others), 1.0)
    is_labeled = np.arange(len(X)) < n_labeled
    tested = np.append(_one_of_each(groups, n_labeled), n_labeled + _one_of_each(other_groups, n_others))
    model = _teller(X)
    p_value = _p_value(model, X[tested], is_labeled[tested])
    log_odds = model.fit(X, is_labeled).decision_function(X)
    ratio = n_labeled / n_others * np.exp(-log_odds)
    return LabelSample(ratio[is_labeled], ratio[~is_labeled], p_value)


def _one_of_each(groups: NDArray[Any] | None, n_rows: int) -> Places:
    return np.arange(n_rows) if groups is None else np.sort(np.unique(groups, return_index=True)[1])


def _teller(X: Array) -> Any:
    """Return a classifier that tells labeled rows from others, on leading directions and their squares."""
    from sklearn.decomposition import PCA  # imported where labels are compared: other commands need none of these
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    directions = PCA(min(MOST_DIRECTIONS, *X.shape), svd_solver="full")
    return make_pipeline(
        directions, StandardScaler(), FunctionTransformer(_with_squares), StandardScaler(), LogisticRegression(C=PENALTY, max_iter=1000)
    )


def _with_squares(Z: Array) -> Array:
    return np.hstack([Z, Z**2])


def _p_value(model: Any, X: Array, is_labeled: NDArray[np.bool_]) -> float:
    """Return the p-value of the test that held-out log odds are not larger at labeled rows."""
    n_folds = min(N_FOLDS, int(is_labeled.sum()), int((~is_labeled).sum()))
    if n_folds < 2:
        return 1.0
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    log_odds = cross_val_predict(model, X, is_labeled, cv=folds, method="decision_function")
    return float(mannwhitneyu(log_odds[is_labeled], log_odds[~is_labeled], alternative="greater").pvalue)


def thinned(places: Places, weight: Array, seed: int = 0) -> Places:
    """Return some of the places, each kept with probability w / max w: rows that are drawn as the others are.

    Any promise for exchangeable rows then holds for them, as far as the weights are right, with the fewer labels that are left.
    """
    chance = np.random.default_rng(seed).random(len(places))
    return places[chance < weight / weight.max()]
