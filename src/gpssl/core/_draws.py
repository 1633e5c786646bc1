"""Functions drawn from the posterior: the same ones wherever, and with whatever other rows, they are evaluated."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import Tags, TargetTags

from .._runtime.threads import map_on_threads, one_blas_thread
from ..data._arrays import hash_normals, hash_rows, in_double_precision, result_dtype, row_blocks
from ..kernels._protocol import BlockKernel, block_kernel, kernel_diagonal
from ._checked_rows import check_new_rows
from ._features import Features, stable_cholesky
from ._fourier import FourierFeatures, fourier_features

Array = NDArray[np.float64]

EXACT_ROWS = 2000
"""Rows at which the residuals of drawn functions are drawn jointly; see `FunctionDraws`."""

N_FREQUENCIES = 1024
"""Frequencies of a path, for each term of the kernel; see `Path` for what they are worth."""

SMALLEST_SCALE = 1e-12
"""The scale of the jitter at rows where the kernel is zero."""


class FunctionDraws:
    """S functions with J outputs each: the same functions wherever, and with whatever other rows, they are evaluated.

    f(x) = a(x)ᵀ c + e(x). The coefficients c are drawn once. The residual e, a GP with covariance k(x, y) − a(x)ᵀa(y), is drawn
    where it is looked at: jointly over the rows of a call, given the values at all rows seen before, which are remembered. This
    is exact for any kernel, up to `EXACT_ROWS` distinct rows.

    The first call with too many rows freezes the rows known so far. They keep their values; all others, of this call and of later
    ones, are evaluated along a path (`Path`): a function written out for all rows at once, given the known rows, in which random Fourier
    features take the place of the kernel. Its mean is exact; the error of its variances and covariances is that of the features.

    Dask's rows are evaluated in any order and in any process, so they are never remembered: however few, they are evaluated along the path.

    Kernels without such features (`gpssl.core._fourier` has them for the stationary ones) have no path. There, rows beyond the known ones
    are drawn given those, with the right mean and variance, but independently of each other: the same row keeps its value, and only the
    residual correlation among the rows beyond is neglected.

    Rows come as in `GPSSL.transform`, and are checked against the columns that the model was fitted to; `gpssl.data.Rows` that have been
    checked are not checked again.
    """

    def __init__(self, features: Features, directions: Array, n_components: int, seed: int) -> None:
        self.n_draws = directions.shape[1] // n_components
        self.n_components = n_components
        self._features = features
        self._directions = directions
        self._seed = seed
        self._rng = np.random.default_rng([seed, 1])
        self._known = KnownRows.none(features, directions.shape[1])
        self._frozen = False
        self._outgrown = False
        self._settled: tuple[int, bool] | None = None
        self._locks: dict[int, Lock] = {}

    def __call__(self, X: Any) -> Any:
        """Return the value of every function at every row; lazily for Dask. [S, n, J]"""
        rows = check_new_rows(self, X, self.kernel)
        shape = (self.n_draws, None, self.n_components)
        if rows.are_deferred:
            self.freeze()
        elif not rows.come_at_once and not self._frozen:
            if len(self._known) + rows.count() <= EXACT_ROWS:
                return self._evaluate(np.concatenate([part.rows for part in rows.parts()]))
            with self._lock:
                self._frozen = self._outgrown = True  # for all rows of this call alike, and not after some parts
        return rows.map(self._evaluate, shape)

    def _evaluate(self, rows: NDArray[Any]) -> Array:
        hashes = hash_rows(rows, self._seed)
        with self._lock, one_blas_thread():
            if not self._frozen:
                self._remember(rows, hashes)
            known = self._known  # other threads may replace it; if these are not all known now, it is the last one
        places = known.places(hashes)
        is_known = places >= 0
        if is_known.all():
            return self._by_function(self._at_known(rows, known, places).astype(result_dtype(rows), copy=False))
        values = self._beyond(rows, hashes)
        if is_known.any():
            values[is_known] = self._at_known(rows[is_known], known, places[is_known])
        return self._by_function(values)

    def freeze(self) -> None:
        """Remember no further rows: copies of the functions, in other processes, stay the same functions whatever they are asked."""
        with self._lock:
            self._frozen = True

    def settle(self) -> None:
        """Let `one_row_at_a_time` condition on the rows seen so far and on no others, whatever the functions are called with later."""
        with self._lock:
            self._settled = (len(self._known), self._outgrown)

    def one_row_at_a_time(self, X: Any) -> Any:
        """Return the functions at each row by itself, given the rows that they were called with before; remember nothing. [S, n, J]

        e(x) = E[e(x) | known rows] + sqrt(Var[e(x) | known rows]) ζ with the same standard normal ζ for all rows: at each row the right
        distribution, jointly with the known rows. A row's value depends on its content alone, whatever else is asked and when, and similar
        rows have similar values. Two rows together are not a draw of the process: for that, call the functions.

        Functions that were called with more rows than they remember are evaluated along their path, which passes through those rows.
        """
        n_known, outgrown = self._settled or (len(self._known), self._outgrown)
        rows = check_new_rows(self, X, self.kernel)
        if outgrown and self._path is not None:
            return self(rows)
        return rows.map(partial(self._evaluate_one_row_at_a_time, n_known), (self.n_draws, None, self.n_components))

    def _evaluate_one_row_at_a_time(self, n_known: int, rows: NDArray[Any]) -> Array:
        noise = np.random.default_rng([self._seed, 2]).standard_normal((1, self._directions.shape[1]))
        return self._by_function(self._given_known(rows, lambda _: noise, n_known))

    @property
    def kernel(self) -> Kernel:
        """The kernel, which says what rows must look like."""
        return self._features.kernel

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn's check of rows that there are no labels."""
        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the path, which follows from the rest, and the locks; the rows and the noise to come fit each other."""
        with self._lock:
            state = {**self.__dict__, "_rng": deepcopy(self._rng)}
        return {name: value for name, value in state.items() if name not in ("_path", "_locks")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._locks = {}

    @property
    def _lock(self) -> Lock:
        """The lock of this process: one that another thread held while the process was forked would stay locked in the child."""
        return self._locks.setdefault(os.getpid(), Lock())

    def _by_function(self, values: Array) -> Array:
        """Return the values [n, S J] in the order [S, n, J]."""
        return values.reshape(len(values), self.n_draws, self.n_components).swapaxes(0, 1)

    # Rows that are remembered

    def _remember(self, X: NDArray[Any], hashes: NDArray[np.uint64]) -> None:
        """Draw the residual at the unseen rows if all of them fit."""
        # In the order of their hashes, so that the order of the rows in a call does not matter.
        _, first = np.unique(hashes, return_index=True)
        unseen = first[self._known.places(hashes[first]) < 0]
        if len(self._known) + len(unseen) > EXACT_ROWS:
            self._frozen = self._outgrown = True
            return
        for block in row_blocks(len(unseen), 500):
            self._look_at(X[unseen[block]], hashes[unseen[block]])

    def _look_at(self, X: NDArray[Any], hashes: NDArray[np.uint64]) -> None:
        """Add rows to those at which the residual is known jointly: grow the factor of its covariance by a block.

        Their residuals are `givenᵀ` ζ plus `corner` times their own noise.
        """
        X = in_double_precision(X)
        whitened = self._features.whitened(X)
        covariance = np.asarray(self._features.kernel(X), dtype=np.float64) - whitened.T @ whitened
        given = self._given(X, whitened)
        scale = max(float(kernel_diagonal(self._features.kernel, X).mean()), SMALLEST_SCALE)
        corner, jitter = stable_cholesky(covariance - given.T @ given, self._features.kernel, scale)
        known = self._known
        self._known = KnownRows(
            rows=np.concatenate([known.rows, X]),
            hashes=np.concatenate([known.hashes, hashes]),
            whitened=np.hstack([known.whitened, whitened]),
            factor=np.block([[known.factor, np.zeros_like(given)], [given.T, corner]]),
            jitter=np.concatenate([known.jitter, np.full(len(X), jitter * scale)]),
            noise=np.vstack([known.noise, self._rng.standard_normal((len(X), self._directions.shape[1]))]),
        )

    def _given(self, X: NDArray[Any], whitened: Array, n_known: int | None = None) -> Array:
        """Return the covariance of the residual at X with the independent noise behind the (first) known rows. [n known, n]"""
        known = self._known
        if len(known) == 0 or n_known == 0:
            return np.empty((0, len(X)))
        cross = np.asarray(self._features.kernel(known.rows[:n_known], X), dtype=np.float64) - known.whitened[:, :n_known].T @ whitened
        return solve_triangular(known.factor[:n_known, :n_known], cross, lower=True, check_finite=False)

    def _given_known(self, X: NDArray[Any], noise: Callable[[slice], Array], n_known: int | None = None) -> Array:
        """Return the functions at each row by itself, given the residual at the (first) known rows and a block's noise. [n, S J]"""
        values = self._features.project(X, self._directions)
        with one_blas_thread():
            for block in row_blocks(len(X), 500):
                rows = in_double_precision(X[block])
                whitened = self._features.whitened(rows)
                given = self._given(rows, whitened, n_known)
                variance = self._features.residual_variance(rows, whitened) - (given**2).sum(axis=0)
                mean, std = given.T @ self._known.noise[:n_known], np.sqrt(np.maximum(variance, 0.0))
                values[block] += mean + std[:, None] * noise(block)
        return values

    def _at_known(self, X: NDArray[Any], known: KnownRows, places: NDArray[np.intp]) -> Array:
        """Return the functions at rows that are remembered. [n, S J]"""
        return self._features.project(X, self._directions) + known.residuals[places]

    # Rows beyond

    @cached_property
    def _path(self) -> Path | None:
        """The path through the known rows. It is built once these are frozen, because that costs as much as a thousand rows."""
        with one_blas_thread():
            return Path.build(self._features, self._directions, self._known, np.random.default_rng([self._seed, 3]))

    def _beyond(self, X: NDArray[Any], hashes: NDArray[np.uint64]) -> Array:
        """Return the functions at rows that are not remembered. [n, S J]"""
        if self._path is not None:
            return self._path(X, hashes)
        # Each row has noise that depends on its own content alone.
        return self._given_known(X, lambda block: hash_normals(hashes[block], self._directions.shape[1]))


@dataclass(frozen=True)
class KnownRows:
    """The rows K at which residuals are remembered: e(K) = C ζ, with C Cᵀ their covariance."""

    rows: NDArray[Any]
    """K. [n, …]"""
    hashes: NDArray[np.uint64]
    whitened: Array
    """a(K). [M, n]"""
    factor: Array
    """C, lower triangular. [n, n]"""
    jitter: Array
    """What was added to the diagonal of the covariance. [n]"""
    noise: Array
    """ζ, for each function. [n, S J]"""

    @classmethod
    def none(cls, features: Features, n_functions: int) -> KnownRows:
        """Return no rows, as before the first call."""
        whitened, noise = np.empty((features.n_points, 0)), np.empty((0, n_functions))
        return cls(features.points[:0], np.empty(0, np.uint64), whitened, np.empty((0, 0)), np.empty(0), noise)

    @cached_property
    def residuals(self) -> Array:
        """e(K), for each function. [n, S J]"""
        with one_blas_thread():
            return self.factor @ self.noise

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the residuals, which follow from the rest."""
        return {name: value for name, value in self.__dict__.copy().items() if name != "residuals"}

    def __len__(self) -> int:
        return len(self.hashes)

    def places(self, hashes: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Return the position of each row among the known ones, −1 where it is not among them. [n]"""
        if len(self) == 0:
            return np.full(len(hashes), -1)
        order = np.argsort(self.hashes)
        nearest = order[np.minimum(np.searchsorted(self.hashes, hashes, sorter=order), len(self) - 1)]
        return np.where(self.hashes[nearest] == hashes, nearest, -1)


@dataclass(frozen=True)
class Path:
    """Functions for all rows at once, by pathwise conditioning (Wilson et al., 2020), which is Matheron's rule for functions.

    A prior function p(x) = φ(x)ᵀ w from Fourier features, w ~ N(0, I), has a residual g; given the values e(K) = C ζ at the known rows K,
    where C Cᵀ = Cov e(K), it becomes that of f:

        g(x) = p(x) − a(x)ᵀ L⁻¹ p(U)
        f(x) = a(x)ᵀ c + g(x) + Cov(e(x), e(K)) C⁻ᵀ (ζ − C⁻¹ g(K)) + ε(x)
             = k(x, U) L⁻ᵀ (c − L⁻¹ p(U) − a(K) v) + k(x, K) v + φ(x)ᵀ w + ε(x),      v = C⁻ᵀ (ζ − C⁻¹ g(K))

    with the white noise ε of the kernel, if it has any, from the row's hash. p(U) and g(K) have the noise that the jitter of L and C stands
    for. With φᵀφ = k this is the process itself; nothing is remembered, and a row costs F·(D + S J) operations, whatever was asked before.

    How far Var g(x) may be from k(x, x) − a(x)ᵀa(x), in units of k(x, x), is tested (`tests/core/test_fourier.py`): for RBF and Matern-3/2
    kernels in 2 columns 2e-4 at the data and 0.03 at rows up to five times as far out, for the default kernel in 30 columns 2e-4 and
    0.1. The error differs between seeds, has no bias, and falls as the number of frequencies grows.
    """

    features: Features
    fourier: FourierFeatures
    wave_weights: Array
    """w. [2F, S J]"""
    inducing_weights: Array
    """L⁻ᵀ (c − L⁻¹ p(U) − a(K) v). [M, S J]"""
    known_columns: BlockKernel | None
    """Fills in k(x, K)."""
    known_weights: Array
    """v. [n known, S J]"""

    @classmethod
    def build(cls, features: Features, directions: Array, known: KnownRows, rng: np.random.Generator) -> Path | None:
        """Condition a prior function on the known rows; return None for kernels without Fourier features."""
        points = features.points
        if points.ndim != 2 or points.dtype.kind != "f":
            return None
        fourier = fourier_features(features.kernel, points.mean(axis=0), N_FREQUENCIES, rng)
        if fourier is None:
            return None
        w = rng.standard_normal((fourier.n_features, directions.shape[1]))
        at_points = fourier(points) @ w + np.sqrt(features.jitter * fourier.variance) * rng.standard_normal(directions.shape)
        whitened = features.whiten(at_points)
        if len(known) == 0:
            return cls(features, fourier, w, features.unwhiten(directions - whitened), None, known.noise)
        noise = np.sqrt(fourier.nugget + known.jitter)[:, None] * rng.standard_normal(known.noise.shape)
        at_known = fourier(known.rows) @ w - known.whitened.T @ whitened + noise
        solve = partial(solve_triangular, known.factor, lower=True, check_finite=False)
        v = solve(known.noise - solve(at_known), trans="T")
        inducing_weights = features.unwhiten(directions - whitened - known.whitened @ v)
        return cls(features, fourier, w, inducing_weights, block_kernel(features.kernel, known.rows), v)

    def __call__(self, X: NDArray[Any], hashes: NDArray[np.uint64]) -> Array:
        """Return f at each row, block by block on threads. [n, S J]"""
        out = np.empty((len(X), self.wave_weights.shape[1]), dtype=result_dtype(X))
        weights = self.wave_weights.astype(out.dtype, copy=False)
        self.features.columns(X[:1])  # builds what the threads share

        def fill(block: slice) -> None:
            rows = X[block]
            # Known rows lie close to each other, so that their weights, and those of the inducing points, are large and opposite: they
            # would multiply rounding errors of single precision.
            columns_of = rows if self.known_columns is None else in_double_precision(rows)
            values = self.features.columns(columns_of) @ self.inducing_weights
            values += self.fourier(rows) @ weights
            if self.known_columns is not None:
                columns = np.empty((len(rows), len(self.known_weights)))
                self.known_columns(columns_of, columns)
                values += columns @ self.known_weights
            if self.fourier.nugget > 0:
                values += np.sqrt(self.fourier.nugget) * hash_normals(hashes[block], values.shape[1])
            out[block] = values

        map_on_threads(fill, list(row_blocks(len(X))))
        return out
