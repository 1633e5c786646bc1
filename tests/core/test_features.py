from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF, PairwiseKernel, WhiteKernel

from gpssl.core._features import Features, stable_cholesky

Array = NDArray[np.float64]


@pytest.fixture
def features(circles: Array) -> Features:
    return Features.build(RBF(0.5), circles[:25])


def test_features_give_the_nystrom_approximation(circles: Array, features: Features) -> None:
    """a(x)ᵀ a(y) = k(x, U) Kuu⁻¹ k(U, y)."""
    X = circles[:40]
    kernel, points = features.kernel, features.points
    regular = kernel(points) + features.jitter * np.eye(25)
    expected = kernel(X, points) @ np.linalg.solve(regular, kernel(points, X))
    whitened = features.whitened(X)
    np.testing.assert_allclose(whitened.T @ whitened, expected, atol=1e-9)
    np.testing.assert_allclose(features.residual_variance(X, whitened), np.diagonal(kernel(X) - expected), atol=1e-9)


def test_projection_is_the_inner_product_with_whitened_features(circles: Array, features: Features) -> None:
    directions = np.random.default_rng(0).standard_normal((25, 3))
    whitened = features.whiten(features.columns(circles).T)
    np.testing.assert_allclose(features.project(circles, directions), whitened.T @ directions, atol=1e-8)


def test_residual_is_zero_at_the_inducing_points(features: Features) -> None:
    whitened = features.whitened(features.points)
    np.testing.assert_allclose(features.kernel(features.points) - whitened.T @ whitened, 0, atol=1e-7)
    np.testing.assert_allclose(features.residual_variance(features.points, whitened), 0, atol=1e-7)


def test_jitter_grows_until_it_is_enough_and_is_recorded() -> None:
    assert stable_cholesky(np.eye(3), RBF())[1] == 1e-8
    slightly_negative = np.diag([1.0, 1.0, -1e-7])
    factor, jitter = stable_cholesky(slightly_negative, RBF(), scale=1.0)
    assert jitter == pytest.approx(1e-6)
    np.testing.assert_allclose(factor @ factor.T, slightly_negative + 1e-6 * np.eye(3))
    with pytest.raises(ValueError, match="not positive semi-definite on these rows, even with 1e-05 of its mean"):
        stable_cholesky(np.diag([1.0, -1e-4]), RBF(), scale=1.0)


def test_kernel_that_is_none_gets_a_sentence(circles: Array) -> None:
    with pytest.raises(ValueError, match="not positive semi-definite"):
        Features.build(PairwiseKernel(metric="sigmoid", gamma=2.0), circles[:30])


def test_fingerprint_tells_kernels_and_points_apart(circles: Array, features: Features) -> None:
    same = Features.build(RBF(0.5), circles[:25].copy())
    assert same.fingerprint == features.fingerprint
    others = [
        Features.build(RBF(0.5 + 1e-12), circles[:25]),
        Features.build(RBF(0.5), circles[:25] + 1e-12),
        Features.build(RBF(0.5) + WhiteKernel(1e-3), circles[:25]),
    ]
    assert len({features.fingerprint, *(other.fingerprint for other in others)}) == 4


def test_features_survive_pickling_after_use(circles: Array, features: Features) -> None:
    features.columns(circles[:2])
    copy = pickle.loads(pickle.dumps(features))
    np.testing.assert_array_equal(copy.columns(circles), features.columns(circles))
