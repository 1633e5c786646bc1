"""Which predictions to keep so that few of them are wrong on average: conformal selection.

Notation is that of `_selective.py`: the certainty κ of a row is its largest probability. Calibration rows i = 1 … n have labels, new rows
j = 1 … m have none.
"""

from __future__ import annotations

import warnings
from math import ceil
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_number, check_weights
from ._selective import errors_and_certainty

Array = NDArray[np.float64]

ROUNDING = 1e-12
"""Relative error that sums of weights may have."""


def average_risk_threshold(
    y: Any,
    proba: Any,
    new_certainty: Any,
    max_risk: float,
    *,
    labels: Any = None,
    sample_weight: Any = None,
    new_weight: Any = None,
) -> float:
    """Return the lowest threshold t found for which at most `max_risk` of the new rows with certainty > t are wrong, on average.

    On average over repetitions of calibration and new rows, where a repetition that keeps nothing has no error. For a promise that holds in
    most repetitions take `risk_controlled_threshold`, which needs several times as many labels.

    This is conformal selection (Jin and Candès 2023) of predictions that are right. The hypothesis "the prediction of new row j is wrong"
    has the p-value

        p(κ) = (Σ_i w_i 1[i is wrong] 1[κ_i ≥ κ] + ŵ(κ)) / (Σ_i w_i + ŵ(κ))      at κ = κ_j

    and the procedure of Benjamini and Hochberg keeps the rows with κ_j ≥ t* for the smallest t* with p(t*) ≤ α #{κ_j ≥ t*} / m, α being
    `max_risk`. Without weights w = ŵ = 1. If calibration and new rows are exchangeable under the classifier, p(κ_j) ≤ u and "j is wrong"
    hold together with probability at most u, and the share of wrong predictions among those kept is at most α on average, for any number
    of rows and any classifier. Rows of equal certainty are kept together.

    With weights w(x), the density of new rows over that of calibration rows, it holds where labels were drawn more often here than there
    (weighted conformal selection); ŵ(κ) is the mean weight of the new rows with κ_j ≥ κ. That mean stands for the weight of each row, so
    that one threshold serves all: this, and weights that are estimated, make the promise an approximate one.

    Parameters
    ----------
    y, proba
        Labels of the calibration rows, and their probabilities by a classifier that has not seen these labels.
    new_certainty
        The largest probability of each new row. [m]
    max_risk
        The largest share of wrong predictions among those that are kept, on average.
    labels
        All classes, in the order of the columns of `proba`; by default those in `y`.
    sample_weight, new_weight
        Weights w of calibration rows [n] and of new rows [m].

    Returns
    -------
    threshold
        For `predict_or_abstain`. −inf keeps every row. If no row can be kept, a warning says so, and inf abstains on every row.

    Examples
    --------
    >>> import numpy as np
    >>> from gpssl.evaluation import average_risk_threshold
    >>> y, certainty = np.ones(19), np.linspace(0.6, 0.9, 19)                # nineteen labels, all of them right
    >>> average_risk_threshold(y, np.column_stack([1 - certainty, certainty]), [0.7, 0.8, 0.95], max_risk=0.05, labels=[0, 1])
    -inf
    """
    check_number("max_risk", max_risk, Real, above=0, below=1)
    wrong, certainty = errors_and_certainty(y, proba, labels)
    new = np.asarray(new_certainty, dtype=np.float64)
    if new.ndim != 1 or len(new) == 0 or not np.isfinite(new).all():
        raise ValueError("Pass a finite certainty for each of at least one new row, such as predict_proba(X_new).max(axis=1).")
    weight, new_weight = check_weights(sample_weight, len(wrong)), check_weights(new_weight, len(new))
    steps, n_kept, mean_weight = _new_rows_from(new, new_weight)
    lost = _weight_from(steps, certainty[wrong], weight[wrong])
    p_values = (lost + mean_weight) / (weight.sum() + mean_weight)
    passed = p_values * len(new) <= max_risk * n_kept * (1 + ROUNDING)
    if not passed.any():
        warnings.warn(
            f"No prediction can be kept at the average risk {max_risk} by these {len(wrong)} rows, and inf abstains on every row. Give "
            f"more calibration rows (at least {labels_without_error(max_risk)}, enough only without an error) or a higher max_risk.",
            UserWarning,
            stacklevel=2,
        )
        return np.inf
    lowest = int(np.flatnonzero(passed)[0])
    return -np.inf if lowest == 0 else float(np.nextafter(steps[lowest], -np.inf))


def labels_without_error(max_risk: float) -> int:
    """Return the smallest n with 1 / (n + 1) ≤ α: with fewer labels, all of them right, not all predictions can be kept."""
    return ceil(1 / max_risk - 1 - ROUNDING)


def _new_rows_from(new: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return the distinct certainties t of new rows, rising, and of those with κ_j ≥ t the number and the mean weight. [T] each"""
    steps, place = np.unique(new, return_inverse=True)
    n_kept = np.bincount(place)[::-1].cumsum()[::-1].astype(np.float64)
    return steps, n_kept, np.bincount(place, weight)[::-1].cumsum()[::-1] / n_kept


def _weight_from(steps: Array, certainty: Array, weight: Array) -> Array:
    """Return Σ_i w_i 1[κ_i ≥ t] at each step t. [T]"""
    order = np.argsort(-certainty, kind="stable")
    falling, sums = -certainty[order], np.append(0.0, weight[order].cumsum())
    return sums[np.searchsorted(falling, -steps, side="right")]
