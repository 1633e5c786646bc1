"""`gpssl next`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import _options
from ._console import progress_bars, show_result, with_options

if TYPE_CHECKING:
    from ..workflows import NextRows, SuggestedRow

N_SUGGESTED = 20


def next(  # noqa: A001  (the name of the command)
    table: _options.Table,
    target: _options.TargetColumn,
    n: Annotated[int, typer.Option("--number", "-n", min=1, help="How many rows to suggest.")] = N_SUGGESTED,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File for the suggested rows, with the target to be filled in.", show_default=False)
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="A model of gpssl label, in the place of one fitted now.", show_default=False)
    ] = None,
    max_risk: Annotated[
        str | None,
        typer.Option(
            "--max-risk",
            help="Error rate to be promised, 0.05 or 5% (for numbers: root mean squared error), which says when to stop.",
            show_default="5 % for classes",
        ),
    ] = None,
    confidence: _options.Confidence = "auto",
    numeric: _options.Numeric = None,
    group: _options.Group = None,
    labels: _options.Labels = None,
    keep: _options.Keep = None,
    ignore: _options.Ignore = None,
    unlabeled: _options.Unlabeled = None,
    sheet: _options.Sheet = None,
    seed: _options.Seed = 0,
    force: _options.Force = False,
    as_json: _options.Json = False,
) -> None:
    """Say which rows to label next, why each of them, and how many more labels it will take.

    Each row brings much of what the model is unsure of near to a label. With no label at all, rows that cover the
    table. With --out, the rows are written with all their columns, gpssl_rank, gpssl_reason and
    gpssl_row, their line in the table.
    """
    with progress_bars():
        from ..workflows._next import next_rows as run

        result = run(
            table,
            target,
            n,
            model=model,
            max_risk=max_risk,
            confidence=confidence,
            target_kind=_options.target_kind_of(numeric),
            group=group,
            labels=labels or (),
            keep=keep or (),
            ignore=ignore or (),
            unlabeled=unlabeled or (),
            sheet=sheet,
            random_state=seed,
            out=out,
            force=force,
        )
    show_result(result, _lines(result), as_json=as_json, out=out)


def _lines(result: NextRows) -> Iterator[str]:
    """Yield what to know, and the rows as a table of three columns: which row, what is predicted, and why."""
    yield f"{result.n_rows:,} rows: {result.n_labeled:,} have a label in {result.target!r}, {result.n_candidates:,} have none."
    if result.stop is not None:
        yield with_options(result.stop.text)
    yield "Label these next:"
    cells = [("row", "predicted", "why"), *(_cells(row) for row in result.rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(2)]
    shown = [place for place in range(3) if place != 1 or result.model is not None]
    for row in cells:
        padded = [f"{row[0]:>{widths[0]}}", f"{row[1]:<{widths[1]}}", row[2]]
        yield "  " + "  ".join(padded[place] for place in shown)


def _cells(row: SuggestedRow) -> tuple[str, str, str]:
    predicted = "" if row.predicted is None else f"{row.predicted:.4g}" if isinstance(row.predicted, float) else row.predicted
    return f"{row.line}", predicted, row.reason
