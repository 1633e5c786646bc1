"""The nearest-neighbor Gaussian process."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.gaussian_process import kernels as sk

from gpssl import GPSSL
from gpssl.kernels import IncompleteRBF, NearestNeighborGP, NeighborRBF, SpectrumKernel

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def vectors() -> Array:
    return np.random.default_rng(0).standard_normal((40, 2))


def slow_covariance(rows: Array, kernel: sk.Kernel, n_neighbors: int) -> Array:
    """Compute the covariance row by row, each given its nearest rows before it."""
    scaled = rows / rows.std(axis=0)
    covariance = np.zeros((len(rows), len(rows)))
    for i in range(len(rows)):
        near = np.argsort(((scaled[:i] - scaled[i]) ** 2).sum(axis=1))[:n_neighbors]
        weights = np.linalg.solve(kernel(rows[near]), kernel(rows[near], rows[[i]]))[:, 0] if i else np.empty(0)
        covariance[i, :i] = covariance[:i, i] = weights @ covariance[near, :i]
        own = 1.0 - weights @ kernel(rows[near], rows[[i]])[:, 0] if i else 1.0
        covariance[i, i] = own + weights @ covariance[np.ix_(near, near)] @ weights
    return covariance


def test_covariance_at_the_training_rows_against_a_loop(vectors: Array) -> None:
    kernel = NearestNeighborGP(4, kernel=sk.RBF(1.0)).resolve(vectors)
    np.testing.assert_allclose(kernel(kernel.rows), slow_covariance(kernel.rows, sk.RBF(1.0), 4), atol=1e-6)


def test_with_all_rows_as_neighbors_it_is_the_kernel(vectors: Array) -> None:
    kernel = NearestNeighborGP(40, kernel=sk.Matern(1.0, nu=0.5)).resolve(vectors)
    np.testing.assert_allclose(kernel(vectors), sk.Matern(1.0, nu=0.5)(vectors), atol=1e-6)
    new = vectors[:5] + 0.1
    np.testing.assert_allclose(kernel(new, vectors), sk.Matern(1.0, nu=0.5)(new, vectors), atol=1e-6)


def test_new_rows_depend_on_their_neighbors_and_have_noise_of_their_own(vectors: Array) -> None:
    kernel = NearestNeighborGP(3, kernel=sk.RBF(0.5)).resolve(vectors)
    new = vectors[:2] + 0.3
    together = kernel(np.vstack([new, new[:1]]))
    np.testing.assert_allclose(together[0, 2], together[0, 0], err_msg="the same row has the same value")
    near = np.argsort((((kernel.rows - new[0]) / kernel.scale) ** 2).sum(axis=1))[:3]
    weights = np.linalg.solve(sk.RBF(0.5)(kernel.rows[near]), sk.RBF(0.5)(kernel.rows[near], new[:1]))[:, 0]
    np.testing.assert_allclose(kernel(new[:1], kernel.rows)[0], weights @ kernel(kernel.rows)[near], atol=1e-6)
    own = 1 - weights @ sk.RBF(0.5)(kernel.rows[near], new[:1])[:, 0]
    np.testing.assert_allclose(kernel.diag(new[:1])[0], weights @ kernel(kernel.rows)[np.ix_(near, near)] @ weights + own, atol=1e-6)


def test_it_is_a_kernel_for_gpssl(vectors: Array) -> None:
    sparse = GPSSL(2, kernel=NearestNeighborGP(15), random_state=0).fit(vectors)
    dense = GPSSL(2, kernel=NeighborRBF(), random_state=0).fit(vectors)
    one, other = (np.linalg.qr(ssl.transform(vectors) - ssl.transform(vectors).mean(axis=0))[0] for ssl in (sparse, dense))
    assert np.linalg.svd(one.T @ other, compute_uv=False).min() > 0.95, "with many neighbors, the representation of its kernel"
    assert np.isfinite(sparse.std(vectors + 10)).all()


def test_bad_parameters_raise_an_error(vectors: Array) -> None:
    with pytest.raises(ValueError, match="n_neighbors must be a whole number of at least 1"):
        GPSSL(2, kernel=NearestNeighborGP(0)).fit(vectors)
    with pytest.raises(ValueError, match="takes its neighbors from the training rows"):
        NearestNeighborGP()(vectors)


def test_kernels_for_other_rows_raise_an_error(vectors: Array) -> None:
    for kernel, rows in ((SpectrumKernel(), ["abc", "abd", "bcd"]), (IncompleteRBF(), np.where(vectors > 2, np.nan, vectors))):
        with pytest.raises(ValueError, match="pass a kernel for vectors"):
            GPSSL(1, kernel=NearestNeighborGP(2, kernel=kernel)).fit(rows)
    zero = np.vstack([vectors, np.zeros(2)])
    assert np.isfinite(NearestNeighborGP(3, kernel=sk.DotProduct(0.0)).resolve(zero)(zero)).all()
