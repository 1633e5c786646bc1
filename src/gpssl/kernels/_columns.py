"""How cells of any kind become comparable numbers: in standard units or as scores, categories one by one, gaps marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..data._arrays import in_double_precision
from ..data._frames import are_codes

Array = NDArray[np.float64]

MOST_LEVELS = 50
"""Levels of a category that are told apart, the most frequent ones."""
MOST_DISTINCT = 0.5
"""The share of distinct cells above which a column of text is taken for names, which say nothing about other rows."""
MOST_KNOTS = 200
"""Values between which normal scores are interpolated."""
ROUNDING = 1e-12
"""Spread of a column, relative to its largest entry, that rounding alone may cause."""


@dataclass(frozen=True, eq=False)
class ColumnCode:
    """How the cells of one column become numbers."""

    kind: Literal["number", "scores", "category", "nothing"]
    values: Array
    """Mean and unit of numbers; values with known scores, rising; or the levels of a category, infinity standing for a gap."""
    scores: Array
    """The normal scores at these values; empty for other kinds."""
    marks_gaps: bool
    """Whether a further number says that a cell is missing."""

    @property
    def width(self) -> int:
        """How many numbers a cell becomes."""
        return {"number": 1, "scores": 1, "category": len(self.values), "nothing": 0}[self.kind] + self.marks_gaps

    def encode(self, cells: Array, out: Array) -> None:
        """Write the numbers of each cell. From [n] to [n, width]"""
        is_gap = np.isnan(cells)
        if self.kind == "category":
            out[...] = np.where(is_gap, np.inf, cells)[:, None] == self.values
            return
        if self.kind == "number":
            out[:, 0] = (cells - self.values[0]) / self.values[1]
        elif self.kind == "scores":
            out[:, 0] = np.interp(cells, self.values, self.scores)
        if self.kind != "nothing" and is_gap.any():
            out[is_gap, 0] = 0.0
        if self.marks_gaps:
            out[:, -1] = is_gap


def encode(X: NDArray[Any], columns: list[ColumnCode]) -> Array:
    """Return z(x) for each row. [n, width of all columns]"""
    X = in_double_precision(X)
    if all(column.kind == "number" and not column.marks_gaps for column in columns):
        return _encode_numbers(X, columns)
    ends = np.cumsum([column.width for column in columns]).tolist()
    out = np.empty((len(X), ends[-1] if ends else 0))
    for cells, column, first, end in zip(X.T, columns, [0, *ends[:-1]], ends, strict=True):
        column.encode(cells, out[:, first:end])
    return out


def _encode_numbers(X: Array, columns: list[ColumnCode]) -> Array:
    """Return z(x) of columns that are all numbers without gaps in the training rows, all at once: blocks of rows may be small. [n, D]"""
    means, units = np.array([column.values for column in columns]).reshape(-1, 2).T
    out: Array = (X - means) / units
    out[np.isnan(X)] = 0.0
    return out


def are_categories(header: Any) -> list[bool] | None:
    """Return which columns of a data frame are categories by their type; None for an array."""
    if header is None:
        return None
    return [type(header[name].dtype).__name__ in ("CategoricalDtype", "Categorical", "Enum") for name in header.columns]


def find_columns(rows: Array, weight: Array, are_categories: list[bool] | None, *, scores: bool) -> list[ColumnCode]:
    """Return how to encode each column of these rows."""
    flags = are_categories or [False] * rows.shape[1]
    return [_find_column(cells, weight, is_category, scores=scores) for cells, is_category in zip(rows.T, flags, strict=True)]


def _find_column(cells: Array, weight: Array, is_category: bool, *, scores: bool) -> ColumnCode:
    is_known = ~np.isnan(cells)
    known, known_weight = cells[is_known], weight[is_known]
    if is_category or are_codes(known).any():
        return _find_category(np.where(is_known, cells, np.inf), weight)
    marks_gaps = 0 < len(known) < len(cells)
    largest = np.abs(known).max(initial=0.0) or 1.0
    mean = float(known_weight @ (known / largest) / known_weight.sum()) * largest if len(known) else 0.0
    unit = float(np.sqrt(known_weight @ ((known - mean) / largest) ** 2 / known_weight.sum())) * largest if len(known) else 0.0
    if unit <= ROUNDING * largest:
        return ColumnCode("nothing", np.empty(0), np.empty(0), marks_gaps)
    if scores:
        return ColumnCode("scores", *_normal_scores(known, known_weight), marks_gaps)
    return ColumnCode("number", np.array([mean, unit]), np.empty(0), marks_gaps)


def _find_category(cells: Array, weight: Array) -> ColumnCode:
    levels, places = np.unique(cells, return_inverse=True)
    if len(levels) < 2 or (len(levels) > MOST_DISTINCT * weight.sum() and len(levels) > MOST_LEVELS):
        return ColumnCode("nothing", np.empty(0), np.empty(0), False)
    # Of levels that are equally frequent the smaller codes, so that the order of the rows makes no difference.
    frequent = np.argsort(-np.bincount(places, weight), kind="stable")[:MOST_LEVELS]
    return ColumnCode("category", levels[np.sort(frequent)], np.empty(0), False)


def _normal_scores(values: Array, weight: Array) -> tuple[Array, Array]:
    """Return distinct values and their scores Φ⁻¹((weight below + half of their own) / all), in units of their standard deviation."""
    distinct, places = np.unique(values, return_inverse=True)
    share = np.bincount(places, weight) / weight.sum()
    scores = ndtri(np.cumsum(share) - share / 2)
    mean = share @ scores
    scores = (scores - mean) / np.sqrt(share @ (scores - mean) ** 2)
    kept = np.unique(np.linspace(0, len(distinct) - 1, MOST_KNOTS).round().astype(np.intp))
    return distinct[kept], scores[kept]
