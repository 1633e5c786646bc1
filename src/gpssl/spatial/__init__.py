"""Spatial transcriptomics, on AnnData: cell types with uncertainty. Needs `pip install "gpssl[spatial]"`."""

from .blocks import spatial_blocks
from .compositions import composition
from .embedding import Fitted, embed, representation

__all__ = ["Fitted", "composition", "embed", "representation", "spatial_blocks"]
