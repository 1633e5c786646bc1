"""The head for many features: a softmax Gaussian process on the labeled rows, averaged over the size of its prior."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, ndtri, softmax
from scipy.stats import qmc
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from .._runtime.threads import map_on_threads, one_blas_thread
from .._validation import check_draws, check_number, seed_from
from ..data._arrays import row_blocks
from ..data._labels import encode_classes
from ._heads import ClassifierOfOneDraw
from ._softmax_gp import Curvature, SoftmaxPosterior, fit_softmax_gps, prior_factor, probit

Array = NDArray[np.float64]

SCALES = (3.0, 10.0, 30.0, 100.0, 300.0)
"""Prior variances of a logit at the labeled rows."""
SCALE_MEDIAN, SCALE_WIDTH = 30.0, 1.0
"""Median and width, in natural logarithms, of the log-normal prior on that variance. With ten labels the evidence alone likes small ones,
which predicted worse on 22 tables; with a hundred noisy labels they are right."""
NEGLIGIBLE_WEIGHT = 1e-3
"""Sizes of the prior with less than this share of the evidence are left out."""
ROWS_AT_A_TIME = 1024

Logits = list[tuple[float, Array, Array]]
"""Weight, mean [n, L] and covariance [n, L, L] of the latent functions, for each size of the prior that counts."""


@dataclass(frozen=True)
class SoftmaxHeads:
    """One head for each of S draws, over the same K classes: a mixture over V sizes of the prior."""

    classes: NDArray[Any]
    """The class labels, sorted. [K]"""
    center: Array
    """Mean of the features at the labeled rows. [S, J]"""
    labeled: Array
    """Features of the labeled rows, centered, with a mean square length of one. [S, n, J]"""
    unit: Array
    """What the features were divided by. [S]"""
    scales: Array
    """Prior variances of a logit. [V]"""
    scale_weights: Array
    """Share of each in the evidence of its draw. [S, V]"""
    intercept_variance: float
    dual: Array
    """a of `SoftmaxPosterior`. [S, V, L, n]"""
    curvature_root: Array
    """Of `SoftmaxPosterior`. [S, V, L, n]"""
    log_evidence: Array
    """log Σ_v π_v p(y | v), π being the prior of the sizes. [S]"""
    n_samples: int
    seed: int

    def predict_proba(self, Z: Array) -> Array:
        """Return Σ_v w_v ∫ softmax(f(x)) q_v(f) df for each draw's features, Z [S, n, J]. [S, n, K]"""
        return self._over_draws(Z, self._proba)

    def predict_proba_variance(self, Z: Array) -> Array:
        """Return the variance of softmax(f(x))_k over the posterior, within and between the sizes of the prior. [S, n, K]"""
        return self._over_draws(Z, self._variance)

    def predict_proba_with_variance(self, Z: Array) -> tuple[Array, Array]:
        """Return `predict_proba` and `predict_proba_variance`, from one evaluation of the latent functions. [S, n, K] each"""
        both = self._over_draws(Z, self._proba_and_variance, 2 * len(self.classes))
        return both[:, :, : len(self.classes)], both[:, :, len(self.classes) :]

    def _over_draws(self, Z: Array, evaluate: Any, n_columns: int | None = None) -> Array:
        out = np.empty((*Z.shape[:2], n_columns or len(self.classes)))
        tasks = [(draw, rows) for draw in range(len(Z)) for rows in row_blocks(Z.shape[1], ROWS_AT_A_TIME)]
        _ = self._curvatures  # computed once, before the threads

        def fill(task: tuple[int, slice]) -> None:
            draw, rows = task
            out[draw, rows] = evaluate(draw, (Z[draw, rows] - self.center[draw]) / self.unit[draw])

        map_on_threads(fill, tasks)
        return out

    def _proba(self, draw: int, X: Array) -> Array:
        return _average_probit(self._logits(draw, X))

    def _variance(self, draw: int, X: Array) -> Array:
        return self._variance_of(self._logits(draw, X))

    def _proba_and_variance(self, draw: int, X: Array) -> Array:
        logits = self._logits(draw, X)
        return np.hstack([_average_probit(logits), self._variance_of(logits)])

    def _variance_of(self, logits: Logits) -> Array:
        normal = self._normal
        parts = [(weight, _sampled_moments(mean, covariance, normal)) for weight, mean, covariance in logits]
        mean = np.add.reduce([weight * moments[0] for weight, moments in parts])
        second = np.add.reduce([weight * (moments[1] + (moments[0] - mean) ** 2) for weight, moments in parts])
        return np.minimum(second, 0.25)  # no probability varies more

    def _logits(self, draw: int, X: Array) -> Logits:
        """Return weight, mean [n, L] and covariance [n, L, L] of the latent functions for each size of the prior that counts."""
        factor = prior_factor(len(self.classes))
        products, squares = factor * X @ self.labeled[draw].T, factor * (X**2).sum(axis=1)
        found = []
        for place in np.flatnonzero(self.scale_weights[draw]).tolist():
            scale, extra = self.scales[place], factor * self.intercept_variance
            c, own = scale * products + extra, scale * squares + extra
            covariance = self._curvatures[draw, place].logit_covariance(0, c, own)
            found.append((float(self.scale_weights[draw, place]), c @ self.dual[draw, place].T, covariance))
        return found

    @cached_property
    def _curvatures(self) -> dict[tuple[int, int], Curvature]:
        """The curvature for each draw and size that counts. It follows from the rest, and is larger than all of it."""
        found = {}
        for draw, place in np.argwhere(self.scale_weights > 0).tolist():
            C = prior_factor(len(self.classes)) * prior_covariances(self.labeled[draw], self.scales[[place]], self.intercept_variance)
            found[draw, place] = Curvature.of(C, self.curvature_root[draw, place][None])
        return found

    @property
    def latent(self) -> Array | None:
        """The latent functions at the labeled rows, where Newton's method ended; None for heads that come from a file. [S, V, L, n]"""
        return vars(self).get("_latent")

    def remember(self, found: SoftmaxPosterior) -> None:
        """Keep what training has computed and predictions would compute again, to the same digits."""
        vars(self)["_latent"] = found.latent.reshape(self.dual.shape)
        if found.curvature is not None:
            counts = np.argwhere(self.scale_weights > 0).tolist()
            vars(self)["_curvatures"] = {(draw, place): found.curvature.take(draw * len(self.scales) + place) for draw, place in counts}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the rest."""
        return {name: value for name, value in self.__dict__.copy().items() if not name.startswith("_")}

    @cached_property
    def _normal(self) -> Array:
        """Return quasi-random normal numbers. [samples, L]"""
        n_latent = self.dual.shape[2]
        generator = qmc.Sobol(n_latent, rng=np.random.default_rng(self.seed))
        points = generator.random_base2(int(np.ceil(np.log2(self.n_samples))))[: self.n_samples]
        return ndtri(np.clip(points, 1e-12, 1 - 1e-12))


def prior_covariances(labeled: Array, scales: Array, intercept_variance: float) -> Array:
    """Return v φφᵀ + the variance of the intercept, the prior covariance of a logit at the labeled rows, for each size v. [V, n, n]"""
    return scales[:, None, None] * (labeled @ labeled.T) + intercept_variance


def _average_probit(logits: Logits) -> Array:
    """Return the probabilities of the classes, averaged over the sizes of the prior. [n, K]"""
    return np.add.reduce([weight * probit(mean, covariance) for weight, mean, covariance in logits])


def _sampled_moments(mean: Array, covariance: Array, normal: Array) -> tuple[Array, Array]:
    """Return mean and variance of softmax(f), f ~ N(mean, covariance), from samples. [n, K] each"""
    if mean.shape[1] == 1:  # two classes
        std = np.sqrt(np.maximum(covariance[:, 0, 0], 0.0) + 1e-10 * np.maximum(covariance[:, 0, 0], 1e-10))
        second = expit(mean + std[:, None] * normal[:, 0])
        average, variance = second.mean(axis=1), second.var(axis=1, ddof=1)
        return np.column_stack([1 - average, average]), np.column_stack([variance, variance])
    jitter = 1e-10 * np.maximum(np.trace(covariance, axis1=1, axis2=2), 1e-10)[:, None, None] * np.eye(mean.shape[1])
    factor = np.linalg.cholesky(covariance + jitter)
    values = mean[:, None] + normal @ factor.swapaxes(1, 2)
    proba = softmax(values, axis=2)
    return proba.mean(axis=1), proba.var(axis=1, ddof=1)


class SoftmaxGP(ClassifierOfOneDraw):
    """Bayesian logistic regression for many columns and few labels: a Gaussian process classifier with all classes in one softmax.

    Each of K logits is a linear function of the columns φ(x), centered at the labeled rows, and an intercept, with normal weights:

        f_k(x) ~ GP(0, v φ(x)ᵀφ(y) / c + b),   p(y = k | x) = softmax(f(x))_k,   c = mean of |φ|² at the labeled rows

    so that v is the prior variance of a logit. The posterior is Laplace's approximation with a corrected mean, found in the dual, from
    matrices of labels by labels: columns may be thousands. The size v of the prior is not chosen but averaged over, by Bayes' rule: with
    ten labels no single value is safe. On features of a kernel, φ(x)ᵀφ(y) = k(x, y), this is Gaussian process classification.

    Parameters
    ----------
    scales
        Values of v. Beforehand they are as likely as a log-normal density with median 30 and width 1 has it.
    intercept_variance
        b. A wide prior for the intercepts, as usual with many labels, makes the classes that ten labels happen to show more often too
        likely everywhere.
    n_samples
        Quasi-random samples of the logits for `predict_proba_std`.
    random_state
        Seed for these samples.

    Attributes
    ----------
    classes_
        The class labels. [K]
    log_evidence_
        The log of the evidence p(y | X), averaged over v.
    scale_weights_
        The share of each value of v. [V]

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpssl.downstream import SoftmaxGP
    >>> X, y = load_iris(return_X_y=True)
    >>> round(SoftmaxGP().fit(X[::10], y[::10]).score(X[1::2], y[1::2]), 2)      # from 15 labels
    0.88
    """

    def __init__(
        self, *, scales: Sequence[float] = SCALES, intercept_variance: float = 1.0, n_samples: int = 64, random_state: Any = None
    ) -> None:
        self.scales = scales
        self.intercept_variance = intercept_variance
        self.n_samples = n_samples
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SoftmaxGP:
        """Learn from labeled rows. Weight 2 is the row twice."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        with one_blas_thread():
            self.heads_ = self.fit_draws(X[None], y, sample_weight)
        self.classes_ = self.heads_.classes
        self.log_evidence_ = float(self.heads_.log_evidence[0])
        self.scale_weights_ = self.heads_.scale_weights[0]
        return self

    def fit_draws(self, Z: Array, y: Any, sample_weight: Any = None, *, start: Array | None = None) -> SoftmaxHeads:
        """Train one head for each of S sets of features of the same rows, Z [S, n, J]; this estimator stays as it is.

        `start` [S, V, L, n], the `latent` of heads for much the same rows, makes it quicker; what is found is the same.
        """
        self._check_parameters()
        Z, weight = check_draws(Z, y, sample_weight)
        classes, codes, used = encode_classes(y, weight)
        Z, weight = Z[:, used], weight[used]
        center = weight @ Z / weight.sum()
        labeled = Z - center[:, None]
        length = np.sqrt((labeled**2).sum(axis=2) @ weight / weight.sum())
        unit = np.where(length > 0, length, 1.0)
        labeled = labeled / unit[:, None, None]
        scales = np.asarray(self.scales, dtype=np.float64)
        n_rows, b = len(weight), float(self.intercept_variance)
        covariances = np.concatenate([prior_covariances(own, scales, b) for own in labeled])
        start = None if start is None else start[..., used].reshape(len(covariances), -1, n_rows)
        found = fit_softmax_gps(covariances, np.eye(len(classes))[:, codes], weight, start)
        warn_unless_converged(found.converged, stacklevel=3)
        evidence = found.log_evidence.reshape(len(Z), len(scales)) + log_prior(scales)
        shape = (len(Z), len(scales), -1, n_rows)
        heads = SoftmaxHeads(
            classes=classes,
            center=center,
            labeled=labeled,
            unit=unit,
            scales=scales,
            scale_weights=evidence_shares(evidence),
            intercept_variance=float(self.intercept_variance),
            dual=found.dual.reshape(shape),
            curvature_root=found.curvature_root.reshape(shape),
            log_evidence=logsumexp(evidence, axis=1),
            n_samples=int(self.n_samples),
            seed=seed_from(self.random_state),
        )
        heads.remember(found)
        return heads

    def _check_parameters(self) -> None:
        check_scales(self.scales, self.intercept_variance)
        check_number("n_samples", self.n_samples, Integral, at_least=2)


def log_prior(scales: Array) -> Array:
    """Return log π_v ∝ −½ (log(v / median) / width)². [V]"""
    exponents = -0.5 * (np.log(scales / SCALE_MEDIAN) / SCALE_WIDTH) ** 2
    return exponents - logsumexp(exponents)


def warn_unless_converged(converged: NDArray[np.bool_], *, stacklevel: int) -> None:
    """Warn of Gaussian processes whose mode was not found."""
    if not converged.all():
        warnings.warn(
            f"{(~converged).sum()} of {len(converged)} Gaussian processes did not converge. Remove rows that are far from all others.",
            ConvergenceWarning,
            stacklevel=stacklevel + 1,
        )


def check_scales(scales: Any, intercept_variance: Any) -> None:
    """Raise ValueError unless these are sizes of a prior."""
    if np.ndim(scales) != 1 or len(scales) == 0:
        raise ValueError(f"scales must be a list of prior variances, at least one, got {scales!r}.")
    for scale in scales:
        check_number("Each of the scales", scale, Real, above=0)
    check_number("intercept_variance", intercept_variance, Real, above=0)


def evidence_shares(evidence: Array) -> Array:
    """Return the share of each size in the evidence of its draw, without those that hardly count. [S, V]"""
    shares = softmax(evidence, axis=1)
    shares[shares < NEGLIGIBLE_WEIGHT] = 0.0
    return shares / shares.sum(axis=1, keepdims=True)
