"""Which columns matter: how much worse held-out predictions become, or how far a representation moves, when a column is shuffled.

A column that is shuffled has the same values and tells nothing of its row. Columns that tell the same share their importance: where one is
shuffled, the model still has the others, so that each of two equal columns may seem to matter little. What matters to a model need not
matter to the world.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from ._doubts import columns_of
from ._held_out import probabilities_of

Array = NDArray[np.float64]
Losses = Callable[[Any, Any, NDArray[Any]], Array]
"""From a model, rows and labels to the loss of each row. [n]"""

MOST_COLUMNS = 50
"""Columns that are shuffled; of more, those that are most associated with the label."""
MOST_PREDICTIONS = 5000
"""Rows that are predicted to find out what matters, for all columns together."""
FEWEST_ROWS = 40
"""Rows that are predicted for each column, where there are so many."""
MOST_REPEATS = 5
LEAST_PROBABILITY = 1e-3
"""Smaller probabilities count as this one, so that a single sure error does not decide which column matters."""


@dataclass(frozen=True)
class ColumnImportance:
    """How much a column matters."""

    name: str
    increase: float
    """By how much the log loss in nats, or for numbers the mean squared error, of labels that are held out grows when the column is
    shuffled. For a dimension of a representation: half of the mean squared change, over its variance. Below zero it is noise."""
    share: float
    """Of the sum over columns: this one's part of what matters, between 0 and 1."""


def class_losses(classes: NDArray[Any]) -> Losses:
    """Return the function that gives −log p(y) of each row, p being at least 0.001."""

    def losses(model: Any, rows: Any, y: NDArray[Any]) -> Array:
        proba = probabilities_of(model, rows, classes)
        own = np.take_along_axis(proba, np.searchsorted(classes, y)[:, None], axis=1)[:, 0]
        return -np.log(np.maximum(own, LEAST_PROBABILITY))

    return losses


def squared_errors(model: Any, rows: Any, y: NDArray[Any]) -> Array:
    """Return the squared error of each row."""
    return np.asarray((model.predict(rows) - y) ** 2, dtype=np.float64)


class ShuffledColumns:
    """Permutation importance from models that have not seen the labels that they are judged by.

    For each column d, π permutes its cells among the rows:

        I_d = (1 / n) Σ_n [ℓ(y_n, m_n(x_n with cell d of row π(n))) − ℓ(y_n, m_n(x_n))],      m_n a model that has not seen row n

    `watch` is called with each model and the places of the rows that it has not seen, as `hold_out_classes` does; it predicts all shuffled
    copies of them at once. At most 5,000 rows are predicted, and at most 50 columns shuffled, so that this takes a few seconds at most:
    of larger tables a random part of the rows, and the columns that are most associated with the label by themselves.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from gpssl.evaluation import ShuffledColumns, class_losses, hold_out_classes
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> shuffled = ShuffledColumns(X, y.to_numpy(), class_losses(y.unique()))
    >>> held_out = hold_out_classes(LogisticRegression(max_iter=1000), X, y.to_numpy(), watch=shuffled.watch)
    >>> [column.name for column in shuffled.importance()[:2]]
    ['petal length (cm)', 'petal width (cm)']
    """

    def __init__(self, rows: Any, y: NDArray[Any], losses: Losses, *, n_repeats: int | None = None, seed: int = 0) -> None:
        self._rows, self._y, self._losses = rows, y, losses
        columns = columns_of(rows)
        self.n_columns = len(columns)
        self.names = list(columns) if len(columns) <= MOST_COLUMNS else most_associated(columns, y, MOST_COLUMNS)
        self._numbers = [list(columns).index(name) for name in self.names]
        rng = np.random.default_rng(seed)
        n_rows = min(len(y), max(FEWEST_ROWS, MOST_PREDICTIONS // (1 + len(self.names))))
        self.n_repeats = n_repeats or max(1, min(MOST_REPEATS, MOST_PREDICTIONS // (n_rows * (1 + len(self.names)))))
        chosen = np.sort(rng.permutation(len(y))[:n_rows])
        self._is_chosen = np.zeros(len(y), dtype=bool)
        self._is_chosen[chosen] = True
        self._donors = np.zeros((self.n_repeats, len(self.names), len(y)), dtype=np.intp)
        """The row that each row gets its cell of a column from. [repeats, columns, n]"""
        for repeat, column in np.ndindex(*self._donors.shape[:2]):
            self._donors[repeat, column, chosen] = rng.permutation(chosen)
        self._increases: list[Array] = []

    def watch(self, model: Any, places: NDArray[np.intp]) -> None:
        """Add what a model that has not seen these rows says of them."""
        places = places[self._is_chosen[places]]
        if len(places) == 0:
            return
        donors = self._donors[:, :, places].reshape(-1, len(places))
        numbers = self._numbers * self.n_repeats
        stacked = shuffled_copies(self._rows, places, numbers, donors)
        losses = self._losses(model, stacked, np.tile(self._y[places], 1 + len(donors))).reshape(1 + len(donors), len(places))
        increases = (losses[1:] - losses[0]).reshape(self.n_repeats, len(self.names), len(places))
        self._increases.append(increases.mean(axis=0))

    def importance(self) -> list[ColumnImportance]:
        """Return the columns that were shuffled, the one that matters most first."""
        if not self._increases:
            return []
        return in_order(self.names, np.concatenate(self._increases, axis=1).mean(axis=1))

    @property
    def note(self) -> str | None:
        """What was left out, as a sentence; None where all columns were shuffled."""
        if self.n_columns <= len(self.names):
            return None
        return f"Of {self.n_columns:,} columns, the {len(self.names)} that are most associated with the label were tried for what matters."


def in_order(names: Sequence[str], increases: Array) -> list[ColumnImportance]:
    """Return the importance of each column, largest first."""
    total = np.maximum(increases, 0.0).sum()
    shares = np.maximum(increases, 0.0) / total if total > 0 else np.zeros(len(increases))
    order = np.argsort(-increases, kind="stable")
    return [ColumnImportance(names[place], float(increases[place]), float(shares[place])) for place in order]


def shuffled_copies(rows: Any, places: NDArray[np.intp], numbers: Sequence[int], donors: NDArray[np.intp]) -> Any:
    """Return the rows at these places, followed by a copy for each column with its cells from other rows. [(1 + copies) n, D]

    `numbers` are the columns, and `donors` [copies, n] the rows that their cells come from.
    """
    n_rows = len(places)
    taken = np.tile(places, 1 + len(numbers))
    stacked = _safe_indexing(rows, taken)
    if not hasattr(rows, "columns"):
        stacked = stacked.copy()
        for copy, number in enumerate(numbers):
            stacked[(1 + copy) * n_rows : (2 + copy) * n_rows, number] = rows[donors[copy], number]
        return stacked
    sources = {number: taken.copy() for number in dict.fromkeys(numbers)}
    for copy, number in enumerate(numbers):
        sources[number][(1 + copy) * n_rows : (2 + copy) * n_rows] = donors[copy]
    stacked = stacked.reset_index(drop=True)
    for number, source in sources.items():
        stacked.isetitem(number, rows.iloc[source, number].array)
    return stacked


def dimension_importance(transform: Callable[[Any], Array], rows: Any, *, seed: int = 0) -> tuple[list[str], Array]:
    """Return the names of the columns, and how much each matters to each dimension of a representation f. [D], [D, J]

        T_dj = Σ_n (f_j(x_n) − f_j(x_n with cell d of row π(n)))² / (2 Σ_n (f_j(x_n) − mean f_j)²)

    For independent columns this estimates Sobol's total index: the share of the variance that is lost without the column, which is
    w_d² Var x_d / Σ_e w_e² Var x_e where f is linear. Rows are few enough that at most 5,000 are transformed; of more than 50 columns
    those are shuffled that are most associated with a dimension.
    """
    columns = columns_of(rows)
    rng = np.random.default_rng(seed)
    n_rows = min(len(rows), max(FEWEST_ROWS, MOST_PREDICTIONS // (1 + min(len(columns), MOST_COLUMNS))))
    places = np.sort(rng.permutation(len(rows))[:n_rows])
    numbers = list(range(len(columns)))
    if len(columns) > MOST_COLUMNS:
        dimensions = np.asarray(transform(_safe_indexing(rows, places)), dtype=np.float64).T
        scores = [max(_association(values[places], values_of_f) for values_of_f in dimensions) for values in columns.values()]
        numbers = np.sort(np.argsort(-np.array(scores), kind="stable")[:MOST_COLUMNS]).tolist()
    donors = np.stack([rng.permutation(places) for _ in numbers])
    values = np.asarray(transform(shuffled_copies(rows, places, numbers, donors)), dtype=np.float64)
    values = values.reshape(1 + len(numbers), n_rows, -1)
    changes = ((values[1:] - values[0]) ** 2).sum(axis=1)
    spread = ((values[0] - values[0].mean(axis=0)) ** 2).sum(axis=0)
    names = list(columns)
    return [names[number] for number in numbers], changes / np.where(spread > 0, 2 * spread, np.inf)


def most_associated(columns: dict[str, NDArray[Any]], y: NDArray[Any], n_columns: int) -> list[str]:
    """Return the names of the columns that say most about the label by themselves, in the order of the table."""
    scores = np.array([_association(values, y) for values in columns.values()])
    best = np.argsort(-scores, kind="stable")[:n_columns]
    return [name for place, name in enumerate(columns) if place in set(best.tolist())]


def _association(values: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the share of the variance of one that the other explains, by ranks and groups; 1 for texts that are nearly all different."""
    from scipy.stats import rankdata

    if values.dtype.kind == "O":
        groups = np.unique(np.array(["" if value is None else str(value) for value in values]), return_inverse=True)[1].reshape(-1)
        if groups.max() + 1 > len(groups) / 2:
            return 1.0
        outcome = rankdata(y)[:, None] if y.dtype.kind == "f" else (y[:, None] == np.unique(y)[None]).astype(np.float64)
        return _explained(outcome, groups)
    numbers = values.astype(np.float64)
    known = np.isfinite(numbers)
    if known.sum() < 3 or np.ptp(numbers[known]) == 0:
        return 0.0
    ranks = rankdata(numbers[known])
    if y.dtype.kind == "f":
        return float(np.corrcoef(ranks, rankdata(y[known]))[0, 1] ** 2) if np.ptp(y[known]) > 0 else 0.0
    return _explained(ranks[:, None], np.unique(y[known], return_inverse=True)[1].reshape(-1))


def _explained(outcome: Array, groups: NDArray[np.intp]) -> float:
    """Return 1 − (n − 1) / (n − G) · within / total for G groups: what they explain beyond chance."""
    counts = np.bincount(groups)
    means = np.stack([np.bincount(groups, column) for column in outcome.T], axis=1) / counts[:, None]
    total = ((outcome - outcome.mean(axis=0)) ** 2).sum()
    within = ((outcome - means[groups]) ** 2).sum()
    n_rows, n_groups = len(groups), len(counts)
    return 0.0 if total == 0 or n_rows <= n_groups else float(1 - (n_rows - 1) / (n_rows - n_groups) * within / total)
