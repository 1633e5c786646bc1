"""Spatial transcriptomics, on AnnData: cell types with uncertainty. Needs `pip install "gpssl[spatial]"`."""

from .blocks import spatial_blocks
from .compositions import composition
from .embedding import Fitted, embed, representation
from .her2st import read_her2st
from .images import image_features
from .visium import read_visium, read_wu

__all__ = [
    "Fitted",
    "composition",
    "embed",
    "image_features",
    "read_her2st",
    "read_visium",
    "read_wu",
    "representation",
    "spatial_blocks",
]
