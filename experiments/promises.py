"""How often `gpssl label --max-risk 0.05` breaks its promise, on rows of populations that are known.

In each simulation a table of 1,500 rows is drawn, of which some have a label; the whole of `gpssl.label` is run on it, with all defaults;
and the errors among the predictions that it keeps are counted. The promise is that they are more than 5 % in at most 5 % of the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import gpssl
from gpssl.comparison import split_seed

from .ledger import Record, Task
from .plan import Plan
from .tables import table

Rows = tuple[pd.DataFrame, NDArray[np.intp]]

MAX_RISK, CONFIDENCE = 0.05, 0.95
N_ROWS = 1500
N_LABELS = (50, 100, 200, 300)


def _normal_classes(rng: np.random.Generator) -> Rows:
    """Draw two normal classes in eight columns, which overlap: at best one row in ten is wrong."""
    y = rng.integers(2, size=N_ROWS)
    X = rng.standard_normal((N_ROWS, 8)) + 0.45 * np.where(y, 1, -1)[:, None]
    return pd.DataFrame(X, columns=[f"c{k}" for k in range(8)]), y


def _rings(rng: np.random.Generator) -> Rows:
    """Draw three rings with noise, and three columns that say nothing."""
    y = rng.integers(3, size=N_ROWS)
    angle, radius = rng.uniform(0, 2 * np.pi, N_ROWS), 1.0 + y + 0.25 * rng.standard_normal(N_ROWS)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), rng.standard_normal((N_ROWS, 3))])
    return pd.DataFrame(X, columns=[f"c{k}" for k in range(5)]), y


def _mixed_columns(rng: np.random.Generator) -> Rows:
    """Draw labels from a logistic function of two numbers and a category; a tenth of the cells are missing."""
    X, level = rng.standard_normal((N_ROWS, 4)), rng.integers(3, size=N_ROWS)
    logit = 3.0 * X[:, 0] * np.where(level == 0, 1, -1) + 2.0 * X[:, 1] + np.array([0.0, 1.0, -1.0])[level]
    y = (rng.random(N_ROWS) < 1 / (1 + np.exp(-2 * logit))).astype(np.intp)
    frame = pd.DataFrame(np.where(rng.random(X.shape) < 0.1, np.nan, X), columns=[f"c{k}" for k in range(4)])
    return frame.assign(level=np.array(["low", "middle", "high"], dtype=object)[level]), y


POPULATIONS: dict[str, Callable[[np.random.Generator], Rows]] = {
    "normal": _normal_classes,
    "rings": _rings,
    "mixed": _mixed_columns,
}


def load(data: str) -> str:
    """Return the name of a population, whose rows are drawn in each task."""
    return data


def tasks(plan: Plan) -> list[Task]:
    """Return all numbers of labels for all draws of all populations."""
    data = plan.choose(tuple(POPULATIONS), quick=("normal",))
    counts = N_LABELS[1:2] if plan.quick else N_LABELS
    return [Task(name, split, f"{n_labels} labels") for split in range(plan.splits) for name in data for n_labels in counts]


def run(task: Task, plan: Plan) -> Record:
    """Draw a table, label it, and count the errors among what is kept."""
    n_labels = int(task.method.split()[0])
    seed = split_seed(plan.seed, task.split)
    frame, y = POPULATIONS[task.data](np.random.default_rng([seed, n_labels]))
    truth = np.array([f"class {code}" for code in y], dtype=object)
    known = np.arange(N_ROWS) < n_labels
    labels = pd.Series(truth).where(known, None)
    result = gpssl.label(frame.assign(kind=labels), "kind", max_risk=MAX_RISK, confidence=CONFIDENCE, random_state=0)
    found = result.frame()[~known]
    kept = ~found["kind_abstain"].to_numpy(dtype=bool)
    wrong = found["kind_predicted"].to_numpy() != truth[~known]
    return {"rows": int((~known).sum()), "kept": int(kept.sum()), "wrong": int(wrong[kept].sum()), "error": float(wrong.mean())}


def report(records: Sequence[Record]) -> dict[str, str]:
    """Return how often the promise was broken, by population and number of labels, and over all."""
    groups = dict.fromkeys((record["data"], record["method"]) for record in records)
    rows = [
        _row(f"{data}, {method}", [one for one in records if (one["data"], one["method"]) == (data, method)]) for data, method in groups
    ]
    header = ["", "errors among all", "share kept", "errors among the kept", f"tables with more than {MAX_RISK:.0%}"]
    return {"promises": table(header, [*rows, _row("all", records)])}


def _row(name: str, records: Sequence[Record]) -> list[str]:
    n_kept, n_wrong = (sum(record[part] for record in records) for part in ("kept", "wrong"))
    broken = sum(record["wrong"] > MAX_RISK * record["kept"] for record in records)
    share = np.mean([record["kept"] / record["rows"] for record in records])
    error = f"{100 * n_wrong / n_kept:.1f} %" if n_kept else ""
    return [name, f"{100 * np.mean([one['error'] for one in records]):.1f} %", f"{100 * share:.0f} %", error, f"{broken} of {len(records)}"]


def draw(_records: Sequence[Record], _plan: Plan, _folder: Path) -> list[Path]:
    """Draw nothing."""
    return []
