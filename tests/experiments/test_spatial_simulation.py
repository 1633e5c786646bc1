"""Simulated slices: the truth that they carry, and what does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from experiments.simulation import CellSimulator, fit_cells, simulate, simulate_reference
from experiments.simulation import cells as cell_stream
from experiments.simulation import slices as simulation
from experiments.simulation.slices import grid_coordinates, grid_traces

anndata = pytest.importorskip("anndata", reason="needs the extra spatial")
pandas = pytest.importorskip("pandas", reason="needs the extra spatial")

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def reference() -> Any:
    return simulate_reference(n_cells=400, n_genes=120)


@pytest.fixture(scope="module")
def cells(reference: Any) -> CellSimulator:
    return fit_cells(reference)


# Traces


def test_traces_have_the_covariance_asked_for() -> None:
    shape, lengthscale = (3, 4), 0.3
    f = grid_traces(40_000, shape, lengthscale, np.random.default_rng(0))
    s = grid_coordinates(shape)
    expected = np.exp(-((s[:, None] - s) ** 2).sum(axis=2) / (2 * lengthscale**2))
    # The standard error of a covariance is √((1 + k²) / 40,000) ≤ 0.0071; the largest of 78 stays below four of them.
    np.testing.assert_allclose(f.T @ f / len(f), expected, atol=0.029)
    assert np.abs(f.mean(axis=0)).max() < 4 / np.sqrt(40_000)


def test_grid_lies_in_the_unit_square_row_by_row() -> None:
    np.testing.assert_allclose(grid_coordinates((2, 4))[[0, 1, 4]], [[0.125, 0.125], [0.375, 0.125], [0.125, 0.375]])


# Slices


def test_slice_carries_its_truth(cells: CellSimulator) -> None:
    adata = simulate(cells, shape=(12, 9), cells_per_spot=6)
    proportions, n_cells = adata.obsm["proportions"], adata.obsm["cells"]
    assert adata.shape == (108, 120)
    assert list(adata.var_names) == list(cells.genes)
    assert list(proportions.columns) == list(n_cells.columns) == list(cells.types)
    np.testing.assert_allclose(proportions.sum(axis=1), 1)
    assert (n_cells.sum(axis=1) >= 1).all()
    assert (adata.obs["cell_type"].to_numpy() == proportions.idxmax(axis=1).to_numpy()).all()
    np.testing.assert_allclose(adata.obs["purity"], proportions.max(axis=1))
    np.testing.assert_allclose(adata.obsm["spatial"], grid_coordinates((12, 9)))
    assert adata.obs_names[10] == "1x1"
    assert adata.obs[["array_row", "array_col"]].to_numpy()[10].tolist() == [1, 1]
    assert adata.uns["simulation"]["cells_per_spot"] == 6
    assert adata.uns["signatures"] == cells.signatures
    X = adata.X.toarray()
    assert adata.X.format == "csr"
    assert (X >= 0).all()
    assert (np.floor(X) == X).all()


def test_cells_follow_the_proportions_and_counts_the_cells(cells: CellSimulator) -> None:
    adata = simulate(cells, shape=(60, 60), cells_per_spot=5)
    n_cells, proportions = adata.obsm["cells"].to_numpy(), adata.obsm["proportions"].to_numpy()
    total = n_cells.sum(axis=1)
    # 1 + Poisson(4) over 3,600 spots: standard errors 0.033 and about 0.1.
    assert total.mean() == pytest.approx(5, abs=0.14)
    assert total.var() == pytest.approx(4, abs=0.5)
    excess = n_cells - total[:, None] * proportions
    variance = (total[:, None] * proportions * (1 - proportions)).sum(axis=0)
    assert (np.abs(excess.sum(axis=0)) < 4 * np.sqrt(variance)).all()
    # Given its cells, a spot's counts have mean Σ_t n_t μ_t and variance Σ_t n_t σ²_t. Standardized, they have unit variance.
    common = np.min([model.margins.mean for model in cells.models], axis=0) > 0.1
    assert common.sum() > 80
    mean = n_cells @ np.array([model.margins.mean[common] for model in cells.models])
    spread = n_cells @ np.array([model.margins.variance[common] for model in cells.models])
    z = (adata.X.toarray()[:, common] - mean) / np.sqrt(spread)
    assert np.abs(z.mean(axis=0)).max() < 4.5 / np.sqrt(3600)
    np.testing.assert_allclose((z**2).mean(), 1, atol=0.03)


def test_proportions_grow_sharper_and_stay_smooth(cells: CellSimulator) -> None:
    even = simulate(cells, shape=(5, 5), sharpness=0)
    np.testing.assert_allclose(even.obsm["proportions"], 0.25)
    purity = [simulate(cells, shape=(40, 40), lengthscale=0.02, sharpness=beta).obs["purity"].mean() for beta in (1, 3)]
    np.testing.assert_allclose(purity, [0.52, 0.77], atol=0.02)
    slow = simulate(cells, shape=(1, 200), lengthscale=10.0).obsm["proportions"].to_numpy()
    assert np.ptp(slow, axis=0).max() < 0.3


def test_same_seed_same_slice(cells: CellSimulator, reference: Any) -> None:
    one, same, other = (simulate(cells, shape=(6, 6), random_state=seed) for seed in (3, 3, 4))
    assert (one.X != same.X).nnz == 0
    assert one.obsm["cells"].equals(same.obsm["cells"])
    assert (one.X != other.X).nnz > 0
    assert not one.obsm["proportions"].equals(other.obsm["proportions"])
    refitted = simulate(reference, shape=(6, 6), random_state=3)
    assert (one.X != refitted.X).nnz == 0


def test_size_of_blocks_does_not_matter(reference: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    some_genes = fit_cells(reference, n_copula_genes=20)
    whole = simulate(some_genes, shape=(8, 8))
    monkeypatch.setattr(cell_stream, "VALUES_AT_A_TIME", 1000)
    monkeypatch.setattr(simulation, "SPOTS_AT_A_TIME", 7)
    parts = simulate(some_genes, shape=(8, 8))
    assert whole.X.nnz > 0
    assert (whole.X != parts.X).nnz == 0


def test_hole_leaves_out_spots_and_changes_no_composition(cells: CellSimulator) -> None:
    def tissue(s: Array) -> Any:
        return np.linalg.norm(s - 0.5, axis=1) > 0.2

    full = simulate(cells, shape=(15, 15))
    kept = tissue(full.obsm["spatial"])
    assert 0 < kept.sum() < 225
    for mask in (tissue, kept.reshape(15, 15)):
        holed = simulate(cells, shape=(15, 15), mask=mask)
        assert list(holed.obs_names) == list(full.obs_names[kept])
        assert holed.obsm["proportions"].equals(full.obsm["proportions"][kept])
        assert holed.obsm["cells"].equals(full.obsm["cells"][kept])
        assert tissue(holed.obsm["spatial"]).all()


def test_some_types_in_the_order_given(cells: CellSimulator) -> None:
    adata = simulate(cells, types=["Naive CD4 T", "B"], shape=(5, 5))
    assert list(adata.obsm["cells"].columns) == ["Naive CD4 T", "B"]
    assert list(adata.obs["cell_type"].cat.categories) == ["Naive CD4 T", "B"]
    assert set(adata.uns["signatures"]) == {"Naive CD4 T", "B"}


def test_slice_survives_a_file(cells: CellSimulator, tmp_path: Path) -> None:
    adata = simulate(cells, shape=(4, 5))
    adata.write_h5ad(tmp_path / "slice.h5ad")
    back = anndata.read_h5ad(tmp_path / "slice.h5ad")
    assert (back.X != adata.X).nnz == 0
    assert back.obs.equals(adata.obs)
    for key in ("proportions", "cells"):
        assert back.obsm[key].equals(adata.obsm[key])
    np.testing.assert_array_equal(back.obsm["spatial"], adata.obsm["spatial"])
    assert {name: list(genes) for name, genes in back.uns["signatures"].items()} == cells.signatures
    assert list(back.uns["simulation"]["shape"]) == [4, 5]
    assert back.uns["simulation"]["random_state"] == 0


def test_counts_from_a_layer_a_dense_table_and_a_file(reference: Any, cells: CellSimulator, tmp_path: Path) -> None:
    logged = reference.copy()
    logged.layers["counts"] = logged.X.toarray()
    logged.X = np.log1p(logged.X)
    reference.write_h5ad(tmp_path / "reference.h5ad")
    backed = anndata.read_h5ad(tmp_path / "reference.h5ad", backed="r")
    for other in (fit_cells(logged, layer="counts"), fit_cells(backed)):
        for mine, theirs in zip(other.models, cells.models, strict=True):
            np.testing.assert_array_equal(mine.margins.rate, theirs.margins.rate)
            np.testing.assert_allclose(mine.root, theirs.root, atol=1e-10)


# What does not fit gets a sentence


def test_references_that_do_not_fit(reference: Any) -> None:
    logged = reference.copy()
    logged.X = np.log1p(logged.X)
    negative = reference.copy()
    negative.X = -negative.X
    missing = reference.copy()
    missing.X = missing.X.toarray()
    missing.X[0, 0] = np.nan
    for bad in (logged, negative, missing):
        with pytest.raises(ValueError, match="needs raw counts"):
            fit_cells(bad)
    twice = reference.copy()
    twice.var_names = ["same", "same", *reference.var_names[2:]]
    with pytest.raises(ValueError, match=r"1 gene names occur more than once \(same\)"):
        fit_cells(twice)
    with pytest.raises(ValueError, match="label_key='louvain' is no column of obs; the columns are 'cell_type'"):
        fit_cells(reference, label_key="louvain")
    with pytest.raises(ValueError, match="No cell of the reference has the type 'NK'"):
        fit_cells(reference, types=["B", "NK"])
    with pytest.raises(TypeError, match="must be a list"):
        fit_cells(reference, types="B")
    with pytest.raises(ValueError, match="at least two types"):
        fit_cells(reference, types=["B"])
    with pytest.raises(ValueError, match="'B' has 9 cells in the reference"):
        fit_cells(reference[391:])
    with pytest.raises(ValueError, match="no layer 'raw'"):
        fit_cells(reference, layer="raw")
    with pytest.raises(ValueError, match=r"no X: name the layer with the counts, layer=\.\.\.$"):
        fit_cells(anndata.AnnData(obs=reference.obs, var=reference.var))
    with pytest.raises(TypeError, match="Expected AnnData"):
        fit_cells(reference.X)
    nothing = reference.copy()
    nothing.X = csr_array(nothing.shape, dtype=np.float32)
    with pytest.raises(ValueError, match="All counts of the type 'B' are zero"):
        fit_cells(nothing)


def test_types_whose_names_would_be_torn_apart_in_a_file(reference: Any) -> None:
    with pytest.raises(ValueError, match=r'"/" separates levels in h5ad files: rename CD4/CD8 T, for example to CD4-CD8 T'):
        simulate_reference(types=["B", "CD4/CD8 T"])
    renamed = reference.copy()
    renamed.obs["cell_type"] = renamed.obs["cell_type"].cat.rename_categories({"CD8 T": "CD4/CD8 T"})
    for run in (fit_cells, simulate):
        with pytest.raises(ValueError, match="rename CD4/CD8 T"):
            run(renamed)
    assert fit_cells(renamed, types=["B", "Naive CD4 T"]).types == ("B", "Naive CD4 T")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"shape": 30}, "rows and columns"),
        ({"shape": (0, 4)}, "Each side of shape"),
        ({"cells_per_spot": 0.5}, "cells_per_spot"),
        ({"lengthscale": 0}, "lengthscale"),
        ({"sharpness": -1}, "sharpness"),
        ({"mask": np.ones((3, 3), dtype=bool)}, "True or False for each place"),
        ({"mask": np.ones((30, 30))}, "True or False for each place"),
        ({"mask": lambda s: s > 0.5}, "True or False for each place"),
        ({"mask": lambda s: s[:, 0] > 2}, "leaves out every spot"),
        ({"types": ["B", "NK"]}, "'NK'"),
    ],
)
def test_parameters_that_do_not_fit(cells: CellSimulator, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate(cells, **parameters)
