"""Rows of anything that can be sliced: arrays, sparse matrices, arrays mapped or stored in files."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ._arrays import row_blocks
from ._rows import Array, Part, Rows, check_part, rows_of_a_part

MIN_PARTS = 16
"""So that a table of some thousands of rows keeps all threads busy to the end."""
MIN_ROWS = 1024


class SliceableRows(Rows):
    """Rows of an object with a shape, of which slices give arrays or sparse matrices.

    Parameters
    ----------
    X
        A NumPy array, in memory or mapped from a file; a sparse matrix in CSR format; a dataset of h5py or zarr; the `X` of an
        AnnData object in backed mode.
    sample_weight
        One for each row.
    checked
        Whether X is known to hold finite numbers, or objects. Otherwise each part is checked when it is read.
    place, first
        For errors: what X is called, and the position of its first row in a larger table, or None.
    """

    def __init__(
        self, X: Any, sample_weight: Array | None = None, *, checked: bool = False, place: str = "the part", first: int | None = 0
    ) -> None:
        super().__init__(sample_weight)
        self.X = X
        self.n_rows = int(X.shape[0])
        self.n_columns = int(X.shape[1]) if len(X.shape) > 1 else 1
        self.checked = checked
        self.place, self.first = place, first
        self.come_at_once = checked and isinstance(X, np.ndarray) and not isinstance(X, np.memmap)

    @property
    def identity(self) -> str | None:
        """File, size, time of change and place in the file of a mapped array."""
        filename = getattr(self.X, "filename", None) if isinstance(self.X, np.memmap) else None
        if not filename:
            return None
        state = os.stat(filename)
        layout = f"{self.X.dtype} {self.X.shape} {self.X.strides} {_position(self.X)} {MIN_PARTS} {MIN_ROWS}"
        return f"{os.path.abspath(filename)} {state.st_size} {state.st_mtime_ns} {layout}"

    def parts(self) -> Iterator[Part]:
        """Slices of the rows, dense."""
        n_rows = self.n_rows or 0
        size = min(rows_of_a_part(self.n_columns), max(MIN_ROWS, -(-n_rows // MIN_PARTS)))
        for block in row_blocks(n_rows, size):
            rows = self.X[block]
            rows = rows.toarray() if issparse(rows) else np.asarray(rows)
            if not self.checked:
                rows = check_part(rows, self.place, None if self.first is None else self.first + block.start)
            yield Part(rows, self.weight_of(block.start, len(rows)))
            _release_pages(self.X)

    def map(self, function: Callable[[NDArray[Any]], NDArray[Any]], shape: tuple[int | None, ...]) -> Any:
        """As for all rows; what is in memory is given to the function as a whole."""
        return function(self.X) if self.come_at_once else super().map(function, shape)


def _position(X: Any) -> int:
    """Where in its file a mapped array, or a piece of one, begins."""
    whole = X
    while isinstance(whole.base, np.memmap):
        whole = whole.base
    return int(whole.offset + X.__array_interface__["data"][0] - whole.__array_interface__["data"][0])


def _release_pages(X: Any) -> None:
    """Tell the system that the pages of a mapped file are not needed for now: they would count as memory of this process."""
    if not isinstance(X, np.memmap) or X.mode not in ("r", "r+") or not hasattr(mmap, "MADV_DONTNEED"):
        return
    owner: Any = X
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, mmap.mmap):
        owner.madvise(mmap.MADV_DONTNEED)
