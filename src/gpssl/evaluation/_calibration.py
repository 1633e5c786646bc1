"""Whether probabilities, means and intervals can be believed.

Classification: labels y [n] and probabilities p [n, K], with columns in the order of `labels`, which are the distinct values of y unless
given; pass `labels=classifier.classes_`. For two classes p may be one-dimensional, the probability of the second.

Regression: values y [n] and for each row a Gaussian, or a mixture of S Gaussians, with `mean` and `std` of shape [n] or [S, n];
`weights` [S] are those of the components, equal unless given.

Smaller is better for every score. All are averages over the rows.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr
from sklearn import metrics

from .._validation import check_number
from ..data._arrays import row_blocks

Array = NDArray[np.float64]

PROBABILITY_TOLERANCE = 1e-4
"""How far the probabilities of a row may be from summing to one. The rounding of float32 stays below it."""

INTERVAL = 0.9
"""Nominal coverage of the intervals that predictions of numbers come with."""

PAIRS_AT_A_TIME = 2**20


def check_probabilities(y: Any, proba: Any, labels: Any = None) -> tuple[NDArray[np.intp], Array]:
    """Return the column of each row's label, and the probabilities. [n], [n, K]"""
    y = np.asarray(y)
    try:
        proba = np.asarray(proba, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise ValueError("Probabilities must be numbers: pass the output of predict_proba, not of predict.") from error
    if proba.ndim == 1:
        proba = np.column_stack([1 - proba, proba])
    if proba.ndim != 2:
        raise ValueError(f"proba must be [rows, classes], or [rows] with the probability of the second of two classes, got {proba.shape}.")
    _check_one_each(y, proba, "proba")
    classes = _check_labels(y, proba.shape[1], labels)
    _check_distributions(proba)
    column = {label: k for k, label in enumerate(classes)}
    values = y.tolist()
    strange = sorted({repr(label) for label in values if label not in column})
    if strange:
        raise ValueError(f"y has {', '.join(strange[:5])}, not among the labels {classes}: leave such rows out, or correct labels=.")
    return np.array([column[label] for label in values], dtype=np.intp), proba


def _check_one_each(y: NDArray[Any], other: NDArray[Any], name: str) -> None:
    if y.ndim != 1:
        raise ValueError(f"y must have one dimension, one value for each row, got shape {y.shape}.")
    if len(y) != len(other):
        raise ValueError(f"y has {len(y)} rows and {name} has {len(other)}: pass the same rows in both.")
    if len(y) == 0:
        raise ValueError("y has no rows: pass at least one.")


def _check_labels(y: NDArray[Any], n_columns: int, labels: Any) -> list[Any]:
    """Return one distinct label for each column, or raise ValueError."""
    try:
        classes = (np.unique(y) if labels is None else np.asarray(labels)).tolist()
    except TypeError as error:
        raise ValueError("y mixes labels that have no order: leave missing ones out and pass labels=classifier.classes_.") from error
    if len(classes) != n_columns:
        source = "distinct values in y" if labels is None else "labels"
        raise ValueError(f"{n_columns} columns of probabilities but {len(classes)} {source}: pass labels=classifier.classes_.")
    if len(classes) < 2 or len(set(classes)) < len(classes):
        raise ValueError(f"The labels must be at least two and distinct, got {classes}: pass labels=classifier.classes_.")
    return classes


def _check_distributions(proba: Array) -> None:
    if not (np.isfinite(proba).all() and (proba >= 0).all()):
        raise ValueError("Probabilities must be finite and not negative: pass the output of predict_proba, not of decision_function.")
    off = np.abs(proba.sum(axis=1) - 1)
    if not off.max() <= PROBABILITY_TOLERANCE:
        row = int(off.argmax())
        raise ValueError(
            f"The probabilities of row {row} sum to {proba[row].sum():.6g}, not to one within {PROBABILITY_TOLERANCE}: "
            "divide each row by its sum."
        )


class ReliabilityCurve(NamedTuple):
    """Certainty against accuracy in the B' bins that have rows, from low to high certainty."""

    certainty: Array
    """Mean of max_k p_k over the rows in the bin. [B']"""
    accuracy: Array
    """Share of the bin's rows whose likeliest label is the true one. [B']"""
    share: Array
    """Share of all rows that are in the bin; they sum to one. [B']"""
    lower: Array
    """Lower end of the bin. [B']"""
    upper: Array
    """Upper end of the bin. [B']"""

    @property
    def expected_calibration_error(self) -> float:
        """Σ_b share_b |accuracy_b − certainty_b|. See the function of this name."""
        return float(self.share @ np.abs(self.accuracy - self.certainty))


def reliability_curve(y: Any, proba: Any, *, labels: Any = None, n_bins: int = 15) -> ReliabilityCurve:
    """Return the accuracy of the likeliest label against its probability, the certainty max_k p_k.

    Bin b of B = `n_bins` is ((b − 1)/B, b/B]: open below, closed above; the first has 0 too. Bins without rows are left out.
    """
    check_number("n_bins", n_bins, Integral, at_least=1)
    codes, proba = check_probabilities(y, proba, labels)
    certainty, correct = proba.max(axis=1), proba.argmax(axis=1) == codes
    edges = np.linspace(0, 1, n_bins + 1)
    bins = np.digitize(certainty, edges[1:-1], right=True)
    n_rows = np.bincount(bins, minlength=n_bins)
    filled = np.flatnonzero(n_rows)
    mean_certainty, accuracy = (np.bincount(bins, values, n_bins)[filled] / n_rows[filled] for values in (certainty, correct))
    return ReliabilityCurve(mean_certainty, accuracy, n_rows[filled] / len(codes), edges[filled], edges[filled + 1])


def expected_calibration_error(y: Any, proba: Any, *, labels: Any = None, n_bins: int = 15) -> float:
    """Return ECE = Σ_b share_b |accuracy_b − certainty_b| over the bins of `reliability_curve`, from 0 to 1.

    It says nothing of how often the labels are right, and depends on the bins: compare it at the same `n_bins` only.
    """
    return reliability_curve(y, proba, labels=labels, n_bins=n_bins).expected_calibration_error


def brier_score(y: Any, proba: Any, *, labels: Any = None) -> float:
    """Return (1/n) Σ_n Σ_k (p_nk − 1[y_n = k])², from 0 to 2: for two classes twice the score of the second class alone."""
    codes, proba = check_probabilities(y, proba, labels)
    return float(((proba - np.eye(proba.shape[1])[codes]) ** 2).sum(axis=1).mean())


def log_loss(y: Any, proba: Any, *, labels: Any = None, sample_weight: Any = None) -> float:
    """Return −(1/n) Σ_n log p_{n, y_n}, in nats, by scikit-learn; with weights, their weighted mean.

    A probability of zero counts as 2.2e-16, the smallest step of float64 at one: such a row costs 36.04 and not infinity.
    """
    codes, proba = check_probabilities(y, proba, labels)
    # scikit-learn warns where float32 rounding keeps a row from summing to one.
    proba = proba / proba.sum(axis=1, keepdims=True)
    return float(metrics.log_loss(codes, proba, labels=np.arange(proba.shape[1]), sample_weight=sample_weight))


def clipped_log_loss(y: Any, proba: Any, labels: Any, least_probability: float) -> float:
    """Return −(1/n) Σ_n log max(p_{n, y_n}, p_min), in nats: a sure error costs log(1 / p_min). With p_min = 0, that of `log_loss`."""
    if least_probability == 0:
        return log_loss(y, proba, labels=labels)
    codes, proba = check_probabilities(y, proba, labels)
    return float(-np.log(np.maximum(proba[np.arange(len(codes)), codes], least_probability)).mean())


def root_mean_squared_error(y: Any, mean: Any, *, weights: Any = None) -> float:
    """Return sqrt((1/n) Σ_n (y_n − μ_n)²), where μ_n is the mean over the S components if `mean` is [S, n]."""
    y, mean = _check_values(y, mean, "mean")
    return float(metrics.root_mean_squared_error(y, average(mean, check_mixture_weights(weights, len(mean)))))


def log_density(y: Any, mean: Any, std: Any, *, weights: Any = None) -> Array:
    """Return log Σ_s w_s N(y_n; μ_sn, σ_sn²) for each row, where N is the normal density. [n]"""
    y, mean, std = _check_mixture(y, mean, std)
    checked = check_mixture_weights(weights, len(mean))
    exponents = -0.5 * ((y - mean) / std) ** 2 - np.log(std)
    total = logsumexp(exponents, axis=0) - np.log(len(mean)) if checked is None else logsumexp(exponents, axis=0, b=checked[:, None])
    return total - 0.5 * np.log(2 * np.pi)


def distribution_at(y: Array, mean: Array, std: Array, weights: Array | None = None) -> Array:
    """Return the predicted distribution function at each target, Σ_s w_s Φ((y_n − μ_sn) / σ_sn). From [n], [S, n], [S, n] to [n]

    It is uniform over rows where predictions can be believed.
    """
    return average(ndtr((y - mean) / std), weights)


def mixture_moments(mean: Array, std: Array, weights: Array | None = None) -> tuple[Array, Array, Array]:
    """Return the mean of Σ_s w_s N(μ_s, σ_s²), and the two parts of its variance: Σ_s w_s σ_s² and Var_s μ_s. [n] each"""
    return average(mean, weights), average(std**2, weights), weighted_variance(mean, weights)


def average(values: Array, weights: Array | None) -> Array:
    """Return Σ_s w_s v_s over the first axis; None stands for equal weights."""
    return values.mean(axis=0) if weights is None else np.tensordot(weights, values, axes=1)


def weighted_variance(values: Array, weights: Array | None) -> Array:
    """Return Σ_s w_s (v_s − v̄)² over the first axis; None stands for equal weights."""
    return values.var(axis=0) if weights is None else average((values - average(values, weights)) ** 2, weights)


def component_weights(model: Any) -> Array | None:
    """Return the weights of the components that a model's `predict_draws` returns; None where they are equal. [S]"""
    return getattr(model, "component_weights", None)


def check_mixture_weights(weights: Any, n_components: int) -> Array | None:
    """Return the weights of components; raise ValueError unless they are as many, not negative, and sum to one."""
    if weights is None:
        return None
    checked = np.asarray(weights, dtype=np.float64)
    if checked.shape != (n_components,) or not (checked >= 0).all() or abs(checked.sum() - 1) > PROBABILITY_TOLERANCE:
        raise ValueError(f"weights must be {n_components} numbers, one for each component, not negative and with the sum one.")
    return checked


def negative_log_likelihood(y: Any, mean: Any, std: Any, *, weights: Any = None) -> float:
    """Return −(1/n) Σ_n log Σ_s w_s N(y_n; μ_sn, σ_sn²), in nats. It may be negative: densities exceed one."""
    return -float(log_density(y, mean, std, weights=weights).mean())


def continuous_ranked_probability_score(y: Any, mean: Any, std: Any, *, weights: Any = None) -> float:
    """Return (1/n) Σ_n ∫ (F_n(z) − 1[z ≥ y_n])² dz, in the unit of y, where F_n is the predicted distribution function of row n.

    For a mixture of S Gaussians with weights w it is (Grimit et al. 2006)

        Σ_s w_s A(y − μ_s, σ_s) − ½ Σ_{s,t} w_s w_t A(μ_s − μ_t, sqrt(σ_s² + σ_t²)),      A(m, σ) = E|N(m, σ²)|.

    A prediction without spread would score its absolute error |y − μ|.
    """
    y, mean, std = _check_mixture(y, mean, std)
    checked = check_mixture_weights(weights, len(mean))
    distance = average(_mean_absolute(y - mean, std), checked)
    blocks = row_blocks(len(y), max(1, PAIRS_AT_A_TIME // len(mean) ** 2))
    spread = np.concatenate([_mean_distance(mean[:, rows], std[:, rows], checked) for rows in blocks])
    return float((distance - spread / 2).mean())


def _mean_absolute(mean: Array, std: Array) -> Array:
    """Return A(m, σ) = E|N(m, σ²)| = 2σ φ(m/σ) + m (2Φ(m/σ) − 1), elementwise."""
    standard = mean / std
    return np.sqrt(2 / np.pi) * std * np.exp(-0.5 * standard**2) + mean * (2 * ndtr(standard) - 1)


def _mean_distance(mean: Array, std: Array, weights: Array | None) -> Array:
    """Return Σ_{s,t} w_s w_t A(μ_s − μ_t, sqrt(σ_s² + σ_t²)), the mean distance of two draws. From [S, n] to [n]"""
    distances = _mean_absolute(mean[:, None] - mean, np.hypot(std[:, None], std))
    return distances.mean(axis=(0, 1)) if weights is None else average(average(distances, weights), weights)


def interval_coverage(y: Any, intervals: Any) -> float:
    """Return (1/n) Σ_n 1[low_n ≤ y_n ≤ high_n] for intervals [n, 2], whose ends may be infinite."""
    y, intervals = np.asarray(y, dtype=np.float64), np.asarray(intervals, dtype=np.float64)
    if intervals.ndim != 2 or intervals.shape[1] != 2:
        raise ValueError(f"intervals must be [rows, 2], a lower and an upper end for each row, got shape {intervals.shape}.")
    _check_one_each(y, intervals, "intervals")
    low, high = intervals.T
    if not (low <= high).all():
        raise ValueError("Some intervals have an upper end that is NaN or below the lower end: put the lower end in the first column.")
    _check_finite("y", y)
    return float(((low <= y) & (y <= high)).mean())


def _check_mixture(y: Any, mean: Any, std: Any) -> tuple[Array, Array, Array]:
    """Return targets, means and standard deviations. [n], [S, n], [S, n]"""
    y, mean = _check_values(y, mean, "mean")
    y, std = _check_values(y, std, "std")
    if mean.shape != std.shape:
        raise ValueError(f"mean and std must have the same shape, one Gaussian for each number, got {mean.shape} and {std.shape}.")
    if not (std > 0).all():
        raise ValueError("std must be positive: a prediction without spread has no density; add the variance of the noise to it.")
    return y, mean, std


def _check_values(y: Any, prediction: Any, name: str) -> tuple[Array, Array]:
    """Return targets and predictions. [n], [S, n]"""
    y, prediction = np.asarray(y, dtype=np.float64), np.asarray(prediction, dtype=np.float64)
    if prediction.ndim not in (1, 2) or len(prediction) == 0:
        raise ValueError(f"{name} must be [rows] or [components, rows] with at least one number, got shape {prediction.shape}.")
    prediction = np.atleast_2d(prediction)
    _check_one_each(y, prediction.T, name)
    _check_finite("y", y)
    _check_finite(name, prediction)
    return y, prediction


def _check_finite(name: str, values: Array) -> None:
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has values that are NaN or infinite: leave such rows out.")
