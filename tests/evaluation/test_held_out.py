"""Predictions by models that have not seen the label, and what is made of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from gpssl import GPSSL, MarginalizedRegressor
from gpssl.evaluation import log_density
from gpssl.evaluation._held_out import HeldOutClasses, Labeled, hold_out_classes, hold_out_numbers
from gpssl.evaluation._promises import Evidence, RiskLimit, class_threshold, expect_classes, threshold_on_average
from gpssl.evaluation._selective import risk_coverage_curve

Array = NDArray[np.float64]


def held_out(n_groups: int, size: int, seed: int) -> HeldOutClasses:
    """Rows of certainty 0.9 or 0.6; all rows of a group are right or wrong together, in one of ten or one of three groups."""
    rng = np.random.default_rng(seed)
    sure = rng.random(n_groups) < 0.5
    wrong = rng.random(n_groups) < np.where(sure, 0.1, 0.33)
    groups = np.repeat(np.arange(n_groups), size)
    certainty = np.where(sure, 0.9, 0.6)[groups] + 1e-6 * rng.random(len(groups))
    proba = np.column_stack([certainty, 1 - certainty])
    return HeldOutClasses(np.where(wrong[groups], "b", "a"), proba, np.array(["a", "b"]), groups)


def certain_threshold(rows: HeldOutClasses, max_risk: float, confidence: float) -> float:
    return class_threshold(Evidence(rows, rows.certainty), RiskLimit(max_risk, confidence))


def test_interval_is_wilson_s_without_groups() -> None:
    rows = held_out(100, 1, seed=0)._replace(groups=None)
    expected = binomtest(int(rows.is_wrong.sum()), 100).proportion_ci(0.95, "wilson")
    assert rows.error_interval() == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_rows_of_a_group_that_err_together_count_once() -> None:
    rows = held_out(60, 10, seed=0)
    assert len(rows.independent()) == 60
    once = rows.independent()
    one_each = HeldOutClasses(rows.y[once], rows.proba[once], rows.classes)
    assert rows.error_interval() == pytest.approx(one_each.error_interval(), abs=0.005)


def test_promise_holds_for_groups() -> None:
    """One of ten is wrong where the model is sure, and that is more than was asked for: a threshold that keeps them breaks the promise."""
    broken = [certain_threshold(held_out(80, 30, seed), 0.08, 0.95) < np.inf for seed in range(300)]
    assert np.mean(broken) < 0.05
    as_if_independent = [certain_threshold(held_out(80, 30, seed)._replace(groups=None), 0.08, 0.95) < np.inf for seed in range(300)]
    assert np.mean(as_if_independent) > 0.15  # what would happen if rows were counted


def test_each_row_is_predicted_without_its_label_and_its_group() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 3)
    y = np.where(rng.random(20) < 0.5, "x", "y")[groups]
    X = np.eye(20)[groups]  # tells the group and nothing else
    model = LogisticRegression(C=100.0)
    together = hold_out_classes(model, X, y, groups=groups)
    alone = hold_out_classes(model, X, y)
    assert alone.is_wrong.mean() < 0.2
    assert together.is_wrong.mean() > 0.35
    assert together.fold is not None
    assert all(len(np.unique(together.fold[groups == group])) == 1 for group in range(20))
    assert sorted(np.unique(together.fold)) == list(range(10))


def test_the_density_at_held_out_numbers_is_that_of_the_folds_own_model() -> None:
    X = np.random.default_rng(0).normal(size=(40, 1))
    y = X[:, 0] + 0.1 * np.sin(9 * X[:, 0])
    model = MarginalizedRegressor(GPSSL(1, random_state=0), n_draws=None)
    found = hold_out_numbers(model, X, y)
    assert found.fold is not None
    assert found.log_density is not None
    out = found.fold == 3
    fitted = clone(model).fit(X[~out], y[~out])
    np.testing.assert_allclose(found.log_density[out], log_density(y[out], *fitted.predict_draws(X[out])))


def test_class_with_one_row_counts_as_an_error() -> None:
    X = np.arange(21.0)[:, None]
    y = np.array(["low"] * 10 + ["high"] * 10 + ["other"])
    found = hold_out_classes(LogisticRegression(), X, y)
    assert found.is_wrong[20]
    assert found.proba[20, list(found.classes).index("other")] == 0.0


def test_thresholds_on_average_are_those_of_the_curve() -> None:
    rows = held_out(200, 1, seed=0)._replace(groups=None)
    curve = risk_coverage_curve(rows.y, rows.proba, labels=rows.classes)
    threshold = threshold_on_average(curve, 0.15)
    kept = rows.certainty > threshold
    assert rows.is_wrong[kept].mean() <= 0.15
    laxer = np.sort(rows.certainty[~kept])[::-1]
    assert all(rows.is_wrong[rows.certainty >= certainty].mean() > 0.15 for certainty in laxer)
    assert threshold_on_average(curve, 1.0) == -np.inf
    assert threshold_on_average(curve, -0.1) == np.inf


def test_expectation_without_a_promise_keeps_all() -> None:
    rows = held_out(50, 2, seed=0)
    expectation = expect_classes(rows, RiskLimit())
    assert (expectation.coverage, expectation.n_judged, expectation.n_independent) == (1.0, 100, 50)
    assert expectation.kept_risk == expectation.risk == rows.is_wrong.mean()


def test_rows_are_dealt_in_their_order_without_a_seed_and_rows_that_no_model_judges_are_told() -> None:
    X = np.arange(8.0)[:, None]
    y = np.array(["a"] * 4 + ["b"] * 4)
    first, second = (hold_out_classes(LogisticRegression(), X, y, n_folds=4, random_state=None) for _ in range(2))
    np.testing.assert_array_equal(first.proba, second.proba)
    assert first.is_judged is not None
    assert first.is_judged.all()
    groups = np.array([0] * 4 + [1] * 3 + [2])  # without the first group one class is left
    found = hold_out_classes(LogisticRegression(), X, y, groups=groups, random_state=None)
    assert found.is_judged is not None
    np.testing.assert_array_equal(found.is_judged, groups != 0)
    np.testing.assert_array_equal(found.proba[:4], 0.5)


def test_labeled_rows_can_be_taken_by_their_places() -> None:
    labeled = Labeled.of(np.arange(5.0)[:, None], ["a", "b", "a", "b", "a"], np.arange(5) // 2)
    some = labeled.take(np.array([1, 4]))
    assert (some.places.tolist(), some.rows.ravel().tolist(), some.y.tolist()) == ([1, 4], [1.0, 4.0], ["b", "a"])
    assert some.groups is not None
    assert some.groups.tolist() == [0, 2]
