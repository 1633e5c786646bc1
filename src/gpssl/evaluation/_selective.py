"""Which predictions to keep: risk against coverage, and a threshold that holds a risk.

The certainty of a row is κ = max_k p_k, its loss is 1 where argmax_k p_k is not its label and 0 elsewhere. Coverage is the share of rows
that keep their prediction, risk the mean loss over these. Labels and probabilities have the form that `_calibration.py` describes.

Confidence is the level of a guarantee or an interval: how often, over repetitions, it holds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import ceil, log, log1p
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, bootstrap

from .._runtime import CONFIDENCE
from .._validation import check_number, check_weights, seed_from
from ..data._labels import UNLABELED, as_labels, missing
from ._calibration import check_probabilities

Array = NDArray[np.float64]

COUNT_RATIO = 1.1
"""Each tested threshold keeps about this many times the rows of the one before: the spacing costs at most a tenth of the coverage, and the
confidence is divided among few thresholds."""


class RiskCoverageCurve(NamedTuple):
    """Risk against coverage: a point for each of the T distinct certainties, from the strictest to full coverage."""

    threshold: Array
    """The rows with certainty ≥ threshold are kept; rows of equal certainty are kept together. [T]"""
    coverage: Array
    """The share of the weight that is kept; it ends at 1. [T]"""
    risk: Array
    """The mean loss over the rows that are kept. [T]"""

    @property
    def generalized_risk(self) -> Array:
        """risk · coverage: the loss of kept rows over all rows. [T]"""
        return self.risk * self.coverage

    @property
    def aurc(self) -> float:
        """Σ_t (coverage_t − coverage_{t−1}) risk_t, with coverage_0 = 0. See the function `aurc`."""
        return float(np.diff(self.coverage, prepend=0.0) @ self.risk)

    @property
    def augrc(self) -> float:
        """Area under the generalized risk from (0, 0), by the trapezoidal rule. See the function `augrc`."""
        return float(np.trapezoid(np.append(0.0, self.generalized_risk), np.append(0.0, self.coverage)))


def risk_coverage_curve(y: Any, proba: Any, *, labels: Any = None, sample_weight: Any = None) -> RiskCoverageCurve:
    """Return risk against coverage for the likeliest label and its probability. Weight 2 is the row twice."""
    wrong, certainty = errors_and_certainty(y, proba, labels)
    return risk_coverage_curve_from_losses(wrong, certainty, sample_weight=sample_weight)


def risk_coverage_curve_from_losses(losses: Any, certainty: Any, *, sample_weight: Any = None) -> RiskCoverageCurve:
    """Return risk against coverage for any loss and certainty [n], such as squared errors and minus a predicted standard deviation.

    coverage(t) = Σ_i w_i 1[κ_i ≥ t] / Σ_i w_i      risk(t) = Σ_i w_i ℓ_i 1[κ_i ≥ t] / Σ_i w_i 1[κ_i ≥ t]
    """
    losses, certainty = np.asarray(losses, dtype=np.float64), np.asarray(certainty, dtype=np.float64)
    if losses.ndim != 1 or losses.shape != certainty.shape or len(losses) == 0:
        raise ValueError(f"Pass one loss and one certainty for each of at least one row, got shapes {losses.shape} and {certainty.shape}.")
    if not (np.isfinite(losses).all() and np.isfinite(certainty).all()):
        raise ValueError("Losses and certainties must be finite: leave out the rows where they are not.")
    weight = check_weights(sample_weight, len(losses))
    counts = weight > 0
    strictness, group = np.unique(-certainty[counts], return_inverse=True)
    kept = np.cumsum(np.bincount(group, weight[counts]))
    lost = np.cumsum(np.bincount(group, (weight * losses)[counts]))
    return RiskCoverageCurve(-strictness, kept / kept[-1], lost / kept)


def errors_and_certainty(y: Any, proba: Any, labels: Any) -> tuple[NDArray[np.bool_], Array]:
    """Return 1[argmax_k p_k ≠ y] and max_k p_k. [n], [n]"""
    codes, proba = check_probabilities(y, proba, labels)
    return proba.argmax(axis=1) != codes, proba.max(axis=1)


def aurc(y: Any, proba: Any, *, labels: Any = None, sample_weight: Any = None) -> float:
    """Return the area under the risk–coverage curve, the plug-in estimator of E_x[R(κ(x))], R(t) = E[ℓ | κ ≥ t]. Smaller is better.

        AURC = Σ_i w_i R̂(κ_i) / Σ_i w_i      R̂(t) = Σ_i w_i ℓ_i 1[κ_i ≥ t] / Σ_i w_i 1[κ_i ≥ t]

    Without ties and weights it is the mean of the risks at coverages 1/n, 2/n, …, 1 (Geifman et al. 2018). Rows of equal certainty are
    kept together, so that it does not depend on the order of the rows.
    """
    return risk_coverage_curve(y, proba, labels=labels, sample_weight=sample_weight).aurc


def augrc(y: Any, proba: Any, *, labels: Any = None, sample_weight: Any = None) -> float:
    """Return the area under the generalized risk–coverage curve (Traub et al. 2024), from (0, 0), by the trapezoidal rule.

        AUGRC = (1 − AUROC) · accuracy · error + ½ error²

    where AUROC tells how well certainty separates right from wrong predictions, ties counting half. It lies between 0 and ½, and is the
    chance that of two rows the first is wrong and the second less certain than it, again with ties counting half. Smaller is better.
    """
    return risk_coverage_curve(y, proba, labels=labels, sample_weight=sample_weight).augrc


def aurc_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Return −AURC, for `scoring=aurc_scorer`: larger is better.

    Rows without a label do not count: those marked by None, by NaN, or by −1 where −1 is not a class. Rows of a class that the estimator
    has not seen count as errors, with a warning: scikit-learn does not stratify folds where some labels are None.
    """
    return -_curve_of_estimator(estimator, X, y).aurc


def augrc_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Return −AUGRC, for `scoring=augrc_scorer`: larger is better. The same rows count as in `aurc_scorer`."""
    return -_curve_of_estimator(estimator, X, y).augrc


def _curve_of_estimator(estimator: Any, X: Any, y: Any) -> RiskCoverageCurve:
    predicted, certainty = _predict_with_certainty(estimator, X)
    labels = as_labels(y)
    labeled = ~missing(labels)
    if UNLABELED not in estimator.classes_.tolist():
        labeled &= labels != UNLABELED
    if not labeled.any():
        raise ValueError("No row has a label: score on rows with labels, for example with a splitter that puts some into each test set.")
    n_unseen = int((~np.isin(labels[labeled].tolist(), estimator.classes_.tolist())).sum())
    if n_unseen > 0:
        warnings.warn(
            f"{n_unseen} of {labeled.sum()} labels are of classes that the estimator has not seen, and count as errors. Split so that "
            "each class is on both sides, for example with shuffled or stratified folds.",
            UserWarning,
            stacklevel=3,
        )
    wrong = predicted[labeled] != labels[labeled]
    return risk_coverage_curve_from_losses(wrong, certainty[labeled])


def _predict_with_certainty(classifier: Any, X: Any) -> tuple[NDArray[Any], Array]:
    """Return the likeliest label and its probability. [n], [n]"""
    if not hasattr(classifier, "predict_proba"):
        raise TypeError(
            f"{type(classifier).__name__} has no predict_proba: certainty needs probabilities. Wrap it in "
            "sklearn.calibration.CalibratedClassifierCV, or choose its option that gives them."
        )
    proba = np.asarray(classifier.predict_proba(X), dtype=np.float64)
    return np.asarray(classifier.classes_)[proba.argmax(axis=1)], proba.max(axis=1)


class Interval(NamedTuple):
    """The ends of a confidence interval."""

    low: float
    high: float


def bootstrap_interval(
    score: Callable[..., float],
    y: Any,
    proba: Any,
    *,
    labels: Any = None,
    confidence: float = CONFIDENCE,
    n_resamples: int = 1000,
    random_state: Any = None,
) -> Interval:
    """Return an interval for a score on other rows of the same kind: percentiles of the score over rows drawn with replacement.

    The score is called as score(y, proba, labels=labels): `aurc`, `augrc`, `brier_score`, or your own. The interval holds the score of
    the population with probability `confidence` only approximately, and less often with few rows or few errors.
    """
    check_number("confidence", confidence, Real, above=0, below=1)
    check_number("n_resamples", n_resamples, Integral, at_least=1)
    y, proba = np.asarray(y), np.asarray(proba, dtype=np.float64)
    check_probabilities(y, proba, labels)
    if len(y) == 1:
        raise ValueError("One row has no other rows to be exchanged with: a bootstrap interval needs at least two.")
    labels = np.unique(y) if labels is None else labels  # a resample may lack a label

    def score_of_rows(rows: NDArray[np.intp]) -> float:
        return score(y[rows], proba[rows], labels=labels)

    rows, rng = np.arange(len(y)), np.random.default_rng(seed_from(random_state))
    options = {"vectorized": False, "batch": 1, "method": "percentile"}  # one resample in memory at a time
    result = bootstrap((rows,), score_of_rows, confidence_level=confidence, n_resamples=n_resamples, rng=rng, **options)
    return Interval(*map(float, result.confidence_interval))


def risk_controlled_threshold(y: Any, proba: Any, max_risk: float, confidence: float = CONFIDENCE, *, labels: Any = None) -> float:
    """Return the lowest threshold t found for which the error rate among new rows with certainty > t is at most `max_risk`.

    Over repetitions of the calibration rows (y, proba), this holds with probability at least `confidence`, for any finite number of
    rows. They must come from the same population as the new rows, independently, and must not have trained the classifier nor chosen
    its settings. Pass all of them: leaving out hard ones voids the guarantee.

    Let R(t) be the error rate among the rows of the population with κ > t, α = max_risk and δ = 1 − confidence.

    1. Counts k_1 < … < k_m = n are chosen from n, α and δ alone. Threshold t_j is the (k_j + 1)-th largest certainty, and t_m = −∞, so
       that n_j rows lie strictly above it: k_j without ties, fewer with. The row that lends its certainty is not among them.
    2. Given t_j and n_j, the rows above are independent draws from the population above t_j, so their errors are
       e_j ~ Binomial(n_j, R(t_j)). If R(t_j) > α, the p-value P[Binomial(n_j, α) ≤ e_j] is at most u with probability at most u.
    3. The hypotheses R(t_j) > α are tested from strict to lax by the fallback procedure (Wiens 2003): hypothesis j has level δ/m, plus the
       level of hypothesis j − 1 if that was rejected. With probability 1 − δ no true one is rejected, so the laxest may be taken.

    In step 3 the hypotheses are random, as their thresholds are, and step 2 alone does not suffice. What does: the certainties where R
    crosses α cut the population into strata, each with error rate exactly α, apart from the last. Given how many rows fall into each, it
    is settled which hypotheses are true, because the counts k_j are fixed; and the errors above the t_j of a true one are those of whole
    strata, Binomial(·, α), plus those of rows between the last crossing and t_j, whose rate exceeds α. So the p-values are valid given
    the strata, and so is the fallback procedure. Where R jumps over α instead, at a certainty that many rows share, the argument needs
    in addition that R does not fall as t falls: that the more certain are not the more often wrong.

    Returns
    -------
    threshold
        For `predict_or_abstain`. −inf keeps every row. If no threshold passes, a warning says so, and inf abstains on every row.
    """
    check_number("max_risk", max_risk, Real, above=0, below=1)
    check_number("confidence", confidence, Real, above=0, below=1)
    wrong, certainty = errors_and_certainty(y, proba, labels)
    order = np.argsort(-certainty, kind="stable")
    counts = _tested_counts(len(order), max_risk, 1 - confidence)
    thresholds = np.append(certainty[order], -np.inf)[counts]
    n_kept = np.searchsorted(-certainty[order], -thresholds, side="left")
    errors = np.append(0, np.cumsum(wrong[order]))[n_kept]
    passed = _fallback_procedure(binom.cdf(errors, n_kept, max_risk), 1 - confidence)
    if passed.any():
        return float(thresholds[passed].min())
    least = rows_without_error(max_risk, 1 - confidence)
    warnings.warn(
        f"No threshold holds the risk {max_risk} with confidence {confidence} on these {len(order)} rows, and inf abstains on every row. "
        f"Give more calibration rows (at least {least}, and that suffices only without an error), a higher max_risk or a lower confidence.",
        UserWarning,
        stacklevel=2,
    )
    return np.inf


def rows_without_error(max_risk: float, level: float) -> int:
    """Return the smallest k with (1 − α)^k ≤ level: so many rows without an error are evidence against a risk above α."""
    return ceil(log(level) / log1p(-max_risk))


def _tested_counts(n_rows: int, max_risk: float, level: float) -> NDArray[np.intp]:
    """Return k_1 < … < k_m = n in steps of `COUNT_RATIO`, where k_1 rows without an error pass at level δ/m. [m]"""
    n_steps = 0
    while (first := rows_without_error(max_risk, level / (n_steps + 1))) * COUNT_RATIO**n_steps < n_rows:
        n_steps += 1
    counts = np.ceil(first * COUNT_RATIO ** np.arange(n_steps)).astype(np.intp)
    return np.unique(np.append(np.minimum(counts, n_rows), n_rows))


def _fallback_procedure(p_values: Array, level: float) -> NDArray[np.bool_]:
    """Return which hypotheses are rejected: p_j ≤ level_j, level_j = δ/m + 1[j − 1 rejected] level_{j−1}. [m]"""
    rejected = np.zeros(len(p_values), dtype=bool)
    level_here = 0.0
    for j, p_value in enumerate(p_values):
        level_here += level / len(p_values)
        rejected[j] = p_value <= level_here
        level_here *= rejected[j]
    return rejected


def predict_or_abstain(classifier: Any, X: Any, threshold: float) -> np.ma.MaskedArray[Any, Any]:
    """Return the likeliest labels, masked where their probability is not above the threshold. [n]"""
    if not isinstance(threshold, Real):
        raise TypeError(f"threshold must be a number, such as risk_controlled_threshold finds, got {threshold!r}.")
    predicted, certainty = _predict_with_certainty(classifier, X)
    if predicted.dtype.kind in "US":  # of any length, so that masked ones can be filled with any text
        predicted = predicted.astype(object)
    # Not `certainty <= threshold`: a threshold or certainty that is NaN must abstain too.
    return np.ma.MaskedArray(predicted, mask=~(certainty > threshold))
