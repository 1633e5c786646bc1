"""Choose rows one after the other so that what is uncertain lies near something labeled or chosen. Work and memory are linear in the rows.

The objective is that of k-medians with weights: of all rows j without a label, with distance d_j to the nearest labeled or chosen row,

    Σ_j w_j d_j

is to be small. A greedy choice comes within a constant factor of the best one (facility location is submodular). An outlier brings only
itself near, and is chosen late; a group of rows without any label brings all of its rows near, and is found early.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Places = NDArray[np.intp]

BLOCK_ROWS = 4096
"""Rows whose distances to all labeled ones are held at a time."""
MOST_JUDGED = 2000
"""Rows that say how much is gained, and rows among which one is chosen: of more, so many are drawn. Distances between the two are held."""
OUTLYING = 2.0
"""What a distance counts at most where nothing is labeled, in medians."""
MOST_AT_ONCE = 400
"""Rows that are chosen before others are drawn."""


class Nearest(NamedTuple):
    """For each row the nearest of some centers."""

    squared: Array
    """Squared distance to it; infinity where there is no center. [n]"""
    owner: Places
    """Its number; −1 where there is no center. [n]"""

    @classmethod
    def of(cls, Z: Array, centers: Array) -> Nearest:
        """Find the nearest center [c, D] of each row [n, D]."""
        found = cls(np.full(len(Z), np.inf), np.full(len(Z), -1, dtype=np.intp))
        if len(centers) == 0:
            return found
        for start in range(0, len(Z), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            squared = squared_distances(Z[block], centers)
            found.owner[block] = squared.argmin(axis=1)
            found.squared[block] = squared[np.arange(len(squared)), found.owner[block]]
        return found


class Chosen(NamedTuple):
    """Rows that were chosen, the best first."""

    places: Places
    """[k]"""
    n_near: Places
    """Open rows to which each is nearer than any labeled or other chosen one, itself among them. [k]"""


def squared_distances(Z: Array, centers: Array) -> Array:
    """Return |z_i − c|² = |z_i|² + |c|² − 2 z_iᵀc. [n, c]"""
    squared = Z @ centers.T
    squared *= -2
    squared += (Z**2).sum(axis=1)[:, None]
    squared += (centers**2).sum(axis=1)
    return np.maximum(squared, 0.0, out=squared)


def choose(Z: Array, weight: Array, is_open: Mask, centers: Array, n: int, rng: np.random.Generator) -> Chosen:
    """Choose the row that brings most weight nearer, again and again.

        i* = argmax_i Σ_j w_j max(0, d_j − |z_i − z_j|),      d_j = min over labeled and chosen rows c of |z_j − z_c|

    Only rows that are open may be chosen, and the sum is over open rows; of more than `MOST_JUDGED`, both are drawn: j evenly, i with
    probability ∝ w_i d_i. With no center, all distances are infinite at first, and count as twice the median between two rows: however far
    an outlier is, it counts for two rows. Where nothing can be gained, as among rows that are all alike, the first ones are taken.
    """
    is_free = is_open.copy()
    places: list[int] = []
    while len(places) < n:
        known = np.vstack([centers, Z[places]])
        places += _choose_some(Z, weight, is_free, known, min(n - len(places), MOST_AT_ONCE), rng)
        is_free[places] = False
    owner = Nearest.of(Z[is_open], np.vstack([centers, Z[places]])).owner - len(centers)
    return Chosen(np.array(places, dtype=np.intp), np.bincount(owner[owner >= 0], minlength=len(places)).astype(np.intp))


def _choose_some(Z: Array, weight: Array, is_free: Mask, centers: Array, n: int, rng: np.random.Generator) -> list[int]:
    """Choose rows one after the other, among those that are drawn once."""
    free = np.flatnonzero(is_free)
    distance = np.sqrt(Nearest.of(Z[free], centers).squared)
    judges = _drawn(len(free), None, rng)
    rivals = _drawn(len(free), weight[free] * np.where(np.isinf(distance), 1.0, distance), rng)
    between = np.sqrt(squared_distances(Z[free[rivals]], Z[free[judges]]))
    left = np.minimum(distance[judges], between.max() if len(centers) else OUTLYING * np.median(between))
    worth = weight[free[judges]]
    is_left = np.ones(len(rivals), dtype=bool)
    places: list[int] = []
    for _ in range(min(n, len(rivals))):
        gain = np.maximum(left - between, 0.0) @ worth
        best = int(np.where(is_left, gain, -np.inf).argmax())
        places.append(int(free[rivals[best]]))
        is_left[best] = False
        left = np.minimum(left, between[best])
    return places


def _drawn(n_rows: int, weight: Array | None, rng: np.random.Generator) -> Places:
    """Return the numbers of all rows, or of `MOST_JUDGED` that are drawn in proportion to their weights, in order."""
    if n_rows <= MOST_JUDGED:
        return np.arange(n_rows)
    if weight is None:
        return np.sort(rng.choice(n_rows, MOST_JUDGED, replace=False))
    # The largest of log(u) / w, u uniform, are a draw without replacement (Efraimidis and Spirakis 2006); rows without weight come last.
    with np.errstate(divide="ignore"):
        keys = np.log(rng.random(n_rows)) / np.maximum(weight, 0.0)
    return np.sort(np.argpartition(keys, n_rows - MOST_JUDGED)[n_rows - MOST_JUDGED :])
