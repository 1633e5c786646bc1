"""The three distributions over the weights of the directions, each against many draws from it, and the posterior that they make."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF

from gpssl.core._features import Features
from gpssl.core._objective import Objective
from gpssl.core._posterior import DrawnWeights, GaussianWeights, PointWeights, Posterior, Weights, warn_if_mean_is_zero

Array = NDArray[np.float64]

N_DRAWS = 100_000
RANK, N_COMPONENTS, N_DIRECTIONS = 3, 2, 5
RESIDUAL = 0.3

_RNG = np.random.default_rng(0)
MEAN, STD = _RNG.normal(size=(N_COMPONENTS, RANK)), np.exp(0.4 * _RNG.normal(size=(N_COMPONENTS, RANK)))
STORED = _RNG.normal(size=(40, N_COMPONENTS, RANK)) + 1.0
_ROOT = _RNG.normal(size=(N_DIRECTIONS, N_DIRECTIONS))
COVARIANCE = 0.1 * _ROOT @ _ROOT.T
PROJECTIONS = _RNG.normal(size=(4, RANK))

KINDS: dict[str, Weights] = {"normal": GaussianWeights(MEAN, STD), "point": PointWeights(MEAN), "draws": DrawnWeights(STORED)}

HINGE = Objective(5.0, 2.0, 1.0, target_std=1.5, epsilon=1e-3)
NEGATIVE = Objective(5.0, 2.0, 1.0, variance_loss="negative")


def some_draws(weights: Weights) -> Array:
    return weights.draw(N_DRAWS, np.random.default_rng(1))


def assert_within_error(values: Array, expected: Any) -> None:
    """The mean over draws [S, …] differs from what is expected by less than five standard errors."""
    error = values.std(axis=0) / np.sqrt(len(values))
    assert (np.abs(values.mean(axis=0) - expected) <= 5 * error + 1e-10).all()


@pytest.mark.parametrize("kind", KINDS)
def test_moments_are_those_of_the_draws(kind: str) -> None:
    weights = KINDS[kind]
    draws = some_draws(weights)
    assert draws.shape == (N_DRAWS, N_COMPONENTS, RANK)
    assert_within_error(draws, weights.mean)
    assert_within_error((draws**2).mean(axis=1), weights.second_moment())
    along = np.einsum("na,sja->snj", PROJECTIONS, draws - weights.mean)
    assert weights.variance_along(PROJECTIONS).shape == (len(PROJECTIONS), N_COMPONENTS)
    assert_within_error(along**2, weights.variance_along(PROJECTIONS))


@pytest.mark.parametrize("objective", [HINGE, NEGATIVE], ids=["hinge", "negative"])
@pytest.mark.parametrize("kind", KINDS)
def test_expected_loss_is_the_mean_loss_of_the_draws(kind: str, objective: Objective) -> None:
    """v along the learned directions from the weights, along the other ones from the prior: C = V A Vᵀ + ρ I."""
    weights = KINDS[kind]
    if kind == "draws":  # one draw of the tail for each stored draw would be a coarse estimate: many copies of what is stored
        weights = DrawnWeights(np.repeat(STORED, 500, axis=0))
    learned = some_draws(weights)
    tail = np.random.default_rng(2).normal(size=(N_DRAWS, N_COMPONENTS, N_DIRECTIONS - RANK))
    v = np.concatenate([learned, tail], axis=2)
    losses = objective.loss(v @ COVARIANCE @ v.swapaxes(1, 2) + RESIDUAL * np.eye(N_COMPONENTS))
    found = weights.expected_loss(COVARIANCE, RESIDUAL, objective)
    if kind == "draws":
        assert found == pytest.approx(losses.mean(), rel=0.02)
    else:
        assert abs(losses.mean() - found) < 5 * losses.std() / np.sqrt(N_DRAWS) + 2e-3 * abs(found)


def test_divergences() -> None:
    """KL(N(1, 2²) ‖ N(0, 1)) = ½ (1 + 4 − 1) − log 2 for each weight; ½|v|² at a point; not known for draws."""
    ones = np.ones((2, 3))
    assert GaussianWeights(ones, 2 * ones).divergence() == pytest.approx(6 * (2 - np.log(2)))
    assert PointWeights(3 * ones).divergence() == pytest.approx(27.0)
    assert KINDS["draws"].divergence() == 0.0


def test_stored_draws_are_all_used_before_one_comes_twice() -> None:
    stored = np.arange(12.0).reshape(12, 1, 1)
    weights = DrawnWeights(stored)
    for n_draws in (1, 5, 12):
        drawn = weights.draw(n_draws, np.random.default_rng(0)).ravel()
        assert len(np.unique(drawn)) == n_draws
        assert set(drawn) <= set(stored.ravel())
    assert sorted(weights.draw(12, np.random.default_rng(0)).ravel()) == list(range(12))
    many = weights.draw(6000, np.random.default_rng(0)).ravel()
    np.testing.assert_allclose(np.bincount(many.astype(int), minlength=12) / 6000, 1 / 12, atol=0.02)


def test_a_point_is_drawn_every_time_and_does_not_vary() -> None:
    np.testing.assert_array_equal(KINDS["point"].draw(4, np.random.default_rng(0)), np.tile(MEAN, (4, 1, 1)))
    np.testing.assert_array_equal(KINDS["point"].variance_along(PROJECTIONS), np.zeros((4, N_COMPONENTS)))


@pytest.mark.parametrize("weights", [GaussianWeights(np.zeros((2, 3)), STD), PointWeights(np.zeros((2, 3))), GaussianWeights(MEAN, STD)])
def test_only_a_mean_of_zero_of_functions_that_differ_is_warned_of(weights: Weights) -> None:
    features = Features.build(RBF(1.0), np.arange(4.0)[:, None])
    posterior = Posterior(features, np.eye(4)[:, :3], weights)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_if_mean_is_zero(posterior, stacklevel=2)
    warned = isinstance(weights, GaussianWeights) and not weights.mean.any()
    assert [str(each.message)[:26] for each in caught] == ["The posterior mean is zero"] * warned


# The posterior, from dense matrices


@pytest.fixture(scope="module")
def rows() -> Array:
    return np.random.default_rng(3).normal(size=(700, 2))  # more than one block


@pytest.fixture(scope="module")
def features(rows: Array) -> Features:
    return Features.build(RBF(0.9), rows[:8])


def whitened(features: Features, rows: Array) -> Array:
    """a(x), solved row by row. [n, M]"""
    return np.linalg.solve(features.factor, features.kernel(features.points, rows)).T


@pytest.mark.parametrize("kind", KINDS)
def test_mean_std_and_std_around_the_mean_over_rows(kind: str, features: Features, rows: Array) -> None:
    """Var(f(x) − āᵀv) = k(x, x) − aᵀa + Var over the weights of (a − ā)ᵀ v, with the prior along the other directions."""
    weights = KINDS[kind]
    basis = np.linalg.qr(np.random.default_rng(4).normal(size=(8, RANK)))[0]
    posterior = Posterior(features, basis, weights)
    a = whitened(features, rows)
    center = a[:50].mean(axis=0)
    outside = np.eye(8) - basis @ basis.T

    def std_around(origin: Array) -> Array:
        moved = a - origin
        prior = 1 - (a**2).sum(axis=1) + np.einsum("na,ab,nb->n", moved, outside, moved)
        return np.sqrt(prior[:, None] + weights.variance_along(moved @ basis))

    mean, std, centered = posterior.mean_and_stds(rows, center)
    np.testing.assert_allclose(mean, a @ basis @ weights.mean.T, atol=1e-7)
    np.testing.assert_allclose(std, std_around(np.zeros(8)), atol=1e-6)
    np.testing.assert_allclose(centered, std_around(center), atol=1e-6)
    np.testing.assert_array_equal(posterior.mean_and_std(rows), [mean, std])
    np.testing.assert_array_equal(posterior.std(rows), std)
    np.testing.assert_allclose(posterior.mean(rows), mean, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_functions_have_the_posterior_s_moments_and_the_prior_s_beyond(kind: str, features: Features) -> None:
    basis = np.linalg.qr(np.random.default_rng(4).normal(size=(8, RANK)))[0]
    posterior = Posterior(features, basis, KINDS[kind])
    far = np.full((1, 2), 40.0)
    X = np.vstack([features.points[:3], far])
    n_draws = 30_000
    values = posterior.draw_functions(n_draws, seed=5)(X)
    assert values.shape == (n_draws, 4, N_COMPONENTS)
    std = posterior.std(X)
    assert (np.abs(values.mean(axis=0) - posterior.mean(X)) < 5 * std / np.sqrt(n_draws) + 1e-6).all()
    np.testing.assert_allclose(values.std(axis=0), std, rtol=0.05)
    np.testing.assert_allclose(std[3], 1.0, rtol=1e-9)


def test_float_rows_keep_their_precision(features: Features) -> None:
    posterior = Posterior(features, np.eye(8)[:, :RANK], KINDS["normal"])
    single = features.points.astype(np.float32)
    assert posterior.std(single).dtype == posterior.mean_and_std(single).dtype == np.float32
    assert posterior.mean_and_stds(single, np.zeros(8)).dtype == np.float32
    assert posterior.std(features.points).dtype == np.float64
