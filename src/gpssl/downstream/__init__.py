"""From representations to predictions: classifiers and regressors marginalized over drawn functions, and heads for them."""

from ._classifier import MarginalizedClassifier
from ._distributions import ClassDistribution, NumberDistribution, Uncertainty
from ._linear import BayesianLinearRegression
from ._logistic import BayesianLogisticRegression
from ._perceptron import PerceptronClassifier
from ._regressor import MarginalizedRegressor
from ._search import RepresentationSearch, default_grid

__all__ = [
    "BayesianLinearRegression",
    "BayesianLogisticRegression",
    "ClassDistribution",
    "MarginalizedClassifier",
    "MarginalizedRegressor",
    "NumberDistribution",
    "PerceptronClassifier",
    "RepresentationSearch",
    "Uncertainty",
    "default_grid",
]
