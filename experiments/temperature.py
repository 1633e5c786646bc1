"""What temperature and number of draws do: accuracy and AURC of GPSSL-mean and GPSSL-full, from nearly a single function to the prior.

Splits and head are those of the tables; the kernel is the default one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from gpssl import GPSSL, MarginalizedClassifier
from gpssl.baselines import GPPrior
from gpssl.comparison import N_COMPONENTS, N_DRAWS, split_seed
from gpssl.datasets import Table
from gpssl.evaluation import Estimate, probabilities_of, score_classification

from .data.tables import CLASSIFICATION_TABLES, load_classification
from .figures import Line, plot_lines, save
from .ledger import Record, Task
from .methods import HEAD
from .plan import Plan
from .protocol import split_table
from .tables import table

Array = NDArray[np.float64]

TEMPERATURES: dict[str, float | Literal["auto"]] = {"1/N": "auto", "0.01": 0.01, "0.1": 0.1, "1": 1.0, "10": 10.0}
PRIOR = "prior"
DRAWS = (1, 3, 10, 30, 100)
SCORES = ("accuracy", "AURC")


def load(data: str) -> Table:
    """Return the rows of a table."""
    return load_classification(data)


def tasks(plan: Plan) -> list[Task]:
    """Return all temperatures on all splits of all tables; the temperature takes the place of the method."""
    data = plan.choose(CLASSIFICATION_TABLES, quick=("breast_cancer",))
    return [Task(name, split, temperature) for split in range(plan.splits) for name in data for temperature in (*TEMPERATURES, PRIOR)]


def run(task: Task, plan: Plan) -> Record:
    """Score the mean representation, and the average over the first 1, 3, … of 100 draws."""
    split = split_table(load(task.data), split_seed(plan.seed, task.split))
    classes = np.unique(np.concatenate([split.labeled.y, split.test.y]))
    prior = task.method == PRIOR
    representation = GPPrior(N_COMPONENTS) if prior else GPSSL(N_COMPONENTS, temperature=TEMPERATURES[task.method])
    representation.set_params(random_state=split.seed).fit(split.unlabeled)

    def fit(n_draws: int | None) -> MarginalizedClassifier:
        model = MarginalizedClassifier(FrozenEstimator(representation), HEAD, n_draws=n_draws, weighting="equal", random_state=split.seed)
        return model.fit(split.labeled.rows, split.labeled.y)

    full = fit(N_DRAWS)
    draws = full.predict_proba_draws(split.test.rows)
    columns = np.searchsorted(classes, full.classes_)
    scores = {}
    for n_draws in DRAWS:
        proba = np.zeros((len(split.test.y), len(classes)))
        proba[:, columns] = draws[:n_draws].mean(axis=0)
        scores[str(n_draws)] = _scores(split.test.y, proba, classes)
    if not prior and representation.posterior_.weights.mean.any():  # otherwise the mean is zero everywhere
        scores["mean"] = _scores(split.test.y, probabilities_of(fit(None), split.test.rows, classes), classes)
    return {"by draws": scores}


def _scores(y: NDArray[Any], proba: Array, classes: NDArray[Any]) -> dict[str, float]:
    scores = score_classification(y, proba, classes)
    return {name: scores[name] for name in SCORES}


def report(records: Sequence[Record]) -> dict[str, str]:
    """Return a table for each data set: temperatures in rows; the mean, and numbers of draws, in columns."""
    return {f"temperature {data} {score}": _table(records, data, score) for data in _names(records, "data") for score in SCORES}


def _table(records: Sequence[Record], data: str, score: str) -> str:
    columns = ("mean", *(str(n_draws) for n_draws in DRAWS))
    rows = []
    for temperature in _names(records, "method"):
        cells = [_estimate(records, data, temperature, column, score) for column in columns]
        rows.append([temperature, *("" if cell is None else cell.text() for cell in cells)])
    return table([f"{score}: temperature", "mean", *(f"{n} draws" if n > 1 else "1 draw" for n in DRAWS)], rows)


def _names(records: Sequence[Record], field: str) -> list[str]:
    return list(dict.fromkeys(record[field] for record in records))


def _estimate(records: Sequence[Record], data: str, temperature: str, column: str, score: str) -> Estimate | None:
    """Return the estimate over splits; None for the mean where it is zero in one of them, as that of the prior is."""
    mine = [record["by draws"] for record in records if (record["data"], record["method"]) == (data, temperature)]
    return Estimate.of([scores[column][score] for scores in mine]) if all(column in scores for scores in mine) else None


def draw(records: Sequence[Record], _plan: Plan, folder: Path) -> list[Path]:
    """Draw accuracy against the number of draws, a line for each temperature, a panel for each table."""
    panels = {
        data: [
            Line(
                f"τ = {temperature}" if temperature != PRIOR else PRIOR,
                [float(n_draws) for n_draws in DRAWS],
                [estimate for n_draws in DRAWS if (estimate := _estimate(records, data, temperature, str(n_draws), "accuracy"))],
            )
            for temperature in _names(records, "method")
        ]
        for data in _names(records, "data")
    }
    return save({"temperature": plot_lines(panels, xlabel="draws", ylabel="accuracy")[0]}, folder)
