"""Other representations, with the interface of GPSSL, and supervised Gaussian processes with its kernel."""

from ._gp_prior import GPPrior
from ._kernel_pca import KernelPCA
from ._scarf import SCARF
from ._simvae import SimVAE
from ._supervised import SupervisedGPClassifier, SupervisedGPRegressor
from ._vicreg import VICReg

__all__ = ["SCARF", "GPPrior", "KernelPCA", "SimVAE", "SupervisedGPClassifier", "SupervisedGPRegressor", "VICReg"]
