"""From representations to predictions: classifiers and regressors marginalized over drawn functions, and heads for them."""

from .classifier import MarginalizedClassifier
from .linear import BayesianLinearRegression
from .logistic import BayesianLogisticRegression
from .marginal import Uncertainty
from .perceptron import PerceptronClassifier
from .regressor import MarginalizedRegressor

__all__ = [
    "BayesianLinearRegression",
    "BayesianLogisticRegression",
    "MarginalizedClassifier",
    "MarginalizedRegressor",
    "PerceptronClassifier",
    "Uncertainty",
]
