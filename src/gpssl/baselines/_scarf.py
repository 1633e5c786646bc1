"""SCARF: the network learns to find a row among others from a view in which some columns have values of other rows."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

from .._validation import check_number
from ._networks import Block, Losses, NetworkTransformer, Shape, StandardizedRows, settings_of

if TYPE_CHECKING:
    from torch import Generator, Tensor


def infonce_loss(z: Tensor, z2: Tensor, temperature: float | Tensor = 1.0) -> Tensor:
    """Return ℓ = (1/n) Σ_i (−log(exp(s_ii / τ) / Σ_k exp(s_ik / τ))),  s_ik = z_iᵀ z′_k / (‖z_i‖ ‖z′_k‖). [...]

    z and z′ are two views of the same rows, [..., n, J] each. Rows of the first view are looked for among those of the second, not the
    other way round, as in SCARF. Bahri et al. have the mean over k in place of the sum, which is less by the constant log n. A tensor of
    temperatures is [..., 1, 1].
    """
    directions, directions2 = (view / view.norm(dim=-1, keepdim=True).clamp(min=1e-8) for view in (z, z2))
    logarithms = (directions / temperature @ directions2.mT).log_softmax(-1)
    return -logarithms.diagonal(dim1=-2, dim2=-1).mean(-1)


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
    learning_rate, max_iterations
        Size of Adam's steps, and their number.
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

    batched: ClassVar = frozenset({"corruption", "similarity_temperature", "learning_rate"})
    scale_counts: ClassVar = False

    def __init__(
        self,
        n_components: int = 5,
        *,
        hidden_units: int = 64,
        projection_units: int = 32,
        corruption: float = 0.6,
        similarity_temperature: float = 1.0,
        learning_rate: float = 1e-3,
        max_iterations: int = 1000,
        batch_size: int = 128,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.hidden_units = hidden_units
        self.projection_units = projection_units
        self.corruption = corruption
        self.similarity_temperature = similarity_temperature
        self.learning_rate = learning_rate
        self.max_iterations = max_iterations
        self.batch_size = batch_size
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("hidden_units", "projection_units"):
            check_number(name, getattr(self, name), Integral, at_least=1)
        check_number("similarity_temperature", self.similarity_temperature, Real, above=0)
        check_number("corruption", self.corruption, Real, above=0, otherwise="and at most 1")
        if self.corruption > 1:
            raise ValueError(f"corruption must be a number above 0 and at most 1, got {self.corruption!r}.")

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
