from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import entr
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_classifiers_classes

from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor
from gpssl.datasets import even_circles, quadrant_circles
from gpssl.downstream import BayesianLogisticRegression, PerceptronClassifier
from gpssl.downstream._heads import ClassifierClones
from gpssl.evaluation._selective import aurc
from gpssl.kernels import NeighborRBF
from representations import SMALL_POOLS, Certain, frozen_full, run_checks
from strings import SharedLetters

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def ssl(flowers: tuple[Array, NDArray[np.intp]]) -> GPSSL:
    return GPSSL(3, random_state=0).fit(flowers[0])


# scikit-learn's contract


# scikit-learn spares its own semi-supervised classifiers this one, by name: it has a class −1.
EXPECTED = {"check_classifiers_classes": "−1 marks rows without a label"}


@pytest.mark.parametrize("representation", [GPSSL(), *SMALL_POOLS], ids=["GPSSL", "tables", "vectors"])
def test_check_estimator_for_the_classifier(representation: Any) -> None:
    run_checks(MarginalizedClassifier(representation, n_draws=8), EXPECTED)


@pytest.mark.slow
def test_check_estimator_for_the_default_classifier() -> None:
    run_checks(MarginalizedClassifier(), EXPECTED)


def test_the_check_that_has_a_class_minus_one_passes_in_the_form_that_semi_supervised_classifiers_get() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_classifiers_classes("LabelPropagation", MarginalizedClassifier(n_draws=4))


def test_constructor_arguments_stay_as_they_are(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    representation, head = GPSSL(2), BayesianLogisticRegression()
    classifier = MarginalizedClassifier(representation, head, n_draws=3, random_state=0).fit(*flowers)
    assert classifier.representation is representation
    assert classifier.head is head
    assert not hasattr(representation, "moments_")
    assert representation.random_state is None


def test_one_seed_makes_all_reproducible(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    def fit(seed: int) -> Array:
        classifier = MarginalizedClassifier(GPSSL(2), PerceptronClassifier(max_epochs=5), n_draws=3, random_state=seed)
        return classifier.fit(*flowers).predict_proba(flowers[0])

    np.testing.assert_array_equal(fit(0), fit(0))
    assert not np.array_equal(fit(0), fit(1))


def test_a_failed_fit_leaves_the_fitted_model(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    classifier = MarginalizedClassifier(GPSSL(2), n_draws=3, random_state=0).fit(*flowers)
    before = classifier.predict_proba(flowers[0])
    with pytest.raises(ValueError, match="No row has a label"):
        classifier.fit(flowers[0], np.full(len(flowers[0]), -1))
    np.testing.assert_array_equal(classifier.predict_proba(flowers[0]), before)


def test_a_second_fit_leaves_nothing_of_the_first(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    classifier = MarginalizedClassifier(GPSSL(2), n_draws=3, random_state=0).fit(pd.DataFrame(X, columns=list("abcd")), few)
    classifier.set_params(n_draws=None).fit(X, few)
    assert not hasattr(classifier, "functions_")
    assert not hasattr(classifier, "feature_names_in_")


def test_pickled_models_predict_the_same(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    classifier = MarginalizedClassifier(GPSSL(2), n_draws=3, random_state=0).fit(*flowers)
    before = classifier.predict_proba(flowers[0] + 0.1)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(classifier)).predict_proba(flowers[0] + 0.1), before)


def test_data_frames_and_grid_search_and_pipelines(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, y = pd.DataFrame(flowers[0], columns=list("abcd")), pd.Series(flowers[1])
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), MarginalizedClassifier(GPSSL(2), n_draws=3, random_state=0))
    grid = {"marginalizedclassifier__representation__n_components": [1, 2], "marginalizedclassifier__n_draws": [None, 3]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.6
    assert list(search.best_estimator_[-1].feature_names_in_) == list("abcd")


# What is computed


def test_predictions_are_the_average_over_heads_trained_one_by_one(flowers: tuple[Array, NDArray[np.intp]], ssl: GPSSL) -> None:
    X, few = flowers
    classifier = frozen_full(ssl, LogisticRegression()).fit(X, few)
    functions = ssl.draw_functions(10, random_state=np.random.RandomState(0).randint(2**31 - 1))
    labeled = few >= 0
    expected = np.mean([LogisticRegression().fit(Z[labeled], few[labeled]).predict_proba(Z) for Z in functions(X)], axis=0)
    # Away from the labeled rows the functions of both are draws from the same distribution, equal where the inducing points know them.
    np.testing.assert_allclose(classifier.predict_proba(X), expected, atol=0.01)
    np.testing.assert_allclose(classifier.predict_proba_draws(X).mean(axis=0), classifier.predict_proba(X), atol=1e-12)


def test_our_heads_at_once_are_our_heads_one_by_one(flowers: tuple[Array, NDArray[np.intp]], ssl: GPSSL) -> None:
    class OneByOne(ClassifierMixin, BaseEstimator):
        """The same head, without its way of training all draws."""

        def fit(self, X: Array, y: NDArray[Any]) -> OneByOne:
            self.head_ = BayesianLogisticRegression().fit(X, y)
            self.classes_ = self.head_.classes_
            return self

        def predict_proba(self, X: Array) -> Array:
            return self.head_.predict_proba(X)

    X, few = flowers
    one_by_one = frozen_full(ssl, OneByOne()).fit(X, few)
    np.testing.assert_allclose(frozen_full(ssl).fit(X, few).predict_proba(X), one_by_one.predict_proba(X), atol=1e-4)


def test_unlabeled_rows_train_the_representation_only(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    whole = MarginalizedClassifier(GPSSL(3, random_state=0), n_draws=5, random_state=0).fit(X, few)
    ssl = GPSSL(3, random_state=0).fit(X)
    labeled = few >= 0
    parts = MarginalizedClassifier(FrozenEstimator(ssl), n_draws=5, random_state=0).fit(X[labeled], few[labeled])
    np.testing.assert_allclose(parts.representation_.transform(X), whole.representation_.transform(X), atol=1e-12)
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=1e-8)
    assert whole.n_labeled_ == parts.n_labeled_ == 30


def test_a_frozen_representation_is_used_as_it_is_and_another_is_cloned(flowers: tuple[Array, NDArray[np.intp]], ssl: GPSSL) -> None:
    X, _ = flowers
    assert frozen_full(ssl).fit(X[:50], np.arange(50) % 2).representation_.estimator is ssl
    refitted = MarginalizedClassifier(ssl, n_draws=3, random_state=0).fit(X[50:], np.arange(100) % 2)
    assert refitted.representation_ is not ssl
    assert refitted.representation_.moments_.weight == 100


@pytest.mark.parametrize("head", [None, LogisticRegression()])
def test_without_uncertainty_full_is_mean(flowers: tuple[Array, NDArray[np.intp]], head: Any) -> None:
    full, mean = (MarginalizedClassifier(Certain(), head, n_draws=n_draws, random_state=0).fit(*flowers) for n_draws in (1, None))
    np.testing.assert_allclose(full.predict_proba(flowers[0]), mean.predict_proba(flowers[0]), atol=1e-12)


def test_with_one_draw_of_a_collapsed_posterior_full_is_mean(circles: Array) -> None:
    y = (np.linalg.norm(circles, axis=1) > 0.75).astype(int)
    ssl = GPSSL(2, inference="mode", inducing="all", random_state=0).fit(circles)
    assert ssl.std(circles).max() < 2e-4
    full, mean = (frozen_full(ssl, n_draws=n_draws).fit(circles, y) for n_draws in (1, None))
    np.testing.assert_allclose(full.predict_proba(circles), mean.predict_proba(circles), atol=1e-4)
    regressors = [MarginalizedRegressor(FrozenEstimator(ssl), n_draws=n, random_state=0).fit(circles, circles[:, 0]) for n in (1, None)]
    np.testing.assert_allclose(regressors[0].predict(circles), regressors[1].predict(circles), atol=1e-3)
    np.testing.assert_allclose(regressors[0].predict_std(circles), regressors[1].predict_std(circles), rtol=1e-3)


def test_a_prediction_depends_on_its_row_alone(
    flowers: tuple[Array, NDArray[np.intp]], ssl: GPSSL, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, few = flowers
    rows = X + np.random.default_rng(0).normal(size=X.shape)
    classifier = frozen_full(ssl).fit(X, few)
    together = classifier.predict_proba(rows)
    np.testing.assert_allclose(np.vstack([classifier.predict_proba(rows[i : i + 1]) for i in (3, 7, 1)]), together[[3, 7, 1]], atol=1e-10)
    monkeypatch.setattr("gpssl.downstream._marginal.PREDICTION_ROWS", 7)
    np.testing.assert_allclose(classifier.predict_proba(rows), together, atol=1e-10)
    np.testing.assert_allclose(classifier.predict_proba_draws(rows).mean(axis=0), together, atol=1e-10)


def test_a_prediction_does_not_depend_on_what_the_functions_were_called_with(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few inducing points leave much open, which is the point
        ssl = GPSSL(2, max_inducing=5, random_state=0).fit(X)
    classifier, rows = frozen_full(ssl).fit(X, few), X + 0.5
    before = classifier.predict_proba(rows)
    classifier.functions_(rows)
    np.testing.assert_array_equal(classifier.predict_proba(rows), before)


def test_the_order_of_the_rows_does_not_matter(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    order = np.random.default_rng(0).permutation(len(X))
    one, other = (MarginalizedClassifier(GPSSL(3), n_draws=5, random_state=0).fit(X[o], few[o]) for o in (np.arange(len(X)), order))
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), atol=1e-6)


def test_uncertainty_is_split_as_its_definition_says(flowers: tuple[Array, NDArray[np.intp]], ssl: GPSSL) -> None:
    X, few = flowers
    classifier = frozen_full(ssl).fit(X, few)
    proba = classifier.predict_proba_draws(X)
    uncertainty = classifier.predict_uncertainty(X)
    np.testing.assert_allclose(uncertainty.total, entr(proba.mean(axis=0)).sum(axis=1))
    np.testing.assert_allclose(uncertainty.head, entr(proba).sum(axis=2).mean(axis=0))
    np.testing.assert_allclose(uncertainty.total, uncertainty.head + uncertainty.representation, atol=1e-12)
    assert (uncertainty.representation >= 0).all()


def test_the_standard_deviation_is_over_draws_and_the_weights_of_the_heads(flowers: tuple[Array, NDArray[np.intp]], ssl: GPSSL) -> None:
    X, few = flowers
    other = frozen_full(ssl, LogisticRegression()).fit(X, few)
    np.testing.assert_allclose(other.predict_proba_std(X), other.predict_proba_draws(X).std(axis=0))
    bayesian = frozen_full(ssl, BayesianLogisticRegression(n_samples=10_000, random_state=0)).fit(X, few)
    functions = bayesian.functions_.one_row_at_a_time(X)
    labeled = few >= 0
    heads = [BayesianLogisticRegression(random_state=0, n_samples=1000).fit(Z, few[labeled]) for Z in bayesian.functions_(X[labeled])]
    own = np.mean([head.predict_proba_std(Z) ** 2 for head, Z in zip(heads, functions, strict=True)], axis=0)
    expected = np.sqrt(bayesian.predict_proba_draws(X).var(axis=0) + own)
    np.testing.assert_allclose(bayesian.predict_proba_std(X), expected, atol=0.01)


# Heads and representations of others


@pytest.mark.parametrize("head", [RandomForestClassifier(5), make_pipeline(StandardScaler(), LogisticRegression()), PerceptronClassifier()])
def test_any_head_will_do(flowers: tuple[Array, NDArray[np.intp]], ssl: GPSSL, head: Any) -> None:
    X, few = flowers
    classifier = frozen_full(ssl, head, n_draws=4).fit(X, few)
    np.testing.assert_allclose(classifier.predict_proba(X).sum(axis=1), 1.0)
    assert classifier.score(X, load_iris(return_X_y=True)[1]) > 0.8


def test_jobs_do_not_matter_and_progress_is_shown(
    flowers: tuple[Array, NDArray[np.intp]], ssl: GPSSL, capsys: pytest.CaptureFixture[str]
) -> None:
    X, few = flowers
    one, two = (frozen_full(ssl, LogisticRegression(), n_jobs=jobs, verbose=True).fit(X, few).predict_proba(X) for jobs in (1, 2))
    np.testing.assert_allclose(one, two, atol=1e-12)
    assert "heads: 10 of 10 heads" in capsys.readouterr().err


class SeesSomeClasses(ClassifierMixin, BaseEstimator):
    """A head that drops the last class when its first feature starts below zero, as a head that resamples its rows might."""

    def fit(self, X: Array, y: NDArray[Any]) -> SeesSomeClasses:
        kept = y != (y.max() if X[0, 0] < 0 else None)
        self.head_ = LogisticRegression().fit(X[kept], y[kept])
        self.classes_ = self.head_.classes_
        return self

    def predict_proba(self, X: Array) -> Array:
        return self.head_.predict_proba(X)


def test_a_class_that_some_head_has_not_seen_has_probability_zero_there(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    classifier = MarginalizedClassifier(GPSSL(2, temperature=1.0), SeesSomeClasses(), n_draws=20, random_state=0).fit(X, few)
    draws = classifier.predict_proba_draws(X)
    missing = (draws[:, :, 2] == 0).all(axis=1)
    assert 0 < missing.sum() < 20
    np.testing.assert_allclose(draws.sum(axis=2), 1.0)


def test_rows_may_be_strings() -> None:
    words = ["ab", "abb", "aab", "cd", "cdd", "ccd"] * 5
    y = [word[0] if i < 6 else None for i, word in enumerate(words)]
    classifier = MarginalizedClassifier(GPSSL(1, kernel=SharedLetters(), residual_tolerance=0.5, random_state=0), n_draws=3, random_state=0)
    assert list(classifier.fit(words, y).predict(["ba", "dc"])) == ["a", "c"]


# Weights and metadata


class Remembers(ClassifierMixin, BaseEstimator):
    """A head that keeps what it was given."""

    def fit(self, X: Array, y: NDArray[Any], sample_weight: Any = None, shade: Any = None) -> Remembers:
        self.classes_, self.weight_, self.shade_ = np.unique(y), sample_weight, shade
        return self

    def predict_proba(self, X: Array) -> Array:
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


def test_weights_and_metadata_reach_the_head_at_the_labeled_rows(flowers: tuple[Array, NDArray[np.intp]], ssl: GPSSL) -> None:
    X, few = flowers
    weight, shade = np.arange(1.0, 151.0), np.arange(150) * 10
    heads = frozen_full(ssl, Remembers(), n_draws=2).fit(X, few, sample_weight=weight, shade=shade).heads_
    assert isinstance(heads, ClassifierClones)
    head = heads.heads[1]
    np.testing.assert_array_equal(head.weight_, weight[few >= 0])
    np.testing.assert_array_equal(head.shade_, shade[few >= 0])


def test_metadata_are_routed_to_who_requests_them(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    weight, shade = np.linspace(0.5, 2, 150), np.arange(150)
    with config_context(enable_metadata_routing=True):
        head = Remembers().set_fit_request(sample_weight=True, shade=True)
        for_both = MarginalizedClassifier(GPSSL(2, random_state=0).set_fit_request(sample_weight=True), head, n_draws=2)
        for_head = MarginalizedClassifier(GPSSL(2, random_state=0).set_fit_request(sample_weight=False), head, n_draws=2)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), for_both)
        both = pipeline.fit(X, few, sample_weight=weight, shade=shade)[-1]
        alone = for_head.fit(X, few, sample_weight=weight, shade=shade)
        with pytest.raises(Exception, match="not explicitly set as requested"):
            MarginalizedClassifier(GPSSL(2), Remembers(), n_draws=2).fit(X, few, sample_weight=weight)
    for classifier in (both, alone):
        assert isinstance(classifier.heads_, ClassifierClones)
        np.testing.assert_array_equal(classifier.heads_.heads[0].weight_, weight[few >= 0])
        np.testing.assert_array_equal(classifier.heads_.heads[0].shade_, shade[few >= 0])
    assert both.representation_.moments_.weight == pytest.approx(weight.sum())
    assert alone.representation_.moments_.weight == 150


@pytest.mark.parametrize("head", [None, PerceptronClassifier(max_epochs=5)])
def test_weight_two_is_the_row_twice(flowers: tuple[Array, NDArray[np.intp]], head: Any) -> None:
    X, few = flowers
    weight = np.random.default_rng(0).integers(0, 3, size=len(X))
    weighted = MarginalizedClassifier(GPSSL(2), head, n_draws=3, random_state=0).fit(X, few, sample_weight=weight)
    repeated = MarginalizedClassifier(GPSSL(2), head, n_draws=3, random_state=0).fit(X.repeat(weight, axis=0), few.repeat(weight))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-5)


def test_weights_for_a_head_that_takes_none_get_a_sentence(flowers: tuple[Array, NDArray[np.intp]], ssl: GPSSL) -> None:
    with pytest.raises(ValueError, match="takes no sample_weight"):
        frozen_full(ssl, make_pipeline(StandardScaler(), LogisticRegression())).fit(*flowers, sample_weight=np.ones(150))


# The paper's circles


def test_away_from_the_data_full_becomes_unsure_and_mean_does_not(circles: Array) -> None:
    ssl = GPSSL(5, kernel=NeighborRBF(20), random_state=0).fit(circles)
    X, y = even_circles(50, seed=1)
    angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    full, mean = (
        [frozen_full(ssl, n_draws=n).fit(X, y).predict_proba_std(radius * ring).mean() for radius in (1.5, 2.5, 4.0)] for n in (100, None)
    )
    assert full[0] < full[1] < full[2]
    assert mean[2] < mean[0]
    assert full[2] > 5 * mean[2]


@pytest.mark.slow
def test_aurc_of_full_is_no_worse_than_of_mean_over_twenty_seeds() -> None:
    differences = []
    for seed in range(20):
        X, _ = quadrant_circles(seed=seed)
        X_labeled, y_labeled = even_circles(50, seed=100 + seed)
        X_test, y_test = even_circles(500, seed=200 + seed)
        ssl = GPSSL(5, random_state=0).fit(X)
        full, mean = (
            MarginalizedClassifier(FrozenEstimator(ssl), n_draws=n, random_state=seed).fit(X_labeled, y_labeled).predict_proba(X_test)
            for n in (100, None)
        )
        differences.append(aurc(y_test, full) - aurc(y_test, mean))
    error = np.std(differences, ddof=1) / np.sqrt(20)
    assert np.mean(differences) < 2 * error
    assert np.mean(differences) < 0.001
