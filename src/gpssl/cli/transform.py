"""`gpssl transform`."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options
from ._console import progress_bars
from .embed import show_embedded


def transform(
    model: _options.Model,
    table: _options.Table,
    out: _options.Out,
    draws: Annotated[int, typer.Option("--draws", min=0, help="Also write so many functions drawn from the posterior.")] = 0,
    sheet: _options.Sheet = None,
    only_new: _options.OnlyNew = False,
    force: _options.Force = False,
    as_json: _options.Json = False,
) -> None:
    """Represent other rows by a model that was learned before, and write what it predicts for them.

    A model of gpssl label writes its predictions too, with the abstentions of its --max-risk. A note says where rows
    leave the ranges of those that the model was learned from. With --draws, columns gpssl_1_draw_1, … hold functions
    from the posterior, each the same function at all rows.
    """
    with progress_bars():
        from ..workflows._embed import transform as run

        result = run(model, table, n_draws=draws, sheet=sheet, out=out, only_new=only_new, force=force)
    show_embedded(result, as_json=as_json, out=out)
