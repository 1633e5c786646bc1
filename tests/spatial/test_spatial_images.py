"""Colors under spots against a loop over all pixels, and sentences where image and spots do not fit."""

from __future__ import annotations

from collections.abc import Callable
from math import floor, hypot
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpssl.spatial import image_features

anndata = pytest.importorskip("anndata")

Array = NDArray[np.float64]

SCALE = 0.25
HEIGHT, WIDTH = 23, 31


def section(image: NDArray[Any], spots: Any, scale: float = SCALE, diameter: float = 20.0) -> Any:
    """Spots on an image, in the coordinates of one that is larger by 1 / scale."""
    adata = anndata.AnnData(np.zeros((len(spots), 1), dtype=np.float32))
    adata.obsm["spatial"] = np.asarray(spots, dtype=np.float64)
    factors = {"tissue_hires_scalef": scale, "spot_diameter_fullres": diameter}
    adata.uns["spatial"] = {"slide": {"images": {"hires": image}, "scalefactors": factors}}
    return adata


def colors_by_loop(image: Array, x: float, y: float, radius: float) -> tuple[Array, Array]:
    """Mean and standard deviation of [h, w, 3] over the pixels whose centers are in the disc, else the pixel under its center."""
    found = [
        image[row, column]
        for row in range(image.shape[0])
        for column in range(image.shape[1])
        if hypot(column + 0.5 - x, row + 0.5 - y) <= radius
    ]
    if not found and 0 <= x < image.shape[1] and 0 <= y < image.shape[0]:
        found = [image[floor(y), floor(x)]]
    if not found:
        return np.full(3, np.nan), np.full(3, np.nan)
    return np.mean(found, axis=0), np.std(found, axis=0)


@pytest.fixture
def picture() -> Array:
    return np.random.default_rng(0).random((HEIGHT, WIDTH, 3))


@pytest.fixture
def spots() -> Array:
    """60 anywhere on the image, and some on its corners and edges."""
    within = np.random.default_rng(1).random((60, 2)) * (WIDTH, HEIGHT)
    return np.vstack([within, [(0, 0), (WIDTH, HEIGHT), (WIDTH, 0), (-1, 5), (5, HEIGHT + 1.5)]]) / SCALE


@pytest.mark.parametrize("radius", [0.3, 0.5, 1.0, 2.5, 7.3, 60.0, 1e12])
def test_mean_and_std_are_those_of_a_loop_over_pixels(picture: Array, spots: Array, radius: float) -> None:
    expected = [colors_by_loop(picture, x, y, radius) for x, y in spots * SCALE]
    adata = section(picture, spots)
    if any(np.isnan(mean).any() for mean, _ in expected):
        with pytest.warns(UserWarning, match="spots lie outside of the image hires of slide"):
            image_features(adata, radius=radius / SCALE, texture=True)
    else:
        image_features(adata, radius=radius / SCALE, texture=True)
    result = adata.obsm["image"]
    assert list(result) == ["red", "green", "blue", "red_std", "green_std", "blue_std"]
    np.testing.assert_allclose(result.iloc[:, :3], [mean for mean, _ in expected], atol=1e-12)
    np.testing.assert_allclose(result.iloc[:, 3:], [std for _, std in expected], atol=1e-7)


def test_radius_is_half_of_the_spot_s_diameter_by_default(picture: Array, spots: Array) -> None:
    first, second = section(picture, spots, diameter=20.0), section(picture, spots, diameter=999.0)
    image_features(first)
    image_features(second, radius=10.0)
    assert list(first.obsm["image"]) == ["red", "green", "blue"]
    assert first.obsm["image"].equals(second.obsm["image"])


def test_one_color_has_no_texture(spots: Array) -> None:
    adata = section(np.full((HEIGHT, WIDTH, 3), (0.1, 0.7, 0.9)), spots)
    image_features(adata, texture=True)
    np.testing.assert_allclose(adata.obsm["image"], np.tile([0.1, 0.7, 0.9, 0, 0, 0], (len(spots), 1)), atol=1e-7)


def test_x_goes_to_the_right_and_y_down() -> None:
    image = np.zeros((HEIGHT, WIDTH, 3))
    image[3, 20] = 1.0
    adata = section(image, np.array([(20.5, 3.5), (3.5, 20.5)]) / SCALE)
    image_features(adata, radius=0.1)
    assert adata.obsm["image"]["red"].tolist() == [1.0, 0.0]


def bytes_of(image: Array) -> NDArray[Any]:
    return (image * 255).round().astype(np.uint8)


@pytest.mark.parametrize(
    ("convert", "channels"),
    [
        (bytes_of, (0, 1, 2)),
        (lambda image: (image * 65535).round().astype(np.uint16), (0, 1, 2)),
        (lambda image: image.astype(np.float32), (0, 1, 2)),
        (lambda image: np.dstack([image, np.full(image.shape[:2], 0.5)]), (0, 1, 2)),
        (lambda image: bytes_of(image)[:, :, 0], (0, 0, 0)),
        (lambda image: image[:, :, :1], (0, 0, 0)),
        (lambda image: image[:, :, :2], (0, 0, 0)),
    ],
    ids=["uint8", "uint16", "float32", "transparent", "gray uint8", "one channel", "gray and transparent"],
)
def test_kinds_of_images(picture: Array, spots: Array, convert: Callable[[Array], NDArray[Any]], channels: tuple[int, ...]) -> None:
    exact, converted = section(picture, spots), section(convert(picture), spots)
    image_features(exact)
    image_features(converted)
    np.testing.assert_allclose(converted.obsm["image"], exact.obsm["image"].iloc[:, list(channels)], atol=0.002)


def test_the_image_is_not_written_into(picture: Array, spots: Array) -> None:
    picture.setflags(write=False)
    before = picture.copy()
    image_features(section(picture, spots), texture=True)
    assert np.array_equal(picture, before)


def test_colors_survive_a_file(picture: Array, spots: Array, tmp_path: Path) -> None:
    adata = section(picture, spots)
    image_features(adata, texture=True, key_added="colors")
    adata.write_h5ad(tmp_path / "section.h5ad")
    again = anndata.read_h5ad(tmp_path / "section.h5ad")
    assert again.obsm["colors"].equals(adata.obsm["colors"])
    assert again.uns["spatial"]["slide"]["scalefactors"] == adata.uns["spatial"]["slide"]["scalefactors"]


# Sentences


def test_spots_of_another_image(picture: Array, spots: Array) -> None:
    with pytest.raises(
        ValueError, match=r"do not overlap: 6\d of 65 spots .* \(31 × 23 pixels\): scaled by 40, .* scale factor of another image"
    ):
        image_features(section(picture, spots, scale=40.0))


def test_few_spots_outside_are_nan_with_a_warning(picture: Array, spots: Array) -> None:
    adata = section(picture, np.vstack([spots, [(1000, 1000)]]))
    with pytest.warns(UserWarning, match=r"1 of 66 spots lie outside .* leave these spots out"):
        image_features(adata)
    assert adata.obsm["image"].isna().any(axis=1).tolist() == [False] * 65 + [True]


def without(adata: Any, part: str) -> None:
    del adata.uns["spatial"]["slide"]["scalefactors"][part]


CHANGES: list[tuple[Callable[[Any], object], str]] = [
    (lambda adata: adata.uns.pop("spatial"), r"There is no image 'hires' .* uns\['spatial'\] has nothing"),
    (lambda adata: adata.obsm.pop("spatial"), r"no obsm\['spatial'\]; obsm has nothing.*read_visium"),
    (
        lambda adata: without(adata, "tissue_hires_scalef"),
        "no image 'hires' with its tissue_hires_scalef.* has 'hires', 'spot_diameter",
    ),
    (lambda adata: without(adata, "spot_diameter_fullres"), "give a radius above 0"),
    (lambda adata: adata.uns["spatial"].update(other={}), r"several sections, 'slide', 'other': .* slice by slice, before anndata\.concat"),
    (
        lambda adata: adata.uns["spatial"]["slide"]["images"].clear(),
        "no image 'hires' .* has 'tissue_hires_scalef', 'spot_",
    ),
    (lambda adata: adata.uns["spatial"]["slide"]["images"].update(hires=np.full((4, 4, 3), 255.0)), "values from 255 to 255"),
    (lambda adata: adata.uns["spatial"]["slide"]["images"].update(hires=np.full((40, 40, 3), np.nan)), "values from nan"),
    (lambda adata: adata.uns["spatial"]["slide"]["images"].update(hires=np.zeros(5)), "has shape"),
    (lambda adata: adata.obsm["spatial"].__setitem__((0, 0), np.nan), "must be finite numbers.*1 spots have NaN"),
    (lambda adata: adata.obsm.update(spatial=np.zeros((65, 1))), "two or three coordinates for each spot, got 1"),
]


@pytest.mark.parametrize(("change", "sentence"), CHANGES, ids=[sentence for _, sentence in CHANGES])
def test_sentences(picture: Array, spots: Array, change: Callable[[Any], object], sentence: str) -> None:
    adata = section(picture, spots)
    adata.obsm["spatial"] = np.clip(adata.obsm["spatial"], 0, 10)
    change(adata)
    with pytest.raises(ValueError, match=sentence):
        image_features(adata)


def test_a_library_that_is_not_there(picture: Array, spots: Array) -> None:
    with pytest.raises(ValueError, match=r"library_id='other' is not in uns\['spatial'\], which has 'slide'"):
        image_features(section(picture, spots), library_id="other")
    with pytest.raises(ValueError, match=r"no image 'lowres' with its tissue_lowres_scalef .* has 'hires'"):
        image_features(section(picture, spots), resolution="lowres")


def test_colors_of_one_slice_are_not_written_for_another(picture: Array, spots: Array) -> None:
    one, two = section(picture, spots), section(1 - picture, spots)
    two.uns["spatial"]["other"] = two.uns["spatial"].pop("slide")
    both = anndata.concat({"one": one, "two": two}, label="slice", index_unique="-", uns_merge="unique")
    with pytest.raises(ValueError, match="slice by slice"):
        image_features(both, library_id="slide")
    assert "image" not in both.obsm
    part = both[both.obs["slice"] == "two"].copy()
    part.uns["spatial"] = {"other": part.uns["spatial"]["other"]}  # as the sentence says
    for adata in (one, two, part):
        image_features(adata)
    np.testing.assert_array_equal(part.obsm["image"], two.obsm["image"])
    assert not np.allclose(one.obsm["image"], two.obsm["image"])


@pytest.mark.parametrize("radius", [-1.0, 0, np.inf, np.nan, "10"])
def test_a_radius_that_is_none(picture: Array, spots: Array, radius: Any) -> None:
    with pytest.raises(ValueError, match=f"radius must be a number above 0, got {radius!r}"):
        image_features(section(picture, spots), radius=radius)
