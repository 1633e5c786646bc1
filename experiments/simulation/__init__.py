"""Slices of tissue with known composition, simulated after the cells of a reference as the paper does."""

from .cells import CellSimulator, fit_cells
from .slices import simulate, simulate_reference

__all__ = ["CellSimulator", "fit_cells", "simulate", "simulate_reference"]
