"""`gpssl label`: classes or numbers for the rows that have none, with an expectation of how often they are wrong."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import ceil, log, log1p
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from .. import GPSSL, MarginalizedClassifier, MarginalizedRegressor
from ..calibration import root_mean_squared_error
from ..files import replacing
from ..io import save
from ..selective import RiskCoverageCurve, risk_controlled_threshold, risk_coverage_curve_from_losses
from .embedding import check_outputs
from .held_out import HeldOutClasses, HeldOutNumbers, Share, hold_out_classes, hold_out_numbers
from .notes import noting
from .settings import Settings
from .subject import Labelled, Piece, Subject, Target
from .words import percent

Array = NDArray[np.float64]

INTERVAL = 0.9


@dataclass(frozen=True)
class Promise:
    """What a person asks of the predictions that are kept."""

    max_risk: float | None = None
    """The largest error rate; for numbers, the largest root mean squared error. None keeps all."""
    confidence: float = 0.95


@dataclass(frozen=True)
class Expectation:
    """What cross-validation on the labels tells of the predictions for the other rows."""

    risk_name: str
    risk: float
    """Of all predictions."""
    interval: tuple[float, float] | None
    """Where an error rate may be with 95 % confidence."""
    n_judged: int
    coverage: float
    """Share of predictions that are kept."""
    kept_risk: float
    """Of these; NaN where none is kept."""
    threshold: float
    """Certainty above which a prediction is kept: a probability, or minus a standard deviation. −inf keeps all."""
    always_largest: float | None
    """Error rate of guessing the most frequent class, or standard deviation of the numbers: what a model must beat."""
    interval_coverage: float | None
    """Share of numbers that were in their 90 % interval."""


@dataclass(frozen=True)
class LabelledTable:
    """What `gpssl label` has done."""

    target: str
    kind: str
    classes: list[str] | None
    n_rows: int
    n_labelled: int
    n_predicted: int
    n_abstained: int
    counts: dict[str, int] | None
    """How often each class was predicted and kept."""
    expectation: Expectation
    written: list[Path]
    notes: list[str]


def new_model(ssl: GPSSL, target: Target, settings: Settings) -> Any:
    """A classifier or regressor on a representation that is fitted, its heads still to be trained."""
    kind = MarginalizedClassifier if target.kind == "class" else MarginalizedRegressor
    return kind(FrozenEstimator(ssl), n_draws=settings.n_draws, random_state=settings.seed)


def label(
    subject: Subject, out: Path, model_file: Path, settings: Settings, promise: Promise, *, only_new: bool, force: bool
) -> LabelledTable:
    """Learn from all rows and the labels of some, predict the others, and write both into files."""
    check_outputs(subject, [out, model_file], force)
    target = subject.target()
    check_labels(target, subject.path.name, subject.notes)
    with noting(subject.notes):
        model = new_model(subject.fit(settings), target, settings)
        labelled = subject.labelled()
        expectation = expect(model, target, labelled, promise, settings.seed)
        subject.notes.extend(_what_cannot_be_promised(expectation, promise, target))
        fitted = model.fit(labelled.rows, labelled.y)
    columns = _Predictor(fitted, target, expectation.threshold, promise.max_risk is not None)
    subject.write(out, columns, only_new=only_new, force=force)
    found = {"target": target.name, "target_kind": target.kind, "promise": asdict(promise), "expectation": _finite(asdict(expectation))}
    with replacing(model_file, force=force) as beside:
        save(fitted, beside, trained_on=subject.facts, notes={**subject.card_notes(), **found})
    return LabelledTable(
        target=target.name,
        kind=target.kind,
        classes=fitted.classes_.tolist() if target.kind == "class" else None,
        n_rows=subject.n_rows,
        n_labelled=len(labelled.y),
        n_predicted=columns.n_predicted,
        n_abstained=columns.n_abstained,
        counts=columns.counts if target.kind == "class" else None,
        expectation=expectation,
        written=[out, model_file],
        notes=subject.notes,
    )


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """Infinity and NaN, which JSON has not, as words."""
    return {name: str(value) if isinstance(value, float) and not np.isfinite(value) else value for name, value in values.items()}


def check_labels(target: Target, file: str, notes: list[str]) -> None:
    """A sentence for labels that nothing can be learnt from, a note for those that little can."""
    labels = target.labels
    if len(labels) == 0:
        raise ValueError(f"No row of {file} has a label in {target.name!r}: fill in some of its cells.")
    values, counts = np.unique(labels, return_counts=True)
    if len(values) < 2:
        raise ValueError(
            f"All {len(labels)} labels in {target.name!r} are {values[0]!s}: there is nothing to tell apart. Label rows of another "
            "class, or choose another column."
        )
    if target.kind == "class" and counts.min() == 1:
        rare = ", ".join(map(str, values[counts == 1][:5]))
        notes.append(f"Classes with a single labelled row count as errors when it is held out: {rare}.")
    if target.kind == "class" and len(values) > len(labels) / 2:
        notes.append(f"{target.name!r} has {len(values)} classes for {len(labels)} labels. For numbers, pass --numeric.")


def expect(model: Any, target: Target, labelled: Labelled, promise: Promise, seed: int) -> Expectation:
    """From labels that were held out in turn."""
    if target.kind == "class":
        return _expect_classes(hold_out_classes(model, labelled, seed), promise)
    return _expect_numbers(hold_out_numbers(model, labelled, seed), promise)


def _what_cannot_be_promised(expectation: Expectation, promise: Promise, target: Target) -> list[str]:
    """Why nothing is kept, where nothing is."""
    if expectation.threshold != np.inf or promise.max_risk is None:
        return []
    if target.kind == "number":
        return [f"No prediction is sure enough for an error of {promise.max_risk:g}: raise --max-risk."]
    least = ceil(log(1 - promise.confidence) / log1p(-promise.max_risk))
    n_wrong = round(expectation.risk * expectation.n_judged)
    return [
        f"An error rate of {percent(promise.max_risk)} cannot be promised with {percent(promise.confidence, 0)} confidence from "
        f"{expectation.n_judged:,} labels, of which cross-validation got {n_wrong:,} wrong, so all predictions are left to a person. Label "
        f"more rows (without any error, {least:,} are the least that can do), raise --max-risk, or lower --confidence."
    ]


def _expect_classes(held_out: HeldOutClasses, promise: Promise) -> Expectation:
    threshold = -np.inf
    if promise.max_risk is not None:
        threshold = risk_controlled_threshold(held_out.y, held_out.proba, promise.max_risk, promise.confidence, labels=held_out.classes)
    wrong = Share.of(held_out.is_wrong)
    kept = held_out.certainty > threshold
    commonest = np.unique(held_out.y, return_counts=True)[1].max()
    return Expectation(
        risk_name="error rate",
        risk=wrong.rate,
        interval=(wrong.low, wrong.high),
        n_judged=len(held_out.y),
        coverage=float(kept.mean()),
        kept_risk=Share.of(held_out.is_wrong[kept]).rate,
        threshold=threshold,
        always_largest=1 - float(commonest) / len(held_out.y),
        interval_coverage=None,
    )


def _expect_numbers(held_out: HeldOutNumbers, promise: Promise) -> Expectation:
    certainty = -held_out.std
    curve = number_curve(held_out)
    threshold = -np.inf if promise.max_risk is None else threshold_on_average(curve, promise.max_risk)
    kept = certainty > threshold
    return Expectation(
        risk_name="root mean squared error",
        risk=root_mean_squared_error(held_out.y, held_out.mean),
        interval=None,
        n_judged=len(held_out.y),
        coverage=float(kept.mean()),
        kept_risk=root_mean_squared_error(held_out.y[kept], held_out.mean[kept]) if kept.any() else float("nan"),
        threshold=threshold,
        always_largest=float(held_out.y.std()),
        interval_coverage=held_out.interval_coverage(INTERVAL),
    )


def number_curve(held_out: HeldOutNumbers) -> RiskCoverageCurve:
    """Root mean squared error against coverage: the surest predictions first."""
    curve = risk_coverage_curve_from_losses((held_out.y - held_out.mean) ** 2, -held_out.std)
    return curve._replace(risk=np.sqrt(curve.risk))


def threshold_on_average(curve: RiskCoverageCurve, max_risk: float) -> float:
    """The lowest certainty above which the risk at held-out rows is small enough: −inf keeps all, inf none."""
    fits = np.flatnonzero(curve.risk <= max_risk)
    if len(fits) == 0:
        return np.inf
    laxest = fits[-1]
    return -np.inf if laxest == len(curve.risk) - 1 else float(np.nextafter(curve.threshold[laxest], -np.inf))


class _Predictor:
    """The new columns for pieces of a table, and what they come to."""

    def __init__(self, model: Any, target: Target, threshold: float, abstains: bool) -> None:
        self.model, self.target, self.threshold, self.abstains = model, target, threshold, abstains
        self.n_predicted = self.n_abstained = 0
        self.counts: dict[str, int] = {}

    def __call__(self, piece: Piece, where: slice) -> Any:
        """Empty for rows that have a label."""
        import pandas as pd

        open_rows = ~self.target.is_known[where]
        predict = self._classes if self.target.kind == "class" else self._numbers
        frame = pd.DataFrame(index=range(len(open_rows)))
        rows = piece.rows[open_rows]
        columns, certainty = predict(rows) if open_rows.any() else ({}, np.empty(0))
        for name in self._names():
            frame[f"{self.target.name}_{name}"] = _spread(columns.get(name), open_rows)
        if self.abstains:
            kept = certainty > self.threshold
            frame[f"{self.target.name}_abstain"] = _spread(~kept, open_rows)
            self.n_abstained += int((~kept).sum())
        self.n_predicted += int(open_rows.sum())
        return frame

    def _names(self) -> tuple[str, ...]:
        return ("predicted", "probability", "std") if self.target.kind == "class" else ("predicted", "std", "lower", "upper")

    def _classes(self, rows: Any) -> tuple[dict[str, NDArray[Any]], Array]:
        proba, std = self.model.predict_proba(rows), self.model.predict_proba_std(rows)
        best = proba.argmax(axis=1)
        certainty = proba.max(axis=1)
        for name, count in zip(*np.unique(self.model.classes_[best][certainty > self.threshold], return_counts=True), strict=True):
            self.counts[str(name)] = self.counts.get(str(name), 0) + int(count)
        predicted = self.model.classes_[best].astype(object)
        return {"predicted": predicted, "probability": certainty, "std": std[np.arange(len(best)), best]}, certainty

    def _numbers(self, rows: Any) -> tuple[dict[str, NDArray[Any]], Array]:
        interval = self.model.predict_interval(rows, INTERVAL)
        std = self.model.predict_std(rows)
        return {"predicted": self.model.predict(rows), "std": std, "lower": interval[:, 0], "upper": interval[:, 1]}, -std


def _spread(values: NDArray[Any] | None, places: NDArray[np.bool_]) -> NDArray[Any]:
    """Values at their places, nothing elsewhere. [n]"""
    if values is not None and values.dtype.kind == "f":
        out: NDArray[Any] = np.full(len(places), np.nan)
    else:
        out = np.full(len(places), None, dtype=object)
    if values is not None:
        out[places] = values
    return out
