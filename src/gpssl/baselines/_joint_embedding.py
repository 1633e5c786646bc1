"""Joint embeddings for tables: a network learns that views of a row belong together (VICReg), or finds a row among others (SCARF)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

from .._validation import check_number
from ._networks import Block, Losses, NetworkTransformer, Shape, StandardizedRows, settings_of

if TYPE_CHECKING:
    from torch import Generator, Tensor

EPSILON = 1e-4
"""ε in the variance loss, as in the authors' code."""


@cache
def _pairs(n_outputs: int, dtype: Any) -> tuple[Tensor, Tensor]:
    """Return P and O of `total_loss`, where the two views of a dimension are neighbors. [2J, 2J] each"""
    import torch

    eye, views = torch.eye(n_outputs, dtype=dtype), torch.eye(2, dtype=dtype)
    return torch.kron(eye, 2 * views - 1), torch.kron(1 - eye, views)


@cache
def total_loss() -> Callable[[Tensor, Tensor], Tensor]:
    """Return c_I ℓ_inv(e, e′) + c_V ½ (ℓ_var(e) + ℓ_var(e′)) + c_C (ℓ_cov(e) + ℓ_cov(e′)) as a function of e [S, J, 2, n], c [3, S]. [S]

    It is one function with its gradient: the terms, see `VICReg`, one by one would take as long as the networks. All 2J outputs of both
    views have a mean and a covariance C [2J, 2J] over the rows, which is all that the loss sees: with P_jk = 1 where j = k, −1 where
    j and k are views of one dimension, and O_jk = 1 where j ≠ k are dimensions of one view,

        ℓ_inv = (n−1)/n Σ P_jk C_jk + ‖ē − ē′‖²,   ½ Σ ℓ_var = Σ max(0, 1 − σ_j) / 2J,   Σ ℓ_cov = Σ O_jk C_jk² / J,   σ_j² = C_jj + ε
        ∂e = M (e − ē) + 2 c_I P ē / n,   M = 2 c_I P / n − diag(½ c_V 1[σ < 1] / σ) / (J (n−1)) + 4 c_C O C / (J (n−1))
    """
    import torch

    class TotalLoss(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, e: Tensor, weights: Tensor) -> Tensor:
            ctx.shape, n_outputs, n_rows = e.shape, e.shape[1], e.shape[3]
            P, O = _pairs(n_outputs, e.dtype)  # noqa: E741
            e = e.flatten(1, 2)
            mean = e.mean(-1, keepdim=True)
            centered = e - mean
            C = centered.bmm(centered.mT).div_(n_rows - 1)
            c_I, c_V, c_C = weights[..., None, None]
            sigma = (C.diagonal(dim1=1, dim2=2) + EPSILON).sqrt_()
            shift = P @ mean
            covariances = C * O
            invariance = (C * P).sum((1, 2)) * ((n_rows - 1) / n_rows) + (shift * mean).sum((1, 2))
            variance = (1 - sigma).clamp_(min=0).sum(1) / (2 * n_outputs)
            covariance = (C * covariances).sum((1, 2)) / n_outputs
            M = covariances * (4 * c_C) - torch.diag_embed((sigma < 1) / sigma) * (c_V / 2)
            attraction = c_I * (2 / n_rows)
            M = M.div_(n_outputs * (n_rows - 1)).addcmul_(attraction, P)
            ctx.save_for_backward(centered, M, shift * attraction)
            return (weights * torch.stack([invariance, variance, covariance])).sum(0)

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
            centered, M, offset = ctx.saved_tensors
            factor = gradients[0][:, None, None]
            return torch.baddbmm(offset * factor, M * factor, centered).view(ctx.shape), None

    apply: Callable[[Tensor, Tensor], Tensor] = TotalLoss.apply
    return apply


@dataclass(eq=False, repr=False, kw_only=True)
class VICReg(NetworkTransformer):
    """The representation of Bardes, Ponce and LeCun (2022), with the paper's changes for tables.

    A row x and its view x′ = x + noise · (standard deviation of each column) · N(0, 1) pass through an encoder, then an expander:

        z = B relu(norm(A x)),   e = D relu(norm(C z))        norm: batch normalization, with a learned scale and shift

    z is the representation. Adam lowers, on the expander's outputs,

        c_I ℓ_inv(e, e′) + c_V ½ (ℓ_var(e) + ℓ_var(e′)) + c_C (ℓ_cov(e) + ℓ_cov(e′))
        ℓ_inv = (1/n) Σ_i ‖e_i − e′_i‖²,   ℓ_var = (1/J) Σ_j max(0, 1 − √(C_jj + ε)),   ℓ_cov = (1/J) Σ_{j≠k} C_jk²

    where C is the covariance of a view over the n rows, with n − 1, J here the number of outputs, and ε = 1e-4. The sum over outputs in
    ℓ_inv is as the authors print it, and their code has the mean; the mean of ℓ_var over both views and the sum of ℓ_cov are their code's.

    One view is the row itself, the other is noised, anew in each step. The expander normalizes what the encoder gives it: the loss does
    not see the scale of z, nor its origin. The scale is set so that the variances over the training rows are one on average.
    Training is in single precision. It needs PyTorch: pip install "gpssl[nn]".

    Parameters
    ----------
    n_components
        J, the number of representation dimensions.
    hidden_units, expander_units
        Widths of the encoder's hidden layer, and of the expander's hidden layer and outputs.
    noise
        Standard deviation of the noise in a view, in units of each column's.
    invariance_weight, variance_weight, covariance_weight
        c_I, c_V and c_C.
    learning_rate, max_iterations
        Size of Adam's steps, and their number.
    warmup_rate, warmup_iterations
        Another size for so many steps at the beginning.
    batch_size
        Rows in a step; all rows where there are no more than this.
    random_state
        Seed of the initial weights, the views and the batches.
    verbose
        Whether to report progress.

    Attributes
    ----------
    encoder_
        What was learned: arrays, and the function they stand for. It does not need PyTorch.
    loss_
        The loss in the last step.
    n_components_, n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    """

    batched: ClassVar = frozenset({"noise", "invariance_weight", "variance_weight", "covariance_weight", "learning_rate", "warmup_rate"})

    hidden_units: int = 10
    expander_units: int = 5
    noise: float = 0.25
    invariance_weight: float = 25.0
    variance_weight: float = 25.0
    covariance_weight: float = 1.0
    learning_rate: float = 5e-4
    warmup_rate: float = 1e-3
    warmup_iterations: int = 20
    max_iterations: int = 2000
    batch_size: int = 512

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("expander_units", self.expander_units, Integral, at_least=1)
        check_number("warmup_iterations", self.warmup_iterations, Integral, at_least=0)
        check_number("warmup_rate", self.warmup_rate, Real, above=0)
        for name in ("noise", "invariance_weight", "variance_weight", "covariance_weight"):
            check_number(name, getattr(self, name), Real, at_least=0)

    def _rates(self, group: Sequence[Any]) -> Callable[[int], Tensor]:
        first, later = settings_of(group, "warmup_rate"), settings_of(group, "learning_rate")
        return lambda step: first if step < self.warmup_iterations else later

    def _shapes(self, n_features: int) -> list[Shape]:
        encoder = Shape(n_features, int(self.hidden_units), int(self.n_components))
        return [encoder, Shape(int(self.n_components), int(self.expander_units), int(self.expander_units))]

    def _losses(self, group: Sequence[Any], rows: StandardizedRows) -> Losses:
        import torch

        noise = settings_of(group, "noise", 3)
        weights = torch.stack([settings_of(group, f"{name}_weight") for name in ("invariance", "variance", "covariance")])  # [3, S]

        def losses(blocks: list[Block], x: Tensor, generator: Generator) -> Tensor:
            encoder, expander = blocks
            # A (x + noise ε) = A x + noise (A ε): x and ε are common to all networks, so that both are one large product.
            A = encoder.hidden_weights
            plain, change = ((A.flatten(0, 1) @ part).view(*A.shape[:2], -1) for part in (x, rows.noise(x.shape[1], generator)))
            projected = torch.cat([plain, torch.addcmul(plain, noise, change)], dim=2)
            outputs = expander(encoder.finish(projected, n_views=2), n_views=2)
            return total_loss()(outputs.view(*outputs.shape[:2], 2, -1), weights)

        return losses


def infonce_loss(z: Tensor, z2: Tensor, temperature: float | Tensor = 1.0) -> Tensor:
    """Return ℓ = (1/n) Σ_i (−log(exp(s_ii / τ) / Σ_k exp(s_ik / τ))),  s_ik = z_iᵀ z′_k / (‖z_i‖ ‖z′_k‖). [...]

    z and z′ are two views of the same rows, [..., n, J] each. Rows of the first view are looked for among those of the second, not the
    other way round, as in SCARF. Bahri et al. have the mean over k in place of the sum, which is less by the constant log n. A tensor of
    temperatures is [..., 1, 1].
    """
    directions, directions2 = (view / view.norm(dim=-1, keepdim=True).clamp(min=1e-8) for view in (z, z2))
    logarithms = (directions / temperature @ directions2.mT).log_softmax(-1)
    return -logarithms.diagonal(dim1=-2, dim2=-1).mean(-1)


@dataclass(eq=False, repr=False, kw_only=True)
class SCARF(NetworkTransformer):
    """Contrastive learning for tables, after Bahri, Jiang, Tay and Metzler (2022).

    In a view x′ of a row x, a random set of its columns has the values of random training rows, for each column another: draws from its
    empirical marginal distribution. Row and view pass through an encoder, then a projection head:

        z = B relu(norm(A x)),   e = D relu(norm(C z))        norm: batch normalization, with a learned scale and shift

    z is the representation. Adam lowers `infonce_loss`(e, e′). The networks are smaller than the authors', which have six layers of 256
    units and no batch normalization. Training is in single precision. It needs PyTorch: pip install "gpssl[nn]".

    Parameters
    ----------
    n_components
        J, the number of representation dimensions.
    hidden_units, projection_units
        Widths of the encoder's hidden layer, and of the head's hidden layer and outputs.
    corruption
        Fraction of the columns that a view replaces, rounded down, but at least one column.
    similarity_temperature
        τ in the loss.
    learning_rate, max_iterations, batch_size, random_state, verbose
        As in `VICReg`.

    Attributes
    ----------
    encoder_, loss_, n_components_, n_features_in_, feature_names_in_
        As in `VICReg`.
    """

    batched: ClassVar = frozenset({"corruption", "similarity_temperature", "learning_rate"})

    projection_units: int = 32
    corruption: float = 0.6
    similarity_temperature: float = 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("projection_units", self.projection_units, Integral, at_least=1)
        check_number("similarity_temperature", self.similarity_temperature, Real, above=0)
        check_number("corruption", self.corruption, Real, above=0, at_most=1)

    def _shapes(self, n_features: int) -> list[Shape]:
        encoder = Shape(n_features, int(self.hidden_units), int(self.n_components))
        return [encoder, Shape(int(self.n_components), int(self.projection_units), int(self.projection_units))]

    def _losses(self, group: Sequence[Any], rows: StandardizedRows) -> Losses:
        import torch

        temperature = settings_of(group, "similarity_temperature", 3)
        table = rows.tensor()
        n_features = len(table)
        n_replaced = torch.tensor([max(1, int(estimator.corruption * n_features)) for estimator in group])

        def losses(blocks: list[Block], x: Tensor, generator: Generator) -> Tensor:
            encoder, head = blocks
            views = torch.cat([x.expand(len(group), -1, -1), corrupt(x, table, n_replaced, generator)], dim=2)
            outputs = head(encoder(views, n_views=2), n_views=2)
            first, second = outputs.mT.chunk(2, dim=1)
            return infonce_loss(first, second, temperature)

        return losses


def corrupt(x: Tensor, table: Tensor, n_replaced: Tensor, generator: Generator) -> Tensor:
    """Replace random columns of the rows x [D, n], so many [S] in each row, by values from the table [D, N]. [S, D, n]

    All S views use the same order of columns and the same values.
    """
    import torch

    order = torch.rand(x.T.shape, generator=generator, dtype=torch.float64)
    last = order.sort(1).values[:, n_replaced - 1].T[:, None]  # of the columns that are replaced, the last in this order
    others = torch.randint(table.shape[1], x.shape, generator=generator)
    return torch.where(last >= order.T, table.gather(1, others), x)
