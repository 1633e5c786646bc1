"""Moments: everything the losses need to know about the data, in sums that add; the pass that fills them, and its checkpoints."""

from __future__ import annotations

import hashlib
import operator
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from .._runtime.files import written_beside
from .._runtime.progress import Progress
from ..data._arrays import hash_rows, row_blocks, rows_in_cache
from ..data._rows import Part, Rows, rows_of_a_part
from ..kernels._protocol import kernel_diagonal
from ._features import Features
from ._moment_files import FILE_VERSION, ROUNDING, read_sums

Array = NDArray[np.float64]

THREAD_BYTES = 2**30
"""Memory for the matrices of all threads together."""
FAR_BEYOND = 2.0
"""Factor by which sums may exceed what the kernel allows, where rows in single precision have rounding errors."""
NEGLIGIBLE_EIGENVALUE = 1e-6
EQUAL_EIGENVALUES = 1e-6
"""Relative difference of two eigenvalues below which rounding would decide on their directions."""
NEARLY_LARGEST = 0.8713
"""Share of the largest squared length from which on the first vector is taken. It is no simple fraction, as ratios of lengths often are
where rows are symmetric, so that rounding does not decide which vectors reach it."""
BEGIN_ANEW = "Delete it to begin anew, or name another file."
CHECKPOINT_SECONDS = 10.0
"""Time between two writings of a checkpoint: as much work as an interruption may cost."""


@dataclass(frozen=True)
class Moments:
    """Sums over rows of weight w, which add over blocks, files, machines and time.

        weight   = Σ w                        first  = Σ w k(U, x)            [M]
        diagonal = Σ w k(x, x)                second = Σ w k(U, x) k(U, x)ᵀ   [M, M]

    The sums are of kernel columns. Whitening is linear, Σ w a aᵀ = L⁻¹ second L⁻ᵀ, so it is done once, after the
    pass, and costs the pass nothing.
    """

    weight: float
    first: Array
    second: Array
    diagonal: float
    fingerprint: str
    """A hash of the kernel and the inducing points that the sums belong to."""

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both sets of rows together."""
        if not isinstance(other, Moments):
            return NotImplemented
        if self.fingerprint != other.fingerprint or len(self.first) != len(other.first):
            raise ValueError(
                "These moments belong to different kernels or inducing points and cannot be added. Fit the second model with "
                "GPSSL(kernel=first.kernel_, inducing=first.inducing_points_)."
            )
        return Moments(
            self.weight + other.weight,
            self.first + other.first,
            self.second + other.second,
            self.diagonal + other.diagonal,
            self.fingerprint,
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write to an `.npz` file that `load` reads back to the last bit. It holds no rows; an older file stays until it is whole."""
        with written_beside(Path(path)) as beside, open(beside, "wb") as file:
            np.savez_compressed(file, **self.to_arrays())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Moments:
        """Read what `save` wrote. Raise ValueError where a file is something else, is damaged, or has sums that no rows have."""
        return cls(**read_sums(Path(path), "a file written by Moments.save").sums)

    def to_arrays(self) -> dict[str, Any]:
        """Return all fields by name, for a file."""
        return {"version": FILE_VERSION, **{field.name: getattr(self, field.name) for field in fields(self)}}

    def covariance(self, features: Features) -> tuple[Array, float]:
        """Return G and ρ: covariance of the whitened features over the rows, and their mean residual variance.

        G = Σ w (a − ā)(a − ā)ᵀ / (Σw − 1)            [M, M]
        ρ = Σ w (k(x, x) − aᵀa) / Σw
        """
        if self.fingerprint != features.fingerprint or len(self.first) != features.n_points:
            raise ValueError("These moments belong to another kernel or other inducing points than this model's.")
        if not self.weight > 1:
            raise ValueError(
                f"One row is too few to learn from, or the sample weights sum to {self.weight:.3g}. "
                "A weight counts rows (weight 2 is the row twice), so they have "
                "to sum to more than one; multiply them by the number of rows."
            )
        first = features.whiten(self.first[:, None])[:, 0]
        second = features.whiten(features.whiten(self.second).T)
        if not second.trace() <= FAR_BEYOND * self.diagonal:
            raise ValueError(
                "These moments are damaged: the sum of squared features is larger than the kernel allows. Compute them again, or read them "
                "from another copy of their file."
            )
        residual = (self.diagonal - second.trace()) / self.weight
        centered = (second - np.outer(first, first) / self.weight) / (self.weight - 1)
        return (centered + centered.T) / 2, max(0.0, float(residual))


def moments_of_rows(features: Features, rows: Rows, *, progress: Progress | None = None, keeper: Checkpoint | None = None) -> Moments:
    """Pass over the rows once and add the moments of the parts in their order.

    Parts do not depend on the number of threads, so neither does a bit of the result.
    """
    total = rows.reduce(
        partial(_moments_of_part, features), operator.add, progress=progress, max_threads=_max_threads([features]), keeper=keeper
    )
    _check_finite(total)
    return total


def moments_for_all(many: Sequence[Features], rows: Rows, *, progress: Progress | None = None) -> list[Moments]:
    """Return the moments for each of several kernels, from one pass over the rows."""

    def summarize(part: Part) -> list[Moments]:
        return [_moments_of_part(features, part) for features in many]

    def combine(one: list[Moments], other: list[Moments]) -> list[Moments]:
        return [first + second for first, second in zip(one, other, strict=True)]

    found = rows.reduce(summarize, combine, progress=progress, max_threads=_max_threads(many))
    for total in found:
        _check_finite(total)
    return found


def _max_threads(many: Sequence[Features]) -> int:
    """Return how many threads fit in memory: each holds two matrices for each kernel, and one waits to be added."""
    return max(1, THREAD_BYTES // (24 * sum(features.n_points**2 for features in many)))


def _check_finite(moments: Moments) -> None:
    if not np.isfinite(moments.second).all():
        raise ValueError(
            "The kernel's values overflow when squared. Scale the columns (for example with StandardScaler), or choose a bounded "
            "kernel such as RBF."
        )


def _moments_of_part(features: Features, part: Part) -> Moments:
    """Return the moments of consecutive rows, block by block in buffers that stay in cache."""
    n_rows, n_points = len(part.rows), features.n_points
    size = rows_in_cache(n_points)
    buffer = np.empty((min(size, n_rows), n_points))
    product = np.empty((n_points, n_points))
    first, second = np.zeros(n_points), np.zeros((n_points, n_points))
    diagonal = weight = 0.0
    for block in row_blocks(n_rows, size):
        rows, w = part.rows[block], part.weight[block]
        columns = features.columns(rows, out=buffer[: len(rows)])
        root = np.sqrt(w)
        if not (w == 1).all():
            columns *= root[:, None]
        first += root @ columns
        with np.errstate(over="ignore", invalid="ignore"):  # checked at the end of the pass
            second += np.matmul(columns.T, columns, out=product)
        diagonal += float(w @ kernel_diagonal(features.kernel, rows))
        weight += float(w.sum())
    return Moments(weight, first, second, diagonal, features.fingerprint)


class _Kept(NamedTuple):
    """What a checkpoint holds."""

    moments: Moments
    n_parts: int
    seed: int
    rows: str
    """A hash of the files, or of what else tells the rows from others."""

    @classmethod
    def read(cls, path: Path) -> _Kept:
        """Return what the file holds. Raise ValueError where it is no checkpoint, or is damaged."""
        content = read_sums(path, "a checkpoint of gpssl", counts={"n_parts": 2**62, "seed": 2**32}, texts=("rows",))
        return cls(Moments(**content.sums), **content.others)


class Checkpoint:
    """The moments of the first parts of some rows, in a file that exists from the first seconds of a pass to the end of the fit.

    It belongs to these files, their size and time of change, to the kernel and the inducing points, and to the seed, which it holds,
    so that a pass without a random state of its own is resumed with the same inducing points.
    """

    def __init__(self, path: str | PathLike[str], rows: Rows) -> None:
        if rows.identity is None:
            raise ValueError(
                "A checkpoint is for rows in files: a path to Parquet or CSV files, or a numpy.memmap. "
                f"Rows of {type(getattr(rows, 'X', rows)).__name__} have to be read again from the start."
            )
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"There is no folder {self.path.parent} for the checkpoint {self.path.name}.")
        digest = hashlib.sha256(f"{rows.identity} {rows_of_a_part(rows.n_columns)}".encode())
        if rows.sample_weight is not None:
            digest.update(rows.sample_weight.tobytes())
        self._rows = digest.hexdigest()
        self._kept = _Kept.read(self.path) if self.path.exists() else None
        if self._kept and self._kept.rows != self._rows:
            raise ValueError(f"{self.path} is no checkpoint of a pass over these files, or they have changed since. {BEGIN_ANEW}")
        self.seed = self._kept.seed if self._kept else None
        """That of the pass that was interrupted, if there was one; from `start` on, that of this pass."""
        self._written = time.monotonic()

    def start(self, seed: int, features: Features) -> None:
        """Go on if this is the pass that was interrupted; else refuse, and leave the file as it is."""
        if self._kept:
            moments = self._kept.moments
            if (moments.fingerprint, len(moments.first), self.seed) != (features.fingerprint, features.n_points, seed):
                raise ValueError(
                    f"{self.path} is a checkpoint of a pass with another kernel, other inducing points or another random_state. "
                    f"{BEGIN_ANEW}"
                )
        self.seed = seed

    def recall(self) -> tuple[Moments | None, int]:
        """Return the moments so far, and the number of parts that they sum up."""
        return (self._kept.moments, self._kept.n_parts) if self._kept else (None, 0)

    def check_passed(self, n_parts: int, weight: float) -> None:
        """Raise ValueError unless the moments sum up so many parts, of rows with this weight in all."""
        if self._kept and (n_parts != self._kept.n_parts or abs(weight - self._kept.moments.weight) > ROUNDING * weight):
            raise ValueError(f"{self.path} is damaged: it sums up other rows than the first parts of these files have. {BEGIN_ANEW}")

    def keep(self, moments: Moments, n_parts: int, *, finished: bool = False) -> None:
        """Write the moments, if the last writing is some seconds ago: to a file beside that is then renamed, so that it is always whole."""
        if time.monotonic() - self._written < CHECKPOINT_SECONDS and not finished:
            return
        with written_beside(self.path) as beside, open(beside, "wb") as file:
            np.savez(file, rows=self._rows, seed=np.asarray(self.seed), n_parts=n_parts, **moments.to_arrays())
        self._written = time.monotonic()

    def forget(self) -> None:
        """Remove the file, once the fit has succeeded."""
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of the feature covariance G = Q Λ Qᵀ, split into what can be learned and a tail that cannot.

    In this basis the prior stays N(0, I) and, with C the covariance of the representations over the rows,
    C_jk = Σ_a λ_a v_ja v_ka + δ_jk ρ. Directions with λ_a ≤ 1e-6 λ₁ hardly change C, and it hardly changes them: they
    stay at the prior and enter through Σλ and Σλ².
    """

    eigenvalues: Array
    """λ, in falling order, of the learned directions. [r]"""
    basis: Array
    """Q, whose first r columns are the learned directions. [M, M]"""
    residual: float
    """ρ, mean residual variance."""
    tail_sum: float
    """Σ λ over the other directions."""
    tail_sum_of_squares: float
    """Σ λ² over the other directions."""

    @property
    def rank(self) -> int:
        """r, the number of learned directions."""
        return len(self.eigenvalues)

    @classmethod
    def of(cls, moments: Moments, features: Features) -> Spectrum:
        """Decompose the feature covariance. The sign of each direction is fixed by the function that it stands for.

        Eigenvalues that are equal up to rounding become equal, and the directions that share them are chosen by the content of the
        inducing points (`_told_apart`): those that the decomposition returns would depend on the order of the rows.
        """
        covariance, residual = moments.covariance(features)
        ascending, vectors = eigh(covariance, driver="evd", check_finite=False)
        eigenvalues = np.maximum(ascending[::-1], 0.0)
        basis = vectors[:, ::-1] * _signs(features.factor @ vectors[:, ::-1])
        for equal in _equal_eigenvalues(eigenvalues):
            eigenvalues[equal] = eigenvalues[equal].mean()
            basis[:, equal] = _told_apart(basis[:, equal], features)
        spread = eigenvalues[0] if len(eigenvalues) else 0.0
        if spread <= 1e-12 * moments.diagonal / moments.weight:
            raise ValueError(
                "All rows look the same to the kernel, so there is nothing to learn: they are equal, or differ only where the "
                "kernel does not look. Check the columns, or choose another kernel or lengthscale."
            )
        rank = int((eigenvalues > NEGLIGIBLE_EIGENVALUE * spread).sum())
        tail = eigenvalues[rank:]
        return cls(eigenvalues[:rank], basis, residual, float(tail.sum()), float((tail**2).sum()))

    def ties(self, n_directions: int) -> Ties:
        """Return how many of the leading directions have equals, and how many equals of theirs are not among them."""
        equals = self.eigenvalues[:, None] == self.eigenvalues[:n_directions]
        return Ties(int((equals.sum(axis=0) > 1).sum()), int(equals[n_directions:].any(axis=1).sum()))


class Ties(NamedTuple):
    """Directions that the rows do not tell from others, because their eigenvalues are the same."""

    n_tied: int
    """Leading directions with equals."""
    n_left_out: int
    """Equals of theirs that are not among the leading directions."""


def _equal_eigenvalues(eigenvalues: Array) -> list[slice]:
    """Return the runs of falling eigenvalues, of at least two, in which each is as large as the one before it, up to rounding.

    Those that are negligible are left as they are: no result depends on their directions.
    """
    n_learned = int((eigenvalues > (1 - EQUAL_EIGENVALUES) * NEGLIGIBLE_EIGENVALUE * eigenvalues.max(initial=0.0)).sum())
    learned = eigenvalues[:n_learned]
    ends = np.flatnonzero(np.append(learned[:-1] - learned[1:] > EQUAL_EIGENVALUES * learned[:-1], True)) + 1
    return [slice(start, end) for start, end in pairwise([0, *ends.tolist()]) if end - start > 1]


def _told_apart(directions: Array, features: Features) -> Array:
    """Return a basis of the space that these directions span, which depends on the space and the inducing points alone. [M, n]

    Of all functions of the space whose weights have length one, the first direction is the one that is largest at an inducing point u:
    the projection of a(u). Each further one does the same for another point among those that are orthogonal to the ones before. Points
    are taken by how large their function gets, and of those that are nearly alike in this the first in the order of their hashes.
    """
    by_content = np.argsort(hash_rows(features.points, seed=0), kind="stable")
    remaining = (features.factor @ directions)[by_content]
    rotation = np.empty((directions.shape[1], directions.shape[1]))
    for step in range(len(rotation)):
        squared = np.einsum("mn,mn->m", remaining, remaining)
        chosen = remaining[np.argmax(squared >= NEARLY_LARGEST * squared.max())]
        chosen = chosen - rotation[:step].T @ (rotation[:step] @ chosen)  # once more, for what rounding has left
        rotation[step] = chosen / np.linalg.norm(chosen)
        remaining = remaining - np.outer(remaining @ rotation[step], rotation[step])
    return directions @ rotation.T


def _signs(values: Array) -> Array:
    """Return +1 or −1 for each column, so that its entry of largest size becomes positive; near-ties go to the first."""
    size = np.abs(values)
    largest = np.argmax(np.round(size / np.maximum(size.max(axis=0), np.finfo(float).tiny), 6), axis=0)
    picked = values[largest, np.arange(values.shape[1])]
    return np.where(picked < 0, -1.0, 1.0)


def check_enough_directions(n_components: int, n_rows: float, rank: int) -> None:
    """Raise ValueError where the rows are fewer than the components, and warn where the directions that the kernel sees are."""
    if n_rows < n_components:
        raise ValueError(f"{n_rows:g} rows cannot show {n_components} uncorrelated dimensions. Give more rows, or lower n_components.")
    if rank < n_components:
        warnings.warn(
            f"The kernel sees only {rank} direction(s) in these rows, too few for {n_components} uncorrelated "
            "dimensions. Lower n_components, or choose a kernel that sees more.",
            UserWarning,
            stacklevel=4,
        )
