"""Classification and regression on a representation whose uncertainty is carried into the predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils import Tags

from ..data._labels import KnownLabels, check_at_least_two, find_class_labels, find_targets
from ..evaluation._scores import score_labeled_rows
from ._distributions import ClassDistribution, NumberDistribution, Uncertainty, class_uncertainty
from ._heads import ClassifierClones, ClassifierHeads, RegressorClones, RegressorHeads, fit_clones, fit_regressors
from ._linear import BayesianLinearRegression
from ._logistic import BayesianLogisticRegression
from ._marginal import Marginalized

Array = NDArray[np.float64]


class MarginalizedClassifier(ClassifierMixin, Marginalized):
    """A classifier on top of a representation, marginalized over the representation's posterior.

    Each of S draws is one function. Evaluated at the labeled rows it trains a head of its own; evaluated at new rows it gives that head's
    probabilities. Predictions are the average over draws:

        p(y | x) = (1/S) Σ_s p_head_s(y | f_s(x)),   f_s drawn from the posterior over representations       ("GPSSL-full")

    With `n_draws=None` there is one head, on the posterior mean ("GPSSL-mean"). A draw is the same function at all rows
    (see `gpssl.core.FunctionDraws`).

    Rows without a label train the representation only. They are marked by −1 where labels are whole numbers (scikit-learn's
    convention), and by None or NaN for strings, booleans and everything else.

    Parameters
    ----------
    representation
        An estimator with `draw_functions`, by default `GPSSL()`. It is cloned and fitted to all rows given to `fit`. Wrap one that was
        fitted before, to other unlabeled rows, in `sklearn.frozen.FrozenEstimator(ssl)`: it is then used as it is.
    head
        Any classifier with `predict_proba`, by default `BayesianLogisticRegression()`. Heads of `gpssl.downstream` are trained for
        all draws at once; any other head is cloned for each draw.
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
    classes_
        The class labels. [K]
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
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpssl import GPSSL, MarginalizedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> few = np.where(np.arange(len(y)) < 50, y, -1)
    >>> clf = MarginalizedClassifier(GPSSL(5), random_state=0).fit(X, few)
    >>> clf.n_labeled_, clf.predict_proba(X).shape, clf.predict_proba_std(X).shape
    (50, (569, 2), (569, 2))
    """

    heads_: ClassifierHeads

    def _find_labels(self, y: Any) -> KnownLabels:
        return find_class_labels(y)

    def _check_labels(self, values: NDArray[Any]) -> None:
        self.classes_ = np.unique(values)
        check_at_least_two(self.classes_)

    def _head(self) -> Any:
        head = BayesianLogisticRegression() if self.head is None else self.head
        if not hasattr(head, "predict_proba"):
            raise TypeError(
                f"The head {type(head).__name__} has no predict_proba, and probabilities are what is averaged over draws. Wrap it in "
                "sklearn.calibration.CalibratedClassifierCV, or choose a head that has it."
            )
        return head

    def _fit_clones(self, head: Any, Z: Array, y: NDArray[Any], **params: Any) -> ClassifierClones:
        return ClassifierClones(self.classes_, fit_clones(head, Z, y, params, self.n_jobs, bool(self.verbose)), self.n_jobs)

    def predict_distribution(self, X: Any) -> ClassDistribution:
        """Return probabilities, their standard deviations and the split of the uncertainty, from one evaluation of the draws."""
        evaluated = self._evaluate(X)
        return ClassDistribution.joined(
            [ClassDistribution.of(self.classes_, proba, self.heads_.predict_proba_variance(Z)) for Z, proba in evaluated]
        )

    def predict_proba_draws(self, X: Any) -> Array:
        """Return each draw's probability of each class. [S, n, K]"""
        return np.concatenate([proba for _, proba in self._evaluate(X)], axis=1)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, averaged over draws. [n, K]"""
        return np.concatenate([proba.mean(axis=0) for _, proba in self._evaluate(X)])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class. [n]"""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba_std(self, X: Any) -> Array:
        """Return the standard deviation of the probability of each class. [n, K]

        sqrt(Var_s p̄_s + (1/S) Σ_s Var p_s): over draws, and for a head with a posterior of its own (`BayesianLogisticRegression`) over its
        weights, p̄_s being their average.
        """
        return self.predict_distribution(X).proba_std

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Return the entropy of the prediction, in nats, and its two parts. [n] each

        total H(p̄), head (1/S) Σ_s H(p_s), representation H(p̄) − (1/S) Σ_s H(p_s): the mutual information of the label and the
        representation, which more unlabeled rows can reduce.
        """
        return Uncertainty.joined(class_uncertainty(proba) for _, proba in self._evaluate(X))

    def _evaluate(self, X: Any) -> Iterator[tuple[Array, Array]]:
        """Yield features [S, n, J] and each draw's probabilities [S, n, K] for consecutive parts of the rows."""
        for Z in self._represent_in_parts(X):
            yield Z, self.heads_.predict_proba(Z)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy at the rows that have a label."""
        return score_labeled_rows(self, X, y, sample_weight)


class MarginalizedRegressor(RegressorMixin, Marginalized):
    """A regressor on top of a representation, marginalized over the representation's posterior.

    Each of S draws is one function with a head of its own, which predicts N(μ_s(x), σ_s²(x)). The prediction is their mixture:

        p(y | x) = (1/S) Σ_s N(y; μ_s(x), σ_s²(x)),   Var y = (1/S) Σ_s σ_s² + Var_s μ_s      (law of total variance)

    With `n_draws=None` there is one head, on the posterior mean. NaN marks rows without a target: they train the representation only.

    Parameters
    ----------
    head
        Any regressor, by default `BayesianLinearRegression()`, which is trained for all draws at once. Any other is cloned for each draw;
        where its `predict` does not return a standard deviation (which should include the noise, as `BayesianRidge`'s does), σ is the
        root mean square of residuals at rows held out in five folds.
    representation, n_draws, n_jobs, random_state, verbose
        As in `MarginalizedClassifier`.

    Attributes
    ----------
    representation_, functions_, heads_, n_labeled_, n_features_in_, feature_names_in_
        As in `MarginalizedClassifier`.

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
        for Z in self._represent_in_parts(X):
            yield NumberDistribution.of(*self.heads_.predict_normal(Z))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² at the rows that have a target."""
        return score_labeled_rows(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # The tag is about a table with one informative column among ten of equal size, which no representation of fewer dimensions that was
        # learned without targets has a reason to keep.
        tags.regressor_tags.poor_score = True
        return tags
