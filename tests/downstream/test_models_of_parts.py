"""Models on parts of the rows, which share features and starts: each against a clone that is fitted to its part alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold

from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor, RepresentationPool
from gpssl.downstream import SoftmaxGP
from gpssl.downstream._softmax_gp import _Newton, fit_softmax_gps
from representations import SMALL_POOLS

Array = NDArray[np.float64]

TABLES = {"two classes": load_breast_cancer, "three classes": load_wine}


@pytest.fixture
def exact_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modes to rounding: by default Newton's method stops within a millionth of a posterior standard deviation, wherever it began."""
    monkeypatch.setattr("gpssl.downstream._softmax_gp.TOLERANCE", 1e-14)


def parts_of(n_rows: int, n_parts: int = 4) -> list[NDArray[np.intp]]:
    return [training for training, _ in KFold(n_parts, shuffle=True, random_state=0).split(np.zeros(n_rows))]


def frozen(pool: RepresentationPool, X: Array) -> FrozenEstimator:
    return FrozenEstimator(clone(pool).set_params(random_state=0).fit(X))


@pytest.mark.usefixtures("exact_modes")
@pytest.mark.parametrize("pool", SMALL_POOLS, ids=["kernels", "draws"])
@pytest.mark.parametrize("table", TABLES)
def test_a_classifier_of_a_part_is_the_clone_that_is_fitted_to_it(table: str, pool: RepresentationPool) -> None:
    X, y = TABLES[table](return_X_y=True)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0) / 3, y
    labeled = np.arange(0, len(y), len(y) // 60)
    model = MarginalizedClassifier(frozen(pool, X), n_draws=5, random_state=0)
    parts = parts_of(len(labeled))
    models = list(model.fit_parts(X[labeled], y[labeled], parts))
    assert len(models) == len(parts)
    assert not hasattr(model, "heads_")
    for part, found in zip(parts, models, strict=True):
        alone = clone(model).fit(X[labeled][part], y[labeled][part])
        np.testing.assert_allclose(found.predict_proba(X), alone.predict_proba(X), atol=1e-8)
        np.testing.assert_allclose(found.predict_proba_std(X), alone.predict_proba_std(X), atol=1e-8)
        for own, expected in zip(found.members_, alone.members_, strict=True):
            assert own.name == expected.name
            assert own.log_evidence == pytest.approx(expected.log_evidence, abs=1e-7)


@pytest.mark.usefixtures("exact_modes")
def test_a_part_without_one_of_the_classes_begins_anew() -> None:
    X, y = load_wine(return_X_y=True)
    model = MarginalizedClassifier(frozen(SMALL_POOLS[0], X), random_state=0)
    parts = [np.arange(0, 178, 3), np.flatnonzero(y < 2)[::3], np.arange(1, 178, 3)]
    for part, found in zip(parts, model.fit_parts(X, y, parts), strict=True):
        assert found.classes_.tolist() == np.unique(y[part]).tolist()
        np.testing.assert_allclose(found.predict_proba(X), clone(model).fit(X[part], y[part]).predict_proba(X), atol=1e-8)


def test_with_the_usual_tolerance_parts_differ_by_less_than_anyone_sees() -> None:
    X, y = load_wine(return_X_y=True)
    model = MarginalizedClassifier(frozen(SMALL_POOLS[0], X), random_state=0)
    parts = parts_of(178)
    for part, found in zip(parts, model.fit_parts(X, y, parts), strict=True):
        np.testing.assert_allclose(found.predict_proba(X), clone(model).fit(X[part], y[part]).predict_proba(X), atol=2e-6)


@pytest.mark.parametrize("representation", [GPSSL(2, random_state=0), None])
def test_what_is_not_frozen_is_fitted_to_each_part(representation: Any) -> None:
    X, y = load_wine(return_X_y=True)
    X = X[:, :4] / X[:, :4].std(axis=0)
    model = MarginalizedClassifier(representation, n_draws=3, random_state=0)
    part = np.arange(0, 178, 4)
    (found,) = model.fit_parts(X, y, [part])
    np.testing.assert_array_equal(found.predict_proba(X), clone(model).fit(X[part], y[part]).predict_proba(X))


def test_a_regressor_of_a_part_is_the_clone_that_is_fitted_to_it() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = MarginalizedRegressor(frozen(SMALL_POOLS[0], X), random_state=0)
    parts = parts_of(100)
    for part, found in zip(parts, model.fit_parts(X[:100], y[:100], parts), strict=True):
        alone = clone(model).fit(X[:100][part], y[:100][part])
        np.testing.assert_allclose(found.predict(X), alone.predict(X), rtol=1e-8)
        np.testing.assert_allclose(found.predict_std(X), alone.predict_std(X), rtol=1e-8)


@pytest.mark.usefixtures("exact_modes")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e3])
def test_any_start_leads_to_the_same_mode(n_classes: int, size: float) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(40) % n_classes
    Z = rng.normal(size=(40, 3)) + y[:, None]
    C = np.stack([scale * Z @ Z.T + 1 for scale in (1.0, 30.0)])
    one_hot, weight = np.eye(n_classes)[:, y], np.ones(40)
    start = size * rng.normal(size=(2, 1 if n_classes == 2 else n_classes, 40))
    found, expected = fit_softmax_gps(C, one_hot, weight, start), fit_softmax_gps(C, one_hot, weight)
    assert found.converged.all()
    np.testing.assert_allclose(found.log_evidence, expected.log_evidence, atol=1e-8)
    np.testing.assert_allclose(found.latent, expected.latent, atol=1e-7)


def test_a_good_start_saves_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    n_steps = []
    step = _Newton._newton_point

    def counted(newton: _Newton, C: Array, f: Array) -> Array:
        n_steps.append(len(C))
        return step(newton, C, f)

    monkeypatch.setattr(_Newton, "_newton_point", counted)
    X, y = load_breast_cancer(return_X_y=True)
    X, y = (X[:100] - X[:100].mean(axis=0)) / X[:100].std(axis=0), y[:100]
    heads = SoftmaxGP().fit_draws(X[None], y)
    anew = sum(n_steps)
    n_steps.clear()
    part = np.arange(100) % 10 > 0
    assert heads.latent is not None
    SoftmaxGP().fit_draws(X[None, part], y[part], start=heads.latent[..., part])
    assert sum(n_steps) < 0.7 * anew


def test_what_heads_remember_is_what_they_would_compute_again() -> None:
    X, y = load_wine(return_X_y=True)
    X = X / X.std(axis=0)
    heads = SoftmaxGP().fit_draws(X[None, ::3], y[::3])
    proba = heads.predict_proba(X[None])
    remembered = vars(heads).pop("_curvatures")
    np.testing.assert_array_equal(heads.predict_proba(X[None]), proba)
    assert vars(heads)["_curvatures"].keys() == remembered.keys()
