from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import gpssl.downstream
from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor
from gpssl.core._moments import moments_of_rows
from gpssl.downstream import BayesianLogisticRegression, RepresentationSearch
from gpssl.downstream._search import Trials, deal_folds
from gpssl.evaluation._calibration import log_density
from gpssl.inference import Variational
from gpssl.kernels import NeighborRBF

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def flowers() -> tuple[Array, NDArray[np.intp]]:
    """All rows of iris, and 45 labels among 105 marks."""
    X, y = load_iris(return_X_y=True)
    return X, np.where(np.random.default_rng(0).permutation(len(y)) < 45, y, -1)


def small_search(grid: Any, **params: Any) -> RepresentationSearch:
    estimator = MarginalizedClassifier(GPSSL(2), n_draws=4)
    return RepresentationSearch(estimator, grid, random_state=0, **params)


def test_check_estimator_for_classifier_and_regressor() -> None:
    for estimator, expected in (
        (MarginalizedClassifier(GPSSL(inference="mode"), n_draws=2), {"check_classifiers_classes": "−1 marks rows without a label"}),
        (MarginalizedRegressor(GPSSL(inference="mode"), n_draws=2), {}),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on few rows, representations have things to say
            search = RepresentationSearch(estimator, {"temperature": ["auto", 1.0]})
            results = check_estimator(search, expected_failed_checks=expected)
        assert {result["check_name"] for result in results if result["status"] == "xfail"} == set(expected)
        assert {result["status"] for result in results} <= {"passed", "skipped", "xfail"}
        assert sum(result["status"] == "passed" for result in results) > 40


def test_scores_are_those_of_the_procedure_written_out(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    grid = {"kernel": [NeighborRBF(5), NeighborRBF(20)], "temperature": ["auto", 1.0], "n_components": [1, 3]}
    search = small_search(grid).fit(X, few)
    labeled = np.flatnonzero(few >= 0)
    folds = deal_folds(few[labeled], 5, np.random.RandomState(0))
    train, test = labeled[folds != 0], labeled[folds == 0]
    assert len(test) == 9
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        # From scratch; candidates that were compared roughly may differ where the objective has several minima.
        ssl = GPSSL(2, random_state=search.best_estimator_.representation_.random_state).set_params(**params).fit(X)
        model = MarginalizedClassifier(FrozenEstimator(ssl), n_draws=4, random_state=search.best_estimator_.random_state)
        proba = model.fit(X[train], few[train]).predict_proba(X[test])
        precise = search.cv_results_["precise"][search.cv_results_["params"].index(params)]
        assert score == pytest.approx(np.log(proba[np.arange(9), few[test]]).mean(), abs=1e-6 if precise else 0.1)
    assert search.best_score_ == search.cv_results_["mean_test_score"][search.cv_results_["precise"]].max()


def test_there_is_one_pass_over_the_data_for_each_kernel(flowers: tuple[Array, NDArray[np.intp]], monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[Any] = []

    def counted(features: Any, rows: Any, **options: Any) -> Any:
        passes.append(features.kernel)
        return moments_of_rows(features, rows, **options)

    monkeypatch.setattr("gpssl.estimator.moments_of_rows", counted)
    grid = {"kernel": [NeighborRBF(5), NeighborRBF(20)], "temperature": ["auto", 0.1, 1.0], "variance_weight": [25.0, 50.0]}
    search = small_search(grid).fit(*flowers)
    assert len(search.cv_results_["params"]) == 12
    assert len(passes) == 2 + 1  # and the fit of the best


def test_the_best_is_fitted_to_all_labels_and_used(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    search = small_search({"n_components": [1, 3]}).fit(X, few)
    assert search.best_estimator_.n_labeled_ == 45
    assert search.best_estimator_.representation.n_components == search.best_params_["n_components"]
    assert search.best_estimator_.representation_.inference == "variational"
    np.testing.assert_array_equal(search.predict_proba(X), search.best_estimator_.predict_proba(X))
    assert search.score(X, few) == search.best_estimator_.score(X, few)
    assert list(search.classes_) == [0, 1, 2]


def test_the_table_is_one_for_pandas(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    search = small_search([{"temperature": ["auto", 1.0]}, {"n_components": [1]}], cv=3).fit(*flowers)
    table = pd.DataFrame(search.cv_results_)
    assert len(table) == 3
    assert table["param_temperature"].tolist()[:2] == ["auto", 1.0]
    np.testing.assert_allclose(table["mean_test_score"], table[[f"split{i}_test_score" for i in range(3)]].mean(axis=1))
    assert sorted(table["rank_test_score"]) == [1, 2, 3]
    assert table["rank_test_score"][search.best_index_] == 1
    assert search.n_splits_ == 3


def test_a_splitter_of_scikit_learn_will_do(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    search = small_search({"temperature": [0.1]}, cv=KFold(4, shuffle=True, random_state=0)).fit(*flowers)
    assert search.n_splits_ == 4


def test_it_works_within_a_pipeline_and_with_data_frames(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = pd.DataFrame(flowers[0], columns=list("abcd")), pd.Series(flowers[1])
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), small_search({"n_components": [1, 2]})).fit(X, few)
    assert model.score(X, few) > 0.7
    assert list(model[-1].feature_names_in_) == list("abcd")


def test_regression_is_scored_by_the_density_of_the_held_out_targets() -> None:
    X, y = load_diabetes(return_X_y=True)
    few = np.where(np.arange(len(y)) < 100, y, np.nan)
    search = RepresentationSearch(MarginalizedRegressor(GPSSL(2), n_draws=4), {"n_components": [1, 4]}, cv=2, random_state=0).fit(X, few)
    assert is_regressor(search)
    assert not is_classifier(search)
    assert not hasattr(search, "predict_proba")
    folds = deal_folds(np.zeros(100), 2, np.random.RandomState(0))
    seed = search.best_estimator_.random_state
    ssl = GPSSL(4, random_state=search.best_estimator_.representation_.random_state).fit(X)
    model = MarginalizedRegressor(FrozenEstimator(ssl), n_draws=4, random_state=seed).fit(X[:100][folds != 0], y[:100][folds != 0])
    held_out = model.predict_draws(X[:100][folds == 0])
    expected = log_density(y[:100][folds == 0], *held_out, weights=model.draw_weights_).mean()
    assert search.cv_results_["split0_test_score"][1] == pytest.approx(expected, abs=1e-6)


# Folds


def test_folds_are_dealt_within_classes_and_only_rows_of_a_class_are_never_held_out() -> None:
    classes = np.array(["a"] * 10 + ["b"] * 3 + ["c"])
    folds = deal_folds(classes, 5, np.random.RandomState(0))
    assert np.bincount(folds[classes == "a"]).tolist() == [2] * 5
    assert len(set(folds[classes == "b"])) == 3
    assert folds[-1] == -1


def test_a_class_that_a_splitter_leaves_out_of_the_training_rows_does_not_count(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    rare = np.where(few == 2, -1, few)
    rare[np.flatnonzero(few == 2)[0]] = 2  # one row of class 2
    search = small_search({"temperature": ["auto", 1.0]}, cv=KFold(3, shuffle=True, random_state=0)).fit(X, rare)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


# Bad input


@pytest.mark.parametrize(
    ("search", "kind", "message"),
    [
        (small_search({"neighborhood": [5]}), ValueError, "a neighborhood is a parameter of the kernel"),
        (small_search({"temperature": ["auto"]}, cv=1), ValueError, "cv must be a whole number of at least 2 folds"),
        (small_search({"temperature": ["auto"]}, cv="five"), ValueError, "cv must be a whole number of at least 2 folds"),
        (RepresentationSearch(MarginalizedClassifier(FrozenEstimator(GPSSL()))), TypeError, "GridSearchCV"),
        (RepresentationSearch(LogisticRegression()), TypeError, "Pass it as their head"),
        (small_search({"temperature": [-1.0, 0.0]}), ValueError, "temperature must be a number above 0"),
    ],
)
def test_what_cannot_be_searched_gets_a_sentence(
    flowers: tuple[Array, NDArray[np.intp]], search: RepresentationSearch, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        search.fit(*flowers)


def test_too_few_labels_get_a_sentence(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, _ = flowers
    one_each = np.full(150, -1)
    one_each[[0, 60, 120]] = 0, 1, 2
    with pytest.raises(ValueError, match="too few to hold some out"):
        small_search({"temperature": ["auto"]}).fit(X, one_each)


def test_a_candidate_that_fails_loses_nothing(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    search = small_search({"n_components": [2, 1000]})
    with pytest.warns(FitFailedWarning, match="1 of 2 candidates failed"):
        search.fit(*flowers)
    assert search.best_params_ == {"n_components": 2}
    assert "rows cannot show 1000" in search.cv_results_["error"][1]
    assert np.isnan(search.cv_results_["mean_test_score"][1])
    assert search.cv_results_["rank_test_score"].tolist() == [1, 2]


def test_what_a_candidate_has_to_say_is_in_the_table_not_on_the_screen(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    search = small_search({"max_inducing": [150, 2]}).fit(*flowers)
    assert search.cv_results_["warning"][0] == ""
    assert "of the prior variance open" in search.cv_results_["warning"][1]


def test_progress_is_shown(flowers: tuple[Array, NDArray[np.intp]], capsys: pytest.CaptureFixture[str]) -> None:
    small_search({"temperature": ["auto", 1.0]}, verbose=True).fit(*flowers)
    assert "selection: 2 of 2 candidates" in capsys.readouterr().err


def test_defaults_try_neighborhoods_and_temperatures_and_leave_another_kernel_alone() -> None:
    assert len(gpssl.downstream.default_grid(GPSSL())["kernel"]) == 3
    assert gpssl.downstream.default_grid(GPSSL())["temperature"] == ["auto", 0.01, 0.1, 1.0]
    assert gpssl.downstream.default_grid(GPSSL(), of_mean=True)["temperature"] == ["auto", 0.01, 0.1]
    kernel = NeighborRBF(7, reduce="median")
    assert all(tried.reduce == "median" for tried in gpssl.downstream.default_grid(GPSSL(kernel=kernel))["kernel"])
    assert len(gpssl.downstream.default_grid(GPSSL(kernel=2.0 * kernel))["kernel"]) == 1


def test_settings_of_inference_are_kept_but_for_their_last_digits(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    search = small_search({"inference": [Variational(32)], "temperature": [0.01, 0.03, 0.1, 0.3, 1.0, "auto"]}).fit(*flowers)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    used = search.best_estimator_.representation_.inference
    assert (used.n_draws, used.precise) == (32, True)


def test_weights_reach_representation_and_head(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    weight = np.where(np.arange(150) % 2, 1.0, 2.0)
    search = small_search({"temperature": ["auto", 0.1]}).fit(X, few, sample_weight=weight)
    assert search.best_estimator_.representation_.moments_.weight == weight.sum()
    assert search.best_score_ != small_search({"temperature": ["auto", 0.1]}).fit(X, few).best_score_


def test_rows_of_weight_zero_do_not_count_and_weight_two_is_the_row_twice_in_scores(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    labeled = np.flatnonzero(few >= 0)
    weight, wrong = np.ones(150), few.copy()
    weight[labeled[::2]] = 0.0
    wrong[labeled[::2]] = (few[labeled[::2]] + 1) % 3
    grid = {"temperature": ["auto", 0.1]}
    one, other = (small_search(grid).fit(X, y, sample_weight=weight).cv_results_["mean_test_score"] for y in (few, wrong))
    np.testing.assert_array_equal(one, other)
    # A held-out row that counts thrice pulls the mean towards its own likelihood.
    search = small_search(grid, cv=PredefinedSplit(np.r_[np.zeros(2), np.full(43, -1)]))
    scores = []
    for first_two in ([1.0, 1.0], [1.0, 1e-12], [1e-12, 1.0], [3.0, 1.0]):
        weight = np.ones(150)
        weight[labeled[:2]] = first_two
        # The representation sees the weights, too, but two rows of 150 hardly move it.
        estimator = MarginalizedClassifier(GPSSL(2, random_state=0), n_draws=4, weighting="equal", random_state=0)
        scores.append(search.set_params(estimator=estimator).fit(X, few, sample_weight=weight).cv_results_["mean_test_score"][0])
    both, first, second, thrice = scores
    assert both == pytest.approx((first + second) / 2, abs=0.02)
    assert thrice == pytest.approx((3 * first + second) / 4, abs=0.02)


def test_a_splitter_that_holds_out_a_whole_class_gets_a_sentence(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    by_class = PredefinedSplit(np.where(few[few >= 0] == 2, 0, -1))
    with pytest.raises(ValueError, match="puts each class on both sides"):
        small_search({"temperature": ["auto", 1.0]}, cv=by_class).fit(X, few)


def test_metadata_are_routed_through_the_search(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    with config_context(enable_metadata_routing=True):
        estimator = MarginalizedClassifier(
            GPSSL(2, random_state=0).set_fit_request(sample_weight=False),
            BayesianLogisticRegression().set_fit_request(sample_weight=True),
            n_draws=2,
        )
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        model = make_pipeline(scaler, RepresentationSearch(estimator, {"temperature": ["auto", 0.1]}, random_state=0))
        model.fit(X, few, sample_weight=np.linspace(0.5, 2, 150))
    assert model[-1].best_estimator_.representation_.moments_.weight == 150


def test_a_candidate_that_fails_in_full_does_not_win(flowers: tuple[Array, NDArray[np.intp]], monkeypatch: pytest.MonkeyPatch) -> None:
    grid = {"temperature": ["auto", 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]}
    winner = small_search(grid).fit(*flowers).best_params_["temperature"]
    score = Trials._score_one

    def fails_for_the_winner(self: Trials, candidate: Any, *, precise: bool) -> list[float]:
        if precise and candidate["temperature"] == winner:
            raise ValueError("no")
        return score(self, candidate, precise=precise)

    monkeypatch.setattr(Trials, "_score_one", fails_for_the_winner)
    with pytest.warns(FitFailedWarning, match="1 of 8"):
        search = small_search(grid).fit(*flowers)
    assert search.best_params_["temperature"] != winner
    assert search.cv_results_["error"].count("ValueError: no") == 1


def test_what_the_best_estimator_knows_of_its_uncertainty_is_at_hand(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    search = small_search({"temperature": ["auto"]}).fit(X, few)
    np.testing.assert_array_equal(search.predict_proba_std(X), search.best_estimator_.predict_proba_std(X))
    np.testing.assert_array_equal(search.predict_uncertainty(X).total, search.best_estimator_.predict_uncertainty(X).total)
    assert not hasattr(search, "predict_interval")
    regression = RepresentationSearch(MarginalizedRegressor(GPSSL(2), n_draws=2), {"temperature": ["auto"]}, random_state=0).fit(X, X[:, 0])
    np.testing.assert_array_equal(regression.predict_std(X), regression.best_estimator_.predict_std(X))
    assert regression.predict_interval(X, coverage=0.5).shape == (150, 2)
