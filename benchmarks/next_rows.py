"""Which rows to label next, on a large table: what it takes beyond the fit, and how that grows with the rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from gpssl import MarginalizedClassifier
from gpssl.active import suggest

from .measurement import Run, alternate, measure, median_seconds, table_row
from .pool import N_LABELS, table
from .report import Comparison, Finding

SMALL, LARGE, N_SUGGESTED = 10_000, 100_000, 20
MOST_SECONDS = 60.0
MOST_GROWTH = 1.5
"""Ten times the rows may take so many times ten times the seconds."""

SETTING = f"""\
The table of the benchmark of the pool: 20 numbers, two classes, {N_LABELS} labels. The default model is fitted to all rows; then
`suggest(model, X, {N_SUGGESTED}, y=labels)` predicts all rows, represents them by what the labels believe in, and chooses {N_SUGGESTED}
of them. Seconds are those of one core, whoever else uses the machine."""


def after_fit(n_rows: int) -> Run:
    """Suggest rows, beyond the fit; the note has the seconds of the fit."""
    X, y = table(n_rows)
    few = np.where(np.arange(n_rows) < N_LABELS, y, -1)
    small = MarginalizedClassifier(random_state=0).fit(X[:200], few[:200])
    suggest(small, X[:200], 5, y=few[:200])  # imports what is needed
    model = MarginalizedClassifier(random_state=0)
    fit = _cpu_seconds_of(lambda: model.fit(X, few))
    seconds: list[float] = []
    run = measure(lambda: seconds.append(_cpu_seconds_of(lambda: suggest(model, X, N_SUGGESTED, y=few))))
    return run._replace(seconds=seconds[0], note=f"{seconds[0] / fit:.1f} fits, of {fit:.1f} s")


def _cpu_seconds_of(call: Callable[[], object]) -> float:
    """Measure what one call takes of all cores together."""
    started = time.process_time()
    call()
    return time.process_time() - started


def compare(*, quick: bool) -> Comparison:
    """Measure a table, and a larger one."""
    small, large = (SMALL // 10, SMALL) if quick else (SMALL, LARGE)
    jobs: dict[str, Callable[[], Run]] = {f"suggest, {n_rows:,} rows": partial(after_fit, n_rows) for n_rows in (small, large)}
    runs = alternate(jobs, repeats=1)
    of_small, of_large = (median_seconds(mine) for mine in runs.values())
    growth = of_large / of_small / (large / small)
    return Comparison(
        title="Which rows to label next",
        setting=SETTING,
        header=("call", "seconds (range)", "memory, MB", "beside the fit"),
        rows=[table_row(name, mine) for name, mine in runs.items()],
        findings=[
            Finding(f"{large:,} rows in at most {MOST_SECONDS:.0f} s beyond the fit", f"{of_large:.1f} s", of_large <= MOST_SECONDS),
            Finding("linear in the rows", f"{growth:.2f} times the seconds of each row", growth <= MOST_GROWTH),
        ],
    )
