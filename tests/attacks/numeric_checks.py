"""What may come of a table: numbers that mean something, the same ones each time, or one sentence."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import kernels as sk

import gpssl
from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor
from gpssl import kernels as k
from gpssl.core._posterior import DrawnWeights, GaussianWeights
from gpssl.inference import Sampling
from gpssl.kernels._protocol import kernel_diagonal

Array = NDArray[Any]

ROUNDING = 1e-6
"""How far a standard deviation may be above that of the prior, and a sum of probabilities from one."""
AGREEMENT = 1e-7
"""How far results may differ in another layout in memory, relative to the largest: BLAS adds in another order."""
LONGEST_SENTENCE = 700
FEW = 8
"""Rows at which functions are drawn."""

KERNELS: dict[str, Callable[[], Any]] = {
    "default": lambda: None,
    "RBF": lambda: sk.RBF(1.0),
    "Matérn": lambda: sk.Matern(2.0, nu=1.5),
    "linear": lambda: sk.DotProduct(1.0),
    "median": lambda: k.NeighborRBF(5, reduce="median", per_column=False),
    "standardized": lambda: k.StandardizedKernel(),
    "normal scores": lambda: k.StandardizedKernel("laplace", scores=True),
    "standardized, linear": lambda: k.StandardizedKernel("linear"),
    "incomplete": lambda: k.IncompleteRBF(),
    "categories": lambda: k.CategoryKernel(),
    "positions": lambda: k.OrdinalKernel(),
    "diffusion": lambda: k.NeighborDiffusion(5),
    "nearest neighbors": lambda: k.NearestNeighborGP(4),
}


class WrongResultError(Exception):
    """What must not come of a table."""


def _model(rng: np.random.Generator, **fixed: Any) -> GPSSL:
    kernel = list(KERNELS)[int(rng.integers(len(KERNELS)))] if rng.random() < 0.7 else "default"
    inference: Any = rng.choice(["variational", "variational", "mode", "sampling"])
    inference = Sampling(n_chains=2, n_warmup=20, n_samples=20) if inference == "sampling" else str(inference)
    n_components = int(rng.integers(1, 5))
    return GPSSL(**{"n_components": n_components, "kernel": KERNELS[kernel](), "inference": inference, "random_state": 0, **fixed})


# What is done with a table. Each returns the numbers that must be the same bits on repetition.


def learn(X: Any, rng: np.random.Generator) -> list[Array]:
    """Fit a representation, and look at its means, standard deviations and draws."""
    ssl = _model(rng).fit(X)
    mean, std = ssl.mean_and_std(X)
    _finite("transform", mean)
    _finite("std", std)
    largest = np.sqrt(_prior_variance(ssl, X)) * _widening(ssl)
    if std.min(initial=0.0) < 0 or (std > (1 + ROUNDING) * largest[:, None]).any():
        raise WrongResultError(f"std beyond the prior: {(std / largest[:, None]).max():.6g} of it, at least {std.min():.3g}, {ssl.report_}")
    if mean.shape != (len(mean), ssl.n_components) or std.shape != mean.shape:
        raise WrongResultError(f"shapes {mean.shape} and {std.shape} for {ssl.n_components} components")
    if not np.isfinite(ssl.objective_) or not 0 <= ssl.residual_ <= 1 + ROUNDING:
        raise WrongResultError(f"objective {ssl.objective_}, residual {ssl.residual_}")
    few = X[:FEW] if not hasattr(X, "iloc") else X.iloc[:FEW]
    drawn = ssl.sample(few, 3)
    _finite("sample", drawn)
    _finite("drawn functions", ssl.draw_functions(2)(few))
    return [mean, std, drawn]


def classify(X: Any, rng: np.random.Generator) -> list[Array]:
    """Train a classifier on few labels, with a pool or a fixed representation."""
    n_rows, n_classes = _n_rows(X), int(rng.integers(2, 5))
    y = rng.integers(n_classes, size=n_rows)
    y[int(rng.integers(2, 20)) :] = -1
    model = MarginalizedClassifier(_representation(rng), n_draws=4, random_state=0).fit(X, y)
    proba, std = model.predict_proba(X), model.predict_proba_std(X)
    _finite("predict_proba", proba)
    _finite("predict_proba_std", std)
    if proba.min() < 0 or proba.max() > 1 + 1e-12 or np.abs(proba.sum(axis=1) - 1).max() > ROUNDING:
        raise WrongResultError(f"probabilities from {proba.min()} to {proba.max()} with sums up to {proba.sum(axis=1).max()}")
    if std.min() < 0 or std.max() > 0.5 + ROUNDING:
        raise WrongResultError(f"standard deviations of probabilities from {std.min()} to {std.max()}")
    if not np.isin(model.predict(X), model.classes_).all():
        raise WrongResultError("a class that is none")
    return [proba, std]


def regress(X: Any, rng: np.random.Generator) -> list[Array]:
    """Train a regressor on few labels, with a pool or a fixed representation."""
    n_rows = _n_rows(X)
    y = rng.standard_normal(n_rows) * 10.0 ** rng.choice([-150, -8, 0, 0, 8, 150])
    y[int(rng.integers(2, 20)) :] = np.nan
    model = MarginalizedRegressor(_representation(rng), n_draws=4, random_state=0).fit(X, y)
    mean, std = model.predict(X), model.predict_std(X)
    _finite("predict", mean)
    _finite("its std", std)
    if std.min(initial=0.0) < 0:
        raise WrongResultError(f"a standard deviation of {std.min()}")
    return [mean, std]


def label(X: Any, rng: np.random.Generator) -> list[Array]:
    """Label the rows of a table, as a person would."""
    frame = _as_frame(X)
    kind = int(rng.integers(3))
    target = rng.choice(["yes", "no", "perhaps"][: 2 + kind // 2], len(frame)) if kind else rng.standard_normal(len(frame)).round(3)
    target = target.astype(object)
    target[rng.random(len(frame)) < 0.5] = None
    result = gpssl.label(frame.assign(answer=target), "answer")
    found = result.frame()
    numbers = [found[name].dropna().to_numpy(dtype=np.float64) for name in found if not name.endswith(("_predicted", "_abstain"))]
    for column in numbers:
        _finite("label", column)
    if "answer_probability" in found and not found["answer_probability"].dropna().between(0, 1).all():
        raise WrongResultError("a probability that is none")
    return numbers


def embed(X: Any, rng: np.random.Generator) -> list[Array]:
    """Embed the rows of a table, as a person would."""
    found = gpssl.embed(_as_frame(X), n_components=int(rng.integers(1, 4))).frame()
    numbers = found.select_dtypes("number").to_numpy(dtype=np.float64)
    _finite("embed", numbers)
    return [numbers]


CONSUMERS: dict[str, Callable[[Any, np.random.Generator], list[Array]]] = {
    one.__name__: one for one in (learn, classify, regress, label, embed)
}


def _representation(rng: np.random.Generator) -> Any:
    return None if rng.random() < 0.5 else _model(rng, inference="variational")


def _n_rows(X: Any) -> int:
    return int(X.shape[0])


def _as_frame(X: Any) -> Any:
    """Return a pandas data frame, which the workflows take."""
    if isinstance(X, pl.DataFrame):
        return X.to_pandas()
    if hasattr(X, "to_pandas"):
        return X.to_pandas()
    if isinstance(X, pd.DataFrame):
        return X
    if hasattr(X, "toarray"):
        X = X.toarray()
    if np.ndim(X) != 2:
        return pd.DataFrame({"cells": np.ravel(X)})
    return pd.DataFrame(np.asarray(X), columns=[f"column {place}" for place in range(X.shape[1])])


def _prior_variance(ssl: GPSSL, X: Any) -> Array:
    from gpssl.core._checked_rows import check_new_rows

    return np.concatenate([kernel_diagonal(ssl.kernel_, part.rows) for part in check_new_rows(ssl, X, ssl.kernel_).parts()])


def _widening(ssl: GPSSL) -> float:
    """Return how much wider than the prior the posterior is in the direction in which it is widest.

    At high temperatures the losses ask for more spread than the prior has. Of a sampled posterior, few draws tell nothing of the kind.
    """
    weights = ssl.posterior_.weights
    if isinstance(weights, DrawnWeights):
        return float("inf")
    return max(1.0, float(weights.std.max(initial=0.0))) if isinstance(weights, GaussianWeights) else 1.0


def _finite(what: str, values: Any) -> None:
    if not np.isfinite(np.asarray(values, dtype=np.float64)).all():
        raise WrongResultError(f"{what} is not finite")


# Checks


def other_layout(X: Any, rng: np.random.Generator) -> Any:
    """Return the same numbers in another layout in memory: read-only, in Fortran's order, or every other cell of a larger array."""
    if not isinstance(X, np.ndarray) or X.ndim != 2 or isinstance(X, np.ma.MaskedArray):
        return X
    kind = int(rng.integers(4))
    if kind == 0:
        other = X.copy()
        other.setflags(write=False)
        return other
    if kind == 1:
        return np.asfortranarray(X)
    larger = np.zeros((2 * X.shape[0], 3 * X.shape[1]), dtype=X.dtype)
    if kind == 2:
        larger[::2, 1::3] = X
        return larger[::2, 1::3]
    larger[: X.shape[0], : X.shape[1]] = X[::-1, ::-1]
    return larger[: X.shape[0], : X.shape[1]][::-1, ::-1]


def outcome(consumer: str, X: Any, seed: list[int]) -> dict[str, Any]:
    """Do the same thing with a table twice, sometimes in another layout, and say what is wrong, or how it ended."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first = _attempt(consumer, X, seed)
    fault = first.fault
    for warning in caught:
        if warning.category not in (UserWarning, ConvergenceWarning):
            fault = fault or f"{warning.category.__name__} in {warning.filename}:{warning.lineno}: {warning.message}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rng = np.random.default_rng(seed)
        same_bits = rng.random() < 0.5
        second = _attempt(consumer, X if same_bits else other_layout(X, rng), seed)
    fault = fault or _disagreement(first, second, same_bits=same_bits)
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(values).tobytes() for values in first.results)).hexdigest()[:16]
    return {"fault": fault, "error": first.error, "bits": digest, "warnings": sorted({str(one.message) for one in caught})}


class Attempt(NamedTuple):
    """What came of a table: numbers, a documented error, or a fault."""

    results: list[Array]
    error: str = ""
    fault: str = ""


def _disagreement(one: Attempt, other: Attempt, *, same_bits: bool) -> str:
    if (one.error, one.fault) != (other.error, other.fault):
        return f"another end at the second time: {one.error or one.fault or 'a result'} and {other.error or other.fault or 'a result'}"
    pairs = list(zip(one.results, other.results, strict=True))
    if same_bits and any(not np.array_equal(*pair) for pair in pairs):
        return "other bits at the second time"
    if any(a.shape != b.shape or not np.allclose(a, b, rtol=AGREEMENT, atol=AGREEMENT * np.abs(a).max(initial=0.0)) for a, b in pairs):
        return "another result in another layout: " + ", ".join(f"{np.abs(a - b).max(initial=0.0):.2g}" for a, b in pairs)
    return ""


def _attempt(consumer: str, X: Any, seed: list[int]) -> Attempt:
    try:
        return Attempt(CONSUMERS[consumer](X, np.random.default_rng([*seed, 1])))
    except WrongResultError as wrong:
        return Attempt([], fault=str(wrong))
    except (ValueError, TypeError) as error:
        fault = "" if _is_sentence(str(error)) else f"{type(error).__name__} without a sentence: {str(error)[:300]}"
        return Attempt([], f"{type(error).__name__}: {error}", fault)
    except Exception as error:
        return Attempt([], fault=f"{type(error).__name__}: {error}")


def _is_sentence(text: str) -> bool:
    """Return whether a person can read a text: it begins and ends like a sentence, or one follows on it."""
    text = text.strip()
    begins = bool(text) and (text[0].isupper() or not text[0].isalpha() or ". " in text)
    return begins and text[-1] in ".!?)'\"" and len(text) <= LONGEST_SENTENCE
