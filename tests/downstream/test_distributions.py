from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import BayesianRidge, LogisticRegression

from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor
from gpssl.core._draws import FunctionDraws
from gpssl.downstream import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    ClassDistribution,
    PerceptronClassifier,
    RepresentationSearch,
)
from gpssl.evaluation._importance import MOST_PREDICTIONS, MOST_REPEATS
from gpssl.workflows import label
from representations import Certain, Counted

Array = NDArray[np.float64]

NUMBER_HEADS = [BayesianLinearRegression(), BayesianRidge()]
CLASS_HEADS = [
    BayesianLogisticRegression(random_state=0),
    BayesianLogisticRegression(predictive="sampled", random_state=0),
    PerceptronClassifier(max_epochs=5, random_state=0),
    LogisticRegression(),
]


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several parts, the last of them a single row."""
    monkeypatch.setattr("gpssl.downstream._marginal.PREDICTION_ROWS", 21)


@pytest.fixture(scope="module")
def sugar() -> tuple[Array, Array]:
    X, y = load_diabetes(return_X_y=True)
    return X[:127], y[:127]


@pytest.mark.parametrize("head", CLASS_HEADS, ids=lambda head: type(head).__name__)
@pytest.mark.parametrize("n_draws", [6, None])
def test_the_distribution_over_classes_is_what_the_methods_return(
    flowers: tuple[Array, NDArray[np.intp]], head: Any, n_draws: int | None
) -> None:
    X, few = flowers
    classifier = MarginalizedClassifier(Counted(), head, n_draws=n_draws).fit(X, few)
    rows = np.vstack([X, X[:19] + 0.1])
    found = classifier.predict_distribution(rows)
    np.testing.assert_array_equal(found.classes, classifier.classes_)
    np.testing.assert_array_equal(found.proba, classifier.predict_proba(rows))
    np.testing.assert_array_equal(found.predicted, classifier.predict(rows))
    np.testing.assert_array_equal(found.certainty, classifier.predict_proba(rows).max(axis=1))
    for part, expected in zip(found.uncertainty, classifier.predict_uncertainty(rows), strict=True):
        np.testing.assert_array_equal(part, expected)
    if n_draws is None and not isinstance(head, BayesianLogisticRegression):
        with pytest.raises(ValueError, match="know no standard deviation"):
            _ = found.proba_std
    else:
        std = classifier.predict_proba_std(rows)
        np.testing.assert_array_equal(found.proba_std, std)
        np.testing.assert_array_equal(found.certainty_std, std[np.arange(len(rows)), found.proba.argmax(axis=1)])


@pytest.mark.parametrize("head", NUMBER_HEADS, ids=lambda head: type(head).__name__)
@pytest.mark.parametrize("n_draws", [6, None])
def test_the_distribution_of_numbers_is_what_the_methods_return(sugar: tuple[Array, Array], head: Any, n_draws: int | None) -> None:
    X, y = sugar
    regressor = MarginalizedRegressor(Counted(), head, n_draws=n_draws).fit(X, y)
    found = regressor.predict_distribution(X)
    np.testing.assert_array_equal(found.mean, regressor.predict(X))
    np.testing.assert_array_equal(found.std, regressor.predict_std(X))
    np.testing.assert_array_equal(found.interval(0.8), regressor.predict_interval(X, 0.8))
    for part, expected in zip(found.uncertainty, regressor.predict_uncertainty(X), strict=True):
        np.testing.assert_array_equal(part, expected)
    for draws, expected in zip(found.draws, regressor.predict_draws(X), strict=True):
        np.testing.assert_array_equal(draws, expected)
    with pytest.raises(ValueError, match="coverage must be"):
        found.interval(1.0)


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_proba_std", "predict_proba_draws", "predict_uncertainty", "predict_distribution"]
)
def test_a_classifier_evaluates_the_draws_once_at_each_row(flowers: tuple[Array, NDArray[np.intp]], method: str) -> None:
    X, few = flowers
    classifier = MarginalizedClassifier(Counted(), n_draws=4).fit(X, few)
    Counted.n_evaluated = 0
    getattr(classifier, method)(X)
    assert Counted.n_evaluated == len(X)


@pytest.mark.parametrize("method", ["predict", "predict_std", "predict_interval", "predict_draws", "predict_uncertainty"])
def test_a_regressor_evaluates_the_draws_once_at_each_row(sugar: tuple[Array, Array], method: str) -> None:
    regressor = MarginalizedRegressor(Counted(), n_draws=4).fit(*sugar)
    Counted.n_evaluated = 0
    getattr(regressor, method)(sugar[0])
    assert Counted.n_evaluated == len(sugar[0])


def test_mean_deviation_and_two_intervals_of_numbers_cost_one_evaluation(sugar: tuple[Array, Array]) -> None:
    regressor = MarginalizedRegressor(Counted(), n_draws=4).fit(*sugar)
    Counted.n_evaluated = 0
    found = regressor.predict_distribution(sugar[0])
    narrow, wide = found.interval(0.5), found.interval(0.9)
    assert (wide[:, 0] < narrow[:, 0]).all()
    assert (narrow[:, 1] < wide[:, 1]).all()
    assert (found.std > 0).all()
    assert Counted.n_evaluated == len(sugar[0])


def test_a_search_has_the_distribution_of_its_best_estimator(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    search = RepresentationSearch(MarginalizedClassifier(GPSSL(2), n_draws=3), {"temperature": [1.0]}, random_state=0).fit(X, few)
    found = search.predict_distribution(X)
    assert isinstance(found, ClassDistribution)
    np.testing.assert_array_equal(found.proba, search.predict_proba(X))


class CountingRBF(RBF):
    """Counts the rows that it is evaluated at."""

    n_evaluated = 0

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        CountingRBF.n_evaluated += len(X)
        return super().__call__(X, Y, eval_gradient)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_mean_and_deviation_of_the_representation_cost_one_evaluation_of_the_kernel(sugar: tuple[Array, Array], dtype: Any) -> None:
    rows = sugar[0].astype(dtype)
    ssl = GPSSL(2, kernel=CountingRBF(0.1), inducing=10, residual_tolerance=1.0, random_state=0).fit(rows)
    CountingRBF.n_evaluated = 0
    mean, std = ssl.mean_and_std(rows)
    in_one_go = CountingRBF.n_evaluated
    expected_mean = ssl.transform(rows)
    CountingRBF.n_evaluated = 0
    expected_std = ssl.std(rows)
    assert in_one_go == CountingRBF.n_evaluated
    np.testing.assert_array_equal(mean, expected_mean)
    np.testing.assert_array_equal(std, expected_std)
    assert mean.dtype == expected_mean.dtype


def test_mean_and_standard_deviation_stay_lazy_for_dask(sugar: tuple[Array, Array]) -> None:
    da = pytest.importorskip("dask.array")
    ssl = GPSSL(2, random_state=0).fit(sugar[0])
    lazy = ssl.mean_and_std(da.from_array(sugar[0], chunks=(50, -1)))
    for values, expected in zip(lazy, ssl.mean_and_std(sugar[0]), strict=True):
        assert isinstance(values, da.Array)
        np.testing.assert_allclose(values.compute(), expected, atol=1e-12)


def test_what_cannot_be_known_is_told_when_it_is_asked_for(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    single = MarginalizedClassifier(Certain(), clone(LogisticRegression()), n_draws=1).fit(*flowers)
    assert single.predict_distribution(flowers[0]).proba_variance is None
    with pytest.raises(ValueError, match="Raise n_draws"):
        single.predict_proba_std(flowers[0])


@pytest.mark.parametrize("target", ["target", "alcohol"])
def test_labeling_a_table_evaluates_the_draws_once_at_each_row(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n_evaluated: Counter[bytes] = Counter()
    evaluate = FunctionDraws._evaluate_one_row_at_a_time

    def counted(functions: FunctionDraws, n_known: int, rows: Any) -> Any:
        n_evaluated.update(row.tobytes() for row in np.asarray(rows, dtype=np.float64))
        return evaluate(functions, n_known, rows)

    monkeypatch.setattr(FunctionDraws, "_evaluate_one_row_at_a_time", counted)
    wines = load_wine(as_frame=True).frame
    is_open = wines.index % 3 > 0
    wines.loc[is_open, target] = None
    result = label(wines, target, n_draws=5)
    result.frame()
    times = np.array([n_evaluated[row.tobytes()] for row in wines.drop(columns=target).to_numpy(dtype=np.float64)])
    np.testing.assert_array_equal(times[is_open], 1)
    # Where their label was held out, and again among copies with a column shuffled, of which some are the row itself.
    assert (times[~is_open] >= 2).all()
    n_labeled, n_columns = (~is_open).sum(), wines.shape[1] - 1
    n_repeats = min(MOST_REPEATS, MOST_PREDICTIONS // (n_labeled * (1 + n_columns)))
    assert n_evaluated.total() == len(wines) + n_labeled * (1 + n_repeats * n_columns)
