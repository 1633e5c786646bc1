"""Whitened kernel features a(x). The only Cholesky factorization, and the only jitter, in the library."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from .._runtime.threads import map_on_threads
from ..data._arrays import hash_rows, in_double_precision, result_dtype, row_blocks
from ..kernels._protocol import BlockKernel, SelfDescribingKernel, block_kernel, check_finite_kernel, kernel_diagonal

SMALLEST_SAFE_PIVOT = 1e-6
"""Of the mean prior variance; see `Features.single_precision_is_safe`."""
FIRST_JITTER = 1e-8
JITTER_TRIES = 4
LONGEST_TEXT = 100
"""Numbers of an array that are written out to describe a kernel."""


@dataclass(frozen=True)
class Features:
    """The map x ↦ a(x) = L⁻¹ k(U, x), with Kuu = L Lᵀ.

    Under the prior, f(x) = a(x)ᵀ v + e(x) with v ~ N(0, I) and e a GP with covariance k(x, y) − a(x)ᵀ a(y).
    """

    kernel: Kernel
    points: NDArray[Any]
    """Inducing points U. [M, …]"""
    factor: NDArray[np.float64]
    """L, lower triangular. [M, M]"""
    jitter: float
    """What was added to the diagonal of Kuu, relative to its mean."""

    @classmethod
    def build(cls, kernel: Kernel, points: NDArray[Any]) -> Features:
        """Factorize the kernel matrix of the inducing points."""
        points = in_double_precision(points)
        # k(U, U) with both arguments, so that white noise, which no two evaluations share, stays out of it.
        covariance = np.asarray(kernel(points, points), dtype=np.float64)
        check_finite_kernel(kernel, covariance)
        try:
            factor, jitter = stable_cholesky(covariance)
        except LinAlgError:
            raise ValueError(
                f"The kernel {kernel} is not positive semi-definite on the inducing points, even with "
                f"{FIRST_JITTER * 10 ** (JITTER_TRIES - 1):.0e} of its mean added to the diagonal. Choose another kernel, or "
                "other parameters for this one."
            ) from None
        return cls(kernel, points, factor, jitter)

    @cached_property
    def _fill(self) -> BlockKernel:
        return block_kernel(self.kernel, self.points)

    def __getstate__(self) -> dict[str, Any]:
        """Without the cached function, which can be neither pickled nor shared."""
        return {name: value for name, value in self.__dict__.items() if name != "_fill"}

    @property
    def n_points(self) -> int:
        """M, the number of inducing points."""
        return len(self.points)

    @cached_property
    def fingerprint(self) -> str:
        """The same text for the same kernel and inducing points, on any machine."""
        digest = hashlib.sha256(_describe(self.kernel).encode())
        digest.update(hash_rows(self.points, seed=0).astype("<u8").tobytes())
        return digest.hexdigest()[:16]

    @cached_property
    def single_precision_is_safe(self) -> bool:
        """Whether k(x, U) may be computed in the precision of rows in single precision.

        Whitening divides by L, whose smallest diagonal entry is the standard deviation that the last inducing points add; rounding
        errors of 6e-8 are divided by it too.
        """
        return bool((self.factor.diagonal() ** 2).min() > SMALLEST_SAFE_PIVOT * (self.factor**2).sum() / self.n_points)

    def columns(self, X: NDArray[Any], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """k(x, U) for a block of rows, before whitening. [n, M]"""
        if out is None:
            out = np.empty((len(X), self.n_points))
        self._fill(X if self.single_precision_is_safe else in_double_precision(X), out)
        return out

    def project(self, X: NDArray[Any], directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """a(x)ᵀ d for each column d of `directions`, block by block on threads. [n, n directions]

        a(x)ᵀ d = k(x, U) L⁻ᵀ d: whitening the few directions is cheaper than whitening every row.
        """
        weights = self.unwhiten(directions)
        self.columns(X[:1])  # builds what the threads share
        out = np.empty((len(X), directions.shape[1]), dtype=result_dtype(X))

        def fill(block: slice) -> None:
            out[block] = self.columns(X[block]) @ weights

        map_on_threads(fill, list(row_blocks(len(X))))
        return out

    def whiten(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """L⁻¹ c for each column c. [M, n]"""
        return solve_triangular(self.factor, columns, lower=True, check_finite=False)

    def unwhiten(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """L⁻ᵀ d for each column d. [M, n]"""
        return solve_triangular(self.factor, directions, lower=True, trans="T", check_finite=False)

    def whitened(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """a(x) for each row. For few rows: the result is dense. [M, n]"""
        return self.whiten(self.columns(X).T)

    def residual_variance(self, X: NDArray[Any], whitened: NDArray[np.float64]) -> NDArray[np.float64]:
        """k(x, x) − a(x)ᵀ a(x), what the features leave open at each row, for rows whose a(x) are known. [n]"""
        return kernel_diagonal(self.kernel, X) - (whitened**2).sum(axis=0)


def stable_cholesky(covariance: NDArray[np.float64], scale: float | None = None) -> tuple[NDArray[np.float64], float]:
    """Lower triangular L with L Lᵀ = covariance + jitter·scale·I, and the jitter.

    The scale is the mean of the diagonal unless given. The jitter starts at 1e-8 and grows tenfold at most three times; after
    that, `LinAlgError`: the matrix is not a covariance.
    """
    scale = float(covariance.diagonal().mean()) if scale is None else scale
    for attempt in range(JITTER_TRIES):
        jitter = FIRST_JITTER * 10**attempt
        try:
            shifted = covariance + (jitter * scale) * np.eye(len(covariance))
            return cholesky(shifted, lower=True, overwrite_a=True, check_finite=False), jitter
        except LinAlgError:
            continue
    raise LinAlgError("not positive semi-definite")


def _describe(value: Any) -> str:
    """A kernel with all digits of its parameters, where its own `repr` rounds them; arrays by a digest of what they hold.

    A kernel with parameters that cannot be described like this has a method `describe`.
    """
    if isinstance(value, SelfDescribingKernel):
        return value.describe()
    if isinstance(value, Kernel):
        parameters = sorted(value.get_params(deep=False).items())
        return f"{type(value).__name__}({', '.join(f'{name}={_describe(part)}' for name, part in parameters)})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_describe, value))}]"
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    if isinstance(value, np.ndarray) and value.size > LONGEST_TEXT:
        return f"{value.shape} {joblib.hash(value)}"
    return repr(np.asarray(value).tolist()) if np.ndim(value) or np.isscalar(value) or value is None else joblib.hash(value)
