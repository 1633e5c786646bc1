"""How a model and its rivals do on labels that were held out: the curves of a report, and what its slider moves over."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..calibration import reliability_curve
from ..report.content import Chart, NamedCurve, Promise, RiskTable
from ..selective import RiskCoverageCurve, risk_coverage_curve
from .expecting import certain_threshold, number_curve, threshold_on_average
from .held_out import HeldOutClasses, HeldOutNumbers
from .words import percent

Array = NDArray[np.float64]

ERROR_RATES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
N_TARGETS = 15
CONFIDENCE = 0.95
LEVELS = np.linspace(0.05, 0.95, 19)
MOST_POINTS = 200
"""Of a curve: more cannot be seen."""


def class_charts(held_out: Mapping[str, HeldOutClasses]) -> tuple[Chart, Chart]:
    """Error rate against coverage, and accuracy against probability."""
    risks = [_thinned(name, risk_coverage_curve(h.y, h.proba, labels=h.classes)) for name, h in held_out.items()]
    reliability = []
    for name, h in held_out.items():
        curve = reliability_curve(h.y, h.proba, labels=h.classes, n_bins=10)
        reliability.append(NamedCurve(name, curve.certainty, curve.accuracy, np.round(curve.share * len(h.y))))
    return (
        Chart(risks, "share of rows kept, the surest first", "error rate among them", explanation=RISK_WORDS),
        Chart(reliability, "probability that was given", "share that was right", explanation=RELIABILITY_WORDS),
    )


def number_charts(held_out: Mapping[str, HeldOutNumbers]) -> tuple[Chart, Chart]:
    """Root mean squared error against coverage, and how often intervals hold."""
    risks = [_thinned(name, number_curve(h)) for name, h in held_out.items()]
    holds = [NamedCurve(name, LEVELS, np.array([h.interval_coverage(level) for level in LEVELS])) for name, h in held_out.items()]
    return (
        Chart(risks, "share of rows kept, the surest first", "root mean squared error among them", "", explanation=RISK_WORDS),
        Chart(holds, "probability of the interval", "share of numbers within it", explanation=INTERVAL_WORDS),
    )


RISK_WORDS = (
    "Rows are kept from the most to the least certain. A model that knows what it does not know makes its errors among the last: its curve "
    "stays low and rises late. From labels that were held out in turn."
)
RELIABILITY_WORDS = "Of the predictions made with a probability of 80 %, 80 % should be right: the closer to the diagonal, the better."
INTERVAL_WORDS = "An interval that should hold a number with a probability of 80 % should do so for 80 % of them."


def _thinned(name: str, curve: RiskCoverageCurve) -> NamedCurve:
    places = np.unique(np.linspace(0, len(curve.risk) - 1, MOST_POINTS).round().astype(int))
    return NamedCurve(name, curve.coverage[places], curve.risk[places])


def class_risks(held_out: HeldOutClasses) -> RiskTable:
    """Error rates that a person may ask for: up to the first that all predictions meet."""
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
            _promise(
                "on average", average, certainty, wrong, "What cross-validation gives: about as many errors, more or fewer by chance."
            ),
            _promise(
                f"with {percent(CONFIDENCE, 0)} confidence",
                certain,
                certainty,
                wrong,
                "Held in 95 of 100 such tables: stricter, and needs more labels.",
            ),
        ],
        start=start,
    )


def number_risks(held_out: HeldOutNumbers) -> RiskTable:
    """Errors between that of the surest tenth and that of all."""
    curve = number_curve(held_out)
    surest = float(curve.risk[np.searchsorted(curve.coverage, 0.1)])
    lowest = min(surest, 0.9 * float(curve.risk[-1]))
    targets = np.linspace(lowest, float(curve.risk[-1]), N_TARGETS)
    thresholds = np.array([threshold_on_average(curve, target) for target in targets])
    squares = (held_out.y - held_out.mean) ** 2
    promise = _promise("on average", thresholds, -held_out.std, squares, "What cross-validation gives; no guarantee.")
    root = Promise(promise.name, promise.threshold, promise.coverage, np.sqrt(promise.risk), promise.explanation)
    return RiskTable(targets=targets, promises=[root], risk_name="root mean squared error", unit="", start=N_TARGETS - 1)


def _promise(name: str, thresholds: Array, certainty: Array, losses: Array, explanation: str) -> Promise:
    """Coverage and risk at held-out rows. The page keeps rows at the threshold too, the library those above it."""
    kept = [certainty > threshold for threshold in thresholds]
    coverage = np.array([rows.mean() for rows in kept])
    risk = np.array([losses[rows].mean() if rows.any() else np.nan for rows in kept])
    from_here = np.where(np.isfinite(thresholds), np.nextafter(thresholds, np.inf), thresholds)
    return Promise(name, from_here, coverage, risk, explanation)
