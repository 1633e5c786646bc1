"""How a method is trained, its settings chosen, and its predictions scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.base import clone, is_regressor
from sklearn.metrics import roc_auc_score

from gpssl.evaluation._calibration import (
    expected_calibration_error,
    log_density,
    log_loss,
    negative_log_likelihood,
    root_mean_squared_error,
)
from gpssl.evaluation._selective import augrc, aurc

from .methods import Model
from .splits import LabeledRows, Split, hold_out

Array = NDArray[np.float64]

INTERVAL = 0.9
"""Nominal coverage of the intervals in regression."""


VALIDATION_DRAWS = 30
"""Functions that tell good settings from bad ones; those that are chosen get all draws."""


class Validation(NamedTuple):
    """How a candidate does on the held-out labels, under a head trained on the others."""

    log_likelihood: float
    """Mean over the labels of classes that the others have."""
    accuracy: float
    """NaN in regression."""


def by_likelihood(validation: Validation) -> tuple[float, ...]:
    """The criterion of the paper's section 3.1."""
    return (validation.log_likelihood,)


def by_accuracy(validation: Validation) -> tuple[float, ...]:
    """Accuracy, and of equally accurate candidates the likelier: on a dozen labels there are many."""
    return validation.accuracy, validation.log_likelihood


class Learned(NamedTuple):
    """A trained model and the settings that were chosen for it."""

    settings: dict[str, Any]
    validation: Validation | None
    """None where there was nothing to choose."""
    estimator: Any


def learn(candidates: Sequence[Model], split: Split, *criteria: Callable[[Validation], tuple[float, ...]]) -> list[Learned]:
    """For each criterion, the candidate that is best by it, trained on the labeled rows. The test rows are not looked at."""
    if len(candidates) == 1:
        return [_train(candidates[0], None, split)] * len(criteria)
    training, held_out = hold_out(split)
    validations = [validate(model.estimator, training, held_out) for model in candidates]
    chosen = [max(range(len(candidates)), key=lambda place: criterion(validations[place])) for criterion in criteria]
    learned = {place: _train(candidates[place], validations[place], split) for place in set(chosen)}
    return [learned[place] for place in chosen]


def _train(model: Model, validation: Validation | None, split: Split) -> Learned:
    return Learned(model.settings, validation, clone(model.estimator).fit(*split.labeled))


def validate(estimator: Any, training: LabeledRows, held_out: LabeledRows) -> Validation:
    """Train on some labels and score on others."""
    model = clone(estimator)
    if getattr(model, "n_draws", None) is not None:
        model.set_params(n_draws=min(model.n_draws, VALIDATION_DRAWS))
    model.fit(*training)
    if is_regressor(model):
        return Validation(float(log_density(held_out.y, *model.predict_draws(held_out.X)).mean()), np.nan)
    known = np.isin(held_out.y, model.classes_)
    if not known.any():
        return Validation(0.0, 0.0)
    proba = model.predict_proba(held_out.X)
    accuracy = float((model.classes_[proba.argmax(axis=1)] == held_out.y).mean())
    return Validation(-log_loss(held_out.y[known], proba[known], labels=model.classes_), accuracy)


def probabilities_of(model: Any, X: Array, classes: NDArray[Any]) -> Array:
    """Probability of each of the table's classes, zero for those without a labeled row. [n, K]"""
    proba = np.zeros((len(X), len(classes)))
    proba[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X)
    return proba


def score_classification(y: NDArray[Any], proba: Array, classes: NDArray[Any]) -> dict[str, float]:
    """The scores of the paper and three more. Probabilities [n, K] in the order of `classes`.

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
    """Area under the ROC curve of each class against the others, averaged over the classes that the rows have."""
    present = [k for k, label in enumerate(classes) if 0 < (y == label).sum() < len(y)]
    return float(np.mean([roc_auc_score(y == classes[k], proba[:, k]) for k in present]))


def score_regression(y: Array, model: Any, X: Array) -> dict[str, float]:
    """Error of the mean, likelihood of the distribution, and the share of targets within its central 90 % interval.

    That is where the distribution function of the prediction, (1/S) Σ_s Φ((y − μ_s) / σ_s), is between 0.05 and 0.95.
    """
    mean, std = model.predict_draws(X)
    below = ndtr((y - mean) / std).mean(axis=0)
    return {
        "RMSE": root_mean_squared_error(y, mean),
        "NLL": negative_log_likelihood(y, mean, std),
        "coverage": float((np.abs(below - 0.5) <= INTERVAL / 2).mean()),
    }
