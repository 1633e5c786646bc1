"""Rows in single precision: faster, and as good as it is safe."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF, Matern

from gpssl import GPSSL
from gpssl.core._features import Features

Array = NDArray[np.float64]

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((5000, 2)) @ RANDOM.standard_normal((2, 4)) + 0.3 * RANDOM.standard_normal((5000, 4))


@pytest.mark.filterwarnings("ignore:.*inducing points leave.*")
@pytest.mark.parametrize(
    ("rows", "kernel"),
    [
        pytest.param(X, None, id="table"),
        pytest.param(RANDOM.standard_normal((3000, 5)) + 1000.0, None, id="far from zero"),
        pytest.param(RANDOM.standard_t(2, (3000, 8)), None, id="heavy tails"),
        pytest.param(RANDOM.random((3000, 2)), None, id="two columns"),
        pytest.param(RANDOM.random((1000, 1)), RBF(0.1), id="one column"),
        pytest.param(X, 2.0 * RBF([1.0, 2.0, 3.0, 4.0]), id="scaled"),
        pytest.param(X, Matern(3.0), id="no way of its own"),
        pytest.param(np.vstack([RANDOM.random((2000, 1)) - 14, 0.8 * RANDOM.random((1200, 1)) + 14]), RBF(2.0), id="two far clusters"),
    ],
)
def test_single_precision_is_within_a_thousandth_of_double(rows: Array, kernel: Any) -> None:
    single = rows.astype(np.float32)
    double = single.astype(np.float64)
    one, other = (GPSSL(2, kernel=kernel, max_inducing=200, random_state=0).fit(values) for values in (single, double))
    spread, prior = other.transform(double).std(axis=0), np.sqrt(other.kernel_.diag(double[:1]))
    assert spread.min() > 0.5
    assert (np.abs(one.transform(single) - other.transform(double)) < 1e-3 * spread).all()
    assert (np.abs(one.std(single) - other.std(double)) < 1e-3 * prior).all()
    assert one.transform(single).dtype == one.std(single).dtype == np.float32


def test_kernel_is_computed_in_double_precision_where_points_nearly_coincide() -> None:
    """Whitening divides rounding errors by what the last point adds, here 1e-8 of the variance."""
    rows = np.random.default_rng(0).random((50, 1)).astype(np.float32)
    close = np.array([[0.0], [1e-4], [1.0]])
    safe, unsafe = Features.build(RBF(1.0), close[[0, 2]]), Features.build(RBF(1.0), close)
    assert safe.single_precision_is_safe
    assert not unsafe.single_precision_is_safe
    np.testing.assert_array_equal(unsafe.columns(rows), unsafe.columns(rows.astype(np.float64)))
    assert (safe.columns(rows) != safe.columns(rows.astype(np.float64))).any()


def test_draws_of_rows_in_single_precision_are_too() -> None:
    """Exact draws, and those along paths."""
    reference = GPSSL(3, max_inducing=60, residual_tolerance=0.05, random_state=0).fit(X)
    few, many = X[::50].astype(np.float32), X[::2].astype(np.float32)
    for single in (few, many):
        draws = reference.sample(single, 4)
        assert draws.dtype == np.float32
        np.testing.assert_allclose(draws, reference.sample(single.astype(np.float64), 4), atol=1e-3)


def test_draws_through_rows_that_are_remembered() -> None:
    """Rows close to each other have large and opposite weights, which would multiply rounding errors."""
    reference = GPSSL(3, max_inducing=60, residual_tolerance=0.05, random_state=0).fit(X)
    draws = []
    for dtype in (np.float32, np.float64):
        functions = reference.draw_functions(3, random_state=1)
        functions(X[:300].astype(np.float32).astype(dtype))
        draws.append(functions(X[300:].astype(np.float32).astype(dtype)))
    np.testing.assert_allclose(draws[0], draws[1], atol=1e-4)
