"""Time and memory of one call, in a process of its own."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median
from typing import NamedTuple, TypeVar

Result = TypeVar("Result")

REPEATS = 3
MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024
"""The unit of `ru_maxrss`, which macOS gives in bytes and Linux in kilobytes."""

_started = time.perf_counter()


class Run(NamedTuple):
    """What one call took."""

    seconds: float
    megabytes: float
    """Peak memory of the process after the call, beyond its peak before."""
    note: str = ""
    """What else a reader should know of the fit."""


def measure(call: Callable[[], object]) -> Run:
    """Measure one call's time, and what it adds to the process's peak of memory.

    A peak shows only what exceeds the peaks before it, so nothing that comes first in the process may make one of its own.
    """
    before = _peak_in_megabytes()
    seconds = seconds_of(call)
    return Run(seconds, _peak_in_megabytes() - before)


def seconds_of(call: Callable[[], object]) -> float:
    """Measure one call's wall-clock time."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _peak_in_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS_BYTES / 1e6


def in_fresh_process(label: str, job: Callable[[], Result]) -> Result:
    """Run the job in a new interpreter: neither memory peaks nor warm caches leak from one measurement into the next."""
    print(f"[{time.perf_counter() - _started:4.0f} s] {label}", file=sys.stderr, flush=True)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        return executor.submit(job).result()


def alternate(jobs: Mapping[str, Callable[[], Result]]) -> dict[str, list[Result]]:
    """Run each job in three fresh processes, taking turns: a slow minute of the machine then hits all of them."""
    results: dict[str, list[Result]] = {name: [] for name in jobs}
    for repeat in range(REPEATS):
        for name, job in jobs.items():
            results[name].append(in_fresh_process(f"{name}, run {repeat + 1} of {REPEATS}", job))
    return results


def median_seconds(runs: Sequence[Run]) -> float:
    """Reduce the runs to their median time."""
    return median(run.seconds for run in runs)


def largest_peak(runs: Sequence[Run]) -> float:
    """Reduce the runs to their largest peak, in megabytes: a limit holds if it always holds."""
    return max(run.megabytes for run in runs)


def describe_seconds(seconds: Sequence[float]) -> str:
    """Write median and range."""
    return f"{median(seconds):.3g} ({min(seconds):.3g} to {max(seconds):.3g})"


def table_row(name: str, runs: Sequence[Run]) -> tuple[str, ...]:
    """Write what several runs of one call took: name, time, memory, note."""
    return f"`{name}`", describe_seconds([run.seconds for run in runs]), f"{largest_peak(runs):,.0f}", runs[0].note
