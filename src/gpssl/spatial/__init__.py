"""Spatial transcriptomics, on AnnData: cell types with uncertainty. Needs `pip install "gpssl[spatial]"`."""

from .blocks import spatial_blocks
from .compositions import composition
from .embedding import Fitted, embed, representation
from .pure_spots import pure_spots

__all__ = ["Fitted", "composition", "embed", "pure_spots", "representation", "spatial_blocks"]
