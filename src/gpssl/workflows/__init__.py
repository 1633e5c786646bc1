"""What a person asks of a table: learn a representation of it, label its rows, use a model on other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._runtime.lazy import lazy_names

if TYPE_CHECKING:
    from ._embed import Embedded as Embedded
    from ._embed import embed as embed
    from ._label import LabeledTable as LabeledTable
    from ._label import label as label
    from ._transform import transform as transform

__all__ = ["Embedded", "LabeledTable", "embed", "label", "transform"]

_HOMES = {"Embedded": "_embed", "LabeledTable": "_label", "embed": "_embed", "label": "_label", "transform": "_transform"}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
