"""Archetypal analysis: the corners of a cloud of points, and each point as a mixture of them."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..threads import one_blas_thread
from .expression import fix_signs
from .packages import need

Array = NDArray[np.float64]

MAX_FITTED = 5_000
"""Points that archetypes are fitted to: of more, a sample. The time grows with their number, the corners hardly move."""

N_STARTS = 3
MAX_ITERATIONS = 60
TOLERANCE = 1e-5
"""Change of the unexplained variance, relative to the variance, below which an iteration is the last."""


class Archetypes(NamedTuple):
    """Corners of the cloud of points, in its leading principal components."""

    points: Array
    """The points themselves there, with mean square length 1. [n, D]"""
    corners: Array
    """[K, D]"""
    shares: Array
    """Each point as a mixture of the corners: non-negative, rows sum to 1. [n, K]"""

    def distances(self) -> Array:
        """From each point to each corner. [n, K]"""
        squared = (self.points**2).sum(axis=1)[:, None] - 2 * self.points @ self.corners.T + (self.corners**2).sum(axis=1)
        return np.sqrt(np.maximum(squared, 0.0))


def find_archetypes(scores: Array, n_archetypes: int, *, random_state: int) -> Archetypes:
    """Fit K archetypes to the rows of `scores` (Cutler and Breiman, 1994).

    min Σ_n ‖x_n − Σ_k a_nk c_k‖², with c_k = Σ_n b_kn x_n, over mixtures a_n of the corners and b_k of the points: the corners are
    themselves mixtures of points, so that they lie in the cloud and not somewhere beyond.

    K corners span K − 1 dimensions, so the x_n are the K − 1 leading principal components of the scores: the rest holds nothing that K
    corners could explain, only noise for them to run after.
    """
    points = _leading_components(scores, n_archetypes - 1)
    rng = np.random.default_rng(random_state)
    fitted = points[np.sort(rng.choice(len(points), MAX_FITTED, replace=False))] if len(points) > MAX_FITTED else points
    model = _archetypes().AA(
        n_archetypes,
        init="furthest_sum",
        n_init=N_STARTS,
        method="nnls",
        method_params={"max_iter_optimizer": 3 * len(fitted)},  # the package's own limit fails on some points
        max_iter=MAX_ITERATIONS,
        tol=TOLERANCE * len(fitted),  # the package compares sums over points
        random_state=random_state,
    )
    with one_blas_thread():
        model.fit(fitted)
        return Archetypes(points, np.asarray(model.archetypes_), np.asarray(model.transform(points)))


def _archetypes() -> Any:
    """The package, without the line about its backend that one of its dependencies prints."""
    with redirect_stdout(io.StringIO()):
        return need("archetypes")


def _leading_components(scores: Array, n_components: int) -> Array:
    """The leading principal components, with mean square length 1. [n, D]"""
    centered = scores - scores.mean(axis=0)
    size = np.sqrt((centered**2).sum(axis=1).mean())
    if not size > 0:
        raise ValueError("All spots have the same expression: there are no archetypes to find.")
    eigenvalues, vectors = np.linalg.eigh(centered.T @ centered / (len(centered) * size**2))
    leading = fix_signs(vectors[:, ::-1][:, :n_components])
    return centered @ leading / (size * np.sqrt(eigenvalues[::-1][:n_components].sum()))
