"""Kernel evaluations of a fit on graphs: rows times inducing points, not rows squared."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from grakel.kernels import WeisfeilerLehman
from numpy.typing import NDArray

from gpssl import GPSSL
from gpssl.kernels import LabeledGraph, WeisfeilerLehmanKernel
from gpssl.kernels._protocol import BlockKernel

from .data import residual_accepted
from .measurement import in_fresh_process, seconds_of
from .real_tables import find_table, not_run
from .report import Comparison, Finding

FILE = "graphs/PROTEINS/PROTEINS.txt"
TITLE = "Evaluations of a graph kernel"
SETTING = """\
PROTEINS: {n_rows:,} graphs with up to {largest} labeled nodes, `WeisfeilerLehmanKernel(3)`. An evaluation is one k(x, y); all that a fit
of GPSSL asks for are counted: to choose M inducing graphs, between them, and for the moments. Beside them, what a method with the full
Gram matrix asks for: N², or N(N + 1)/2 with symmetry. One run of each, in one process, in this order; what is counted in a graph is
remembered, so that the first fit does this work for all that follow. GraKeL computes the same Gram matrix with its own code."""


class Count(NamedTuple):
    """One fit."""

    n_points: int
    evaluations: int
    seconds: float
    residual: float


class Study(NamedTuple):
    """Everything that was measured."""

    n_rows: int
    largest: int
    counts: list[Count]
    gram_seconds: float
    grakel_seconds: float


class CountingKernel(WeisfeilerLehmanKernel):
    """Counts what it is asked for; every evaluation is a block of k(X, U), also that of a call."""

    evaluations = 0

    def block_kernel(self, points: NDArray[Any]) -> BlockKernel:
        """Count the entries of each block."""
        fill = super().block_kernel(points)

        def fill_and_count(X: NDArray[Any], out: NDArray[np.float64]) -> None:
            CountingKernel.evaluations += out.size
            fill(X, out)

        return fill_and_count


def read_graphs(path: Path) -> list[nx.Graph]:
    """Read the number of graphs; for each its size and class, and for each node its label and neighbors."""
    lines = iter(path.read_text().splitlines())
    graphs = []
    for _ in range(int(next(lines))):
        graph = nx.Graph()
        for node in range(int(next(lines).split()[0])):
            label, _, *neighbors = next(lines).split()
            graph.add_node(node, label=label)
            graph.add_edges_from((node, int(neighbor)) for neighbor in neighbors)
        graphs.append(graph)
    return graphs


def count(rows: NDArray[Any], n_points: int) -> Count:
    """Fit with so many inducing graphs."""
    CountingKernel.evaluations = 0
    ssl = GPSSL(5, kernel=CountingKernel(), inducing=n_points, random_state=0)
    with residual_accepted():
        seconds = seconds_of(partial(ssl.fit, rows))
    return Count(len(ssl.inducing_points_), CountingKernel.evaluations, seconds, ssl.residual_)


def run_study(path: Path, sizes: tuple[int, ...], n_rows: int | None) -> Study:
    """Read the graphs once, fit with several numbers of inducing graphs, compute the Gram matrix."""
    kernel = WeisfeilerLehmanKernel()
    rows = kernel.prepare(read_graphs(path)[:n_rows])
    count(rows[:20], 5)  # loads what is loaded lazily
    counts = [count(rows, size) for size in sizes]
    grakel = WeisfeilerLehman(n_iter=3, normalize=True)
    return Study(
        n_rows=len(rows),
        largest=max(len(row.labels) for row in rows),
        counts=counts,
        gram_seconds=seconds_of(partial(kernel, rows)),
        grakel_seconds=seconds_of(partial(grakel.fit_transform, [in_grakel_format(row) for row in rows])),
    )


def in_grakel_format(graph: LabeledGraph) -> list[Any]:
    """Give the neighbors of each node, and the labels."""
    neighbors: dict[int, dict[int, float]] = {node: {} for node in range(len(graph.labels))}
    for one, other in graph.edges:
        neighbors[one][other] = neighbors[other][one] = 1.0
    return [neighbors, dict(enumerate(graph.labels))]


def compare(*, quick: bool) -> Comparison:
    """Run the study, if the graphs are there."""
    path = find_table(FILE)
    if path is None:
        return not_run(TITLE, "PROTEINS: how many kernel evaluations a fit asks for.", FILE)
    sizes, n_rows = ((8, 16), 100) if quick else ((16, 32, 64, 128), None)
    study = in_fresh_process("graphs", partial(run_study, path, sizes, n_rows))
    full = study.n_rows**2
    fits = [
        (f"M = {n}", f"{asked:,}", f"{asked / full:.1%}", f"{asked / (study.n_rows * n):.2f}", f"{seconds:.3g}", f"{residual:.2g}")
        for n, asked, seconds, residual in study.counts
    ]
    half = study.n_rows * (study.n_rows + 1) // 2
    gram = [
        ("Gram, N²", f"{full:,}", "100.0%", "", f"{study.gram_seconds:.3g}", ""),
        ("Gram, GraKeL", "", "", "", f"{study.grakel_seconds:.3g}", ""),
        ("Gram, N(N + 1)/2", f"{half:,}", f"{half / full:.1%}", "", "", ""),
    ]
    largest_share = max(asked / (study.n_rows * n) for n, asked, _, _ in study.counts)
    return Comparison(
        title=TITLE,
        setting=SETTING.format(n_rows=study.n_rows, largest=study.largest),
        header=("", "evaluations", "of N²", "evaluations / (N·M)", "seconds", "residual"),
        rows=[*fits, *gram],
        findings=[Finding("a fit asks for O(N·M) evaluations", f"at most {largest_share:.2f} N·M", largest_share < 4)],
    )
