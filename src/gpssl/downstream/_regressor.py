"""Regression on a representation whose uncertainty is carried into means, standard deviations and intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, is_classifier
from sklearn.metrics import r2_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ..data._labels import KnownLabels, find_targets
from ._distributions import NumberDistribution, Uncertainty
from ._heads import RegressorClones, RegressorHeads, fit_regressors
from ._linear import BayesianLinearRegression
from ._marginal import Marginalized

Array = NDArray[np.float64]


class MarginalizedRegressor(RegressorMixin, Marginalized):
    """A regressor on top of a representation, marginalized over the representation's posterior.

    Each of S draws is one function with a head of its own, which predicts N(μ_s(x), σ_s²(x)). The prediction is their mixture:

        p(y | x) = (1/S) Σ_s N(y; μ_s(x), σ_s²(x)),   Var y = (1/S) Σ_s σ_s² + Var_s μ_s      (law of total variance)

    With `n_draws=None` there is one head, on the posterior mean. NaN marks rows without a target: they train the representation only.

    Parameters
    ----------
    representation
        An estimator with `draw_functions`, by default `GPSSL()`. It is cloned and fitted to all rows given to `fit`. Wrap one that was
        fitted before, to other unlabeled rows, in `sklearn.frozen.FrozenEstimator(ssl)`: it is then used as it is.
    head
        Any regressor, by default `BayesianLinearRegression()`, which is trained for all draws at once. Any other is cloned for each draw;
        where its `predict` does not return a standard deviation (which should include the noise, as `BayesianRidge`'s does), σ is the
        root mean square of residuals at rows held out in five folds.
    n_draws
        S, or None for the mean representation.
    n_jobs
        Number of jobs in which clones of a head are trained, as everywhere in scikit-learn.
    random_state
        Seed for the draws, and for the representation and the head where they have none of their own. Without it, the draws use
        the representation's seed.
    verbose
        Whether to report progress on clones.

    Attributes
    ----------
    representation_
        The fitted representation.
    functions_
        The drawn functions; absent with `n_draws=None`.
    heads_
        The trained heads of all draws.
    n_labeled_
        Number of rows that trained the heads.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from gpssl import GPSSL, MarginalizedRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> few = np.where(np.arange(len(y)) < 100, y, np.nan)
    >>> reg = MarginalizedRegressor(GPSSL(5), random_state=0).fit(X, few)
    >>> reg.predict(X).shape, reg.predict_std(X).shape, reg.predict_interval(X, coverage=0.9).shape
    ((442,), (442,), (442, 2))
    """

    heads_: RegressorHeads

    def _find_labels(self, y: Any) -> KnownLabels:
        return find_targets(y)

    def _check_labels(self, values: NDArray[Any]) -> None:
        if len(values) == 0:
            raise ValueError("All rows with a target have weight zero. Give some of them a positive weight.")

    def _head(self) -> Any:
        head = BayesianLinearRegression() if self.head is None else self.head
        if is_classifier(head):
            raise TypeError(f"The head {type(head).__name__} is a classifier: pass a regressor, or use MarginalizedClassifier.")
        return head

    def _fit_clones(self, head: Any, Z: Array, y: NDArray[Any], **params: Any) -> RegressorClones:
        return fit_regressors(head, Z, y, params, self.n_jobs, bool(self.verbose))

    def predict_distribution(self, X: Any) -> NumberDistribution:
        """Return means, standard deviations, intervals and the split of the uncertainty, from one evaluation of the draws."""
        return NumberDistribution.joined(list(self._evaluate(X)))

    def predict_draws(self, X: Any) -> tuple[Array, Array]:
        """Return each draw's mean and standard deviation, μ_s and σ_s: the components of the mixture. [S, n] each"""
        return self.predict_distribution(X).draws

    def predict(self, X: Any) -> Array:
        """Return the mean of the target. [n]"""
        return np.concatenate([part.mean for part in self._evaluate(X)])

    def predict_std(self, X: Any) -> Array:
        """Return the standard deviation of the target, noise included, by the law of total variance. [n]"""
        return np.concatenate([part.std for part in self._evaluate(X)])

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Return the variance of the target and its two parts: head (1/S) Σ_s σ_s², representation Var_s μ_s. [n] each"""
        return Uncertainty.joined(part.uncertainty for part in self._evaluate(X))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Return the ends of the central interval that holds the target with this probability: quantiles of the mixture. [n, 2]"""
        return np.concatenate([part.interval(coverage) for part in self._evaluate(X)])

    def _evaluate(self, X: Any) -> Iterator[NumberDistribution]:
        """Yield the predicted distribution for consecutive parts of the rows."""
        check_is_fitted(self)
        for Z in self._represent_in_parts(X):
            yield NumberDistribution.of(*self.heads_.predict_normal(Z))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² at the rows that have a target."""
        check_consistent_length(X, y, sample_weight)
        targets = find_targets(y)
        weight = None if sample_weight is None else np.asarray(sample_weight)[targets.rows]
        return float(r2_score(targets.values, self.predict(X)[targets.rows], sample_weight=weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # The tag is about a table with one informative column among ten of equal size, which no representation of fewer dimensions that was
        # learned without targets has a reason to keep.
        tags.regressor_tags.poor_score = True
        return tags
