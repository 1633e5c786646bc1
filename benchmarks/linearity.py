"""Time against the number of rows, from ten thousand to a million."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import NamedTuple

from sklearn.gaussian_process.kernels import RBF

from gpssl import GPSSL
from gpssl.core._checked_rows import rows_in_memory
from gpssl.core._moments import moments_of_rows

from .data import WARM_UP_ROWS, latent_table, residual_accepted, shared_lengthscale
from .measurement import alternate, seconds_of
from .report import Comparison, Finding

TARGET_RATIO = 1.1
"""How far above 1 still counts as linear."""
N_COLUMNS = 10
N_POINTS = 256
PASSES = 3

SETTING = """\
Tables of {n_columns} columns, {n_points} inducing points, the same kernel. A fit is the choice of inducing points (from a
sample), the pass over the data, and inference (from the moments). Only the pass, and a hash of every row for the sample, depend
on the number of rows; the rest is a constant that shows in the small table."""


class Times(NamedTuple):
    """Seconds of a fit and of its pass over the data."""

    fit: float
    moments: float


def time_fit(n_rows: int, lengthscale: float) -> Times:
    """Time a fit, and then its pass over the data again, alone."""
    model = GPSSL(5, kernel=RBF(lengthscale), inducing=N_POINTS, random_state=0)
    with residual_accepted():
        model.fit(latent_table(WARM_UP_ROWS, N_COLUMNS))
        X = latent_table(n_rows, N_COLUMNS)
        fit = seconds_of(lambda: model.fit(X))
    passes = [seconds_of(lambda: moments_of_rows(model.features_, rows_in_memory(X))) for _ in range(PASSES)]
    return Times(fit, median(passes))


def compare(*, quick: bool) -> Comparison:
    """Compare the time per row of the smallest and the largest table."""
    sizes = (1_000, 10_000, 100_000) if quick else (10_000, 100_000, 1_000_000)
    lengthscale = shared_lengthscale(N_COLUMNS)
    runs = alternate({f"{n_rows:,} rows": partial(time_fit, n_rows, lengthscale) for n_rows in sizes})
    times = [Times(median(run.fit for run in group), median(run.moments for run in group)) for group in runs.values()]
    growth = sizes[-1] // sizes[0]
    by_pass, by_fit = times[-1].moments / times[0].moments / growth, times[-1].fit / times[0].fit / growth
    return Comparison(
        title="Growth with the number of rows",
        setting=SETTING.format(n_columns=N_COLUMNS, n_points=N_POINTS),
        header=("rows", "pass, s", "pass, μs a row", "fit, s", "fit, μs a row"),
        rows=[_row(n_rows, time) for n_rows, time in zip(sizes, times, strict=True)],
        findings=[
            Finding(
                f"linear: time({sizes[-1]:,}) / time({sizes[0]:,}) / {growth} no more than {TARGET_RATIO}",
                f"{by_pass:.2f} for the pass, {by_fit:.2f} for the fit",
                max(by_pass, by_fit) <= TARGET_RATIO,
            )
        ],
    )


def _row(n_rows: int, times: Times) -> tuple[str, ...]:
    cells = [(f"{seconds:.3g}", f"{1e6 * seconds / n_rows:.3g}") for seconds in (times.moments, times.fit)]
    return f"{n_rows:,}", *cells[0], *cells[1]
