"""From a kernel that may depend on the training rows to a concrete one."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from ..sources import Rows


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
