"""Regression on UCI tables, which the paper's abstract names and its tables lack: error, likelihood, and coverage of intervals.

The split is that of the classification tables, of at most 1,250 rows drawn anew for each split: 500 unlabeled rows, 250 with a target,
500 to predict. The head is Bayesian linear regression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpssl import comparison
from gpssl.comparison import by_likelihood, split_seed
from gpssl.datasets import Table
from gpssl.downstream import BayesianLinearRegression
from gpssl.evaluation import score_regression

from .data.tables import REGRESSION_TABLES, load_regression
from .ledger import Record, Task
from .methods import NETWORKS, QUICK, TABLES, models
from .plan import Plan
from .protocol import learn, split_table
from .tables import Scores, paired_tests_table, ranks_table, scores_table

METHODS = tuple(method for method in comparison.METHODS if method not in NETWORKS)
MAX_ROWS = 1250
GRIDS = replace(TABLES, vicreg=[setting for setting in TABLES.vicreg if setting["variance_weight"] == 25.0])
"""The grids of the tables with classes, with the weights of VICReg's authors."""


def load(data: str) -> Table:
    """Return the rows of a table."""
    return load_regression(data)


def tasks(plan: Plan) -> list[Task]:
    """Return all methods on all splits of all tables."""
    data = plan.choose(tuple(REGRESSION_TABLES), quick=("diabetes",))
    return [Task(name, split, method) for split in range(plan.splits) for name in data for method in METHODS]


def run(task: Task, plan: Plan) -> Record:
    """Learn and predict."""
    split = split_table(load(task.data), split_seed(plan.seed, task.split), max_rows=MAX_ROWS)
    grids = QUICK if plan.quick else GRIDS
    candidates = models(task.method, split.unlabeled, grids, split.seed, head=BayesianLinearRegression(), regression=True)
    (learned,) = learn(candidates, split, by_likelihood)
    return {
        "scores": score_regression(split.test.y, learned.estimator, split.test.rows),
        "settings": learned.settings,
    }


def report(records: Sequence[Record]) -> dict[str, str]:
    """Return a table for each data set, tests and ranks."""
    scores = Scores(records)
    digits = {data: _digits(scores, data) for data in scores.data}
    blocks = {f"regression {data}": scores_table(scores, data, {}, digits[data]) for data in scores.data}
    blocks |= {f"regression tests {name}": paired_tests_table(scores, name, digits) for name in ("RMSE", "NLL")}
    blocks["regression ranks"] = ranks_table(scores)
    return blocks


def _digits(scores: Scores, data: str) -> int:
    """Return how many digits to show, since targets have very different units: three of the smallest error."""
    smallest = min(scores.estimate(data, method, "RMSE").mean for method in scores.methods)
    return 3 if smallest > 0.05 else 5


def draw(_records: Sequence[Record], _plan: Plan, _folder: Path) -> list[Path]:
    """Draw nothing."""
    return []
