"""Whether the labels are like the other rows: predictions that are much less sure where no label is say that they are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from ._held_out import HeldOutClasses, HeldOutNumbers, effective_rows

Array = NDArray[np.float64]

FALSE_ALARMS = 0.01
"""The share of tables whose labels are a random sample that are taken for others, about."""
LEAST_DIFFERENCE = 0.05
"""The smallest difference between mean probabilities that matters."""
LEAST_RATIO = 1.5
"""The smallest ratio of standard deviations that matters, for numbers."""


@dataclass(frozen=True)
class Shift:
    """How sure predictions are of labels that were held out, and of rows without a label, where that cannot be by chance."""

    held_out: float
    """Mean probability of the predicted class at labels that were held out; for numbers, the typical standard deviation (geometric)."""
    others: float
    """The same, at rows without a label."""
    z: float
    """How many standard errors they are apart."""


def find_shift(held_out: HeldOutClasses | HeldOutNumbers, others: Array, weight: Array | None = None) -> Shift | None:
    """Return the shift between labeled rows and others; None where there is none, or none that can be told from chance.

    `others` are the certainties of rows without a label: probabilities of the predicted class, or standard deviations. If the labeled rows
    are a random sample, both sets of certainties c have the same distribution, but that the models which judge held-out labels have
    seen fewer of them and are less sure, which makes the comparison careful. With the variance of all certainties together,

        z = (mean c at held-out labels − mean c at the others) / sqrt(Var c · (1 / n labels + 1 / n others))

    is about Student's with n labels − 1 degrees of freedom. Rows of a group count as fewer (`effective_rows`), labeled and others alike. A
    shift needs z above the quantile at 99 %, and means that differ by what matters: 5 % in probability, for numbers standard deviations
    that are 1.5 times as large, where c = −log std.

    With the weights of labeled rows [n] (`compare_with_others`), there is none if their weighted mean differs by less than what matters:
    then it is known of which rows there are too many labels.
    """
    is_class = isinstance(held_out, HeldOutClasses)
    known, n_known = _known_certainties(held_out)
    if n_known < 2 or len(others) < 2:
        return None
    unknown = others if is_class else _log_precision(others)
    n_unknown = len(unknown) * n_known / len(known)
    together = np.concatenate([known, unknown])
    difference = float(known.mean() - unknown.mean())
    error = float(together.std() * np.sqrt(1 / n_known + 1 / n_unknown))
    matters = LEAST_DIFFERENCE if is_class else np.log(LEAST_RATIO)
    if difference < matters or difference <= stdtrit(n_known - 1, 1 - FALSE_ALARMS) * error:
        return None
    if weight is not None and np.average(known, weights=_judged(held_out, weight)) - unknown.mean() < matters:
        return None
    means = (known.mean(), unknown.mean()) if is_class else (np.exp(-known.mean()), np.exp(-unknown.mean()))
    return Shift(float(means[0]), float(means[1]), difference / error)


def _known_certainties(held_out: HeldOutClasses | HeldOutNumbers) -> tuple[Array, float]:
    """Return how sure the predictions of held-out labels are, and how many of these are independent."""
    if isinstance(held_out, HeldOutNumbers):
        return _log_precision(held_out.std), len(held_out.std)
    certainty = _judged(held_out, held_out.certainty)
    return certainty, len(certainty) if held_out.groups is None else effective_rows(certainty, _judged(held_out, held_out.groups))


def _judged(held_out: HeldOutClasses | HeldOutNumbers, values: NDArray[Any]) -> NDArray[Any]:
    """Return the values of labels that a model could judge."""
    is_judged = held_out.is_judged if isinstance(held_out, HeldOutClasses) else None
    return values if is_judged is None else values[is_judged]


def _log_precision(std: Array) -> Array:
    """Return −log std, finite also where a model is sure beyond double precision."""
    return -np.log(np.maximum(std, np.finfo(np.float64).tiny))
