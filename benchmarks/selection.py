"""A search over 60 settings, in units of one fit."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

from gpssl import GPSSL, MarginalizedClassifier
from gpssl.downstream import RepresentationSearch
from gpssl.kernels import NeighborRBF

from .measurement import Run, alternate, measure, median_seconds, table_row
from .report import Comparison, Finding

TARGET_RATIO = 10

SETTING = """\
The breast cancer table (569 rows, 30 columns), 114 labels. {n_candidates} candidates: neighborhoods, temperatures, numbers of
components and variance weights; one split of the labels into 80 % and 20 %. The search includes a pass over the data for each
kernel, the precise scores of the best tenth, and the fit of the best. With `n_draws=None` there is one head for each candidate, on
the mean representation; with 100 draws there are 100."""


def few_labels() -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return all rows, and labels for a fifth of them."""
    X, y = load_breast_cancer(return_X_y=True)
    labeled = np.random.default_rng(0).permutation(len(y))[:114]
    few = np.full(len(y), -1)
    few[labeled] = y[labeled]
    return X, few


def fit_one(n_draws: int | None) -> Run:
    """Fit one setting."""
    X, y = few_labels()
    model = MarginalizedClassifier(GPSSL(5, random_state=0), n_draws=n_draws, weighting="equal", random_state=0)
    model.fit(X, y)
    return measure(lambda: model.fit(X, y))


def search(n_draws: int | None, grid: dict[str, list[Any]]) -> Run:
    """Search over the grid."""
    X, y = few_labels()
    estimator = MarginalizedClassifier(GPSSL(5, random_state=0), n_draws=n_draws, weighting="equal")
    model = RepresentationSearch(estimator, grid, random_state=0)
    model.estimator.fit(X, y)
    run = measure(lambda: model.fit(X, y))
    best = model.best_params_
    chosen = f"neighborhood {best['kernel'].neighborhood}, temperature {best['temperature']}, {best['n_components']} components"
    return run._replace(note=f"best: {chosen}, log-likelihood {model.best_score_:.3f}")


def compare(*, quick: bool) -> Comparison:
    """Compare the search with one fit, with one head and with 100."""
    grid: dict[str, list[Any]] = {
        "kernel": [NeighborRBF(size) for size in (5, 10, 20)],
        "temperature": ["auto", 0.01, 0.1, 1.0, 10.0],
        "n_components": [3, 5],
        "variance_weight": [25.0, 50.0],
    }
    if quick:
        grid = {**grid, "temperature": ["auto"]}
    n_candidates = int(np.prod([len(values) for values in grid.values()]))
    results = alternate(
        {
            name: job
            for n_draws in (None, 100)
            for name, job in (
                (f"one fit, n_draws={n_draws}", partial(fit_one, n_draws)),
                (f"search, n_draws={n_draws}", partial(search, n_draws, grid)),
            )
        }
    )
    findings = []
    for n_draws in (None, 100):
        ratio = median_seconds(results[f"search, n_draws={n_draws}"]) / median_seconds(results[f"one fit, n_draws={n_draws}"])
        heads = "one head each" if n_draws is None else f"{n_draws} heads each"
        findings.append(Finding(f"less than {TARGET_RATIO} times one fit ({heads})", f"{ratio:.3g} times", ratio < TARGET_RATIO))
    return Comparison(
        title=f"Search over {n_candidates} settings",
        setting=SETTING.format(n_candidates=n_candidates),
        header=("", "seconds (range)", "memory, MB", ""),
        rows=[table_row(name, runs) for name, runs in results.items()],
        findings=findings,
    )
