"""Samples of tables for the experiments on which rows to label next: rows that may be labeled, rows that are only judged, and a pool.

Of a table at most 1,000 rows are drawn, once. All of them are known, and train the representations of a pool, once. In each split a third
of them are judged and never labeled, whatever is chosen: to be judged on the rows that are left over would favor those who label the hard
ones. Ten of the others, drawn by chance, have labels at the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from gpssl import MarginalizedClassifier, MarginalizedRegressor, RepresentationPool
from gpssl.comparison import split_seed
from gpssl.downstream._pool_parts import FittedPart, PoolRows

from .data.keel import DEVELOPMENT_TABLES, load_keel
from .data.tables import load_regression
from .few_label_protocol import few_labels_split
from .few_targets import few_targets_split

Array = NDArray[np.float64]
Places = NDArray[np.intp]

START = 10
JUDGED_SHARE = 1 / 3
MEMBERS = (
    "columns",
    "columns as normal scores",
    "similar rows",
    "similar rows, 5 dimensions learned",
    "rows alike in most columns by normal scores",
    "rows alike in most columns by normal scores, 5 dimensions learned",
    "neighbors of neighbors",
    "neighbors of neighbors, 15 dimensions learned",
)
"""Members of the default pool that are used, for all ways to choose alike: heads are trained a hundred thousand times."""


@dataclass(frozen=True)
class Sample:
    """Rows of a table with all their labels, and a pool that was fitted to them."""

    y: NDArray[Any]
    """Classes, numbered from 0, or targets in standard deviations. [n]"""
    numbers: Array
    """Standardized columns: distances without learning. [n, D]"""
    pool: RepresentationPool
    """Its members remember their features: rows are given by their places."""

    @property
    def is_class(self) -> bool:
        """Whether there are classes to tell apart."""
        return self.y.dtype.kind == "i"

    @property
    def rows(self) -> Array:
        """All rows, as the models take them: their places. [n, 1]"""
        return np.arange(len(self.y), dtype=np.float64)[:, None]

    def fitted(self, labeled: Places) -> Any:
        """Return a model whose heads are trained on these labels."""
        kind = MarginalizedClassifier if self.is_class else MarginalizedRegressor
        return kind(FrozenEstimator(self.pool), random_state=0).fit(self.rows[labeled], self.y[labeled])


class RememberedMembers:
    """Members of a pool with the features that they have at all rows of a sample; rows are then given by their places."""

    kernel = None

    def __init__(self, part: FittedPart, rows: PoolRows, memory: dict[Any, Array] | None = None) -> None:
        self.part, self.rows = part, rows
        self.memory: dict[Any, Array] = {} if memory is None else memory

    @property
    def names(self) -> list[str]:
        """What the members are called."""
        return self.part.names

    @property
    def prior(self) -> Array:
        """Their prior weights."""
        return self.part.prior

    def draw(self, _n_draws: int | None, _seed: int) -> RememberedMembers:
        """Return the members themselves, which are not random."""
        return self

    def settle(self, rows: PoolRows) -> list[Array]:
        """Return the features of the labeled rows."""
        return list(self(rows))

    def __call__(self, rows: PoolRows) -> Iterator[Array]:
        """Yield each member's features at the places that are given. [1, n, M] each"""
        places = np.asarray(rows.given)[:, 0].astype(np.intp)
        for number, name in enumerate(self.names):
            key = (name, getattr(self.part, "limit", None))
            if key not in self.memory:
                self.memory[key] = next(iter(self.part.only([number])(self.rows)))[0]
            yield self.memory[key][places][None]

    def limited(self, limit: int) -> RememberedMembers:
        """Return the same members with so many features."""
        return RememberedMembers(self.part.limited(limit), self.rows, self.memory)

    def only(self, places: Sequence[int]) -> RememberedMembers:
        """Return some of the members."""
        return RememberedMembers(self.part.only(places), self.rows, self.memory)


@lru_cache(maxsize=1)
def sample_of(data: str, seed: int) -> Sample:
    """Draw rows of a table, and fit the pool to them."""
    if data in DEVELOPMENT_TABLES:
        of_classes = few_labels_split(load_keel(data), 0, seed)
        return Sample(of_classes.y.astype(np.intp), of_classes.numbers, remembering_pool(of_classes.frame, seed))
    of_numbers = few_targets_split(load_regression(data), 0, seed)
    return Sample(of_numbers.y, of_numbers.numbers, remembering_pool(of_numbers.numbers, seed))


def remembering_pool(rows: Any, seed: int) -> RepresentationPool:
    """Fit the members, and let them remember their features."""
    members = [member for member in RepresentationPool.for_rows(rows).members or [] if member.name in MEMBERS]
    pool = RepresentationPool(members, random_state=seed).fit(rows)
    checked = pool.check(rows)
    pool.fitted_ = [RememberedMembers(part, checked) for part in pool.fitted_]  # type: ignore[misc]
    del pool.n_features_in_
    pool.__dict__.pop("feature_names_in_", None)
    return pool


def split_of(sample: Sample, split: int, seed: int) -> tuple[Places, Places]:
    """Return the rows that are judged, and the others in the order in which chance would label them; the first ten have two classes."""
    rng = np.random.default_rng(split_seed(seed, split))
    order = rng.permutation(len(sample.y))
    n_judged = round(JUDGED_SHARE * len(order))
    judged, others = order[:n_judged], order[n_judged:]
    while len(np.unique(sample.y[others[:START]])) < 2:
        others = rng.permutation(others)
    return judged, others
