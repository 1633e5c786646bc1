"""At most 5 % errors: thresholds that hold a risk, and what is left of the rows.

Breast cancer: 219 rows train the representation, 60 of them have labels; 200 others with labels set the threshold; the remaining 150 are
predicted or left to a human. The promise is about the share of splits in which the error among the rows that were kept exceeds the limit.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

from gpssl.comparison import split_seed
from gpssl.datasets import Table, load_breast_cancer
from gpssl.downstream import BayesianLogisticRegression
from gpssl.evaluation import predict_or_abstain, risk_controlled_threshold

from .ledger import Record, Task
from .methods import FIXED, models
from .plan import Plan
from .tables import table

DATA = "breast_cancer"
METHODS = ("columns", "kernel PCA", "GPSSL-mean", "GPSSL-full", "GP prior", "supervised GP")
N_ROWS, N_LABELED, N_CALIBRATION = 219, 60, 200
MAX_RISK, CONFIDENCE = 0.05, 0.95


def load(_data: str) -> Table:
    """Return the rows of breast cancer."""
    return load_breast_cancer()


def tasks(plan: Plan) -> list[Task]:
    """Return all methods on all splits."""
    return [Task(data, split, method) for data in plan.choose((DATA,), (DATA,)) for split in range(plan.splits) for method in METHODS]


def run(task: Task, plan: Plan) -> Record:
    """Train, find a threshold, predict or abstain. All methods have their defaults."""
    seed = split_seed(plan.seed, task.split)
    source = load(task.data)
    rows, calibration, test = np.split(np.random.default_rng(seed).permutation(len(source.y)), np.cumsum([N_ROWS, N_CALIBRATION]))
    X, y = StandardScaler().fit(source.X[rows]).transform(source.X), source.y
    labeled = rows[:N_LABELED]
    (model,) = models(task.method, X[rows], FIXED, seed, head=BayesianLogisticRegression())
    classifier = model.estimator.fit(X[labeled], y[labeled])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No threshold holds")  # counted in the table
        proba = classifier.predict_proba(X[calibration])
        threshold = risk_controlled_threshold(y[calibration], proba, MAX_RISK, CONFIDENCE, labels=classifier.classes_)
    predicted = predict_or_abstain(classifier, X[test], threshold)
    kept = ~np.ma.getmaskarray(predicted)
    risk = float((predicted.data[kept] != y[test][kept]).mean()) if kept.any() else 0.0
    return {"scores": {"accuracy": float(classifier.score(X[test], y[test])), "coverage": float(kept.mean()), "risk": risk}}


def report(records: Sequence[Record]) -> dict[str, str]:
    """Return means over splits, and in how many splits the promise did not hold or could not be given."""
    rows = []
    for method in dict.fromkeys(record["method"] for record in records):
        scores = [record["scores"] for record in records if record["method"] == method]
        means = [f"{np.mean([score[name] for score in scores]):.3f}" for name in ("accuracy", "coverage", "risk")]
        above, without = (sum(test) for test in zip(*((s["risk"] > MAX_RISK, s["coverage"] == 0) for s in scores), strict=True))
        rows.append([method, *means, f"{above} of {len(scores)}", f"{without} of {len(scores)}"])
    header = ["", "accuracy", "share of rows kept", "errors among them", f"splits above {MAX_RISK:.0%}", "splits without threshold"]
    return {"decisions": table(header, rows)}


def draw(_records: Sequence[Record], _plan: Plan, _folder: Path) -> list[Path]:
    """Draw nothing."""
    return []
