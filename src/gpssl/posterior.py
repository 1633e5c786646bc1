"""The posterior over representation functions: mean, standard deviation, and functions drawn from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solve_triangular

from .features import Features, stable_cholesky
from .inference import Weights
from .kernels import kernel_diagonal
from .rows import hash_rows, in_double_precision, result_dtype, row_blocks
from .sources import Rows, open_rows
from .threads import map_on_threads

Array = NDArray[np.float64]

EXACT_ROWS = 2000
"""Rows at which the residuals of drawn functions are drawn jointly; see `FunctionDraws`."""


SMALLEST_SCALE = 1e-12
"""For the jitter at rows where the kernel is zero."""


@dataclass(frozen=True)
class Posterior:
    """f_j(x) = Σ_{a≤r} b_a(x) v_ja + (the prior along the other directions) + e_j(x),      b(x) = Qᵀ a(x).

    Away from the data b vanishes and f returns to the prior.
    """

    features: Features
    basis: Array
    """Q, the learnt directions. [M, r]"""
    weights: Weights

    def mean(self, X: NDArray[Any]) -> Array:
        """E f_j(x) = Σ_a b_a(x) E v_ja. [n, J]"""
        return self.features.project(X, self.basis @ self.weights.mean.T)

    def std(self, X: NDArray[Any]) -> Array:
        """sqrt(k(x, x) − Σ_a b_a(x)² + Var(Σ_a b_a(x) v_ja)). [n, J]"""
        out = np.empty((len(X), len(self.weights.mean)), dtype=result_dtype(X))
        directions = self.features.unwhiten(self.basis)
        self.features.columns(X[:1])  # builds what the threads share

        def fill(block: slice) -> None:
            projections = self.features.columns(X[block]) @ directions
            open_variance = kernel_diagonal(self.features.kernel, X[block]) - (projections**2).sum(axis=1)
            variance = np.maximum(open_variance, 0.0)[:, None] + self.weights.variance_along(projections)
            out[block] = np.sqrt(variance)

        map_on_threads(fill, list(row_blocks(len(X))))
        return out

    def draw_functions(self, n_draws: int, seed: int, prepare: Callable[[Any], Rows] = open_rows) -> FunctionDraws:
        """Functions drawn from the posterior, to be evaluated anywhere; `prepare` checks the rows they are given."""
        rng = np.random.default_rng(seed)
        learnt = self.weights.draw(n_draws, rng)
        n_components = learnt.shape[1]
        prior = rng.standard_normal((self.features.n_points, n_draws * n_components))
        change = learnt.reshape(n_draws * n_components, -1).T - self.basis.T @ prior
        directions = prior + self.basis @ change
        return FunctionDraws(self.features, directions, n_components, seed, prepare)


class FunctionDraws:
    """S functions with J outputs each: the same functions wherever, and in whatever batches, they are evaluated.

    f(x) = a(x)ᵀ c + e(x). The coefficients c are drawn once. The residual e, a GP with covariance k(x, y) − a(x)ᵀa(y), is drawn
    where it is looked at: jointly over the rows of a batch, given the values at all rows seen before, which are remembered. This
    is exact for any kernel, up to `EXACT_ROWS` distinct rows. Rows beyond them are still drawn given those, with the right mean and
    variance, but independently of each other: the same row keeps its value, and only the residual correlation among the rows
    beyond is neglected. Near the training data, where the residual is below the tolerance, that is next to nothing.
    """

    def __init__(
        self,
        features: Features,
        directions: Array,
        n_components: int,
        seed: int,
        prepare: Callable[[Any], Rows],
    ) -> None:
        self.n_draws = directions.shape[1] // n_components
        self.n_components = n_components
        self._prepare = prepare
        self._features = features
        self._directions = directions
        self._seed = seed
        self._rng = np.random.default_rng([seed, 1])
        self._known: dict[int, int] = {}
        self._n_settled: int | None = None
        self._rows: NDArray[Any] | None = None
        self._whitened = np.empty((features.n_points, 0))
        self._factor = np.empty((0, 0))
        self._noise = np.empty((0, directions.shape[1]))

    def __call__(self, X: Any) -> Array:
        """The value of every function at every row. [S, n, J]"""
        return self._prepare(X).map(self._evaluate, (self.n_draws, None, self.n_components))

    def _evaluate(self, rows: NDArray[Any]) -> Array:
        values = (self._features.project(rows, self._directions) + self._residual(rows)).astype(result_dtype(rows), copy=False)
        return values.reshape(len(rows), self.n_draws, self.n_components).swapaxes(0, 1)

    def settle(self) -> None:
        """From now on, `one_row_at_a_time` is given the rows seen so far and no others, whatever the functions are called with."""
        self._n_settled = len(self._known)

    def one_row_at_a_time(self, X: Any) -> Array:
        """The functions at each row by itself, given the rows that they were called with before; nothing is remembered. [S, n, J]

        e(x) = E[e(x) | known rows] + sqrt(Var[e(x) | known rows]) ζ with the same standard normal ζ for all rows: at each row the right
        distribution, jointly with the known rows. A row's value depends on its content alone, whatever else is asked and when, and similar
        rows have similar values. Two rows together are not a draw of the process: for that, call the functions.
        """
        return self._prepare(X).map(self._evaluate_one_row_at_a_time, (self.n_draws, None, self.n_components))

    def _evaluate_one_row_at_a_time(self, rows: NDArray[Any]) -> Array:
        values = self._features.project(rows, self._directions)
        noise = np.random.default_rng([self._seed, 2]).standard_normal(values.shape[1])
        for block in row_blocks(len(rows), 500):
            mean, std = self._given_known(rows[block], self._n_settled)
            values[block] += mean + std[:, None] * noise
        return values.reshape(len(rows), self.n_draws, self.n_components).swapaxes(0, 1)

    def _residual(self, X: NDArray[Any]) -> Array:
        """e at each row. [n, S J]"""
        hashes = hash_rows(X, self._seed)
        _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        # In the order of their hashes, so that the order of the rows in a batch does not matter.
        unseen = np.array([i for i in first if int(hashes[i]) not in self._known], dtype=int)
        room = max(0, EXACT_ROWS - len(self._known))
        for chunk in np.split(unseen[:room], range(500, len(unseen[:room]), 500)):
            self._look_at(X[chunk], hashes[chunk])
        beyond = unseen[room:]
        places = np.array([self._known.get(int(value), -1) for value in hashes[first]])
        out = np.empty((len(first), self._noise.shape[1]))
        out[places >= 0] = self._factor[places[places >= 0]] @ self._noise
        if len(beyond) > 0:
            out[inverse[beyond]] = self._beyond(X[beyond], hashes[beyond])
        return out[inverse]

    def _look_at(self, X: NDArray[Any], hashes: NDArray[np.uint64]) -> None:
        """Add rows to those at which the residual is known jointly: grow the factor of its covariance by a block."""
        if len(X) == 0:
            return
        X = in_double_precision(X)
        whitened = self._features.whitened(X)
        covariance = np.asarray(self._features.kernel(X), dtype=np.float64) - whitened.T @ whitened
        given = self._given(X, whitened)
        scale = max(float(kernel_diagonal(self._features.kernel, X).mean()), SMALLEST_SCALE)
        try:
            corner, _ = stable_cholesky(covariance - given.T @ given, scale)
        except LinAlgError:
            raise ValueError(
                f"The kernel {self._features.kernel} is not positive semi-definite on these rows, so no function can be drawn there. "
                "Choose another kernel, or other parameters for this one."
            ) from None
        n_old, n_new = len(self._factor), len(X)
        factor = np.zeros((n_old + n_new, n_old + n_new))
        factor[:n_old, :n_old], factor[n_old:, :n_old], factor[n_old:, n_old:] = self._factor, given.T, corner
        self._factor = factor
        self._noise = np.vstack([self._noise, self._rng.standard_normal((n_new, self._noise.shape[1]))])
        self._rows = X.copy() if self._rows is None else np.concatenate([self._rows, X])
        self._whitened = np.hstack([self._whitened, whitened])
        self._known.update({int(value): n_old + i for i, value in enumerate(hashes)})

    def _given(self, X: NDArray[Any], whitened: Array, n_known: int | None = None) -> Array:
        """Covariance of the residual at X with the independent noise behind the (first) known rows. [n known, n]"""
        if self._rows is None or n_known == 0:
            return np.empty((0, len(X)))
        cross = np.asarray(self._features.kernel(self._rows[:n_known], X), dtype=np.float64) - self._whitened[:, :n_known].T @ whitened
        return solve_triangular(self._factor[:n_known, :n_known], cross, lower=True, check_finite=False)

    def _given_known(self, X: NDArray[Any], n_known: int | None = None) -> tuple[Array, Array]:
        """Mean [n, S J] and standard deviation [n] of the residual at each row, given its values at the (first) known rows."""
        X = in_double_precision(X)
        whitened = self._features.whitened(X)
        given = self._given(X, whitened, n_known)
        variance = self._features.residual_variance(X, whitened) - (given**2).sum(axis=0)
        return given.T @ self._noise[:n_known], np.sqrt(np.maximum(variance, 0.0))

    def _beyond(self, X: NDArray[Any], hashes: NDArray[np.uint64]) -> Array:
        """Residuals given the known rows, each with noise that depends on its own content alone."""
        out = np.empty((len(X), self._noise.shape[1]))
        for block in row_blocks(len(X), 500):
            mean, std = self._given_known(X[block])
            noise = [np.random.default_rng([self._seed, int(value)]).standard_normal(out.shape[1]) for value in hashes[block]]
            out[block] = mean + std[:, None] * np.array(noise)
        return out
