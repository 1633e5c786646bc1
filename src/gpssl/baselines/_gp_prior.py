"""Functions drawn from the prior, with no learning: the ablation of `GPSSL`."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from .._runtime.threads import one_blas_thread
from .._validation import check_number, check_weights, seed_from, unchanged_on_failure
from ..core._checked_rows import copy_columns, rows_in_memory, warn_outside_training
from ..core._draws import FunctionDraws
from ..core._features import Features, choose_inducing_points, sample_candidates
from ..core._posterior import GaussianWeights, Posterior
from ._kernel_pca import KernelEstimator

Array = NDArray[np.float64]


class GPPrior(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """The prior of `GPSSL`, which has learned nothing: f_j ~ GP(0, k), independently for each of J dimensions.

    Random functions with random outputs are features too, and a head that is averaged over many of them does well: what `GPSSL`
    claims must hold against this baseline. The same code draws the functions, with a posterior without learned directions (r = 0):

        f_j(x) = a(x)ᵀ v_j + e_j(x),   v_j ~ N(0, I),   e_j ~ GP(0, k − aᵀa)      Cov(f_j(x), f_j(y)) = k(x, y), exactly

    It is what `GPSSL(...).refit(temperature=1e6)` comes close to, without its optimization.

    Parameters
    ----------
    n_components
        J, the number of dimensions.
    kernel
        As in `GPSSL`: by default `NeighborRBF(neighborhood=10)`.
    residual_tolerance, max_inducing
        As in `GPSSL`. The draws are exact with any inducing points, up to 2,000 distinct rows; more rows in one call are evaluated as
        `gpssl.core.FunctionDraws` says.
    random_state
        Seed for the sample of rows that stands for a large table, and for drawn functions.

    Attributes
    ----------
    kernel_
        The concrete kernel.
    inducing_points_
        The inducing points. [M, …]
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

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
        self._check_parameters()
        with unchanged_on_failure(self):
            rows = self._check_rows(X, reset=True, min_rows=2)
            weight = check_weights(sample_weight, len(rows))
            self._seed = seed_from(self.random_state)
            self.kernel_ = self._resolve_kernel(X, rows, weight, self._seed)
            with one_blas_thread():
                features = Features.build(self.kernel_, self._inducing_points(rows, weight))
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

    def _inducing_points(self, rows: NDArray[Any], weight: Array) -> NDArray[Any]:
        n_points = int(self.max_inducing)
        candidates = sample_candidates(self.kernel_, rows_in_memory(rows, weight), n_points, self._seed)
        return candidates.rows[
            choose_inducing_points(self.kernel_, candidates, n_points=n_points, tolerance=float(self.residual_tolerance))
        ]

    def _rows_for_use(self, X: Any) -> NDArray[Any]:
        rows = self._check_rows(X, reset=False)
        warn_outside_training(self, X)
        return rows

    def _check_parameters(self) -> None:
        check_number("n_components", self.n_components, Integral, at_least=1)
        check_number("max_inducing", self.max_inducing, Integral, at_least=1)
        check_number("residual_tolerance", self.residual_tolerance, Real, at_least=0)
