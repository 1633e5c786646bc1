"""All scores of a model on test rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from gpssl.evaluation import macro_roc_auc, probabilities_of, score_classification, score_regression

Array = NDArray[np.float64]


def test_area_under_roc_is_the_mean_over_classes_and_a_class_without_labels_ranks_by_chance() -> None:
    rng = np.random.default_rng(0)
    classes = np.array(["a", "b", "c"])
    y = rng.choice(classes, size=60)
    proba = rng.dirichlet([1, 1, 1], size=60)
    assert macro_roc_auc(y, proba, classes) == pytest.approx(roc_auc_score(y, proba, multi_class="ovr"))
    proba[:, 2] = 0.0
    proba /= proba.sum(axis=1, keepdims=True)
    expected = np.mean([roc_auc_score(y == "a", proba[:, 0]), roc_auc_score(y == "b", proba[:, 1]), 0.5])
    assert macro_roc_auc(y, proba, classes) == pytest.approx(expected)


def test_log_loss_alone_leaves_out_classes_without_labels() -> None:
    classes = np.array(["a", "b", "c"])
    y = np.array(["a", "b", "c", "a"])
    proba = np.array([[0.8, 0.2, 0], [0.4, 0.6, 0], [0.7, 0.3, 0], [0.3, 0.7, 0]])
    scores = score_classification(y, proba, classes)
    assert scores["accuracy"] == 0.5
    assert scores["log loss"] == pytest.approx(-np.log([0.8, 0.6, 0.3]).mean())


def test_probabilities_have_a_column_for_each_class_of_the_table() -> None:
    class Model:
        classes_ = np.array(["a", "c"])

        def predict_proba(self, X: Array) -> Array:
            return np.tile([0.3, 0.7], (len(X), 1))

    proba = probabilities_of(Model(), np.zeros((2, 1)), np.array(["a", "b", "c"]))
    np.testing.assert_array_equal(proba, [[0.3, 0, 0.7]] * 2)


def test_coverage_is_that_of_the_central_interval() -> None:
    class Model:
        def predict_draws(self, X: Array) -> tuple[Array, Array]:
            return np.zeros((1, len(X))), np.ones((1, len(X)))

    y = np.array([-1.7, -1.6, 0.0, 1.6, 1.7])  # the quantiles are ±1.645
    scores = score_regression(y, Model(), np.zeros((5, 1)))
    assert scores["coverage"] == pytest.approx(0.6)
    assert scores["RMSE"] == pytest.approx(np.sqrt((y**2).mean()))
    assert scores["NLL"] == pytest.approx(0.5 * (y**2).mean() + 0.5 * np.log(2 * np.pi))
