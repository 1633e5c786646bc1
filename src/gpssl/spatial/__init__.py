"""Spatial transcriptomics, on AnnData: cell types with uncertainty. Needs `pip install "gpssl[spatial]"`."""

from ._cells import CellSimulator, fit_cells
from ._composition import composition, spatial_blocks
from ._embedding import SpotRepresentation, embed, representation
from ._images import image_features
from ._pure_spots import pure_spots
from ._simulation import simulate, simulate_reference
from ._visium import read_visium

__all__ = [
    "CellSimulator",
    "SpotRepresentation",
    "composition",
    "embed",
    "fit_cells",
    "image_features",
    "pure_spots",
    "read_visium",
    "representation",
    "simulate",
    "simulate_reference",
    "spatial_blocks",
]
