"""The nearest-neighbor Gaussian process: a process that depends on each row's neighbors alone, as a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import SuperLU, splu
from sklearn.gaussian_process.kernels import Kernel

from .._validation import check_number
from ..data._arrays import hash_rows, in_double_precision
from ..data._opening import open_rows
from ._neighbor_graph import NearestRows
from ._protocol import BlockKernel, CallByBlocks, kernel_diagonal, not_resolved, preparing_kernel, resolve_kernel
from .vectors import NeighborRBF, column_scale

Array = NDArray[np.float64]

JITTER = 1e-10
"""Of the prior variance, added to the covariance of a few neighbors."""
SMALLEST_SCALE = 1e-12
"""For the jitter where the kernel is zero."""


class NearestNeighborGP(Kernel):
    """The process of Datta et al. (2016), which the paper's section 2.3.1 names: a sparse stand-in for a process with a kernel k.

    The distinct training rows x_1, x_2, …, in an order of chance, are drawn one after the other, each given its K nearest among those
    before it; any other row is drawn given its K nearest of all of them:

        f(x) = b(x)ᵀ f(N(x)) + e(x),      b(x) = k(N, N)⁻¹ k(N, x),      Var e(x) = v(x) = k(x, x) − k(x, N) b(x)

    With B the rows b(x_i)ᵀ and V the variances v(x_i), its covariance at the training rows is C = (I − B)⁻¹ V (I − B)⁻ᵀ, and elsewhere

        k̃(x, y) = b(x)ᵀ C b(y) + v(x) if x and y are the same row

    With as many neighbors as rows it is k at the training rows. With few, it forgets what only distant rows tell, and rows between the
    training rows have noise of their own, v(x): it is rougher than k. It approximates k, so it is no better at few labels than k is; for
    those there is `NeighborDiffusion`.

    Parameters
    ----------
    n_neighbors
        K.
    kernel
        k. The default is `NeighborRBF()`.
    max_rows
        With more distinct rows than this, a sample of this size takes the place of the training rows.
    """

    def __init__(self, n_neighbors: int = 10, *, kernel: Kernel | None = None, max_rows: int = 2000) -> None:
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.max_rows = max_rows

    def resolve(self, X: Any, sample_weight: Array | None = None, seed: int = 0) -> NearestNeighborKernel:
        """The kernel with these rows as those that come first."""
        check_number("n_neighbors", self.n_neighbors, Integral, at_least=1)
        check_number("max_rows", self.max_rows, Integral, at_least=2)
        if self.kernel is not None and (preparing_kernel(self.kernel) is not None or not self.kernel.requires_vector_input):
            raise ValueError(
                f"NearestNeighborGP finds neighbors among vectors, but {self.kernel} is for other rows: pass a kernel for vectors."
            )
        rows = open_rows(X, sample_weight)
        base = resolve_kernel(NeighborRBF() if self.kernel is None else self.kernel, rows, seed)
        sample = rows.sample(self.max_rows, seed)
        scale = column_scale(sample.rows, sample.weight, per_column=True)
        return NearestNeighborKernel(base, sample.rows, scale, n_neighbors=min(int(self.n_neighbors), len(sample.rows)))

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> NoReturn:
        """An error: there are no rows yet."""
        raise not_resolved(self, "neighbors")

    def diag(self, X: Any) -> NoReturn:
        """An error: there are no rows yet."""
        raise not_resolved(self, "neighbors")

    def is_stationary(self) -> bool:
        """It depends on where the training rows are."""
        return False

    def __repr__(self) -> str:
        return f"NearestNeighborGP({self.n_neighbors!r}, kernel={self.kernel!r})"


class NearestNeighborKernel(CallByBlocks, Kernel):
    """What `NearestNeighborGP` becomes at `fit`: k, the rows that come first, and what one unit of distance is in each column."""

    def __init__(self, kernel: Kernel, rows: Array, scale: Array, *, n_neighbors: int) -> None:
        self.kernel = kernel
        self.rows = rows
        self.scale = scale
        self.n_neighbors = n_neighbors

    def block_kernel(self, points: Array) -> BlockKernel:
        """C b(u) for the points once; for each block of rows a search for neighbors and a sparse product."""
        of_points = self._given_neighbors(points)
        covariances = self._covariance_with(of_points.weights)
        own_hashes = hash_rows(points, 0)

        def fill(X: Array, out: Array) -> None:
            X = in_double_precision(X)
            of_rows = self._given_neighbors(X)
            out[...] = of_rows.weights @ covariances
            row, point = np.nonzero(hash_rows(X, 0)[:, None] == own_hashes)
            out[row, point] += of_rows.variance[row]

        return fill

    def diag(self, X: Any) -> Array:
        """b(x)ᵀ C b(x) + v(x). [n]"""
        given = self._given_neighbors(np.asarray(X, dtype=np.float64))
        shared = np.asarray(given.weights.multiply(self._covariance_with(given.weights).T).sum(axis=1)).ravel()
        return shared + given.variance

    def _covariance_with(self, weights: csr_array) -> Array:
        """C bᵀ for rows b. [rows, n]"""
        factor, variance = self._factor
        return factor.solve(variance[:, None] * factor.solve(weights.T.toarray(), trans="T"))

    @cached_property
    def _factor(self) -> tuple[SuperLU, Array]:
        """I − B, which is triangular and so its own factor, and V."""
        before = self._conditionals(self.rows, _nearest_before(self.rows / self.scale, self.n_neighbors))
        triangle = (eye_array(len(self.rows)) - before.weights).tocsc()
        return splu(triangle, permc_spec="NATURAL", diag_pivot_thresh=0.0), before.variance

    @cached_property
    def _nearest(self) -> NearestRows:
        return NearestRows(self.rows / self.scale)

    def __getstate__(self) -> dict[str, Any]:
        """Without what follows from the parameters."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_nearest", "_factor")}

    def _given_neighbors(self, X: Array) -> _Conditionals:
        return self._conditionals(X, list(self._nearest.search(X / self.scale, self.n_neighbors).places))

    def _conditionals(self, X: Array, neighbors: Sequence[NDArray[np.intp]]) -> _Conditionals:
        """b and v of each row, given those of the first rows that are its neighbors."""
        variance = kernel_diagonal(self.kernel, X)
        jitter = JITTER * max(float(variance.mean()), SMALLEST_SCALE)
        weights = []
        for row, places in enumerate(neighbors):
            near = self.rows[places]
            covariance = self.kernel(near) + jitter * np.eye(len(near)) if len(near) else np.empty((0, 0))
            cross = self.kernel(near, X[[row]])[:, 0] if len(near) else np.empty(0)
            weights.append(np.linalg.solve(covariance, cross))
            variance[row] = max(variance[row] - weights[-1] @ cross, 0.0)
        starts = np.cumsum([0, *map(len, neighbors)])
        indices = np.concatenate([np.empty(0, np.intp), *neighbors])
        data = np.concatenate([np.empty(0), *weights])
        return _Conditionals(csr_array((data, indices, starts), shape=(len(X), len(self.rows))), variance)

    def is_stationary(self) -> bool:
        """It depends on where the training rows are."""
        return False

    def __repr__(self) -> str:
        return f"NearestNeighborKernel({self.kernel!r}, {len(self.rows)} rows, n_neighbors={self.n_neighbors})"


class _Conditionals(NamedTuple):
    """Rows, given their neighbors."""

    weights: csr_array
    """b, in the columns of the neighbors. [n, rows]"""
    variance: Array
    """v. [n]"""


def _nearest_before(rows: Array, n_neighbors: int) -> list[NDArray[np.intp]]:
    """For each row, its nearest among those before it, nearest first."""
    return [
        NearestRows(rows[:place]).search(rows[[place]], min(n_neighbors, place)).places[0] if place else np.empty(0, np.intp)
        for place in range(len(rows))
    ]
