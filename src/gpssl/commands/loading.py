"""What is inside a model that was read from a file."""

from __future__ import annotations

from typing import Any

from .. import GPSSL


def representation_of(loaded: Any) -> GPSSL:
    """The representation of any model: itself, or what its heads stand on."""
    inner = getattr(loaded, "representation_", loaded)
    return getattr(inner, "estimator", inner)  # of a frozen one
