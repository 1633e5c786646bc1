"""Self-supervised learning with Gaussian processes: a distribution over representations of unlabeled rows.

Nothing is imported before it is asked for, so that the command answers at once and a part costs only what it needs itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._runtime import lazy_names

if TYPE_CHECKING:  # for readers of the source and type checkers: at run time `__getattr__` imports these names
    from . import active as active
    from . import baselines as baselines
    from . import clustering as clustering
    from . import comparison as comparison
    from . import core as core
    from . import data as data
    from . import datasets as datasets
    from . import downstream as downstream
    from . import evaluation as evaluation
    from . import inference as inference
    from . import io as io
    from . import kernels as kernels
    from . import plots as plots
    from . import report as report
    from . import spatial as spatial
    from . import workflows as workflows
    from .comparison._compare import compare
    from .core._moments import Moments
    from .downstream._pool import RepresentationPool
    from .downstream._predictors import MarginalizedClassifier, MarginalizedRegressor
    from .downstream._search import RepresentationSearch
    from .estimator import GPSSL
    from .io._archive import read_card
    from .io._model_files import load, save
    from .report._annotating import annotate
    from .workflows._cluster import cluster
    from .workflows._embed import embed, transform
    from .workflows._label import label
    from .workflows._next import next_rows

    __version__: str

# Rooms such as `gpssl.kernels` are not listed: `from gpssl import *` would import all of them, and some need packages that are not
# installed. `import gpssl` is enough to use them.
__all__ = [
    "GPSSL",
    "MarginalizedClassifier",
    "MarginalizedRegressor",
    "Moments",
    "RepresentationPool",
    "RepresentationSearch",
    "__version__",
    "annotate",
    "cluster",
    "compare",
    "embed",
    "label",
    "load",
    "next_rows",
    "read_card",
    "save",
    "transform",
]

_get, __dir__ = lazy_names(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Import a name of the package when it is first asked for."""
    if name == "__version__":
        from importlib.metadata import version

        globals()[name] = version("gpssl")
        return globals()[name]
    return _get(name)
