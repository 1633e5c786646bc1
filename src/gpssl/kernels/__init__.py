"""Kernels: scikit-learn's protocol (`k(X, Y)`, `k.diag(X)`, clone, `get_params`), one file per kind of data.

Every kernel of `sklearn.gaussian_process.kernels` works as it is. A kernel that depends on the training rows, such as
`NeighborRBF`, has a method `resolve` that turns it into a concrete one, once, at `fit`.
"""

from .adapters import CallableKernel, GPyTorchKernel, PrecomputedKernel, from_gpytorch
from .categories import CategoryKernel
from .columns import ColumnKernel
from .documents import TfidfKernel
from .evaluation import BlockKernel, block_kernel, check_finite_kernel, kernel_diagonal
from .for_table import for_table
from .graph_rows import LabeledGraph
from .graphs import RandomWalkKernel, ShortestPathKernel, WeisfeilerLehmanKernel
from .incomplete_rbf import IncompleteRBF
from .nearest_neighbor_gp import NearestNeighborGP
from .neighbor_diffusion import DiffusionKernel, NeighborDiffusion
from .neighbor_rbf import NeighborRBF
from .nodes import NodeDiffusion, NodeMatern
from .ordinal import OrdinalKernel
from .pairs import GroupKernel, PairKernel
from .preparation import check_what_kernels_take, leaves, preparing_kernel, takes_tables
from .resolution import depends_on_rows, resolve_kernel
from .sequences import MismatchKernel, SpectrumKernel, SubsequenceKernel

__all__ = [
    "BlockKernel",
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
    "NeighborDiffusion",
    "NeighborRBF",
    "NodeDiffusion",
    "NodeMatern",
    "OrdinalKernel",
    "PairKernel",
    "PrecomputedKernel",
    "RandomWalkKernel",
    "ShortestPathKernel",
    "SpectrumKernel",
    "SubsequenceKernel",
    "TfidfKernel",
    "WeisfeilerLehmanKernel",
    "block_kernel",
    "check_finite_kernel",
    "check_what_kernels_take",
    "depends_on_rows",
    "for_table",
    "from_gpytorch",
    "kernel_diagonal",
    "leaves",
    "preparing_kernel",
    "resolve_kernel",
    "takes_tables",
]
