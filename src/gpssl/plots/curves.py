"""Curves that compare methods: risk against coverage, accuracy against certainty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..calibration import ReliabilityCurve
from ..selective import RiskCoverageCurve
from .figures import GRAY, add_legend, axes_or_new, check_some, frame, style_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_INSIDE = 6
"""Names in a legend that leave the curves to be seen."""
LARGEST_MARKER = 600.0
"""Area, in square points, of the marker of a bin with all the rows."""


def plot_risk_coverage(curves: Mapping[str, RiskCoverageCurve], ax: Axes | None = None) -> Axes:
    """Risk against coverage of each method, by name, with the area under the curve. The lower, the better."""
    check_some(curves, "risk_coverage_curve")
    beside = len(curves) > MOST_INSIDE
    ax = axes_or_new(ax, 7.8 if beside else 5.2)
    for number, (name, curve) in enumerate(curves.items()):
        style = style_of(number)
        label = f"{name} (AURC {curve.aurc:.3f})"
        # The risk at a coverage holds back to the one before, as in the AURC.
        ax.plot(curve.coverage, curve.risk, drawstyle="steps-pre", color=style.color, linestyle=style.line, label=label)
    frame(ax, xlabel="coverage (share of rows predicted)", ylabel="risk (error rate among them)")
    if beside:
        ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize="small")
    else:
        add_legend(ax)
    # A little below zero, where a line would be hidden by the axis.
    ax.set(xlim=(0, 1.01), ylim=(-0.03 * ax.get_ylim()[1], None))
    return ax


def plot_reliability(curves: Mapping[str, ReliabilityCurve], ax: Axes | None = None) -> Axes:
    """Accuracy against certainty of each method, by name, with its expected calibration error. Below the diagonal, it is too certain.

    The area of a marker is the share of rows in its bin.
    """
    check_some(curves, "reliability_curve")
    ax = axes_or_new(ax, 5.2, 5.0)
    ax.plot([0, 1], [0, 1], color=GRAY, linewidth=0.8, label="accuracy = certainty")
    for number, (name, curve) in enumerate(curves.items()):
        style = style_of(number)
        label = f"{name} (ECE {curve.expected_calibration_error:.3f})"
        ax.plot(curve.certainty, curve.accuracy, color=style.color, linestyle=style.line, label=label)
        ax.scatter(curve.certainty, curve.accuracy, s=LARGEST_MARKER * curve.share, color=style.color, marker=style.marker)
    frame(ax, xlabel="certainty (probability of the likeliest label)", ylabel="accuracy (share of rows where it is right)")
    add_legend(ax, "marker area: share of rows")
    lowest = min(float(min(curve.lower.min(), curve.accuracy.min())) for curve in curves.values())
    limits = (lowest - 0.04, 1.04)
    ax.set(xlim=limits, ylim=limits, aspect="equal")
    return ax
