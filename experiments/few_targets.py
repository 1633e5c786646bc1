"""Regression tables with 30, 100 and 300 targets: error, likelihood, and coverage of intervals.

Of a table at most 1,000 rows are drawn. All of them are known, and so many of them, drawn by chance, have a target; the others are
predicted, and there are at least 100 of them. Targets are measured in standard deviations, so that tables can be averaged. Learners without
a standard deviation of their own get that of their errors on targets which they have not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_predict
from threadpoolctl import threadpool_limits

from gpssl import MarginalizedRegressor, RepresentationPool
from gpssl.comparison import FULL, MEAN, PRIOR, SUPERVISED, numbers_from, split_seed
from gpssl.datasets import Table
from gpssl.downstream import BayesianLinearRegression
from gpssl.evaluation import negative_log_likelihood, root_mean_squared_error
from gpssl.evaluation._calibration import INTERVAL, distribution_at

from .data.tables import REGRESSION_TABLES, load_regression
from .few_label_pools import POOL, is_learned
from .ledger import Record, Task
from .methods import FIXED, models
from .plan import Plan
from .ranked import Layout

Array = NDArray[np.float64]

MAX_ROWS = 1000
N_TARGETS = (30, 100, 300)
LEAST_PREDICTED = 100
N_FOLDS = 5
N_TREES = 500
PENALTIES = np.logspace(-3, 3, 13)
ITERATIONS = (10, 30, 100, 300)

LAYOUT = Layout("few-targets", N_TARGETS, "targets", ("RMSE", "NLL", "coverage"), ("NLL", "RMSE"))

QUICK_TABLES = ("diabetes",)
QUICK_METHODS = ("ridge", MEAN, FULL)


class Prediction(NamedTuple):
    """For each row a Gaussian, or a mixture of S of them."""

    mean: Array
    """[n] or [S, n]"""
    std: Array
    """[n] or [S, n]"""
    weights: Array | None = None
    """The weights of the mixture; None where they are equal. [S]"""


@dataclass(frozen=True)
class Split:
    """A sample of a table. Methods see the rows, and of `y` only what `marked` shows."""

    numbers: Array
    """Standardized columns. [n, D]"""
    y: Array
    """Targets in standard deviations. [n]"""
    order: NDArray[np.intp]
    """The rows in the order in which they get their targets. [n]"""
    seed: int

    def marked(self, n_targets: int) -> Array:
        """Return the first targets, and NaN for all other rows. [n]"""
        y = np.full(len(self.y), np.nan)
        y[self.order[:n_targets]] = self.y[self.order[:n_targets]]
        return y


def few_targets_split(source: Table, split: int, seed: int = 0) -> Split:
    """Draw at most `MAX_ROWS` rows, and the order in which they get targets."""
    own_seed = split_seed(seed, split)
    rng = np.random.default_rng(own_seed)
    rows = rng.permutation(len(source.y))[:MAX_ROWS]
    X, y = source.X[rows], source.y[rows]
    return Split(np.asarray(numbers_from(X).fit_transform(X)), y / y.std(), rng.permutation(len(rows)), own_seed)


# Methods


class Predictor(Protocol):
    """A method that has seen the rows of a split: from marked targets to predictions of the rows without one."""

    def __call__(self, marked: Array, /) -> Prediction:
        """Return the distribution at each row without a target."""


Rival = Callable[[Array, Array, Array, int], Prediction]
"""From rows with targets, the targets, rows to predict, and a seed."""


def ridge(X: Array, y: Array, others: Array, _seed: int) -> Prediction:
    """Predict by ridge regression, whose penalty is chosen by leaving each target out in turn."""
    model = RidgeCV(PENALTIES, store_cv_results=True).fit(X, y)
    return _with_errors(model.predict(others), np.sqrt(model.cv_results_.mean(axis=0).min()))


def random_forest(X: Array, y: Array, others: Array, seed: int) -> Prediction:
    """Predict by 500 trees; errors are those of the trees that have not seen a target."""
    model = RandomForestRegressor(N_TREES, oob_score=True, random_state=seed).fit(X, y)
    return _with_errors(model.predict(others), root_mean_squared_error(y, model.oob_prediction_))


def gradient_boosting(X: Array, y: Array, others: Array, seed: int) -> Prediction:
    """Predict by boosted trees, whose number is chosen by the error on held-out targets; leaves have a tenth of the targets, at most 20."""
    leaf = int(np.clip(len(y) // 10, 1, 20))
    made = [
        HistGradientBoostingRegressor(max_iter=n_trees, min_samples_leaf=leaf, early_stopping=False, random_state=seed)
        for n_trees in ITERATIONS
    ]
    folds = KFold(N_FOLDS, shuffle=True, random_state=seed)
    with threadpool_limits(1):  # tables are small, and threads of several tasks would wait for each other
        errors = [root_mean_squared_error(y, cross_val_predict(model, X, y, cv=folds)) for model in made]
        best = int(np.argmin(errors))
        return _with_errors(made[best].fit(X, y).predict(others), errors[best])


def _with_errors(mean: Array, error: float) -> Prediction:
    return Prediction(mean, np.full(len(mean), error))


def of_rows(rival: Rival) -> Callable[[Split], Predictor]:
    """Return a method of a split from a function of its rows."""

    def predictor(split: Split) -> Predictor:
        def predict(marked: Array) -> Prediction:
            known = np.isfinite(marked)
            return rival(split.numbers[known], marked[known], split.numbers[~known], split.seed)

        return predict

    return predictor


def _of_functions(method: str) -> Callable[[Split], Predictor]:
    """Return a method of `gpssl.comparison` with its default settings; its representation is learned once for all numbers of targets."""

    def predictor(split: Split) -> Predictor:
        (candidate,) = models(method, split.numbers, FIXED, split.seed, head=BayesianLinearRegression(), regression=True)

        def predict(marked: Array) -> Prediction:
            model = candidate.estimator.fit(split.numbers, marked)
            return Prediction(*model.predict_draws(split.numbers[np.isnan(marked)]))

        return predict

    return predictor


def pool(split: Split) -> Predictor:
    """Predict with all defaults."""
    return _with_pool(RepresentationPool(random_state=split.seed), split)


def pool_without_learning(split: Split) -> Predictor:
    """Predict with the members of the pool that have learned nothing."""
    members = [member for member in RepresentationPool.for_rows(split.numbers).members or [] if not is_learned(member.name)]
    return _with_pool(RepresentationPool(members, random_state=split.seed), split)


def _with_pool(members: RepresentationPool, split: Split) -> Predictor:
    model = MarginalizedRegressor(FrozenEstimator(members.fit(split.numbers)), random_state=split.seed)

    def predict(marked: Array) -> Prediction:
        rows = split.numbers[np.isnan(marked)]
        return Prediction(*model.fit(split.numbers, marked).predict_draws(rows), model.component_weights)

    return predict


METHODS: dict[str, Callable[[Split], Predictor]] = {
    "ridge": of_rows(ridge),
    "random forest": of_rows(random_forest),
    "gradient boosting": of_rows(gradient_boosting),
    **{method: _of_functions(method) for method in (SUPERVISED, PRIOR, MEAN, FULL)},
    POOL: pool,
    f"{POOL} without learning": pool_without_learning,
}
"""All methods by name. Each is given a split, whose targets it leaves alone, and returns a predictor."""


# The experiment


def load(data: str) -> Table:
    """Return the rows of a table."""
    return load_regression(data)


def tasks(plan: Plan) -> list[Task]:
    """Return all methods on all splits of all tables; a quick run leaves out those that take long."""
    data = plan.choose(REGRESSION_TABLES, quick=QUICK_TABLES)
    methods = [method for method in METHODS if not plan.quick or method in QUICK_METHODS]
    return [Task(name, split, method) for split in range(plan.splits) for name in data for method in methods]


def run(task: Task, plan: Plan) -> Record:
    """Show the rows to a method once, and score its predictions for each number of targets that leaves enough to predict."""
    split = few_targets_split(load(task.data), task.split, plan.seed)
    predict = METHODS[task.method](split)
    record: Record = {name: {} for name in LAYOUT.scores}
    for n_targets in N_TARGETS:
        if len(split.y) - n_targets >= LEAST_PREDICTED:
            marked = split.marked(n_targets)
            for name, value in score(split.y[np.isnan(marked)], predict(marked)).items():
                record[name][str(n_targets)] = value
    return record


def score(truth: Array, prediction: Prediction) -> dict[str, float]:
    """Return error, likelihood, and the share of targets in the central 90 % interval."""
    mean, std, weights = np.atleast_2d(prediction.mean), np.atleast_2d(prediction.std), prediction.weights
    level = distribution_at(truth, mean, std, weights)
    return {
        "RMSE": root_mean_squared_error(truth, mean, weights=weights),
        "NLL": negative_log_likelihood(truth, mean, std, weights=weights),
        "coverage": float((np.abs(level - 0.5) <= INTERVAL / 2).mean()),
    }


def report(records: Sequence[Record]) -> dict[str, str]:
    """Return the tables of `Layout`."""
    return LAYOUT.blocks(records)


def draw(records: Sequence[Record], _plan: Plan, folder: Path) -> list[Path]:
    """Draw the mean likelihood over all tables against the number of targets."""
    return LAYOUT.draw(records, folder)
