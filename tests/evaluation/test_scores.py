"""All scores of a model on test rows; means with standard errors, paired tests, and ranks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t as student_t
from scipy.stats import ttest_1samp, wilcoxon
from sklearn.metrics import roc_auc_score

from gpssl.evaluation import (
    Estimate,
    average_ranks,
    corrected_error,
    corrected_p_value,
    holm,
    macro_roc_auc,
    paired_p_value,
    probabilities_of,
    score_classification,
    score_regression,
)

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


def test_estimate_is_the_mean_with_its_standard_error() -> None:
    assert Estimate.of([1.0, 2.0, 3.0]) == pytest.approx((2.0, 1 / np.sqrt(3)))
    assert np.isnan(Estimate.of([1.0]).error)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]


def test_paired_test_is_wilcoxon_s_and_equal_scores_are_no_difference() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.3, 1, 20), rng.normal(0, 1, 20)
    assert paired_p_value(first, second) == pytest.approx(wilcoxon(first, second, method="exact").pvalue)
    assert paired_p_value(first, first + 1e-15) == 1.0


def test_equal_differences_of_accuracies_are_ties() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.integers(120, 140, 20), rng.integers(118, 140, 20)
    expected = wilcoxon(first - second, zero_method="pratt", method="approx").pvalue
    assert paired_p_value(first / 146, second / 146) == pytest.approx(expected, rel=1e-12)


def test_ranks_count_from_the_best_and_ties_share() -> None:
    scores = {"a": [0.9, 0.5], "b": [0.8, 0.5], "c": [0.7, 0.1]}
    assert average_ranks(scores, higher_is_better=True) == {"a": 1.25, "b": 1.75, "c": 3.0}
    assert average_ranks(scores, higher_is_better=False)["c"] == 1.0


def test_corrected_test_is_the_plain_one_without_shared_rows_and_more_careful_with() -> None:
    differences = np.random.default_rng(0).normal(0.3, 1.0, size=20)
    plain = ttest_1samp(differences, 0.0).pvalue
    np.testing.assert_allclose(corrected_p_value(differences, 0.0), plain, rtol=1e-12)
    # (1/n + n_test / n_training) in the place of 1/n
    wider = 2 * student_t.sf(abs(differences.mean()) / np.sqrt((1 / 20 + 3 / 7) * differences.var(ddof=1)), 19)
    np.testing.assert_allclose(corrected_p_value(differences, 3 / 7), wider, rtol=1e-12)
    assert corrected_p_value(differences, 3 / 7) > plain
    assert corrected_p_value(differences, 3 / 7, n_rows=30) > corrected_p_value(differences, 3 / 7, n_rows=10**6)
    np.testing.assert_allclose(corrected_p_value(differences, 3 / 7, n_rows=10**9), wider, rtol=1e-6)
    assert corrected_p_value([0.0, 0.0, 0.0], 0.4) == corrected_p_value([0.3], 0.4) == 1.0


def test_few_equal_differences_are_not_certain() -> None:
    # of n differences of the same sign, the sign test says 2 / 2^n
    assert corrected_p_value([0.1, 0.1], 0.4) == 0.5
    assert corrected_p_value([-0.1] * 5, 0.4) == corrected_p_value([0.1, 0.1 + 1e-9, 0.1, 0.1, 0.1], 0.4) == 2 / 2**5
    assert corrected_p_value([0.1] * 20, 0.4) < 1e-5


def test_corrected_error_is_wider_by_the_shared_rows() -> None:
    assert corrected_error([1.0, 2.0, 3.0], 0.0) == pytest.approx(Estimate.of([1.0, 2.0, 3.0]).error)
    assert corrected_error([1.0, 2.0, 3.0], 0.5) == pytest.approx(np.sqrt(1 / 3 + 0.5))
    assert corrected_error([0.1 + 0.2, 0.3], 0.5) == 0.0
    assert np.isnan(corrected_error([1.0], 0.5))
