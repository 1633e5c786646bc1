"""Blocks of neighboring spots: what must stay together where a model is judged, because neighbors tell on each other."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..validation import check_number
from .fields import check_anndata, coordinates, slice_codes


def spatial_blocks(adata: Any, n_blocks: int = 25, *, spatial_key: str = "spatial", batch_key: str | None = None) -> NDArray[np.intp]:
    """The number of the square block that each spot lies in, counted from 0: about `n_blocks` cover each slice. [n]

    They are groups for scikit-learn's splitters, such as `GroupKFold` and `StratifiedGroupKFold`. Spots at random would leave most test
    spots with training spots beside them, and accuracies that no new tissue will see.
    """
    check_anndata(adata)
    check_number("n_blocks", n_blocks, Integral, at_least=1)
    places, (codes, n_slices) = coordinates(adata, spatial_key)[:, :2], slice_codes(adata, batch_key)
    tiles = np.empty((len(places), 3), dtype=np.intp)
    for code in range(n_slices):
        here = codes == code
        tiles[here] = np.column_stack([np.full(here.sum(), code), _tiles(places[here], n_blocks)])
    return np.unique(tiles, axis=0, return_inverse=True)[1].reshape(-1)


def _tiles(places: NDArray[np.float64], n_blocks: int) -> NDArray[np.intp]:
    """Column and row of the square tile of each place. [n, 2]"""
    low, extent = places.min(axis=0), np.ptp(places, axis=0)
    side = np.sqrt(extent.prod() / n_blocks) or extent.max() / n_blocks or 1.0
    counts = np.maximum(1, np.rint(extent / side))
    longer = counts.argmax()
    counts[longer] = max(1, min(counts[longer], round(n_blocks / counts[1 - longer])))  # a thin slice is cut across only
    return np.minimum((places - low) / np.where(extent > 0, extent, 1.0) * counts, counts - 1).astype(np.intp)
