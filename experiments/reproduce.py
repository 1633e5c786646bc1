"""Run experiments task by task, resume what was interrupted, and write tables and pictures."""

from __future__ import annotations

import os
import platform
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import joblib
import matplotlib.pyplot as plt

from gpssl._runtime.progress import Progress, announce
from gpssl._runtime.threads import one_blas_thread
from gpssl.plots._figures import new_figure

from . import (
    circles,
    clusters,
    decisions,
    few_labels,
    few_targets,
    kinds,
    labels,
    neighbors,
    next_rows,
    promises,
    regression,
    scaling,
    sms,
    spatial,
    temperature,
    uci,
)
from .ledger import Ledger, Record, Task, as_line, task_of
from .plan import Experiment, Plan, UnknownTableError
from .tables import fill, marks

EXPERIMENTS: dict[str, Experiment] = {
    "circles": circles,
    "uci": uci,
    "regression": regression,
    "labels": labels,
    "temperature": temperature,
    "scaling": scaling,
    "decisions": decisions,
    "promises": promises,
    "kinds": kinds,
    "neighbors": neighbors,
    "few-labels": few_labels,
    "few-targets": few_targets,
    "clusters": clusters,
    "next": next_rows,
    "sms": sms,
    "spatial": spatial,
}

PACKAGES = ("gpssl", "numpy", "scipy", "scikit-learn", "torch")
"""Whose versions a result may depend on."""


class Results(NamedTuple):
    """What a run has found."""

    tables: dict[str, str]
    """The tables in Markdown, by name."""
    written: list[Path]
    """The report and the pictures."""


class FailedTasksError(RuntimeError):
    """Some tasks could not be run; the others are in the ledger."""


def reproduce(names: Sequence[str], plan: Plan, folder: Path, report: Path, *, n_jobs: int = 1) -> Results:
    """Run what is not done yet, and write tables into `report` and pictures into a folder beside it, one experiment after the other.

    Finished tasks are in `folder`, in one file for each experiment.
    """
    tasks = _plan_tasks(names, plan)
    _check_before_the_work(tasks, report)
    tables: dict[str, str] = {}
    pictures: list[Path] = []
    for name, mine in tasks.items():
        started = time.perf_counter()
        records = run_all(name, mine, plan, Ledger(folder / f"{name}.jsonl", {**plan.protocol, **_versions()}), n_jobs)
        announce(f"{name}: {len(records)} tasks, {time.perf_counter() - started:.0f} s; drawing", enabled=True)
        blocks = {f"run {name}": _describe("all" if len(names) > 1 else name, plan), **EXPERIMENTS[name].report(records)}
        _write_report(report, name, blocks)
        tables |= blocks
        pictures += EXPERIMENTS[name].draw(records, plan, report.parent / "figures")
    return Results(tables, [report, *pictures])


def _plan_tasks(names: Sequence[str], plan: Plan) -> dict[str, list[Task]]:
    """Return the tasks of each experiment. Of several experiments, those without the tables that were asked for are left out."""
    tasks = {}
    for name in names:
        try:
            tasks[name] = EXPERIMENTS[name].tasks(plan)
        except UnknownTableError:
            if name == names[-1] and not tasks:
                raise
    return tasks


def _check_before_the_work(tasks: dict[str, list[Task]], report: Path) -> None:
    """Raise at once what would otherwise be raised after an hour: missing data, missing packages, a report that cannot be written."""
    for experiment, data in dict.fromkeys((name, task.data) for name, mine in tasks.items() for task in mine):
        EXPERIMENTS[experiment].load(data)
    plt.close(new_figure(1, 1))
    if report.is_dir():
        raise IsADirectoryError(f"The report {report} is a folder: name a file in it.")
    report.parent.mkdir(parents=True, exist_ok=True)


def run_all(name: str, tasks: Sequence[Task], plan: Plan, ledger: Ledger, n_jobs: int) -> list[Record]:
    """Return the records of all tasks in their order: finished ones from the ledger, the others after running them."""
    wanted = set(tasks)
    done = {task: record for record in ledger.records() if (task := task_of(record)) in wanted}
    missing = [task for task in tasks if task not in done]
    if done and missing:
        announce(f"{name}: resuming, {len(done)} of {len(tasks)} tasks are done", enabled=True)
    progress = Progress(name, len(missing), enabled=bool(missing), unit="tasks")
    failures = []
    for outcome in _outcomes(name, missing, plan, n_jobs):
        if isinstance(outcome, Failure):
            failures.append(outcome)
        else:
            ledger.append(outcome)
            done[task_of(outcome)] = outcome
        progress.advance(1)
    progress.finish()
    if failures:
        announce(failures[0].details, enabled=True)
        raise FailedTasksError(
            f"{len(failures)} of {len(tasks)} tasks failed. The others are kept, and the same command tries these again. The first: "
            f"{failures[0].text}"
        )
    n_warned = sum(bool(record.get("warnings")) for record in done.values())
    announce(f"{name}: {n_warned} of {len(tasks)} tasks came with warnings; they are in {ledger.path}", enabled=n_warned > 0)
    return [done[task] for task in tasks]


class Failure(NamedTuple):
    """A task that could not be run."""

    text: str
    details: str
    """Where it happened."""


def _outcomes(name: str, tasks: Sequence[Task], plan: Plan, n_jobs: int) -> Iterator[Record | Failure]:
    """Yield records as they are finished. Each process holds BLAS to one thread: the last digits then do not depend on their number."""
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    return iter(parallel(joblib.delayed(run_one)(name, task, plan) for task in tasks))


def run_one(name: str, task: Task, plan: Plan) -> Record | Failure:
    """Run one task. What the user has to mend (a package, a file) is raised; other errors are returned, and the next tasks are run."""
    started = time.perf_counter()
    try:
        with one_blas_thread(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = EXPERIMENTS[name].run(task, plan)
        said = sorted({str(warning.message) for warning in caught})
        record = {**task._asdict(), **result, "warnings": said, "seconds": round(time.perf_counter() - started, 3)}
        as_line(record)
    except (ImportError, OSError):
        raise
    except Exception as error:
        text = f"{task.method} on split {task.split} of {task.data}: {type(error).__name__}: {error}"
        return Failure(text, traceback.format_exc())
    return record


def _write_report(path: Path, name: str, blocks: dict[str, str]) -> None:
    """Fill in the tables of an experiment, and empty those of an earlier run with other data sets. There is always a whole file."""
    document = path.read_text(encoding="utf-8") if path.exists() else "# Results\n"
    stale = {mark: "Not run." for mark in marks(document) if mark.split()[0] == name and mark not in blocks}
    whole = path.with_name(f"{path.name}.new")
    whole.write_text(fill(document, {**stale, **blocks}), encoding="utf-8")
    os.replace(whole, path)


def _describe(target: str, plan: Plan) -> str:
    """Return the command and what it ran with."""
    options = f"{' --quick' if plan.quick else ''} --splits {plan.splits} --seed {plan.seed}"
    tables = "".join(f" --table {name}" for name in plan.tables or ())
    versions = ", ".join(f"{package} {number}" for package, number in _versions().items())
    return f"Printed by `python -m experiments {target}{options}{tables}` with Python {platform.python_version()}, {versions}."


def _versions() -> dict[str, str]:
    return {package: _version(package) for package in PACKAGES}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"
