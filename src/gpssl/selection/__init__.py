"""Settings of the representation from held-out labels."""

from .search import RepresentationSearch, deal_folds, default_grid

__all__ = ["RepresentationSearch", "deal_folds", "default_grid"]
