"""What several tests of predictions share."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils.estimator_checks import check_estimator

from gpssl import GPSSL, MarginalizedClassifier, RepresentationPool
from gpssl.kernels import StandardizedKernel

Array = NDArray[np.float64]


def frozen_full(ssl: GPSSL, head: Any = None, **params: Any) -> MarginalizedClassifier:
    return MarginalizedClassifier(FrozenEstimator(ssl), head, random_state=0, **{"n_draws": 10, "weighting": "equal", **params})


SMALL_POOLS = (
    RepresentationPool([("columns", StandardizedKernel("linear")), ("learned", GPSSL(2, kernel=StandardizedKernel()), "kernel")]),
    RepresentationPool([("prior", RBF()), ("learned", GPSSL(2))]),
)
"""One for tables, one for vectors with draws."""


def run_checks(estimator: BaseEstimator, expected: dict[str, str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on few rows, representations have things to say
        results = check_estimator(estimator, expected_failed_checks=expected)
    assert {result["check_name"] for result in results if result["status"] == "xfail"} == set(expected)
    assert {result["status"] for result in results} <= {"passed", "skipped", "xfail"}
    assert sum(result["status"] == "passed" for result in results) > 45


class Certain(BaseEstimator):
    """A representation without uncertainty."""

    def fit(self, X: Array, y: Any = None) -> Certain:
        self.fitted_ = PCA(2).fit(X)
        return self

    def transform(self, X: Array) -> Array:
        return self.fitted_.transform(X)

    def draw_functions(self, n_draws: int, random_state: Any = None) -> Any:
        return lambda X: np.repeat(self.transform(X)[None], n_draws, axis=0)


class Counted(Certain):
    """A representation whose draws differ, and which counts the rows that its functions are evaluated at."""

    n_evaluated = 0

    def draw_functions(self, n_draws: int, random_state: Any = None) -> Any:
        shifts = np.random.default_rng(0).normal(scale=0.3, size=(n_draws, 1, 2))

        def evaluate(X: Array) -> Array:
            Counted.n_evaluated += len(X)
            return self.transform(X) + shifts

        return evaluate
