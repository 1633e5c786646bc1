"""How a method chooses its settings: by labels that its heads were not trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_regressor

from ..evaluation._calibration import log_density, log_loss
from ..evaluation._held_out import Labeled
from ._rivals import Candidate
from ._splits import can_train, divide

HELD_OUT_SHARE = 0.2
"""The share of the labels that settings are chosen by."""
FEWEST_TO_CHOOSE_BY = 20
"""With fewer labels, methods keep their defaults."""
VALIDATION_DRAWS = 30
"""Functions that tell good settings from bad ones; those that are chosen get all draws."""


class Validation(NamedTuple):
    """How a candidate does on the held-out labels, under a head trained on the others."""

    log_likelihood: float
    """Mean over the labels of classes that the others have."""
    accuracy: float
    """NaN in regression."""


Criterion = Callable[[Validation], tuple[float, ...]]
"""What a choice goes by: larger is better, and later numbers count where earlier ones are equal."""


def by_likelihood(validation: Validation) -> tuple[float, ...]:
    """Return the criterion of the paper's section 3.1."""
    return (validation.log_likelihood,)


def by_accuracy(validation: Validation) -> tuple[float, ...]:
    """Return accuracy first, then likelihood: on a dozen labels many candidates are equally accurate."""
    return validation.accuracy, validation.log_likelihood


class Choice(NamedTuple):
    """The candidate that was chosen, and how it did."""

    candidate: Candidate
    validation: Validation


def choose(candidates: Sequence[Candidate], training: Labeled, held_out: Labeled, *criteria: Criterion) -> list[Choice]:
    """Return for each criterion the candidate that is best by it on `held_out`, with heads trained on `training`."""
    validations = [_validate(candidate.estimator, training, held_out) for candidate in candidates]
    choices = [Choice(candidate, validation) for candidate, validation in zip(candidates, validations, strict=True)]
    return [max(choices, key=lambda choice: criterion(choice.validation)) for criterion in criteria]


def choose_or_default(candidates: Sequence[Candidate], labeled: Labeled, seed: int, *, regression: bool) -> Candidate:
    """Return the candidate that is best on a fifth of these labels; the first where too few are left to train on or to choose by."""
    if len(candidates) == 1 or len(labeled.y) < FEWEST_TO_CHOOSE_BY:
        return candidates[0]
    rng = np.random.default_rng([seed, 1])
    training, held_out = divide(labeled.y, labeled.groups, HELD_OUT_SHARE, rng.permutation, stratify=not regression)
    if len(held_out) == 0 or not can_train(labeled.y[training], regression=regression):
        return candidates[0]
    criterion = by_likelihood if regression else by_accuracy
    (choice,) = choose(candidates, labeled.take(training), labeled.take(held_out), criterion)
    return choice.candidate


def _validate(estimator: Any, training: Labeled, held_out: Labeled) -> Validation:
    """Train on some labels and score on others."""
    model = clone(estimator)
    if model.get_params(deep=False).get("n_draws") is not None:
        model.set_params(n_draws=min(model.n_draws, VALIDATION_DRAWS))
    model.fit(training.rows, training.y)
    if is_regressor(model):
        return Validation(float(log_density(held_out.y, *model.predict_draws(held_out.rows)).mean()), np.nan)
    known = np.isin(held_out.y, model.classes_)
    if not known.any():
        return Validation(0.0, 0.0)
    proba = model.predict_proba(held_out.rows)
    accuracy = float((model.classes_[proba.argmax(axis=1)] == held_out.y).mean())
    return Validation(-log_loss(held_out.y[known], proba[known], labels=model.classes_), accuracy)
