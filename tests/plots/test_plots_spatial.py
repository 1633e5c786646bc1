"""Pictures of slices show each spot where it is, in the color of its value, and say what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anndata
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from numpy.typing import NDArray

from gpssl.plots import plot_composition, plot_dimensions, plot_histology, plot_labels, plot_spots, plot_types
from gpssl.plots._figures import COLORS, ColorScale, new_figure
from gpssl.plots._spots import UNLABELED_COLOR, class_colors
from gpssl.spatial import image_features
from gpssl.spatial._fields import spacing
from pictures import legend_texts

Array = NDArray[np.float64]

N_ROWS, N_COLUMNS = 6, 8
N = N_ROWS * N_COLUMNS
TYPES = ["B", "T", "myeloid"]


@pytest.fixture
def adata() -> anndata.AnnData:
    """A grid of spots 10 apart, with what `embed` and `composition` write."""
    rng = np.random.default_rng(0)
    rows, columns = np.divmod(np.arange(N), N_COLUMNS)
    adata = anndata.AnnData(np.ones((N, 2), dtype=np.float32))
    adata.obsm["spatial"] = 100.0 + 10.0 * np.column_stack([columns, rows])
    adata.obsm["X_tsne"] = rng.normal(size=(N, 2))
    adata.obsm["X_gpssl"], adata.obsm["X_gpssl_std"] = rng.normal(size=(N, 4)), rng.random((N, 4))
    proba = rng.dirichlet(np.ones(3), N)
    adata.obsm["gpssl_proba"] = pd.DataFrame(proba, index=adata.obs_names, columns=TYPES)
    adata.obsm["gpssl_proba_std"] = pd.DataFrame(rng.random((N, 3)), index=adata.obs_names, columns=TYPES)
    adata.obs["type"] = pd.Categorical.from_codes(proba.argmax(axis=1), categories=TYPES)
    adata.obs["number"] = rng.normal(size=N)
    return adata


def with_image(adata: anndata.AnnData) -> anndata.AnnData:
    adata.uns["spatial"] = {
        "one": {"images": {"hires": np.ones((60, 80, 3)), "lowres": np.ones((6, 8, 3))}, "scalefactors": {"tissue_hires_scalef": 0.25}}
    }
    return adata


def face_colors(ax: Any) -> list[str]:
    """Of all spots, in the order in which they were drawn."""
    ax.figure.draw_without_rendering()
    return [to_hex(color) for circles in ax.collections for color in np.resize(circles.get_facecolor(), (len(circles.get_offsets()), 4))]


def diameters(ax: Any) -> Any:
    return ax.collections[0].get_widths()


def test_classes_are_where_they_are_in_their_colors(adata: anndata.AnnData) -> None:
    ax = plot_spots(adata, "type")
    (circles,) = ax.collections
    np.testing.assert_array_equal(circles.get_offsets(), adata.obsm["spatial"])
    assert face_colors(ax) == [COLORS[code].lower() for code in adata.obs["type"].cat.codes]
    assert legend_texts(ax.get_legend()) == TYPES
    assert ax.get_title() == "type"


def test_numbers_have_a_color_bar_from_lowest_to_highest(adata: anndata.AnnData) -> None:
    ax: Any = plot_spots(adata, "number", title="how much")
    (circles,) = ax.collections
    np.testing.assert_array_equal(circles.get_array(), adata.obs["number"])
    assert circles.get_clim() == (adata.obs["number"].min(), adata.obs["number"].max())
    assert len(ax.figure.axes) == 2
    assert ax.get_title() == "how much"
    ax = plot_spots(adata, adata.obs["number"].to_numpy(), scale=ColorScale("magma", -3.0, 3.0))
    assert ax.collections[0].get_clim() == (-3.0, 3.0)
    ax.figure.draw_without_rendering()


@pytest.mark.parametrize("name", ["type", "number"])
def test_unlabeled_spots_are_gray_and_below_the_others(adata: anndata.AnnData, name: str) -> None:
    missing = np.arange(N) % 3 == 0
    adata.obs["some"] = adata.obs[name].where(~missing)
    ax = plot_spots(adata, "some")
    gray, rest = ax.collections
    np.testing.assert_array_equal(gray.get_offsets(), adata.obsm["spatial"][missing])
    np.testing.assert_array_equal(rest.get_offsets(), adata.obsm["spatial"][~missing])
    assert set(face_colors(ax)[: missing.sum()]) == {UNLABELED_COLOR}
    if name == "type":
        assert legend_texts(ax.get_legend()) == [*TYPES, "unlabeled"]


def test_a_column_without_any_value_is_gray(adata: anndata.AnnData) -> None:
    assert set(face_colors(plot_spots(adata, np.full(N, np.nan)))) == {UNLABELED_COLOR}


def test_tissue_has_y_downwards_and_other_planes_upwards(adata: anndata.AnnData) -> None:
    tissue, plane = plot_spots(adata, "type"), plot_spots(adata, "type", basis="tsne")
    assert tissue.yaxis_inverted()
    assert not plane.yaxis_inverted()
    assert tissue.get_aspect() == plane.get_aspect() == 1.0
    np.testing.assert_array_equal(plane.collections[0].get_offsets(), adata.obsm["X_tsne"])
    np.testing.assert_array_equal(plot_spots(adata, "type", basis="X_tsne").collections[0].get_offsets(), adata.obsm["X_tsne"])


def test_neighbors_meet_and_none_is_cut_off(adata: anndata.AnnData) -> None:
    ax = plot_spots(adata, "type")
    np.testing.assert_allclose(diameters(ax), 10.0)
    assert ax.get_xlim()[0] <= 95
    assert ax.get_xlim()[1] >= 100 + 10 * (N_COLUMNS - 1) + 5
    np.testing.assert_allclose(diameters(plot_spots(adata, "type", size=3.0)), 3.0)


def test_spacing_is_that_of_neighbors() -> None:
    rows, columns = np.mgrid[0:5, 0:6]
    hexagonal = np.column_stack([(columns + 0.5 * (rows % 2)).ravel(), (np.sqrt(0.75) * rows).ravel()])
    np.testing.assert_allclose(spacing(7 * hexagonal), (7.0, 0.0))
    assert spacing(np.ones((4, 2))) == (1.0, 1.0)


def test_the_image_is_under_the_spots_in_their_coordinates(adata: anndata.AnnData) -> None:
    ax: Any = plot_spots(with_image(adata), "type")
    (image,) = ax.images
    assert image.get_extent() == [0.0, 320.0, 240.0, 0.0]  # pixel (0, 0) covers [0, 4] × [0, 4]
    assert image.zorder < ax.collections[0].zorder
    assert not plot_spots(adata, "type", image=False).images
    assert not plot_spots(adata, "type", basis="tsne").images


def test_a_pixel_is_drawn_where_its_color_is_taken_from(adata: anndata.AnnData) -> None:
    image = np.zeros((60, 80, 3))
    row, column = 30, 35
    image[row, column] = 1.0
    with_image(adata).uns["spatial"]["one"]["images"]["hires"] = image
    x = y = np.arange(100.0, 180.0, 0.5) + 0.25
    places = np.array([(u, v) for v in y for u in x])
    finely = anndata.AnnData(np.ones((len(places), 1), dtype=np.float32), obsm={"spatial": places}, uns=adata.uns)
    image_features(finely, radius=0.1)
    ax: Any = plot_histology(adata)
    left, right, bottom, top = ax.images[0].get_extent()
    width, height = (right - left) / 80, (bottom - top) / 60
    drawn = (places >= (left + column * width, top + row * height)) & (places <= (left + (column + 1) * width, top + (row + 1) * height))
    np.testing.assert_array_equal(finely.obsm["image"]["red"] == 1.0, drawn.all(axis=1))
    assert drawn.all(axis=1).sum() == 64


def test_an_image_without_its_scale_is_not_drawn(adata: anndata.AnnData) -> None:
    library = with_image(adata).uns["spatial"]["one"]
    library["scalefactors"] = {"tissue_lowres_scalef": 0.025}
    lowres: Any = plot_spots(adata, "type").images[0]
    assert lowres.get_extent() == [0.0, 320.0, 240.0, 0.0]
    for factors in ({}, {"tissue_hires_scalef": 0.0}, None):
        library["scalefactors"] = factors
        if factors is None:
            del library["scalefactors"]
        assert not plot_spots(adata, "type").images
        assert not plot_composition(adata)[1, 0].images
        with pytest.raises(ValueError, match="its scale factor, such as tissue_hires_scalef"):
            plot_histology(adata)


def test_of_several_images_none_is_shown_unless_named(adata: anndata.AnnData) -> None:
    with_image(adata).uns["spatial"]["two"] = {"images": {"lowres": np.zeros((6, 8, 3))}, "scalefactors": {"tissue_lowres_scalef": 0.025}}
    assert not plot_spots(adata, "type").images
    image: Any = plot_spots(adata, "type", library_id="two").images[0]
    assert image.get_array().shape == (6, 8, 3)
    with pytest.raises(ValueError, match="'one', 'two'"):
        plot_spots(adata, "type", library_id="three")
    with pytest.raises(ValueError, match="library_id"):
        plot_histology(adata)


def test_histology_shows_the_whole_image_with_outlines(adata: anndata.AnnData) -> None:
    ax: Any = plot_histology(with_image(adata))
    assert ax.get_xlim() == (0.0, 320.0)
    assert ax.get_ylim() == (240.0, 0.0)
    assert len(ax.collections[0].get_offsets()) == N
    assert not plot_histology(adata, outline=None).collections


def test_a_given_panel_is_drawn_on(adata: anndata.AnnData) -> None:
    ax = new_figure(4, 4).add_subplot()
    assert plot_spots(adata, "type", ax=ax) is ax
    assert plot_histology(with_image(adata), ax=ax) is ax


def test_classes_look_the_same_in_any_order_and_as_scanpy_says(adata: anndata.AnnData) -> None:
    expected = face_colors(plot_spots(adata, "type"))
    adata.obs["other"] = adata.obs["type"].cat.reorder_categories(TYPES[::-1])
    assert face_colors(plot_spots(adata, "other")) == expected
    assert face_colors(plot_spots(adata, adata.obs["type"].astype(str).to_numpy())) == expected
    adata.uns["type_colors"] = ["#111111", "#222222", "#333333"]
    assert set(face_colors(plot_spots(adata, "type"))) == {"#111111", "#222222", "#333333"}


def color_by_name(ax: Any) -> dict[str, str]:
    legend = ax.get_legend()
    return {text.get_text(): to_hex(line.get_color()) for text, line in zip(legend.get_texts(), legend.get_lines(), strict=True)}


@pytest.mark.parametrize("colors", [None, ["#111111", "#222222", "#333333", "#444444", "#555555"]])
def test_a_type_without_labeled_spot_changes_no_color(adata: anndata.AnnData, colors: list[str] | None) -> None:
    """As `pure_spots` and `composition` write them: all types are categories of both, and those with labeled spots have probabilities."""
    every = ["A", "myeloid", "T", "H", "B"]  # neither A nor H has a labeled spot
    adata.obs["pure_label"] = adata.obs["type"].where(np.arange(N) % 2 == 0).cat.set_categories(every)
    adata.obs["gpssl_label"] = adata.obs["type"].cat.set_categories(every)
    if colors is not None:
        adata.uns["pure_label_colors"] = adata.uns["gpssl_label_colors"] = colors
    labels, composition = color_by_name(plot_labels(adata, "pure_label")[0, 0]), color_by_name(plot_composition(adata)[0, 0])
    assert composition == {name: color for name, color in labels.items() if name != "unlabeled"}
    assert composition == color_by_name(plot_spots(adata, "gpssl_label"))
    assert composition["T"] == (COLORS[sorted(every).index("T")].lower() if colors is None else "#333333")
    assert set(composition) == set(TYPES)


def test_without_labels_colors_go_by_the_types_with_probabilities(adata: anndata.AnnData) -> None:
    adata.obs["gpssl_label"] = adata.obs["type"].cat.remove_categories(["B"])  # as of a part of a slice
    expected = dict(zip(TYPES, map(str.lower, COLORS), strict=False))
    assert color_by_name(plot_composition(adata)[0, 0]) == expected
    del adata.obs["gpssl_label"]
    assert color_by_name(plot_composition(adata)[0, 0]) == expected


def test_the_mark_of_unlabeled_spots_takes_no_color_of_a_class(adata: anndata.AnnData) -> None:
    adata.obs["label"] = pd.Categorical((np.arange(N) % 3 - 1).astype(str))
    adata.uns["label_colors"] = ["#111111", "#222222", "#333333"]
    assert color_by_name(plot_labels(adata, "label")[0, 0]) == {"0": "#222222", "1": "#333333", "unlabeled": UNLABELED_COLOR}


def test_labels_that_tables_have_in_the_place_of_none(adata: anndata.AnnData) -> None:
    adata.obs["label"] = np.resize(["", "nan", "-1", "b"], N)
    axes = plot_labels(adata, "label")
    assert face_colors(axes[0, 0]).count(UNLABELED_COLOR) == 3 * N // 4
    assert color_by_name(axes[0, 0]) == {"b": COLORS[0].lower(), "unlabeled": UNLABELED_COLOR}


def test_classes_without_spots_take_no_room(adata: anndata.AnnData) -> None:
    adata.obs["many"] = adata.obs["type"].cat.add_categories([f"a type with a long name {k}" for k in range(40)])
    figures: list[Any] = [plot_spots(adata, name).figure for name in ("type", "many")]
    assert figures[0].get_figwidth() == figures[1].get_figwidth()
    assert legend_texts(figures[1].axes[0].get_legend()) == TYPES


@pytest.mark.parametrize("n", [3, 7, 8, 20, 21, 40])
def test_colors_of_many_classes_differ(n: int) -> None:
    assert len({to_hex(color) for color in class_colors(n)}) == n


@pytest.mark.parametrize("n", [2, 12, 30])
def test_the_legend_is_beside_the_spots_and_inside_the_figure(adata: anndata.AnnData, n: int) -> None:
    adata.obs["many"] = pd.Categorical([f"a cluster with a name {k % n}" for k in range(N)])
    ax: Any = plot_spots(adata, "many")
    ax.figure.draw_without_rendering()
    legend, panel, figure = ax.get_legend().get_window_extent(), ax.get_window_extent(), ax.figure.bbox
    assert legend.x0 >= panel.x1
    assert legend.x1 <= figure.x1 + 1
    assert panel.width > 250


@pytest.mark.parametrize("draw", [plot_composition, plot_types, lambda adata: plot_labels(adata, "type")])
def test_nothing_of_several_panels_is_outside_the_figure(adata: anndata.AnnData, draw: Any) -> None:
    adata.obsm["spatial"] *= (1.0, 0.6)  # wider than high
    figure = draw(adata)[0, 0].figure
    figure.draw_without_rendering()
    needed = figure.get_tightbbox()
    assert needed.x0 >= -0.02
    assert needed.y0 >= -0.02
    assert needed.x1 <= figure.get_figwidth() + 0.02
    assert needed.y1 <= figure.get_figheight() + 0.02


def test_dimensions_share_their_colors(adata: anndata.AnnData) -> None:
    axes = plot_dimensions(adata)
    assert [ax.get_title() for ax in axes] == [f"dimension {j}" for j in (1, 2, 3, 4)]
    largest = np.abs(adata.obsm["X_gpssl"]).max()
    for ax, values in zip(axes, adata.obsm["X_gpssl"].T, strict=True):
        np.testing.assert_array_equal(ax.collections[0].get_array(), values)
        assert ax.collections[0].get_clim() == (-largest, largest)
    (only,) = plot_dimensions(adata, values="std", dimensions=[2], basis="tsne")
    np.testing.assert_array_equal(only.collections[0].get_array(), adata.obsm["X_gpssl_std"][:, 2])
    only.figure.draw_without_rendering()


def test_more_dimensions_than_a_row_takes_go_on_below(adata: anndata.AnnData) -> None:
    adata.obsm["X_gpssl"] = np.random.default_rng(0).normal(size=(N, 7))
    axes = plot_dimensions(adata)
    axes[0].figure.draw_without_rendering()
    assert len(axes) == 7
    assert len(axes[0].figure.axes) == 8  # and the color bar
    assert axes[5].get_position().y1 < axes[0].get_position().y0


def test_composition_shows_type_uncertainty_and_one_probability(adata: anndata.AnnData) -> None:
    axes = plot_composition(adata)
    assert axes.shape == (2, 3)
    proba, std = adata.obsm["gpssl_proba"].to_numpy(), adata.obsm["gpssl_proba_std"].to_numpy()
    dominant = proba.argmax(axis=1)
    most = np.bincount(dominant).argmax()
    assert axes[0, 2].get_title() == f"probability of {TYPES[most]}"
    for row in axes:
        assert face_colors(row[0]) == [COLORS[code].lower() for code in dominant]
        np.testing.assert_array_equal(row[1].collections[0].get_array(), std[np.arange(N), dominant])
        np.testing.assert_array_equal(row[2].collections[0].get_array(), proba[:, most])
        assert row[2].collections[0].get_clim() == (0.0, 1.0)
    assert legend_texts(axes[0, 0].get_legend()) == TYPES
    assert [ax.get_ylabel() for ax in axes[:, 0]] == ["t-SNE", "tissue"]
    chosen = plot_composition(adata, of="T", bases=["spatial"])
    np.testing.assert_array_equal(chosen[0, 2].collections[0].get_array(), proba[:, 1])


def test_types_are_columns_and_planes_are_rows(adata: anndata.AnnData) -> None:
    adata.obsm["proportions"] = adata.obsm["gpssl_proba"][TYPES[::-1]]
    for key, names in (("gpssl", TYPES), ("proportions", TYPES[::-1])):
        axes = plot_types(adata, key=key)
        assert [ax.get_title() for ax in axes[0]] == names
        for row in axes:
            for ax, name in zip(row, names, strict=True):
                np.testing.assert_array_equal(ax.collections[0].get_array(), adata.obsm["gpssl_proba"][name])
    assert plot_types(adata, types=["T"], bases=["spatial"]).shape == (1, 1)


def test_labels_of_whole_numbers_are_classes_and_minus_one_is_none(adata: anndata.AnnData) -> None:
    adata.obs["label"] = np.arange(N) % 4 - 1
    axes = plot_labels(adata, "label")
    assert axes.shape == (2, 1)
    for ax in axes[:, 0]:
        colors = face_colors(ax)
        assert colors.count(UNLABELED_COLOR) == N // 4
        assert [colors.count(color.lower()) for color in COLORS[:3]] == [N // 4] * 3
    assert legend_texts(axes[0, 0].get_legend()) == ["0", "1", "2", "unlabeled"]


def without(name: str) -> Callable[[anndata.AnnData], None]:
    def remove(adata: anndata.AnnData) -> None:
        del adata.obsm[name]

    return remove


@pytest.mark.parametrize(
    ("change", "draw", "sentence"),
    [
        (without("X_tsne"), lambda adata: plot_spots(adata, "type", basis="tsne"), r"scanpy\.tl\.tsne\(adata\)"),
        (without("X_tsne"), lambda adata: plot_labels(adata, "type"), r"scanpy\.tl\.tsne\(adata\)"),
        (without("spatial"), lambda adata: plot_spots(adata, "type"), "read_visium"),
        (without("X_gpssl"), plot_dimensions, r"gpssl\.spatial\.embed"),
        (without("gpssl_proba"), plot_composition, r"gpssl\.spatial\.composition"),
        (without("gpssl_proba"), plot_types, r"gpssl\.spatial\.composition"),
        (None, lambda adata: plot_spots(adata, "nothing"), "no column of obs; the columns are 'type', 'number'"),
        (None, lambda adata: plot_spots(adata, [1.0, 2.0]), "48 spots and 2 values"),
        (None, lambda adata: plot_labels(adata, "nothing"), "no column of obs"),
        (None, lambda adata: plot_composition(adata, of="C"), "'C' is no type"),
        (None, lambda adata: plot_types(adata, types=["C"]), "'C' are no types"),
        (None, lambda adata: plot_types(adata, types=[]), "choose 1 to 10"),
        (None, lambda adata: plot_types(adata, bases="tsne"), "list of names"),
        (None, lambda adata: plot_dimensions(adata, values="variance"), '"mean" or "std"'),  # type: ignore[arg-type]
        (None, lambda adata: plot_dimensions(adata, dimensions=[9]), "some of 0 to 3"),
        (None, plot_histology, "no single image"),
    ],
)
def test_what_is_missing_gets_a_sentence(adata: anndata.AnnData, change: Any, draw: Any, sentence: str) -> None:
    if change is not None:
        change(adata)
    with pytest.raises(ValueError, match=sentence):
        draw(adata)


def test_pyplot_shows_the_figure(adata: anndata.AnnData) -> None:
    import matplotlib.pyplot as plt

    assert plot_composition(adata).ravel()[0].figure is plt.gcf()
