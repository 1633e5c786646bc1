"""The rules of the experiments: which rows a method may see, and how it is trained.

Rows without labels train the representation and set the scales; labeled rows choose the settings and train the head; test rows are looked
at last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpssl.comparison import Candidate, Criterion, Validation, choose, divide
from gpssl.comparison._splits import HELD_OUT_SHARE
from gpssl.datasets import Table
from gpssl.evaluation import Labeled

Array = NDArray[np.float64]

UNLABELED, LABELED, TEST = 0.4, 0.2, 0.4
"""The paper's shares (section 3.3.2)."""


@dataclass(frozen=True)
class Split:
    """One sample of an experiment. What is learned may depend on everything but `test`."""

    unlabeled: Array
    """Rows that train the representation. [n, D]"""
    validation: Labeled
    """Rows that settings are chosen by: heads are trained on 80 % of them, or of their groups, and scored on the others."""
    labeled: Labeled
    """Rows that train the final head; in the tables, the same."""
    test: Labeled
    seed: int
    """The seed of everything random in this sample."""


class Parts(NamedTuple):
    """The numbers of the rows in each part of a split."""

    unlabeled: NDArray[np.intp]
    labeled: NDArray[np.intp]
    test: NDArray[np.intp]


def draw_parts(table: Table, seed: int, *, by_group: bool = False, max_rows: int | None = None) -> Parts:
    """Draw the rows of the three parts, 40 : 20 : 40, by chance.

    With `by_group`, all rows of a group (the 15 measurements of a mouse) are in the same part. With more than `max_rows` rows, so many are
    drawn.
    """
    rng = np.random.default_rng(seed)
    units = table.groups if by_group and table.groups is not None else np.arange(len(table.X))
    order = rng.permutation(np.unique(units))[:max_rows]
    ends = np.round(np.cumsum([UNLABELED, LABELED]) * len(order)).astype(int)
    return Parts(*(rng.permutation(np.flatnonzero(np.isin(units, part))) for part in np.split(order, ends)))


def split_table(table: Table, seed: int, *, by_group: bool = False, max_rows: int | None = None, scaled: bool = True) -> Split:
    """Return the paper's split of a table: 40 % of the rows without labels, 20 % with, 40 % to predict.

    Columns are standardized if `scaled`.
    """
    return _assemble(table, draw_parts(table, seed, by_group=by_group, max_rows=max_rows), seed, scaled=scaled, by_group=by_group)


def pool_table(table: Table, seed: int) -> Split:
    """Return a split of which 60 % of the rows train the representation, all with labels; an experiment may use some of these labels."""
    parts = draw_parts(table, seed)
    pool = np.concatenate([parts.unlabeled, parts.labeled])
    return _assemble(table, Parts(pool, pool, parts.test), seed)


def _assemble(table: Table, parts: Parts, seed: int, *, scaled: bool = True, by_group: bool = False) -> Split:
    """Scale the rows. Missing values and scales come from the rows that train the representation, never from those to predict."""
    steps = [SimpleImputer(keep_empty_features=True), *([StandardScaler()] if scaled else [])]
    scaler = make_pipeline(*steps).fit(table.X[parts.unlabeled])
    unlabeled, labeled, test = (scaler.transform(table.X[rows]) for rows in parts)
    groups = table.groups[parts.labeled] if by_group and table.groups is not None else None
    known = Labeled(parts.labeled, labeled, table.y[parts.labeled], groups)
    return Split(unlabeled, known, known, Labeled(parts.test, test, table.y[parts.test]), seed)


def hold_out(split: Split) -> tuple[Labeled, Labeled]:
    """Return 80 % of the validation rows, or of their groups, to train heads on, and the 20 % that settings are chosen by."""
    rng = np.random.default_rng([split.seed, 1])
    known = split.validation
    # The last of the permuted rows are held out, as they were when the published numbers were made.
    training, held_out = divide(known.y, known.groups, HELD_OUT_SHARE, lambda units: rng.permutation(units)[::-1], stratify=False)
    return known.take(training), known.take(held_out)


class Learned(NamedTuple):
    """A trained model and the settings that were chosen for it."""

    settings: dict[str, Any]
    validation: Validation | None
    """None where there was nothing to choose."""
    estimator: Any


def learn(candidates: Sequence[Candidate], split: Split, *criteria: Criterion) -> list[Learned]:
    """Train for each criterion the candidate that is best by it, on the labeled rows. The test rows are not looked at."""
    if len(candidates) == 1:
        return [_train(candidates[0], None, split)] * len(criteria)
    choices = choose(candidates, *hold_out(split), *criteria)
    distinct = {id(choice.candidate): choice for choice in choices}
    learned = {key: _train(*choice, split) for key, choice in distinct.items()}
    return [learned[id(choice.candidate)] for choice in choices]


def _train(candidate: Candidate, validation: Validation | None, split: Split) -> Learned:
    return Learned(candidate.settings, validation, clone(candidate.estimator).fit(split.labeled.rows, split.labeled.y))


def two_classes_first(y: NDArray[Any]) -> NDArray[np.intp]:
    """Return the rows in their order, which is one of chance, but with the first row of another class second.

    Two labels should be of two classes.
    """
    other = int(np.flatnonzero(y != y[0])[0])
    rest = np.delete(np.arange(1, len(y)), other - 1)
    return np.concatenate([[0, other], rest])


def classes_first(y: NDArray[Any]) -> NDArray[np.intp]:
    """Return the rows in their order, which is one of chance, but with the first row of each class before all others."""
    _, first = np.unique(y, return_index=True)
    return np.concatenate([np.sort(first), np.setdiff1d(np.arange(len(y)), first)])
