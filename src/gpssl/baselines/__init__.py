"""Other representations, with the interface of GPSSL, and supervised Gaussian processes with its kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._runtime import lazy_names

if TYPE_CHECKING:
    from ._joint_embedding import SCARF, VICReg
    from ._kernel_methods import GPPrior, KernelPCA
    from ._simvae import SimVAE
    from ._supervised import SupervisedGPClassifier, SupervisedGPRegressor

__all__ = ["SCARF", "GPPrior", "KernelPCA", "SimVAE", "SupervisedGPClassifier", "SupervisedGPRegressor", "VICReg"]

__getattr__, __dir__ = lazy_names(__name__, __file__)
