"""Every equation against its definition, every gradient against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import norm

import reference
from gpssl.core._moments import Spectrum
from gpssl.core._objective import (
    ExpectedVarianceLoss,
    Gradient,
    Objective,
    covariance_loss,
    expected_covariance_loss,
    expected_hinge,
    expected_negative_variance,
    kl_divergence,
    negative_variance,
    normal_draws,
    represented_covariance,
    variance_loss,
)

Array = NDArray[np.float64]

EIGENVALUES = np.array([0.5, 0.3, 0.2, 0.05, 0.01])
SPECTRUM = Spectrum(EIGENVALUES, np.eye(8), residual=0.02, tail_sum=0.003, tail_sum_of_squares=4e-6)


def some_weights(seed: int = 0, n_components: int = 3) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n_components, 5)), np.exp(0.5 * rng.standard_normal((n_components, 5)))


def assert_gradient(function: Callable[[Array, Array], Gradient], mean: Array, std: Array, rtol: float = 1e-6) -> None:
    """Along random directions, central differences of the value against the gradient."""
    rng = np.random.default_rng(5)
    gradient = function(mean, std)
    for _ in range(10):
        by_mean, by_std = rng.standard_normal(mean.shape), rng.standard_normal(std.shape) * std
        step = 1e-5
        ahead = function(mean + step * by_mean, std + step * by_std).value
        behind = function(mean - step * by_mean, std - step * by_std).value
        analytic = (gradient.by_mean * by_mean).sum() + (gradient.by_std * by_std).sum()
        assert (ahead - behind) / (2 * step) == pytest.approx(analytic, rel=rtol, abs=1e-8)


def test_variance_loss_is_the_paper_s_equation_2_with_its_constants() -> None:
    Z = np.random.default_rng(0).standard_normal((50, 4)) * [0.1, 0.5, 1.0, 2.0]
    assert variance_loss(np.cov(Z.T)) == pytest.approx(reference.variance_loss(Z), rel=1e-12)
    assert variance_loss(np.zeros((2, 2))) == pytest.approx(1 - np.sqrt(1e-7), rel=1e-12)  # γ = 1, ε = 1e-7, no factor ½
    assert variance_loss(np.diag([0.25, 4.0])) == pytest.approx(0.25, abs=1e-6)


def test_negative_variance_is_the_mean_of_minus_the_variances() -> None:
    Z = np.random.default_rng(0).standard_normal((50, 4)) * [0.1, 0.5, 1.0, 2.0]
    assert negative_variance(np.cov(Z.T)) == pytest.approx(-Z.var(axis=0, ddof=1).mean(), rel=1e-12)


def test_covariance_loss_is_vicreg_s_off_diagonal_sum_over_j() -> None:
    Z = np.random.default_rng(0).standard_normal((50, 4)) @ np.triu(np.ones((4, 4)))
    assert covariance_loss(np.cov(Z.T)) == pytest.approx(reference.covariance_loss(Z), rel=1e-12)
    assert covariance_loss(np.array([[9.0, 3.0], [3.0, 9.0]])) == pytest.approx(9.0)


def test_losses_take_many_matrices_at_once() -> None:
    matrices = np.array([np.cov(np.random.default_rng(i).standard_normal((3, 9))) for i in range(6)]).reshape(2, 3, 3, 3)
    for loss in (variance_loss, covariance_loss, Objective(50, 10, 1).loss):
        values = loss(matrices)
        assert values.shape == (2, 3)
        assert values[1, 2] == pytest.approx(float(loss(matrices[1, 2])))


def test_kl_divergence_is_that_of_normal_distributions() -> None:
    mean, std = some_weights()
    total = 0.0
    for m, s in zip(mean.ravel(), std.ravel(), strict=True):
        ratio = lambda x, m=m, s=s: norm.pdf(x, m, s) * (norm.logpdf(x, m, s) - norm.logpdf(x))  # noqa: E731
        total += quad(ratio, m - 12 * s, m + 12 * s)[0]
    assert kl_divergence(mean, std).value == pytest.approx(total, rel=1e-8)
    assert kl_divergence(np.zeros((2, 3)), np.ones((2, 3))).value == 0
    assert_gradient(kl_divergence, mean, std)


@given(st.floats(1e-7, 2.0), st.floats(-3.0, 3.0), st.floats(1e-4, 2.0))
@settings(max_examples=60)
def test_expected_hinge_is_the_integral(offset: float, mean: float, std: float) -> None:
    def integrand(y: float) -> float:
        return max(0.0, 1 - np.sqrt(offset + y * y)) * float(norm.pdf(y, mean, std))

    reach = np.sqrt(max(0.0, 1 - offset))
    low, high = max(-reach, mean - 9 * std), min(reach, mean + 9 * std)
    points = sorted({min(max(0.0, low), high), min(max(mean, low), high)})
    edges = [low, *points, high]
    # The density is below 4000, so that a sliver too narrow for quad holds less than 4e-10 of the integral.
    pieces = [(a, b) for a, b in pairwise(edges) if b - a > 1e-13]
    expected = sum(quad(integrand, a, b, epsabs=1e-12)[0] for a, b in pieces)
    hinge = expected_hinge(np.array(offset), np.array(mean), np.array(std))
    assert float(hinge.value) == pytest.approx(expected, abs=1e-8 if offset > 1e-3 else 1e-4)


@given(st.floats(0.01, 0.95), st.floats(-2.0, 2.0), st.floats(0.01, 1.5))
@settings(max_examples=60)
def test_expected_hinge_has_the_derivatives_it_says(offset: float, mean: float, std: float) -> None:
    step = 1e-5 * min(1.0, std)
    point = np.array([offset, mean, std])
    hinge = expected_hinge(*point[:, None])
    for i, analytic in enumerate((hinge.by_offset, hinge.by_mean, hinge.by_std)):
        shift = step * np.eye(3)[i]
        numeric = (expected_hinge(*(point + shift)[:, None]).value - expected_hinge(*(point - shift)[:, None]).value) / (2 * step)
        assert float(numeric[0]) == pytest.approx(float(analytic[0]), abs=2e-5)


def test_expected_losses_are_the_averages_over_draws() -> None:
    mean, std = some_weights()
    rng = np.random.default_rng(1)
    losses = {"variance": np.empty(0), "covariance": np.empty(0), "negative": np.empty(0)}
    for _ in range(20):
        weights = mean + std * rng.standard_normal((20_000, *mean.shape))
        covariance = represented_covariance(weights, SPECTRUM)
        losses["variance"] = np.append(losses["variance"], variance_loss(covariance))
        losses["covariance"] = np.append(losses["covariance"], covariance_loss(covariance))
        losses["negative"] = np.append(losses["negative"], negative_variance(covariance))
    variance = ExpectedVarianceLoss(SPECTRUM, np.arange(3), 4096, seed=0)(mean, std).value
    # In expectation the tail adds Σλ² to each of the J (J − 1) squared covariances.
    closed_form = expected_covariance_loss(mean, std, SPECTRUM).value - 2 * SPECTRUM.tail_sum_of_squares
    # In the draws the tail's variance is not random.
    negative = expected_negative_variance(mean, std, SPECTRUM).value
    for expected, drawn in ((variance, losses["variance"]), (closed_form, losses["covariance"]), (negative, losses["negative"])):
        assert expected == pytest.approx(drawn.mean(), abs=4 * drawn.std() / np.sqrt(len(drawn)))


def test_gradient_of_the_expected_negative_variance() -> None:
    assert_gradient(lambda m, s: expected_negative_variance(m, s, SPECTRUM), *some_weights())


def test_gradient_of_the_expected_covariance_loss() -> None:
    assert_gradient(lambda m, s: expected_covariance_loss(m, s, SPECTRUM), *some_weights())


@pytest.mark.parametrize("own", [[0, 1, 2], [0, 0, 4]])
@pytest.mark.parametrize("n_draws", [1, 128])
def test_gradient_of_the_expected_variance_loss(own: list[int], n_draws: int) -> None:
    assert_gradient(ExpectedVarianceLoss(SPECTRUM, np.array(own), n_draws, seed=0), *some_weights(), rtol=1e-5)


def test_gradient_of_the_objective_and_its_weights() -> None:
    variance = ExpectedVarianceLoss(SPECTRUM, np.arange(3), 64, seed=0)
    objective = Objective(variance_weight=50, covariance_weight=10, temperature=0.3)
    mean, std = some_weights()
    terms = (variance(mean, std), expected_covariance_loss(mean, std, SPECTRUM), kl_divergence(mean, std))
    expected = 50 * terms[0].value + 10 * terms[1].value + 0.3 * terms[2].value
    assert objective.expected(mean, std, SPECTRUM, variance).value == pytest.approx(expected, rel=1e-12)
    assert_gradient(lambda m, s: objective.expected(m, s, SPECTRUM, variance), mean, std, rtol=1e-5)


def test_expected_variance_loss_of_certain_weights_is_their_loss() -> None:
    mean, _ = some_weights()
    certain = ExpectedVarianceLoss(SPECTRUM, np.arange(3), 64, seed=0)(mean, np.full_like(mean, 1e-9))
    assert certain.value == pytest.approx(float(variance_loss(represented_covariance(mean, SPECTRUM))), abs=1e-8)


def test_objective_of_a_user_is_checked_value_by_value() -> None:
    weights: dict[str, Any] = {"variance_weight": 3, "covariance_weight": 0, "temperature": 0.5}
    settings = {**weights, "target_std": 2, "epsilon": 0.1, "variance_loss": "hinge"}
    assert Objective.checked(**settings) == Objective(3.0, 0.0, 0.5, 2.0, 0.1, "hinge")
    Objective.checked(**{**settings, "variance_weight": 0})
    for name, value in (
        *(("variance_weight", -1), ("variance_weight", "3"), ("covariance_weight", -1e-9), ("covariance_weight", None)),
        *(("target_std", 0), ("epsilon", 0), ("epsilon", "x"), ("variance_loss", "linear"), ("variance_loss", 1)),
    ):
        with pytest.raises((ValueError, TypeError), match=name):
            Objective.checked(**{**settings, name: value})


def test_expected_spread_is_that_of_the_form_and_its_constants() -> None:
    mean, std = some_weights()
    own = np.array([0, 1, 2])
    negative = Objective(1, 1, 1, variance_loss="negative").expected_spread_loss(SPECTRUM, own, 64, 0)
    assert negative(mean, std).value == expected_negative_variance(mean, std, SPECTRUM).value
    hinge = Objective(1, 1, 1, target_std=2.0, epsilon=0.1).expected_spread_loss(SPECTRUM, own, 64, 0)
    assert hinge(mean, std).value == ExpectedVarianceLoss(SPECTRUM, own, 64, 0, 2.0, 0.1)(mean, std).value
    draws = mean + std * np.random.default_rng(0).standard_normal((200_000, 3, 5))
    losses = variance_loss(represented_covariance(draws, SPECTRUM), 2.0, 0.1)
    assert hinge(mean, std).value == pytest.approx(losses.mean(), rel=0.02)


def test_normal_draws_are_normal_and_follow_from_the_seed() -> None:
    draws = normal_draws(4096, 3, 7)
    np.testing.assert_allclose(draws.mean(axis=0), 0, atol=0.01)
    np.testing.assert_allclose(np.cov(draws.T), np.eye(3), atol=0.02)
    assert np.isfinite(draws).all()
    assert not draws.flags.writeable
    assert not np.array_equal(draws, normal_draws(4096, 3, 8))
