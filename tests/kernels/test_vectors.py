"""NeighborRBF: the paper's rule for the lengthscale."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from gpssl.kernels import NeighborRBF

Array = NDArray[np.float64]


def brute_force_rule(X: Array, neighborhood: float, reduce: str) -> float:
    """Reduce the distances from each row to its K-th neighbor, found by sorting; a row is not its own neighbor."""
    k = max(1, len(X) // int(neighborhood))
    distances = [sorted(np.linalg.norm(x - y) for j, y in enumerate(X) if j != i)[k - 1] for i, x in enumerate(X)]
    return float(max(distances) if reduce == "max" else np.median(distances))


@pytest.mark.parametrize("reduce", ["max", "median"])
@pytest.mark.parametrize("neighborhood", [3, 10, 1000])
def test_lengthscale_is_the_paper_s_rule(circles: Array, reduce: str, neighborhood: int) -> None:
    X = circles[::3]
    kernel = NeighborRBF(neighborhood, reduce=reduce, per_column=False)  # type: ignore[arg-type]
    assert kernel.resolve(X).length_scale == pytest.approx(brute_force_rule(X, neighborhood, reduce), rel=1e-12)


def test_one_lengthscale_per_column_is_the_rule_in_units_of_each_column(breast_cancer: Array) -> None:
    X = breast_cancer[:200]
    lengthscales = NeighborRBF().resolve(X).length_scale
    rule = brute_force_rule(StandardScaler().fit_transform(X), 10, "max")
    np.testing.assert_allclose(lengthscales, rule * X.std(axis=0), rtol=1e-10)


def test_units_do_not_matter_with_one_lengthscale_per_column(breast_cancer: Array) -> None:
    units = 10.0 ** np.arange(-15, 15)
    one, other = NeighborRBF().resolve(breast_cancer), NeighborRBF().resolve(breast_cancer * units)
    np.testing.assert_allclose(other.length_scale, one.length_scale * units, rtol=1e-9)


def test_one_outlier_stretches_the_maximum_and_not_the_median(circles: Array) -> None:
    X = np.vstack([circles, [[100.0, 100.0]]])
    for reduce, factor in (("max", 50), ("median", 1.02)):
        ratio = (
            NeighborRBF(reduce=reduce, per_column=False).resolve(X).length_scale  # type: ignore[arg-type]
            / NeighborRBF(reduce=reduce, per_column=False).resolve(circles).length_scale  # type: ignore[arg-type]
        )
        assert ratio > factor if reduce == "max" else 1 / factor < ratio < factor


@pytest.mark.parametrize("reduce", ["max", "median"])
def test_rule_on_a_sample_stays_close_to_the_rule_on_all_rows(reduce: str) -> None:
    X = np.random.default_rng(0).standard_normal((6000, 4))
    on_all = NeighborRBF(reduce=reduce, per_column=False, max_rows=10_000).resolve(X)  # type: ignore[arg-type]
    on_sample = NeighborRBF(reduce=reduce, per_column=False, max_rows=1000).resolve(X, seed=1)  # type: ignore[arg-type]
    assert on_sample.length_scale == pytest.approx(on_all.length_scale, rel=0.05)


def test_weights_count_as_repetitions_in_the_rule(circles: Array) -> None:
    weight = np.random.default_rng(0).integers(0, 4, size=len(circles))
    for reduce in ("max", "median"):
        kernel = NeighborRBF(reduce=reduce)
        weighted = kernel.resolve(circles, weight.astype(float)).length_scale
        repeated = kernel.resolve(np.repeat(circles, weight, axis=0)).length_scale
        np.testing.assert_allclose(weighted, repeated, rtol=1e-12)


def test_discrete_and_constant_columns_get_a_usable_lengthscale() -> None:
    X = np.column_stack([np.repeat([0.0, 1.0], 50), np.full(100, 7.0)])
    for per_column in (True, False):
        lengthscale = NeighborRBF(reduce="median", per_column=per_column).resolve(X).length_scale
        assert np.all(np.asarray(lengthscale) > 0)
        assert np.isfinite(lengthscale).all()


def test_column_far_from_zero_is_not_taken_for_constant() -> None:
    """The first column has seconds since 1970 that differ by fractions of a millisecond."""
    X = np.column_stack([1.7e9 + 1e-4 * np.random.default_rng(0).standard_normal(100), np.full(100, 0.1)])
    lengthscale = NeighborRBF().resolve(X).length_scale
    assert lengthscale[0] < 0.1
    assert lengthscale[1] >= 0.1


def test_neighbor_rbf_clones_and_compares_like_a_kernel() -> None:
    kernel = NeighborRBF(20, reduce="median")
    assert clone(kernel) == kernel
    assert clone(kernel) is not kernel
    assert "neighborhood=20" in repr(kernel)
    with pytest.raises(ValueError, match="resolve"):
        kernel(np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (NeighborRBF(0), "neighborhood must be a number above 0"),
        (NeighborRBF(reduce="mean"), "max.*median"),  # type: ignore[arg-type]
        (NeighborRBF(max_rows=1), "max_rows"),
    ],
)
def test_bad_parameters_raise_an_error(kernel: NeighborRBF, message: str, circles: Array) -> None:
    with pytest.raises(ValueError, match=message):
        kernel.resolve(circles)
