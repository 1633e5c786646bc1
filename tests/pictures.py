"""What tests of pictures share."""

from __future__ import annotations

from typing import Any


def legend_texts(legend: Any) -> list[str]:
    return [text.get_text() for text in legend.get_texts()]


def render(ax: Any) -> None:
    """Lay everything out: problems and warnings of the layout appear only then."""
    ax.get_figure(root=True).draw_without_rendering()
