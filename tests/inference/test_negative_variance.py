"""The negative variance in the place of VICReg's hinge: the paper's proposition 1, and where a minimum exists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process.kernels import RBF

from gpssl import GPSSL
from gpssl.core._moments import Spectrum
from gpssl.core._objective import Objective
from gpssl.inference import Sampling, Variational

Array = NDArray[np.float64]

FALLING = Spectrum(np.power(0.3, np.arange(8.0)), np.eye(8), residual=1e-4, tail_sum=0.0, tail_sum_of_squares=0.0)


@pytest.fixture(scope="module")
def fitted(circles: Array, circle_kernel: RBF) -> GPSSL:
    return GPSSL(1, kernel=circle_kernel, inducing="all", random_state=0).fit(circles)


@pytest.fixture(scope="module")
def component(circles: Array, circle_kernel: RBF) -> Array:
    """The first kernel principal component, with the variance of its eigenvalue. [n]"""
    scores: Array = KernelPCA(1, kernel=circle_kernel, random_state=0).fit_transform(circles)[:, 0]
    return scores


def negative(ssl: GPSSL, **changes: Any) -> GPSSL:
    return ssl.refit(variance_loss="negative", temperature=1.0, **changes)


def paper_s_weight(ssl: GPSSL) -> float:
    """Return c_V = 1/(2λ₁), for which proposition 1 holds at τ = 1."""
    return 1 / (2 * float(ssl.eigenvalues_[0]))


def test_proposition_1_the_mode_is_the_first_kernel_principal_component(fitted: GPSSL, circles: Array, component: Array) -> None:
    mode = negative(fitted, variance_weight=paper_s_weight(fitted), inference="mode")
    function = mode.transform(circles)[:, 0]
    centered = function - function.mean()
    np.testing.assert_allclose(centered * np.sign(centered @ component), component, atol=1e-6)


def test_proposition_1_all_multiples_of_the_component_are_as_good_and_nothing_else_is(fitted: GPSSL) -> None:
    weight = paper_s_weight(fitted)
    mode = negative(fitted, variance_weight=weight, inference="mode")
    covariance, residual = fitted.moments_.covariance(fitted.features_)
    direction = (mode.posterior_.basis @ mode.posterior_.weights.mean.T)[:, 0]

    def value(v: Array) -> float:
        return float(v @ v / 2 - weight * (v @ covariance @ v + residual))

    assert value(direction) == pytest.approx(mode.objective_, abs=1e-9)
    assert value(7 * direction) == pytest.approx(mode.objective_, abs=1e-9)
    rng = np.random.default_rng(0)
    for size in (0.1, 1.0, 10.0):
        assert value(direction + size * rng.standard_normal(len(direction))) > mode.objective_ + 1e-3 * size**2


def test_near_the_paper_s_weight_draws_are_multiples_of_the_component(fitted: GPSSL, circles: Array, component: Array) -> None:
    agreement = []
    for share in (0.1, 0.9, 1 - 1e-6):
        ssl = negative(fitted, variance_weight=share * paper_s_weight(fitted))
        draws = ssl.draw_functions(200, random_state=0)(circles)[:, :, 0]
        agreement.append(float(np.median([abs(np.corrcoef(draw, component)[0, 1]) for draw in draws])))
    assert agreement[0] < agreement[1] < 0.99
    assert agreement[2] > 0.99999


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_one_dimension_has_a_closed_form(fitted: GPSSL, share: float) -> None:
    """q = N(0, τ/(τ − 2 c_V λ_a))."""
    weight = share * paper_s_weight(fitted)
    found = negative(fitted, variance_weight=weight).posterior_.weights
    assert (found.mean == 0).all()
    variance = found.variance_along(np.eye(found.mean.shape[1]))[:, 0]
    np.testing.assert_allclose(variance, 1 / (1 - 2 * weight * fitted.eigenvalues_), rtol=1e-6)


@pytest.mark.parametrize("covariance_weight", [0.0, 1.0, 1000.0])
@pytest.mark.parametrize("above", [1.01, 3.0])
def test_minimum_is_no_worse_than_from_random_starts(above: float, covariance_weight: float) -> None:
    """All means and widths free, plain L-BFGS."""
    n_components, shape = 3, (2, 3, FALLING.rank)
    objective = Objective(1.0, covariance_weight, 2 * FALLING.eigenvalues[0] / n_components * above, variance_loss="negative")
    weights, value, report = Variational().infer(FALLING, objective, n_components, seed=0)
    variance = objective.expected_spread_loss(FALLING, np.arange(n_components), 64, seed=0)

    def free(point: Array) -> tuple[float, Array]:
        mean, std = point.reshape(shape)[0], np.exp(np.clip(point.reshape(shape)[1], -20, 20))
        expected = objective.expected(mean, std, FALLING, variance)
        return expected.value, np.stack([expected.by_mean, expected.by_std * std]).ravel()

    for seed in range(4):
        start = np.random.default_rng(seed).standard_normal(shape)
        other = minimize(free, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 2000})
        assert value <= other.fun + 1e-5 * abs(other.fun)
    assert report.error < 1e-6
    assert (weights.mean == 0).all()


@pytest.mark.parametrize("n_components", [1, 3])
def test_there_is_a_minimum_above_one_temperature_only(fitted: GPSSL, n_components: int) -> None:
    least = 2 * 50 * float(fitted.eigenvalues_[0]) / n_components
    changes: dict[str, Any] = {"n_components": n_components, "variance_loss": "negative"}
    for inference in ("variational", "mode"):
        with pytest.raises(ValueError, match=r"raise the temperature above .*, or lower variance_weight below"):
            fitted.refit(temperature=0.9999 * least, inference=inference, **changes)
        assert np.isfinite(fitted.refit(temperature=1.0001 * least, inference=inference, **changes).objective_)
    with pytest.raises(ValueError, match="no minimum"):
        fitted.refit(temperature=least, **changes)


def test_score_on_the_training_rows_is_the_negative_objective(fitted: GPSSL, circles: Array) -> None:
    for inference in ("variational", "mode"):
        ssl = negative(fitted, n_components=2, variance_weight=0.8 * paper_s_weight(fitted), inference=inference)
        assert -ssl.score(circles) == pytest.approx(ssl.objective_, rel=1e-3, abs=1e-6)


def test_sampling_gives_the_normal_distribution_that_the_posterior_is() -> None:
    objective = Objective(1.0, 10.0, 2.5, variance_loss="negative")
    weights, mean_loss, report = Sampling(n_chains=20, n_samples=1000).infer(FALLING, objective, 1, seed=0)
    variance = 2.5 / (2.5 - 2 * FALLING.eigenvalues)
    assert report.r_hat < 1.05
    np.testing.assert_allclose((weights.draws**2).mean(axis=(0, 1)), variance, rtol=5 * np.sqrt(2 / report.effective_sample_size))
    assert mean_loss == pytest.approx(-(FALLING.eigenvalues @ variance) - 1e-4, rel=0.1)
