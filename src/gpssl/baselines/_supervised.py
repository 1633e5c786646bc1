"""Supervised Gaussian processes with the kernel of `GPSSL`: what heads on many functions drawn from the prior approach."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, WhiteKernel
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._validation import seed_from, unchanged_on_failure
from ..data._arrays import in_double_precision
from ..data._labels import KnownLabels, check_at_least_two, find_class_labels, find_targets
from ..evaluation._scores import score_labeled_rows
from ..kernels._protocol import takes_missing_cells
from ._kernel_methods import KernelEstimator

Array = NDArray[np.float64]

VARIANCE_BOUNDS = (1e-6, 1e6)
"""Bounds of σ², by which the kernel is multiplied."""

NOISE_BOUNDS = (1e-6, 1e1)
"""Bounds of the noise variance in standardized targets. The lower one, a standard deviation of a thousandth, keeps the matrix invertible
and predicted variances positive where targets follow from the rows exactly."""

RESTARTS = 2
"""Further starts of the search for variance and noise: "all is noise" can be a second maximum of the likelihood."""


class SupervisedGPClassifier(ClassifierMixin, KernelEstimator):
    """Gaussian process classification from the labeled rows, by scikit-learn, with the kernel that `GPSSL` would use.

        f ~ GP(0, σ² k),   p(y = 1 | x) = E[logistic(f(x)) | labeled rows]      (Laplace approximation; one against the rest)

    All rows, with or without a label, set the lengthscale of k; it is not changed afterwards. σ² maximizes the marginal likelihood, for
    each class on its own. Rows without a label are marked as for `MarginalizedClassifier`: −1 where labels are whole numbers, else
    None or NaN.

    Parameters
    ----------
    kernel
        As in `GPSSL`: by default `NeighborRBF(neighborhood=10)`.
    random_state
        Seed for the sample of rows from which the kernel takes its lengthscale where there are many.

    Attributes
    ----------
    classes_
        The class labels. [K]
    kernel_
        The concrete kernel, without σ².
    model_
        scikit-learn's fitted `GaussianProcessClassifier`.
    n_labeled_
        Rows that trained it.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpssl.baselines import SupervisedGPClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> few = np.where(np.arange(len(y)) < 50, y, -1)
    >>> clf = SupervisedGPClassifier(random_state=0).fit(X, few)
    >>> clf.n_labeled_, clf.predict_proba(X).shape
    (50, (569, 2))
    """

    def __init__(self, kernel: Kernel | None = None, *, random_state: Any = None) -> None:
        self.kernel = kernel
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SupervisedGPClassifier:
        """Take the lengthscale from all rows, and learn the rest from the labeled ones."""
        with unchanged_on_failure(self):
            labels = find_class_labels(y)
            self.classes_ = np.unique(labels.values)
            check_at_least_two(self.classes_)
            _fit(self, GaussianProcessClassifier(), X, y, labels)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class. [n, K]"""
        check_is_fitted(self)
        return self.model_.predict_proba(_opaque(self._check_rows(X, reset=False), self.kernel_))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class. [n]"""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy at the rows that have a label."""
        return score_labeled_rows(self, X, y, sample_weight)


class SupervisedGPRegressor(RegressorMixin, KernelEstimator):
    """Gaussian process regression from the rows with a target, by scikit-learn, with the kernel that `GPSSL` would use.

        y = ȳ + s (f(x) + ε),   f ~ GP(0, σ² k),   ε ~ N(0, ν²)      ȳ, s: mean and standard deviation of the targets

    All rows, with or without a target, set the lengthscale of k; it is not changed afterwards. σ² and ν² maximize the marginal
    likelihood. NaN marks rows without a target.

    Parameters
    ----------
    kernel, random_state
        As in `SupervisedGPClassifier`. The seed is also that of further starts of the search for σ² and ν².

    Attributes
    ----------
    kernel_
        The concrete kernel, without σ² and ν².
    model_
        scikit-learn's fitted `GaussianProcessRegressor`.
    n_labeled_, n_features_in_, feature_names_in_
        As in `SupervisedGPClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from gpssl.baselines import SupervisedGPRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> few = np.where(np.arange(len(y)) < 100, y, np.nan)
    >>> reg = SupervisedGPRegressor(random_state=0).fit(X, few)
    >>> reg.predict(X).shape, reg.predict_std(X).shape
    ((442,), (442,))
    """

    def __init__(self, kernel: Kernel | None = None, *, random_state: Any = None) -> None:
        self.kernel = kernel
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SupervisedGPRegressor:
        """Take the lengthscale from all rows, and learn the rest from those with a target."""
        with unchanged_on_failure(self):
            model = GaussianProcessRegressor(normalize_y=True, n_restarts_optimizer=RESTARTS)
            _fit(self, model, X, y, find_targets(y), noise=WhiteKernel(0.1, NOISE_BOUNDS))
        return self

    def predict_draws(self, X: Any) -> tuple[Array, Array]:
        """Return mean and standard deviation in the form of `MarginalizedRegressor.predict_draws`, for a single draw. [1, n] each"""
        check_is_fitted(self)
        mean, std = self.model_.predict(_opaque(self._check_rows(X, reset=False), self.kernel_), return_std=True)
        return mean[None], std[None]

    def predict(self, X: Any) -> Array:
        """Return the mean of the target. [n]"""
        check_is_fitted(self)
        return self.model_.predict(_opaque(self._check_rows(X, reset=False), self.kernel_))

    def predict_std(self, X: Any) -> Array:
        """Return the standard deviation of the target, noise included. [n]"""
        return self.predict_draws(X)[1][0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² at the rows that have a target."""
        return score_labeled_rows(self, X, y, sample_weight)


def _fit(estimator: Any, model: Any, X: Any, y: Any, labels: KnownLabels, noise: Kernel | None = None) -> None:
    """Resolve the kernel k on all rows, and fit the model to the labeled ones with σ² k plus noise, in which k is fixed."""
    rows = in_double_precision(estimator._check_rows(X, reset=True))
    check_consistent_length(rows, y)
    seed = seed_from(estimator.random_state)
    estimator.kernel_ = estimator._resolve_kernel(X, rows, np.ones(len(rows)), seed)
    kernel = ConstantKernel(1.0, VARIANCE_BOUNDS) * FixedKernel(clone(estimator.kernel_))
    estimator.model_ = model.set_params(kernel=kernel if noise is None else kernel + noise, random_state=seed)
    with warnings.catch_warnings():
        # Labels that the rows do not explain, or explain completely, have their maximum at a bound: the bounds are part of the model.
        warnings.filterwarnings("ignore", "The optimal value found for", ConvergenceWarning)
        # Near such a maximum the likelihood is flat to rounding; of several searches the best is kept.
        warnings.filterwarnings("ignore", r"lbfgs failed to converge[\s\S]*ABNORMAL", ConvergenceWarning)
        estimator.model_.fit(_opaque(rows[labels.rows], estimator.kernel_), labels.values)
    estimator.n_labeled_ = len(labels.rows)


def _opaque(rows: NDArray[Any], kernel: Kernel) -> NDArray[Any]:
    """Return rows that scikit-learn's Gaussian processes take: those with gaps, which they would refuse, as objects for the kernel."""
    if rows.ndim != 2 or (kernel.requires_vector_input and not takes_missing_cells(kernel)):
        return in_double_precision(rows)
    objects = np.empty(len(rows), dtype=object)
    objects[:] = [_Row(row) for row in rows]
    return objects


class _Row:
    """A row that scikit-learn does not look into."""

    def __init__(self, values: NDArray[np.float64]) -> None:
        self.values = values


class FixedKernel(Kernel):
    """A kernel whose parameters are not optimized, so that it need not know its gradient."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return k(X, Y), and on request its gradient, which has no entries. [n, m] and [n, n, 0]"""
        X = _together(X)
        values = np.asarray(self.kernel(X) if Y is None else self.kernel(X, _together(Y)), dtype=np.float64)
        return (values, np.empty((*values.shape, 0))) if eval_gradient else values

    def diag(self, X: Any) -> Array:
        """Return k(x, x). [n]"""
        return self.kernel.diag(_together(X))

    def is_stationary(self) -> bool:
        """Return whether the kernel is stationary."""
        return self.kernel.is_stationary()

    @property
    def requires_vector_input(self) -> bool:
        """Whether rows are vectors: as for the kernel, unless gaps make rows opaque."""
        return self.kernel.requires_vector_input and not takes_missing_cells(self.kernel)

    def __repr__(self) -> str:
        return f"FixedKernel({self.kernel!r})"


def _together(rows: NDArray[Any]) -> NDArray[Any]:
    """Stack the rows that `_opaque` has taken apart."""
    return np.vstack([row.values for row in rows]) if len(rows) and isinstance(rows[0], _Row) else rows
