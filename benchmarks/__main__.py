"""Run comparisons, print them, and write a file for each group: `benchmarks/results.md`, `kernels.md` and so on."""

from __future__ import annotations

import argparse
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

from . import (
    commands,
    dask_overhead,
    diffusion,
    embed_csv,
    flights,
    from_disk,
    graph_evaluations,
    intrusions,
    kernel_pca,
    large_slice,
    linearity,
    logistic_heads,
    million_rows,
    next_rows,
    nystroem,
    paper_algorithm,
    pass_over_data,
    perceptron_heads,
    pool,
    selection,
    spectrum,
)
from .machine import busy_seconds_of_others, describe_machine
from .report import render

GROUPS: dict[str, tuple[ModuleType, ...]] = {
    "results": (
        paper_algorithm,
        kernel_pca,
        nystroem,
        million_rows,
        pass_over_data,
        linearity,
        from_disk,
        dask_overhead,
        flights,
        intrusions,
        logistic_heads,
        perceptron_heads,
        selection,
    ),
    "kernels": (spectrum, graph_evaluations, diffusion),
    "spatial": (large_slice,),
    "files": (embed_csv,),
    "pool": (pool,),
    "next": (next_rows,),
    "commands": (commands,),
}
"""Each has a run and a file of its own."""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("group", nargs="*", choices=[[], *GROUPS], help="which comparisons to run; all, if none is named")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs; writes no file")
    arguments = parser.parse_args()
    for group in arguments.group or GROUPS:
        run(group, quick=arguments.quick)


def run(group: str, *, quick: bool) -> None:
    """Run the comparisons of a group, one after the other."""
    started, others = time.perf_counter(), busy_seconds_of_others()
    results = [comparison.compare(quick=quick) for comparison in GROUPS[group]]
    seconds, others = time.perf_counter() - started, busy_seconds_of_others() - others
    share = max(0.0, others / seconds / (os.cpu_count() or 1))  # clocks of the kernel tick coarsely
    preamble = [
        *describe_machine(),
        f"Date: {datetime.now(UTC):%Y-%m-%d}.",
        f"The run took {seconds:.0f} s, in which other processes had {share:.0%} of the cores.",
    ]
    text = render(preamble, results)
    print(text)
    if not quick:
        (Path(__file__).parent / f"{group}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
