"""Which rows to label next: a batch that is diverse and informative, with the reason for each row in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._runtime import lazy_names

if TYPE_CHECKING:
    from ._suggest import Suggestion, Suggestions, suggest

__all__ = ["Suggestion", "Suggestions", "suggest"]

__getattr__, __dir__ = lazy_names(__name__, __file__)
