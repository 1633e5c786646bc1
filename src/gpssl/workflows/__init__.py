"""What a person asks of a table: learn a representation of it, label its rows, use a model on other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._runtime.lazy import lazy_names

if TYPE_CHECKING:
    from ._embed import embed as embed
    from ._label import label as label
    from ._transform import transform as transform

__all__ = [
    "embed",
    "label",
    "transform",
]

_HOMES = {
    "embed": "_embed",
    "label": "_label",
    "transform": "_transform",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
