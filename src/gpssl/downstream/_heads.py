"""Heads for all draws of a representation: what the marginalized models ask of them, and clones of any scikit-learn head."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params, check_is_fitted, validate_data

from .._runtime.progress import Progress
from .._runtime.threads import one_blas_thread
from ..data._arrays import random_phases

Array = NDArray[np.float64]

NOISE_DRAWS = 10
"""Draws whose held-out residuals tell the noise, for regressors that do not."""

NOISE_FOLDS = 5


class ClassifierHeads(Protocol):
    """One trained classifier for each of S draws, over the same K classes."""

    def predict_proba(self, Z: Array) -> Array:
        """Return the probability of each class at each draw's features, Z [S, n, J]. [S, n, K]"""
        ...

    def predict_proba_variance(self, Z: Array) -> Array | None:
        """Return the variance of these probabilities over the posterior of each head; None for heads without one. [S, n, K]

        Heads with an attribute `log_evidence` [S], the log of p(y | features), are weighed by it; others by labels that are held out.
        """
        ...


class RegressorHeads(Protocol):
    """One trained regressor for each of S draws."""

    def predict_normal(self, Z: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of the target at each draw's features, Z [S, n, J]. [S, n] each"""
        ...


@runtime_checkable
class HeadForDraws(Protocol):
    """An estimator that trains the heads of all draws at once. Of any other estimator, each draw gets a clone."""

    def fit_draws(self, Z: Array, y: Any, sample_weight: Any = None) -> Any:
        """Return `ClassifierHeads` or `RegressorHeads` for S sets of features of the same rows, Z [S, n, J]."""
        ...


class ClassifierOfOneDraw(ClassifierMixin, BaseEstimator):
    """Base of classifiers whose `fit_draws` trains heads with a posterior: a single set of features is one draw."""

    heads_: Any
    classes_: NDArray[Any]

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, integrated over the posterior. [n, K]"""
        rows = self._as_one_draw(X)
        with one_blas_thread():
            return self.heads_.predict_proba(rows)[0]

    def predict_proba_std(self, X: Any) -> Array:
        """Return the standard deviation of the probability of each class over the posterior. [n, K]"""
        rows = self._as_one_draw(X)
        with one_blas_thread():
            return np.sqrt(self.heads_.predict_proba_variance(rows)[0])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class. [n]"""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def _as_one_draw(self, X: Any) -> Array:
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, reset=False)[None]


@dataclass(frozen=True)
class ClassifierClones:
    """One fitted classifier for each of S draws."""

    classes: NDArray[Any]
    """The class labels, sorted. [K]"""
    heads: Sequence[Any]
    n_jobs: int | None

    def predict_proba(self, Z: Array) -> Array:
        """Return the probabilities of each draw's head, in the order of `classes`; zero for a class that it has not seen. [S, n, K]"""
        out = np.zeros((*Z.shape[:2], len(self.classes)))
        for values, head, proba in zip(out, self.heads, _call(self.heads, "predict_proba", Z, self.n_jobs), strict=True):
            values[:, np.searchsorted(self.classes, head.classes_)] = proba
        return out

    def predict_proba_variance(self, Z: Array) -> None:
        """Return None: no posterior of these heads is known."""


@dataclass(frozen=True)
class RegressorClones:
    """One fitted regressor for each of S draws."""

    heads: Sequence[Any]
    noise_std: float | None
    """Standard deviation of the targets around the predictions; None where the heads say it themselves."""
    n_jobs: int | None

    def predict_normal(self, Z: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of each draw's head. [S, n] each"""
        if self.noise_std is None:
            mean, std = np.array(_call(self.heads, "predict", Z, self.n_jobs, return_std=True)).swapaxes(0, 1)
            return mean, std
        mean = np.array(_call(self.heads, "predict", Z, self.n_jobs))
        return mean, np.full(mean.shape, self.noise_std)


def fit_regressors(head: Any, Z: Array, y: Array, params: Mapping[str, Any], n_jobs: int | None, verbose: bool) -> RegressorClones:
    """Fit one clone of the regressor for each draw, and find the noise where its `predict` does not tell it."""
    heads = fit_clones(head, Z, y, params, n_jobs, verbose)
    if "return_std" in inspect.signature(head.predict).parameters:
        return RegressorClones(heads, None, n_jobs)
    return RegressorClones(heads, _held_out_noise(head, Z[:NOISE_DRAWS], y, params, n_jobs), n_jobs)


def fit_clones(head: Any, Z: Array, y: NDArray[Any], params: Mapping[str, Any], n_jobs: int | None, verbose: bool) -> list[Any]:
    """Fit one clone of the head for each of S sets of features of the same rows, Z [S, n, J]."""
    progress = Progress("heads", len(Z), enabled=verbose, unit="heads")
    fits = (delayed(clone(head).fit)(values, y, **params) for values in Z)
    return list(progress.each(Parallel(n_jobs=n_jobs, return_as="generator")(fits)))


def _call(heads: Sequence[Any], method: str, Z: Array, n_jobs: int | None, **options: Any) -> list[Any]:
    """Call the method of each draw's head at each draw's features; on threads, since heads can be large."""
    calls = (delayed(getattr(head, method))(values, **options) for head, values in zip(heads, Z, strict=True))
    return Parallel(n_jobs=n_jobs, prefer="threads")(calls)


def _held_out_noise(head: Any, Z: Array, y: Array, params: Mapping[str, Any], n_jobs: int | None) -> float:
    """Return the root mean square of the residuals at rows that a head was not trained on, over folds and draws."""
    folds = folds_by_content(Z[0])
    if folds.max() == 0:
        raise ValueError(
            f"n_samples=1: a single labeled row does not tell the noise around the predictions of {type(head).__name__}. Label more rows."
        )
    squares = np.zeros(len(y))
    for fold in np.unique(folds):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        some = _check_method_params(y, dict(params), indices=train)
        heads = fit_clones(head, Z[:, train], y[train], some, n_jobs, verbose=False)
        squares[test] = ((np.array(_call(heads, "predict", Z[:, test], n_jobs)) - y[test]) ** 2).mean(axis=0)
    return float(np.sqrt(np.average(squares, weights=params.get("sample_weight"))))


def folds_by_content(X: Array) -> NDArray[np.intp]:
    """Return a fold for each row, which does not depend on their order; copies of a row share theirs. [n]"""
    distinct, place = np.unique(X, axis=0, return_inverse=True)
    rank = np.argsort(np.argsort(random_phases(distinct, seed=0)))
    return rank[place] % NOISE_FOLDS
