"""Conformal selection against slow and obvious versions, and against populations whose truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpssl.evaluation import average_risk_threshold, risk_controlled_threshold
from gpssl.evaluation._conformal import labels_without_error

Array = NDArray[np.float64]
CLASSES = [0, 1]


def predictions(certainty: Any, wrong: Any) -> tuple[NDArray[Any], Array]:
    """Labels and probabilities of two classes with these certainties and errors; the second is always the likelier."""
    certainty, wrong = np.asarray(certainty, dtype=float), np.asarray(wrong, dtype=bool)
    return np.where(wrong, 0, 1), np.column_stack([1 - certainty, certainty])


def kept_by_benjamini_and_hochberg(certainty: Array, wrong: NDArray[np.bool_], new: Array, max_risk: float) -> NDArray[np.bool_]:
    """The definition: a conformal p-value for each new row, sorted, the largest k with p_(k) ≤ α k / m."""
    p_values = np.array([(1 + sum(wrong & (certainty >= one))) / (len(certainty) + 1) for one in new])
    order = np.sort(p_values)
    fits = [k for k in range(1, len(new) + 1) if order[k - 1] <= max_risk * k / len(new) * (1 + 1e-12)]
    return p_values <= order[max(fits) - 1] if fits else np.zeros(len(new), dtype=bool)


def threshold(certainty: Any, wrong: Any, new: Any, max_risk: float, **weights: Any) -> float:
    y, proba = predictions(certainty, wrong)
    return average_risk_threshold(y, proba, new, max_risk, labels=CLASSES, **weights)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), m=st.integers(1, 30), levels=st.sampled_from([3, 8, 1000]))
@pytest.mark.filterwarnings("ignore:No prediction can be kept")
def test_rows_kept_are_those_of_the_definition(seed: int, n: int, m: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    certainty, new = (0.51 + rng.integers(levels, size=size) / (2.1 * levels) for size in (n, m))
    wrong, max_risk = rng.random(n) < rng.choice([0.02, 0.1, 0.4]), float(rng.choice([0.05, 0.1, 0.3]))
    kept = new > threshold(certainty, wrong, new, max_risk)
    np.testing.assert_array_equal(kept, kept_by_benjamini_and_hochberg(certainty, wrong, new, max_risk))


def test_by_hand() -> None:
    certainty, wrong = [0.95, 0.9, 0.8, 0.7, 0.6], [False, False, False, True, False]
    new = [0.97, 0.85, 0.75, 0.65]
    # p at 0.75: 1/6 ≤ α 3/4 for α ≥ 2/9; p at 0.65: 2/6 ≤ α for α ≥ 1/3
    assert 0.65 < threshold(certainty, wrong, new, 0.23) < 0.75
    assert np.nextafter(threshold(certainty, wrong, new, 0.23), 1.0) == 0.75
    assert threshold(certainty, wrong, new, 1 / 3) == -np.inf
    with pytest.warns(UserWarning, match="at least 4, enough only without an error"):
        assert threshold(certainty, wrong, new, 0.2) == np.inf


def test_least_labels_are_those_that_keep_all_rows_without_an_error() -> None:
    for max_risk in (0.01, 0.05, 0.1, 0.3, 1 / 3):
        least = labels_without_error(max_risk)
        assert threshold(np.full(least, 0.9), np.zeros(least), [0.9, 0.8], max_risk) == -np.inf
        with pytest.warns(UserWarning, match="No prediction can be kept"):
            threshold(np.full(least - 1, 0.9), np.zeros(least - 1), [0.9, 0.8], max_risk)
    assert labels_without_error(0.05) == 19


def test_weight_two_of_calibration_rows_is_the_row_twice() -> None:
    rng = np.random.default_rng(0)
    certainty, new, wrong = rng.uniform(0.5, 1, 60), rng.uniform(0.5, 1, 80), rng.random(60) < 0.15
    weight = rng.integers(0, 3, 60)
    twice = threshold(np.repeat(certainty, weight), np.repeat(wrong, weight), new, 0.2)
    assert threshold(certainty, wrong, new, 0.2, sample_weight=weight, new_weight=np.ones(80)) == twice
    assert threshold(certainty, wrong, new, 0.2, sample_weight=np.full(60, 7.0), new_weight=np.full(80, 7.0)) == threshold(
        certainty, wrong, new, 0.2
    )


def test_rows_and_their_order_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    certainty, new, weight = rng.uniform(0.5, 1, 50), rng.uniform(0.5, 1, 70), rng.uniform(0, 3, 50)
    wrong = rng.random(50) < 1.5 * (1 - certainty)
    one, other = rng.permutation(50), rng.permutation(70)
    found = threshold(certainty, wrong, new, 0.15, sample_weight=weight)
    assert found == threshold(certainty[one], wrong[one], new[other], 0.15, sample_weight=weight[one])
    assert -np.inf < found < np.inf


def realized(rng: np.random.Generator, n: int, m: int, *, ties: bool) -> tuple[Array, Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """Exchangeable calibration and new rows: certain ones are wrong less often, but far more often than they say."""
    certainty = rng.uniform(0.5, 1, n + m)
    if ties:
        certainty = np.round(certainty, 1)
    wrong = rng.random(n + m) < 0.6 * (1.05 - certainty)
    return certainty[:n], certainty[n:], wrong[:n], wrong[n:]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [12, 60, 200])
@pytest.mark.filterwarnings("ignore:No prediction can be kept")
def test_share_of_wrong_predictions_is_at_most_the_risk_on_average(n: int, *, ties: bool) -> None:
    """A theorem for any number of rows; tight where calibration rows are many."""
    rng, shares = np.random.default_rng(n), []
    for _ in range(800):
        certainty, new, wrong, new_wrong = realized(rng, n, 100, ties=ties)
        kept = new > threshold(certainty, wrong, new, 0.1)
        shares.append(new_wrong[kept].mean() if kept.any() else 0.0)
    error = np.std(shares) / np.sqrt(len(shares))
    assert np.mean(shares) <= 0.1 + 2 * error
    assert n < 200 or np.mean(shares) > 0.06


def test_it_keeps_rows_where_the_promise_with_confidence_keeps_none() -> None:
    certainty, wrong = np.linspace(0.6, 0.99, 60), np.arange(60) < 6
    y, proba = predictions(certainty, wrong)
    assert threshold(certainty, wrong, np.linspace(0.6, 0.99, 400), 0.1) < 0.99
    with pytest.warns(UserWarning, match="No threshold holds the risk"):
        assert risk_controlled_threshold(y, proba, 0.04, labels=CLASSES) == np.inf
    assert threshold(certainty, wrong, np.linspace(0.6, 0.99, 400), 0.04) < 0.99


@pytest.mark.filterwarnings("ignore:No prediction can be kept")
def test_weights_hold_the_risk_where_easy_rows_have_labels() -> None:
    """Labels are drawn in proportion to e^(2 x): with the weights e^(−2 x) the risk holds at rows drawn alike, without them it does not."""
    rng, shares = np.random.default_rng(0), {"weighed": list[float](), "alike": list[float]()}
    for _ in range(400):
        x = rng.random(4000)
        wrong = rng.random(4000) < 0.5 * (1 - x)
        certainty = 0.5 + 0.5 * rng.random(4000) * np.sqrt(x)
        chance = np.exp(3 * x) / np.exp(3)
        labeled = np.flatnonzero(rng.random(4000) < 0.12 * chance)[:120]
        new = rng.permutation(np.setdiff1d(np.arange(4000), labeled))[:300]
        for name, weight in (("weighed", 1 / chance), ("alike", np.ones(4000))):
            weights = {"sample_weight": weight[labeled], "new_weight": weight[new]}
            kept = certainty[new] > threshold(certainty[labeled], wrong[labeled], certainty[new], 0.2, **weights)
            shares[name].append(float(wrong[new][kept].mean()) if kept.any() else 0.0)
    assert np.mean(shares["weighed"]) <= 0.2 + 2 * np.std(shares["weighed"]) / 20
    assert np.mean(shares["alike"]) > 0.2 + 2 * np.std(shares["alike"]) / 20


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"new_certainty": []}, "at least one new row"),
        ({"new_certainty": [np.nan]}, "finite certainty"),
        ({"new_certainty": [[0.5]]}, "at least one new row"),
        ({"max_risk": 1.0}, "max_risk"),
        ({"sample_weight": [-1.0, 1.0]}, "Negative|negative"),
        ({"new_weight": [0.0]}, "zero"),
    ],
)
def test_bad_input_gets_a_sentence(change: dict[str, Any], text: str) -> None:
    y, proba = predictions([0.7, 0.8], [0, 1])
    with pytest.raises(ValueError, match=text):
        average_risk_threshold(**{"y": y, "proba": proba, "new_certainty": [0.7], "max_risk": 0.1, "labels": CLASSES, **change})
