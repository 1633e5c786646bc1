"""Slow and obvious versions of the mathematics, against which the library is tested.

`PaperGPSSL` is the paper's algorithm as printed: a whitened normal q(U) with full covariance for each dimension, joint samples of the
representations at all N rows from q(U) p(Z | U), the losses of those samples, the divergence of q(U) from p(U), and Adam.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[np.float64]

torch.set_num_threads(1)  # small matrices: a second thread costs more than it brings


def rbf(X: Array, Y: Array, lengthscale: float) -> Array:
    """k(x, y) = exp(−|x − y|² / 2l²), entry by entry."""
    out = np.empty((len(X), len(Y)))
    for i, x in enumerate(X):
        for j, y in enumerate(Y):
            out[i, j] = np.exp(-0.5 * sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / lengthscale**2)
    return out


def variance_loss(Z: Array) -> float:
    """Paper, eq. 2, with γ = 1 and ε = 1e-7, for one matrix of representations [N, J]."""
    n_rows, n_components = Z.shape
    total = 0.0
    for j in range(n_components):
        mean = sum(Z[:, j]) / n_rows
        variance = sum((z - mean) ** 2 for z in Z[:, j]) / (n_rows - 1)
        total += max(0.0, 1.0 - (variance + 1e-7) ** 0.5)
    return total / n_components


def covariance_loss(Z: Array) -> float:
    """The squared off-diagonal entries of the covariance, summed and divided by J (VICReg)."""
    n_rows, n_components = Z.shape
    centered = Z - Z.mean(axis=0)
    total = 0.0
    for j in range(n_components):
        for k in range(n_components):
            if j != k:
                total += (sum(centered[:, j] * centered[:, k]) / (n_rows - 1)) ** 2
    return total / n_components


@dataclass
class PaperGPSSL:
    """The paper's section 2.2, transcribed. Kxx, Kxu and Kuu are kernel matrices of the N rows and the M inducing points."""

    Kxx: Array
    Kxu: Array
    Kuu: Array
    n_components: int = 5
    variance_weight: float = 50.0
    covariance_weight: float = 10.0
    temperature: float = 1.0
    jitter: float = 1e-8

    def __post_init__(self) -> None:
        n_points = self.Kxu.shape[1]
        factor = np.linalg.cholesky(self.Kuu + self.jitter * np.eye(n_points))
        # f(X) | u = Kxu Kuu⁻¹ u = A v with u = L v
        A = np.linalg.solve(factor, self.Kxu.T).T
        residual = self.Kxx - A @ A.T
        eigenvalues, vectors = np.linalg.eigh((residual + residual.T) / 2)
        self.A = torch.from_numpy(A)
        self.residual_root = torch.from_numpy(vectors * np.sqrt(np.maximum(eigenvalues, 0)))
        self.mean = torch.zeros(self.n_components, n_points, dtype=torch.float64)
        self.root = torch.eye(n_points, dtype=torch.float64).repeat(self.n_components, 1, 1)

    def sample_representations(self, n_samples: int, generator: torch.Generator) -> torch.Tensor:
        """Z ~ q(U) p(Z | U), jointly over all rows. [n_samples, N, J]"""
        n_rows, n_points = self.A.shape
        noise = torch.randn(self.n_components, n_points, n_samples, generator=generator, dtype=torch.float64)
        v = self.mean[:, :, None] + torch.tril(self.root) @ noise
        residual_noise = torch.randn(self.n_components, n_rows, n_samples, generator=generator, dtype=torch.float64)
        return (self.A @ v + self.residual_root @ residual_noise).permute(2, 1, 0)

    def losses(self, Z: torch.Tensor) -> torch.Tensor:
        """c_V·variance loss + c_C·covariance loss of each sample. [n_samples]"""
        centered = Z - Z.mean(dim=1, keepdim=True)
        covariance = centered.transpose(1, 2) @ centered / (Z.shape[1] - 1)
        variances = torch.diagonal(covariance, dim1=1, dim2=2)
        hinge = torch.relu(1.0 - torch.sqrt(variances + 1e-7)).mean(dim=1)
        off_diagonal = (covariance**2).sum(dim=(1, 2)) - (variances**2).sum(dim=1)
        return self.variance_weight * hinge + self.covariance_weight * off_diagonal / Z.shape[2]

    def divergence(self) -> torch.Tensor:
        """KL(q(U) ‖ p(U)) = ½ Σ_j (tr S + |m|² − M − log det S), whitened."""
        root = torch.tril(self.root)
        log_determinant = 2 * torch.log(torch.abs(torch.diagonal(root, dim1=1, dim2=2))).sum()
        return 0.5 * ((root**2).sum() + (self.mean**2).sum() - self.mean.numel() - log_determinant)

    def objective(self, n_samples: int, seed: int) -> tuple[float, float]:
        """Monte Carlo estimate of E[ℓ] + τ KL, and its standard error."""
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            losses = torch.cat([self.losses(self.sample_representations(256, generator)) for _ in range(n_samples // 256)]).numpy()
            divergence = float(self.divergence())
        return float(losses.mean()) + self.temperature * divergence, float(losses.std() / np.sqrt(len(losses)))

    def optimize(self, n_steps: int, *, learning_rate: float = 0.03, n_samples: int = 8, seed: int = 0) -> PaperGPSSL:
        """Adam on fresh joint samples at every step, from the prior with a little noise in the means."""
        generator = torch.Generator().manual_seed(seed)
        self.mean = (self.mean + 1e-2 * torch.randn(self.mean.shape, generator=generator, dtype=torch.float64)).requires_grad_()
        self.root = self.root.clone().requires_grad_()
        optimizer = torch.optim.Adam([self.mean, self.root], lr=learning_rate)
        for _ in range(n_steps):
            optimizer.zero_grad()
            loss = self.losses(self.sample_representations(n_samples, generator)).mean()
            total = loss + self.temperature * self.divergence()
            total.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        return self


def set_distribution(reference: PaperGPSSL, mean: Array, std: Array, basis: Array) -> None:
    """Give the reference the library's q: v = Q w + (I − QQᵀ) ξ with w ~ N(m, s²), ξ ~ N(0, I)."""
    n_points = basis.shape[0]
    outside = np.eye(n_points) - basis @ basis.T
    roots = []
    for s in std:
        covariance = outside + (basis * s**2) @ basis.T
        roots.append(np.linalg.cholesky((covariance + covariance.T) / 2 + 1e-12 * np.eye(n_points)))
    reference.mean = torch.from_numpy(mean @ basis.T)
    reference.root = torch.from_numpy(np.array(roots))


def paper_gpssl(X: Array, points: Array, kernel: Any, **settings: Any) -> PaperGPSSL:
    """The reference on these rows and inducing points, with a scikit-learn kernel."""
    return PaperGPSSL(kernel(X), kernel(X, points), kernel(points), **settings)
