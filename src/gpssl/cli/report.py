"""`gpssl report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import _options
from ._console import progress_bars, show_result


def report(
    model: _options.Model,
    table: _options.Table,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="HTML file.", show_default="as the model, with .html")] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column to predict.", show_default="that of the model, if it has one")
    ] = None,
    group: _options.Group = None,
    rivals: Annotated[bool, typer.Option("--rivals/--no-rivals", help="Show curves of the compared methods too.")] = True,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help=_options.SEED_HELP, show_default="the model's")] = None,
    labels: _options.Labels = None,
    sheet: _options.Sheet = None,
    force: _options.Force = False,
    as_json: _options.Json = False,
) -> None:
    """Write one HTML file that explains a model: it works offline, prints well, and can be sent to a colleague.

    It opens with what gpssl label promised and decided. It shows rows in a plane, a slider for the error rate, curves,
    errors of each class, columns that matter, labels that may be wrong, other methods, and the most uncertain rows.
    """
    with progress_bars():
        from ..report._making import make_report

        result = make_report(
            model,
            table,
            target=target,
            group=group,
            rivals=rivals,
            labels=labels or (),
            sheet=sheet,
            random_state=seed,
            out=out or model.with_suffix(".html"),
            force=force,
        )
    show_result(result, result.summary, as_json=as_json)
