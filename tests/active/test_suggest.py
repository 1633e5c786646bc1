"""Which rows are suggested: against a slow version of the rule, and in situations where the answer is plain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor, RepresentationPool
from gpssl.active import suggest
from gpssl.active._greedy import MOST_JUDGED, Nearest
from gpssl.active._representation import represent
from gpssl.kernels import StandardizedKernel

Array = NDArray[np.float64]


def _slow(Z: Array, weight: Array, is_open: NDArray[np.bool_], n: int) -> list[int]:
    """The rule as it is written: all distances, one row after the other."""
    near, chosen = [place for place in range(len(Z)) if not is_open[place]], list[int]()
    for _ in range(n):
        gains = {}
        for i in np.flatnonzero(is_open):
            if i not in chosen:
                gains[i] = sum(
                    weight[j] * max(0.0, min(np.linalg.norm(Z[j] - Z[c]) for c in [*near, *chosen]) - np.linalg.norm(Z[j] - Z[i]))
                    for j in np.flatnonzero(is_open)
                    if j not in chosen
                )
        chosen.append(int(max(gains, key=lambda place: gains[place])))
    return chosen


def _blobs(n_each: int = 30, seed: int = 0) -> tuple[Array, NDArray[np.intp]]:
    """Three groups, far from each other."""
    rng = np.random.default_rng(seed)
    centers = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    y = np.repeat(np.arange(3), n_each)
    return centers[y] + rng.normal(size=(3 * n_each, 2)), y


def test_choice_is_that_of_the_rule_as_it_is_written() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    y = np.where(np.arange(40) < 6, (X[:, 0] > 0).astype(int), -1)
    y[:2] = [0, 1]
    model = LogisticRegression().fit(X[:6], y[:6])
    found = suggest(model, X, 5, y=y, representation=X)
    proba = np.sort(model.predict_proba(X), axis=1)
    weight = 1 - (proba[:, -1] - proba[:, -2]) + 0.05
    assert found.places.tolist() == _slow(X, weight, y == -1, 5)
    assert found.n_candidates == 34


def test_group_without_a_label_is_asked_for_first() -> None:
    X, y = _blobs()
    few = np.where((np.arange(90) % 10 == 0) & (y < 2), y, -1)
    model = MarginalizedClassifier(random_state=0).fit(X, few)
    found = suggest(model, X, 3, y=few)
    assert y[found.places[0]] == 2
    assert found.rows[0].reason == "far from every labeled row: perhaps a class that nobody has labeled yet"


def test_without_labels_each_group_is_asked_for_and_outliers_are_not() -> None:
    X, y = _blobs()
    X = np.vstack([X, [[200.0, 200.0]]])
    found = suggest(None, X, 3, representation=X)
    assert sorted(y[found.places]) == [0, 1, 2]
    assert [row.predicted for row in found.rows] == [None] * 3
    assert all(row.reason == f"typical of {row.n_near} rows without a label" for row in found.rows)
    assert sum(row.n_near for row in found.rows) == 91


def test_batch_is_diverse_where_all_rows_are_alike_in_uncertainty() -> None:
    X, y = _blobs()
    model = LogisticRegression().fit(X, np.random.default_rng(0).integers(0, 2, len(X)))
    model.coef_[:] = 0.0
    found = suggest(model, X, 3, representation=X)
    assert sorted(y[found.places]) == [0, 1, 2]


def test_uncertain_rows_count_more_than_sure_ones() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-6, 0.5, 50), rng.normal(0, 0.5, 50), rng.normal(6, 0.5, 50)])[:, None]
    few = np.full(150, -1)
    few[[0, 149]] = [0, 1]
    model = LogisticRegression().fit(X[[0, 149]], [0, 1])
    found = suggest(model, X, 1, y=few, representation=X)
    assert 50 <= found.places[0] < 100
    assert found.rows[0].uncertainty == pytest.approx(1 - abs(2 * model.predict_proba(X[found.places])[0, 0] - 1))


@pytest.mark.parametrize("representation", ["array", "function", "estimator", "pool", "GPSSL"])
def test_any_representation_will_do(representation: str) -> None:
    X, y = _blobs()
    few = np.where(np.arange(90) % 10 == 0, y, -1)
    model = LogisticRegression().fit(X[few >= 0], few[few >= 0])
    made: dict[str, Any] = {
        "array": X,
        "function": lambda rows: np.tanh(rows),
        "estimator": PCA(2).fit(X),
        "pool": RepresentationPool([("similar", StandardizedKernel())]).fit(X),
        "GPSSL": GPSSL(2, random_state=0).fit(X),
    }
    places = suggest(model, X, 7, y=few, representation=made[representation]).places
    assert len(set(places.tolist())) == 7
    assert (few[places] == -1).all()


def test_labeled_rows_may_lie_elsewhere() -> None:
    X, y = _blobs()
    few = np.where(np.arange(90) % 10 == 0, y, -1)
    model = MarginalizedClassifier(random_state=0).fit(X, few)
    together = suggest(model, X, 5, y=few)
    apart = suggest(model, X[few == -1], 5, labeled=X[few >= 0])
    assert np.flatnonzero(few == -1)[apart.places].tolist() == together.places.tolist()


def test_distances_of_a_pool_are_those_of_its_members_as_far_as_they_are_believed() -> None:
    X, y = _blobs()
    few = np.where(np.arange(90) % 10 == 0, y, -1)
    pool = RepresentationPool([("similar", StandardizedKernel()), ("columns", StandardizedKernel("linear"))])
    model = MarginalizedClassifier(pool, random_state=0).fit(X, few)
    points, _ = represent(model, X)
    shares = {member.name: member.share for member in model.members_}
    columns = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = shares["columns"] * ((columns[0] - columns[1]) ** 2).sum() / columns.var(axis=0).sum()
    squared = ((points[0] - points[1]) ** 2).sum()
    own = model.functions_[[part.names[0] for part in model.functions_].index("similar")]
    features = next(iter(own(model.representation_.check(X))))[0]
    expected += shares["similar"] * ((features[0] - features[1]) ** 2).sum() / features.var(axis=0).sum()
    assert squared == pytest.approx(expected, rel=1e-3)


def test_numbers_are_chosen_by_their_standard_deviation() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (120, 1))
    targets = np.where(np.arange(120) < 20, np.sin(X[:, 0]), np.nan)
    X[:20] = np.sort(rng.uniform(-3, 0, (20, 1)), axis=0)
    targets[:20] = np.sin(X[:20, 0])
    for model in (MarginalizedRegressor(random_state=0).fit(X, targets), GaussianProcessRegressor(alpha=1e-4).fit(X[:20], targets[:20])):
        own = isinstance(model, MarginalizedRegressor)
        found = suggest(model, X, 4, y=targets, representation=None if own else X)
        assert (X[found.places, 0] > 0).all()
        assert "±" in found.rows[0].reason
        assert found.rows[0].probabilities is None


def test_same_seed_gives_the_same_rows_of_many_and_all_rows_may_be_asked_for() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3 * MOST_JUDGED, 2))
    first, again, other = (suggest(None, X, 450, representation=X, random_state=seed).places for seed in (0, 0, 1))
    assert first.tolist() == again.tolist() != other.tolist()
    assert len(set(first.tolist())) == 450
    covered = np.sqrt(Nearest.of(X, X[first]).squared).mean()
    by_chance = np.sqrt(Nearest.of(X, X[rng.permutation(len(X))[:450]]).squared).mean()
    assert covered < 0.9 * by_chance


def test_rows_that_are_all_alike_are_taken_in_order() -> None:
    X = np.ones((6, 2))
    found = suggest(None, X, 4, representation=X)
    assert found.places.tolist() == [0, 1, 2, 3]


def test_labels_of_all_kinds_say_which_rows_are_open() -> None:
    X = np.arange(6.0)[:, None]
    for y in (
        [0, 1, -1, -1, -1, -1],
        ["a", "b", None, None, None, None],
        [0.5, 1.5, np.nan, np.nan, np.nan, np.nan],
        [0, 1, None, -1, None, -1],
    ):
        found = suggest(None, X, 2, y=y, representation=X)
        assert found.n_candidates == 4
        assert (found.places >= 2).all()


# Bad input


def test_more_rows_than_there_are_get_a_warning() -> None:
    with pytest.warns(UserWarning, match="Only 2 rows have no label: all of them are suggested"):
        found = suggest(None, np.arange(4.0)[:, None], 20, y=[0, 1, -1, -1], representation=np.arange(4.0))
    assert sorted(found.places.tolist()) == [2, 3]


def test_bad_input_is_a_sentence() -> None:
    X = np.random.default_rng(0).normal(size=(10, 2))
    y = np.arange(10) % 2
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="All rows have a label already"):
        suggest(model, X, 2, y=y, representation=X)
    with pytest.raises(ValueError, match="LogisticRegression has no representation of its own"):
        suggest(model, X, 2)
    with pytest.raises(ValueError, match="Without a model there is nothing to measure distances in"):
        suggest(None, X, 2)
    for without in (LinearSVC().fit(X, y), Ridge().fit(X, y)):
        with pytest.raises(TypeError, match="has neither predict_proba nor a predict that takes return_std"):
            suggest(without, X, 2, representation=X)
    with pytest.raises(ValueError, match="a row for each of the 10 rows is needed"):
        suggest(model, X, 2, representation=X[:5])
    with pytest.raises(ValueError, match="missing or infinite"):
        suggest(model, X, 2, representation=np.full((10, 1), np.nan))
    with pytest.raises(ValueError, match="An array has no points for the rows in labeled"):
        suggest(model, X, 2, representation=X, labeled=X)
    with pytest.raises(ValueError, match="n must be a whole number"):
        suggest(model, X, 0, representation=X)
