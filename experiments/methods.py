"""The methods of the experiments: those of `gpssl.comparison` with the paper's head, settings and rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from sklearn.gaussian_process.kernels import Kernel

from gpssl.comparison import FULL, N_COMPONENTS, N_DRAWS, Candidate, Contest, Grids, vicreg_settings
from gpssl.downstream import BayesianLogisticRegression, PerceptronClassifier

from .one_against_the_rest import PAPER_METHODS
from .plan import Plan

HEAD = PerceptronClassifier(learning_rate=0.02, weight_decay=0.005, max_epochs=200, validation_fraction=0.0)
"""The paper's two-layer perceptron, the same for all methods. All labeled rows train it; against overfitting there is the weight decay."""

TABLES = Grids()
CIRCLES = Grids(neighborhoods=(20, 50, 100), vicreg=vicreg_settings((25.0, 50.0, 100.0), (0.1, 0.25, 0.5)))
QUICK = Grids(
    neighborhoods=(10,),
    temperatures=("auto", 1.0),
    vicreg=({"max_iterations": 200},),
    wide_vicreg=({"max_iterations": 200},),
    scarf=({"max_iterations": 200},),
    simvae=({"max_iterations": 200},),
    n_draws=20,
)

FIXED = Grids(neighborhoods=(10,), temperatures=("auto",))
"""A single setting of each method: there is nothing to choose."""

WARM = f"{FULL}, τ = 1"
"""GPSSL-full at temperature 1. Where settings are fixed, the others have the default temperature, 1/N."""

NETWORKS = ("VICReg-wide", "SCARF", "SimVAE")
"""Networks that the paper does not have; they take long."""


def models(method: str, X: Any, grids: Grids, seed: int, *, head: Any, regression: bool = False) -> list[Candidate]:
    """Return all candidates of a method as classifiers or regressors: representations fitted to X, heads still to be trained."""
    return PAPER_METHODS[method](Contest(X, grids.kernels, grids, head=head, regression=regression, seed=seed))


class Budget(NamedTuple):
    """What a method may spend, and its seed."""

    n_draws: int
    seed: int


def budget_of(plan: Plan, seed: int) -> Budget:
    """Return the paper's number of draws, and fewer in a quick run."""
    return Budget(QUICK.n_draws if plan.quick else N_DRAWS, seed)


def classifier_with(method: str, kernel: Kernel, rows: Any, budget: Budget, n_components: int = N_COMPONENTS) -> Any:
    """Return a classifier on a representation with this kernel, which is fitted to rows of any kind; its heads are still to be trained.

    All settings are fixed, and heads are Bayesian logistic regressions.
    """
    grids = replace(FIXED, temperatures=(1.0 if method == WARM else "auto",), n_draws=budget.n_draws)
    head = BayesianLogisticRegression()
    contest = Contest(rows, [({}, kernel)], grids, n_components=n_components, head=head, seed=budget.seed)
    (candidate,) = PAPER_METHODS[FULL if method == WARM else method](contest)
    return candidate.estimator
