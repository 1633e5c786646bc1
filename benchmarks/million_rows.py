"""A million rows, in double and in single precision: GPSSL against scikit-learn's ways to kernel PCA, in memory and block by block."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline

from gpssl.data._arrays import row_blocks

from .data import gamma, latent_table, shared_lengthscale
from .gpssl_fit import fit_gpssl
from .measurement import Run, alternate, in_fresh_process, largest_peak, measure, median_seconds, table_row
from .report import Comparison, Finding

Array = NDArray[np.float64]

TARGET_RATIO = 5
TARGET_MEGABYTES = 300
PRECISIONS = ("float64", "float32")
REPEATS = 2
BLOCK_SIZES = (5_000, 10_000, 20_000)

SETTING = """\
{n_rows:,} rows of 30 columns, five dimensions, {n_points} landmarks or inducing points, the same RBF kernel; the same rows, in
float64 and rounded to float32, for all. In memory, scikit-learn's user has `Nystroem` and `PCA`, which then hold {n_points} numbers for
each row; block by block, `IncrementalPCA` with one `partial_fit` for each block of `Nystroem`'s features, whose landmarks are from the
first block. For that one, blocks of {sizes} rows were tried on {n_tried:,} rows, and the fastest is compared. `Nystroem` takes its
landmarks at random where GPSSL chooses them. Memory is the peak of the process after the fit, beyond its peak before, when X was there
already and a tiny fit had been made. The means of two runs of each are compared, which take turns, and a single run of
`IncrementalPCA`, which takes minutes."""


def fit_pipeline(n_rows: int, lengthscale: float, n_points: int, dtype: DTypeLike) -> Run:
    """Fit scikit-learn's pipeline to all rows at once."""
    model = make_pipeline(nystroem(lengthscale, n_points), PCA(5))
    model.fit(latent_table(n_points, dtype=dtype))
    X = latent_table(n_rows, dtype=dtype)
    return measure(lambda: model.fit(X))


def fit_incrementally(n_rows: int, lengthscale: float, n_points: int, dtype: DTypeLike, block_size: int) -> Run:
    """Fit scikit-learn's incremental PCA, block by block."""
    partial_fits(latent_table(2 * n_points, dtype=dtype), lengthscale, n_points, n_points)
    X = latent_table(n_rows, dtype=dtype)
    run = measure(lambda: partial_fits(X, lengthscale, n_points, block_size))
    return run._replace(note=f"blocks of {block_size:,} rows")


def partial_fits(X: Array, lengthscale: float, n_points: int, block_size: int) -> None:
    """Hold the features of one block at a time."""
    features = nystroem(lengthscale, n_points).fit(X[:block_size])
    model = IncrementalPCA(5)
    for block in row_blocks(len(X), block_size):
        model.partial_fit(features.transform(X[block]))


def nystroem(lengthscale: float, n_points: int) -> Nystroem:
    """Landmarks at random, with the shared kernel."""
    return Nystroem(gamma=gamma(lengthscale), n_components=n_points, random_state=0)


def best_block_size(n_rows: int, lengthscale: float, n_points: int, dtype: str) -> int:
    """Try the block sizes on fewer rows, each once."""
    jobs = {size: partial(fit_incrementally, n_rows, lengthscale, n_points, dtype, size) for size in BLOCK_SIZES}
    seconds = {size: in_fresh_process(f"{dtype}, blocks of {size:,} rows", job).seconds for size, job in jobs.items()}
    return min(seconds, key=seconds.__getitem__)


def compare_in(dtype: str, n_rows: int, n_tried: int, n_points: int) -> tuple[list[tuple[str, ...]], list[Finding]]:
    """Compare time and memory of all three in one precision."""
    lengthscale = shared_lengthscale()
    pipeline = f"make_pipeline(Nystroem(n_components={n_points}), PCA(5))"
    incremental = "IncrementalPCA(5).partial_fit(Nystroem.transform(block))"
    gpssl = f"GPSSL(5, kernel=RBF(l), inducing={n_points})"
    results = alternate(
        {
            pipeline: partial(fit_pipeline, n_rows, lengthscale, n_points, dtype),
            gpssl: partial(fit_gpssl, n_rows, lengthscale=lengthscale, inducing=n_points, dtype=dtype),
        },
        repeats=REPEATS,
    )
    block_size = best_block_size(n_tried, lengthscale, n_points, dtype)
    results |= alternate({incremental: partial(fit_incrementally, n_rows, lengthscale, n_points, dtype, block_size)}, repeats=1)
    rows = [(dtype, *table_row(name, results[name])) for name in (pipeline, incremental, gpssl)]
    return rows, [*_speeds(dtype, results, gpssl), _memory(dtype, results[gpssl])]


def _speeds(dtype: str, results: dict[str, list[Run]], gpssl: str) -> list[Finding]:
    findings = []
    for name in [name for name in results if name != gpssl]:
        ratio = median_seconds(results[name]) / median_seconds(results[gpssl])
        asked = f"{dtype}: at least {TARGET_RATIO}× the speed of `{name}`"
        findings.append(Finding(asked, f"{ratio:.3g}× the speed", ratio >= TARGET_RATIO))
    return findings


def _memory(dtype: str, runs: list[Run]) -> Finding:
    megabytes = largest_peak(runs)
    return Finding(f"{dtype}: less than {TARGET_MEGABYTES} MB beyond X", f"{megabytes:.0f} MB", megabytes < TARGET_MEGABYTES)


def compare(*, quick: bool) -> Comparison:
    """Compare in both precisions."""
    n_rows, n_tried, n_points = (20_000, 20_000, 128) if quick else (1_000_000, 40_000, 512)
    parts = [compare_in(dtype, n_rows, n_tried, n_points) for dtype in PRECISIONS]
    sizes = ", ".join(f"{size:,}" for size in BLOCK_SIZES[:-1]) + f" and {BLOCK_SIZES[-1]:,}"
    return Comparison(
        title="A million rows",
        setting=SETTING.format(n_rows=n_rows, n_points=n_points, sizes=sizes, n_tried=n_tried),
        header=("rows in", "fit", "seconds (range)", "memory beyond X, MB", ""),
        rows=[row for rows, _ in parts for row in rows],
        findings=[finding for _, findings in parts for finding in findings],
    )
