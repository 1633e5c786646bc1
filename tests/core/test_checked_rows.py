"""Rows as people bring them, and the kernels that they suit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils import get_tags

from gpssl.core._checked_rows import (
    check_enough_first_rows,
    check_inducing_points,
    check_kernel,
    check_new_rows,
    check_rows,
    check_rows_in_memory,
    copy_columns,
    kernel_for,
    rows_in_memory,
    set_input_tags,
)
from gpssl.data._rows import SliceableRows
from gpssl.kernels import CategoryKernel, IncompleteRBF, NeighborRBF, SpectrumKernel, for_table

X = np.arange(12.0).reshape(6, 2)


class Model(TransformerMixin, BaseEstimator):
    """An estimator that remembers columns and nothing else."""

    n_features_in_: int
    feature_names_in_: Any
    card_: Any


def test_kernel_that_is_none_is_the_paper_s_and_other_things_are_refused() -> None:
    kernel = RBF(2.0)
    assert check_kernel(kernel) is kernel
    assert isinstance(check_kernel(None), NeighborRBF)
    with pytest.raises(TypeError, match=r"must be a kernel object such as .*, got 'rbf'"):
        check_kernel("rbf")


@pytest.mark.parametrize(
    ("frame", "is_table"),
    [
        (pd.DataFrame({"a": [1.0, 2.0], "b": [1, 2], "c": [True, False], "d": np.array([1, 2], np.uint8)}), False),
        (pd.DataFrame({"a": [1.0, np.nan, 3.0, 4.0] * 3, "b": [1, 2, 3, 5] * 3}), True),
        (pd.DataFrame({"a": [1.0, 2.0, 3.0] * 4, "b": ["x", "x", "y"] * 4}), True),
        (pl.DataFrame({"a": [1.0, 2.0], "b": [1, 2]}), False),
        (pl.DataFrame({"a": [1.0, None, 3.0, 4.0] * 3, "b": [1, 2, 3, 5] * 3}), True),
        (X, False),
        ([["x"], ["y"]], False),
    ],
    ids=["numbers", "gaps", "text", "polars", "polars with gaps", "array", "list"],
)
def test_only_frames_with_other_cells_than_numbers_get_a_kernel_for_tables(frame: Any, is_table: bool) -> None:
    assert isinstance(kernel_for(None, frame), NeighborRBF) is not is_table
    assert kernel_for(RBF(3.0), frame) == RBF(3.0)


def test_tags_follow_from_the_kernel() -> None:
    kernels = (None, RBF(), IncompleteRBF(), SpectrumKernel())
    expected = ((True, False, True), (True, False, True), (True, True, False), (False, False, False))
    for kernel, (numbers, gaps, sparse) in zip(kernels, expected, strict=True):
        tags = get_tags(Model()).input_tags
        set_input_tags(tags, kernel)
        assert (tags.two_d_array, tags.allow_nan, tags.sparse) == (numbers, gaps, sparse), kernel


def test_rows_of_numbers_keep_type_and_columns() -> None:
    model = Model()
    rows = check_rows(model, pd.DataFrame(X, columns=["a", "b"]), RBF(), reset=True)
    assert isinstance(rows, SliceableRows)
    np.testing.assert_array_equal(rows.X, X)
    assert rows.header is not None
    assert model.n_features_in_ == 2
    assert list(model.feature_names_in_) == ["a", "b"]
    assert check_rows_in_memory(Model(), X.astype(np.float32), RBF(), reset=True).dtype == np.float32
    assert check_rows_in_memory(Model(), X.astype(int), RBF(), reset=True).dtype == np.float64
    with pytest.raises(ValueError, match="unseen at fit time:\n- c"):
        check_rows(model, pd.DataFrame(np.zeros((4, 3)), columns=["a", "b", "c"]), RBF(), reset=False)
    plain = check_rows(Model(), X, RBF(), reset=True)
    assert isinstance(plain, SliceableRows)
    assert plain.header is None


def test_sparse_rows_are_compressed_where_they_are_allowed() -> None:
    rows: Any = check_rows(Model(), csr_array(X).tocoo(), RBF(), reset=True)
    assert rows.X.format == "csr"
    np.testing.assert_array_equal(rows.X.toarray(), X)
    with pytest.raises(TypeError, match="dense"):
        check_rows_in_memory(Model(), csr_array(X), RBF(), reset=True)


def test_rows_that_were_checked_are_not_checked_again_unless_there_is_something_to_remember() -> None:
    checked = rows_in_memory(np.full((3, 9), np.nan))
    model = Model()
    model.n_features_in_ = 2
    assert check_rows(model, checked, RBF(), reset=False) is checked
    assert check_rows_in_memory(model, checked, RBF(), reset=False) is checked.X
    with pytest.raises(ValueError, match="9"):
        check_rows(model, SliceableRows(np.zeros((3, 9))), RBF(), reset=False)
    with pytest.raises(ValueError, match="9"):
        check_rows(model, checked, RBF(), sample_weight=np.ones(3), reset=False)


@pytest.mark.parametrize("n_rows", [1, 3])
def test_too_few_rows_are_refused_in_memory_and_in_parts(n_rows: int) -> None:
    check_rows_in_memory(Model(), X[:n_rows], RBF(), reset=True, min_rows=n_rows)
    check_rows(Model(), SliceableRows(X[:n_rows]), RBF(), reset=True, min_rows=n_rows)
    check_rows_in_memory(Model(), ["abcd"] * n_rows, SpectrumKernel(), reset=True, min_rows=n_rows)
    with pytest.raises(ValueError, match=f"minimum of {n_rows + 1} is required"):
        check_rows_in_memory(Model(), X[:n_rows], RBF(), reset=True, min_rows=n_rows + 1)
    with pytest.raises(ValueError, match=f"n_samples={n_rows} rows; at least {n_rows + 1}"):
        check_rows(Model(), SliceableRows(X[:n_rows]), RBF(), reset=True, min_rows=n_rows + 1)
    with pytest.raises(ValueError, match=f"n_samples={n_rows} rows; at least {n_rows + 1}"):
        check_rows_in_memory(Model(), ["abcd"] * n_rows, SpectrumKernel(), reset=True, min_rows=n_rows + 1)


def test_first_rows_are_as_many_as_components_and_two_at_least() -> None:
    for n_rows, n_components in ((None, 5), (2, 1), (5, 5)):
        check_enough_first_rows(n_rows, n_components)
    for n_rows, n_components in ((1, 1), (4, 5)):
        with pytest.raises(ValueError, match=f"n_samples={n_rows} are too few for {n_components} components"):
            check_enough_first_rows(n_rows, n_components)


def test_cells_that_a_kernel_of_numbers_cannot_take_name_the_kernels_that_can() -> None:
    with pytest.raises(ValueError, match=r"contains NaN\. The kernel RBF needs all cells.*IncompleteRBF"):
        check_rows(Model(), np.array([[1.0, np.nan], [2.0, 3.0]]), RBF(), reset=True)
    with pytest.raises(ValueError, match=r"could not convert .*The kernel RBF works on numbers.*for_table"):
        check_rows(Model(), pd.DataFrame({"a": ["x", "y"]}), RBF(), reset=True)
    with pytest.raises(TypeError, match=r"argument must be .*The kernel RBF works on numbers"):
        check_rows(Model(), np.array([[{}], [{}]], dtype=object), RBF(), reset=True)
    with pytest.raises(ValueError, match="infinity"):
        check_rows(Model(), np.array([[1.0, np.inf], [2.0, 3.0]]), RBF(), reset=True)


def test_weights_are_one_for_each_row() -> None:
    weight = np.arange(1.0, 7.0)
    for rows in (X, SliceableRows(X)):
        found = check_rows(Model(), rows, RBF(), sample_weight=weight, reset=True).sample_weight
        assert found is not None
        np.testing.assert_array_equal(found, weight)
        with pytest.raises(ValueError, match="sample_weight"):
            check_rows(Model(), rows, RBF(), sample_weight=weight[:5], reset=True)
    with pytest.raises(ValueError, match=r"a weight for each row, got sample_weight of shape \(\)"):
        check_rows(Model(), SliceableRows(X), RBF(), sample_weight=2.0, reset=True)


def test_rows_in_parts_are_for_kernels_of_vectors() -> None:
    with pytest.raises(TypeError, match="SpectrumKernel needs rows in memory"):
        check_rows(Model(), SliceableRows(X), SpectrumKernel(), reset=True)
    with pytest.raises(ValueError, match="Complex data not supported"):
        check_rows_in_memory(Model(), X + 1j, CategoryKernel(), reset=True)
    with pytest.raises(ValueError, match=r"Found 0 feature|0 feature\(s\)"):
        check_rows_in_memory(Model(), np.empty((3, 0), dtype=object), CategoryKernel(), reset=True)


def test_inducing_points_have_the_columns_of_the_rows() -> None:
    np.testing.assert_array_equal(check_inducing_points([[1, 2]], 2, RBF()), [[1.0, 2.0]])
    assert check_inducing_points([[1, 2]], 2, RBF()).dtype == np.float64
    with pytest.raises(ValueError, match="inducing points have 2 columns, the rows have 3"):
        check_inducing_points([[1, 2]], 3, RBF())
    frame = pd.DataFrame({"a": ["x", "x", "y"] * 4, "b": [1.0, 2.0, 3.0] * 4})
    assert check_inducing_points(frame, 2, for_table(frame)).shape == (12, 2)
    with pytest.raises(ValueError, match="inducing points have 2 columns, the rows have 1"):
        check_inducing_points(frame, 1, for_table(frame))
    assert list(check_inducing_points(["abc", "abd"], 0, SpectrumKernel())) == ["abc", "abd"]


class Card:
    """What a model file says of the ranges of its columns."""

    def __init__(self) -> None:
        self.warned: list[Any] = []

    def warn(self, X: Any, stacklevel: int) -> None:
        self.warned.append(X)


def test_columns_are_copied_and_what_the_source_does_not_have_is_forgotten() -> None:
    source, target, card = Model(), Model(), Card()
    source.n_features_in_, source.card_ = 2, card
    target.n_features_in_, target.feature_names_in_ = 7, ["z"]
    copy_columns(source, target)
    assert vars(target) == {"n_features_in_": 2, "card_": card}
    check_new_rows(target, X, RBF())
    assert len(card.warned) == 1
    assert card.warned[0] is X
