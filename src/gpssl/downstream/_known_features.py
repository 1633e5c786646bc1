"""What models on parts of the same rows share, such as those of folds: features of the rows, and where the search for each head ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._gp_head import SoftmaxGP, SoftmaxHeads
from ._pool import RepresentationPool
from ._pool_parts import DrawnMember, FittedPart, PoolRows

Array = NDArray[np.float64]


class KnownFeatures:
    """Features of rows under the members of a fitted pool, which are evaluated once, and the latent functions of heads on them.

    The function f that a softmax Gaussian process finds from nine tenths of the labels is close to the one from nine other tenths. So
    Newton's method for one fold begins where that for the folds before has ended.
    """

    def __init__(self, pool: RepresentationPool, X: Any) -> None:
        self._pool, self._X = pool, X
        self._features: dict[tuple[int, int | None], list[Array]] = {}
        self._latent: dict[tuple[int, str], Array] = {}
        """By member and classes, at all rows; zero at those that no head has seen. [S, V, L, N]"""

    @cached_property
    def _rows(self) -> PoolRows:
        return self._pool.check(self._X)

    def at(self, places: NDArray[np.intp]) -> KnownPart:
        """Return what is known of some of the rows."""
        return KnownPart(self, places)

    def settle(self, functions: Sequence[FittedPart], limit: int | None, places: NDArray[np.intp]) -> list[Array]:
        """Return the features of rows for each member. Those with draws are evaluated anew: they are drawn given what was asked before."""
        found: list[Array] = []
        for number, part in enumerate(functions):
            if isinstance(part, DrawnMember):
                found.extend(part.settle(self._rows[places]))
                continue
            if (number, limit) not in self._features:
                self._features[number, limit] = part.settle(self._rows)
            found.extend(Z[:, places] for Z in self._features[number, limit])
        return found

    def start(self, member: int, classes: NDArray[Any], places: NDArray[np.intp]) -> Array | None:
        """Return where to begin the search for the head of a member. [S, V, L, n]"""
        latent = self._latent.get((member, _key(classes)))
        return None if latent is None else latent[..., places]

    def remember(self, member: int, heads: SoftmaxHeads, places: NDArray[np.intp]) -> None:
        """Keep where the search ended, for the rows that were in it."""
        if heads.latent is not None and heads.latent.shape[-1] == len(places):
            empty = np.zeros((*heads.latent.shape[:-1], len(self._rows)))
            self._latent.setdefault((member, _key(heads.classes)), empty)[..., places] = heads.latent


@dataclass(frozen=True)
class KnownPart:
    """What is known of the rows that one model is trained on."""

    known: KnownFeatures
    places: NDArray[np.intp]
    """Where its rows are among all. [n]"""

    def settle(self, functions: Sequence[FittedPart], limit: int | None, labeled: NDArray[np.intp]) -> list[Array]:
        """Return the features of the labeled rows of the part for each member. [S, n labeled, J] each"""
        return self.known.settle(functions, limit, self.places[labeled])

    def fit_head(self, member: int, head: SoftmaxGP, Z: Array, y: NDArray[Any], labeled: NDArray[np.intp], **params: Any) -> SoftmaxHeads:
        """Train the heads of a member as `fit_draws` does, from where those of other parts are."""
        places = self.places[labeled]
        heads = head.fit_draws(Z, y, **params, start=self.known.start(member, np.unique(y), places))
        self.known.remember(member, heads, places)
        return heads


def _key(classes: NDArray[Any]) -> str:
    return repr(classes.tolist())
