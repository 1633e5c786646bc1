"""The paper's circles: what the representations look like (section 3.2), and what they are worth in decisions (section 3.3.1).

450 unlabeled rows in three of four quadrants train the representation; settings are chosen by 50 labeled rows from the same
quadrants. The final head, a Bayesian logistic regression, is trained on 50 rows from all quadrants and predicts 500.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from gpssl import MarginalizedClassifier, RepresentationPool
from gpssl.comparison import METHODS, POOL, by_likelihood, split_seed
from gpssl.datasets import even_circles, quadrant_circles
from gpssl.downstream import BayesianLogisticRegression
from gpssl.evaluation import Labeled, probabilities_of, score_classification
from gpssl.plots import Grid, plot_maps, plot_probabilities, plot_risk_coverage

from .figures import average_curve, plot_classes, save
from .ledger import Record, Task
from .methods import CIRCLES, QUICK, models
from .plan import Plan
from .protocol import Learned, Split, learn
from .tables import Scores, paired_tests_table, ranks_table, scores_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

VALIDATION_ROWS = (30, 10, 10, 0)
N_LABELED, N_TEST = 50, 500
HALF_WIDTH = 2.0
PICTURED = ("GPSSL-mean", "GPSSL-full", "kernel PCA", "VICReg", "GP prior")
"""The paper's four methods, and the prior."""

CLASSES = np.array([0, 1])


def load(_data: str) -> None:
    """Do nothing: circles are drawn, not read."""


def tasks(plan: Plan) -> list[Task]:
    """Return all methods on all samples but two: with two columns PCA changes nothing, and wide networks are for wide tables."""
    plan.choose(("circles",), quick=("circles",))
    return [Task("circles", split, method) for split in range(plan.splits) for method in METHODS if method not in ("PCA", "VICReg-wide")]


def sample(number: int, plan: Plan) -> Split:
    """Draw one sample of the circles."""
    seed = split_seed(plan.seed, number)
    unlabeled, _ = quadrant_circles(seed=seed)
    validation = Labeled.of(*quadrant_circles(VALIDATION_ROWS, seed=seed + 1))
    labeled, test = (Labeled.of(*even_circles(n, seed=seed + 2 + i)) for i, n in enumerate((N_LABELED, N_TEST)))
    return Split(unlabeled, validation, labeled, test, seed)


def _learn(method: str, split: Split, plan: Plan) -> Learned:
    grids = QUICK if plan.quick else CIRCLES
    (learned,) = learn(models(method, split.unlabeled, grids, split.seed, head=BayesianLogisticRegression()), split, by_likelihood)
    return learned


def run(task: Task, plan: Plan) -> Record:
    """Learn and predict."""
    split = sample(task.split, plan)
    learned = _learn(task.method, split, plan)
    proba = probabilities_of(learned.estimator, split.test.rows, CLASSES)
    return {
        "scores": score_classification(split.test.y, proba, CLASSES),
        "settings": learned.settings,
        "certainty": proba.max(axis=1).round(6).tolist(),
        "right": (proba.argmax(axis=1) == split.test.y).astype(int).tolist(),
    }


def report(records: Sequence[Record]) -> dict[str, str]:
    """Return scores, tests and ranks."""
    scores = Scores(records)
    return {
        "circles": scores_table(scores, "circles", {}),
        "circles tests accuracy": paired_tests_table(scores, "accuracy"),
        "circles tests AURC": paired_tests_table(scores, "AURC"),
        "circles ranks": ranks_table(scores),
    }


def draw(records: Sequence[Record], plan: Plan, folder: Path) -> list[Path]:
    """Draw the figures of sections 3.2 and 3.3.1 on the first sample; the risk–coverage curve is the average over samples."""
    split = sample(0, plan)
    learned = {method: _learn(method, split, plan).estimator for method in PICTURED}
    pictures = {"circles_data": _data(split)}
    representations = {name: learned[name].representation_ for name in ("GPSSL-mean", "kernel PCA", "VICReg")}
    for name, representation in representations.items():
        short = name.lower().replace(" ", "_").replace("-mean", "")
        pictures |= _maps(short, representation, split.unlabeled)
    pictures["circles_probabilities"] = plot_plane({**learned, POOL: _pool(split)}, split)
    curves = {name: average_curve([record for record in records if record["method"] == name]) for name in PICTURED}
    pictures["circles_risk_coverage"] = plot_risk_coverage(curves)
    return save(pictures, folder)


def plot_plane(classifiers: Mapping[str, Any], split: Split) -> Axes:
    """Draw the probability of a class and its standard deviation over the plane."""
    grid = Grid.between((-3, -3), (3, 3), n_points=61)
    return plot_probabilities(classifiers, split.labeled.rows, split.labeled.y, grid=grid)[0, 0]


def _pool(split: Split) -> MarginalizedClassifier:
    """Return the pool with all defaults."""
    pool = RepresentationPool(random_state=split.seed).fit(split.unlabeled)
    return MarginalizedClassifier(FrozenEstimator(pool), random_state=split.seed).fit(split.labeled.rows, split.labeled.y)


def _data(split: Split) -> Axes:
    """Draw the rows that train the representation, and the labeled rows and test rows."""
    _, circle = quadrant_circles(seed=split.seed)
    panels = {"unlabeled rows": (split.unlabeled, circle), "labeled rows": split.labeled[1:3], "test rows": split.test[1:3]}
    return plot_classes(panels)[0]


def _maps(name: str, representation: Any, X: Array) -> dict[str, Axes]:
    """Draw each dimension over the plane, its standard deviation where there is one, and the distance to the origin's representation."""
    grid = Grid.between((-HALF_WIDTH, -HALF_WIDTH), (HALF_WIDTH, HALF_WIDTH))
    mean = np.asarray(representation.transform(grid.points))
    dimensions = [f"dimension {j + 1}" for j in range(mean.shape[1])]
    distance = np.linalg.norm(mean - representation.transform(np.zeros((1, 2))), axis=1, keepdims=True)
    pictures = {
        f"circles_{name}": plot_maps(mean, grid, X, titles=dimensions, label="value", diverging=True)[0],
        f"circles_{name}_distance": plot_maps(distance, grid, X, titles=["distance to (0, 0)"], label="distance")[0],
    }
    if hasattr(representation, "std"):
        std = representation.std(grid.points)
        average = std.mean(axis=1, keepdims=True)
        label = "standard deviation"
        pictures[f"circles_{name}_std"] = plot_maps(std, grid, X, titles=dimensions, label=label)[0]
        pictures[f"circles_{name}_average_std"] = plot_maps(average, grid, X, titles=["average over dimensions"], label=label)[0]
    return pictures
