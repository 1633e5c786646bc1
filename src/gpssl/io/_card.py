"""Model cards: what a model was trained on, when, and with which versions; and where other rows leave the range of training."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..data._column_facts import ColumnFacts
from ..data._opening import is_lazy

MOST_COLUMNS = 10_000
"""Number of columns beyond which a card does not describe them."""
SHOWN_COLUMNS = 5


class OutsideTrainingRangeWarning(UserWarning):
    """Rows have values, levels or missing cells that the training rows of a model did not have."""


@dataclass(frozen=True)
class ModelCard:
    """What a model file says about its model."""

    model: str
    """The name of its class."""
    created: str
    """When it was saved: date and time in UTC, ISO 8601."""
    versions: dict[str, str]
    """Versions of Python and of the libraries that it was saved with."""
    n_rows: int | None = None
    """Number of rows that it was trained on."""
    columns: tuple[ColumnFacts, ...] | None = None
    """Facts about the columns of these rows, if they were a table; None if they were not, or are not known."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Its parameters, as texts and numbers, and a few results."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What the person or program that saved it has added."""

    def departures(self, X: Any) -> list[str]:
        """Return a sentence for each column of X with values, levels or missing cells that the training rows did not have.

        A data frame's columns are compared by name, an array's by position. Rows that are read part by part (paths, Dask and the like), and
        rows that are no table, are not compared.
        """
        if self.columns is None or is_lazy(X):
            return []
        facts = {one.name: one for one in self.columns}
        sentences = [facts[name].departures(column) for name, column in _columns_to_look_at(X, self.columns)]
        return [sentence for sentence in sentences if sentence is not None]

    def warn(self, X: Any, stacklevel: int = 2) -> None:
        """Give one warning for all columns of X that depart from the training rows, if there are any."""
        found = self.departures(X)
        if found:
            more = f" And {len(found) - SHOWN_COLUMNS} more columns." if len(found) > SHOWN_COLUMNS else ""
            warnings.warn(
                f"Some rows are outside of what the model was trained on, where it can only guess. {' '.join(found[:SHOWN_COLUMNS])}{more}",
                OutsideTrainingRangeWarning,
                stacklevel=stacklevel + 1,
            )

    def to_json(self) -> dict[str, Any]:
        """Return all fields by name, for a file."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> ModelCard:
        """Build the card from what `to_json` returned."""
        columns = content["columns"]
        card = cls(**{**content, "columns": None if columns is None else tuple(map(ColumnFacts.from_json, columns))})
        if not all(isinstance(part, dict) for part in (card.versions, card.settings, card.notes)):
            raise TypeError("a card without versions, settings or notes")
        return card


def facts_of_rows(X: Any) -> tuple[ColumnFacts, ...] | None:
    """Return facts about each column of a data frame or two-dimensional array; None for rows that are no table, such as strings.

    Columns without a name are called x0, x1, …, as scikit-learn does.
    """
    if isinstance(X, Sequence) and X and all(isinstance(one, ColumnFacts) for one in X):
        return tuple(X)
    if is_lazy(X) and not isinstance(X, np.memmap):
        raise TypeError(
            f"trained_on is the rows in memory, as an array or a data frame, or a list of ColumnFacts; got {type(X).__name__}. Pass a "
            "sample of the rows, or leave it out."
        )
    table = _as_table(X)
    if table is None or table.shape[1] > MOST_COLUMNS:
        return None
    return tuple(ColumnFacts.of(name, column) for name, column in _columns(table))


def n_rows_of(X: Any) -> int | None:
    """Return the number of rows; None for facts, which do not tell."""
    if X is None or (isinstance(X, Sequence) and X and isinstance(X[0], ColumnFacts)):
        return None
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def checked_notes(notes: Any) -> dict[str, Any]:
    """Return the notes as they will come back from the file. Raise ValueError or TypeError for what JSON cannot hold."""
    try:
        text = json.dumps({} if notes is None else notes, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"notes must be what JSON can hold (text, finite numbers, lists, dictionaries with text as keys): {error}."
        ) from error
    content = json.loads(text)
    if not isinstance(content, dict):
        raise TypeError(f"notes must be a dictionary, got {type(notes).__name__}.")
    return content


def _as_table(X: Any) -> Any:
    """Return a data frame or sparse matrix as it is, else an array with two dimensions; None for rows that are neither."""
    if hasattr(X, "columns") or issparse(X):
        return X
    if isinstance(X, list | tuple):
        X = _as_array(X)
    return X if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiubOUMm" else None


def _as_array(rows: Sequence[Any]) -> NDArray[Any] | None:
    """Return rows in a list as an array, if all have the same number of cells and no cell is a list; None for graphs and the like."""
    if not all(isinstance(row, list | tuple | np.ndarray) and len(row) == len(rows[0]) for row in rows):
        return None
    if any(isinstance(cell, list | tuple | dict | set | np.ndarray) for row in rows for cell in row):
        return None
    array = np.array(rows)
    return array if array.dtype.kind in "fiub" else np.array(rows, dtype=object)


def _columns(table: Any) -> Iterator[tuple[Any, Any]]:
    """Yield names and columns."""
    if hasattr(table, "columns"):
        yield from ((name, table[name]) for name in table.columns)
        return
    by_columns = table.tocsc() if issparse(table) else table
    for place in range(table.shape[1]):
        yield f"x{place}", _dense_column(by_columns, place)


def _dense_column(table: Any, place: int) -> NDArray[Any]:
    return table[:, [place]].toarray()[:, 0] if issparse(table) else table[:, place]


def _columns_to_look_at(X: Any, facts: Sequence[ColumnFacts]) -> Iterator[tuple[str, Any]]:
    """Yield the columns of X that the facts describe, with their names; of an array of numbers only those that leave their range."""
    table = _as_table(X)
    if table is None:
        return
    if hasattr(table, "columns"):
        by_name = {str(name): name for name in table.columns}
        if any(one.name in by_name for one in facts):
            yield from ((one.name, table[by_name[one.name]]) for one in facts if one.name in by_name)
            return
    if table.shape[1] != len(facts):
        return
    if issparse(table) or (isinstance(table, np.ndarray) and table.dtype.kind in "fiub"):
        by_columns = table.tocsc() if issparse(table) else table
        yield from ((facts[place].name, _dense_column(by_columns, place)) for place in _suspicious(table, facts))
        return
    yield from ((one.name, column) for one, (_, column) in zip(facts, _columns(table), strict=True))


def _suspicious(table: Any, facts: Sequence[ColumnFacts]) -> list[int]:
    """Return the columns with numbers outside of their range or with missing cells, and all categories."""
    if table.shape[0] == 0:
        return []
    least, most = ((end.toarray().ravel() if issparse(end) else end) for end in (table.min(axis=0), table.max(axis=0)))
    low = np.array([-np.inf if one.minimum is None else one.minimum for one in facts])
    high = np.array([np.inf if one.maximum is None else one.maximum for one in facts])
    inside = (least >= low) & (most <= high)  # not where there is a NaN
    return [place for place, one in enumerate(facts) if not inside[place] or one.kind == "category"]
