"""Draw a representation over the plane, the spectrum of its kernel, and what the inducing points leave unexplained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core._checked_rows import check_rows_in_memory
from ..data._arrays import row_blocks
from ..estimator import GPSSL
from ..kernels._protocol import kernel_diagonal
from ._figures import COLORS, GRAY, add_legend, axes_or_new, choose_dimensions, dimension_name, frame
from ._plane import ColorScale, Grid, check_plane, draw_maps, draw_rows, new_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

SMALLEST_SHARE = 1e-12
"""Smaller shares, which may be negative through rounding, are drawn here, because the axis is logarithmic."""


def plot_representation(ssl: GPSSL, X: Any, *, grid: Grid | None = None, dimensions: Sequence[int] | None = None) -> NDArray[Any]:
    """Draw posterior mean (top) and standard deviation (bottom) of each representation dimension over the plane.

    Parameters
    ----------
    ssl
        Fitted to rows with two columns.
    X
        Rows to draw on top. [n, 2]
    grid
        The places to evaluate, by default around X.
    dimensions
        Which dimensions, counted from 0; by default all.

    Returns
    -------
    axes
        [2, dimensions]
    """
    check_plane(X)
    grid = Grid.around(X) if grid is None else grid
    places = grid.rows_like(X)
    mean, std = ssl.mean_and_std(places)
    chosen = choose_dimensions(mean.shape[1], dimensions)
    axes = new_panels(2, len(chosen))
    draw_maps(axes[0], mean[:, chosen], grid, label="mean", scale=ColorScale.symmetric(mean[:, chosen]))
    draw_maps(axes[1], std[:, chosen], grid, label="standard deviation", scale=ColorScale.rising(std[:, chosen]))
    for ax, dimension in zip(axes[0], chosen, strict=True):
        ax.set_title(dimension_name(dimension))
    for ax in axes.flat:
        draw_rows(ax, X)
    return axes


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
