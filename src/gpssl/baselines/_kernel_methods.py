"""Representations with the kernel and the lengthscale rule of `GPSSL`: kernel principal components, and functions drawn from the prior."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import KernelPCA as PrecomputedKernelPCA
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._runtime.threads import one_blas_thread
from .._validation import NumberedDimensionsMixin, check_number, check_weights, seed_from, unchanged_on_failure
from ..core._checked_rows import check_kernel, check_rows_in_memory, copy_columns, rows_in_memory, set_input_tags, warn_outside_training
from ..core._draws import FunctionDraws
from ..core._features import Features, choose_inducing_points, sample_candidates
from ..core._posterior import GaussianWeights, Posterior
from ..data._arrays import in_double_precision
from ..data._frames import header_of
from ..kernels._protocol import check_finite_kernel, resolve_kernel

Array = NDArray[np.float64]


class KernelEstimator(BaseEstimator):
    """An estimator with a parameter `kernel`, which has the same default and takes the same rows as that of `GPSSL`."""

    kernel: Kernel | None
    kernel_: Kernel

    def _resolve_kernel(self, X: Any, rows: NDArray[Any], weight: NDArray[np.float64], seed: int) -> Kernel:
        """Return the concrete kernel, with lengthscales from all rows, which are X as `_check_rows` has returned it."""
        with one_blas_thread():
            return resolve_kernel(check_kernel(self.kernel), rows_in_memory(rows, weight, header_of(X)), seed)

    def _check_rows(self, X: Any, *, reset: bool, min_rows: int = 1) -> NDArray[Any]:
        """Return the rows as numbers where the kernel works on vectors, else as objects."""
        kernel = check_kernel(self.kernel) if reset else self.kernel_  # which knows the columns of the training rows
        return check_rows_in_memory(self, X, kernel, reset=reset, min_rows=min_rows)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        set_input_tags(tags.input_tags, self.kernel)
        tags.input_tags.sparse = False
        return tags


class KernelPCA(NumberedDimensionsMixin, TransformerMixin, KernelEstimator):
    """scikit-learn's kernel principal component analysis on the matrix of the kernel that `GPSSL` would use.

    With K = k(X, X), centered in feature space, and its leading eigenvalues λ_j and eigenvectors u_j,

        z_j(x) = Σ_n u_nj k(x_n, x) / sqrt(λ_j)      (k centered in the same way)

    It needs an N × N matrix, as kernel principal components do, where `GPSSL` needs one of inducing points; and it has one representation,
    not a distribution: use it as `MarginalizedClassifier(KernelPCA(5), n_draws=None)`. The sign of each dimension is that which
    makes the largest absolute entry of u_j positive.

    Parameters
    ----------
    n_components, kernel
        As in `GPSSL`.
    random_state
        Seed for the sample of rows from which the kernel takes its lengthscale where there are many, and for the iterations that find the
        eigenvectors.

    Attributes
    ----------
    eigenvalues_
        The eigenvalues of the centered matrix, largest first. [J]
    kernel_, n_features_in_, feature_names_in_
        As in `GPSSL`.

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


class GPPrior(NumberedDimensionsMixin, TransformerMixin, KernelEstimator):
    """The prior of `GPSSL`, which has learned nothing: f_j ~ GP(0, k), independently for each of J dimensions.

    Random functions with random outputs are features too, and a head that is averaged over many of them does well: what `GPSSL`
    claims must hold against this baseline. The same code draws the functions, with a posterior without learned directions (r = 0):

        f_j(x) = a(x)ᵀ v_j + e_j(x),   v_j ~ N(0, I),   e_j ~ GP(0, k − aᵀa)      Cov(f_j(x), f_j(y)) = k(x, y), exactly

    It is what `GPSSL(...).refit(temperature=1e6)` comes close to, without its optimization.

    Parameters
    ----------
    n_components, kernel
        As in `GPSSL`.
    residual_tolerance, max_inducing
        As in `GPSSL`. The draws are exact with any inducing points, up to 2,000 distinct rows; more rows in one call are evaluated as
        `gpssl.core.FunctionDraws` says.
    random_state
        Seed for the sample of rows that stands for a large table, and for drawn functions.

    Attributes
    ----------
    kernel_, inducing_points_, n_features_in_, feature_names_in_
        As in `GPSSL`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpssl.baselines import GPPrior
    >>> X, _ = load_breast_cancer(return_X_y=True)
    >>> prior = GPPrior(5, random_state=0).fit(X)
    >>> prior.sample(X[:10], n_draws=100).shape
    (100, 10, 5)
    """

    def __init__(
        self,
        n_components: int = 5,
        *,
        kernel: Kernel | None = None,
        residual_tolerance: float = 1e-4,
        max_inducing: int = 512,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.residual_tolerance = residual_tolerance
        self.max_inducing = max_inducing
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GPPrior:  # noqa: ARG002  (y is scikit-learn's)
        """Take kernel and inducing points from the rows, and nothing else. Weight 2 is the row twice."""
        check_number("n_components", self.n_components, Integral, at_least=1)
        check_number("max_inducing", self.max_inducing, Integral, at_least=1)
        check_number("residual_tolerance", self.residual_tolerance, Real, at_least=0)
        with unchanged_on_failure(self):
            rows = self._check_rows(X, reset=True, min_rows=2)
            weight = check_weights(sample_weight, len(rows))
            self._seed = seed_from(self.random_state)
            self.kernel_ = self._resolve_kernel(X, rows, weight, self._seed)
            with one_blas_thread():
                features = Features.build(self.kernel_, self._choose_inducing_points(rows, weight))
            self.__dict__.pop("card_", None)  # of a file, whose rows these are not
            nothing_learned = np.empty((int(self.n_components), 0))
            self.posterior_ = Posterior(features, np.empty((features.n_points, 0)), GaussianWeights(nothing_learned, nothing_learned))
        return self

    def transform(self, X: Any) -> Array:
        """Return the prior mean, which is zero. [n, J]"""
        check_is_fitted(self)
        return np.zeros((len(self._rows_for_use(X)), self._n_features_out))

    def std(self, X: Any) -> Array:
        """Return the prior standard deviation, sqrt(k(x, x)) in each dimension. [n, J]"""
        check_is_fitted(self)
        return self.posterior_.std(self._rows_for_use(X))

    def sample(self, X: Any, n_draws: int = 1, random_state: Any = None) -> Array:
        """Return draws from the prior, joint over the rows: `draw_functions(n_draws)(X)`. [S, n, J]"""
        return self.draw_functions(n_draws, random_state)(rows_in_memory(self._rows_for_use(X)))

    def draw_functions(self, n_draws: int = 1, random_state: Any = None) -> FunctionDraws:
        """Draw functions from the prior: call the result with rows, as often as you like. [S, n, J]

        Without a random state the estimator's own is used, as in `GPSSL`.
        """
        check_is_fitted(self)
        check_number("n_draws", n_draws, Integral, at_least=1)
        seed = self._seed if random_state is None else seed_from(random_state)
        functions = self.posterior_.draw_functions(int(n_draws), seed)
        copy_columns(self, functions)
        return functions

    @property
    def inducing_points_(self) -> NDArray[Any]:
        """The inducing points."""
        return self.posterior_.features.points

    @property
    def _n_features_out(self) -> int:
        return len(self.posterior_.weights.mean)

    def _choose_inducing_points(self, rows: NDArray[Any], weight: Array) -> NDArray[Any]:
        n_points = int(self.max_inducing)
        candidates = sample_candidates(self.kernel_, rows_in_memory(rows, weight), n_points, self._seed)
        return candidates.rows[
            choose_inducing_points(self.kernel_, candidates, n_points=n_points, tolerance=float(self.residual_tolerance))
        ]

    def _rows_for_use(self, X: Any) -> NDArray[Any]:
        rows = self._check_rows(X, reset=False)
        warn_outside_training(self, X)
        return rows
