"""A kernel of known relations: rows that are linked by positive pairs belong to one group."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.gaussian_process.kernels import GenericKernelMixin, Kernel

from ..data._arrays import hash_rows, in_double_precision
from ..data._rows import Rows
from ._protocol import Array, BlockKernel, CallByBlocks, NonStationary


class PairKernel(NonStationary, GenericKernelMixin, Kernel):
    """Rows that are known to belong together. Add it to a kernel for the rows: `NeighborRBF() + 10.0 * PairKernel(pairs)`.

        k(x, y) = 1 if x and y are in the same group, else 0

    The paper's kernel is 1 for the rows of a pair and 0 otherwise. With overlapping pairs, or without a diagonal, that is not positive
    semi-definite. Here rows that are linked by pairs, directly or through others, form a group, and k = Z Zᵀ with Z the membership in
    groups. A row in no pair is in no group: k(x, x) = 0, and nothing is added for it. Rows with the same content are the same row, so
    groups that share a content are one group. New rows are in a group if they equal one of its rows.

    A group of two is about two rows, where a kernel for the rows is about all of them: weights around 1 hardly change a representation
    of few dimensions, and tens may be needed. Select the weight and the number of components on validation labels.

    Parameters
    ----------
    pairs
        Positions of two rows each, counted from 0, in the rows that `fit` gets (or the first call of `partial_fit`). [P, 2] A search that
        fits to folds, such as `GridSearchCV`, passes other rows to `fit`, for which the positions are wrong.
    """

    def __init__(self, pairs: Any) -> None:
        self.pairs = pairs

    def resolve(self, rows: Rows, *, seed: int) -> GroupKernel:
        """Return the groups, by the content of their rows; reads the rows once and needs 8 bytes for each."""
        pairs = self._checked_pairs()
        hashes = np.concatenate([hash_rows(in_double_precision(part.rows), 0) for part in rows.parts()])
        if pairs.max(initial=-1) >= len(hashes):
            raise ValueError(f"pairs points at row {pairs.max()}, but there are {len(hashes)} rows (positions count from 0).")
        members, positions = np.unique(hashes[pairs], return_inverse=True)
        one, other = positions.reshape(-1, 2).T
        links = coo_array((np.ones(len(one)), (one, other)), shape=(len(members), len(members)))
        groups = connected_components(links, directed=False)[1] if len(members) else np.empty(0, np.intp)
        return GroupKernel(members, groups)

    def _checked_pairs(self) -> NDArray[np.intp]:
        pairs = np.asarray(self.pairs)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(f"pairs must be an array of shape [P, 2], two positions of rows in each line; got shape {list(pairs.shape)}.")
        if pairs.dtype.kind not in "iu":
            raise ValueError(f"pairs must be whole numbers, the positions of rows; got {pairs.dtype}.")
        if pairs.min(initial=0) < 0:
            raise ValueError(f"pairs must be positions of rows, counted from 0; got {pairs.min()}.")
        return pairs.astype(np.intp)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> NoReturn:
        """Raise ValueError: the rows are not known yet."""
        raise ValueError("PairKernel names training rows by their position: pass it to GPSSL(kernel=...), whose fit looks them up.")

    def diag(self, X: Any) -> NoReturn:
        """Raise ValueError: the rows are not known yet."""
        self(X)

    def __repr__(self) -> str:
        return f"PairKernel({len(np.asarray(self.pairs))} pairs)"


class GroupKernel(CallByBlocks, GenericKernelMixin, Kernel):
    """The concrete kernel that `PairKernel` becomes at `fit`: k(x, y) = 1 if x and y are in the same group, else 0.

    Parameters
    ----------
    hashes
        Hashes of the rows that are in groups, in rising order. [n]
    groups
        The group of each of these rows. [n]
    """

    def __init__(self, hashes: NDArray[np.uint64], groups: NDArray[Any]) -> None:
        self.hashes = hashes
        self.groups = groups

    def _as_rows(self, X: Any) -> NDArray[Any]:
        return X if isinstance(X, np.ndarray) else np.fromiter(X, dtype=object)

    def groups_of(self, X: Any) -> NDArray[np.intp]:
        """Return the group of each row, −1 for none. [n]"""
        rows = in_double_precision(self._as_rows(X))
        if len(self.hashes) == 0:
            return np.full(len(rows), -1)
        wanted = hash_rows(rows, 0)
        places = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        return np.where(self.hashes[places] == wanted, self.groups[places], -1)

    def block_kernel(self, points: NDArray[Any]) -> BlockKernel:
        """Look the groups of the points up once, and return a function that fills in k(X, points)."""
        groups = self.groups_of(points)

        def fill(X: NDArray[Any], out: Array) -> None:
            of_rows = self.groups_of(X)[:, None]
            out[...] = (of_rows == groups) & (of_rows >= 0)

        return fill

    def diag(self, X: Any) -> Array:
        """Return k(x, x): 1 in a group, 0 outside. [n]"""
        return (self.groups_of(X) >= 0).astype(np.float64)

    def __repr__(self) -> str:
        return f"GroupKernel({len(self.hashes)} rows in {len(np.unique(self.groups))} groups)"
