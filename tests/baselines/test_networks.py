"""Losses by hand and by loops, networks against PyTorch's layers and its Adam."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from gpssl.baselines._joint_embedding import EPSILON, corrupt, infonce_loss, total_loss
from gpssl.baselines._networks import Block, NetworkEncoder, Networks, Shape, StandardizedRows, batches
from gpssl.baselines._simvae import expected_log_prior

Array = NDArray[np.float64]


def double(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def some_rows(n_rows: int = 60, n_features: int = 4) -> Array:
    random = np.random.default_rng(0)
    return random.standard_normal((n_rows, n_features)) @ random.standard_normal((n_features, n_features)) + 3


# The losses


def invariance_loss(z: torch.Tensor, z2: torch.Tensor) -> torch.Tensor:
    """Return ℓ_inv = (1/n) Σ_i ‖z_i − z′_i‖², for two views z and z′ [..., n, J]. [...]"""
    return (z - z2).square().sum(-1).mean(-1)


def variance_loss(z: torch.Tensor, gamma: float = 1.0, epsilon: float = EPSILON) -> torch.Tensor:
    """Return ℓ_var = (1/J) Σ_j max(0, γ − √(Var z_j + ε)), of one view z [..., n, J], with Var = Σ_i (z_ij − z̄_j)² / (n − 1). [...]"""
    variances = (z - z.mean(-2, keepdim=True)).square().sum(-2) / (z.shape[-2] - 1)
    return (gamma - (variances + epsilon).sqrt()).clamp(min=0).mean(-1)


def covariance_loss(z: torch.Tensor) -> torch.Tensor:
    """Return ℓ_cov = (1/J) Σ_{j≠k} C_jk², of one view z [..., n, J], with C = Σ_i (z_i − z̄)(z_i − z̄)ᵀ / (n − 1). [...]"""
    centered = z - z.mean(-2, keepdim=True)
    squares = (centered.mT @ centered / (z.shape[-2] - 1)).square()
    return (squares.sum((-2, -1)) - squares.diagonal(dim1=-2, dim2=-1).sum(-1)) / z.shape[-1]


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
        peer = torch.nn.Sequential(first, normal, torch.nn.ReLU(), last).float()  # another test may have changed the default
        with torch.no_grad():
            for theirs, ours in zip(peer.parameters(), networks.blocks[0], strict=True):
                assert ours is not None
                theirs.copy_(ours[network])
        peers.append((peer, torch.optim.Adam(peer.parameters(), lr=float(rates[network]))))
    for _ in range(10):
        outputs = networks.blocks[0](x.expand(2, -1, -1), n_views=1)
        networks.step((outputs - target).square().mean((1, 2)), rates)
        for peer, optimizer in peers:
            optimizer.zero_grad()
            (peer(x.T) - target.T).square().mean().backward()
            optimizer.step()
    for network, (peer, _) in enumerate(peers):
        expected = torch.cat([part.detach().flatten() for part in peer.parameters()])
        torch.testing.assert_close(networks.parameters[network], expected, atol=1e-5, rtol=1e-4)


def test_prediction_normalizes_by_the_training_rows_whatever_rows_it_sees() -> None:
    X = some_rows()
    rows = StandardizedRows.standardize(X)
    networks = Networks([Shape(4, 6, 2, biased=True)], 2, seed=0)
    with torch.no_grad():
        networks.parameters += 0.3 * double(*networks.parameters.shape).float()
    outputs = networks.blocks[0](rows.tensor().expand(2, -1, -1), n_views=1).detach().numpy()
    for network in range(2):
        encoder = NetworkEncoder.from_block(networks.blocks[0], network, rows)
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
