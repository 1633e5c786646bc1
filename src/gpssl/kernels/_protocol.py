"""Evaluating kernels: columns k(x, U) for blocks of rows, in a buffer used again for the next block, and checked diagonals.

Any kernel can be evaluated this way. One with a faster way than being called has a method `block_kernel(points)` or, if it is
scikit-learn's, an entry in `EVALUATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, KernelOperator, Product, Sum

from ..data._arrays import in_double_precision
from ..data._encoding import are_codes, header_of
from ..data._rows import Rows
from ..data._sliceable import SliceableRows


@runtime_checkable
class PreparingKernel(Protocol):
    """A kernel for a kind of row of its own: strings, graphs, tables with categories or gaps.

    Kernels that share a method `prepare`, or have the same attribute `kind_of_rows`, can be added and multiplied.
    """

    def prepare(self, X: Any) -> NDArray[Any]:
        """The rows of X, checked: numbers [n, D], in which NaN may stand for a gap, or objects [n].

        It depends on the rows alone, row by row, and leaves rows that have been prepared as they are: the kernel, its diagonal and
        every call get what it returns.
        """
        ...


def training_rows(kernel: PreparingKernel, X: Any, sample_weight: NDArray[np.float64] | None = None) -> Rows:
    """The rows from which a kernel takes what it needs: as `fit` has them, or as a user has them who calls `resolve` himself."""
    if isinstance(X, Rows):
        return X
    rows = SliceableRows(kernel.prepare(X), sample_weight, checked=True)
    rows.header = header_of(X)
    return rows


def leaves(kernel: Kernel) -> list[Kernel]:
    """The kernels that a sum, product or power is made of."""
    parts = [part for part in kernel.get_params(deep=False).values() if isinstance(part, Kernel)]
    if not parts or isinstance(kernel, PreparingKernel):
        return [kernel]
    return [leaf for part in parts for leaf in leaves(part)]


def preparing_kernel(kernel: Kernel) -> PreparingKernel | None:
    """The part of a kernel that says what a row is; None where rows are vectors, or objects as they come."""
    preparing = [leaf for leaf in leaves(kernel) if isinstance(leaf, PreparingKernel)]
    if not preparing:
        return None
    ways = {getattr(leaf, "kind_of_rows", type(leaf).prepare.__qualname__): type(leaf).__name__ for leaf in preparing}
    if len(ways) > 1:
        raise ValueError(
            f"{' and '.join(sorted(ways.values()))} are for different kinds of rows and cannot be combined with + or *. For a table with "
            "several kinds of columns, use ColumnKernel."
        )
    return preparing[0]


def _looking_at_cells(kernel: Kernel) -> list[Kernel]:
    """The parts of a kernel without constants and the like."""
    return [leaf for leaf in leaves(kernel) if leaf.requires_vector_input or isinstance(leaf, PreparingKernel)]


def takes_tables(kernel: Kernel) -> bool:
    """Whether all parts of a kernel can work with codes and gaps: with any table that has been encoded."""
    looking = _looking_at_cells(kernel)
    return len(looking) > 0 and all(getattr(leaf, "takes_codes", False) and getattr(leaf, "takes_gaps", False) for leaf in looking)


def check_what_kernels_take(kernel: Kernel, rows: NDArray[np.float64], where: str = "the rows") -> None:
    """A sentence where a part of the kernel, made for numbers, gets text or gaps that another part can work with."""
    for leaf in _looking_at_cells(kernel):
        if not getattr(leaf, "takes_codes", False) and are_codes(rows).any():
            raise ValueError(
                f"There are text or categories in {where}, but the kernel {leaf} works on numbers: use CategoryKernel or OrdinalKernel for "
                "such columns, in a ColumnKernel."
            )
        if not getattr(leaf, "takes_gaps", False) and np.isnan(rows).any():
            raise ValueError(f"Cells are missing in {where}, but the kernel {leaf} needs all of them: use IncompleteRBF.")


@runtime_checkable
class DataDependentKernel(Protocol):
    """A kernel with something still to be learned from the rows, unless it has an attribute `is_resolved` that is true."""

    def resolve(self, rows: Rows, *, seed: int) -> Kernel:
        """The concrete kernel for these rows, of which `rows.sample(limit, seed)` gives as many as fit in memory."""
        ...


def depends_on_rows(kernel: Kernel) -> bool:
    """Whether some part of the kernel is still to be resolved."""
    if isinstance(kernel, DataDependentKernel):
        return not getattr(kernel, "is_resolved", False)
    return any(depends_on_rows(part) for part in kernel.get_params(deep=False).values() if isinstance(part, Kernel))


def not_resolved(kernel: Kernel, what: str) -> ValueError:
    """The error of a kernel that is called before it has seen the training rows."""
    name = type(kernel).__name__
    return ValueError(
        f"{name} takes its {what} from the training rows: pass it to GPSSL(kernel=...), whose fit resolves it, or call "
        f"{name}(...).resolve(X) for the concrete kernel."
    )


def resolve_kernel(kernel: Kernel, rows: Rows, seed: int) -> Kernel:
    """A copy of `kernel` in which every part that depends on the training rows has been made concrete.

    Sums, products and powers are followed into their parts, so `2.0 * NeighborRBF() + WhiteKernel()` works.
    """
    if isinstance(kernel, DataDependentKernel):
        return kernel.resolve(rows, seed=seed)
    parameters = kernel.get_params(deep=False)
    parts = {name: part for name, part in parameters.items() if isinstance(part, Kernel)}
    if not parts:
        return clone(kernel)
    resolved = {name: resolve_kernel(part, rows, seed) for name, part in parts.items()}
    return type(kernel)(**{**parameters, **resolved})


BlockKernel = Callable[[NDArray[Any], NDArray[np.float64]], None]
"""Writes k(X, U) for a block X of n rows into an array. [n, M]"""

LARGEST_HALF_NORM: dict[np.dtype[Any], float] = {np.dtype(np.float64): 1e5, np.dtype(np.float32): 4.0}
"""½|x|² up to which ½|x − u|² from inner products is exact enough: the rounding error is 1e-16 of it, or 6e-8 in single precision,
which whitening then multiplies."""


Evaluation = Callable[[Any, NDArray[Any]], BlockKernel]

EVALUATIONS: dict[type[Kernel], Evaluation] = {}
"""Faster ways to evaluate a kernel than calling it, by its exact type: scikit-learn's Matern is a subclass of its RBF."""


@runtime_checkable
class KernelWithBlocks(Protocol):
    """A kernel that can do the work on the points once, for all blocks of rows."""

    def block_kernel(self, points: NDArray[Any]) -> BlockKernel:
        """A function that fills in k(X, points) block by block; it is called on several threads."""
        ...


LONGEST_TEXT = 1000
"""Of a parameter that is a list, such as groups of columns or levels: beyond, its length is told."""


def describe(kernel: Kernel) -> str:
    """The kernel with the parameters that are not the default ones; arrays by their shape."""
    defaults = {name: parameter.default for name, parameter in signature(type(kernel)).parameters.items()}
    changed = {name: value for name, value in kernel.get_params(deep=False).items() if repr(value) != repr(defaults[name])}
    texts = [f"{name}={_in_short(value)}" for name, value in changed.items()]
    return f"{type(kernel).__name__}({', '.join(texts)})"


def _in_short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<array {value.shape}>"
    text = repr(value)
    return text if len(text) <= LONGEST_TEXT or not isinstance(value, list | tuple) else f"<{type(value).__name__} of {len(value)}>"


class UnitDiagonal:
    """k(x, x) = 1 for rows of any kind; scikit-learn's own mixin asks for an array."""

    def diag(self, X: Any) -> NDArray[np.float64]:
        """k(x, x). [n]"""
        return np.ones(len(X))


class CallByBlocks:
    """scikit-learn's `k(X, Y)` for a kernel that has `block_kernel`. It has no hyperparameters to differentiate by."""

    block_kernel: Callable[[NDArray[Any]], BlockKernel]
    diag: Callable[[Any], NDArray[np.float64]]

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """k(X, Y). [n, m]; with `eval_gradient`, as scikit-learn has it, also the gradient by no hyperparameter, [n, m, 0]."""
        preparing = preparing_kernel(self)
        prepare: Callable[[Any], NDArray[Any]] = np.asarray if preparing is None else preparing.prepare
        alone = Y is None
        X = prepare(X)
        Y = X if alone else prepare(Y)
        values = np.empty((len(X), len(Y)))
        self.block_kernel(Y)(X, values)
        if alone:  # noise that no two evaluations share belongs to k(X) alone, as in scikit-learn
            np.fill_diagonal(values, self.diag(X))
        return (values, np.empty((*values.shape, 0))) if eval_gradient else values


def block_kernel(kernel: Kernel, points: NDArray[Any]) -> BlockKernel:
    """A function that fills in k(X, points) block by block."""
    if isinstance(kernel, KernelWithBlocks):
        return kernel.block_kernel(points)
    return EVALUATIONS.get(type(kernel), _call)(kernel, points)


def _call(kernel: Kernel, points: NDArray[Any]) -> BlockKernel:
    """What works for every kernel."""

    def fill(X: NDArray[Any], out: NDArray[np.float64]) -> None:
        out[...] = kernel(in_double_precision(X), points)

    return fill


def _rbf(kernel: RBF, points: NDArray[Any]) -> BlockKernel:
    """One matrix product and one `exp` in place.

    −½|x − u|² = xᵀu − ½|x|² − ½|u|² is the inner product of (x, −½|x|², 1) and (u, 1, −½|u|²); rows are centered and scaled first.
    Rows in single precision are centered and scaled in double, multiplied and exponentiated in single precision.
    """
    center = points.mean(axis=0)
    scaled_points = (points - center) / kernel.length_scale
    half_norms = 0.5 * np.einsum("md,md->m", scaled_points, scaled_points)
    in_double = np.vstack([scaled_points.T, np.ones(len(points)), -half_norms])
    rights = {dtype: in_double.astype(dtype) for dtype, limit in LARGEST_HALF_NORM.items() if half_norms.max() < limit}
    if not rights:
        return _call(kernel, points)
    n_columns = points.shape[1]

    def fill(X: NDArray[Any], out: NDArray[np.float64]) -> None:
        left = np.ones((len(X), n_columns + 2))
        np.subtract(X, center, out=left[:, :n_columns])
        left[:, :n_columns] /= kernel.length_scale
        np.einsum("nd,nd->n", left[:, :n_columns], left[:, :n_columns], out=left[:, n_columns])
        left[:, n_columns] *= -0.5
        half_norm = -left[:, n_columns].min(initial=0.0)
        if X.dtype in rights and half_norm < LARGEST_HALF_NORM[X.dtype]:
            _exponentiate(left, rights[X.dtype], out)
        elif half_norm < LARGEST_HALF_NORM[np.dtype(np.float64)]:
            _exponentiate(left, in_double, out)
        else:
            out[...] = kernel(in_double_precision(X), points)

    return fill


def _exponentiate(left: NDArray[np.float64], right: NDArray[Any], out: NDArray[np.float64]) -> None:
    """exp(min(left · right, 0)), in the precision of `right`."""
    exponents = out if right.dtype == out.dtype else np.empty(out.shape, right.dtype)
    np.matmul(left.astype(right.dtype, copy=False), right, out=exponents)
    np.minimum(exponents, 0.0, out=exponents)
    np.exp(exponents, out=exponents)
    if exponents is not out:
        out[...] = exponents


def _combination(kernel: KernelOperator, points: NDArray[Any]) -> BlockKernel:
    """A sum or product of two kernels, each in its own fastest way; a constant, as in `2.0 * RBF()`, costs one operation more."""
    combine = np.add if isinstance(kernel, Sum) else np.multiply
    constants = [part.constant_value for part in (kernel.k1, kernel.k2) if type(part) is ConstantKernel]
    fills = [block_kernel(part, points) for part in (kernel.k1, kernel.k2) if type(part) is not ConstantKernel]
    if not fills:
        return _call(kernel, points)

    def fill(X: NDArray[Any], out: NDArray[np.float64]) -> None:
        fills[0](X, out)
        for constant in constants:
            combine(out, constant, out=out)
        for fill_next in fills[1:]:
            values = np.empty_like(out)
            fill_next(X, values)
            combine(out, values, out=out)

    return fill


EVALUATIONS.update({RBF: _rbf, Product: _combination, Sum: _combination})


def kernel_diagonal(kernel: Kernel, rows: NDArray[Any]) -> NDArray[np.float64]:
    """k(x, x) for each row, checked: one finite, non-negative number a row. [n]"""
    diagonal = np.asarray(kernel.diag(in_double_precision(rows)), dtype=np.float64)
    if diagonal.ndim != 1:
        raise ValueError(
            f"The kernel {kernel} returns an array of shape {diagonal.shape} as the diagonal of {len(rows)} rows, where one "
            "number a row is needed. Combine kernels with + or *, not with CompoundKernel."
        )
    check_finite_kernel(kernel, diagonal)
    if diagonal.min(initial=0.0) < 0:
        raise ValueError(
            f"The kernel {kernel} is not positive semi-definite: k(x, x) is negative, {diagonal.min():.3g}, for one of the "
            "rows. Choose another kernel."
        )
    return diagonal


def check_finite_kernel(kernel: Kernel, values: NDArray[np.float64]) -> None:
    """A sentence where the kernel gives infinity or NaN."""
    if not np.isfinite(values).all():
        raise ValueError(
            f"The kernel {kernel} is not finite on these rows. Check its parameters (a lengthscale of zero?), scale the columns (for "
            "example with StandardScaler), or choose a bounded kernel such as RBF."
        )
