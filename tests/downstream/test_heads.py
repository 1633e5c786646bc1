from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logsumexp, softmax
from scipy.stats import multivariate_normal
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning, SkipTestWarning
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_limits

from gpssl.downstream import BayesianLinearRegression, BayesianLogisticRegression
from gpssl.downstream._laplace import INTERCEPT_PRECISION

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def iris() -> tuple[Array, NDArray[np.intp]]:
    X, y = load_iris(return_X_y=True)
    return scale(X), y


def classes_in_a_cloud(n_classes: int, n_rows: int, seed: int = 0) -> tuple[Array, NDArray[np.intp]]:
    """Overlapping classes around random centers in five columns; each class has a row."""
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(n_classes), rng.integers(n_classes, size=n_rows - n_classes)]
    return rng.normal(size=(n_classes, 5))[y] + rng.normal(size=(n_rows, 5)), y


def negative_log_posterior(weights: Array, X: Array, y: NDArray[np.intp], alpha: float) -> float:
    """−log p(W | y) up to a constant, as one would write it: W [K, J + 1], a softmax, a Gaussian prior, columns centered."""
    W = weights.reshape(-1, X.shape[1] + 1)
    logits = (X - X.mean(axis=0)) @ W[:, :-1].T + W[:, -1]
    prior = 0.5 * alpha * (W[:, :-1] ** 2).sum() + 0.5 * INTERCEPT_PRECISION * (W[:, -1] ** 2).sum()
    return float(prior - log_softmax(logits, axis=1)[np.arange(len(y)), y].sum())


# Logistic regression


@pytest.mark.parametrize("estimator", [BayesianLogisticRegression(), BayesianLinearRegression()])
def test_check_estimator_without_expected_failures(estimator: BayesianLogisticRegression) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(estimator)
    assert {result["status"] for result in results} <= {"passed", "skipped"}
    assert sum(result["status"] == "passed" for result in results) > 45


@pytest.mark.parametrize("n_classes", [2, 3, 8])
def test_the_mode_is_the_minimum_that_a_general_optimizer_finds(n_classes: int) -> None:
    X, y = classes_in_a_cloud(n_classes, 80)
    head = BayesianLogisticRegression(0.7).fit(X, y)
    found = minimize(negative_log_posterior, np.zeros(n_classes * 6), args=(X, y, 0.7), method="BFGS", options={"gtol": 1e-6})
    expected = found.x.reshape(n_classes, 6)
    np.testing.assert_allclose(head.coef_, expected[:, :-1], atol=1e-5)
    np.testing.assert_allclose(head.intercept_ + head.coef_ @ X.mean(axis=0), expected[:, -1], atol=1e-4)


def test_several_classes_have_scikit_learn_s_weights(iris: tuple[Array, NDArray[np.intp]]) -> None:
    X, y = iris
    other = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000).fit(X, y)
    # scikit-learn has no prior on the intercepts, and ours is wide but not flat.
    np.testing.assert_allclose(BayesianLogisticRegression(0.5).fit(X, y).coef_, other.coef_, atol=0.01)


def test_two_classes_have_scikit_learn_s_weights_at_twice_the_variance(iris: tuple[Array, NDArray[np.intp]]) -> None:
    X, y = iris[0][50:], iris[1][50:]
    other = LogisticRegression(C=4.0, tol=1e-10, max_iter=10_000).fit(X, y)
    coef = BayesianLogisticRegression(0.5).fit(X, y).coef_
    np.testing.assert_allclose(coef[1:] - coef[:1], other.coef_, atol=0.02)


def test_the_covariance_is_the_inverse_of_the_numerical_hessian() -> None:
    X, y = classes_in_a_cloud(3, 40)
    heads = BayesianLogisticRegression(0.7).fit(X, y).heads_
    mode = heads.posterior.mode[0]

    def loss(v: Array) -> float:
        return negative_log_posterior(heads.contrasts @ v.reshape(mode.shape), X, y, 0.7)

    eye, v, h = np.eye(mode.size), mode.ravel(), 1e-4
    hessian = [
        [(loss(v + h * (a + b)) - loss(v + h * (a - b)) - loss(v - h * (a - b)) + loss(v - h * (a + b))) / (4 * h**2) for a in eye]
        for b in eye
    ]
    np.testing.assert_allclose(heads.posterior.covariance[0], np.linalg.inv(hessian), rtol=1e-3, atol=1e-4)


def test_the_mean_is_the_mode_moved_by_the_third_derivative() -> None:
    """v − ½ Λ⁻¹ t with t_i = Σ_jk ℓ_ijk (Λ⁻¹)_jk, the third derivative by automatic differentiation."""
    X, y = classes_in_a_cloud(3, 40)
    posterior = BayesianLogisticRegression(0.7).fit(X, y).heads_.posterior
    mode, covariance = posterior.mode[0].ravel(), posterior.covariance[0]
    contrasts = torch.tensor(BayesianLogisticRegression(0.7).fit(X, y).heads_.contrasts)
    design = torch.tensor(np.column_stack([X - X.mean(axis=0), np.ones(len(X))]))

    def loss(v: torch.Tensor) -> torch.Tensor:
        logits = design @ (contrasts @ v.reshape(2, 6)).T
        return -torch.log_softmax(logits, dim=1)[torch.arange(len(y)), torch.tensor(y)].sum()

    v = torch.tensor(mode, requires_grad=True)
    hessian = torch.autograd.functional.hessian(loss, v, create_graph=True)  # type: ignore[no-untyped-call]
    third = torch.autograd.grad((hessian * torch.tensor(covariance)).sum(), v)[0].numpy()
    np.testing.assert_allclose(posterior.mean[0].ravel() - mode, -0.5 * covariance @ third, rtol=0.02, atol=1e-4)


def test_two_classes_have_mackay_s_probit() -> None:
    X, y = classes_in_a_cloud(2, 40)
    head = BayesianLogisticRegression(0.7).fit(X, y)
    posterior = head.heads_.posterior
    columns = np.column_stack([X - X.mean(axis=0), np.ones(len(X))])
    # η_1 − η_0 = (h_1 − h_0) v x
    gap = np.diff(head.heads_.contrasts, axis=0)[0, 0]
    mean = gap * columns @ posterior.mean[0, 0]
    variance = gap**2 * np.einsum("ni,ij,nj->n", columns, posterior.covariance[0], columns)
    np.testing.assert_allclose(head.predict_proba(X)[:, 1], expit(mean / np.sqrt(1 + np.pi * variance / 8)), atol=1e-12)


@pytest.mark.parametrize(("n_classes", "n_rows"), [(2, 8), (3, 60), (8, 200)])
def test_the_precision_is_the_fixed_point(n_classes: int, n_rows: int) -> None:
    """α = (γ + 2) / (Σ v² + 2/α₀), γ = Σ (1 − α Λ⁻¹_ii), α₀ = 0.3 of the mean variance."""
    X, y = classes_in_a_cloud(n_classes, n_rows)
    head = BayesianLogisticRegression().fit(X, y)
    posterior = head.heads_.posterior
    variance = np.diagonal(posterior.covariance[0]).reshape(posterior.mode[0].shape)
    n_determined = (1 - head.prior_precision_ * variance)[:, :-1].sum()
    expected = (n_determined + 2) / ((posterior.mode[0, :, :-1] ** 2).sum() + 2 / (0.3 * X.var(axis=0).mean()))
    assert head.prior_precision_ == pytest.approx(expected, rel=5e-3)


def test_steps_that_run_out_are_not_taken_twice() -> None:
    X, y = classes_in_a_cloud(3, 60)
    Z = np.stack([X, 1e-3 * X])  # the second converges later, or sooner
    exact = BayesianLogisticRegression(1e-3).fit_draws(Z, y).posterior.mode
    for max_iter in range(2, 9):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            posterior = BayesianLogisticRegression(1e-3, max_iter=max_iter).fit_draws(Z, y).posterior
        done = posterior.converged
        np.testing.assert_allclose(posterior.mode[done], exact[done], rtol=1e-3, atol=1e-3)


def test_the_evidence_is_that_of_the_laplace_approximation() -> None:
    X, y = classes_in_a_cloud(3, 40)
    head = BayesianLogisticRegression(0.7).fit(X, y)
    mode = head.heads_.posterior.mode[0]
    log_prior = multivariate_normal.logpdf(mode[:, :-1].ravel(), cov=np.eye(10) / 0.7)
    log_prior += multivariate_normal.logpdf(mode[:, -1], cov=np.eye(2) / INTERCEPT_PRECISION)
    logits = X @ head.coef_.T + head.intercept_
    log_likelihood = log_softmax(logits, axis=1)[np.arange(len(y)), y].sum()
    log_volume = mode.size / 2 * np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(head.heads_.posterior.covariance[0])[1]
    assert head.log_evidence_ == pytest.approx(log_likelihood + log_prior + log_volume, abs=1e-5)


@pytest.mark.parametrize(("n_classes", "n_rows"), [(2, 20), (2, 200), (4, 60), (8, 200)])
def test_the_precision_chosen_has_nearly_the_largest_evidence_times_hyperprior(n_classes: int, n_rows: int) -> None:
    X, y = classes_in_a_cloud(n_classes, n_rows)
    unit = X.var(axis=0).mean()

    def log_posterior(head: BayesianLogisticRegression) -> float:
        """Of log α, for α ~ exponential with mean 0.3 in units of the mean variance."""
        alpha = head.prior_precision_
        return head.log_evidence_ + np.log(alpha) - alpha / (0.3 * unit)

    best = max(log_posterior(BayesianLogisticRegression(alpha).fit(X, y)) for alpha in np.logspace(-4, 4, 25))
    assert log_posterior(BayesianLogisticRegression().fit(X, y)) > best - 1.0


@pytest.mark.parametrize("n_classes", [3, 10])
def test_one_label_for_each_class_leaves_opinions(n_classes: int) -> None:
    centers = 3 * np.random.default_rng(0).normal(size=(n_classes, 5))
    X = centers + 0.1 * np.random.default_rng(1).normal(size=centers.shape)
    certainty = BayesianLogisticRegression().fit(centers, np.arange(n_classes)).predict_proba(X).max(axis=1)
    assert certainty.mean() > 2 / n_classes


def test_the_mean_is_moved_by_three_standard_deviations_at_most() -> None:
    X, y = classes_in_a_cloud(4, 8)
    posterior = BayesianLogisticRegression(1e-4, max_iter=1000).fit(X, y).heads_.posterior
    std = np.sqrt(np.diagonal(posterior.covariance[0])).reshape(posterior.mode[0].shape)
    assert (np.abs(posterior.mean[0] - posterior.mode[0]) / std).max() == pytest.approx(3.0)


def posterior_predictive(X: Array, y: NDArray[np.intp], X_new: Array, alpha: float, n_samples: int) -> Array:
    """Importance sampling from the exact posterior, with a widened Student-like proposal around the mode."""
    heads = BayesianLogisticRegression(alpha).fit(X, y).heads_
    mode, covariance = heads.posterior.mode[0], heads.posterior.covariance[0]
    rng = np.random.default_rng(0)
    factor = np.linalg.cholesky(covariance)
    degrees = 5.0
    normal = rng.standard_normal((n_samples, mode.size))
    stretch = np.sqrt(degrees / rng.chisquare(degrees, n_samples))
    weights = mode.ravel() + (normal * stretch[:, None]) @ factor.T
    squares = (normal**2).sum(axis=1) * stretch**2
    log_proposal = -0.5 * (degrees + mode.size) * np.log1p(squares / degrees)
    W = heads.contrasts @ weights.reshape(-1, *mode.shape)
    centered = np.column_stack([X - X.mean(axis=0), np.ones(len(X))])
    logits = centered @ W.swapaxes(1, 2)
    of_labels = logits[:, np.arange(len(y)), y] - logsumexp(logits, axis=2)
    prior = 0.5 * alpha * (W[:, :, :-1] ** 2).sum(axis=(1, 2)) + 0.5 * INTERCEPT_PRECISION * (W[:, :, -1] ** 2).sum(axis=1)
    log_target = of_labels.sum(axis=1) - prior
    np.testing.assert_allclose(log_target[:20], [-negative_log_posterior(w, X, y, alpha) for w in W[:20]])
    log_ratio = log_target - log_proposal
    ratio = np.exp(log_ratio - log_ratio.max())
    assert ratio.sum() ** 2 / (ratio**2).sum() > 1000, "too few effective samples to be a reference"
    centered = np.column_stack([X_new - X.mean(axis=0), np.ones(len(X_new))])
    return np.einsum("s,snk->nk", ratio / ratio.sum(), softmax(centered @ W.swapaxes(1, 2), axis=2))


@pytest.mark.parametrize(("n_classes", "n_rows"), [(2, 50), (2, 200), (3, 100)])
def test_probabilities_are_those_of_importance_sampling(n_classes: int, n_rows: int) -> None:
    X, y = classes_in_a_cloud(n_classes, n_rows)
    X_new = np.random.default_rng(1).normal(size=(200, 5))
    exact = posterior_predictive(X, y, X_new, 1.0, n_samples=20_000)
    for predictive in ("probit", "sampled"):
        head = BayesianLogisticRegression(1.0, predictive=predictive, n_samples=1024, random_state=0).fit(X, y)
        total_variation = 0.5 * np.abs(head.predict_proba(X_new) - exact).sum(axis=1)
        assert total_variation.mean() < 0.01
        assert total_variation.max() < 0.03


def test_samples_agree_with_the_probit_correction_and_tell_the_standard_deviation(iris: tuple[Array, NDArray[np.intp]]) -> None:
    X, y = iris[0][50:], iris[1][50:]
    head = BayesianLogisticRegression(1.0, predictive="sampled", n_samples=4096, random_state=0).fit(X, y)
    heads = head.heads_
    rng = np.random.default_rng(0)
    v = rng.multivariate_normal(heads.posterior.mean[0].ravel(), heads.posterior.covariance[0], size=20_000).reshape(-1, 1, 5)
    logits = np.column_stack([X - X.mean(axis=0), np.ones(len(X))]) @ (heads.contrasts @ v).swapaxes(1, 2)
    proba = softmax(logits, axis=2)
    np.testing.assert_allclose(head.predict_proba(X), proba.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(head.predict_proba_std(X), proba.std(axis=0), atol=0.01)
    np.testing.assert_allclose(BayesianLogisticRegression(1.0).fit(X, y).predict_proba(X), proba.mean(axis=0), atol=0.02)


def test_all_draws_at_once_are_the_draws_one_by_one() -> None:
    X, y = classes_in_a_cloud(4, 120)
    Z = X + np.random.default_rng(0).normal(size=(12, 120, 5))
    weight = np.random.default_rng(1).integers(1, 4, size=120).astype(float)
    heads = BayesianLogisticRegression().fit_draws(Z, y, weight)
    for values, proba in zip(Z, heads.predict_proba(Z), strict=True):
        np.testing.assert_allclose(proba, BayesianLogisticRegression().fit(values, y, weight).predict_proba(values), atol=1e-4)


def test_the_number_of_threads_does_not_change_a_bit() -> None:
    X, y = classes_in_a_cloud(8, 200)
    Z = X + np.random.default_rng(0).normal(size=(60, 200, 5))
    with threadpool_limits(1):
        one = BayesianLogisticRegression().fit_draws(Z, y).predict_proba(Z)
    with threadpool_limits(2):
        two = BayesianLogisticRegression().fit_draws(Z, y).predict_proba(Z)
    np.testing.assert_array_equal(one, two)


def test_rows_in_blocks_are_predicted_as_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = classes_in_a_cloud(4, 200)
    head = BayesianLogisticRegression(random_state=0).fit(X, y)
    proba, std = head.predict_proba(X), head.predict_proba_std(X)
    monkeypatch.setattr("gpssl.downstream._logistic.BLOCK_NUMBERS", 1024)
    np.testing.assert_allclose(head.predict_proba(X), proba, rtol=1e-12)
    np.testing.assert_allclose(head.predict_proba_std(X), std, rtol=1e-12)


def test_fifty_classes_and_one_row_for_each() -> None:
    centers = np.random.default_rng(0).normal(size=(50, 5))
    centers /= np.linalg.norm(centers, axis=1, keepdims=True)  # on a sphere a plane can cut off each of them
    head = BayesianLogisticRegression().fit(centers, np.arange(50))
    proba = head.predict_proba(centers)
    assert proba.shape == (50, 50)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert (proba.argmax(axis=1) == np.arange(50)).mean() > 0.9


def test_perfectly_separated_classes_stay_finite() -> None:
    X = np.r_[np.full((10, 1), -1e3), np.full((10, 1), 1e3)]
    head = BayesianLogisticRegression().fit(X, np.arange(20) // 10)
    assert np.isfinite(head.coef_).all()
    assert head.predict_proba(X)[0, 0] > 0.9


def test_shifting_the_columns_changes_nothing(iris: tuple[Array, NDArray[np.intp]]) -> None:
    X, y = iris
    head, shifted = BayesianLogisticRegression().fit(X, y), BayesianLogisticRegression().fit(X + 100.0, y)
    np.testing.assert_allclose(shifted.predict_proba(X + 100.0), head.predict_proba(X), atol=1e-8)


def test_too_few_steps_are_told() -> None:
    X, y = classes_in_a_cloud(4, 100)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        BayesianLogisticRegression(1e-3, max_iter=1).fit(X, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"prior_precision": 0.0}, "prior_precision must be a number above 0"),
        ({"prior_precision": "auto"}, "prior_precision"),
        ({"predictive": "exact"}, "predictive must be"),
        ({"n_samples": 0}, "n_samples"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_parameters_without_a_meaning_get_a_sentence(params: dict[str, float], message: str) -> None:
    X, y = classes_in_a_cloud(2, 20)
    with pytest.raises(ValueError, match=message):
        BayesianLogisticRegression(**params).fit(X, y)  # type: ignore[arg-type]


# Linear regression


def test_linear_regression_is_bayesian_ridge_s() -> None:
    X, y = load_diabetes(return_X_y=True)
    other = BayesianRidge(max_iter=3000, tol=1e-12).fit(X, y)
    head = BayesianLinearRegression().fit(X, y)
    # BayesianRidge counts n where the flat intercept leaves n − 1, so the two differ by about 1/n.
    np.testing.assert_allclose(head.coef_, other.coef_, atol=5e-3 * np.abs(other.coef_).max())
    likeliest = (len(y) - 3) / (len(y) - 1)  # of the noise, in units of its posterior mean
    assert likeliest * head.noise_variance_ == pytest.approx(1 / other.alpha_, rel=5e-3)
    mean, std = other.predict(X, return_std=True)
    np.testing.assert_allclose(head.predict(X), mean, atol=0.1)
    np.testing.assert_allclose(np.sqrt(likeliest) * head.predict_normal(X)[1], std, rtol=5e-3)


def test_the_ratio_chosen_has_the_largest_evidence() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = X @ [1.0, -1.0, 0.0, 0.5] + rng.normal(size=30)
    head = BayesianLinearRegression().fit(X, y)
    centered, target = X - X.mean(axis=0), y - y.mean()
    # The 29 contrasts between 30 targets, on which a flat intercept leaves no trace.
    contrasts = np.linalg.svd(np.eye(30) - 1 / 30)[0][:, :29]

    def log_evidence(alpha: float, noise: float) -> float:
        covariance = contrasts.T @ (noise * np.eye(30) + centered @ centered.T / alpha) @ contrasts
        return float(multivariate_normal.logpdf(contrasts.T @ target, cov=covariance))

    likeliest = 27 / 29  # of the noise, in units of its posterior mean
    alpha, noise = head.prior_precision_ / likeliest, head.noise_variance_ * likeliest
    for factor in (0.9, 1.1):
        assert log_evidence(factor * alpha, noise) < log_evidence(alpha, noise)
        assert log_evidence(alpha, factor * noise) < log_evidence(alpha, noise)


def test_predictions_are_those_of_the_gaussian_posterior() -> None:
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(25, 3)), rng.normal(size=(10, 3))
    y = X @ [1.0, -1.0, 0.0] + 3.0 + rng.normal(size=25)
    head = BayesianLinearRegression().fit(X, y)
    # With a nearly flat intercept: condition the joint Gaussian of weights and intercept on y.
    design, new = (np.column_stack([values, np.ones(len(values))]) for values in (X, X_new))
    # The prior is on the slopes of centered columns, which is the same as of the columns where the intercept is flat.
    precision = np.diag([head.prior_precision_] * 3 + [1e-12]) + design.T @ design / head.noise_variance_
    covariance = np.linalg.inv(precision)
    mean = covariance @ design.T @ y / head.noise_variance_
    np.testing.assert_allclose(head.predict(X_new), new @ mean, rtol=1e-6)
    std = np.sqrt(head.noise_variance_ + np.einsum("ni,ij,nj->n", new, covariance, new))
    np.testing.assert_allclose(head.predict_normal(X_new)[1], std, rtol=1e-6)


def test_all_linear_draws_at_once_are_the_draws_one_by_one() -> None:
    rng = np.random.default_rng(0)
    Z, y, weight = rng.normal(size=(7, 40, 3)), rng.normal(size=40), rng.integers(1, 3, size=40).astype(float)
    mean, std = BayesianLinearRegression().fit_draws(Z, y, weight).predict_normal(Z)
    for values, one_mean, one_std in zip(Z, mean, std, strict=True):
        expected = BayesianLinearRegression().fit(values, y, weight).predict_normal(values)
        np.testing.assert_allclose((one_mean, one_std), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("unit", [1.0, 1e6])
@pytest.mark.parametrize("y", [[0.0, 1.0], [0.0, 1.0, 2.0], [3.0, 3.0, 3.0, 3.0]])
def test_few_rows_give_sane_predictions_in_any_unit(y: list[float], unit: float) -> None:
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(len(y), 5)), rng.normal(size=(20, 5))
    mean, std = BayesianLinearRegression().fit(X, unit * np.array(y)).predict_normal(X_new)
    assert (np.abs(mean) < 10 * unit).all()
    assert (std > 1e-6 * unit).all()
    assert (std < 10 * unit).all()


def test_rows_that_are_all_alike_give_their_mean() -> None:
    mean, std = BayesianLinearRegression().fit(np.ones((4, 2)), [1.0, 2.0, 3.0, 4.0]).predict_normal(np.zeros((3, 2)))
    np.testing.assert_allclose(mean, 2.5)
    assert (std < 10).all()


def test_a_single_target_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two rows"):
        BayesianLinearRegression().fit([[1.0]], [2.0])


def test_accuracy_is_that_of_logistic_regression() -> None:
    X, y = make_classification(1200, 5, n_informative=5, n_redundant=0, n_classes=4, random_state=0)
    ours = BayesianLogisticRegression().fit(X[:200], y[:200]).score(X[200:], y[200:])
    assert ours > LogisticRegression().fit(X[:200], y[:200]).score(X[200:], y[200:]) - 0.02


def test_features_that_do_not_vary_give_the_frequencies_of_the_classes() -> None:
    y = np.repeat([0, 1, 2], [10, 20, 60])
    for Z in (np.zeros((90, 4)), np.full((90, 2), 3.0)):
        proba = BayesianLogisticRegression().fit(Z, y).predict_proba(Z)
        np.testing.assert_allclose(proba, np.tile(np.bincount(y) / 90, (90, 1)), atol=0.02)


def test_weight_two_is_the_row_twice_in_the_evidence_of_more_columns_than_rows() -> None:
    rng = np.random.default_rng(0)
    Z, y, weight = rng.normal(size=(1, 10, 40)), rng.normal(size=10), np.arange(10) % 3
    one = BayesianLinearRegression().fit_draws(Z, y, weight.astype(float))
    other = BayesianLinearRegression().fit_draws(np.repeat(Z, weight, axis=1), np.repeat(y, weight))
    assert one.log_evidence is not None
    assert other.log_evidence is not None
    np.testing.assert_allclose(one.log_evidence, other.log_evidence, atol=1e-8)
    np.testing.assert_allclose(one.noise_variance, other.noise_variance, rtol=1e-5)
