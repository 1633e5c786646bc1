"""`gpssl report` and `gpssl info`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import _options as take
from ._console import progress_bars, show_facts, show_json, show_notes, show_table

MOST_COLUMNS = 30


def report(
    model: take.Model,
    table: take.Table,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="HTML file.", show_default="as the model, with .html")] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column to predict.", show_default="that of the model, if it has one")
    ] = None,
    group: take.Group = None,
    rivals: Annotated[bool, typer.Option("--rivals/--no-rivals", help="Show curves of the compared methods too.")] = True,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Of all that is random.", show_default="the model's")] = None,
    force: take.Force = False,
    as_json: take.Json = False,
) -> None:
    """One HTML file that explains a model: works offline, prints well, and can be sent to a colleague.

    Rows in a plane, colored by class, probability, standard deviation and abstention; a slider for the error rate;
    curves; the most uncertain rows.
    """
    with progress_bars():
        from ..report._building import report as run

        page = out or model.with_suffix(".html")
        result = run(model, table, page, target=target, group=group, rivals=rivals, seed=seed, force=force)
    show_notes(result.notes)
    if as_json:
        show_json(result)
        return
    for line in result.summary:
        typer.echo(line)
    typer.echo(f"wrote {page}")


def info(model: take.Model, as_json: take.Json = False) -> None:
    """What a model is, what it was learned from, when, and with which versions."""
    from ..io._model_files import read_card

    card = read_card(model)
    if as_json:
        show_json(card)
        return
    facts = {"model": card.model, "created": card.created, "rows": "not known" if card.n_rows is None else f"{card.n_rows:,}"}
    facts |= {name: _text(value) for name, value in {**card.settings, **card.notes}.items() if value is not None}
    facts["versions"] = ", ".join(f"{name} {version}" for name, version in card.versions.items())
    show_facts(str(model), facts)
    if card.columns:
        typer.echo()
        shown = [[c.name, c.kind, _range(c), f"{c.n_missing:,}"] for c in card.columns[:MOST_COLUMNS]]
        show_table("Columns", ["name", "kind", "range", "missing"], shown)
        if len(card.columns) > MOST_COLUMNS:
            typer.echo(f"… and {len(card.columns) - MOST_COLUMNS:,} more (--json has all).")


def _range(column: Any) -> str:
    if column.kind == "category":
        return (
            "many"
            if column.levels is None
            else f"{len(column.levels)} levels: {', '.join(column.levels[:4])}{'…' if len(column.levels) > 4 else ''}"
        )
    if column.minimum is None:
        return ""
    if column.kind == "date":
        from datetime import UTC, datetime

        return " to ".join(datetime.fromtimestamp(value, UTC).date().isoformat() for value in (column.minimum, column.maximum))
    return f"{column.minimum:.6g} to {column.maximum:.6g}"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_text(part)}" for name, part in value.items() if part is not None)
    if isinstance(value, list):
        return ", ".join(_text(part) for part in value[:10]) + ("…" if len(value) > 10 else "")
    return f"{value:.6g}" if isinstance(value, float) else str(value)
