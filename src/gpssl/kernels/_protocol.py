"""The protocol of kernels: scikit-learn's, and three optional methods with which a kernel can do more.

    prepare(X)               check rows of the kernel's own kind and return them as an array        PreparingKernel
    resolve(rows, seed=...)  take from the training rows what is missing, return a concrete kernel  DataDependentKernel
    block_kernel(points)     work on the points once, then fill k(X, points) block by block         KernelWithBlocks

A kernel of scikit-learn or of a user may have none of them. The functions of this file take any kernel, look for the methods in the
terms of sums, products and powers, and do something sensible where there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from inspect import signature
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, KernelOperator, Product, Sum

from ..data._arrays import in_double_precision
from ..data._frames import are_codes, encode_table, header_of
from ..data._rows import Rows, SliceableRows

Array = NDArray[np.float64]
BlockKernel = Callable[[NDArray[Any], Array], None]
"""A function that writes k(X, U) for a block X of n rows into an array. [n, M]"""

LARGEST_HALF_NORM: dict[np.dtype[Any], float] = {np.dtype(np.float64): 1e5, np.dtype(np.float32): 4.0}
"""½|x|² up to which ½|x − u|² from inner products is exact enough: the rounding error is 1e-16 of it, or 6e-8 in single precision,
and whitening multiplies the error."""

LONGEST_LIST = 1000
"""Letters up to which `short_repr` writes a list or tuple out, such as groups of columns or levels."""


@runtime_checkable
class PreparingKernel(Protocol):
    """A kernel for its own kind of row: strings, graphs, tables with categories or missing cells.

    Kernels that inherit the same method `prepare`, and all kernels for tables, can be added and multiplied.
    """

    def prepare(self, X: Any) -> NDArray[Any]:
        """Check the rows of X and return them as numbers [n, D], with NaN for missing cells, or as objects [n].

        The result depends on each row alone, and prepared rows stay as they are. The kernel and its diagonal are called with the result.
        """
        ...


@runtime_checkable
class DataDependentKernel(Protocol):
    """A kernel that takes something from the training rows.

    It may have been given, or may have found already, what it takes: then it has an attribute `is_resolved`, which is true.
    """

    def resolve(self, rows: Rows, *, seed: int) -> Kernel:
        """Return the concrete kernel for these rows; `rows.sample(limit, seed)` returns as many of them as fit in memory."""
        ...


@runtime_checkable
class KernelWithBlocks(Protocol):
    """A kernel that can do its work on the points once for all blocks of rows."""

    def block_kernel(self, points: NDArray[Any]) -> BlockKernel:
        """Return a function that fills in k(X, points) block by block; several threads call it."""
        ...


@runtime_checkable
class SelfDescribingKernel(Protocol):
    """A kernel with parameters that have no text of their own, such as a graph or a module of PyTorch."""

    def describe(self) -> str:
        """Return a text that is the same for two kernels only if their values are."""
        ...


class TakesMissingCells:
    """Base of kernels for numbers [n, D] in which NaN marks a missing cell."""


class TakesTables(TakesMissingCells):
    """Base of kernels for tables: numbers, text, categories, dates and missing cells, encoded as `gpssl.data` does it."""

    @property
    def text_columns(self) -> tuple[Hashable, ...]:
        """The columns whose cells stay text: names, or positions once the kernel is resolved."""
        return ()

    def prepare(self, X: Any) -> NDArray[Any]:
        """Encode every cell of a data frame or array as a number; as objects where some columns stay text. [n, D]"""
        return encode_table(X)


class TakesStrings:
    """Base of kernels whose rows are strings."""


class UnitDiagonal:
    """k(x, x) = 1 for rows of any kind; scikit-learn's own mixin asks for an array."""

    def diag(self, X: Any) -> Array:
        """Return k(x, x) = 1 for each row. [n]"""
        return np.ones(len(X))


class NonStationary:
    """A kernel that is not a function of x − y."""

    def is_stationary(self) -> bool:
        """Return False."""
        return False


class CallByBlocks(NonStationary):
    """scikit-learn's `k(X, Y)` for a kernel that has `block_kernel` and no hyperparameters to differentiate by."""

    block_kernel: Callable[[NDArray[Any]], BlockKernel]
    diag: Callable[[Any], Array]
    get_params: Callable[..., dict[str, Any]]

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return k(X, Y) [n, m]; with `eval_gradient` also the gradient by no hyperparameter [n, m, 0], as scikit-learn does."""
        preparing = preparing_kernel(self)
        prepare: Callable[[Any], NDArray[Any]] = self._as_rows if preparing is None else preparing.prepare
        alone = Y is None
        X = prepare(X)
        Y = X if alone else prepare(Y)
        values = np.empty((len(X), len(Y)))
        self.block_kernel(Y)(X, values)
        if alone:  # noise that no two evaluations share belongs to k(X) alone, as in scikit-learn
            np.fill_diagonal(values, self.diag(X))
        return (values, np.empty((*values.shape, 0))) if eval_gradient else values

    def _as_rows(self, X: Any) -> NDArray[Any]:
        """Return rows that no kernel prepares as an array."""
        return np.asarray(X)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the parameters."""
        return self.get_params(deep=False)

    def __repr__(self) -> str:
        return short_repr(self)


def refuse_gradient(kernel: Kernel, eval_gradient: bool) -> None:
    """Raise ValueError if the gradient is asked for, in kernels that do not compute it."""
    if eval_gradient:
        raise ValueError(f"{type(kernel).__name__} does not compute gradients.")


def short_repr(kernel: Kernel) -> str:
    """Return the kernel with those parameters that differ from their defaults; arrays are shown by their shape."""
    defaults = {name: parameter.default for name, parameter in signature(type(kernel)).parameters.items()}
    changed = {name: value for name, value in kernel.get_params(deep=False).items() if repr(value) != repr(defaults[name])}
    texts = [f"{name}={_shortened(value)}" for name, value in changed.items()]
    return f"{type(kernel).__name__}({', '.join(texts)})"


def full_repr(kernel: Kernel, without: Sequence[str] = ()) -> str:
    """Return the kernel with all its parameters but these."""
    texts = [f"{name}={value!r}" for name, value in kernel.get_params(deep=False).items() if name not in without]
    return f"{type(kernel).__name__}({', '.join(texts)})"


def _shortened(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<array {value.shape}>"
    text = repr(value)
    return text if len(text) <= LONGEST_LIST or not isinstance(value, list | tuple) else f"<{type(value).__name__} of {len(value)}>"


# Prepare: what a row is


def leaves(kernel: Kernel) -> list[Kernel]:
    """Return the kernels that a sum, product or power consists of."""
    terms = _terms(kernel)
    if not terms or isinstance(kernel, PreparingKernel):
        return [kernel]
    return [leaf for term in terms.values() for leaf in leaves(term)]


def _terms(kernel: Kernel) -> dict[str, Kernel]:
    """Return the parameters of a kernel that are kernels themselves, such as `k1` and `k2` of scikit-learn's `Sum`."""
    return {name: value for name, value in kernel.get_params(deep=False).items() if isinstance(value, Kernel)}


def preparing_kernel(kernel: Kernel) -> PreparingKernel | None:
    """Return the leaf that prepares the rows; None where rows are vectors, or objects that need no preparation."""
    preparing = [leaf for leaf in leaves(kernel) if isinstance(leaf, PreparingKernel)]
    if not preparing:
        return None
    names = {_form_of_rows(leaf): type(leaf).__name__ for leaf in preparing}
    if len(names) > 1:
        raise ValueError(
            f"{' and '.join(sorted(names.values()))} are for different kinds of rows and cannot be combined with + or *. For a table with "
            "several kinds of columns, use ColumnKernel."
        )
    return preparing[0]


def _form_of_rows(preparing: PreparingKernel) -> str:
    """Return a name that kernels share if they prepare rows in the same way."""
    if isinstance(preparing, TakesTables):
        return f"tables with text in {preparing.text_columns}" if preparing.text_columns else "tables"
    return type(preparing).prepare.__qualname__


def text_columns_of(kernel: Kernel) -> tuple[Hashable, ...]:
    """Return the columns of a table whose cells must stay text for this kernel."""
    preparing = preparing_kernel(kernel)
    return preparing.text_columns if isinstance(preparing, TakesTables) else ()


def kind_of_rows(kernel: Kernel) -> str:
    """Return a name that kernels share if they take rows in the same form."""
    preparing = preparing_kernel(kernel)
    if preparing is None:
        return "vectors" if kernel.requires_vector_input else "objects"
    return _form_of_rows(preparing)


def takes_vectors(kernel: Any) -> bool:
    """Return whether rows are vectors; true also for an object that is not a kernel, which `fit` reports."""
    return not isinstance(kernel, Kernel) or bool(kernel.requires_vector_input)


def takes_missing_cells(kernel: Any) -> bool:
    """Return whether some leaf of a kernel can work with missing cells; false for an object that is not a kernel."""
    return isinstance(kernel, Kernel) and any(isinstance(leaf, TakesMissingCells) for leaf in leaves(kernel))


def takes_tables(kernel: Kernel) -> bool:
    """Return whether all leaves that look at cells can work with any encoded table."""
    looking = _leaves_that_look_at_cells(kernel)
    return len(looking) > 0 and all(isinstance(leaf, TakesTables) for leaf in looking)


def _leaves_that_look_at_cells(kernel: Kernel) -> list[Kernel]:
    """Return the leaves of a kernel without constants and white noise."""
    return [leaf for leaf in leaves(kernel) if leaf.requires_vector_input or isinstance(leaf, PreparingKernel)]


def check_of_cells(kernel: Kernel, where: str = "the rows") -> Callable[[Array], Array]:
    """Return a function that returns its rows; it raises ValueError if a leaf that needs numbers gets text or missing cells.

    It looks at the kernel once, which takes longer than to look at a block of rows.
    """
    looking = [leaf for leaf in _leaves_that_look_at_cells(kernel) if not isinstance(leaf, TakesTables)]

    def check(rows: Array) -> Array:
        for leaf in looking:
            if are_codes(rows).any():
                raise ValueError(
                    f"There are text or categories in {where}, but the kernel {leaf} works on numbers: use CategoryKernel or "
                    "OrdinalKernel for such columns, in a ColumnKernel."
                )
            if not isinstance(leaf, TakesMissingCells) and np.isnan(rows).any():
                raise ValueError(f"Cells are missing in {where}, but the kernel {leaf} needs all of them: use IncompleteRBF.")
        return rows

    return check


# Resolve: what is taken from the training rows


def training_rows(kernel: PreparingKernel, X: Any, sample_weight: Array | None = None) -> Rows:
    """Return the rows from which `resolve` takes what it needs: those that `fit` passes, or prepared ones of a user's X."""
    if isinstance(X, Rows):
        return X
    rows = SliceableRows(kernel.prepare(X), sample_weight, checked=True)
    rows.header = header_of(X)
    return rows


def depends_on_rows(kernel: Kernel) -> bool:
    """Return whether some term of the kernel has still to be resolved."""
    if isinstance(kernel, DataDependentKernel):
        return not getattr(kernel, "is_resolved", False)
    return any(map(depends_on_rows, _terms(kernel).values()))


def resolve_kernel(kernel: Kernel, rows: Rows, seed: int) -> Kernel:
    """Return a copy of the kernel in which every term that depends on the training rows is concrete.

    Sums, products and powers are followed into their terms, so `2.0 * NeighborRBF() + WhiteKernel()` works.
    """
    if isinstance(kernel, DataDependentKernel):
        return kernel.resolve(rows, seed=seed)
    terms = _terms(kernel)
    if not terms:
        return clone(kernel)
    resolved = {name: resolve_kernel(term, rows, seed) for name, term in terms.items()}
    return type(kernel)(**{**kernel.get_params(deep=False), **resolved})


def not_resolved(kernel: Kernel, what: str) -> ValueError:
    """Return the error for a kernel that is called before it has seen the training rows."""
    name = type(kernel).__name__
    return ValueError(
        f"{name} takes its {what} from the training rows: pass it to GPSSL(kernel=...), whose fit resolves it, or call "
        f"{name}(...).resolve(X) for the concrete kernel."
    )


# Evaluate: blocks of k(X, U), and the diagonal


def block_kernel(kernel: Kernel, points: NDArray[Any]) -> BlockKernel:
    """Return a function that fills in k(X, points) block by block, in the fastest way that is known for this kernel."""
    if isinstance(kernel, KernelWithBlocks):
        return kernel.block_kernel(points)
    if type(kernel) is RBF:  # the exact type: scikit-learn's Matern is a subclass of its RBF
        return _rbf_by_products(kernel, points)
    if type(kernel) in (Sum, Product):
        return _term_by_term(kernel, points)
    return _by_call(kernel, points)


def _by_call(kernel: Kernel, points: NDArray[Any]) -> BlockKernel:
    """Return the function that works for every kernel: it calls the kernel."""

    def fill(X: NDArray[Any], out: Array) -> None:
        out[...] = kernel(in_double_precision(X), points)

    return fill


def _rbf_by_products(kernel: RBF, points: NDArray[Any]) -> BlockKernel:
    """Return a function that needs one matrix product and one `exp` in place.

    −½|x − u|² = xᵀu − ½|x|² − ½|u|² is the inner product of (x, −½|x|², 1) and (u, 1, −½|u|²); rows are centered and scaled first.
    Rows in single precision are centered and scaled in double, multiplied and exponentiated in single precision.
    """
    center = points.mean(axis=0)
    scaled_points = (points - center) / kernel.length_scale
    half_norms = 0.5 * np.einsum("md,md->m", scaled_points, scaled_points)
    in_double = np.vstack([scaled_points.T, np.ones(len(points)), -half_norms])
    rights = {dtype: in_double.astype(dtype) for dtype, limit in LARGEST_HALF_NORM.items() if half_norms.max() < limit}
    if not rights:
        return _by_call(kernel, points)
    n_columns = points.shape[1]

    def fill(X: NDArray[Any], out: Array) -> None:
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


def _exponentiate(left: Array, right: NDArray[Any], out: Array) -> None:
    """Write exp(min(left · right, 0)), computed in the precision of `right`, into `out`."""
    exponents = out if right.dtype == out.dtype else np.empty(out.shape, right.dtype)
    np.matmul(left.astype(right.dtype, copy=False), right, out=exponents)
    np.minimum(exponents, 0.0, out=exponents)
    np.exp(exponents, out=exponents)
    if exponents is not out:
        out[...] = exponents


def _term_by_term(kernel: KernelOperator, points: NDArray[Any]) -> BlockKernel:
    """Evaluate each term of a sum or product in its fastest way; a constant, as in `2.0 * RBF()`, costs one more operation."""
    combine = np.add if isinstance(kernel, Sum) else np.multiply
    constants = [term.constant_value for term in (kernel.k1, kernel.k2) if type(term) is ConstantKernel]
    fills = [block_kernel(term, points) for term in (kernel.k1, kernel.k2) if type(term) is not ConstantKernel]
    if not fills:
        return _by_call(kernel, points)

    def fill(X: NDArray[Any], out: Array) -> None:
        fills[0](X, out)
        for constant in constants:
            combine(out, constant, out=out)
        for fill_next in fills[1:]:
            values = np.empty_like(out)
            fill_next(X, values)
            combine(out, values, out=out)

    return fill


def kernel_diagonal(kernel: Kernel, rows: NDArray[Any]) -> Array:
    """Return k(x, x) for each row; raise ValueError unless it is one finite, non-negative number a row. [n]"""
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


def check_finite_kernel(kernel: Kernel, values: Array) -> None:
    """Raise ValueError if the kernel has returned infinity or NaN."""
    if not np.isfinite(values).all():
        raise ValueError(
            f"The kernel {kernel} is not finite on these rows. Check its parameters (a lengthscale of zero?), scale the columns (for "
            "example with StandardScaler), or choose a bounded kernel such as RBF."
        )
