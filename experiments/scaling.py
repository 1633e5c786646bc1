"""The four tables with their columns as they are: what it does to methods with a kernel that nobody standardizes.

Splits, head and choice of settings are those of the tables; the lengthscale is the same for all columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpssl.comparison import split_seed
from gpssl.datasets import Table

from . import paper, uci
from .data.tables import CLASSIFICATION_TABLES, load_classification
from .ledger import Record, Task
from .methods import QUICK, TABLES
from .plan import Plan
from .protocol import split_table
from .tables import Scores, scores_table

METHODS = ("kernel PCA", "GPSSL-full", "GP prior")


def load(data: str) -> Table:
    """Return the rows of a table."""
    return load_classification(data)


def tasks(plan: Plan) -> list[Task]:
    """Return all methods on all splits of all tables."""
    data = plan.choose(CLASSIFICATION_TABLES, quick=("breast_cancer",))
    return [Task(name, split, method) for split in range(plan.splits) for name in data for method in METHODS]


def run(task: Task, plan: Plan) -> Record:
    """Learn and predict as in the tables, without standardizing."""
    split = split_table(load(task.data), split_seed(plan.seed, task.split), scaled=False)
    record = uci.run_on(split, task.method, replace(QUICK if plan.quick else TABLES, per_column=False))
    return {"scores": {name: record["scores"][name] for name in paper.SCORES}, "settings": record["settings"]}


def report(records: Sequence[Record]) -> dict[str, str]:
    """Return a table for each data set."""
    scores = Scores(records)
    return {f"scaling {data}": scores_table(scores, data, paper.UCI) for data in scores.data}


def draw(_records: Sequence[Record], _plan: Plan, _folder: Path) -> list[Path]:
    """Draw nothing."""
    return []
