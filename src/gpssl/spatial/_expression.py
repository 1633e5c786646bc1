"""Reduce gene expression to a few numbers for each spot: normalize, log, choose variable genes, find their principal components.

This does from sums over spots what scanpy's `normalize_total`, `log1p`, `highly_variable_genes` and `pca` do in memory, so that AnnData
in memory, in a file (backed) and on Dask take the same path and give the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from .._runtime.progress import Progress
from .._runtime.threads import one_blas_thread
from ..data._rows import Part, Rows, open_rows
from ._fields import column, counts_of, first_few, make_writable, need, numbers, slice_codes

Array = NDArray[np.float64]

N_COMPS = 20
"""The paper's number of principal components."""
N_TOP_GENES = 2000
MOST_GENES = 8000
"""The limit for principal components, because the covariance of all genes used is held in memory."""
FEWEST_SPOTS = 3
MADE_HERE = "gpssl"
"""The entry of `uns["pca"]` that says how components were computed, if they and their genes were found here."""
N_BINS = 20
"""Genes are compared with others of a similar mean, in as many bins as scanpy uses."""


def expression_scores(
    adata: Any,
    *,
    use_rep: str | None = None,
    layer: str | None = None,
    mask_var: str | ArrayLike | None = None,
    batch_key: str | None = None,
    n_top_genes: int = N_TOP_GENES,
    n_comps: int = N_COMPS,
    verbose: bool = False,
) -> Array:
    """Return what represents the expression of each spot: `obsm[use_rep]`, else the first columns of `obsm["X_pca"]`. [n, P]

    Principal components are computed if they are missing, and computed again if a layer or genes are named, or if they were computed here
    with other parameters, in four passes over the spots, with only a part of them in memory. As scanpy's `pca` does, this writes
    `obsm["X_pca"]`, `varm["PCs"]`, `uns["pca"]` and, if genes had to be chosen, `var["highly_variable"]`.

    Whole numbers are counts, and are normalized and logged. Other values are used as they are if `uns["log1p"]` says that scanpy logged
    them. Without `mask_var`, genes are chosen as scanpy's flavor "seurat" does; if there are several slices, in each of them.
    """
    make_writable(adata)
    if use_rep is not None:
        return numbers(adata, use_rep)
    way = {"n_comps": n_comps, "n_top_genes": n_top_genes, "layer": layer or "X", "batch_key": batch_key or ""}
    made_here = adata.uns.get("pca", {}).get(MADE_HERE)
    if "X_pca" in adata.obsm and mask_var is None and (made_here == way if made_here else layer is None):
        return numbers(adata, "X_pca")[:, :n_comps]
    if mask_var is None and "highly_variable" in adata.var and not made_here:
        mask_var = "highly_variable"
    if adata.n_obs < FEWEST_SPOTS:
        raise ValueError(f"There are {adata.n_obs} spots: principal components need at least {FEWEST_SPOTS}.")
    rows, scale = open_counts(adata, layer)
    used = _genes(adata, rows, scale, mask_var, batch_key, n_top_genes, verbose=verbose)
    scores, directions, variances = _principal_components(rows, scale, used, n_comps, verbose=verbose)
    loadings = np.zeros((len(used), scores.shape[1]))
    loadings[used] = directions
    if mask_var is None:
        adata.var["highly_variable"] = used
    adata.obsm["X_pca"], adata.varm["PCs"] = scores, loadings
    adata.uns["pca"] = {**variances, **({MADE_HERE: way} if mask_var is None else {})}
    return scores


def _principal_components(
    rows: Rows, scale: Scale, used: NDArray[np.bool_], n_comps: int, *, verbose: bool
) -> tuple[Array, Array, dict[str, Array]]:
    """Return scores [n, P], directions [genes used, P] and, by scanpy's names, variances of components of log-expression. [P] each"""
    n_comps = min(n_comps, rows.count() - 1, int(used.sum()))
    with one_blas_thread():
        progress = Progress("principal components", rows.n_rows, enabled=verbose, unit="spots")
        moments = rows.reduce(partial(_second_moments, scale=scale, used=used), _add, progress=progress)
        total, mean = moments[0], moments[1] / moments[0]
        covariance = (moments[2] - total * np.outer(mean, mean)) / (total - 1)
        last = len(covariance) - 1
        eigenvalues, vectors = eigh(covariance, subset_by_index=[last - n_comps + 1, last])
    variance, directions = eigenvalues[::-1], fix_signs(vectors[:, ::-1])
    scores = np.asarray(rows.map(partial(_project, scale=scale, used=used, mean=mean, directions=directions), (None, n_comps)))
    return scores.astype(np.float64), directions, {"variance": variance, "variance_ratio": variance / np.trace(covariance)}


def _second_moments(part: Part, *, scale: Scale, used: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
    """Return the number of spots, Σ x and Σ x xᵀ of the log-expression of the genes used."""
    values = scale.log(part.rows, used)
    return np.float64(len(values)), values.sum(axis=0), values.T @ values  # type: ignore[return-value]


def _add(one: tuple[Array, ...], other: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def _project(X: NDArray[Any], *, scale: Scale, used: NDArray[np.bool_], mean: Array, directions: Array) -> Array:
    return (scale.log(X, used) - mean) @ directions


def fix_signs(vectors: Array) -> Array:
    """Make the largest entry of each column positive, so that the same data give the same components on every machine."""
    largest = np.abs(vectors).argmax(axis=0)
    return vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])


def log_expression(adata: Any, genes: Sequence[str], *, layer: str | None = None) -> Array:
    """Return log(1 + normalized counts) of some genes. [n, genes]"""
    rows, scale = open_counts(adata, layer)
    places = adata.var_names.get_indexer(list(genes))
    return np.asarray(rows.map(partial(scale.log, genes=places), (None, len(places))), dtype=np.float64)


class Scale(NamedTuple):
    """How values become log-expression."""

    are_counts: bool
    target: float = 1.0
    """The total that each spot's counts are scaled to: the median total."""
    unit: float = 1.0
    """The natural logarithm of the base, for values that were logged before."""

    def normalize(self, X: NDArray[Any]) -> Array:
        """Return t·c_ng / Σ_g c_ng for counts c_ng; for values that were logged before, undo the logarithm. [n, genes]"""
        return X * self._factor(X) if self.are_counts else np.expm1(self.unit * X.astype(np.float64))

    def log(self, X: NDArray[Any], genes: NDArray[Any]) -> Array:
        """Return the logarithm of one plus the normalized counts of some genes. [n, genes]"""
        chosen = X[:, genes].astype(np.float64)
        return np.log1p(chosen * self._factor(X)) if self.are_counts else self.unit * chosen

    def _factor(self, X: NDArray[Any]) -> Array:
        return self.target / X.sum(axis=1, keepdims=True, dtype=np.float64)


def open_counts(adata: Any, layer: str | None) -> tuple[Rows, Scale]:
    """Open the counts or the log-expression, to be read in parts, with its scale. Raise ValueError for values that are neither."""
    rows = open_rows(counts_of(adata, layer, hint=", or a representation, use_rep=..."))
    total, lowest, whole = np.asarray(rows.map(_summarize, (None, 3))).T
    if not whole.all():
        if "log1p" in adata.uns and lowest.min() >= 0:
            base = adata.uns["log1p"].get("base")
            return rows, Scale(are_counts=False, unit=1.0 if base is None else float(np.log(base)))
        spot = adata.obs_names[int(np.argmin(whole))]
        raise ValueError(
            f"Some values are not whole numbers (spot {spot!r} has one), so these are not counts. Pass layer=... with the raw counts, or "
            'use_rep="X_pca" where principal components are there; adata.raw.to_adata() may have better values than a scaled X. If they '
            'were normalized and logged, but scanpy did not note it, set adata.uns["log1p"] = {"base": None}. Counts that a correction '
            "made fractional can be rounded."
        )
    if lowest.min() < 0:
        spot = adata.obs_names[int(np.argmin(lowest))]
        raise ValueError(f"Spot {spot!r} has negative values, so these are not counts: pass layer=... with the raw counts.")
    empty = np.flatnonzero(total == 0)
    if len(empty):
        raise ValueError(
            f"{len(empty)} of {len(total)} spots have no counts at all ({first_few(adata.obs_names[empty])}): remove them, "
            "scanpy.pp.filter_cells(adata, min_counts=1)."
        )
    return rows, Scale(are_counts=True, target=float(np.median(total)))


def _summarize(X: NDArray[Any]) -> Array:
    """Return total and lowest value of each spot, and whether all its values are whole numbers. [n, 3]"""
    return np.stack([X.sum(axis=1, dtype=np.float64), X.min(axis=1), (np.floor(X) == X).all(axis=1)], axis=1).astype(np.float64)


def _genes(
    adata: Any, rows: Rows, scale: Scale, mask_var: str | ArrayLike | None, batch_key: str | None, n_top_genes: int, *, verbose: bool
) -> NDArray[np.bool_]:
    """Return which genes the principal components are computed from. [genes]"""
    if mask_var is None:
        if adata.n_vars <= n_top_genes:
            return np.ones(adata.n_vars, dtype=bool)
        codes, n_slices = slice_codes(adata, batch_key)
        progress = Progress("variable genes", rows.n_rows, enabled=verbose, unit="spots")
        by_slice = partial(_gene_moments, scale=scale, n_slices=n_slices)
        n_spots, total, squared = rows.weighted((1 + codes).astype(np.float64)).reduce(by_slice, _add, progress=progress)
        return _highly_variable(n_spots, total, squared, n_top_genes)
    named = f'var["{mask_var}"]' if isinstance(mask_var, str) else "mask_var"
    mask = np.asarray(column(adata.var, mask_var, "mask_var", "var") if isinstance(mask_var, str) else mask_var)
    if mask.dtype != bool or mask.shape != (adata.n_vars,):
        raise ValueError(f"{named} must be one boolean for each of the {adata.n_vars} genes, got {mask.dtype} of shape {mask.shape}.")
    if not 2 <= mask.sum() <= MOST_GENES:
        raise ValueError(f"{named} leaves {mask.sum()} genes: principal components are computed from 2 to {MOST_GENES:,}.")
    return mask


def _gene_moments(part: Part, *, scale: Scale, n_slices: int) -> tuple[Array, Array, Array]:
    """Return spots [slices], sums and sums of squares [slices, genes] of normalized counts. The part's weights number slices from 1."""
    values, codes = scale.normalize(part.rows), part.weight.astype(np.intp) - 1
    member = np.eye(n_slices)[codes].T
    return member.sum(axis=1), member @ values, member @ values**2


def _highly_variable(n_spots: Array, total: Array, squared: Array, n_top_genes: int) -> NDArray[np.bool_]:
    """Choose the genes of the highest normalized dispersion; for several slices, those that are among them in most slices. [genes]"""
    if len(n_spots) == 1:
        return _top(_normalized_dispersions(n_spots[0], total[0], squared[0]), n_top_genes)
    dispersions = np.full_like(total, np.nan)
    for k, expressed in enumerate(total > 0):  # genes that this slice lacks should not widen its bins
        dispersions[k, expressed] = _normalized_dispersions(n_spots[k], total[k, expressed], squared[k, expressed])
    n_slices = np.sum([_top(values, n_top_genes) for values in dispersions], axis=0)
    mean = np.nan_to_num(dispersions, nan=0.0).mean(axis=0)
    return np.isin(np.arange(len(mean)), np.lexsort((-mean, -n_slices))[:n_top_genes])


def _normalized_dispersions(n_spots: float, total: Array, squared: Array) -> Array:
    """Return log(variance / mean), standardized among genes of a similar log(1 + mean); NaN for genes without counts. [genes]"""
    pandas = need("pandas")
    mean = total / n_spots
    # A slice of one spot has no variance and does not count.
    variance = (squared / n_spots - mean**2) * n_spots / max(n_spots - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        dispersion = np.log(np.where(variance > 0, variance, np.nan) / np.where(mean > 0, mean, 1e-12))
    table = pandas.DataFrame({"dispersion": dispersion, "bin": pandas.cut(np.log1p(mean), bins=N_BINS)})
    in_bin = table.groupby("bin", observed=True)["dispersion"]
    center, spread = in_bin.transform("mean").to_numpy(), in_bin.transform("std").to_numpy()
    alone = np.isnan(spread)  # a gene that is alone in its bin is compared with itself
    return (dispersion - np.where(alone, 0.0, center)) / np.where(alone, center, spread)


def _top(values: Array, count: int) -> NDArray[np.bool_]:
    """Return where the largest values are, with all ties. [genes]"""
    known = np.sort(values[~np.isnan(values)])[::-1]
    cutoff = known[min(count, len(known)) - 1] if len(known) else np.inf
    return np.nan_to_num(values, nan=-np.inf) >= cutoff
