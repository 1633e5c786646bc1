"""Accuracy against the number of labels, from 2 to 200: where a representation learned without labels helps.

60 % of the rows train the representation, of which so many have labels; 40 % are predicted. With two labels there is nothing to choose
settings by, so all methods have their defaults. The head is Bayesian logistic regression.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.base import clone

from gpssl.downstream import BayesianLogisticRegression

from .data.tables import CLASSIFICATION_TABLES, load_classification
from .figures import draw_lines, lines_of, lines_table
from .ledger import Record, Task
from .methods import Grids, models
from .plan import Plan
from .protocol import probabilities_of
from .splits import pool_table, split_seed, two_classes_first

N_LABELS = (2, 5, 10, 20, 50, 100, 200)
WARM = "GPSSL-full, τ = 1"
METHODS = ("Original", "PCA", "kernel PCA", "GPSSL-mean", "GPSSL-full", WARM, "GP-prior", "supervised GP")


def tasks(plan: Plan) -> list[Task]:
    """All methods on all splits of all tables."""
    data = plan.choose(CLASSIFICATION_TABLES, quick=("breast_cancer",))
    return [Task(name, split, method) for split in range(plan.splits) for name in data for method in METHODS]


def run(task: Task, plan: Plan) -> Record:
    """The representation once, and a head for each number of labels."""
    split = pool_table(load_classification(task.data), split_seed(plan.seed, task.split))
    X, y = split.labeled
    classes = np.unique(np.concatenate([y, split.test.y]))
    grids = Grids(neighborhoods=(10,), temperatures=(1.0 if task.method == WARM else "auto",), n_draws=20 if plan.quick else 100)
    method = "GPSSL-full" if task.method == WARM else task.method
    (model,) = models(method, split.unlabeled, grids, split.seed, head=BayesianLogisticRegression())
    order = two_classes_first(y)
    accuracies = {}
    for n_labels in N_LABELS[:4] if plan.quick else N_LABELS:
        few = order[:n_labels]
        proba = probabilities_of(clone(model.estimator).fit(X[few], y[few]), split.test.X, classes)
        accuracies[str(n_labels)] = float((classes[proba.argmax(axis=1)] == split.test.y).mean())
    return {"accuracy": accuracies}


def report(records: Sequence[Record]) -> dict[str, str]:
    """For each table, mean accuracy and standard error by method and number of labels."""
    return {f"labels {data}": lines_table(lines) for data, lines in lines_of(records).items()}


def draw(records: Sequence[Record], _plan: Plan, folder: Path) -> list[Path]:
    """One panel for each table."""
    return draw_lines(lines_of(records), "labels", folder)
