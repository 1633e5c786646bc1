"""Slices of tissue as problems to compare methods on: simulated ones with known proportions, and sections with a pathologist's labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from experiments.simulation import fit_cells, simulate, simulate_reference
from gpssl.comparison import split_seed
from gpssl.spatial import pure_spots, spatial_blocks
from gpssl.spatial._expression import expression_scores
from gpssl.spatial._fields import DECIMALS, Modalities, gather

from .data.slices import load_her2st, load_pbmc3k
from .plan import Plan

Array = NDArray[np.float64]

CELL_TYPES = ("B", "CD8 T", "Memory CD4 T", "Naive CD4 T")
"""The paper's, from blood."""
MARKERS = {
    "B": ["MS4A1", "CD79A", "CD79B", "TCL1A", "BANK1", "LINC00926"],
    "CD8 T": ["CD8A", "CD8B", "GZMK", "GZMA", "CCL5", "NKG7", "CST7"],
    "Memory CD4 T": ["S100A4", "IL32", "AQP3", "TNFRSF4", "GPR183", "CD2"],
    "Naive CD4 T": ["CCR7", "LEF1", "TCF7", "PRKCQ-AS1", "LDHB", "NOSIP"],
}
"""Genes that textbooks and annotations of such cells name, not taken from the reference."""
PURE = 0.8
"""Proportion of the dominant type from which a simulated spot counts as pure."""
SHAPE, SMALL_SHAPE = (30, 30), (16, 16)
CELLS_PER_SPOT = 30
LABELED_SHARE = 0.3
"""The share of a section's spots, or of its blocks, that have labels."""
N_BLOCKS = 25
UNDETERMINED = "undetermined"
"""What the pathologist calls spots that have no label."""


@dataclass(frozen=True)
class Slice:
    """Spots, some of them labeled, others to be predicted. All of them train representations, without labels."""

    adata: Any
    types: NDArray[np.str_]
    """The dominant type or the pathologist's label, "" where it is not known. [n]"""
    labels: NDArray[np.str_]
    """What the labeled spots are called, which may be wrong; "" elsewhere. [n]"""
    test: NDArray[np.intp]
    classes: NDArray[np.str_]
    """All types, sorted; not every one need be dominant somewhere. [types]"""
    proportions: Array | None
    """The proportions of the types, where they are known. [n, types]"""
    blocks: NDArray[np.intp] | None
    """What is held out together; None where each spot stands for itself. [n]"""
    seed: int

    @property
    def labeled(self) -> NDArray[np.intp]:
        """The spots with a label."""
        return np.flatnonzero(self.labels != "")

    def modalities(self) -> Modalities:
        """Return rows for a kernel of each modality, as `gpssl.spatial.embed` makes them."""
        expression = expression_scores(self.adata)
        return gather(self.adata, expression, spatial_key="spatial", image_key=None, batch_key=None, combine="sum", neighborhood=10)

    def rows(self) -> Array:
        """Return principal components and coordinates side by side, each with standard deviation 1: the paper's input. [n, 22]"""
        columns = np.hstack([expression_scores(self.adata), self.adata.obsm["spatial"]])
        return StandardScaler().fit_transform(columns).round(DECIMALS)


@cache
def simulator(*, made_up: bool) -> Any:
    """Fit models of cells, once in each process: of four types of blood cells, or of made-up ones that need no data."""
    return fit_cells(simulate_reference()) if made_up else fit_cells(load_pbmc3k(), types=CELL_TYPES)


def simulated_slice(number: int, plan: Plan, *, made_up: bool, found: bool) -> Slice:
    """Simulate a slice. Half of the pure spots are labeled with their type or, with `found`, those that markers find pure."""
    seed = split_seed(plan.seed, number)
    adata = _simulated(seed, made_up=made_up)
    types = adata.obs["cell_type"].astype(str).to_numpy()
    labels = _found_labels(adata, seed) if found else _labels_of_pure_spots(adata, types, seed)
    classes = np.array(sorted(adata.obsm["proportions"].columns))
    proportions = adata.obsm["proportions"][classes].to_numpy()
    return Slice(adata, types, labels, np.flatnonzero(labels == ""), classes, proportions, None, seed)


@lru_cache(maxsize=2)
def _simulated(seed: int, *, made_up: bool) -> Any:
    """Simulate spots, with their principal components. Methods come one after the other, so that the last slice is likely the next."""
    shape = SMALL_SHAPE if made_up else SHAPE
    adata = simulate(simulator(made_up=made_up), shape=shape, cells_per_spot=CELLS_PER_SPOT, random_state=seed)
    expression_scores(adata)
    return adata


def _labels_of_pure_spots(adata: Any, types: NDArray[np.str_], seed: int) -> NDArray[np.str_]:
    pure = np.flatnonzero(adata.obs["purity"] >= PURE)
    chosen = np.random.default_rng(seed).permutation(pure)[: len(pure) // 2]
    labels = np.full(len(types), "", dtype=types.dtype)
    labels[chosen] = types[chosen]
    return labels


def _found_labels(adata: Any, seed: int) -> NDArray[np.str_]:
    pure_spots(adata, adata.uns.get("signatures", MARKERS), random_state=seed)
    found = adata.obs["pure_label"]
    return np.where(found.isna(), "", found.astype(str))


@cache
def section(name: str) -> Any:
    """Load a section with a pathologist's labels, once in each process. Spots without counts are left out."""
    adata = load_her2st(name)
    return adata[np.asarray(adata.X.sum(axis=1)).ravel() > 0].copy()


def labeled_section(name: str, number: int, plan: Plan, *, by_block: bool) -> Slice:
    """Choose 30 % of the labeled spots, or of the blocks, to have their labels; the other labeled spots are predicted."""
    seed = split_seed(plan.seed, number)
    adata = section(name)
    types = adata.obs["pathologist_label"].astype(object).where(adata.obs["pathologist_label"].notna(), "").astype(str).to_numpy()
    types = np.where(types == UNDETERMINED, "", types)
    known = np.flatnonzero(types != "")
    units = spatial_blocks(adata, N_BLOCKS) if by_block else np.arange(adata.n_obs)
    order = np.random.default_rng(seed).permutation(np.unique(units[known]))
    chosen = np.isin(units, order[: round(LABELED_SHARE * len(order))]) & (types != "")
    labels = np.where(chosen, types, "")
    test, classes = np.setdiff1d(known, np.flatnonzero(chosen)), np.unique(types[known])
    return Slice(adata, types, labels, test, classes, None, units if by_block else None, seed)
