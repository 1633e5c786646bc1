"""Methods for few labels. Those without a representation are functions of numbers, marked labels and a seed.

Marked labels are −1 for rows without one, and what is returned are the probabilities of these rows, a column for each class that has a
label. Settings are chosen by the likelihood of held-out labels, in five folds. A class with a single label is missing from the models that
hold it out, and costs all settings the same. Fewer than 20 labels choose badly, worse than a fixed setting, which is then used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA, KernelPCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import StratifiedKFold
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from gpssl.comparison import FULL, MEAN, N_COMPONENTS, N_DRAWS, PRIOR
from gpssl.evaluation import hold_out_classes
from gpssl.kernels import NeighborRBF

from .few_label_pools import ABLATIONS, POOL, SOFTMAX_GP, pool, softmax_gp
from .few_label_protocol import LEAST_PROBABILITY, UNLABELED, Split
from .methods import Budget, classifier_with

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

N_FOLDS = 5
N_NEIGHBORS = 10
N_TREES = 500
MAX_ITERATIONS = 2000
LEAST_TO_CHOOSE = 20
"""With fewer labels, settings are the first of these."""
PENALTIES = (0.3, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""C of logistic regression."""
COMPONENT_PENALTIES = (1.0, 0.001, 0.01, 0.1, 10.0, 100.0, 1000.0)
"""C of logistic regression on components, of which there are few."""
SVM_PENALTIES = (10.0, 0.1, 1.0, 100.0, 1000.0)
SVM_TEMPERATURES = (1.0, 0.3, 3.0)
BOOSTED_TREES = (10, 30, 100)
"""For each class."""


class Predictor(Protocol):
    """A method that has seen the rows of a split: from marked labels to the probabilities of the rows without one."""

    def __call__(self, marked: Codes, /) -> Array:
        """Return a column for each class with a label. [unlabeled rows, classes]"""


Rival = Callable[[Array, Codes, int], Array]


# Settings


def chosen(models: Sequence[Any], X: Array, y: Codes, seed: int) -> Any:
    """Return the model, not yet fitted, with the highest likelihood of held-out labels; the first of equal ones, or for few labels."""
    return models[0] if len(y) < LEAST_TO_CHOOSE else max(models, key=lambda model: _likelihood(model, X, y, seed))


def _likelihood(model: Any, X: Array, y: Codes, seed: int) -> float:
    """Return the mean log probability of labels that were held out in turn."""
    held_out = hold_out_classes(model, X, y, n_folds=N_FOLDS, random_state=seed)
    proba = held_out.proba[np.arange(len(y)), np.searchsorted(held_out.classes, y)]
    return float(np.log(np.maximum(proba, LEAST_PROBABILITY)).mean())


def _chosen_logistic(X: Array, y: Codes, seed: int, penalties: Sequence[float] = PENALTIES) -> LogisticRegression:
    return chosen([LogisticRegression(C=penalty, max_iter=MAX_ITERATIONS) for penalty in penalties], X, y, seed)


# Learners that see labeled rows only


class Known(NamedTuple):
    """The rows with a label, and all others."""

    X: Array
    y: Codes
    others: Array

    @classmethod
    def of(cls, X: Array, marked: Codes) -> Known:
        """Divide the rows by whether they have a label."""
        labeled = marked != UNLABELED
        return cls(X[labeled], marked[labeled], X[~labeled])

    def predict(self, model: Any) -> Array:
        """Fit to the rows with a label, and predict the others. [unlabeled rows, classes]"""
        return model.fit(self.X, self.y).predict_proba(self.others)


def logistic_regression(X: Array, marked: Codes, seed: int) -> Array:
    """Predict by logistic regression, whose penalty is chosen."""
    known = Known.of(X, marked)
    return known.predict(_chosen_logistic(known.X, known.y, seed))


def random_forest(X: Array, marked: Codes, seed: int) -> Array:
    """Predict by 500 trees."""
    return Known.of(X, marked).predict(RandomForestClassifier(N_TREES, random_state=seed))


def gradient_boosting(X: Array, marked: Codes, seed: int) -> Array:
    """Predict by boosted trees, whose number is chosen. Leaves have a tenth of the labels: with the usual 20, few labels make no tree."""
    known = Known.of(X, marked)
    options = {"min_samples_leaf": int(np.clip(len(known.y) // 10, 2, 20)), "early_stopping": False, "random_state": seed}
    models = [HistGradientBoostingClassifier(max_iter=n_trees, **options) for n_trees in BOOSTED_TREES]
    with threadpool_limits(1):  # tables are small, and threads of several tasks would wait for each other
        return known.predict(chosen(models, known.X, known.y, seed))


class SoftmaxSVM(ClassifierMixin, BaseEstimator):
    """Support vectors whose decisions d become probabilities softmax(d / T): Platt's way needs several labels of each class."""

    def __init__(self, C: float = 1.0, temperature: float = 1.0) -> None:
        self.C = C
        self.temperature = temperature

    def fit(self, X: Array, y: Codes) -> SoftmaxSVM:
        """Find the support vectors."""
        self.model_ = SVC(C=self.C).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Array) -> Array:
        """Return the probability of each class. [n, K]"""
        decisions = self.model_.decision_function(X)
        decisions = np.column_stack([-decisions, decisions]) / 2 if decisions.ndim == 1 else decisions
        return softmax(decisions / self.temperature, axis=1)


def support_vectors(X: Array, marked: Codes, seed: int) -> Array:
    """Predict by support vectors with an RBF kernel, whose penalty is chosen, and whether probabilities are Platt's or a softmax."""
    known = Known.of(X, marked)
    models = [SoftmaxSVM(penalty, temperature) for temperature in SVM_TEMPERATURES for penalty in SVM_PENALTIES]
    return known.predict(chosen([*models, *_platt_svms(known.y, seed)], known.X, known.y, seed))


def _platt_svms(y: Codes, seed: int) -> list[CalibratedClassifierCV]:
    """Return support vectors with Platt's probabilities; none where a class would be missing from an inner fold when some are held out."""
    counts = np.unique(y, return_counts=True)[1]
    n_left = counts.min() - np.ceil(counts.min() / min(N_FOLDS, counts.max()))
    n_folds = int(min(N_FOLDS, n_left))
    if n_folds < 2:
        return []
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    return [CalibratedClassifierCV(SVC(C=penalty), ensemble=False, cv=folds) for penalty in SVM_PENALTIES]


# Learners that see all rows


def label_spreading(X: Array, marked: Codes, _seed: int) -> Array:
    """Predict by labels that spread to neighbors; rows that none reaches get the shares of the labels."""
    model = LabelSpreading(kernel="knn", n_neighbors=N_NEIGHBORS, max_iter=200).fit(X, marked)
    proba = model.label_distributions_[marked == UNLABELED]
    shares = np.bincount(marked[marked != UNLABELED])[model.classes_] / (marked != UNLABELED).sum()
    return np.where(proba.sum(axis=1, keepdims=True) > 0.5, proba, shares)


def self_training(X: Array, marked: Codes, seed: int) -> Array:
    """Predict by logistic regression that adds its own sure predictions to the labels, in turn."""
    known = Known.of(X, marked)
    model = SelfTrainingClassifier(_chosen_logistic(known.X, known.y, seed)).fit(X, marked)
    return model.predict_proba(known.others)


def _on_components(components: Callable[[Array, int], Array]) -> Rival:
    """Return logistic regression on components of all rows, of which the first has standard deviation 1: the scale of single columns."""

    def rival(X: Array, marked: Codes, seed: int) -> Array:
        Z = components(X, seed)
        known = Known.of(Z / Z[:, 0].std(), marked)
        return known.predict(_chosen_logistic(known.X, known.y, seed, COMPONENT_PENALTIES))

    return rival


def _principal_components(X: Array, seed: int) -> Array:
    return PCA(min(N_COMPONENTS, X.shape[1]), random_state=seed).fit_transform(X)


def _kernel_components(X: Array, seed: int) -> Array:
    """Return components with k(x, y) = exp(−|x − y|² / (2 ℓ²)), ℓ the median distance of two different rows. [n, J]"""
    distances = pairwise_distances(X)
    lengthscale = np.median(distances[distances > 0])
    return KernelPCA(N_COMPONENTS, kernel="rbf", gamma=1 / (2 * lengthscale**2), random_state=seed).fit_transform(X)


pca = _on_components(_principal_components)
kernel_pca = _on_components(_kernel_components)


# Representations of gpssl, learned once for all numbers of labels


def _marginalized(method: str, split: Split) -> Predictor:
    """Return heads on functions with the default kernel; the only place where the experiment builds a `MarginalizedClassifier`."""
    classifier = classifier_with(method, NeighborRBF(N_NEIGHBORS), split.numbers, Budget(N_DRAWS, split.seed))
    return lambda marked: classifier.fit(split.numbers, marked).predict_proba(split.numbers[marked == UNLABELED])


def of_numbers(rival: Rival) -> Callable[[Split], Predictor]:
    """Return a method of a split from a function of its numbers."""
    return lambda split: lambda marked: rival(split.numbers, marked, split.seed)


def _of_functions(method: str) -> Callable[[Split], Predictor]:
    return lambda split: _marginalized(method, split)


METHODS: dict[str, Callable[[Split], Predictor]] = {
    "logistic regression": of_numbers(logistic_regression),
    "random forest": of_numbers(random_forest),
    "gradient boosting": of_numbers(gradient_boosting),
    "SVM": of_numbers(support_vectors),
    "label spreading": of_numbers(label_spreading),
    "self-training": of_numbers(self_training),
    "PCA": of_numbers(pca),
    "kernel PCA": of_numbers(kernel_pca),
    SOFTMAX_GP: softmax_gp,
    PRIOR: _of_functions(PRIOR),
    MEAN: _of_functions(MEAN),
    FULL: _of_functions(FULL),
    POOL: pool,
    **ABLATIONS,
}
"""All methods by name. Each is given a split, whose labels it leaves alone, and returns a predictor."""
