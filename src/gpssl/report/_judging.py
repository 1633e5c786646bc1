"""The part of a report about predictions: what they are, how good they are on held-out labels, and how good other methods are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from .._runtime.defaults import CONFIDENCE, N_DRAWS
from .._runtime.progress import Progress, percent
from ..data._labels import Target
from ..estimator import GPSSL
from ..evaluation._calibration import reliability_curve, root_mean_squared_error
from ..evaluation._expectation import certain_threshold, check_labels, number_curve, threshold_on_average
from ..evaluation._held_out import HeldOutClasses, HeldOutNumbers, Labeled, hold_out_classes, hold_out_numbers
from ..evaluation._selective import RiskCoverageCurve, risk_coverage_curve
from ..workflows._choices import FULL, MAX_ROWS, Settings
from ..workflows._embed import has_heads, representation_of
from ..workflows._label import new_model
from ..workflows._subject import Subject
from ._content import Chart, NamedCurve, Predictions, RiskTable, Thresholds
from ._words import AVERAGE, AVERAGE_OF_NUMBERS, CONFIDENT

Array = NDArray[np.float64]
Places = NDArray[np.intp]
HeldOut = TypeVar("HeldOut", HeldOutClasses, HeldOutNumbers)

ERROR_RATES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
N_TARGETS = 15
LEVELS = np.linspace(0.05, 0.95, 19)


class Judged(NamedTuple):
    """What the page says of predictions."""

    predictions: Predictions
    controls: RiskTable
    risk_coverage: Chart
    reliability: Chart
    error: float
    """Error rate, or root mean squared error, at held-out labels."""


def judge(loaded: Any, subject: Subject, target: Target, places: Places, rows: Any, *, rivals: bool, seed: int) -> Judged:
    """Judge predictions for the rows at these places, by the loaded model, or by heads on its representation for another target."""
    check_labels(target, subject.name, subject.notes)
    ssl, labeled = representation_of(loaded), subject.labeled()
    n_draws = loaded.n_draws if has_heads(loaded) else None
    settings = Settings(n_components=len(ssl.posterior_.weights.mean), n_draws=n_draws or N_DRAWS, seed=seed)
    predicts_it = has_heads(loaded) and loaded.card_.notes.get("target") == target.name
    model = clone(loaded).set_params(representation=FrozenEstimator(ssl)) if predicts_it else new_model(ssl, target, settings)
    fitted = loaded if predicts_it else clone(model).fit(labeled.rows, labeled.y)
    models = {FULL: model, **(_rivals(ssl, subject, labeled, settings, target) if rivals else {})}
    shown = _Shown(rows, places, labeled.places, target)
    if target.kind == "class":
        classes = _hold_out(hold_out_classes, models, subject, labeled, seed)
        error = float(classes[FULL].is_wrong.mean())
        return Judged(_classes(fitted, shown, classes[FULL]), class_risks(classes[FULL]), *class_charts(classes), error)
    numbers = _hold_out(hold_out_numbers, models, subject, labeled, seed)
    error = root_mean_squared_error(numbers[FULL].y, numbers[FULL].mean)
    return Judged(_numbers(fitted, shown, numbers[FULL]), number_risks(numbers[FULL]), *number_charts(numbers), error)


def _rivals(ssl: GPSSL, subject: Subject, labeled: Labeled, settings: Settings, target: Target) -> dict[str, Any]:
    """Return the compared methods, each with the settings that suit the labels best; a note tells those that cannot be run."""
    from ..comparison._compare import contest_on
    from ..comparison._rivals import RIVALS
    from ..comparison._splits import choose_or_default, rows_to_compare_on

    found = {}
    regression = target.kind == "number"
    sampled, known = rows_to_compare_on(subject, labeled, MAX_ROWS, settings.seed)
    contest = contest_on(sampled, ssl.kernel_, settings, subject.kind, regression=regression)
    others = {name: candidates for name, candidates in RIVALS.items() if name != FULL}
    progress = Progress("compared methods", len(others), unit="methods")
    for name, candidates in others.items():
        try:
            found[name] = choose_or_default(candidates(contest), known, settings.seed, regression=regression).estimator
        except (ImportError, ValueError) as error:
            subject.notes.append(_left_out(name, error))
        progress.advance(1)
    progress.finish()
    return found


def _hold_out(
    hold_out: Callable[..., HeldOut], models: Mapping[str, Any], subject: Subject, labeled: Labeled, seed: int
) -> dict[str, HeldOut]:
    """Return what each model predicts for labels that it has not seen; a note tells rivals that cannot learn from them."""
    found = {}
    for name, model in models.items():
        try:
            found[name] = hold_out(model, labeled.rows, labeled.y, groups=labeled.groups, random_state=seed, task=name)
        except ValueError as error:
            if name == FULL:
                raise
            subject.notes.append(_left_out(name, error))
    return found


def _left_out(name: str, error: Exception) -> str:
    return f"{name} was left out: {error}"


class _Shown(NamedTuple):
    """The rows of the page."""

    rows: Any
    places: Places
    labeled: Places
    """Places of all rows with a label."""
    target: Target

    def with_held_out(self, values: NDArray[Any], held_out: NDArray[Any]) -> NDArray[Any]:
        """Replace the values of rows with a label, which the model has seen, by those predicted without it."""
        place_of = np.full(len(self.target.values), -1)
        place_of[self.labeled] = np.arange(len(self.labeled))
        among = place_of[self.places]
        values = values.copy()
        values[among >= 0] = held_out[among[among >= 0]]
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


def class_charts(held_out: Mapping[str, HeldOutClasses]) -> tuple[Chart, Chart]:
    """Draw the error rate against coverage, and accuracy against probability."""
    risks = [_risks(name, risk_coverage_curve(h.y, h.proba, labels=h.classes)) for name, h in held_out.items()]
    reliability = []
    for name, h in held_out.items():
        curve = reliability_curve(h.y, h.proba, labels=h.classes, n_bins=10)
        reliability.append(NamedCurve(name, curve.certainty, curve.accuracy, np.round(curve.share * len(h.y))))
    return (
        Chart(risks, "share of rows kept, the surest first", "error rate among them"),
        Chart(reliability, "probability that was given", "share that was right"),
    )


def number_charts(held_out: Mapping[str, HeldOutNumbers]) -> tuple[Chart, Chart]:
    """Draw the root mean squared error against coverage, and how often intervals hold."""
    risks = [_risks(name, number_curve(h)) for name, h in held_out.items()]
    holds = [NamedCurve(name, LEVELS, np.array([h.interval_coverage(level) for level in LEVELS])) for name, h in held_out.items()]
    return (
        Chart(risks, "share of rows kept, the surest first", "root mean squared error among them", y_unit=""),
        Chart(holds, "probability of the interval", "share of numbers within it"),
    )


def _risks(name: str, curve: RiskCoverageCurve) -> NamedCurve:
    return NamedCurve(name, curve.coverage, curve.risk)


def class_risks(held_out: HeldOutClasses) -> RiskTable:
    """Return the error rates that a person may ask for, up to the first that all predictions meet."""
    curve = risk_coverage_curve(held_out.y, held_out.proba, labels=held_out.classes)
    overall = float(curve.risk[-1])
    n_targets = next((place + 1 for place, rate in enumerate(ERROR_RATES) if rate >= overall), len(ERROR_RATES))
    targets = np.array(ERROR_RATES[:n_targets])
    average = np.array([threshold_on_average(curve, target) for target in targets])
    certain = np.array([certain_threshold(held_out, target, CONFIDENCE) for target in targets])
    wrong, certainty = held_out.is_wrong.astype(np.float64), held_out.certainty
    start = int(np.searchsorted(targets, min(0.05, targets[-1])))
    return RiskTable(
        targets=targets,
        promises=[
            _promise("on average", average, certainty, wrong, AVERAGE),
            _promise(f"with {percent(CONFIDENCE, 0)} confidence", certain, certainty, wrong, CONFIDENT),
        ],
        start=start,
    )


def number_risks(held_out: HeldOutNumbers) -> RiskTable:
    """Return errors that a person may ask for, from that of the most certain tenth to that of all predictions."""
    curve = number_curve(held_out)
    lowest_risk = float(curve.risk[np.searchsorted(curve.coverage, 0.1)])
    lowest = min(lowest_risk, 0.9 * float(curve.risk[-1]))
    targets = np.linspace(lowest, float(curve.risk[-1]), N_TARGETS)
    thresholds = np.array([threshold_on_average(curve, target) for target in targets])
    squares = (held_out.y - held_out.mean) ** 2
    promise = _promise("on average", thresholds, -held_out.std, squares, AVERAGE_OF_NUMBERS)
    root = Thresholds(promise.name, promise.threshold, promise.coverage, np.sqrt(promise.risk), promise.explanation)
    return RiskTable(targets=targets, promises=[root], risk_name="root mean squared error", unit="", start=N_TARGETS - 1)


def _promise(name: str, thresholds: Array, certainty: Array, losses: Array, explanation: str) -> Thresholds:
    """Return coverage and risk at held-out rows. The page keeps rows at the threshold too, the library those above it."""
    kept = [certainty > threshold for threshold in thresholds]
    coverage = np.array([rows.mean() for rows in kept])
    risk = np.array([losses[rows].mean() if rows.any() else np.nan for rows in kept])
    from_here = np.where(np.isfinite(thresholds), np.nextafter(thresholds, np.inf), thresholds)
    return Thresholds(name, from_here, coverage, risk, explanation)
