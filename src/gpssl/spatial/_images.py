"""Read images of tissue, and find its color under each spot."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import check_number
from ._fields import check_anndata, coordinates, need, quoted

Array = NDArray[np.float64]
Places = NDArray[np.intp]

CHANNELS = ("red", "green", "blue")


def image_features(
    adata: Any,
    *,
    library_id: str | None = None,
    resolution: str = "hires",
    radius: float | None = None,
    texture: bool = False,
    key_added: str = "image",
) -> None:
    """Compute the mean color over the disc under each spot, from 0 to 1.

    The pixel in row i and column j of the image covers [j, j + 1] × [i, i + 1]. For the spot at (x, y), with the scale s of the image,

        D = {(i, j) : (j + ½ − s x)² + (i + ½ − s y)² ≤ (s r)²},    mean = |D|⁻¹ Σ_D v_ij,    std² = |D|⁻¹ Σ_D (v_ij − mean)²

    for each channel v. A disc so small that it holds the center of no pixel takes the pixel that it lies in. Pixels outside of the image
    do not count; a spot whose disc lies entirely outside has NaN, and a warning says how many there are.

    Parameters
    ----------
    adata
        With `obsm["spatial"]` [n, 2], and an image and its scale in `uns["spatial"]`, as scanpy and `read_visium` lay them out. Images may
        be gray or have transparency; whole numbers count from 0 to the largest of their type, others from 0 to 1.
    library_id
        The section's name in `uns["spatial"]`, by default the only one. Slices that were concatenated are refused, because nothing says
        which spot lies on which image: compute colors before `anndata.concat`, which keeps them.
    resolution
        The name of the image, usually "hires" or "lowres".
    radius
        r, in the unit of `obsm["spatial"]`. By default half of `spot_diameter_fullres`.
    texture
        Whether to add the standard deviation of each channel.
    key_added
        The name of the result.

    Writes
    ------
    `obsm[key_added]`
        A data frame with columns "red", "green", "blue", and for texture "red_std", "green_std", "blue_std". [n, 3 or 6]
    """
    pandas = need("pandas")
    picture = _only_picture(adata, library_id, resolution)
    centers = coordinates(adata, "spatial")[:, :2] * picture.scale
    discs = Discs(centers, _disc_radius(picture, radius) * picture.scale, picture.pixels.shape[:2])
    _check_overlap(picture, discs)
    features: dict[str, Array] = {}
    for name, channel in zip(CHANNELS, _channels(picture.pixels), strict=True):
        features[name], features[f"{name}_std"] = _mean_and_std(channel, discs, texture=texture)
    names = [*CHANNELS, *(f"{name}_std" for name in CHANNELS if texture)]
    adata.obsm[key_added] = pandas.DataFrame({name: features[name] for name in names}, index=adata.obs_names)


def _only_picture(adata: Any, library_id: str | None, resolution: str) -> Picture:
    """Return the image that all spots lie on. Raise ValueError if there is none, or several sections."""
    libraries, picture = adata.uns.get("spatial", {}), find_picture(adata, library_id, resolution)
    if len(libraries) > 1:
        library = next(iter(libraries)) if library_id is None else library_id
        raise ValueError(
            f"uns['spatial'] has several sections, {quoted(libraries)}: compute colors slice by slice, before anndata.concat. Where "
            f"all spots are of one, keep that alone: adata.uns['spatial'] = {{{library!r}: adata.uns['spatial'][{library!r}]}}."
        )
    if picture is None:
        there = [name for library in libraries.values() for part in ("images", "scalefactors") for name in library.get(part, {})]
        raise ValueError(
            f"There is no image {resolution!r} with its tissue_{resolution}_scalef above 0, which says where spots are in it: "
            f"uns['spatial'] has {quoted(there)}. `read_visium` fills it where the folder has an image."
        )
    return picture


def _disc_radius(picture: Picture, radius: float | None) -> float:
    """Return the radius of the disc under a spot, in the unit of the spots' coordinates."""
    if radius is not None:
        check_number("radius", radius, Real, above=0)
        return radius
    if picture.spot_radius is None or not 0 < picture.spot_radius < np.inf:
        raise ValueError(
            "The scale factors have no spot_diameter_fullres above 0, so the size of the spots is not known: give a radius above 0."
        )
    return picture.spot_radius


def _check_overlap(picture: Picture, discs: Discs) -> None:
    """Warn of spots outside of the image, and raise ValueError if most are."""
    n_spots, outside = len(discs.centers), int((discs.n_pixels == 0).sum())
    if not outside:
        return
    height, width = discs.shape
    (left, top), (right, bottom) = discs.centers.min(axis=0), discs.centers.max(axis=0)
    where = (
        f"{outside} of {n_spots} spots lie outside of the image {picture.name} ({width} × {height} pixels): scaled by {picture.scale:g}, "
        f"spots are at x from {left:.0f} to {right:.0f} and y from {top:.0f} to {bottom:.0f}."
    )
    if 2 * outside > n_spots:
        raise ValueError(
            f"Image and spots do not overlap: {where} Is the image of another section or another size, is the scale factor of another "
            "image, or are x and y exchanged?"
        )
    warnings.warn(f"{where} Their colors are NaN: leave these spots out before you use them.", UserWarning, stacklevel=3)


def _channels(pixels: NDArray[Any]) -> Iterator[Array]:
    """Yield red, green and blue from 0 to 1. A gray image is yielded three times, and transparency is left out. Each [h, w]."""
    if np.issubdtype(pixels.dtype, np.integer):
        largest = float(np.iinfo(pixels.dtype).max)
    else:
        largest = 1.0
        if not (pixels.min() >= 0 and pixels.max() <= 1):
            raise ValueError(
                f"The image has values from {pixels.min():g} to {pixels.max():g}: from 0 to 1 are expected, or whole numbers as uint8."
            )
    planes = pixels[:, :, None] if pixels.ndim == 2 else pixels
    for place in range(len(CHANNELS)):
        yield planes[:, :, place if planes.shape[2] >= len(CHANNELS) else 0].astype(np.float64) / largest


def _mean_and_std(channel: Array, discs: Discs, *, texture: bool) -> tuple[Array, Array]:
    """Return mean and standard deviation over each disc: NaN without pixels, and the latter also without `texture`. [n] each"""
    count = np.where(discs.n_pixels > 0, discs.n_pixels, np.nan)
    # Values are taken relative to the mean of the image, so that the difference of squares loses fewer digits.
    shift = channel.mean()
    channel -= shift
    mean = discs.totals(channel) / count
    if not texture:
        return mean + shift, np.full(len(count), np.nan)
    squares = discs.totals(channel**2) / count
    return mean + shift, np.sqrt(np.maximum(squares - mean**2, 0))


class Picture(NamedTuple):
    """An image of the tissue, and how the coordinates of spots lead to its pixels."""

    name: str
    pixels: NDArray[Any]
    """[h, w] or [h, w, channels]"""
    scale: float
    """The number of pixels in one unit of the spots' coordinates."""
    spot_radius: float | None
    """The radius in the unit of the spots' coordinates."""

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top edge in the coordinates of the spots, y downwards."""
        height, width = self.pixels.shape[:2]
        return 0.0, width / self.scale, height / self.scale, 0.0


def find_picture(adata: Any, library_id: str | None, *resolutions: str) -> Picture | None:
    """Return the first of these images of a section in `uns["spatial"]`, where scanpy keeps them, whose scale is known.

    None if there is no such image, or if there are several sections and `library_id` names none.
    """
    check_anndata(adata)
    libraries = adata.uns.get("spatial", {})
    if library_id is None and len(libraries) != 1:
        return None
    library_id = next(iter(libraries)) if library_id is None else library_id
    if library_id not in libraries:
        raise ValueError(f"library_id={library_id!r} is not in uns['spatial'], which has {quoted(libraries)}.")
    images, factors = (libraries[library_id].get(part, {}) for part in ("images", "scalefactors"))
    scales = {name: float(factors.get(f"tissue_{name}_scalef", 0)) for name in resolutions}
    name = next((name for name in resolutions if name in images and scales[name] > 0), None)
    if name is None:
        return None
    pixels = np.asarray(images[name])
    if pixels.ndim not in (2, 3) or 0 in pixels.shape:
        raise ValueError(f"The image {name!r} has shape {pixels.shape}; rows × columns, or rows × columns × channels are expected.")
    diameter = factors.get("spot_diameter_fullres")
    return Picture(f"{name} of {library_id}", pixels, scales[name], None if diameter is None else float(diameter) / 2)


class Run(NamedTuple):
    """Neighboring pixels of one row, for each spot. [n] each"""

    row: Places
    start: Places
    """The first column."""
    end: Places
    """The column after the last, equal to `start` if there are no pixels."""


@dataclass(frozen=True)
class Discs:
    """A disc around each spot, in pixels."""

    centers: Array
    """x and y. [n, 2]"""
    radius: float
    shape: tuple[int, int]
    """Height and width of the image."""

    @cached_property
    def n_pixels(self) -> Places:
        """|D|, the number of pixels in each disc. [n]"""
        n_pixels = np.zeros(len(self.centers), dtype=np.intp)
        for run in self.runs():
            n_pixels += run.end - run.start
        return n_pixels

    def totals(self, values: Array) -> Array:
        """Return Σ_D v_ij for values [h, w]. [n]

        With the sums c_ij = Σ_{k<j} v_ik along rows, each row of a disc takes two look-ups, whatever its width.
        """
        sums = np.zeros((values.shape[0], values.shape[1] + 1))
        np.cumsum(values, axis=1, out=sums[:, 1:])
        total = np.zeros(len(self.centers))
        for run in self.runs():
            total += sums[run.row, run.end] - sums[run.row, run.start]
        return total

    def runs(self) -> Iterator[Run]:
        """Yield the discs, cut into rows of pixels; at the end the pixel under the center of discs that hold no other."""
        empty = np.ones(len(self.centers), dtype=bool)
        for offset in range(min(int(2 * self.radius) + 2, self.shape[0])):
            run = self._row(offset)
            empty &= run.end == run.start
            yield run
        yield self._pixels_under(empty)

    def _row(self, offset: int) -> Run:
        """Return the row of this number of each disc, counted from its top or from that of the image."""
        height, width = self.shape
        x, y = self.centers.T
        row = np.maximum(np.ceil(y - self.radius - 0.5), 0) + offset
        square = self.radius**2 - (row + 0.5 - y) ** 2
        half = np.sqrt(np.maximum(square, 0))
        here = (square >= 0) & (row < height)
        start = np.clip(np.ceil(x - half - 0.5), 0, width)
        end = np.clip(np.floor(x + half - 0.5) + 1, start, width)
        return Run(np.where(here, row, 0).astype(np.intp), start.astype(np.intp), np.where(here, end, start).astype(np.intp))

    def _pixels_under(self, spots: NDArray[np.bool_]) -> Run:
        """Return the pixels that the centers of these spots lie in, if they are within the image."""
        height, width = self.shape
        column, row = np.floor(self.centers).T
        inside = spots & (column >= 0) & (column < width) & (row >= 0) & (row < height)
        start = np.where(inside, column, 0).astype(np.intp)
        return Run(np.where(inside, row, 0).astype(np.intp), start, start + inside)


def read_image(path: Path, *, longest: int | None = None) -> NDArray[np.float32]:
    """Return colors from 0 to 1, scaled down so that no side is longer than `longest`. [h, w, 3]"""
    with open_image(path) as image:
        if longest is not None:
            image.thumbnail((longest, longest))  # for JPEG this decodes no more pixels than are needed
        return np.asarray(image.convert("RGB"), dtype=np.float32) / np.float32(255)


@contextmanager
def open_image(path: Path) -> Iterator[Any]:
    """Open an image of Pillow, compressed with gzip or not. Its pixels are read when they are asked for, in this context."""
    pillow = need("PIL.Image")
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file, warnings.catch_warnings():
        # Images of microscopes are as large as what Pillow suspects to be an attack.
        warnings.simplefilter("ignore", pillow.DecompressionBombWarning)
        try:
            yield pillow.open(file)
        except OSError as error:
            raise ValueError(
                f"{path} cannot be read as an image ({error}). Restore the file, or remove it to read without an image."
            ) from error
