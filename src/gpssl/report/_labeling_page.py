"""Turn rows to label into the text of one HTML file, in the look of the report, in which a person labels them by keyboard.

Its scripts, in the folder `labeling`, read JSON; the person's answers leave the page only as a file that they save.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..data._frames import MISSING_WORDS
from ._page import assembled, resource

SCRIPTS = ("shared.js", "labeling/keepers.js", "labeling/answers.js", "labeling/choices.js", "labeling/view.js", "labeling/page.js")
"""The scripts, which share one scope, in this order."""


@dataclass(frozen=True)
class RowToLabel:
    """A row as the page shows it."""

    row: str
    """What a person calls it: the line of the file, or the index of a data frame."""
    checksum: str
    cells: Sequence[str]
    """The texts of its cells, empty where they are missing. [D]"""
    reason: str = ""
    """Why this row, in words."""
    predicted: str | None = None
    """What the model thinks; None where there is no model."""
    probabilities: Sequence[float] | None = None
    """The probability of each class. [K]"""


@dataclass(frozen=True, kw_only=True)
class LabelingContent:
    """All that a page for labels shows. Texts are shown as they are: markup in them stays text."""

    title: str
    subtitle: str
    advice: str = ""
    """Whether more labels are worth it, as sentences."""
    target: str
    kind: str
    """ "class" or "number"."""
    classes: Sequence[str]
    """The classes that are known, in the order of their keys; empty for numbers. [K]"""
    columns: Sequence[str]
    """The names of the cells. [D]"""
    rows: Sequence[RowToLabel]
    keys: tuple[str, str]
    """The names of the columns for rows and checksums in the file of labels."""
    file: str
    """The name of the file of labels."""
    then: str
    """What to do with that file, as a sentence."""
    command: str
    """The command, or the call, that merges the labels."""
    more: str
    """The one that makes a page with further rows."""

    @property
    def fingerprint(self) -> str:
        """A text that differs between pages with other rows, targets or tables: a browser keeps the answers of each."""
        rows = [(row.row, row.checksum) for row in self.rows]
        return hashlib.sha256(json.dumps([self.target, self.kind, rows]).encode()).hexdigest()[:16]


def render_labeling(content: LabelingContent) -> str:
    """Return the text of the file, to be written as UTF-8. The same content gives the same text."""
    style = resource("page.css") + resource("labeling/page.css")
    return assembled(resource("labeling/page.html"), style, SCRIPTS, _data(content), {})


def _data(content: LabelingContent) -> dict[str, Any]:
    is_class = content.kind == "class"
    texts = {
        "title": content.title,
        "subtitle": content.subtitle,
        "advice": content.advice,
        "question": f"Which {content.target}?" if is_class else f"What is its {content.target}?",
        "number-name": content.target,
        "target-name": content.target,
        "then": content.then,
        "command": content.command,
        "more": content.more,
    }
    return {
        "fingerprint": content.fingerprint,
        "title": content.title,
        "target": content.target,
        "kind": content.kind,
        "classes": list(content.classes),
        "columns": list(content.columns),
        "header": [*content.keys, content.target],
        "file": content.file,
        "noLabel": list(MISSING_WORDS),
        "texts": texts,
        "rows": [_row(row) for row in content.rows],
    }


def _row(row: RowToLabel) -> dict[str, Any]:
    return {
        "row": row.row,
        "checksum": row.checksum,
        "cells": list(row.cells),
        "reason": row.reason,
        "predicted": row.predicted,
        "probabilities": None if row.probabilities is None else [round(one, 4) for one in row.probabilities],
    }
