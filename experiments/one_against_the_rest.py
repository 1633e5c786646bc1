"""scikit-learn's Gaussian process classifier with a fixed kernel: the "supervised GP" of the tables after the paper.

`gpssl.baselines.SupervisedGPClassifier` has taken its place in the library, with all classes in one softmax; experiments with few labels
compare with that. The tables after the paper keep the one that they were made with.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel

from gpssl._validation import seed_from
from gpssl.baselines._supervised import VARIANCE_BOUNDS, FixedKernel
from gpssl.comparison import METHODS, SUPERVISED, Candidate, Contest
from gpssl.kernels._protocol import DataDependentKernel

Array = NDArray[np.float64]


class OneAgainstTheRestGP(ClassifierMixin, BaseEstimator):
    """f ~ GP(0, σ² k), p(y = 1 | x) = E[logistic(f(x))] for each class against the others; σ² maximizes the marginal likelihood."""

    def __init__(self, kernel: Kernel, *, random_state: Any = None) -> None:
        self.kernel = kernel
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> OneAgainstTheRestGP:
        """Learn from labeled rows; the kernel is not changed."""
        kernel = ConstantKernel(1.0, VARIANCE_BOUNDS) * FixedKernel(clone(self.kernel))
        self.model_ = GaussianProcessClassifier(kernel, random_state=seed_from(self.random_state))
        with warnings.catch_warnings():
            # Labels that the rows do not explain, or explain completely, have their maximum at a bound: the bounds are part of the model.
            warnings.filterwarnings("ignore", "The optimal value found for", ConvergenceWarning)
            warnings.filterwarnings("ignore", r"lbfgs failed to converge[\s\S]*ABNORMAL", ConvergenceWarning)
            self.model_.fit(np.asarray(X, dtype=np.float64), y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class. [n, K]"""
        return self.model_.predict_proba(np.asarray(X, dtype=np.float64))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class. [n]"""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


def _candidates(contest: Contest) -> list[Candidate]:
    """Return one classifier for each kernel, of which those that depend on rows take their lengthscale from the unlabeled ones."""
    if contest.regression:
        return METHODS[SUPERVISED](contest)
    resolved = [
        (settings, kernel.resolve(contest.rows, seed=0) if isinstance(kernel, DataDependentKernel) else kernel)
        for settings, kernel in contest.kernels
    ]
    return [Candidate(settings, OneAgainstTheRestGP(kernel, random_state=contest.seed)) for settings, kernel in resolved]


PAPER_METHODS = {**METHODS, SUPERVISED: _candidates}
"""The methods of `gpssl.comparison`, with the supervised GP of the paper's tables."""
