"""Spatial transcriptomics, on AnnData: cell types with uncertainty. Needs `pip install "gpssl[spatial]"`."""

from .her2st import read_her2st
from .images import image_features
from .visium import read_visium, read_wu

__all__ = [
    "image_features",
    "read_her2st",
    "read_visium",
    "read_wu",
]
