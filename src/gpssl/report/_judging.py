"""The part of a report about predictions: what they are, how good they are on held-out labels, and how good other methods are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from .._runtime import N_DRAWS
from ..data._labels import Target
from ..downstream._marginal import Marginalized, inner
from ..downstream._pool import RepresentationPool
from ..estimator import GPSSL
from ..evaluation._calibration import reliability_curve
from ..evaluation._held_out import HeldOutClasses, HeldOutNumbers, Labeled, hold_out_classes, hold_out_numbers
from ..evaluation._promises import Expectation, RiskLimit, expect, number_curve
from ..evaluation._selective import risk_coverage_curve
from ..io._card import representation_of
from ..workflows._choices import FULL, MAX_ROWS, POOL, Settings
from ..workflows._label import new_model
from ..workflows._subject import Subject
from ._content import Belief, Chart, ClassColoring, ClassErrors, Compared, NamedCurve, NumberColoring, ReportContent
from ._predicting import Predicted, predict_all
from ._risks import class_risks, number_risks
from ._run import Run, opening, run_of, warnings_of
from ._words import THIS_MODEL, method_in_words

Places = NDArray[np.intp]

MOST_BELIEFS, LEAST_BELIEF = 8, 0.01
"""How many representations have a bar of their own, and their least share."""
LEVELS = np.linspace(0.05, 0.95, 19)


def with_predictions(content: ReportContent, loaded: Any, subject: Subject, places: Places, *, rivals: bool, seed: int) -> ReportContent:
    """Add predictions by the loaded model, or by heads on its representation for another target; those at these places are shown."""
    ssl, target, labeled = representation_of(loaded), subject.target(), subject.labeled()
    run = run_of(loaded.card_.notes, target.name)
    has_heads = isinstance(loaded, Marginalized)
    n_draws = loaded.n_draws if has_heads else None
    settings = Settings(n_components=len(ssl.posterior_.weights.mean), n_draws=n_draws or N_DRAWS, seed=seed)
    predicts_it = has_heads and loaded.card_.notes.get("target") == target.name
    own = FrozenEstimator(inner(loaded.representation_)) if predicts_it else None
    model = new_model(subject, ssl, target, settings) if own is None else clone(loaded).set_params(representation=own)
    fitted = loaded if predicts_it else clone(model).fit(labeled.rows, labeled.y)
    name = POOL if isinstance(inner(model.representation), RepresentationPool) else FULL
    held_out = {name: _hold_out(model, labeled, target, seed, THIS_MODEL)}
    if rivals:
        held_out |= _rivals(ssl, subject, labeled, settings, target, without=name)
    full, is_class = held_out[name], target.kind == "class"
    predicted = predict_all(fitted, subject, target, labeled, full)
    now = expect(full, RiskLimit())
    compared, in_short = _decided(held_out, name, labeled) if rivals else ([], [])
    risk_coverage, reliability = _charts(held_out, name)
    return replace(
        content,
        title=f"{subject.name}: predicting {target.name}",
        warnings=[*content.warnings, *warnings_of(run, now)],
        summary=[*_opening(run, now, predicted), *in_short, *content.summary],
        colorings=[_labels_coloring(target, places), *content.colorings],
        by_class=_by_class(full, predicted) if is_class else [],
        compared=compared,
        importance=run.importance,
        suspicious=run.suspicious,
        believed=_believed(fitted),
        predictions=predicted.shown(places),
        controls=class_risks(full, run, predicted) if is_class else number_risks(full, run, predicted),
        risk_coverage=risk_coverage,
        reliability=reliability,
    )


def _opening(run: Run, now: Expectation, predicted: Predicted) -> list[str]:
    """Return what the run promised and decided; what cross-validation says today, where there was no such run."""
    target = predicted.target
    is_open = ~target.is_known
    n_predicted = int(is_open.sum())
    n_kept = int((predicted.certainty[is_open] > (-np.inf if run.threshold is None else run.threshold)).sum())
    return opening(run, now, target, n_predicted, n_kept, is_same=run.is_on(len(is_open), len(target.labels)))


def _by_class(held_out: HeldOutClasses, predicted: Predicted) -> list[ClassErrors]:
    """Return how each class fares: those with labels, the most frequent first."""
    counts, found = predicted.counts(), []
    for name, n_labels in zip(*np.unique(held_out.y, return_counts=True), strict=True):
        of_class = held_out.y == name
        groups = None if held_out.groups is None else held_out.groups[of_class]
        rows = held_out._replace(y=held_out.y[of_class], proba=held_out.proba[of_class], groups=groups)
        found.append(ClassErrors(str(name), int(n_labels), int(rows.is_wrong.sum()), *rows.error_interval(), counts[str(name)]))
    return sorted(found, key=lambda one: -one.n_labels)


def _believed(model: Any) -> list[Belief]:
    """Return the representations that count most, and the others together; none where there is only one."""
    members = sorted(getattr(model, "members_", []), key=lambda member: -member.share)
    if len(members) < 2:
        return []
    shown = [Belief(member.name, member.share) for member in members[:MOST_BELIEFS] if member.share >= LEAST_BELIEF]
    n_others = len(members) - len(shown)
    others = 1 - sum(belief.share for belief in shown)
    return [*shown, *([Belief(f"{n_others} others together", max(others, 0.0))] if n_others else [])]


def _hold_out(model: Any, labeled: Labeled, target: Target, seed: int, name: str) -> Any:
    """Return what models predict for labels that they have not seen."""
    hold_out: Any = hold_out_classes if target.kind == "class" else hold_out_numbers
    return hold_out(model, labeled.rows, labeled.y, groups=labeled.groups, random_state=seed, task=name)


def _rivals(ssl: GPSSL, subject: Subject, labeled: Labeled, settings: Settings, target: Target, *, without: str) -> dict[str, Any]:
    """Hold out labels from the compared methods too, each with the settings that suit them best; a note tells those that cannot be run."""
    from ..comparison._compare import contest_on
    from ..comparison._rivals import run_rivals
    from ..comparison._splits import choose_or_default, rows_to_compare_on, with_features

    sampled, known = rows_to_compare_on(subject, labeled, MAX_ROWS, settings.seed)
    chosen_by = np.flatnonzero(np.isin(labeled.places, known.places))
    contest = contest_on(sampled, ssl.kernel_, settings, subject.kind, regression=target.kind == "number")

    def run(name: str, candidates: list[Any]) -> Any:
        shared, rows = with_features(candidates, labeled)
        chosen = choose_or_default(shared, rows.take(chosen_by), settings.seed)
        return _hold_out(chosen.estimator, rows, target, settings.seed, method_in_words(name, numeric=contest.regression))

    found, left_out = run_rivals(contest, run, without=[without])
    subject.notes.extend(f"{name} was left out: {reason}" for name, reason in left_out.items())
    return found


def _decided(held_out: Mapping[str, Any], own: str, labeled: Labeled) -> tuple[list[Compared], list[str]]:
    """Return what the labels say of this model against each other method, and in one sentence."""
    from ._compared import compared_with, overall

    compared = compared_with(held_out, own, labeled.groups)
    return compared, overall(compared)


def _charts(held_out: Mapping[str, Any], own: str) -> tuple[Chart, Chart]:
    """Return the curves of all methods, under names that are words."""
    numeric = isinstance(held_out[own], HeldOutNumbers)
    named = {THIS_MODEL if name == own else method_in_words(name, numeric=numeric): found for name, found in held_out.items()}
    return _number_charts(named) if numeric else _class_charts(named)


def _class_charts(held_out: Mapping[str, HeldOutClasses]) -> tuple[Chart, Chart]:
    """Draw the error rate against coverage, and accuracy against probability."""
    risks, reliability = [], []
    for name, h in held_out.items():
        curve = risk_coverage_curve(h.y, h.proba, labels=h.classes)
        risks.append(NamedCurve(name, curve.coverage, curve.risk))
        bins = reliability_curve(h.y, h.proba, labels=h.classes, n_bins=10)
        reliability.append(NamedCurve(name, bins.certainty, bins.accuracy, np.round(bins.share * len(h.y))))
    return (
        Chart(risks, "share of rows kept, the surest first", "error rate among them"),
        Chart(reliability, "probability that was given", "share that was right"),
    )


def _number_charts(held_out: Mapping[str, HeldOutNumbers]) -> tuple[Chart, Chart]:
    """Draw the root mean squared error against coverage, and how often intervals hold."""
    risks, holds = [], []
    for name, h in held_out.items():
        curve = number_curve(h)
        risks.append(NamedCurve(name, curve.coverage, curve.risk))
        holds.append(NamedCurve(name, LEVELS, np.array([h.interval_coverage(level) for level in LEVELS])))
    return (
        Chart(risks, "share of rows kept, the surest first", "root mean squared error among them", y_unit=""),
        Chart(holds, "probability of the interval", "share of numbers within it"),
    )


def _labels_coloring(target: Target, places: Places) -> ClassColoring | NumberColoring:
    """Return a coloring by the labels that were given."""
    name = f"{target.name}, as given"
    if target.kind == "number":
        return NumberColoring(name, target.values[places].astype(np.float64))
    levels, codes = np.unique(target.labels, return_inverse=True)
    all_codes = np.full(len(target.values), -1)
    all_codes[target.is_known] = codes
    return ClassColoring(name, all_codes[places], [str(level) for level in levels])
