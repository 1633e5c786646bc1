"""VICReg, SCARF and SimVAE: scikit-learn's contract, many networks at once against one at a time, and what is learned."""

from __future__ import annotations

import math
import pickle
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpssl import MarginalizedClassifier
from gpssl.baselines._joint_embedding import SCARF, VICReg
from gpssl.baselines._simvae import SimVAE
from representations import run_checks

Array = NDArray[np.float64]

MODELS = [VICReg, SCARF, SimVAE]


@cache
def cancer() -> tuple[Array, NDArray[np.int64]]:
    X, y = load_breast_cancer(return_X_y=True)
    return X, y


@cache
def fitted(model: type) -> Any:
    """With the defaults, on the first 400 rows."""
    return model(random_state=0).fit(cancer()[0][:400])


def some_rows(n_rows: int = 60, n_features: int = 4) -> Array:
    random = np.random.default_rng(0)
    return random.standard_normal((n_rows, n_features)) @ random.standard_normal((n_features, n_features)) + 3


def effective_dimensions(Z: Array) -> float:
    """(Σ λ)² / Σ λ² of the eigenvalues of the covariance: one for a line, J for a ball."""
    eigenvalues = np.linalg.eigvalsh(np.cov(Z.T))
    return float(eigenvalues.sum() ** 2 / (eigenvalues**2).sum())


# scikit-learn's contract


@pytest.mark.parametrize("model", MODELS)
def test_check_estimator_without_expected_failures(model: type) -> None:
    run_checks(model(max_iterations=5), {})


@pytest.mark.parametrize("model", MODELS)
def test_representations_have_a_shape_a_type_and_names(model: type) -> None:
    X = some_rows().astype(np.float32)
    estimator = model(3, max_iterations=3, random_state=0)
    Z = estimator.fit_transform(X)
    assert Z.shape == (60, 3)
    assert Z.dtype == np.float64
    assert list(estimator.get_feature_names_out()) == [f"{model.__name__.lower()}_{j}" for j in (1, 2, 3)]
    assert clone(estimator).get_params() == estimator.get_params()


@pytest.mark.parametrize(
    ("estimator", "changes"),
    [
        (
            VICReg(),
            {"hidden_units": 0, "expander_units": 1.5, "noise": -1, "variance_weight": -1, "warmup_iterations": -1, "warmup_rate": 0},
        ),
        (SCARF(), {"corruption": 0, "projection_units": 0, "similarity_temperature": 0, "learning_rate": 0, "batch_size": 1}),
        (SCARF(), {"corruption": 1.1, "hidden_units": True, "learning_rate": "fast"}),
        (SimVAE(), {"n_views": 1, "view_scale": 0, "reconstruction_scale": -1, "max_iterations": 0, "n_components": 0, "noise": None}),
    ],
)
def test_parameters_that_do_not_fit_are_named(estimator: Any, changes: dict[str, Any]) -> None:
    for name, value in changes.items():
        with pytest.raises(ValueError, match=f"{name} must be"):
            clone(estimator).set_params(**{name: value}).fit(some_rows())


@pytest.mark.parametrize("model", MODELS)
def test_without_torch_a_sentence_names_the_extra_and_prediction_still_works(model: type, monkeypatch: pytest.MonkeyPatch) -> None:
    X = some_rows()
    estimator = model(max_iterations=3, random_state=0).fit(X)
    expected = estimator.transform(X)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=rf'^{model.__name__} needs PyTorch: pip install "gpssl\[nn\]"\.$'):
        model().fit(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(estimator)).transform(X), expected)


def test_a_fit_that_fails_leaves_the_estimator_as_it_was() -> None:
    estimator = VICReg(max_iterations=3, random_state=0).fit(some_rows())
    expected = estimator.transform(some_rows())
    with pytest.raises(ValueError, match="noise must be"):
        estimator.set_params(noise=-1).fit(some_rows(n_features=2))
    np.testing.assert_array_equal(estimator.transform(some_rows()), expected)


def test_progress_is_reported_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    SCARF(max_iterations=3, verbose=True).fit(some_rows())
    assert "SCARF, 1 at once: 3 of 3 steps" in capsys.readouterr().err
    SCARF(max_iterations=3).fit(some_rows())
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("model", MODELS)
def test_units_origins_and_constant_columns_do_not_matter(model: type) -> None:
    X = some_rows()
    estimator = model(max_iterations=20, random_state=0)
    Z = estimator.fit_transform(X)
    np.testing.assert_allclose(clone(estimator).fit_transform(1024 * X - 7), Z, atol=1e-3)
    table = np.column_stack([X, np.full(len(X), 1e6 / 3)])
    assert np.isfinite(clone(estimator).fit_transform(table)).all()
    assert clone(estimator).fit_transform(table).std(axis=0).min() > 0.01


# Many networks at once, seeds, threads


GRIDS: dict[type, list[dict[str, Any]]] = {
    VICReg: [{"noise": 0.1}, {"learning_rate": 1e-2}, {"variance_weight": 50, "invariance_weight": 1}, {"warmup_rate": 1e-2}, {}],
    SCARF: [{"corruption": 0.3}, {"learning_rate": 1e-2}, {"similarity_temperature": 0.1}, {}],
    SimVAE: [{"noise": 0.1}, {"learning_rate": 1e-2}, {"view_scale": 1.0}, {"reconstruction_scale": 0.2}, {}],
}
OTHER_SHAPES = [{"n_components": 2}, {"hidden_units": 3}, {"max_iterations": 7}, {"batch_size": 50}, {"random_state": 5}]


@pytest.mark.parametrize("model", MODELS)
def test_a_grid_is_its_single_fits(model: type) -> None:
    X = some_rows(101, 7)
    base = model(max_iterations=60, batch_size=40, random_state=0)
    settings = GRIDS[model] + OTHER_SHAPES
    together = base.fit_grid(X, settings)
    assert not hasattr(base, "encoder_")
    for changes, estimator in zip(settings, together, strict=True):
        alone = clone(base).set_params(**changes)
        assert estimator.get_params() == alone.get_params()
        np.testing.assert_allclose(estimator.transform(X), alone.fit(X).transform(X), atol=1e-4)
        assert estimator.loss_ == pytest.approx(alone.loss_, rel=1e-3)
    plain = together[len(GRIDS[model]) - 1].transform(X)
    for estimator in together[: len(GRIDS[model]) - 1]:  # every setting does something
        assert np.abs(estimator.transform(X) - plain).max() > 1e-2
    assert base.fit_grid(X, []) == []


def test_without_a_seed_the_networks_of_a_grid_share_one() -> None:
    one, other = VICReg(max_iterations=5).fit_grid(some_rows(), [{}, {}])
    np.testing.assert_allclose(one.transform(some_rows()), other.transform(some_rows()), atol=1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_same_seed_same_answer_for_any_number_of_threads(model: type) -> None:
    X = np.random.default_rng(0).standard_normal((1000, 20))
    n_threads, generator = torch.get_num_threads(), torch.get_rng_state()
    answers = []
    try:
        for n in (1, 2):
            torch.set_num_threads(n)
            answers.append(model(max_iterations=20, random_state=0).fit_transform(X))
            assert torch.get_num_threads() == n
    finally:
        torch.set_num_threads(n_threads)
    np.testing.assert_array_equal(answers[0], answers[1])
    torch.testing.assert_close(torch.get_rng_state(), generator)
    assert np.all(model(max_iterations=20, random_state=1).fit_transform(X) != answers[0])


# What is learned


@pytest.mark.parametrize("model", MODELS)
def test_five_dimensions_tell_cancers_apart(model: type) -> None:
    """On rows that neither the representation nor the classifier has seen."""
    X, y = cancer()
    Z = fitted(model).transform(X)
    classifier = make_pipeline(StandardScaler(), LogisticRegression()).fit(Z[:400], y[:400])
    assert classifier.score(Z[400:], y[400:]) > 0.85


def test_vicreg_does_not_collapse_and_without_its_variance_term_it_does() -> None:
    X = cancer()[0][:400]
    model = fitted(VICReg)
    # The loss is at least c_V times the mean shortfall below one of the standard deviations of the expander's five outputs. Below a tenth
    # of c_V the shortfalls sum to less than one half: each of the five is above one half.
    assert model.loss_ < 0.1 * model.variance_weight
    assert model.transform(X).std(axis=0).min() > 0.5
    assert model.transform(X).var(axis=0).mean() == pytest.approx(1.0)
    collapsed = VICReg(variance_weight=0, random_state=0).fit(X)
    assert effective_dimensions(collapsed.transform(X)) < 1.5 < effective_dimensions(model.transform(X))


def test_without_noise_the_views_of_vicreg_are_the_same() -> None:
    one, other = VICReg(noise=0, max_iterations=50, random_state=0).fit_grid(
        some_rows(), [{"invariance_weight": 0}, {"invariance_weight": 1e3}]
    )
    np.testing.assert_allclose(one.transform(some_rows()), other.transform(some_rows()), atol=1e-5)


def test_more_weight_on_invariance_makes_vicreg_less_sensitive_to_noise() -> None:
    X = cancer()[0][:400]
    noisy = X + 0.25 * X.std(axis=0) * np.random.default_rng(0).standard_normal(X.shape)
    little, much = VICReg(learning_rate=5e-3, max_iterations=500, random_state=0).fit_grid(
        X, [{"invariance_weight": 0}, {"invariance_weight": 25}]
    )
    changes = [((m.transform(noisy) - m.transform(X)) ** 2).sum() / m.transform(X).var(axis=0).sum() for m in (little, much)]
    assert changes[1] < 0.7 * changes[0]


def test_the_warm_up_has_its_own_rate() -> None:
    X = some_rows()
    model = VICReg(warmup_iterations=10, random_state=0)
    for n_iterations, differ in ((10, False), (11, True)):
        slow, fast = model.set_params(max_iterations=n_iterations).fit_grid(X, [{"learning_rate": 1e-5}, {"learning_rate": 1e-1}])
        assert (np.abs(slow.transform(X) - fast.transform(X)).max() > 1e-3) == differ


def test_scarf_does_not_collapse_and_finds_rows_among_others() -> None:
    X = cancer()[0]
    model = fitted(SCARF)
    assert model.transform(X).std(axis=0).min() > 0.4
    assert effective_dimensions(model.transform(X)) > 2
    # All rows alike have loss log n; temperature one leaves it within 2 of that even for a perfect match.
    assert model.loss_ < math.log(128) - 0.4


def test_simvae_does_not_collapse_unless_reconstruction_does_not_matter() -> None:
    X = cancer()[0]
    model = fitted(SimVAE)
    assert model.transform(X[:400]).std(axis=0).min() > 0.5
    assert model.std(X[:400]).max() < 1.0
    collapsed = SimVAE(reconstruction_scale=100, random_state=0).fit(X[:400])
    assert collapsed.transform(X[:400]).std(axis=0).max() < 0.1
    # Nothing known of the rows: the best product of normals for the prior has the inverse of the diagonal of its precision as variance.
    precision = np.linalg.inv(0.3**2 * np.eye(2) + np.ones((2, 2)))
    np.testing.assert_allclose(collapsed.std(X[:400]).mean(axis=0), precision[0, 0] ** -0.5, rtol=0.03)


def test_closer_views_make_simvae_more_certain() -> None:
    near, far = SimVAE(max_iterations=300, random_state=0).fit_grid(cancer()[0], [{"view_scale": 0.1}, {"view_scale": 1.0}])
    assert near.std(cancer()[0]).mean() < 0.7 * far.std(cancer()[0]).mean()


def test_draws_of_simvae_are_functions_with_its_mean_and_standard_deviation() -> None:
    X, model = cancer()[0][:20], fitted(SimVAE)
    functions = model.draw_functions(20_000, random_state=1)
    values = functions(X)
    assert values.shape == (20_000, 20, 5)
    np.testing.assert_allclose(functions(X[5:8]), values[:, 5:8], rtol=1e-10, atol=1e-10)
    std = model.std(X)
    assert np.abs((values.mean(axis=0) - model.transform(X)) / std).max() < 4 / math.sqrt(20_000)
    np.testing.assert_allclose(values.std(axis=0), std, rtol=0.03)
    np.testing.assert_array_equal(model.sample(X, 7, random_state=3), model.draw_functions(7, random_state=3)(X))
    assert np.all(model.sample(X, 1, random_state=4) != model.sample(X, 1, random_state=3))
    np.testing.assert_array_equal(model.sample(X, 2), model.sample(X, 2))  # without a random state: that of the fit
    with pytest.raises(ValueError, match="n_draws must be"):
        model.draw_functions(0)


def test_draws_of_simvae_are_marginalized_like_those_of_gpssl() -> None:
    X, y = cancer()
    model = MarginalizedClassifier(SimVAE(max_iterations=100), n_draws=5, random_state=0).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.85


@pytest.mark.parametrize("model", [VICReg, SCARF, SimVAE])
def test_column_that_did_not_vary_in_training_does_not_count_later(model: Any) -> None:
    X = np.column_stack([cancer()[0][:50, :4], np.full(50, 3.0)])
    fitted_model = model(2, max_iterations=3, random_state=0).fit(X)
    elsewhere = X + np.array([0, 0, 0, 0, 1000.0])
    np.testing.assert_array_equal(fitted_model.transform(elsewhere), fitted_model.transform(X))
