"""Representations with a kernel for any kind of rows, and support vector machines with the same kernel."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import Kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from gpssl import GPSSL, MarginalizedClassifier
from gpssl.baselines import GPPrior
from gpssl.baselines._kernel_pca import KernelRows
from gpssl.downstream import BayesianLogisticRegression

from .methods import N_COMPONENTS, N_DRAWS, QUICK
from .plan import Plan

Variant = Literal["GPSSL-full", "GPSSL-full, τ = 1", "GPSSL-mean", "GP-prior"]

WARM: Variant = "GPSSL-full, τ = 1"
"""The others have the default temperature, 1/N."""

COSTS = tuple(10.0**power for power in range(-3, 4))
N_FOLDS = 5


class Budget(NamedTuple):
    """What a method may spend, and its seed."""

    n_draws: int
    seed: int


def budget_of(plan: Plan, seed: int) -> Budget:
    """The paper's draws, fewer in a hurry."""
    return Budget(QUICK.n_draws if plan.quick else N_DRAWS, seed)


def classifier_with(
    variant: Variant, kernel: Kernel, rows: Any, budget: Budget, n_components: int = N_COMPONENTS
) -> MarginalizedClassifier:
    """Heads still to be trained, on a representation with this kernel that was fitted to unlabeled rows."""
    representation: GPSSL | GPPrior
    if variant == "GP-prior":
        representation = GPPrior(n_components, kernel=kernel, random_state=budget.seed)
    else:
        temperature: float | Literal["auto"] = 1.0 if variant == WARM else "auto"
        representation = GPSSL(n_components, kernel=kernel, temperature=temperature, random_state=budget.seed)
    fitted = FrozenEstimator(representation.fit(rows))
    n_draws = None if variant == "GPSSL-mean" else budget.n_draws
    return MarginalizedClassifier(fitted, BayesianLogisticRegression(), n_draws=n_draws, random_state=budget.seed)


class KernelMachine(ClassifierMixin, KernelRows):
    """A support vector machine on any kind of rows, its cost chosen by cross-validation on the labels."""

    def __init__(self, kernel: Kernel | None = None, *, seed: int = 0) -> None:
        self.kernel = kernel
        self.seed = seed

    def fit(self, X: Any, y: NDArray[Any]) -> KernelMachine:
        """Choose the cost and train with it on all rows."""
        self.rows_ = self._check_rows(X, reset=True)
        self.kernel_ = self._resolve_kernel(X, self.rows_, np.ones(len(self.rows_)), self.seed)
        rarest = int(np.unique(y, return_counts=True)[1].min())
        folds = StratifiedKFold(max(2, min(N_FOLDS, rarest)), shuffle=True, random_state=self.seed)
        search = GridSearchCV(SVC(kernel="precomputed"), {"C": COSTS}, cv=folds)
        self.machine_ = search.fit(self.kernel_(self.rows_), y)
        self.classes_ = self.machine_.classes_
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row. [n]"""
        return self.machine_.predict(self.kernel_(self._check_rows(X, reset=False), self.rows_))
