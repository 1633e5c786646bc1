"""Small networks of the same shapes, trained at once by Adam, and the encoder that is left of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..rows import row_blocks

if TYPE_CHECKING:
    from torch import Generator, Tensor

Array = NDArray[np.float64]

NORMALIZATION_EPSILON = 1e-5
"""Added to variances in batch normalization, as in PyTorch."""


class Block(NamedTuple):
    """y = B relu(g (A x − mean) / √(variance + ε) + s) + b for each of S networks: linear, batch normalization, rectifier, linear.

    The mean and the variance are those of A x over the rows of a batch, each view on its own, so that the first layer needs no bias.
    Rows are columns, because thin products are faster so.
    """

    hidden_weights: Tensor
    """A [S, H, inputs]"""
    scale: Tensor
    """g [S, H]"""
    shift: Tensor
    """s [S, H]"""
    output_weights: Tensor
    """B [S, outputs, H]"""
    output_bias: Tensor | None
    """b [S, outputs]; none where what follows does not see it: Adam would blow up its rounding errors"""

    def __call__(self, x: Tensor, n_views: int) -> Tensor:
        """The outputs for V views of n rows, one view after the other: x [S, inputs, V n]. [S, outputs, V n]"""
        return self.finish(self.hidden_weights.bmm(x), n_views)

    def finish(self, projected: Tensor, n_views: int) -> Tensor:
        """The outputs, from A x [S, H, V n]. [S, outputs, V n]"""
        by_view = projected.view(*projected.shape[:2], n_views, -1)
        outputs = _second_half()(by_view, self.scale, self.shift, self.output_weights)
        return outputs if self.output_bias is None else outputs + self.output_bias[..., None]


@cache
def _second_half() -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """y = B h,  h = relu(g x̂ + s),  x̂ = (x − mean) / √(variance + ε) over the last axis of x [S, H, V, n], as one function.

    With its gradient it takes about half the time of PyTorch's layers, a third of single operations. From the gradient by y, η:

        ∂B = η hᵀ,  δ = Bᵀη · 1[h > 0],  ∂s = Σ δ,  ∂g = Σ δ x̂,  ∂x = g (δ − ∂s/n − x̂ ∂g/n) / √(variance + ε)      Σ: rows of a view
    """
    import torch

    class SecondHalf(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, scale: Tensor, shift: Tensor, B: Tensor) -> Tensor:
            centered = x - x.mean(-1, keepdim=True)
            variance = torch.linalg.vector_norm(centered, dim=-1, keepdim=True).square_().div_(x.shape[-1])
            inverse = variance.add_(NORMALIZATION_EPSILON).rsqrt_()
            h = (centered * (inverse * scale[..., None, None])).add_(shift[..., None, None]).relu_()
            ctx.save_for_backward(centered, inverse, scale, h, B)
            return B.bmm(h.flatten(2))

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
            (eta,) = gradients
            centered, inverse, scale, h, B = ctx.saved_tensors
            by_weights = eta.bmm(h.flatten(2).mT)
            delta = B.mT.bmm(eta).view(h.shape).mul_(h.sign_())  # in place, because new memory costs more than the arithmetic
            by_shift = delta.sum(-1, keepdim=True)
            by_scale = torch.mul(delta, centered, out=h).sum(-1, keepdim=True).mul_(inverse)
            n_rows = delta.shape[-1]
            delta.sub_(by_shift / n_rows).sub_(centered.mul_(by_scale * inverse / n_rows)).mul_(inverse * scale[..., None, None])
            return delta, by_scale.sum((2, 3)), by_shift.sum((2, 3)), by_weights

    apply: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] = SecondHalf.apply
    return apply


class Shape(NamedTuple):
    """Widths of a block."""

    inputs: int
    hidden: int
    outputs: int
    biased: bool = False

    def start(self, random: np.random.Generator) -> list[Array]:
        """Initial parameters, those of PyTorch's layers: weights uniform within ±1/√inputs, scale one, shift zero."""
        weights = [random.uniform(-1, 1, (m, n)) / np.sqrt(n) for m, n in ((self.hidden, self.inputs), (self.outputs, self.hidden))]
        bias = [np.zeros(self.outputs)] if self.biased else []
        return [weights[0], np.ones(self.hidden), np.zeros(self.hidden), weights[1], *bias]


class Networks:
    """S networks, each a chain of blocks, while they are trained by Adam in single precision. All start from the same numbers.

    m ← β₁m + (1 − β₁)g,  v ← β₂v + (1 − β₂)g²,  θ ← θ − η (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)

    β₁ = 0.9, β₂ = 0.999 and ε = 1e-8 are its authors'; η is a rate for each network.
    """

    def __init__(self, shapes: Sequence[Shape], n_networks: int, seed: int) -> None:
        import torch

        random = np.random.default_rng(seed)
        starts = [shape.start(random) for shape in shapes]
        flat = np.concatenate([part.ravel() for start in starts for part in start])
        self.parameters = torch.from_numpy(flat).float().repeat(n_networks, 1)
        self.first, self.second = torch.zeros_like(self.parameters), torch.zeros_like(self.parameters)
        self.steps = 0
        self.leaves, self.blocks, at = [], [], 0
        for start in starts:
            parts = []
            for part in start:  # views of the parameters: a step on these is a step on all
                parts.append(self.parameters[:, at : at + part.size].view(-1, *part.shape).detach().requires_grad_())
                at += part.size
            hidden, scale, shift, output, *bias = parts
            self.blocks.append(Block(hidden, scale, shift, output, bias[0] if bias else None))
            self.leaves += parts

    def step(self, losses: Tensor, rates: Tensor) -> None:
        """One step of Adam on the loss of each network [S] with its rate [S]."""
        import torch

        parts = torch.autograd.grad(losses.sum(), self.leaves)
        gradient = torch.cat([part.reshape(len(part), -1) for part in parts], dim=1)
        self.steps += 1
        self.first.lerp_(gradient, 0.1)
        self.second.lerp_(gradient.square_(), 0.001)
        size = (self.second / (1 - 0.999**self.steps)).sqrt_().add_(1e-8)
        self.parameters.sub_((self.first / size).mul_(rates[:, None] / (1 - 0.9**self.steps)))


@dataclass(frozen=True)
class Encoder:
    """A trained encoder: x ↦ relu(((x − c) / d) A + a) B + b, in which A and a contain the normalization by all training rows."""

    center: Array
    """c [D]"""
    scale: Array
    """d [D]"""
    hidden_weights: Array
    """A [D, H]"""
    hidden_bias: Array
    """a [H]"""
    output_weights: Array
    """B [H, outputs]"""
    output_bias: Array
    """b [outputs]"""

    @classmethod
    def from_block(cls, block: Block, network: int, rows: Rows) -> Encoder:
        """What a network is where it is used: the statistics of its batches give way to those of all training rows as they are."""
        A, scale, shift, B = (part[network].detach().numpy().astype(np.float64) for part in block[:4])
        A = A * rows.varies  # weights of columns that never varied were never trained
        projected = rows.standardized @ A.T
        factor = scale / np.sqrt(projected.var(axis=0) + NORMALIZATION_EPSILON)
        bias = np.zeros(len(B)) if block.output_bias is None else block.output_bias[network].detach().numpy().astype(np.float64)
        return cls(rows.center, rows.scale, A.T * factor, shift - projected.mean(axis=0) * factor, B.T.copy(), bias)

    def __call__(self, X: Array) -> Array:
        """Outputs at the rows X [n, D]. [n, outputs]"""
        outputs = np.empty((len(X), len(self.output_bias)))
        for block in row_blocks(len(X)):
            hidden = np.maximum((X[block] - self.center) / self.scale @ self.hidden_weights + self.hidden_bias, 0.0)
            outputs[block] = hidden @ self.output_weights + self.output_bias
        return outputs

    def with_unit_variance(self, rows: Rows) -> Encoder:
        """The same outputs up to a common factor, with which their variance over the training rows is one on average."""
        variance = self(rows.standardized * self.scale + self.center).var(axis=0).mean()
        factor = 1 / np.sqrt(variance) if variance > 0 else 1.0
        return replace(self, output_weights=factor * self.output_weights, output_bias=factor * self.output_bias)


class Rows(NamedTuple):
    """Training rows in units of their columns' standard deviations."""

    standardized: Array
    """[N, D]"""
    center: Array
    """[D]"""
    scale: Array
    """[D]; one for a column that is constant"""
    varies: NDArray[np.bool_]
    """Which columns do. [D]"""

    @classmethod
    def standardize(cls, X: Array) -> Rows:
        """Subtract means and divide by standard deviations."""
        center, deviation = X.mean(axis=0), X.std(axis=0)
        varies = deviation > 1e-12 * np.abs(center)
        scale = np.where(varies, deviation, 1.0)
        return cls((X - center) / scale, center, scale, varies)

    def tensor(self) -> Tensor:
        """The rows as columns, in single precision; a column of the table that is constant is zero. [D, N]"""
        import torch

        return torch.from_numpy(np.where(self.varies, self.standardized, 0.0).T.copy()).float()

    def noise(self, n_rows: int, generator: Generator) -> Tensor:
        """Standard normal noise for so many rows; none for columns without variance. [D, n]"""
        import torch

        noise = torch.randn((len(self.center), n_rows), generator=generator, dtype=torch.float32)
        return noise if self.varies.all() else noise.mul_(torch.from_numpy(self.varies)[:, None])
