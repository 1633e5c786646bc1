"""A single-cell reference that needs no data: made-up types of cells with known marker genes."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from ..validation import check_number, seed_from
from .fields import check_type_names
from .packages import need

TYPES = ("B", "CD8 T", "Memory CD4 T", "Naive CD4 T")
SIZE = 2.0
"""r of the counts: their variance is λ + λ²/r given how deeply a cell is sequenced."""

DEPTH_SPREAD = 0.3
"""Standard deviation of the log of a cell's depth. It makes all genes of a cell go together, as in real cells."""


def simulate_reference(
    *,
    types: Sequence[str] = TYPES,
    n_cells: int = 100,
    n_genes: int = 300,
    n_markers: int = 10,
    fold_change: float = 6.0,
    random_state: Any = 0,
) -> Any:
    """Single cells of made-up types, for trying things out without any data.

        x_ig ~ NB(mean d_i λ_g φ_tg, size 2)      log d_i ~ N(0, 0.3²)      log λ_g ~ N(−1, 1)

    where φ_tg is `fold_change` if gene g is a marker of the cell's type t, and one otherwise. The names of types are only names.

    Parameters
    ----------
    types
        Their names, without "/", which separates levels in h5ad files.
    n_cells
        Cells of each type.
    n_genes
        Genes, named "gene_0", "gene_1", …
    n_markers
        Marker genes of each type, no two types the same. They are made to be seen: log λ_g is at least −1.
    fold_change
        How much more a marker is expressed in its type.
    random_state
        Seed, or scikit-learn's random state.

    Returns
    -------
    adata
        AnnData with counts in `X`, types in `obs["cell_type"]` and the marker genes of each type in `uns["signatures"]`.
    """
    check_type_names(types)
    check_number("n_cells", n_cells, Integral, at_least=1)
    check_number("n_markers", n_markers, Integral, at_least=1)
    check_number("fold_change", fold_change, Real, above=0)
    check_number("n_genes", n_genes, Integral, at_least=len(types) * n_markers, otherwise="to have markers for each type")
    rng = np.random.default_rng(seed_from(random_state))
    markers = rng.permutation(n_genes)[: len(types) * n_markers].reshape(len(types), n_markers)
    log_rate = rng.normal(-1, 1, n_genes)
    log_rate[markers] = np.maximum(log_rate[markers], -1)
    change = np.ones((len(types), n_genes))
    change[np.arange(len(types))[:, None], markers] = fold_change

    code = np.repeat(np.arange(len(types)), n_cells)
    depth = np.exp(rng.normal(0, DEPTH_SPREAD, (len(code), 1)))
    mean = depth * np.exp(log_rate) * change[code]
    counts = rng.poisson(mean * rng.gamma(SIZE, 1 / SIZE, mean.shape))

    pandas = need("pandas")
    genes = np.array([f"gene_{number}" for number in range(n_genes)])
    obs = pandas.DataFrame(
        {"cell_type": pandas.Categorical.from_codes(code, categories=list(types))}, index=[f"cell_{number}" for number in range(len(code))]
    )
    adata = need("anndata").AnnData(csr_matrix(counts, dtype=np.float32), obs=obs, var=pandas.DataFrame(index=genes))
    adata.uns["signatures"] = {name: genes[np.sort(rows)].tolist() for name, rows in zip(types, markers, strict=True)}
    return adata
