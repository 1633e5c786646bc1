"""The methods that are compared, each with the settings that it may choose from: same rows, same heads, same rules for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer

from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor
from gpssl.baselines import SCARF, GPPrior, KernelPCA, SimVAE, SupervisedGPClassifier, SupervisedGPRegressor, VICReg
from gpssl.downstream import PerceptronClassifier
from gpssl.kernels import NeighborRBF

Array = NDArray[np.float64]

N_COMPONENTS = 5
"""The paper's J."""

N_DRAWS = 100
"""The paper's number of drawn representations."""

HEAD = PerceptronClassifier(learning_rate=0.02, weight_decay=0.005, max_epochs=200, validation_fraction=0.0)
"""The paper's two-layer perceptron, the same for all methods. All labeled rows train it; against overfitting there is the weight decay."""


def _vicreg_settings(weights: Sequence[float], noises: Sequence[float]) -> list[dict[str, Any]]:
    """Appendix A: c_I = c_V, the noise of the positive pairs, and the learning rate after the first 20 iterations."""
    rates = (0.00001, 0.00005, 0.0001, 0.0005)
    return [
        {"invariance_weight": weight, "variance_weight": weight, "noise": noise, "learning_rate": rate}
        for weight, noise, rate in product(weights, noises, rates)
    ]


@dataclass(frozen=True)
class Grids:
    """The settings that methods choose from. Kernels and VICReg: the paper's appendix A; the others have about as many."""

    neighborhoods: Sequence[float] = (5, 10, 20)
    temperatures: Sequence[float | Literal["auto"]] = ("auto", 0.1, 1.0)
    vicreg: Sequence[dict[str, Any]] = field(default_factory=lambda: _vicreg_settings((25.0, 50.0), (0.1, 0.25, 0.5)))
    wide_vicreg: Sequence[dict[str, Any]] = tuple(
        {"noise": noise, "learning_rate": rate, "max_iterations": 1000} for noise in (0.1, 0.25) for rate in (5e-4, 5e-3)
    )
    scarf: Sequence[dict[str, Any]] = tuple({"corruption": c, "learning_rate": rate} for c in (0.3, 0.6) for rate in (1e-3, 1e-2))
    simvae: Sequence[dict[str, Any]] = tuple({"noise": r, "learning_rate": rate} for r in (0.1, 0.25, 0.5) for rate in (1e-3, 1e-2))
    n_draws: int = N_DRAWS
    per_column: bool = True
    """Whether kernels measure distances in units of each column's standard deviation."""

    @property
    def kernels(self) -> dict[float, NeighborRBF]:
        """One for each neighborhood."""
        return {k: NeighborRBF(k, per_column=self.per_column) for k in self.neighborhoods}


TABLES = Grids()
CIRCLES = Grids(neighborhoods=(20, 50, 100), vicreg=_vicreg_settings((25.0, 50.0, 100.0), (0.1, 0.25, 0.5)))
QUICK = Grids(
    neighborhoods=(10,),
    temperatures=("auto", 1.0),
    vicreg=({"max_iterations": 200},),
    wide_vicreg=({"max_iterations": 200},),
    scarf=({"max_iterations": 200},),
    simvae=({"max_iterations": 200},),
    n_draws=20,
)


class Candidate(NamedTuple):
    """A setting of a method: a representation that was fitted to the unlabeled rows, ready to be used."""

    settings: dict[str, Any]
    """As they are written into the record."""
    representation: Any
    n_draws: int | None
    """Functions that predictions are averaged over; None where the mean, or the only representation, is used."""


def _original(X: Array, _grids: Grids, _seed: int) -> list[Candidate]:
    return [Candidate({}, FunctionTransformer().fit(X), None)]


def _pca(X: Array, _grids: Grids, seed: int) -> list[Candidate]:
    return [Candidate({}, PCA(min(N_COMPONENTS, X.shape[1]), random_state=seed).fit(X), None)]


def _kernel_pca(X: Array, grids: Grids, seed: int) -> list[Candidate]:
    return [
        Candidate({"neighborhood": k}, KernelPCA(N_COMPONENTS, kernel=kernel, random_state=seed).fit(X), None)
        for k, kernel in grids.kernels.items()
    ]


def _vicreg(X: Array, grids: Grids, seed: int) -> list[Candidate]:
    fitted = VICReg(N_COMPONENTS, random_state=seed).fit_grid(X, grids.vicreg)
    return [Candidate(dict(settings), model, None) for settings, model in zip(grids.vicreg, fitted, strict=True)]


def _wide_vicreg(X: Array, grids: Grids, seed: int) -> list[Candidate]:
    """With hidden layers as wide as those of the other networks here: the paper's of 10 and 5 units are narrow."""
    fitted = VICReg(N_COMPONENTS, hidden_units=64, expander_units=64, random_state=seed).fit_grid(X, grids.wide_vicreg)
    return [Candidate(dict(settings), model, None) for settings, model in zip(grids.wide_vicreg, fitted, strict=True)]


def _scarf(X: Array, grids: Grids, seed: int) -> list[Candidate]:
    fitted = SCARF(N_COMPONENTS, random_state=seed).fit_grid(X, grids.scarf)
    return [Candidate(dict(settings), model, None) for settings, model in zip(grids.scarf, fitted, strict=True)]


def _simvae(X: Array, grids: Grids, seed: int) -> list[Candidate]:
    """Its posterior may be used or not, whichever does better on the validation rows."""
    fitted = SimVAE(N_COMPONENTS, random_state=seed).fit_grid(X, grids.simvae)
    return [
        Candidate({**settings, "draws": n_draws}, model, n_draws)
        for settings, model in zip(grids.simvae, fitted, strict=True)
        for n_draws in (None, grids.n_draws)
    ]


def _gp_prior(X: Array, grids: Grids, seed: int) -> list[Candidate]:
    return [
        Candidate({"neighborhood": k}, GPPrior(N_COMPONENTS, kernel=kernel, random_state=seed).fit(X), grids.n_draws)
        for k, kernel in grids.kernels.items()
    ]


def gpssl(X: Array, grids: Grids, seed: int, *, n_draws: int | None) -> list[Candidate]:
    """GPSSL with each kernel and each temperature; one pass over the rows for each kernel."""
    candidates = []
    for k, kernel in grids.kernels.items():
        base = GPSSL(N_COMPONENTS, kernel=kernel, random_state=seed).partial_fit(X)
        for temperature in grids.temperatures:
            settings = {"neighborhood": k, "temperature": temperature}
            candidates.append(Candidate(settings, base.refit(temperature=temperature), n_draws))
    return candidates


def _gpssl_mean(X: Array, grids: Grids, seed: int) -> list[Candidate]:
    return gpssl(X, grids, seed, n_draws=None)


def _gpssl_full(X: Array, grids: Grids, seed: int) -> list[Candidate]:
    return gpssl(X, grids, seed, n_draws=grids.n_draws)


REPRESENTATIONS: dict[str, Callable[[Array, Grids, int], list[Candidate]]] = {
    "Original": _original,
    "PCA": _pca,
    "VICReg": _vicreg,
    "VICReg-wide": _wide_vicreg,
    "SCARF": _scarf,
    "SimVAE": _simvae,
    "kernel PCA": _kernel_pca,
    "GPSSL-mean": _gpssl_mean,
    "GPSSL-full": _gpssl_full,
    "GP-prior": _gp_prior,
}

SUPERVISED = "supervised GP"
"""A Gaussian process with the same kernel, trained on the labels: what heads on many draws from the prior approach."""

METHODS = (*REPRESENTATIONS, SUPERVISED)

PAPER_AND_KERNEL_METHODS = tuple(method for method in METHODS if method not in ("VICReg-wide", "SCARF", "SimVAE"))
"""Without the further networks, which take long."""


class Model(NamedTuple):
    """A model with `fit` and predictions, not yet trained, and the settings it stands for."""

    settings: dict[str, Any]
    estimator: Any


def models(method: str, X: Array, grids: Grids, seed: int, *, head: Any, regression: bool = False) -> list[Model]:
    """All candidates of a method as classifiers or regressors: representations fitted to X, heads still to be trained."""
    if method == SUPERVISED:
        make = SupervisedGPRegressor if regression else SupervisedGPClassifier
        return [Model({"neighborhood": k}, make(kernel.resolve(X), random_state=seed)) for k, kernel in grids.kernels.items()]
    kind = MarginalizedRegressor if regression else MarginalizedClassifier
    return [
        Model(settings, kind(FrozenEstimator(representation), head, n_draws=n_draws, random_state=seed))
        for settings, representation, n_draws in REPRESENTATIONS[method](X, grids, seed)
    ]
