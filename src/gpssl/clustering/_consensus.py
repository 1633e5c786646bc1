"""What many clusterings of the same rows agree on: clusters are matched, since their numbers mean nothing, and counted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ._kmeans import Labels

Array = NDArray[np.float64]

MOST_ROUNDS = 50
"""Rounds of matching, at most: each raises the agreement, and after a few nothing changes."""
CHANGE = 1e-12


def aligned(labels: Any, reference: Any) -> Labels:
    """Return a clustering with its clusters numbered so that it agrees best with a reference. [n]

    The Hungarian algorithm finds the permutation π with the largest Σ_n P[n, π(c_n)]: the rows on which both agree or, where the
    reference P is probabilities of clusters [n, K], the expected number of them.

    Parameters
    ----------
    labels
        The cluster of each row, numbered from 0 to K − 1. [n]
    reference
        Clusters of the same rows, numbered likewise, [n]; or the probability of each cluster. [n, K]

    Examples
    --------
    >>> from gpssl.clustering import aligned
    >>> aligned([0, 0, 1, 2, 2], [2, 2, 0, 1, 1]).tolist()
    [2, 2, 0, 1, 1]
    """
    labels, reference = np.asarray(labels, dtype=np.intp), np.asarray(reference)
    if reference.ndim == 1:
        reference = np.eye(max(int(reference.max()), int(labels.max())) + 1)[reference.astype(np.intp)]
    if len(labels) != len(reference):
        raise ValueError(f"There are clusters of {len(labels)} rows, and a reference of {len(reference)}: give both for the same rows.")
    return permutation(labels, reference)[labels]


def permutation(labels: Labels, reference: Array) -> Labels:
    """Return the number that each cluster gets, by the best agreement with probabilities of clusters [n, K]. [K]"""
    n_clusters = reference.shape[1]
    together = np.array([np.bincount(labels, weights=column, minlength=n_clusters) for column in reference.T]).T
    return linear_sum_assignment(together, maximize=True)[1]


def agreement(clusterings: Any) -> Array:
    """Return how often two clusterings treat a pair of rows alike, together in both or in neither, for all pairs: Rand indices. [S, S]

    Parameters
    ----------
    clusterings
        The cluster of each row, numbered from 0, in each clustering. [S, n]
    """
    labels = np.asarray(clusterings, dtype=np.intp)
    n_clusters, n_rows = int(labels.max()) + 1, labels.shape[1]
    n_pairs = n_rows * (n_rows - 1) / 2
    together = np.array([[_pairs(one * n_clusters + other) for other in labels] for one in labels])
    own = np.diag(together)
    return 1 - (own[:, None] + own[None] - 2 * together) / max(n_pairs, 1)


def _pairs(labels: Labels) -> float:
    """Return the number of pairs of rows with the same label."""
    counts = np.bincount(labels).astype(np.float64)
    return float((counts * (counts - 1)).sum() / 2)


def most_central(clusterings: Labels) -> int:
    """Return which clustering agrees most with the others."""
    return int(agreement(clusterings).mean(axis=1).argmax())


def consensus(clusterings: Labels, n_clusters: int, reference: Labels) -> tuple[Array, Labels]:
    """Return the probability of each cluster for each row [n, K], and the number that each cluster of each clustering gets [S, K].

    P = (1/S) Σ_s onehot(π_s(c_s)), each π_s the best permutation for P: the soft partition with the least squared distance from all
    clusterings, as far as alternating between P and π finds it (Dimitriadou, Weingessel and Hornik, 2002).
    """
    rows = np.arange(clusterings.shape[1])
    proba = np.eye(n_clusters)[reference]
    for _ in range(MOST_ROUNDS):
        numbers = np.array([permutation(labels, proba) for labels in clusterings])
        renewed = np.zeros_like(proba)
        for labels, number in zip(clusterings, numbers, strict=True):
            renewed[rows, number[labels]] += 1 / len(clusterings)
        change = np.abs(renewed - proba).max()
        proba = renewed
        if change < CHANGE:
            break
    return proba, numbers
