"""Run experiments piece by piece, resume what was interrupted, and write tables and pictures."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import joblib

from .. import __version__
from ..progress import Progress, announce
from ..rows import one_blas_thread
from . import circles, decisions, labels, regression, scaling, temperature, uci
from .ledger import Ledger, Record, Task, task_of
from .markdown import fill
from .plan import Experiment, Plan

EXPERIMENTS: dict[str, Experiment] = {
    "circles": circles,
    "uci": uci,
    "regression": regression,
    "labels": labels,
    "temperature": temperature,
    "scaling": scaling,
    "decisions": decisions,
}


class Results(NamedTuple):
    """What a run has found."""

    tables: dict[str, str]
    """In Markdown, by name."""
    written: list[Path]
    """The report and the pictures."""


def reproduce(names: Sequence[str], plan: Plan, folder: Path, report: Path, *, n_jobs: int = 1) -> Results:
    """Run what is not done yet, then write tables into `report` and pictures into a folder beside it.

    Finished pieces are in `folder`, in one file for each experiment.
    """
    tasks = {name: EXPERIMENTS[name].tasks(plan) for name in names}
    pictures = report.parent / "figures"
    pictures.mkdir(parents=True, exist_ok=True)
    target = "all" if set(names) == set(EXPERIMENTS) else " ".join(names)
    blocks = {f"run {target}": _describe(target, plan)}
    written = [report]
    for name in names:
        started = time.perf_counter()
        ledger = Ledger(folder / f"{name}.jsonl", {"gpssl": __version__, **plan.protocol})
        experiment = EXPERIMENTS[name]
        records = run_all(name, tasks[name], plan, ledger, n_jobs)
        announce(f"{name}: {len(records)} pieces, {time.perf_counter() - started:.0f} s; drawing", enabled=True)
        blocks |= experiment.report(records)
        written += experiment.draw(records, plan, pictures)
    report.write_text(fill(report.read_text(encoding="utf-8") if report.exists() else "# Results\n", blocks), encoding="utf-8")
    return Results(blocks, written)


def run_all(name: str, tasks: Sequence[Task], plan: Plan, ledger: Ledger, n_jobs: int) -> list[Record]:
    """The records of all tasks, in their order: those that are in the ledger from there, the others as they are finished."""
    wanted = set(tasks)
    done = {task: record for record in ledger.records() if (task := task_of(record)) in wanted}
    missing = [task for task in tasks if task not in done]
    if done and missing:
        announce(f"{name}: resuming, {len(done)} of {len(tasks)} pieces are done", enabled=True)
    progress = Progress(name, len(missing), enabled=True, unit="pieces")
    for record in _finished(name, missing, plan, n_jobs):
        ledger.append(record)
        done[task_of(record)] = record
        progress.advance(1)
    return [done[task] for task in tasks]


def _finished(name: str, tasks: Sequence[Task], plan: Plan, n_jobs: int) -> Iterator[Record]:
    """Records as they are finished; each process holds BLAS to one thread, which keeps the last digits the same for any number of them."""
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    return iter(parallel(joblib.delayed(run_one)(name, task, plan) for task in tasks))


def run_one(name: str, task: Task, plan: Plan) -> Record:
    """One piece, with its name."""
    started = time.perf_counter()
    try:
        with one_blas_thread():
            result = EXPERIMENTS[name].run(task, plan)
    except Exception as error:
        error.add_note(f"This was {task.method} on split {task.split} of {task.data}. What is finished is kept; the same command resumes.")
        raise
    return {**task._asdict(), **result, "seconds": round(time.perf_counter() - started, 3)}


def _describe(target: str, plan: Plan) -> str:
    """The command and what it ran with."""
    options = f"{' --quick' if plan.quick else ''} --splits {plan.splits} --seed {plan.seed}"
    tables = "".join(f" --table {name}" for name in plan.tables or ())
    versions = [f"{package} {_version(package)}" for package in ("gpssl", "numpy", "scipy", "scikit-learn", "torch")]
    return f"Printed by `gpssl reproduce {target}{options}{tables}` with Python {platform.python_version()}, {', '.join(versions)}."


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"
