"""What the baselines with a kernel share: rows that suit it, and the concrete kernel that `GPSSL` would use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import Tags

from ..checked_rows import check_rows_in_memory, rows_in_memory
from ..kernels import resolve_kernel
from ..parameters import describe_rows, kernel_of
from ..tables import header_of
from ..threads import one_blas_thread


class KernelRows(BaseEstimator):
    """An estimator with a parameter `kernel`, to which the default and the rules of `GPSSL` apply."""

    kernel: Kernel | None
    kernel_: Kernel

    def _check_kernel(self) -> Kernel:
        kernel = kernel_of(self.kernel)
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a kernel object such as sklearn.gaussian_process.kernels.RBF(), got {self.kernel!r}.")
        return kernel

    def _resolve_kernel(self, X: Any, rows: NDArray[Any], weight: NDArray[np.float64], seed: int) -> Kernel:
        """The concrete kernel: lengthscales and the like come from all rows, which are X as `_check_rows` has returned it."""
        with one_blas_thread():
            return resolve_kernel(self._check_kernel(), rows_in_memory(rows, weight, header_of(X)), seed)

    def _check_rows(self, X: Any, *, reset: bool, min_rows: int = 1) -> NDArray[Any]:
        """Numbers where the kernel works on vectors, else objects."""
        kernel = self._check_kernel() if reset else self.kernel_  # which knows the columns of the training rows
        return check_rows_in_memory(self, X, kernel, reset=reset, min_rows=min_rows)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        describe_rows(tags.input_tags, self.kernel)
        tags.input_tags.sparse = False
        return tags
