"""Heads of many draws at once and one by one: what the comparisons of heads share."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from gpssl import GPSSL

from .measurement import Run, measure, median_seconds, table_row
from .report import Comparison, Finding

Array = NDArray[np.float64]

TARGET_RATIO = 20
SAME_ACCURACY = 0.01

SETTING = """\
{n_draws} functions drawn from `GPSSL(5)` on the digits 0 to 7 (8 classes), evaluated at {n_labeled} labeled rows to train a head for
each, and at the other rows to test; the accuracy is that of the average over heads. The features of each draw are standardized for
all, as scikit-learn advises: without, `LogisticRegression` takes hundreds of iterations. {more}"""


class Draws(NamedTuple):
    """Features of rows under drawn functions."""

    Z: Array
    y: NDArray[np.intp]
    Z_test: Array
    y_test: NDArray[np.intp]


@lru_cache(maxsize=1)
def drawn_digits(n_draws: int, n_labeled: int) -> Draws:
    """Digits 0 to 7 under functions drawn from the posterior."""
    X, y = load_digits(return_X_y=True)
    X, y = X[y < 8], y[y < 8]
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 512 inducing points leave some of the variance open, which does not matter here
        Z = GPSSL(5, random_state=0).fit(X).draw_functions(n_draws)(X)
    Z = (Z - Z[:, :n_labeled].mean(axis=1, keepdims=True)) / Z[:, :n_labeled].std(axis=1, keepdims=True)
    return Draws(np.ascontiguousarray(Z[:, :n_labeled]), y[:n_labeled], Z[:, n_labeled:], y[n_labeled:])


def fit_at_once(head: Any, n_draws: int, n_labeled: int) -> Run:
    """Train a head of ours for all draws."""
    draws = drawn_digits(n_draws, n_labeled)
    head.fit_draws(draws.Z[:2], draws.y)
    fitted: list[Any] = []
    run = measure(lambda: fitted.append(head.fit_draws(draws.Z, draws.y)))
    proba = fitted[0].predict_proba(draws.Z_test).mean(axis=0)
    return run._replace(note=_accuracy(proba, fitted[0].classes, draws.y_test))


def fit_one_by_one(head: Any, n_draws: int, n_labeled: int) -> Run:
    """Train a clone of scikit-learn's head for each draw."""
    draws = drawn_digits(n_draws, n_labeled)
    head.fit(draws.Z[0], draws.y)
    fitted: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # after 200 epochs
        run = measure(lambda: fitted.extend(type(head)(**head.get_params()).fit(Z, draws.y) for Z in draws.Z))
    proba = np.mean([one.predict_proba(Z) for one, Z in zip(fitted, draws.Z_test, strict=True)], axis=0)
    return run._replace(note=_accuracy(proba, head.classes_, draws.y_test))


def _accuracy(proba: Array, classes: NDArray[Any], y: NDArray[np.intp]) -> str:
    return f"accuracy {(classes[proba.argmax(axis=1)] == y).mean():.3f}"


def comparison(title: str, more: str, sizes: tuple[int, int], results: dict[str, list[Run]], pairs: list[tuple[str, str]]) -> Comparison:
    """Write what was measured, and for each pair how much faster the second is."""
    findings = []
    for theirs, ours in pairs:
        ratio = median_seconds(results[theirs]) / median_seconds(results[ours])
        measured = f"`{ours}`: {ratio:.3g}× the speed of {sizes[0]} × `{theirs}`, {results[ours][0].note} against {results[theirs][0].note}"
        gains = [float(results[name][0].note.split()[1]) for name in (ours, theirs)]
        met = ratio >= TARGET_RATIO and gains[0] >= gains[1] - SAME_ACCURACY
        findings.append(Finding(f"at least {TARGET_RATIO}× the speed, same accuracy (within {SAME_ACCURACY})", measured, met))
    return Comparison(
        title=title,
        setting=SETTING.format(n_draws=sizes[0], n_labeled=sizes[1], more=more),
        header=("fit", "seconds (range)", "memory, MB", "average over heads"),
        rows=[table_row(name, runs) for name, runs in results.items()],
        findings=findings,
    )
