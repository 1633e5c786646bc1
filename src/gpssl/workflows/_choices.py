"""What a person may choose by name. Nothing is imported here that takes time: the command answers `--help` at once."""

from __future__ import annotations

from enum import StrEnum


class Alike(StrEnum):
    """Which rows are alike."""

    COLUMNS = "columns"
    """Those that agree in their columns."""
    NEIGHBORS = "neighbors"
    """Those that can be reached from each other in small steps, from neighbor to neighbor."""
