"""Means with standard errors, paired tests, and ranks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student_t
from scipy.stats import ttest_1samp, wilcoxon

from gpssl.evaluation import Estimate, average_ranks, corrected_error, corrected_p_value, holm, paired_p_value


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
