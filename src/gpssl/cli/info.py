"""`gpssl info`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from . import _options
from ._console import show_facts, show_json, show_line, show_table

if TYPE_CHECKING:
    from ..data import ColumnFacts

MOST_COLUMNS = 30
MOST_LEVELS = 4
MOST_VALUES = 10


def info(model: _options.Model, as_json: _options.Json = False) -> None:
    """Print what a model is, what it was learned from, when, and with which versions."""
    from ..io._archive import read_card

    card = read_card(model)
    if as_json:
        show_json(card)
        return
    facts = {"model": card.model, "created": card.created, "rows": "not known" if card.n_rows is None else f"{card.n_rows:,}"}
    facts |= {name: _text(value) for name, value in {**card.settings, **card.notes}.items() if value is not None}
    facts["versions"] = ", ".join(f"{name} {version}" for name, version in card.versions.items())
    show_facts(str(model), facts)
    if card.columns:
        show_line()
        shown = [[c.name, c.kind, _range(c), f"{c.n_missing:,}"] for c in card.columns[:MOST_COLUMNS]]
        show_table("Columns", ["name", "kind", "range", "missing"], shown)
        if len(card.columns) > MOST_COLUMNS:
            show_line(f"… and {len(card.columns) - MOST_COLUMNS:,} more (--json has all).")


def _range(column: ColumnFacts) -> str:
    """Return the levels of a category, or the least and the largest value."""
    if column.kind == "text":
        return "free text"
    if column.kind == "category":
        if column.levels is None:
            return "many"
        more = "…" if len(column.levels) > MOST_LEVELS else ""
        return f"{len(column.levels)} levels: {', '.join(column.levels[:MOST_LEVELS])}{more}"
    if column.minimum is None or column.maximum is None:
        return ""
    if column.kind == "date":
        return " to ".join(datetime.fromtimestamp(value, UTC).date().isoformat() for value in (column.minimum, column.maximum))
    return f"{column.minimum:.6g} to {column.maximum:.6g}"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_text(part)}" for name, part in value.items() if part is not None)
    if isinstance(value, list):
        return ", ".join(_text(part) for part in value[:MOST_VALUES]) + ("…" if len(value) > MOST_VALUES else "")
    return f"{value:.6g}" if isinstance(value, float) else str(value)
