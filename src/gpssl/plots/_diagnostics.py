"""Draw how good predictions are, the spectrum and the dimensions of a representation, and what its inducing points leave open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._validation import seed_from
from ..core._checked_rows import check_rows_in_memory
from ..data._arrays import row_blocks
from ..estimator import GPSSL
from ..evaluation._calibration import ReliabilityCurve
from ..evaluation._selective import RiskCoverageCurve
from ..kernels._protocol import kernel_diagonal
from ._figures import (
    COLORS,
    GRAY,
    RowGroup,
    Style,
    add_legend,
    axes_or_new,
    check_some,
    choose_dimensions,
    dimension_name,
    frame,
    group_by_class,
    new_figure,
    style_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

MOST_INSIDE = 6
"""The largest number of names in a legend that does not cover the curves."""
LARGEST_MARKER = 600.0
"""The area, in square points, of the marker of a bin with all the rows."""
SMALLEST_SHARE = 1e-12
"""Smaller shares, which may be negative through rounding, are drawn here, because the axis is logarithmic."""

PANEL_SIZE = 2.2
TICKS_SIZE = 0.6
LEGEND_SIZE = 1.2
LEGEND_LINES = 10


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


def plot_spectrum(ssl: GPSSL, ax: Axes | None = None) -> Axes:
    """Draw the eigenvalues of the feature covariance, the first `n_components` of them filled, and the residual variance ρ.

    A long flat spectrum means that the kernel sees many more directions in the rows than the representation has. Directions below the line
    matter less than the variance that the inducing points leave unexplained.
    """
    eigenvalues, n_components = ssl.eigenvalues_, int(ssl.n_components)
    number = np.arange(1, len(eigenvalues) + 1)
    residual = ssl.residual_ * ssl.moments_.diagonal / ssl.moments_.weight
    ax = axes_or_new(ax)
    ax.semilogy(
        number[:n_components], eigenvalues[:n_components], "o", color=COLORS[1], markersize=5, label=f"first {n_components} (n_components)"
    )
    ax.semilogy(number[n_components:], eigenvalues[n_components:], "o", color=COLORS[0], markersize=3, fillstyle="none", label="others")
    if residual > 0:
        ax.axhline(residual, color=GRAY, linestyle="--", linewidth=1, label=f"residual variance ρ = {residual:.1e}")
    frame(ax, xlabel="direction", ylabel="eigenvalue (variance over rows)")
    add_legend(ax)
    return ax


def plot_residuals(ssl: GPSSL, X: Any, ax: Axes | None = None) -> Axes:
    """Draw the distribution over rows of the share of prior variance that the inducing points leave unexplained.

    The share is (k(x, x) − a(x)ᵀ a(x)) / k(x, x), and the tolerance applies to its mean. Rows far above it are unlike those that the
    inducing points were chosen from; the share of the inducing points themselves is the jitter.
    """
    shares, tolerance = _unexplained_shares(ssl, X), float(ssl.residual_tolerance)
    ax = axes_or_new(ax)
    ax.set_xscale("log")
    ax.ecdf(shares, color=COLORS[0], label=f"{len(shares)} rows")
    ax.axvline(shares.mean(), color=COLORS[1], linestyle="-.", linewidth=1.2, label=f"mean {shares.mean():.1e}")
    label = f"tolerance {tolerance:g} ({np.mean(shares > tolerance):.0%} above)"
    ax.axvline(tolerance, color=GRAY, linestyle="--", linewidth=1.2, label=label)
    frame(ax, xlabel="share of prior variance left open", ylabel="share of rows below")
    add_legend(ax)
    return ax


def _unexplained_shares(ssl: GPSSL, X: Any) -> Array:
    """Return (k(x, x) − a(x)ᵀ a(x)) / k(x, x) for each row, the smallest share where k(x, x) is zero. [n]"""
    features = ssl.posterior_.features
    kernel = features.kernel
    rows = check_rows_in_memory(ssl, X, kernel, reset=False)
    shares = np.empty(len(rows))
    for block in row_blocks(len(rows)):
        diagonal = kernel_diagonal(kernel, rows[block])
        left_open = features.residual_variance(rows[block], features.whitened(rows[block]))
        shares[block] = np.divide(left_open, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)
    return np.maximum(shares, SMALLEST_SHARE)


def plot_pairs(
    ssl: GPSSL,
    X: Any,
    labels: Any = None,
    *,
    dimensions: Sequence[int] | None = None,
    n_ellipses: int = 25,
    random_state: Any = 0,
) -> NDArray[Any]:
    """Draw each pair of representation dimensions: where the rows are, and how uncertain that is.

    A point is a row's posterior mean. The ellipse around some points extends one posterior standard deviation in each dimension.

    Parameters
    ----------
    ssl
        A fitted representation.
    X
        Rows.
    labels
        The class of each row; rows marked as unlabeled are gray.
    dimensions
        Which dimensions, counted from 0; by default all.
    n_ellipses
        The largest number of rows with an ellipse, which are chosen at random.
    random_state
        The seed of that choice.

    Returns
    -------
    axes
        Panel [j, k] shows dimension j + 1 against k; None above the diagonal. [dimensions − 1, dimensions − 1]
    """
    mean, std = ssl.mean_and_std(X)
    chosen = choose_dimensions(mean.shape[1], dimensions)
    if len(chosen) < 2:
        raise ValueError("A pair needs two dimensions: raise n_components, or choose at least two with dimensions=.")
    groups = _group_rows(labels, len(mean))
    with_ellipse = np.random.default_rng(seed_from(random_state)).permutation(len(mean))[:n_ellipses]
    axes = _triangle_of_axes(len(chosen) - 1, space=LEGEND_SIZE if labels is not None and len(chosen) == 2 else 0.0)
    for j, k in zip(*np.tril_indices(len(chosen) - 1), strict=True):
        pair = chosen[[k, j + 1]]
        _draw_pair(axes[j, k], mean[:, pair], std[:, pair], groups, with_ellipse)
        below, left = j == len(axes) - 1, k == 0
        frame(axes[j, k], xlabel=dimension_name(pair[0]) if below else "", ylabel=dimension_name(pair[1]) if left else "")
        axes[j, k].locator_params(nbins=4)
    if labels is not None:
        # The legend is to the right of the first panel, where no other panel is.
        n_columns = -(-len(groups) // LEGEND_LINES)
        legend = axes[0, 0].legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize="small", markerscale=2, ncols=n_columns)
        legend.set_in_layout(len(axes) == 1)
    return axes


def _group_rows(labels: Any, n_rows: int) -> list[RowGroup]:
    """Return the rows without a label, which are drawn first so that they cover no others, and those of each class."""
    if labels is None:
        return [RowGroup("rows", style_of(0), np.arange(n_rows))]
    groups = group_by_class(labels, n_rows)
    without = np.setdiff1d(np.arange(n_rows), np.concatenate([group.rows for group in groups]))
    return [RowGroup("no label", Style(GRAY, "-", "."), without), *groups] if len(without) > 0 else groups


def _triangle_of_axes(n: int, space: float) -> NDArray[Any]:
    """Return panels on and below the diagonal, with space to the right of them. [n, n]"""
    figure = new_figure(PANEL_SIZE * n + TICKS_SIZE + space, PANEL_SIZE * n + TICKS_SIZE)
    axes = figure.subplots(n, n, squeeze=False, sharex="col", sharey="row")
    for place in zip(*np.triu_indices(n, 1), strict=True):
        axes[place].remove()
        axes[place] = None
    return axes


def _draw_pair(ax: Axes, mean: Array, std: Array, groups: list[RowGroup], with_ellipse: NDArray[np.intp]) -> None:
    """Draw points and ellipses of two dimensions: `mean` and `std` are [n, 2]."""
    from matplotlib.collections import EllipseCollection

    for group in groups:
        rows = np.intersect1d(group.rows, with_ellipse)
        ellipses = EllipseCollection(
            widths=2 * std[rows, 0],
            heights=2 * std[rows, 1],
            angles=np.zeros(len(rows)),
            units="xy",
            offsets=mean[rows],
            offset_transform=ax.transData,
            facecolors="none",
            edgecolors=group.style.color,
            linewidths=0.8,
            alpha=0.5,
        )
        ax.add_collection(ellipses, autolim=False)
        x, y = mean[group.rows].T
        ax.scatter(x, y, s=7, color=group.style.color, marker=group.style.marker, alpha=0.6, linewidths=0, label=group.name)
    # Ellipses do not widen the axes by themselves.
    ax.update_datalim(np.vstack([mean[with_ellipse] - std[with_ellipse], mean[with_ellipse] + std[with_ellipse]]))
