from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from gpssl import GPSSL, MarginalizedClassifier
from gpssl.downstream import BayesianLinearRegression, BayesianLogisticRegression, PerceptronClassifier
from gpssl.evaluation._selective import predict_or_abstain
from representations import frozen_full

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def ssl(flowers: tuple[Array, NDArray[np.intp]]) -> GPSSL:
    return GPSSL(3, random_state=0).fit(flowers[0])


@pytest.mark.parametrize(
    ("names", "mark"),
    [
        (np.array([0, 1, 2]), -1),
        (np.array([7, 3, 12]), -1),
        (np.array([0.0, 1.0, 2.0]), np.nan),
        (np.array([0.0, 1.0, 2.0]), -1.0),
        (np.array(["setosa", "versicolor", "virginica"], dtype=object), None),
        (np.array(["setosa", "versicolor", "virginica"], dtype=object), np.nan),
        (np.array([4, 5, 6], dtype=object), None),
        (np.array([4, 5, 6], dtype=object), pd.NA),
    ],
)
def test_labels_of_any_kind_and_their_marks(flowers: tuple[Array, NDArray[np.intp]], ssl: GPSSL, names: NDArray[Any], mark: Any) -> None:
    X, few = flowers
    plain = frozen_full(ssl).fit(X, few).predict(X)
    y = np.where(few >= 0, names[few], mark)
    for labels in (y, y.tolist(), pd.Series(y)):
        classifier = frozen_full(ssl).fit(X, labels)
        assert classifier.n_labeled_ == 30
        assert classifier.classes_.tolist() == sorted(names.tolist())
        np.testing.assert_array_equal(classifier.predict(X), names[plain])
        assert classifier.score(X, labels) == np.mean(plain[few >= 0] == few[few >= 0])


def test_booleans_and_categories_are_labels(flowers: tuple[Array, NDArray[np.intp]], ssl: GPSSL) -> None:
    X, few = flowers
    two = [bool(label > 0) if label >= 0 else None for label in few]
    classifier = frozen_full(ssl).fit(X, two)
    assert classifier.classes_.tolist() == [False, True]
    assert frozen_full(ssl).fit(X[few >= 0], few[few >= 0] > 0).predict(X).dtype == bool
    categories = pd.Series(pd.Categorical.from_codes(few, categories=["x", "y", "z"]))
    assert frozen_full(ssl).fit(X, categories).classes_.tolist() == ["x", "y", "z"]
    nullable = pd.Series(few).mask(few < 0).astype("Int64")
    assert frozen_full(ssl).fit(X, nullable).classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.full(150, -1), "No row has a label"),
        (np.full(150, None), "No row has a label"),
        (np.full(150, np.nan), "No row has a label"),
        (np.where(np.arange(150) % 2, 1, -1), "-1 marks a row without a label"),
        (np.where(np.arange(150) % 2, 1.0, -1.0), "-1 marks a row without a label"),
        (np.where(np.arange(150) % 2, 5, -1), "only one class"),
        (np.full(150, "a"), "only one class"),
        (["a", "b", -1] * 50, "mark rows without one by None"),
        (np.linspace(0, 1, 150), "Unknown label type"),
        (np.arange(149) % 2, "inconsistent numbers of samples"),
        (None, "requires y to be passed"),
    ],
)
def test_labels_that_cannot_be_learned_from_get_a_sentence(
    flowers: tuple[Array, NDArray[np.intp]], ssl: GPSSL, y: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        frozen_full(ssl).fit(flowers[0], y)


@pytest.mark.parametrize(
    ("params", "kind", "message"),
    [
        ({"n_draws": 0}, ValueError, "n_draws must be a whole number of at least 1 or None"),
        ({"n_draws": 2.5}, ValueError, "n_draws must be a whole number"),
        ({"head": LinearSVC()}, TypeError, "has no predict_proba"),
        ({"head": BayesianLinearRegression()}, TypeError, "has no predict_proba"),
        ({"representation": PCA(2)}, TypeError, "has no draw_functions"),
        ({"representation": make_pipeline(StandardScaler(), GPSSL(2))}, TypeError, "pipeline around this estimator"),
    ],
)
def test_parameters_that_do_not_fit_get_a_sentence(
    flowers: tuple[Array, NDArray[np.intp]], params: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        MarginalizedClassifier(**params).fit(*flowers)


def test_mean_with_a_head_that_has_no_posterior_knows_no_standard_deviation(flowers: tuple[Array, NDArray[np.intp]], ssl: GPSSL) -> None:
    for n_draws in (None, 1):
        with pytest.raises(ValueError, match="know no standard deviation"):
            frozen_full(ssl, LogisticRegression(), n_draws=n_draws).fit(*flowers).predict_proba_std(flowers[0])


def test_scores_of_other_rows_get_a_sentence(flowers: tuple[Array, NDArray[np.intp]], ssl: GPSSL) -> None:
    X, few = flowers
    classifier = frozen_full(ssl).fit(X, few)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        classifier.score(X, few[:30])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        classifier.score(X, few, sample_weight=[1.0, 2.0])
    with pytest.raises(TypeError, match="threshold must be a number"):
        predict_or_abstain(classifier, X, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("head", [BayesianLogisticRegression(), BayesianLinearRegression(), PerceptronClassifier()])
def test_features_that_are_not_of_several_draws_get_a_sentence(flowers: tuple[Array, NDArray[np.intp]], head: Any) -> None:
    with pytest.raises(ValueError, match=r"Draws come as an array of shape \[S, n, J\]"):
        head.fit_draws(flowers[0], flowers[1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        head.fit_draws(flowers[0][None], flowers[1][:3])


def test_scores_without_labels_get_a_sentence(flowers: tuple[Array, NDArray[np.intp]], ssl: GPSSL) -> None:
    classifier = frozen_full(ssl).fit(*flowers)
    with pytest.raises(ValueError, match="No row has a label"):
        classifier.score(flowers[0], np.full(150, -1))


@pytest.mark.parametrize("n_classes", [2, 10, 50])
def test_one_labeled_row_for_each_class(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    centers = 10 * rng.normal(size=(n_classes, 5))
    truth = np.repeat(np.arange(n_classes), 8)
    X = centers[truth] + 0.1 * rng.normal(size=(len(truth), 5))
    y = np.where(np.arange(len(truth)) % 8 == 0, truth, -1)
    ssl = GPSSL(2 if n_classes == 2 else 4, kernel=RBF(10.0), temperature=0.01, residual_tolerance=0.05, random_state=0).fit(X)
    for n_draws in (None, 30):
        classifier = MarginalizedClassifier(FrozenEstimator(ssl), n_draws=n_draws, random_state=0).fit(X, y)
        proba = classifier.predict_proba(X)
        assert proba.shape == (len(truth), n_classes)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert classifier.score(X, truth) > (0.95 if n_classes == 2 else 3 / n_classes)
