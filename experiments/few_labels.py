"""Many tables with 10, 30 and 100 labels: how good probabilities are, and which method is the best on most tables.

Of a table at most 1,000 rows are drawn. All of them are known, and so many of them, drawn by chance, have labels; the others are predicted.
What is written down are scores only: statistics come from the finished tasks.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold

from gpssl.comparison import FULL, PRIOR
from gpssl.evaluation import risk_controlled_threshold

from .data.examples import Examples
from .data.keel import DEVELOPMENT_TABLES, load_keel
from .few_label_protocol import N_LABELS, UNLABELED, Array, all_classes, few_labels_split, score
from .few_label_rivals import METHODS, Codes, Predictor
from .ledger import Record, Task
from .plan import Plan
from .ranked import POOL, Layout, is_ablation
from .tables import table

LAYOUT = Layout("few-labels", N_LABELS, "labels", ("accuracy", "log loss (seen)", "log loss", "AURC", "ECE"), ("log loss (seen)", "AURC"))

MAX_RISK = 0.05
JUDGED_LABELS = 100
"""An error rate of 5 % takes at least 59 labels to be promised with 95 % confidence, so that 30 are never enough."""
JUDGED = ("logistic regression", "random forest", PRIOR, FULL, POOL)
"""Methods of which a part of the predictions is kept; each is trained five more times for it."""
N_FOLDS = 5
ABLATION_SPLITS = 3
"""Splits on which the pool is run with a part changed: differences are those of the same predictions with other weights."""

QUICK_TABLES = ("heart", "wisconsin")
QUICK_METHODS = ("logistic regression", "label spreading", "PCA", FULL, POOL)


def load(data: str) -> Examples:
    """Return the rows of a table."""
    return load_keel(data)


def tasks(plan: Plan) -> list[Task]:
    """Return all methods on all splits of all tables; a quick run leaves out those that take long."""
    data = plan.choose(DEVELOPMENT_TABLES, quick=QUICK_TABLES)
    methods = [method for method in METHODS if not plan.quick or method in QUICK_METHODS]
    return [
        Task(name, split, method)
        for split in range(plan.splits)
        for name in data
        for method in methods
        if not is_ablation(method) or split < ABLATION_SPLITS
    ]


def run(task: Task, plan: Plan) -> Record:
    """Show the rows to a method once, and score its predictions for each number of labels."""
    split = few_labels_split(load(task.data), task.split, plan.seed)
    predict = METHODS[task.method](split)
    record: Record = {name: {} for name in LAYOUT.scores}
    for n_labels in N_LABELS:
        marked = split.marked(n_labels)
        truth = split.y[marked == UNLABELED]
        proba = all_classes(predict(marked), marked, split.n_classes)
        for name, value in score(truth, proba, marked).items():
            record[name][str(n_labels)] = value
        if n_labels == JUDGED_LABELS and task.method in JUDGED:
            threshold = threshold_from_labels(predict, marked, split.n_classes, split.seed)
            record["kept"] = kept_counts(truth, proba, threshold)
    return record


# Which predictions to keep


def threshold_from_labels(predict: Predictor, marked: Codes, n_classes: int, seed: int) -> float:
    """Return the certainty above which at most 5 % of the predictions are wrong, with 95 % confidence, by labels held out in turn."""
    y, proba = held_out_labels(predict, marked, n_classes, seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No threshold holds the risk")  # no prediction is then kept, which is what is counted
        return risk_controlled_threshold(y, proba, MAX_RISK, labels=np.arange(n_classes))


def held_out_labels(predict: Predictor, marked: Codes, n_classes: int, seed: int) -> tuple[Codes, Array]:
    """Return the labels, and their probabilities from models that saw these rows without their labels. [n], [n, K]"""
    labeled = np.flatnonzero(marked != UNLABELED)
    y = marked[labeled]
    proba = np.full((len(y), n_classes), 1 / n_classes)
    for held_out in _folds(y, seed):
        hidden = marked.copy()
        hidden[labeled[held_out]] = UNLABELED
        if len(np.unique(hidden)) > 2:  # two classes and the mark
            places = np.searchsorted(np.flatnonzero(hidden == UNLABELED), labeled[held_out])
            proba[held_out] = all_classes(predict(hidden)[places], hidden, n_classes)
    return y, proba


def _folds(y: Codes, seed: int) -> list[Codes]:
    """Return the places of the labels that are held out together. A class with fewer labels than folds is not in all of them."""
    n_folds = min(N_FOLDS, int(np.bincount(y).max()))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")
        return [held_out for _, held_out in StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(y, y)]


def kept_counts(truth: Codes, proba: Array, threshold: float) -> dict[str, int]:
    """Return how many rows were predicted, how many predictions are kept, and how many of these are wrong."""
    kept = proba.max(axis=1) > threshold
    return {"rows": len(truth), "kept": int(kept.sum()), "wrong": int((proba.argmax(axis=1) != truth)[kept].sum())}


# Tables and pictures


def report(records: Sequence[Record]) -> dict[str, str]:
    """Return the tables of `Layout`, and what is kept."""
    return {**LAYOUT.blocks(records), "few-labels kept": kept_table([record for record in records if "kept" in record])}


def kept_table(records: Sequence[Record]) -> str:
    """Return how much each method keeps at a risk of 5 %, and how often it is wrong there; over all splits of all tables."""
    rows = []
    for method in dict.fromkeys(record["method"] for record in records):
        mine = [record["kept"] for record in records if record["method"] == method]
        n_kept, n_wrong = (sum(counts[name] for counts in mine) for name in ("kept", "wrong"))
        share = np.mean([counts["kept"] / counts["rows"] for counts in mine])
        error = f"{100 * n_wrong / n_kept:.1f} %" if n_kept else ""
        n_above = sum(counts["wrong"] > MAX_RISK * counts["kept"] for counts in mine)
        rows.append([method, f"{100 * share:.0f} %", error, f"{n_above} of {len(mine)}"])
    return table([f"{JUDGED_LABELS} labels", "kept", "errors among the kept", "splits with more than 5 % errors"], rows)


def draw(records: Sequence[Record], _plan: Plan, folder: Path) -> list[Path]:
    """Draw the mean log loss over all tables against the number of labels."""
    return LAYOUT.draw(records, folder)
