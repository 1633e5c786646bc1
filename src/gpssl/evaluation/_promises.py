"""What to expect of predictions by labels that were held out, and which to keep so that a limit of their errors holds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._runtime import CONFIDENCE, percent
from ..data._labels import Target
from ._calibration import INTERVAL
from ._conformal import average_risk_threshold, labels_without_error
from ._held_out import HeldOutClasses, HeldOutNumbers
from ._label_sample import LabelSample, thinned
from ._selective import RiskCoverageCurve, risk_controlled_threshold, risk_coverage_curve_from_losses, rows_without_error
from ._shift import Shift

Array = NDArray[np.float64]

LABELS_FOR_CONFIDENCE = 300
"""So many labels let a promise be held with confidence without leaving most predictions to a person; fewer let it be held on average."""


@dataclass(frozen=True)
class RiskLimit:
    """What a person asks of the predictions that are kept: how often they may be wrong, and how sure that must be."""

    max_risk: float | None = None
    """The largest error rate; for numbers, the largest root mean squared error. None keeps all."""
    confidence: float | None = CONFIDENCE
    """The probability with which the error rate is held; None: it is held on average."""

    @classmethod
    def for_labels(cls, max_risk: float | None, confidence: float | Literal["auto"] | None, n_labels: int) -> RiskLimit:
        """Return the limit; with "auto", on average where independent labels are few, and with confidence where they are many."""
        if confidence == "auto":
            confidence = None if n_labels < LABELS_FOR_CONFIDENCE else CONFIDENCE
        return cls(max_risk, confidence)

    @property
    def least_labels(self) -> int:
        """With fewer independent labels, all of them right, not all predictions can be kept."""
        if self.max_risk is None or self.max_risk >= 1:  # for numbers there is no such bound
            return 0
        return labels_without_error(self.max_risk) if self.confidence is None else rows_without_error(self.max_risk, 1 - self.confidence)


@dataclass(frozen=True)
class Basis:
    """The labels that a promise rests on."""

    n_labels: int
    n_chosen: int
    """Labels of rows that were chosen because they are hard to predict, in all."""
    n_effective: float | None
    """How many labels that count alike would tell as much, where labels are weighed because they are no random sample; else None."""


class Evidence(NamedTuple):
    """Held-out labels that a promise rests on, and rows without a label that it is made for."""

    judged: HeldOutClasses | HeldOutNumbers
    others: Array
    """How certain the predictions of classes of rows without a label are; not used for numbers. [m]"""
    sample: LabelSample | None = None
    """Weights of both; None where each row counts once."""
    n_chosen: int = 0

    @property
    def weight(self) -> Array:
        """How much each judged label counts. [n]"""
        return np.ones(len(self.judged.y)) if self.sample is None else self.sample.weight

    @property
    def basis(self) -> Basis:
        """What there is to say of it."""
        return Basis(len(self.judged.y), self.n_chosen, None if self.sample is None else self.sample.n_effective)


@dataclass(frozen=True)
class Expectation:
    """What cross-validation on the labels says about the predictions for the other rows."""

    risk_name: str
    risk: float
    """The error rate, or root mean squared error, of all predictions."""
    interval: tuple[float, float] | None
    """The interval that holds the error rate with 95 % confidence; None for numbers."""
    n_judged: int
    """How many rows were held out."""
    n_independent: int
    """How many of them are independent: all, or one of each group."""
    coverage: float
    """The share of predictions that are kept."""
    kept_risk: float
    """The risk of the predictions that are kept; NaN where none is."""
    threshold: float
    """The certainty above which a prediction is kept: a probability, or minus a standard deviation. −inf keeps all."""
    baseline_risk: float
    """The risk of guessing the most frequent class, or the mean: a model must beat it."""
    interval_coverage: float | None
    """The share of numbers that were in their 90 % interval; None for classes."""
    shift: Shift | None = None
    """Where the other rows are not like those with a label, by how much: none of the above holds for them then."""
    basis: Basis | None = None
    """The labels that all this rests on; None: all that were held out."""

    @property
    def n_used(self) -> int:
        """How many labels all this rests on."""
        return self.n_judged if self.basis is None else self.basis.n_labels

    @property
    def n_effective(self) -> float | None:
        """How many labels that count alike would tell as much, where labels are weighed."""
        return None if self.basis is None else self.basis.n_effective


def expect(held_out: HeldOutClasses | HeldOutNumbers, limit: RiskLimit, evidence: Evidence | None = None) -> Expectation:
    """Return what to expect, from labels that were held out in turn; without `evidence` a promise rests on all of them."""
    if isinstance(held_out, HeldOutClasses):
        return expect_classes(held_out, limit, evidence)
    return expect_numbers(held_out, limit, evidence)


def expect_classes(held_out: HeldOutClasses, limit: RiskLimit, evidence: Evidence | None = None) -> Expectation:
    """Return the expectation for a target with classes."""
    found = Evidence(held_out, held_out.certainty) if evidence is None else evidence
    judged, weight = found.judged, found.weight
    assert isinstance(judged, HeldOutClasses)
    threshold = class_threshold(found, limit)
    kept = judged.certainty > threshold
    _, of_class = np.unique(judged.y, return_inverse=True)
    return Expectation(
        risk_name="error rate",
        risk=float(np.average(judged.is_wrong, weights=weight)),
        interval=judged.error_interval(weight),
        n_judged=len(held_out.y),
        n_independent=len(judged.independent()),
        coverage=float(np.average(kept, weights=weight)),
        kept_risk=float(np.average(judged.is_wrong[kept], weights=weight[kept])) if weight[kept].any() else float("nan"),
        threshold=threshold,
        baseline_risk=1 - float(np.bincount(of_class, weight).max()) / float(weight.sum()),
        interval_coverage=None,
        basis=None if evidence is None else found.basis,
    )


def class_threshold(evidence: Evidence, limit: RiskLimit) -> float:
    """Return the certainty above which predictions are kept: −inf keeps all, inf none.

    One label of each group counts, as rows of a group are not independent. The probabilities come from models that have seen nine tenths of
    the labels, while the model that is used has seen all of them: the promise holds as far as these models are alike.
    """
    if limit.max_risk is None:
        return -np.inf
    held_out = evidence.judged
    assert isinstance(held_out, HeldOutClasses)
    rows = held_out.independent()
    weight, others_weight = (None, None) if evidence.sample is None else (evidence.sample.weight[rows], evidence.sample.other_weight)
    if weight is not None and limit.confidence is not None:
        rows = thinned(rows, weight)
    judged = held_out.take(rows)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No (threshold holds the risk|prediction can be kept)")  # `what_cannot_be_promised` says it
        if limit.confidence is not None:
            return risk_controlled_threshold(judged.y, judged.proba, limit.max_risk, limit.confidence, labels=judged.classes)
        weights = {"sample_weight": weight, "new_weight": others_weight}
        others = evidence.others if len(evidence.others) else judged.certainty  # all rows have a label: for rows like these
        return average_risk_threshold(judged.y, judged.proba, others, limit.max_risk, labels=judged.classes, **weights)


def expect_numbers(held_out: HeldOutNumbers, limit: RiskLimit, evidence: Evidence | None = None) -> Expectation:
    """Return the expectation for a target with numbers."""
    found = Evidence(held_out, -held_out.std) if evidence is None else evidence
    judged, weight = found.judged, found.weight
    assert isinstance(judged, HeldOutNumbers)
    curve = number_curve(judged, weight)
    threshold = -np.inf if limit.max_risk is None else threshold_on_average(curve, limit.max_risk)
    kept, squares = -judged.std > threshold, (judged.y - judged.mean) ** 2
    is_within = np.abs(judged.level - 0.5) <= INTERVAL / 2
    return Expectation(
        risk_name="root mean squared error",
        risk=float(np.sqrt(np.average(squares, weights=weight))),
        interval=None,
        n_judged=len(held_out.y),
        n_independent=len(judged.y),
        coverage=float(np.average(kept, weights=weight)),
        kept_risk=float(np.sqrt(np.average(squares[kept], weights=weight[kept]))) if weight[kept].any() else float("nan"),
        threshold=threshold,
        baseline_risk=float(np.sqrt(np.average((judged.y - np.average(judged.y, weights=weight)) ** 2, weights=weight))),
        interval_coverage=float(np.average(is_within, weights=weight)),
        basis=None if evidence is None else found.basis,
    )


def number_curve(held_out: HeldOutNumbers, weight: Array | None = None) -> RiskCoverageCurve:
    """Return the root mean squared error against coverage, where the surest predictions are kept first."""
    curve = risk_coverage_curve_from_losses((held_out.y - held_out.mean) ** 2, -held_out.std, sample_weight=weight)
    return curve._replace(risk=np.sqrt(curve.risk))


def threshold_on_average(curve: RiskCoverageCurve, max_risk: float) -> float:
    """Return the lowest certainty above which the risk at held-out rows is small enough: −inf keeps all, inf none."""
    fits = np.flatnonzero(curve.risk <= max_risk)
    if len(fits) == 0:
        return np.inf
    laxest = fits[-1]
    return -np.inf if laxest == len(curve.risk) - 1 else float(np.nextafter(curve.threshold[laxest], -np.inf))


def without_promise(expectation: Expectation, shift: Shift | None, limit: RiskLimit) -> Expectation:
    """Return the expectation with the shift; where there is one, nothing is kept that depends on a promise.

    A limit that all held-out labels meet has the threshold −inf, as no limit has: what was asked for decides.
    """
    if shift is None:
        return expectation
    if limit.max_risk is None:
        return replace(expectation, shift=shift)
    return replace(expectation, shift=shift, threshold=np.inf, coverage=0.0, kept_risk=float("nan"))


def what_cannot_be_promised(expectation: Expectation, limit: RiskLimit, target: Target) -> list[str]:
    """Return a sentence on why nothing is kept, where nothing is."""
    if expectation.threshold != np.inf or limit.max_risk is None:
        return []
    if target.kind == "number":
        return [f"No prediction is sure enough for an error of {limit.max_risk:g}: raise max_risk."]
    n_wrong = round(expectation.risk * expectation.n_used)
    groups = f" in {expectation.n_independent:,} groups" if expectation.n_independent < expectation.n_used else ""
    what = "groups" if groups else "rows"
    sure, lower = "on average", ""
    if limit.confidence is not None:
        sure, lower = f"with {percent(limit.confidence, 0)} confidence", ", or lower the confidence"
    weighed = "" if expectation.n_effective is None else f" that count as {expectation.n_effective:.0f}"
    return [
        f"An error rate of {percent(limit.max_risk)} cannot be promised {sure} from {expectation.n_used:,} labels{groups}{weighed}, of "
        f"which cross-validation got {n_wrong:,} wrong, so all predictions are left to a person. Label more {what} (without any error, "
        f"{limit.least_labels:,} are the least that can do{'' if lower else ' for all predictions'}){', or' if not lower else ','} raise "
        f"max_risk{lower}."
    ]
