from __future__ import annotations

import numpy as np
import pytest
import torch

from reference import PaperGPSSL

gpytorch = pytest.importorskip("gpytorch", reason="GPyTorch is not installed")


def test_reference_s_divergence_is_gpytorch_s() -> None:
    """KL(q(U) ‖ p(U)) does not depend on whitening: GPyTorch's, between the distributions of U itself."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 2))
    kernel = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=-1)) + 1e-3 * np.eye(12)
    reference = PaperGPSSL(kernel, kernel, kernel, n_components=2)
    reference.mean = torch.from_numpy(rng.standard_normal((2, 12)))
    reference.root = torch.tril(torch.from_numpy(rng.standard_normal((2, 12, 12)))) + 3 * torch.eye(12)
    factor = torch.linalg.cholesky(torch.from_numpy(kernel) + 1e-8 * torch.eye(12))
    total = 0.0
    for mean, root in zip(reference.mean, torch.tril(reference.root), strict=True):
        q = torch.distributions.MultivariateNormal(factor @ mean, scale_tril=factor @ root)
        p = gpytorch.distributions.MultivariateNormal(torch.zeros(12), factor @ factor.T)
        other = gpytorch.distributions.MultivariateNormal(q.mean, q.covariance_matrix)
        total += float(torch.distributions.kl.kl_divergence(other, p))
    assert float(reference.divergence()) == pytest.approx(total, rel=1e-4)
