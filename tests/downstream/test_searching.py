"""Searches of scikit-learn over a marginalized classifier or regressor with all its defaults, and with unlabeled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV

from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor, RepresentationPool
from gpssl.downstream import BayesianLogisticRegression
from gpssl.evaluation import labeled_scorer

Array = NDArray[np.float64]


@pytest.mark.parametrize("grid", [{"weighting": ["equal", "evidence"]}, {"power": [0.25, 0.5]}, {"representation__n_components": [2, 3]}])
def test_a_search_needs_no_named_representation(flowers: tuple[Array, NDArray[np.intp]], grid: dict[str, list[Any]]) -> None:
    X, few = flowers
    search = GridSearchCV(MarginalizedClassifier(n_draws=5, random_state=0), grid, cv=3, error_score="raise").fit(X, few)
    assert set(search.best_params_) == set(grid)
    assert search.best_score_ > 0.7  # of the rows with a label


def test_numbers_are_searched_too() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(np.arange(60) % 2 == 0, X[:, 0], np.nan)
    grid = {"representation__temperature": [0.01, 1.0]}
    search = GridSearchCV(MarginalizedRegressor(n_draws=5, random_state=0), grid, cv=3, error_score="raise").fit(X, y)
    assert isinstance(search.best_estimator_.representation, GPSSL)


def test_parameters_say_what_the_representation_and_the_head_are() -> None:
    model = MarginalizedClassifier().set_params(representation__n_components=3, representation__kernel=None)
    assert model.representation.n_components == 3
    pool = MarginalizedClassifier().set_params(representation__members=[("learned", GPSSL())])
    assert isinstance(pool.representation, RepresentationPool)
    head = MarginalizedClassifier().set_params(head__prior_precision=2.0).head
    assert isinstance(head, BayesianLogisticRegression)
    assert head.prior_precision == 2.0
    given = MarginalizedClassifier(GPSSL(2), LogisticRegression()).set_params(representation__temperature=1.0, head__C=2.0)
    assert (given.representation.n_components, given.head.C) == (2, 2.0)
    with pytest.raises(ValueError, match="Invalid parameter 'colors'"):
        MarginalizedClassifier().set_params(representation__colors=3)


def test_scorer_leaves_unlabeled_rows_out(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    model = MarginalizedClassifier(GPSSL(2), n_draws=5, random_state=0).fit(X, few)
    known = few >= 0
    assert labeled_scorer("accuracy")(model, X, few) == pytest.approx(model.score(X, few))
    assert labeled_scorer("neg_log_loss")(model, X, few) == pytest.approx(-log_loss(few[known], model.predict_proba(X[known])))
    with pytest.raises(ValueError, match="No row has a label"):
        labeled_scorer("accuracy")(model, X, np.full(len(X), -1))
