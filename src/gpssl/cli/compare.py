"""`gpssl compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._runtime import N_DRAWS, percent
from ..workflows._choices import DECIDING, FULL, MAX_INDUCING, MAX_ROWS, N_SPLITS, SIGNIFICANT, Alike
from . import _options
from ._console import progress_bars, show_json, show_notes, show_table, with_options

if TYPE_CHECKING:
    from ..comparison import Comparison

SHOWN = {"class": ("accuracy", "ROC AUC", "AURC", "log loss", "ECE"), "number": ("RMSE", "NLL", "coverage")}
TESTED = {"class": (*DECIDING["class"], "log loss"), "number": DECIDING["number"]}
"""Scores whose differences are shown with a p-value; those beyond the deciding ones are corrected each by itself."""
MOST_SETTINGS = 3


def compare(
    table: _options.Table,
    target: _options.TargetColumn,
    splits: Annotated[
        int, typer.Option("--splits", min=2, help="Random splits of the labels into 70 % to learn from, 30 % to judge by.")
    ] = N_SPLITS,
    max_rows: Annotated[int, typer.Option("--max-rows", min=20, help="Rows that are used of larger tables.")] = MAX_ROWS,
    components: _options.Components = None,
    alike: _options.AlikeOption = Alike.COLUMNS,
    draws: _options.Draws = N_DRAWS,
    max_inducing: _options.MaxInducing = MAX_INDUCING,
    numeric: _options.Numeric = None,
    group: _options.Group = None,
    keep: _options.Keep = None,
    ignore: _options.Ignore = None,
    seed: _options.Seed = 0,
    as_json: _options.Json = False,
) -> None:
    """Is it worth it here? Compare the paper's methods on your table: the columns, kernel PCA, VICReg, the GP prior, GPSSL.

    Every row trains the representations, without its label. On each random split the same heads are trained and
    judged; only the columns, if they are more than 100, get logistic regression with a cross-validated
    penalty. Methods with several settings choose by a fifth of the labels that they train on.
    """
    with progress_bars():
        from ..comparison import compare as run

        result = run(
            table,
            target,
            n_splits=splits,
            max_rows=max_rows,
            n_components=components,
            alike=alike,
            n_draws=draws,
            max_inducing=max_inducing,
            target_kind=_options.target_kind_of(numeric),
            group=group,
            keep=keep or (),
            ignore=ignore or (),
            random_state=seed,
        )
    show_compared(result, as_json)


def show_compared(result: Comparison, as_json: bool) -> None:
    """Print what `gpssl compare` has found."""
    show_notes(result.notes)
    if as_json:
        show_json(result)
        return
    names, tested = SHOWN[result.kind], TESTED[result.kind]
    title = f"{result.target}: {result.n_rows:,} rows, {result.n_labeled:,} labels, {result.n_splits} splits (± standard error)"
    rows = [[method, *(result.scores[method][name].text() for name in names)] for method in result.ordered(names[0])]
    show_table(title, ["method", *names], rows)
    typer.echo()
    differences = [[f"against {method}", *(_difference(row[name]) for name in tested)] for method, row in result.differences.items()]
    families = f"several methods, {tested[0]} and {tested[1]} together{f', {tested[2]} by itself' if len(tested) > 2 else ''}"
    level = f"* is significant at {percent(SIGNIFICANT, 0)}, corrected for shared rows and for {families}"
    show_table(f"{FULL} minus the other; {level}", ["", *tested], differences)
    for method, reason in result.left_out.items():
        typer.echo(f"Left out: {method}. {reason}")
    for method, counts in result.settings.items():
        typer.echo(f"{method} chose {'; '.join(f'{setting} ({count} times)' for setting, count in list(counts.items())[:MOST_SETTINGS])}.")
    typer.echo(f"\n{with_options(result.recommendation)}")


def _difference(difference: Any) -> str:
    p_value = "< 0.001" if difference.p_value < 0.001 else f"= {difference.p_value:.3f}"
    return f"{difference.mean:+.3f} (p {p_value}){' *' if difference.p_value < SIGNIFICANT else '  '}"
