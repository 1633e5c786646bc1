"""Fits to rows in files: how much memory, how fast, and whether ten times the rows take ten times as long."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.gaussian_process.kernels import RBF

from gpssl import GPSSL
from gpssl.core._moments import moments_of_rows
from gpssl.data import open_rows

from .data import WARM_UP_ROWS, latent_table, residual_accepted, shared_lengthscale
from .latent_files import N_COLUMNS, NAMES, write_array, write_parquet
from .measurement import alternate, describe_seconds, in_fresh_process, peak_in_megabytes, seconds_of
from .report import Comparison, Finding

TARGET_MEGABYTES = 800
TARGET_DEVIATION = 0.1
"""How far from 1 still counts as linear."""
REPEATS = 2
TRANSFORM_FITTED_TO = 20_000

SETTING = """\
Tables of {n_columns} columns of float64, {n_points} inducing points, the same kernel. The files were written block by block just
before, Parquet in row groups of 100,000 rows, and the system may hold them in its cache. A fit reads the file twice: once for the
sample from which inducing points are chosen, once for the moments. Choice and inference take the same time for any number of rows, and
that constant is in the fit's time; the pass alone is `moments_of_rows` with the inducing points of that fit, timed afterwards. Memory
is the peak of the whole process, with the interpreter and all that it imports. Means of two runs, taking turns; one of the largest
file. The transform is by a model that was fitted to {fitted_to:,} rows in memory, once, and returns an array."""


class FileRun(NamedTuple):
    """What one fit took."""

    fit: float
    megabytes: float
    """Peak of the process, in all."""
    moments: float


def fit_file(path: Path, lengthscale: float, n_points: int) -> FileRun:
    """Time a fit, and then its last pass again, alone."""
    model = warm_model(lengthscale, n_points)
    source = open_file(path)
    with residual_accepted():
        fit = seconds_of(lambda: model.fit(source))
    megabytes = peak_in_megabytes()
    return FileRun(fit, megabytes, seconds_of(lambda: moments_of_rows(model.features_, open_rows(source))))


def transform_file(path: Path, lengthscale: float, n_points: int) -> tuple[float, float]:
    """Time a transform, and look up the peak of memory."""
    model = warm_model(lengthscale, n_points)
    with residual_accepted():
        model.fit(pd.DataFrame(latent_table(TRANSFORM_FITTED_TO), columns=NAMES))
    seconds = seconds_of(lambda: model.transform(open_file(path)))
    return seconds, peak_in_megabytes()


def warm_model(lengthscale: float, n_points: int) -> GPSSL:
    """Return a model after a tiny fit, which has imported what is imported lazily."""
    model = GPSSL(5, kernel=RBF(lengthscale), inducing=n_points, random_state=0)
    with residual_accepted():
        return model.fit(latent_table(WARM_UP_ROWS))


def open_file(path: Path) -> Any:
    """Return a path to Parquet as it is, and any other path as a mapped array."""
    return np.load(path, mmap_mode="r") if path.suffix == ".npy" else path


def compare(*, quick: bool) -> Comparison:
    """Compare memory with its limit, and two sizes with each other."""
    small, large, n_points = (20_000, 200_000, 128) if quick else (1_000_000, 10_000_000, 512)
    lengthscale = shared_lengthscale()
    with TemporaryDirectory() as folder:
        array, some, many = (Path(folder) / name for name in ("rows.npy", "rows.parquet", "more_rows.parquet"))
        for path, write, n_rows in ((array, write_array, small), (some, write_parquet, small), (many, write_parquet, large)):
            in_fresh_process(f"writing {n_rows:,} rows to a {path.suffix} file", partial(write, path, n_rows))
        jobs = {path.name: partial(fit_file, path, lengthscale, n_points) for path in (array, some, many)}
        runs = alternate({name: jobs.pop(name) for name in (array.name, some.name)}, repeats=REPEATS) | alternate(jobs, repeats=1)
        transform = in_fresh_process("transform", partial(transform_file, some, lengthscale, n_points))
    rows = [
        _row("fit, memory-mapped array", small, runs[array.name]),
        _row("fit, Parquet", small, runs[some.name]),
        _row("fit, Parquet", large, runs[many.name]),
        ("transform, Parquet", f"{small:,}", f"{transform[0]:.3g}", f"{small / transform[0]:,.0f}", f"{transform[1]:,.0f}", ""),
    ]
    largest = max(run.megabytes for group in runs.values() for run in group)
    return Comparison(
        title="Rows in files",
        setting=SETTING.format(n_columns=N_COLUMNS, n_points=n_points, fitted_to=TRANSFORM_FITTED_TO),
        header=("", "rows", "seconds (range)", "rows a second", "peak memory in all, MB", "pass alone, s (range)"),
        rows=rows,
        findings=[
            Finding(f"fits within {TARGET_MEGABYTES} MB in all", f"{largest:.0f} MB", largest < TARGET_MEGABYTES),
            *_linearity(runs[some.name], runs[many.name], small, large),
        ],
    )


def _row(name: str, n_rows: int, runs: list[FileRun]) -> tuple[str, ...]:
    seconds = [run.fit for run in runs]
    peak = max(run.megabytes for run in runs)
    times = describe_seconds(seconds), f"{n_rows / median(seconds):,.0f}", f"{peak:,.0f}"
    return name, f"{n_rows:,}", *times, describe_seconds([run.moments for run in runs])


def _linearity(few: list[FileRun], many: list[FileRun], small: int, large: int) -> list[Finding]:
    """Ratios of times for each row, of the fit and of the pass alone."""
    findings = []
    for what, field in (("fit", "fit"), ("pass alone", "moments")):
        times = [median(getattr(run, field) for run in runs) for runs in (few, many)]
        ratio = times[1] / times[0] / (large / small)
        asked = f"linear, {what}: time({large:,}) / time({small:,}) / {large // small} within {TARGET_DEVIATION:.0%} of 1"
        findings.append(Finding(asked, f"{ratio:.2f}", abs(ratio - 1) <= TARGET_DEVIATION))
    return findings
