"""What a model knows about predictions, from one evaluation of its drawn functions and their heads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from .._runtime.threads import map_on_threads
from .._validation import check_number
from ..evaluation._calibration import average, distribution_at, mixture_moments, weighted_variance

Array = NDArray[np.float64]

BISECTIONS = 45


class Uncertainty(NamedTuple):
    """The uncertainty of predictions and its two parts: total = head + representation. [n] each"""

    total: Array
    head: Array
    """What is left open when the representation is known: noise in the labels and, for a Bayesian head, its weights."""
    representation: Array
    """What is left open by not knowing the representation."""

    @classmethod
    def joined(cls, parts: Iterable[Uncertainty]) -> Uncertainty:
        """Join the uncertainties of consecutive parts of rows."""
        return cls(*(np.concatenate(values) for values in zip(*parts, strict=True)))


@dataclass(frozen=True)
class ClassDistribution:
    """The predicted distribution over K classes at each of n rows, averaged over draws."""

    classes: NDArray[Any]
    """The class labels, sorted. [K]"""
    proba: Array
    """Probability of each class. [n, K]"""
    proba_variance: Array | None
    """Variance of the probability of each class; None for a single representation whose head has no posterior. [n, K]"""
    uncertainty: Uncertainty
    """Entropy of the prediction, in nats, and its two parts."""

    @classmethod
    def of(cls, classes: NDArray[Any], proba: Array, of_heads: Array | None, weights: Array | None = None) -> ClassDistribution:
        """Return the average of each draw's probabilities; `of_heads` are their variances by the heads' posteriors. [S, n, K] each

        `weights` are those of the draws; None stands for equal ones. [S]
        """
        variance = None if len(proba) == 1 else weighted_variance(proba, weights)
        if of_heads is not None:
            variance = weighted_variance(proba, weights) + average(of_heads, weights)
        return cls(classes, average(proba, weights), variance, class_uncertainty(proba, weights))

    @classmethod
    def joined(cls, parts: Sequence[ClassDistribution]) -> ClassDistribution:
        """Join the distributions at consecutive parts of rows."""
        variances = [part.proba_variance for part in parts if part.proba_variance is not None]
        return cls(
            parts[0].classes,
            np.concatenate([part.proba for part in parts]),
            np.concatenate(variances) if variances else None,
            Uncertainty.joined(part.uncertainty for part in parts),
        )

    @property
    def proba_std(self) -> Array:
        """Standard deviation of the probability of each class. [n, K]"""
        if self.proba_variance is None:
            raise ValueError(
                "A single representation and a head without a posterior know no standard deviation of their probabilities. "
                "Raise n_draws, or use BayesianLogisticRegression."
            )
        return np.sqrt(self.proba_variance)

    @property
    def predicted(self) -> NDArray[Any]:
        """The most probable class. [n]"""
        return self.classes[self.proba.argmax(axis=1)]

    @property
    def certainty(self) -> Array:
        """The probability of the most probable class. [n]"""
        return self.proba.max(axis=1)

    @property
    def certainty_std(self) -> Array:
        """Standard deviation of the probability of the most probable class. [n]"""
        return np.take_along_axis(self.proba_std, self.proba.argmax(axis=1)[:, None], axis=1)[:, 0]


def class_uncertainty(proba: Array, weights: Array | None = None) -> Uncertainty:
    """Split the entropy of the prediction, as `MarginalizedClassifier.predict_uncertainty` says, from probabilities [S, n, K]."""
    total = entr(average(proba, weights)).sum(axis=1)
    head = average(entr(proba).sum(axis=2), weights)
    return Uncertainty(total, head, np.maximum(total - head, 0.0))


@dataclass(frozen=True)
class NumberDistribution:
    """The predicted distribution of a number at each of n rows: a mixture Σ_s w_s N(μ_s, σ_s²) over S draws.

    It holds the components of the mixture, 2 S numbers for each row: where rows are many, ask for it part by part.
    """

    mean: Array
    """Mean of the mixture. [n]"""
    uncertainty: Uncertainty
    """Variance of the mixture and its two parts: head Σ_s w_s σ_s², representation Var_s μ_s."""
    components: tuple[tuple[Array, Array], ...]
    """μ_s and σ_s for consecutive parts of the rows. [S, n part] each"""
    weights: Array | None = None
    """w, the weights of the draws; None stands for equal ones. [S]"""

    @classmethod
    def of(cls, means: Array, stds: Array, weights: Array | None = None) -> NumberDistribution:
        """Return the mixture of these components. [S, n] each"""
        mean, head, representation = mixture_moments(means, stds, weights)
        return cls(mean, Uncertainty(head + representation, head, representation), ((means, stds),), weights)

    @classmethod
    def joined(cls, parts: Sequence[NumberDistribution]) -> NumberDistribution:
        """Join the distributions at consecutive parts of rows."""
        return cls(
            np.concatenate([part.mean for part in parts]),
            Uncertainty.joined(part.uncertainty for part in parts),
            tuple(component for part in parts for component in part.components),
            parts[0].weights,
        )

    @property
    def std(self) -> Array:
        """Standard deviation, noise included, by the law of total variance. [n]"""
        return np.sqrt(self.uncertainty.total)

    @property
    def draws(self) -> tuple[Array, Array]:
        """Each draw's mean and standard deviation, μ_s and σ_s. [S, n] each"""
        means, stds = (np.concatenate(values, axis=1) for values in zip(*self.components, strict=True))
        return means, stds

    def interval(self, coverage: float = 0.9) -> Array:
        """Return the ends of the central interval that holds the number with this probability: quantiles of the mixture. [n, 2]"""
        check_number("coverage", coverage, Real, above=0, below=1)
        levels = ((1 - coverage) / 2, (1 + coverage) / 2)

        def ends(component: tuple[Array, Array]) -> Array:
            return np.column_stack([_mixture_quantile(*component, level, self.weights) for level in levels])

        return np.concatenate(map_on_threads(ends, self.components))


def _mixture_quantile(mean: Array, std: Array, probability: float, weights: Array | None) -> Array:
    """Return the quantile of Σ_s w_s N(mean_s, std_s²) for each column, by bisection. [n]"""
    low, high = (mean - 10 * std).min(axis=0), (mean + 10 * std).max(axis=0)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        below = distribution_at(middle, mean, std, weights) < probability
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2
