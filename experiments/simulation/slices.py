"""Simulate slices of tissue with known composition: cells like those of a reference, mixed in spots by Gaussian process traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack
from scipy.special import softmax

from gpssl._validation import check_number, seed_from
from gpssl.spatial._fields import need

from .cells import CellSimulator, CellStream, check_type_names, fit_cells

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

TYPES = ("B", "CD8 T", "Memory CD4 T", "Naive CD4 T")
SIZE = 2.0
"""r of the counts: given the depth of a cell, their variance is λ + λ²/r."""

DEPTH_SPREAD = 0.3
"""The standard deviation of the logarithm of a cell's depth, which correlates all genes of a cell, as in real cells."""

SPOTS_AT_A_TIME = 5000
"""The number of spots whose counts by type are held in memory before they are added up."""


def simulate_reference(
    *,
    types: Sequence[str] = TYPES,
    n_cells: int = 100,
    n_genes: int = 300,
    n_markers: int = 10,
    fold_change: float = 6.0,
    random_state: Any = 0,
) -> Any:
    """Simulate single cells of made-up types, for trying things out without any data.

        x_ig ~ NB(mean d_i λ_g φ_tg, size 2)      log d_i ~ N(0, 0.3²)      log λ_g ~ N(−1, 1)

    where φ_tg is `fold_change` if gene g is a marker of the cell's type t, and one otherwise. The names of the types have no meaning.

    Parameters
    ----------
    types
        Names of the types, without "/", which separates levels in h5ad files.
    n_cells
        The number of cells of each type.
    n_genes
        The number of genes, which are named "gene_0", "gene_1", …
    n_markers
        The number of marker genes of each type; types share none. So that markers can be seen, their log λ_g is at least −1.
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


def simulate(
    reference: Any,
    *,
    label_key: str = "cell_type",
    types: Sequence[str] | None = None,
    shape: tuple[int, int] = (30, 30),
    cells_per_spot: float = 10,
    lengthscale: float = 0.2,
    sharpness: float = 3.0,
    mask: Mask | Callable[[Array], Mask] | None = None,
    random_state: Any = 0,
) -> Any:
    """Simulate a slice of tissue as a grid of spots with known composition, as in the paper's semi-synthetic study (section 4.1).

        f_t ~ GP(0, exp(−‖s − s′‖² / 2ℓ²))          a trace for each type t
        π_t(s) = exp(β f_t(s)) / Σ_u exp(β f_u(s))  proportions of the types at spot s
        n(s) ~ 1 + Poisson(c − 1)                   number of cells, at least one
        (n_1(s), …, n_T(s)) ~ Multinomial(n(s), π(s))
        counts(s) = Σ_t Σ_{i ≤ n_t(s)} x_ti(s)      x_ti(s) a new cell of type t, as `fit_cells` models it

    The same seed gives the same slice. Leaving out spots with the mask does not change the composition of the others.

    Parameters
    ----------
    reference
        AnnData of single cells with raw counts in `X`; or, to fit once for several slices, what `fit_cells` returned.
    label_key
        The column of `obs` with the type of each cell; not used where `reference` comes from `fit_cells`.
    types
        Which types of the reference; None means all.
    shape
        Rows and columns of the grid. The longer side has length one.
    cells_per_spot
        c, the mean number of cells in a spot.
    lengthscale
        ℓ, in units of the longer side: the distance over which composition stays alike.
    sharpness
        β. With four types, the largest proportion of a spot is on average 0.52 for β = 1 and 0.77 for β = 3.
    mask
        Where there is tissue: True or False for each place of the grid [rows, columns], or a function from coordinates [n, 2] to
        those [n]. None means everywhere.
    random_state
        Seed, or scikit-learn's random state.

    Returns
    -------
    adata
        AnnData of the spots: `X` counts (CSR, float32), genes of the reference in `var_names`;
        `obsm["spatial"]` [n, 2], x to the right and y down;
        `obsm["proportions"]` π, data frame with a column for each type;
        `obsm["cells"]` n_t, data frame with a column for each type;
        `obs["cell_type"]` the type with the largest proportion, `obs["purity"]` that proportion;
        `obs["array_row"]`, `obs["array_col"]` the place in the grid;
        `uns["simulation"]` the parameters; `uns["signatures"]` marker genes by type, where the reference has them there.
    """
    _check_parameters(shape, cells_per_spot, lengthscale, sharpness)
    coordinates = grid_coordinates(shape)
    tissue = _tissue(mask, shape, coordinates)
    cells = _as_simulator(reference, label_key, types)

    seed = int(random_state) if isinstance(random_state, Integral) else seed_from(random_state)
    for_traces, for_cells, *for_types = np.random.default_rng(seed).spawn(2 + len(cells.types))
    traces = grid_traces(len(cells.types), shape, lengthscale, for_traces)
    proportions = softmax(sharpness * traces.T, axis=1)
    n_cells = for_cells.multinomial(1 + for_cells.poisson(cells_per_spot - 1, len(proportions)), proportions)

    parameters = {
        "types": list(cells.types),
        "shape": list(shape),
        "cells_per_spot": cells_per_spot,
        "lengthscale": lengthscale,
        "sharpness": sharpness,
        "random_state": seed,
    }
    places = np.flatnonzero(tissue)
    streams = [CellStream(model, rng) for model, rng in zip(cells.models, for_types, strict=True)]
    counts = _sum_cells(streams, n_cells[places])
    return _slice(cells, counts, places, coordinates[places], proportions[places], n_cells[places], parameters)


def _as_simulator(reference: Any, label_key: str, types: Sequence[str] | None) -> CellSimulator:
    if not isinstance(reference, CellSimulator):
        return fit_cells(reference, label_key=label_key, types=types)
    return reference if types is None else reference.of_types(types)


def _check_parameters(shape: Any, cells_per_spot: Any, lengthscale: Any, sharpness: Any) -> None:
    if np.shape(shape) != (2,):
        raise ValueError(f"shape must be the rows and columns of the grid, such as (30, 30), got {shape!r}.")
    for side in shape:
        check_number("Each side of shape", side, Integral, at_least=1)
    check_number("cells_per_spot", cells_per_spot, Real, at_least=1)
    check_number("lengthscale", lengthscale, Real, above=0)
    check_number("sharpness", sharpness, Real, at_least=0)


def _tissue(mask: Any, shape: tuple[int, int], coordinates: Array) -> Mask:
    """Return whether there is tissue at each place of the grid. [rows · columns]"""
    if mask is None:
        return np.ones(len(coordinates), dtype=bool)
    tissue = np.asarray(mask(coordinates.copy()) if callable(mask) else mask)
    expected = (len(coordinates),) if callable(mask) else tuple(shape)
    if tissue.shape != expected or tissue.dtype != bool:
        raise ValueError(
            f"The mask must be True or False for each place of the grid: an array of shape {list(shape)}, or a function that returns "
            f"{len(coordinates)} of them for coordinates [{len(coordinates)}, 2]; got shape {list(tissue.shape)} of {tissue.dtype}."
        )
    if not tissue.any():
        raise ValueError("The mask leaves out every spot: it must be True where there is tissue.")
    return tissue.ravel()


def _sum_cells(streams: list[CellStream], n_cells: NDArray[np.int64]) -> csr_matrix:
    """Return the counts of the spots, summed over cells of all types. [n, T] → [n, p]"""
    blocks = []
    for first in range(0, len(n_cells), SPOTS_AT_A_TIME):
        block = n_cells[first : first + SPOTS_AT_A_TIME]
        by_type = [stream.take_sums(n_of_type) for stream, n_of_type in zip(streams, block.T, strict=True)]
        blocks.append(csr_matrix(sum(by_type), dtype=np.float32))
    return vstack(blocks, format="csr")


def _slice(
    cells: CellSimulator,
    counts: csr_matrix,
    places: NDArray[np.intp],
    coordinates: Array,
    proportions: Array,
    n_cells: NDArray[np.int64],
    parameters: dict[str, Any],
) -> Any:
    pandas = need("pandas")
    types = list(cells.types)
    row, column = np.divmod(places, parameters["shape"][1])
    names = [f"{r}x{c}" for r, c in zip(row.tolist(), column.tolist(), strict=True)]
    dominant = pandas.Categorical.from_codes(proportions.argmax(axis=1), categories=types)
    truth = {"cell_type": dominant, "purity": proportions.max(axis=1), "array_row": row, "array_col": column}
    adata = need("anndata").AnnData(counts, obs=pandas.DataFrame(truth, index=names), var=pandas.DataFrame(index=list(cells.genes)))
    adata.obsm["spatial"] = coordinates
    adata.obsm["proportions"] = pandas.DataFrame(proportions, index=names, columns=types)
    adata.obsm["cells"] = pandas.DataFrame(n_cells, index=names, columns=types)
    adata.uns["simulation"] = parameters
    if cells.signatures:
        adata.uns["signatures"] = {name: list(genes) for name, genes in cells.signatures.items()}
    return adata


def grid_coordinates(shape: tuple[int, int]) -> Array:
    """Return the places of the spots of a grid, row by row: x to the right, y down. [rows · columns, 2]

    Spots are the centers of squares whose side is one over the longer side of the grid, so that the grid lies in the unit square.
    """
    rows, columns = np.indices(shape).reshape(2, -1)
    return (np.column_stack([columns, rows]) + 0.5) / max(shape)


def grid_traces(n_traces: int, shape: tuple[int, int], lengthscale: float, rng: np.random.Generator) -> Array:
    """Draw independent functions from a Gaussian process, at the spots of a grid. [T, rows · columns]

        k(s, s′) = exp(−‖s − s′‖² / 2ℓ²) = k_y(y, y′) k_x(x, x′)      K = K_y ⊗ K_x      f = vec(R_y E R_xᵀ)

    with R Rᵀ the covariance along one axis and E standard normal: exact, and no matrix is larger than the grid.
    """
    noise = rng.standard_normal((n_traces, *shape))
    root_y, root_x = (_axis_root(n_spots, 1 / max(shape), lengthscale) for n_spots in shape)
    return (root_y @ noise @ root_x.T).reshape(n_traces, -1)


def _axis_root(n_spots: int, spacing: float, lengthscale: float) -> Array:
    """Return the symmetric square root of exp(−(i − j)² δ² / 2ℓ²). [n, n]

    Eigenvalues that rounding makes negative are zero: a smooth kernel on a fine grid has no Cholesky factor without jitter.
    """
    steps = np.arange(n_spots) * spacing / lengthscale
    values, vectors = np.linalg.eigh(np.exp(-((steps[:, None] - steps) ** 2) / 2))
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
