"""Representations by a network that is trained on views of rows: what the neural baselines share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from ..downstream.perceptron import torch_on_one_thread
from ..progress import Progress
from ..validation import check_number, seed_from, unchanged_on_failure
from .networks import Encoder, Networks, Rows, Shape

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from .networks import Block

Array = NDArray[np.float64]

Losses = Callable[["list[Block]", "Tensor", "Generator"], "Tensor"]
"""The loss of each network [S] on a batch of rows [D, n], with random numbers from the generator."""


class NetworkTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A representation by a network that is trained on views of rows. Which views and which loss is up to the child."""

    batched: ClassVar[frozenset[str]]
    """Parameters that may differ between networks that are trained at once."""

    scale_counts: ClassVar[bool]
    """Whether the loss sees the common scale of the outputs; where it does not, their average variance is set to one."""

    n_components: int
    learning_rate: float
    max_iterations: int
    batch_size: int
    random_state: Any
    verbose: bool | int

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - y is scikit-learn's
        """Train on the rows of X."""
        with unchanged_on_failure(self):
            _fit_together([self], X)
        return self

    def fit_grid(self, X: Any, settings: Sequence[dict[str, Any]]) -> list[Self]:
        """A fitted clone for each dict of changed parameters; this estimator stays as it is.

        Each is, but for rounding, what clone(self).set_params(**changes).fit(X) would be. Those that differ in nothing that changes
        shapes, batches or seeds are trained at once: two dozen small networks take about three times as long as one.
        """
        candidates = [clone(self).set_params(**changes) for changes in settings]
        if candidates:
            _fit_together(candidates, X)
        return candidates

    def transform(self, X: Any) -> Array:
        """The representation of each row. [n, J]"""
        return self._encode(X)[:, : self._n_features_out]

    def _encode(self, X: Any) -> Array:
        check_is_fitted(self)
        return self.encoder_(validate_data(self, X, reset=False, dtype=np.float64))

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _check_parameters(self) -> None:
        for name in ("n_components", "max_iterations"):
            check_number(name, getattr(self, name), Integral, at_least=1)
        check_number("batch_size", self.batch_size, Integral, at_least=2)
        check_number("learning_rate", self.learning_rate, Real, above=0)

    def _rates(self, group: Sequence[Any]) -> Callable[[int], Tensor]:
        """The learning rate of each network at a step, counted from zero. [S]"""
        rates = values(group, "learning_rate")
        return lambda _: rates

    @abstractmethod
    def _shapes(self, n_features: int) -> list[Shape]:
        """The blocks of a network; the first is the encoder."""

    @abstractmethod
    def _losses(self, group: Sequence[Any], rows: Rows) -> Losses:
        """The loss, for networks with the settings of each estimator of the group."""


def values(group: Sequence[Any], name: str, n_axes: int = 1) -> Tensor:
    """A parameter of each estimator, to be multiplied with arrays of so many axes. [S, 1, …]"""
    import torch

    numbers = torch.tensor([float(getattr(estimator, name)) for estimator in group], dtype=torch.float32)
    return numbers.view(-1, *[1] * (n_axes - 1))


def batches(rows: Tensor, size: int, number: int, generator: Generator) -> Iterator[Tensor]:
    """Batches of rows [D, n]: all rows where no more than `size`, else the parts of one random order after another.

    Batches are full: the rest of an order, which is too few rows, is left out.
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
    """Fit all, those of a group at once."""
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
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise ImportError(f'{type(estimators[0]).__name__} needs PyTorch: pip install "gpssl[nn]".') from error
    with torch_on_one_thread():
        for (seed, *_), group in groups.items():
            _train(group, Rows.standardize(table), seed)


def _train(group: Sequence[Any], rows: Rows, seed: int) -> None:
    """Train the networks of a group of estimators and leave each its encoder."""
    import torch

    first = group[0]
    networks = Networks(first._shapes(rows.standardized.shape[1]), len(group), seed)
    generator = torch.Generator().manual_seed(seed)
    objective = first._losses(group, rows)
    rates = first._rates(group)
    progress = Progress(f"{type(first).__name__}, {len(group)} at once", first.max_iterations, enabled=bool(first.verbose), unit="steps")
    for step, batch in enumerate(batches(rows.tensor(), int(first.batch_size), int(first.max_iterations), generator)):
        losses = objective(networks.blocks, batch, generator)
        networks.step(losses, rates(step))
        progress.advance(1)
    progress.finish()
    for network, estimator in enumerate(group):
        encoder = Encoder.from_block(networks.blocks[0], network, rows)
        estimator.encoder_ = encoder if estimator.scale_counts else encoder.with_unit_variance(rows)
        estimator.n_components_, estimator._seed = int(estimator.n_components), seed
        estimator.loss_ = float(losses[network].detach())
