"""The part of a report about predictions: what they are, how good they are on held-out labels, and how good other methods are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from .._runtime import CONFIDENCE, N_DRAWS, percent
from ..data._labels import Target
from ..downstream._marginal import Marginalized, inner
from ..downstream._pool import RepresentationPool
from ..estimator import GPSSL
from ..evaluation._calibration import reliability_curve, root_mean_squared_error
from ..evaluation._held_out import (
    HeldOutClasses,
    HeldOutNumbers,
    Labeled,
    certain_threshold,
    hold_out_classes,
    hold_out_numbers,
    number_curve,
    threshold_on_average,
)
from ..evaluation._selective import risk_coverage_curve
from ..io._card import representation_of
from ..workflows._choices import FULL, MAX_ROWS, POOL, Settings
from ..workflows._label import new_model
from ..workflows._subject import Subject
from ._content import Belief, Chart, ClassColoring, NamedCurve, NumberColoring, Predictions, ReportContent, RiskTable, Thresholds
from ._words import AVERAGE, AVERAGE_OF_NUMBERS, CONFIDENT, what_is_predicted

Array = NDArray[np.float64]
Places = NDArray[np.intp]

ERROR_RATES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
N_TARGETS = 15
MOST_BELIEFS, LEAST_BELIEF = 8, 0.01
"""How many representations have a bar of their own, and their least share."""
LEVELS = np.linspace(0.05, 0.95, 19)


def with_predictions(
    content: ReportContent, loaded: Any, subject: Subject, places: Places, rows: Any, *, rivals: bool, seed: int
) -> ReportContent:
    """Add predictions for the rows at these places, by the loaded model, or by heads on its representation for another target."""
    ssl, target, labeled = representation_of(loaded), subject.target(), subject.labeled()
    has_heads = isinstance(loaded, Marginalized)
    n_draws = loaded.n_draws if has_heads else None
    settings = Settings(n_components=len(ssl.posterior_.weights.mean), n_draws=n_draws or N_DRAWS, seed=seed)
    predicts_it = has_heads and loaded.card_.notes.get("target") == target.name
    own = FrozenEstimator(inner(loaded.representation_)) if predicts_it else None
    model = new_model(subject, ssl, target, settings) if own is None else clone(loaded).set_params(representation=own)
    fitted = loaded if predicts_it else clone(model).fit(labeled.rows, labeled.y)
    name = POOL if isinstance(inner(model.representation), RepresentationPool) else FULL
    held_out = {name: _hold_out(model, labeled, target, seed, name)}
    if rivals:
        held_out |= _rivals(ssl, subject, labeled, settings, target, without=name)
    full, shown, is_class = held_out[name], _Shown(rows, places, labeled.places, target), target.kind == "class"
    error = float(full.is_wrong.mean()) if is_class else root_mean_squared_error(full.y, full.mean)
    risk_coverage, reliability = _class_charts(held_out) if is_class else _number_charts(held_out)
    return replace(
        content,
        title=f"{subject.name}: predicting {target.name}",
        summary=[*content.summary, what_is_predicted(target, error)],
        colorings=[_labels_coloring(target, places), *content.colorings],
        believed=_believed(fitted),
        predictions=_classes(fitted, shown, full) if is_class else _numbers(fitted, shown, full),
        controls=_class_risks(full) if is_class else _number_risks(full),
        risk_coverage=risk_coverage,
        reliability=reliability,
    )


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
    from ..comparison._splits import choose_or_default, rows_to_compare_on

    sampled, known = rows_to_compare_on(subject, labeled, MAX_ROWS, settings.seed)
    contest = contest_on(sampled, ssl.kernel_, settings, subject.kind, regression=target.kind == "number")

    def run(name: str, candidates: list[Any]) -> Any:
        chosen = choose_or_default(candidates, known, settings.seed)
        return _hold_out(chosen.estimator, labeled, target, settings.seed, name)

    found, left_out = run_rivals(contest, run, without=[without])
    subject.notes.extend(f"{name} was left out: {reason}" for name, reason in left_out.items())
    return found


class _Shown(NamedTuple):
    """The rows of the page."""

    rows: Any
    places: Places
    labeled: Places
    """Places of all rows with a label."""
    target: Target

    def with_held_out(self, values: NDArray[Any], held_out: NDArray[Any]) -> NDArray[Any]:
        """Replace the values of rows with a label, which the model has seen, by those predicted without it."""
        _, shown, known = np.intersect1d(self.places, self.labeled, return_indices=True)
        values = values.copy()
        values[shown] = held_out[known]
        return values


def _classes(model: Any, shown: _Shown, held_out: HeldOutClasses) -> Predictions:
    found = model.predict_distribution(shown.rows)
    proba, std = found.proba, found.proba_std
    if np.array_equal(model.classes_, held_out.classes):
        proba = shown.with_held_out(proba, held_out.proba)
    best = proba.argmax(axis=1)
    return Predictions(
        target=shown.target.name,
        predicted=[str(name) for name in model.classes_[best]],
        certainty=proba.max(axis=1),
        std=std[np.arange(len(best)), best],
        labeled=shown.target.is_known[shown.places],
    )


def _numbers(model: Any, shown: _Shown, held_out: HeldOutNumbers) -> Predictions:
    found = model.predict_distribution(shown.rows)
    mean, std = shown.with_held_out(found.mean, held_out.mean), shown.with_held_out(found.std, held_out.std)
    return Predictions(
        target=shown.target.name,
        predicted=[f"{value:.6g}" for value in mean],
        certainty=-std,
        std=std,
        labeled=shown.target.is_known[shown.places],
        is_probability=False,
        values=mean,
    )


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


def _class_risks(held_out: HeldOutClasses) -> RiskTable:
    """Return the error rates that a person may ask for, up to the first that all predictions meet."""
    curve = risk_coverage_curve(held_out.y, held_out.proba, labels=held_out.classes)
    overall = float(curve.risk[-1])
    n_targets = next((place + 1 for place, rate in enumerate(ERROR_RATES) if rate >= overall), len(ERROR_RATES))
    targets = np.array(ERROR_RATES[:n_targets])
    average = np.array([threshold_on_average(curve, target) for target in targets])
    certain = np.array([certain_threshold(held_out, target, CONFIDENCE) for target in targets])
    wrong, certainty = held_out.is_wrong.astype(np.float64), held_out.certainty
    return RiskTable(
        targets=targets,
        promises=[
            _promise("on average", average, certainty, wrong, AVERAGE),
            _promise(f"with {percent(CONFIDENCE, 0)} confidence", certain, certainty, wrong, CONFIDENT),
        ],
        start=int(np.searchsorted(targets, min(0.05, targets[-1]))),
    )


def _number_risks(held_out: HeldOutNumbers) -> RiskTable:
    """Return errors that a person may ask for, from that of the most certain tenth to that of all predictions."""
    curve = number_curve(held_out)
    overall = float(curve.risk[-1])
    lowest = min(float(curve.risk[np.searchsorted(curve.coverage, 0.1)]), 0.9 * overall)
    targets = np.linspace(lowest, overall, N_TARGETS)
    thresholds = np.array([threshold_on_average(curve, target) for target in targets])
    squares = (held_out.y - held_out.mean) ** 2
    promise = _promise("on average", thresholds, -held_out.std, squares, AVERAGE_OF_NUMBERS)
    promise = replace(promise, risk=np.sqrt(promise.risk))
    return RiskTable(targets=targets, promises=[promise], risk_name="root mean squared error", unit="", start=N_TARGETS - 1)


def _promise(name: str, thresholds: Array, certainty: Array, losses: Array, explanation: str) -> Thresholds:
    """Return coverage and risk at held-out rows. The page keeps rows at the threshold too, the library those above it."""
    kept = [certainty > threshold for threshold in thresholds]
    coverage = np.array([rows.mean() for rows in kept])
    risk = np.array([losses[rows].mean() if rows.any() else np.nan for rows in kept])
    from_here = np.where(np.isfinite(thresholds), np.nextafter(thresholds, np.inf), thresholds)
    return Thresholds(name, from_here, coverage, risk, explanation)


def _labels_coloring(target: Target, places: Places) -> ClassColoring | NumberColoring:
    """Return a coloring by the labels that were given."""
    name = f"{target.name}, as given"
    if target.kind == "number":
        return NumberColoring(name, target.values[places].astype(np.float64))
    levels, codes = np.unique(target.labels, return_inverse=True)
    all_codes = np.full(len(target.values), -1)
    all_codes[target.is_known] = codes
    return ClassColoring(name, all_codes[places], [str(level) for level in levels])
