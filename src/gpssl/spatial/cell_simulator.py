"""Cells of several types, after a single-cell reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, issparse, vstack

from ..validation import check_number, seed_from
from .cell_stream import CellStream
from .copula import CellModel, fit_cell_model
from .fields import check_anndata, check_type_names, column, counts_of, listed, some
from .packages import need

FEWEST_CELLS = 10
"""Of a type, for its counts to be modeled."""

N_COPULA_GENES = 500


@dataclass(frozen=True)
class CellSimulator:
    """Models of cells of several types, as `fit_cells` makes them."""

    types: tuple[str, ...]
    genes: tuple[str, ...]
    models: tuple[CellModel, ...]
    """One for each type."""
    signatures: dict[str, list[str]]
    """Marker genes by type, where the reference has them."""

    def of_types(self, types: Sequence[str]) -> CellSimulator:
        """The same for some of the types, in the order given."""
        _check_types(types, self.types)
        return CellSimulator(
            types=tuple(types),
            genes=self.genes,
            models=tuple(self.models[self.types.index(name)] for name in types),
            signatures={name: self.signatures[name] for name in types if name in self.signatures},
        )

    def sample(self, n_cells: int, *, random_state: Any = 0) -> Any:
        """New single cells, `n_cells` of each type: AnnData with counts in `X` and types in `obs["cell_type"]`."""
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
    """What cells of each type look like in a single-cell reference: scDesign2's model (Sun et al. 2021), by type.

    Each gene has a Poisson or negative binomial margin, with zero inflation where that is significantly more likely; a Gaussian copula
    carries the correlations of the most variable genes, and the rest are independent. Fit once, then draw as many slices as you like:

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
        Where the counts are, if not in `X`.
    n_copula_genes
        At most so many genes of a type are correlated. Zero means that all are independent.
    """
    check_number("n_copula_genes", n_copula_genes, Integral, at_least=0)
    labels = _labels(reference, label_key)
    found = sorted(set(labels.tolist()) - {""})
    types = found if types is None else types
    _check_types(types, found)
    check_type_names(types)
    counts_of(reference, layer)  # its sentences, before cells are copied
    counts = [_counts_of_type(reference, name, np.flatnonzero(labels == name), layer) for name in types]
    return CellSimulator(
        types=tuple(types),
        genes=tuple(map(str, reference.var_names)),
        models=tuple(fit_cell_model(cells, n_copula_genes) for cells in counts),
        signatures={str(name): list(map(str, genes)) for name, genes in reference.uns.get("signatures", {}).items() if str(name) in types},
    )


def _labels(reference: Any, label_key: str) -> NDArray[np.str_]:
    """The type of each cell, empty where it has none. [n]"""
    check_anndata(reference)
    labels = column(reference.obs, label_key, "label_key", "obs")
    return np.where(labels.isna(), "", labels.astype(object).astype(str)).astype(str)


def _check_types(types: Sequence[str], found: Sequence[str]) -> None:
    if isinstance(types, str):
        raise TypeError(f"types must be a list of types, got the text {types!r}.")
    unknown = [name for name in types if name not in found]
    if unknown:
        raise ValueError(f"No cell of the reference has the type {listed(unknown)}: its types are {some(found, 10)}.")
    if len(types) < 2 or len(set(types)) < len(types):
        raise ValueError(f"A slice needs at least two types, each named once, got {list(types)}.")


def _counts_of_type(reference: Any, name: str, rows: NDArray[np.intp], layer: str | None) -> csr_array:
    """The counts of the cells of one type, checked. [n, p]"""
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
