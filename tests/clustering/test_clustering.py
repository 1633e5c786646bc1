"""Clusters of draws: known clusters are found, rows between them say so, and matching is the best one."""

from __future__ import annotations

import warnings
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import adjusted_rand_score, rand_score
from sklearn.utils.estimator_checks import check_estimator

from gpssl import GPSSL
from gpssl.clustering import PosteriorClustering, agreement, aligned
from gpssl.clustering._consensus import consensus
from gpssl.clustering._counting import are_one_cloud, clouds_like
from gpssl.clustering._kmeans import grown, nearest, refined
from representations import Certain

CORNERS = 8.0 * np.array([[1, 1, 0], [-1, -1, 0], [1, -1, 1], [-1, 1, -1], [0, 0, 3]])


def blobs(n_clusters: int, n_rows: int = 150, seed: int = 0) -> tuple[Any, Any]:
    return make_blobs(n_rows, centers=CORNERS[:n_clusters], random_state=seed)


def test_check_estimator() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on few rows, representations have things to say
        results = check_estimator(PosteriorClustering(n_draws=5, max_clusters=4))
    assert {result["status"] for result in results} <= {"passed", "skipped"}
    assert sum(result["status"] == "passed" for result in results) > 35


@pytest.mark.parametrize("n_clusters", [2, 3, 5])
def test_separated_blobs_are_found_and_counted(n_clusters: int) -> None:
    X, y = blobs(n_clusters)
    found = PosteriorClustering(random_state=0).fit(X)
    assert found.n_clusters_ == n_clusters
    assert found.n_clusters_proba_[n_clusters] > 0.9
    assert found.one_cloud_proba_ < 0.5
    assert adjusted_rand_score(y, found.labels_) == 1
    assert found.probabilities_.max(axis=1).mean() > 0.99
    np.testing.assert_allclose(found.probabilities_.sum(axis=1), 1)


@pytest.mark.parametrize("n_columns", [3, 6])
def test_one_cloud_is_told_apart_from_clusters(n_columns: int) -> None:
    X = np.random.default_rng(0).standard_normal((200, n_columns))
    assert PosteriorClustering(random_state=0, n_draws=20).fit(X).one_cloud_proba_ > 0.7


def test_clusters_that_overlap_are_no_cloud() -> None:
    X, _ = make_blobs(500, 6, centers=5, cluster_std=2.0, random_state=0)
    assert PosteriorClustering(random_state=0, n_draws=20).fit(X).one_cloud_proba_ < 0.2


def test_rows_between_blobs_are_uncertain() -> None:
    X, _ = blobs(2)
    found = PosteriorClustering(2, random_state=0).fit(X)
    path = CORNERS[0] + np.linspace(0, 1, 21)[:, None] * (CORNERS[1] - CORNERS[0])
    proba = found.predict_proba(path)[:, found.predict(CORNERS[:1])[0]]
    assert proba[0] == 1
    assert proba[-1] == 0
    assert 0.1 < proba[10] < 0.9
    assert (np.diff(proba) <= 0.1).all()


def test_new_rows_get_the_probabilities_of_the_same_rows_at_fit() -> None:
    X, _ = blobs(3)
    found = PosteriorClustering(random_state=0).fit(X)
    np.testing.assert_array_equal(found.predict_proba(X), found.probabilities_)
    np.testing.assert_array_equal(found.predict_proba(X[40:45]), found.probabilities_[40:45])
    np.testing.assert_array_equal(found.predict(X), found.labels_)


def test_clusters_depend_neither_on_the_order_of_rows_nor_on_the_seed() -> None:
    X, _ = blobs(4)
    X = np.concatenate([X, X[:30] + 0.1])  # clusters of different sizes have an order
    order = np.random.default_rng(0).permutation(len(X))
    found = PosteriorClustering(random_state=0).fit(X)
    np.testing.assert_allclose(clone(found).fit(X[order]).probabilities_, found.probabilities_[order], atol=0.05)
    for seed in (1, 2):
        assert adjusted_rand_score(PosteriorClustering(random_state=seed).fit(X).labels_, found.labels_) == 1
    again = clone(found).fit(X)
    np.testing.assert_array_equal(again.probabilities_, found.probabilities_)


def test_equal_draws_give_certainty_and_k_means_own_clusters() -> None:
    X, _ = make_blobs(120, 3, centers=3, cluster_std=1.0, random_state=0)
    found = PosteriorClustering(3, Certain(), n_draws=4).fit(X)
    assert set(np.unique(found.probabilities_)) == {0.0, 1.0}
    Z = Certain().fit(X).transform(X)
    rival = KMeans(3, n_init=20, random_state=0).fit(Z)
    assert adjusted_rand_score(rival.labels_, found.labels_) == 1


def test_many_rows_are_assigned_to_the_clusters_of_some() -> None:
    X, y = blobs(3, n_rows=2500)
    found = PosteriorClustering(random_state=0, n_draws=10).fit(X)
    assert len(found.functions_._known) == 1000
    assert adjusted_rand_score(y, found.labels_) > 0.99


def test_data_frames_with_categories_and_gaps_go_straight_in() -> None:
    X, y = blobs(3)
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(color=pd.Categorical(np.array(["red", "green", "blue"])[y]))
    frame.loc[::10, "a"] = np.nan
    found = PosteriorClustering(3, random_state=0, n_draws=10).fit(frame)
    assert adjusted_rand_score(y, found.labels_) > 0.95
    assert list(found.feature_names_in_) == ["a", "b", "color"]


def test_a_fitted_representation_is_used_as_it_is() -> None:
    X, y = blobs(2)
    ssl = GPSSL(3, random_state=0).fit(X)
    found = PosteriorClustering(2, FrozenEstimator(ssl), n_draws=10, random_state=0).fit(X)
    assert found.representation_.estimator is ssl
    assert adjusted_rand_score(y, found.labels_) == 1


@pytest.mark.parametrize(
    ("settings_", "text"),
    [
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1 or"),
        ({"n_clusters": "many"}, "n_clusters must be a whole number"),
        ({"n_clusters": 500}, "n_samples=150 rows cannot form 500 clusters"),
        ({"n_draws": 0}, "n_draws must be"),
        ({"max_clusters": 0}, "max_clusters must be"),
    ],
)
def test_bad_parameters_get_a_sentence(settings_: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        PosteriorClustering(**settings_).fit(blobs(2)[0])


def test_a_representation_without_draws_gets_a_sentence() -> None:
    with pytest.raises(TypeError, match="KMeans has no draw_functions"):
        PosteriorClustering(2, KMeans()).fit(blobs(2)[0])


# Matching


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(0, 1000))
def test_matching_is_the_best_of_all_permutations(n_clusters: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels, reference = rng.integers(n_clusters, size=(2, 12))
    best = max(sum(np.array(numbers)[labels] == reference) for numbers in permutations(range(n_clusters)))
    assert (aligned(labels, reference) == reference).sum() == best


def test_matching_takes_probabilities_too() -> None:
    proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]])
    np.testing.assert_array_equal(aligned([1, 1, 0], proba), [0, 0, 1])
    with pytest.raises(ValueError, match="clusters of 2 rows, and a reference of 3"):
        aligned([0, 1], [0, 1, 0])


def test_agreement_is_the_rand_index() -> None:
    labels = np.random.default_rng(0).integers(3, size=(4, 30))
    expected = [[rand_score(one, other) for other in labels] for one in labels]
    np.testing.assert_allclose(agreement(labels), expected)


def test_consensus_of_renumbered_clusterings_is_certain() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=50)
    many = np.array([rng.permutation(4)[labels] for _ in range(7)])
    proba, numbers = consensus(many, 4, many[3])
    assert set(np.unique(proba)) <= {0.0, 1.0} or np.allclose(proba, proba.round())
    np.testing.assert_array_equal(proba.argmax(axis=1), many[3])
    np.testing.assert_array_equal(np.array([number[own] for number, own in zip(numbers, many, strict=True)]), np.tile(many[3], (7, 1)))


# K-means


def test_grown_k_means_ends_about_as_low_as_the_best_of_many_starts() -> None:
    for seed in range(5):
        Z, _ = make_blobs(200, 4, centers=6, cluster_std=2.0, random_state=seed)
        mine = grown(Z[None], 6)[-1].dispersion[0] * len(Z)
        assert mine <= 1.05 * KMeans(6, n_init=20, random_state=0).fit(Z).inertia_


def test_refinement_ends_where_lloyd_s_algorithm_of_scikit_learn_does() -> None:
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((3, 80, 2))
    starts = rng.integers(4, size=(3, 80))
    found = refined(draws, starts, 4)
    for Z, start, labels, dispersion in zip(draws, starts, found.labels, found.dispersion, strict=True):
        centers = np.array([Z[start == k].mean(axis=0) for k in range(4)])
        rival = KMeans(4, init=centers, n_init=1, tol=0, max_iter=1000, algorithm="lloyd").fit(Z)
        np.testing.assert_array_equal(labels, rival.labels_)
        assert dispersion * len(Z) == pytest.approx(rival.inertia_)


def test_nearest_centers_by_brute_force() -> None:
    rng = np.random.default_rng(0)
    draws, centers = rng.standard_normal((2, 10, 3)), rng.standard_normal((2, 4, 3))
    labels, distances = nearest(draws, centers)
    brute = ((draws[:, :, None] - centers[:, None]) ** 2).sum(axis=3)
    np.testing.assert_array_equal(labels, brute.argmin(axis=2))
    np.testing.assert_allclose(distances, brute.min(axis=2))


def test_clouds_have_the_variances_of_the_draws() -> None:
    draws = np.random.default_rng(0).standard_normal((20, 400, 2)) @ np.array([[2.0, 1.0], [0.0, 0.5]])
    found = np.sort(clouds_like(draws, 0).var(axis=(0, 1)))
    np.testing.assert_allclose(found, np.linalg.eigvalsh(np.cov(draws.reshape(-1, 2).T)), rtol=0.1)
    assert are_one_cloud(clouds_like(draws, 1), 0).mean() > 0.6
