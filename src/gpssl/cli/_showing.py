"""Results of the commands in a few lines, or as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .._runtime.progress import percent
from ._console import show_json, show_notes, show_table

if TYPE_CHECKING:
    from ..comparison._compare import Comparison
    from ..workflows._embed import Embedded
    from ..workflows._label import LabeledTable


MANY_ERRORS = 0.1
"""A rate at which other settings are worth a try."""


def show_embedded(result: Embedded, as_json: bool) -> None:
    """Of `gpssl embed` and `gpssl transform`."""
    show_notes(result.notes)
    if as_json:
        show_json(result)
        return
    typer.echo(
        f"{result.n_rows:,} rows, {f'{len(result.columns):,} columns, ' if result.columns else ''}{result.n_components} dimensions; "
        f"average standard deviation {result.mean_std:.2f} (1: nothing is known, 0: all is)."
    )
    _show_written(result.written)


def show_labeled(result: LabeledTable, max_risk: float | None, confidence: float, as_json: bool) -> None:
    """Of `gpssl label`."""
    show_notes(result.notes)
    if as_json:
        show_json(result)
        return
    typer.echo(f"{result.n_rows:,} rows: {result.n_labeled:,} had a label in {result.target!r}, {result.n_predicted:,} were predicted.")
    for line in _expectation_lines(result, max_risk, confidence):
        typer.echo(line)
    if result.kind == "class" and result.expectation.risk > MANY_ERRORS:
        typer.echo(
            "If these are too many: --alike neighbors may suit the rows better, and gpssl compare says whether the columns themselves do."
        )
    if result.counts:
        kept = ", ".join(f"{name} {count:,}" for name, count in sorted(result.counts.items(), key=lambda item: -item[1])[:12])
        typer.echo(f"Predicted and kept: {kept}.")
    _show_written(result.written)


def _expectation_lines(result: LabeledTable, max_risk: float | None, confidence: float) -> list[str]:
    expected = result.expectation
    if result.kind == "class":
        low, high = expected.interval or (0.0, 1.0)
        lines = [
            f"Expect {percent(expected.risk)} errors among all predictions (cross-validation on {expected.n_judged:,} labels; 95 % "
            f"interval {percent(low)} to {percent(high)}; "
            f"always guessing the most frequent class: {percent(expected.baseline_risk)})."
        ]
    else:
        lines = [
            f"Expect a root mean squared error of {expected.risk:.4g} (cross-validation on {expected.n_judged:,} numbers; always guessing "
            f"their mean: {expected.baseline_risk:.4g}). Of these, {percent(expected.interval_coverage or 0.0, 0)} were within their 90 % "
            "intervals."
        ]
    if max_risk is None:
        return lines
    wanted = (
        f"{percent(max_risk)} errors, with {percent(confidence, 0)} confidence"
        if result.kind == "class"
        else f"an error of {max_risk:g}, on average"
    )
    lines.append(
        f"To hold {wanted}: {result.n_predicted - result.n_abstained:,} predictions are kept, {result.n_abstained:,} are left to a person"
        + ("." if expected.coverage == 0 else f" (in cross-validation {percent(expected.coverage, 0)} were kept, at {_risk(result)}).")
    )
    return lines


def _risk(result: LabeledTable) -> str:
    expected = result.expectation
    return f"{percent(expected.kept_risk)} errors" if result.kind == "class" else f"an error of {expected.kept_risk:.4g}"


def _show_written(paths: list[Path]) -> None:
    for path in paths:
        typer.echo(f"wrote {path}")


SHOWN = {"class": ("accuracy", "ROC AUC", "AURC", "log loss", "ECE"), "number": ("RMSE", "NLL", "coverage")}


def show_compared(result: Comparison, as_json: bool) -> None:
    """Of `gpssl compare`."""
    show_notes(result.notes)
    if as_json:
        show_json(result)
        return
    from ..comparison._compare import ordered

    names = SHOWN[result.kind]
    title = f"{result.target}: {result.n_rows:,} rows, {result.n_labeled:,} labels, {result.n_splits} splits (± standard error)"
    rows = [[method, *(result.scores[method][name].text() for name in names)] for method in ordered(result, names[0])]
    show_table(title, ["method", *names], rows)
    typer.echo()
    tested = names[:2] if result.kind == "number" else (names[0], "AURC", "log loss")
    differences = [[f"against {method}", *(_difference(row[name]) for name in tested)] for method, row in result.differences.items()]
    families = f"several methods, {tested[0]} and {tested[1]} together{f', {tested[2]} by itself' if len(tested) > 2 else ''}"
    show_table(
        f"GPSSL-full minus the other; * is significant at 5 %, corrected for shared rows and for {families}", ["", *tested], differences
    )
    for method, reason in result.left_out.items():
        typer.echo(f"Left out: {method}. {reason}")
    for method, counts in result.settings.items():
        typer.echo(f"{method} chose {'; '.join(f'{setting} ({count} times)' for setting, count in list(counts.items())[:3])}.")
    typer.echo(f"\n{result.recommendation}")


def _difference(difference: Any) -> str:
    p_value = "< 0.001" if difference.p_value < 0.001 else f"= {difference.p_value:.3f}"
    return f"{difference.mean:+.3f} (p {p_value}){' *' if difference.p_value < 0.05 else '  '}"
