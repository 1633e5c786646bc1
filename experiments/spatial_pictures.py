"""The paper's figures of tissue: a simulated slice, and the whole pipeline on real sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.manifold import TSNE

from gpssl.plots import plot_composition, plot_dimensions, plot_histology, plot_labels, plot_risk_coverage, plot_types
from gpssl.spatial import composition, embed, pure_spots

from .data.slices import load_her2st, load_signatures, load_tnbc_visium
from .figures import average_curve, save
from .ledger import Record
from .plan import Plan
from .slices import simulated_slice

BASES = ("tsne", "spatial")
PICTURED = ("columns", "VICReg", "kernel PCA", "GPSSL-mean", "GPSSL-full", "GP prior", "GPSSL-full, modalities", "GP prior, modalities")
FEWEST_COUNTS = 500
"""Spots with fewer are corners of their own in the plane of expression."""
N_ARCHETYPES = 8
"""Three more than types of the signatures: tissue has others too."""
N_COMPONENTS = 5
"""The paper's, so that its pictures can be compared."""


def draw_slices(records: Mapping[str, Sequence[Record]], plan: Plan, folder: Path) -> list[Path]:
    """Draw risk–coverage curves, a simulated slice, and two real sections if there are sections."""
    curves = {data: _curves(mine) for data, mine in records.items() if not data.endswith("_random")}
    pictures = {f"{_prefix(data)}_RC": plot_risk_coverage(methods) for data, methods in curves.items()}
    simulated = [data for data in records if data in ("simulated", "made_up")]
    if simulated:
        pictures |= _simulated(plan, made_up="made_up" in simulated)
    if any(data.endswith(("_random", "_blocks")) for data in records):
        pictures |= _real("realdata", load_tnbc_visium("397D"))
        pictures |= _real("her2st_C2", load_her2st("C2"))
    return save(pictures, folder)


def _prefix(data: str) -> str:
    """Return the paper's name of a picture where it has one."""
    return data.replace("simulated", "STsim") if data.startswith(("simulated", "made_up")) else f"her2st_{data}"


def _curves(records: Sequence[Record]) -> dict[str, Any]:
    by_method = {method: [record for record in records if record["method"] == method] for method in PICTURED}
    return {method: average_curve(mine) for method, mine in by_method.items() if mine}


def _simulated(plan: Plan, *, made_up: bool) -> dict[str, Any]:
    """Draw truth and estimate on the first slice, with `embed` and `composition` and the paper's number of dimensions."""
    problem = simulated_slice(0, plan, made_up=made_up, found=False)
    adata = problem.adata.copy()  # it is kept for other methods
    adata.obs["label"] = [label or None for label in problem.labels]
    embed(adata, N_COMPONENTS)
    composition(adata, "label")
    _add_tsne(adata)
    return {
        "STsim_data": plot_labels(adata, "cell_type", bases=BASES)[0, 0],
        "STsim_pest": plot_types(adata, bases=BASES)[0, 0],
    }


def _real(name: str, adata: Any) -> dict[str, Any]:
    """Draw all steps from counts to composition, with marker genes of breast tumors."""
    adata = adata[np.asarray(adata.X.sum(axis=1)).ravel() >= FEWEST_COUNTS].copy()
    pure_spots(adata, load_signatures("tnbc"), n_archetypes=N_ARCHETYPES)
    embed(adata, N_COMPONENTS)
    composition(adata, "pure_label")
    _add_tsne(adata)
    pictures = {
        f"{name}_data": plot_labels(adata, "pure_label", bases=BASES)[0, 0],
        f"{name}_repre": plot_dimensions(adata, values="mean")[0],
        f"{name}_repre_sd": plot_dimensions(adata, values="std")[0],
        f"{name}_result": plot_composition(adata, bases=BASES)[0, 0],
    }
    if "image" in adata.obsm:
        pictures[f"{name}_histology"] = plot_histology(adata)
    return pictures


def _add_tsne(adata: Any) -> None:
    """Add the plane of a t-SNE of expression alone, as in the paper."""
    adata.obsm["X_tsne"] = TSNE(random_state=0, init="pca").fit_transform(adata.obsm["X_pca"])
