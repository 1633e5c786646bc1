"""Which rows a method may see, and when: unlabeled rows, labeled rows and test rows, scaled by the unlabeled ones alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpssl.datasets import Table

Array = NDArray[np.float64]

UNLABELED, LABELED, TEST = 0.4, 0.2, 0.4
"""The paper's shares (section 3.3.2)."""

HELD_OUT = 0.2
"""Of the labeled rows: those that settings are chosen by."""


class LabeledRows(NamedTuple):
    """Rows and their labels or targets."""

    X: Array
    y: NDArray[Any]


@dataclass(frozen=True)
class Split:
    """One sample of an experiment. What is learned may depend on everything but `test`."""

    unlabeled: Array
    """Rows that train the representation. [n, D]"""
    validation: LabeledRows
    """Rows that settings are chosen by: heads are trained on 80 % of them and scored on the others."""
    labeled: LabeledRows
    """Rows that train the final head; in the tables, the same."""
    test: LabeledRows
    seed: int
    """Of everything random in this sample."""
    groups: NDArray[Any] | None = None
    """Which validation rows belong together and are held out together; None where each stands for itself. [n]"""


class Parts(NamedTuple):
    """Row numbers."""

    unlabeled: NDArray[np.intp]
    labeled: NDArray[np.intp]
    test: NDArray[np.intp]


def split_seed(seed: int, number: int) -> int:
    """The seed of the split with this number: a whole number that differs between splits and between seeds."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0] // 2)


def divide(table: Table, seed: int, *, by_group: bool = False, max_rows: int | None = None) -> Parts:
    """The rows of the three parts, 40 : 20 : 40, by chance.

    With `by_group`, all rows of a group (the 15 measurements of a mouse) are in the same part. With more than `max_rows` rows, so many are
    drawn.
    """
    rng = np.random.default_rng(seed)
    units = table.groups if by_group and table.groups is not None else np.arange(len(table.X))
    order = rng.permutation(np.unique(units))[:max_rows]
    ends = np.round(np.cumsum([UNLABELED, LABELED]) * len(order)).astype(int)
    return Parts(*(rng.permutation(np.flatnonzero(np.isin(units, part))) for part in np.split(order, ends)))


def split_table(table: Table, seed: int, *, by_group: bool = False, max_rows: int | None = None, scaled: bool = True) -> Split:
    """The paper's split of a table: 40 % of the rows without labels, 20 % with, 40 % to predict. Columns are standardized if `scaled`."""
    return _assemble(table, divide(table, seed, by_group=by_group, max_rows=max_rows), seed, scaled=scaled, by_group=by_group)


def pool_table(table: Table, seed: int) -> Split:
    """60 % of the rows train the representation, and all of them have labels, of which an experiment may use some; 40 % to predict."""
    parts = divide(table, seed)
    pool = np.concatenate([parts.unlabeled, parts.labeled])
    return _assemble(table, Parts(pool, pool, parts.test), seed)


def _assemble(table: Table, parts: Parts, seed: int, *, scaled: bool = True, by_group: bool = False) -> Split:
    """Missing values and scales come from the rows that train the representation, never from those to predict."""
    steps = [SimpleImputer(keep_empty_features=True), *([StandardScaler()] if scaled else [])]
    scaler = make_pipeline(*steps).fit(table.X[parts.unlabeled])
    unlabeled, labeled, test = (scaler.transform(table.X[rows]) for rows in parts)
    known = LabeledRows(labeled, table.y[parts.labeled])
    groups = table.groups[parts.labeled] if by_group and table.groups is not None else None
    return Split(unlabeled, known, known, LabeledRows(test, table.y[parts.test]), seed, groups)


def hold_out(split: Split) -> tuple[LabeledRows, LabeledRows]:
    """80 % of the validation rows, or of their groups, to train heads on, and the 20 % that settings are chosen by."""
    X, y = split.validation
    units = np.arange(len(y)) if split.groups is None else split.groups
    order = np.random.default_rng([split.seed, 1]).permutation(np.unique(units))
    held_out = np.isin(units, order[round((1 - HELD_OUT) * len(order)) :])
    return LabeledRows(X[~held_out], y[~held_out]), LabeledRows(X[held_out], y[held_out])


def two_classes_first(y: NDArray[Any]) -> NDArray[np.intp]:
    """The rows in their order, which is one of chance, but with the first row of another class second: two labels should be two classes."""
    other = int(np.flatnonzero(y != y[0])[0])
    rest = np.delete(np.arange(1, len(y)), other - 1)
    return np.concatenate([[0, other], rest])


def classes_first(y: NDArray[Any]) -> NDArray[np.intp]:
    """The rows in their order, which is one of chance, but with the first row of each class before all others."""
    _, first = np.unique(y, return_index=True)
    return np.concatenate([np.sort(first), np.setdiff1d(np.arange(len(y)), first)])
