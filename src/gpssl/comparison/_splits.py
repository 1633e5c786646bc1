"""Who sees which rows and labels where methods compete, and how each method chooses its settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer

from ..downstream._logistic import BayesianLogisticRegression
from ..downstream._marginal import Marginalized, inner
from ..downstream._pool import RepresentationPool
from ..downstream._predictors import FEW_FEATURES, MarginalizedClassifier
from ..evaluation._calibration import clipped_log_loss, component_weights, log_density
from ..evaluation._held_out import Labeled
from ..workflows._subject import Subject
from ._deciding import LEAST_PROBABILITY
from ._rivals import Candidate

Array = NDArray[np.float64]
Places = NDArray[np.intp]

HELD_OUT_SHARE = 0.2
"""The share of the labels that settings are chosen by."""
FEWEST_TO_CHOOSE_BY = 20
"""With fewer labels, methods keep their defaults."""
VALIDATION_DRAWS = 30
"""Functions that tell good settings from bad ones; those that are chosen get all draws."""


def split_seed(seed: int, number: int) -> int:
    """Return the seed of the split with this number: a whole number that differs between splits and between seeds."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0] // 2)


def divide(
    y: NDArray[Any], groups: NDArray[Any] | None, share: float, permute: Callable[[NDArray[Any]], NDArray[Any]], *, stratify: bool
) -> tuple[Places, Places]:
    """Return places to train on and places to judge by: about this share of each class, of all rows, or of all groups is judged by.

    `permute` puts rows or groups into an order of chance, of which the first are judged by; a generator's `permutation` does it. No group
    is on both sides. Rows of a held-out group whose class no other group has are on neither side if classes are stratified: nothing can
    be said of a class that is not trained on.
    """
    if groups is not None:
        units = np.unique(groups)
        n_held_out = min(max(1, round(share * len(units))), len(units) - 1)
        held_out = np.isin(groups, permute(units)[:n_held_out])
        known = np.isin(y, y[~held_out]) | (not stratify)
        return np.flatnonzero(~held_out), np.flatnonzero(held_out & known)
    strata = [np.flatnonzero(y == value) for value in np.unique(y)] if stratify else [np.arange(len(y))]
    test = [permute(rows)[: min(round(share * len(rows)), len(rows) - 1)] for rows in strata]
    judged = np.isin(np.arange(len(y)), np.concatenate(test))
    return np.flatnonzero(~judged), np.flatnonzero(judged)


def can_train(y: NDArray[Any], *, regression: bool) -> bool:
    """Return whether heads can be trained: on at least two numbers, or two classes."""
    return len(y) > 1 if regression else len(np.unique(y)) > 1


def rows_to_compare_on(subject: Subject, labeled: Labeled, max_rows: int, seed: int) -> tuple[Any, Labeled]:
    """Return all rows, in the order of the file, and those with a label.

    Of a table with more than `max_rows`, take a random sample, of which labeled rows are half at most; a note says so.
    """
    if subject.n_rows <= max_rows:
        return subject.rows_at(np.arange(subject.n_rows)), labeled
    rng = np.random.default_rng(seed)
    n_labels = len(labeled.y)
    chosen = np.sort(rng.choice(n_labels, min(n_labels, max_rows // 2), replace=False))
    others = np.setdiff1d(np.arange(subject.n_rows), labeled.places[chosen])
    others = rng.choice(others, max_rows - len(chosen), replace=False)
    subject.notes.append(f"Compared on {max_rows:,} of {subject.n_rows:,} rows, with {len(chosen):,} of {n_labels:,} labels.")
    return subject.rows_at(np.union1d(labeled.places[chosen], others)), labeled.take(chosen)


def with_features(candidates: Sequence[Candidate], labeled: Labeled) -> tuple[list[Candidate], Labeled]:
    """Evaluate representations at the labeled rows once, where heads are trained on many splits of them.

    Return candidates that find the features of a row among its columns, and rows that have the features of all candidates side by side:
    what they predict does not change. Representations of which functions are drawn stay as they are, and so do methods without one.
    """
    if not all(_has_one_representation(candidate.estimator) for candidate in candidates):
        return list(candidates), labeled
    features = [np.asarray(candidate.estimator.representation.transform(labeled.rows), dtype=np.float64) for candidate in candidates]
    edges = np.cumsum([0, *(values.shape[1] for values in features)])
    rows = np.hstack(features)
    found = []
    for candidate, first, last in zip(candidates, edges[:-1], edges[1:], strict=True):
        columns = FunctionTransformer(columns_between, kw_args={"first": int(first), "last": int(last)}).fit(rows)
        found.append(candidate._replace(estimator=clone(candidate.estimator).set_params(representation=FrozenEstimator(columns))))
    return found, labeled._replace(rows=rows)


def _has_one_representation(estimator: Any) -> bool:
    """Return whether heads are trained on fixed numbers of each row, by something that is fitted and has no functions to draw."""
    if not isinstance(estimator, Marginalized) or estimator.n_draws is not None:
        return False
    return isinstance(estimator.representation, FrozenEstimator) and not isinstance(inner(estimator.representation), RepresentationPool)


def columns_between(X: NDArray[Any], first: int, last: int) -> NDArray[Any]:
    """Return some of the columns."""
    return X[:, first:last]


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


def choose(
    candidates: Sequence[Candidate], training: Labeled, held_out: Labeled, *criteria: Criterion, least_probability: float = 0.0
) -> list[Choice]:
    """Return for each criterion the candidate that is best by it on `held_out`, with heads trained on `training`.

    Labels with less than `least_probability` count as if they had it.
    """
    estimators = [candidate.estimator for candidate in candidates]
    if _can_train_together(estimators):
        validations = _validate_together(estimators, training, held_out, least_probability)
    else:
        validations = [_validate(estimator, training, held_out, least_probability) for estimator in estimators]
    choices = [Choice(candidate, validation) for candidate, validation in zip(candidates, validations, strict=True)]
    return [max(choices, key=lambda choice: criterion(choice.validation)) for criterion in criteria]


def choose_or_default(candidates: Sequence[Candidate], labeled: Labeled, seed: int) -> Candidate:
    """Return the candidate that is best on a fifth of these labels; the first where too few are left to train on or to choose by."""
    if len(candidates) == 1 or len(labeled.y) < FEWEST_TO_CHOOSE_BY:
        return candidates[0]
    regression = is_regressor(candidates[0].estimator)
    rng = np.random.default_rng([seed, 1])
    training, held_out = divide(labeled.y, labeled.groups, HELD_OUT_SHARE, rng.permutation, stratify=not regression)
    if len(held_out) == 0 or not can_train(labeled.y[training], regression=regression):
        return candidates[0]
    parts = labeled.take(training), labeled.take(held_out)
    (choice,) = choose(candidates, *parts, by_likelihood, least_probability=LEAST_PROBABILITY)
    return choice.candidate


def _validate(estimator: Any, training: Labeled, held_out: Labeled, least_probability: float) -> Validation:
    """Train on some labels and score on others."""
    model = clone(estimator)
    if model.get_params(deep=False).get("n_draws") is not None:
        model.set_params(n_draws=min(model.n_draws, VALIDATION_DRAWS))
    model.fit(training.rows, training.y)
    if is_regressor(model):
        return Validation(
            float(log_density(held_out.y, *model.predict_draws(held_out.rows), weights=component_weights(model)).mean()), np.nan
        )
    return _validation(held_out.y, model.predict_proba(held_out.rows), model.classes_, least_probability)


def _validation(y: NDArray[Any], proba: Array, classes: NDArray[Any], least_probability: float) -> Validation:
    """Score probabilities [n, K] of labels, some of which may be of classes that were not learned."""
    known = np.isin(y, classes)
    if not known.any():
        return Validation(0.0, 0.0)
    accuracy = float((classes[proba.argmax(axis=1)] == y).mean())
    return Validation(-clipped_log_loss(y[known], proba[known], classes, least_probability), accuracy)


def _can_train_together(estimators: Sequence[Any]) -> bool:
    """Return whether several classifiers have the default head on fixed numbers of each row, as `with_features` makes them."""
    return len(estimators) > 1 and all(
        isinstance(one, MarginalizedClassifier) and _has_one_representation(one) and one.head is None for one in estimators
    )


def _validate_together(estimators: Sequence[Any], training: Labeled, held_out: Labeled, least_probability: float) -> list[Validation]:
    """Train the heads of all candidates in one go where they have as few features and as many, as those of draws are; else one by one."""
    learned, judged = (
        [np.asarray(one.representation.transform(part.rows), np.float64) for one in estimators] for part in (training, held_out)
    )
    if len({Z.shape for Z in learned}) > 1 or learned[0].shape[1] > FEW_FEATURES:
        return [_validate(one, training, held_out, least_probability) for one in estimators]
    heads = BayesianLogisticRegression(random_state=0).fit_draws(np.stack(learned), training.y)
    return [_validation(held_out.y, proba, heads.classes, least_probability) for proba in heads.predict_proba(np.stack(judged))]
