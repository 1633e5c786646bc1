"""K-means of many draws of the same rows at once, from starts that depend on nothing random and on no order of the rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

MOST_STEPS = 100
"""Steps of Lloyd's algorithm, at most; it takes ten to thirty."""


class Clusterings(NamedTuple):
    """A clustering of each of S draws, into K clusters."""

    labels: Labels
    """The cluster of each row. [S, n]"""
    centers: Array
    """[S, K, J]"""
    dispersion: Array
    """Mean squared distance of the rows from their centers. [S]"""

    def better_of(self, other: Clusterings) -> Clusterings:
        """Return for each draw the one of two clusterings that is the tighter."""
        is_worse = other.dispersion < self.dispersion
        return Clusterings(
            np.where(is_worse[:, None], other.labels, self.labels),
            np.where(is_worse[:, None, None], other.centers, self.centers),
            np.minimum(self.dispersion, other.dispersion),
        )


def grown(draws: Array, most: int) -> list[Clusterings]:
    """Return clusterings of each draw [S, n, J] into 1, 2, …, `most` clusters, each grown from the one before.

    The cluster that is longest, by its sum of squares along its principal axis, is cut across that axis at its mean, and k-means goes on
    from there. It ends about as low as the best of many random starts, and always at the same place.
    """
    found = [refined(draws, np.zeros(draws.shape[:2], dtype=np.intp), 1)]
    for new in range(1, most):
        labels = np.array([_with_one_cut(Z, own, new) for Z, own in zip(draws, found[-1].labels, strict=True)])
        found.append(refined(draws, labels, new + 1))
    return found


def _with_one_cut(Z: Array, labels: Labels, new: int) -> Labels:
    """Return the clusters of one draw with the longest of them cut in two. [n]"""
    members = [np.flatnonzero(labels == cluster) for cluster in range(new)]
    centered = [Z[rows] - Z[rows].mean(axis=0) if len(rows) else Z[rows] for rows in members]
    lengths, axes = np.linalg.eigh(np.array([own.T @ own for own in centered]))
    longest = int(lengths[:, -1].argmax())
    axis = axes[longest][:, -1]
    axis = axis * np.sign(axis[np.abs(axis).argmax()])  # which of the two directions a library returns is chance
    cut = labels.copy()
    cut[members[longest][centered[longest] @ axis > 0]] = new
    return cut


def refined(draws: Array, labels: Labels, n_clusters: int) -> Clusterings:
    """Return where Lloyd's algorithm ends for each draw [S, n, J], from these clusters [S, n].

    Rows go to the nearest center and centers to the mean of their rows, in turn, until nothing changes. A center without rows stays.
    """
    centers = _means(draws, labels, np.zeros((len(draws), n_clusters, draws.shape[2])))
    labels, distances = nearest(draws, centers)
    moving = np.arange(len(draws))  # draws that have not come to rest
    for _ in range(MOST_STEPS):
        centers[moving] = _means(draws[moving], labels[moving], centers[moving])
        moved, distances[moving] = nearest(draws[moving], centers[moving])
        is_moving = (moved != labels[moving]).any(axis=1)
        labels[moving] = moved
        moving = moving[is_moving]
        if len(moving) == 0:
            break
    return Clusterings(labels, centers, distances.mean(axis=1))


def _means(draws: Array, labels: Labels, otherwise: Array) -> Array:
    """Return the mean of the rows of each cluster, and another center where it has none. [S, K, J]"""
    member = (labels[:, None, :] == np.arange(otherwise.shape[1])[None, :, None]).astype(np.float64)
    counts = member.sum(axis=2)[:, :, None]
    return np.where(counts > 0, np.matmul(member, draws) / np.maximum(counts, 1), otherwise)


def nearest(draws: Array, centers: Array) -> tuple[Labels, Array]:
    """Return the nearest center of each row, and the squared distance from it. [S, n] each"""
    squared = squared_distances(draws, centers)
    labels = squared.argmin(axis=2)
    return labels, np.take_along_axis(squared, labels[:, :, None], axis=2)[:, :, 0]


def squared_distances(draws: Array, centers: Array) -> Array:
    """Return ‖z − c‖² of each row from each center. [S, n, K]"""
    squared = -2 * np.matmul(draws, centers.swapaxes(1, 2))
    squared += (draws**2).sum(axis=2)[:, :, None]
    squared += (centers**2).sum(axis=2)[:, None, :]
    return np.maximum(squared, 0.0, out=squared)
