"""What the slider moves over: for each risk a threshold, what it promises, and how many rows of the whole table it keeps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..evaluation._held_out import HeldOutClasses, HeldOutNumbers
from ..evaluation._promises import Evidence, RiskLimit, class_threshold, number_curve, threshold_on_average
from ..evaluation._selective import RiskCoverageCurve, risk_coverage_curve
from ._content import RiskTable, Thresholds
from ._predicting import Predicted
from ._run import Run, confidence_in_words
from ._words import AVERAGE, AVERAGE_OF_NUMBERS, AVERAGE_PROMISE, CONFIDENT, ON_AVERAGE, WITHOUT_PROMISE

Array = NDArray[np.float64]

ERROR_RATES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
N_TARGETS = 15


def class_risks(held_out: HeldOutClasses, run: Run, predicted: Predicted) -> RiskTable:
    """Return the error rates that a person may ask for, up to the first that all predictions meet, and that of the run.

    The promise of the run comes first, with its own threshold where the slider starts; then what holds on average. Where the labels are not
    like the other rows there is no promise.
    """
    curve = risk_coverage_curve(held_out.y, held_out.proba, labels=held_out.classes)
    overall = float(curve.risk[-1])
    n_targets = next((place + 1 for place, rate in enumerate(ERROR_RATES) if rate >= overall), len(ERROR_RATES))
    targets, start = _with_that_of(run, np.array(ERROR_RATES[:n_targets]))
    average = np.array([threshold_on_average(curve, target) for target in targets])
    losses, certainty = held_out.is_wrong.astype(np.float64), held_out.certainty
    estimate = replace(_thresholds(ON_AVERAGE, average, certainty, losses, predicted), explanation=AVERAGE, is_promise=False)
    promises = [estimate if run.shift is None else replace(estimate, explanation=WITHOUT_PROMISE)]
    if run.shift is None:
        evidence = Evidence(held_out, predicted.certainty[predicted.is_decided])
        certain = np.array([_promised(evidence, target, run) for target in targets])
        promise = _thresholds(confidence_in_words(run.limit), certain, certainty, losses, predicted)
        promises.insert(0, replace(promise, explanation=AVERAGE_PROMISE if run.limit.confidence is None else CONFIDENT))
    return RiskTable(targets=targets, promises=promises, start=start, n_decided=int(predicted.is_decided.sum()))


def number_risks(held_out: HeldOutNumbers, run: Run, predicted: Predicted) -> RiskTable:
    """Return errors that a person may ask for, from that of the most certain tenth to that of all predictions, and that of the run."""
    curve = number_curve(held_out)
    overall = float(curve.risk[-1])
    lowest = min(float(curve.risk[np.searchsorted(curve.coverage, 0.1)]), 0.9 * overall)
    targets, start = _with_that_of(run, np.linspace(lowest, overall, N_TARGETS))
    thresholds = np.array([_on_average(curve, target, run) for target in targets])
    estimate = _thresholds(ON_AVERAGE, thresholds, -held_out.std, (held_out.y - held_out.mean) ** 2, predicted)
    estimate = replace(estimate, risk=np.sqrt(estimate.risk), explanation=AVERAGE_OF_NUMBERS, is_promise=False)
    return RiskTable(
        targets=targets,
        promises=[estimate],
        risk_name="root mean squared error",
        unit="",
        start=start,
        n_decided=int(predicted.is_decided.sum()),
    )


def _with_that_of(run: Run, targets: Array) -> tuple[Array, int]:
    """Add the risk that the run was asked to hold, and no limit at all; return where the slider starts: at the one that the run had."""
    asked = np.inf if run.limit.max_risk is None else run.limit.max_risk
    targets = np.union1d(targets, [asked, np.inf])
    return targets, int(np.searchsorted(targets, asked))


def _of_run(run: Run, target: float) -> float | None:
    """Return the threshold of the run, if this is what it was asked to hold."""
    return run.threshold if target == run.limit.max_risk else None


def _promised(evidence: Evidence, target: float, run: Run) -> float:
    """Return the threshold that holds the target as the run does; all are kept where there is no limit.

    Where the run's promise does not rest on all labels alike, its threshold alone is known: it holds larger targets too.
    """
    if target == np.inf:
        return -np.inf
    found = _of_run(run, target)
    if found is not None:
        return found
    if not run.is_plain:
        is_held = run.threshold is not None and run.limit.max_risk is not None and target > run.limit.max_risk
        return float(run.threshold or 0.0) if is_held else np.inf
    return class_threshold(evidence, RiskLimit(target, run.limit.confidence))


def _on_average(curve: RiskCoverageCurve, target: float, run: Run) -> float:
    """Return the threshold that holds the target at held-out rows; for numbers that is what the run does too."""
    found = _of_run(run, target)
    return threshold_on_average(curve, target) if found is None else found


def _thresholds(name: str, thresholds: Array, certainty: Array, losses: Array, predicted: Predicted) -> Thresholds:
    """Return coverage and risk at held-out rows. The page keeps rows at the threshold too, the library those above it."""
    kept = [certainty > threshold for threshold in thresholds]
    coverage = np.array([rows.mean() for rows in kept])
    risk = np.array([losses[rows].mean() if rows.any() else np.nan for rows in kept])
    from_here = np.where(np.isfinite(thresholds), np.nextafter(thresholds, np.inf), thresholds)
    return Thresholds(name, from_here, coverage, risk, n_kept=predicted.n_kept(thresholds))
