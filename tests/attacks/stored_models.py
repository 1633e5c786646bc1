"""Small fitted models of every kind that a file may hold, each with rows that it can be asked about."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import kernels as sk
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stored_sums import X, write_sums

import gpssl
from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor, RepresentationPool
from gpssl import kernels as k
from gpssl.baselines import GPPrior
from gpssl.clustering import PosteriorClustering
from gpssl.downstream import BayesianLogisticRegression, PerceptronClassifier
from gpssl.inference import Sampling
from kinds_of_rows import KINDS

N_ASKED = 8
"""Rows that a loaded model is asked about."""

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
Y = np.where(np.arange(40) < 20, np.arange(40) % 2, -1)
Y3 = np.where(np.arange(40) < 24, np.arange(40) % 3, -1)
TARGET = np.where(np.arange(40) < 20, X[:, 0] + 0.1 * RNG.standard_normal(40), np.nan)


class Fitted(NamedTuple):
    """A fitted model, rows to ask it about, and what else `save` gets."""

    model: Any
    rows: Any
    trained_on: Any = None


def small(**parameters: Any) -> GPSSL:
    return GPSSL(**{"n_components": 2, "max_inducing": 8, "residual_tolerance": 0.9, "random_state": 0, **parameters})


def _of_kind(name: str) -> Fitted:
    kind = KINDS[name]
    rows = kind.table(kind.training)
    return Fitted(small(kernel=kind.kernel, inference="mode").fit(rows), kind.table(kind.training[:N_ASKED]))


def _on_numbers(model: Any, y: Any = None) -> Fitted:
    return Fitted(model.fit(X) if y is None else model.fit(X, y), X[:N_ASKED], X)


def _on_a_frame(model: Any, y: Any = None, kind: str = "for_table") -> Fitted:
    frame = KINDS[kind].table(KINDS[kind].training)
    return Fitted(model.fit(frame) if y is None else model.fit(frame, y), frame[:N_ASKED], frame)


def _between_batches() -> Fitted:
    return Fitted(small().partial_fit(X[:30]), X[:N_ASKED])


def _pool(*members: Any) -> RepresentationPool:
    return RepresentationPool(list(members), random_state=0)


def _columns(ssl: Any = None) -> tuple[Any, ...]:
    return ("columns", k.StandardizedKernel("linear")), ("learned", small() if ssl is None else ssl, "kernel")


MODELS: dict[str, Callable[[], Fitted]] = {
    **{f"kernel {name}": lambda name=name: _of_kind(name) for name in KINDS if name not in ("from_gpytorch", "CallableKernel")},  # type: ignore[misc]
    "variational": lambda: _on_numbers(small()),
    "named columns": lambda: Fitted(small().set_output(transform="pandas").fit(FRAME), FRAME[:N_ASKED], FRAME),
    "sampling": lambda: _on_numbers(small(inference=Sampling(2, 20, 40))),
    "negative variance": lambda: _on_numbers(small(variance_loss="negative", temperature=100.0)),
    "between batches": _between_batches,
    "given points": lambda: _on_numbers(small(inducing=X[:9], random_state=np.random.RandomState(3))),
    "kernels of scikit-learn": lambda: _on_numbers(
        small(kernel=2.0 * sk.RBF([1.0, 2.0, 3.0]) + sk.Matern(2.0) * sk.RationalQuadratic() + sk.WhiteKernel(0.1))
    ),
    "more kernels of scikit-learn": lambda: _on_numbers(
        small(kernel=sk.DotProduct() ** 2.0 + sk.ExpSineSquared(periodicity=7.0) + sk.ConstantKernel(0.5))
    ),
    "prior": lambda: _on_numbers(GPPrior(2, max_inducing=8, random_state=0)),
    "classifier": lambda: _on_numbers(MarginalizedClassifier(small(), n_draws=4, random_state=1), Y),
    "classifier of a frame": lambda: _on_a_frame(MarginalizedClassifier(small(), n_draws=4, random_state=0), Y),
    "classifier of texts": lambda: _on_a_frame(MarginalizedClassifier(small(), n_draws=3, random_state=0), Y3, "for_table, text"),
    "mean": lambda: _on_numbers(MarginalizedClassifier(small(), n_draws=None), Y3),
    "sampled head": lambda: _on_numbers(
        MarginalizedClassifier(small(), BayesianLogisticRegression(predictive="sampled", random_state=0), n_draws=3, random_state=0), Y3
    ),
    "perceptron": lambda: _on_numbers(
        MarginalizedClassifier(small(), PerceptronClassifier(4, max_epochs=3, random_state=0), n_draws=3, random_state=0), Y3
    ),
    "clones": lambda: _on_numbers(MarginalizedClassifier(small(), LogisticRegression(), n_draws=3, random_state=0), Y),
    "clones of a pipeline": lambda: _on_numbers(
        MarginalizedClassifier(small(), make_pipeline(StandardScaler(), LogisticRegression()), n_draws=3, random_state=0), Y3
    ),
    "prior with heads": lambda: _on_numbers(MarginalizedClassifier(GPPrior(2, max_inducing=8), n_draws=3, random_state=0), Y),
    "frozen": lambda: _on_numbers(MarginalizedClassifier(FrozenEstimator(small().fit(X)), n_draws=3, random_state=0), Y),
    "no path": lambda: _on_numbers(MarginalizedClassifier(small(kernel=k.NeighborDiffusion(5)), n_draws=3, random_state=0), Y),
    "regressor": lambda: _on_numbers(MarginalizedRegressor(small(), n_draws=4, random_state=0), TARGET),
    "ridge": lambda: _on_numbers(MarginalizedRegressor(small(), Ridge(), n_draws=3, random_state=0), TARGET),
    "Bayesian ridge": lambda: _on_numbers(MarginalizedRegressor(small(), BayesianRidge(), n_draws=3, random_state=0), TARGET),
    "least squares": lambda: _on_numbers(MarginalizedRegressor(small(), LinearRegression(), n_draws=None), TARGET),
    "pool": lambda: _on_numbers(
        MarginalizedClassifier(_pool(*_columns(), ("draws", small()), ("prior", GPPrior(2, max_inducing=8))), n_draws=3, random_state=0), Y3
    ),
    "pool of a frame": lambda: _on_a_frame(MarginalizedClassifier(_pool(*_columns()), random_state=0), Y),
    "pool with frozen": lambda: _on_numbers(
        MarginalizedClassifier(FrozenEstimator(_pool(*_columns(FrozenEstimator(small().fit(X)))).fit(X)), random_state=0), Y
    ),
    "pool of means": lambda: _on_numbers(
        MarginalizedRegressor(_pool(*_columns(), ("mean", small())), n_draws=None, random_state=0), TARGET
    ),
    "pool of numbers": lambda: _on_a_frame(MarginalizedRegressor(_pool(*_columns()), random_state=0), TARGET),
    "pool alone": lambda: _on_numbers(_pool(*_columns(), ("draws", small()))),
    "clusters": lambda: _on_numbers(PosteriorClustering(2, small(), n_draws=4, random_state=0)),
    "clusters of a prior": lambda: _on_numbers(PosteriorClustering("auto", GPPrior(2, max_inducing=8), n_draws=4, random_state=0)),
    "words of a vectorizer": lambda: Fitted(
        small(kernel=k.TfidfKernel(TfidfVectorizer(ngram_range=(1, 2), stop_words="english", min_df=1)), inference="mode").fit(
            KINDS["TfidfKernel"].training
        ),
        KINDS["TfidfKernel"].training[:N_ASKED],
    ),
}


def write_models(folder: Path) -> None:
    """Fit and save them all, each with its rows beside it."""
    for number, (name, build) in enumerate(MODELS.items()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few rows, few inducing points
            fitted = build()
        gpssl.save(fitted.model, folder / f"{number:02d}.gpssl", trained_on=fitted.trained_on, notes={"name": name})
        (folder / f"{number:02d}.rows").write_bytes(pickle.dumps(fitted.rows))


if __name__ == "__main__":
    import sys

    write_models(Path(sys.argv[1]))
    write_sums(Path(sys.argv[1]))
