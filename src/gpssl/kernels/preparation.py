"""From what a user has to the rows of a kernel: most kernels take vectors, some have a say in what a row is."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from ..sources import Rows, SliceableRows
from ..tables import are_codes, header_of


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
