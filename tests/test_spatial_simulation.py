"""Simulated slices: margins and correlations of the cells against the reference, and the truth that a slice carries."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array, load_npz
from scipy.stats import nbinom, norm, poisson

from gpssl.spatial import CellSimulator, cell_stream, fit_cells, simulate, simulate_reference, simulation
from gpssl.spatial.cell_stream import CellStream
from gpssl.spatial.copula import CellModel
from gpssl.spatial.count_margins import CountMargins, fit_margins
from gpssl.spatial.grid_traces import grid_coordinates, grid_traces

anndata = pytest.importorskip("anndata", reason="needs the extra spatial")
pandas = pytest.importorskip("pandas", reason="needs the extra spatial")

Array = NDArray[np.float64]

folder = Path(os.environ.get("GPSSL_DATA", "")) / "pbmc3k"
needs_data = pytest.mark.skipif(not (folder / "cells.csv").is_file(), reason="GPSSL_DATA names no folder with pbmc3k")
FOUR_TYPES = ["B", "CD8 T", "Memory CD4 T", "Naive CD4 T"]


@pytest.fixture(scope="module")
def reference() -> Any:
    return simulate_reference(n_cells=400, n_genes=120)


@pytest.fixture(scope="module")
def cells(reference: Any) -> CellSimulator:
    return fit_cells(reference)


# Margins


def log_likelihood(x: Array, rate: float, size: float, zero: float) -> float:
    """The slow one: SciPy's distributions, value by value."""
    plain = poisson.pmf(x, rate) if np.isinf(size) else nbinom.pmf(x, size, size / (size + rate))
    return float(np.log(zero * (x == 0) + (1 - zero) * plain).sum())


def draw(rate: float, size: float, zero: float, n: int = 2000, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    lasting = rate if np.isinf(size) else rng.gamma(size, rate / size, n)
    return np.where(rng.random(n) >= zero, rng.poisson(lasting, n), 0.0)


@pytest.mark.parametrize("zero", [0.0, 0.4])
@pytest.mark.parametrize(("rate", "size"), [(0.8, 0.5), (3.0, 2.0), (40.0, 8.0)])
def test_margins_are_the_most_likely(rate: float, size: float, zero: float) -> None:
    x = draw(rate, size, zero)
    fitted = fit_margins(x[:, None])
    inflated = fitted.zero_inflation[0] > 0

    def loss(parameters: Array) -> float:
        share = 1 / (1 + np.exp(-parameters[2])) if inflated else 0.0
        return -log_likelihood(x, np.exp(parameters[0]), np.exp(parameters[1]), share)

    best = minimize(loss, [0.0, 0.0, 0.0], method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-7, "fatol": 1e-9})
    found = log_likelihood(x, fitted.rate[0], fitted.size[0], fitted.zero_inflation[0])
    np.testing.assert_allclose(found, -best.fun, atol=1e-6)
    np.testing.assert_allclose([fitted.rate[0], fitted.size[0]], np.exp(best.x[:2]), rtol=1e-3)


def test_known_margins_are_found_again() -> None:
    truth = [(5.0, 2.0, 0.3), (20.0, 5.0, 0.6), (2.0, np.inf, 0.5), (2.0, np.inf, 0.0), (2.0, 1.0, 0.0)]
    X = np.column_stack([draw(*parameters, n=20_000, seed=seed) for seed, parameters in enumerate(truth)])
    fitted = fit_margins(X)
    # Standard errors at 20,000 cells are below 2 % for the rates, 5 % for the sizes and 0.015 for the shares; three of them are allowed.
    np.testing.assert_allclose(fitted.rate, [parameters[0] for parameters in truth], rtol=0.06)
    finite = [0, 1, 4]
    np.testing.assert_allclose(fitted.size[finite], [truth[i][1] for i in finite], rtol=0.15)
    assert (1 / fitted.size[[2, 3]] < 0.05).all()  # about √2 / (2 √10,000) = 0.007 for known zeros, three times as much for unknown ones
    np.testing.assert_allclose(fitted.zero_inflation, [parameters[2] for parameters in truth], atol=0.045)
    assert (fitted.zero_inflation[3:] == 0).all()


def test_zero_inflation_is_rarely_seen_where_there_is_none() -> None:
    X = np.column_stack([draw(3.0, 2.0, 0.0, n=300, seed=seed) for seed in range(400)])
    # The null distribution is half a point mass at zero and half χ²₁, so the test rejects 2.5 % of the time: 10 ± 3.1 of 400.
    assert (fit_margins(X).zero_inflation > 0).sum() <= 20


def test_poisson_where_counts_do_not_vary_more_than_their_mean() -> None:
    X = np.zeros((50, 4))
    X[::2, 0] = 1  # variance below the mean
    X[3, 1] = 40  # one cell tells nothing about dispersion
    X[:, 2] = 7
    fitted = fit_margins(X)
    assert np.isinf(fitted.size).all()
    np.testing.assert_allclose(fitted.mean, X.mean(axis=0))
    assert fitted.zero_inflation.sum() == 0


@pytest.mark.parametrize(("rate", "size", "zero"), [(3.0, 2.0, 0.3), (4.0, np.inf, 0.2), (0.3, 0.1, 0.0), (5e4, 0.3, 0.0)])
def test_moments_and_table_of_margins(rate: float, size: float, zero: float) -> None:
    margins = CountMargins(np.array([rate]), np.array([size]), np.array([zero]))
    table = margins.table(0)
    probability = np.diff(table.cumulative, prepend=0)
    mean = probability @ table.values
    # Exact up to 1,023; in steps of 0.1 % beyond, which is the tolerance of the last case.
    tolerance = 1e-9 if rate < 100 else 1e-3
    np.testing.assert_allclose(mean, margins.mean[0], rtol=tolerance)
    np.testing.assert_allclose(probability @ (table.values - mean) ** 2, margins.variance[0], rtol=2 * tolerance)
    np.testing.assert_allclose(table.cumulative[0], margins.zero_fraction[0], rtol=1e-9)
    assert table.quantile(np.array([0.0, table.cumulative[2], 1.0])).tolist() == [0, 2, table.values[-1]]


# Cells


def off_diagonal(X: Array) -> Array:
    """Correlations of log counts between the columns."""
    correlation = np.corrcoef(np.log1p(X), rowvar=False)
    return correlation[np.triu_indices(len(correlation), 1)]


def dense(adata: Any, name: str) -> Array:
    return adata[adata.obs["cell_type"] == name].X.toarray().astype(np.float64)


def check_moments(margins: CountMargins, new: Array, real: Array) -> None:
    """New cells have the moments of their margins, and the margins those of the reference.

    Over all genes, standardised differences have mean square one. With a hundred genes or more, 1.5 is beyond chance, and so is a single
    one of 6. Genes count for which at least ten cells with and ten without them are expected, or found, so that sums are nearly normal.
    """
    n, seen = len(new), (real > 0).sum(axis=0) >= 10
    mixed = seen & (n * margins.zero_fraction >= 10)
    np.testing.assert_allclose(margins.mean, real.mean(axis=0), rtol=0.05, atol=1e-9)
    for genes, found, expected, variance in [
        (seen, new.mean(axis=0), margins.mean, margins.variance),
        (mixed, (new == 0).mean(axis=0), margins.zero_fraction, margins.zero_fraction * (1 - margins.zero_fraction)),
    ]:
        z = (found - expected)[genes] / np.sqrt(variance[genes] / n)
        assert np.abs(z).max() < 6
        assert np.mean(z**2) < 1.5
    # Most genes: a few real cells with extreme counts make some variances incomparable.
    ratio = np.log(new.var(axis=0)[seen] / real.var(axis=0)[seen])
    assert np.abs(np.median(ratio)) < 0.05
    assert np.quantile(np.abs(ratio), 0.8) < 0.35
    assert np.abs((new == 0).mean(axis=0) - (real == 0).mean(axis=0)).max() < 0.13


def test_new_cells_look_like_those_of_the_reference(reference: Any, cells: CellSimulator) -> None:
    new = cells.sample(4000)
    assert new.obs["cell_type"].value_counts().to_dict() == dict.fromkeys(cells.types, 4000)
    assert list(new.var_names) == list(reference.var_names)
    for name, model in zip(cells.types, cells.models, strict=True):
        X, real = dense(new, name), dense(reference, name)
        check_moments(model.margins, X, real)
        genes = model.copula_genes
        expected, found = off_diagonal(real[:, genes]), off_diagonal(X[:, genes])
        # Correlations of 400 cells have standard errors of 0.05, and the copula follows them up to negative eigenvalues.
        assert np.sqrt(np.mean((found - expected) ** 2)) < 0.03
        assert np.corrcoef(found, expected)[0, 1] > 0.9
        # The depth of a cell is shared by all its genes, and has to show.
        assert found.mean() == pytest.approx(expected.mean(), abs=0.01)
        assert expected.mean() > 0.02


def test_correlation_of_a_known_copula_is_found_again() -> None:
    rng = np.random.default_rng(0)
    rho = np.array([[1, 0.7, -0.4], [0.7, 1, 0], [-0.4, 0, 1]])
    levels = rng.multivariate_normal(np.zeros(3), rho, size=8000)
    margins = CountMargins(np.array([0.5, 3.0, 30.0]), np.array([1.0, 2.0, np.inf]), np.zeros(3))
    X = np.column_stack([margins.table(gene).quantile(norm.cdf(levels[:, gene])) for gene in range(3)])
    both = anndata.AnnData(
        csr_array(np.tile(X, (2, 1)), dtype=np.float32),
        obs=pandas.DataFrame({"cell_type": np.repeat(["a", "b"], len(X))}, index=[str(i) for i in range(2 * len(X))]),
    )
    root = fit_cells(both).models[0].root
    # Standard errors are below 1/√8000 / 0.6 = 0.019, 0.6 the least reliability of the three; the rest is the first-order correction.
    np.testing.assert_allclose(root @ root.T, rho, atol=0.06)


def test_without_a_copula_genes_are_independent(reference: Any) -> None:
    free = fit_cells(reference, n_copula_genes=0)
    X = dense(free.sample(4000), "B")
    check_moments(free.models[0].margins, X, dense(reference, "B"))
    z = off_diagonal(X[:, X.var(axis=0) > 0]) * np.sqrt(4000)
    assert 0.9 < np.mean(z**2) < 1.1  # 7,000 pairs of unit variance, hardly dependent: ± 0.02


def five_genes() -> CellModel:
    """All three ways of drawing: by cell, by spot with zero inflation, by spot in bursts."""
    size = np.array([2.0, 2.0, 0.3, np.inf, np.inf])
    margins = CountMargins(np.array([3.0, 3.0, 0.4, 2.0, 3.0]), size, np.array([0.2, 0.2, 0, 0, 0.3]))
    return CellModel(margins, np.array([0]), np.eye(1))


def test_cells_are_the_same_however_many_are_taken_at_a_time() -> None:
    whole, parts = (CellStream(five_genes(), np.random.default_rng(0)) for _ in range(2))
    n_cells = np.random.default_rng(1).integers(4, size=100)
    expected = whole.take_sums(n_cells).toarray()
    found = [parts.take_sums(part).toarray() for part in np.split(n_cells, [1, 2, 40, 99])]
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert (expected.sum(axis=0) > 0).all()


def test_sums_of_cells_have_moments_of_sums() -> None:
    truth, stream = five_genes().margins, CellStream(five_genes(), np.random.default_rng(0))
    n_cells = np.tile([0, 1, 4], 20_000)
    sums = stream.take_sums(n_cells).toarray()
    assert sums[n_cells == 0].sum() == 0
    for n in (1, 4):
        X = sums[n_cells == n]
        # Standard errors at 20,000 sums: √(variance / 20,000) for the mean, below 2.5 % for the variance of the heaviest tail.
        assert (np.abs(X.mean(axis=0) - n * truth.mean) < 4 * np.sqrt(n * truth.variance / 20_000)).all()
        np.testing.assert_allclose(X.var(axis=0), n * truth.variance, rtol=0.1)
        np.testing.assert_allclose((X == 0).mean(axis=0), truth.zero_fraction**n, atol=4 * 0.5 / np.sqrt(20_000))


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
    # Given its cells, a spot's counts have mean Σ_t n_t μ_t and variance Σ_t n_t σ²_t. Standardised, they have unit variance.
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


def test_markers_of_the_made_up_reference_mark_their_type() -> None:
    reference = simulate_reference()
    assert set(reference.uns["signatures"]) == set(FOUR_TYPES)
    assert len({gene for genes in reference.uns["signatures"].values() for gene in genes}) == 40
    for name, genes in reference.uns["signatures"].items():
        means = {other: dense(reference[:, genes], other).mean() for other in FOUR_TYPES}
        assert means[name] > 4 * max(mean for other, mean in means.items() if other != name)


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


def test_cells_without_a_type_are_left_out(reference: Any) -> None:
    partly = reference.copy()
    partly.obs.loc[partly.obs_names[:50], "cell_type"] = np.nan
    expected = dense(reference, "B")[50:].mean(axis=0)
    np.testing.assert_allclose(fit_cells(partly).models[0].margins.mean, expected, rtol=1e-6)


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


# Real cells


@needs_data
def test_new_cells_look_like_blood_cells() -> None:
    obs = pandas.read_csv(folder / "cells.csv", index_col="barcode")
    genes = (folder / "genes.txt").read_text().split()
    real = anndata.AnnData(load_npz(folder / "counts_cells_by_genes_csr.npz"), obs=obs, var=pandas.DataFrame(index=genes))
    cells = fit_cells(real, types=FOUR_TYPES)
    new = cells.sample(1500)
    for name, model in zip(FOUR_TYPES, cells.models, strict=True):
        X, expected = dense(new, name), dense(real, name)
        check_moments(model.margins, X, expected)
        assert len(model.copula_genes) == 500
        found, wanted = off_diagonal(X[:, model.copula_genes]), off_diagonal(expected[:, model.copula_genes])
        # 271 to 697 cells: standard errors 0.04 to 0.06 in the reference, 0.026 in the new cells.
        assert np.sqrt(np.mean((found - wanted) ** 2)) < 0.045
        assert np.corrcoef(found, wanted)[0, 1] > 0.9
