from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.gaussian_process import kernels as sk

from gpssl import GPSSL
from gpssl.core._features import choose_inducing_points, inducing_limits, n_candidates, nugget_of_rows, sample_candidates
from gpssl.data._rows import SliceableRows

Array = NDArray[np.float64]


def choose(kernel: sk.Kernel, X: Array, n_points: int, tolerance: float) -> Array:
    candidates = sample_candidates(kernel, SliceableRows(X), n_points, seed=0)
    return candidates.rows[choose_inducing_points(kernel, candidates, n_points=n_points, tolerance=tolerance)]


def mean_residual(kernel: sk.Kernel, X: Array, points: Array) -> float:
    """1/N Σ k(x, x) − k(x, U) Kuu⁻¹ k(U, x)."""
    cross = kernel(X, points)
    return float(np.mean(kernel.diag(X) - np.einsum("nm,mn->n", cross, np.linalg.pinv(kernel(points), hermitian=True) @ cross.T)))


def one_at_a_time(kernel: sk.Kernel, X: Array, tolerance: float) -> int:
    """Number of points that the textbook's pivoted Cholesky factorization needs."""
    K = kernel(X)
    residual, columns = K.diagonal().copy(), np.empty((len(X), 0))
    while residual.mean() > tolerance:
        pivot = residual.argmax()
        column = (K[:, pivot] - columns @ columns[pivot]) / np.sqrt(residual[pivot])
        columns, residual = np.column_stack([columns, column]), residual - column**2
    return columns.shape[1]


@pytest.mark.parametrize("tolerance", [1e-1, 1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("kernel", [sk.RBF(0.3), sk.Matern(0.5, nu=1.5)], ids=str)
def test_points_reach_the_tolerance_with_few_more_than_the_textbook_s(kernel: sk.Kernel, tolerance: float, circles: Array) -> None:
    points = choose(kernel, circles, 450, tolerance)
    assert mean_residual(kernel, circles, points) <= tolerance * 1.001
    assert len(points) <= 1.1 * one_at_a_time(kernel, circles, tolerance) + 16


def test_points_are_distinct_rows(circles: Array) -> None:
    X = np.repeat(circles[:40], 3, axis=0)
    points = choose(sk.RBF(0.1), X, 120, 0.0)
    assert len(np.unique(points, axis=0)) == len(points) <= 40
    assert {tuple(point) for point in points} <= {tuple(row) for row in X}


def test_no_more_points_than_asked_for(circles: Array) -> None:
    for n_points in (1, 16, 17, 50):
        assert len(choose(sk.RBF(0.1), circles, n_points, 0.0)) == n_points


def test_white_noise_is_not_mistaken_for_what_points_could_explain(circles: Array) -> None:
    plain = choose(sk.RBF(0.5), circles, 450, 1e-3)
    noisy = choose(sk.RBF(0.5) + sk.WhiteKernel(0.5), circles, 450, 1e-3)
    assert len(noisy) <= len(plain)
    ssl = GPSSL(2, kernel=sk.RBF(0.5) + sk.WhiteKernel(0.5), random_state=0).fit(circles)  # no warning
    assert ssl.residual_ == pytest.approx(0.5 / 1.5, rel=0.02)
    GPSSL(2, kernel=sk.RBF(0.5) + sk.WhiteKernel(0.5), inducing=circles, random_state=0).fit(circles)  # nor here


def test_cap_decides_and_says_so(circles: Array) -> None:
    with pytest.warns(UserWarning, match="10 inducing points leave .* max_inducing"):
        ssl = GPSSL(2, kernel=sk.RBF(0.2), max_inducing=10, random_state=0).fit(circles)
    assert len(ssl.inducing_points_) == 10
    expected = mean_residual(sk.RBF(0.2), circles, ssl.inducing_points_)
    assert ssl.residual_ == pytest.approx(expected, rel=1e-6)


def test_all_rows_are_exact(circles: Array) -> None:
    assert GPSSL(2, kernel=sk.RBF(0.3), inducing="all", random_state=0).fit(circles).residual_ < 1e-7
    assert GPSSL(2, kernel=sk.RBF(0.3), inducing=circles, random_state=0).fit(circles).residual_ < 1e-7


def test_rows_of_the_user_s_are_used_as_they_are(circles: Array) -> None:
    points = circles[:60] + 0.01
    ssl = GPSSL(2, kernel=sk.RBF(2.0), inducing=points, random_state=0).fit(circles)
    np.testing.assert_array_equal(ssl.inducing_points_, points)


def test_limits_of_what_was_asked_for() -> None:
    assert inducing_limits(None, 1000, 300, 1e-3) == (300, 1e-3)
    assert inducing_limits(40, None, 300, 1e-3) == (40, 0.0)
    assert inducing_limits("all", 1000, 300, 1e-3) == (1000, 0.0)
    with pytest.raises(ValueError, match="these partitions do not tell"):
        inducing_limits("all", None, 300, 1e-3)


def test_candidates_are_four_for_each_point_and_two_thousand_at_least() -> None:
    assert [n_candidates(n) for n in (1, 512, 513, 1000)] == [2048, 2048, 2052, 4000]
    X = np.random.default_rng(0).normal(size=(3000, 2))
    few, many = (sample_candidates(sk.RBF(), SliceableRows(X), n, seed=0) for n in (10, 800))
    assert (len(few.rows), few.complete) == (2048, False)
    assert (len(many.rows), many.complete) == (3000, True)


class Indefinite(sk.RBF):
    """k(x, y) = −2 for two rows and 1 for a row with itself: no covariance, whose size is at most one."""

    def __call__(self, X: Array, Y: Array | None = None, eval_gradient: bool = False) -> Array:
        Y = X if Y is None else Y
        return np.where((X[:, None] == Y[None]).all(axis=2), 1.0, -2.0)


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (sk.ConstantKernel(0.0) * sk.RBF(), "is zero on all rows: there is nothing to learn from"),
        (sk.WhiteKernel(), "no two rows have anything in common"),
        (Indefinite(), "is not positive semi-definite on these rows"),
    ],
    ids=["zero", "white noise", "indefinite"],
)
def test_kernels_that_points_cannot_be_chosen_for_get_a_sentence(kernel: sk.Kernel, sentence: str, circles: Array) -> None:
    with pytest.raises(ValueError, match=sentence):
        choose(kernel, circles[:40], 20, 0.0)


def test_a_nugget_is_what_an_equal_row_does_not_share() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    np.testing.assert_allclose(nugget_of_rows(sk.RBF() + sk.WhiteKernel(0.25), X), 0.25)
    np.testing.assert_array_equal(nugget_of_rows(sk.RBF(), X), 0.0)
    np.testing.assert_array_equal(nugget_of_rows(2.0 * sk.RBF() + sk.WhiteKernel(1e-11), X), 0.0)


def test_weights_decide_which_rows_are_worth_a_point() -> None:
    """Places far apart, of which sixteen at a time get a point, the first ones first, until little weight is left open."""
    X = 100.0 * np.arange(48)[:, None]
    first, last = np.ones(48), np.ones(48)
    first[0] = last[-1] = 1e6
    for weight, n_points in ((np.ones(48), 48), (first, 16), (last, 48)):
        candidates = sample_candidates(sk.RBF(), SliceableRows(X, weight), 48, seed=0)
        order = np.argsort(candidates.rows[:, 0])
        ordered = candidates._replace(rows=candidates.rows[order], weight=candidates.weight[order])
        assert len(choose_inducing_points(sk.RBF(), ordered, n_points=48, tolerance=0.01)) == n_points
