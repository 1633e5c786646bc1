"""Kernels on standardized columns, against the same numbers by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from scipy.special import ndtri
from sklearn.preprocessing import StandardScaler

from gpssl import GPSSL
from gpssl.kernels import StandardizedKernel

Array = NDArray[np.float64]

SHAPES: tuple[Any, ...] = ("squared exponential", "laplace", "linear")


def mixed(n_rows: int = 60) -> pd.DataFrame:
    """A table with all kinds of columns, and gaps in most."""
    rng = np.random.default_rng(0)
    size = rng.lognormal(size=n_rows)
    size[::7] = np.nan
    color = rng.choice(["red", "green", "blue"], size=n_rows).astype(object)
    color[::11] = None
    return pd.DataFrame(
        {
            "size": size,
            "count": rng.poisson(3, size=n_rows),
            "color": color,
            "grade": pd.Categorical(rng.choice(["a", "b"], size=n_rows)),
            "day": pd.date_range("2024-01-01", periods=n_rows),
            "constant": 3.5,
            "name": [f"row {i}" for i in range(n_rows)],
        }
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scores", [False, True])
def test_it_is_positive_semi_definite_on_mixed_rows_with_gaps(shape: Any, scores: bool) -> None:
    rows = mixed()
    kernel = StandardizedKernel(shape, scores=scores).resolve(rows)
    values = kernel(rows)
    np.testing.assert_allclose(values, values.T, atol=1e-14)
    np.testing.assert_allclose(values.diagonal(), kernel.diag(rows), atol=1e-12)
    assert np.linalg.eigvalsh(values).min() > -1e-10
    assert np.isfinite(values).all()
    np.testing.assert_allclose(kernel(rows[:5], rows), values[:5], atol=1e-14)


def test_linear_is_the_inner_product_of_standardized_columns() -> None:
    X = np.random.default_rng(0).normal([3.0, -100.0, 0.0], [1.0, 50.0, 1e-3], size=(40, 3))
    Z = StandardScaler().fit_transform(X)
    kernel = StandardizedKernel("linear").resolve(X)
    np.testing.assert_allclose(kernel(X), Z @ Z.T / 3, atol=1e-12)  # mean |z|² is the number of columns


def test_lengthscales_are_median_distances_times_the_stretch() -> None:
    X = np.random.default_rng(0).normal(size=(41, 3))
    Z = StandardScaler().fit_transform(X)
    metrics: dict[Any, Any] = {"squared exponential": "euclidean", "laplace": "cityblock"}
    for shape, metric in metrics.items():
        scale = StandardizedKernel(shape, stretch=2.0).resolve(X).length_scale
        distances = np.sort(pdist(Z, metric))
        assert scale == pytest.approx(2 * distances[(len(distances) - 1) // 2], rel=1e-12)
    distance = np.abs(Z[0] - Z[1])
    laplace, squared = StandardizedKernel("laplace").resolve(X), StandardizedKernel().resolve(X)
    assert laplace.length_scale is not None
    assert squared.length_scale is not None
    assert laplace(X[:1], X[1:2])[0, 0] == pytest.approx(np.exp(-distance.sum() / laplace.length_scale))
    assert squared(X[:1], X[1:2])[0, 0] == pytest.approx(np.exp(-0.5 * (distance**2).sum() / squared.length_scale**2))


@pytest.mark.parametrize("shape", SHAPES)
def test_monotone_transforms_of_a_column_do_not_change_normal_scores(shape: Any) -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    bent = np.column_stack([np.exp(3 * X[:, 0]), X[:, 1] ** 3])
    one, other = (StandardizedKernel(shape, scores=True).resolve(rows)(rows) for rows in (X, bent))
    np.testing.assert_allclose(one, other, atol=1e-12)
    plain, changed = (StandardizedKernel(shape).resolve(rows)(rows) for rows in (X, bent))
    assert np.abs(plain - changed).max() > 0.1


def test_normal_scores_are_quantiles_of_ranks_in_units_of_their_spread() -> None:
    X = np.array([[30.0], [10.0], [20.0], [10.0]])
    scores = ndtri(np.array([7 / 8, 1 / 4, 5 / 8, 1 / 4]))  # weight below, and half of their own
    scores = (scores - scores.mean()) / scores.std()
    kernel = StandardizedKernel("linear", scores=True).resolve(X)
    np.testing.assert_allclose(kernel(X), np.outer(scores, scores), atol=1e-12)
    beyond = kernel(np.array([[1e9]]), X)  # as large as the largest, not larger
    np.testing.assert_allclose(beyond[0], kernel(X)[0], atol=1e-12)


def test_an_unknown_level_is_like_no_other_and_a_gap_is_a_level() -> None:
    rows = pd.DataFrame({"color": ["red", "green", None] * 10})
    kernel = StandardizedKernel("linear").resolve(rows)
    new = pd.DataFrame({"color": ["red", "black", None]})
    np.testing.assert_allclose(kernel(new), np.diag([1.0, 0.0, 1.0]), atol=1e-15)


def test_a_new_gap_among_numbers_is_the_mean_and_a_known_one_is_marked() -> None:
    without, gap = np.array([[1.0], [2.0], [3.0]] * 5), np.array([[np.nan]])
    assert StandardizedKernel("linear").resolve(without)(gap)[0, 0] == 0.0
    with_gaps = np.vstack([without, gap])
    kernel = StandardizedKernel("linear").resolve(with_gaps)
    assert kernel(gap)[0, 0] > 0
    assert kernel(gap, without[1:2])[0, 0] == pytest.approx(0.0, abs=1e-15)  # in the mean, and not a gap


def test_constant_columns_and_names_do_not_count() -> None:
    rows = mixed()
    plain, without = rows, rows.drop(columns=["constant", "name"])
    for shape in SHAPES:
        one, other = StandardizedKernel(shape).resolve(plain), StandardizedKernel(shape).resolve(without)
        np.testing.assert_allclose(one(plain), other(without), atol=1e-14)
    nothing = pd.DataFrame({"constant": np.ones(60), "name": rows["name"]})
    with pytest.raises(ValueError, match="No column of these rows distinguishes them"):
        StandardizedKernel().resolve(nothing)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_order_of_rows_does_not_matter(shape: Any) -> None:
    rows = mixed()
    order = np.random.default_rng(1).permutation(len(rows))
    for max_rows in (2000, 20):
        one = StandardizedKernel(shape, scores=True, max_rows=max_rows).resolve(rows)
        other = StandardizedKernel(shape, scores=True, max_rows=max_rows).resolve(rows.iloc[order])
        np.testing.assert_allclose(one(rows), other(rows), atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scores", [False, True])
def test_weight_two_is_the_row_twice(shape: Any, scores: bool) -> None:
    rows = mixed(30)
    weight = np.arange(30) % 3
    one = StandardizedKernel(shape, scores=scores).resolve(rows, weight.astype(float))
    other = StandardizedKernel(shape, scores=scores).resolve(rows.loc[np.repeat(np.arange(30), weight)])
    np.testing.assert_allclose(one(rows), other(rows), atol=1e-12)


def test_files_read_in_parts_give_the_same_kernel(tmp_path: Any) -> None:
    rows = mixed().drop(columns=["day", "name", "grade"])
    rows.to_parquet(tmp_path / "rows.parquet", row_group_size=13)
    one, other = (GPSSL(2, kernel=StandardizedKernel(), random_state=0).fit(source) for source in (rows, tmp_path / "rows.parquet"))
    np.testing.assert_allclose(one.kernel_(rows), other.kernel_(rows), atol=1e-12)
    np.testing.assert_allclose(one.transform(rows), other.transform(rows), atol=1e-8)


def test_at_most_fifty_levels_are_told_apart_the_most_frequent() -> None:
    levels = [f"level {i:02}" for i in range(60)]
    rows = pd.DataFrame({"level": levels * 3 + levels[:50] * 2})
    kernel = StandardizedKernel("linear").resolve(rows)
    values = kernel(pd.DataFrame({"level": levels})).diagonal()
    assert (values[:50] > 0).all()
    assert (values[50:] == 0).all()


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"shape": "cubic"}, "shape must be one of 'squared exponential', 'laplace', 'linear', got 'cubic'"),
        ({"stretch": 0.0}, "stretch must be"),
        ({"max_rows": 1}, "max_rows must be"),
    ],
)
def test_bad_parameters_get_a_sentence(params: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        StandardizedKernel(**params).resolve(np.eye(4))


def test_before_it_has_seen_rows_it_says_so() -> None:
    for shape in SHAPES:
        with pytest.raises(ValueError, match="units and lengthscale"):
            StandardizedKernel(shape)(np.eye(4))
