"""A kernel for a data frame nobody prepared."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from ..tables import are_codes, check_names, encode_column
from .categories import CategoryKernel
from .columns import ColumnKernel, Group
from .incomplete_rbf import IncompleteRBF
from .ordinal import OrdinalKernel

Array = NDArray[np.float64]

MOST_CATEGORIES = 0.5
"""Of the rows: a column of text with more different values says who a row is, not what it is like."""
FAR_OUT = 20.0
"""In interquartile ranges from the median: columns with such values are compared by rank."""


class _Columns(NamedTuple):
    """The columns of a table, by kind."""

    numbers: list[str]
    ranked: list[str]
    ordered: list[str]
    categories: list[str]
    left_out: list[str]
    """With the reason."""


def for_table(X: Any, *, neighborhood: float = 10) -> ColumnKernel:
    """A `ColumnKernel` that suits the columns of a data frame: `GPSSL(kernel=for_table(frame)).fit(frame)`.

    Numbers, booleans and dates are compared by `IncompleteRBF`, in units of each column's standard deviation; those with values far out,
    such as counts and amounts, by their rank; ordered categories by their position; text and categories by `CategoryKernel`. Missing
    cells are fine everywhere. All columns count alike, in whichever group they are. Columns that tell no rows apart, or nearly all of them,
    such as names, are left out, and a warning says so.
    """
    if not hasattr(X, "columns"):
        raise TypeError(f"for_table chooses kernels by the names and types of columns, so it needs a data frame, got {type(X).__name__}.")
    kinds = _kinds(X)
    if kinds.left_out:
        warnings.warn(f"Left out of the kernel: {'; '.join(kinds.left_out)}.", UserWarning, stacklevel=2)
    groups = _groups(kinds, neighborhood)
    if not groups:
        raise ValueError("No column of this data frame tells some rows from others: there is nothing to learn from.")
    return ColumnKernel(groups)


def _groups(kinds: _Columns, neighborhood: float) -> list[Group]:
    """The groups that have columns."""
    named = {"numbers": kinds.numbers, "ranks": kinds.ranked, "order": kinds.ordered, "categories": kinds.categories}
    present = {name: columns for name, columns in named.items() if columns}
    n_columns = sum(map(len, present.values()))
    # With k_g^(D_g / D) in the place of k_g, columns count alike, in whichever group they are.
    stretch = {name: float(np.sqrt(n_columns / len(columns))) for name, columns in present.items()}
    return [(name, _kernel(name, neighborhood, stretch[name]), columns) for name, columns in present.items()]


def _kernel(group: str, neighborhood: float, stretch: float) -> Kernel:
    if group == "categories":
        return CategoryKernel(neighborhood, stretch=stretch)
    numbers = IncompleteRBF(neighborhood, stretch=stretch)
    return numbers if group == "numbers" else OrdinalKernel(kernel=numbers)


def _kinds(X: Any) -> _Columns:
    check_names(X)
    kinds = _Columns([], [], [], [], [])
    for name in X.columns:
        values = encode_column(X[name])
        known = values[~np.isnan(values)]
        n_different = len(np.unique(known))
        dtype = X[name].dtype
        is_category = are_codes(known).any() or type(dtype).__name__ in ("CategoricalDtype", "Categorical", "Enum")
        tells_gaps = is_category and 0 < len(known) < len(values)
        if n_different < 2 and not tells_gaps:
            kinds.left_out.append(f"{name!r} (all cells are alike)")
        elif getattr(dtype, "ordered", False) is True:
            kinds.ordered.append(name)
        elif is_category:
            if n_different > MOST_CATEGORIES * len(known):
                kinds.left_out.append(f"{name!r} ({n_different} different values in {len(known)} rows)")
            else:
                kinds.categories.append(name)
        else:
            (kinds.ranked if _reaches_far_out(known) else kinds.numbers).append(name)
    return kinds


def _reaches_far_out(values: Array) -> bool:
    """Whether some values are so far from the others that they alone would decide the unit of the column."""
    lower, middle, upper = np.quantile(values, [0.25, 0.5, 0.75])
    spread = upper - lower if upper > lower else values.std() / 2
    return bool(np.abs(values - middle).max() > FAR_OUT * spread)
