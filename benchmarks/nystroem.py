"""Nyström features and PCA on 200,000 rows: the scikit-learn user's way to kernel PCA on a table of that size."""

from __future__ import annotations

from functools import partial

from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline

from .data import gamma, latent_table, shared_lengthscale
from .gpssl_fit import fit_gpssl
from .measurement import Run, alternate, largest_peak, measure, median_seconds, table_row
from .report import Comparison, Finding

TARGET_RATIO = 5
TARGET_MEGABYTES = 300

SETTING = """\
{n_rows:,} rows of 30 columns, five dimensions, {n_points} landmarks or inducing points, the same rows and the same RBF kernel.
`Nystroem` takes its landmarks at random where GPSSL chooses them. Memory is the peak of the process after the fit, beyond its
peak before, when X was there already and a tiny fit had been made; the largest of three."""


def fit_nystroem(n_rows: int, lengthscale: float, n_points: int) -> Run:
    """Fit scikit-learn's pipeline."""
    model = make_pipeline(Nystroem(gamma=gamma(lengthscale), n_components=n_points, random_state=0), PCA(5))
    model.fit(latent_table(n_points))
    X = latent_table(n_rows)
    return measure(lambda: model.fit(X))


def compare(*, quick: bool) -> Comparison:
    """Compare time and memory of both."""
    n_rows, n_points = (20_000, 256) if quick else (200_000, 512)
    lengthscale = shared_lengthscale()
    pipeline = f"make_pipeline(Nystroem(n_components={n_points}), PCA(5))"
    gpssl = f"GPSSL(5, kernel=RBF(l), inducing={n_points})"
    results = alternate(
        {
            pipeline: partial(fit_nystroem, n_rows, lengthscale, n_points),
            gpssl: partial(fit_gpssl, n_rows, lengthscale=lengthscale, inducing=n_points),
        }
    )
    ratio = median_seconds(results[pipeline]) / median_seconds(results[gpssl])
    megabytes = largest_peak(results[gpssl])
    memory = f"{megabytes:.0f} MB (the pipeline: {largest_peak(results[pipeline]):,.0f} MB)"
    return Comparison(
        title="Nyström and PCA",
        setting=SETTING.format(n_rows=n_rows, n_points=n_points),
        header=("fit", "seconds (range)", "memory beyond X, MB", ""),
        rows=[table_row(name, runs) for name, runs in results.items()],
        findings=[
            Finding(f"at least {TARGET_RATIO}× the speed", f"{ratio:.3g}× the speed", ratio >= TARGET_RATIO),
            Finding(f"less than {TARGET_MEGABYTES} MB beyond X", memory, megabytes < TARGET_MEGABYTES),
        ],
    )
