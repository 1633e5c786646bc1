"""Kernels: scikit-learn's protocol (`k(X, Y)`, `k.diag(X)`, clone, `get_params`), one file per kind of data.

Every kernel of `sklearn.gaussian_process.kernels` works as it is. A kernel that depends on the training rows, such as
`NeighborRBF`, has a method `resolve` that turns it into a concrete one, once, at `fit`.
"""

from .adapters import CallableKernel, GPyTorchKernel, PrecomputedKernel, from_gpytorch
from .evaluation import BlockKernel, block_kernel, check_finite_kernel, kernel_diagonal
from .graph_rows import LabelledGraph
from .graphs import RandomWalkKernel, ShortestPathKernel, WeisfeilerLehmanKernel
from .neighbor_rbf import NeighborRBF
from .nodes import NodeDiffusion, NodeMatern
from .pairs import GroupKernel, PairKernel
from .preparation import leaves, preparing_kernel
from .resolution import depends_on_rows, resolve_kernel

__all__ = [
    "BlockKernel",
    "CallableKernel",
    "GPyTorchKernel",
    "GroupKernel",
    "LabelledGraph",
    "NeighborRBF",
    "NodeDiffusion",
    "NodeMatern",
    "PairKernel",
    "PrecomputedKernel",
    "RandomWalkKernel",
    "ShortestPathKernel",
    "WeisfeilerLehmanKernel",
    "block_kernel",
    "check_finite_kernel",
    "depends_on_rows",
    "from_gpytorch",
    "kernel_diagonal",
    "leaves",
    "preparing_kernel",
    "resolve_kernel",
]
