"""Kernels that follow the neighbors of rows, against learners that do, from 5 to 200 labels.

60 % of the rows train the representation, of which so many have labels; 40 % are predicted; all columns are standardized by the training
rows. The first labels are one of each class, in an order of chance, and the others come by chance. Heads are Bayesian logistic regression;
representations have five dimensions and temperature 1/N, unless it says otherwise; all else has its defaults. The selected kernel
is the one with the highest likelihood of held-out labels, in three folds of 20 or 100 labels. Label spreading and
self-training are scikit-learn's, the former with ten neighbors. The pool is the marginalized classifier with all its defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from gpssl import GPSSL, MarginalizedClassifier
from gpssl.comparison import COLUMNS, FULL, N_COMPONENTS, PRIOR, split_seed
from gpssl.datasets import Table
from gpssl.downstream import BayesianLogisticRegression, RepresentationSearch
from gpssl.inference import Variational
from gpssl.kernels import NeighborDiffusion, NeighborRBF

from .data.tables import CLASSIFICATION_TABLES, FURTHER_TABLES, load_classification
from .figures import draw_lines, lines_of, lines_table, picture
from .kind_methods import POOL, pool
from .ledger import Record, Task
from .methods import WARM, Budget, budget_of, classifier_with
from .plan import Plan
from .protocol import Array, classes_first, pool_table

N_LABELS = (5, 10, 20, 30, 50, 100, 200)
SELECTION_LABELS = (20, 100)
"""Enough to choose by; not all, since choosing takes the longest."""
N_NEIGHBORS = 10
MORE_COMPONENTS = 10
"""More components than in the paper, because the digits have ten classes."""
N_FOLDS = 3
SELECTION_DRAWS = 10

SELECTED = "GPSSL-full, selected"
NOT_DRAWN = ("kernel PCA", "GPSSL-full, RBF", "GPSSL-full, τ = 1, diffusion", "GPSSL-full, diffusion + RBF", SELECTED)
"""Methods that are left to the tables: a picture of them all has too many lines."""
DATA = (*CLASSIFICATION_TABLES, *FURTHER_TABLES)


def _diffusion() -> NeighborDiffusion:
    return NeighborDiffusion(N_NEIGHBORS)


def _sum() -> Kernel:
    return _diffusion() + NeighborRBF()


class KernelSelection(ClassifierMixin, BaseEstimator):
    """GPSSL-full with the kernel of the highest likelihood on held-out labels. The representations learn from all training rows."""

    def __init__(self, n_draws: int, seed: int) -> None:
        self.n_draws = n_draws
        self.seed = seed

    def fit(self, X: Array, y: NDArray[Any]) -> KernelSelection:
        """Choose after a few steps of inference and with few draws, which tell good kernels from bad ones; train with all."""
        diffusions = [NeighborDiffusion(k, time=time) for k in (5, N_NEIGHBORS) for time in ("auto", 64)]
        grid = {"kernel": [*diffusions, NeighborRBF(), _sum()]}
        rough = GPSSL(N_COMPONENTS, inference=Variational(precise=False), random_state=self.seed)
        classifier = MarginalizedClassifier(
            rough, BayesianLogisticRegression(), n_draws=SELECTION_DRAWS, weighting="equal", random_state=self.seed
        )
        search = RepresentationSearch(classifier, grid, cv=N_FOLDS, random_state=self.seed).fit(X, y)
        budget = Budget(self.n_draws, self.seed)
        chosen = classifier_with(FULL, search.best_params_["kernel"], X, budget)
        self.best_estimator_ = chosen.fit(X, y)
        return self

    def predict(self, X: Array) -> NDArray[Any]:
        """Return the class of each row. [n]"""
        return self.best_estimator_.predict(X)


def _with(method: str, kernel: Callable[[], Kernel], n_components: int = N_COMPONENTS) -> Callable[[Array, Budget], Any]:
    return lambda X, budget: classifier_with(method, kernel(), X, budget, n_components)


METHODS: dict[str, Callable[[Array, Budget], Any]] = {
    COLUMNS: _with(COLUMNS, NeighborRBF),
    "label spreading": lambda _X, _budget: LabelSpreading(kernel="knn", n_neighbors=N_NEIGHBORS, max_iter=200),
    "self-training": lambda _X, _budget: SelfTrainingClassifier(LogisticRegression(max_iter=1000)),
    "kernel PCA": _with("kernel PCA", NeighborRBF),
    "kernel PCA, diffusion": _with("kernel PCA", _diffusion),
    "kernel PCA, J = 10, diffusion": _with("kernel PCA", _diffusion, MORE_COMPONENTS),
    "GP prior, diffusion": _with(PRIOR, _diffusion),
    "GP prior, J = 10, diffusion": _with(PRIOR, _diffusion, MORE_COMPONENTS),
    "GPSSL-full, diffusion": _with(FULL, _diffusion),
    "GPSSL-full, τ = 1, diffusion": _with(WARM, _diffusion),
    "GPSSL-full, J = 10, diffusion": _with(FULL, _diffusion, MORE_COMPONENTS),
    "GPSSL-full, RBF": _with(FULL, NeighborRBF),
    "GPSSL-full, diffusion + RBF": _with(FULL, _sum),
    SELECTED: lambda _X, budget: KernelSelection(*budget),
    POOL: pool,
}
"""From unlabeled rows to a classifier whose `fit` takes all training rows, those without a label marked by −1."""


def load(data: str) -> Table:
    """Return the rows of a table."""
    return load_classification(data)


def tasks(plan: Plan) -> list[Task]:
    """Return all methods on all splits of all tables."""
    data = plan.choose(DATA, quick=("wine",))
    return [Task(name, split, method) for split in range(plan.splits) for name in data for method in METHODS]


def run(task: Task, plan: Plan) -> Record:
    """Fit the representation once, and train a classifier for each number of labels."""
    split = pool_table(load(task.data), split_seed(plan.seed, task.split))
    X, y = split.labeled.rows, split.labeled.y
    _, codes = np.unique(np.concatenate([y, split.test.y]), return_inverse=True)
    truth, order = codes[len(y) :], classes_first(y)
    classifier = METHODS[task.method](X, budget_of(plan, split.seed))
    accuracies = {}
    for n_labels in _numbers_of_labels(task.method, len(y), plan):
        marked = np.full(len(y), -1)
        marked[order[:n_labels]] = codes[order[:n_labels]]
        accuracies[str(n_labels)] = float((clone(classifier).fit(X, marked).predict(split.test.rows) == truth).mean())
    return {"accuracy": accuracies}


def _numbers_of_labels(method: str, n_rows: int, plan: Plan) -> list[int]:
    """Return the numbers of labels to train on, not more than there are rows."""
    numbers = N_LABELS[:3] if plan.quick else N_LABELS
    return [n_labels for n_labels in numbers if n_labels <= n_rows and (method != SELECTED or n_labels in SELECTION_LABELS)]


def report(records: Sequence[Record]) -> dict[str, str]:
    """Return for each table the mean accuracy and its standard error, by method and number of labels; and the picture."""
    blocks = {f"neighbors {data}": lines_table(lines) for data, lines in lines_of(records).items()}
    return {**blocks, "neighbors figure": picture("neighbors", "Accuracy against the number of labels, for each table and method")}


def draw(records: Sequence[Record], _plan: Plan, folder: Path) -> list[Path]:
    """Draw one panel for each table."""
    return draw_lines(lines_of(record for record in records if record["method"] not in NOT_DRAWN), "neighbors", folder)
