"""The paper's algorithm in GPyTorch. Imported only where it runs: no other measurement has torch in its process."""

from __future__ import annotations

import time

import gpytorch
import numpy as np
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

from .monte_carlo import COVARIANCE_WEIGHT, EPSILON, TARGET, VARIANCE_WEIGHT, Array, Solution

SAMPLES_PER_STEP = 10
"""GPyTorch's own default for Monte Carlo likelihoods."""


class PaperGPSSL(gpytorch.models.ApproximateGP):
    """J independent GPs with a whitened normal q(U) of full covariance, fixed inducing points and a fixed RBF kernel."""

    def __init__(self, points: Array, lengthscale: Array, n_components: int) -> None:
        distribution = CholeskyVariationalDistribution(len(points), batch_shape=torch.Size([n_components]))
        super().__init__(VariationalStrategy(self, torch.from_numpy(points), distribution, learn_inducing_locations=False))
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.RBFKernel(ard_num_dims=points.shape[1])
        self.covar_module.lengthscale = torch.from_numpy(lengthscale)
        self.covar_module.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> MultivariateNormal:
        """Give the prior."""
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))

    def objective(self, X: torch.Tensor) -> torch.Tensor:
        """Estimate E[ℓ] + KL/N, with E[ℓ] from joint samples of Z at all rows."""
        # By default a GP in training mode gives marginal variances only, and samples from them would be independent.
        joint = self(X, diag=False)
        Z = joint.rsample(torch.Size([SAMPLES_PER_STEP])).mT
        value: torch.Tensor = losses(Z).mean() + self.variational_strategy.kl_divergence().sum() / len(X)
        return value


def losses(Z: torch.Tensor) -> torch.Tensor:
    """Compute c_V ℓ_var + c_C ℓ_cov of each sample in Z [S, N, J], an array [S]."""
    centered = Z - Z.mean(dim=1, keepdim=True)
    covariance = centered.mT @ centered / (Z.shape[1] - 1)
    variances = torch.diagonal(covariance, dim1=1, dim2=2)
    hinge = torch.relu(TARGET - torch.sqrt(variances + EPSILON)).mean(dim=1)
    off_diagonal = ((covariance**2).sum(dim=(1, 2)) - (variances**2).sum(dim=1)) / Z.shape[2]
    return VARIANCE_WEIGHT * hinge + COVARIANCE_WEIGHT * off_diagonal


def fit(X: Array, points: Array, lengthscale: Array, *, n_components: int, learning_rate: float, n_steps: int) -> Solution:
    """Run Adam from GPyTorch's own start (the prior, with a little noise in the means)."""
    torch.set_default_dtype(torch.float64)
    optimize(PaperGPSSL(points, lengthscale, n_components), X[:50], learning_rate, n_steps=2)  # loads what is loaded lazily
    torch.manual_seed(0)
    model = PaperGPSSL(points, lengthscale, n_components)
    started = time.perf_counter()
    optimize(model, X, learning_rate, n_steps)
    seconds = time.perf_counter() - started
    strategy = model.variational_strategy
    distribution = strategy._variational_distribution
    mean = distribution.variational_mean.detach().numpy()
    root = np.tril(distribution.chol_variational_covar.detach().numpy())
    return Solution(seconds, lengthscale, points, float(strategy.jitter_val), mean, root)


def optimize(model: PaperGPSSL, X: Array, learning_rate: float, n_steps: int) -> None:
    """Take steps of Adam on fresh samples at every step."""
    rows = torch.from_numpy(X)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=learning_rate)
    model.train()
    for _ in range(n_steps):
        optimizer.zero_grad()
        model.objective(rows).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
