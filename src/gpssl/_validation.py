"""What estimators share: checks of numbers, weights, seeds and draws, with messages that say what to do; names of dimensions.

Rows are checked in `core._checked_rows`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf, isfinite
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_array, check_consistent_length, check_is_fitted

LARGEST_TOTAL_WEIGHT = 1e15


def check_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """Return one weight for each row. Raise ValueError where one is negative, or all are zero."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = _check_sample_weight(sample_weight, np.broadcast_to(0.0, (n_rows, 1)), dtype=np.float64, ensure_non_negative=True)
    if not weight.sum() < LARGEST_TOTAL_WEIGHT:
        raise ValueError(f"The sample weights sum to {weight.sum():.3g}. A weight counts rows; scale them down.")
    if not weight.sum() > 0:
        raise ValueError("All sample weights are zero: give at least some rows a positive weight.")
    return weight


def check_draws(Z: Any, y: Any, sample_weight: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the features of the same rows under each draw [S, n, J], and the rows' weights [n]. Raise ValueError unless y has n labels."""
    draws = check_array(Z, dtype=np.float64, allow_nd=True, ensure_2d=False)
    if draws.ndim != 3 or not draws.size:
        raise ValueError(f"Draws come as an array of shape [S, n, J], got {list(draws.shape)}.")
    check_consistent_length(draws[0], y)
    return draws, check_weights(sample_weight, draws.shape[1])


@contextmanager
def unchanged_on_failure(estimator: BaseEstimator) -> Iterator[None]:
    """Restore the attributes of an estimator when fitting it again fails. `fit` replaces them and never writes into them."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def seed_from(random_state: Any) -> int:
    """Return a whole number from whatever scikit-learn takes as a random state."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def check_number(
    name: str,
    value: Any,
    kind: type,
    *,
    at_least: float = -inf,
    above: float = -inf,
    at_most: float = inf,
    below: float = inf,
    otherwise: str = "",
) -> None:
    """Raise ValueError unless the value is a number of this kind and within the bounds."""
    is_number = isinstance(value, kind) and not isinstance(value, bool) and abs(value) < 1e300  # type: ignore[arg-type]
    if not (is_number and at_least <= value <= at_most and above < value < below):
        noun = "a whole number" if kind is Integral else "a number"
        bounds = {"of at least": at_least, "above": above, "at most": at_most, "below": below}
        within = " and ".join(f"{words} {bound}" for words, bound in bounds.items() if isfinite(bound))
        raise ValueError(f"{name} must be {noun} {within}{' ' if otherwise else ''}{otherwise}, got {value!r}.")


class NumberedDimensionsMixin:
    """Names of dimensions as the command writes them: the name of the estimator and a number from one, such as gpssl_1."""

    @property
    @abstractmethod
    def _n_features_out(self) -> int: ...

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002  (scikit-learn's)
        """Return the names of the dimensions; `input_features` is ignored. [J]"""
        check_is_fitted(self, "_n_features_out")
        return np.array([f"{type(self).__name__.lower()}_{number + 1}" for number in range(self._n_features_out)], dtype=object)
