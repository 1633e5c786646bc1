"""Spatial transcriptomics, on AnnData: cell types with uncertainty. Needs `pip install "gpssl[spatial]"`."""

from .cell_simulator import CellSimulator, fit_cells
from .made_up_cells import simulate_reference
from .simulation import simulate

__all__ = ["CellSimulator", "fit_cells", "simulate", "simulate_reference"]
