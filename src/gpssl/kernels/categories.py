"""Kernels for columns without a unit: categories, and values with an order such as grades, stages or answers from "never" to "always"."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import GenericKernelMixin, Kernel

from .._validation import check_number
from ..data._arrays import in_double_precision
from ..data._frames import are_codes, encode_cell
from ..data._rows import MappedRows, Rows
from ._protocol import (
    Array,
    BlockKernel,
    CallByBlocks,
    TakesMissingCells,
    TakesTables,
    UnitDiagonal,
    block_kernel,
    kernel_diagonal,
    not_resolved,
    resolve_kernel,
    training_rows,
)
from .incomplete import IncompleteRBF
from .vectors import _check_rule, _neighbor_lengthscale

_MISSING = np.inf
"""The category of missing cells: a number that no cell can be."""
_LARGEST_TABLE = 2**18
"""Entries of a table for combinations of levels, which then fits in the cache."""
_MAX_LEVELS = 1000
"""Distinct numbers of a column that are kept as levels; positions between them are interpolated."""


class CategoryKernel(CallByBlocks, UnitDiagonal, TakesTables, GenericKernelMixin, Kernel):
    """k(x, y) = exp(−½ H(x, y) / h), where H is the number of columns in which x and y differ (Hamming distance).

    It is a product over columns of 1 for equal and e^(−1/2h) for different cells, which is positive semi-definite. Text, categories and
    numbers are compared for equality only. A missing cell is a category of its own: equal to other missing cells and to nothing else. A
    category that the training rows did not have differs from all others, and is as far from each of them as they are from each other.

    Parameters
    ----------
    neighborhood, reduce
        The rule of `NeighborRBF` for h: the Hamming distance to the ⌊N / neighborhood⌋-th neighbor.
    stretch
        The factor by which √h of that rule is multiplied, as a lengthscale would be.
    max_rows
        With more distinct rows than this, the rule is computed on a sample of this size.
    scale
        h. None: found at `fit`.
    """

    def __init__(
        self,
        neighborhood: float = 10,
        *,
        reduce: Literal["max", "median"] = "max",
        stretch: float = 1.0,
        max_rows: int = 1000,
        scale: float | None = None,
    ) -> None:
        self.neighborhood = neighborhood
        self.reduce = reduce
        self.stretch = stretch
        self.max_rows = max_rows
        self.scale = scale

    @property
    def is_resolved(self) -> bool:
        """Whether nothing is left to be taken from the training rows."""
        return self.scale is not None

    def resolve(self, X: Any, sample_weight: Array | None = None, seed: int = 0) -> CategoryKernel:
        """Return the kernel with the scale that the rule gives for these rows."""
        _check_rule(self.neighborhood, self.reduce, self.max_rows)
        check_number("stretch", self.stretch, Real, above=0)
        if self.scale is not None:
            check_number("scale", self.scale, Real, above=0)
            return CategoryKernel(**self.get_params(deep=False))
        sample = training_rows(self, X, sample_weight).sample(self.max_rows, seed)
        share = _neighbor_lengthscale(
            _comparable(sample.rows), sample.weight, neighborhood=self.neighborhood, reduce=self.reduce, metric="hamming"
        )
        return CategoryKernel(**{**self.get_params(deep=False), "scale": self.stretch**2 * share * sample.rows.shape[1]})

    def block_kernel(self, points: Array) -> BlockKernel:
        """Return a function that looks H(x, u) up, for all combinations of the levels of some columns at a time, and k for each H."""
        if self.scale is None:
            raise not_resolved(self, "scale")
        # H is a whole number: rows at the same distance have the same kernel to the last bit, however columns are taken together.
        similarities = np.exp(-0.5 / self.scale * np.arange(points.shape[1] + 1))
        combinations = _combinations(_comparable(points))
        only = similarities[combinations[0].n_different] if len(combinations) == 1 else None

        def fill(X: Array, out: Array) -> None:
            X = _comparable(X)
            if only is not None:
                np.take(only, combinations[0].places(X), axis=0, out=out, mode="clip")  # other modes would copy `out`
                return
            n_different = np.zeros(out.shape, dtype=np.min_scalar_type(X.shape[1]))
            for levels in combinations:
                n_different += levels.n_different[levels.places(X)]
            np.take(similarities, n_different, out=out, mode="clip")

        return fill


class _Combinations(NamedTuple):
    """All combinations of the levels that some columns have among the points, with a further level for cells that no point has."""

    columns: list[int]
    levels: list[Array]
    """The levels of each of these columns, in rising order."""
    n_different: NDArray[np.unsignedinteger[Any]]
    """In how many of the columns each combination differs from each point. [C, M]"""

    def places(self, X: Array) -> NDArray[np.intp]:
        """Return which combination each row has. [n]"""
        places = np.zeros(len(X), dtype=np.intp)
        for column, known in zip(self.columns, self.levels, strict=True):
            cells = X[:, column]
            found = np.searchsorted(known, cells)
            is_known = known[np.minimum(found, len(known) - 1)] == cells
            places = places * (len(known) + 1) + np.where(is_known, found, len(known))
        return places


def _combinations(points: Array) -> list[_Combinations]:
    """Return combinations for all columns of the points: each takes as many columns together as its table allows."""
    levels = [np.unique(column) for column in points.T]
    most = max(1, _LARGEST_TABLE // max(1, len(points)))
    together: list[list[int]] = []
    for column, known in enumerate(levels):
        n_combinations = prod(len(levels[other]) + 1 for other in together[-1]) if together else most
        if n_combinations * (len(known) + 1) <= most:
            together[-1].append(column)
        else:
            together.append([column])
    return [_combined(columns, [levels[column] for column in columns], points) for columns in together]


def _combined(columns: list[int], levels: list[Array], points: Array) -> _Combinations:
    """Compare all combinations of these levels with the points."""
    grid = np.indices([len(known) + 1 for known in levels]).reshape(len(levels), -1)
    n_different = np.zeros((grid.shape[1], len(points)), dtype=np.min_scalar_type(points.shape[1]))
    for places, known, column in zip(grid, levels, columns, strict=True):
        n_different += places[:, None] != np.searchsorted(known, points[:, column])
    return _Combinations(columns, levels, n_different)


def _comparable(rows: Array) -> Array:
    """Replace NaN, which does not equal itself, by the category of missing cells."""
    return np.where(np.isnan(rows), _MISSING, rows)


class OrdinalKernel(CallByBlocks, TakesTables, GenericKernelMixin, Kernel):
    """A squared exponential of the positions that values have among the levels of their column, from 0 for the lowest to 1 for the highest.

    The position of a number between two levels is interpolated; a number beyond the last level has the position of that level. Text that
    is no level, and missing cells, have no position: they are treated as `IncompleteRBF` treats missing cells.

    Parameters
    ----------
    levels
        The values from the lowest to the highest, for all columns. None takes them from the columns: the levels of pandas' ordered
        categories, or the distinct numbers of the training rows.
    kernel
        The kernel for the positions. The default is `IncompleteRBF()`, which measures them in units of each column's standard deviation.
    positions
        The levels and their positions, for each column, as pairs of arrays. None: found at `fit`.
    """

    def __init__(
        self,
        levels: Sequence[Any] | None = None,
        *,
        kernel: Kernel | None = None,
        positions: Sequence[tuple[Array, Array]] | None = None,
    ) -> None:
        self.levels = levels
        self.kernel = kernel
        self.positions = positions

    @property
    def is_resolved(self) -> bool:
        """Whether nothing is left to be taken from the training rows."""
        return self.positions is not None

    def resolve(self, X: Any, sample_weight: Array | None = None, seed: int = 0) -> OrdinalKernel:
        """Return the kernel with the levels of these rows, and with a concrete kernel for their positions."""
        given = self.levels
        if given is not None and (isinstance(given, str) or len(given) < 2 or len(set(given)) < len(given)):
            raise ValueError(f"levels must be a list of at least two different values, lowest first, or None, got {given!r}.")
        rows = training_rows(self, X, sample_weight)
        levels = [self._levels_of(rows, place, seed) for place in range(rows.n_columns)]
        resolved = OrdinalKernel(self.levels, positions=[(values, np.linspace(0.0, 1.0, len(values))) for values in levels])
        inner = IncompleteRBF() if self.kernel is None else self.kernel
        resolved.kernel = resolve_kernel(inner, MappedRows(rows, resolved.positions_of, rows.n_columns), seed)
        return resolved

    def _levels_of(self, rows: Rows, place: int, seed: int) -> Array:
        """Return the levels of a column, from the lowest to the highest, as numbers or codes."""
        levels = self.levels if self.levels is not None else _ordered_categories(rows.header, place)
        if levels is not None:
            return np.array([encode_cell(level) for level in levels])
        values = rows.sample(_MAX_LEVELS, seed).rows[:, place]
        distinct = np.unique(values[~np.isnan(values)])
        if are_codes(distinct).any():
            name = place if rows.header is None else list(rows.header.columns)[place]
            raise ValueError(
                f"Column {name!r} holds text, whose order is not known: give its levels, lowest first, as "
                "OrdinalKernel(levels=[...]), or make it an ordered category in pandas."
            )
        return distinct if len(distinct) > 1 else np.append(distinct[:1], np.inf)

    def positions_of(self, X: Array) -> Array:
        """Return where the values are among the levels, in [0, 1]; NaN for what is no level. [n, D]"""
        if self.positions is None:
            raise not_resolved(self, "levels and lengthscale")
        columns = zip(np.asarray(X).T, self.positions, strict=True)
        positions = np.column_stack([_interpolate(values, *levels) for values, levels in columns])
        if np.isnan(positions).any() and not (self.kernel is None or isinstance(self.kernel, TakesMissingCells)):
            raise ValueError(
                f"Some cells are missing or are no level of their column, but the kernel for positions, {self.kernel}, needs all of them: "
                "use IncompleteRBF."
            )
        return positions

    def block_kernel(self, points: Array) -> BlockKernel:
        """Return the function of the kernel for positions, applied to the positions of the values."""
        fill_positions = block_kernel(self.kernel, self.positions_of(points))

        def fill(X: Array, out: Array) -> None:
            fill_positions(self.positions_of(in_double_precision(X)), out)

        return fill

    def diag(self, X: Any) -> Array:
        """Return k(x, x), by the kernel for positions. [n]"""
        if isinstance(self.kernel, UnitDiagonal):
            return self.kernel.diag(X)
        return kernel_diagonal(self.kernel, self.positions_of(self.prepare(X)))


def _interpolate(values: Array, levels: Array, positions: Array) -> Array:
    """Return the positions of values among levels that are numbers in rising order, or codes in any order. [n]"""
    if not are_codes(levels).any() and (np.diff(levels) > 0).all():
        numbers = np.where(are_codes(values), np.nan, values)
        return np.interp(numbers, levels, positions)
    out = np.full(len(values), np.nan)
    for level, position in zip(levels, positions, strict=True):
        out[values == level] = position
    return out


def _ordered_categories(header: Any, place: int) -> Sequence[Any] | None:
    """Return the levels of a column of pandas' ordered categories, or of polars' Enum; None for other columns."""
    if header is None:
        return None
    dtype = list(header.dtypes)[place]
    name = type(dtype).__name__
    return list(dtype.categories) if name == "Enum" or (name == "CategoricalDtype" and dtype.ordered) else None
