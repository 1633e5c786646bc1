"""Representations of spots: which fields are written, what they depend on, and where they are uncertain."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import anndata
import dask.array
import numpy as np
import pytest
from scipy.spatial import cKDTree
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

from experiments.simulation import CellSimulator, fit_cells, simulate, simulate_reference
from gpssl import GPSSL
from gpssl.spatial import composition, embed, pure_spots, representation, spatial_blocks
from gpssl.spatial._embedding import _models_of
from gpssl.spatial._fields import gather

LAST_DIGITS = 1e-6


@pytest.fixture(scope="module")
def cells() -> CellSimulator:
    return fit_cells(simulate_reference())


@pytest.fixture(scope="module")
def simulated(cells: CellSimulator) -> anndata.AnnData:
    return simulate(cells, shape=(14, 14))


@pytest.fixture
def adata(simulated: anndata.AnnData) -> anndata.AnnData:
    return simulated.copy()


def add_colors(adata: anndata.AnnData) -> anndata.AnnData:
    adata.obsm["image"] = 0.5 + 0.3 * np.sin(4 * adata.obsm["spatial"] @ np.ones((2, 3)) + np.arange(3))
    return adata


# The rows and the kernel


def places_of(adata: anndata.AnnData, **options: Any) -> Any:
    given = {"spatial_key": "spatial", "image_key": None, "batch_key": None, "combine": "sum", "neighborhood": 10, **options}
    return gather(adata, adata.obsm["X_pca"], **given)


def test_kernels_of_modalities_are_added_multiplied_or_one(adata: anndata.AnnData) -> None:
    embed(add_colors(adata), 3)
    for combine, join in (("sum", np.mean), ("product", np.prod)):
        found = places_of(adata, image_key="image", combine=combine)
        assert list(found.columns) == ["expression", "place", "color"]
        each = [RBF(1.0)(found.rows[:, columns]) for columns in found.columns.values()]
        np.testing.assert_allclose(found.kernel(combine)(found.rows), join(each, axis=0), atol=1e-12)
    found = places_of(adata, image_key="image", combine="concatenate")
    np.testing.assert_allclose(found.kernel("concatenate")(found.rows), RBF(1.0)(found.rows), atol=1e-12)


def test_unit_of_coordinates_does_not_matter(adata: anndata.AnnData) -> None:
    embed(adata, 3)
    expected = adata.obsm["X_gpssl"].copy()
    adata.obsm["spatial"] = 1e4 * adata.obsm["spatial"] + 500.0
    embed(adata, 3)
    np.testing.assert_allclose(adata.obsm["X_gpssl"], expected, atol=LAST_DIGITS)


def test_weight_of_zero_leaves_a_modality_out(adata: anndata.AnnData) -> None:
    embed(adata, 3, weights={"expression": 1.0, "place": 0.0}, residual_tolerance=1e-8)
    expected = adata.obsm["X_gpssl"].copy()
    embed(adata, 3, spatial_key=None, residual_tolerance=1e-8)
    np.testing.assert_allclose(adata.obsm["X_gpssl"], expected, atol=1e-3)


def test_slices_never_touch_however_their_coordinates_overlap(cells: CellSimulator) -> None:
    slices = [simulate(cells, shape=(10, 10), random_state=seed) for seed in range(3)]
    both = anndata.concat(slices, keys=["a", "b", "c"], label="slice", index_unique="-")
    embed(both, 3, batch_key="slice")
    found = places_of(both, batch_key="slice")
    place = RBF(1.0)(found.rows[:, found.columns["place"]])
    same = both.obs["slice"].to_numpy()[:, None] == both.obs["slice"].to_numpy()
    assert place[~same].max() == 0
    assert place[same].min() > 0
    # A slice has the lengthscale that it has alone.
    alone, columns = places_of(both[both.obs["slice"] == "b"].copy()), found.columns["place"]
    np.testing.assert_allclose(np.ptp(found.rows[100:200, columns], axis=0), np.ptp(alone.rows[:, columns], axis=0), rtol=1e-9)


# The fields


def test_fields_and_parameters(adata: anndata.AnnData) -> None:
    embed(adata, 4, key_added="mine", random_state=3)
    assert adata.obsm["X_mine"].shape == adata.obsm["X_mine_std"].shape == (196, 4)
    assert adata.obsm["X_pca"].shape == (196, 20)
    assert {"combine": "sum", "n_components": 4, "random_state": 3}.items() <= adata.uns["mine"]["params"].items()
    assert adata.uns["mine"]["temperature"] == 1 / 196
    assert 0 < adata.uns["mine"]["residual"] < 1.5e-3
    fitted = representation(adata, key="mine")
    np.testing.assert_array_equal(fitted.ssl.transform(fitted.rows), adata.obsm["X_mine"])
    np.testing.assert_array_equal(fitted.ssl.std(fitted.rows), adata.obsm["X_mine_std"])


def test_file_keeps_every_field_and_the_posterior(adata: anndata.AnnData, tmp_path: Path) -> None:
    embed(add_colors(adata), 4, combine="product", weights={"expression": 1.0, "place": 0.5, "color": 0.2})
    adata.write_h5ad(tmp_path / "slice.h5ad")
    again = anndata.read_h5ad(tmp_path / "slice.h5ad")
    for name in ("X_gpssl", "X_gpssl_std", "X_pca"):
        np.testing.assert_array_equal(again.obsm[name], adata.obsm[name])
    assert again.uns["gpssl"]["params"] == adata.uns["gpssl"]["params"]
    fitted = representation(again)
    np.testing.assert_array_equal(fitted.ssl.transform(fitted.rows), adata.obsm["X_gpssl"])


@pytest.mark.parametrize("kind", ["backed", "Dask"])
def test_same_representation_from_a_file_and_on_dask(adata: anndata.AnnData, kind: str, tmp_path: Path) -> None:
    other = adata.copy()
    if kind == "backed":
        other.write_h5ad(tmp_path / "counts.h5ad")
        other = anndata.read_h5ad(tmp_path / "counts.h5ad", backed="r")
    else:
        other.X = dask.array.from_array(other.X.toarray(), chunks=(50, -1))
    for one in (adata, other):
        embed(one, 3)
    np.testing.assert_allclose(other.obsm["X_gpssl"], adata.obsm["X_gpssl"], atol=LAST_DIGITS)
    np.testing.assert_allclose(other.obsm["X_gpssl_std"], adata.obsm["X_gpssl_std"], atol=LAST_DIGITS)


def test_named_representation_and_its_columns_are_used(adata: anndata.AnnData) -> None:
    adata.obsm["X_other"] = adata.obsm["proportions"].to_numpy()
    embed(adata, 3, use_rep="X_other", spatial_key=None)
    assert representation(adata).rows.shape == (196, 4)
    assert "X_pca" not in adata.obsm


@pytest.mark.parametrize("change", ["spots", "components", "colors"])
def test_posterior_that_cannot_be_found_again_is_said(adata: anndata.AnnData, change: str) -> None:
    embed(add_colors(adata), 3)
    if change == "spots":
        adata = adata[:100].copy()
    elif change == "components":
        adata.obsm["X_pca"] = adata.obsm["X_pca"][::-1]
    else:
        adata.obsm["image"] = adata.obsm["image"][:, :1]
    with pytest.raises(ValueError, match=r"'X_pca', 'spatial', 'image' of obsm changed since embed, or spots were removed"):
        representation(adata)


# The kept model


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of every fit from here on."""
    rows: list[int] = []
    fit = GPSSL.fit

    def counted(self: GPSSL, X: Any, *arguments: Any, **options: Any) -> GPSSL:
        rows.append(len(X))
        return fit(self, X, *arguments, **options)

    monkeypatch.setattr(GPSSL, "fit", counted)
    return rows


def test_embedding_and_composition_fit_once(adata: anndata.AnnData, fits: list[int]) -> None:
    embed(adata, 3)
    composition(adata, "cell_type", n_draws=3)
    assert len(fits) == 1
    embed(adata, 3)  # nothing changed
    representation(adata)
    assert len(fits) == 1
    embed(adata, 4)
    assert len(fits) == 2


def test_each_key_keeps_its_model(adata: anndata.AnnData, fits: list[int]) -> None:
    embed(adata, 3)
    embed(adata, 4, key_added="other")
    assert representation(adata).ssl.n_components == 3
    assert representation(adata, key="other").ssl.n_components == 4
    assert len(fits) == 2


def test_files_copies_and_views_fit_again_and_give_the_same(adata: anndata.AnnData, fits: list[int], tmp_path: Path) -> None:
    embed(adata, 3)
    composition(adata, "cell_type", n_draws=3)
    adata.write_h5ad(tmp_path / "slice.h5ad")
    for again in (anndata.read_h5ad(tmp_path / "slice.h5ad"), adata.copy(), adata[:]):
        fits.clear()
        composition(again, "cell_type", n_draws=3)
        assert len(fits) == 1
        np.testing.assert_array_equal(again.obsm["gpssl_proba"], adata.obsm["gpssl_proba"])
        composition(again, "cell_type", n_draws=3)
        assert len(fits) == 1


def test_changes_in_place_and_of_parameters_are_noticed(adata: anndata.AnnData) -> None:
    embed(adata, 3)
    adata.obsm["X_pca"][:] = adata.obsm["X_pca"][::-1].copy()
    with pytest.raises(ValueError, match="changed since embed"):
        representation(adata)
    embed(adata, 3)
    adata.uns["gpssl"]["params"]["random_state"] = 7
    adata.uns["gpssl"]["params"]["n_components"] = 4
    with pytest.raises(ValueError, match="changed since embed"):
        representation(adata)


def test_kept_model_is_not_changed_through_what_was_given_out(adata: anndata.AnnData) -> None:
    embed(adata, 3)
    given = representation(adata)
    given.rows[:] = 0.0
    given.ssl.set_params(n_components=2).fit(np.random.default_rng(0).normal(size=(50, given.rows.shape[1])))
    np.testing.assert_array_equal(representation(adata).ssl.transform(representation(adata).rows), adata.obsm["X_gpssl"])


def test_model_goes_with_its_object(adata: anndata.AnnData) -> None:
    other = adata.copy()
    embed(other, 3)
    model = weakref.ref(_models_of(other)["gpssl"].ssl)
    del other
    gc.collect()
    assert model() is None


def test_embedding_again_forgets_the_composition_before(adata: anndata.AnnData) -> None:
    embed(adata, 3)
    composition(adata, "cell_type", n_draws=3)
    embed(adata, 4)
    assert not [name for name in (*adata.obs, *adata.obsm, *adata.uns) if name.startswith("gpssl_")]


def test_results_of_others_are_not_written_over(adata: anndata.AnnData) -> None:
    pure_spots(adata, adata.uns["signatures"])
    with pytest.raises(ValueError, match=r"uns\['pure'\] is there already, and not from embed"):
        embed(adata, key_added="pure")


def test_parameters_of_another_embedding_do_not_stick(adata: anndata.AnnData) -> None:
    embed(adata, 3, n_comps=5, n_top_genes=100)
    embed(adata, 3, n_comps=12, n_top_genes=200)
    assert adata.obsm["X_pca"].shape == (196, 12)
    assert adata.var["highly_variable"].sum() == 200


def test_slices_of_other_resolution_are_the_same_slices(cells: CellSimulator) -> None:
    slices = [simulate(cells, shape=(10, 10), random_state=seed) for seed in range(2)]
    slices[1].obsm["spatial"] = 1000.0 * slices[1].obsm["spatial"]
    both = anndata.concat(slices, keys=["a", "b"], label="slice", index_unique="-")
    embed(both, 3, batch_key="slice")
    found = places_of(both, batch_key="slice")
    one, other = (np.ptp(found.rows[rows, found.columns["place"]], axis=0) for rows in (slice(0, 100), slice(100, 200)))
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_slices_on_top_of_each_other_are_noticed(cells: CellSimulator) -> None:
    both = anndata.concat([simulate(cells, shape=(10, 10), random_state=seed) for seed in range(2)], index_unique="-", keys=["a", "b"])
    with pytest.warns(UserWarning, match=r"100% of the spots lie exactly on top of others.*batch_key"):
        embed(both, 3)


# Where it is uncertain


def test_standard_deviation_is_higher_at_edges_and_beside_a_hole(cells: CellSimulator) -> None:
    """As long as the hole is wider than the kernel, which by default is wide: here it is narrower."""
    slice_with_hole = simulate(cells, shape=(30, 30), mask=lambda place: np.linalg.norm(place - 0.5, axis=1) > 0.25)
    embed(slice_with_hole, neighborhood=50, max_inducing=900)
    place, std = slice_with_hole.obsm["spatial"], slice_with_hole.obsm["X_gpssl_std"].mean(axis=1)
    surrounded = cKDTree(place).query_ball_point(place, 1.5 / 30, return_length=True) == 9
    edge = np.abs(place - 0.5).max(axis=1) > 0.47
    rim = ~surrounded & ~edge
    assert rim.sum() > 30
    assert std[edge].mean() > std[surrounded].mean() + 0.02
    assert std[rim].mean() > std[surrounded].mean() + 0.02


def test_standard_deviation_is_highest_in_a_hole(cells: CellSimulator) -> None:
    """At spots that were left out, with the expression that they have."""
    whole = simulate(cells, shape=(30, 30))
    embed(whole, neighborhood=50, max_inducing=900)
    place = whole.obsm["spatial"]
    hole = np.linalg.norm(place - place.mean(axis=0), axis=1) < 0.25
    rows = representation(whole).rows
    std = clone(representation(whole).ssl).fit(rows[~hole]).std(rows).mean(axis=1)
    assert std[hole].mean() > std[~hole].mean() + 0.1


# Blocks


def test_blocks_are_squares_of_neighbors_in_one_slice(cells: CellSimulator) -> None:
    slices = [simulate(cells, shape=(20, 10), random_state=seed) for seed in range(2)]
    both = anndata.concat(slices, keys=["a", "b"], label="slice", index_unique="-")
    blocks = spatial_blocks(both, 8, batch_key="slice")
    assert blocks.max() == 15
    for block in range(16):
        here = both[blocks == block]
        assert here.n_obs == 25
        assert here.obs["slice"].nunique() == 1
        np.testing.assert_allclose(np.ptp(here.obsm["spatial"], axis=0), 4 / 20)


def test_blocks_of_a_thin_slice_are_no_more_than_asked_for(adata: anndata.AnnData) -> None:
    adata.obsm["spatial"] = np.column_stack([np.arange(196.0), np.arange(196) % 2])
    assert spatial_blocks(adata, 25).max() + 1 == 25


def test_blocks_of_a_line_of_spots(adata: anndata.AnnData) -> None:
    adata.obsm["spatial"] = np.column_stack([np.arange(196.0), np.zeros(196)])
    assert (np.diff(spatial_blocks(adata, 7)) >= 0).all()
    np.testing.assert_array_equal(np.bincount(spatial_blocks(adata, 7)), np.full(7, 28))


# Sentences


def test_what_does_not_fit_is_said(adata: anndata.AnnData) -> None:
    with pytest.raises(ValueError, match="combine must be one of 'sum', 'product', 'concatenate', got 'add'"):
        embed(adata, combine="add")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="weights must be for 'expression', 'place', got 'expression'"):
        embed(adata, weights={"expression": 1.0})
    with pytest.raises(ValueError, match=r"no obsm\['image'\].*image_features"):
        embed(adata, image_key="image")
    with pytest.raises(ValueError, match=r'weights is a number for each modality.*combine="sum" or "product"'):
        embed(adata, combine="concatenate", weights={"expression": 1.0, "place": 1.0})
    with pytest.raises(ValueError, match="n_components must be a whole number of at least 1, got '3'"):
        embed(adata, "3")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="random_state must be a whole number of at least 0, got None"):
        embed(adata, random_state=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"call gpssl.spatial.embed\(adata, key_added='gpssl'\) first"):
        representation(adata)
    adata.obsm["spatial"][3] = np.nan
    with pytest.raises(ValueError, match=r"obsm\['spatial'\] must be finite numbers.*1 spots have NaN"):
        embed(adata)
    adata.obsm["spatial"] = np.full((196, 2), "here", dtype=object)
    with pytest.raises(ValueError, match=r"obsm\['spatial'\] must be numbers: could not convert"):
        spatial_blocks(adata)
    with pytest.raises(ValueError, match="There are no spots"):
        spatial_blocks(adata[:0].copy())
    del adata.obsm["spatial"]
    with pytest.raises(ValueError, match=r"no obsm\['spatial'\].*spatial_key=None, embed leaves the place out"):
        embed(adata)
    assert "gpssl" not in adata.uns
