"""Make figures, and choose the look of classes, methods and numbers: what all pictures share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data._labels import labeled_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colors, which can be told apart with every kind of color vision, without their yellow, which is faint on white."""

# Neither length has a divisor in common with the number of colors, so that a combination returns as late as possible.
LINES = ("-", "--", "-.", ":")
MARKERS = ("o", "^", "s", "D", "v", "P")

GRAY = "#666666"

MAX_DIMENSIONS = 10
"""The largest number of dimensions in one picture: with more, panels are too small, or the picture is too large, to be read."""
MAX_CLASSES = 20


class Style(NamedTuple):
    """The look of one of several methods or classes."""

    color: str
    line: str
    marker: str


def style_of(number: int) -> Style:
    """Return the look of a method or class by its number, counted from 0."""
    return Style(COLORS[number % len(COLORS)], LINES[number % len(LINES)], MARKERS[number % len(MARKERS)])


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of pyplot, so that `plt.show()` and notebooks see it; without a screen, pyplot needs none."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('Pictures need matplotlib: pip install "gpssl[cli]".') from error
    return plt.figure(figsize=(width, height), layout="constrained", dpi=120)


def axes_or_new(ax: Axes | None, width: float = 5.2, height: float = 4.0) -> Axes:
    """Return the axes that were given, or those of a new figure."""
    return new_figure(width, height).add_subplot() if ax is None else ax


def frame(ax: Axes, *, xlabel: str, ylabel: str) -> None:
    """Name the axes and draw a light frame."""
    ax.set(xlabel=xlabel, ylabel=ylabel, axisbelow=True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#dddddd", linewidth=0.6)


def add_legend(ax: Axes, title: str | None = None) -> None:
    """Add a legend where it covers least."""
    ax.legend(loc="best", fontsize="small", title=title, title_fontsize="small")


def check_some(methods: Mapping[str, Any], values: str) -> None:
    """Raise an error unless there is something to draw, and everything has a name."""
    if not isinstance(methods, Mapping):
        raise TypeError(f'Pass names with what they stand for, such as {{"GPSSL-full": {values}}}, got {type(methods).__name__}.')
    if len(methods) == 0:
        raise ValueError(f"There is nothing to draw: pass at least one name with its {values}.")


def choose_dimensions(n_components: int, dimensions: Sequence[int] | None) -> NDArray[np.intp]:
    """Return the dimensions to draw, counted from 0: all, unless some are chosen."""
    chosen = np.arange(n_components) if dimensions is None else np.asarray(dimensions, dtype=np.intp)
    if len(chosen) == 0 or chosen.min() < 0 or chosen.max() >= n_components:
        raise ValueError(f"dimensions must be some of 0 to {n_components - 1}, got {chosen.tolist()}.")
    if len(chosen) > MAX_DIMENSIONS:
        raise ValueError(f"{len(chosen)} dimensions do not fit into one picture: choose at most {MAX_DIMENSIONS} with dimensions=.")
    return chosen


def dimension_name(dimension: int) -> str:
    """Return the name of a dimension for people to read, counted from 1."""
    return f"dimension {dimension + 1}"


class RowGroup(NamedTuple):
    """Rows that are drawn with the same look."""

    name: str
    style: Style
    rows: NDArray[np.intp]


def group_by_class(y: Any, n_rows: int) -> list[RowGroup]:
    """Return the rows of each class; those marked as unlabeled are in no group."""
    if len(y) != n_rows:
        raise ValueError(f"There are {n_rows} rows and {len(y)} labels: pass one label for each row.")
    labels = labeled_rows(y)
    classes = np.unique(labels.values)
    if len(classes) > MAX_CLASSES:
        raise ValueError(f"{len(classes)} classes cannot be told apart in a picture: join some, to at most {MAX_CLASSES}.")
    return [RowGroup(str(label), style_of(k), labels.rows[labels.values == label]) for k, label in enumerate(classes)]


class ColorScale(NamedTuple):
    """The colors that stand for values from low to high."""

    colors: str
    low: float
    high: float

    @classmethod
    def symmetric(cls, values: Array) -> ColorScale:
        """Return blue below zero, white at zero, red above."""
        largest = float(np.abs(values).max())
        return cls("RdBu_r", -largest, largest)

    @classmethod
    def rising(cls, values: Array) -> ColorScale:
        """Return colors from dark to bright."""
        return cls("viridis", float(values.min()), float(values.max()))
