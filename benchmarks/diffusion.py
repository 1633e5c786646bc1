"""The graph of nearest neighbors and its eigenvectors, up to a hundred thousand rows."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpssl import GPSSL
from gpssl.kernels import NeighborDiffusion

from .data import WARM_UP_ROWS, residual_accepted
from .measurement import Run, in_fresh_process, measure, seconds_of
from .report import Comparison, Finding

Array = NDArray[np.float64]

N_COLUMNS = 30
N_CLUSTERS = 20
TARGET_MINUTES = 10.0

SETTING = """\
{n_clusters} overlapping clusters in {n_columns} columns. "graph" is `NeighborDiffusion(max_rows=N).resolve(X)`: the exact ten nearest
neighbors of every row, and 60 eigenvectors; "fit" is the rest of a fit with that kernel. One run of each, in a process of its own. By
default `max_rows` is 20,000, and a sample of that size makes the graph of a larger table."""


class Times(NamedTuple):
    """One table."""

    graph: Run
    fit: float


def clusters(n_rows: int) -> Array:
    """Generate rows around random centers."""
    rng = np.random.default_rng(0)
    centers = 1.5 * rng.standard_normal((N_CLUSTERS, N_COLUMNS))
    return centers[rng.integers(N_CLUSTERS, size=n_rows)] + rng.standard_normal((n_rows, N_COLUMNS))


def time_fit(n_rows: int) -> Times:
    """Build the graph, then fit with it."""
    X = clusters(n_rows)
    kernel = NeighborDiffusion(max_rows=n_rows)
    kernel.resolve(X[:WARM_UP_ROWS])
    kept = []
    graph = measure(lambda: kept.append(kernel.resolve(X)))
    ssl = GPSSL(5, kernel=kept[0], random_state=0)
    with residual_accepted():
        return Times(graph, seconds_of(lambda: ssl.fit(X)))


def compare(*, quick: bool) -> Comparison:
    """Time tables of three sizes."""
    sizes = (1_000, 2_000) if quick else (10_000, 30_000, 100_000)
    times = {n_rows: in_fresh_process(f"{n_rows:,} rows", partial(time_fit, n_rows)) for n_rows in sizes}
    minutes = (times[sizes[-1]].graph.seconds + times[sizes[-1]].fit) / 60
    return Comparison(
        title="Diffusion among nearest neighbors",
        setting=SETTING.format(n_clusters=N_CLUSTERS, n_columns=N_COLUMNS),
        header=("rows", "graph, s", "graph, MB beyond the rows", "fit, s"),
        rows=[(f"{n:,}", f"{time.graph.seconds:.3g}", f"{time.graph.megabytes:.0f}", f"{time.fit:.3g}") for n, time in times.items()],
        findings=[
            Finding(f"{sizes[-1]:,} rows in minutes, here at most {TARGET_MINUTES:g}", f"{minutes:.1f} minutes", minutes <= TARGET_MINUTES)
        ],
    )
