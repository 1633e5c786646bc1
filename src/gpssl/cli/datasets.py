"""`gpssl datasets`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options as take
from .console import show_json, show_table


def datasets(
    name: Annotated[str | None, typer.Argument(help="Write this one into a table, to try the other commands on.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File for the table.", show_default="NAME.csv")] = None,
    labels: Annotated[
        int | None,
        typer.Option("--labels", min=2, help="Leave so many labels, chosen at random, and empty the others.", show_default="all"),
    ] = None,
    seed: take.Seed = 0,
    force: take.Force = False,
    as_json: take.Json = False,
) -> None:
    """List the data sets that gpssl knows, or write one into a file.

    Those that come with scikit-learn are always there; others are read from the folder that the environment variable
    GPSSL_DATA names, or fetched from OpenML.
    """
    from ..commands.data import known_tables, write_example

    if name is None:
        tables = known_tables()
        if as_json:
            show_json(tables)
            return
        show_table("Data sets", ["name", "predicts", "where it is"], [[table.name, table.predicts, table.place] for table in tables])
        typer.echo("\nTry one: gpssl datasets breast_cancer --labels 60")
        return
    written = write_example(name, out or Path(f"{name}.csv"), n_labels=labels, seed=seed, force=force)
    if as_json:
        show_json(written)
    else:
        typer.echo(
            f"wrote {written.path}: {written.n_rows:,} rows, {written.n_columns} columns; "
            f"target {written.target!r}, {written.n_labels:,} labels"
        )
