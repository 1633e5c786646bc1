"""Kernel PCA on 10,000 rows: it computes the matrix of all pairs of rows, where GPSSL makes one pass over the rows."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process.kernels import RBF

from gpssl import GPSSL

from .data import WARM_UP_ROWS, gamma, latent_table, residual_accepted, shared_lengthscale
from .gpssl_fit import fit_gpssl
from .measurement import Run, alternate, in_fresh_process, measure, median_seconds, table_row
from .report import Comparison, Finding

Array = NDArray[np.float64]

TARGET_RATIO = 30
FEW_POINTS = 128
ROWS_COMPARED = 2_000

SETTING = """\
{n_rows:,} rows of 30 columns (five latent factors and noise), five dimensions. The first three lines have the same rows and the
same RBF kernel; `KernelPCA` chooses its own eigensolver. It gives a point for each row where GPSSL gives a distribution. The
second line chooses as many inducing points as its tolerance asks for, the third has {few} of them, and in the fourth GPSSL has its
defaults, with which it also finds the lengthscales. How far GPSSL's mean spans the same functions as kernel PCA's components is the
smallest of their five canonical correlations, over {compared:,} of the rows: {agreements}."""


def fit_kernel_pca(n_rows: int, lengthscale: float) -> Run:
    """Fit scikit-learn's kernel PCA."""
    model = kernel_pca(lengthscale)
    model.fit(latent_table(WARM_UP_ROWS))
    X = latent_table(n_rows)
    return measure(lambda: model.fit(X))


def kernel_pca(lengthscale: float) -> KernelPCA:
    """Five components with the shared kernel."""
    return KernelPCA(5, kernel="rbf", gamma=gamma(lengthscale), random_state=0)


def agreement(n_rows: int, lengthscale: float, inducing: int | None) -> float:
    """Return the smallest canonical correlation between kernel PCA's components and GPSSL's mean."""
    X = latent_table(n_rows)
    with residual_accepted():
        mean = GPSSL(5, kernel=RBF(lengthscale), inducing=inducing, random_state=0).fit(X).transform(X[:ROWS_COMPARED])
    components = kernel_pca(lengthscale).fit(X).transform(X[:ROWS_COMPARED])
    bases = [np.linalg.qr(values - values.mean(axis=0))[0] for values in (mean, components)]
    return float(np.linalg.svd(bases[0].T @ bases[1], compute_uv=False).min())


def compare(*, quick: bool) -> Comparison:
    """Compare the times of all four, and what they learn."""
    n_rows = 2_000 if quick else 10_000
    lengthscale = shared_lengthscale()
    few = f"GPSSL(5, kernel=RBF(l), inducing={FEW_POINTS})"
    results = alternate(
        {
            "KernelPCA(5)": partial(fit_kernel_pca, n_rows, lengthscale),
            "GPSSL(5, kernel=RBF(l))": partial(fit_gpssl, n_rows, lengthscale=lengthscale),
            few: partial(fit_gpssl, n_rows, lengthscale=lengthscale, inducing=FEW_POINTS),
            "GPSSL(5)": partial(fit_gpssl, n_rows, lengthscale=None),
        }
    )
    peer, given, with_few, default = map(median_seconds, results.values())
    measured = f"{peer / given:.3g}× the speed; {peer / with_few:.3g}× with {FEW_POINTS} inducing points"
    measured += f"; {peer / default:.3g}× where GPSSL finds the lengthscales too"
    jobs = {inducing: partial(agreement, n_rows, lengthscale, inducing) for inducing in (None, FEW_POINTS)}
    both = [in_fresh_process("agreement with kernel PCA", job) for job in jobs.values()]
    agreements = f"{both[0]:.4f} for the second line, {both[1]:.4f} for the third"
    return Comparison(
        title="Kernel PCA",
        setting=SETTING.format(n_rows=n_rows, few=FEW_POINTS, compared=ROWS_COMPARED, agreements=agreements),
        header=("fit", "seconds (range)", "memory beyond X, MB", ""),
        rows=[table_row(name, runs) for name, runs in results.items()],
        findings=[Finding(f"at least {TARGET_RATIO}× the speed", measured, peer / given >= TARGET_RATIO)],
    )
