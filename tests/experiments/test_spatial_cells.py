"""Simulated cells: margins and correlations against the reference."""

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

from experiments.simulation import CellSimulator, fit_cells, simulate_reference
from experiments.simulation.cells import CellModel, CellStream
from experiments.simulation.count_margins import CountMargins, fit_margins

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

    Over all genes, standardized differences have mean square one. With a hundred genes or more, 1.5 is beyond chance, and so is a single
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


def test_markers_of_the_made_up_reference_mark_their_type() -> None:
    reference = simulate_reference()
    assert set(reference.uns["signatures"]) == set(FOUR_TYPES)
    assert len({gene for genes in reference.uns["signatures"].values() for gene in genes}) == 40
    for name, genes in reference.uns["signatures"].items():
        means = {other: dense(reference[:, genes], other).mean() for other in FOUR_TYPES}
        assert means[name] > 4 * max(mean for other, mean in means.items() if other != name)


def test_cells_without_a_type_are_left_out(reference: Any) -> None:
    partly = reference.copy()
    partly.obs.loc[partly.obs_names[:50], "cell_type"] = np.nan
    expected = dense(reference, "B")[50:].mean(axis=0)
    np.testing.assert_allclose(fit_cells(partly).models[0].margins.mean, expected, rtol=1e-6)


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
