"""A slice of half a million spots: embedded from a file and from memory, in how much memory and how long."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import anndata
import numpy as np
from scipy.sparse import csr_matrix, vstack
from scipy.special import softmax

from experiments.simulation.slices import grid_coordinates, grid_traces
from gpssl.spatial import embed

from .data import residual_accepted
from .measurement import in_fresh_process, peak_in_megabytes, seconds_of
from .report import Comparison, Finding

TARGET_MEGABYTES = 4_000
N_TYPES = 6
MEAN_COUNTS = 150.0
"""The mean of a spot's counts."""
SPOTS_AT_A_TIME = 20_000

SETTING = """\
A grid of {side} × {side} spots with counts of {n_genes:,} genes, {per_spot:.0f} of them not zero in the mean spot: Poisson, with
rates that mix profiles of {n_types} made-up types in proportions as `experiments.simulation` draws them. `embed` with its
defaults, but for the number of genes: counts checked, normalized and logged, {n_used:,} genes, 20 principal components, a sum of
two kernels, ten dimensions, mean and standard deviation at every spot. The file (CSR, h5ad) was written just before and may be in
the system's cache. Memory is the peak of the whole process, with the interpreter and all that it imports. One run of each, in a
process of its own."""


class Slice(NamedTuple):
    """What was written."""

    n_spots: int
    non_zero: int


class Embedding(NamedTuple):
    """What one run took."""

    seconds: float
    megabytes: float
    residual: float


def write_slice(path: Path, side: int, n_genes: int) -> Slice:
    """Write counts and coordinates."""
    rng = np.random.default_rng(0)
    proportions = softmax(3.0 * grid_traces(N_TYPES, (side, side), 0.1, rng).T, axis=1)
    profiles = rng.gamma(0.3, 1.0, (N_TYPES, n_genes))
    profiles *= MEAN_COUNTS / profiles.sum(axis=1, keepdims=True)
    starts = range(0, len(proportions), SPOTS_AT_A_TIME)
    blocks = [csr_matrix(rng.poisson(proportions[start : start + SPOTS_AT_A_TIME] @ profiles).astype(np.float32)) for start in starts]
    adata = anndata.AnnData(vstack(blocks, format="csr"))
    adata.obsm["spatial"] = grid_coordinates((side, side))
    adata.write_h5ad(path)
    return Slice(adata.n_obs, int(adata.X.nnz))


def embed_slice(path: Path, *, backed: bool, n_top_genes: int) -> Embedding:
    """Read the file, or open it, and embed."""
    adata = anndata.read_h5ad(path, backed="r" if backed else None)
    with residual_accepted():
        seconds = seconds_of(partial(embed, adata, n_top_genes=n_top_genes))
    return Embedding(seconds, peak_in_megabytes(), float(adata.uns["gpssl"]["residual"]))


def compare(*, quick: bool) -> Comparison:
    """Compare memory with its limit."""
    side, n_genes, n_top_genes = (60, 300, 100) if quick else (708, 2_000, 1_000)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "slice.h5ad"
        written = in_fresh_process("writing the slice", partial(write_slice, path, side, n_genes))
        jobs = {name: partial(embed_slice, path, backed=name == "backed", n_top_genes=n_top_genes) for name in ("backed", "in memory")}
        runs = {name: in_fresh_process(f"embed, {name}", job) for name, job in jobs.items()}
    n_spots = written.n_spots
    rows = [_row(name, n_spots, run) for name, run in runs.items()]
    largest = max(run.megabytes for run in runs.values())
    per_spot = written.non_zero / n_spots
    return Comparison(
        title="A large slice",
        setting=SETTING.format(side=side, n_genes=n_genes, per_spot=per_spot, n_types=N_TYPES, n_used=n_top_genes),
        header=("", "spots", "seconds", "spots a second", "peak memory in all, MB", "residual"),
        rows=rows,
        findings=[Finding(f"{n_spots:,} spots within {TARGET_MEGABYTES:,} MB in all", f"{largest:,.0f} MB", largest < TARGET_MEGABYTES)],
    )


def _row(name: str, n_spots: int, run: Embedding) -> tuple[str, ...]:
    speed = f"{n_spots / run.seconds:,.0f}"
    return f"`embed`, {name}", f"{n_spots:,}", f"{run.seconds:.3g}", speed, f"{run.megabytes:,.0f}", f"{run.residual:.1e}"
