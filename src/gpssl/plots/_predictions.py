"""Draw how good predictions are, and maps over the plane of what a classifier predicts and how uncertain it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..downstream._predictors import MarginalizedClassifier
from ..evaluation._calibration import ReliabilityCurve
from ..evaluation._selective import RiskCoverageCurve
from ._figures import GRAY, RowGroup, add_legend, axes_or_new, check_some, frame, group_by_class, style_of
from ._plane import ColorScale, Grid, check_plane, draw_maps, new_panels, plot_maps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

N_POINTS = 61
"""On each side of the grid. It is small because the probabilities of a hundred draws take a millisecond or more at each place."""
MOST_INSIDE = 6
"""The largest number of names in a legend that does not cover the curves."""
LARGEST_MARKER = 600.0
"""The area, in square points, of the marker of a bin with all the rows."""


def plot_risk_coverage(curves: Mapping[str, RiskCoverageCurve], ax: Axes | None = None) -> Axes:
    """Draw risk against coverage of each method, by name, with the area under the curve. The lower, the better."""
    check_some(curves, "risk_coverage_curve")
    beside = len(curves) > MOST_INSIDE
    ax = axes_or_new(ax, 7.8 if beside else 5.2)
    for number, (name, curve) in enumerate(curves.items()):
        style = style_of(number)
        label = f"{name} (AURC {curve.aurc:.3f})"
        # The risk at a coverage applies from the coverage before, as in the AURC.
        ax.plot(curve.coverage, curve.risk, drawstyle="steps-pre", color=style.color, linestyle=style.line, label=label)
    frame(ax, xlabel="coverage (share of rows predicted)", ylabel="risk (error rate among them)")
    if beside:
        ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize="small")
    else:
        add_legend(ax)
    # The axis begins a little below zero, where it would hide a line.
    ax.set(xlim=(0, 1.01), ylim=(-0.03 * ax.get_ylim()[1], None))
    return ax


def plot_reliability(curves: Mapping[str, ReliabilityCurve], ax: Axes | None = None) -> Axes:
    """Draw accuracy against certainty of each method, by name, with its expected calibration error.

    A method is too certain below the diagonal. The area of a marker is the share of rows in its bin.
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


def plot_probabilities(classifiers: Mapping[str, Any], X: Any, y: Any, *, positive: Any = None, grid: Grid | None = None) -> NDArray[Any]:
    """Draw the probability of one class (top) and its standard deviation (bottom) over the plane, a column for each classifier.

    Parameters
    ----------
    classifiers
        By name, fitted to rows with two columns, with `predict_proba`, `predict_proba_std` and `classes_`.
    X
        Rows; those with a label are drawn as crosses. [n, 2]
    y
        Their labels. [n]
    positive
        The class, by default the last of the first classifier.
    grid
        The places to evaluate, by default around X.

    Returns
    -------
    axes
        [2, classifiers]
    """
    check_some(classifiers, "fitted classifier")
    rows = check_plane(X)
    groups = group_by_class(y, len(rows))
    grid = Grid.around(X, n_points=N_POINTS) if grid is None else grid
    positive = next(iter(classifiers.values())).classes_[-1] if positive is None else positive
    proba, std = _predict(classifiers, positive, grid.rows_like(X))
    axes = new_panels(2, len(classifiers))
    draw_maps(axes[0], proba, grid, label=f"probability of class {positive}", scale=ColorScale("RdBu_r", 0.0, 1.0))
    draw_maps(axes[1], std, grid, label="standard deviation", scale=ColorScale("viridis", 0.0, float(std.max())))
    for ax in axes.flat:
        _draw_crosses(ax, rows, groups)
    for ax, name in zip(axes[0], classifiers, strict=True):
        ax.set_title(name)
    handles, names = axes[0, 0].get_legend_handles_labels()
    axes[0, 0].figure.legend(handles, [f"class {name}" for name in names], loc="outside lower center", ncols=4, fontsize="small")
    return axes


def plot_uncertainty(classifier: MarginalizedClassifier, X: Any, *, grid: Grid | None = None) -> NDArray[Any]:
    """Draw the entropy of the prediction over the plane, and its two parts: the head's and the representation's. Axes [3]

    The parts sum to the total; see `MarginalizedClassifier.predict_uncertainty`. The rows X are drawn on top.
    """
    grid = Grid.around(X) if grid is None else grid
    uncertainty = classifier.predict_uncertainty(grid.rows_like(X))
    titles = ("total", "from the head", "from the representation")
    return plot_maps(np.column_stack(uncertainty), grid, X, titles=titles, label="entropy (nats)")


def _predict(classifiers: Mapping[str, Any], positive: Any, places: Any) -> tuple[Array, Array]:
    """Return each classifier's probability of the class, and its standard deviation. [n², classifiers] each"""
    columns = [_column_of(classifier, positive, name) for name, classifier in classifiers.items()]
    found = [_probabilities(classifier, places) for classifier in classifiers.values()]
    proba = [proba[:, column] for (proba, _), column in zip(found, columns, strict=True)]
    std = [std[:, column] for (_, std), column in zip(found, columns, strict=True)]
    return np.column_stack(proba), np.column_stack(std)


def _probabilities(classifier: Any, places: Any) -> tuple[Array, Array]:
    """Return probabilities and their standard deviations, from one evaluation of the draws if there are draws. [n², K] each"""
    if isinstance(classifier, MarginalizedClassifier):
        distribution = classifier.predict_distribution(places)
        return distribution.proba, distribution.proba_std
    return classifier.predict_proba(places), classifier.predict_proba_std(places)


def _column_of(classifier: Any, positive: Any, name: str) -> int:
    """Return the column in which the classifier has the probability of the class."""
    classes = classifier.classes_.tolist()
    if positive not in classes:
        raise ValueError(f"The classifier {name} knows no class {positive!r}, only {classes}: choose another with positive=.")
    return classes.index(positive)


def _draw_crosses(ax: Axes, rows: Array, groups: list[RowGroup]) -> None:
    """Draw labeled rows in the color of their class, with an outline that separates them from the map."""
    from matplotlib.patheffects import withStroke

    outline = [withStroke(linewidth=2.6, foreground="white")]
    for group in groups:
        x, y = rows[group.rows].T
        ax.scatter(x, y, s=24, marker="x", color=group.style.color, linewidths=1.3, path_effects=outline, label=group.name)
