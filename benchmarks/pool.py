"""The default pool: against a random forest on a small table, and against one `GPSSL` for each of its kernels on a large one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process.kernels import Kernel

from gpssl import GPSSL, MarginalizedClassifier, RepresentationPool
from gpssl._runtime import POOL_INDUCING, POOL_TOLERANCE

from .measurement import Run, alternate, measure, median_seconds, table_row
from .report import Comparison, Finding

Array = NDArray[np.float64]

SMALL, LARGE, N_COLUMNS, N_LABELS = 1000, 100_000, 20, 100
MOST_FORESTS, MOST_FITS = 5, 3
FOREST, POOL, KERNELS = "RandomForestClassifier(500)", "MarginalizedClassifier()", "one GPSSL(5) for each kernel"

SETTING = f"""\
A table of {N_COLUMNS} numbers by `make_classification`, two classes. With {SMALL:,} rows: training on {N_LABELS} labels (the pool: also on
the rows without) and probabilities for all rows. With {LARGE:,} rows: the same for the pool, against fits of `GPSSL(5)` with each of its
kernels one after the other, with as many inducing points."""


def table(n_rows: int) -> tuple[Array, NDArray[np.intp]]:
    """Return rows and classes."""
    return make_classification(n_rows, N_COLUMNS, n_informative=8, random_state=0)


def forest() -> Run:
    """Train 500 trees, and predict all rows."""
    X, y = table(SMALL)
    return measure(lambda: RandomForestClassifier(500, random_state=0).fit(X[:N_LABELS], y[:N_LABELS]).predict_proba(X))


def pool(n_rows: int) -> Run:
    """Fit the default pool and its heads, and predict all rows."""
    X, y = table(n_rows)
    few = np.where(np.arange(n_rows) < N_LABELS, y, -1)
    MarginalizedClassifier(random_state=0).fit(X[:200], few[:200])  # imports what is needed
    return measure(lambda: MarginalizedClassifier(random_state=0).fit(X, few).predict_proba(X))


def kernels(n_rows: int) -> Run:
    """Fit one model for each kernel of the pool."""
    X, _ = table(n_rows)
    found = {repr(kernel): kernel for kernel in map(_kernel_of, RepresentationPool.for_rows(X).members or [])}
    GPSSL(5, random_state=0).fit(X[:200])

    def fit_all() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some kernels have fewer than five directions or a residual
            for kernel in found.values():
                GPSSL(5, kernel=kernel, residual_tolerance=POOL_TOLERANCE, max_inducing=POOL_INDUCING, random_state=0).fit(X)

    return measure(fit_all)._replace(note=f"{len(found)} kernels")


def _kernel_of(member: tuple[str, object]) -> Kernel:
    return member[1] if isinstance(member[1], Kernel) else member[1].kernel  # type: ignore[attr-defined]


def compare(*, quick: bool) -> Comparison:
    """Measure all, in turns."""
    n_rows = SMALL if quick else LARGE
    small_jobs: dict[str, Callable[[], Run]] = {FOREST: forest, POOL: partial(pool, SMALL)}
    large_jobs: dict[str, Callable[[], Run]] = {KERNELS: partial(kernels, n_rows), f"{POOL}, {n_rows:,} rows": partial(pool, n_rows)}
    small, large = alternate(small_jobs), alternate(large_jobs, repeats=1)
    by_forests = median_seconds(small[POOL]) / median_seconds(small[FOREST])
    fits, of_pool = (median_seconds(runs) for runs in large.values())
    return Comparison(
        title="The default pool",
        setting=SETTING,
        header=("call", "seconds (range)", "memory, MB", ""),
        rows=[table_row(name, runs) for name, runs in {**small, **large}.items()],
        findings=[
            Finding(f"at most {MOST_FORESTS} forests on {SMALL:,} rows", f"{by_forests:.1f} forests", by_forests <= MOST_FORESTS),
            Finding(
                f"at most {MOST_FITS} fits for each kernel on {n_rows:,} rows", f"{of_pool / fits:.1f} fits", of_pool <= MOST_FITS * fits
            ),
        ],
    )
