"""Put expression, place and color of each spot side by side, and make the kernel that compares spots by them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from sklearn.gaussian_process.kernels import RBF, Kernel

from ..kernels.tables import ColumnKernel
from ..kernels.vectors import NeighborRBF
from ._fields import coordinates, numbers, slice_codes

Array = NDArray[np.float64]
Combine = Literal["sum", "product", "concatenate"]

COMBINATIONS = ("sum", "product", "concatenate")
STRETCH = 2.0
"""Lengthscales in units of the distance to the K-th neighbor: of 1, 2 and 4, the best on tumor sections with a pathologist's labels."""
DECIMALS = 6
"""Rows, in units of lengthscales, are rounded to so many decimals."""
FAR_APART = 100.0
"""The distance from one slice to the next, in units of half the extent of the largest: no kernel reaches so far."""
MOST_ON_TOP = 0.2
"""The share of spots that may coincide with others without a warning."""


class Modalities(NamedTuple):
    """The rows of all spots, in units of the kernel's lengthscales, and which columns are of which modality."""

    rows: Array
    """[n, D]"""
    columns: dict[str, slice]

    def kernel(self, combine: Combine, weights: Mapping[str, float] | None = None) -> Kernel:
        """Return the kernel on these rows. With a squared exponential k_g for each modality g,

        - "sum": k = Σ_g w_g k_g; spots are alike if they are alike in some modalities,
        - "product": k = Π_g (1 − w_g + w_g k_g); if they are alike in all of them,
        - "concatenate": one squared exponential of all columns, as in the paper.
        """
        if combine == "concatenate":
            return RBF(1.0, length_scale_bounds="fixed")
        groups = [(name, RBF(1.0, length_scale_bounds="fixed"), columns) for name, columns in self.columns.items()]
        return ColumnKernel(groups, combine=combine, weights=None if weights is None else [weights[name] for name in self.columns])


def gather(
    adata: Any,
    expression: Array,
    *,
    spatial_key: str | None,
    image_key: str | None,
    batch_key: str | None,
    combine: Combine,
    neighborhood: float,
) -> Modalities:
    """Return the rows of all spots, each modality divided by its lengthscale.

    For "concatenate", modalities first get equal standard deviations and then share one lengthscale.

    The lengthscale is twice the distance to the K-th neighbor, K = ⌊n / neighborhood⌋ for n spots in a slice, as the median over
    spots. Slices are laid side by side, far apart: spots of different slices may be alike in expression and color, never in place.
    """
    codes, n_slices = slice_codes(adata, batch_key)
    found = {"expression": expression}
    if spatial_key is not None:
        found["place"] = _lay_side_by_side(coordinates(adata, spatial_key), codes, n_slices)
    if image_key is not None:
        hint = " gpssl.spatial.image_features(adata) makes it from the image of a slice."
        found["color"] = standardized(numbers(adata, image_key, hint=hint))
    if combine == "concatenate":
        found["expression"] = standardized(expression)
        if "place" in found:
            found["place"] /= _spread_within(found["place"], codes, n_slices)
        scale = STRETCH * _lengthscale(np.hstack(list(found.values())), neighborhood * n_slices)
        scaled = {name: values / scale for name, values in found.items()}
    else:
        # Neighbors in place are from the same slice.
        counts = {name: neighborhood * (n_slices if name == "place" else 1) for name in found}
        scaled = {name: values / (STRETCH * _lengthscale(values, counts[name])) for name, values in found.items()}
    # The last digits depend on how counts were stored and read; which spots become inducing points should not.
    return Modalities(np.hstack(list(scaled.values())).round(DECIMALS), _places(scaled))


def _lay_side_by_side(values: Array, codes: NDArray[np.intp], n_slices: int) -> Array:
    """Return coordinates in units of the distance between neighboring spots, one slice far from the next. [n, 2 or 3]

    Slices may have been scanned at different resolutions; what they have in common is the distance between spots.
    """
    laid_out = np.empty_like(values)
    for code in range(n_slices):
        here = codes == code
        _warn_of_slices_on_top(values[here])
        laid_out[here] = (values[here] - values[here].mean(axis=0)) / spacing(values[here])
    laid_out[:, 0] += FAR_APART * np.abs(laid_out).max() * codes
    return laid_out


def spacing(places: Array) -> float:
    """Return the median distance from a spot to its nearest neighbor, over spots with no other exactly on top of them."""
    apart = _nearest(places)
    apart = apart[apart > 0]
    return float(np.median(apart)) if len(apart) else 1.0


def _nearest(places: Array) -> Array:
    """Return the distance to the nearest other spot. [n], or [0] for a single spot"""
    return cKDTree(places).query(places, 2)[0][:, 1] if len(places) > 1 else np.empty(0)


def _warn_of_slices_on_top(places: Array) -> None:
    distances = _nearest(places)
    if len(distances) and (distances == 0).mean() > MOST_ON_TOP:
        warnings.warn(
            f"{(distances == 0).mean():.0%} of the spots lie exactly on top of others. If these are several slices, pass batch_key=..., "
            "the column of obs that tells them apart.",
            UserWarning,
            stacklevel=2,
        )


def _spread_within(values: Array, codes: NDArray[np.intp], n_slices: int) -> float:
    """Return the standard deviation of all coordinates together, within slices."""
    centers = np.stack([values[codes == code].mean(axis=0) for code in range(n_slices)])
    return float((values - centers[codes]).std()) or 1.0


def standardized(values: Array) -> Array:
    """Return columns with mean 0 and standard deviation 1; constant ones become 0."""
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _lengthscale(values: Array, neighborhood: float) -> float:
    rule = NeighborRBF(neighborhood, reduce="median", per_column=False)
    return float(rule.resolve(values).length_scale)


def _places(found: Mapping[str, Array]) -> dict[str, slice]:
    """Return the columns of each modality, one after the other."""
    ends = np.cumsum([0, *(values.shape[1] for values in found.values())]).tolist()
    return {name: slice(start, stop) for name, start, stop in zip(found, ends, ends[1:], strict=False)}
