"""Kernels for tables: one that has a kernel for each group of columns, and a choice of groups for a given data frame."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from numbers import Integral, Real
from operator import itemgetter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import GenericKernelMixin, Kernel
from sklearn.utils._indexing import _get_column_indices

from .._runtime import GRAPH_TEXTS, MOST_TEXTS, TEXT_NEIGHBORS
from .._validation import check_number, check_weights
from ..data._arrays import DistinctRows, in_double_precision
from ..data._frames import MOST_CATEGORIES, are_codes, check_names, encode_column, encode_table
from ..data._free_text import encode_with_texts, text_columns
from ..data._rows import MappedRows, Rows
from ._protocol import (
    Array,
    BlockKernel,
    CallByBlocks,
    TakesStrings,
    TakesTables,
    UnitDiagonal,
    block_kernel,
    check_of_cells,
    depends_on_rows,
    kernel_diagonal,
    not_resolved,
    preparing_kernel,
    resolve_kernel,
    training_rows,
)
from .categories import CategoryKernel, OrdinalKernel
from .incomplete import IncompleteRBF

_Columns = str | int | slice | Sequence[str] | Sequence[int] | Callable[[Any], Any]
_Group = tuple[str, Kernel, _Columns]

_FAR_OUT = 20.0
"""Interquartile ranges from the median: columns with values farther out are compared by rank."""


class ColumnKernel(CallByBlocks, TakesTables, GenericKernelMixin, Kernel):
    """A kernel for each group of columns, as `ColumnTransformer` has a transformer for each.

        "product"    k(x, y) = Π_g (1 − w_g + w_g k_g(x, y))      rows must be alike in every group; w_g in [0, 1], 1 if not given
        "sum"        k(x, y) = Σ_g w_g k_g(x, y)                  rows may be alike in some; w_g ≥ 0, 1/G if not given

    Rows come as a data frame (pandas, polars) or an array. Columns that are in no group are ignored. `for_table` chooses groups and
    kernels for a data frame.

    Parameters
    ----------
    groups
        A list of (name, kernel, columns). Columns are names or positions, one or a list of them, a slice, or a function of the data frame
        such as `sklearn.compose.make_column_selector(dtype_include="category")`. A kernel is `CategoryKernel`, `OrdinalKernel`,
        `IncompleteRBF` where numbers are missing, or any kernel for numbers, scikit-learn's included. A kernel for texts or sequences,
        such as `TfidfKernel`, has one column, which is named or counted; a missing cell is a text without words.
    combine
        "product" or "sum".
    weights
        One weight for each group.
    column_names
        The names of all columns of the training rows, if they have names. Found at `fit`, so that columns may come in any order later.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpssl.kernels import CategoryKernel, ColumnKernel, NeighborRBF
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 4.0], "color": ["red", "red", "blue"]})
    >>> kernel = ColumnKernel([("numbers", NeighborRBF(), ["size"]), ("colors", CategoryKernel(), ["color"])])
    >>> kernel.resolve(frame)(frame).shape
    (3, 3)
    """

    def __init__(
        self,
        groups: Sequence[_Group],
        *,
        combine: Literal["product", "sum"] = "product",
        weights: ArrayLike | None = None,
        column_names: Sequence[str] | None = None,
    ) -> None:
        self.groups = groups
        self.combine = combine
        self.weights = weights
        self.column_names = column_names

    @property
    def text_columns(self) -> tuple[Hashable, ...]:
        """The columns of groups with a kernel for texts: names, or positions once the kernel is resolved."""
        whole = [group for group in self.groups if isinstance(group, tuple | list) and len(group) == 3]  # `resolve` reports others
        columns = {_only_column(columns) for _, kernel, columns in whole if _is_for_texts(kernel)}
        return tuple(sorted(columns, key=repr))

    def prepare(self, X: Any) -> NDArray[Any]:
        """Encode every cell but texts as a number; put columns into the order of the training rows, once it is known. [n, D]"""
        if self.column_names is not None and hasattr(X, "columns"):
            present = set(X.columns)
            missing = [name for name in self.column_names if name not in present]
            if missing:
                raise ValueError(f"The data frame lacks the column(s) {', '.join(map(repr, missing))}, which the training rows had.")
            X = X[list(self.column_names)]
        return encode_with_texts(X, self.text_columns) if self.text_columns else encode_table(X)

    @property
    def is_resolved(self) -> bool:
        """Whether nothing is left to be taken from the training rows."""
        return all(_are_positions(columns) and not depends_on_rows(kernel) for _, kernel, columns in self.groups)

    def resolve(self, X: Any, sample_weight: Array | None = None, seed: int = 0) -> ColumnKernel:
        """Return the kernel with columns as positions, and with the concrete kernel of each group."""
        self._check_parameters()
        rows = training_rows(self, X, sample_weight)
        groups = [(name, *self._resolve_group(name, kernel, columns, rows, seed)) for name, kernel, columns in self.groups]
        names = None if rows.header is None else list(rows.header.columns)
        return ColumnKernel(groups, combine=self.combine, weights=self.weights, column_names=names)

    def _resolve_group(self, name: str, kernel: Kernel, columns: _Columns, rows: Rows, seed: int) -> tuple[Kernel, list[int]]:
        places = _places(columns, rows.header, rows.n_columns, name)
        names = [] if rows.header is None else list(rows.header.columns)
        header = None if rows.header is None else rows.header[[names[place] for place in places]]
        if _is_for_texts(kernel):
            return resolve_kernel(kernel, _TextRows(rows.only(places), itemgetter((slice(None), 0)), 1), seed), places
        return resolve_kernel(kernel, MappedRows(rows.only(places), _check_of_group(name, kernel), len(places), header), seed), places

    def block_kernel(self, points: Array) -> BlockKernel:
        """Return a function that evaluates each group in its fastest way."""
        self._check_parameters()
        if not self.is_resolved:
            raise not_resolved(self, "columns and lengthscales")
        selections = [_selection(group, points.shape[1]) for group in self.groups]
        fills = [block_kernel(kernel, select(points)) for (_, kernel, _), select in zip(self.groups, selections, strict=True)]

        def fill(X: Array, out: Array) -> None:
            X = in_double_precision(X)
            values = np.empty_like(out)
            self._start(out)
            for fill_group, select, weight in zip(fills, selections, self._weights(), strict=True):
                fill_group(select(X), values)
                self._add_group(out, values, weight)

        return fill

    def diag(self, X: Any) -> Array:
        """Return k(x, x) for each row. [n]"""
        X = self.prepare(X)
        out = np.empty(len(X))
        self._start(out)
        for group, weight in zip(self.groups, self._weights(), strict=True):
            kernel = group[1]
            has_unit_diagonal = isinstance(kernel, UnitDiagonal)
            values = np.ones(len(X)) if has_unit_diagonal else kernel_diagonal(kernel, _selection(group, X.shape[1])(X))
            self._add_group(out, values, weight)
        return out

    def _start(self, out: Array) -> None:
        out[...] = 1.0 if self.combine == "product" else 0.0

    def _add_group(self, out: Array, values: Array, weight: float) -> None:
        """Multiply by a group's kernel, or add it; overwrites `values`."""
        if weight != 1:
            values *= weight
        if self.combine == "sum":
            out += values
        else:
            out *= values if weight == 1 else values + (1 - weight)

    def _weights(self) -> Array:
        given = 1.0 if self.combine == "product" else 1 / len(self.groups)
        return np.full(len(self.groups), given) if self.weights is None else np.asarray(self.weights, dtype=np.float64)

    def _check_parameters(self) -> None:
        if self.combine not in ("product", "sum"):
            raise ValueError(f'combine must be "product" or "sum", got {self.combine!r}.')
        if not self.groups or any(not isinstance(group, tuple | list) or len(group) != 3 for group in self.groups):
            raise ValueError("groups must be a list of (name, kernel, columns), at least one.")
        for name, kernel, _ in self.groups:
            if not isinstance(kernel, Kernel):
                raise TypeError(f"The group {name!r} needs a kernel object such as NeighborRBF(), got {kernel!r}.")
        if self.weights is None:
            return
        if np.shape(self.weights) != (len(self.groups),) or np.asarray(self.weights).dtype.kind not in "fiu":
            raise ValueError(f"weights must be one number for each of the {len(self.groups)} groups, got {self.weights!r}.")
        for weight in self._weights():
            check_number("Each weight", float(weight), Real, at_least=0)
            if self.combine == "product" and weight > 1:
                raise ValueError(f"The weights of a product are between 0 and 1, got {weight:g}.")


class _TextRows(MappedRows):
    """The texts of one column of a table."""

    def sample(self, limit: int, seed: int) -> DistinctRows:
        """Return distinct texts, chosen among the cells of the table, which are hashed faster than objects are."""
        found = self.rows.sample(limit, seed)
        return DistinctRows(found.rows[:, 0], found.weight, found.hashes)


def _are_positions(columns: _Columns) -> bool:
    listed = columns if isinstance(columns, Sequence | np.ndarray) and not isinstance(columns, str) else [columns]
    return all(isinstance(column, Integral | slice) for column in listed)


def _places(columns: _Columns, header: Any, n_columns: int, name: str) -> list[int]:
    """Return the positions of a group's columns."""
    if isinstance(columns, list) and all(type(column) is int and 0 <= column < n_columns for column in columns) and header is None:
        return columns
    if header is None:
        header = np.empty((0, n_columns))
        if callable(columns):
            raise ValueError(f"The columns of the group {name!r} are chosen by a function of a data frame, but the rows came as an array.")
    chosen = columns(header) if callable(columns) else columns
    try:
        places = _places_of_names(chosen, header)
        if places is None:
            places = [int(place) for place in _get_column_indices(header, chosen)]
    except ValueError as error:
        known = f" The columns are {', '.join(map(repr, header.columns))}." if hasattr(header, "columns") else ""
        raise ValueError(f"The group {name!r} asks for the column(s) {chosen!r}: {str(error).rstrip('.')}.{known}") from error
    if not places:
        raise ValueError(f"The group {name!r} has no columns.")
    if max(places) >= n_columns:
        raise ValueError(f"The group {name!r} asks for column {max(places)}, but there are {n_columns} columns.")
    return places


def _places_of_names(columns: Any, header: Any) -> list[int] | None:
    """Return the positions of columns that are listed by their names, which may be numbers; None if some is no name of a column."""
    places = {name: place for place, name in enumerate(header.columns)} if hasattr(header, "columns") else {}
    listed = columns if isinstance(columns, list) else [columns]
    return [places[name] for name in listed] if all(isinstance(name, Hashable) and name in places for name in listed) else None


def _selection(group: _Group, n_columns: int) -> Callable[[Array], Array]:
    """Return a function that returns the columns of a group; it raises ValueError if the kernel cannot work with what they hold."""
    name, kernel, columns = group
    places = _places(columns, None, n_columns, name)
    if _is_for_texts(kernel):
        return itemgetter((slice(None), places[0]))
    check = _check_of_group(name, kernel)
    return lambda X: check(X[:, places])


def _check_of_group(name: str, kernel: Kernel) -> Callable[[NDArray[Any]], Array]:
    check = check_of_cells(kernel, f"the columns of the group {name!r}")
    return lambda X: check(X.astype(np.float64, copy=False))  # of objects, where other columns are texts


def _is_for_texts(kernel: Kernel) -> bool:
    """Return whether the rows of a kernel are strings."""
    return isinstance(kernel, Kernel) and isinstance(preparing_kernel(kernel), TakesStrings)


def _only_column(columns: _Columns) -> Hashable:
    """Return the one column of a group with a kernel for texts. Raise ValueError where it is not named or counted, or not alone."""
    listed = columns if isinstance(columns, list | tuple | np.ndarray) else [columns]
    if len(listed) != 1 or not isinstance(listed[0], str | Integral):
        raise ValueError(f"A kernel for texts has one column, which is named or counted, got {columns!r}: give each its own group.")
    column = listed[0]
    return column if isinstance(column, str) else int(column)


def for_table(
    X: Any,
    *,
    neighborhood: float = 10,
    texts: Sequence[str] | None = None,
    text_kernel: Kernel | None = None,
    sample_weight: ArrayLike | None = None,
) -> ColumnKernel:
    """Choose a `ColumnKernel` for the columns of a data frame: `GPSSL(kernel=for_table(frame)).fit(frame)`.

    Numbers, booleans and dates are compared by `IncompleteRBF`, in units of each column's standard deviation; those with values far out,
    such as counts and amounts, by their rank; ordered categories by their position; text and categories by `CategoryKernel`. Cells
    may be missing everywhere. All columns have the same weight, in whichever group they are. Columns that have the same value in all rows,
    or different values in nearly all of them, such as names, are left out with a warning.

    Free text, sentences in most cells that share words, is compared by `text_kernel`, by default neighbors of neighbors by their words:
    `NeighborDiffusion(20, kernel=TfidfKernel())`. Texts have one half of the kernel, all other columns the other half, as a sum: two texts
    seldom have much in common, and a product would forget the other columns. `texts` names the columns with free text, where the cells
    shall not decide. With `sample_weight`, a row of weight 2 counts as the row twice.
    """
    if not hasattr(X, "columns"):
        raise TypeError(f"for_table chooses kernels by the names and types of columns, so it needs a data frame, got {type(X).__name__}.")
    weight = check_weights(sample_weight, len(X))
    texts = text_columns(X, weight) if texts is None else list(texts)
    groups, left_out = _columns_by_kind(X, texts, weight)
    if left_out:
        warnings.warn(f"Left out of the kernel: {'; '.join(left_out)}.", UserWarning, stacklevel=2)
    if not groups and not texts:
        raise ValueError("No column of this data frame distinguishes its rows: there is nothing to learn from.")
    if not texts:
        return _of_columns(groups, neighborhood)
    by_words = _kernel_of_texts() if text_kernel is None else text_kernel
    of_texts: list[_Group] = [(f"text {name!r}", by_words, [name]) for name in texts]
    if not groups:
        return ColumnKernel(of_texts, combine="sum")
    others = [name for columns in groups.values() for name in columns]
    weights = [0.5, *[0.5 / len(texts)] * len(texts)]
    return ColumnKernel([("other columns", _of_columns(groups, neighborhood), others), *of_texts], combine="sum", weights=weights)


def _kernel_of_texts() -> Kernel:
    """Return the kernel of free text in a table: neighbors of neighbors by their words."""
    from .documents import TfidfKernel
    from .neighbors import NeighborDiffusion

    return NeighborDiffusion(TEXT_NEIGHBORS, kernel=TfidfKernel(max_rows=MOST_TEXTS), max_rows=GRAPH_TEXTS)


def _of_columns(groups: dict[str, list[str]], neighborhood: float) -> ColumnKernel:
    """Return the product of kernels for columns by their kind."""
    n_columns = sum(map(len, groups.values()))
    # With k_g^(D_g / D) in the place of k_g, all columns have the same weight, in whichever group they are.
    stretch = {name: float(np.sqrt(n_columns / len(columns))) for name, columns in groups.items()}
    return ColumnKernel([(name, _kernel(name, neighborhood, stretch[name]), columns) for name, columns in groups.items()])


def _kernel(group: str, neighborhood: float, stretch: float) -> Kernel:
    if group == "categories":
        return CategoryKernel(neighborhood, stretch=stretch)
    numbers = IncompleteRBF(neighborhood, stretch=stretch)
    return numbers if group == "numbers" else OrdinalKernel(kernel=numbers)


def _columns_by_kind(X: Any, texts: Sequence[str], weight: Array) -> tuple[dict[str, list[str]], list[str]]:
    """Return the names of columns by the kind of kernel that suits them, and of those that are left out, with the reason."""
    check_names(X)
    kinds: dict[str, list[str]] = {"numbers": [], "ranks": [], "order": [], "categories": []}
    left_out = []
    for name in X.columns:
        if name in texts:
            continue
        values = encode_column(X[name])[weight > 0]
        is_known = ~np.isnan(values)
        known, known_weight = values[is_known], weight[weight > 0][is_known]
        n_different = len(np.unique(known))
        dtype = X[name].dtype
        is_category = are_codes(known).any() or type(dtype).__name__ in ("CategoricalDtype", "Categorical", "Enum")
        tells_gaps = is_category and 0 < len(known) < len(values)
        if n_different < 2 and not tells_gaps:
            left_out.append(f"{name!r} (all cells are alike)")
        elif type(dtype).__name__ == "CategoricalDtype" and dtype.ordered:
            kinds["order"].append(name)
        elif is_category and n_different > MOST_CATEGORIES * known_weight.sum():
            left_out.append(f"{name!r} ({n_different} different values in {known_weight.sum():g} rows)")
        elif is_category:
            kinds["categories"].append(name)
        else:
            kinds["ranks" if _reaches_far_out(known, known_weight) else "numbers"].append(name)
    return {kind: names for kind, names in kinds.items() if names}, left_out


def _reaches_far_out(values: Array, weight: Array) -> bool:
    """Return whether some values are so far from the others that they alone would decide the unit of the column."""
    lower, middle, upper = _weighted_quartiles(values, weight)
    mean = weight @ values / weight.sum()
    spread = upper - lower if upper > lower else float(np.sqrt(weight @ (values - mean) ** 2 / weight.sum())) / 2
    return bool(np.abs(values - middle).max() > _FAR_OUT * spread)


def _weighted_quartiles(values: Array, weight: Array) -> Array:
    """Return `numpy.quantile` of the values at ¼, ½ and ¾, each value being repeated as often as its weight says. [3]"""
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(weight[order])
    places = np.array([0.25, 0.5, 0.75]) * max(ends[-1] - 1, 0.0)
    below, above = (
        values[order][np.minimum(np.searchsorted(ends, place, side="right"), len(values) - 1)]
        for place in (np.floor(places), np.ceil(places))
    )
    quartiles: Array = below + (above - below) * (places - np.floor(places))
    return quartiles
