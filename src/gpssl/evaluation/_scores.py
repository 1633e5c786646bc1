"""All scores of a model on test rows at once: what `compare`, the report and the experiments tabulate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from ._calibration import (
    INTERVAL,
    distribution_at,
    expected_calibration_error,
    log_loss,
    negative_log_likelihood,
    root_mean_squared_error,
)
from ._selective import augrc, aurc

Array = NDArray[np.float64]


def score_classification(y: NDArray[Any], proba: Array, classes: NDArray[Any]) -> dict[str, float]:
    """Return the scores of the paper and three more. Probabilities [n, K] are in the order of `classes`.

    A class without a labeled row has probability zero, is never right, and ranks its rows by chance (an area of one half). Only the log
    loss leaves such rows out: it would be infinite for all methods alike.
    """
    known = np.isin(y, classes[proba.any(axis=0)])
    return {
        "accuracy": float((classes[proba.argmax(axis=1)] == y).mean()),
        "ROC AUC": macro_roc_auc(y, proba, classes),
        "AURC": aurc(y, proba, labels=classes),
        "AUGRC": augrc(y, proba, labels=classes),
        "log loss": log_loss(y[known], proba[known], labels=classes),
        "ECE": expected_calibration_error(y, proba, labels=classes),
    }


def macro_roc_auc(y: NDArray[Any], proba: Array, classes: NDArray[Any]) -> float:
    """Return the area under the ROC curve of each class against the others, averaged over the classes that occur in y."""
    present = [k for k, label in enumerate(classes) if 0 < (y == label).sum() < len(y)]
    return float(np.mean([roc_auc_score(y == classes[k], proba[:, k]) for k in present]))


def score_regression(y: Array, model: Any, rows: Any) -> dict[str, float]:
    """Return the error of the mean, the likelihood of the distribution, and the share of targets within its central 90 % interval.

    A target is within it where the predicted distribution function at the target is between 0.05 and 0.95.
    """
    mean, std = model.predict_draws(rows)
    return {
        "RMSE": root_mean_squared_error(y, mean),
        "NLL": negative_log_likelihood(y, mean, std),
        "coverage": float((np.abs(distribution_at(y, mean, std) - 0.5) <= INTERVAL / 2).mean()),
    }
