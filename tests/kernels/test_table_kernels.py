"""Kernels for the columns of a table: categories, ordered levels, and groups of columns with a kernel each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from sklearn.compose import make_column_selector
from sklearn.gaussian_process import kernels as sk

from gpssl import GPSSL
from gpssl.baselines import GPPrior, KernelPCA, SupervisedGPClassifier
from gpssl.kernels import CategoryKernel, ColumnKernel, IncompleteRBF, NeighborRBF, OrdinalKernel, for_table

Array = NDArray[np.float64]


def mixed_frame(n_rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.standard_normal(n_rows),
            "price": np.exp(6 * rng.standard_normal(n_rows)),
            "color": rng.choice(["red", "green", "blue"], n_rows),
            "grade": pd.Categorical(rng.choice(["low", "middle", "high"], n_rows), ["low", "middle", "high"], ordered=True),
            "name": [f"person {place}" for place in range(n_rows)],
            "country": "here",
        }
    )


def test_rows_at_the_same_distance_have_the_same_kernel_to_the_last_bit() -> None:
    """However the columns are taken together: else rounding would choose among neighbors that are equally far."""
    letters = np.random.default_rng(0).integers(0, 4, (300, 60)).astype(float)
    n_different = (letters[:, None] != letters).sum(axis=2)
    values = CategoryKernel(scale=44 / 3)(letters)
    assert all(len(np.unique(values[n_different == count])) == 1 for count in np.unique(n_different))


def test_categories_are_alike_as_far_as_they_agree() -> None:
    """k = exp(−½ H / h), counted by hand."""
    rows = [["a", "x", 1.0], ["a", "y", 1.0], ["b", "y", 2.0], ["a", None, 1.0], ["a", None, 2.0]]
    differences = [[0, 1, 3, 1, 2], [1, 0, 2, 1, 2], [3, 2, 0, 3, 2], [1, 1, 3, 0, 1], [2, 2, 2, 1, 0]]
    np.testing.assert_allclose(CategoryKernel(scale=2.0)(rows), np.exp(-0.25 * np.array(differences)))


@pytest.mark.parametrize("largest_table", [1, 60, 10**6])
def test_categories_differ_in_any_number_of_tables(monkeypatch: pytest.MonkeyPatch, largest_table: int) -> None:
    """Columns may share a table of their levels or have one each; rows may have gaps and levels that no point has."""
    monkeypatch.setattr("gpssl.kernels.categories._LARGEST_TABLE", largest_table)
    cells = np.random.default_rng(0).integers(0, 4, (50, 5)).astype(float)
    cells[cells == 3] = np.nan
    rows, points = cells + np.array([0, 0, 0, 1, 10]), cells[:7]
    codes, codes_of_points = np.nan_to_num(rows, nan=-1.0), np.nan_to_num(points, nan=-1.0)
    differences = (codes[:, None] != codes_of_points).sum(axis=2)
    np.testing.assert_allclose(CategoryKernel(scale=2.0)(rows, points), np.exp(-0.25 * differences))


def test_scale_of_categories_is_the_distance_to_the_kth_neighbor() -> None:
    letters = np.random.default_rng(0).choice(list("abcd"), size=(50, 6))
    kernel = CategoryKernel(10).resolve(letters)
    distances = np.sort((letters[:, None] != letters[None]).sum(axis=2), axis=1)
    assert kernel.scale == pytest.approx(distances[:, 5].max())
    assert CategoryKernel(10, reduce="median").resolve(letters).scale == pytest.approx(np.median(distances[:, 5]))


def test_unseen_category_is_as_far_from_all_others_as_they_are_from_each_other() -> None:
    frame = pd.DataFrame({"color": ["red", "green", "blue"] * 10, "size": np.arange(30) % 4})
    ssl = GPSSL(2, kernel=CategoryKernel(), random_state=0).fit(frame)
    new = pd.DataFrame({"color": ["purple", "red"], "size": [0, 0]})
    np.testing.assert_allclose(ssl.kernel_(new)[0, 1], ssl.kernel_(frame)[0, 4])  # red against green, both of size 0
    assert np.isfinite(ssl.transform(new)).all()
    assert (ssl.std(new)[0] > ssl.std(new)[1]).all(), "less is known about a category nobody has seen"


def test_order_counts_positions_not_values() -> None:
    values = np.array([[0.0], [1.0], [100.0]])
    kernel = OrdinalKernel(kernel=sk.RBF(0.5)).resolve(values)
    np.testing.assert_allclose(kernel(values), sk.RBF(0.5)([[0.0], [0.5], [1.0]]))
    np.testing.assert_allclose(kernel([[50.5]], values), sk.RBF(0.5)([[0.75]], [[0.0], [0.5], [1.0]]))
    np.testing.assert_allclose(kernel([[1e9]], values), kernel([[100.0]], values))


def test_levels_may_be_words() -> None:
    frame = pd.DataFrame({"answer": ["never", "often", "always", None, "never"]})
    levels = ["never", "sometimes", "often", "always"]
    kernel = OrdinalKernel(levels, kernel=IncompleteRBF(length_scale=0.5, mean=[0.4], covariance=[[0.1]], open_variance=[0.1])).resolve(
        frame
    )
    np.testing.assert_allclose(kernel(frame)[0, 1], np.exp(-0.5 * (2 / 3) ** 2 / 0.25))
    ordered = frame.astype({"answer": pd.CategoricalDtype(levels, ordered=True)})
    by_type = OrdinalKernel(kernel=kernel.kernel).resolve(ordered)
    np.testing.assert_allclose(by_type(ordered), kernel(frame))
    unknown = kernel(pd.DataFrame({"answer": ["what?"]}), frame)
    np.testing.assert_allclose(unknown, kernel(pd.DataFrame({"answer": [None]}), frame))


def test_product_and_sum_of_groups_by_hand() -> None:
    frame = mixed_frame()
    color, size = CategoryKernel(scale=1.0), sk.RBF(0.7)
    groups: list[Any] = [("color", color, ["color"]), ("size", size, "size")]
    one, other = color(frame[["color"]]), size(frame[["size"]].to_numpy())
    for kernel, expected in [
        (ColumnKernel(groups), one * other),
        (ColumnKernel(groups, weights=[0.3, 1.0]), (0.7 + 0.3 * one) * other),
        (ColumnKernel(groups, combine="sum"), (one + other) / 2),
        (ColumnKernel(groups, combine="sum", weights=[2.0, 0.5]), 2 * one + 0.5 * other),
    ]:
        resolved = kernel.resolve(frame)
        np.testing.assert_allclose(resolved(frame), expected)
        np.testing.assert_allclose(resolved.diag(frame), expected.diagonal())


@pytest.mark.parametrize(
    "columns",
    [["size", "price"], [0, 1], slice(0, 2), make_column_selector(dtype_include="number")],
    ids=["names", "positions", "slice", "selector"],
)
def test_columns_by_name_position_slice_and_type(columns: Any) -> None:
    frame = mixed_frame()
    kernel = ColumnKernel([("numbers", NeighborRBF(), columns)]).resolve(frame)
    np.testing.assert_allclose(kernel(frame), NeighborRBF().resolve(frame[["size", "price"]].to_numpy())(frame[["size", "price"]]))


def test_columns_may_come_in_another_order_and_from_polars() -> None:
    frame = mixed_frame()[["size", "color"]]
    kernel = ColumnKernel([("size", NeighborRBF(), ["size"]), ("color", CategoryKernel(), ["color"])])
    concrete = kernel.resolve(frame)
    np.testing.assert_array_equal(concrete(frame[["color", "size"]]), concrete(frame))
    np.testing.assert_array_equal(concrete(pl.from_pandas(frame)), concrete(frame))
    ssl, of_polars = (GPSSL(2, kernel=kernel, random_state=0).fit(table) for table in (frame, pl.from_pandas(frame)))
    np.testing.assert_array_equal(of_polars.transform(pl.from_pandas(frame)), ssl.transform(frame))


def test_for_table_chooses_a_kernel_for_each_column() -> None:
    frame = mixed_frame()
    frame.loc[3, "size"] = np.nan
    with pytest.warns(UserWarning, match=r"'name' \(60 different values in 60 rows\); 'country' \(all cells are alike\)"):
        kernel = for_table(frame)
    assert {name: columns for name, _, columns in kernel.groups} == {
        "numbers": ["size"],
        "ranks": ["price"],
        "order": ["grade"],
        "categories": ["color"],
    }
    ssl = GPSSL(3, kernel=kernel, random_state=0).fit(frame)
    assert np.isfinite(ssl.std(frame)).all()
    # A price beyond all others has the rank of the highest.
    dear = frame.iloc[[0]].assign(price=1e12)
    np.testing.assert_allclose(ssl.transform(dear), ssl.transform(frame.iloc[[0]].assign(price=frame["price"].max())), atol=1e-9)


BAD: list[tuple[list[Any], dict[str, Any], str]] = [
    ([], {}, "at least one"),
    ([("size", NeighborRBF())], {}, r"\(name, kernel, columns\)"),
    ([("size", NeighborRBF(), ["weight"])], {}, "'weight'.*The columns are 'size'"),
    ([("size", NeighborRBF(), [])], {}, "has no columns"),
    ([("size", NeighborRBF(), [17])], {}, "17"),
    ([("color", NeighborRBF(), ["color"])], {}, "text or categories in the columns of the group 'color'.*CategoryKernel"),
    ([("color", OrdinalKernel(), ["color"])], {}, "'color' holds text, whose order is not known"),
    ([("price", NeighborRBF(), ["gap"])], {}, "Cells are missing.*IncompleteRBF"),
    ([("size", NeighborRBF(), ["size"])], {"combine": "mean"}, '"product" or "sum"'),
    ([("size", NeighborRBF(), ["size"])], {"weights": [1.0, 2.0]}, "one number for each of the 1 groups"),
    ([("size", NeighborRBF(), ["size"])], {"weights": [1.5]}, "between 0 and 1"),
    ([("size", NeighborRBF(), ["size"])], {"weights": [-1.0]}, "at least 0"),
    ([("color", CategoryKernel(scale=0.0), ["color"])], {}, "scale must be a number above 0"),
]


@pytest.mark.parametrize(("groups", "parameters", "message"), BAD)
def test_bad_groups_raise_an_error(groups: list[Any], parameters: dict[str, Any], message: str) -> None:
    frame = mixed_frame().assign(gap=np.where(np.arange(60) == 7, np.nan, 1.0 + np.arange(60)))
    with pytest.raises(ValueError, match=message):
        GPSSL(2, kernel=ColumnKernel(groups, **parameters)).fit(frame)


def test_what_new_rows_lack_raises_an_error() -> None:
    frame = mixed_frame()[["size", "color"]]
    kernel = ColumnKernel([("size", NeighborRBF(), ["size"]), ("color", CategoryKernel(), ["color"])])
    ssl = GPSSL(2, kernel=kernel, random_state=0).fit(frame)
    before = ssl.transform(frame)
    with pytest.raises(ValueError, match=r"lacks the column.*'color'"):
        ssl.transform(frame[["size"]])
    with pytest.raises(ValueError, match=r"lacks the column.*'color'"):
        ssl.kernel_(frame[["size"]])
    with pytest.raises(ValueError, match="Cells are missing"):
        ssl.transform(frame.assign(size=np.nan))
    with pytest.raises(ValueError, match="text or categories in the columns"):
        ssl.transform(frame.assign(size="large"))
    with pytest.raises(TypeError, match="needs a kernel object"):
        GPSSL(2, kernel=ColumnKernel([("size", "rbf", ["size"])])).fit(frame)
    with pytest.raises(TypeError, match="needs a data frame"):
        for_table(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="nothing to learn"), pytest.warns(UserWarning, match="all cells are alike"):
        for_table(pd.DataFrame({"a": [1, 1]}))
    np.testing.assert_array_equal(ssl.transform(frame), before)


def test_kernels_for_different_rows_do_not_add() -> None:
    with pytest.raises(ValueError, match="different kinds of rows"):
        GPSSL(2, kernel=CategoryKernel() + IncompleteRBF()).fit(mixed_frame())
    numbers = pd.DataFrame(np.random.default_rng(0).integers(4, size=(40, 2)))
    assert GPSSL(2, kernel=CategoryKernel() + OrdinalKernel(), random_state=0).fit(numbers).transform(numbers).shape == (40, 2)


@pytest.mark.parametrize("kernel", [CategoryKernel(), OrdinalKernel(), IncompleteRBF()], ids=lambda kernel: type(kernel).__name__)
def test_calling_before_fit_raises_an_error(kernel: Any) -> None:
    with pytest.raises(ValueError, match="from the training rows: pass it to GPSSL"):
        kernel([[1.0], [2.0]])


def test_columns_whose_names_are_numbers() -> None:
    """A number is a name before it is a position, and the columns of a frame may come in another order."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({1: np.exp(6 * rng.standard_normal(60)), 0: rng.standard_normal(60), 7: rng.choice(["a", "b"], 60)})
    kernel = for_table(frame)
    assert {name: columns for name, _, columns in kernel.resolve(frame).groups} == {"numbers": [1], "ranks": [0], "categories": [2]}
    ssl = GPSSL(2, kernel=kernel, random_state=0).fit(frame)
    np.testing.assert_array_equal(ssl.transform(frame[[7, 0, 1]]), ssl.transform(frame))


def test_categories_that_are_numbers_are_categories() -> None:
    frame = pd.DataFrame({"code": pd.Categorical([1, 2, 1000] * 10), "size": np.arange(30.0), "odd": [3.0, None, 3.0] * 10})
    with pytest.warns(UserWarning, match="'odd' .all cells are alike."):
        kernel = for_table(frame)
    assert {name: columns for name, _, columns in kernel.groups} == {"numbers": ["size"], "categories": ["code"]}


def test_kernels_for_numbers_in_a_sum_refuse_text_and_missing_cells() -> None:
    frame = mixed_frame()[["size", "color"]]
    with pytest.raises(ValueError, match=r"text or categories in the rows, but the kernel NeighborRBF.*works on numbers"):
        GPSSL(2, kernel=for_table(frame) + NeighborRBF()).fit(frame)
    numbers = frame[["size"]].assign(other=np.arange(60.0))
    ssl = GPSSL(2, kernel=IncompleteRBF() + NeighborRBF(), random_state=0).fit(numbers)
    with pytest.raises(ValueError, match="Cells are missing in the rows"):
        ssl.transform(numbers.assign(size=np.nan))


def test_missing_is_equal_to_no_number() -> None:
    np.testing.assert_allclose(CategoryKernel(scale=0.5)([[-1.0], [np.nan], [None]]), np.exp(-np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])))


def test_diagonal_has_the_noise_and_the_variance_of_the_terms() -> None:
    X = np.random.default_rng(0).integers(4, size=(10, 2)).astype(float)
    noisy = ColumnKernel([("all", sk.RBF(1.0) + sk.WhiteKernel(1.0), [0, 1])])
    np.testing.assert_allclose(noisy(X).diagonal(), noisy.diag(X))
    np.testing.assert_allclose(noisy(X, X.copy()).diagonal(), 1.0)
    np.testing.assert_allclose(noisy(X, X).diagonal(), 1.0, err_msg="two evaluations share no noise")
    large = OrdinalKernel(kernel=2.0 * IncompleteRBF()).resolve(X)
    np.testing.assert_allclose(large.diag(X), 2.0)


def test_levels_in_polars_and_bad_levels() -> None:
    levels = ["low", "middle", "high"]
    values = ["low", "high", "middle", "low"]
    enum = pl.DataFrame({"grade": pl.Series(values, dtype=pl.Enum(levels))})
    ordered = pd.DataFrame({"grade": pd.Categorical(values, levels, ordered=True)})
    np.testing.assert_allclose(OrdinalKernel().resolve(enum)(enum), OrdinalKernel().resolve(ordered)(ordered))
    for bad in ([], ["low", "low"], "ab"):
        with pytest.raises(ValueError, match="at least two different values"):
            OrdinalKernel(bad).resolve(ordered)
    with pytest.raises(ValueError, match="needs all of them: use IncompleteRBF"):
        OrdinalKernel(kernel=NeighborRBF()).resolve([[0.0], [1.0], [2.0]])([[np.nan]])


@pytest.mark.parametrize("estimator", [SupervisedGPClassifier, GPPrior, KernelPCA], ids=lambda estimator: estimator.__name__)
def test_baselines_take_frames_with_gaps(estimator: Any) -> None:
    frame = mixed_frame()[["size", "color"]]
    frame.loc[3, "size"], frame.loc[5, "color"] = np.nan, None
    fitted = estimator(kernel=for_table(frame), random_state=0).fit(frame, np.arange(60) % 2)
    assert len(fitted.predict(frame) if hasattr(fitted, "predict") else fitted.transform(frame)) == 60


def test_names_of_groups_need_a_frame_that_was_seen() -> None:
    kernel = ColumnKernel([("color", CategoryKernel(scale=1.0), ["color"])])
    with pytest.raises(ValueError, match="takes its columns and lengthscales from the training rows"):
        kernel(mixed_frame())
