"""SimVAE: a variational autoencoder in which the views of a row have latent variables around a common center."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._validation import check_number, seed_from
from ._networks import Block, Losses, NetworkTransformer, Shape, StandardizedRows, settings_of

if TYPE_CHECKING:
    from torch import Generator, Tensor

Array = NDArray[np.float64]

LOG_VARIANCES = (-10.0, 5.0)
"""Bounds of the logarithm of a posterior variance, in training and after it."""


def expected_log_prior(mean: Tensor, variance: Tensor, view_variance: float | Tensor) -> Tensor:
    """Return E_q log p(z_1, …, z_V) for z_v ~ N(mean_v, variance_v), mean and variance being [..., V, J]. [...]

    Under the prior, the views of a row have a common center, ψ ~ N(0, 1) and z_v | ψ ~ N(ψ, σ²) in each dimension. The center is
    integrated out: the vector of the V views has covariance σ² I + 1 1ᵀ, so that with z̄ the mean of the views

        log p = −Σ_v (z_v − z̄)² / 2σ² − V z̄² / 2(σ² + V) − ½ ((V − 1) log σ² + log(σ² + V) + V log 2π)

    summed over dimensions, of which E Σ_v (z_v − z̄)² = Σ_v (m_v − m̄)² + (1 − 1/V) Σ_v s_v² and E z̄² = m̄² + Σ_v s_v² / V². A tensor of
    view variances is [..., 1].
    """
    n_views = mean.shape[-2]
    center, total = mean.mean(-2), variance.sum(-2)
    spread = (mean - center[..., None, :]).square().sum(-2) + (1 - 1 / n_views) * total
    square = center.square() + total / n_views**2
    quadratic = spread / (2 * view_variance) + n_views * square / (2 * (view_variance + n_views))
    sigma2 = mean.new_tensor(view_variance) if isinstance(view_variance, (int, float)) else view_variance
    constant = ((n_views - 1) * sigma2.log() + (sigma2 + n_views).log() + n_views * math.log(2 * math.pi)) / 2
    return -(quadratic + constant).sum(-1)


@dataclass(eq=False, repr=False, kw_only=True)
class SimVAE(NetworkTransformer):
    """The probabilistic representation of Bizeul, Schölkopf and Allen (2024), for tables.

    A row x_1 = x and its views x_v = x + noise · (standard deviation of each column) · N(0, 1), v = 2 … V, have latent variables

        ψ ~ N(0, 1),   z_v | ψ ~ N(ψ, σ²),   x_v | z_v ~ N(decoder(z_v), β²)        in units of each column's standard deviation
        q(z_v | x_v) = N(μ(x_v), s(x_v)²)        μ and log s² are the encoder's outputs

    Adam raises the evidence lower bound, per row and view,

        (1/V) (Σ_v E_q log p(x_v | z_v) + Σ_v H[q(z_v | x_v)] + E_q log p(z_1, …, z_V))

    with one draw of each z_v in the first term and the others in closed form. The authors have a flat prior on the center and their mean
    of the views in its place; here it is integrated out (`expected_log_prior`). Encoder and decoder have one hidden layer with batch
    normalization. `transform` is μ, `std` is s. Training is in single precision. It needs PyTorch: pip install "gpssl[nn]".

    Parameters
    ----------
    n_components
        J, the number of representation dimensions.
    hidden_units
        Width of the hidden layers.
    n_views
        V, two or more.
    noise
        Standard deviation of the noise in a view, in units of each column's.
    view_scale
        σ, how far the latent variables of views are from their center.
    reconstruction_scale
        β. Where it is large, nothing needs to be known of the row, and the representation collapses to the prior.
    learning_rate, max_iterations, batch_size, random_state, verbose
        As in `VICReg`.

    Attributes
    ----------
    loss_
        The negative bound in the last step.
    encoder_, n_components_, n_features_in_, feature_names_in_
        As in `VICReg`.
    """

    batched: ClassVar = frozenset({"noise", "view_scale", "reconstruction_scale", "learning_rate"})
    scale_counts: ClassVar = True

    n_views: int = 2
    noise: float = 0.25
    view_scale: float = 0.3
    reconstruction_scale: float = 0.5

    def std(self, X: Any) -> Array:
        """Return the standard deviation s(x) of the representation of each row. [n, J]"""
        return np.exp(0.5 * np.clip(self._encode(X)[:, self.n_components_ :], *LOG_VARIANCES))

    def sample(self, X: Any, n_draws: int = 1, random_state: Any = None) -> Array:
        """Return draws of the representation: `sample(X, 100)` is `draw_functions(100)(X)`. [S, n, J]"""
        return self.draw_functions(n_draws, random_state)(X)

    def draw_functions(self, n_draws: int = 1, random_state: Any = None) -> ShiftedMeans:
        """Draw functions from the posterior: call the result with rows, as often as you like. [S, n, J]

        Without a random state the estimator's own is used: the same draws every time.
        """
        check_is_fitted(self)
        check_number("n_draws", n_draws, Integral, at_least=1)
        seed = self._seed if random_state is None else seed_from(random_state)
        return ShiftedMeans(self, np.random.default_rng(seed).standard_normal((int(n_draws), self.n_components_)))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("n_views", self.n_views, Integral, at_least=2)
        check_number("noise", self.noise, Real, at_least=0)
        for name in ("view_scale", "reconstruction_scale"):
            check_number(name, getattr(self, name), Real, above=0)

    def _shapes(self, n_features: int) -> list[Shape]:
        n_components, n_hidden = int(self.n_components), int(self.hidden_units)
        return [Shape(n_features, n_hidden, 2 * n_components, biased=True), Shape(n_components, n_hidden, n_features, biased=True)]

    def _losses(self, group: Sequence[Any], rows: StandardizedRows) -> Losses:
        import torch

        n_views, n_networks = int(self.n_views), len(group)
        noise, view_variance = settings_of(group, "noise", 3), settings_of(group, "view_scale", 3).square()
        reconstruction_variance = settings_of(group, "reconstruction_scale").square()
        n_features = int(rows.varies.sum())

        def losses(blocks: list[Block], x: Tensor, generator: Generator) -> Tensor:
            encoder, decoder = blocks
            n_rows = x.shape[1]
            change = rows.noise((n_views - 1) * n_rows, generator)
            views = torch.cat([x.expand(n_networks, -1, -1), x.repeat(1, n_views - 1) + noise * change], dim=2)
            mean, log_variance = encoder(views, n_views).chunk(2, dim=1)  # [S, J, V n]
            log_variance = log_variance.clamp(*LOG_VARIANCES)
            draws = torch.randn(mean.shape[1:], generator=generator, dtype=torch.float32)
            errors = (views - decoder(mean + (log_variance / 2).exp() * draws, n_views)).square().sum((1, 2)) / (n_views * n_rows)
            fit = -(errors / reconstruction_variance + n_features * (2 * math.pi * reconstruction_variance).log()) / 2
            entropy = (log_variance + math.log(2 * math.pi * math.e)).sum((1, 2)) / (2 * n_views * n_rows)
            means, variances = (part.reshape(n_networks, -1, n_views, n_rows).permute(0, 3, 2, 1) for part in (mean, log_variance.exp()))
            return -(fit + entropy + expected_log_prior(means, variances, view_variance).mean(1) / n_views)

        return losses


@dataclass(frozen=True)
class ShiftedMeans:
    """S functions f_s(x) = μ(x) + s(x) ε_s, with one ε_s [J] for all rows: each is a function, the same wherever it is evaluated."""

    model: SimVAE
    shifts: Array
    """ε [S, J]"""

    def __call__(self, X: Any) -> Array:
        """Return the value of every function at every row. [S, n, J]"""
        return self.model.transform(X) + self.shifts[:, None] * self.model.std(X)
