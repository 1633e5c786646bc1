"""Clusters with their certainty: a clustering of each draw of a representation, and what all of them agree on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._runtime import lazy_names

if TYPE_CHECKING:
    from ._consensus import agreement, aligned
    from ._estimator import PosteriorClustering

__all__ = ["PosteriorClustering", "agreement", "aligned"]

__getattr__, __dir__ = lazy_names(__name__, __file__)
