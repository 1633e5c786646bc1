"""Scores of predictions against hand-computed cases, numerical integration, and scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import norm
from sklearn import metrics

from gpssl.evaluation import _calibration as calibration
from gpssl.evaluation._calibration import (
    brier_score,
    check_probabilities,
    continuous_ranked_probability_score,
    expected_calibration_error,
    interval_coverage,
    log_density,
    log_loss,
    negative_log_likelihood,
    reliability_curve,
    root_mean_squared_error,
)

Array = NDArray[np.float64]

PROBABILITY_SCORES: list[Callable[..., float]] = [expected_calibration_error, brier_score, log_loss]


def some_probabilities(n_rows: int = 200, n_classes: int = 3, seed: int = 0) -> tuple[NDArray[Any], Array]:
    rng = np.random.default_rng(seed)
    return rng.integers(n_classes, size=n_rows), rng.dirichlet(np.ones(n_classes), size=n_rows)


def some_mixtures(n_components: int = 4, n_rows: int = 3, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(n_rows), 2 * rng.standard_normal((n_components, n_rows)), rng.uniform(0.2, 2, (n_components, n_rows))


def test_reliability_curve_by_hand() -> None:
    y = np.array(["a", "a", "b", "b", "b"])
    curve = reliability_curve(y, [0.3, 0.4, 0.45, 0.9, 1.0], n_bins=5)  # certainties 0.7, 0.6, 0.55, 0.9, 1
    np.testing.assert_allclose(curve.certainty, [(0.6 + 0.55) / 2, 0.7, 0.95])
    np.testing.assert_allclose(curve.accuracy, [0.5, 1.0, 1.0])
    np.testing.assert_allclose(curve.share, [0.4, 0.2, 0.4])
    np.testing.assert_allclose(curve.lower, [0.4, 0.6, 0.8])
    np.testing.assert_allclose(curve.upper, [0.6, 0.8, 1.0])


def test_expected_calibration_error_by_hand() -> None:
    y = np.array(["a", "a", "b", "b", "b"])
    expected = 0.4 * abs(0.5 - 0.575) + 0.2 * 0.3 + 0.4 * 0.05
    assert expected_calibration_error(y, [0.3, 0.4, 0.45, 0.9, 1.0], n_bins=5) == pytest.approx(expected, rel=1e-12)


def test_bins_are_closed_above_and_the_first_has_zero() -> None:
    curve = reliability_curve([0, 0], [[0.5, 0.5], [0.75, 0.25]], labels=[0, 1], n_bins=4)
    np.testing.assert_array_equal(curve.upper, [0.5, 0.75])


def test_one_bin_compares_mean_certainty_with_accuracy() -> None:
    y, proba = some_probabilities()
    accuracy = (proba.argmax(axis=1) == y).mean()
    assert expected_calibration_error(y, proba, n_bins=1) == pytest.approx(abs(accuracy - proba.max(axis=1).mean()))


def test_drawn_labels_are_calibrated() -> None:
    _, proba = some_probabilities(n_rows=100_000)
    y = (np.random.default_rng(1).random(len(proba))[:, None] > proba.cumsum(axis=1)).sum(axis=1)
    assert expected_calibration_error(y, proba) < 0.01


def test_brier_score_of_two_classes_is_twice_that_of_scikit_learn() -> None:
    y, proba = some_probabilities(n_classes=2)
    assert brier_score(y, proba) == pytest.approx(2 * metrics.brier_score_loss(y, proba[:, 1]), rel=1e-12)


def test_brier_score_by_hand_and_its_range() -> None:
    assert brier_score([0, 1], [[0.5, 0.2, 0.3], [0.1, 0.9, 0.0]], labels=[0, 1, 2]) == pytest.approx((0.38 + 0.02) / 2)
    assert brier_score([0, 1], [[1.0, 0.0], [0.0, 1.0]]) == 0
    assert brier_score([0, 1], [[0.0, 1.0], [1.0, 0.0]]) == 2


def test_log_loss_is_the_mean_negative_log_probability() -> None:
    y, proba = some_probabilities()
    assert log_loss(y, proba) == pytest.approx(-np.log(proba[np.arange(len(y)), y]).mean(), rel=1e-12)


def test_probability_of_zero_costs_36_nats() -> None:
    assert log_loss([0, 1], [[0.0, 1.0], [0.0, 1.0]]) == pytest.approx(-np.log(np.finfo(float).eps) / 2, rel=1e-6)


@pytest.mark.parametrize("score", PROBABILITY_SCORES)
def test_scores_do_not_depend_on_how_labels_are_written(score: Callable[..., float]) -> None:
    y, proba = some_probabilities(n_classes=2)
    expected = score(y, proba)
    assert score(np.array(["no", "yes"])[y], proba) == expected
    assert score(y == 1, proba) == expected
    assert score(np.array([1, 0])[y], proba, labels=[1, 0]) == expected  # columns in the order of labels
    assert score(y, proba[:, 1]) == pytest.approx(expected, rel=1e-12)
    assert score(y.tolist(), proba.tolist()) == expected


@pytest.mark.parametrize("score", PROBABILITY_SCORES)
def test_single_precision_is_precise_enough(score: Callable[..., float]) -> None:
    y, proba = some_probabilities(n_classes=20)
    assert score(y, proba.astype(np.float32)) == pytest.approx(score(y, proba), rel=1e-4)


@pytest.mark.parametrize(
    ("y", "proba", "labels", "sentence"),
    [
        ([0, 1], [[0.5, 0.5], [0.2, 0.2]], None, "row 1 sum to 0.4, not to one within 0.0001: divide"),
        ([0, 1], [[0.5, 0.5], [-0.2, 1.2]], None, "not negative: pass the output of predict_proba"),
        ([0, 1], [[0.5, 0.5], [np.nan, 1]], None, "must be finite"),
        ([0, 1, 1], [[0.5, 0.5], [0.2, 0.8]], None, "y has 3 rows and proba has 2"),
        ([], np.ones((0, 2)), None, "y has no rows"),
        ([0, 0], [[0.5, 0.5], [0.2, 0.8]], None, "2 columns of probabilities but 1 distinct values in y: pass labels=classifier.classes_"),
        ([0, 0], [0.5, 0.2], None, "pass labels=classifier.classes_"),
        ([0, 0], [0.5, 0.2], [0, 1, 2], "2 columns of probabilities but 3 labels"),
        ([0, 7], [0.5, 0.2], [0, 1], r"y has 7, not among the labels \[0, 1\]"),
        (["a", None], [0.5, 0.2], ["a", "b"], "y has None, not among the labels"),
        (["a", None], [0.5, 0.2], None, "leave missing ones out"),
        ([0, 0], [0.5, 0.2], [0, 0], "at least two and distinct"),
        ([0], [[1.0]], None, "at least two and distinct"),
        ([[0], [1]], [0.5, 0.2], None, "y must have one dimension"),
        ([0, 1], np.ones((2, 2, 2)) / 2, None, "proba must be"),
    ],
)
def test_bad_probabilities_get_a_sentence(y: Any, proba: Any, labels: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        check_probabilities(y, proba, labels)


def test_number_of_bins_is_a_positive_whole_number() -> None:
    with pytest.raises(ValueError, match="n_bins must be a whole number of at least 1"):
        reliability_curve([0, 1], [0.1, 0.9], n_bins=0)


def test_root_mean_squared_error_is_that_of_the_mixture_s_mean() -> None:
    y, mean, _ = some_mixtures()
    assert root_mean_squared_error(y, mean) == pytest.approx(np.sqrt(((y - mean.mean(axis=0)) ** 2).mean()))
    assert root_mean_squared_error([0.0, 0.0], [3.0, 4.0]) == pytest.approx(np.sqrt(12.5))


def test_log_density_of_one_gaussian_is_scipy_s() -> None:
    y, mean, std = (rows.reshape(-1)[:3] for rows in some_mixtures())
    np.testing.assert_allclose(log_density(y, mean, std), norm.logpdf(y, mean, std), rtol=1e-12)
    assert negative_log_likelihood(y, mean, std) == pytest.approx(-norm.logpdf(y, mean, std).mean(), rel=1e-12)


def test_log_density_of_a_mixture_by_hand() -> None:
    density = 0.5 * (np.exp(-0.5) + np.exp(-0.125) / 2) / np.sqrt(2 * np.pi)  # y = 1 under N(0, 1) and N(2, 4)
    np.testing.assert_allclose(log_density([1.0], [[0.0], [2.0]], [[1.0], [2.0]]), [np.log(density)], rtol=1e-12)


def test_log_density_far_from_all_components_is_finite() -> None:
    assert negative_log_likelihood([1e4], [[0.0], [1.0]], [[1.0], [1.0]]) == pytest.approx(0.5 * 9999**2 + np.log(2) + 0.919, rel=1e-9)


def squared_difference(z: float, y: float, mean: Array, std: Array) -> float:
    return float((norm.cdf(z, mean, std).mean() - (z >= y)) ** 2)


@pytest.mark.parametrize("n_components", [1, 4])
def test_continuous_ranked_probability_score_is_its_integral(n_components: int) -> None:
    y, mean, std = some_mixtures(n_components)
    integrals = [
        sum(quad(squared_difference, *ends, args=(y[n], mean[:, n], std[:, n]), limit=200)[0] for ends in ((-40, y[n]), (y[n], 40)))
        for n in range(len(y))
    ]
    assert continuous_ranked_probability_score(y, mean, std) == pytest.approx(np.mean(integrals), rel=1e-7)


def test_continuous_ranked_probability_score_is_the_distance_minus_half_the_spread_of_draws() -> None:
    y, mean, std = some_mixtures(n_rows=1)
    rng = np.random.default_rng(0)
    first, second = (rng.normal(mean[rows, 0], std[rows, 0]) for rows in rng.integers(len(mean), size=(2, 500_000)))
    drawn = np.abs(first - y).mean() - 0.5 * np.abs(first - second).mean()
    assert continuous_ranked_probability_score(y, mean, std) == pytest.approx(drawn, abs=0.01)


def test_continuous_ranked_probability_score_without_spread_is_the_absolute_error() -> None:
    assert continuous_ranked_probability_score([3.0], [1.0], [1e-9]) == pytest.approx(2.0)


def test_blocks_of_rows_do_not_change_the_score(monkeypatch: pytest.MonkeyPatch) -> None:
    y, mean, std = some_mixtures(n_rows=50)
    at_once = continuous_ranked_probability_score(y, mean, std)
    monkeypatch.setattr(calibration, "PAIRS_AT_A_TIME", 7 * len(mean) ** 2)
    assert continuous_ranked_probability_score(y, mean, std) == pytest.approx(at_once, rel=1e-12)


@given(shift=st.floats(-100, 100), scale=st.floats(0.01, 100))
def test_scores_of_values_follow_shift_and_scale(shift: float, scale: float) -> None:
    y, mean, std = some_mixtures()
    moved = scale * y + shift, scale * mean + shift, scale * std
    expected = scale * continuous_ranked_probability_score(y, mean, std)
    assert continuous_ranked_probability_score(*moved) == pytest.approx(expected, rel=1e-6)
    assert negative_log_likelihood(*moved) == pytest.approx(negative_log_likelihood(y, mean, std) + np.log(scale), rel=1e-6, abs=1e-6)


def test_equal_components_are_one_component() -> None:
    y, mean, std = some_mixtures(n_components=1)
    repeated = np.repeat(mean, 5, axis=0), np.repeat(std, 5, axis=0)
    for score in (negative_log_likelihood, continuous_ranked_probability_score):
        assert score(y, *repeated) == pytest.approx(score(y, mean[0], std[0]), rel=1e-12)


def test_interval_coverage_counts_the_ends() -> None:
    intervals = [[0, 1], [0, 1], [0, 1], [-np.inf, np.inf]]
    assert interval_coverage([0, 1, 1.001, 50], intervals) == 0.75


@pytest.mark.parametrize(
    ("mean", "std", "sentence"),
    [
        ([0, 0], [1, 0], "std must be positive"),
        ([0, 0], [1, -1], "std must be positive"),
        ([0, 0], [1, np.inf], "std has values that are NaN or infinite"),
        ([0, np.nan], [1, 1], "mean has values that are NaN or infinite"),
        ([0, 0, 0], [1, 1, 1], "y has 2 rows and mean has 3"),
        ([[0, 0], [0, 0]], [1, 1], "same shape"),
        (0, [1, 1], "mean must be"),
        (np.ones((0, 2)), np.ones((0, 2)), "mean must be"),
    ],
)
def test_bad_gaussians_get_a_sentence(mean: Any, std: Any, sentence: str) -> None:
    for score in (negative_log_likelihood, continuous_ranked_probability_score):
        with pytest.raises(ValueError, match=sentence):
            score([0.0, 1.0], mean, std)


@pytest.mark.parametrize(
    ("y", "intervals", "sentence"),
    [
        ([0.0], [[1, 0]], "lower end in the first column"),
        ([0.0], [[0, np.nan]], "lower end in the first column"),
        ([0.0], [0, 1], r"\[rows, 2\]"),
        ([0.0, 1.0], [[0, 1]], "y has 2 rows and intervals has 1"),
        ([np.nan], [[0, 1]], "y has values that are NaN"),
    ],
)
def test_bad_intervals_get_a_sentence(y: Any, intervals: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        interval_coverage(y, intervals)


def test_rounded_probabilities_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log_loss([0, 1, 2], np.full((3, 3), 0.33333))


# Weights of the components


def mixture(seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=7), rng.normal(size=(3, 7)), rng.uniform(0.5, 2.0, size=(3, 7))


VALUE_SCORES: list[Callable[..., Any]] = [log_density, negative_log_likelihood, continuous_ranked_probability_score]


@pytest.mark.parametrize("score", VALUE_SCORES)
def test_whole_weights_are_repeated_components(score: Callable[..., Any]) -> None:
    y, mean, std = mixture()
    times = [1, 3, 4]
    repeated = (np.repeat(values, times, axis=0) for values in (mean, std))
    np.testing.assert_allclose(score(y, mean, std, weights=np.array(times) / 8), score(y, *repeated), rtol=1e-12)
    np.testing.assert_allclose(score(y, mean, std, weights=np.full(3, 1 / 3)), score(y, mean, std), rtol=1e-12)
    np.testing.assert_allclose(score(y, mean, std, weights=[0.0, 1.0, 0.0]), score(y, mean[1], std[1]), rtol=1e-12)


def test_the_root_mean_squared_error_is_that_of_the_weighted_mean() -> None:
    y, mean, _ = mixture()
    weights = np.array([0.2, 0.5, 0.3])
    assert root_mean_squared_error(y, mean, weights=weights) == pytest.approx(np.sqrt(((y - weights @ mean) ** 2).mean()))


def test_the_weighted_ranked_probability_score_is_its_integral() -> None:
    y, mean, std = (values[..., :1] for values in mixture())
    weights = np.array([0.7, 0.1, 0.2])

    def below(z: float) -> float:
        return float(weights @ norm.cdf(z, mean[:, 0], std[:, 0]))

    left, right = quad(lambda z: below(z) ** 2, -30, y[0])[0], quad(lambda z: (1 - below(z)) ** 2, y[0], 30)[0]
    assert continuous_ranked_probability_score(y, mean, std, weights=weights) == pytest.approx(left + right, abs=1e-7)


def test_moments_and_distribution_of_a_weighted_mixture_are_those_of_its_draws() -> None:
    _, mean, std = mixture()
    weights, rng = np.array([0.6, 0.3, 0.1]), np.random.default_rng(1)
    component = rng.choice(3, size=200_000, p=weights)
    draws = mean[component] + std[component] * rng.normal(size=(200_000, 7))
    center, within, between = calibration.mixture_moments(mean, std, weights)
    np.testing.assert_allclose(center, draws.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(within + between, draws.var(axis=0), rtol=0.03)
    np.testing.assert_allclose(calibration.distribution_at(np.zeros(7), mean, std, weights), (draws < 0).mean(axis=0), atol=0.006)


@pytest.mark.parametrize("weights", [[0.5, 0.5], [0.5, 0.7, -0.2], [0.5, 0.5, 0.5], [[0.2, 0.3, 0.5]], [np.nan, 0.5, 0.5]])
@pytest.mark.parametrize("score", VALUE_SCORES)
def test_bad_weights_get_a_sentence(weights: Any, score: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="weights must be 3 numbers, one for each component, not negative and with the sum one"):
        score(*mixture(), weights=weights)
