"""Check the rows that a user gives: do they suit the kernel, and do they have the columns of the training rows?

The result of a check is `gpssl.data.Rows`. Whoever gets rows in this form does not check them again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import InputTags
from sklearn.utils.validation import check_array, validate_data

from .._validation import check_weights
from ..data._arrays import as_object_rows
from ..data._frames import check_names, header_of, refuse_arrow
from ..data._rows import Rows, SliceableRows, is_lazy, is_path, open_rows
from ..kernels._protocol import (
    PreparingKernel,
    check_of_cells,
    preparing_kernel,
    takes_missing_cells,
    takes_tables,
    takes_vectors,
    text_columns_of,
)
from ..kernels.vectors import NeighborRBF

COLUMN_ATTRIBUTES = ("n_features_in_", "feature_names_in_", "card_")
"""What a fitted model keeps about the columns of its rows: number, names and, if it was read from a file, ranges."""
NO_NUMBERS = ("could not convert", "argument must be", "setting an array element", "Cannot cast")
"""Parts of what NumPy and pandas say of cells that are no numbers."""
COMPLEX = "Complex data not supported: pass real and imaginary parts as columns of their own."


# The kernel decides what a row is


def kernel_or_default(kernel: Kernel | None) -> Kernel:
    """Return the kernel, or the default one for None."""
    return NeighborRBF() if kernel is None else kernel


def check_kernel(kernel: Any) -> Kernel:
    """Return the kernel, or the default one for None. Raise TypeError where it is no kernel."""
    checked = kernel_or_default(kernel)
    if not isinstance(checked, Kernel):
        raise TypeError(f"kernel must be a kernel object such as sklearn.gaussian_process.kernels.RBF(), got {kernel!r}.")
    return checked


def kernel_for(kernel: Kernel | None, X: Any, sample_weight: Any = None) -> Kernel:
    """Return the kernel; for None the default one, or one for tables where X is a data frame with other cells than numbers."""
    refuse_arrow(X)
    if kernel is not None or not hasattr(X, "columns") or is_lazy(X) or _holds_numbers(X):
        return kernel_or_default(kernel)
    from ..kernels.tables import for_table

    return for_table(X, sample_weight=sample_weight)


def _holds_numbers(frame: Any) -> bool:
    """Return whether all cells of a data frame are numbers."""
    kinds = [str(dtype).lower() for dtype in (frame.dtypes if hasattr(frame, "dtypes") else [])]
    if not all(kind.startswith(("float", "int", "uint", "bool")) for kind in kinds):
        return False
    missing = frame.isna().to_numpy() if hasattr(frame, "isna") else np.array(frame.null_count().row(0))
    return not bool(missing.any())


def set_input_tags(tags: InputTags, kernel: Any) -> None:
    """Set the input tags from the kernel. `fit` reports an invalid kernel."""
    tags.two_d_array = takes_vectors(kernel_or_default(kernel))
    tags.allow_nan = takes_missing_cells(kernel)
    tags.sparse = tags.two_d_array and not tags.allow_nan


# Rows


def check_rows(estimator: Any, X: Any, kernel: Kernel, *, sample_weight: Any = None, reset: bool, min_rows: int = 1) -> Rows:
    """Return rows of numbers where the kernel works on vectors, else of objects. With `reset`, the estimator remembers their columns.

    New rows that have been checked already, as `rows_in_memory` has them, are returned as they are.
    """
    if not reset and sample_weight is None and isinstance(X, SliceableRows) and X.checked:
        return X
    if takes_tables(kernel) and (isinstance(X, Rows) or is_path(X)):
        X = open_rows(X).for_tables(text_columns_of(kernel))
    if _comes_in_parts(X) and _reads_parts_of(kernel, X):
        return _check_lazy_rows(estimator, X, sample_weight, reset=reset, min_rows=min_rows)
    checked = check_rows_in_memory(estimator, X, kernel, reset=reset, min_rows=min_rows, sparse=True)
    header = None if isinstance(X, np.ndarray) else header_of(X)
    return rows_in_memory(checked, check_weights(sample_weight, checked.shape[0]), header)


def check_enough_first_rows(n_rows: int | None, n_components: int) -> None:
    """Raise ValueError where the first rows of several calls, from which the rest of a model is chosen, are too few for that."""
    if n_rows is not None and n_rows < max(2, n_components):
        raise ValueError(
            f"The first rows choose lengthscale and inducing points, and n_samples={n_rows} are too few for {n_components} "
            "components. Begin with more rows, or pass both a concrete kernel and inducing points to the constructor."
        )


def check_new_rows(model: Any, X: Any, kernel: Kernel) -> Rows:
    """Check rows for a fitted model, and warn where they are outside of what it was trained on."""
    rows = check_rows(model, X, kernel, reset=False)
    warn_outside_training(model, X)
    return rows


def check_rows_in_memory(estimator: Any, X: Any, kernel: Kernel, *, reset: bool, min_rows: int = 1, sparse: bool = False) -> NDArray[Any]:
    """Return an array of numbers where the kernel works on vectors, else of objects. Sparse rows, where allowed, come as CSR."""
    if not reset and isinstance(X, SliceableRows) and X.checked:
        return X.X
    refuse_arrow(X)
    if any(getattr(dtype, "kind", None) == "c" for dtype in _types_of_cells(X)):
        raise ValueError(COMPLEX)  # pandas would drop the imaginary parts
    preparing = preparing_kernel(kernel)
    if preparing is None and kernel.requires_vector_input:
        return _check_numeric_rows(estimator, X, reset=reset, min_rows=min_rows, kernel=kernel, sparse=sparse)
    if _comes_in_parts(X) and not isinstance(X, np.memmap | str):
        name = type(preparing or kernel).__name__
        raise TypeError(f"{name} needs rows in memory, in a list, an array or a data frame; got {type(X).__name__}: read them first.")
    rows = as_object_rows(X) if preparing is None else _prepared(preparing, X)
    if rows.ndim == 2:
        check_of_cells(kernel)(rows)
        validate_data(estimator, X, reset=reset, skip_check_array=True)  # names and number of columns
        if rows.shape[1] == 0:
            raise ValueError(f"Found rows with 0 feature(s) (shape={rows.shape}) while a minimum of 1 is required.")
    if len(rows) < min_rows:
        raise ValueError(f"Found n_samples={len(rows)} rows; at least {min_rows} are needed.")
    return rows


def _types_of_cells(X: Any) -> list[Any]:
    """Return the types of the columns of a data frame, or of an array."""
    return list(X.dtypes) if hasattr(X, "columns") and hasattr(X, "dtypes") else [getattr(X, "dtype", None)]


def _prepared(preparing: PreparingKernel, X: Any) -> NDArray[Any]:
    """Return the rows as the kernel prepares them."""
    try:
        return preparing.prepare(X)
    except (ValueError, TypeError) as error:
        raise _explained(error, X, preparing) from error


def rows_in_memory(X: Any, sample_weight: NDArray[np.float64] | None = None, header: Any = None) -> SliceableRows:
    """Return rows that need no further check. `header` has the names and types of the columns of a data frame."""
    rows = SliceableRows(X, sample_weight, checked=True)
    rows.header = header
    return rows


def _comes_in_parts(X: Any) -> bool:
    """Return whether X is read part by part, which an array in memory is not."""
    return isinstance(X, np.memmap) or (not isinstance(X, np.ndarray) and is_lazy(X))


def _reads_parts_of(kernel: Kernel, X: Any) -> bool:
    """Return whether the kernel works on rows that are read part by part: vectors, or tables that come encoded."""
    if not (isinstance(X, Rows) and X.are_encoded):
        return kernel.requires_vector_input and preparing_kernel(kernel) is None
    if not takes_tables(kernel):
        raise TypeError(f"These rows are a table with columns of several kinds, and {kernel} is not made for one: use for_table(...).")
    return True


def _check_numeric_rows(estimator: Any, X: Any, *, reset: bool, min_rows: int, kernel: Kernel, sparse: bool) -> NDArray[Any]:
    """Check rows of numbers as scikit-learn does; where there is text or a missing cell, say which kernels take it."""
    accepted = "csr" if sparse else False
    try:
        return validate_data(estimator, X, reset=reset, dtype=[np.float64, np.float32], ensure_min_samples=min_rows, accept_sparse=accepted)
    except (ValueError, TypeError) as error:
        raise _explained(error, X, kernel) from error


def _explained(error: Exception, X: Any, kernel: Kernel) -> Exception:
    """Return an error of scikit-learn, NumPy or pandas about rows that are no numbers as one that says what to do; others as they are."""
    text, name = str(error), type(kernel).__name__
    if "contains NaN" in text:
        return ValueError(
            f"{text.splitlines()[0]} The kernel {name} needs all cells. For rows with missing cells, pass "
            "kernel=gpssl.kernels.IncompleteRBF() or, for a data frame, kernel=gpssl.kernels.for_table(X); or fill them in."
        )
    if "Complex data" in text:  # scikit-learn shows all of them
        return ValueError(COMPLEX)
    if "unique column names" in text:
        check_names(X)
    is_no_number = any(part in text for part in NO_NUMBERS)
    if not is_no_number and "promot" not in type(error).__name__.lower():
        return error
    kind = type(error) if is_no_number else TypeError
    return kind(
        f"{text.rstrip('.')}. The kernel {name} works on numbers: encode such columns (for example with "
        "OneHotEncoder), or pass a kernel for this kind of rows, such as gpssl.kernels.for_table(X) for a data frame."
    )


def _check_lazy_rows(estimator: Any, X: Any, sample_weight: Any, *, reset: bool, min_rows: int) -> Rows:
    """Open rows that are read part by part. Their columns are checked now, their values as they are read."""
    rows = open_rows(X)
    columns: Any = np.empty((0, rows.n_columns))
    if rows.names is not None:
        import pandas as pd  # sources with names come with libraries that need it

        columns = pd.DataFrame(columns, columns=rows.names)
    validate_data(estimator, columns, reset=reset, skip_check_array=True)
    if rows.n_rows is not None and rows.n_rows < min_rows:
        raise ValueError(f"Found n_samples={rows.n_rows} rows; at least {min_rows} are needed.")
    if sample_weight is None:
        return rows
    weight = np.asarray(sample_weight)
    if weight.ndim != 1:
        raise ValueError(f"Rows that are read in parts need a weight for each row, got sample_weight of shape {weight.shape}.")
    return open_rows(rows, check_weights(weight, len(weight) if rows.n_rows is None else rows.n_rows))


def check_inducing_points(points: Any, n_columns: int, kernel: Kernel) -> NDArray[Any]:
    """Return inducing points as an array. They may come as one where the training rows are a data frame: only their shape is compared."""
    preparing = preparing_kernel(kernel)
    if preparing is None and not kernel.requires_vector_input:
        return as_object_rows(points)
    checked = check_array(points, dtype=np.float64) if preparing is None else preparing.prepare(points)
    if checked.ndim == 2 and checked.shape[1] != n_columns:
        raise ValueError(f"The inducing points have {checked.shape[1]} columns, the rows have {n_columns} features.")
    return checked


# The columns of the training rows


def copy_columns(source: Any, target: Any) -> None:
    """Make `target` expect the same columns as the fitted model `source`."""
    for name in COLUMN_ATTRIBUTES:
        vars(target).pop(name, None)
        if hasattr(source, name):
            setattr(target, name, getattr(source, name))


def warn_outside_training(model: Any, X: Any) -> None:
    """Warn where rows leave the ranges in the card of a model that was read from a file; not about rows that were checked before."""
    card = vars(model).get("card_")
    if card is not None:
        card.warn(X, stacklevel=4)
