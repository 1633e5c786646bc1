"""Which genes vary more between spots than others of their mean: scanpy's flavor "seurat", from sums over spots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .packages import need

Array = NDArray[np.float64]

N_BINS = 20


class GeneMoments(NamedTuple):
    """Sums over the spots of one slice, of normalized counts."""

    n_spots: float
    total: Array
    """[genes]"""
    squared: Array
    """[genes]"""


def highly_variable(slices: Sequence[GeneMoments], n_top_genes: int) -> NDArray[np.bool_]:
    """The genes of the highest normalized dispersion; of several slices, those that are among them in most slices. [genes]"""
    if len(slices) == 1:
        return _top(normalized_dispersions(slices[0]), n_top_genes)
    dispersions = np.stack([_among_expressed(moments) for moments in slices])
    n_slices = np.sum([_top(values, n_top_genes) for values in dispersions], axis=0)
    mean = np.nan_to_num(dispersions, nan=0.0).mean(axis=0)
    chosen = np.lexsort((-mean, -n_slices))[:n_top_genes]
    mask = np.zeros(dispersions.shape[1], dtype=bool)
    mask[chosen] = True
    return mask


def normalized_dispersions(moments: GeneMoments) -> Array:
    """log(variance / mean), standardized among genes of a similar log(1 + mean); NaN for genes without counts. [genes]"""
    pandas = need("pandas")
    mean = moments.total / moments.n_spots
    # A slice of one spot has no variance, and no say.
    variance = (moments.squared / moments.n_spots - mean**2) * moments.n_spots / max(moments.n_spots - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        dispersion = np.log(np.where(variance > 0, variance, np.nan) / np.where(mean > 0, mean, 1e-12))
    table = pandas.DataFrame({"dispersion": dispersion, "bin": pandas.cut(np.log1p(mean), bins=N_BINS)})
    in_bin = table.groupby("bin", observed=True)["dispersion"]
    center, spread = in_bin.transform("mean").to_numpy(), in_bin.transform("std").to_numpy()
    alone = np.isnan(spread)  # one gene in its bin: its dispersion is its own measure
    return (dispersion - np.where(alone, 0.0, center)) / np.where(alone, center, spread)


def _among_expressed(moments: GeneMoments) -> Array:
    """As above, of the genes that this slice has: those of other slices alone should not widen the bins. [genes]"""
    dispersions = np.full(len(moments.total), np.nan)
    expressed = moments.total > 0
    dispersions[expressed] = normalized_dispersions(GeneMoments(moments.n_spots, moments.total[expressed], moments.squared[expressed]))
    return dispersions


def _top(values: Array, count: int) -> NDArray[np.bool_]:
    """The largest; ties are all in. [genes]"""
    known = np.sort(values[~np.isnan(values)])[::-1]
    cutoff = known[min(count, len(known)) - 1] if len(known) else np.inf
    return np.nan_to_num(values, nan=-np.inf) >= cutoff
