"""Pictures that several experiments share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from gpssl.evaluation import Estimate, RiskCoverageCurve, risk_coverage_curve_from_losses
from gpssl.plots._figures import GRAY, frame, group_by_class, new_figure, style_of

from .ledger import Record
from .tables import table


def lines_of(records: Iterable[Record], score: str = "accuracy") -> dict[str, list[Line]]:
    """Return for each data set one line per method, in the order of the records."""
    values: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    for record in records:
        values.setdefault((record["data"], record["method"]), []).append(record[score])
    lines: dict[str, list[Line]] = {}
    for (data, method), mine in values.items():
        counts = list(mine[0])
        estimates = [Estimate.of([curve[count] for curve in mine]) for count in counts]
        lines.setdefault(data, []).append(Line(method, [float(count) for count in counts], estimates))
    return lines


def lines_table(lines: Sequence[Line]) -> str:
    """Return a table of means and standard errors: methods in rows, numbers of labels in columns. Cells without a value are empty."""
    counts = sorted({x for line in lines for x in line.x})
    rows = []
    for line in lines:
        texts = {x: estimate.text() for x, estimate in zip(line.x, line.y, strict=True)}
        rows.append([line.name, *(texts.get(count, "") for count in counts)])
    return table(["labels", *(f"{count:.0f}" for count in counts)], rows)


def draw_lines(lines: Mapping[str, Sequence[Line]], name: str, folder: Path, *, ylabel: str = "accuracy") -> list[Path]:
    """Draw one panel for each data set."""
    return save({name: plot_lines(lines, xlabel="labels", ylabel=ylabel)[0]}, folder)


def picture(name: str, text: str) -> str:
    """Return Markdown for the picture that `draw_lines` saves; documents have their pictures in a folder beside them."""
    return f"![{text}](figures/{name}.png)"


Array = NDArray[np.float64]

PANEL = 2.9
PANELS_IN_A_ROW = 4
LETTER, HANDLE, LEGEND_LINE = 0.075, 0.65, 0.19
"""Inches: of a letter in a legend, of what is beside a name, and of a line."""
LEGEND_WIDTH = 2.5
"""The width, in panels, that names of methods need, also below a single panel."""
CURVE_POINTS = 1000


class Line(NamedTuple):
    """One method: estimates at increasing places."""

    name: str
    x: Sequence[float]
    y: Sequence[Estimate]


def save(pictures: Mapping[str, Any], folder: Path) -> list[Path]:
    """Save each picture as NAME.png."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png" for name in pictures]
    for path, axes in zip(paths, pictures.values(), strict=True):
        figure = axes.get_figure(root=True)
        figure.savefig(path, dpi=90)
        plt.close(figure)
    return paths


def average_curve(records: Sequence[Record]) -> RiskCoverageCurve:
    """Return the risk at each coverage, averaged over splits."""
    coverage = np.arange(1, CURVE_POINTS + 1) / CURVE_POINTS
    risks, thresholds = [], []
    for record in records:
        curve = risk_coverage_curve_from_losses(1 - np.array(record["right"]), np.array(record["certainty"]))
        # The first point that covers at least so many rows; rounding must not push full coverage over the end.
        place = np.searchsorted(curve.coverage, coverage - 1e-9)
        risks.append(curve.risk[place])
        thresholds.append(curve.threshold[place])
    return RiskCoverageCurve(np.mean(thresholds, axis=0), coverage, np.mean(risks, axis=0))


def plot_classes(panels: Mapping[str, tuple[Array, NDArray[Any]]], wrong: Mapping[str, NDArray[np.bool_]] | None = None) -> NDArray[Any]:
    """Plot rows in the plane, colored by class; rows without a label are gray, wrong predictions ringed. Axes [panels]"""
    axes = _panels(len(panels))
    names = sorted({str(label) for _, y in panels.values() for label in y if label is not None})
    for ax, (title, (X, y)) in zip(axes, panels.items(), strict=False):
        unlabeled = np.array([label is None for label in y])
        ax.scatter(*X[unlabeled].T, s=7, color=GRAY, linewidths=0)
        for group in [] if unlabeled.all() else group_by_class(y, len(X)):
            style = style_of(names.index(group.name))
            ax.scatter(*X[group.rows].T, s=12, color=style.color, marker=style.marker, linewidths=0, label=group.name)
        if wrong is not None and title in wrong:
            ax.scatter(*X[wrong[title]].T, s=40, facecolors="none", edgecolors="black", linewidths=0.7)
            title = f"{title}: {wrong[title].sum()} wrong"
        ax.set(title=title, xticks=[], yticks=[])
    _shared_legend(axes)
    return axes


def plot_lines(panels: Mapping[str, Sequence[Line]], *, xlabel: str, ylabel: str) -> NDArray[Any]:
    """Plot lines with bands of one standard error over a logarithmic axis, a panel for each data set. Axes [panels]"""
    axes = _panels(len(panels))
    names = list(dict.fromkeys(line.name for lines in panels.values() for line in lines))
    for ax, (title, lines) in zip(axes, panels.items(), strict=False):
        for line in lines:
            style = style_of(names.index(line.name))  # the same in all panels: they share a legend
            mean, error = np.array(line.y).T
            look = {"color": style.color, "linestyle": style.line, "marker": style.marker, "markersize": 3.5, "linewidth": 1.2}
            ax.plot(line.x, mean, label=line.name, **look)
            ax.fill_between(line.x, mean - error, mean + error, color=style.color, alpha=0.12, linewidth=0)
        frame(ax, xlabel=xlabel, ylabel=ylabel)
        ax.set(title=title, xscale="log", xticks=lines[0].x, xticklabels=[f"{x:g}" for x in lines[0].x])
        ax.minorticks_off()
    _shared_legend(axes)
    return axes


def _panels(n_panels: int) -> NDArray[Any]:
    """Return the axes of a new figure, a few in a row; those that are left over are hidden. [panels]"""
    n_columns = min(n_panels, PANELS_IN_A_ROW)
    n_rows = -(-n_panels // n_columns)
    width = PANEL * max(n_columns, LEGEND_WIDTH)
    axes = new_figure(width, PANEL * n_rows + 0.6).subplots(n_rows, n_columns, squeeze=False).ravel()
    for ax in axes[n_panels:]:
        ax.set_visible(False)
    return axes[:n_panels]


def _shared_legend(axes: NDArray[Any]) -> None:
    """Draw one legend for all panels, below them: each name once, in as many columns as fit."""
    figure = axes[0].figure
    entries = {name: handle for ax in axes for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)}
    width, height = figure.get_size_inches()
    n_columns = int(np.clip(width / (LETTER * max(map(len, entries), default=1) + HANDLE), 1, 5))
    n_rows = -(-len(entries) // n_columns)
    figure.set_size_inches(width, height + LEGEND_LINE * max(0, n_rows - 1))
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=n_columns, fontsize="small")
