"""The mathematics: from rows to moments, from moments to a posterior over functions."""

from ._draws import FunctionDraws
from ._features import Features
from ._moments import Moments, Spectrum
from ._objective import Objective, covariance_loss, variance_loss
from ._posterior import DrawnWeights, GaussianWeights, PointWeights, Posterior, Weights

__all__ = [
    "DrawnWeights",
    "Features",
    "FunctionDraws",
    "GaussianWeights",
    "Moments",
    "Objective",
    "PointWeights",
    "Posterior",
    "Spectrum",
    "Weights",
    "covariance_loss",
    "variance_loss",
]
