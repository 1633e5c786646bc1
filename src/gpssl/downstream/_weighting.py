"""How far to believe each draw of each representation: prior weight times a power of the likelihood of the labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ._heads import folds_by_content

Array = NDArray[np.float64]

NEGLIGIBLE_SHARE = 1e-4
"""Members with less than this share of the weight are not evaluated at new rows."""
SMALLEST_PROBABILITY = 1e-3
"""What a label has at least where its likelihood comes from folds: a class may be missing from the labels that a fold is trained on."""

LogLikelihood = Callable[[Any, Array, NDArray[Any]], Array]
"""From heads, features Z [S, n, J] and labels [n] to the log likelihood of each label under each draw. [S, n]"""


class MemberShare(NamedTuple):
    """What the labels say about one representation."""

    name: str
    """What it is, in words."""
    share: float
    """Its share of the weight of all draws."""
    log_evidence: float
    """The log likelihood of the labels, averaged over its draws; NaN where draws have equal weights by request, and it was not computed."""
    effective_draws: float
    """How many equally weighted draws its draws are worth."""


def draw_weights(log_evidence: Sequence[Array], prior: Sequence[float], power: float) -> list[Array]:
    """Return w_ms ∝ π_m / S_m · p(y | f_ms)^β for the draws of each member; all together they sum to one. [S_m] each"""
    logs = [np.log(weight / len(values)) + power * values for values, weight in zip(log_evidence, prior, strict=True)]
    total = logsumexp(np.concatenate(logs))
    return [np.exp(values - total) for values in logs]


def member_shares(names: Sequence[str], weights: Sequence[Array], log_evidence: Sequence[Array]) -> list[MemberShare]:
    """Return the table of members, in their order."""
    return [
        MemberShare(name, float(own.sum()), float(logsumexp(values) - np.log(len(values))), effective_number(own))
        for name, own, values in zip(names, weights, log_evidence, strict=True)
    ]


def effective_number(weights: Array) -> float:
    """Return (Σ w)² / Σ w²: how many equal weights these are worth."""
    largest = weights.max()
    shares = weights / largest if largest > 0 else weights  # squares of tiny weights would vanish
    return float(shares.sum() ** 2 / (shares**2).sum()) if largest > 0 else 0.0


def evidence_of(
    heads: Any, refit: Callable[[NDArray[np.intp]], Any], Z: Array, y: NDArray[Any], weight: Array, log_likelihood: LogLikelihood
) -> Array:
    """Return the log evidence of the labels for each draw; for heads that have none, the log likelihood of labels held out in folds. [S]

    `refit` returns heads that are trained on some of the rows.
    """
    evidence = getattr(heads, "log_evidence", None)
    if evidence is not None:
        return np.asarray(evidence, dtype=np.float64)
    folds = folds_by_content(Z[0])
    if folds.max() == 0:
        return np.zeros(len(Z))
    total = np.zeros(len(Z))
    for fold in np.unique(folds):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if len(np.unique(y[train])) > 1:  # heads cannot be trained on labels that are all alike
            total += log_likelihood(refit(train), Z[:, test], y[test]) @ weight[test]
    return total
