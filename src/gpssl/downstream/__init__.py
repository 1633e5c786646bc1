"""From representations to predictions: classifiers and regressors marginalized over drawn functions, and heads for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._runtime import lazy_names

if TYPE_CHECKING:
    from ._distributions import ClassDistribution, NumberDistribution, Uncertainty
    from ._gp_head import SoftmaxGP
    from ._linear import BayesianLinearRegression
    from ._logistic import BayesianLogisticRegression
    from ._perceptron import PerceptronClassifier
    from ._pool import RepresentationPool
    from ._pool_members import Member
    from ._predictors import MarginalizedClassifier, MarginalizedRegressor
    from ._search import RepresentationSearch, default_grid
    from ._weighting import MemberShare

__all__ = [
    "BayesianLinearRegression",
    "BayesianLogisticRegression",
    "ClassDistribution",
    "MarginalizedClassifier",
    "MarginalizedRegressor",
    "Member",
    "MemberShare",
    "NumberDistribution",
    "PerceptronClassifier",
    "RepresentationPool",
    "RepresentationSearch",
    "SoftmaxGP",
    "Uncertainty",
    "default_grid",
]

__getattr__, __dir__ = lazy_names(__name__, __file__)
