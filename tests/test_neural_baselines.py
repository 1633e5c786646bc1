"""VICReg, SCARF and SimVAE: losses by hand and by loops, gradients by autograd, and many networks at once against one at a time."""

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
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpssl import MarginalizedClassifier
from gpssl.baselines.network_transformer import batches
from gpssl.baselines.networks import Block, Encoder, Networks, Rows, Shape
from gpssl.baselines.scarf import SCARF, corrupt, infonce_loss
from gpssl.baselines.simvae import SimVAE, expected_log_prior
from gpssl.baselines.vicreg import EPSILON, VICReg, covariance_loss, invariance_loss, total_loss, variance_loss
from representations import run_checks

Array = NDArray[np.float64]
MODELS = [VICReg, SCARF, SimVAE]


def double(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


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


# The losses


def test_the_losses_of_vicreg_by_hand() -> None:
    z, z2 = torch.tensor([[0.0, 0.0], [1.0, 2.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    assert invariance_loss(z, z2).item() == pytest.approx((1 + 4) / 2)  # summed over dimensions, mean over rows
    z = torch.tensor([[0.0, 0.0], [1.0, 4.0]])  # variances 0.5 and 8, with n − 1
    assert variance_loss(z).item() == pytest.approx((1 - math.sqrt(0.5 + 1e-4)) / 2, rel=1e-6)
    assert variance_loss(z, gamma=3.0, epsilon=0.0).item() == pytest.approx((3 - math.sqrt(0.5) + 3 - math.sqrt(8)) / 2, rel=1e-6)
    assert variance_loss(torch.zeros(3, 2)).item() == pytest.approx(0.99)  # γ = 1, ε = 1e-4
    z = torch.tensor([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]])  # covariance 0.5
    assert covariance_loss(z).item() == pytest.approx((0.5**2 + 0.5**2) / 2)
    assert EPSILON == 1e-4


def test_the_losses_of_vicreg_by_loops() -> None:
    z, z2 = 0.7 * double(3, 8, 4), double(3, 8, 4, seed=1)
    for network in range(3):
        a, b = z[network].numpy(), z2[network].numpy()
        distance = sum(sum((a[i, j] - b[i, j]) ** 2 for j in range(4)) for i in range(8)) / 8
        C = np.cov(a.T)
        variance = sum(max(0.0, 1 - math.sqrt(C[j, j] + 1e-4)) for j in range(4)) / 4
        covariance = sum(C[j, k] ** 2 for j in range(4) for k in range(4) if j != k) / 4
        assert invariance_loss(z, z2)[network].item() == pytest.approx(distance)
        assert variance_loss(z)[network].item() == pytest.approx(variance)
        assert covariance_loss(z)[network].item() == pytest.approx(covariance)


def test_the_total_loss_of_vicreg_is_its_terms_and_its_gradient_that_of_autograd() -> None:
    e = double(3, 4, 2, 20) * torch.tensor([0.3, 1.0, 2.0])[:, None, None, None] + double(3, 4, 2, 1)
    e, weights = e.requires_grad_(), double(3, 3, seed=1).abs()
    z = e.permute(2, 0, 3, 1)
    expected = weights[0] * invariance_loss(z[0], z[1])
    expected = expected + weights[1] * (variance_loss(z[0]) + variance_loss(z[1])) / 2  # the mean over views
    expected = expected + weights[2] * (covariance_loss(z[0]) + covariance_loss(z[1]))  # their sum
    total = total_loss()(e, weights)
    torch.testing.assert_close(total, expected)
    factors = torch.tensor([1.0, 2.0, -0.5], dtype=torch.float64)
    (gradient,), (by_autograd,) = (torch.autograd.grad((loss * factors).sum(), e) for loss in (total, expected))
    torch.testing.assert_close(gradient, by_autograd)


def test_infonce_by_hand_and_by_loops() -> None:
    z, z2 = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[2.0, 0.0], [0.0, 3.0]])  # cosines: the identity
    assert infonce_loss(z, z2).item() == pytest.approx(math.log(math.e + 1) - 1)
    assert infonce_loss(z, z2, 0.5).item() == pytest.approx(math.log(math.e**2 + 1) - 2)
    z, z2, temperature = double(2, 5, 3), double(2, 5, 3, seed=1), torch.tensor([1.0, 0.3])
    losses = infonce_loss(z, z2, temperature[:, None, None])
    for network in range(2):
        a, b, total = z[network].numpy(), z2[network].numpy(), 0.0
        for i in range(5):
            s = [a[i] @ b[k] / np.linalg.norm(a[i]) / np.linalg.norm(b[k]) / temperature[network].item() for k in range(5)]
            total -= math.log(math.exp(s[i]) / sum(math.exp(value) for value in s))
        assert losses[network].item() == pytest.approx(total / 5, rel=1e-6)


@pytest.mark.parametrize("n_views", [2, 3])
def test_the_expected_prior_of_simvae_is_that_of_the_joint_normal_distribution(n_views: int) -> None:
    mean, variance, sigma2 = double(6, n_views, 4), double(6, n_views, 4, seed=1) ** 2, 0.2
    covariance = sigma2 * np.eye(n_views) + np.ones((n_views, n_views))
    expected = np.zeros(6)
    for row in range(6):
        for j in range(4):
            expected[row] += multivariate_normal(np.zeros(n_views), covariance).logpdf(mean[row, :, j].numpy())
            expected[row] -= np.trace(np.linalg.inv(covariance) @ np.diag(variance[row, :, j].numpy())) / 2
    np.testing.assert_allclose(expected_log_prior(mean, variance, sigma2).numpy(), expected, rtol=1e-10)


# Networks


def test_a_block_is_pytorch_s_layers_and_its_gradient_that_of_autograd() -> None:
    parts = [double(2, 5, 3), double(2, 5, seed=1), double(2, 5, seed=2), double(2, 4, 5, seed=3), double(2, 4, seed=4)]
    x, eta = double(2, 3, 2 * 7, seed=5), double(2, 4, 2 * 7, seed=6)
    inputs = [part.requires_grad_() for part in (*parts, x)]

    def by_layers(A: Any, g: Any, s: Any, B: Any, b: Any, x: Any) -> torch.Tensor:
        networks = []
        for n in range(2):
            views = []
            for view in x[n].T.split(7):  # each view has statistics of its own
                normal = torch.nn.functional.batch_norm(view @ A[n].T, None, None, g[n], s[n], training=True, eps=1e-5)
                views.append(torch.relu(normal) @ B[n].T + b[n])
            networks.append(torch.cat(views).T)
        return torch.stack(networks)

    ours, theirs = Block(*parts)(x, n_views=2), by_layers(*inputs)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(torch.autograd.grad(ours, inputs, eta), torch.autograd.grad(theirs, inputs, eta))


def test_the_first_steps_are_those_of_torch_optim_adam() -> None:
    networks = Networks([Shape(3, 6, 2, biased=True)], 2, seed=0)
    rates, x, target = torch.tensor([0.01, 0.03]), double(3, 20).float(), double(2, 20, seed=1).float()
    peers: list[tuple[torch.nn.Sequential, torch.optim.Adam]] = []
    for network in range(2):
        first, normal, last = torch.nn.Linear(3, 6, bias=False), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 2)
        peer = torch.nn.Sequential(first, normal, torch.nn.ReLU(), last)
        with torch.no_grad():
            for theirs, ours in zip(peer.parameters(), networks.blocks[0], strict=True):
                assert ours is not None
                theirs.copy_(ours[network])
        peers.append((peer, torch.optim.Adam(peer.parameters(), lr=float(rates[network]))))
    for _ in range(10):
        outputs = networks.blocks[0](x.expand(2, -1, -1), n_views=1)
        networks.step((outputs - target).square().mean((1, 2)), rates)
        for peer, optimiser in peers:
            optimiser.zero_grad()
            (peer(x.T) - target.T).square().mean().backward()
            optimiser.step()
    for network, (peer, _) in enumerate(peers):
        expected = torch.cat([part.detach().flatten() for part in peer.parameters()])
        torch.testing.assert_close(networks.parameters[network], expected, atol=1e-5, rtol=1e-4)


def test_prediction_normalises_by_the_training_rows_whatever_rows_it_sees() -> None:
    X = some_rows()
    rows = Rows.standardise(X)
    networks = Networks([Shape(4, 6, 2, biased=True)], 2, seed=0)
    with torch.no_grad():
        networks.parameters += 0.3 * double(*networks.parameters.shape).float()
    outputs = networks.blocks[0](rows.tensor().expand(2, -1, -1), n_views=1).detach().numpy()
    for network in range(2):
        encoder = Encoder.from_block(networks.blocks[0], network, rows)
        np.testing.assert_allclose(encoder(X), outputs[network].T, atol=1e-5)
        np.testing.assert_allclose(encoder(X[5:6]), encoder(X)[5:6], rtol=1e-10)


def test_batches_are_all_rows_or_parts_of_random_orders() -> None:
    rows = torch.arange(10.0)[None]
    assert all(batch is rows for batch in batches(rows, 10, 3, torch.Generator()))
    parts = [batch[0].tolist() for batch in batches(rows, 4, 4, torch.Generator().manual_seed(0))]
    assert [len(part) for part in parts] == [4, 4, 4, 4]
    assert len({*parts[0], *parts[1]}) == 8  # no row twice in one order
    assert len({*parts[2], *parts[3]}) == 8
    assert parts[0] != parts[2]


def test_a_corrupted_row_has_so_many_values_from_the_same_columns_of_other_rows() -> None:
    table = torch.arange(5.0)[:, None] + torch.linspace(0.1, 0.8, 50)  # a value tells its column
    x = torch.arange(5.0)[:, None].expand(5, 200)
    view = corrupt(x, table, torch.tensor([1, 3, 5]), torch.Generator().manual_seed(0))
    torch.testing.assert_close((view != x).sum(1), torch.tensor([1, 3, 5])[:, None].expand(3, 200))
    torch.testing.assert_close(view.floor(), x.expand(3, -1, -1))
    replaced = (view[1] != x).float().mean(1)
    assert replaced.min() > 0.4  # each column in three of five rows
    assert replaced.max() < 0.8


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
    assert list(estimator.get_feature_names_out()) == [f"{model.__name__.lower()}{j}" for j in range(3)]
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


# What is learnt


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


def test_draws_of_simvae_are_marginalised_like_those_of_gpssl() -> None:
    X, y = cancer()
    model = MarginalizedClassifier(SimVAE(max_iterations=100), n_draws=5, random_state=0).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.85


@pytest.mark.parametrize("model", [VICReg, SCARF, SimVAE])
def test_column_that_did_not_vary_in_training_does_not_count_later(model: Any) -> None:
    X = np.column_stack([cancer()[0][:50, :4], np.full(50, 3.0)])
    fitted_model = model(2, max_iterations=3, random_state=0).fit(X)
    elsewhere = X + np.array([0, 0, 0, 0, 1000.0])
    np.testing.assert_array_equal(fitted_model.transform(elsewhere), fitted_model.transform(X))
