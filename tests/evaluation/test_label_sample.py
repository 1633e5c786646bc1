"""Whether labels were drawn at random is found out, and weights undo how they were drawn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gpssl.evaluation import compare_with_others
from gpssl.evaluation._label_sample import FALSE_ALARMS, LabelSample, thinned

Array = NDArray[np.float64]


def labeled_and_others(seed: int, slope: float, n: int = 60, m: int = 300) -> tuple[Array, Array]:
    """Points of five dimensions; rows whose first number is large have a label e^(slope x) times as often."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((5000, 5))
    order = np.argsort(-(slope * Z[:, 0] + rng.gumbel(size=5000)))
    return Z[order[:n]], Z[rng.permutation(order[n:])[:m]]


def test_random_labels_are_hardly_ever_taken_for_others() -> None:
    alarms = sum(not compare_with_others(*labeled_and_others(seed, 0.0)).is_random for seed in range(150))
    assert alarms <= 6  # of 150 at a level of 1 %: more in one of 300 runs


def test_labels_of_one_side_are_found_out_and_weighed() -> None:
    points, others = labeled_and_others(0, 1.0)
    sample = compare_with_others(points, others)
    assert not sample.is_random
    assert np.corrcoef(np.log(sample.weight), -points[:, 0])[0, 1] > 0.8
    assert 10 < sample.n_effective < 55
    before = abs(points[:, 0].mean() - others[:, 0].mean())
    after = abs(np.average(points[:, 0], weights=sample.weight) - others[:, 0].mean())
    assert after < 0.4 * before


def test_labels_of_extreme_rows_are_found_out_though_their_mean_is_that_of_all() -> None:
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((400, 3))
    far = np.abs(Z[:, 0]) > 1.3
    sample = compare_with_others(Z[far][:50], Z[~far])
    assert not sample.is_random


def test_weights_are_known_where_rows_are_of_two_kinds() -> None:
    """Nine in ten labels are of the first kind, half of the other rows: the second kind counts nine times as much as the first."""
    points, others = np.repeat([[0.0], [1.0]], [900, 100], axis=0), np.repeat([[0.0], [1.0]], [500, 500], axis=0)
    sample = compare_with_others(points, others)
    assert sample.weight[-1] / sample.weight[0] == pytest.approx(9, rel=0.1)
    assert sample.weight.mean() == pytest.approx(1, rel=0.02)


def test_rows_of_a_group_are_tested_as_one() -> None:
    rng = np.random.default_rng(0)
    mice = rng.standard_normal((30, 3))
    labeled, others = np.repeat(mice[:12], 20, axis=0), np.repeat(mice[12:], 3, axis=0)
    assert compare_with_others(labeled, others).p_value < FALSE_ALARMS
    assert compare_with_others(labeled, others, np.repeat(np.arange(12), 20), np.repeat(np.arange(18), 3)).is_random


def test_few_rows_and_rows_that_are_all_alike_tell_nothing() -> None:
    for points, others in ((np.eye(3), np.zeros((50, 3))), (np.eye(20), np.zeros((4, 20))), (np.ones((30, 2)), np.ones((40, 2)))):
        sample = compare_with_others(points, others)
        assert sample.is_random
        assert (sample.weight == 1).all()
        assert sample.n_effective == len(points)


def test_number_of_effective_labels_by_hand() -> None:
    assert LabelSample(np.array([1.0, 1.0, 2.0]), np.ones(1), 0.0).n_effective == pytest.approx(16 / 6)


def test_thinned_rows_are_drawn_in_proportion_to_their_weights() -> None:
    weight = np.repeat([1.0, 0.25], [4000, 4000])
    kept = thinned(np.arange(8000), weight)
    assert (kept < 4000).sum() == 4000
    assert (kept >= 4000).sum() == pytest.approx(1000, rel=0.1)
    np.testing.assert_array_equal(kept, thinned(np.arange(8000), weight))
