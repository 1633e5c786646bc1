"""Kernels with scikit-learn's protocol (`k(X, Y)`, `k.diag(X)`, clone, `get_params`), one file per kind of row.

Every kernel of `sklearn.gaussian_process.kernels` works as it is. A kernel that depends on the training rows, such as
`NeighborRBF`, has a method `resolve` that turns it into a concrete one, once, at `fit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._runtime import lazy_names

if TYPE_CHECKING:
    from .adapters import CallableKernel, GPyTorchKernel, PrecomputedKernel, from_gpytorch
    from .categories import CategoryKernel, OrdinalKernel
    from .documents import TfidfKernel
    from .graphs import LabeledGraph, RandomWalkKernel, ShortestPathKernel, WeisfeilerLehmanKernel
    from .incomplete import IncompleteRBF
    from .neighbors import DiffusionKernel, NearestNeighborGP, NearestNeighborKernel, NeighborDiffusion
    from .nodes import NodeDiffusion, NodeMatern
    from .pairs import GroupKernel, PairKernel
    from .standardized import StandardizedKernel
    from .strings import MismatchKernel, PositionKernel, SpectrumKernel, SubsequenceKernel
    from .tables import ColumnKernel, for_table
    from .vectors import NeighborRBF

__all__ = [
    "CallableKernel",
    "CategoryKernel",
    "ColumnKernel",
    "DiffusionKernel",
    "GPyTorchKernel",
    "GroupKernel",
    "IncompleteRBF",
    "LabeledGraph",
    "MismatchKernel",
    "NearestNeighborGP",
    "NearestNeighborKernel",
    "NeighborDiffusion",
    "NeighborRBF",
    "NodeDiffusion",
    "NodeMatern",
    "OrdinalKernel",
    "PairKernel",
    "PositionKernel",
    "PrecomputedKernel",
    "RandomWalkKernel",
    "ShortestPathKernel",
    "SpectrumKernel",
    "StandardizedKernel",
    "SubsequenceKernel",
    "TfidfKernel",
    "WeisfeilerLehmanKernel",
    "for_table",
    "from_gpytorch",
]

__getattr__, __dir__ = lazy_names(__name__, __file__)
