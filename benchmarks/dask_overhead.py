"""What it costs to go through Dask: a million rows as a NumPy array, as a Dask array, and on a cluster of two processes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
from distributed import Client, LocalCluster
from sklearn.gaussian_process.kernels import RBF

from gpssl import GPSSL

from .data import WARM_UP_ROWS, latent_table, residual_accepted, shared_lengthscale
from .gpssl_fit import fit_gpssl
from .latent_files import N_COLUMNS, write_parquet
from .measurement import Run, alternate, in_fresh_process, measure, median_seconds, table_row
from .report import Comparison, Finding

TARGET_RATIO = 1.5
N_CHUNKS = 16

SETTING = """\
{n_rows:,} rows of {n_columns} columns, {n_points} inducing points, the same kernel. The Dask array is `dask.array.from_array` of the same
array, in {n_chunks} chunks of {chunk:,} rows, on Dask's threads; it is made before the clock starts. The last line, which has no target, is
a `LocalCluster` of two processes with one thread each, started before the clock starts, and `dask.dataframe.read_parquet` of as many
rows of the same kind, in {n_chunks} row groups: there the rows are read from the file within the time, once for the sample and once for
the moments. Memory is that of the process that calls `fit`, beyond its peak before; the cluster's processes have theirs."""


def fit_on_threads(n_rows: int, lengthscale: float, n_points: int) -> Run:
    """Fit to a Dask array in this process."""
    with dask.config.set(scheduler="threads"):
        X = latent_table(n_rows)
        return fit_lazily(da.from_array(X, chunks=(n_rows // N_CHUNKS, N_COLUMNS)), lengthscale, n_points)


def fit_on_cluster(path: Path, lengthscale: float, n_points: int) -> Run:
    """Fit to a Dask data frame on two worker processes."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        frame = dd.read_parquet(path, split_row_groups=True)
        return fit_lazily(frame, lengthscale, n_points)._replace(note=f"{frame.npartitions} partitions")


def fit_lazily(X: Any, lengthscale: float, n_points: int) -> Run:
    """Time the fit, after a tiny one on the same scheduler."""
    model = GPSSL(5, kernel=RBF(lengthscale, length_scale_bounds="fixed"), inducing=n_points, random_state=0)
    with residual_accepted():
        model.fit(da.from_array(latent_table(WARM_UP_ROWS), chunks=(WARM_UP_ROWS // N_CHUNKS, N_COLUMNS)))
        return measure(lambda: model.fit(X))


def compare(*, quick: bool) -> Comparison:
    """Compare the fit to a NumPy array with those through Dask."""
    n_rows, n_points = (32_000, 128) if quick else (1_000_000, 512)
    lengthscale = shared_lengthscale()
    chunk = n_rows // N_CHUNKS
    array, threads, cluster = "NumPy array", "Dask array, threads", "Dask data frame, cluster of two processes"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        in_fresh_process(f"writing {n_rows:,} rows", partial(write_parquet, path, n_rows, chunk))
        results = alternate(
            {
                array: partial(fit_gpssl, n_rows, lengthscale=lengthscale, inducing=n_points),
                threads: partial(fit_on_threads, n_rows, lengthscale, n_points),
                cluster: partial(fit_on_cluster, path, lengthscale, n_points),
            }
        )
    ratio = median_seconds(results[threads]) / median_seconds(results[array])
    return Comparison(
        title="Through Dask",
        setting=SETTING.format(n_rows=n_rows, n_columns=N_COLUMNS, n_points=n_points, n_chunks=N_CHUNKS, chunk=chunk),
        header=("rows in", "seconds (range)", "memory beyond X, MB", ""),
        rows=[table_row(name, runs) for name, runs in results.items()],
        findings=[Finding(f"a Dask array in less than {TARGET_RATIO} times the time", f"{ratio:.2f} times", ratio < TARGET_RATIO)],
    )
