"""Risk against coverage by hand, and a risk-controlled threshold whose true risk is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from gpssl.evaluation._calibration import brier_score
from gpssl.evaluation._selective import (
    _fallback_procedure,
    _tested_counts,
    augrc,
    augrc_scorer,
    aurc,
    aurc_scorer,
    bootstrap_interval,
    predict_or_abstain,
    risk_controlled_threshold,
    risk_coverage_curve,
    risk_coverage_curve_from_losses,
)

Array = NDArray[np.float64]


def predictions(certainty: Any, wrong: Any) -> tuple[NDArray[Any], Array]:
    """Labels and probabilities of two classes with these certainties and errors; the second is always the likelier."""
    certainty, wrong = np.asarray(certainty), np.asarray(wrong, dtype=bool)
    return np.where(wrong, 0, 1), np.column_stack([1 - certainty, certainty])


def tied_predictions(seed: int = 0, n_rows: int = 60, n_classes: int = 3) -> tuple[NDArray[Any], Array]:
    """Probabilities with few distinct values, so that many rows have the same certainty."""
    rng = np.random.default_rng(seed)
    tenths = rng.multinomial(10, rng.dirichlet(np.ones(n_classes)), size=n_rows)
    return rng.integers(n_classes, size=n_rows), tenths / 10


HAND_CERTAINTY, HAND_WRONG = [0.6, 0.9, 0.7, 0.8], [1, 0, 0, 1]  # by certainty: right, wrong, right, wrong
TIED_CERTAINTY, TIED_WRONG = [0.9, 0.8, 0.8, 0.6], [0, 1, 0, 1]


def test_curve_by_hand() -> None:
    y, proba = predictions(HAND_CERTAINTY, HAND_WRONG)
    curve = risk_coverage_curve(y, proba)
    np.testing.assert_array_equal(curve.threshold, [0.9, 0.8, 0.7, 0.6])
    np.testing.assert_allclose(curve.coverage, [0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(curve.risk, [0, 1 / 2, 1 / 3, 1 / 2])
    np.testing.assert_allclose(curve.generalized_risk, [0, 1 / 4, 1 / 4, 1 / 2])
    assert aurc(y, proba) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    assert augrc(y, proba) == pytest.approx((0 / 2 + (0 + 0.25) / 2 + 0.25 + (0.25 + 0.5) / 2) / 4)


def test_curve_with_ties_by_hand() -> None:
    y, proba = predictions(TIED_CERTAINTY, TIED_WRONG)
    curve = risk_coverage_curve(y, proba)
    np.testing.assert_array_equal(curve.threshold, [0.9, 0.8, 0.6])
    np.testing.assert_allclose(curve.coverage, [0.25, 0.75, 1])
    np.testing.assert_allclose(curve.risk, [0, 1 / 3, 1 / 2])
    assert aurc(y, proba) == pytest.approx((0 + 1 / 3 + 1 / 3 + 1 / 2) / 4)
    assert augrc(y, proba) == pytest.approx(0 + 0.5 * 0.25 / 2 + 0.25 * (0.25 + 0.5) / 2)


@pytest.mark.parametrize("seed", range(5))
def test_aurc_is_the_average_of_the_risk_at_each_row_s_own_certainty(seed: int) -> None:
    y, proba = tied_predictions(seed)
    wrong, certainty = proba.argmax(axis=1) != y, proba.max(axis=1)
    slowly = np.mean([wrong[certainty >= own].mean() for own in certainty])
    assert aurc(y, proba, labels=[0, 1, 2]) == pytest.approx(slowly, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_augrc_is_the_area_that_roc_auc_and_accuracy_give(seed: int) -> None:
    y, proba = tied_predictions(seed)
    right, certainty = proba.argmax(axis=1) == y, proba.max(axis=1)
    accuracy = right.mean()
    expected = (1 - roc_auc_score(right, certainty)) * accuracy * (1 - accuracy) + 0.5 * (1 - accuracy) ** 2
    assert augrc(y, proba, labels=[0, 1, 2]) == pytest.approx(expected, rel=1e-12)


def test_areas_of_predictions_that_are_always_right_or_always_wrong() -> None:
    for wrong, expected in (([0, 0, 0], (0, 0)), ([1, 1, 1], (1, 0.5))):
        y, proba = predictions([0.6, 0.7, 0.8], wrong)
        assert (aurc(y, proba, labels=[0, 1]), augrc(y, proba, labels=[0, 1])) == pytest.approx(expected)


@given(data=st.lists(st.tuples(st.sampled_from([0.6, 0.7, 0.8, 0.9]), st.booleans()), min_size=2, max_size=12), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_areas_ignore_the_order_of_the_rows(data: list[tuple[float, bool]], seed: int) -> None:
    y, proba = predictions(*map(list, zip(*data, strict=True)))
    order = np.random.default_rng(seed).permutation(len(y))
    for area in (aurc, augrc):
        assert area(y[order], proba[order], labels=[0, 1]) == pytest.approx(area(y, proba, labels=[0, 1]), rel=1e-12)


def test_weight_two_is_the_row_twice_and_weight_zero_is_no_row() -> None:
    y, proba = tied_predictions()
    weight = np.random.default_rng(1).integers(3, size=len(y))
    repeated = risk_coverage_curve(np.repeat(y, weight), np.repeat(proba, weight, axis=0), labels=[0, 1, 2])
    weighted = risk_coverage_curve(y, proba, labels=[0, 1, 2], sample_weight=weight)
    for left, right in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12)
    assert aurc(y, proba, labels=[0, 1, 2], sample_weight=weight) == pytest.approx(repeated.aurc)
    assert augrc(y, proba, labels=[0, 1, 2], sample_weight=weight) == pytest.approx(repeated.augrc)


def test_curve_from_losses_serves_regression() -> None:
    curve = risk_coverage_curve_from_losses([4.0, 1.0, 1.0], [-2.0, -0.1, -1.0])
    np.testing.assert_array_equal(curve.threshold, [-0.1, -1.0, -2.0])
    np.testing.assert_allclose(curve.risk, [1, 1, 2])


@pytest.mark.parametrize(
    ("losses", "certainty", "sentence"),
    [([1.0], [1.0, 2.0], "one loss and one certainty"), ([], [], "at least one row"), ([np.nan], [1.0], "finite")],
)
def test_bad_losses_get_a_sentence(losses: Any, certainty: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        risk_coverage_curve_from_losses(losses, certainty)


def test_bad_probabilities_get_the_sentence_of_calibration() -> None:
    for function in (aurc, augrc, risk_coverage_curve, lambda y, proba: risk_controlled_threshold(y, proba, 0.1)):
        with pytest.raises(ValueError, match=r"pass labels=classifier\.classes_"):
            function([0, 0], [[0.5, 0.5], [0.1, 0.9]])


def test_bootstrap_interval_holds_the_score_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    n_sets, truth = 60, 1 / 3  # E 2p(1 − p) over a uniform p
    n_held = 0
    for seed in range(n_sets):
        p = rng.random(100)
        low, high = bootstrap_interval(brier_score, rng.random(100) < p, p, confidence=0.9, n_resamples=100, random_state=seed)
        n_held += low <= truth <= high
    assert binom.ppf(0.001, n_sets, 0.85) <= n_held <= binom.ppf(0.999, n_sets, 0.95)


def test_bootstrap_interval_keeps_labels_that_a_resample_lacks() -> None:
    y, proba = predictions([0.9, 0.8, 0.7, 0.6], [0, 0, 0, 1])
    interval = bootstrap_interval(aurc, y, proba, n_resamples=50, random_state=0)
    assert interval.low == 0 < aurc(y, proba) < interval.high
    assert interval == bootstrap_interval(aurc, y, proba, n_resamples=50, random_state=0)
    assert interval == bootstrap_interval(aurc, y, proba[:, 1], labels=[0, 1], n_resamples=50, random_state=0)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"confidence": 1.0}, "confidence must be a number above 0 and below 1"),
        ({"n_resamples": 0}, "n_resamples must be a whole number of at least 1"),
    ],
)
def test_bad_options_of_the_bootstrap_get_a_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        bootstrap_interval(aurc, *predictions([0.9, 0.8], [0, 1]), **options)


def test_bootstrap_of_one_row_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="needs at least two"):
        bootstrap_interval(aurc, [1], [0.9], labels=[0, 1])


@pytest.fixture(scope="module")
def flowers() -> tuple[Array, NDArray[np.str_]]:
    X, y = make_classification(n_samples=300, n_classes=3, n_informative=4, flip_y=0.1, random_state=0)
    return X, np.array(["iris", "lily", "rose"])[y]


@pytest.mark.parametrize(("scorer", "area"), [(aurc_scorer, aurc), (augrc_scorer, augrc)])
def test_scorers_work_in_a_grid_search(scorer: Any, area: Callable[..., float], flowers: tuple[Array, NDArray[np.str_]]) -> None:
    X, y = flowers
    search = GridSearchCV(LogisticRegression(max_iter=1000), {"C": [1e-4, 1.0]}, scoring=scorer, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_ == {"C": 1.0}
    assert search.score(X, y) == pytest.approx(-area(y, search.predict_proba(X), labels=search.classes_))


@pytest.mark.parametrize("area", [aurc, augrc])
def test_scikit_learn_makes_a_scorer_for_two_classes(area: Callable[..., float], flowers: tuple[Array, NDArray[np.str_]]) -> None:
    X, y = flowers
    scorer = make_scorer(area, greater_is_better=False, response_method="predict_proba")
    ours = aurc_scorer if area is aurc else augrc_scorer
    values = [cross_val_score(LogisticRegression(), X, y == "rose", scoring=each, error_score="raise") for each in (scorer, ours)]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-9)


@pytest.mark.parametrize("mark", [-1, None, np.nan])
def test_scorers_leave_unlabeled_rows_out(mark: Any, flowers: tuple[Array, NDArray[np.str_]]) -> None:
    X, y = flowers
    classifier = LogisticRegression(max_iter=1000).fit(X, y)
    marked = y.astype(object)
    marked[::3] = mark
    labeled = np.arange(len(y)) % 3 != 0
    assert aurc_scorer(classifier, X, marked) == aurc_scorer(classifier, X[labeled], y[labeled])
    assert aurc_scorer(classifier, X, marked.tolist()) == aurc_scorer(classifier, X[labeled], y[labeled])
    with pytest.raises(ValueError, match="No row has a label"):
        augrc_scorer(classifier, X[::3], marked[::3])


def test_minus_one_is_a_class_where_the_estimator_says_so() -> None:
    X, y = np.arange(8.0)[:, None], np.array([-1, -1, -1, -1, 1, 1, -1, 1])
    classifier = LogisticRegression().fit(X, y)
    assert -aurc_scorer(classifier, X, y) == pytest.approx(aurc(y, classifier.predict_proba(X)))


def test_a_class_that_the_estimator_never_saw_counts_as_an_error_and_is_told(flowers: tuple[Array, NDArray[np.str_]]) -> None:
    X, y = flowers
    classifier = LogisticRegression(max_iter=1000).fit(X, y)
    with pytest.warns(UserWarning, match="300 of 300 labels are of classes that the estimator has not seen"):
        assert aurc_scorer(classifier, X, np.full(len(y), "tulip")) == -1
    with pytest.warns(UserWarning, match="stratified"):
        assert augrc_scorer(classifier, X, np.full(len(y), "tulip")) == pytest.approx(-0.5)


def test_labels_in_place_of_probabilities_get_a_sentence() -> None:
    with pytest.raises(ValueError, match="pass the output of predict_proba, not of predict"):
        risk_controlled_threshold(["a", "b"], ["a", "b"], 0.1)


def test_abstentions_can_be_filled_with_any_text(flowers: tuple[Array, NDArray[np.str_]]) -> None:
    X, y = flowers
    predicted = predict_or_abstain(LogisticRegression(max_iter=1000).fit(X, y), X, 0.9)
    assert "ask somebody" in predicted.filled("ask somebody").tolist()


class Population:
    """Certainties, the error probability of each, and the true risk of the rows above a threshold.

    The certainty is uniform on (low, high] in each of some pieces, or has one value where low = high; the error probability
    is linear in it.
    """

    def __init__(self, *pieces: tuple[float, float, float, float, float]) -> None:
        self.low, self.high, self.share, self.rate_at_low, self.rate_at_high = np.array(pieces).T

    def draw(self, n_rows: int, rng: np.random.Generator) -> tuple[NDArray[Any], Array]:
        piece = rng.choice(len(self.share), size=n_rows, p=self.share)
        u = 1 - rng.random(n_rows)
        rate = self.rate_at_low[piece] + u * (self.rate_at_high - self.rate_at_low)[piece]
        return predictions(self.low[piece] + u * (self.high - self.low)[piece], rng.random(n_rows) < rate)

    def coverage_and_risk(self, threshold: float) -> tuple[float, float]:
        """P(κ > t) and P(error | κ > t), the latter by integrating the linear rates."""
        width = self.high - self.low
        start = np.where(width > 0, np.clip((threshold - self.low) / np.where(width > 0, width, 1), 0, 1), self.low <= threshold)
        mass = self.share * (1 - start)
        rate = self.rate_at_low + (1 + start) / 2 * (self.rate_at_high - self.rate_at_low)
        return mass.sum(), (mass @ rate) / mass.sum() if mass.sum() > 0 else 0.0


CALIBRATED = Population((0.5, 1, 1, 0.5, 0))
EASY = Population((0.5, 1, 1, 0.1, 0))
POPULATIONS = {
    "calibrated": (CALIBRATED, 0.1),
    "overconfident": (Population((0.5, 1, 1, 1, 0)), 0.2),
    "every threshold just above": (Population((0.5, 1, 1, 0.101, 0.101)), 0.1),
    "most certain most often wrong": (
        Population((0.5, 0.75, 0.5, 0.1, 0.1), (0.75, 0.95, 0.4, 0.02, 0.02), (0.95, 1, 0.1, 0.4, 0.4)),
        0.09,
    ),
    "four values": (
        Population((0.6, 0.6, 0.3, 0.4, 0.4), (0.8, 0.8, 0.3, 0.16, 0.16), (0.9, 0.9, 0.2, 0.1, 0.1), (0.99, 0.99, 0.2, 0.01, 0.01)),
        0.095,
    ),
    "risk jumps at a value": (Population((0.7, 1, 0.5, 0.05, 0.05), (0.6, 0.6, 0.2, 0.3, 0.3), (0.5, 0.59, 0.3, 0.13, 0.13)), 0.12),
}


@pytest.mark.filterwarnings("ignore:No threshold holds")
def test_the_promise_is_used_up_where_there_is_one_threshold_to_test() -> None:
    """22 rows of one certainty pass at 10 % without an error: P = 0.899²² = 0.096 for a risk of 0.101, just below the promised 0.1."""
    population, rng = Population((0.9, 0.9, 1, 0.101, 0.101)), np.random.default_rng(0)
    n_exceeded = sum(risk_controlled_threshold(*population.draw(22, rng), 0.1, 0.9, labels=[0, 1]) < np.inf for _ in range(2000))
    assert 0.08 * 2000 < n_exceeded <= binom.ppf(0.999, 2000, 0.1)


@pytest.mark.filterwarnings("ignore:No threshold holds")
@pytest.mark.parametrize("name", POPULATIONS)
def test_true_risk_exceeds_the_target_as_rarely_as_promised(name: str) -> None:
    """In 2,000 data sets at confidence 0.8, up to the 99.9 % quantile of a binomial count with the promised rate of 0.2."""
    population, max_risk = POPULATIONS[name]
    rng = np.random.default_rng(0)
    n_sets, confidence = 2000, 0.8
    n_exceeded = 0
    for _ in range(n_sets):
        threshold = risk_controlled_threshold(*population.draw(200, rng), max_risk, confidence, labels=[0, 1])
        n_exceeded += population.coverage_and_risk(threshold)[1] > max_risk
    assert n_exceeded <= binom.ppf(0.999, n_sets, 1 - confidence)


def test_populations_know_their_risk() -> None:
    for population, _ in POPULATIONS.values():
        y, proba = population.draw(200_000, np.random.default_rng(0))
        for threshold in (-np.inf, 0.6, 0.85, 0.9):
            accepted = proba[:, 1] > threshold
            found = accepted.mean(), (y[accepted] == 0).mean()
            assert found == pytest.approx(population.coverage_and_risk(threshold), abs=0.01)


@pytest.mark.parametrize(("population", "at_least"), [(EASY, 0.99), (CALIBRATED, 0.25)])
def test_easy_rows_are_accepted(population: Population, at_least: float) -> None:
    """The best possible coverages at risk 0.1 are 1 and 0.4."""
    rng = np.random.default_rng(0)
    thresholds = [risk_controlled_threshold(*population.draw(3000, rng), 0.1, labels=[0, 1]) for _ in range(50)]
    assert np.mean([population.coverage_and_risk(threshold)[0] for threshold in thresholds]) >= at_least


def slow_threshold(y: NDArray[Any], proba: Array, max_risk: float, delta: float) -> float:
    certainty, wrong = proba.max(axis=1), proba.argmax(axis=1) != y
    ranked = [*sorted(certainty, reverse=True), -np.inf]
    counts = _tested_counts(len(y), max_risk, delta)
    answer, level = np.inf, 0.0
    for count in counts:
        accepted = certainty > ranked[count]
        level += delta / len(counts)
        if sum(binom.pmf(e, accepted.sum(), max_risk) for e in range(wrong[accepted].sum() + 1)) <= level:
            answer = ranked[count]
        else:
            level = 0.0
    return float(answer)


@pytest.mark.filterwarnings("ignore:No threshold holds")
@pytest.mark.parametrize("name", POPULATIONS)
def test_threshold_is_that_of_the_procedure_written_out(name: str) -> None:
    y, proba = POPULATIONS[name][0].draw(300, np.random.default_rng(1))
    order = np.random.default_rng(2).permutation(300)
    for max_risk in (0.05, 0.15, 0.3):
        expected = slow_threshold(y, proba, max_risk, 1 - 0.9)
        assert risk_controlled_threshold(y, proba, max_risk, 0.9) == expected
        assert risk_controlled_threshold(y[order], proba[order], max_risk, 0.9) == expected


def test_fallback_procedure_by_hand() -> None:
    # Levels 0.01, 0.02, 0.03, then 0.01 and 0.02 after the first that is not rejected.
    np.testing.assert_array_equal(_fallback_procedure(np.array([0.01, 0.02, 0.04, 0.005, 0.015]), 0.05), [True, True, False, True, True])
    np.testing.assert_array_equal(_fallback_procedure(np.array([0.011, 0.02]), 0.02), [False, False])


@pytest.mark.parametrize("n_rows", [1, 59, 60, 150, 1000, 100_000])
@pytest.mark.parametrize("max_risk", [0.01, 0.05, 0.5, 0.99])
def test_tested_counts_rise_to_all_rows_and_the_first_can_pass(n_rows: int, max_risk: float) -> None:
    counts = _tested_counts(n_rows, max_risk, 0.05)
    assert counts[-1] == n_rows
    assert (np.diff(counts) > 0).all()
    assert len(counts) == 1 or (1 - max_risk) ** counts[0] <= 0.05 / len(counts) * (1 + 1e-9)


def test_fewest_rows_that_can_hold_a_risk_pass_and_one_less_do_not() -> None:
    y, proba = predictions(np.linspace(0.6, 0.9, 59), np.zeros(59))
    assert risk_controlled_threshold(y, proba, 0.05, labels=[0, 1]) == -np.inf
    with pytest.warns(UserWarning, match="on these 58 rows.*at least 59.*higher max_risk or a lower confidence"):
        assert risk_controlled_threshold(y[1:], proba[1:], 0.05, labels=[0, 1]) == np.inf


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, np.nan])
def test_risk_and_confidence_are_between_zero_and_one(share: float) -> None:
    y, proba = predictions([0.9, 0.8], [0, 1])
    with pytest.raises(ValueError, match="max_risk must be a number above 0 and below 1"):
        risk_controlled_threshold(y, proba, share)
    with pytest.raises(ValueError, match="confidence must be a number above 0 and below 1"):
        risk_controlled_threshold(y, proba, 0.1, share)


def test_predictions_at_or_below_the_threshold_are_masked(flowers: tuple[Array, NDArray[np.str_]]) -> None:
    X, y = flowers
    classifier = LogisticRegression(max_iter=1000).fit(X, y)
    certainty = classifier.predict_proba(X).max(axis=1)
    labels = predict_or_abstain(classifier, X, certainty[0])
    np.testing.assert_array_equal(np.ma.getmaskarray(labels), certainty <= certainty[0])
    np.testing.assert_array_equal(labels.compressed(), classifier.predict(X)[certainty > certainty[0]])
    assert np.ma.getmaskarray(labels)[0]
    assert predict_or_abstain(classifier, X, -np.inf).count() == len(X)
    assert predict_or_abstain(classifier, X, np.inf).count() == predict_or_abstain(classifier, X, np.nan).count() == 0


def test_threshold_and_abstention_work_together(flowers: tuple[Array, NDArray[np.str_]]) -> None:
    X, y = flowers
    classifier = LogisticRegression(max_iter=1000).fit(X[:100], y[:100])
    threshold = risk_controlled_threshold(y[100:200], classifier.predict_proba(X[100:200]), 0.4, labels=classifier.classes_)
    kept = predict_or_abstain(classifier, X[200:], threshold)
    assert 0 < kept.count() < 100
    assert (kept != y[200:]).mean() <= 0.4


def test_classifier_without_probabilities_gets_a_sentence() -> None:
    with pytest.raises(TypeError, match=r"Ridge has no predict_proba.*CalibratedClassifierCV"):
        predict_or_abstain(Ridge(), [[1.0]], 0.5)


@pytest.mark.parametrize("threshold", [None, "0.5", [0.5]])
def test_a_threshold_is_a_number(threshold: Any) -> None:
    with pytest.raises(TypeError, match="threshold must be a number, such as risk_controlled_threshold finds, got"):
        predict_or_abstain(Ridge(), [[1.0]], threshold)
