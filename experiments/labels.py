"""Accuracy against the number of labels, from 2 to 200: where a representation learned without labels helps.

60 % of the rows train the representation, of which so many have labels; 40 % are predicted. With two labels there is nothing to choose
settings by, so all methods have their defaults. The head is Bayesian logistic regression.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.base import clone

from gpssl.comparison import split_seed
from gpssl.datasets import Table
from gpssl.evaluation import probabilities_of
from gpssl.kernels import NeighborRBF

from .data.tables import CLASSIFICATION_TABLES, load_classification
from .figures import draw_lines, lines_of, lines_table
from .ledger import Record, Task
from .methods import WARM, budget_of, classifier_with
from .plan import Plan
from .protocol import pool_table, two_classes_first

N_LABELS = (2, 5, 10, 20, 50, 100, 200)
METHODS = ("columns", "PCA", "kernel PCA", "GPSSL-mean", "GPSSL-full", WARM, "GP prior", "supervised GP")


def load(data: str) -> Table:
    """Return the rows of a table."""
    return load_classification(data)


def tasks(plan: Plan) -> list[Task]:
    """Return all methods on all splits of all tables."""
    data = plan.choose(CLASSIFICATION_TABLES, quick=("breast_cancer",))
    return [Task(name, split, method) for split in range(plan.splits) for name in data for method in METHODS]


def run(task: Task, plan: Plan) -> Record:
    """Fit the representation once, and train a head for each number of labels."""
    split = pool_table(load(task.data), split_seed(plan.seed, task.split))
    X, y = split.labeled.rows, split.labeled.y
    classes = np.unique(np.concatenate([y, split.test.y]))
    model = classifier_with(task.method, NeighborRBF(), split.unlabeled, budget_of(plan, split.seed))
    order = two_classes_first(y)
    accuracies = {}
    for n_labels in N_LABELS[:4] if plan.quick else N_LABELS:
        few = order[:n_labels]
        proba = probabilities_of(clone(model).fit(X[few], y[few]), split.test.rows, classes)
        accuracies[str(n_labels)] = float((classes[proba.argmax(axis=1)] == split.test.y).mean())
    return {"accuracy": accuracies}


def report(records: Sequence[Record]) -> dict[str, str]:
    """Return for each table the mean accuracy and its standard error, by method and number of labels."""
    return {f"labels {data}": lines_table(lines) for data, lines in lines_of(records).items()}


def draw(records: Sequence[Record], _plan: Plan, folder: Path) -> list[Path]:
    """Draw one panel for each table."""
    return draw_lines(lines_of(records), "labels", folder)
