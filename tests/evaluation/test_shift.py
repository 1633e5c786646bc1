"""Labels that are not like the other rows are found, and labels that are a random sample are hardly ever taken for such."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from gpssl import MarginalizedClassifier
from gpssl.evaluation import HeldOutClasses, HeldOutNumbers, hold_out_classes
from gpssl.evaluation._shift import find_shift


def held_out(certainty: np.ndarray, groups: np.ndarray | None = None) -> HeldOutClasses:
    return HeldOutClasses(np.full(len(certainty), "a"), np.column_stack([certainty, 1 - certainty]), np.array(["a", "b"]), groups)


def test_sure_labels_among_unsure_rows_are_a_shift() -> None:
    rng = np.random.default_rng(0)
    shift = find_shift(held_out(rng.uniform(0.95, 1.0, 60)), rng.uniform(0.5, 0.8, 400))
    assert shift is not None
    assert shift.held_out == pytest.approx(0.975, abs=0.01)
    assert shift.others == pytest.approx(0.65, abs=0.02)
    assert find_shift(held_out(rng.uniform(0.5, 0.8, 60)), rng.uniform(0.95, 1.0, 400)) is None  # labels that were hard to give
    assert find_shift(held_out(rng.uniform(0.95, 1.0, 60)), rng.uniform(0.92, 0.98, 400)) is None  # sure enough


def test_rows_of_a_group_count_as_one() -> None:
    rng = np.random.default_rng(0)
    sure, others = rng.uniform(0.85, 1.0, 60), rng.uniform(0.5, 1.0, 400)
    assert find_shift(held_out(sure), others) is not None
    alike = np.repeat(sure[:3], 20)
    assert find_shift(held_out(alike), others) is not None
    assert find_shift(held_out(alike, np.arange(60) // 20), others) is None


def test_numbers_are_compared_by_their_standard_deviations() -> None:
    rng = np.random.default_rng(0)
    std = rng.uniform(0.9, 1.1, 50)
    known = HeldOutNumbers(np.zeros(50), np.zeros(50), std, np.full(50, 0.5))
    shift = find_shift(known, 3 * rng.uniform(0.9, 1.1, 300))
    assert shift is not None
    assert shift.others / shift.held_out == pytest.approx(3, rel=0.05)
    assert find_shift(known, 1.2 * rng.uniform(0.9, 1.1, 300)) is None


def blobs(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Two or three classes that overlap more or less."""
    n_classes, overlap = rng.integers(2, 4), rng.uniform(0.3, 3.0)
    y = rng.integers(n_classes, size=n_rows)
    X = 2 * np.eye(4)[y] + rng.normal(0, overlap, (n_rows, 4))
    return X, np.array(["a", "b", "c"])[y]


def is_alarm(model: object, n_labels: int, seed: int) -> bool:
    rng = np.random.default_rng(seed)
    X, y = blobs(rng, n_labels + 150)
    if len(set(y[:n_labels])) < 2:
        return False
    known = hold_out_classes(model, X[:n_labels], y[:n_labels])
    others = model.fit(X[:n_labels], y[:n_labels]).predict_proba(X[n_labels:]).max(axis=1)  # type: ignore[attr-defined]
    return find_shift(known, others) is not None


@pytest.mark.slow
@pytest.mark.parametrize("n_labels", [12, 40, 150])
def test_random_labels_are_hardly_ever_taken_for_a_shift(n_labels: int) -> None:
    """At most 2 % of exchangeable tables: 500 of them."""
    alarms = [is_alarm(LogisticRegression(C=1.0, max_iter=500), n_labels, seed) for seed in range(500)]
    assert np.mean(alarms) <= 0.02


@pytest.mark.slow
def test_random_groups_are_hardly_ever_taken_for_a_shift() -> None:
    """Groups that are easy or hard as a whole, of which some have labels."""
    alarms = []
    for seed in range(2000):
        rng = np.random.default_rng(seed)
        n_groups, n_labeled = 40, rng.integers(8, 25)
        ease = np.repeat(rng.uniform(0.5, 1.0, n_groups), 10)
        certainty = np.clip(ease + rng.normal(0, rng.uniform(0.01, 0.3), 400), 0.5, 1.0)
        known = 10 * n_labeled
        alarms.append(find_shift(held_out(certainty[:known], np.arange(known) // 10), certainty[known:]) is not None)
    assert np.mean(alarms) <= 0.02


@pytest.mark.slow
def test_random_labels_are_hardly_ever_taken_for_a_shift_by_the_default_model() -> None:
    alarms = [is_alarm(MarginalizedClassifier(random_state=0), 30, seed) for seed in range(20)]
    assert sum(alarms) <= 1
