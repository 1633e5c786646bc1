"""Expression from sums over spots, against scanpy's answer in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anndata
import dask.array
import numpy as np
import pytest
import scanpy
from scipy.sparse import csc_matrix, csr_matrix

from gpssl.spatial._expression import expression_scores, log_expression

N_TOP_GENES, N_COMPS = 60, 8


@pytest.fixture
def counts() -> anndata.AnnData:
    """Counts of 150 genes in 120 spots of two slices, with four programs that make some genes vary."""
    rng = np.random.default_rng(0)
    programs = rng.gamma(0.5, 1.0, (4, 150)) * (rng.random((4, 150)) < 0.2)
    rates = rng.gamma(1.0, 1.0, 150) + rng.dirichlet(np.ones(4), 120) @ programs * 10
    X = rng.poisson(rates * rng.uniform(0.5, 2.0, (120, 1)))
    adata = anndata.AnnData(csr_matrix(X.astype(np.float32)))
    adata.obs["slice"] = np.where(np.arange(120) % 3 == 0, "one", "two")
    adata.obs["slice"] = adata.obs["slice"].astype("category")
    return adata


def by_scanpy(adata: anndata.AnnData, batch_key: str | None = None) -> anndata.AnnData:
    other = adata.copy()
    other.X = other.X.astype(np.float64)
    scanpy.pp.normalize_total(other)
    scanpy.pp.log1p(other)
    scanpy.pp.highly_variable_genes(other, n_top_genes=N_TOP_GENES, batch_key=batch_key)
    scanpy.pp.pca(other, n_comps=N_COMPS, svd_solver="arpack")
    return other


def assert_same_up_to_signs(one: Any, other: Any) -> None:
    signs = np.sign((one * other).sum(axis=0))
    np.testing.assert_allclose(one, other * signs, atol=1e-6 * np.abs(one).max())


def with_components(adata: anndata.AnnData, **how: Any) -> anndata.AnnData:
    other = adata.copy()
    expression_scores(other, **{"n_top_genes": N_TOP_GENES, "n_comps": N_COMPS} | how)
    return other


@pytest.mark.parametrize("batch_key", [None, "slice"])
def test_genes_and_components_are_scanpy_s(counts: anndata.AnnData, batch_key: str | None) -> None:
    expected = by_scanpy(counts, batch_key)
    found = with_components(counts, batch_key=batch_key)
    np.testing.assert_array_equal(found.var["highly_variable"], expected.var["highly_variable"])
    assert_same_up_to_signs(found.obsm["X_pca"], expected.obsm["X_pca"])
    assert_same_up_to_signs(found.varm["PCs"], expected.varm["PCs"])
    for name in ("variance", "variance_ratio"):
        np.testing.assert_allclose(found.uns["pca"][name], expected.uns["pca"][name], rtol=1e-6)


def stored(adata: anndata.AnnData, kind: str, folder: Path) -> anndata.AnnData:
    if kind == "backed":
        adata.write_h5ad(folder / "counts.h5ad")
        return anndata.read_h5ad(folder / "counts.h5ad", backed="r")
    convert = {
        "dense": lambda X: X.toarray(),
        "by columns": csc_matrix,
        "whole numbers": lambda X: X.astype(np.int32),
        "Dask": lambda X: dask.array.from_array(X.toarray(), chunks=(37, -1)),
        "sparse Dask": lambda X: dask.array.from_array(X.toarray(), chunks=(37, -1)).map_blocks(csr_matrix),
    }
    adata.X = convert[kind](adata.X)
    return adata


@pytest.mark.parametrize("kind", ["dense", "by columns", "whole numbers", "backed", "Dask", "sparse Dask"])
def test_same_answer_however_counts_are_stored(counts: anndata.AnnData, kind: str, tmp_path: Path) -> None:
    expected = with_components(counts, batch_key="slice")
    found = stored(counts.copy(), kind, tmp_path)
    expression_scores(found, batch_key="slice", n_top_genes=N_TOP_GENES, n_comps=N_COMPS)
    np.testing.assert_array_equal(found.var["highly_variable"], expected.var["highly_variable"])
    np.testing.assert_allclose(found.obsm["X_pca"], expected.obsm["X_pca"], atol=1e-9)


def test_fields_are_scanpy_s_and_used_again(counts: anndata.AnnData) -> None:
    scores = expression_scores(counts, n_top_genes=N_TOP_GENES, n_comps=N_COMPS)
    assert counts.var["highly_variable"].sum() == N_TOP_GENES
    assert counts.varm["PCs"].shape == (150, N_COMPS)
    counts.obsm["X_pca"] = counts.obsm["X_pca"] + 1
    np.testing.assert_array_equal(expression_scores(counts, n_top_genes=N_TOP_GENES, n_comps=N_COMPS), scores + 1)
    del counts.uns["pca"]  # as if they were the user's
    np.testing.assert_array_equal(expression_scores(counts, n_comps=3), scores[:, :3] + 1)


def test_components_are_made_again_where_they_were_made_otherwise(counts: anndata.AnnData, tmp_path: Path) -> None:
    fresh = with_components(counts)
    expression_scores(counts, n_top_genes=20, n_comps=3)
    counts.write_h5ad(tmp_path / "counts.h5ad")
    again = anndata.read_h5ad(tmp_path / "counts.h5ad")
    assert expression_scores(again, n_top_genes=20, n_comps=3).shape == (120, 3)
    scores = expression_scores(again, n_top_genes=N_TOP_GENES, n_comps=N_COMPS)
    np.testing.assert_allclose(scores, fresh.obsm["X_pca"])
    np.testing.assert_array_equal(again.var["highly_variable"], fresh.var["highly_variable"])


def test_genes_that_the_user_chose_are_used(counts: anndata.AnnData) -> None:
    counts.var["highly_variable"] = np.arange(150) < 40
    expected = with_components(counts, mask_var="highly_variable", n_comps=5)
    np.testing.assert_allclose(expression_scores(counts, n_comps=5), expected.obsm["X_pca"])
    assert counts.var["highly_variable"].sum() == 40
    counts.var["highly_variable"] = 1.0
    del counts.obsm["X_pca"]
    with pytest.raises(ValueError, match=r'var\["highly_variable"\] must be one boolean for each of the 150 genes'):
        expression_scores(counts)


def test_base_of_the_logarithm_is_respected(counts: anndata.AnnData) -> None:
    expected = with_components(counts)
    counts.X = counts.X.astype(np.float64)
    scanpy.pp.normalize_total(counts)
    scanpy.pp.log1p(counts, base=2)
    found = with_components(counts)
    np.testing.assert_array_equal(found.var["highly_variable"], expected.var["highly_variable"])
    np.testing.assert_allclose(found.obsm["X_pca"], expected.obsm["X_pca"], atol=1e-9)


def test_signs_do_not_depend_on_the_order_of_spots(counts: anndata.AnnData) -> None:
    expected = with_components(counts)
    order = np.random.default_rng(1).permutation(120)
    found = with_components(counts[order])
    np.testing.assert_allclose(found.obsm["X_pca"], expected.obsm["X_pca"][order], atol=1e-9)


def test_views_become_objects_of_their_own(counts: anndata.AnnData, tmp_path: Path) -> None:
    view = counts[:50]
    expression_scores(view, n_comps=3)
    assert not view.is_view
    assert "X_pca" not in counts.obsm
    counts.write_h5ad(tmp_path / "counts.h5ad")
    backed = anndata.read_h5ad(tmp_path / "counts.h5ad", backed="r")
    with pytest.raises(ValueError, match=r"adata\[...\].to_memory\(\)"):
        expression_scores(backed[:50], n_comps=3)


def test_layer_and_mask_are_respected(counts: anndata.AnnData) -> None:
    expected = with_components(counts, mask_var=np.arange(150) < 40, n_comps=5)
    counts.layers["counts"], counts.X = counts.X, csr_matrix(np.ones((120, 150), dtype=np.float32))
    counts.var["mine"] = np.arange(150) < 40
    np.testing.assert_allclose(expression_scores(counts, layer="counts", mask_var="mine", n_comps=5), expected.obsm["X_pca"])
    assert "highly_variable" not in counts.var


def test_named_representation_is_taken_as_it_is(counts: anndata.AnnData) -> None:
    counts.obsm["X_corrected"] = np.arange(240.0).reshape(120, 2)
    np.testing.assert_array_equal(expression_scores(counts, use_rep="X_corrected"), counts.obsm["X_corrected"])
    with pytest.raises(ValueError, match="no obsm\\['X_harmony'\\]; obsm has 'X_corrected'"):
        expression_scores(counts, use_rep="X_harmony")


def test_what_scanpy_logged_is_not_logged_again(counts: anndata.AnnData) -> None:
    expected = with_components(counts)
    logged = counts.copy()
    logged.X = logged.X.astype(np.float64)
    scanpy.pp.normalize_total(logged)
    scanpy.pp.log1p(logged)
    found = with_components(logged)
    np.testing.assert_array_equal(found.var["highly_variable"], expected.var["highly_variable"])
    np.testing.assert_allclose(found.obsm["X_pca"], expected.obsm["X_pca"], atol=1e-9)
    genes = ["3", "141"]
    np.testing.assert_allclose(log_expression(logged, genes), log_expression(counts, genes), atol=1e-12)
    np.testing.assert_allclose(log_expression(counts, genes), logged[:, genes].X.toarray(), atol=1e-12)


def spoil(counts: anndata.AnnData, what: str) -> anndata.AnnData:
    X = counts.X.toarray()
    if what == "negative":
        X[7, 3] = -1
    elif what == "fraction":
        X[7, 3] = 0.5
    elif what == "empty":
        X[[7, 9]] = 0
    else:
        counts.var_names = ["twice", "twice", *counts.var_names[2:]]
    counts.X = X
    return counts


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("negative", "Spot '7' has negative values.*pass layer="),
        ("fraction", "not whole numbers \\(spot '7' has one\\).*raw counts"),
        ("empty", "2 of 120 spots have no counts at all \\(7, 9\\).*filter_cells"),
        ("duplicate", "1 gene names occur more than once \\(twice\\).*var_names_make_unique"),
    ],
)
def test_what_are_no_counts_is_said(counts: anndata.AnnData, what: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        expression_scores(spoil(counts, what))


def test_too_few_spots_and_too_many_genes_are_said(counts: anndata.AnnData, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="There are 2 spots: principal components need at least 3"):
        expression_scores(counts[:2].copy())
    monkeypatch.setattr("gpssl.spatial._expression.MOST_GENES", 100)
    with pytest.raises(ValueError, match="mask_var leaves 150 genes: principal components are computed from 2 to 100"):
        expression_scores(counts, mask_var=np.ones(150, dtype=bool))


def test_unknown_names_are_said(counts: anndata.AnnData) -> None:
    with pytest.raises(ValueError, match="no layer 'raw'; the layers are nothing"):
        expression_scores(counts, layer="raw")
    with pytest.raises(ValueError, match="mask_var='mine' is no column of var"):
        expression_scores(counts, mask_var="mine")
    with pytest.raises(ValueError, match="batch_key='sample' is no column of obs; the columns are 'slice'"):
        expression_scores(counts, batch_key="sample", n_top_genes=20)
    with pytest.raises(TypeError, match="Expected AnnData, got ndarray"):
        expression_scores(counts.X.toarray())
