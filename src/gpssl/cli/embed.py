"""`gpssl embed`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .._runtime import percent
from ..workflows._choices import MAX_INDUCING, Alike
from . import _options
from ._console import progress_bars, show_result

if TYPE_CHECKING:
    from ..workflows import Embedded

TOLD_APART = ((0.8, "well"), (0.5, "in part"), (0.0, "hardly"))
"""From which share of the spread on rows are told apart how well."""
MOST_COLUMNS, LEAST_IMPORTANCE = 3, 0.02
"""How many columns to name for each dimension, and their least share."""


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
    coordinates of each row, gpssl_1_std, … their standard deviations, which include a shift that all rows share. The
    model is saved beside them, for gpssl transform.
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
    show_embedded(result, as_json=as_json, out=out)


def show_embedded(result: Embedded, *, as_json: bool, out: Path | None = None) -> None:
    """Print what `gpssl embed` or `gpssl transform` has found."""
    columns = f"{len(result.columns):,} columns, " if result.columns else ""
    size = f"{result.n_rows:,} rows, {columns}{result.n_components} dimensions"
    show_result(result, [f"{size}; {_told_apart(result.certain_share)}.", *_matters(result)], as_json=as_json, out=out)


def _told_apart(share: float) -> str:
    """Say how sure the coordinates are, but for a shift that all rows share and that tells no rows apart."""
    how = next(words for least, words in TOLD_APART if share >= least)
    return f"rows are told apart {how}: {percent(share, 0)} of the spread between rows is certain"


def _matters(result: Embedded) -> Iterator[str]:
    """Name the columns that each dimension depends on."""
    for name, columns in result.importance.items():
        named = [f"{one.name} ({percent(one.share, 0)})" for one in columns[:MOST_COLUMNS] if one.share >= LEAST_IMPORTANCE]
        if named:
            yield f"{name} depends most on {', '.join(named)}."
