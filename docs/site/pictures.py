"""The picture of a gallery's block: its variable `figure`, where the block sets a new one.

An example names the picture that it shows: figures that it only passes through stay out of the page.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from sphinx_gallery.scrapers import figure_rst

DOTS_PER_INCH = 120


def save_figure(block: tuple[Any, ...], variables: dict[str, Any], settings: dict[str, Any]) -> str:
    """Save the picture, and return the text that shows it."""
    figure = variables["example_globals"].pop("figure", None)
    if figure is None:
        return ""
    path = next(variables["image_path_iterator"])
    figure.savefig(path, dpi=DOTS_PER_INCH, facecolor="white")
    plt.close("all")
    return figure_rst([path], settings["src_dir"])
