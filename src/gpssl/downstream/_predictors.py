"""Classification and regression on a representation whose uncertainty is carried into the predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils import Tags

from .._runtime.threads import one_blas_thread
from ..data._labels import KnownLabels, check_at_least_two, find_class_labels, find_targets
from ..evaluation._calibration import average
from ..evaluation._scores import score_labeled_rows
from ._distributions import ClassDistribution, NumberDistribution, Uncertainty, class_uncertainty
from ._gp_head import SoftmaxGP
from ._heads import ClassifierClones, ClassifierHeads, RegressorClones, RegressorHeads, fit_clones, fit_regressors
from ._linear import BayesianLinearRegression
from ._logistic import BayesianLogisticRegression
from ._marginal import MANY_CLASSES, MOST_FEATURES, MOST_LABELS, MOST_LABELS_OF_CLASSES, MOST_WEIGHTS, Marginalized
from ._weighting import SMALLEST_PROBABILITY

Array = NDArray[np.float64]

FEWEST_FEATURES = 4
"""Leading features that heads see of a kernel with any number of classes."""
FEW_FEATURES = 20
"""Features of a single representation, outside a pool, up to which Bayesian logistic regression is the default head."""


class MarginalizedClassifier(ClassifierMixin, Marginalized):
    """A classifier on top of representations, marginalized over what is not known about them.

    Each draw s of a representation is one function. Evaluated at the labeled rows it trains a head of its own; evaluated at new rows it
    gives that head's probabilities. Predictions are the average over all draws of all members m of a pool, weighed by the labels:

        p(y* | x*) = Σ_m Σ_s w_ms p(y* | f_ms(x*)),      w_ms ∝ π_m / S_m · p(y | f_ms)^β

    By default the pool is `RepresentationPool.for_rows(X)`: columns, kernels and what `GPSSL` learns with them, each in one
    deterministic form. With `MarginalizedClassifier(GPSSL(), weighting="equal")` it is the paper's "GPSSL-full", the plain average over
    S draws; with `n_draws=None` there is one head, on the posterior mean ("GPSSL-mean"). A draw is the same function at all rows (see
    `gpssl.core.FunctionDraws`).

    Rows without a label train the representation only. They are marked by −1 where labels are whole numbers (scikit-learn's
    convention), and by None or NaN for strings, booleans and everything else.

    Parameters
    ----------
    representation
        A `RepresentationPool`, by default the one for these rows; or an estimator with `draw_functions`, such as `GPSSL()`. A search over
        `representation__n_components` and the like makes it `GPSSL`. It is cloned
        and fitted to all rows given to `fit`. Wrap one that was fitted before, to other unlabeled rows, in
        `sklearn.frozen.FrozenEstimator(ssl)`: it is then used as it is.
    head
        Any classifier with `predict_proba`. The default is `BayesianLogisticRegression()` for draws, which have few dimensions, and
        `SoftmaxGP()` for members of a pool that have one form, such as posterior kernels. Heads of `gpssl.downstream` are
        trained for all draws at once; any other head is cloned for each draw.
    n_draws
        S, of each member that has draws; None for the mean representation.
    weighting
        "evidence": draws count as far as the labels are likely under them. The evidence comes from the heads; for heads without one it is
        the likelihood of labels that are held out in five folds. "equal": all draws of a member count alike, as in the paper.
    power
        β. 0 is equal weights; 1 is Bayes' rule, which is too sure where heads approximate.
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
        The trained heads of all draws; for a pool, a list with those of each member that counts.
    members_
        What the labels say about each member: name, share of the weight, log evidence, effective number of draws (`MemberShare`).
        `pandas.DataFrame(clf.members_)` is a table.
    draw_weights_
        The weights of the draws, of all members that count; they sum to one. [S]
    n_effective_draws_
        How many equally weighted draws they are worth, 1 / Σ w².
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
    >>> clf = MarginalizedClassifier(random_state=0).fit(X, few)
    >>> clf.n_labeled_, clf.predict_proba(X).shape, clf.predict_proba_std(X).shape
    (50, (569, 2), (569, 2))
    >>> full = MarginalizedClassifier(GPSSL(5), weighting="equal", random_state=0).fit(X, few)      # the paper's GPSSL-full
    >>> full.draw_weights_.shape
    (100,)
    """

    heads_: ClassifierHeads | list[ClassifierHeads]

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

    def _head_for(self, Z: Array, n_labeled: int) -> Any:
        is_single = len(Z) == 1 and (self._is_pool or Z.shape[2] > FEW_FEATURES)
        return SoftmaxGP() if self.head is None and is_single and self._sees_all_features(n_labeled) else self._head()

    def _sees_all_features(self, n_labeled: int) -> bool:
        n_classes = len(self.classes_)
        if n_classes == 2:
            return n_labeled <= MOST_LABELS
        return n_labeled <= MOST_LABELS_OF_CLASSES and n_classes * n_labeled**3 <= MANY_CLASSES * MOST_LABELS_OF_CLASSES**3

    def _most_features(self) -> int:
        n_classes = len(self.classes_)
        return MOST_FEATURES if n_classes <= MANY_CLASSES else max(FEWEST_FEATURES, MOST_WEIGHTS // n_classes)

    def _log_likelihood(self, heads: Any, Z: Array, y: NDArray[Any]) -> Array:
        proba = heads.predict_proba(Z)
        known = np.asarray(heads.classes)
        places = np.minimum(np.searchsorted(known, y), len(known) - 1)
        of_label = np.take_along_axis(proba, places[None, :, None], axis=2)[:, :, 0] * (known[places] == y)
        return np.log(np.maximum(of_label, SMALLEST_PROBABILITY))

    def _fit_clones(self, head: Any, Z: Array, y: NDArray[Any], **params: Any) -> ClassifierClones:
        return ClassifierClones(np.unique(y), fit_clones(head, Z, y, params, self.n_jobs, bool(self.verbose)), self.n_jobs)

    def predict_distribution(self, X: Any) -> ClassDistribution:
        """Return probabilities, their standard deviations and the split of the uncertainty, from one evaluation of the draws."""
        parts = []
        for members in self._members_in_parts(X):
            with one_blas_thread():
                probabilities, variances = zip(*(_with_variance(heads, Z) for heads, Z in members), strict=True)
                proba = np.concatenate(probabilities)
                known = None if any(variance is None for variance in variances) else np.concatenate([v for v in variances if v is not None])
                parts.append(ClassDistribution.of(self.classes_, proba, known, self.component_weights))
        return ClassDistribution.joined(parts)

    def predict_proba_draws(self, X: Any) -> Array:
        """Return each draw's probability of each class, for the draws that `draw_weights_` weighs. [S, n, K]"""
        return np.concatenate(list(self._evaluate(X)), axis=1)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, averaged over draws. [n, K]"""
        with one_blas_thread():
            return np.concatenate([average(proba, self.component_weights) for proba in self._evaluate(X)])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class. [n]"""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba_std(self, X: Any) -> Array:
        """Return the standard deviation of the probability of each class. [n, K]

        sqrt(Var_s p̄_s + Σ_s w_s Var p_s): over draws, and for a head with a posterior of its own, as those of gpssl have, over that, p̄_s
        being its average.
        """
        return self.predict_distribution(X).proba_std

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Return the entropy of the prediction, in nats, and its two parts. [n] each

        total H(p̄), head Σ_s w_s H(p_s), representation H(p̄) − Σ_s w_s H(p_s): the mutual information of the label and the
        representation, which more unlabeled rows can reduce.
        """
        return Uncertainty.joined(class_uncertainty(proba, self.component_weights) for proba in self._evaluate(X))

    def _evaluate(self, X: Any) -> Iterator[Array]:
        """Yield each draw's probabilities for consecutive parts of the rows. [S, n, K]"""
        for members in self._members_in_parts(X):
            with one_blas_thread():
                proba = np.concatenate([heads.predict_proba(Z) for heads, Z in members])
            yield proba

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy at the rows that have a label."""
        return score_labeled_rows(self, X, y, sample_weight)


class MarginalizedRegressor(RegressorMixin, Marginalized):
    """A regressor on top of representations, marginalized over what is not known about them.

    Each of S draws is one function with a head of its own, which predicts N(μ_s(x), σ_s²(x)). The prediction is their mixture:

        p(y | x) = Σ_s w_s N(y; μ_s(x), σ_s²(x)),   Var y = Σ_s w_s σ_s² + Var_s μ_s      (law of total variance)

    over all draws of all members of a pool, weighed by the targets as `MarginalizedClassifier` weighs by labels. With `n_draws=None`
    there is one head, on the posterior mean. NaN marks rows without a target: they train the representation only.

    Parameters
    ----------
    head
        Any regressor, by default `BayesianLinearRegression()`, which is trained for all draws at once. Any other is cloned for each draw;
        where its `predict` does not return a standard deviation (which should include the noise, as `BayesianRidge`'s does), σ is the
        root mean square of residuals at rows held out in five folds.
    representation, n_draws, weighting, power, n_jobs, random_state, verbose
        As in `MarginalizedClassifier`.

    Attributes
    ----------
    representation_, functions_, heads_, members_, draw_weights_, n_effective_draws_, n_labeled_, n_features_in_, feature_names_in_
        As in `MarginalizedClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from gpssl import MarginalizedRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> few = np.where(np.arange(len(y)) < 100, y, np.nan)
    >>> reg = MarginalizedRegressor(random_state=0).fit(X, few)
    >>> reg.predict(X).shape, reg.predict_std(X).shape, reg.predict_interval(X, coverage=0.9).shape
    ((442,), (442,), (442, 2))
    """

    heads_: RegressorHeads | list[RegressorHeads]

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

    def _head_for(self, Z: Array, n_labeled: int) -> Any:  # noqa: ARG002  (one head for features of any shape)
        return self._head()

    def _log_likelihood(self, heads: Any, Z: Array, y: NDArray[Any]) -> Array:
        mean, std = heads.predict_normal(Z)
        return -0.5 * ((y - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)

    def _fit_clones(self, head: Any, Z: Array, y: NDArray[Any], **params: Any) -> RegressorClones:
        return fit_regressors(head, Z, y, params, self.n_jobs, bool(self.verbose))

    def predict_distribution(self, X: Any) -> NumberDistribution:
        """Return means, standard deviations, intervals and the split of the uncertainty, from one evaluation of the draws."""
        return NumberDistribution.joined(list(self._evaluate(X)))

    def predict_draws(self, X: Any) -> tuple[Array, Array]:
        """Return each draw's mean and standard deviation, μ_s and σ_s: the components of the mixture. [S, n] each

        Their weights are `draw_weights_`.
        """
        return self.predict_distribution(X).draws

    def predict(self, X: Any) -> Array:
        """Return the mean of the target. [n]"""
        return np.concatenate([part.mean for part in self._evaluate(X)])

    def predict_std(self, X: Any) -> Array:
        """Return the standard deviation of the target, noise included, by the law of total variance. [n]"""
        return np.concatenate([part.std for part in self._evaluate(X)])

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Return the variance of the target and its two parts: head Σ_s w_s σ_s², representation Var_s μ_s. [n] each"""
        return Uncertainty.joined(part.uncertainty for part in self._evaluate(X))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Return the ends of the central interval that holds the target with this probability: quantiles of the mixture. [n, 2]"""
        return np.concatenate([part.interval(coverage) for part in self._evaluate(X)])

    def _evaluate(self, X: Any) -> Iterator[NumberDistribution]:
        """Yield the predicted distribution for consecutive parts of the rows."""
        for members in self._members_in_parts(X):
            with one_blas_thread():
                means, stds = zip(*(heads.predict_normal(Z) for heads, Z in members), strict=True)
                found = NumberDistribution.of(np.concatenate(means), np.concatenate(stds), self.component_weights)
            yield found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² at the rows that have a target."""
        return score_labeled_rows(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # The tag is about a table with one informative column among ten of equal size, which no representation of fewer dimensions that was
        # learned without targets has a reason to keep.
        tags.regressor_tags.poor_score = True
        return tags


def _with_variance(heads: Any, Z: Array) -> tuple[Array, Array | None]:
    """Return the probabilities of each draw's head and their variance, at once where heads can; None where they have none. [S, n, K]"""
    if hasattr(heads, "predict_proba_with_variance"):
        return heads.predict_proba_with_variance(Z)
    return heads.predict_proba(Z), heads.predict_proba_variance(Z)
