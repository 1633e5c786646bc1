"""Supervised Gaussian processes, with any kernel of `GPSSL`: what heads on many functions drawn from the prior approach."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, WhiteKernel
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._runtime.threads import one_blas_thread
from .._validation import seed_from, unchanged_on_failure
from ..core._checked_rows import check_kernel, check_rows_in_memory, rows_in_memory
from ..data._arrays import in_double_precision, row_blocks
from ..data._frames import header_of
from ..data._labels import KnownLabels, check_at_least_two, find_class_labels, find_targets
from ..downstream._gp_head import ROWS_AT_A_TIME, SCALES, check_scales, evidence_shares, log_prior, warn_unless_converged
from ..downstream._softmax_gp import Curvature, SoftmaxPosterior, fit_softmax_gps, prior_factor, probit
from ..evaluation._scores import score_labeled_rows
from ..kernels._protocol import resolve_kernel, takes_missing_cells
from ..kernels.standardized import StandardizedKernel
from ._kernel_methods import KernelEstimator

Array = NDArray[np.float64]

VARIANCE_BOUNDS = (1e-6, 1e6)
"""Bounds of σ², by which the kernel is multiplied."""

NOISE_BOUNDS = (1e-6, 1e1)
"""Bounds of the noise variance in standardized targets. The lower one, a standard deviation of a thousandth, keeps the matrix invertible
and predicted variances positive where targets follow from the rows exactly."""

STRETCHES = (1.0, 0.25, 0.5, 2.0, 4.0)
"""Lengthscales of the classifier, over the median distance between rows; of equal evidence the first is taken."""

RESTARTS = 2
"""Further starts of the search for variance and noise: "all is noise" can be a second maximum of the likelihood."""


class SupervisedGPClassifier(ClassifierMixin, KernelEstimator):
    """Gaussian process classification from the labeled rows, with all classes in one softmax, and a kernel that suits any table.

        f_k ~ GP(0, v k(x, y) / c + b),   p(y = k | x) = E[softmax(f(x))_k | labeled rows],   c = mean of k(x, x) at the labeled rows

    for K logits, of which two classes need the difference only, f_1 − f_0 ~ GP(0, 2 (v k / c + b)). The posterior is Laplace's
    approximation with a corrected mean, as that of `gpssl.downstream.SoftmaxGP`, but with the kernel itself in the place of features, so
    that probabilities are unsure far from all labeled rows. Of the values of v none is chosen: they are averaged over by their evidence,
    p(y | v). Of several kernels the one with the highest evidence is taken.

    All rows, with or without a label, set the scales and the lengthscale of k; they are not changed afterwards. Rows without a label are
    marked as for `MarginalizedClassifier`: −1 where labels are whole numbers, else None or NaN.

    Parameters
    ----------
    kernel
        Any kernel. None: `StandardizedKernel` with a quarter of the median distance between rows as its lengthscale, a half, once, twice
        and four times the distance, of which the evidence chooses.
    scales
        Values of v, the prior variance of a logit, equally likely beforehand.
    intercept_variance
        b.
    random_state
        Seed for the sample of rows from which the kernel takes its lengthscale where there are many.

    Attributes
    ----------
    classes_
        The class labels. [K]
    kernel_
        The concrete kernel, the chosen one, without v, c and b.
    model_
        The posteriors for the values of v (`SoftmaxPosterior`).
    scale_weights_
        The share of each value of v. [V]
    log_evidence_
        log p(y) with the chosen kernel, averaged over v.
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
    >>> clf.n_labeled_, clf.kernel_.stretch, clf.predict_proba(X).shape
    (50, 2.0, (569, 2))
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        scales: Sequence[float] = SCALES,
        intercept_variance: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.scales = scales
        self.intercept_variance = intercept_variance
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SupervisedGPClassifier:
        """Take the lengthscale from all rows, and learn the rest from the labeled ones."""
        check_scales(self.scales, self.intercept_variance)
        with unchanged_on_failure(self):
            labels = find_class_labels(y)
            self.classes_, codes = np.unique(labels.values, return_inverse=True)
            check_at_least_two(self.classes_)
            kernels = _candidates(self.kernel)
            rows = in_double_precision(check_rows_in_memory(self, X, kernels[0], reset=True))
            check_consistent_length(rows, y)
            if rows.ndim == 2 and rows.shape[1] == 0:
                raise ValueError(f"Found 0 feature(s) (shape={rows.shape}) while a minimum of 1 is required.")
            seed, all_rows = seed_from(self.random_state), rows_in_memory(rows, np.ones(len(rows)), header_of(X))
            with one_blas_thread():
                resolved = [resolve_kernel(kernel, all_rows, seed) for kernel in kernels]
            self._labeled = rows[labels.rows]
            self._learn(resolved, np.eye(len(self.classes_))[:, codes])
            self.n_labeled_ = len(labels.rows)
        return self

    def _learn(self, kernels: Sequence[Kernel], one_hot: Array) -> None:
        """Keep the kernel with the highest evidence, and its posteriors for each size of the prior."""
        found = [self._posterior(kernel, one_hot) for kernel in kernels]
        prior = log_prior(np.asarray(self.scales, dtype=np.float64))
        evidences = [posterior.log_evidence + prior for _, _, posterior in found]
        totals = logsumexp(evidences, axis=1)
        best = int(np.argmax(totals))
        self.kernel_, self.log_evidence_ = kernels[best], float(totals[best])
        self._unit, covariances, self.model_ = found[best]
        warn_unless_converged(self.model_.converged, stacklevel=3)
        self.scale_weights_ = evidence_shares(evidences[best][None])[0]
        factor = prior_factor(len(self.classes_))
        self._curvatures = Curvature.of(factor * covariances, self.model_.curvature_root)

    def _posterior(self, kernel: Kernel, one_hot: Array) -> tuple[float, Array, SoftmaxPosterior]:
        """Return c, the prior covariances of a logit at the labeled rows [V, n, n], and the posteriors given the labels."""
        values = np.asarray(kernel(self._labeled), dtype=np.float64)
        unit = float(np.diagonal(values).mean()) or 1.0
        scales = np.asarray(self.scales, dtype=np.float64)[:, None, None]
        covariances = scales * (values / unit) + float(self.intercept_variance)
        return unit, covariances, fit_softmax_gps(covariances, one_hot, np.ones(one_hot.shape[1]))

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class. [n, K]"""
        check_is_fitted(self)
        rows = in_double_precision(check_rows_in_memory(self, X, self.kernel_, reset=False))
        return np.concatenate([self._proba(rows[block]) for block in row_blocks(len(rows), ROWS_AT_A_TIME)])

    def _proba(self, rows: NDArray[Any]) -> Array:
        """Average over the sizes of the prior that count."""
        values, own = np.asarray(self.kernel_(rows, self._labeled)) / self._unit, self.kernel_.diag(rows) / self._unit
        factor, b = prior_factor(len(self.classes_)), float(self.intercept_variance)
        proba = np.zeros((len(rows), len(self.classes_)))
        for place in np.flatnonzero(self.scale_weights_).tolist():
            v = float(self.scales[place])
            c = factor * (v * values + b)
            covariance = self._curvatures.logit_covariance(place, c, factor * (v * own + b))
            proba += self.scale_weights_[place] * probit(c @ self.model_.dual[place].T, covariance)
        return proba

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class. [n]"""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy at the rows that have a label."""
        return score_labeled_rows(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.kernel is None:  # `StandardizedKernel` takes whatever a table may hold
            inputs = tags.input_tags
            inputs.two_d_array = inputs.allow_nan = inputs.string = inputs.categorical = True
        return tags


def _candidates(kernel: Any) -> list[Kernel]:
    """Return the kernels of which the evidence chooses."""
    return [StandardizedKernel(stretch=stretch) for stretch in STRETCHES] if kernel is None else [check_kernel(kernel)]


class SupervisedGPRegressor(RegressorMixin, KernelEstimator):
    """Gaussian process regression from the rows with a target, by scikit-learn, with the kernel that `GPSSL` would use.

        y = ȳ + s (f(x) + ε),   f ~ GP(0, σ² k),   ε ~ N(0, ν²)      ȳ, s: mean and standard deviation of the targets

    All rows, with or without a target, set the lengthscale of k; it is not changed afterwards. σ² and ν² maximize the marginal
    likelihood. NaN marks rows without a target.

    Parameters
    ----------
    kernel
        As in `GPSSL`: by default `NeighborRBF(neighborhood=10)`.
    random_state
        Seed for the sample of rows from which the kernel takes its lengthscale, and for further starts of the search for σ² and ν².

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
