"""Other people's methods as they are compared: settings chosen where they matter, and unlabeled rows for those that learn from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.preprocessing import normalize
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

from .._runtime.threads import one_blas_thread
from ..data._free_text import as_texts

Array = NDArray[np.float64]

MOST_FOLDS, MAX_ITERATIONS = 3, 2000
"""Limits of logistic regression with a cross-validated penalty."""
PENALTIES = np.logspace(-3, 3, 7)
"""C of logistic regression."""
N_TREES = 500
N_TOPICS = 50
"""Directions of words that stand for a column of free text."""
WORDS = r"\w+|[^\w\s]"
"""Words of any length and signs, as `TfidfKernel` has them."""
SPREADING_STEPS = 200
UNLABELED = -1


class PenalizedLogisticRegression(ClassifierMixin, BaseEstimator):
    """Logistic regression whose penalty is chosen by the likelihood of held-out labels, in as many folds as the smallest class has rows.

    Folds are three at most. Where a class has a single row there is nothing to choose by, and the penalty is scikit-learn's default.
    """

    def fit(self, X: Any, y: Any) -> PenalizedLogisticRegression:
        """Choose the penalty and train with it on all rows."""
        n_folds = min(MOST_FOLDS, int(np.unique(y, return_counts=True)[1].min()))
        if n_folds < 2:
            self.model_ = LogisticRegression(max_iter=MAX_ITERATIONS).fit(X, y)
            self.C_ = self.model_.C
        else:
            model = LogisticRegressionCV(Cs=PENALTIES, cv=n_folds, scoring="neg_log_loss", max_iter=MAX_ITERATIONS)
            self.model_ = model.fit(X, y)
            self.C_ = float(np.ravel(self.model_.C_)[0])
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class. [n, K]"""
        return self.model_.predict_proba(X)


class TopicColumns(TransformerMixin, BaseEstimator):
    """Free text as columns: latent semantic analysis, the leading directions of TF–IDF vectors of words, each text scaled to length 1."""

    def fit(self, X: Any, y: Any = None) -> TopicColumns:  # noqa: ARG002  (y is scikit-learn's)
        """Find words and directions of the texts in the only column of a data frame."""
        self.vectorizer_ = TfidfVectorizer(sublinear_tf=True, token_pattern=WORDS).fit(self._texts(X))
        words = self.vectorizer_.transform(self._texts(X))
        n_topics = max(1, min(N_TOPICS, words.shape[0] - 1, words.shape[1] - 1))
        self.topics_ = TruncatedSVD(n_topics, random_state=0).fit(words)
        return self

    def transform(self, X: Any) -> Any:
        """Return the topics of each text. [n, topics]"""
        return normalize(self.topics_.transform(self.vectorizer_.transform(self._texts(X))))

    def _texts(self, X: Any) -> Any:
        return as_texts(X[X.columns[0]])


class ForestClassifier(ClassifierMixin, BaseEstimator):
    """The trees of scikit-learn's `RandomForestClassifier` with the same seed, one by one: a third quicker where labels are few.

    Most of the time that a forest takes there are checks of parameters and labels, and copies, that are the same for each of its trees.

    Parameters
    ----------
    n_estimators
        Number of trees.
    random_state
        Seed, a whole number or None.
    """

    def __init__(self, n_estimators: int = N_TREES, random_state: int | None = None) -> None:
        self.n_estimators = n_estimators
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ForestClassifier:
        """Grow each tree on as many rows as there are, drawn with replacement: so often does a row count."""
        X = np.ascontiguousarray(X, dtype=np.float32)  # what trees split on
        self.classes_, codes = np.unique(y, return_inverse=True)
        targets, n_rows = codes.astype(np.float64), len(X)
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=self.n_estimators)
        self.trees_ = []
        with config_context(skip_parameter_validation=True, assume_finite=True):
            for seed in seeds.tolist():
                drawn = np.random.RandomState(seed).randint(0, n_rows, n_rows, dtype=np.int32)
                weight = np.bincount(drawn, minlength=n_rows).astype(np.float64)
                tree = DecisionTreeClassifier(max_features="sqrt", random_state=seed)
                self.trees_.append(tree.fit(X, targets, sample_weight=weight, check_input=False).tree_)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the mean over trees of the shares of classes in their leaves. [n, K]"""
        X = np.ascontiguousarray(X, dtype=np.float32)
        total = np.zeros((len(X), len(self.classes_)))
        for tree in self.trees_:
            total += tree.predict(X)
        return total / len(self.trees_)


class ForestRegressor(RandomForestRegressor):
    """A random forest that tells how far it is off: the root mean square of residuals at rows that a tree was not given."""

    def fit(self, X: Any, y: Any) -> ForestRegressor:
        """Grow the trees, and take the residuals out of their bags."""
        super().fit(X, y)
        self.std_ = float(np.sqrt(np.mean((y - self.oob_prediction_) ** 2)))
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the mean over trees, and on request the standard deviation, which is the same for all rows. [n] each"""
        mean = super().predict(X)
        return (mean, np.full(len(mean), self.std_)) if return_std else mean


class SpreadingClassifier(ClassifierMixin, BaseEstimator):
    """Labels spread between neighboring rows, labeled or not (Zhou et al., 2004), by scikit-learn.

    Rows that no label reaches get the shares of the labels. Rows that are part of the graph get what has reached them, others the average
    over their neighbors in it.

    Parameters
    ----------
    encoder
        Fitted steps that make numbers of rows; None where rows are numbers.
    unlabeled
        Numbers of the rows without a label. Those that `fit` is given with a label may be among them. [n, D]
    n_neighbors
        Neighbors that a row takes labels from.
    """

    def __init__(self, encoder: Any, unlabeled: Array, n_neighbors: int = 10) -> None:
        self.encoder = encoder
        self.unlabeled = unlabeled
        self.n_neighbors = n_neighbors

    def fit(self, rows: Any, y: Any) -> SpreadingClassifier:
        """Spread the labels of these rows."""
        X = as_numbers(self.encoder, rows)
        together, marked, self.classes_ = marked_rows(X, y, self.unlabeled)
        self.model_ = LabelSpreading(kernel="knn", n_neighbors=min(self.n_neighbors, len(together)), max_iter=SPREADING_STEPS)
        with one_blas_thread():  # a few thousand rows are searched faster than threads start
            self.model_.fit(together, marked)
        self._place = {row.tobytes(): place for place, row in enumerate(together)}
        self._shares = np.bincount(marked[marked != UNLABELED]) / (marked != UNLABELED).sum()
        return self

    def predict_proba(self, rows: Any) -> Array:
        """Return the probability of each class. [n, K]"""
        X = as_numbers(self.encoder, rows)
        places = np.array([self._place.get(row.tobytes(), -1) for row in X])
        proba: Array = self.model_.label_distributions_[places].copy()
        is_new = places < 0
        if is_new.any():
            neighbors = self.model_.nn_fit.kneighbors(X[is_new], return_distance=False)
            proba[is_new] = self.model_.label_distributions_[neighbors].mean(axis=1)
        total = proba.sum(axis=1, keepdims=True)
        return np.where(total > 0, proba / np.where(total > 0, total, 1.0), self._shares)


class SelfTraining(ClassifierMixin, BaseEstimator):
    """Logistic regression that adds its own sure predictions for unlabeled rows to the labels, in turn, by scikit-learn.

    The penalty is chosen beforehand, as `PenalizedLogisticRegression` chooses it. Parameters are those of `SpreadingClassifier`.
    """

    def __init__(self, encoder: Any, unlabeled: Array) -> None:
        self.encoder = encoder
        self.unlabeled = unlabeled

    def fit(self, rows: Any, y: Any) -> SelfTraining:
        """Learn from these rows first, and from the others then."""
        X = as_numbers(self.encoder, rows)
        penalty = PenalizedLogisticRegression().fit(X, y).C_
        together, marked, self.classes_ = marked_rows(X, y, self.unlabeled)
        base = LogisticRegression(C=penalty, max_iter=MAX_ITERATIONS)
        self.model_ = SelfTrainingClassifier(base).fit(together, marked)
        return self

    def predict_proba(self, rows: Any) -> Array:
        """Return the probability of each class. [n, K]"""
        return self.model_.predict_proba(as_numbers(self.encoder, rows))


def as_numbers(encoder: Any, rows: Any) -> Array:
    """Return rows as the encoder makes numbers of them. [n, D]"""
    return np.ascontiguousarray(rows if encoder is None else encoder.transform(rows), dtype=np.float64)


def marked_rows(X: Array, y: Any, unlabeled: Array) -> tuple[Array, NDArray[np.intp], NDArray[Any]]:
    """Return labeled rows and those of the others that are not copies of them, places of classes or −1, and the classes."""
    classes, codes = np.unique(y, return_inverse=True)
    known = {row.tobytes() for row in X}
    others = unlabeled[[row.tobytes() not in known for row in unlabeled]]
    return np.vstack([X, others]), np.concatenate([codes, np.full(len(others), UNLABELED)]), classes
