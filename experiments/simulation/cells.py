"""Model the counts of cells of several types after a single-cell reference, and draw new cells (scDesign2, Sun et al. 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, csr_matrix, issparse, vstack
from scipy.special import ndtr, ndtri

from gpssl._validation import check_number, seed_from
from gpssl.spatial._fields import check_anndata, column, counts_of, first_few, need, quoted

from .count_margins import CountMargins, fit_margins

Array = NDArray[np.float64]

FEWEST_CELLS = 10
"""The number of cells that a type needs for its counts to be modeled."""

N_COPULA_GENES = 500

LEAST_EXPRESSED = 0.2
"""The share of cells in which a gene of the copula is found, as in scDesign2: rarer genes say almost nothing about correlation."""

SMALLEST_PROBABILITY = 1e-9
"""Less probable counts have the middle quantile as score, because the difference of two densities is lost in rounding."""

VALUES_AT_A_TIME = 2**22
"""About how many numbers are drawn before they are added up."""


@dataclass(frozen=True)
class CellSimulator:
    """Models of cells of several types, as `fit_cells` returns them."""

    types: tuple[str, ...]
    genes: tuple[str, ...]
    models: tuple[CellModel, ...]
    """One for each type."""
    signatures: dict[str, list[str]]
    """Marker genes by type, if the reference has them."""

    def of_types(self, types: Sequence[str]) -> CellSimulator:
        """Return the simulator of some of the types, in the order given."""
        _check_types(types, self.types)
        return CellSimulator(
            types=tuple(types),
            genes=self.genes,
            models=tuple(self.models[self.types.index(name)] for name in types),
            signatures={name: self.signatures[name] for name in types if name in self.signatures},
        )

    def sample(self, n_cells: int, *, random_state: Any = 0) -> Any:
        """Draw `n_cells` new single cells of each type: AnnData with counts in `X` and types in `obs["cell_type"]`."""
        check_number("n_cells", n_cells, Integral, at_least=1)
        rngs = np.random.default_rng(seed_from(random_state)).spawn(len(self.types))
        counts = [CellStream(model, rng).take(n_cells) for model, rng in zip(self.models, rngs, strict=True)]
        pandas = need("pandas")
        labels = pandas.Categorical(np.repeat(self.types, n_cells), categories=list(self.types))
        obs = pandas.DataFrame({"cell_type": labels}, index=[f"cell_{number}" for number in range(len(labels))])
        var = pandas.DataFrame(index=list(self.genes))
        return need("anndata").AnnData(csr_matrix(vstack(counts), dtype=np.float32), obs=obs, var=var)


def fit_cells(
    reference: Any,
    *,
    label_key: str = "cell_type",
    types: Sequence[str] | None = None,
    layer: str | None = None,
    n_copula_genes: int = N_COPULA_GENES,
) -> CellSimulator:
    """Fit scDesign2's model (Sun et al. 2021) to the cells of each type of a single-cell reference.

    Each gene has a Poisson or negative binomial margin, with zero inflation where that is significantly more likely; a Gaussian copula
    models the correlations of the most variable genes, and the others are independent. Fit once, then draw as many slices as you like:

        cells = fit_cells(reference, types=["B", "CD8 T", "Memory CD4 T", "Naive CD4 T"])
        slices = [simulate(cells, random_state=seed) for seed in range(10)]

    Parameters
    ----------
    reference
        AnnData of single cells with raw counts.
    label_key
        The column of `obs` with the type of each cell. Cells without a type are left out.
    types
        Which types, each with at least 10 cells; None means all. Names have no "/", which separates levels in h5ad files.
    layer
        The layer that has the counts, if not `X`.
    n_copula_genes
        The largest number of correlated genes of a type. Zero makes all genes independent.
    """
    check_number("n_copula_genes", n_copula_genes, Integral, at_least=0)
    labels = _cell_types(reference, label_key)
    found = sorted(set(labels.tolist()) - {""})
    types = found if types is None else types
    _check_types(types, found)
    check_type_names(types)
    counts_of(reference, layer)  # raise its errors before cells are copied
    counts = [_counts_of_type(reference, name, np.flatnonzero(labels == name), layer) for name in types]
    return CellSimulator(
        types=tuple(types),
        genes=tuple(map(str, reference.var_names)),
        models=tuple(fit_cell_model(cells, n_copula_genes) for cells in counts),
        signatures={str(name): list(map(str, genes)) for name, genes in reference.uns.get("signatures", {}).items() if str(name) in types},
    )


def _cell_types(reference: Any, label_key: str) -> NDArray[np.str_]:
    """Return the type of each cell, empty where it has none. [n]"""
    check_anndata(reference)
    labels = column(reference.obs, label_key, "label_key", "obs")
    return np.where(labels.isna(), "", labels.astype(object).astype(str)).astype(str)


def _check_types(types: Sequence[str], found: Sequence[str]) -> None:
    if isinstance(types, str):
        raise TypeError(f"types must be a list of types, got the text {types!r}.")
    unknown = [name for name in types if name not in found]
    if unknown:
        raise ValueError(f"No cell of the reference has the type {quoted(unknown)}: its types are {first_few(found, 10)}.")
    if len(types) < 2 or len(set(types)) < len(types):
        raise ValueError(f"A slice needs at least two types, each named once, got {list(types)}.")


def check_type_names(types: Sequence[str]) -> None:
    """Raise ValueError if the name of a type cannot be a key of `uns` in a file."""
    torn = [name for name in types if "/" in str(name)]
    if torn:
        better = first_few([str(name).replace("/", "-") for name in torn])
        raise ValueError(f'"/" separates levels in h5ad files: rename {first_few(torn)}, for example to {better}.')


def _counts_of_type(reference: Any, name: str, rows: NDArray[np.intp], layer: str | None) -> csr_array:
    """Return the counts of the cells of one type. Raise ValueError unless they are raw counts of enough cells. [n, p]"""
    if len(rows) < FEWEST_CELLS:
        raise ValueError(
            f"The type {name!r} has {len(rows)} cells in the reference, and at least {FEWEST_CELLS} are needed: leave it out with types=."
        )
    part = reference[rows].to_memory()
    matrix = part.X if layer is None else part.layers[layer]
    values = matrix.data if issparse(matrix) else np.asarray(matrix)
    whole = np.isfinite(values) & (values >= 0)
    if not whole.all() or not (values == np.floor(values)).all():
        raise ValueError(
            f"The reference needs raw counts, but cells of type {name!r} have negative, broken or missing ones: pass layer=, where the "
            'counts are, for example layer="counts".'
        )
    if not values.any():
        raise ValueError(f"All counts of the type {name!r} are zero: leave it out with types=.")
    return csr_array(matrix)


@dataclass(frozen=True)
class CellModel:
    """The distribution of the counts of cells of one type: p genes, of which q are in the copula."""

    margins: CountMargins
    """The margins of all genes. [p]"""
    copula_genes: NDArray[np.intp]
    """Which genes depend on one another; the rest are independent. [q]"""
    root: Array
    """A with correlation matrix A Aᵀ of the normal scores. [q, q]"""


def fit_cell_model(counts: Any, n_copula_genes: int) -> CellModel:
    """Fit the model of cells of one type to their counts, sparse or dense. [n, p]

    The copula holds at most `n_copula_genes`: among those found in at least 20 % of the cells, the ones whose counts vary most. These are
    the highly expressed genes and the highly variable ones, because the variance of a count is at least about its mean.
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
    """Return A with A Aᵀ = the correlation matrix of the Gaussian copula. [q, q]

    scDesign2 turns a count x into a normal score z = Φ⁻¹(u), u uniform between F(x − 1) and F(x), and takes the correlation of scores.
    The random u weakens the correlation, most for genes with few counts. Here each count gets the mean of its score instead,
    s = E[z | x], and what still weakens the correlation is divided out: for scores with correlation ρ,

        corr(s_i, s_j) ≈ ρ_ij √(v_i v_j)      v_i = var(s_i) ≤ 1

    up to terms in ρ². Noise may make ρ indefinite: its negative eigenvalues are set to zero and its diagonal back to one.

    Correlations of log counts in simulated blood cells are closer to the reference than with random scores, and shrinkage (Ledoit and
    Wolf) did not bring them closer; tests compare them with the reference.
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
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T  # unlike the vectors, it has no arbitrary sign
    return root / np.linalg.norm(root, axis=1, keepdims=True)


def _mean_scores(cumulative: Array) -> tuple[Array, float]:
    """Return E[z | x] for each count x of a gene, and its variance. [m]

    E[z | x] = (φ(a) − φ(b)) / (F(x) − F(x − 1))      a = Φ⁻¹(F(x − 1)), b = Φ⁻¹(F(x))
    """
    ends = np.concatenate([[0.0], cumulative])
    probability = np.diff(ends)
    density = np.exp(-(ndtri(ends) ** 2) / 2) / np.sqrt(2 * np.pi)
    middle = ndtri(np.minimum((ends[1:] + ends[:-1]) / 2, 1 - SMALLEST_PROBABILITY**1.5))
    likely = probability > SMALLEST_PROBABILITY
    scores = np.where(likely, -np.diff(density) / np.where(likely, probability, 1), middle)
    return scores, float(probability @ scores**2)


class _Entries(NamedTuple):
    """Counts to be added to a matrix. All arrays are [m]."""

    row: NDArray[np.intp]
    gene: NDArray[np.intp]
    value: NDArray[np.int64]


class CellStream:
    """A stream of cells of one type: the same cells, however many are taken at a time.

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
        """Return the counts of the next cells. [n, p]"""
        return self.take_sums(np.ones(n_cells, dtype=np.int64))

    def take_sums(self, n_cells: NDArray[np.int64]) -> csr_array:
        """Return counts summed over the next n_1 cells, the n_2 after them, and so on. [s] → [s, p]"""
        margins = self._model.margins
        per_cell = len(self._tables) + len(self._inflated) + margins.mean[self._plain].sum() + 1
        block = (np.cumsum(n_cells) * per_cell / VALUES_AT_A_TIME).astype(np.intp)
        parts = np.split(n_cells, np.flatnonzero(np.diff(block)) + 1)
        return vstack([self._take_block(part) for part in parts], format="csr")

    def _take_block(self, n_cells: NDArray[np.int64]) -> csr_array:
        filled = np.flatnonzero(n_cells)
        counts = csr_array((len(n_cells), len(self._model.margins.rate)), dtype=np.int64)
        if len(filled) == 0:
            return counts
        parts = [self._copula_sums(n_cells[filled]), self._inflated_sums(n_cells[filled]), self._plain_sums(n_cells[filled])]
        row, gene, value = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        places = (filled[row].astype(np.int32), gene.astype(np.int32))  # half the memory of the result
        return csr_array((value, places), shape=counts.shape)

    def _copula_sums(self, n_cells: NDArray[np.int64]) -> _Entries:
        """Draw x = F⁻¹(Φ(A e)), e ~ N(0, I), for each cell, and sum over cells. [s] → [s, q]"""
        noise = self._normals.standard_normal((int(n_cells.sum()), len(self._model.root)))
        levels = ndtr(self._model.root @ noise.T)
        first = np.concatenate([[0], np.cumsum(n_cells)[:-1]])
        sums = np.empty((len(n_cells), len(levels)), dtype=np.int64)
        for gene, table in enumerate(self._tables):
            sums[:, gene] = np.add.reduceat(table.quantile(levels[gene]), first)
        return _entries(sums, self._model.copula_genes)

    def _inflated_sums(self, n_cells: NDArray[np.int64]) -> _Entries:
        """Draw the sums of n cells: negative binomial with rate k λ and size k r, where k ~ Binomial(n, 1 − π). [s] → [s, p′]"""
        margins = self._model.margins.of(self._inflated)
        n_expressing = self._binomials.binomial(n_cells[:, None], 1 - margins.zero_inflation).astype(np.float64)
        rate = n_expressing * margins.rate
        dispersed = np.isfinite(margins.size)
        size = margins.size[dispersed]
        rate[:, dispersed] = self._gammas.standard_gamma(n_expressing[:, dispersed] * size) * (margins.rate[dispersed] / size)
        return _entries(self._poissons.poisson(rate), self._inflated)

    def _plain_sums(self, n_cells: NDArray[np.int64]) -> _Entries:
        """Draw sums of negative binomials as bursts, so that genes with no counts cost nothing. [s] → [s, p″]

        A negative binomial is a Poisson number of bursts, at the rate r log(1 + λ/r), each of a size with the logarithmic distribution
        of parameter λ / (r + λ) (Quenouille 1949). The bursts of all genes and cells of a spot are drawn together, at the sum of their
        rates. For r = ∞ the rate is λ and every burst has size one.
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
