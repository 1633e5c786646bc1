"""Self-supervised learning with Gaussian processes: a distribution over representations of unlabeled rows.

Nothing is imported before it is asked for, so that the command answers at once and a part costs only what it needs itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for readers of the source only: at run time `__getattr__` does it
    from . import baselines as baselines
    from . import calibration, downstream, inference, kernels, selection, selective
    from . import datasets as datasets
    from . import io as io
    from . import plots as plots
    from . import sources as sources
    from . import spatial as spatial
    from .downstream import MarginalizedClassifier, MarginalizedRegressor
    from .estimator import GPSSL
    from .io import load, read_card, save
    from .moments import Moments

    __version__: str

__all__ = [
    "GPSSL",
    "MarginalizedClassifier",
    "MarginalizedRegressor",
    "Moments",
    "__version__",
    "calibration",
    "downstream",
    "inference",
    "kernels",
    "load",
    "read_card",
    "save",
    "selection",
    "selective",
]

_HOMES = {
    "GPSSL": "estimator",
    "MarginalizedClassifier": "downstream",
    "MarginalizedRegressor": "downstream",
    "Moments": "moments",
    "load": "io",
    "read_card": "io",
    "save": "io",
}
"""Names of the package, and the module that each is imported from."""

_MODULES = frozenset(
    (
        "baselines",
        "calibration",
        "datasets",
        "downstream",
        "inference",
        "io",
        "kernels",
        "plots",
        "selection",
        "selective",
        "sources",
        "spatial",
    )
)
"""Modules that need not be imported by themselves: `import gpssl` is enough for `gpssl.kernels`."""


def __getattr__(name: str) -> Any:
    """A name of the package, imported when it is first asked for, and kept."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("gpssl")
    elif name in _HOMES:
        value = getattr(_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = _module(name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """What `import *` gives: modules beyond it may need packages that are not installed, and `help` imports all that it sees."""
    return sorted({*globals(), *__all__})


def _module(name: str) -> Any:
    from importlib import import_module

    return import_module(f".{name}", __name__)
