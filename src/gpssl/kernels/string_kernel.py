"""What all kernels for strings share: what a row is, and k(X, Y) filled in block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import GenericKernelMixin, Kernel

from ..rows import row_blocks
from ..threads import map_on_threads
from .evaluation import BlockKernel

ROWS_AT_A_TIME = 256
"""Few enough that what a block needs beside the result is small, and that all threads have work to the end."""


class StringKernel(GenericKernelMixin, Kernel):
    """A kernel whose rows are strings. A subclass says how to fill in k(X, points), and what k(x, x) is if it is not 1."""

    def prepare(self, X: Any) -> NDArray[Any]:
        """The strings of a list, an array, a Series or a data frame with one column, as an array of objects. [n]"""
        if isinstance(X, str | bytes):
            raise ValueError(
                f"X is a single {type(X).__name__}, {X[:20]!r}: {type(self).__name__} takes a list of strings, one for each row."
            )
        values = X.to_numpy() if hasattr(X, "to_numpy") else X
        rows = values.astype(object) if isinstance(values, np.ndarray) and values.dtype != object else values
        if not isinstance(rows, np.ndarray):
            rows = np.fromiter(rows, dtype=object)
        if rows.ndim == 2 and rows.shape[1] == 1:
            rows = rows[:, 0]
        if rows.ndim != 1:
            raise ValueError(
                f"X has the shape {rows.shape}, and {type(self).__name__} takes one string a row: pass the column with the strings."
            )
        if all(type(row) is str and row for row in rows):
            return rows
        return np.fromiter((_checked(row, number) for number, row in enumerate(rows)), dtype=object, count=len(rows))

    def block_kernel(self, points: NDArray[Any]) -> BlockKernel:
        """A function that fills in k(X, points) block by block, for rows that have been prepared."""
        raise NotImplementedError

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """k(X, Y), or k(X, X) and its gradient, which has no parameter to be by. [n, m]"""
        if eval_gradient and Y is not None:
            raise ValueError("The gradient can only be evaluated when Y is None.")
        rows = self.prepare(X)
        if Y is not None:
            return self._fill_in(rows, self.prepare(Y))
        values = self._gram(rows)
        return (values, np.empty((len(rows), len(rows), 0))) if eval_gradient else values

    def _fill_in(self, rows: NDArray[Any], points: NDArray[Any]) -> NDArray[np.float64]:
        """k(rows, points), some rows at a time. [n, m]"""
        fill = self.block_kernel(points)
        values = np.empty((len(rows), len(points)))
        map_on_threads(lambda block: fill(rows[block], values[block]), list(row_blocks(len(rows), ROWS_AT_A_TIME)))
        return values

    def _gram(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """k(rows, rows). [n, n]"""
        return self._fill_in(rows, rows)

    def diag(self, X: Any) -> NDArray[np.float64]:
        """k(x, x) for each row. [n]"""
        return np.ones(len(self.prepare(X)))

    def is_stationary(self) -> bool:
        """No: strings have no differences."""
        return False

    def __repr__(self) -> str:
        parameters = self.get_params(deep=False)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in parameters.items())})"


def _checked(row: Any, number: int) -> str:
    """The row as a plain `str`, or a sentence."""
    if isinstance(row, str) and row:
        return str(row)
    if isinstance(row, str):
        raise ValueError(f"Row {number} is an empty string: drop such rows, or write a text that stands for them.")
    if isinstance(row, bytes):
        raise ValueError(f"Row {number} is of type bytes: decode such rows first, for example with row.decode('utf-8').")
    if row is None or type(row).__name__ in ("NAType", "NaTType") or (isinstance(row, float) and np.isnan(row)):
        raise ValueError(f"Row {number} is missing ({row}): drop such rows, or write a text that stands for a gap.")
    raise ValueError(f"Row {number} is of type {type(row).__name__}, not a string: convert such rows first, for example with str(row).")
