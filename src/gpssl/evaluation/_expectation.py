"""What error rate to expect, and which predictions to keep so that it holds, from labels that were held out in turn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import ceil, log, log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._runtime.defaults import CONFIDENCE
from .._runtime.progress import percent
from ..data._labels import Target
from ._calibration import INTERVAL, root_mean_squared_error
from ._held_out import HeldOutClasses, HeldOutNumbers, Labeled, hold_out_classes, hold_out_numbers
from ._selective import RiskCoverageCurve, risk_controlled_threshold, risk_coverage_curve_from_losses

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RiskLimit:
    """What a person asks of the predictions that are kept: how often they may be wrong, and how sure that must be."""

    max_risk: float | None = None
    """The largest error rate; for numbers, the largest root mean squared error. None keeps all."""
    confidence: float = CONFIDENCE
    """The probability with which the error rate is held."""


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


def check_labels(target: Target, file: str, notes: list[str]) -> None:
    """Raise ValueError for labels that nothing can be learned from, and add a note for labels that little can be learned from."""
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
        notes.append(f"Classes with a single labeled row count as errors when it is held out: {rare}.")
    if target.kind == "class" and len(values) > len(labels) / 2:
        notes.append(f"{target.name!r} has {len(values)} classes for {len(labels)} labels. For numbers, pass target_kind='number'.")


def expect(model: Any, target: Target, labeled: Labeled, limit: RiskLimit, seed: int) -> Expectation:
    """Return what to expect, from labels that were held out in turn."""
    if target.kind == "class":
        return expect_classes(hold_out_classes(model, labeled.rows, labeled.y, groups=labeled.groups, random_state=seed), limit)
    return expect_numbers(hold_out_numbers(model, labeled.rows, labeled.y, groups=labeled.groups, random_state=seed), limit)


def expect_classes(held_out: HeldOutClasses, limit: RiskLimit) -> Expectation:
    """Return the expectation for a target with classes."""
    threshold = -np.inf if limit.max_risk is None else certain_threshold(held_out, limit.max_risk, limit.confidence)
    kept = held_out.certainty > threshold
    commonest = np.unique(held_out.y, return_counts=True)[1].max()
    return Expectation(
        risk_name="error rate",
        risk=float(held_out.is_wrong.mean()),
        interval=held_out.error_interval(),
        n_judged=len(held_out.y),
        n_independent=len(held_out.independent()),
        coverage=float(kept.mean()),
        kept_risk=float(held_out.is_wrong[kept].mean()) if kept.any() else float("nan"),
        threshold=threshold,
        baseline_risk=1 - float(commonest) / len(held_out.y),
        interval_coverage=None,
    )


def certain_threshold(held_out: HeldOutClasses, max_risk: float, confidence: float) -> float:
    """Return the threshold of `risk_controlled_threshold` on independent rows, one of each group; inf where none can be promised.

    The probabilities come from models that have seen nine tenths of the labels, while the model that is used has seen all of them: the
    promise holds as far as these models are alike.
    """
    rows = held_out.independent()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No threshold holds the risk")  # `what_cannot_be_promised` says it in other words
        return risk_controlled_threshold(held_out.y[rows], held_out.proba[rows], max_risk, confidence, labels=held_out.classes)


def expect_numbers(held_out: HeldOutNumbers, limit: RiskLimit) -> Expectation:
    """Return the expectation for a target with numbers."""
    threshold = -np.inf if limit.max_risk is None else threshold_on_average(number_curve(held_out), limit.max_risk)
    kept = -held_out.std > threshold
    return Expectation(
        risk_name="root mean squared error",
        risk=root_mean_squared_error(held_out.y, held_out.mean),
        interval=None,
        n_judged=len(held_out.y),
        n_independent=len(held_out.y),
        coverage=float(kept.mean()),
        kept_risk=root_mean_squared_error(held_out.y[kept], held_out.mean[kept]) if kept.any() else float("nan"),
        threshold=threshold,
        baseline_risk=float(held_out.y.std()),
        interval_coverage=held_out.interval_coverage(INTERVAL),
    )


def number_curve(held_out: HeldOutNumbers) -> RiskCoverageCurve:
    """Return the root mean squared error against coverage, where the surest predictions are kept first."""
    curve = risk_coverage_curve_from_losses((held_out.y - held_out.mean) ** 2, -held_out.std)
    return curve._replace(risk=np.sqrt(curve.risk))


def threshold_on_average(curve: RiskCoverageCurve, max_risk: float) -> float:
    """Return the lowest certainty above which the risk at held-out rows is small enough: −inf keeps all, inf none."""
    fits = np.flatnonzero(curve.risk <= max_risk)
    if len(fits) == 0:
        return np.inf
    laxest = fits[-1]
    return -np.inf if laxest == len(curve.risk) - 1 else float(np.nextafter(curve.threshold[laxest], -np.inf))


def what_cannot_be_promised(expectation: Expectation, limit: RiskLimit, target: Target) -> list[str]:
    """Return a sentence on why nothing is kept, where nothing is."""
    if expectation.threshold != np.inf or limit.max_risk is None:
        return []
    if target.kind == "number":
        return [f"No prediction is sure enough for an error of {limit.max_risk:g}: raise max_risk."]
    least = ceil(log(1 - limit.confidence) / log1p(-limit.max_risk))
    n_wrong = round(expectation.risk * expectation.n_judged)
    groups = f" in {expectation.n_independent:,} groups" if expectation.n_independent < expectation.n_judged else ""
    what = "groups" if groups else "rows"
    return [
        f"An error rate of {percent(limit.max_risk)} cannot be promised with {percent(limit.confidence, 0)} confidence from "
        f"{expectation.n_judged:,} labels{groups}, of which cross-validation got {n_wrong:,} wrong, so all predictions are left to a "
        f"person. Label more {what} (without any error, {least:,} are the least that can do), raise max_risk, or lower the confidence."
    ]
