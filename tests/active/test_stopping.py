"""When to stop: curves with known answers, and the sentences that are made of them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.datasets import load_diabetes, load_wine
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpssl import MarginalizedClassifier, RepresentationPool
from gpssl.active import LearningCurve, learning_curve, stop_advice
from gpssl.active._stopping import EXPONENTS, fit_power_laws, with_fitted_representation
from gpssl.kernels import StandardizedKernel

Array = NDArray[np.float64]

SIZES = np.array([6, 12, 24, 48, 96])


def _simulated(a: float, b: float, c: float, n_labels: int = 120, seed: int = 0) -> LearningCurve:
    """Errors that fall as a power law says; a label that is hard for one model is mostly hard for the others, too."""
    rng = np.random.default_rng(seed)
    luck = np.where(rng.random((n_labels, 5)) < 0.6, rng.random((n_labels, 1)), rng.random((n_labels, 5)))
    return LearningCurve(SIZES, (luck < a + b * SIZES**-c).astype(np.float64), is_class=True, random_state=seed)


def _labels_by_the_bound(a: float, b: float, c: float, first: int = 120, max_risk: float = 0.05) -> float:
    """The smallest number of labels of which so few are wrong, in the median, that the binomial test allows the promise."""
    for n in range(first, 50 * first):
        if binom.cdf(binom.median(n, a + b * n**-c), n, max_risk) <= 0.05:
            return float(n)
    return np.inf


@pytest.mark.parametrize("c", [0.5, 1.0])
@pytest.mark.parametrize("a", [0.0, 0.1])
def test_power_law_without_noise_is_found(a: float, c: float) -> None:
    risks = a + 0.8 * SIZES**-c
    found = fit_power_laws(SIZES, np.tile(risks, (20, 1)))
    np.testing.assert_allclose(found.c, c)
    np.testing.assert_allclose(found.a, a, atol=1e-9)
    np.testing.assert_allclose(found.at(np.array([1000.0])), a + 0.8 * 1000**-c, rtol=1e-6)


def test_fits_never_fall_below_zero_nor_rise_with_labels() -> None:
    risks = np.random.default_rng(0).uniform(0, 0.5, (200, 5))
    found = fit_power_laws(SIZES, risks)
    assert (found.a >= 0).all()
    assert (found.b >= 0).all()
    assert set(found.c) <= set(EXPONENTS)


def test_fit_is_that_of_least_squares() -> None:
    """With one exponent left, numpy's weighted least squares says the same."""
    risks = 0.05 + 2.0 / SIZES + np.array([0.01, -0.01, 0.005, -0.002, 0.001])
    found = fit_power_laws(SIZES, risks[None].repeat(200, axis=0))
    rows = (found.c == 1.0) & (found.a > 0)
    assert rows.any()
    root = np.sqrt(SIZES)
    expected = np.linalg.lstsq(np.stack([root, root / SIZES], axis=1), root * risks, rcond=None)[0]
    np.testing.assert_allclose(found.a[rows], expected[0])
    np.testing.assert_allclose(found.b[rows], expected[1])


@pytest.mark.parametrize("law", [(0.0, 0.6, 0.8), (0.0, 1.0, 0.7), (0.01, 1.0, 1.0), (0.02, 2.0, 1.0), (0.0, 0.0, 1.0)])
def test_interval_holds_the_number_of_labels_that_a_known_curve_takes(law: tuple[float, float, float]) -> None:
    """The interval is meant to hold it in four of five cases."""
    answer = _labels_by_the_bound(*law)
    found = [_simulated(*law, seed=seed).labels_until(0.05) for seed in range(20)]
    assert sum(one.low <= answer <= one.high for one in found) >= 14


def test_out_of_reach_where_errors_level_off_above() -> None:
    found = [_simulated(0.15, 1.0, 1.0, seed=seed).labels_until(0.05) for seed in range(10)]
    assert sum(np.isinf(one.middle) for one in found) >= 9
    text = stop_advice(_simulated(0.15, 1.0, 1.0), 0.05).text
    assert "More labels will hardly bring 5 % errors for all predictions" in text
    assert "level off at about" in text


def test_bound_alone_decides_where_there_is_no_error() -> None:
    """Without any error, 59 labels are the least that allow 5 % to be promised."""
    curve = LearningCurve(np.array([6, 12, 24]), np.zeros((30, 3)), is_class=True)
    needed = curve.labels_until(0.05)
    assert needed.low == 59
    assert needed.middle in (59, 93)  # without an error, or with one
    advice = stop_advice(curve, 0.05)
    assert advice.is_flat
    assert "More labels will hardly change these predictions, and are needed for the promise alone" in advice.text


def test_promise_that_can_be_made_already_is_said_so() -> None:
    advice = stop_advice(LearningCurve(SIZES, np.zeros((300, 5)), is_class=True), 0.05)
    assert advice.n_more == 0
    assert advice.text.startswith("5 % errors can be promised for all predictions with about the labels that there are.")


def test_a_promise_on_average_takes_fewer_labels() -> None:
    """(k + 1) / (n + 1) ≤ α: nineteen labels without an error for 5 %, and 39 with one."""
    curve = LearningCurve(np.array([3, 6, 10]), np.zeros((12, 3)), is_class=True)
    needed = curve.labels_until(0.05, None)
    assert needed.low == 19
    assert needed.middle in (19, 39)
    assert stop_advice(curve, 0.05, None).n_more == needed.middle - 12


def test_steep_curve_is_not_flat_and_more_labels_are_worth_it() -> None:
    advice = stop_advice(_simulated(0.0, 1.5, 0.5), None)
    assert advice.is_flat is False
    assert advice.text.startswith("Twice as many labels: about ")
    assert advice.risk_with_twice_as_many is not None
    assert advice.risk is not None
    assert advice.risk_with_twice_as_many < 0.9 * advice.risk


def test_groups_count_as_one_label_each() -> None:
    losses = np.zeros((120, 5))
    alone = LearningCurve(SIZES, losses, is_class=True).labels_until(0.05)
    in_pairs = LearningCurve(SIZES, losses, is_class=True, groups=np.arange(120) // 4).labels_until(0.05)
    assert alone.low == 120
    assert in_pairs.low >= 4 * 59


# Curves from labels


def test_curve_of_a_model_that_learns_falls_and_of_a_guess_does_not() -> None:
    X, y = load_wine(return_X_y=True)
    learns = learning_curve(make_pipeline(StandardScaler(), LogisticRegression()), X, y)
    assert learns.sizes[0] == 6
    assert learns.sizes[-1] >= 0.75 * len(y)
    assert learns.losses.shape == (len(y), len(learns.sizes))
    assert learns.risk[-1] < 0.05 < learns.risk[0]
    guesses = learning_curve(DummyClassifier(), X, y)
    assert guesses.risk[-1] == pytest.approx(0.6, abs=0.03)
    assert np.isinf(guesses.labels_until(0.05).middle)


def test_numbers_have_a_curve_of_root_mean_squared_errors() -> None:
    X, y = load_diabetes(return_X_y=True)
    curve = learning_curve(make_pipeline(StandardScaler(), Ridge(1.0)), X[:200], y[:200])
    assert curve.risk[0] > curve.risk[-1]
    assert 40 < curve.risk[-1] < 70
    assert curve.labels_until(80.0).middle == 200
    assert np.isinf(curve.labels_until(10.0).middle)
    assert re.search(r": a root mean squared error of about \d+(\.\d)? in the place of \d+(\.\d)?\.", stop_advice(curve, None).text)


def test_only_heads_are_trained_again() -> None:
    X, y = load_wine(return_X_y=True)
    model = MarginalizedClassifier(RepresentationPool([("similar", StandardizedKernel())]), random_state=0).fit(X, y)
    frozen = with_fitted_representation(model)
    assert isinstance(frozen.representation, FrozenEstimator)
    assert frozen.representation.estimator is model.representation_
    assert with_fitted_representation(frozen).get_params()["representation"] is frozen.representation
    rows = np.arange(0, len(y), 3)
    assert learning_curve(model, X[rows], y[rows]).risk[-1] < 0.15


def test_labels_of_a_group_are_held_out_together() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 5)
    X = np.eye(12)[groups] + 0.01 * rng.normal(size=(60, 12))
    y = groups % 2
    model = LogisticRegression(C=100.0)
    assert learning_curve(model, X, y).risk[-1] < 0.2
    assert learning_curve(model, X, y, groups=groups).risk[-1] > 0.3


def test_too_few_labels_are_a_sentence() -> None:
    with pytest.raises(ValueError, match="A learning curve needs at least 12 labels, got 5"):
        learning_curve(LogisticRegression(), np.zeros((5, 1)), np.arange(5) % 2)
    with pytest.raises(ValueError, match="All labels are of one group"):
        learning_curve(LogisticRegression(), np.zeros((20, 1)), np.arange(20) % 2, groups=np.zeros(20))
