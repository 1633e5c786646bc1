"""What is known of a column of the training rows, and how the same column of other rows departs from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ._encoding import SMALLEST_CODE, are_codes, encode_column

Array = NDArray[np.float64]
ColumnKind = Literal["number", "boolean", "date", "category"]

MOST_LEVELS = 1000
"""The most levels of a category that a card lists."""
SHOWN_LEVELS = 3
"""The most unknown levels that a warning shows."""
ROUNDING = 1e-7
"""The slack around a range, as a share of its largest number: programs that read the same file may differ in the last digits."""

MOST_CATEGORIES = 0.5
"""The largest share of different values: text with more of them says who a row is, not what it is like."""


@dataclass(frozen=True)
class ColumnFacts:
    """A column of the training rows."""

    name: str
    kind: ColumnKind
    dtype: str
    """The type as pandas, polars or NumPy call it."""
    n_missing: int
    minimum: float | None
    """The smallest number, boolean (0 or 1) or date (seconds since 1970); None for categories and columns without values."""
    maximum: float | None
    levels: tuple[str, ...] | None
    """The sorted levels of a category; None for other kinds, and where there are more than 1,000."""

    @classmethod
    def of(cls, name: Any, column: Any) -> ColumnFacts:
        """Return the facts of a column of a data frame or an array."""
        kind, dtype = _kind_of_column(column), str(getattr(column, "dtype", "object"))
        if kind == "category":
            counts = counts_of_levels(column)
            levels = tuple(sorted(counts)) if len(counts) <= MOST_LEVELS else None
            return cls(str(name), kind, dtype, len(column) - sum(counts.values()), None, None, levels)
        values = encode_column(column)
        known = values[~np.isnan(values)]
        least, most = (float(known.min()), float(known.max())) if len(known) else (None, None)
        return cls(str(name), kind, dtype, len(values) - len(known), least, most, None)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> ColumnFacts:
        """Return the facts from what `dataclasses.asdict` gave, read back from a file."""
        levels = content["levels"]
        facts = cls(**{**content, "levels": None if levels is None else tuple(map(str, levels))})
        ends = [end for end in (facts.minimum, facts.maximum) if end is not None]
        if facts.kind not in get_args(ColumnKind) or not all(isinstance(end, int | float) for end in ends):
            raise ValueError(f"a column of kind {facts.kind!r}")
        return facts

    def departures(self, column: Any) -> str | None:
        """Return a sentence on the cells of other rows that the training rows had nothing like; None where there are none."""
        found = self._unknown_levels(column) if self.kind == "category" else self._beyond(encode_column(column))
        return f"{self.name!r}: of {len(column):,} rows, {'; '.join(found)}." if found else None

    def _beyond(self, values: Array) -> list[str]:
        found = self._gaps(int(np.isnan(values).sum()))
        largest = self.maximum if self.maximum is not None else -np.inf
        text = are_codes(values) if largest < SMALLEST_CODE else np.zeros(len(values), dtype=bool)
        if text.any():
            found.append(f"{text.sum():,} hold text, where training had a {self.kind}")
        if self.minimum is None or self.maximum is None:
            return found
        numbers = values[~text]
        slack = ROUNDING * max(abs(self.minimum), abs(self.maximum))
        below, above = numbers[numbers < self.minimum - slack], numbers[numbers > self.maximum + slack]
        if len(below):
            found.append(f"{len(below):,} below {self._show(self.minimum)}, the least in training (down to {self._show(below.min())})")
        if len(above):
            found.append(f"{len(above):,} above {self._show(self.maximum)}, the most in training (up to {self._show(above.max())})")
        return found

    def _unknown_levels(self, column: Any) -> list[str]:
        counts = counts_of_levels(column)
        found = self._gaps(len(column) - sum(counts.values()))
        if self.levels is None:
            return found
        known = set(self.levels)
        unknown = sorted(level for level in counts if level not in known)
        if unknown:
            shown = ", ".join(map(repr, unknown[:SHOWN_LEVELS])) + (", …" if len(unknown) > SHOWN_LEVELS else "")
            found.append(f"{sum(counts[level] for level in unknown):,} with levels that training did not have ({shown})")
        return found

    def _gaps(self, n_missing: int) -> list[str]:
        return [f"{n_missing:,} missing, where none was in training"] if n_missing and not self.n_missing else []

    def _show(self, value: float) -> str:
        if self.kind != "date":
            return f"{value:.6g}"
        try:
            return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=float(value))).strftime("%Y-%m-%d %H:%M:%S")
        except OverflowError:
            return f"{value:.6g} s"


def _kind_of_column(column: Any) -> ColumnKind:
    """Return what the cells of a column are."""
    if type(getattr(column, "dtype", None)).__name__ in ("CategoricalDtype", "Categorical", "Enum"):
        return "category"
    values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    if values.dtype.kind in "fiu":
        return "number"
    if values.dtype.kind in "bMm":
        return "boolean" if values.dtype.kind == "b" else "date"
    return _kind_of_cells(_known_cells(values.tolist()))


def _kind_of_cells(cells: Iterable[Any]) -> ColumnKind:
    kinds = set(map(type, cells))
    if kinds and all(issubclass(kind, bool | np.bool_) for kind in kinds):
        return "boolean"
    if kinds and all(issubclass(kind, Real) for kind in kinds):
        return "number"
    return "date" if kinds and all(issubclass(kind, date) for kind in kinds) else "category"


def counts_of_levels(column: Any) -> Counter[str]:
    """Return how many rows have each level, as text."""
    values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column, dtype=object)
    counts: Counter[str] = Counter()
    for cell, n_rows in Counter(_known_cells(values.tolist())).items():
        counts[_text(cell)] += n_rows
    return counts


def _known_cells(cells: list[Any]) -> list[Any]:
    """Return the cells without None, NaN and what pandas has for them."""
    return [cell for cell in cells if not (cell is None or type(cell).__name__ in ("NAType", "NaTType") or cell != cell)]


def _text(cell: Any) -> str:
    """Return a cell as text: a whole number is the same level in a column of floats as in one of integers."""
    whole = isinstance(cell, float | np.floating) and float(cell).is_integer()
    return str(int(cell)) if whole else str(cell)
