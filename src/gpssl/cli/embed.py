"""`gpssl embed`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..workflows._choices import MAX_INDUCING, Alike
from . import _options
from ._console import progress_bars, show_result

if TYPE_CHECKING:
    from ..workflows import Embedded


def embed(
    table: _options.Table,
    out: _options.Out,
    model: _options.ModelOut = None,
    components: _options.Components = None,
    alike: _options.AlikeOption = Alike.COLUMNS,
    temperature: _options.Temperature = "auto",
    max_inducing: _options.MaxInducing = MAX_INDUCING,
    keep: _options.Keep = None,
    ignore: _options.Ignore = None,
    sheet: _options.Sheet = None,
    seed: _options.Seed = 0,
    only_new: _options.OnlyNew = False,
    force: _options.Force = False,
    as_json: _options.Json = False,
) -> None:
    """Learn a representation of a table, from its rows alone.

    Mixed columns and missing cells are fine. The results are the table with new columns: gpssl_1, gpssl_2, … are the
    coordinates of each row, gpssl_1_std, … say how far the data leave them open (1 is: entirely). The model is saved
    beside them, for gpssl transform.
    """
    with progress_bars():
        from ..workflows._embed import embed as run

        result = run(
            table,
            n_components=components,
            alike=alike,
            temperature=_options.temperature_of(temperature),
            max_inducing=max_inducing,
            keep=keep or (),
            ignore=ignore or (),
            sheet=sheet,
            random_state=seed,
            out=out,
            model_out=model,
            only_new=only_new,
            force=force,
        )
    show_embedded(result, as_json=as_json)


def show_embedded(result: Embedded, *, as_json: bool) -> None:
    """Print what `gpssl embed` or `gpssl transform` has found."""
    columns = f"{len(result.columns):,} columns, " if result.columns else ""
    size = f"{result.n_rows:,} rows, {columns}{result.n_components} dimensions"
    line = f"{size}; average standard deviation {result.mean_std:.2f} (1: nothing is known, 0: all is)."
    show_result(result, [line], as_json=as_json)
