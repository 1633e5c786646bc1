"""IncompleteRBF, the squared exponential for rows with missing cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_wine
from sklearn.gaussian_process import kernels as sk

from gpssl import GPSSL
from gpssl.kernels import IncompleteRBF, NeighborRBF
from gpssl.kernels.incomplete import _fit_gaussian, _GaussianRows

Array = NDArray[np.float64]


def thinned(X: Array, share: float, seed: int = 0) -> Array:
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


@pytest.fixture(scope="module")
def wine() -> Array:
    return load_wine().data


def test_conditional_mean_against_the_textbook() -> None:
    """E[x_m | x_o] = μ_m + Σ_mo Σ_oo⁻¹ (x_o − μ_o), one row at a time; and the covariance that goes with it."""
    rng = np.random.default_rng(0)
    root = rng.standard_normal((4, 4))
    gaussian = _GaussianRows(rng.standard_normal(4), root @ root.T + np.eye(4))
    X = thinned(rng.standard_normal((30, 4)), 0.4)
    filled = gaussian.fill(X)
    moments = gaussian.expectations(X, np.ones(30))
    products = np.zeros((4, 4))
    for row, got in zip(X, filled, strict=True):
        m, o = np.isnan(row), ~np.isnan(row)
        weights = gaussian.covariance[np.ix_(m, o)] @ np.linalg.inv(gaussian.covariance[np.ix_(o, o)])
        expected = row.copy()
        expected[m] = gaussian.mean[m] + weights @ (row[o] - gaussian.mean[o])
        np.testing.assert_allclose(got, expected)
        products += np.outer(expected, expected)
        products[np.ix_(m, m)] += gaussian.covariance[np.ix_(m, m)] - weights @ gaussian.covariance[np.ix_(o, m)]
    np.testing.assert_allclose(moments.products, products)


def test_fit_finds_the_gaussian_behind_thinned_rows() -> None:
    rng = np.random.default_rng(0)
    root = rng.standard_normal((3, 3))
    X = rng.standard_normal((4000, 3)) @ root + [1.0, 2.0, 3.0]
    gaussian, _ = _fit_gaussian(thinned(X, 0.3), np.ones(len(X)))
    np.testing.assert_allclose(gaussian.mean, [1.0, 2.0, 3.0], atol=0.15)
    np.testing.assert_allclose(gaussian.covariance, root.T @ root, atol=0.3)


def test_kernel_is_the_expectation_by_monte_carlo(wine: Array) -> None:
    """The kernel is the expected squared exponential under independent Gaussians for missing cells, divided by the diagonal."""
    X = thinned(wine[:6, :4], 0.4, seed=3)
    kernel = IncompleteRBF().resolve(thinned(wine[:, :4], 0.4))
    rng = np.random.default_rng(0)
    filled = _GaussianRows(np.asarray(kernel.mean), np.asarray(kernel.covariance)).fill(X)
    spread = np.where(np.isnan(X), np.sqrt(np.asarray(kernel.open_variance)), 0.0)
    one, other = (filled + spread * rng.standard_normal((200_000, *X.shape)) for _ in range(2))
    differences = (one[:, :, None] - other[:, None]) / np.asarray(kernel.length_scale)
    expected = np.exp(-0.5 * (differences**2).sum(axis=3)).mean(axis=0)
    expected /= np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
    np.testing.assert_allclose(kernel(X), expected, atol=0.01)


def test_it_is_the_rbf_where_nothing_is_missing(wine: Array) -> None:
    incomplete, plain = IncompleteRBF(20).resolve(wine), NeighborRBF(20).resolve(wine)
    np.testing.assert_allclose(np.asarray(incomplete.length_scale), plain.length_scale)
    np.testing.assert_allclose(incomplete(wine), plain(wine), atol=1e-12)
    a = GPSSL(3, kernel=IncompleteRBF(20), random_state=0).fit(wine)
    b = GPSSL(3, kernel=NeighborRBF(20), random_state=0).fit(wine)
    np.testing.assert_allclose(a.transform(wine), b.transform(wine), atol=1e-6)


def test_rows_of_any_size_keep_their_digits() -> None:
    """Rows too large for differences from inner products are compared column by column."""
    X = np.array([[1e7, 0.0], [1e7 + 1, np.nan], [0.0, 1.0], [np.nan, 1.0]])
    kernel = IncompleteRBF(length_scale=1.0, mean=[0.0, 0.0], covariance=np.eye(2), open_variance=[1.0, 1.0])
    both_known = sk.RBF(1.0)([[1e7]], [[1e7 + 1]])[0, 0]
    one_missing = 2**-0.5 * 3**0.25
    assert kernel(X)[0, 1] == pytest.approx(both_known * one_missing, rel=1e-9)
    small = X[2:]
    assert kernel(small)[0, 1] == pytest.approx(one_missing, rel=1e-12)
    assert kernel(X)[2, 3] == pytest.approx(one_missing, rel=1e-12)


def test_the_emptier_a_row_the_less_it_tells(wine: Array) -> None:
    ssl = GPSSL(3, kernel=IncompleteRBF(20), random_state=0).fit(wine)
    row = wine[:1].copy()
    similarity = []
    for column in range(13):
        row[0, column] = np.nan
        similarity.append(float(ssl.kernel_(row, wine[:1])[0, 0]))
        assert np.isfinite(ssl.std(row)).all()
    assert np.argmin(similarity) > 6
    assert similarity[0] > similarity[-1]
    np.testing.assert_allclose(ssl.kernel_(row), 1.0)


def test_gaps_need_no_preparation(wine: Array) -> None:
    frame = pd.DataFrame(thinned(wine, 0.2))
    ssl = GPSSL(3, kernel=IncompleteRBF(), random_state=0).fit(frame)
    assert np.isfinite(ssl.transform(frame)).all()
    assert ssl.__sklearn_tags__().input_tags.allow_nan
    constant, empty = frame.assign(c=1.0), frame.assign(e=np.nan)
    for odd in (constant, empty):
        odd.columns = odd.columns.astype(str)
        assert np.isfinite(GPSSL(3, kernel=IncompleteRBF(), random_state=0).fit(odd).std(odd)).all()


def test_many_columns_count_as_independent() -> None:
    X = thinned(np.random.default_rng(0).standard_normal((60, 250)), 0.1)
    kernel = IncompleteRBF().resolve(X)
    assert np.count_nonzero(np.asarray(kernel.covariance)) == 250
    assert np.linalg.eigvalsh(kernel(X))[0] > -1e-10


def test_infinity_and_text_raise_an_error(wine: Array) -> None:
    with pytest.raises(ValueError, match="infinity"):
        GPSSL(2, kernel=IncompleteRBF()).fit(np.where(wine > 100, np.inf, wine))
    with pytest.raises(ValueError, match="could not convert string"):
        GPSSL(2, kernel=IncompleteRBF()).fit([["a", "b"], ["c", "d"], ["e", "f"]])


@pytest.mark.parametrize("shift", [1e5, 1e7, 1e9])
def test_where_a_column_begins_makes_no_difference(shift: float) -> None:
    """Seconds since 1970 give the same kernel as seconds since noon."""
    X = thinned(np.random.default_rng(0).standard_normal((60, 3)), 0.3)
    np.testing.assert_allclose(IncompleteRBF().resolve(X + shift)(X + shift), IncompleteRBF().resolve(X)(X), atol=1e-5)


def test_inducing_points_of_the_wrong_width_raise_an_error(wine: Array) -> None:
    with pytest.raises(ValueError, match="inducing points have 2 columns, the rows have 13"):
        GPSSL(2, kernel=IncompleteRBF(), inducing=wine[:10, :2]).fit(wine)


@pytest.mark.parametrize("size", [1e-140, 1e140])
def test_columns_of_extreme_size_are_compared_in_their_units(wine: Array, size: float) -> None:
    X = thinned(wine[:, :3], 0.1)
    plain, scaled = (IncompleteRBF(length_scale=1.0).resolve(rows) for rows in (X, X * size))
    np.testing.assert_allclose(np.asarray(scaled.mean, dtype=float), np.asarray(plain.mean, dtype=float) * size, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(scaled.covariance, dtype=float), np.asarray(plain.covariance, dtype=float) * size**2, rtol=1e-9)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_columns_whose_squares_are_no_numbers_get_a_sentence(wine: Array, size: float) -> None:
    with pytest.raises(ValueError, match=r"The cells of column [012] spread over .*, whose square is no number: give it another unit"):
        IncompleteRBF().resolve(thinned(wine[:, :3], 0.1) * size)
