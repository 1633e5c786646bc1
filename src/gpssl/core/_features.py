"""Which rows become inducing points, and the whitened kernel features a(x) that they carry.

Here is the library's only jitter, and the Cholesky factorization that needs it.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from .._runtime.threads import map_on_threads, one_blas_thread
from ..data._arrays import hash_rows, in_double_precision, result_dtype, row_blocks
from ..data._rows import Rows
from ..kernels._protocol import BlockKernel, SelfDescribingKernel, block_kernel, check_finite_kernel, kernel_diagonal

Array = NDArray[np.float64]

MIN_CANDIDATES = 2048
CANDIDATES_PER_POINT = 4
"""Inducing points are chosen from at least so many distinct rows, and from so many for each point."""
PIVOTS_AT_A_TIME = 16
"""Points that are chosen between two updates of all residuals."""
NUMERICALLY_ZERO = 1e-10
"""A variance below this share of the prior variance is zero but for rounding."""
TIE = 1e-12
"""Residual variances that differ by less than this share of the prior variance are equal but for rounding."""
NUGGET_ROWS = 16
"""Rows of a block in which a kernel's nugget is looked for; where the first block has none, there is none."""
RESIDUAL_SLACK = 1.5
"""Multiple of the tolerance beyond which a warning is given: where a sample of rows stands for all, only the sample meets the tolerance."""
SMALLEST_SAFE_PIVOT = 1e-6
"""Fraction of the mean prior variance; see `Features.single_precision_is_safe`."""
FIRST_JITTER = 1e-8
JITTER_TRIES = 4
"""The jitter begins with this share of the mean prior variance and grows tenfold with each try, of which there are so many."""
LONGEST_TEXT = 100
"""Largest array whose numbers are written out to describe a kernel."""


@dataclass(frozen=True)
class Features:
    """The map x ↦ a(x) = L⁻¹ k(U, x), with Kuu = L Lᵀ.

    Under the prior, f(x) = a(x)ᵀ v + e(x) with v ~ N(0, I) and e a GP with covariance k(x, y) − a(x)ᵀ a(y).
    """

    kernel: Kernel
    points: NDArray[Any]
    """Inducing points U. [M, …]"""
    factor: Array
    """L, lower triangular. [M, M]"""
    jitter: float
    """What was added to the diagonal of Kuu, relative to its mean."""

    @classmethod
    def build(cls, kernel: Kernel, points: NDArray[Any]) -> Features:
        """Factorize the kernel matrix of the inducing points."""
        points = in_double_precision(points)
        # k(U, U) with both arguments, so that white noise, which no two evaluations share, stays out of it.
        covariance = np.asarray(kernel(points, points), dtype=np.float64)
        check_finite_kernel(kernel, covariance)
        return cls(kernel, points, *stable_cholesky(covariance, kernel))

    @cached_property
    def _fill(self) -> BlockKernel:
        return block_kernel(self.kernel, self.points)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the cached function, which can be neither pickled nor shared."""
        return {name: value for name, value in self.__dict__.copy().items() if name != "_fill"}

    @property
    def n_points(self) -> int:
        """M, the number of inducing points."""
        return len(self.points)

    @cached_property
    def fingerprint(self) -> str:
        """A text that is the same for the same kernel and inducing points, on any machine."""
        digest = hashlib.sha256(describe_kernel(self.kernel).encode())
        digest.update(hash_rows(self.points, seed=0).astype("<u8").tobytes())
        return digest.hexdigest()[:16]

    @cached_property
    def single_precision_is_safe(self) -> bool:
        """Whether k(x, U) may be computed in the precision of rows in single precision.

        Whitening divides by L, whose smallest diagonal entry is the standard deviation that the last inducing points add; rounding
        errors of 6e-8 are divided by it too.
        """
        return bool((self.factor.diagonal() ** 2).min() > SMALLEST_SAFE_PIVOT * (self.factor**2).sum() / self.n_points)

    def columns(self, X: NDArray[Any], out: Array | None = None) -> Array:
        """Return k(x, U) for a block of rows, before whitening. [n, M]"""
        if out is None:
            out = np.empty((len(X), self.n_points))
        self._fill(X if self.single_precision_is_safe else in_double_precision(X), out)
        return out

    def project(self, X: NDArray[Any], directions: Array) -> Array:
        """Return a(x)ᵀ d for each column d of `directions`, block by block on threads. [n, n directions]

        a(x)ᵀ d = k(x, U) L⁻ᵀ d: whitening the few directions is cheaper than whitening every row.
        """
        return self.combine(X, self.unwhiten(directions))

    def combine(self, X: NDArray[Any], weights: Array) -> Array:
        """Return k(x, U) w for each column w of `weights`, block by block on threads. [n, n weights]"""
        out = np.empty((len(X), weights.shape[1]), dtype=result_dtype(X))
        blocks = list(row_blocks(len(X)))
        if len(blocks) > 1:
            self.columns(X[:1])  # builds what the threads share

        def fill(block: slice) -> None:
            out[block] = self.columns(X[block]) @ weights

        map_on_threads(fill, blocks)
        return out

    def whiten(self, columns: Array) -> Array:
        """Return L⁻¹ c for each column c. [M, n]"""
        with one_blas_thread():
            return solve_triangular(self.factor, columns, lower=True, check_finite=False)

    def unwhiten(self, directions: Array) -> Array:
        """Return L⁻ᵀ d for each column d. [M, n]"""
        with one_blas_thread():
            return solve_triangular(self.factor, directions, lower=True, trans="T", check_finite=False)

    def whitened(self, X: NDArray[Any]) -> Array:
        """Return a(x) for each of a few rows: the result is dense. [M, n]"""
        return self.whiten(self.columns(X).T)

    def residual_variance(self, X: NDArray[Any], whitened: Array) -> Array:
        """Return k(x, x) − a(x)ᵀ a(x), the variance that the features leave open at rows whose a(x) are known. [n]"""
        return kernel_diagonal(self.kernel, X) - (whitened**2).sum(axis=0)


def stable_cholesky(covariance: Array, kernel: Kernel, scale: float | None = None) -> tuple[Array, float]:
    """Return the lower triangular L with L Lᵀ = covariance + jitter·scale·I, and the jitter.

    The scale is the mean of the diagonal unless given. Raise ValueError where no jitter helps: the kernel gives no covariance.
    """
    scale = float(covariance.diagonal().mean()) if scale is None else scale
    for attempt in range(JITTER_TRIES):
        jitter = FIRST_JITTER * 10**attempt
        try:
            shifted = covariance + (jitter * scale) * np.eye(len(covariance))
            return cholesky(shifted, lower=True, overwrite_a=True, check_finite=False), jitter
        except LinAlgError:
            continue
    raise ValueError(
        f"The kernel {kernel} is not positive semi-definite on these rows, even with {jitter:.0e} of its mean added to the diagonal. "
        "Choose another kernel, or other parameters for this one."
    )


def describe_kernel(value: Any) -> str:
    """Describe a kernel with all digits of its parameters, which its own `repr` rounds, and arrays by a digest of what they hold.

    A kernel with parameters that cannot be described like this has a method `describe`.
    """
    if isinstance(value, SelfDescribingKernel):
        return value.describe()
    if isinstance(value, Kernel):
        parameters = sorted(value.get_params(deep=False).items())
        return f"{type(value).__name__}({', '.join(f'{name}={describe_kernel(part)}' for name, part in parameters)})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(describe_kernel, value))}]"
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    if isinstance(value, np.ndarray) and value.size > LONGEST_TEXT:
        return f"{value.shape} {joblib.hash(value)}"
    return repr(np.asarray(value).tolist()) if np.ndim(value) or np.isscalar(value) or value is None else joblib.hash(value)


# Inducing points


class KernelSample(NamedTuple):
    """Candidate rows, and the kernel of each with itself."""

    rows: NDArray[Any]
    weight: Array
    prior_variance: Array
    """k(x, x). [n]"""
    nugget: Array
    """The part of k(x, x) that no other row shares, even an identical one (`WhiteKernel`). [n]"""
    complete: bool
    """Whether these are all distinct rows, or a sample of them."""


def n_candidates(n_points: int) -> int:
    """Return the number of distinct rows from which to choose so many points."""
    return max(MIN_CANDIDATES, CANDIDATES_PER_POINT * n_points)


def sample_candidates(kernel: Kernel, rows: Rows, n_points: int, seed: int) -> KernelSample:
    """Return the distinct rows from which to choose `n_points`: all of them while they are few, else a seeded sample."""
    limit = n_candidates(n_points)
    X, weight, _ = rows.sample(limit, seed)
    return KernelSample(X, weight, kernel_diagonal(kernel, X), nugget_of_rows(kernel, X), complete=len(X) < limit)


def nugget_of_rows(kernel: Kernel, rows: NDArray[Any]) -> Array:
    """Return k(x, x) minus k(x, x') for an equal row x'. If it is zero for the first rows, it is taken as zero for all. [n]"""
    nugget = np.zeros(len(rows))
    for block in row_blocks(len(rows), NUGGET_ROWS):
        few = in_double_precision(rows[block])
        own = kernel_diagonal(kernel, few)
        with np.errstate(all="ignore"):  # a check with a clear message follows
            covariance = np.asarray(kernel(few, few), dtype=np.float64)
        check_finite_kernel(kernel, covariance)
        nugget[block] = np.maximum(own - covariance.diagonal(), 0.0)
        if (nugget[block] <= NUMERICALLY_ZERO * own).all():
            nugget[block] = 0.0
            break
    return nugget


def inducing_limits(inducing: int | str | None, n_rows: int | None, at_most: int, tolerance: float) -> tuple[int, float]:
    """Return the largest number of inducing points, and the residual that makes fewer of them enough."""
    if inducing is None:
        return at_most, tolerance
    if not isinstance(inducing, str):
        return int(inducing), 0.0
    if n_rows is None:
        raise ValueError('inducing="all" needs the number of rows, which these partitions do not tell: give a number.')
    return n_rows, 0.0


def points_from_rows(kernel: Kernel, rows: Rows, n_points: int, tolerance: float, seed: int) -> NDArray[Any]:
    """Return inducing points from a sample of the rows. [M, …]"""
    candidates = sample_candidates(kernel, rows, n_points, seed)
    with one_blas_thread():
        return candidates.rows[choose_inducing_points(kernel, candidates, n_points=n_points, tolerance=tolerance)]


def choose_inducing_points(kernel: Kernel, candidates: KernelSample, *, n_points: int, tolerance: float) -> NDArray[np.intp]:
    """Return the indices of the candidates to use, most informative first, by a pivoted Cholesky factorization.

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
        pool = _largest(left, 4 * PIVOTS_AT_A_TIME, TIE * scale)
        pivots, factor = _choose_pivots(kernel, rows, features[:, :done], pool[left[pool] > 0], n_points - done, TIE * scale)
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


def _largest(values: Array, count: int, tie: float) -> NDArray[np.intp]:
    """Return the places of the largest values, the largest first; of those that differ by less than `tie`, the first ones."""
    if count >= len(values):
        return np.argsort(-values, kind="stable")
    least = np.partition(values, -count)[-count]
    surely = np.flatnonzero(values > least + tie)
    places = np.concatenate([surely, np.flatnonzero(np.abs(values - least) <= tie)[: count - len(surely)]])
    return places[np.argsort(-values[places], kind="stable")]


def _choose_pivots(
    kernel: Kernel, rows: NDArray[Any], features: Array, pool: NDArray[np.intp], n_points: int, tie: float
) -> tuple[NDArray[np.intp], Array]:
    """Choose pivots greedily within the pool, while they stay above half of the largest residual.

    Of residuals that differ by less than `tie`, which rounding may cause, that of the first candidate counts as the largest.
    Return the pivots and the triangular factor of their residual covariance.
    """
    covariance = np.asarray(kernel(rows[pool], rows[pool]), dtype=np.float64) - features[pool] @ features[pool].T
    check_finite_kernel(kernel, covariance)
    n_pivots = min(PIVOTS_AT_A_TIME, n_points, len(pool))
    columns = np.zeros((len(pool), n_pivots))
    residual = covariance.diagonal().copy()
    threshold = 0.5 * residual.max() - tie
    picked: list[int] = []
    for step in range(n_pivots):
        tied = np.flatnonzero(residual >= residual.max() - tie)
        best = int(tied[pool[tied].argmin()])
        if residual[best] < threshold or residual[best] <= 0:
            break
        columns[:, step] = (covariance[:, best] - columns[:, :step] @ columns[best, :step]) / np.sqrt(residual[best])
        residual -= columns[:, step] ** 2
        residual[best] = -np.inf
        picked.append(best)
    return pool[picked], np.tril(columns[picked][:, : len(picked)])


def _check_positive(kernel: Kernel, residual: Array, scale: float) -> None:
    """Raise ValueError where a residual variance is negative by more than rounding: the kernel is not positive semi-definite."""
    if residual.min(initial=0.0) < -1e-6 * scale:
        raise ValueError(
            f"The kernel {kernel} is not positive semi-definite on these rows (a conditional variance came out as "
            f"{residual.min():.3g}). Choose another kernel, or other parameters for this one."
        )


def check_residual(residual: float, own: float, tolerance: float, n_points: int) -> None:
    """Warn where the points leave more variance open than the tolerance, besides the rows' own part, which no point can explain."""
    if residual - own > RESIDUAL_SLACK * tolerance:
        warnings.warn(
            f"{n_points} inducing points leave {residual:.2g} of the prior variance open, more than "
            f"residual_tolerance={tolerance:g}: the losses are approximate. Raise max_inducing (or inducing), "
            "choose a longer lengthscale (a smaller neighborhood), or raise the tolerance if that is close enough.",
            UserWarning,
            stacklevel=4,
        )
