"""Texts, sequences, graphs, mixed columns, grades and missing cells: GPSSL with a kernel for each, against the usual choice of its field.

Of each data set and split some rows train the representation, of which so many have labels, and others are predicted; the shares or
numbers are in `KINDS`. Rows are in an order of chance; the first two labels are of two classes. Methods and their fixed settings are in
`kind_methods.py`; nothing is tuned but the cost of support vector machines, by cross-validation on the labels. Representations have five
dimensions and temperature 1/N, and the head is Bayesian logistic regression. The pool is the marginalized classifier with all its defaults;
of rivals, PCA, latent semantic analysis, imputation, label spreading and kernel PCA learn from all training rows, too. In tables "thinned"
so many cells are deleted completely at random, in all rows, and differently in each split. The splits of mice protein do not keep mice
together, as in the paper: they compare what is done about missing cells, not how well a new mouse would be told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from gpssl.comparison import MEAN, split_seed
from gpssl.datasets import Table
from gpssl.evaluation import macro_roc_auc, probabilities_of

from .data.examples import Examples, load_sms_spam, load_splice
from .data.frames import load_dermatology_frame, load_kdd_frame
from .data.graphs import load_enzymes, load_mutag, load_proteins
from .data.tables import load_classification
from .figures import draw_lines, lines_of, lines_table, picture
from .kind_methods import CONNECTIONS, GRADES, GRAPHS, INCOMPLETE, MESSAGES, SEQUENCES, Method
from .ledger import Record, Task
from .methods import budget_of
from .plan import Plan
from .protocol import two_classes_first


@dataclass(frozen=True)
class Kind:
    """A data set, how it is split, and what is compared on it."""

    group: str
    """Data sets of a group share a picture."""
    load: Callable[[], Examples | Table]
    methods: Mapping[str, Method]
    labels: Sequence[float]
    """Numbers of labels, or shares of the training rows where they are below 1."""
    train: float = 0.6
    """How many rows train the representation, or which share of them all."""
    test: float = 0.4
    """How many rows are predicted, or which share."""
    scores: Sequence[str] = ("accuracy",)
    thinned: float = 0.0
    """The share of cells that are deleted."""


THINNED_LABELS = {"breast_cancer": (10, 30, 100), "wine": (10, 30, 100)}


def _thinned_name(name: str, share: float) -> str:
    return f"{name}_thinned_{100 * share:.0f}"


def _incomplete(name: str, labels: Sequence[int], thinned: float = 0.0) -> Kind:
    # No two rows of a thinned table lack the same cells, and the kernel takes long where columns are many.
    train, test = (0.3, 0.2) if name == "mice_protein" and thinned > 0 else (0.6, 0.4)
    return Kind("missing", partial(load_classification, name), INCOMPLETE, labels, train, test, thinned=thinned)


def _graphs(load_graphs: Callable[[], Examples]) -> Kind:
    return Kind("graphs", load_graphs, GRAPHS, (0.2, 0.5, 0.8), 0.7, 0.3)


KINDS: dict[str, Kind] = {
    "sms": Kind("sms", load_sms_spam, MESSAGES, (5, 10, 20, 50, 100), 1000, 1500, ("accuracy", "balanced accuracy", "ROC AUC")),
    "splice": Kind("splice", load_splice, SEQUENCES, (10, 30, 100, 300), 1000, 1000),
    "MUTAG": _graphs(load_mutag),
    "ENZYMES": _graphs(load_enzymes),
    "PROTEINS": _graphs(load_proteins),
    "kdd": Kind("kdd", load_kdd_frame, CONNECTIONS, (50, 200, 1000), 3000, 2000, ("accuracy", "balanced accuracy")),
    "dermatology": Kind("grades", load_dermatology_frame, GRADES, (10, 30, 100)),
    "mice_protein": _incomplete("mice_protein", (20, 50, 100, 300)),
    _thinned_name("mice_protein", 0.3): _incomplete("mice_protein", (50, 300), 0.3),
    **{
        _thinned_name(name, share): _incomplete(name, labels, share) for name, labels in THINNED_LABELS.items() for share in (0.1, 0.3, 0.5)
    },
}

PARTS_OF_STRINGS = (", spectrum", ", subsequences", ", mismatches")
"""Kernels under which nearly all is predicted as the most frequent class."""

QUICK_DATA = ("wine_thinned_30",)
"""It comes with scikit-learn."""


@cache
def load(data: str) -> Examples | Table:
    """Load the rows of a data set, once in each process: some take seconds."""
    return KINDS[data].load()


def tasks(plan: Plan) -> list[Task]:
    """Return all methods on all splits of all data sets."""
    data = plan.choose(tuple(KINDS), quick=QUICK_DATA)
    return [Task(name, split, method) for split in range(plan.splits) for name in data for method in KINDS[name].methods]


@dataclass(frozen=True)
class Sample:
    """One split of a data set. All training rows have labels, of which an experiment may use some."""

    train: Any
    train_y: NDArray[Any]
    test: Any
    test_y: NDArray[Any]


def sample(kind: Kind, examples: Examples | Table, seed: int) -> Sample:
    """Training rows and test rows by chance; cells to delete are chosen by chance, too."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(examples.y))
    n_train, n_test = (_count(size, len(order)) for size in (kind.train, kind.test))
    train, test = order[:n_train], order[n_train : n_train + n_test]
    X = np.where(rng.random(examples.X.shape) < kind.thinned, np.nan, examples.X) if kind.thinned > 0 else examples.X
    return Sample(_safe_indexing(X, train), examples.y[train], _safe_indexing(X, test), examples.y[test])


def _count(size: float, n_rows: int) -> int:
    return round(size * n_rows) if size < 1 else int(size)


def run(task: Task, plan: Plan) -> Record:
    """Fit the representation once, and train a classifier for each number of labels."""
    kind, seed = KINDS[task.data], split_seed(plan.seed, task.split)
    split = sample(kind, load(task.data), seed)
    classifier = kind.methods[task.method](split.train, budget_of(plan, seed))
    order = two_classes_first(split.train_y)
    record: Record = {score: {} for score in kind.scores}
    for size in kind.labels[:2] if plan.quick else kind.labels:
        few = order[: _count(size, len(order))]
        model = clone(classifier).fit(_safe_indexing(split.train, few), split.train_y[few])
        for score, value in _scores(model, split, kind.scores).items():
            record[score][str(len(few))] = value
    return record


def _scores(model: Any, split: Sample, names: Sequence[str]) -> dict[str, float]:
    """Score predictions at the test rows. Probabilities are computed only where needed: support vector machines have none."""
    scores = {}
    if "ROC AUC" in names:
        classes = np.unique(np.concatenate([split.train_y, split.test_y]))
        proba = probabilities_of(model, split.test, classes)
        predicted = classes[proba.argmax(axis=1)]
        scores["ROC AUC"] = macro_roc_auc(split.test_y, proba, classes)
    else:
        predicted = model.predict(split.test)
    right = predicted == split.test_y
    scores["accuracy"] = float(right.mean())
    scores["balanced accuracy"] = float(np.mean([right[split.test_y == label].mean() for label in np.unique(split.test_y)]))
    return {name: scores[name] for name in names}


def report(records: Sequence[Record]) -> dict[str, str]:
    """Return mean and standard error of the scores of each data set, by method and number of labels; and a picture for each group."""
    blocks = {}
    for data in dict.fromkeys(record["data"] for record in records):
        for score in KINDS[data].scores:
            mine = (record for record in records if record["data"] == data)
            blocks[f"kinds {data}" + ("" if score == "accuracy" else f" {score}")] = lines_table(lines_of(mine, score)[data])
    for group in _groups(records):
        blocks[f"kinds figure {group}"] = picture(f"kinds_{group}", "Accuracy against the number of labels, for each data set and method")
    return blocks


def draw(records: Sequence[Record], _plan: Plan, folder: Path) -> list[Path]:
    """Draw a picture for each group, with a panel for each data set."""
    paths = []
    for group, mine in _groups(records).items():
        lines = lines_of(record for record in mine if is_drawn(record["method"]))
        paths += draw_lines(lines, f"kinds_{group}", folder)
    return paths


def is_drawn(method: str) -> bool:
    """Return whether a picture has a line for the method. There are many, and means and parts of strings are left to the tables."""
    return not method.startswith(MEAN) and not method.endswith(PARTS_OF_STRINGS)


def _groups(records: Sequence[Record]) -> dict[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(KINDS[record["data"]].group, []).append(record)
    return groups
