"""Spatial transcriptomics, on AnnData: cell types with uncertainty. Needs `pip install "gpssl[spatial]"`."""

from .blocks import spatial_blocks
from .cell_simulator import CellSimulator, fit_cells
from .compositions import composition
from .embedding import Fitted, embed, representation
from .her2st import read_her2st
from .images import image_features
from .made_up_cells import simulate_reference
from .pure_spots import pure_spots
from .simulation import simulate
from .visium import read_visium, read_wu

__all__ = [
    "CellSimulator",
    "Fitted",
    "composition",
    "embed",
    "fit_cells",
    "image_features",
    "pure_spots",
    "read_her2st",
    "read_visium",
    "read_wu",
    "representation",
    "simulate",
    "simulate_reference",
    "spatial_blocks",
]
