from __future__ import annotations

import pickle
import sys
import warnings
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import SkipTestWarning
from sklearn.neural_network import MLPClassifier
from sklearn.utils.estimator_checks import check_estimator

from gpssl._runtime.threads import one_blas_thread
from gpssl.downstream._perceptron import Network, PerceptronClassifier, Perceptrons, arrange_rows, torch_on_one_thread

Array = NDArray[np.float64]


def blobs(n_rows: int = 120, n_classes: int = 3, n_draws: int = 4, distance: float = 1.5) -> tuple[Array, NDArray[np.int64]]:
    """Classes, overlapping unless far apart, seen through a few noisy linear maps. [S, n, J] and [n]"""
    generator = np.random.default_rng(0)
    y = np.arange(n_rows) % n_classes
    X = distance * generator.standard_normal((n_classes, 3))[y] + generator.standard_normal((n_rows, 3))
    maps = np.eye(3) + 0.3 * generator.standard_normal((n_draws, 3, 3))
    return X @ maps, y


def assert_same(one: Perceptrons, other: Perceptrons) -> None:
    for field in fields(Perceptrons):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


# scikit-learn's contract


def test_check_estimator_without_expected_failures() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(PerceptronClassifier())
    assert {result["status"] for result in results} <= {"passed", "skipped"}
    assert sum(result["status"] == "passed" for result in results) > 45


@pytest.mark.parametrize("names", [["sheep", "goat", "ox"], [7, -3, 100], [2.0, 1.0, 0.0], [True, False]])
def test_classes_may_have_any_names(names: list[Any]) -> None:
    Z, y = blobs(n_classes=len(names), distance=10)
    labels = np.array(names)[y]
    model = PerceptronClassifier(random_state=0).fit(Z[0], labels)
    np.testing.assert_array_equal(model.classes_, np.sort(names))
    assert model.predict(Z[0]).dtype == labels.dtype
    assert model.score(Z[0], labels) > 0.95


def test_fifty_classes_are_told_apart() -> None:
    corners = np.random.default_rng(0).standard_normal((50, 6))
    X = np.repeat(corners, 12, axis=0) + 0.05 * np.random.default_rng(1).standard_normal((600, 6))
    y = np.repeat(np.arange(50), 12)
    assert PerceptronClassifier(max_epochs=200, random_state=0).fit(X, y).score(X, y) > 0.95


def test_one_class_is_refused_with_a_sentence() -> None:
    with pytest.raises(ValueError, match="at least two"):
        PerceptronClassifier().fit(np.eye(4), np.ones(4))


@pytest.mark.parametrize(
    ("name", "value"),
    {"hidden_units": 0, "learning_rate": 0.0, "weight_decay": -1.0, "max_epochs": 2.5, "patience": 0, "validation_fraction": 1.0}.items(),
)
def test_parameters_that_do_not_fit_are_named(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be"):
        PerceptronClassifier().set_params(**{name: value}).fit(np.eye(4), [0, 1, 0, 1])


def test_draws_of_another_shape_are_refused() -> None:
    Z, y = blobs()
    with pytest.raises(ValueError, match=r"shape \[S, n, J\]"):
        PerceptronClassifier().fit_draws(Z[0], y)
    heads = PerceptronClassifier(max_epochs=1).fit_draws(Z, y)
    with pytest.raises(ValueError, match=r"\[4, n, 3\]"):
        heads.predict_proba(Z[:2])


def test_without_torch_a_sentence_names_the_extra_and_prediction_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    Z, y = blobs()
    fitted = PerceptronClassifier(max_epochs=2, random_state=0).fit(Z[0], y)
    expected = fitted.predict_proba(Z[0])
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'pip install "gpssl\[nn\]"'):
        PerceptronClassifier().fit(Z[0], y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(Z[0]), expected)


# Learning


def test_the_first_steps_are_those_of_autograd_and_torch_optim_adam() -> None:
    Z, y = blobs(n_rows=40, n_draws=2)
    rows = arrange_rows(Z, y, np.ones(40), 0.1, seed=3)
    shapes, decay, rate = ((4, 5), (6, 3)), 0.01, 0.05
    start = np.random.default_rng(0).standard_normal((2, 38))
    network = Network(rows.inputs, rows, start, shapes, decay)
    for t in range(1, 6):
        network.losses()
        network.step(rate, t)
    labels, weight = torch.from_numpy(rows.labels), torch.from_numpy(rows.training_weight)
    for draw in range(2):
        A, a, B, b = (
            torch.tensor(part, requires_grad=True)
            for part in (start[draw, :15].reshape(3, 5), start[draw, 15:20], start[draw, 20:35].reshape(5, 3), start[draw, 35:])
        )
        optimizer = torch.optim.Adam([A, a, B, b], lr=rate)
        for _ in range(5):
            optimizer.zero_grad()
            logits = torch.relu(torch.from_numpy(rows.inputs[draw]) @ A + a) @ B + b
            loss = (torch.nn.functional.cross_entropy(logits, labels, reduction="none") * weight).sum()
            (loss + decay / 2 * ((A**2).sum() + (B**2).sum())).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        expected = torch.cat([part.detach().flatten() for part in (A, a, B, b)])
        np.testing.assert_allclose(network.parameters[draw].numpy(), expected.numpy(), atol=2e-5)


def test_trained_long_enough_it_reaches_the_objective_of_another_library() -> None:
    """scikit-learn minimizes the same objective, with alpha = n λ, by L-BFGS."""
    Z, y = blobs(n_draws=1)
    X, decay = Z[0], 1e-2

    def objective(A: Array, a: Array, B: Array, b: Array) -> float:
        logits = np.maximum(X @ A + a, 0) @ B + b
        return float((logsumexp(logits, axis=1) - logits[np.arange(len(y)), y]).mean() + decay / 2 * ((A**2).sum() + (B**2).sum()))

    with one_blas_thread():
        peers = [MLPClassifier((32,), solver="lbfgs", alpha=decay * len(y), max_iter=2000, random_state=s).fit(X, y) for s in range(3)]
    best = min(objective(*(part for layer in zip(peer.coefs_, peer.intercepts_, strict=True) for part in layer)) for peer in peers)
    rows = arrange_rows(Z, y, np.ones(len(y)), 0.0, seed=0)
    network = Network(rows.inputs, rows, 0.3 * np.random.default_rng(0).standard_normal((1, 227)), ((4, 32), (33, 3)), decay)
    with torch_on_one_thread():
        for t in range(1, 2001):
            network.losses()
            network.step(0.01, t)
    parameters = network.parameters[0].numpy().astype(np.float64)
    A, B = parameters[:128].reshape(4, 32), parameters[128:].reshape(33, 3)
    assert objective(A[:-1], A[-1], B[:-1], B[-1]) < best + 1e-3


def test_exclusive_or_is_learned() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    y = X[:, 0] * X[:, 1] > 0
    assert PerceptronClassifier(random_state=0).fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.95


def test_digits_are_told_apart_as_well_as_by_another_library() -> None:
    X, y = load_digits(return_X_y=True)
    Z = PCA(5, whiten=True, random_state=0).fit_transform(X)
    peer = MLPClassifier((32,), random_state=0, max_iter=100, learning_rate_init=0.02, early_stopping=True).fit(Z[:600], y[:600])
    ours = PerceptronClassifier(random_state=0).fit(Z[:600], y[:600])
    assert ours.score(Z[600:], y[600:]) > peer.score(Z[600:], y[600:]) - 0.03


@pytest.mark.parametrize(("scale", "shift"), [(1e-9, 0.0), (1e9, 0.0), (1.0, 1e4)])
def test_scale_and_origin_of_the_inputs_do_not_matter(scale: float, shift: float) -> None:
    Z, y = blobs(n_draws=1)
    model = PerceptronClassifier(validation_fraction=0, max_epochs=30, random_state=0)
    p = model.fit(Z[0], y).predict_proba(Z[0])
    moved = scale * Z[0] + shift
    # Other numbers have other hashes: the rows are summed in another order.
    np.testing.assert_allclose(clone(model).fit(moved, y).predict_proba(moved), p, atol=1e-3)


def test_a_constant_column_does_no_harm() -> None:
    Z, y = blobs(n_draws=1, distance=10)
    X = np.column_stack([Z[0], np.full(len(y), 1e6 / 3)])
    assert PerceptronClassifier(random_state=0).fit(X, y).score(X, y) > 0.95


# Stopping


def test_the_parameters_kept_are_those_with_the_lowest_validation_loss() -> None:
    Z, y = blobs(n_draws=1)
    long = PerceptronClassifier(learning_rate=0.3, max_epochs=60, patience=60, random_state=0).fit_draws(Z, y)
    best = int(long.epochs[0])
    assert 1 < best < 60
    by_epoch = [PerceptronClassifier(learning_rate=0.3, max_epochs=m, patience=60, random_state=0).fit_draws(Z, y) for m in range(1, 60)]
    assert_same(by_epoch[best - 1], long)
    assert all(shorter.losses[0] > long.losses[0] for shorter in by_epoch[: best - 1])
    assert all(shorter.losses[0] == long.losses[0] for shorter in by_epoch[best - 1 :])


def test_the_loss_reported_is_that_of_the_rows_held_out() -> None:
    Z, y = blobs()
    seed = int(np.random.RandomState(5).randint(2**31 - 1))
    heads = PerceptronClassifier(random_state=5).fit_draws(Z, y)
    rows = arrange_rows(Z, y, np.ones(len(y)), 0.1, seed)
    of_labels = heads.predict_proba(rows.inputs)[:, np.arange(len(y)), rows.labels]
    np.testing.assert_allclose(-np.log(of_labels) @ rows.validation_weight, heads.losses, rtol=1e-4)


def test_patience_ends_training() -> None:
    Z, y = blobs()
    impatient, patient = (PerceptronClassifier(learning_rate=0.3, patience=n, random_state=0).fit_draws(Z, y) for n in (1, 50))
    assert np.all(impatient.losses >= patient.losses)
    assert impatient.epochs.sum() < patient.epochs.sum()


def test_every_class_keeps_training_rows_and_lends_a_share() -> None:
    Z, y = blobs(n_rows=150)
    rows = arrange_rows(Z, y, np.ones(150), 0.2, seed=0)
    held_out = rows.training_weight == 0
    np.testing.assert_array_equal(np.bincount(rows.labels[held_out]), [10, 10, 10])
    assert np.all((rows.validation_weight > 0) == held_out)
    assert rows.training_weight.sum() == pytest.approx(1)
    assert rows.validation_weight.sum() == pytest.approx(1)


def test_with_one_row_per_class_all_rows_train() -> None:
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    model = PerceptronClassifier(random_state=0).fit(X, ["a", "b", "c"])
    assert list(model.predict(X)) == ["a", "b", "c"]


# Draws, order, weights, seeds, threads


def test_a_draw_does_not_depend_on_the_others() -> None:
    Z, y = blobs(n_draws=9)
    model = PerceptronClassifier(random_state=0)
    few = model.fit_draws(Z[:2], y)
    for others in (Z[2:], 100 * Z[2:] ** 2):
        more = model.fit_draws(np.concatenate([Z[:2], others]), y)
        for field in fields(Perceptrons)[1:]:
            np.testing.assert_allclose(getattr(more, field.name)[:2], getattr(few, field.name), atol=1e-6, rtol=1e-6)
        assert len(np.unique(more.losses)) == 9


def test_fit_is_the_case_of_one_draw_and_fit_draws_leaves_the_estimator_alone() -> None:
    Z, y = blobs()
    model = PerceptronClassifier(random_state=0)
    heads = model.fit_draws(Z[:1], y)
    assert not hasattr(model, "perceptrons_")
    assert_same(model.fit(Z[0], y).perceptrons_, heads)


def test_same_seed_same_answer_and_the_generator_of_torch_is_left_alone() -> None:
    Z, y = blobs()
    before = torch.get_rng_state()
    one = PerceptronClassifier(random_state=1).fit_draws(Z, y)
    torch.rand(3)
    torch.set_rng_state(before)
    assert_same(PerceptronClassifier(random_state=1).fit_draws(Z, y), one)
    torch.testing.assert_close(torch.get_rng_state(), before, rtol=0, atol=0)
    assert np.all(PerceptronClassifier(random_state=2).fit_draws(Z, y).hidden_bias != one.hidden_bias)


@pytest.mark.parametrize(("n_rows", "n_draws"), [(120, 1), (120, 5), (3000, 1), (3000, 12)])
def test_the_number_of_threads_does_not_matter_and_is_left_alone(n_rows: int, n_draws: int) -> None:
    Z, y = blobs(n_rows, n_draws=n_draws)
    n_threads = torch.get_num_threads()
    heads = []
    try:
        for n in (1, 2):
            torch.set_num_threads(n)
            heads.append(PerceptronClassifier(max_epochs=20, random_state=0).fit_draws(Z, y))
            assert torch.get_num_threads() == n
    finally:
        torch.set_num_threads(n_threads)
    assert_same(heads[0], heads[1])


def test_the_order_of_the_rows_does_not_matter_and_weight_is_repetition() -> None:
    Z, y = blobs()
    generator = np.random.default_rng(0)
    weight = generator.integers(0, 4, len(y)).astype(np.float64)
    repeated = generator.permutation(np.repeat(np.arange(len(y)), weight.astype(int)))
    model = PerceptronClassifier(random_state=0)
    assert_same(model.fit_draws(Z[:, repeated], y[repeated]), model.fit_draws(Z, y, weight))


def test_a_class_of_weight_zero_is_none() -> None:
    Z, y = blobs()
    heads = PerceptronClassifier(random_state=0).fit_draws(Z, y, (y != 1).astype(float))
    np.testing.assert_array_equal(heads.classes, [0, 2])
    assert_same(PerceptronClassifier(random_state=0).fit_draws(Z[:, y != 1], y[y != 1]), heads)


def test_prediction_in_blocks_is_prediction_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    Z, y = blobs()
    heads = PerceptronClassifier(random_state=0).fit_draws(Z, y)
    at_once = heads.predict_proba(Z)
    monkeypatch.setattr("gpssl.downstream._perceptron.NUMBERS_AT_ONCE", 1000)
    np.testing.assert_allclose(heads.predict_proba(Z), at_once, rtol=1e-12)
    np.testing.assert_allclose(at_once.sum(axis=2), 1)


def test_the_default_precision_of_torch_does_not_matter() -> None:
    Z, y = blobs()
    expected = PerceptronClassifier(random_state=0).fit_draws(Z, y)
    torch.set_default_dtype(torch.float64)
    try:
        assert_same(PerceptronClassifier(random_state=0).fit_draws(Z, y), expected)
    finally:
        torch.set_default_dtype(torch.float32)
