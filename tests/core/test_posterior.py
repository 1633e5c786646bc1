from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

import gpssl.core._draws
from gpssl import GPSSL
from gpssl.core._checked_rows import rows_in_memory
from gpssl.core._posterior import Posterior
from gpssl.data._rows import SliceableRows
from gpssl.inference import Sampling

Array = NDArray[np.float64]

N_DRAWS = 100_000
ROWS = np.array([[0.5, 0.5], [0.52, 0.5], [-0.8, 0.3], [0.6, -0.9], [3.0, 3.0], [3.1, 3.0]])
"""In the data, near each other, where there are few, none, and far outside."""


@pytest.fixture(scope="module")
def ssl(circles: Array) -> GPSSL:
    return GPSSL(2, kernel=RBF(0.4), random_state=0).fit(circles)


def exact_covariance(ssl: GPSSL, X: Array) -> Array:
    """Cov(f_j(x), f_j(y)) = k(x, y) − Σ_a b_a(x) b_a(y) (1 − s_ja²), from dense matrices. [J, n, n]"""
    features, basis, weights = ssl.posterior_.features, ssl.posterior_.basis, ssl.posterior_.weights
    b = np.linalg.solve(features.factor, features.kernel(features.points, X)).T @ basis
    return np.array([features.kernel(X) - (b * (1 - s**2)) @ b.T for s in weights.std])  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def draws(ssl: GPSSL) -> Array:
    return ssl.sample(ROWS, N_DRAWS)


def test_means_of_draws_match_transform(ssl: GPSSL, draws: Array) -> None:
    error = ssl.std(ROWS) / np.sqrt(N_DRAWS)
    assert (np.abs(draws.mean(axis=0) - ssl.transform(ROWS)) < 4.5 * error).all()


def test_standard_deviations_of_draws_match_std(ssl: GPSSL, draws: Array) -> None:
    np.testing.assert_allclose(draws.std(axis=0), ssl.std(ROWS), rtol=4.5 / np.sqrt(2 * N_DRAWS))


def test_covariances_of_draws_match_the_posterior_s(ssl: GPSSL, draws: Array) -> None:
    exact = exact_covariance(ssl, ROWS)
    for j in range(2):
        variance = exact[j].diagonal()
        error = np.sqrt((np.outer(variance, variance) + exact[j] ** 2) / N_DRAWS)
        assert (np.abs(np.cov(draws[:, :, j].T) - exact[j]) < 4.5 * error + 1e-6).all()


def test_dimensions_of_draws_are_independent(draws: Array) -> None:
    for row in range(len(ROWS)):
        assert abs(np.atleast_2d(np.corrcoef(draws[:, row].T))[0, 1]) < 4.5 / np.sqrt(N_DRAWS)


def test_std_is_the_root_of_the_exact_variance(ssl: GPSSL) -> None:
    variance = np.diagonal(exact_covariance(ssl, ROWS), axis1=1, axis2=2).T
    np.testing.assert_allclose(ssl.std(ROWS), np.sqrt(variance), rtol=1e-6)


def test_far_from_the_data_the_posterior_is_the_prior(ssl: GPSSL) -> None:
    far = np.array([[50.0, 50.0]])
    np.testing.assert_allclose(ssl.transform(far), 0, atol=1e-12)
    np.testing.assert_allclose(ssl.std(far), 1, rtol=1e-12)


@pytest.mark.parametrize("kernel", [RBF(0.4), Matern(0.8, nu=1.5), RBF(0.4) + WhiteKernel(0.1)], ids=str)
def test_a_function_has_one_value_at_a_row_in_any_batch(kernel: RBF, circles: Array) -> None:
    functions = GPSSL(2, kernel=kernel, max_inducing=300, residual_tolerance=0.1, random_state=0).fit(circles).draw_functions(7)
    together = functions(ROWS)
    assert together.shape == (7, 6, 2)
    np.testing.assert_allclose(functions(ROWS[2:4]), together[:, 2:4], atol=1e-12)
    np.testing.assert_allclose(functions(ROWS[::-1]), together[:, ::-1], atol=1e-12)
    stacked = functions(np.vstack([ROWS[:1], ROWS, ROWS[:1]]))
    np.testing.assert_allclose(stacked[:, [0, 1, -1]], together[:, [0, 0, 0]], atol=1e-12)


def test_functions_are_continuous_across_batches(ssl: GPSSL) -> None:
    """Values drawn later are drawn given those drawn before: a step of 1e-3 hardly changes them."""
    functions = ssl.draw_functions(200)
    far = np.array([[3.0, 3.0]])
    before, after = functions(far), functions(far + 1e-3)
    # k(x, y) = exp(−½ (1.4e-3/0.4)²): the difference has a standard deviation of 3.5e-3 where values have one of 1.
    assert np.sqrt(np.mean((after - before) ** 2)) == pytest.approx(np.sqrt(2) * 1e-3 / 0.4, rel=0.2)
    assert before.std() > 0.8


def test_joint_moments_do_not_depend_on_the_batches(ssl: GPSSL) -> None:
    functions = ssl.draw_functions(50_000)
    parts = np.concatenate([functions(ROWS[i : i + 2]) for i in (0, 2, 4)], axis=1)
    exact = exact_covariance(ssl, ROWS)[0]
    variance = exact.diagonal()
    error = np.sqrt((np.outer(variance, variance) + exact**2) / 50_000)
    assert (np.abs(np.cov(parts[:, :, 0].T) - exact) < 4.5 * error + 1e-6).all()


def test_same_seed_same_bytes_and_another_seed_other_functions(ssl: GPSSL) -> None:
    one, two, other = ssl.sample(ROWS, 3), ssl.sample(ROWS, 3), ssl.sample(ROWS, 3, random_state=1)
    np.testing.assert_array_equal(one, two)
    assert not np.allclose(one, other)


class WithoutFourierFeatures(RBF):
    """A subclass may be any function; this one is the RBF, unbeknown to the library. Kernels with a path: `test_fourier.py`."""


def test_rows_beyond_the_exact_ones_keep_their_value_mean_and_variance(circles: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpssl.core._draws, "EXACT_ROWS", 2)
    ssl = GPSSL(2, kernel=WithoutFourierFeatures(0.4), random_state=0).fit(circles)
    functions = ssl.draw_functions(20_000)
    values = functions(ROWS)
    np.testing.assert_allclose(functions(ROWS[3:]), values[:, 3:], atol=1e-10)
    error = ssl.std(ROWS) / np.sqrt(20_000)
    assert (np.abs(values.mean(axis=0) - ssl.transform(ROWS)) < 4.5 * error).all()
    np.testing.assert_allclose(values.std(axis=0), ssl.std(ROWS), rtol=4.5 / np.sqrt(40_000))
    # What is neglected: the last two rows are close to each other and far from all others.
    assert abs(np.atleast_2d(np.corrcoef(values[:, 4:, 0].T))[0, 1]) < 4.5 / np.sqrt(20_000)


def test_draws_of_a_sampled_posterior_match_its_mean_and_std(circles: Array) -> None:
    sampling = Sampling(n_chains=10, n_samples=500)
    ssl = GPSSL(2, kernel=RBF(0.8), temperature=1.0, variance_weight=5, covariance_weight=1, inference=sampling, random_state=0).fit(
        circles
    )
    draws = ssl.sample(ROWS, 20_000)
    np.testing.assert_allclose(draws.mean(axis=0), ssl.transform(ROWS), atol=0.05)
    np.testing.assert_allclose(draws.std(axis=0), ssl.std(ROWS), rtol=0.05)


def test_mode_leaves_only_what_the_features_leave_open(circles: Array) -> None:
    ssl = GPSSL(2, kernel=RBF(0.8), inference="mode", random_state=0).fit(circles)
    assert ssl.std(circles).max() < 0.2
    assert ssl.std(np.array([[50.0, 50.0]])) == pytest.approx(1)
    np.testing.assert_allclose(ssl.sample(circles, 2).mean(axis=0), ssl.transform(circles), atol=0.5)


def test_functions_survive_pickling(ssl: GPSSL) -> None:
    functions = ssl.draw_functions(3)
    values = functions(ROWS[:3])
    copy = pickle.loads(pickle.dumps(functions))
    np.testing.assert_array_equal(copy(ROWS[:3]), values)
    np.testing.assert_array_equal(copy(ROWS[3:]), functions(ROWS[3:]))


def test_functions_of_an_unbounded_kernel_at_rows_of_any_size() -> None:
    X = np.random.default_rng(0).standard_normal((80, 3))
    functions = GPSSL(2, kernel=DotProduct(sigma_0=0.0), random_state=0).fit(X).draw_functions(50)
    for rows in (X[:5], X * 1e5, np.zeros((1, 3))):
        assert np.isfinite(functions(rows)).all()
    # A linear kernel gives linear functions.
    np.testing.assert_allclose(functions(2 * X[:5]), 2 * functions(X[:5]), rtol=1e-3, atol=1e-2)


def test_functions_check_their_rows(ssl: GPSSL) -> None:
    with pytest.raises(ValueError, match="2 features"):
        ssl.draw_functions(2)(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="n_draws"):
        ssl.draw_functions(0)


# Row by row


def test_row_by_row_the_functions_have_their_mean_and_standard_deviation(ssl: GPSSL) -> None:
    X = np.array([[0.5, 0.5], [1.8, -1.8], [0.0, 3.0]])
    draws = ssl.draw_functions(20_000, random_state=3).one_row_at_a_time(X)
    np.testing.assert_allclose(draws.mean(axis=0), ssl.transform(X), atol=4 * ssl.std(X).max() / np.sqrt(20_000))
    np.testing.assert_allclose(draws.std(axis=0), ssl.std(X), rtol=0.03)


def test_row_by_row_the_functions_go_on_from_the_rows_they_have_seen(ssl: GPSSL) -> None:
    seen, near = np.array([[3.0, 3.0], [-3.0, 3.0]]), np.array([[3.1, 3.0]])
    functions = ssl.draw_functions(5000, random_state=0)
    at_seen = functions(seen)
    np.testing.assert_allclose(functions.one_row_at_a_time(seen), at_seen, atol=1e-3)
    joint = ssl.draw_functions(5000, random_state=1)(np.vstack([seen, near]))
    expected = np.corrcoef(joint[:, 0, 0], joint[:, 2, 0])[0, 1]
    assert np.corrcoef(at_seen[:, 0, 0], functions.one_row_at_a_time(near)[:, 0, 0])[0, 1] == pytest.approx(expected, abs=0.02)


def test_row_by_row_nothing_else_matters_and_values_are_continuous(ssl: GPSSL) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 2)) * 2
    functions = ssl.draw_functions(10, random_state=0)
    functions(rows[:5])
    together = functions.one_row_at_a_time(rows)
    np.testing.assert_allclose(functions.one_row_at_a_time(rows[::-1])[:, ::-1], together, atol=1e-10)
    np.testing.assert_allclose(functions.one_row_at_a_time(rows[7:8]), together[:, 7:8], atol=1e-10)
    np.testing.assert_allclose(functions.one_row_at_a_time(rows + 1e-7), together, atol=1e-4)


def test_the_order_of_rows_in_a_batch_does_not_matter(ssl: GPSSL) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 2)) * 2
    one, other = ssl.draw_functions(10, random_state=0)(rows), ssl.draw_functions(10, random_state=0)(rows[::-1])
    np.testing.assert_allclose(other[:, ::-1], one, atol=1e-8)


def test_functions_expect_the_columns_of_their_model_and_hold_no_estimator(circles: Array) -> None:
    ssl = GPSSL(2, inducing=20, random_state=0).fit(circles)
    functions = ssl.draw_functions(3)
    expected = pickle.loads(pickle.dumps(functions))(circles[:10])
    assert b"estimator" not in pickle.dumps(functions)
    ssl.fit(np.hstack([circles, circles[:, :1]]))
    np.testing.assert_array_equal(functions(circles[:10]), expected)
    with pytest.raises(ValueError, match="X has 3 features, but FunctionDraws is expecting 2"):
        functions(np.zeros((4, 3)))


def test_rows_that_have_been_checked_are_not_checked_again(circles: Array) -> None:
    functions = GPSSL(2, inducing=20, random_state=0).fit(circles).draw_functions(3)
    with_nan = np.vstack([circles[:3], [[np.nan, 0.0]]])
    with pytest.raises(ValueError, match="contains NaN"):
        functions(with_nan)
    values = functions.one_row_at_a_time(rows_in_memory(with_nan))
    np.testing.assert_allclose(values[:, :3], functions.one_row_at_a_time(circles[:3]), rtol=1e-9)


# The posterior kernel


def cloud() -> Array:
    return np.random.default_rng(0).normal(size=(80, 2))


def test_kernel_features_have_the_mean_product_of_drawn_functions() -> None:
    """φ(x)ᵀφ(y) = E[(1/J) Σ_j f_j(x) f_j(y)] at rows that the inducing points leave nothing open at."""
    X = cloud()
    ssl = GPSSL(3, kernel=RBF(1.0), inducing="all", random_state=0).fit(X)
    features, draws = ssl.kernel_features(X[:6]), ssl.sample(X[:6], N_DRAWS)
    products = np.einsum("snj,smj->snm", draws, draws) / 3
    error = products.std(axis=0) / np.sqrt(N_DRAWS)
    assert (np.abs(products.mean(axis=0) - features @ features.T) < 4.5 * error + 1e-6).all()


@pytest.mark.filterwarnings("ignore:The chains have not mixed")  # and need not, for the moments of what they store
@pytest.mark.parametrize("inference", ["mode", Sampling(2, 100, 200)])
def test_kernel_features_of_a_mode_and_of_stored_draws(inference: str | Sampling) -> None:
    """Second moments of what is stored along the learned directions, the prior along the others."""
    X = cloud()
    ssl = GPSSL(2, kernel=RBF(1.0), temperature=0.1, inference=inference, random_state=0).fit(X)
    weights, posterior = ssl.posterior_.weights, ssl.posterior_
    stored = weights.mean[None] if isinstance(inference, str) else weights.draws  # type: ignore[attr-defined]
    rank = posterior.basis.shape[1]
    g = posterior.kernel_weights(posterior.full_basis())
    np.testing.assert_allclose(g[:rank], (stored**2).mean(axis=(0, 1)))
    np.testing.assert_array_equal(g[rank:], 1.0)


def test_a_full_basis_is_orthonormal_and_begins_with_the_learned_directions(ssl: GPSSL) -> None:
    basis, rank = ssl.posterior_.full_basis(), ssl.posterior_.basis.shape[1]
    np.testing.assert_allclose(basis.T @ basis, np.eye(len(basis)), atol=1e-10)
    np.testing.assert_array_equal(basis[:, :rank], ssl.posterior_.basis)


def test_when_it_is_hot_the_posterior_kernel_is_the_prior_s(circles: Array) -> None:
    ssl = GPSSL(2, kernel=RBF(0.4), temperature=1e6, random_state=0).fit(circles)
    features = ssl.kernel_features(circles[:50])
    np.testing.assert_allclose(features @ features.T, RBF(0.4)(circles[:50]), atol=1e-3)
    prior = Posterior.of_prior(ssl.features_, 2)
    exact = prior.kernel_features(circles[:50])
    np.testing.assert_allclose(exact @ exact.T, RBF(0.4)(circles[:50]), atol=1e-3)  # up to what the inducing points leave open
    np.testing.assert_array_equal(prior.kernel_weights(prior.full_basis()), 1.0)
    np.testing.assert_array_equal(prior.mean(circles[:5]), 0.0)
    np.testing.assert_allclose(prior.std(circles[:5]), 1.0, atol=1e-8)


@pytest.mark.parametrize(("amplitude", "excess"), [(1.0, 0.3), (1e-3, 1e-3)])
def test_when_it_is_cold_the_posterior_kernel_is_that_of_kernel_principal_components(amplitude: float, excess: float) -> None:
    """g_a → 1 / (J λ_a) (1 + O(λ_a)) along the leading J directions and 0 along the others.

    The hinge is zero above the target, so that along the component that a dimension stands for q stays as wide as it can without falling
    below: m² + s² exceeds 1/λ_a, by a number of order one. Relative to 1/λ_a that vanishes where the eigenvalues are small.
    """
    X, kernel = cloud(), ConstantKernel(amplitude) * RBF(1.0)
    ssl = GPSSL(2, kernel=kernel, inducing="all", temperature=1e-10, random_state=0).fit(X)
    g = ssl.posterior_.kernel_weights(ssl.posterior_.full_basis())
    shares = 2 * g[: len(ssl.eigenvalues_)] * ssl.eigenvalues_
    assert (shares[:2] > 1 - 2e-4).all()  # of the 1e-4 that the loss adds to each variance
    assert (shares[:2] < 1 + excess).all()
    assert shares[2:].sum() < 2e-4
    whitened = KernelPCA(2, kernel="precomputed").fit_transform(kernel(X))
    whitened /= whitened.std(axis=0, ddof=1)
    features = ssl.kernel_features(X)
    features -= features.mean(axis=0)
    error = np.linalg.norm(features @ features.T - whitened @ whitened.T / 2) / np.linalg.norm(whitened @ whitened.T / 2)
    assert error < excess
    # The span is the same whatever the size of the eigenvalues.
    explained = np.linalg.lstsq(whitened, features, rcond=None)[0]
    assert np.linalg.norm(features - whitened @ explained) < 0.01 * np.linalg.norm(features)


def test_kernel_features_check_their_rows_and_follow_weights(circles: Array) -> None:
    ssl = GPSSL(2, random_state=0).fit(circles)
    with pytest.raises(ValueError, match="3 features"):
        ssl.kernel_features(np.zeros((2, 3)))
    assert ssl.kernel_features(circles[:7]).shape == (7, len(ssl.inducing_points_))


# Rows that come in parts


@pytest.mark.parametrize("part_rows", [1, 4])
def test_functions_of_rows_in_parts_are_those_of_the_rows_at_once(ssl: GPSSL, part_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpssl.data._rows.PART_ROWS", (1, part_rows))
    expected = ssl.draw_functions(5)(ROWS)
    in_parts = SliceableRows(ROWS)
    functions = ssl.draw_functions(5)
    np.testing.assert_allclose(functions(in_parts), expected, atol=1e-9)
    np.testing.assert_allclose(functions(ROWS), expected, atol=1e-9)  # they are remembered


@pytest.mark.parametrize("exact_rows", [5, 6])
def test_too_many_rows_in_parts_are_all_evaluated_along_the_path(ssl: GPSSL, exact_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpssl.data._rows.PART_ROWS", (1, 4))
    monkeypatch.setattr(gpssl.core._draws, "EXACT_ROWS", exact_rows)
    functions = ssl.draw_functions(5)
    in_parts = functions(SliceableRows(ROWS))
    np.testing.assert_allclose(functions(ROWS[::-1])[:, ::-1], in_parts, atol=1e-9)
    np.testing.assert_allclose(ssl.draw_functions(5)(ROWS), in_parts, atol=1e-9)
    frozen = ssl.draw_functions(5)
    frozen.freeze()
    assert np.allclose(frozen(ROWS), in_parts, atol=1e-9) == (exact_rows == 5)
