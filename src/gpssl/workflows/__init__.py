"""What a person asks of a table: learn a representation of it, label its rows, use a model on other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._runtime import lazy_names

if TYPE_CHECKING:
    from ._cluster import Clustered, cluster
    from ._embed import Embedded, embed, transform
    from ._label import LabeledTable, label
    from ._label_findings import SuspiciousLabel
    from ._next import NextRows, SuggestedRow, next_rows

__all__ = [
    "Clustered",
    "Embedded",
    "LabeledTable",
    "NextRows",
    "SuggestedRow",
    "SuspiciousLabel",
    "cluster",
    "embed",
    "label",
    "next_rows",
    "transform",
]

__getattr__, __dir__ = lazy_names(__name__, __file__)
