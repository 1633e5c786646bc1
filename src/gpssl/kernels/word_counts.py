"""Counts of words, known by their hashes, in strings or graphs, as sparse matrices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

NO_WORD = np.uint64(2**64 - 1)
"""Comes after all words."""


class Counts(NamedTuple):
    """How often each word occurs in each string: one entry for each pair that occurs, sorted by string, then by word."""

    string: NDArray[np.intp]
    word: NDArray[np.uint64]
    value: NDArray[np.float64]
    """How often, each occurrence with its weight."""
    coefficient: NDArray[np.float64]

    def squared_norms(self, n_strings: int) -> NDArray[np.float64]:
        """Σ over words of coefficient × value², for each string. [n]"""
        return np.bincount(self.string, self.coefficient * self.value**2, minlength=n_strings).astype(np.float64, copy=False)

    def matrix(self, values: NDArray[np.float64], words: NDArray[np.uint64], n_strings: int) -> csr_array:
        """The values in the columns of the given words, in rising order; other words have none. [n, number of words]"""
        column = np.searchsorted(words, self.word)
        known = np.append(words, NO_WORD)[column] == self.word
        starts = np.searchsorted(self.string[known], np.arange(n_strings + 1))
        # Half the bytes for all but the largest: SciPy keeps what it is given.
        index = np.int32 if max(len(self.word), len(words)) < 2**31 else np.int64
        return csr_array((values[known], column[known].astype(index), starts.astype(index)), shape=(n_strings, len(words)))


def write_products(vectors: csr_array, columns: csr_array, out: NDArray[np.float64]) -> None:
    """The inner products of sparse vectors [n, D] with sparse columns [D, m], written into an array. [n, m]"""
    products = vectors @ columns
    if out.flags.c_contiguous and out.dtype == products.dtype:
        products.toarray(out=out)
    else:
        out[...] = products.toarray()
