"""Scores against the number of labels: from records to lines, tables and pictures.

A record has, by the name of a score, its values by number of labels: {"accuracy": {"5": 0.7, "10": 0.8}}.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .figures import Line, plot_lines, save
from .ledger import Record
from .markdown import table
from .statistics import Estimate


def lines_of(records: Iterable[Record], score: str = "accuracy") -> dict[str, list[Line]]:
    """Data set → one line for each method, in the order of the records."""
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
    """Methods in rows, numbers of labels in columns; mean and standard error. Empty where a method needs more labels."""
    counts = sorted({x for line in lines for x in line.x})
    rows = []
    for line in lines:
        texts = {x: estimate.text() for x, estimate in zip(line.x, line.y, strict=True)}
        rows.append([line.name, *(texts.get(count, "") for count in counts)])
    return table(["labels", *(f"{count:.0f}" for count in counts)], rows)


def draw_lines(lines: Mapping[str, Sequence[Line]], name: str, folder: Path, *, ylabel: str = "accuracy") -> list[Path]:
    """One panel for each data set."""
    return save({name: plot_lines(lines, xlabel="labels", ylabel=ylabel)[0]}, folder)


def picture(name: str, text: str) -> str:
    """The picture that `draw_lines` saves, in Markdown; documents have their pictures in a folder beside them."""
    return f"![{text}](figures/{name}.png)"
