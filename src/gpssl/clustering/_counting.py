"""How many clusters a draw has: the number whose clusters stand apart best; and whether a cloud without clusters does as well."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._kmeans import Clusterings, Labels, grown, squared_distances

Array = NDArray[np.float64]

N_CLOUDS = 8
"""Clouds without clusters that the rows are compared with."""
CLOUD_ROWS = 500
"""Rows of a cloud, at most: with more of them the shares differ less between clouds, and by nothing that decides."""
APART = 0.4
"""The silhouette from which on clusters stand apart."""
MANY = 0.7
"""Share of the largest number of clusters above which a preferred number says that there are none."""
SMALLEST = float(np.finfo(np.float64).tiny)
"""Distances and dispersions where all rows are the same."""


def preferred_numbers(draws: Array, most: int) -> tuple[Labels, Array]:
    """Return how many clusters each draw [S, n, J] prefers, from two to `most`, and their silhouette. [S] each

    It is the number K with the largest mean silhouette, by distances from centers (a to the row's own, b to the next):

        s_K = (1/n) Σ_n (b_n − a_n) / b_n
    """
    silhouettes = np.array([silhouette(draws, found) for found in grown(draws, most)[1:]])
    return 2 + silhouettes.argmax(axis=0), silhouettes.max(axis=0)


def show_no_clusters(draws: Array, numbers: Labels, silhouettes: Array, most: int, seed: int) -> NDArray[np.bool_]:
    """Return which draws [S, n, J] show no clusters, given the numbers that they prefer and the silhouettes of these. [S]

    They are like a cloud (`are_one_cloud`), and their clusters do not stand apart or are nearly as many as there may be, as the parts of a
    cloud are: three or more clusters that overlap can be like a cloud when they are cut in two, and still stand apart.
    """
    return are_one_cloud(draws, seed) & ((silhouettes < APART) | (numbers > MANY * most))


def are_one_cloud(draws: Array, seed: int) -> NDArray[np.bool_]:
    """Return which draws [S, n, J] show no clusters, by the gap statistic (Tibshirani, Walther and Hastie, 2001). [S]

    Two clusters leave a share W of the dispersion. There are none if that is no less than in clouds, which are uniform in a box along the
    principal axes of the draws:

        E log W(cloud) − log W(draw) ≤ sd(log W(cloud)) · sqrt(1 + 1/B)
    """
    clouds = clouds_like(draws, seed)
    in_cloud, in_draw = (np.log(_share_left(values, grown(values, 2)[1])) for values in (clouds, draws))
    return in_cloud.mean() - in_draw <= in_cloud.std() * np.sqrt(1 + 1 / N_CLOUDS)


def silhouette(draws: Array, clusterings: Clusterings) -> Array:
    """Return the mean silhouette of each draw, by distances from centers. [S]"""
    two = np.sqrt(np.partition(squared_distances(draws, clusterings.centers), 1, axis=2)[:, :, :2])
    return ((two[:, :, 1] - two[:, :, 0]) / np.maximum(two[:, :, 1], SMALLEST)).mean(axis=1)


def _share_left(draws: Array, clusterings: Clusterings) -> Array:
    """Return the dispersion within clusters as a share of that of all rows. [S]"""
    total = ((draws - draws.mean(axis=1, keepdims=True)) ** 2).sum(axis=2).mean(axis=1)
    return np.maximum(clusterings.dispersion, SMALLEST) / np.maximum(total, SMALLEST)


def clouds_like(draws: Array, seed: int) -> Array:
    """Return rows without clusters, uniform in a box with the variances of the draws along their principal axes. [B, n, J]"""
    centered = draws - draws.mean(axis=1, keepdims=True)
    covariance = np.matmul(centered.swapaxes(1, 2), centered).mean(axis=0) / draws.shape[1]
    widths = np.sqrt(12 * np.maximum(np.linalg.eigvalsh(covariance), 0.0))
    shape = (N_CLOUDS, min(draws.shape[1], CLOUD_ROWS), draws.shape[2])
    return (np.random.default_rng(seed).random(shape) - 0.5) * widths
