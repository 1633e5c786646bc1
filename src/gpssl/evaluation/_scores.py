"""All scores of a model on test rows at once, and statistics of scores over splits: what comparisons and experiments tabulate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata, wilcoxon
from scipy.stats import t as student_t
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, get_scorer, r2_score, roc_auc_score
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length

from ..data._labels import find_targets, labeled_rows
from ._calibration import (
    INTERVAL,
    clipped_log_loss,
    component_weights,
    distribution_at,
    expected_calibration_error,
    negative_log_likelihood,
    root_mean_squared_error,
)
from ._selective import augrc, aurc

Array = NDArray[np.float64]

HIGHER_IS_BETTER = {
    "accuracy": True,
    "ROC AUC": True,
    "AURC": False,
    "AUGRC": False,
    "log loss": False,
    "ECE": False,
    "RMSE": False,
    "NLL": False,
    "pMSE": False,
    "AUROC of errors": True,
}


def score_classification(y: NDArray[Any], proba: Array, classes: NDArray[Any], *, least_probability: float = 0.0) -> dict[str, float]:
    """Return the scores of the paper and three more. Probabilities [n, K] are in the order of `classes`; see `clipped_log_loss`.

    A class without a labeled row has probability zero, is never right, and ranks its rows by chance (an area of one half). Only the log
    loss leaves such rows out: it would be infinite for all methods alike.
    """
    known = np.isin(y, classes[proba.any(axis=0)])
    return {
        "accuracy": float((classes[proba.argmax(axis=1)] == y).mean()),
        "ROC AUC": macro_roc_auc(y, proba, classes),
        "AURC": aurc(y, proba, labels=classes),
        "AUGRC": augrc(y, proba, labels=classes),
        "log loss": clipped_log_loss(y[known], proba[known], classes, least_probability),
        "ECE": expected_calibration_error(y, proba, labels=classes),
    }


def macro_roc_auc(y: NDArray[Any], proba: Array, classes: NDArray[Any]) -> float:
    """Return the area under the ROC curve of each class against the others, averaged over the classes that occur in y."""
    present = [k for k, label in enumerate(classes) if 0 < (y == label).sum() < len(y)]
    return float(np.mean([roc_auc_score(y == classes[k], proba[:, k]) for k in present]))


def score_regression(y: Array, model: Any, rows: Any) -> dict[str, float]:
    """Return the error of the mean, the likelihood of the distribution, and the share of targets within its central 90 % interval.

    A target is within it where the predicted distribution function at the target is between 0.05 and 0.95.
    """
    (mean, std), weights = model.predict_draws(rows), component_weights(model)
    return {
        "RMSE": root_mean_squared_error(y, mean, weights=weights),
        "NLL": negative_log_likelihood(y, mean, std, weights=weights),
        "coverage": float((np.abs(distribution_at(y, mean, std, weights) - 0.5) <= INTERVAL / 2).mean()),
    }


def score_labeled_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """Return the accuracy or R² of a model at the rows that have a label, for its `score`."""
    check_consistent_length(X, y, sample_weight)
    labels, score = (labeled_rows(y), accuracy_score) if is_classifier(model) else (find_targets(y), r2_score)
    weight = None if sample_weight is None else np.asarray(sample_weight)[labels.rows]
    return float(score(labels.values, model.predict(X)[labels.rows], sample_weight=weight))


def labeled_scorer(scoring: str | Callable[..., float]) -> Callable[[Any, Any, Any], float]:
    """Return a scorer that looks only at rows with a label, for searches with unlabeled rows (−1, None or NaN) among the training rows.

    `MarginalizedClassifier.score` leaves them out by itself; scorers of scikit-learn would count −1 as a class that is never predicted.

    Parameters
    ----------
    scoring
        The name of a scorer of scikit-learn, such as "neg_log_loss", or one as a function of estimator, rows and labels.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from gpssl import MarginalizedClassifier
    >>> from gpssl.evaluation import labeled_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> few = np.where(np.arange(150) % 5 == 0, y, -1)
    >>> search = GridSearchCV(MarginalizedClassifier(), {"power": [0.25, 0.5]}, scoring=labeled_scorer("neg_log_loss"), cv=3)
    >>> bool(search.fit(X, few).best_score_ > -0.5)
    True
    """
    score = get_scorer(scoring)

    def score_labeled(model: Any, X: Any, y: Any) -> float:
        labels = labeled_rows(y) if is_classifier(model) else find_targets(y)
        return float(score(model, _safe_indexing(X, labels.rows), labels.values))

    return score_labeled


class Estimate(NamedTuple):
    """A mean over splits and its standard error."""

    mean: float
    error: float

    def text(self, digits: int = 3) -> str:
        """Return the mean, and its error where that is known."""
        return f"{self.mean:.{digits}f}" + (f" ± {self.error:.{digits}f}" if np.isfinite(self.error) else "")

    @classmethod
    def of(cls, values: ArrayLike) -> Estimate:
        """Return the estimate from values of different splits; the error of a single one is not known."""
        numbers = np.asarray(values, dtype=np.float64)
        error = numbers.std(ddof=1) / np.sqrt(len(numbers)) if len(numbers) > 1 else np.nan
        return cls(float(numbers.mean()), float(error))


def paired_p_value(first: ArrayLike, second: ArrayLike) -> float:
    """Return the p-value of Wilcoxon's signed-rank test, two-sided, of values from the same splits; 1 where all are equal.

    It is exact where no two differences are equal in size and none is zero, else by the normal approximation.
    """
    difference = _rounded(np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64))
    if not difference.any():
        return 1.0
    distinct = len(np.unique(np.abs(difference))) == len(difference) and difference.all()
    return float(wilcoxon(difference, zero_method="pratt", method="exact" if distinct else "approx").pvalue)


def corrected_error(differences: ArrayLike, test_to_training: float) -> float:
    """Return the standard error of the mean difference over random splits of one table, which share rows (Nadeau and Bengio, 2003).

        sqrt((1/n + n_test / n_training) var(d))

    It is NaN for a single split.
    """
    values = _rounded(differences)
    return float(np.sqrt((1 / len(values) + test_to_training) * values.var(ddof=1))) if len(values) > 1 else np.nan


def corrected_degrees(n_splits: int, n_rows: int | None = None) -> float:
    """Return the degrees of freedom of the variance over n splits of N independent rows, as Satterthwaite counts them.

        1 / (1 / (n − 1) + 1 / (N − 1)),      n − 1 where N is not given

    The variance over splits is that of n splits, and what it estimates is the variance of the N rows at hand: both are uncertain. With 40
    to 60 rows, 20 splits and n − 1 degrees, tests at 5 % erred in up to 6.5 % of simulated comparisons; so they do in 3.5 to 5.5 %.
    """
    return float(n_splits - 1) if n_rows is None else 1 / (1 / (n_splits - 1) + 1 / (n_rows - 1))


def corrected_p_value(differences: ArrayLike, test_to_training: float, n_rows: int | None = None) -> float:
    """Test whether differences over random splits of one table are zero: the corrected resampled t-test of Nadeau and Bengio (2003).

        t = mean(d) / corrected_error(d),      n − 1 degrees of freedom, or `corrected_degrees` of n splits of so many rows

    The p-value is two-sided. Splits of one table share rows, so that the plain test is far too sure. It is never below 2^(1 − n), the
    p-value of the sign test where all n differences have the same sign: a few differences that happen to be equal have no variance, and
    say little all the same. It is 1 where all are zero, or where there is only one.
    """
    values = _rounded(differences)
    if len(values) < 2 or not values.any():
        return 1.0
    least, error = 2.0 ** (1 - len(values)), corrected_error(values, test_to_training)
    degrees = corrected_degrees(len(values), n_rows)
    return max(least, float(2 * student_t.sf(abs(values.mean()) / error, degrees))) if error > 0 else least


def _rounded(differences: ArrayLike) -> Array:
    """Round, so that equal differences of accuracies do not differ by their rounding errors."""
    values: Array = np.asarray(differences, dtype=np.float64)
    return values.round(12)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct by Holm: multiply the i-th smallest of m by m − i + 1, and let none be below a smaller one.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    scaled = np.asarray(p_values, dtype=np.float64)[order] * np.arange(len(order), 0, -1)
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(value) for value in corrected]


def average_ranks(scores: Mapping[str, ArrayLike], *, higher_is_better: bool) -> dict[str, float]:
    """Return each method's rank, 1 the best, averaged over splits and data sets. Equal scores share their ranks."""
    values = np.array([np.asarray(column, dtype=np.float64) for column in scores.values()])
    ranks = rankdata(-values if higher_is_better else values, axis=0)
    return dict(zip(scores, ranks.mean(axis=1).tolist(), strict=True))
