"""Time and memory of one call, in a process of its own."""

from __future__ import annotations

import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeVar

Result = TypeVar("Result")

REPEATS = 3
MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024
"""The unit of `ru_maxrss`, which macOS gives in bytes and Linux in kilobytes."""
STATUS = Path("/proc/self/status")
PROJECT = Path(__file__).resolve().parents[1]
RUN_JOB = """
import os, pickle, sys
answer = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # whatever a library prints must not end up in the answer
pickle.dump(pickle.load(sys.stdin.buffer)(), answer)
"""

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
    before = peak_in_megabytes()
    seconds = seconds_of(call)
    return Run(seconds, peak_in_megabytes() - before)


def seconds_of(call: Callable[[], object]) -> float:
    """Measure one call's wall-clock time."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def peak_in_megabytes() -> float:
    """Look up the largest memory that this process has had, imports included.

    On Linux `ru_maxrss` begins with the peak of the process that started this one, so the system's own account comes first.
    """
    if STATUS.exists():
        lines = STATUS.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS_BYTES / 1e6


def in_fresh_process(label: str, job: Callable[[], Result]) -> Result:
    """Run the job in a new interpreter: neither memory peaks nor warm caches leak from one measurement into the next.

    It imports what the job's module imports and nothing else, so that its memory is what a user's process would have.
    """
    print(f"[{time.perf_counter() - _started:4.0f} s] {label}", file=sys.stderr, flush=True)
    command = [sys.executable, "-c", RUN_JOB]
    finished = subprocess.run(command, input=pickle.dumps(job), stdout=subprocess.PIPE, cwd=PROJECT, check=True)
    result: Result = pickle.loads(finished.stdout)
    return result


def alternate(jobs: Mapping[str, Callable[[], Result]], repeats: int = REPEATS) -> dict[str, list[Result]]:
    """Run each job in three fresh processes, or as many as said, taking turns: a slow minute of the machine then hits all of them."""
    results: dict[str, list[Result]] = {name: [] for name in jobs}
    for repeat in range(repeats):
        for name, job in jobs.items():
            results[name].append(in_fresh_process(f"{name}, run {repeat + 1} of {repeats}", job))
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
