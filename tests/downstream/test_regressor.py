from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.datasets import load_diabetes
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor

from gpssl import GPSSL, MarginalizedRegressor
from gpssl.downstream import BayesianLinearRegression, BayesianLogisticRegression
from gpssl.evaluation._calibration import interval_coverage
from representations import SMALL_POOLS, Certain, run_checks

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def sugar() -> tuple[Array, Array]:
    """All rows of diabetes, and 80 targets."""
    X, y = load_diabetes(return_X_y=True)
    return X, np.where(np.random.default_rng(0).permutation(len(y)) < 80, y, np.nan)


@pytest.mark.parametrize("representation", [GPSSL(), *SMALL_POOLS], ids=["GPSSL", "tables", "vectors"])
def test_check_estimator_for_the_regressor(representation: Any) -> None:
    run_checks(MarginalizedRegressor(representation, n_draws=8), {})


@pytest.mark.slow
def test_check_estimator_for_the_default_regressor() -> None:
    run_checks(MarginalizedRegressor(), {})


@pytest.mark.slow
def test_predictive_variance_is_that_of_brute_force_monte_carlo(sugar: tuple[Array, Array]) -> None:
    X, y = sugar
    X, y, X_new = X[:, :4], y, X[:6, :4] + 0.05
    ssl = GPSSL(2, random_state=0, temperature=0.1).fit(X)
    regressor = MarginalizedRegressor(FrozenEstimator(ssl), n_draws=2000, weighting="equal", random_state=0).fit(X, y)
    labeled = ~np.isnan(y)
    rng = np.random.default_rng(1)
    functions = ssl.draw_functions(2000, random_state=7)  # other functions than the regressor's
    simulated = []
    for Z, Z_new in zip(functions(X[labeled]), functions(X_new), strict=True):
        head = BayesianRidge(tol=1e-8, max_iter=1000).fit(Z, y[labeled])
        # The noise is not known either: its variance is ν/χ² times the likeliest, and the covariance of the slopes goes with it.
        degrees = labeled.sum() - 1
        factor = np.sqrt(degrees / rng.chisquare(degrees, size=(20, 1)))
        slopes = head.coef_ + factor * rng.multivariate_normal(np.zeros(2), head.sigma_, size=20)
        center = Z.mean(axis=0)
        level = y[labeled].mean() + factor * rng.normal(size=(20, 1)) / np.sqrt(head.alpha_ * labeled.sum())
        noise = factor * rng.normal(size=(20, len(X_new))) / np.sqrt(head.alpha_)
        simulated.append(level + slopes @ (Z_new - center).T + noise)
    draws = np.concatenate(simulated)
    np.testing.assert_allclose(regressor.predict_std(X_new) ** 2, draws.var(axis=0), rtol=0.05)
    np.testing.assert_allclose(regressor.predict(X_new), draws.mean(axis=0), atol=0.1 * draws.std())
    interval = regressor.predict_interval(X_new, coverage=0.8)
    np.testing.assert_allclose(interval, np.quantile(draws, [0.1, 0.9], axis=0).T, atol=0.05 * draws.std())
    uncertainty = regressor.predict_uncertainty(X_new)
    np.testing.assert_allclose(uncertainty.total, uncertainty.head + uncertainty.representation)
    np.testing.assert_allclose(uncertainty.total, regressor.predict_std(X_new) ** 2)
    mean, std = regressor.predict_draws(X_new)
    np.testing.assert_allclose(uncertainty.representation, mean.var(axis=0))
    np.testing.assert_allclose(uncertainty.head, (std**2).mean(axis=0))


@pytest.mark.parametrize("head", [BayesianLinearRegression(), BayesianRidge(), Ridge(), KNeighborsRegressor(5)])
def test_intervals_of_any_head_hold_as_often_as_they_say(sugar: tuple[Array, Array], head: RegressorMixin) -> None:
    X, y = sugar
    truth = load_diabetes(return_X_y=True)[1]
    regressor = MarginalizedRegressor(GPSSL(4), head, n_draws=10, random_state=0).fit(X, y)
    hidden = np.isnan(y)
    low, high = regressor.predict_interval(X, coverage=0.8)[hidden].T
    assert 0.72 < np.mean((low <= truth[hidden]) & (truth[hidden] <= high)) < 0.9
    assert regressor.score(X, y) == pytest.approx(regressor.score(X[~hidden], y[~hidden]))
    assert regressor.score(X, truth) > 0.25


def test_draws_without_a_noise_of_their_own_get_that_of_held_out_residuals(sugar: tuple[Array, Array]) -> None:
    X, y = sugar
    labeled = ~np.isnan(y)
    regressor = MarginalizedRegressor(Certain(), KNeighborsRegressor(1), n_draws=2, random_state=0).fit(X[labeled], y[labeled])
    # One neighbor reproduces the training rows, so that residuals there would tell no noise at all.
    assert regressor.predict_std(X[labeled]).min() > 0.7 * y[labeled].std()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.full(442, np.nan), "No row has a target"),
        (np.r_[np.inf, np.zeros(441)], "infinity"),
        (None, "requires y to be passed"),
    ],
)
def test_targets_that_cannot_be_learned_from_get_a_sentence(sugar: tuple[Array, Array], y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MarginalizedRegressor(n_draws=2).fit(sugar[0], y)


@pytest.mark.parametrize("head", [BayesianLogisticRegression(), LogisticRegression()])
def test_a_classifier_as_head_gets_a_sentence(sugar: tuple[Array, Array], head: Any) -> None:
    with pytest.raises(TypeError, match="use MarginalizedClassifier"):
        MarginalizedRegressor(GPSSL(2), head, n_draws=2).fit(*sugar)


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.5, 2])
def test_coverage_outside_zero_and_one_gets_a_sentence(sugar: tuple[Array, Array], coverage: float) -> None:
    regressor = MarginalizedRegressor(GPSSL(2), n_draws=2, random_state=0).fit(*sugar)
    with pytest.raises(ValueError, match="coverage must be"):
        regressor.predict_interval(sugar[0], coverage=coverage)


@pytest.mark.parametrize("head", [None, Ridge()])
def test_a_single_target_gets_a_sentence(sugar: tuple[Array, Array], head: Any) -> None:
    y = np.full(442, np.nan)
    y[0] = 3.0
    with pytest.raises(ValueError, match="n_samples=1"):
        MarginalizedRegressor(GPSSL(2, random_state=0), head, n_draws=2).fit(sugar[0], y)


@pytest.mark.parametrize("n_labeled", [4, 10, 50])
def test_intervals_hold_with_few_targets_too(n_labeled: int) -> None:
    X, y = load_diabetes(return_X_y=True)
    ssl = GPSSL(3, random_state=0).fit(X)
    inside = []
    for seed in range(30):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:n_labeled], order[n_labeled:]
        regressor = MarginalizedRegressor(FrozenEstimator(ssl), n_draws=10, random_state=0).fit(X[train], y[train])
        inside.append(interval_coverage(y[test], regressor.predict_interval(X[test], coverage=0.9)))
    assert 0.85 < np.mean(inside) < 0.97


def test_rows_of_little_weight_say_little_about_the_noise(sugar: tuple[Array, Array]) -> None:
    X, y = sugar
    labeled = np.flatnonzero(~np.isnan(y))
    spoilt, weight = y.copy(), np.ones(len(y))
    spoilt[labeled[:20]] = 1e6
    weight[labeled[:20]] = 1e-9
    regressor = MarginalizedRegressor(GPSSL(2, random_state=0), Ridge(), n_draws=3, random_state=0).fit(X, spoilt, sample_weight=weight)
    assert regressor.predict_std(X).max() < 200


def test_the_noise_does_not_depend_on_the_order_of_the_rows(sugar: tuple[Array, Array]) -> None:
    X, y = sugar
    order = np.random.default_rng(0).permutation(len(y))
    one, other = (
        MarginalizedRegressor(GPSSL(2), Ridge(), n_draws=3, random_state=0).fit(X[o], y[o]).predict_std(X)
        for o in (np.arange(len(y)), order)
    )
    # Drawn functions agree to four digits, which may put a row into another fold.
    np.testing.assert_allclose(one, other, rtol=2e-3)
