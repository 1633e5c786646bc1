"""Baselines against scikit-learn's own, against the covariance they promise, and against each other in a limit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import decomposition
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor
from gpssl.baselines import GPPrior, KernelPCA, SupervisedGPClassifier, SupervisedGPRegressor
from gpssl.evaluation._calibration import log_density, log_loss
from gpssl.kernels import NeighborRBF, StandardizedKernel
from representations import run_checks
from strings import SharedLetters

Array = NDArray[np.float64]

WITHOUT_LABELS = [KernelPCA(random_state=0), GPPrior(random_state=0)]


@pytest.fixture(scope="module")
def words() -> tuple[NDArray[Any], NDArray[np.intp]]:
    rng = np.random.default_rng(0)
    texts = np.array(["".join(rng.choice(list("ab" if i % 2 else "cd"), size=6)) for i in range(60)], dtype=object)
    return texts, np.arange(60) % 2


@pytest.fixture(scope="module")
def cancer() -> tuple[Array, NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Rows, labels, 60 labels among marks, and where the marks are."""
    X, y = load_breast_cancer(return_X_y=True)
    labeled = np.random.default_rng(0).permutation(len(y))[:60]
    few = np.full(len(y), -1)
    few[labeled] = y[labeled]
    return X, y, few, np.flatnonzero(few < 0)


@pytest.fixture(scope="module")
def sugar() -> tuple[Array, Array, Array]:
    X, y = load_diabetes(return_X_y=True)
    return X, y, np.where(np.arange(len(y)) < 100, y, np.nan)


# scikit-learn's protocol


@pytest.mark.parametrize("estimator", [GPPrior(random_state=0), SupervisedGPRegressor(random_state=0)], ids=lambda e: type(e).__name__)
def test_scikit_learn_s_checks(estimator: BaseEstimator) -> None:
    run_checks(estimator, {})


def test_scikit_learn_s_checks_of_kernel_pca() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(KernelPCA(random_state=0))
    assert {result["status"] for result in results} <= {"passed", "skipped"}
    assert sum(result["status"] == "passed" for result in results) > 40  # without labels and weights there are fewer checks


def test_scikit_learn_s_checks_of_the_classifier() -> None:
    run_checks(SupervisedGPClassifier(random_state=0), {"check_classifiers_classes": "−1 marks rows without a label"})


@pytest.mark.parametrize("estimator", WITHOUT_LABELS, ids=lambda e: type(e).__name__)
def test_names_of_the_dimensions(estimator: Any, breast_cancer: Array) -> None:
    fitted = clone(estimator).set_params(n_components=2).fit(breast_cancer)
    name = type(estimator).__name__.lower()
    assert fitted.get_feature_names_out().tolist() == [f"{name}_1", f"{name}_2"]


@pytest.mark.parametrize("estimator", [*WITHOUT_LABELS, SupervisedGPClassifier(), SupervisedGPRegressor()], ids=lambda e: type(e).__name__)
def test_kernel_is_that_of_gpssl(estimator: Any, breast_cancer: Array) -> None:
    expected = GPSSL(2, kernel=2.0 * NeighborRBF(20), random_state=0).fit(breast_cancer).kernel_
    rows = np.arange(len(breast_cancer))
    labels = np.where(rows < 60, rows % 2, np.nan)
    fitted = clone(estimator).set_params(kernel=2.0 * NeighborRBF(20), random_state=0).fit(breast_cancer, labels)
    np.testing.assert_array_equal(fitted.kernel_(breast_cancer[:20]), expected(breast_cancer[:20]))


@pytest.mark.parametrize("estimator", [*WITHOUT_LABELS, SupervisedGPClassifier(), SupervisedGPRegressor()], ids=lambda e: type(e).__name__)
def test_what_is_no_kernel_gets_a_sentence(estimator: Any, breast_cancer: Array) -> None:
    with pytest.raises(TypeError, match=r"kernel must be a kernel object such as .*RBF\(\), got 'rbf'"):
        clone(estimator).set_params(kernel="rbf").fit(breast_cancer, np.arange(len(breast_cancer)) % 2)


# Kernel principal components


def test_kernel_pca_is_scikit_learn_s(breast_cancer: Array) -> None:
    X = StandardScaler().fit_transform(breast_cancer)
    train, new = X[:400], X[400:]
    ours = KernelPCA(5, kernel=NeighborRBF(10, per_column=False), random_state=0).fit(train)
    gamma = 1 / (2 * ours.kernel_.length_scale**2)
    theirs = decomposition.KernelPCA(5, kernel="rbf", gamma=gamma, eigen_solver="dense").fit(train)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-8)
    for rows in (train, new):
        Z, expected = ours.transform(rows), theirs.transform(rows)
        np.testing.assert_allclose(Z, expected * np.sign((Z * expected).sum(axis=0)), atol=1e-7)


def test_kernel_pca_has_the_same_signs_for_any_order_and_seed(breast_cancer: Array) -> None:
    Z = KernelPCA(5, random_state=0).fit(breast_cancer).transform(breast_cancer)
    order = np.random.default_rng(0).permutation(len(breast_cancer))
    np.testing.assert_allclose(KernelPCA(5, random_state=7).fit(breast_cancer[order]).transform(breast_cancer), Z, atol=1e-7)


def test_kernel_pca_under_a_head(cancer: Any) -> None:
    X, y, few, rest = cancer
    clf = MarginalizedClassifier(KernelPCA(5), n_draws=None, random_state=0).fit(X, few)
    assert (clf.predict(X[rest]) == y[rest]).mean() > 0.9


def test_kernel_pca_of_strings(words: Any) -> None:
    texts, kinds = words
    Z = KernelPCA(2, kernel=SharedLetters()).fit_transform(texts)
    assert abs(np.corrcoef(Z[:, 0], kinds)[0, 1]) > 0.95


def test_too_few_rows_for_the_components() -> None:
    with pytest.raises(ValueError, match=r"n_samples=4 rows have fewer than 5 components\. Give more rows, or lower n_components"):
        KernelPCA(5).fit(np.arange(8.0).reshape(4, 2))


# The prior


@pytest.mark.parametrize("max_inducing", [3, 512])
def test_prior_draws_have_the_kernel_s_covariance(max_inducing: int, circles: Array) -> None:
    prior = GPPrior(2, kernel=NeighborRBF(20), max_inducing=max_inducing, random_state=0).fit(circles)
    rows, n_draws = np.concatenate([circles[:6], [[3.0, -3.0]]]), 20_000
    draws = prior.sample(rows, n_draws)
    assert draws.shape == (n_draws, 7, 2)
    K = prior.kernel_(rows)
    # Var of the mean of f(x) f(y) over S draws is (k(x, x) k(y, y) + k(x, y)²) / S for a Gaussian process.
    error = np.sqrt((np.outer(K.diagonal(), K.diagonal()) + K**2) / n_draws)
    for j in range(2):
        assert (abs(draws[:, :, j].T @ draws[:, :, j] / n_draws - K) < 4.5 * error).all()
    assert (abs(draws[:, :, 0].T @ draws[:, :, 1] / n_draws) < 4.5 * error).all()
    assert (abs(draws.mean(axis=0)) < 4.5 / np.sqrt(n_draws)).all()


def test_prior_mean_and_standard_deviation(circles: Array) -> None:
    prior = GPPrior(3, kernel=2.0 * NeighborRBF(20) + sk.WhiteKernel(0.5), random_state=0).fit(circles)
    np.testing.assert_array_equal(prior.transform(circles[:9]), np.zeros((9, 3)))
    np.testing.assert_allclose(prior.std(circles[:9]), np.full((9, 3), np.sqrt(2.5)))


def test_prior_is_gpssl_at_a_high_temperature(circles: Array) -> None:
    ssl = GPSSL(2, kernel=NeighborRBF(20), random_state=0).fit(circles).refit(temperature=1e6)
    prior = GPPrior(2, kernel=ssl.kernel_, random_state=1).fit(circles)
    rows, n_draws = circles[:5], 20_000
    one, other = ssl.sample(rows, n_draws), prior.sample(rows, n_draws)
    np.testing.assert_allclose(ssl.std(rows), prior.std(rows), rtol=1e-3)
    for j in range(2):
        difference = one[:, :, j].T @ one[:, :, j] / n_draws - other[:, :, j].T @ other[:, :, j] / n_draws
        assert (abs(difference) < 4.5 * np.sqrt(2 * 2 / n_draws)).all()
    learned = GPSSL(2, kernel=ssl.kernel_, random_state=0).fit(circles).std(rows)
    assert (learned < 0.9 * prior.std(rows)).all()  # this check can fail


def test_prior_functions_are_functions(circles: Array) -> None:
    prior = GPPrior(2, random_state=0).fit(circles)
    functions = prior.draw_functions(3)
    np.testing.assert_allclose(functions(circles[:10])[:, 5:], functions(circles[5:20])[:, :5], atol=1e-9)
    functions.settle()
    one, many = functions.one_row_at_a_time(circles[30:31]), functions.one_row_at_a_time(circles[20:40])
    np.testing.assert_allclose(one[:, 0], many[:, 10], atol=1e-9)
    np.testing.assert_array_equal(prior.sample(circles[:4], 2), prior.sample(circles[:4], 2))
    assert not np.allclose(prior.sample(circles[:4], 2, random_state=1), prior.sample(circles[:4], 2))


def test_prior_under_heads(cancer: Any, sugar: Any) -> None:
    X, y, few, rest = cancer
    clf = MarginalizedClassifier(GPPrior(5), n_draws=50, random_state=0).fit(X, few, sample_weight=np.ones(len(y)))
    assert (clf.predict(X[rest]) == y[rest]).mean() > 0.85
    X, y, few = sugar
    reg = MarginalizedRegressor(GPPrior(5), n_draws=50, random_state=0).fit(X, few)
    assert reg.score(X[100:], y[100:]) > 0.2


def test_prior_for_strings(words: Any) -> None:
    texts, _ = words
    assert GPPrior(2, kernel=SharedLetters(), max_inducing=3, random_state=0).fit(texts).sample(texts, 3).shape == (3, 60, 2)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_components": 0}, "n_components must be a whole number of at least 1, got 0"),
    ],
)
def test_parameters_of_the_prior_get_their_sentence(parameters: dict[str, Any], sentence: str, circles: Array) -> None:
    with pytest.raises(ValueError, match=sentence):
        GPPrior(**parameters).fit(circles)


# Supervised Gaussian processes


@pytest.mark.parametrize("variance", [0.25, 1.0])
def test_classifier_with_a_fixed_variance_is_scikit_learn_s_but_for_its_mean(variance: float, cancer: Any) -> None:
    X, _, few, rest = cancer
    X, known = StandardScaler().fit_transform(X), few >= 0
    ours = SupervisedGPClassifier(sk.RBF(5.0), scales=[variance], intercept_variance=0.1).fit(X, few)
    # The difference of two logits has twice the variance of each.
    kernel = sk.ConstantKernel(2 * variance, "fixed") * sk.RBF(5.0, "fixed") + sk.ConstantKernel(0.2, "fixed")
    theirs = GaussianProcessClassifier(kernel, optimizer=None).fit(X[known], few[known])
    assert ours.log_evidence_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-6)
    # They take the mode of the posterior for its mean, which is off by Δ = −½ Cov(f(x), f_n) p_n (1 − p_n) (1 − 2 p_n) Var f_n.
    laplace, K, c = theirs.base_estimator_, kernel(X[known]), kernel(X[rest], X[known])
    B = laplace.L_ @ laplace.L_.T
    posterior = [A - (A * laplace.W_sr_) @ np.linalg.solve(B, laplace.W_sr_[:, None] * K) for A in (K, c)]
    p = laplace.pi_
    shift = -0.5 * posterior[1] @ (p * (1 - p) * (1 - 2 * p) * np.diag(posterior[0]))
    # The logistic function is nowhere steeper than ¼; MacKay's integral over it is right to 0.005 at such variances, theirs to 0.001.
    difference = np.abs(ours.predict_proba(X[rest]) - theirs.predict_proba(X[rest])).max(axis=1)
    assert (difference <= np.abs(shift) / 4 + 0.006).all()
    assert np.median(difference) < 0.02


def test_probabilities_of_many_classes_are_better_than_one_against_the_rest() -> None:
    X, y = load_digits(return_X_y=True)
    labeled = np.random.default_rng(0).permutation(len(y))[:100]
    few = np.full(len(y), -1)
    few[labeled] = y[labeled]
    rest = np.flatnonzero(few < 0)
    ours = SupervisedGPClassifier(random_state=0).fit(X, few)
    kernel = sk.ConstantKernel(1.0, (1e-6, 1e6)) * sk.RBF(NeighborRBF(10).resolve(X).length_scale, "fixed")
    theirs = GaussianProcessClassifier(kernel).fit(X[labeled], y[labeled])
    losses = [log_loss(y[rest], model.predict_proba(X[rest]), labels=ours.classes_) for model in (ours, theirs)]
    assert losses[0] < 0.8 * losses[1]


def test_evidence_chooses_the_lengthscale(cancer: Any) -> None:
    X, _, few, _ = cancer
    chosen = SupervisedGPClassifier(random_state=0).fit(X, few)
    single = [
        SupervisedGPClassifier(StandardizedKernel(stretch=stretch), random_state=0).fit(X, few) for stretch in (0.25, 0.5, 1.0, 2.0, 4.0)
    ]
    assert chosen.log_evidence_ == pytest.approx(max(one.log_evidence_ for one in single))
    assert chosen.kernel_.stretch == max(single, key=lambda one: one.log_evidence_).kernel_.stretch
    assert chosen.scale_weights_.sum() == pytest.approx(1.0)


def test_classifier_is_unsure_far_from_all_labels(cancer: Any) -> None:
    X, _, few, _ = cancer
    clf = SupervisedGPClassifier(random_state=0).fit(X, few)
    far = clf.predict_proba(1e3 * X[:5])
    assert (np.abs(far - 0.5) < 0.2).all()


@pytest.mark.parametrize("parameters", [{"scales": []}, {"scales": [0.0]}, {"intercept_variance": 0.0}])
def test_sizes_of_the_prior_are_positive(parameters: dict[str, Any], cancer: Any) -> None:
    with pytest.raises(ValueError, match=r"scales|intercept_variance"):
        SupervisedGPClassifier(**parameters).fit(cancer[0], cancer[2])


def test_regressor_is_scikit_learn_s_by_hand(sugar: Any) -> None:
    X, y, few = sugar
    ours = SupervisedGPRegressor(random_state=0).fit(X, few)
    lengthscale = NeighborRBF(10).resolve(X).length_scale
    kernel = sk.ConstantKernel(1.0, (1e-6, 1e6)) * sk.RBF(lengthscale, "fixed") + sk.WhiteKernel(0.5, (1e-6, 1e1))
    theirs = GaussianProcessRegressor(kernel, normalize_y=True).fit(X[:100], y[:100])
    mean, std = theirs.predict(X, return_std=True)
    np.testing.assert_allclose(ours.predict(X), mean, rtol=1e-3)
    np.testing.assert_allclose(ours.predict_std(X), std, rtol=1e-3)
    noise = ours.model_.kernel_.k2.noise_level * np.nanvar(few)
    assert (ours.predict_std(X) ** 2 > noise).all()


def test_regressor_s_predictions_are_a_mixture_of_one(sugar: Any) -> None:
    X, y, few = sugar
    reg = SupervisedGPRegressor(random_state=0).fit(X, few)
    mean, std = reg.predict_draws(X[100:])
    assert mean.shape == std.shape == (1, 342)
    np.testing.assert_allclose(mean[0], reg.predict(X[100:]))
    assert -6.0 < log_density(y[100:], mean, std).mean() < -5.0  # a normal distribution with the targets' own moments: −5.76
    assert reg.score(X, few) == reg.score(X[:100], y[:100])


def test_heads_on_many_prior_draws_approach_the_classifier(cancer: Any) -> None:
    X, _, few, rest = cancer
    limit = SupervisedGPClassifier(NeighborRBF(10), random_state=0).fit(X, few).predict_proba(X[rest])[:, 1]

    def agreement(n_components: int, n_draws: int, kernel: sk.Kernel | None = None) -> float:
        prior = GPPrior(n_components, kernel=kernel)
        clf = MarginalizedClassifier(prior, n_draws=n_draws, random_state=0).fit(X, few)
        return float(np.corrcoef(clf.predict_proba(X[rest])[:, 1], limit)[0, 1])

    many, one = agreement(20, 100), agreement(5, 1)
    assert many > 0.98
    assert one < many
    # Another kernel approaches another classifier.
    assert agreement(20, 100, NeighborRBF(500, reduce="median")) < many


def test_unlabeled_rows_set_the_lengthscale(sugar: Any) -> None:
    X, _, few = sugar
    alone = SupervisedGPRegressor(random_state=0).fit(X[:100], few[:100])
    together = SupervisedGPRegressor(random_state=0).fit(X, few)
    assert together.n_labeled_ == alone.n_labeled_ == 100
    assert not np.allclose(alone.kernel_.length_scale, together.kernel_.length_scale)
    classes = np.where(np.isnan(few), -1, few > np.nanmedian(few)).astype(int)
    found = [SupervisedGPClassifier(StandardizedKernel(), random_state=0).fit(X[:n], classes[:n]) for n in (100, len(X))]
    assert found[0].n_labeled_ == found[1].n_labeled_ == 100
    assert found[0].kernel_.length_scale != found[1].kernel_.length_scale


def test_classes_are_strings_and_marks_are_none(cancer: Any) -> None:
    X, y, few, rest = cancer
    names = np.array([None if label < 0 else ("malignant", "benign")[label] for label in few], dtype=object)
    clf = SupervisedGPClassifier(random_state=0).fit(X, names)
    assert clf.classes_.tolist() == ["benign", "malignant"]
    reference = SupervisedGPClassifier(random_state=0).fit(X, few)
    np.testing.assert_allclose(clf.predict_proba(X[rest]), reference.predict_proba(X[rest])[:, ::-1], atol=1e-6)
    assert reference.score(X, np.where(few < 0, -1, y)) == reference.score(X[few >= 0], y[few >= 0])


@pytest.mark.parametrize("labels", [np.arange(40) % 2, (np.arange(40) > 19).astype(int)], ids=["no relation", "separable"])
def test_variances_at_their_bounds_bring_no_warning(labels: NDArray[np.intp]) -> None:
    X = np.arange(40.0)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(SupervisedGPClassifier().fit(X, labels).predict_proba(X)).all()
        for targets in (labels.astype(float), X[:, 0] / 7, np.full(40, 3.0)):
            assert np.isfinite(SupervisedGPRegressor(random_state=0).fit(X, targets).predict_std(X)).all()


def test_supervised_with_a_kernel_for_strings_that_has_no_gradient(words: Any) -> None:
    texts, kinds = words
    few = np.where(np.arange(60) < 10, kinds, -1)
    assert SupervisedGPClassifier(SharedLetters()).fit(texts, few).score(texts, kinds) == 1.0
    known = np.where(np.arange(60) < 20, kinds.astype(float), np.nan)
    assert SupervisedGPRegressor(SharedLetters(), random_state=0).fit(texts, known).score(texts, kinds.astype(float)) > 0.9


def test_a_kernel_s_own_parameters_stay(cancer: Any) -> None:
    X, _, few, _ = cancer
    kernel = 3.0 * sk.Matern(np.full(30, 50.0), nu=1.5)
    clf = SupervisedGPClassifier(kernel).fit(X, few)
    assert clf.kernel_ == kernel


@pytest.mark.parametrize("estimator", [SupervisedGPClassifier(), SupervisedGPRegressor()], ids=lambda e: type(e).__name__)
def test_no_labels_at_all_get_a_sentence(estimator: Any, breast_cancer: Array) -> None:
    with pytest.raises(ValueError, match="No row has a"):
        clone(estimator).fit(breast_cancer, np.full(len(breast_cancer), np.nan))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clone(estimator).fit(breast_cancer, np.arange(10) % 3)
