"""The nearest of many rows, exactly: also between rows at the same distance, the answer depends on the row that is asked for alone."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..rows import row_blocks
from ..threads import map_on_threads

Array = NDArray[np.float64]

ROUNDING = 1e-12
"""Of ½|x|² and ½|r|²: by how much half a squared distance from inner products may be off."""
ROWS_AT_A_TIME = 256
PAIRS_AT_A_TIME = 65_536


class Neighbors(NamedTuple):
    """The nearest rows of each row that was asked for, nearest first."""

    places: NDArray[np.intp]
    """[n, k]"""
    distances: Array
    """[n, k]"""


class NearestRows:
    """Rows in which to search.

    Inner products, which are fast, tell which rows may be among the nearest; those are measured again by differences. Without that, rows
    at nearly the same distance would be chosen by rounding errors, which depend on what else is asked for at the same time: no kernel
    could be built on it. Among rows at the same distance, the first ones count as nearer.
    """

    def __init__(self, rows: Array) -> None:
        self.rows = rows

    @cached_property
    def _centered(self) -> tuple[Array, Array, Array]:
        center = np.median(self.rows, axis=0)  # one row far out would shift the mean away from all others
        centered = self.rows - center
        return center, centered, 0.5 * (centered**2).sum(axis=1)

    def search(self, X: Array, k: int) -> Neighbors:
        """The k nearest rows of each row of X, among which it may be itself."""
        places = np.empty((len(X), k), dtype=np.intp)
        distances = np.empty((len(X), k))
        self._centered  # noqa: B018  (the threads share it)

        def search_block(block: slice) -> None:
            places[block], distances[block] = self._search_block(X[block], k)

        map_on_threads(search_block, list(row_blocks(len(X), ROWS_AT_A_TIME)))
        return Neighbors(places, distances)

    def _search_block(self, X: Array, k: int) -> Neighbors:
        center, centered, half_norms = self._centered
        from_center = X - center
        # ½|x − r|² but for ½|x|², which is the same for all r.
        approximate = half_norms - from_center @ centered.T
        own, theirs = ROUNDING * (from_center**2).sum(axis=1), ROUNDING * half_norms
        limit = np.partition(approximate + theirs, k - 1, axis=1)[:, k - 1] + own
        row, place = np.nonzero(approximate - theirs <= limit[:, None])
        squared = self._squared_distances(X, row, place)
        order = np.lexsort((place, squared, row))
        first = np.searchsorted(row[order], np.arange(len(X)))
        nearest = order[first[:, None] + np.arange(k)]
        return Neighbors(place[nearest], np.sqrt(squared[nearest]))

    def _squared_distances(self, X: Array, row: NDArray[np.intp], place: NDArray[np.intp]) -> Array:
        """By differences, pair by pair: the same bits whatever else is asked for."""
        squared = np.empty(len(row))
        for pairs in row_blocks(len(row), PAIRS_AT_A_TIME):
            difference = X[row[pairs]] - self.rows[place[pairs]]
            squared[pairs] = (difference * difference).sum(axis=1)
        return squared
