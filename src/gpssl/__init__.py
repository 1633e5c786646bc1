"""Self-supervised learning with Gaussian processes: a distribution over representations of unlabelled rows."""

from importlib.metadata import version

from . import inference, kernels
from .estimator import GPSSL
from .moments import Moments

__version__ = version("gpssl")

__all__ = ["GPSSL", "Moments", "__version__", "inference", "kernels"]
