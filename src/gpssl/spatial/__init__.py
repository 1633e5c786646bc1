"""Find cell types with their uncertainty in spatial transcriptomics, on AnnData. Needs `pip install "gpssl[spatial]"`."""

from typing import TYPE_CHECKING

from .._runtime import lazy_names

if TYPE_CHECKING:  # at run time a name is imported when it is first used
    from ._composition import composition, spatial_blocks
    from ._embedding import SpotRepresentation, embed, representation
    from ._images import image_features
    from ._pure_spots import pure_spots
    from ._visium import read_visium

__all__ = [
    "SpotRepresentation",
    "composition",
    "embed",
    "image_features",
    "pure_spots",
    "read_visium",
    "representation",
    "spatial_blocks",
]

__getattr__, __dir__ = lazy_names(__name__, __file__)
