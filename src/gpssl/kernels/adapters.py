"""Kernels from elsewhere: those of GPyTorch, any function of two sets of rows, a Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import GenericKernelMixin, Kernel

from ._protocol import Array, NonStationary, refuse_gradient

_LARGEST_CHECKED = 3000
"""Rows of a Gram matrix up to which its eigenvalues are computed, to check that none is negative."""


def from_gpytorch(kernel: Any) -> GPyTorchKernel:
    """Return a copy of a kernel of GPyTorch, with its current parameters, in double precision."""
    try:
        import gpytorch
    except ImportError as error:
        raise ImportError("from_gpytorch needs GPyTorch: pip install gpytorch") from error
    if not isinstance(kernel, gpytorch.kernels.Kernel):
        raise TypeError(f"from_gpytorch takes a gpytorch.kernels.Kernel, got {type(kernel).__name__}.")
    if tuple(kernel.batch_shape):
        raise ValueError(f"The kernel has a batch of parameters, of shape {list(kernel.batch_shape)}; one set of them is needed.")
    return GPyTorchKernel(deepcopy(kernel).double().eval())


class GPyTorchKernel(NonStationary, Kernel):
    """A kernel of GPyTorch between vectors, without gradients. Made by `from_gpytorch`."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Array:
        """Return k(X, Y). [n, m]"""
        refuse_gradient(self, eval_gradient)
        import torch

        rows = _tensor(X)
        with torch.no_grad():
            values = self.kernel(rows, rows if Y is None else _tensor(Y)).to_dense()
        return np.asarray(values.numpy(), dtype=np.float64)

    def diag(self, X: Any) -> Array:
        """Return k(x, x) for each row. [n]"""
        import torch

        with torch.no_grad():
            return np.asarray(self.kernel(_tensor(X), diag=True).numpy(), dtype=np.float64)

    def describe(self) -> str:
        """Return the kernel and the values of its parameters, for `SelfDescribingKernel`."""
        values = {name: value.numpy().tolist() for name, value in self.kernel.state_dict().items()}
        return f"{self.kernel} {values}"

    def __repr__(self) -> str:
        return f"from_gpytorch({type(self.kernel).__name__})"


def _tensor(X: Any) -> Any:
    import torch

    return torch.tensor(np.asarray(X), dtype=torch.float64)  # a copy: rows may be read-only


class CallableKernel(NonStationary, Kernel):
    """Any function of two sets of rows as a kernel. Only a function that can be imported can be pickled.

    Parameters
    ----------
    function
        f(X, Y), which returns the matrix k(X, Y) [n, m]; with `elementwise`, f(x, y), which returns a number.
    vectors
        Whether rows are vectors of numbers; otherwise they are objects, which are passed on as they are.
    elementwise
        Whether the function takes two rows instead of two sets of rows.
    diagonal
        f(X), which returns k(x, x) for each row [n]. Without it the function is called row by row.
    """

    def __init__(
        self,
        function: Callable[[Any, Any], Any],
        *,
        vectors: bool = True,
        elementwise: bool = False,
        diagonal: Callable[[Any], Any] | None = None,
    ) -> None:
        self.function = function
        self.vectors = vectors
        self.elementwise = elementwise
        self.diagonal = diagonal

    @property
    def requires_vector_input(self) -> bool:
        """Whether rows are vectors."""
        return self.vectors

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Array:
        """Return k(X, Y). [n, m]"""
        refuse_gradient(self, eval_gradient)
        if not callable(self.function):
            raise TypeError(f"CallableKernel takes a function of two sets of rows, got {self.function!r}.")
        Y = X if Y is None else Y
        values = [[self.function(x, y) for y in Y] for x in X] if self.elementwise else self.function(X, Y)
        return self._checked(values, (len(X), len(Y)), "function")

    def diag(self, X: Any) -> Array:
        """Return k(x, x) for each row. [n]"""
        if self.diagonal is not None:
            return self._checked(self.diagonal(X), (len(X),), "diagonal")
        return np.array([self(X[i : i + 1])[0, 0] for i in range(len(X))], dtype=np.float64)

    def _checked(self, values: Any, shape: tuple[int, ...], name: str) -> Array:
        array = np.asarray(values, dtype=np.float64)
        if array.shape != shape:
            raise ValueError(f"The {name} of CallableKernel returns shape {list(array.shape)} where {list(shape)} is needed.")
        return array

    def __repr__(self) -> str:
        return f"CallableKernel({getattr(self.function, '__qualname__', type(self.function).__name__)})"


class PrecomputedKernel(NonStationary, GenericKernelMixin, Kernel):
    """A Gram matrix. Rows are positions in it: `np.arange(n)` for all of them.

    It must be square, symmetric and finite. Up to 3,000 rows its smallest eigenvalue is checked too, which must be at least
    −1e-8 times the trace; a larger matrix is not checked, and the fit fails where it meets a negative variance.

    Parameters
    ----------
    gram
        k(i, j) between all rows that will ever be used, for training or later. [n, n]
    """

    def __init__(self, gram: Any) -> None:
        self.gram = gram

    def prepare(self, X: Any) -> NDArray[Any]:
        """Return positions as numbers of Python; raise ValueError if one is outside the matrix. [n]"""
        return self._positions(X).astype(object)

    def _positions(self, X: Any) -> NDArray[np.intp]:
        values = np.asarray(X)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        numbers = values.astype(np.float64) if values.dtype.kind in "iufO" and values.ndim == 1 else np.full(1, np.nan)
        if not (numbers == np.floor(numbers)).all():
            raise ValueError("Rows of PrecomputedKernel are positions in its Gram matrix: whole numbers, of shape [n] or [n, 1].")
        n_rows = len(self._checked_gram)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < n_rows:
            outside = numbers[(numbers < 0) | (numbers >= n_rows)][0]
            raise ValueError(f"Row {outside:.0f} is outside the Gram matrix, which has {n_rows} rows (positions count from 0).")
        return numbers.astype(np.intp)

    @cached_property
    def _checked_gram(self) -> Array:
        """The Gram matrix; raises ValueError unless it is square, finite, symmetric and positive semi-definite."""
        matrix = np.asarray(self.gram)
        if matrix.dtype.kind not in "fiub":
            raise ValueError(f"A Gram matrix is an array of numbers, got {matrix.dtype}.")
        matrix = matrix.astype(np.float64, copy=False)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"A Gram matrix is square, got shape {list(matrix.shape)}.")
        if not np.isfinite(matrix).all():
            raise ValueError("The Gram matrix has entries that are not finite.")
        largest = np.abs(matrix).max(initial=0.0)
        if not np.allclose(matrix, matrix.T, rtol=0, atol=1e-8 * largest):
            raise ValueError("The Gram matrix is not symmetric: k(x, y) must equal k(y, x).")
        if 0 < len(matrix) <= _LARGEST_CHECKED:
            smallest = float(np.linalg.eigvalsh(matrix)[0])
            if smallest < -1e-8 * max(float(matrix.trace()), np.finfo(float).tiny):
                raise ValueError(f"The Gram matrix is not positive semi-definite: its smallest eigenvalue is {smallest:.3g}.")
        return matrix

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Array:
        """Return k(X, Y). [n, m]"""
        refuse_gradient(self, eval_gradient)
        rows = self._positions(X)
        return self._checked_gram[np.ix_(rows, rows if Y is None else self._positions(Y))]

    def diag(self, X: Any) -> Array:
        """Return k(x, x) for each row. [n]"""
        return self._checked_gram.diagonal()[self._positions(X)]

    def __repr__(self) -> str:
        return f"PrecomputedKernel({len(self.gram)} rows)"
