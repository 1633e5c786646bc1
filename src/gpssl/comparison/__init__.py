"""GPSSL beside other methods: rivals, splits, the choice of settings, and what to recommend."""

from ._compare import Comparison, compare

__all__ = [
    "Comparison",
    "compare",
]
