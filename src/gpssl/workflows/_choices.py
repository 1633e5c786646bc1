"""What a person may choose by name. Nothing is imported here that takes time: the command answers `--help` at once."""

from __future__ import annotations

from enum import StrEnum


class Alike(StrEnum):
    """Which rows are alike."""

    COLUMNS = "columns"
    """Those that agree in their columns."""
    NEIGHBORS = "neighbors"
    """Those that can be reached from each other in small steps, from neighbor to neighbor."""


def with_options(text: str) -> str:
    """A sentence of the library, with the options of the command in the place of its parameters.

    >>> with_options("Give more rows, or lower n_components.")
    'Give more rows, or lower --components.'
    """
    return text.replace("n_components", "--components").replace("max_inducing", "--max-inducing")
