"""Cells of one type: margins of all genes, and a Gaussian copula that ties the most variable of them together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array
from scipy.special import ndtri

from .count_margins import CountMargins, fit_margins

Array = NDArray[np.float64]

LEAST_EXPRESSED = 0.2
"""Share of cells in which a gene of the copula is found, as in scDesign2: rarer ones tell next to nothing about correlation."""

SMALLEST_PROBABILITY = 1e-9
"""Of a count: below, its score is the middle quantile, because the difference of two densities is lost in rounding."""


@dataclass(frozen=True)
class CellModel:
    """How cells of one type are drawn, p genes of which q are in the copula."""

    margins: CountMargins
    """Of all genes. [p]"""
    copula_genes: NDArray[np.intp]
    """Which genes depend on one another; the rest are independent. [q]"""
    root: Array
    """A with correlation matrix A Aᵀ of the normal scores. [q, q]"""


def fit_cell_model(counts: Any, n_copula_genes: int) -> CellModel:
    """The model of cells of one type from their counts, sparse or dense. [n, p]

    The copula holds at most `n_copula_genes`: among those found in at least 20 % of the cells, the ones whose counts vary most. That is
    both the highly expressed genes and the highly variable ones, as the variance of a count is at least about its mean.
    """
    by_gene = csc_array(counts)
    margins = fit_margins(by_gene)
    genes = _most_variable(by_gene, n_copula_genes)
    return CellModel(margins, genes, _correlation_root(by_gene[:, genes].toarray(), margins.of(genes)))


def _most_variable(by_gene: csc_array, n_genes: int) -> NDArray[np.intp]:
    mean = by_gene.mean(axis=0)
    variance = (by_gene.astype(np.float64) ** 2).mean(axis=0) - mean**2
    found = np.diff(by_gene.indptr) >= LEAST_EXPRESSED * by_gene.shape[0]
    eligible = np.flatnonzero(found & (variance > 0))
    return np.sort(eligible[np.argsort(-variance[eligible], kind="stable")[:n_genes]])


def _correlation_root(counts: Array, margins: CountMargins) -> Array:
    """A with A Aᵀ = the correlation matrix of the Gaussian copula. [q, q]

    scDesign2 turns a count x into a normal score z = Φ⁻¹(u), u uniform between F(x − 1) and F(x), and takes the correlation of scores.
    The random u blurs it, the more the fewer counts a gene has. Here each count has the mean of its score instead, s = E[z | x], and
    the blur that is left is divided out: for scores with correlation ρ,

        corr(s_i, s_j) ≈ ρ_ij √(v_i v_j)      v_i = var(s_i) ≤ 1

    up to terms in ρ². Noise may leave ρ indefinite: negative eigenvalues are set to zero and its diagonal back to one.

    Correlations of log counts in simulated blood cells came out closer to the reference than with random scores, and shrinkage on top
    (Ledoit and Wolf) did not bring them closer; tests hold them to the reference's.
    """
    scores, reliability = np.empty(counts.shape), np.empty(counts.shape[1])
    for gene in range(counts.shape[1]):
        table = margins.table(gene)
        score_of_value, reliability[gene] = _mean_scores(table.cumulative)
        scores[:, gene] = score_of_value[table.place(counts[:, gene])]
    scores -= scores.mean(axis=0)
    scores /= np.sqrt((scores**2).mean(axis=0) * reliability)
    correlation = scores.T @ scores / len(scores)
    np.fill_diagonal(correlation, 1)
    values, vectors = np.linalg.eigh(correlation)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T  # unlike the vectors, of no arbitrary sign
    return root / np.linalg.norm(root, axis=1, keepdims=True)


def _mean_scores(cumulative: Array) -> tuple[Array, float]:
    """E[z | x] for each count x of a gene, and its variance. [m]

    E[z | x] = (φ(a) − φ(b)) / (F(x) − F(x − 1))      a = Φ⁻¹(F(x − 1)), b = Φ⁻¹(F(x))
    """
    ends = np.concatenate([[0.0], cumulative])
    probability = np.diff(ends)
    density = np.exp(-(ndtri(ends) ** 2) / 2) / np.sqrt(2 * np.pi)
    middle = ndtri(np.minimum((ends[1:] + ends[:-1]) / 2, 1 - SMALLEST_PROBABILITY**1.5))
    likely = probability > SMALLEST_PROBABILITY
    scores = np.where(likely, -np.diff(density) / np.where(likely, probability, 1), middle)
    return scores, float(probability @ scores**2)
