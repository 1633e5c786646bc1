"""Bayesian logistic regression: one head, or one for each of many draws at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, softmax
from scipy.stats import qmc
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from .._runtime.threads import map_on_threads, one_blas_thread
from .._validation import check_draws, check_number, seed_from
from ..data._arrays import row_blocks
from ..data._labels import encode_classes
from ._heads import ClassifierOfOneDraw
from ._laplace import BLOCK_NUMBERS, Laplace, OneHotLabels, blocks_of_draws, covariance_factor, fit_laplace, logit_covariance

Array = NDArray[np.float64]

TOLERANCE = 1e-4
"""Newton decrement at which to stop: the weights are within a hundredth of a posterior standard deviation of the mode, before one last
step that squares this."""

LEAST_SAMPLES = 16
"""Fewest samples of the weights for each draw, however many draws there are."""


@dataclass(frozen=True)
class LogisticHeads:
    """One head for each of S draws, over the same K classes."""

    classes: NDArray[Any]
    """The class labels, sorted. [K]"""
    contrasts: Array
    """H of `OneHotLabels`. [K, K − 1]"""
    posterior: Laplace
    predictive: str
    n_samples: int
    seed: int

    def predict_proba(self, Z: Array) -> Array:
        """Return ∫ softmax(W x) q(W) dW for each draw's features, Z [S, n, J]. [S, n, K]"""
        if self.predictive == "probit":
            return self._in_blocks(Z, self._probit, len(self.classes) ** 2)
        return self._over_samples(Z, np.mean)

    def predict_proba_variance(self, Z: Array) -> Array:
        """Return the variance of softmax(W x)_k over q(W), from samples. [S, n, K]"""
        unbiased: Callable[..., Any] = partial(np.var, ddof=1)
        return np.minimum(self._over_samples(Z, unbiased), 0.25)  # no probability varies more

    @property
    def log_evidence(self) -> Array:
        """Laplace's approximation of log p(y | features, α). [S]"""
        return self.posterior.log_evidence

    @property
    def samples_per_draw(self) -> int:
        """Number of samples for a draw: they are divided among the draws, because the average over draws is what counts."""
        return max(LEAST_SAMPLES, self.n_samples // len(self.posterior.mean))

    def _in_blocks(self, Z: Array, predict: Callable[[slice, Array], Array], numbers_per_row: int) -> Array:
        """Call `predict` for blocks of draws and rows that fit in memory, the draws on threads. [S, n, K]"""
        n_draws, n_rows, _ = Z.shape
        out = np.empty((n_draws, n_rows, len(self.classes)))
        some_rows = list(row_blocks(n_rows, max(16, BLOCK_NUMBERS // (4 * numbers_per_row))))

        def fill(draws: slice) -> None:
            for rows in some_rows:
                centered = Z[draws, rows] - self.posterior.center[draws, None]
                out[draws, rows] = predict(draws, np.concatenate([centered, np.ones((*centered.shape[:2], 1))], axis=2))

        map_on_threads(fill, blocks_of_draws(n_draws, numbers_per_row * min(n_rows, some_rows[0].stop if some_rows else 1)))
        return out

    def _probit(self, draws: slice, X: Array) -> Array:
        """Return p_k ∝ 1 / Σ_l exp(−(μ_k − μ_l) / sqrt(1 + π/8 Var(η_k − η_l))),  η = W x ~ N(μ, ·). [S, n, K]

        This is MacKay's probit correction (1992) for two classes, applied to each pair of classes (Lu, Ie and Sha, 2020).
        """
        n_draws, n_rows, n_columns = X.shape
        n_classes = len(self.classes)
        mean = X @ (self.contrasts @ self.posterior.mean[draws]).swapaxes(1, 2)
        covariance = logit_covariance(self.posterior.covariance[draws], self.contrasts)
        own = np.diagonal(covariance, axis1=3, axis2=4)
        of_difference = own[..., :, None] + own[..., None, :] - 2 * covariance
        products = (X[:, :, :, None] * X[:, :, None, :]).reshape(n_draws, n_rows, -1)
        variance = products @ of_difference.reshape(n_draws, n_columns**2, -1)
        scale = np.sqrt(1 + np.pi / 8 * np.maximum(variance, 0.0)).reshape(n_draws, n_rows, n_classes, n_classes)
        difference = (mean[:, :, None, :] - mean[:, :, :, None]) / scale
        largest = difference.max(axis=3, keepdims=True)
        total = np.exp(difference - largest).sum(axis=3)
        proba = np.exp(-largest[..., 0]) / total
        return proba / proba.sum(axis=2, keepdims=True)

    def _over_samples(self, Z: Array, reduce: Callable[..., Array]) -> Array:
        """Return the mean or variance of softmax(W x) over weights sampled from q. [S, n, K]"""

        def reduced(draws: slice, X: Array) -> Array:
            return np.array([reduce(self._samples(draw, rows), axis=0) for draw, rows in zip(range(len(Z))[draws], X, strict=True)])

        return self._in_blocks(Z, reduced, len(self.classes) * self.samples_per_draw)

    def _samples(self, draw: int, X: Array) -> Array:
        """Return softmax(W x) at weights sampled from one draw's q, by Sobol points. [samples, n, K]"""
        mean = self.posterior.mean[draw]
        factor = covariance_factor(self.posterior.covariance[draw])
        points = _sobol(mean.size, self.samples_per_draw, self.seed)
        shift = np.random.default_rng([self.seed, draw]).random(mean.size)  # another for each draw, so that errors average out
        normal = ndtri(np.clip((points + shift) % 1, 1e-12, 1 - 1e-12))
        weights = mean + (normal @ factor.T).reshape(-1, *mean.shape)
        return softmax(X @ (self.contrasts @ weights).swapaxes(1, 2), axis=2)


@lru_cache(maxsize=4)
def _sobol(dimension: int, n_points: int, seed: int) -> Array:
    generator = qmc.Sobol(dimension, rng=np.random.default_rng(seed))
    return generator.random_base2(int(np.ceil(np.log2(n_points))))[:n_points]


class BayesianLogisticRegression(ClassifierOfOneDraw):
    """Multinomial logistic regression with a Gaussian prior on the weights, by Laplace's approximation with a corrected mean.

    p(y = k | x) = softmax(W (x − x̄, 1))_k,  W [K, J + 1] ~ N(0, I / α), the last column (the intercepts) ~ N(0, 100). The posterior is
    approximated by a Gaussian q: curvature at the mode, centered at the mean to the next order. α is found from the evidence, or given.
    Probabilities integrate over q, and so are less sure where few labels were seen.

    As a head of `MarginalizedClassifier` it is trained for all draws at once.

    For K > 2 classes and given α, the mode is that of `LogisticRegression(C=1/α)` up to the prior of the intercepts; for two classes the
    prior is on both classes' weights, which makes it that of `C=2/α`.

    Parameters
    ----------
    prior_precision
        α; or "evidence", for the value that the labels support most, with a hyperprior that decides where they are too few
        (exponential, with mean 0.3 in units of the columns' mean variance). The columns share it and should have comparable scales.
    predictive
        How to integrate over q: "probit" (a closed form, pairwise probit correction) or "sampled" (quasi-random
        samples of the weights, as exact as they are many).
    n_samples
        Samples of the weights for "sampled", and for `predict_proba_std`. Many draws share them, with at least 16 for each.
    max_iter
        Limit on the number of Newton steps.
    random_state
        Seed for the samples.

    Attributes
    ----------
    classes_
        The class labels. [K]
    coef_, intercept_
        Mode of the weights, of sum zero over classes. [K, J] and [K]
    prior_precision_
        α as used.
    log_evidence_
        Laplace's approximation of log p(y | X, α).
    n_iter_
        Newton steps.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpssl.downstream import BayesianLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> BayesianLogisticRegression().fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    def __init__(
        self,
        prior_precision: float | Literal["evidence"] = "evidence",
        *,
        predictive: Literal["probit", "sampled"] = "probit",
        n_samples: int = 256,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.prior_precision = prior_precision
        self.predictive = predictive
        self.n_samples = n_samples
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BayesianLogisticRegression:
        """Learn from labeled rows. Weight 2 is the row twice."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        with one_blas_thread():
            self.heads_ = self.fit_draws(X[None], y, sample_weight)
        self.classes_ = self.heads_.classes
        weights = self.heads_.contrasts @ self.heads_.posterior.mode[0]
        self.coef_ = weights[:, :-1]
        self.intercept_ = weights[:, -1] - self.coef_ @ self.heads_.posterior.center[0]
        self.prior_precision_ = float(self.heads_.posterior.precision[0])
        self.log_evidence_ = float(self.heads_.posterior.log_evidence[0])
        self.n_iter_ = int(self.heads_.posterior.n_iterations[0])
        return self

    def fit_draws(self, Z: Array, y: Any, sample_weight: Any = None) -> LogisticHeads:
        """Train one head for each of S sets of features of the same rows, Z [S, n, J]; this estimator stays as it is."""
        self._check_parameters()
        Z, weight = check_draws(Z, y, sample_weight)
        classes, codes, used = encode_classes(y, weight)
        labels = OneHotLabels.of(codes, len(classes), weight[used])
        precision = None if isinstance(self.prior_precision, str) else float(self.prior_precision)
        posterior = fit_laplace(Z[:, used], labels, precision, max_iterations=int(self.max_iter), tolerance=TOLERANCE)
        if not posterior.converged.all():
            warnings.warn(
                f"{(~posterior.converged).sum()} of {len(Z)} logistic regressions did not converge within max_iter={self.max_iter} Newton "
                "steps. Raise max_iter, or scale the columns.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return LogisticHeads(classes, labels.contrasts, posterior, self.predictive, int(self.n_samples), seed_from(self.random_state))

    def _check_parameters(self) -> None:
        if not isinstance(self.prior_precision, str) or self.prior_precision != "evidence":
            check_number("prior_precision", self.prior_precision, Real, above=0, otherwise='or "evidence"')
        if self.predictive not in ("probit", "sampled"):
            raise ValueError(f'predictive must be "probit" or "sampled", got {self.predictive!r}.')
        check_number("n_samples", self.n_samples, Integral, at_least=1)
        check_number("max_iter", self.max_iter, Integral, at_least=1)
