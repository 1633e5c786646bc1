"""Choose rows one after the other by their distances to what is labeled or chosen already. Work and memory are linear in the rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.intp]

BLOCK_ROWS = 4096
"""Rows whose distances to all labeled ones are held at a time."""
N_TRIALS = 48
"""Rows among which the one is chosen that covers most."""
REFERENCE_ROWS = 4000
"""Rows that say how much is covered: of more, so many are drawn."""


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
        norms = (centers**2).sum(axis=1)
        for start in range(0, len(Z), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            part = norms - 2 * Z[block] @ centers.T
            found.owner[block] = part.argmin(axis=1)
            nearest = part[np.arange(len(part)), found.owner[block]]
            found.squared[block] = np.maximum((Z[block] ** 2).sum(axis=1) + nearest, 0.0)
        return found

    def add(self, Z: Array, center: Array, number: int) -> None:
        """Take one more center into account: d_i² ← min(d_i², |z_i − c|²)."""
        squared = squared_distances(Z, center)
        is_nearer = squared < self.squared
        self.squared[is_nearer] = squared[is_nearer]
        self.owner[is_nearer] = number


class Chosen(NamedTuple):
    """Rows that were chosen, best first."""

    places: Places
    """[k]"""
    distance: Array
    """Distance to what was labeled or chosen before; infinity where there was nothing. [k]"""
    n_near: Places
    """Candidates to which this row is nearer than any labeled or chosen one, itself among them. [k]"""


def squared_distances(Z: Array, center: Array) -> Array:
    """Return |z_i − c|² for all rows. [n]"""
    difference = Z - center
    return np.einsum("ij,ij->i", difference, difference)


def choose_informative(Z: Array, weight: Array, is_open: NDArray[np.bool_], centers: Array, n: int) -> Chosen:
    """Choose the row of the largest weight times distance, again and again.

        i* = argmax_i w_i d_i,      d_i = min over labeled and chosen rows c of |z_i − z_c|

    Only rows that are open may be chosen. With no center at all, the first is the one of the largest weight.
    """
    nearest = Nearest.of(Z, centers)
    first = len(centers)
    places, distances = [], []
    is_free = is_open.copy()
    for number in range(n):
        distance = np.sqrt(nearest.squared)
        score = np.where(is_free, weight * np.where(np.isinf(distance), 1.0, distance), -np.inf)
        place = int(score.argmax())
        places.append(place)
        distances.append(float(distance[place]))
        is_free[place] = False
        nearest.add(Z, Z[place], first + number)
    return _counted(places, distances, nearest, is_open, first)


def choose_covering(Z: Array, is_open: NDArray[np.bool_], centers: Array, n: int, rng: np.random.Generator) -> Chosen:
    """Choose the row that brings all others nearest to a labeled or chosen one, again and again: outliers cover only themselves.

        i* = argmin_i Σ_j min(d_j, |z_j − z_i|)       among rows that are drawn with probability ∝ d_i

    The sum is over at most `REFERENCE_ROWS` rows.
    """
    nearest = Nearest.of(Z, centers)
    first = len(centers)
    places, distances = [], []
    is_free = is_open.copy()
    reference = np.arange(len(Z)) if len(Z) <= REFERENCE_ROWS else np.sort(rng.choice(len(Z), REFERENCE_ROWS, replace=False))
    for number in range(n):
        distance = np.sqrt(nearest.squared)
        trials = _drawn(np.where(np.isinf(distance), 1.0, distance) * is_free, is_free, rng)
        uncovered = [float(np.minimum(distance[reference], np.sqrt(squared_distances(Z[reference], Z[one]))).sum()) for one in trials]
        place = int(trials[int(np.argmin(uncovered))])
        places.append(place)
        distances.append(float(distance[place]))
        is_free[place] = False
        nearest.add(Z, Z[place], first + number)
    return _counted(places, distances, nearest, is_open, first)


def _drawn(weight: Array, is_free: NDArray[np.bool_], rng: np.random.Generator) -> Places:
    """Return rows that are free, drawn with probabilities proportional to their weights; all where they are few."""
    free = np.flatnonzero(is_free)
    total = weight[free].sum()
    if len(free) <= N_TRIALS or not total > 0:
        return free[:N_TRIALS]
    steps = np.cumsum(weight[free])
    found = np.searchsorted(steps, rng.random(N_TRIALS) * steps[-1])
    return free[np.unique(np.minimum(found, len(free) - 1))]


def _counted(places: list[int], distances: list[float], nearest: Nearest, is_open: NDArray[np.bool_], first: int) -> Chosen:
    owners = nearest.owner[is_open]
    counts = np.bincount(owners[owners >= first] - first, minlength=len(places))
    return Chosen(np.array(places, dtype=np.intp), np.array(distances), counts.astype(np.intp))
