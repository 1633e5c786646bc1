"""Self-supervised learning with Gaussian processes: a distribution over representations of unlabelled rows."""

from importlib.metadata import version

from . import calibration, downstream, inference, io, kernels, selection, selective
from .downstream import MarginalizedClassifier, MarginalizedRegressor
from .estimator import GPSSL
from .io import load, read_card, save
from .moments import Moments

__version__ = version("gpssl")

__all__ = [
    "GPSSL",
    "MarginalizedClassifier",
    "MarginalizedRegressor",
    "Moments",
    "__version__",
    "calibration",
    "downstream",
    "inference",
    "io",
    "kernels",
    "load",
    "read_card",
    "save",
    "selection",
    "selective",
]
