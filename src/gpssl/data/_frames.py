"""Tables in memory: their cells as numbers, and what is known of their columns.

A cell does not depend on other rows, so that parts of a table agree. Numbers stay what they are, true and false are 1 and 0, dates are
seconds since 1970. Text and categories become codes: large whole numbers that follow from the category alone, so that equal cells have
equal codes in every table, and a category nobody has seen before differs from all others. NaN is a missing cell of any kind.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

Array = NDArray[np.float64]
ColumnKind = Literal["number", "boolean", "date", "category", "text"]
"""Text is free text, whose words say what a row is like: sentences, not categories."""

MISSING_WORDS = ("", "NA", "N/A", "n/a", "na", "NaN", "nan", "null", "NULL", "None", "?", "#N/A", "<NA>", "NaT")
"""Text that stands for a missing cell."""
SMALLEST_CODE = 2.0**52
"""Codes of categories lie between this and twice this, where doubles are the whole numbers."""
MOST_LEVELS = 1000
"""The most levels of a category that a card lists."""
SHOWN_LEVELS = 3
"""The most unknown levels that a warning shows."""
ROUNDING = 1e-7
"""The slack around a range, as a share of its largest number: programs that read the same file may differ in the last digits."""
MOST_CATEGORIES = 0.5
"""The largest share of different values: text with more of them says who a row is, not what it is like."""


def encode_table(X: Any) -> Array:
    """Return the cells of a data frame (pandas, polars) or an array as numbers, as the top of this file says. [n, D]"""
    _check_is_table(X)
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
        numbers = X.astype(np.float64, copy=False)
    elif hasattr(X, "columns"):
        check_names(X)
        numbers = _stack([encode_column(X[name]) for name in X.columns], int(X.shape[0]))
    else:
        cells = np.asarray(X, dtype=object)
        numbers = _stack([encode_column(column) for column in cells.T], len(cells)) if cells.ndim == 2 else cells
    if numbers.ndim != 2:
        raise ValueError(f"Expected a table of rows and columns, got an array of shape {numbers.shape}. Reshape your data.")
    if np.isinf(numbers).any():
        place = int(np.isinf(numbers).any(axis=0).argmax())
        name = list(X.columns)[place] if hasattr(X, "columns") else place
        raise ValueError(f"The table contains infinity, in column {name!r}.")
    return numbers


def _stack(columns: list[Array], n_rows: int) -> Array:
    return np.column_stack(columns) if columns else np.empty((n_rows, 0))


def _check_is_table(X: Any) -> None:
    if isinstance(X, str | bytes) or X is None:
        raise TypeError(f"Expected a table of rows and columns in memory, got {X!r:.60}: read it first.")
    if issparse(X):
        raise TypeError("Expected a table of numbers, text and categories, got a sparse matrix: pass X.toarray(), or a kernel for vectors.")
    if type(X).__name__ == "LazyFrame":
        raise TypeError(f"Expected a table in memory, got {type(X).__name__}: pass X.collect().")


def refuse_arrow(X: Any) -> None:
    """Raise TypeError for a table of Arrow, whose columns have no names and whose rows cannot be counted as those of data frames."""
    if type(X).__module__.split(".")[0] == "pyarrow":
        raise TypeError(f"Expected an array or a data frame, got {type(X).__name__} of pyarrow: pass X.to_pandas(), or the name of a file.")


def check_names(frame: Any) -> None:
    """Raise ValueError where columns share a name."""
    refuse_arrow(frame)
    twice = [name for name, count in Counter(frame.columns).items() if count > 1]
    if twice:
        raise ValueError(f"Several columns are called {twice[0]!r}: give each its own name.")


def header_of(X: Any) -> Any:
    """Return a data frame without its rows, which has the names and types of its columns; None for an array."""
    if not hasattr(X, "columns"):
        return None
    return X.iloc[:0] if hasattr(X, "iloc") else X[:0]


def encode_column(column: Any) -> Array:
    """Return one column as numbers; its name does not matter. [n]"""
    if type(getattr(column, "dtype", None)).__name__ == "CategoricalDtype":  # pandas
        levels = np.array([encode_cell(level) for level in column.cat.categories] + [np.nan])
        return levels[np.asarray(column.cat.codes)]  # −1, for a missing cell, is the last
    values = _as_array(column)
    if values.ndim != 1:  # polars has columns of several numbers in each cell
        raise TypeError(f"A cell of a table must be a number, text, a category or a date, got {values.shape[1:]} numbers in each.")
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    if values.dtype.kind in "Mm":
        # In microseconds, since nanoseconds span only three centuries; in nanoseconds where the values are.
        unit, per_second = ("ns", 1e9) if np.datetime_data(values.dtype)[0] == "ns" else ("us", 1e6)
        seconds = values.astype(f"{values.dtype.kind}8[{unit}]").astype(np.int64) / per_second
        return np.where(np.isnat(values), np.nan, seconds)
    cells = values.tolist()
    try:
        codes = {cell: encode_cell(cell) for cell in set(cells)}  # each distinct cell once
    except TypeError:  # a cell that cannot be hashed: `encode_cell` raises the error
        return np.array([encode_cell(cell) for cell in cells], dtype=np.float64)
    return np.array([codes[cell] for cell in cells], dtype=np.float64)


def encode_cell(cell: Any) -> float:
    """Return a number as it is, NaN for what is missing, a code for anything else."""
    if is_gap(cell):
        return np.nan
    if isinstance(cell, Real | Decimal | np.bool_):
        return float(cell)
    if isinstance(cell, date) or hasattr(cell, "to_timestamp"):
        return _seconds(cell.to_timestamp() if hasattr(cell, "to_timestamp") else cell)
    if isinstance(cell, complex) or not isinstance(cell, Hashable):
        raise TypeError(f"A cell of a table must be a number, text, a category or a date, got {type(cell).__name__}: {str(cell)[:50]!r}.")
    return _code(str(cell))


def _seconds(moment: date) -> float:
    """Return the seconds since 1970, in UTC where no time zone is given."""
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


@lru_cache(maxsize=100_000)
def _code(text: str) -> float:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return SMALLEST_CODE + (int.from_bytes(digest, "little") >> 12)


def are_codes(values: Array) -> NDArray[np.bool_]:
    """Return which cells are text or categories."""
    return (values >= SMALLEST_CODE) & (values < 2 * SMALLEST_CODE)


def is_gap(cell: Any) -> bool:
    """Return whether a cell is None, or what pandas has for a missing cell that is no number."""
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def is_missing(cell: Any) -> bool:
    """Return whether a cell is such a gap or NaN."""
    return is_gap(cell) or (isinstance(cell, float | np.floating) and bool(np.isnan(cell)))


def _as_array(column: Any) -> NDArray[Any]:
    return column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)


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
    unit: str | None = None
    """What the numbers were given in, or "day first" or "month first" for dates that may be either; None where nothing was to be told."""

    @classmethod
    def of(cls, name: Any, column: Any) -> ColumnFacts:
        """Return the facts of a column of a data frame or an array."""
        kind, dtype = _kind_of_column(column), str(getattr(column, "dtype", "object"))
        if kind == "text":
            return cls(str(name), kind, dtype, _n_missing(column), None, None, None)
        if kind == "category":
            counts = _counts_of_levels(column)
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
        if facts.kind not in get_args(ColumnKind) or not all(isinstance(end, int | float) and np.isfinite(float(end)) for end in ends):
            raise ValueError(f"a column of kind {facts.kind!r}")
        if not isinstance(facts.name, str) or not isinstance(facts.dtype, str) or not isinstance(facts.unit, str | None):
            raise TypeError("a column without a name or a type")
        if len(ends) == 1 or type(facts.n_missing) is not int or facts.n_missing < 0:
            raise ValueError("a column with one end, or without a number of gaps")
        return facts

    def departures(self, column: Any) -> str | None:
        """Return a sentence on the cells of other rows that the training rows had nothing like; None where there are none."""
        if self.kind == "text":  # all texts are new: only a gap may be unlike training
            found = self._gaps(_n_missing(column))
        else:
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
        counts = _counts_of_levels(column)
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
    values = _as_array(column)
    if values.dtype.kind in "fiu":
        return "number"
    if values.dtype.kind in "bMm":
        return "boolean" if values.dtype.kind == "b" else "date"
    types = set(map(type, _known_cells(values)))
    kinds: dict[ColumnKind, Any] = {"boolean": bool | np.bool_, "number": Real, "date": date}
    fitting = [kind for kind, of_kind in kinds.items() if types and all(issubclass(one, of_kind) for one in types)]
    if fitting:
        return fitting[0]
    from ._free_text import holds_sentences  # which encodes the other cells with this file

    return "text" if holds_sentences(column) else "category"


def _n_missing(column: Any) -> int:
    return len(column) - len(_known_cells(_as_array(column)))


def _counts_of_levels(column: Any) -> Counter[str]:
    """Return how many rows have each level, as text: a whole number is the same level in a column of floats as in one of integers."""
    values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column, dtype=object)
    counts: Counter[str] = Counter()
    for cell, n_rows in Counter(_known_cells(values)).items():
        is_whole = isinstance(cell, float | np.floating) and float(cell).is_integer()
        counts[str(int(cell)) if is_whole else str(cell)] += n_rows
    return counts


def _known_cells(values: NDArray[Any]) -> list[Any]:
    """Return the cells without None, NaN and what pandas has for them."""
    return [cell for cell in values.tolist() if not (is_gap(cell) or cell != cell)]
