"""Pools of representations: what they are made of, how labels weigh them, and what must not matter."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import entr, softmax
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_diabetes
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor, RepresentationPool
from gpssl._runtime import POOL_INDUCING, POOL_TOLERANCE
from gpssl.downstream import BayesianLinearRegression, BayesianLogisticRegression, Member, SoftmaxGP
from gpssl.downstream._distributions import NumberDistribution
from gpssl.downstream._weighting import draw_weights, effective_number
from gpssl.kernels import NeighborRBF, StandardizedKernel

Array = NDArray[np.float64]
Flowers = tuple[Array, NDArray[np.intp]]

SMALL = (
    Member("columns", StandardizedKernel("linear")),
    Member("kernel", StandardizedKernel()),
    Member("learned", GPSSL(2, kernel=StandardizedKernel()), "kernel"),
    Member("draws", GPSSL(2, kernel=StandardizedKernel()), "draws"),
)


def pool(*members: Any, **params: Any) -> RepresentationPool:
    return RepresentationPool(list(members), **params)


def shares(model: Any) -> dict[str, float]:
    return {member.name: member.share for member in model.members_}


@pytest.fixture(scope="module")
def sugar() -> tuple[Array, Array]:
    """All rows of diabetes, and 80 targets."""
    X, y = load_diabetes(return_X_y=True)
    return X, np.where(np.random.default_rng(0).permutation(len(y)) < 80, y, np.nan)


@pytest.fixture(scope="module")
def fitted(flowers: Flowers) -> MarginalizedClassifier:
    return MarginalizedClassifier(pool(*SMALL), n_draws=10, random_state=0).fit(*flowers)


class Fails(RBF):
    """A kernel that does not like rows."""

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        raise ValueError("These rows are not to my taste.")


class HalfNoise(BaseEstimator):
    """A representation whose even draws are the first column, and whose odd ones have nothing to do with the rows."""

    def fit(self, X: Array, y: Any = None) -> HalfNoise:
        self.n_features_in_ = X.shape[1]
        return self

    def draw_functions(self, n_draws: int, random_state: Any = None) -> Any:
        def evaluate(X: Array) -> Array:
            noise = np.sin(1e6 * X.sum(axis=1, keepdims=True))
            return np.stack([X[:, :1] if s % 2 == 0 else np.sin(1e3 * (s + 1) * noise) for s in range(n_draws)])

        return evaluate


# One member is that member


def test_equal_weights_of_one_member_s_draws_are_the_plain_average_to_the_last_digit(flowers: Flowers) -> None:
    X, few = flowers
    plain = MarginalizedClassifier(GPSSL(3), weighting="equal", random_state=0).fit(X, few)
    pooled = MarginalizedClassifier(pool(("draws", GPSSL(3), "draws")), power=0, random_state=0).fit(X, few)
    assert len(pooled.draw_weights_) == 100
    np.testing.assert_array_equal(pooled.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_array_equal(pooled.predict_proba_std(X), plain.predict_proba_std(X))
    np.testing.assert_array_equal(pooled.predict_proba_draws(X), plain.predict_proba_draws(X))
    for one, other in zip(pooled.predict_uncertainty(X), plain.predict_uncertainty(X), strict=True):
        np.testing.assert_array_equal(one, other)


def test_without_a_seed_of_its_own_the_model_draws_with_the_representation_s(flowers: Flowers) -> None:
    X, few = flowers
    plain = MarginalizedClassifier(GPSSL(2, random_state=3), n_draws=5).fit(X, few)
    pooled = MarginalizedClassifier(pool(("draws", GPSSL(2)), random_state=3), n_draws=5).fit(X, few)
    np.testing.assert_allclose(pooled.predict_proba(X), plain.predict_proba(X), rtol=1e-12)


@pytest.mark.parametrize("power", [0.0, 0.75])
def test_one_member_s_draws_are_the_same_with_and_without_a_pool_for_numbers(sugar: tuple[Array, Array], power: float) -> None:
    X, y = sugar
    weighting: Any = "equal" if power == 0 else "evidence"
    plain = MarginalizedRegressor(GPSSL(3), weighting=weighting, power=power, random_state=0).fit(X, y)
    pooled = MarginalizedRegressor(pool(("draws", GPSSL(3))), power=power, random_state=0).fit(X, y)
    rounding = 0.0 if power == 0 else 1e-12  # of weights that are divided by their sum
    np.testing.assert_allclose(pooled.predict(X), plain.predict(X), rtol=rounding, atol=0)
    np.testing.assert_allclose(pooled.predict_std(X), plain.predict_std(X), rtol=rounding, atol=0)
    np.testing.assert_allclose(pooled.predict_interval(X[:50], 0.8), plain.predict_interval(X[:50], 0.8), rtol=rounding, atol=0)


def test_one_deterministic_member_is_its_head(flowers: Flowers) -> None:
    X, few = flowers
    labeled = few >= 0
    model = MarginalizedClassifier(pool(("kernel", StandardizedKernel())), random_state=0).fit(X, few)
    features = GPSSL(1, kernel=StandardizedKernel(), **POOL_SETTINGS, random_state=model.representation_.random_state).fit(X)
    phi = features.features_.project(X, features._find_spectrum().basis)
    head = SoftmaxGP(random_state=0).fit(phi[labeled], few[labeled])
    np.testing.assert_allclose(model.predict_proba(X), head.predict_proba(phi), atol=1e-12)
    assert shares(model) == {"kernel": 1.0}
    assert model.members_[0].log_evidence == pytest.approx(head.log_evidence_, abs=1e-8)
    assert model.n_effective_draws_ == 1.0


POOL_SETTINGS: dict[str, Any] = {"residual_tolerance": POOL_TOLERANCE, "max_inducing": POOL_INDUCING}


@pytest.mark.parametrize("head", [None, LogisticRegression(), SoftmaxGP(random_state=0)])
def test_a_transformer_is_a_member_with_one_representation(flowers: Flowers, head: Any) -> None:
    X, few = flowers
    labeled = few >= 0
    model = MarginalizedClassifier(pool(("components", PCA(2))), head, random_state=0).fit(X, few)
    Z = PCA(2).fit(X).transform(X)
    alone = clone(SoftmaxGP() if head is None else head).fit(Z[labeled], few[labeled])
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(Z), atol=1e-12)


def test_a_transformer_of_numbers_is_bayesian_linear_regression(sugar: tuple[Array, Array]) -> None:
    X, y = sugar
    labeled = ~np.isnan(y)
    model = MarginalizedRegressor(pool(("components", PCA(4))), random_state=0).fit(X, y)
    Z = PCA(4).fit(X).transform(X)
    head = BayesianLinearRegression().fit(Z[labeled], y[labeled])
    mean, std = head.predict_normal(Z)
    np.testing.assert_allclose(model.predict(X), mean, rtol=1e-10)
    np.testing.assert_allclose(model.predict_std(X), std, rtol=1e-10)


def test_without_draws_a_member_with_draws_is_its_mean(flowers: Flowers) -> None:
    X, few = flowers
    head = BayesianLogisticRegression()
    plain = MarginalizedClassifier(GPSSL(3), head, n_draws=None, random_state=0).fit(X, few)
    pooled = MarginalizedClassifier(pool(("mean", GPSSL(3))), head, n_draws=None, random_state=0).fit(X, few)
    np.testing.assert_allclose(pooled.predict_proba(X), plain.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("form", ["kernel", "draws"])
def test_a_fitted_member_is_used_as_it_is(sugar: tuple[Array, Array], form: Any) -> None:
    """With more inducing points than features that a regressor looks at, these are the same ones."""
    X, y = sugar
    ssl = GPSSL(3, random_state=5)
    frozen = FrozenEstimator(ssl.fit(X))
    assert len(ssl.inducing_points_) > 64
    one, other = (MarginalizedRegressor(pool(("one", given, form)), n_draws=5, random_state=0).fit(X, y) for given in (clone(ssl), frozen))
    np.testing.assert_allclose(other.predict(X), one.predict(X), rtol=1e-6)
    assert other.representation_.fitted_[0].names == ["one"]


# Weights


def test_weights_are_prior_times_a_power_of_the_likelihood() -> None:
    evidence = [np.array([-3.0, -1.0]), np.array([-2.0])]
    one, two = draw_weights(evidence, [1.0, 3.0], 0.5)
    expected = np.array([0.5 * np.exp(-1.5), 0.5 * np.exp(-0.5), 3 * np.exp(-1.0)])
    np.testing.assert_allclose(np.concatenate([one, two]), expected / expected.sum())
    tiny = draw_weights([np.array([-1e5, -1e5 - 1])], [1.0], 1.0)[0]
    np.testing.assert_allclose(tiny, softmax([0, -1]))
    assert effective_number(np.full(7, 1e-200)) == pytest.approx(7)
    assert effective_number(np.array([1.0, 0.0])) == 1.0


def test_shares_sum_to_one_and_follow_from_evidence_and_draws(fitted: MarginalizedClassifier) -> None:
    weights = fitted.draw_weights_
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert sum(shares(fitted).values()) == pytest.approx(1.0, abs=1e-12)
    assert [member.name for member in fitted.members_] == ["columns", "kernel", "learned", "draws"]
    assert fitted.n_effective_draws_ == pytest.approx(1 / (weights**2).sum())
    single = [member for member in fitted.members_ if member.name != "draws"]
    expected = softmax([fitted.power * member.log_evidence for member in single])
    actual = np.array([member.share for member in single])
    np.testing.assert_allclose(actual / actual.sum(), expected, atol=1e-10)
    drawn = fitted.members_[-1]
    assert 1 <= drawn.effective_draws <= 10
    assert [member.effective_draws for member in single] == [1.0] * 3
    assert len(pd.DataFrame(fitted.members_).columns) == 4


def test_members_with_equal_evidence_share_equally_and_prior_weights_multiply(flowers: Flowers) -> None:
    def fit(weight: float) -> dict[str, float]:
        members = pool(("one", StandardizedKernel(), None, weight), ("other", StandardizedKernel()))
        return shares(MarginalizedClassifier(members, random_state=0).fit(*flowers))

    assert fit(1.0) == pytest.approx({"one": 0.5, "other": 0.5})
    assert fit(3.0) == pytest.approx({"one": 0.75, "other": 0.25})
    assert fit(0.0) == pytest.approx({"other": 1.0})


def test_noise_gets_next_to_nothing() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(150) % 2
    X = np.column_stack([rng.normal(size=(150, 2)) + 2 * y[:, None], rng.normal(size=(150, 2))])
    few = np.where(np.arange(150) < 100, y, -1)

    class Columns(BaseEstimator):
        def __init__(self, first: int = 0) -> None:
            self.first = first

        def fit(self, X: Array, y: Any = None) -> Columns:
            self.n_features_in_ = X.shape[1]
            return self

        def transform(self, X: Array) -> Array:
            return X[:, self.first : self.first + 2]

    model = MarginalizedClassifier(pool(("signal", Columns(0)), ("noise", Columns(2))), random_state=0).fit(X, few)
    assert shares(model)["noise"] < 0.01
    targets = np.where(np.arange(150) < 100, X[:, 0] + 0.1 * rng.normal(size=150), np.nan)
    regressor = MarginalizedRegressor(pool(("signal", Columns(0)), ("noise", Columns(2))), random_state=0).fit(X, targets)
    assert shares(regressor)["noise"] < 0.01
    equal = MarginalizedClassifier(pool(("signal", Columns(0)), ("noise", Columns(2))), weighting="equal", random_state=0).fit(X, few)
    assert shares(equal) == pytest.approx({"signal": 0.5, "noise": 0.5})
    assert np.isnan([member.log_evidence for member in equal.members_]).all()


@pytest.mark.parametrize("head", [LogisticRegression(), KNeighborsClassifier(3), GaussianNB()])
def test_heads_without_evidence_are_weighed_by_labels_held_out(head: Any) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.column_stack([3 * y + rng.normal(size=60), rng.normal(size=60)])
    model = MarginalizedClassifier(HalfNoise(), head, n_draws=6, random_state=0).fit(X, y)
    assert model.draw_weights_[::2].sum() > 0.95
    assert np.isfinite(model.members_[0].log_evidence)
    equal = MarginalizedClassifier(HalfNoise(), head, n_draws=6, weighting="equal", random_state=0).fit(X, y)
    np.testing.assert_allclose(equal.draw_weights_, 1 / 6, rtol=1e-15)
    assert np.isnan(equal.members_[0].log_evidence)


@pytest.mark.parametrize("head", [Ridge(), KNeighborsRegressor(3)])
def test_regressors_without_evidence_are_weighed_by_targets_held_out(head: Any) -> None:
    """The noise is one number for all draws, so that draws differ by their held-out residuals."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = MarginalizedRegressor(HalfNoise(), head, n_draws=6, random_state=0).fit(X, 3 * X[:, 0] + 0.1 * rng.normal(size=60))
    assert model.draw_weights_[::2].sum() > 0.95


def test_labels_too_few_to_hold_out_weigh_nothing(flowers: Flowers) -> None:
    X, few = flowers
    two = np.full(len(few), -1)
    two[[np.flatnonzero(few == 0)[0], np.flatnonzero(few == 1)[0]]] = 0, 1
    model = MarginalizedClassifier(pool(("one", PCA(1)), ("two", PCA(2))), LogisticRegression(), random_state=0).fit(X, two)
    assert shares(model) == pytest.approx({"one": 0.5, "two": 0.5})


# What must not matter


def test_the_order_of_members_does_not_matter(flowers: Flowers, fitted: MarginalizedClassifier) -> None:
    X, few = flowers
    other = MarginalizedClassifier(pool(*SMALL[::-1]), n_draws=10, random_state=0).fit(X, few)
    assert shares(other) == pytest.approx(shares(fitted), rel=1e-6)
    np.testing.assert_allclose(other.predict_proba(X), fitted.predict_proba(X), atol=1e-10)


def test_the_order_of_rows_does_not_matter(flowers: Flowers, fitted: MarginalizedClassifier) -> None:
    X, few = flowers
    order = np.random.default_rng(0).permutation(len(X))
    other = MarginalizedClassifier(pool(*SMALL), n_draws=10, random_state=0).fit(X[order], few[order])
    assert shares(other) == pytest.approx(shares(fitted), rel=1e-4)
    np.testing.assert_allclose(other.predict_proba(X), fitted.predict_proba(X), atol=1e-5)


def test_the_number_of_threads_does_not_matter(flowers: Flowers) -> None:
    def fit() -> MarginalizedClassifier:
        return MarginalizedClassifier(pool(*SMALL), n_draws=10, random_state=0).fit(*flowers)

    with threadpool_limits(1):
        one = fit()
        alone = one.predict_proba(flowers[0])
    with threadpool_limits(2):
        two = fit()
        together = two.predict_proba(flowers[0])
    assert shares(one) == pytest.approx(shares(two), rel=1e-8)
    np.testing.assert_allclose(alone, together, atol=1e-10)


def test_a_prediction_depends_on_its_row_alone(flowers: Flowers, fitted: MarginalizedClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = flowers[0] + np.random.default_rng(0).normal(size=flowers[0].shape)
    together = fitted.predict_proba(rows)
    np.testing.assert_allclose(np.vstack([fitted.predict_proba(rows[[i]]) for i in (3, 7, 1)]), together[[3, 7, 1]], atol=1e-12)
    np.testing.assert_allclose(fitted.predict_proba(rows[::-1]), together[::-1], atol=1e-12)
    monkeypatch.setattr("gpssl.downstream._marginal.PREDICTION_ROWS", 7)
    np.testing.assert_allclose(fitted.predict_proba(rows), together, atol=1e-12)


@pytest.mark.parametrize("kind", [MarginalizedClassifier, MarginalizedRegressor])
def test_weight_two_is_the_row_twice_and_weight_zero_is_no_row(flowers: Flowers, kind: Any) -> None:
    X, few = flowers
    y: Any = few if kind is MarginalizedClassifier else np.where(few < 0, np.nan, X[:, 0] + np.random.default_rng(0).normal(size=len(X)))
    weight = np.arange(len(X)) % 3
    one = kind(pool(*SMALL[:3]), random_state=0).fit(X, y, sample_weight=weight)
    other = kind(pool(*SMALL[:3]), random_state=0).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert shares(one) == pytest.approx(shares(other), rel=1e-4)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-5)


def test_weights_count_as_rows_in_the_default_pool(flowers: Flowers) -> None:
    X = flowers[0]
    weight = np.arange(len(X)) % 3
    weighted = RepresentationPool(random_state=0).fit(X, sample_weight=weight)
    repeated = RepresentationPool(random_state=0).fit(np.repeat(X, weight, axis=0))
    for one, other in zip(weighted.fitted_, repeated.fitted_, strict=True):
        assert one.names == other.names
        np.testing.assert_allclose(one.roots, other.roots, rtol=1e-3, atol=1e-6)  # type: ignore[union-attr]


def test_one_seed_makes_all_reproducible_and_members_keep_their_own(flowers: Flowers) -> None:
    X, few = flowers

    def proba(seed: int, own: int | None = None) -> Array:
        members = pool(("draws", GPSSL(2, random_state=own), "draws"))
        return MarginalizedClassifier(members, n_draws=3, random_state=seed).fit(X, few).predict_proba(X)

    np.testing.assert_array_equal(proba(0), proba(0))
    assert not np.array_equal(proba(0), proba(1))
    given = GPSSL(2, random_state=7)
    pool(("draws", given)).fit(X)
    assert given.random_state == 7
    assert not hasattr(given, "moments_")


def test_memmap_and_dask_give_the_same_predictions(flowers: Flowers, tmp_path: Path) -> None:
    X, few = flowers
    labeled = few >= 0
    np.save(tmp_path / "rows.npy", X)
    sources: list[Any] = [X, np.load(tmp_path / "rows.npy", mmap_mode="r")]
    try:
        import dask.array as da

        sources.append(da.from_array(X, chunks=(37, 4)))
    except ImportError:
        pass
    members = (("prior", NeighborRBF(5)), ("learned", GPSSL(2), "kernel"), ("draws", GPSSL(2)))
    probas = []
    for source in sources:
        frozen = FrozenEstimator(pool(*members, random_state=0).fit(source))
        probas.append(MarginalizedClassifier(frozen, n_draws=5, random_state=0).fit(X[labeled], few[labeled]).predict_proba(X))
    for other in probas[1:]:
        np.testing.assert_allclose(other, probas[0], atol=1e-8)


def test_the_default_pool_reads_memmap_dask_and_files(flowers: Flowers, tmp_path: Path) -> None:
    X, few = flowers
    labeled = few >= 0
    pd.DataFrame(X, columns=list("abcd")).to_parquet(tmp_path / "rows.parquet")
    np.save(tmp_path / "rows.npy", X)
    frame = pd.DataFrame(X, columns=list("abcd"))
    for source, rows in ((tmp_path / "rows.parquet", frame), (np.load(tmp_path / "rows.npy", mmap_mode="r"), X)):
        fitted_pool = RepresentationPool(random_state=0).fit(source)
        assert fitted_pool.left_out_ == {}
        model = MarginalizedClassifier(FrozenEstimator(fitted_pool), random_state=0).fit(rows[labeled], few[labeled])
        assert model.score(rows, few) > 0.9
    da = pytest.importorskip("dask.array")
    assert RepresentationPool(random_state=0).fit(da.from_array(X, chunks=(50, 4))).left_out_ == {}


def test_sparse_rows_are_predicted_as_dense_ones(flowers: Flowers) -> None:
    X, few = flowers
    model = MarginalizedClassifier(random_state=0).fit(csr_array(X), few)
    np.testing.assert_allclose(model.predict_proba(csr_array(X)), model.predict_proba(X), atol=1e-12)
    assert model.score(csr_array(X), few) > 0.9
    drawn = MarginalizedClassifier(pool(("draws", GPSSL(2))), n_draws=3, random_state=0)
    np.testing.assert_allclose(
        drawn.fit(csr_array(X), few).predict_proba(csr_array(X)), clone(drawn).fit(X, few).predict_proba(X), atol=1e-8
    )


def test_a_model_survives_pickling(flowers: Flowers, fitted: MarginalizedClassifier) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(flowers[0]), fitted.predict_proba(flowers[0]))


# Members that fail


@pytest.mark.parametrize("place", [0, 1])
def test_members_that_fail_are_left_out_wherever_they_stand(flowers: Flowers, place: int) -> None:
    X, few = flowers
    gaps = X.copy()
    gaps[0, 0] = np.nan
    bad = {
        "kernel that raises": (Fails(), X),
        "kernel that takes no gaps": (RBF(), gaps),
        "learner whose kernel raises": (GPSSL(2, kernel=Fails()), X),
        "transformer that takes no gaps": (PCA(2), gaps),
        "transformer with too many components": (PCA(50), X),
    }
    for name, (representation, rows) in bad.items():
        members: list[Any] = [("good", StandardizedKernel())]
        members.insert(place, (name, representation))
        model = MarginalizedClassifier(RepresentationPool(members), random_state=0).fit(rows, few)
        assert shares(model) == {"good": 1.0}
        assert list(model.representation_.left_out_) == [name]
        assert len(model.representation_.left_out_[name]) > 10
        alone = MarginalizedClassifier(pool(("good", StandardizedKernel())), random_state=0).fit(rows, few)
        np.testing.assert_array_equal(model.predict_proba(rows), alone.predict_proba(rows))


def test_kernels_that_overflow_are_left_out(flowers: Flowers) -> None:
    X, few = flowers
    members = pool(("good", RBF()), ("huge", ConstantKernel(1e200, "fixed") * RBF()))
    with np.errstate(over="ignore", invalid="ignore"):
        model = MarginalizedClassifier(members, random_state=0).fit(X, few)
    assert shares(model) == {"good": 1.0}
    assert "overflow" in model.representation_.left_out_["huge"]


def test_if_all_fail_one_sentence_says_so_and_nothing_is_kept(flowers: Flowers) -> None:
    failing = pool(("bad", Fails()), ("worse", GPSSL(2, kernel=Fails())))
    with pytest.raises(ValueError, match=r"No member of the pool fits these rows. The first, 'bad': These rows are not to my taste."):
        failing.fit(flowers[0])
    assert not hasattr(failing, "fitted_")
    assert not [name for name in vars(failing) if name.startswith("_")]
    with pytest.raises(NotFittedError):
        failing.draw(1, 0)


def test_rows_that_are_wrong_get_their_own_sentence() -> None:
    with pytest.raises(ValueError, match="n_samples=1 rows; at least 2 are needed"):
        RepresentationPool().fit(np.ones((1, 3)))
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        RepresentationPool().fit(np.ones((5, 0)))
    with pytest.raises(ValueError, match="Complex data not supported"):
        RepresentationPool().fit(np.ones((5, 2), dtype=complex))


# Bad members, and other bad input


@pytest.mark.parametrize(
    ("members", "error", "sentence"),
    [
        ([], ValueError, "A pool needs a list of at least one member"),
        ("columns", ValueError, "A pool needs a list of at least one member"),
        ([RBF()], ValueError, "A member of a pool is"),
        ([("a", RBF()), ("a", RBF(2.0))], ValueError, "Two members of the pool are called 'a'"),
        ([("a", RBF(), None, -1.0)], ValueError, "The weight of the member 'a' must be"),
        ([("a", RBF(), None, 0.0), ("b", RBF(2.0), None, 0.0)], ValueError, "The prior weights of all members are zero"),
        ([("a", RBF(), "mean")], ValueError, "The form of the member 'a' must be"),
        ([("a", PCA(2), "draws")], TypeError, "The member 'a' has no draws: PCA has no draw_functions"),
        ([("a", PCA(2), "kernel")], TypeError, "The member 'a' has no posterior kernel: PCA has no kernel"),
        ([("a", LogisticRegression())], TypeError, "The member 'a' is LogisticRegression, which is no kernel"),
    ],
)
def test_bad_members_get_a_sentence(flowers: Flowers, members: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence) as caught:
        RepresentationPool(members).fit(flowers[0])
    assert "\n" not in str(caught.value)
    with pytest.raises(error, match=sentence):
        MarginalizedClassifier(RepresentationPool(members)).fit(*flowers)


@pytest.mark.parametrize(
    ("params", "error", "sentence"),
    [
        ({"power": -0.1}, ValueError, "power must be"),
        ({"power": float("nan")}, ValueError, "power must be"),
        ({"weighting": "votes"}, ValueError, 'weighting must be "evidence" or "equal", got \'votes\''),
        ({"head": SVC()}, TypeError, "The head SVC has no predict_proba"),
        ({"n_draws": 0}, ValueError, "n_draws must be"),
    ],
)
def test_bad_parameters_get_a_sentence(flowers: Flowers, params: dict[str, Any], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        MarginalizedClassifier(pool(*SMALL), **params).fit(*flowers)


def test_rows_of_another_width_get_a_sentence(fitted: MarginalizedClassifier) -> None:
    with pytest.raises(ValueError, match="3 features"):
        fitted.predict_proba(np.ones((2, 3)))


# Predictions


def test_predictions_and_uncertainty_are_weighted_averages(flowers: Flowers, fitted: MarginalizedClassifier) -> None:
    X = flowers[0]
    draws, weights = fitted.predict_proba_draws(X), fitted.draw_weights_
    assert len(draws) == len(weights)
    mean = np.tensordot(weights, draws, axes=1)
    np.testing.assert_allclose(fitted.predict_proba(X), mean, atol=1e-12)
    total, head, representation = fitted.predict_uncertainty(X)
    np.testing.assert_allclose(total, entr(mean).sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(head, weights @ entr(draws).sum(axis=2), atol=1e-12)
    np.testing.assert_allclose(total, head + representation, atol=1e-12)
    between = np.tensordot(weights, (draws - mean) ** 2, axes=1)
    assert (fitted.predict_proba_std(X) ** 2 >= between - 1e-12).all()


def test_numbers_are_weighted_mixtures_and_intervals_hold_what_they_say(sugar: tuple[Array, Array]) -> None:
    X, y = sugar
    model = MarginalizedRegressor(pool(*SMALL), n_draws=10, random_state=0).fit(X, y)
    (means, stds), weights = model.predict_draws(X[:20]), model.draw_weights_
    np.testing.assert_allclose(model.predict(X[:20]), weights @ means, rtol=1e-10)
    total, head, representation = model.predict_uncertainty(X[:20])
    np.testing.assert_allclose(head, weights @ stds**2, rtol=1e-10)
    np.testing.assert_allclose(representation, weights @ (means - weights @ means) ** 2, rtol=1e-8)
    np.testing.assert_allclose(total, head + representation, rtol=1e-12)
    rng = np.random.default_rng(0)
    component = rng.choice(len(weights), size=100_000, p=weights)
    samples = means[component] + stds[component] * rng.normal(size=(100_000, 20))
    low, high = model.predict_interval(X[:20], 0.8).T
    error = 4.5 * np.sqrt(0.1 * 0.9 / 100_000)
    np.testing.assert_allclose((samples < low).mean(axis=0), 0.1, atol=error)
    np.testing.assert_allclose((samples > high).mean(axis=0), 0.1, atol=error)


def test_intervals_of_very_unequal_weights_are_those_of_the_component_that_counts() -> None:
    means, stds = np.array([[0.0], [1e4]]), np.array([[1.0], [1.0]])
    found = NumberDistribution.of(means, stds, np.array([1 - 1e-9, 1e-9])).interval(0.9)
    np.testing.assert_allclose(found, [[-1.6448536, 1.6448536]], atol=1e-5)


def test_members_that_hardly_count_are_listed_but_not_evaluated(flowers: Flowers) -> None:
    X, few = flowers
    members = pool(("columns", StandardizedKernel("linear")), ("unlikely", StandardizedKernel(), None, 1e-9))
    model = MarginalizedClassifier(members, random_state=0).fit(X, few)
    assert shares(model)["unlikely"] < 1e-6
    assert isinstance(model.heads_, list)
    assert len(model.heads_) == len(model.draw_weights_) == 1
    assert model.draw_weights_.sum() == 1.0
    alone = MarginalizedClassifier(pool(("columns", StandardizedKernel("linear"))), random_state=0).fit(X, few)
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-12)


# Default pools


def test_the_default_pool_fits_a_table_of_any_kind() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    rows = pd.DataFrame({"size": rng.normal(size=80) + 2 * y, "color": np.where(y == rng.integers(2, size=80), "red", "blue")})
    rows.loc[::9, "size"] = np.nan
    rows.loc[::13, "color"] = None
    few = np.where(np.arange(80) < 30, y, -1)
    model = MarginalizedClassifier(random_state=0).fit(rows, few)
    assert model.representation_.left_out_ == {}
    assert len(model.members_) == len(RepresentationPool.for_rows(rows).members or [])
    assert model.score(rows, y) >= 0.8  # a gap in both columns tells nothing
    assert list(model.feature_names_in_) == ["size", "color"]
    new = pd.DataFrame({"size": [np.nan, 1e6], "color": ["green", None]})
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1.0, atol=1e-12)


def kinds() -> dict[str, list[Any]]:
    nx = pytest.importorskip("networkx")
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    return {
        "sequences": ["".join(rng.choice(list("AC" if label else "GT"), 12)) for label in y],
        "documents": [" ".join(rng.choice(["sun", "sea", "sand"] if label else ["tax", "loan", "debt"], 6)) for label in y],
        "graphs": [nx.cycle_graph(5 + i % 3) if label else nx.star_graph(5 + i % 3) for i, label in enumerate(y)],
    }


@pytest.mark.parametrize("kind", ["sequences", "documents", "graphs"])
def test_the_default_pool_fits_rows_of_other_kinds(kind: str) -> None:
    rows, y = kinds()[kind], np.arange(40) % 2
    few = np.where(np.arange(40) < 12, y, -1)
    model = MarginalizedClassifier(random_state=0).fit(rows, few)
    assert model.representation_.left_out_ == {}
    assert model.score(rows, y) > 0.9
    regressor = MarginalizedRegressor(random_state=0).fit(rows, np.where(few < 0, np.nan, few))
    assert np.corrcoef(regressor.predict(rows), y)[0, 1] > 0.8


def test_kernels_are_no_members_by_accident() -> None:
    """A kernel has no `transform`, and is a member all the same."""
    assert isinstance(RBF(), Kernel)
    assert not hasattr(RBF(), "transform")
    assert pool(("a", RBF())).fit(np.random.default_rng(0).normal(size=(20, 2))).fitted_[0].names == ["a"]


def test_labels_of_weight_zero_are_no_labels(flowers: Flowers) -> None:
    X, few = flowers
    with pytest.raises(ValueError, match="weight zero"):
        MarginalizedClassifier(pool(("columns", StandardizedKernel("linear")))).fit(X, few, np.where(few >= 0, 0.0, 1.0))


def test_texts_that_differ_in_most_rows_are_named_in_a_warning() -> None:
    """Numbers with units in a data frame are no numbers for an estimator, and would be lost without a word."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"dose": [f"{value:.3f} mg" for value in rng.normal(5, 1, 40)], "size": rng.normal(size=40)})
    with pytest.warns(UserWarning, match="'dose': most rows have a text of their own there") as found:
        RepresentationPool.for_rows(frame)
    assert "gpssl.data.open_table" in str(found[0].message)
    RepresentationPool.for_rows(frame.assign(dose=rng.choice(["low", "high"], 40)))


@pytest.mark.parametrize(
    ("n_classes", "n_labeled", "sees_all", "most"),
    [
        (2, 500, True, 64),
        (10, 150, True, 64),
        (10, 151, False, 64),
        (33, 100, True, 12),
        (60, 150, False, 6),
        (60, 60, True, 6),
        (200, 400, False, 4),
    ],
)
def test_many_classes_leave_heads_with_few_features(n_classes: int, n_labeled: int, sees_all: bool, most: int) -> None:
    """The work of a head grows with the cube of its weights, or with the classes and the cube of the labels."""
    model = MarginalizedClassifier()
    model.classes_ = np.arange(n_classes)
    assert model._sees_all_features(n_labeled) == sees_all
    assert model._most_features() == most
