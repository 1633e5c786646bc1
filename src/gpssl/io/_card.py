"""Model cards: what a model was trained on, when, and with which versions; and where other rows leave the range of training.

What models need is imported where a model is looked at: a card is read at once.
"""

from __future__ import annotations

import json
import platform
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..data._frames import ColumnFacts

MOST_COLUMNS = 10_000
"""Number of columns beyond which a card does not describe them."""
SHOWN_COLUMNS = 5
LONGEST_SETTING = 300
LIBRARIES = ("gpssl", "numpy", "scipy", "scikit-learn")


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
        from ..data._rows import is_lazy

        if self.columns is None or is_lazy(X):
            return []
        sentences = [facts.departures(column) for facts, column in _columns_to_compare(X, self.columns)]
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
        if not isinstance(card.model, str) or not isinstance(card.created, str) or not isinstance(card.n_rows, int | None):
            raise TypeError("a card without a model, a date or a number of rows")
        return card


def card_of(model: Any, trained_on: Any = None, notes: Mapping[str, Any] | None = None) -> ModelCard:
    """Return the card of a fitted model, as `save` writes it."""
    from sklearn.utils.validation import _num_samples

    known: ModelCard | None = vars(model).get("card_")
    columns, n_rows = (None, None) if known is None else (known.columns, known.n_rows)
    if trained_on is not None:
        columns, n_rows = facts_of_rows(trained_on), None if _are_facts(trained_on) else int(_num_samples(trained_on))
        n_features = vars(model).get("n_features_in_")  # which rows that are no table do not have
        if columns is not None and n_features is not None and len(columns) != n_features:
            raise ValueError(
                f"trained_on has {len(columns)} columns, but the model was fitted to {n_features}: pass X as it was given to fit."
            )
    return ModelCard(
        model=type(model).__name__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
        n_rows=_weight(model) if n_rows is None else n_rows,
        columns=columns,
        settings=_settings(model),
        notes=_checked_notes(known.notes if notes is None and known is not None else notes),
    )


def representation_of(model: Any) -> Any:
    """Return the fitted representation of a classifier, regressor or clustering; `GPSSL` and `GPPrior` are representations themselves.

    Of a pool it is the model among its members that was fitted before, as that of `gpssl.label`; without one, the pool.
    """
    if not hasattr(model, "representation_"):
        return model
    from sklearn.frozen import FrozenEstimator

    from ..downstream._marginal import inner
    from ..downstream._pool import RepresentationPool
    from ..estimator import GPSSL

    fitted = inner(model.representation_)
    if not isinstance(fitted, RepresentationPool):
        return fitted
    frozen = [inner(member[1]) for member in fitted.members or [] if isinstance(member[1], FrozenEstimator)]
    return next((model for model in frozen if isinstance(model, GPSSL)), fitted)


def _weight(model: Any) -> int | None:
    """Return the number of rows that the moments sum up, by their weights; None where that is not whole, or there are no moments."""
    from ..estimator import GPSSL

    representation = representation_of(model)
    if not isinstance(representation, GPSSL) or not float(representation.moments_.weight).is_integer():
        return None
    return int(representation.moments_.weight)


def _settings(model: Any) -> dict[str, Any]:
    """Return parameters and a few results as texts and numbers."""
    from ..downstream._marginal import Marginalized
    from ..estimator import GPSSL

    settings = {name: _readable(value) for name, value in model.get_params(deep=False).items()}
    representation = representation_of(model)
    if isinstance(representation, GPSSL):
        settings |= {
            "residual": float(representation.residual_),
            "temperature as used": float(representation.temperature_),
            "inducing points": len(representation.inducing_points_),
            "directions": len(representation.eigenvalues_),
        }
    if "classes_" in vars(model):  # a classifier
        settings["classes"] = [_readable(value) for value in model.classes_.tolist()]
    if isinstance(model, Marginalized):
        settings["labeled rows"] = int(model.n_labeled_)
    return settings


def _readable(value: Any) -> Any:
    """Return a number or a text as it is, anything else as its `repr`, shortened."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else repr(value)
    if isinstance(value, np.ndarray):
        return f"array of shape {list(value.shape)}"
    from ..downstream._marginal import inner
    from ..downstream._pool import RepresentationPool

    if isinstance(inner(value), RepresentationPool):  # whose text is long to make and long to read
        members = inner(value).members
        return f"RepresentationPool of {len(members)} representations" if members is not None else "RepresentationPool()"
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST_SETTING else f"{text[: LONGEST_SETTING - 1]}…"


def _checked_notes(notes: Any) -> dict[str, Any]:
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


def facts_of_rows(X: Any) -> tuple[ColumnFacts, ...] | None:
    """Return facts about each column of a data frame or two-dimensional array; None for rows that are no table, such as strings.

    Columns without a name are called x0, x1, …, as scikit-learn does.
    """
    from ..data._rows import is_lazy

    if _are_facts(X):
        return tuple(X)
    if is_lazy(X) and not isinstance(X, np.memmap):
        raise TypeError(
            f"trained_on is the rows in memory, as an array or a data frame, or a list of ColumnFacts; got {type(X).__name__}. Pass a "
            "sample of the rows, or leave it out."
        )
    table = _as_table(X)
    if table is None or table.shape[1] > MOST_COLUMNS:
        return None
    places = range(table.shape[1])
    names = table.columns if hasattr(table, "columns") else [f"x{place}" for place in places]
    return tuple(map(ColumnFacts.of, names, _columns(table, places)))


def _are_facts(X: Any) -> bool:
    return isinstance(X, Sequence) and len(X) > 0 and all(isinstance(one, ColumnFacts) for one in X)


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


def _columns(table: Any, places: Iterable[int]) -> Iterator[Any]:
    """Yield the columns at these places, dense."""
    by_columns = table.tocsc() if issparse(table) else table
    for place in places:
        if hasattr(table, "columns"):
            yield table[table.columns[place]]
        else:
            yield by_columns[:, [place]].toarray()[:, 0] if issparse(table) else table[:, place]


def _columns_to_compare(X: Any, facts: Sequence[ColumnFacts]) -> Iterator[tuple[ColumnFacts, Any]]:
    """Yield the facts that describe columns of X, each with its column: by name where X has such names, otherwise by position."""
    table = _as_table(X)
    if table is None:
        return
    place_of = {str(name): place for place, name in enumerate(getattr(table, "columns", ()))}
    described = {place_of[one.name]: one for one in facts if one.name in place_of}
    if not described and table.shape[1] == len(facts):
        described = {place: facts[place] for place in _suspicious(table, facts)}
    yield from zip(described.values(), _columns(table, described), strict=True)


def _suspicious(table: Any, facts: Sequence[ColumnFacts]) -> Iterable[int]:
    """Return the columns of an array of numbers that leave their range, have missing cells or are categories; of other tables, all."""
    if not issparse(table) and not (isinstance(table, np.ndarray) and table.dtype.kind in "fiub"):
        return range(len(facts))
    if table.shape[0] == 0:
        return []
    least, most = ((end.toarray().ravel() if issparse(end) else end) for end in (table.min(axis=0), table.max(axis=0)))
    low = np.array([-np.inf if one.minimum is None else one.minimum for one in facts])
    high = np.array([np.inf if one.maximum is None else one.maximum for one in facts])
    inside = (least >= low) & (most <= high)  # not where there is a NaN
    return [place for place, one in enumerate(facts) if not inside[place] or one.kind == "category"]
