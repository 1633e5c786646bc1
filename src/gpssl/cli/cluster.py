"""`gpssl cluster`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .._runtime import percent
from ..workflows._choices import CLUSTERED_DRAWS, MAX_CLUSTERS, MAX_INDUCING, Alike
from . import _options
from ._console import progress_bars, show_result

if TYPE_CHECKING:
    from ..workflows import Clustered

DOUBT = 0.5
"""The probability that there are no clusters at all from which on it is said."""
LEAST_SHARE = 0.05
"""Numbers of clusters that fewer draws prefer are not printed."""


def cluster(
    table: _options.Table,
    out: _options.Out,
    clusters: Annotated[str, typer.Option("--clusters", "-k", help="How many clusters: auto, or a number.")] = "auto",
    max_clusters: Annotated[int, typer.Option("--max-clusters", min=2, help="The most that auto considers.")] = MAX_CLUSTERS,
    model: _options.ModelOut = None,
    components: Annotated[
        int | None, typer.Option("--components", min=1, help="Dimensions of the representation.", show_default="10")
    ] = None,
    alike: _options.AlikeOption = Alike.COLUMNS,
    temperature: _options.Temperature = "auto",
    draws: Annotated[int, typer.Option("--draws", min=2, help="Draws of the representation that are clustered.")] = CLUSTERED_DRAWS,
    max_inducing: _options.MaxInducing = MAX_INDUCING,
    keep: _options.Keep = None,
    ignore: _options.Ignore = None,
    sheet: _options.Sheet = None,
    seed: _options.Seed = 0,
    only_new: _options.OnlyNew = False,
    force: _options.Force = False,
    as_json: _options.Json = False,
) -> None:
    """Find clusters of the rows, and say how sure each row is in its cluster.

    Draws of a representation are clustered one by one, and matched. The results are the table with new columns:
    gpssl_cluster (from 1, the largest), gpssl_cluster_probability, and gpssl_cluster_1, gpssl_cluster_2, …, the share
    of draws that put the row into each cluster. The model is saved beside them, for gpssl transform.
    """
    number = _number_of(clusters)
    with progress_bars():
        from ..workflows._cluster import cluster as run

        result = run(
            table,
            number,
            max_clusters=max_clusters,
            n_components=components,
            alike=alike,
            temperature=_options.temperature_of(temperature),
            n_draws=draws,
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
    show_result(result, _lines(result), as_json=as_json, out=out)


def _number_of(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not text.isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"{text} is neither auto nor a whole number of at least 1.", param_hint="--clusters")
    return int(text)


def _lines(result: Clustered) -> Iterator[str]:
    """Yield what to know of the clusters."""
    sizes = ", ".join(f"{place + 1}: {size:,}" for place, size in enumerate(result.sizes))
    noun = "cluster" if result.n_clusters == 1 else "clusters"
    yield f"{result.n_rows:,} rows in {result.n_clusters} {noun} ({sizes})."
    sure = result.n_rows - result.n_unsure
    yield f"{sure:,} are in theirs with 95 % certainty or more, {result.n_unsure:,} less surely (mean {percent(result.mean_probability)})."
    likely = sorted((item for item in result.n_clusters_proba.items() if item[1] >= LEAST_SHARE), key=lambda item: -item[1])
    shares = ", ".join(f"{number} ({percent(share, 0)})" for number, share in likely)
    yield f"Numbers of clusters that draws prefer, if there are any: {shares}."
    if result.one_cloud_proba >= DOUBT:
        yield (
            f"Perhaps there are none: {percent(result.one_cloud_proba, 0)} of the draws look like one cloud, and where that is cut is a "
            "convention."
        )
