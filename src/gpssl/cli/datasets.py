"""`gpssl datasets`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import _options
from ._console import show_json, show_line, show_table

FACTS = ("name", "rows", "columns", "predicts")


def datasets(
    name: Annotated[str | None, typer.Argument(help="Write this one into a table, to try the other commands on.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File for the table.", show_default="NAME.csv")] = None,
    labels: Annotated[
        int | None,
        typer.Option("--labels", min=2, help="Leave so many labels, chosen at random, and empty the others.", show_default="all"),
    ] = None,
    seed: _options.Seed = 0,
    force: _options.Force = False,
    as_json: _options.Json = False,
) -> None:
    """List the example tables, or write one of them into a file.

    They come with scikit-learn, but for sms_spam, 5,574 text messages, which are downloaded once.
    """
    from ..datasets import TABLES, write_example

    if name is None:
        tables = [load() for load in TABLES.values()]
        if as_json:
            show_json([dict(zip(FACTS, (table.name, *table.X.shape, table.predicts), strict=True)) for table in tables])
            return
        show_table("Example tables", FACTS, [[table.name, *(f"{size:,}" for size in table.X.shape), table.predicts] for table in tables])
        show_line()
        show_line("And sms_spam: 5,574 text messages, 2 classes, downloaded once.")
        show_line("Try one: gpssl datasets sms_spam --labels 50 -o messages.csv")
        return
    written = write_example(name, out or Path(f"{name}.csv"), n_labels=labels, seed=seed, force=force)
    if as_json:
        show_json(written)
    else:
        show_line(
            f"wrote {written.path}: {written.n_rows:,} rows, {written.n_columns} column{'' if written.n_columns == 1 else 's'}; "
            f"target {written.target!r}, {written.n_labels:,} labels"
        )
