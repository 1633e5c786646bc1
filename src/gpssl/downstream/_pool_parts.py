"""Fitted members of a pool, and functions that give their features at any rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from .._validation import seed_from
from ..core._checked_rows import rows_in_memory
from ..core._draws import FunctionDraws
from ..core._features import Features
from ..core._posterior import Posterior
from ..kernels._protocol import kind_of_rows

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PoolRows:
    """New rows as they were given, and as each kind of kernel takes them."""

    given: Any
    prepared: dict[Any, Any]
    """Arrays, or sparse rows, by `kind_of_rows` of a kernel."""

    def __len__(self) -> int:
        return next((rows.shape[0] for rows in self.prepared.values()), _num_samples(self.given))

    def suiting(self, kernel: Kernel) -> NDArray[Any]:
        """Return the rows as this kernel takes them."""
        return self.of_kind(kind_of_rows(kernel))

    def of_kind(self, kind: str) -> NDArray[Any]:
        """Return the rows as kernels for this kind of rows take them."""
        rows = self.prepared[kind]
        return rows.toarray() if issparse(rows) else rows

    def __getitem__(self, block: slice | NDArray[np.intp]) -> PoolRows:
        return PoolRows(_safe_indexing(self.given, block), {kind: rows[block] for kind, rows in self.prepared.items()})


@dataclass(frozen=True)
class KernelMembers:
    """Posterior kernels that share kernel features: φ_m(x) = sqrt(g_m) ∘ b(x), as `Posterior.kernel_weights` has it."""

    names: list[str]
    prior: Array
    """The prior weight of each member. [m]"""
    features: Features
    basis: Array
    """Q. [M, M]"""
    roots: Array
    """sqrt(g) for each member. [m, M]"""
    spread: Array
    """Variance of b over the training rows: the eigenvalues λ. [M]"""
    limit: int | None = None
    """How many features to keep, those with the largest variance; None keeps all."""

    @property
    def kernel(self) -> Kernel:
        """The kernel, which says what rows must look like."""
        return self.features.kernel

    def draw(self, n_draws: int | None, seed: int) -> KernelMembers:  # noqa: ARG002  (one signature for all members)
        """Return the members themselves: a posterior kernel is not random."""
        return self

    def settle(self, rows: PoolRows) -> list[Array]:
        """Return the features of the labeled rows."""
        return list(self(rows))

    def __call__(self, rows: PoolRows) -> Iterator[Array]:
        """Yield each member's features, which are evaluated once for all. [1, n, M] each"""
        shared = self.features.combine(rows.of_kind(self._kind), self._weights)
        for root, kept in zip(self.roots, self._kept_by_member, strict=True):
            yield (shared[:, kept] * root[self._kept][kept])[None]

    @cached_property
    def _kind(self) -> str:
        return kind_of_rows(self.kernel)  # a look into all terms of a kernel takes longer than a small block of rows

    @cached_property
    def _kept(self) -> NDArray[np.intp]:
        """Directions that any member keeps."""
        return np.arange(len(self.spread)) if self.limit is None else np.unique(np.concatenate(self._leading))

    @cached_property
    def _weights(self) -> Array:
        """The directions that are kept, as weights of k(x, U). [M, kept]"""
        return self.features.unwhiten(self.basis[:, self._kept])

    @cached_property
    def _leading(self) -> list[NDArray[np.intp]]:
        variances = self.roots**2 * self.spread
        return [np.sort(np.argsort(-variance, kind="stable")[: self.limit]) for variance in variances]

    @cached_property
    def _kept_by_member(self) -> list[Any]:
        """Places among `_kept` of what each member keeps."""
        return [slice(None)] * len(self.names) if self.limit is None else [np.searchsorted(self._kept, own) for own in self._leading]

    def limited(self, limit: int) -> KernelMembers:
        """Return the same members with so many features."""
        return replace(self, limit=limit if limit < len(self.spread) else None)

    def only(self, places: Sequence[int]) -> KernelMembers:
        """Return some of the members."""
        chosen = list(places)
        some = replace(self, names=[self.names[place] for place in chosen], prior=self.prior[chosen], roots=self.roots[chosen])
        if self.limit is None:  # members then keep the same directions, whichever they are
            vars(some)["_weights"] = self._weights
        return some

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the rest."""
        return {name: value for name, value in self.__dict__.copy().items() if not name.startswith("_")}


@dataclass(frozen=True)
class DrawnMember:
    """A member with draws: its posterior, or another fitted estimator with `draw_functions`; and its functions, once they are drawn."""

    names: list[str]
    prior: Array
    source: Any
    functions: Any = None

    @property
    def kernel(self) -> Kernel | None:
        """The kernel, where there is a posterior."""
        return self.source.features.kernel if isinstance(self.source, Posterior) else None

    def draw(self, n_draws: int | None, seed: int) -> DrawnMember | TransformedMember:
        """Draw its functions; for None, return the member with its mean representation."""
        if n_draws is None:
            return TransformedMember(self.names, self.prior, self.source)
        if isinstance(self.source, Posterior):
            return replace(self, functions=self.source.draw_functions(n_draws, seed_from(seed)))  # as `GPSSL.draw_functions` does
        return replace(self, functions=self.source.draw_functions(n_draws, random_state=seed))

    def settle(self, rows: PoolRows) -> list[Array]:
        """Return the features of the labeled rows, jointly; new rows are drawn given these."""
        Z = self.functions(self._own(rows))
        if isinstance(self.functions, FunctionDraws):
            self.functions.settle()
        return [Z]

    def __call__(self, rows: PoolRows) -> Iterator[Array]:
        """Yield the features of rows for each draw. [S, n, J]"""
        own = self._own(rows)
        yield self.functions.one_row_at_a_time(own) if isinstance(self.functions, FunctionDraws) else self.functions(own)

    def _own(self, rows: PoolRows) -> Any:
        return rows.given if self.kernel is None else rows_in_memory(rows.suiting(self.kernel))

    def limited(self, limit: int) -> DrawnMember:  # noqa: ARG002  (one signature for all members)
        """Return the member itself: its dimensions are few."""
        return self

    def only(self, places: Sequence[int]) -> DrawnMember:  # noqa: ARG002  (one signature for all members)
        """Return the member itself, which is one."""
        return self


@dataclass(frozen=True)
class TransformedMember:
    """A fitted estimator with `transform`, or a posterior, of which the mean counts: one representation."""

    names: list[str]
    prior: Array
    source: Any

    @property
    def kernel(self) -> Kernel | None:
        """The kernel, where there is a posterior."""
        return self.source.features.kernel if isinstance(self.source, Posterior) else None

    def draw(self, n_draws: int | None, seed: int) -> TransformedMember:  # noqa: ARG002  (one signature for all members)
        """Return the member itself, which is not random."""
        return self

    def settle(self, rows: PoolRows) -> list[Array]:
        """Return the features of the labeled rows."""
        return list(self(rows))

    def __call__(self, rows: PoolRows) -> Iterator[Array]:
        """Yield what the estimator makes of the rows. [1, n, J]"""
        values = self.source.transform(rows.given) if self.kernel is None else self.source.mean(rows.suiting(self.kernel))
        yield np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)[None]

    def limited(self, limit: int) -> TransformedMember:  # noqa: ARG002  (one signature for all members)
        """Return the member itself."""
        return self

    def only(self, places: Sequence[int]) -> TransformedMember:  # noqa: ARG002  (one signature for all members)
        """Return the member itself, which is one."""
        return self


FittedPart = KernelMembers | DrawnMember | TransformedMember
"""One member, or several that share a kernel."""
