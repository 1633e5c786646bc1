"""`gpssl compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .._runtime import N_DRAWS
from ..workflows._choices import MAX_INDUCING, MAX_ROWS, N_SPLITS, POOL, Alike
from . import _options
from ._console import progress_bars, show_json, show_line, show_notes, show_table, with_options

if TYPE_CHECKING:
    from ..comparison import Comparison, Difference

SHOWN = {"class": ("accuracy", "ROC AUC", "AURC", "ECE"), "number": ("RMSE", "coverage")}
"""Scores that are shown beside the one that decides."""
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
    unlabeled: _options.Unlabeled = None,
    sheet: _options.Sheet = None,
    seed: _options.Seed = 0,
    as_json: _options.Json = False,
) -> None:
    """Is it worth it here? Compare the pool, which is the default, with the paper's methods and with simpler ones on your table.

    Every row trains the representations, without its label. On each random split all methods learn from the same
    labels and are judged by the same others. One score decides, the log loss (for numbers the likelihood), and
    a sentence at the end says whether you need this, or how many labels would tell.
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
            unlabeled=unlabeled or (),
            sheet=sheet,
            random_state=seed,
        )
    show_compared(result, as_json)


def show_compared(result: Comparison, as_json: bool) -> None:
    """Print what `gpssl compare` has found."""
    show_notes(result.notes)
    if as_json:
        show_json(result)
        return
    names = SHOWN[result.kind]
    title = f"{result.target}: {result.n_rows:,} rows, {result.n_labeled:,} labels, {result.n_splits} splits (± standard error)"
    decided = [_decided(result, method) for method in result.scores]
    show_table(title, ["method", result.deciding, f"{POOL} minus it, 95 %", f"{POOL} against it"], decided)
    show_line()
    rows = [[method, *(row[name].text() for name in names)] for method, row in result.scores.items()]
    show_table("Other scores, which do not decide", ["method", *names], rows)
    for method, reason in result.left_out.items():
        show_line(f"Left out: {method}. {reason}")
    for method, counts in result.settings.items():
        show_line(f"{method} chose {'; '.join(f'{setting} ({count} times)' for setting, count in list(counts.items())[:MOST_SETTINGS])}.")
    show_line()
    show_line(with_options(result.recommendation))


def _decided(result: Comparison, method: str) -> list[str]:
    score, difference = result.scores[method][result.deciding].text(), result.differences.get(method)
    return [method, score, "", ""] if difference is None else [method, score, _interval(difference), difference.words]


def _interval(difference: Difference) -> str:
    return f"{difference.mean:+.3f} ({difference.lower:+.3f} to {difference.upper:+.3f})"
