"""Other representations, with the interface of GPSSL, and supervised Gaussian processes with its kernel."""

from .gp_prior import GPPrior
from .kernel_pca import KernelPCA
from .scarf import SCARF
from .simvae import SimVAE
from .supervised import SupervisedGPClassifier, SupervisedGPRegressor
from .vicreg import VICReg

__all__ = ["SCARF", "GPPrior", "KernelPCA", "SimVAE", "SupervisedGPClassifier", "SupervisedGPRegressor", "VICReg"]
