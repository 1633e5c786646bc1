"""Pictures. Needs matplotlib: `pip install "gpssl[cli]"`.

Every function returns the axes that it drew on, one or an array of them, and leaves the rest to their figure:
`plot_spectrum(ssl).figure.savefig("spectrum.png")`. Those with a single panel draw on `ax` where it is given. None needs a screen, and
none touches the current figure of `matplotlib.pyplot`.
"""

from .curves import plot_reliability, plot_risk_coverage
from .diagnostics import plot_residuals, plot_spectrum
from .pairs import plot_pairs
from .plane import Grid, plot_maps
from .predictions import plot_probabilities, plot_uncertainty
from .representation import plot_representation
from .spatial import plot_composition, plot_dimensions, plot_histology, plot_labels, plot_types
from .spots import plot_spots

__all__ = [
    "Grid",
    "plot_composition",
    "plot_dimensions",
    "plot_histology",
    "plot_labels",
    "plot_maps",
    "plot_pairs",
    "plot_probabilities",
    "plot_reliability",
    "plot_representation",
    "plot_residuals",
    "plot_risk_coverage",
    "plot_spectrum",
    "plot_spots",
    "plot_types",
    "plot_uncertainty",
]
