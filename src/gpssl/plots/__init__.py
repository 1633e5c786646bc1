"""Draw pictures of representations, predictions and tissue. Needs matplotlib: `pip install "gpssl[cli]"`.

Every function returns the axes that it drew on, one or an array of them; their figure is saved with
`plot_spectrum(ssl).figure.savefig("spectrum.png")`. Functions with a single panel draw on `ax` if it is given. New figures are those of
`matplotlib.pyplot`: `plt.show()` shows them, and `plt.close()` forgets them. None needs a screen.
"""

from typing import TYPE_CHECKING

from .._runtime import lazy_names

if TYPE_CHECKING:  # at run time a name is imported when it is first used: pictures of tables do not need `gpssl.spatial`
    from ._diagnostics import plot_pairs, plot_reliability, plot_residuals, plot_risk_coverage, plot_spectrum
    from ._plane import Grid, plot_maps, plot_probabilities, plot_representation, plot_uncertainty
    from ._spatial import plot_composition, plot_dimensions, plot_labels, plot_types
    from ._spots import plot_histology, plot_spots

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

__getattr__, __dir__ = lazy_names(__name__, __file__)
