"""New cells of one type, drawn one after the other and added up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from scipy.special import ndtr

from .copula import CellModel

VALUES_AT_A_TIME = 2**22
"""Numbers that are drawn before they are added up, about."""


class _Entries(NamedTuple):
    """Counts to be added to a table. All arrays are [m]."""

    row: NDArray[np.intp]
    gene: NDArray[np.intp]
    value: NDArray[np.int64]


class CellStream:
    """Cells of one type, one after the other: the same ones, however many are taken at a time.

    Genes are drawn in the cheapest way that is exact: by cell where they are in the copula, summed over cells at once where they are
    independent.
    """

    def __init__(self, model: CellModel, rng: np.random.Generator) -> None:
        self._model = model
        independent = model.margins.mean > 0
        independent[model.copula_genes] = False
        inflated = model.margins.zero_inflation > 0
        self._inflated = np.flatnonzero(independent & inflated)
        self._plain = np.flatnonzero(independent & ~inflated)
        self._tables = [model.margins.table(gene) for gene in model.copula_genes.tolist()]
        # Each kind of number has its own stream, so that where a block ends does not change what comes next.
        self._normals, self._binomials, self._gammas, self._poissons, self._bursts, self._genes, self._sizes = rng.spawn(7)

    def take(self, n_cells: int) -> csr_array:
        """Counts of the next cells. [n, p]"""
        return self.take_sums(np.ones(n_cells, dtype=np.int64))

    def take_sums(self, n_cells: NDArray[np.int64]) -> csr_array:
        """Counts summed over the next n_1 cells, the n_2 after them, and so on. [s] → [s, p]"""
        margins = self._model.margins
        per_cell = len(self._tables) + len(self._inflated) + margins.mean[self._plain].sum() + 1
        block = (np.cumsum(n_cells) * per_cell / VALUES_AT_A_TIME).astype(np.intp)
        parts = np.split(n_cells, np.flatnonzero(np.diff(block)) + 1)
        return vstack([self._take_block(part) for part in parts], format="csr")

    def _take_block(self, n_cells: NDArray[np.int64]) -> csr_array:
        some = np.flatnonzero(n_cells)
        counts = csr_array((len(n_cells), len(self._model.margins.rate)), dtype=np.int64)
        if len(some) == 0:
            return counts
        parts = [self._copula_sums(n_cells[some]), self._inflated_sums(n_cells[some]), self._plain_sums(n_cells[some])]
        row, gene, value = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        places = (some[row].astype(np.int32), gene.astype(np.int32))  # half the memory of the result
        return csr_array((value, places), shape=counts.shape)

    def _copula_sums(self, n_cells: NDArray[np.int64]) -> _Entries:
        """x = F⁻¹(Φ(A e)), e ~ N(0, I), for each cell, then summed. [s] → [s, q]"""
        noise = self._normals.standard_normal((int(n_cells.sum()), len(self._model.root)))
        levels = ndtr(self._model.root @ noise.T)
        first = np.concatenate([[0], np.cumsum(n_cells)[:-1]])
        sums = np.empty((len(n_cells), len(levels)), dtype=np.int64)
        for gene, table in enumerate(self._tables):
            sums[:, gene] = np.add.reduceat(table.quantile(levels[gene]), first)
        return _entries(sums, self._model.copula_genes)

    def _inflated_sums(self, n_cells: NDArray[np.int64]) -> _Entries:
        """With k ~ Binomial(n, 1 − π), the sum of n cells is negative binomial, of rate k λ and size k r. [s] → [s, p′]"""
        margins = self._model.margins.of(self._inflated)
        n_expressing = self._binomials.binomial(n_cells[:, None], 1 - margins.zero_inflation).astype(np.float64)
        rate = n_expressing * margins.rate
        dispersed = np.isfinite(margins.size)
        size = margins.size[dispersed]
        rate[:, dispersed] = self._gammas.standard_gamma(n_expressing[:, dispersed] * size) * (margins.rate[dispersed] / size)
        return _entries(self._poissons.poisson(rate), self._inflated)

    def _plain_sums(self, n_cells: NDArray[np.int64]) -> _Entries:
        """Negative binomials as bursts, so that genes which are not there cost nothing. [s] → [s, p″]

        A negative binomial is a Poisson number of bursts, at the rate r log(1 + λ/r), each of a size with the logarithmic distribution
        of parameter λ / (r + λ) (Quenouille 1949). Those of all genes and cells of a spot arrive together, at the sum of their rates.
        For r = ∞ the rate is λ and every burst is of size one.
        """
        margins = self._model.margins.of(self._plain)
        poisson = np.isinf(margins.size)
        size = np.where(poisson, 1, margins.size)
        burst_rate = np.where(poisson, margins.rate, size * np.log1p(margins.rate / size))
        ends = np.concatenate([[0.0], np.cumsum(burst_rate)])
        n_bursts = self._bursts.poisson(n_cells * ends[-1])
        gene = np.searchsorted(ends[1:-1], self._genes.random(n_bursts.sum()) * ends[-1], side="right")
        count = self._sizes.logseries(np.where(poisson, 0, margins.rate / (size + margins.rate))[gene])
        return _Entries(np.repeat(np.arange(len(n_cells)), n_bursts), self._plain[gene], count)


def _entries(sums: NDArray[np.int64], genes: NDArray[np.intp]) -> _Entries:
    row, column = np.nonzero(sums)
    return _Entries(row, genes[column], sums[row, column])
