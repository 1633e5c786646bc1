from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Kernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

import gpssl.core._draws
from gpssl import GPSSL
from gpssl._runtime.threads import one_blas_thread
from gpssl.core import FunctionDraws, Posterior
from gpssl.core._features import Features
from gpssl.core._fourier import FourierFeatures, _uniform, fourier_features
from strings import SharedLetters

Array = NDArray[np.float64]

POINTS = np.array([[0.0, 0.0], [0.1, 0.0], [0.4, -0.3], [1.0, 1.0], [-2.0, 0.5]])
"""Near each other, a lengthscale apart, and far."""

SMOOTH = [
    RBF(0.7),
    RBF([0.5, 2.0]),
    Matern(0.8, nu=0.5),
    Matern([0.8, 1.5], nu=1.5),
    Matern(0.8, nu=2.5),
    Matern(0.8, nu=0.9),
    Matern(0.8, nu=np.inf),
    RationalQuadratic(0.7, alpha=0.5),
    RationalQuadratic(0.7, alpha=3.0),
    ConstantKernel(2.0),
    3.0 * RBF(0.7),
    1.5 + RBF(0.7),
    RBF(2.0) + 0.1 * Matern(0.3, nu=1.5),
    RBF(0.7) * RationalQuadratic(1.0, alpha=1.0),
    Matern(1.0, nu=0.5) * Matern(2.0, nu=1.5),
    (RBF(0.7) + 0.5) * (Matern(1.0) + 2.0),
    Exponentiation(RationalQuadratic(1.0), 3),
    Exponentiation(RBF(1.0) + 0.5, 2),
    Exponentiation(RBF(1.0), 0),
]

NOISY = [
    RBF(0.7) + WhiteKernel(0.2),
    RBF(0.7) + 3.0 * WhiteKernel(0.2),
    2.0 * (RBF(0.7) + WhiteKernel(0.2)),
    RBF(0.7) + WhiteKernel(0.2) * (RBF(1.0) + 0.5),
    (RBF(0.7) + WhiteKernel(0.2)) * (Matern(0.7) + WhiteKernel(0.3)),
    Exponentiation(2.0 * RBF(0.7) + WhiteKernel(0.2), 2),
]


class UnlikeRBF(RBF):
    """A subclass may be any function; this one is the RBF, unbeknown to the library."""


WITHOUT_FEATURES = [
    DotProduct(),
    ExpSineSquared(),
    UnlikeRBF(),
    RBF() + DotProduct(),
    2.0 * DotProduct(),
    Exponentiation(RBF(), 1.5),
    Exponentiation(RBF(), -1),
    Exponentiation(RBF() + Matern(), 5),
    Exponentiation(DotProduct(), 2),
    (RBF() + Matern() + 1.0) * (RBF() + Matern() + 1.0) * (RBF() + 1.0),
]


def features_of(kernel: Kernel, n_frequencies: int = 64, seed: int = 0, n_columns: int = 2) -> FourierFeatures:
    features = fourier_features(kernel, np.full(n_columns, 0.3), n_frequencies, np.random.default_rng(seed))
    assert features is not None
    return features


def covariance(features: FourierFeatures, X: Array = POINTS) -> Array:
    return features(X) @ features(X).T


# Features of kernels


@pytest.mark.parametrize("kernel", [*SMOOTH, *NOISY], ids=str)
def test_over_frequencies_the_expectation_of_features_is_the_kernel(kernel: Kernel) -> None:
    sets = np.array([covariance(features_of(kernel, 64, seed)) for seed in range(80)])
    error = sets.std(axis=0) / np.sqrt(len(sets))
    # With both arguments the kernel is without its white noise, as the features are.
    assert (np.abs(sets.mean(axis=0) - kernel(POINTS, POINTS)) <= 4.5 * error + 1e-12).all()
    assert error.max() < 0.02 * features_of(kernel).variance


@pytest.mark.parametrize("kernel", [*SMOOTH, *NOISY], ids=str)
def test_features_and_nugget_have_the_kernel_s_variance_exactly(kernel: Kernel) -> None:
    features = features_of(kernel)
    smooth = (features(POINTS) ** 2).sum(axis=1)
    assert features(POINTS).shape == (5, features.n_features)
    np.testing.assert_allclose(smooth, features.variance, rtol=1e-12)
    np.testing.assert_allclose(smooth, np.diagonal(kernel(POINTS, POINTS)), rtol=1e-12)
    np.testing.assert_allclose(smooth + features.nugget, kernel.diag(POINTS), rtol=1e-12)


@pytest.mark.parametrize("kernel", WITHOUT_FEATURES, ids=str)
def test_other_kernels_have_no_features(kernel: Kernel) -> None:
    assert fourier_features(kernel, np.zeros(2), 64, np.random.default_rng(0)) is None


@pytest.mark.parametrize("n_columns", [1, 2, 30])
@pytest.mark.parametrize("kernel", [RBF(2.0), Matern(2.0, nu=1.5)], ids=str)
def test_features_of_one_set_of_frequencies_converge(kernel: Kernel, n_columns: int) -> None:
    X = np.random.default_rng(0).standard_normal((40, n_columns)) / np.sqrt(n_columns / 2)
    errors = []
    for n_frequencies in (64, 512, 4096):
        sets = [covariance(features_of(kernel, n_frequencies, seed, n_columns), X) - kernel(X) for seed in range(2)]
        errors.append(np.sqrt(np.mean(np.square(sets))))
    # Eight times as many independent frequencies have a third of the error (√8 = 2.8); even ones, less.
    assert errors[1] < errors[0] / 2.4
    assert errors[2] < errors[1] / 2.4
    # Var cos ωᵀd = (1 + k(2d)) / 2 − k(d)² for independent ones.
    independent = np.sqrt(np.mean((1 + kernel(2 * X)) / 2 - kernel(X) ** 2) / 512)
    assert errors[1] < (0.5 if n_columns < 30 else 0.9) * independent


def test_the_number_of_frequencies_is_for_each_term() -> None:
    assert features_of(RBF() + Matern(), 48).n_features == 2 * (48 + 48)
    assert features_of(RBF() + 2.0, 48).n_features == 2 * (48 + 1)


def test_very_rough_kernels_have_finite_features_that_rounding_leaves_alone() -> None:
    features = features_of(Matern(1.0, nu=0.02), 1024)
    X = np.random.default_rng(0).standard_normal((50, 2))
    np.testing.assert_allclose(features(X[:1]), features(X)[:1], atol=1e-9)
    np.testing.assert_allclose(features(X[:1] * (1 + 1e-16)), features(X[:1]), atol=1e-9)


# Functions along a path

ROWS = np.array([[0.5, 0.5], [0.52, 0.5], [-0.8, 0.3], [0.6, -0.9], [3.0, 3.0], [3.1, 3.0]])
"""In the data, near each other, where there are few, none, and far outside."""

KERNELS = [RBF(0.4), 2.0 * Matern(0.8, nu=1.5) + 0.3, RBF(0.4) + WhiteKernel(0.1)]


def fitted(kernel: Kernel, X: Array, n_components: int = 1) -> GPSSL:
    return GPSSL(n_components, kernel=kernel, max_inducing=40, residual_tolerance=0.3, random_state=0).fit(X)


def exact_covariance(posterior: Posterior, X: Array) -> Array:
    """Cov(f(x), f(y)) = k(x, y) − Σ_a b_a(x) b_a(y) (1 − s_a²), from dense matrices, for one component. [n, n]"""
    features, basis, weights = posterior.features, posterior.basis, posterior.weights
    b = np.linalg.solve(features.factor, features.kernel(features.points, X)).T @ basis
    return np.asarray(features.kernel(X) - (b * (1 - weights.std[0] ** 2)) @ b.T)  # type: ignore[attr-defined]


def moments_over_paths(posterior: Posterior, known: list[int]) -> tuple[Array, Array, Array]:
    """Mean [n], covariance [n, n] and its standard error of 10⁵ functions at the rows, some of which are known before.

    A thousand functions of each of a hundred seeds, with frequencies of their own: the errors of the features average out.
    """
    expected = posterior.mean(ROWS)[:, 0]
    means, covariances = [], []
    for seed in range(100):
        functions = posterior.draw_functions(1000, seed)
        before = functions(ROWS[known]) if known else np.empty((1000, 0, 1))
        draws = functions(ROWS)[:, :, 0]
        np.testing.assert_allclose(draws[:, known], before[:, :, 0], atol=1e-12)
        means.append(draws.mean(axis=0))
        covariances.append((draws - expected).T @ (draws - expected) / 1000)
    return np.mean(means, axis=0), np.mean(covariances, axis=0), np.std(covariances, axis=0) / np.sqrt(100)


@pytest.fixture
def _few_exact_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(gpssl.core._draws, "EXACT_ROWS", 3)
    with one_blas_thread():  # matrices are small here
        yield


@pytest.mark.usefixtures("_few_exact_rows")
@pytest.mark.parametrize("known", [[], [0, 4]], ids=["nothing known", "two rows known"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_moments_over_paths_are_the_posterior_s(kernel: Kernel, known: list[int], circles: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpssl.core._draws, "N_FREQUENCIES", 128)
    ssl = fitted(kernel, circles)
    exact = exact_covariance(ssl.posterior_, ROWS)
    mean, covariance, error = moments_over_paths(ssl.posterior_, known)
    assert (np.abs(mean - ssl.transform(ROWS)[:, 0]) < 4.5 * np.sqrt(exact.diagonal() / 1e5)).all()
    assert (np.abs(covariance - exact) < 4.5 * error).all()
    # The errors are small enough to see the nugget, and the correlation of the last two rows.
    assert (error < 0.02 * exact.diagonal().max()).all()
    np.testing.assert_allclose(exact.diagonal(), ssl.std(ROWS)[:, 0] ** 2, rtol=1e-6)


@pytest.mark.usefixtures("_few_exact_rows")
def test_what_keeps_factors_stable_counts_as_noise_on_the_path(circles: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    """With jitter a million times as large as it ever is, only the known rows themselves have it."""
    monkeypatch.setattr(gpssl.core._draws, "N_FREQUENCIES", 128)

    def jittered(K: Array, _: Kernel, scale: float = 1.0) -> tuple[Array, float]:
        return cholesky(K + 0.2 * scale * np.eye(len(K)), lower=True), 0.2

    monkeypatch.setattr(gpssl.core._draws, "stable_cholesky", jittered)
    posterior = fitted(RBF(0.4), circles).posterior_
    factor, jitter = jittered(RBF(0.4)(posterior.features.points), RBF(0.4))
    posterior = replace(posterior, features=replace(posterior.features, factor=factor, jitter=jitter))
    exact = exact_covariance(posterior, ROWS)
    exact[[0, 4], [0, 4]] += 0.2
    _, covariance, error = moments_over_paths(posterior, [0, 4])
    assert (np.abs(covariance - exact) < 4.5 * error).all()
    assert (error < 0.02).all()


@pytest.mark.usefixtures("_few_exact_rows")
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_functions_of_one_set_of_frequencies_have_nearly_the_posterior_s_covariance(kernel: Kernel, circles: Array) -> None:
    ssl = fitted(kernel, circles)
    n_draws = 10_000
    draws = ssl.draw_functions(n_draws, random_state=1)(ROWS)[:, :, 0]
    exact = exact_covariance(ssl.posterior_, ROWS)
    variance = exact.diagonal()
    error = np.sqrt((np.outer(variance, variance) + exact**2) / n_draws)
    # The features' own error is measured: at most 0.01 of the prior variance.
    assert (np.abs(np.cov(draws.T) - exact) < 4.5 * error + 0.01 * kernel.diag(ROWS).max()).all()


@pytest.mark.parametrize("kernel", [RBF(0.4), RBF(1.0), Matern(0.8, nu=1.5)], ids=str)
def test_what_the_inducing_points_leave_open_is_in_the_features_too(kernel: Kernel, circles: Array) -> None:
    """Around the data it is the high frequencies': with as many independent ones the errors are twenty times these."""
    features = GPSSL(2, kernel=kernel, random_state=0).fit(circles).features_
    for stretch, tolerance in ((1.0, 2e-4), (1.5, 0.02), (2.5, 0.03), (5.0, 0.03)):
        assert largest_error_of_what_is_left_open(features, stretch * circles[::5]) < tolerance


def test_what_the_inducing_points_leave_open_is_in_the_features_of_thirty_columns_too(breast_cancer: Array) -> None:
    features = GPSSL(2, random_state=0).fit(breast_cancer).features_
    center = breast_cancer.mean(axis=0)
    for stretch, tolerance in ((1.0, 2e-4), (1.5, 0.1), (2.5, 0.1), (5.0, 0.1)):
        assert largest_error_of_what_is_left_open(features, center + stretch * (breast_cancer[::5] - center)) < tolerance


def largest_error_of_what_is_left_open(features: Features, X: Array) -> float:
    """Of Var g(x), in units of the prior variance, which is 1."""
    waves = fourier_features(features.kernel, features.points.mean(axis=0), gpssl.core._draws.N_FREQUENCIES, np.random.default_rng(0))
    assert waves is not None
    whitened = features.whitened(X)
    left_open = waves(X) - whitened.T @ features.whiten(waves(features.points))
    jitter = features.jitter * (features.unwhiten(whitened) ** 2).sum(axis=0)
    error = (left_open**2).sum(axis=1) + jitter - features.residual_variance(X, whitened)
    return float(np.abs(error).max())


@pytest.mark.usefixtures("_few_exact_rows")
def test_the_components_of_functions_along_a_path_are_independent(circles: Array) -> None:
    draws = fitted(RBF(0.4), circles, n_components=2).draw_functions(5000, random_state=0)(ROWS)
    for row in range(len(ROWS)):
        assert abs(np.atleast_2d(np.corrcoef(draws[:, row].T))[0, 1]) < 4.5 / np.sqrt(5000)


@pytest.mark.usefixtures("_few_exact_rows")
@pytest.mark.parametrize("kernel", [*KERNELS, UnlikeRBF(0.4), DotProduct()], ids=str)
@pytest.mark.parametrize("n_known", [0, 2])
def test_a_row_has_one_value_in_any_batch_split_order_and_copy(kernel: Kernel, n_known: int, circles: Array) -> None:
    rows = np.random.default_rng(0).normal(size=(60, 2)) * 2
    functions = fitted(kernel, circles, n_components=2).draw_functions(7, random_state=0)
    before = functions(rows[:n_known]) if n_known else np.empty((7, 0, 2))
    unasked = pickle.loads(pickle.dumps(functions))
    unasked.freeze()
    values = functions(rows)
    np.testing.assert_allclose(values[:, :n_known], before, atol=1e-12)
    copy = pickle.loads(pickle.dumps(functions))
    for some in (functions, copy, unasked):
        np.testing.assert_allclose(some(rows[50:51]), values[:, 50:51], atol=1e-8)
        np.testing.assert_allclose(some(rows[::-1]), values[:, ::-1], atol=1e-8)
        np.testing.assert_allclose(some(rows[[5, 5, 0, 7]]), values[:, [5, 5, 0, 7]], atol=1e-8)
        parts = [some(part) for part in np.array_split(rows, 9)]
        np.testing.assert_allclose(np.concatenate(parts, axis=1), values, atol=1e-8)
        np.testing.assert_allclose(some(rows), values, atol=1e-8)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-8), (np.float32, 1e-5)])
def test_batches_of_many_blocks_are_evaluated_as_single_rows_are(
    dtype: Any, tolerance: float, circles: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpssl.core._draws, "EXACT_ROWS", 3)
    rows = np.random.default_rng(0).normal(size=(3000, 2)).astype(dtype)
    functions = fitted(RBF(0.4) + WhiteKernel(0.1), circles).draw_functions(3, random_state=0)
    functions(rows[[2000, 10]])
    values = functions(rows)
    assert values.shape == (3, 3000, 1)
    for i in (0, 10, 1023, 1024, 2000, 2999):
        np.testing.assert_allclose(functions(rows[i : i + 1]), values[:, i : i + 1], atol=tolerance)


def test_rows_are_remembered_until_a_batch_does_not_fit(circles: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpssl.core._draws, "EXACT_ROWS", 4)
    ssl = fitted(RBF(0.4), circles)
    functions, frozen = ssl.draw_functions(5, random_state=0), ssl.draw_functions(5, random_state=0)
    for some in (functions, frozen):
        some(ROWS[:2])
    frozen.freeze()
    remembered = functions(ROWS[[2, 2, 0]])
    assert np.abs(remembered - frozen(ROWS[[2, 2, 0]]))[:, :2].min() > 1e-6  # the same process, other functions
    together = functions(ROWS)
    np.testing.assert_allclose(together[:, :3], functions(ROWS[:3]), atol=1e-12)
    np.testing.assert_allclose(together[:, 2], remembered[:, 0], atol=1e-12)
    # There is room for one more, but it has its place on the path.
    np.testing.assert_allclose(functions(ROWS[3:4]), together[:, 3:4], atol=1e-10)


@pytest.mark.usefixtures("_few_exact_rows")
def test_functions_along_a_path_are_continuous_even_at_known_rows(circles: Array) -> None:
    functions = fitted(RBF(0.4), circles).draw_functions(500, random_state=0)
    functions(ROWS[4:5])
    functions(ROWS)
    for row in (ROWS[4:5], ROWS[3:4]):
        step = functions(row + 1e-3) - functions(row)
        # k(x, y) = exp(−½ (1.4e-3/0.4)²), so that far from the data steps have a standard deviation of 3.5e-3; elsewhere, less.
        assert np.sqrt(np.mean(step**2)) < 1.2 * np.sqrt(2) * 1e-3 / 0.4


@pytest.mark.usefixtures("_few_exact_rows")
def test_white_noise_belongs_to_single_rows(circles: Array) -> None:
    functions = fitted(RBF(0.4) + WhiteKernel(0.1), circles).draw_functions(4000, random_state=0)
    values = functions(np.vstack([ROWS, ROWS[4:5] + 1e-9]))
    step = values[:, 6] - values[:, 4]
    # A nanometer away there is other noise: twice its variance of 0.1.
    assert step.var() == pytest.approx(0.2, rel=4.5 * np.sqrt(2 / 4000))
    assert values[:, 4].var() == pytest.approx(1.1, rel=4.5 * np.sqrt(2 / 4000) + 0.01)


@pytest.mark.usefixtures("_few_exact_rows")
def test_row_by_row_the_functions_go_on_from_more_rows_than_they_remember(circles: Array) -> None:
    ssl = fitted(RBF(0.4), circles)
    functions, settled = (ssl.draw_functions(50, random_state=0) for _ in range(2))
    settled.settle()
    alone = settled.one_row_at_a_time(ROWS)
    values = functions(ROWS)
    np.testing.assert_allclose(settled(ROWS), values, atol=1e-12)
    np.testing.assert_allclose(functions.one_row_at_a_time(ROWS), values, atol=1e-8)
    functions.settle()
    np.testing.assert_allclose(functions.one_row_at_a_time(ROWS[2:3]), values[:, 2:3], atol=1e-8)
    np.testing.assert_array_equal(settled.one_row_at_a_time(ROWS), alone)
    assert np.abs(alone - values).max() > 0.1


@pytest.mark.parametrize("kernel", [RBF(0.4), UnlikeRBF(0.4)], ids=["with features", "without"])
def test_freezing_does_not_change_functions_row_by_row(kernel: Kernel, circles: Array) -> None:
    functions = fitted(kernel, circles).draw_functions(5, random_state=0)
    functions(ROWS[:2])
    before = functions.one_row_at_a_time(ROWS)
    functions.freeze()
    np.testing.assert_array_equal(functions.one_row_at_a_time(ROWS), before)


@pytest.mark.usefixtures("_few_exact_rows")
def test_functions_of_strings() -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcd"), size=6)) for _ in range(40)]
    functions: Any = GPSSL(2, kernel=SharedLetters(), inducing=3, residual_tolerance=0.9, random_state=0).fit(words).draw_functions(4)
    assert isinstance(functions, FunctionDraws)
    before = functions(words[:2])
    values = functions(words)
    np.testing.assert_allclose(values[:, :2], before, atol=1e-12)
    copy = pickle.loads(pickle.dumps(functions))
    np.testing.assert_allclose(copy(words[30:] + words[:5]), values[:, [*range(30, 40), *range(5)]], atol=1e-8)


@pytest.mark.parametrize("n_dimensions", [3, qmc.Sobol.MAXDIM + 1])
def test_uniform_points_cover_each_stratum_of_the_first_dimension_once(n_dimensions: int) -> None:
    points = _uniform(64, n_dimensions, np.random.default_rng(0))
    assert points.shape == (n_dimensions, 64)
    assert points.min() > 0
    assert points.max() < 1
    assert sorted(np.floor(points[0] * 64).astype(int)) == list(range(64))
    assert points[1:].mean() == pytest.approx(0.5, abs=0.1)
