"""The softmax Gaussian process against Bayesian logistic regression in the primal, and against integrals by brute force."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, softmax
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from gpssl.downstream import BayesianLogisticRegression, SoftmaxGP
from gpssl.downstream._laplace import INTERCEPT_PRECISION
from gpssl.downstream._softmax_gp import Curvature, _Newton, fit_softmax_gps, prior_factor, probit
from representations import run_checks

Array = NDArray[np.float64]
Labels = NDArray[np.intp]


def blobs(n_classes: int, n_rows: int = 40, n_columns: int = 3, seed: int = 0) -> tuple[Array, Labels]:
    """Overlapping classes: the posterior is far from none of its approximations."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    return rng.normal(size=(n_rows, n_columns)) + rng.normal(size=(n_classes, n_columns))[y], y


def test_check_estimator_without_expected_failures() -> None:
    run_checks(SoftmaxGP(), {})


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_with_the_same_prior_it_is_bayesian_logistic_regression(n_classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights ~ N(0, I/α) and intercepts ~ N(0, 1/a) are logits ~ GP(0, ZZᵀ/α + 1/a), Z being centered."""
    monkeypatch.setattr("gpssl.downstream._logistic.TOLERANCE", 1e-14)  # which is 1e-3, enough for predictions
    X, y = blobs(n_classes)
    rows, precision = blobs(n_classes, seed=1)[0], 0.7
    primal = BayesianLogisticRegression(prior_precision=precision).fit(X, y)
    Z, new = X - X.mean(axis=0), rows - X.mean(axis=0)
    covariance = Z @ Z.T / precision + 1 / INTERCEPT_PRECISION
    dual = fit_softmax_gps(covariance[None], np.eye(n_classes)[:, y], np.ones(len(y)))
    assert dual.converged.all()
    assert dual.log_evidence[0] == pytest.approx(primal.heads_.log_evidence[0], abs=1e-6)
    factor = prior_factor(n_classes)
    curvature = Curvature.of(factor * covariance[None], dual.curvature_root)
    c = factor * (new @ Z.T / precision + 1 / INTERCEPT_PRECISION)
    own = factor * ((new**2).sum(axis=1) / precision + 1 / INTERCEPT_PRECISION)
    proba = probit(c @ dual.dual[0].T, curvature.logit_covariance(0, c, own))
    np.testing.assert_allclose(proba, primal.predict_proba(rows), atol=1e-6)


def test_two_classes_with_one_latent_function_are_two_classes_with_two() -> None:
    """f₁ − f₀ ~ GP(0, 2C) where f₀, f₁ ~ GP(0, C): the general case with K = 2 gives the same evidence and probabilities."""
    X, y = blobs(2)
    Z, new = X - X.mean(axis=0), blobs(2, seed=1)[0]
    C, one_hot = 3 * Z @ Z.T + 1.0, np.eye(2)[:, y]
    one = _Newton(C[None], one_hot, np.ones(len(y))).run()
    general = _Newton(C[None], one_hot, np.ones(len(y)))
    general.C, general.is_binary, general.labels = C[None], False, one_hot
    two = general.run()
    assert two.log_evidence[0] == pytest.approx(one.log_evidence[0], abs=1e-6)
    c, own = 3 * new @ Z.T + 1.0, 3 * (new**2).sum(axis=1) + 1.0
    probas = [
        probit(
            factor * c @ found.dual[0].T, Curvature.of(factor * C[None], found.curvature_root).logit_covariance(0, factor * c, factor * own)
        )
        for factor, found in ((2.0, one), (1.0, two))
    ]
    np.testing.assert_allclose(probas[0], probas[1], atol=1e-5)


# Against integrals over slope and intercept


def exact_binary(X: Array, y: Labels, new: Array, slope_variance: float, intercept_variance: float) -> tuple[Array, float]:
    """Return p(y = 1 | x) and log p(y), with logit differences of twice the variances, on a grid of 400 by 400 weights."""
    slopes, intercepts = (np.linspace(-9, 9, 400) * np.sqrt(2 * variance) for variance in (slope_variance, intercept_variance))
    log_prior = [norm.logpdf(grid, scale=np.sqrt(2 * v)) + np.log(grid[1] - grid[0]) for grid, v in
                 ((slopes, slope_variance), (intercepts, intercept_variance))]  # fmt: skip
    total = log_prior[0][:, None] + log_prior[1]
    for x, label in zip(X[:, 0], y, strict=True):
        total = total - np.logaddexp(0, (1 - 2 * label) * (slopes[:, None] * x + intercepts))
    evidence = float(logsumexp(total))
    posterior = np.exp(total - evidence)
    return np.array([(posterior * expit(slopes[:, None] * x + intercepts)).sum() for x in new[:, 0]]), evidence


@pytest.mark.parametrize(("scale", "tolerance", "evidence_tolerance"), [(1.0, 0.025, 0.1), (10.0, 0.05, 0.25)])
def test_two_labels_against_the_exact_integral(scale: float, tolerance: float, evidence_tolerance: float) -> None:
    """With two labels the posterior is at its least normal; with a wide prior even less so. The tolerances are what that costs."""
    X, y, new = np.array([[-1.0], [1.0]]), np.array([0, 1]), np.linspace(-2, 2, 9)[:, None]
    model = SoftmaxGP(scales=(scale,), intercept_variance=1.0).fit(X, y)
    proba, evidence = exact_binary(X, y, new, scale, 1.0)
    np.testing.assert_allclose(model.predict_proba(new)[:, 1], proba, atol=tolerance)
    assert model.log_evidence_ == pytest.approx(evidence, abs=evidence_tolerance)


def test_more_labels_are_nearer_to_the_exact_integral() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1))
    X = (X - X.mean()) / X.std()
    y, new = (rng.random(40) < expit(2 * X[:, 0])).astype(np.intp), np.linspace(-2, 2, 9)[:, None]
    model = SoftmaxGP(scales=(3.0,), intercept_variance=1.0).fit(X, y)
    proba, evidence = exact_binary(X, y, new, 3.0, 1.0)
    np.testing.assert_allclose(model.predict_proba(new)[:, 1], proba, atol=0.005)
    assert model.log_evidence_ == pytest.approx(evidence, abs=0.04)


def test_evidence_of_three_classes_against_draws_from_the_prior() -> None:
    X, y = blobs(3, n_rows=6, n_columns=2)
    model = SoftmaxGP(scales=(1.0,), intercept_variance=1.0).fit(X, y)
    Z = X - X.mean(axis=0)
    Z /= np.sqrt((Z**2).sum(axis=1).mean())
    rng = np.random.default_rng(0)
    weights, intercepts = rng.normal(size=(400_000, 2, 3)), rng.normal(size=(400_000, 1, 3))
    proba = softmax(Z @ weights + intercepts, axis=2)[:, np.arange(6), y]
    assert model.log_evidence_ == pytest.approx(np.log(proba.prod(axis=1).mean()), abs=0.2)  # of six labels for six weights


def test_evidence_and_probabilities_average_over_the_sizes_of_the_prior() -> None:
    X, y = blobs(3)
    scales = (1.0, 10.0)
    model = SoftmaxGP(scales=scales).fit(X, y)
    alone = [SoftmaxGP(scales=(scale,)).fit(X, y) for scale in scales]
    # Beforehand, sizes are as likely as a log-normal density with median 30 and width 1 says.
    prior = np.exp(-0.5 * np.log(np.array(scales) / 30) ** 2)
    evidence = np.array([one.log_evidence_ for one in alone]) + np.log(prior / prior.sum())
    assert model.log_evidence_ == pytest.approx(logsumexp(evidence), abs=1e-10)
    np.testing.assert_allclose(model.scale_weights_, softmax(evidence), atol=1e-10)
    expected = softmax(evidence) @ [one.predict_proba(X).ravel() for one in alone]
    np.testing.assert_allclose(model.predict_proba(X).ravel(), expected, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_standard_deviations_against_independent_samples(n_classes: int) -> None:
    X, y = blobs(n_classes)
    model = SoftmaxGP(scales=(3.0, 30.0), n_samples=4096, random_state=0).fit(X, y)
    rng = np.random.default_rng(1)
    samples = []
    for weight, mean, covariance in model.heads_._logits(0, (X - model.heads_.center[0]) / model.heads_.unit[0]):
        normal = rng.normal(size=(round(40_000 * weight), *mean.shape))
        f = mean + np.einsum("nkl,snl->snk", np.linalg.cholesky(covariance + 1e-9 * np.eye(mean.shape[1])), normal)
        samples.append(softmax(np.concatenate([np.zeros_like(f), f], axis=2) if n_classes == 2 else f, axis=2))
    expected = np.concatenate(samples).std(axis=0)
    np.testing.assert_allclose(model.predict_proba_std(X), expected, atol=0.01)


# What must not matter


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weight_two_is_the_row_twice_and_weight_zero_is_no_row(n_classes: int) -> None:
    X, y = blobs(n_classes)
    weight = np.arange(len(y)) % 3
    one = SoftmaxGP().fit(X, y, sample_weight=weight)
    other = SoftmaxGP().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert one.log_evidence_ == pytest.approx(other.log_evidence_, abs=1e-6)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rotation_shift_size_and_order_do_not_matter(n_classes: int) -> None:
    X, y = blobs(n_classes)
    rng = np.random.default_rng(0)
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    model, order = SoftmaxGP().fit(X, y), rng.permutation(len(y))
    changes: list[Callable[[Array], Array]] = [
        lambda rows: rows @ rotation,
        lambda rows: rows + 5.0,
        lambda rows: 1e-3 * rows,
        lambda rows: np.c_[rows, np.zeros(len(rows))],
    ]
    for change in changes:
        other = SoftmaxGP().fit(change(X), y)
        assert other.log_evidence_ == pytest.approx(model.log_evidence_, abs=1e-6)
        np.testing.assert_allclose(other.predict_proba(change(X)), model.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(SoftmaxGP().fit(X[order], y[order]).predict_proba(X), model.predict_proba(X), atol=1e-6)


def test_names_of_classes_do_not_matter() -> None:
    X, y = blobs(3)
    names = np.array(["b", "c", "a"])[y]
    proba = SoftmaxGP().fit(X, names).predict_proba(X)
    np.testing.assert_allclose(proba[:, [1, 2, 0]], SoftmaxGP().fit(X, y).predict_proba(X), atol=1e-6)


def test_many_columns_few_rows_and_classes_with_one_label() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(7, 500)), np.array([0, 0, 0, 1, 1, 2, 3])
    X[:, 0] += 30 * y
    model = SoftmaxGP().fit(X, y)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    assert (proba.argmax(axis=1) == y).all()
    assert np.isfinite(model.predict_proba_std(X)).all()
    assert (proba.max(axis=1) < 0.999).all()  # one label is not enough to be sure


def test_far_away_nothing_is_certain_and_rows_do_not_depend_on_each_other() -> None:
    X, y = load_iris(return_X_y=True)
    model = SoftmaxGP().fit(X[::10], y[::10])
    together = model.predict_proba(X)
    np.testing.assert_allclose(np.vstack([model.predict_proba(row[None]) for row in X[:5]]), together[:5], atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X[::-1]), together[::-1], atol=1e-12)


def test_many_draws_at_once_are_one_after_the_other() -> None:
    X, y = blobs(3)
    Z = np.stack([X, X**2, np.sin(X)])
    together = SoftmaxGP().fit_draws(Z, y)
    alone = [SoftmaxGP().fit(features, y) for features in Z]
    np.testing.assert_allclose(together.log_evidence, [one.log_evidence_ for one in alone], atol=1e-8)
    expected = [one.predict_proba(features) for one, features in zip(alone, Z, strict=True)]
    np.testing.assert_allclose(together.predict_proba(Z), expected, atol=1e-8)


def test_features_that_are_all_alike_give_the_shares_of_the_classes() -> None:
    y = np.array([0] * 30 + [1] * 10)
    proba = SoftmaxGP(intercept_variance=100.0).fit(np.ones((40, 2)), y).predict_proba(np.ones((1, 2)))
    assert proba[0, 1] == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"scales": ()}, "scales must be a list of prior variances, at least one"),
        ({"scales": (1.0, -1.0)}, "Each of the scales must be"),
        ({"intercept_variance": 0.0}, "intercept_variance must be"),
        ({"n_samples": 1}, "n_samples must be"),
    ],
)
def test_bad_parameters_get_a_sentence(params: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        clone(SoftmaxGP()).set_params(**params).fit(*blobs(2))


def test_before_fit_it_says_so() -> None:
    with pytest.raises(NotFittedError):
        SoftmaxGP().predict_proba(np.eye(2))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0, 40.0, 1000.0])
def test_a_step_is_halved_until_the_posterior_does_not_fall(n_classes: int, factor: float) -> None:
    X, y = blobs(n_classes)
    problem = _Newton((4 * X @ X.T + 1.0)[None], np.eye(n_classes)[:, y], np.ones(len(y)))
    start = np.zeros((1, len(problem.labels), len(y)))
    step = factor * (problem._newton_point(problem.C, start) - start)
    before, size = problem._objective(problem.C, start)[0], 1.0
    while problem._objective(problem.C, start + size * step)[0] < before:
        size /= 2
    assert (size < 1) == (factor >= 40)
    np.testing.assert_array_equal(problem._move(problem.C, start, step), start + size * step)
