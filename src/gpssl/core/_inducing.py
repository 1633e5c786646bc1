"""Which rows become inducing points."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from ..data._arrays import in_double_precision, row_blocks
from ..data._rows import Rows
from ..kernels._protocol import block_kernel, check_finite_kernel, kernel_diagonal

MIN_CANDIDATES = 2048
CANDIDATES_PER_POINT = 4
PIVOTS_AT_A_TIME = 16
NUMERICALLY_ZERO = 1e-10
NUGGET_ROWS = 16
RESIDUAL_SLACK = 1.5
"""Of the tolerance, before a warning: where a sample of rows stands for all, it is met on the sample."""


class KernelSample(NamedTuple):
    """Candidate rows and what the kernel says of each alone."""

    rows: NDArray[Any]
    weight: NDArray[np.float64]
    prior_variance: NDArray[np.float64]
    """k(x, x). [n]"""
    nugget: NDArray[np.float64]
    """The part of k(x, x) that no other row shares, even an identical one (`WhiteKernel`). [n]"""
    complete: bool
    """Whether these are all distinct rows, or a sample of them."""


def n_candidates(n_points: int) -> int:
    """From how many distinct rows to choose so many points."""
    return max(MIN_CANDIDATES, CANDIDATES_PER_POINT * n_points)


def sample_candidates(kernel: Kernel, rows: Rows, n_points: int, seed: int) -> KernelSample:
    """Distinct rows from which to choose `n_points`: all of them while they are few, else a seeded sample."""
    limit = n_candidates(n_points)
    sample = rows.sample(limit, seed)
    prior_variance = kernel_diagonal(kernel, sample.rows)
    nugget = nugget_of_rows(kernel, sample.rows)
    return KernelSample(sample.rows, sample.weight, prior_variance, nugget, complete=len(sample.rows) < limit)


def nugget_of_rows(kernel: Kernel, rows: NDArray[Any]) -> NDArray[np.float64]:
    """k(x, x) less what a second evaluation at x shares with the first; zero for all where it is for the first rows. [n]"""
    nugget = np.zeros(len(rows))
    for block in row_blocks(len(rows), NUGGET_ROWS):
        few = in_double_precision(rows[block])
        own = kernel_diagonal(kernel, few)
        with np.errstate(all="ignore"):  # a sentence follows where the parameters make no sense
            covariance = np.asarray(kernel(few, few), dtype=np.float64)
        check_finite_kernel(kernel, covariance)
        nugget[block] = np.maximum(own - covariance.diagonal(), 0.0)
        if (nugget[block] <= NUMERICALLY_ZERO * own).all():
            nugget[block] = 0.0
            break
    return nugget


def choose_inducing_points(kernel: Kernel, candidates: KernelSample, *, n_points: int, tolerance: float) -> NDArray[np.intp]:
    """Pivoted Cholesky factorization: indices of the candidates to use, most informative first.

    With the points chosen so far, the residual variance of a row is d(x) = k(x, x) − |a(x)|². Each round adds rows of large d
    until the weighted mean of d is at most `tolerance` times that of k(x, x), or `n_points` are reached, or nothing is left:

        a_new(x) = L_new⁻¹ (k(P, x) − A_Pᵀ a(x)),      L_new L_newᵀ = k(P, P) − A_Pᵀ A_P,      d(x) ← d(x) − |a_new(x)|²

    P are up to sixteen pivots at a time, chosen greedily among the rows of largest d, so that the work is matrix
    products rather than one column after the other.
    """
    rows, weight, prior_variance, nugget, complete = candidates
    scale = float(weight @ prior_variance / weight.sum())
    if scale == 0:
        raise ValueError(f"The kernel {kernel} is zero on all rows: there is nothing to learn from. Choose another kernel.")
    n_points = min(n_points, len(rows))
    features = np.empty((len(rows), n_points))
    residual = prior_variance - nugget
    available = np.ones(len(rows), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < n_points:
        left = np.where(available, residual, 0.0)
        # The rows that were chosen are known exactly; in a sample they would make the others look better than they are.
        judged = weight if complete else weight * available
        if judged @ left <= max(tolerance, NUMERICALLY_ZERO) * scale * judged.sum():
            break
        done = len(chosen)
        pool = np.argsort(-left, kind="stable")[: 4 * PIVOTS_AT_A_TIME]
        pivots, factor = _choose_pivots(kernel, rows, features[:, :done], pool[left[pool] > 0], n_points - done)
        if len(pivots) == 0:
            break
        columns = np.empty((len(rows), len(pivots)))
        block_kernel(kernel, rows[pivots])(rows, columns)
        columns -= features[:, :done] @ features[pivots, :done].T
        # The pivots lie within a factor of two of each other, so this small inverse is harmless.
        new = columns @ solve_triangular(factor, np.eye(len(pivots)), lower=True).T
        features[:, done : done + len(pivots)] = new
        residual -= np.einsum("nb,nb->n", new, new)
        available[pivots] = False
        chosen.extend(pivots)
        _check_positive(kernel, residual[available], scale)
    if not chosen:
        raise ValueError(
            f"Under the kernel {kernel} no two rows have anything in common, so there is nothing to learn. Add a kernel that relates "
            "rows to each other, such as RBF."
        )
    return np.array(chosen, dtype=np.intp)


def _choose_pivots(
    kernel: Kernel, rows: NDArray[Any], features: NDArray[np.float64], pool: NDArray[np.intp], n_points: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Greedy pivoted Cholesky within the pool, while the pivots stay above half of the largest residual.

    Returns the pivots and the triangular factor of their residual covariance.
    """
    covariance = np.asarray(kernel(rows[pool], rows[pool]), dtype=np.float64) - features[pool] @ features[pool].T
    check_finite_kernel(kernel, covariance)
    n_pivots = min(PIVOTS_AT_A_TIME, n_points, len(pool))
    columns = np.zeros((len(pool), n_pivots))
    residual = covariance.diagonal().copy()
    threshold = 0.5 * residual.max()
    picked: list[int] = []
    for step in range(n_pivots):
        best = int(residual.argmax())
        if residual[best] < threshold or residual[best] <= 0:
            break
        columns[:, step] = (covariance[:, best] - columns[:, :step] @ columns[best, :step]) / np.sqrt(residual[best])
        residual -= columns[:, step] ** 2
        residual[best] = -np.inf
        picked.append(best)
    return pool[picked], np.tril(columns[picked][:, : len(picked)])


def _check_positive(kernel: Kernel, residual: NDArray[np.float64], scale: float) -> None:
    """A residual variance can only be negative by rounding, unless the kernel is no kernel."""
    if residual.min(initial=0.0) < -1e-6 * scale:
        raise ValueError(
            f"The kernel {kernel} is not positive semi-definite on these rows (a conditional variance came out as "
            f"{residual.min():.3g}). Choose another kernel, or other parameters for this one."
        )


def check_residual(residual: float, own: float, tolerance: float, n_points: int) -> None:
    """A warning where the points leave more open than they should, besides the rows' own part, which no point could explain."""
    if residual - own > RESIDUAL_SLACK * tolerance:
        warnings.warn(
            f"{n_points} inducing points leave {residual:.2g} of the prior variance open, more than "
            f"residual_tolerance={tolerance:g}: the losses are approximate. Raise max_inducing (or inducing), "
            "choose a longer lengthscale (a smaller neighborhood), or raise the tolerance if that is close enough.",
            UserWarning,
            stacklevel=4,
        )
