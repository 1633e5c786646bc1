"""Table 1 of the paper, over many splits and with more methods and scores; the figures of its appendix B.

40 % of the rows train the representation, without labels; 20 % have labels; 40 % are predicted. Each method chooses its settings by the
accuracy on 20 % of the labels of heads trained on the other 80 %, and among equals by the likelihood; the final head is trained on all
labels. What the likelihood alone would have chosen is recorded too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.manifold import TSNE

from gpssl.comparison import METHODS, Grids, by_accuracy, by_likelihood, split_seed
from gpssl.datasets import Table
from gpssl.evaluation import probabilities_of, score_classification
from gpssl.plots import plot_risk_coverage

from . import paper
from .data.tables import CLASSIFICATION_TABLES, load_classification
from .figures import average_curve, plot_classes, save
from .ledger import Record, Task
from .methods import HEAD, QUICK, TABLES, models
from .plan import Plan
from .protocol import Split, learn, split_table
from .tables import Scores, criteria_table, paired_tests_table, ranks_table, scores_table, settings_table, verdicts_table

BY_MOUSE = "mice_protein_by_mouse"
"""The same table, split so that all measurements of a mouse are in the same part."""

PICTURED = ("columns", "VICReg", "kernel PCA", "GPSSL-mean", "GPSSL-full", "GP prior")
"""The paper's five methods, and the prior."""

DATA = (*CLASSIFICATION_TABLES, BY_MOUSE)


def load(data: str) -> Table:
    """Return the rows of a table, however they will be split."""
    return load_classification("mice_protein" if data == BY_MOUSE else data)


def tasks(plan: Plan) -> list[Task]:
    """Return all methods on all splits of all tables."""
    data = plan.choose(DATA, quick=("breast_cancer",))
    return [Task(name, split, method) for split in range(plan.splits) for name in data for method in METHODS]


def split_of(data: str, number: int, plan: Plan) -> Split:
    """Return one split of one table."""
    return split_table(load(data), split_seed(plan.seed, number), by_group=data == BY_MOUSE)


def run(task: Task, plan: Plan) -> Record:
    """Learn and predict; the predictions are kept for the pictures."""
    return run_on(split_of(task.data, task.split, plan), task.method, QUICK if plan.quick else TABLES)


def run_on(split: Split, method: str, grids: Grids) -> Record:
    """Learn and predict with one method on one split."""
    classes = np.unique(np.concatenate([split.labeled.y, split.test.y]))
    chosen, likeliest = learn(models(method, split.unlabeled, grids, split.seed, head=HEAD), split, by_accuracy, by_likelihood)
    proba, other = (probabilities_of(learned.estimator, split.test.rows, classes) for learned in (chosen, likeliest))
    return {
        "scores": score_classification(split.test.y, proba, classes),
        "settings": chosen.settings,
        "scores by likelihood": score_classification(split.test.y, other, classes),
        "settings by likelihood": likeliest.settings,
        "predicted": classes[proba.argmax(axis=1)].tolist(),
        "certainty": proba.max(axis=1).round(6).tolist(),
        "right": (classes[proba.argmax(axis=1)] == split.test.y).astype(int).tolist(),
    }


def report(records: Sequence[Record]) -> dict[str, str]:
    """Return a table for each data set, verdicts, tests and ranks."""
    scores = Scores(records)
    blocks = {f"uci {data}": scores_table(scores, data, paper.UCI) for data in scores.data}
    blocks["uci verdicts"] = verdicts_table(scores, paper.UCI, paper.SCORES)
    blocks |= {f"uci tests {name}": paired_tests_table(scores, name) for name in (*paper.SCORES, "log loss")}
    blocks["uci ranks"] = ranks_table(scores)
    by_likelihood = Scores([{**record, "scores": record["scores by likelihood"]} for record in records])
    blocks["uci by likelihood"] = criteria_table(scores, by_likelihood)
    blocks["uci settings"] = settings_table(records, ("neighborhood", "temperature"))
    return blocks


def draw(records: Sequence[Record], plan: Plan, folder: Path) -> list[Path]:
    """Draw for each table the rows of the first split, its test rows as each method predicts them, and the risk–coverage curves."""
    paths = []
    for data in dict.fromkeys(record["data"] for record in records):
        by_method = {method: [r for r in records if (r["data"], r["method"]) == (data, method)] for method in PICTURED}
        by_method = {method: mine for method, mine in by_method.items() if mine}
        pictures = _pictures(split_of(data, 0, plan), {method: mine[0] for method, mine in by_method.items()})
        pictures["risk_coverage"] = plot_risk_coverage({method: average_curve(mine) for method, mine in by_method.items()})
        paths += save({f"{data}_{name}": axes for name, axes in pictures.items()}, folder)
    return paths


def _pictures(split: Split, first: Mapping[str, Record]) -> dict[str, Any]:
    """Draw all rows in the plane of a t-SNE: what they are, and what is predicted."""
    parts = (split.unlabeled, split.labeled.rows, split.test.rows)
    plane = TSNE(random_state=split.seed, init="pca").fit_transform(np.vstack(parts))
    unlabeled, labeled, test = np.split(plane, np.cumsum([len(part) for part in parts])[:-1])
    data = {
        "unlabeled rows": (unlabeled, np.full(len(unlabeled), None)),
        "labeled rows": (labeled, split.labeled.y),
        "test rows": (test, split.test.y),
    }
    predictions = {"truth": (test, split.test.y), **{name: (test, np.array(record["predicted"])) for name, record in first.items()}}
    wrong = {name: ~np.array(record["right"], dtype=bool) for name, record in first.items()}
    return {"data": plot_classes(data)[0], "predictions": plot_classes(predictions, wrong=wrong)[0]}
