"""Kernel principal components, with the kernel and the lengthscale rule of `GPSSL`."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import KernelPCA as PrecomputedKernelPCA
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._runtime.threads import one_blas_thread
from .._validation import check_number, seed_from, unchanged_on_failure
from ..core._checked_rows import check_kernel, check_rows_in_memory, rows_in_memory, set_input_tags
from ..data._arrays import in_double_precision
from ..data._encoding import header_of
from ..kernels._protocol import check_finite_kernel, resolve_kernel


class KernelEstimator(BaseEstimator):
    """An estimator with a parameter `kernel`, which has the same default and takes the same rows as that of `GPSSL`."""

    kernel: Kernel | None
    kernel_: Kernel

    def _check_kernel(self) -> Kernel:
        return check_kernel(self.kernel)

    def _resolve_kernel(self, X: Any, rows: NDArray[Any], weight: NDArray[np.float64], seed: int) -> Kernel:
        """Return the concrete kernel, with lengthscales from all rows, which are X as `_check_rows` has returned it."""
        with one_blas_thread():
            return resolve_kernel(self._check_kernel(), rows_in_memory(rows, weight, header_of(X)), seed)

    def _check_rows(self, X: Any, *, reset: bool, min_rows: int = 1) -> NDArray[Any]:
        """Return the rows as numbers where the kernel works on vectors, else as objects."""
        kernel = self._check_kernel() if reset else self.kernel_  # which knows the columns of the training rows
        return check_rows_in_memory(self, X, kernel, reset=reset, min_rows=min_rows)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        set_input_tags(tags.input_tags, self.kernel)
        tags.input_tags.sparse = False
        return tags


Array = NDArray[np.float64]


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """scikit-learn's kernel principal component analysis on the matrix of the kernel that `GPSSL` would use.

    With K = k(X, X), centered in feature space, and its leading eigenvalues λ_j and eigenvectors u_j,

        z_j(x) = Σ_n u_nj k(x_n, x) / sqrt(λ_j)      (k centered in the same way)

    It needs an N × N matrix, as kernel principal components do, where `GPSSL` needs one of inducing points; and it has one representation,
    not a distribution: use it as `MarginalizedClassifier(KernelPCA(5), n_draws=None)`. The sign of each dimension is that which
    makes the largest absolute entry of u_j positive.

    Parameters
    ----------
    n_components
        J, the number of dimensions.
    kernel
        As in `GPSSL`: by default `NeighborRBF(neighborhood=10)`.
    random_state
        Seed for the sample of rows from which the kernel takes its lengthscale where there are many, and for the iterations that find the
        eigenvectors.

    Attributes
    ----------
    kernel_
        The concrete kernel.
    eigenvalues_
        Of the centered matrix, largest first. [J]
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpssl.baselines import KernelPCA
    >>> X, _ = load_breast_cancer(return_X_y=True)
    >>> KernelPCA(3, random_state=0).fit_transform(X).shape
    (569, 3)
    """

    def __init__(self, n_components: int = 5, *, kernel: Kernel | None = None, random_state: Any = None) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> KernelPCA:  # noqa: ARG002  (y is scikit-learn's)
        """Find the components of these rows; `y` is ignored."""
        check_number("n_components", self.n_components, Integral, at_least=1)
        with unchanged_on_failure(self):
            rows = in_double_precision(self._check_rows(X, reset=True, min_rows=2))
            if len(rows) < self.n_components:
                raise ValueError(
                    f"n_samples={len(rows)} rows have fewer than {self.n_components} components. Give more rows, or lower n_components."
                )
            seed = seed_from(self.random_state)
            self.kernel_ = self._resolve_kernel(X, rows, np.ones(len(rows)), seed)
            self._rows = rows.copy()
            self._components = PrecomputedKernelPCA(int(self.n_components), kernel="precomputed", random_state=seed)
            self._components.fit(self._kernel_with_rows(rows))
            self.eigenvalues_ = self._components.eigenvalues_
        return self

    def transform(self, X: Any) -> Array:
        """Return the components of each row. [n, J]"""
        check_is_fitted(self)
        return self._components.transform(self._kernel_with_rows(in_double_precision(self._check_rows(X, reset=False))))

    def _kernel_with_rows(self, rows: NDArray[Any]) -> Array:
        """Return k(x, x_n) for each training row x_n; with both arguments, so that white noise stays out of it. [n, N]"""
        values = np.asarray(self.kernel_(rows, self._rows), dtype=np.float64)
        check_finite_kernel(self.kernel_, values)
        return values

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)
