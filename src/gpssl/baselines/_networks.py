"""What the neural baselines share: small networks, many of them trained at once on views of rows, and the trained encoder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from .._runtime.progress import Progress
from .._validation import NumberedDimensionsMixin, check_number, seed_from, unchanged_on_failure
from ..data._arrays import row_blocks
from ..downstream._perceptron import torch_on_one_thread

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
    """b [S, outputs]; None where what follows does not see it, because Adam would blow up its rounding errors."""

    def __call__(self, x: Tensor, n_views: int) -> Tensor:
        """Return the outputs for V views of n rows, one view after the other: x [S, inputs, V n]. [S, outputs, V n]"""
        return self.finish(self.hidden_weights.bmm(x), n_views)

    def finish(self, projected: Tensor, n_views: int) -> Tensor:
        """Return the outputs from A x [S, H, V n]. [S, outputs, V n]"""
        by_view = projected.view(*projected.shape[:2], n_views, -1)
        outputs = _second_half()(by_view, self.scale, self.shift, self.output_weights)
        return outputs if self.output_bias is None else outputs + self.output_bias[..., None]


@cache
def _second_half() -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """Return the function y = B h,  h = relu(g x̂ + s),  x̂ = (x − mean) / √(variance + ε) over the last axis of x [S, H, V, n].

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
        """Return initial parameters as PyTorch's layers have them: weights uniform within ±1/√inputs, scale one, shift zero."""
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
        """Take one step of Adam on the loss of each network [S] with its rate [S]."""
        import torch

        parts = torch.autograd.grad(losses.sum(), self.leaves)
        gradient = torch.cat([part.reshape(len(part), -1) for part in parts], dim=1)
        self.steps += 1
        self.first.lerp_(gradient, 0.1)
        self.second.lerp_(gradient.square_(), 0.001)
        size = (self.second / (1 - 0.999**self.steps)).sqrt_().add_(1e-8)
        self.parameters.sub_((self.first / size).mul_(rates[:, None] / (1 - 0.9**self.steps)))


@dataclass(frozen=True)
class NetworkEncoder:
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
    def from_block(cls, block: Block, network: int, rows: StandardizedRows) -> NetworkEncoder:
        """Return the encoder of one network, normalized by the statistics of all training rows instead of those of a batch."""
        A, scale, shift, B = (part[network].detach().numpy().astype(np.float64) for part in block[:4])
        A = A * rows.varies  # weights of columns that never varied were never trained
        projected = rows.standardized @ A.T
        factor = scale / np.sqrt(projected.var(axis=0) + NORMALIZATION_EPSILON)
        bias = np.zeros(len(B)) if block.output_bias is None else block.output_bias[network].detach().numpy().astype(np.float64)
        return cls(rows.center, rows.scale, A.T * factor, shift - projected.mean(axis=0) * factor, B.T.copy(), bias)

    def __call__(self, X: Array) -> Array:
        """Return the outputs at the rows X [n, D]. [n, outputs]"""
        outputs = np.empty((len(X), len(self.output_bias)))
        for block in row_blocks(len(X)):
            hidden = np.maximum((X[block] - self.center) / self.scale @ self.hidden_weights + self.hidden_bias, 0.0)
            outputs[block] = hidden @ self.output_weights + self.output_bias
        return outputs

    def with_unit_variance(self, rows: StandardizedRows) -> NetworkEncoder:
        """Return the encoder times a factor that makes the variance of its outputs over the training rows one on average."""
        variance = self(rows.standardized * self.scale + self.center).var(axis=0).mean()
        factor = 1 / np.sqrt(variance) if variance > 0 else 1.0
        return replace(self, output_weights=factor * self.output_weights, output_bias=factor * self.output_bias)


class StandardizedRows(NamedTuple):
    """Training rows in units of their columns' standard deviations."""

    standardized: Array
    """[N, D]"""
    center: Array
    """[D]"""
    scale: Array
    """[D]; one for a column that is constant"""
    varies: NDArray[np.bool_]
    """Which columns are not constant. [D]"""

    @classmethod
    def standardize(cls, X: Array) -> StandardizedRows:
        """Subtract means and divide by standard deviations."""
        center, deviation = X.mean(axis=0), X.std(axis=0)
        varies = deviation > 1e-12 * np.abs(center)
        scale = np.where(varies, deviation, 1.0)
        return cls((X - center) / scale, center, scale, varies)

    def tensor(self) -> Tensor:
        """Return the rows as columns, in single precision; a column of the table that is constant is zero. [D, N]"""
        import torch

        return torch.from_numpy(np.where(self.varies, self.standardized, 0.0).T.copy()).float()

    def noise(self, n_rows: int, generator: Generator) -> Tensor:
        """Return standard normal noise for so many rows; zero for columns without variance. [D, n]"""
        import torch

        noise = torch.randn((len(self.center), n_rows), generator=generator, dtype=torch.float32)
        return noise if self.varies.all() else noise.mul_(torch.from_numpy(self.varies)[:, None])


Losses = Callable[["list[Block]", "Tensor", "Generator"], "Tensor"]
"""The loss of each network [S] on a batch of rows [D, n], with random numbers from the generator."""


@dataclass(eq=False, repr=False)
class NetworkTransformer(NumberedDimensionsMixin, TransformerMixin, BaseEstimator, ABC):
    """A representation by a network that is trained on views of rows. The child chooses the views and the loss.

    Parameters are fields of a data class, so that each is written once: the children add theirs, or change a default.
    """

    batched: ClassVar[frozenset[str]]
    """Parameters that may differ between networks that are trained at once."""

    scale_counts: ClassVar[bool] = False
    """Whether the loss sees the common scale of the outputs; where it does not, their average variance is set to one."""

    n_components: int = 5
    _: KW_ONLY
    hidden_units: int = 64
    learning_rate: float = 1e-3
    max_iterations: int = 1000
    batch_size: int = 128
    random_state: Any = None
    verbose: bool | int = False

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - y is scikit-learn's
        """Train on the rows of X."""
        with unchanged_on_failure(self):
            _fit_together([self], X)
        return self

    def fit_grid(self, X: Any, settings: Sequence[dict[str, Any]]) -> list[Self]:
        """Return a fitted clone for each dict of changed parameters; this estimator stays as it is.

        Each is, up to rounding, what clone(self).set_params(**changes).fit(X) would be. Those that differ in nothing that changes
        shapes, batches or seeds are trained at once: two dozen small networks take about three times as long as one.
        """
        candidates = [clone(self).set_params(**changes) for changes in settings]
        if candidates:
            _fit_together(candidates, X)
        return candidates

    def transform(self, X: Any) -> Array:
        """Return the representation of each row. [n, J]"""
        return self._encode(X)[:, : self._n_features_out]

    def _encode(self, X: Any) -> Array:
        check_is_fitted(self)
        return self.encoder_(validate_data(self, X, reset=False, dtype=np.float64))

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _check_parameters(self) -> None:
        for name in ("n_components", "hidden_units", "max_iterations"):
            check_number(name, getattr(self, name), Integral, at_least=1)
        check_number("batch_size", self.batch_size, Integral, at_least=2)
        check_number("learning_rate", self.learning_rate, Real, above=0)

    def _rates(self, group: Sequence[Any]) -> Callable[[int], Tensor]:
        """Return a function that gives the learning rate of each network at a step, counted from zero. [S]"""
        rates = settings_of(group, "learning_rate")
        return lambda _: rates

    @abstractmethod
    def _shapes(self, n_features: int) -> list[Shape]:
        """Return the shapes of a network's blocks; the first is the encoder's."""

    @abstractmethod
    def _losses(self, group: Sequence[Any], rows: StandardizedRows) -> Losses:
        """Return the loss for networks with the settings of each estimator of the group."""


def settings_of(group: Sequence[Any], name: str, n_axes: int = 1) -> Tensor:
    """Return a parameter of each estimator, to be multiplied with arrays of so many axes. [S, 1, …]"""
    import torch

    numbers = torch.tensor([float(getattr(estimator, name)) for estimator in group], dtype=torch.float32)
    return numbers.view(-1, *[1] * (n_axes - 1))


def batches(rows: Tensor, size: int, number: int, generator: Generator) -> Iterator[Tensor]:
    """Yield batches of rows [D, n]: all rows if they are at most `size`, else slices of one random order after another.

    Batches are full: the last rows of an order, if too few for a batch, are left out.
    """
    import torch

    n_rows = rows.shape[1]
    if n_rows <= size:
        yield from (rows for _ in range(number))
        return
    per_order = n_rows // size
    for batch in range(number):
        if batch % per_order == 0:
            order = torch.randperm(n_rows, generator=generator)
        start = batch % per_order * size
        yield rows[:, order[start : start + size]]


def _fit_together(estimators: Sequence[Any], X: Any) -> None:
    """Fit all estimators; train those that differ in `batched` parameters only at once."""
    common = None
    groups: dict[Any, list[Any]] = {}
    for estimator in estimators:
        table = validate_data(estimator, X, dtype=np.float64, ensure_min_samples=2)
        estimator._check_parameters()
        if estimator.random_state is None and common is None:
            common = seed_from(None)  # without seeds, settings are compared on the same random numbers
        seed = common if estimator.random_state is None else seed_from(estimator.random_state)
        alone = sorted(set(estimator.get_params()) - estimator.batched - {"random_state", "verbose"})
        groups.setdefault((seed, *(getattr(estimator, name) for name in alone)), []).append(estimator)
    with torch_on_one_thread(type(estimators[0]).__name__):
        for (seed, *_), group in groups.items():
            _train(group, StandardizedRows.standardize(table), seed)


def _train(group: Sequence[Any], rows: StandardizedRows, seed: int) -> None:
    """Train the networks of a group of estimators and give each estimator its encoder."""
    import torch

    first = group[0]
    networks = Networks(first._shapes(rows.standardized.shape[1]), len(group), seed)
    generator = torch.Generator().manual_seed(seed)
    objective = first._losses(group, rows)
    rates = first._rates(group)
    progress = Progress(f"{type(first).__name__}, {len(group)} at once", first.max_iterations, enabled=bool(first.verbose), unit="steps")
    for step, batch in enumerate(progress.each(batches(rows.tensor(), int(first.batch_size), int(first.max_iterations), generator))):
        losses = objective(networks.blocks, batch, generator)
        networks.step(losses, rates(step))
    for network, estimator in enumerate(group):
        encoder = NetworkEncoder.from_block(networks.blocks[0], network, rows)
        estimator.encoder_ = encoder if estimator.scale_counts else encoder.with_unit_variance(rows)
        estimator.n_components_, estimator._seed = int(estimator.n_components), seed
        estimator.loss_ = float(losses[network].detach())
