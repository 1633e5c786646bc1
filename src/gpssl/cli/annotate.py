"""`gpssl annotate`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import _options
from ._console import progress_bars, show_result, with_options

if TYPE_CHECKING:
    from ..report import Annotation

N_SUGGESTED = 20


def annotate(
    table: _options.Table,
    target: _options.TargetColumn,
    n: Annotated[int, typer.Option("--number", "-n", min=1, help="How many rows to label.")] = N_SUGGESTED,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="HTML file.", show_default="as the table, with -label.html")] = None,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="A model of gpssl label, in the place of one fitted now.", show_default=False)
    ] = None,
    labels: _options.Labels = None,
    numeric: _options.Numeric = None,
    group: _options.Group = None,
    keep: _options.Keep = None,
    ignore: _options.Ignore = None,
    unlabeled: _options.Unlabeled = None,
    sheet: _options.Sheet = None,
    seed: _options.Seed = 0,
    force: _options.Force = False,
    as_json: _options.Json = False,
) -> None:
    """Write one HTML file in which a person labels the rows that matter most, by keyboard.

    It shows the rows that gpssl next suggests one after the other, with what the model thinks. It works offline and can
    be sent to whoever knows the labels. They save labels.csv, and gpssl label --labels merges it.
    """
    with progress_bars():
        from ..report._annotating import annotate as run

        result = run(
            table,
            target,
            n,
            model=model,
            labels=labels or (),
            target_kind=_options.target_kind_of(numeric),
            group=group,
            keep=keep or (),
            ignore=ignore or (),
            unlabeled=unlabeled or (),
            sheet=sheet,
            random_state=seed,
            out=out or table.with_name(f"{table.name.split('.')[0] or 'table'}-label.html"),
            force=force,
        )
    show_result(result, _lines(result), as_json=as_json)


def _lines(result: Annotation) -> Iterator[str]:
    """Yield what is in the page, and what to do with it."""
    yield (
        f"{result.n_rows:,} rows: {result.n_labeled:,} have a label in {result.target!r}; {len(result.rows):,} of the other "
        f"{result.n_candidates:,} are in the page."
    )
    if result.stop is not None:
        yield with_options(result.stop.text)
    yield "Open it in a browser and label by keyboard; it saves labels.csv, which this merges:"
    yield f"  {result.command}"
