"""The part of a report about predictions: what they are, how they do on held-out labels, and beside other methods."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from .. import GPSSL
from ..calibration import root_mean_squared_error
from ..progress import Progress
from ..report.content import Chart, Predictions, RiskTable
from .contest import MAX_ROWS, at_most, choose
from .curves import class_charts, class_risks, number_charts, number_risks
from .expecting import check_labels
from .held_out import HeldOutClasses, HeldOutNumbers, hold_out_classes, hold_out_numbers
from .labeling import new_model
from .loading import representation_of
from .rivals import FULL, RIVALS, Rows
from .settings import Settings
from .subject import Labeled, Subject, Target

Places = NDArray[np.intp]


class Judged(NamedTuple):
    """What the page says of predictions."""

    predictions: Predictions
    controls: RiskTable
    risk_coverage: Chart
    reliability: Chart
    error: float
    """Error rate, or root mean squared error, at held-out labels."""


def judge(loaded: Any, subject: Subject, target: Target, places: Places, rows: Any, *, rivals: bool, seed: int) -> Judged:
    """Of the rows at these places; the model is the loaded one, or heads on its representation where it has none for this target."""
    check_labels(target, subject.path.name, subject.notes)
    ssl, labeled = representation_of(loaded), subject.labeled()
    settings = Settings(n_components=len(ssl.posterior_.weights.mean), n_draws=getattr(loaded, "n_draws", None) or 100, seed=seed)
    predicts_it = hasattr(loaded, "heads_") and loaded.card_.notes.get("target") == target.name
    model = clone(loaded).set_params(representation=FrozenEstimator(ssl)) if predicts_it else new_model(ssl, target, settings)
    fitted = loaded if predicts_it else clone(model).fit(labeled.rows, labeled.y)
    models = {FULL: model, **(_rivals(ssl, subject, labeled, settings, target) if rivals else {})}
    shown = _Shown(rows, places, labeled.places, target)
    if target.kind == "class":
        classes = {name: hold_out_classes(one, labeled, seed, name) for name, one in models.items()}
        error = float(classes[FULL].is_wrong.mean())
        return Judged(_classes(fitted, shown, classes[FULL]), class_risks(classes[FULL]), *class_charts(classes), error)
    numbers = {name: hold_out_numbers(one, labeled, seed, name) for name, one in models.items()}
    error = root_mean_squared_error(numbers[FULL].y, numbers[FULL].mean)
    return Judged(_numbers(fitted, shown, numbers[FULL]), number_risks(numbers[FULL]), *number_charts(numbers), error)


def _rivals(ssl: GPSSL, subject: Subject, labeled: Labeled, settings: Settings, target: Target) -> dict[str, Any]:
    """The compared methods, each with the settings that suit the labels best; those that cannot be run are left out."""
    found = {}
    regression = target.kind == "number"
    sampled, known = at_most(subject, labeled, MAX_ROWS, settings.seed)
    rows = Rows(sampled, ssl.kernel_, settings, regression)
    progress = Progress("compared methods", len(RIVALS) - 1, unit="methods")
    for name, candidates in RIVALS.items():
        if name == FULL:
            continue
        try:
            found[name] = choose(candidates(rows), known, np.arange(len(known.y)), settings.seed, regression=regression).estimator
        except (ImportError, ValueError):
            continue
        progress.advance(1)
    progress.finish()
    return found


class _Shown(NamedTuple):
    """The rows of the page."""

    rows: Any
    places: Places
    labeled: Places
    """Places of all rows with a label."""
    target: Target

    def with_held_out(self, values: NDArray[Any], held_out: NDArray[Any]) -> NDArray[Any]:
        """At rows with a label, what was predicted without it: the model has seen it."""
        place_of = np.full(len(self.target.values), -1)
        place_of[self.labeled] = np.arange(len(self.labeled))
        among = place_of[self.places]
        values = values.copy()
        values[among >= 0] = held_out[among[among >= 0]]
        return values


def _classes(model: Any, shown: _Shown, held_out: HeldOutClasses) -> Predictions:
    proba, std = model.predict_proba(shown.rows), model.predict_proba_std(shown.rows)
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
    mean = shown.with_held_out(model.predict(shown.rows), held_out.mean)
    std = shown.with_held_out(model.predict_std(shown.rows), held_out.std)
    return Predictions(
        target=shown.target.name,
        predicted=[f"{value:.6g}" for value in mean],
        certainty=-std,
        std=std,
        labeled=shown.target.is_known[shown.places],
        is_probability=False,
        values=mean,
    )
