"""Other representations, with the interface of GPSSL, and supervised Gaussian processes with its kernel."""

from .gp_prior import GPPrior
from .kernel_pca import KernelPCA
from .supervised import SupervisedGPClassifier, SupervisedGPRegressor

__all__ = ["GPPrior", "KernelPCA", "SupervisedGPClassifier", "SupervisedGPRegressor"]
