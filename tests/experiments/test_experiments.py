"""Who sees which rows, how settings are chosen, and tasks of all experiments."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from experiments import circles, decisions, labels, regression, scaling, spatial, temperature, uci
from experiments.data.tables import load_classification, load_regression
from experiments.ledger import Task
from experiments.methods import CIRCLES, HEAD, QUICK, TABLES, models
from experiments.plan import Plan
from experiments.protocol import draw_parts, hold_out, learn, pool_table, split_table, two_classes_first
from gpssl.comparison import METHODS, by_accuracy, by_likelihood, split_seed
from gpssl.datasets import Table, load_breast_cancer

Array = NDArray[np.float64]

has_data = (Path(os.environ.get("GPSSL_DATA", "")) / "uci_ecoli" / "ecoli.data").is_file()
needs_data = pytest.mark.skipif(not has_data, reason="GPSSL_DATA names no folder with the tables")

SMALL = Plan(splits=1, quick=True)


@pytest.fixture(scope="module")
def cancer() -> Table:
    return load_breast_cancer()


# Splits


def test_split_has_the_paper_s_shares_and_no_row_twice(cancer: Table) -> None:
    parts = draw_parts(cancer, seed=3)
    assert [len(part) for part in parts] == [228, 113, 228]
    assert len(np.unique(np.concatenate(parts))) == 569


def test_split_by_group_keeps_the_rows_of_a_group_together() -> None:
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat([f"mouse {i}" for i in range(20)], 6))
    mice = Table("mice", rng.normal(size=(120, 3)), rng.choice(["a", "b"], size=120), ("p", "q", "r"), groups)
    parts = draw_parts(mice, seed=0, by_group=True)
    found = [set(groups[part]) for part in parts]
    assert [len(names) for names in found] == [8, 4, 8]
    assert len(set.union(*found)) == 20
    assert sum(len(part) for part in parts) == 120
    split = split_table(mice, seed=0, by_group=True)
    training, held_out = hold_out(split)
    assert (len(training.y), len(held_out.y)) == (18, 6)  # three mice and one
    assert split.labeled.groups is not None
    assert (
        len(
            {group for group, row in zip(split.labeled.groups, split.labeled.rows, strict=True) if (row == held_out.rows).all(axis=1).any()}
        )
        == 1
    )


def test_large_tables_are_sampled_anew_for_each_split(cancer: Table) -> None:
    first, second = (draw_parts(cancer, seed=seed, max_rows=100) for seed in (0, 1))
    assert [len(part) for part in first] == [40, 20, 40]
    assert set(np.concatenate(first)) != set(np.concatenate(second))


def test_missing_values_and_scales_come_from_the_unlabeled_rows_only() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 2.0, size=(100, 2))
    X[rng.random(100) < 0.2, 0] = np.nan
    source = Table("t", X, np.repeat(["a", "b"], 50), ("p", "q"))
    parts, split = draw_parts(source, seed=5), split_table(source, seed=5)
    train = X[parts.unlabeled]
    mean = np.nanmean(train, axis=0)
    filled = np.where(np.isnan(train), mean, train)
    expected = (np.where(np.isnan(X[parts.test]), mean, X[parts.test]) - filled.mean(axis=0)) / filled.std(axis=0)
    np.testing.assert_allclose(split.test.rows, expected)
    np.testing.assert_allclose(split.unlabeled.std(axis=0), 1.0)


def test_pool_has_labels_for_all_rows_that_train_the_representation(cancer: Table) -> None:
    split = pool_table(cancer, seed=0)
    assert len(split.unlabeled) == len(split.labeled.y) == 341
    np.testing.assert_array_equal(split.unlabeled, split.labeled.rows)


def test_four_fifths_of_the_labels_train_and_the_others_choose(cancer: Table) -> None:
    split = split_table(cancer, seed=0)
    training, held_out = hold_out(split)
    assert (len(training.y), len(held_out.y)) == (90, 23)
    together = np.vstack([training.rows, held_out.rows])
    assert len(np.unique(together, axis=0)) == len(np.unique(split.validation.rows, axis=0)) == 113


def test_seeds_differ_between_splits_and_between_seeds() -> None:
    assert len({split_seed(seed, number) for seed in range(10) for number in range(50)}) == 500
    assert split_seed(1, 2) == split_seed(1, 2)


def _poisoned(table: Table, rows: NDArray[np.intp]) -> Table:
    """The same table with absurd rows and labels in some places."""
    X, y = table.X.copy(), table.y.astype(object)
    X[rows] = np.random.default_rng(0).normal(1e4, 1e6, size=X[rows].shape)
    y[rows] = "poison"
    return replace(table, X=X, y=y.astype(str))


@pytest.mark.parametrize("method", METHODS)
def test_test_rows_touch_neither_training_nor_scaling_nor_selection(method: str, cancer: Table) -> None:
    two = tuple({"max_iterations": 50, "learning_rate": rate} for rate in (1e-3, 1e-2))
    grids = replace(QUICK, neighborhoods=(5, 20), vicreg=two, wide_vicreg=two, scarf=two, simvae=two)
    answers = []
    for source in (cancer, _poisoned(cancer, draw_parts(cancer, seed=1).test)):
        split = split_table(source, seed=1)
        (learned,) = learn(models(method, split.unlabeled, grids, split.seed, head=HEAD), split, by_accuracy)
        answers.append((learned.settings, learned.validation, learned.estimator.predict_proba(split.labeled.rows)))
    assert answers[0][:2] == answers[1][:2]
    np.testing.assert_array_equal(answers[0][2], answers[1][2])


def test_one_poisoned_row_among_those_that_train_does_show(cancer: Table) -> None:
    """So that the test above could fail: on the same labeled rows, the predictions change."""
    answers = []
    large = np.isin(np.arange(569), draw_parts(cancer, seed=1).unlabeled[:1])
    for source in (cancer, replace(cancer, X=np.where(large[:, None], 5 * cancer.X, cancer.X))):
        split = split_table(source, seed=1)
        (learned,) = learn(models("GPSSL-mean", split.unlabeled, QUICK, split.seed, head=HEAD), split, by_accuracy)
        answers.append(learned.estimator.predict_proba(split.labeled.rows))
    assert np.abs(answers[0] - answers[1]).max() > 0.01


def test_pools_and_tables_for_regression_are_scaled_without_their_test_rows(cancer: Table) -> None:
    sugar = load_regression("diabetes")
    parts = [draw_parts(source, seed=1).test for source in (cancer, sugar)]
    poisoned_sugar = replace(sugar, X=sugar.X + 1e6 * np.isin(np.arange(442), parts[1])[:, None])
    pools = [pool_table(source, seed=1) for source in (cancer, _poisoned(cancer, parts[0]))]
    splits = [split_table(source, seed=1) for source in (sugar, poisoned_sugar)]
    for one, other in (pools, splits):
        np.testing.assert_array_equal(one.unlabeled, other.unlabeled)
        np.testing.assert_array_equal(one.labeled.rows, other.labeled.rows)
        assert not np.array_equal(one.test.rows, other.test.rows)


# Protocol


def test_best_candidate_on_held_out_labels_is_trained_on_all_labels(cancer: Table) -> None:
    split = split_table(cancer, seed=0)
    candidates = models("GPSSL-full", split.unlabeled, replace(QUICK, n_draws=5), split.seed, head=HEAD)
    likeliest, most_accurate = learn(candidates, split, by_likelihood, by_accuracy)
    training, held_out = hold_out(split)
    column = np.searchsorted(["benign", "malignant"], held_out.y)
    probabilities = [candidate.estimator.fit(training.rows, training.y).predict_proba(held_out.rows) for candidate in candidates]
    likelihoods = [np.log(proba[np.arange(len(column)), column]).mean() for proba in probabilities]
    accuracies = [(proba.argmax(axis=1) == column).mean() for proba in probabilities]
    assert likeliest.settings == candidates[int(np.argmax(likelihoods))].settings
    assert likeliest.validation is not None
    assert likeliest.validation.log_likelihood == pytest.approx(max(likelihoods), rel=1e-9)
    pairs = list(zip(accuracies, likelihoods, strict=True))
    assert most_accurate.settings == candidates[pairs.index(max(pairs))].settings
    assert likeliest.estimator.n_labeled_ == 113


def test_grids_are_the_paper_s() -> None:
    assert tuple(TABLES.neighborhoods) == (5, 10, 20)
    assert tuple(CIRCLES.neighborhoods) == (20, 50, 100)
    assert (len(TABLES.vicreg), len(CIRCLES.vicreg)) == (24, 36)
    assert all(setting["invariance_weight"] == setting["variance_weight"] for setting in TABLES.vicreg)
    assert {setting["learning_rate"] for setting in TABLES.vicreg} == {1e-5, 5e-5, 1e-4, 5e-4}
    assert {setting["noise"] for setting in TABLES.vicreg} == {0.1, 0.25, 0.5}


def test_two_labels_are_of_two_classes() -> None:
    order = two_classes_first(np.array(["a", "a", "a", "b", "a"]))
    assert order.tolist() == [0, 3, 1, 2, 4]


# Experiments, as far as the data that come with scikit-learn go


@pytest.mark.parametrize(
    ("experiment", "method"), [(labels, "GPSSL-full, τ = 1"), (temperature, "prior"), (decisions, "GP prior"), (scaling, "GP prior")]
)
def test_tasks_can_be_written_and_told_apart(experiment: Any, method: str) -> None:
    names = {task.method for task in experiment.tasks(SMALL)}
    assert method in names
    record = experiment.run(Task("breast_cancer", 0, method), SMALL)
    assert json.loads(json.dumps(record, allow_nan=False)) == record


@needs_data
@pytest.mark.parametrize(
    ("experiment", "data"),
    [
        (uci, "ecoli"),
        (uci, "dermatology"),
        (uci, "mice_protein_by_mouse"),
        (regression, "naval"),
        (labels, "ecoli"),
        (scaling, "mice_protein"),
    ],
)
def test_tasks_on_tables_with_rare_classes_missing_values_and_groups(experiment: Any, data: str) -> None:
    record = experiment.run(Task(data, 0, "GPSSL-full"), SMALL)
    assert json.loads(json.dumps(record, allow_nan=False)) == record


@needs_data
def test_mice_are_not_split_up() -> None:
    source = load_classification("mice_protein")
    assert source.groups is not None
    parts = draw_parts(source, split_seed(0, 0), by_group=True)
    mice = [set(source.groups[part]) for part in parts]
    assert sum(map(len, mice)) == len(set.union(*mice)) == 72


@pytest.mark.parametrize("experiment", [circles, uci, regression, labels, temperature, scaling, decisions, spatial])
def test_every_comparison_has_the_prior(experiment: Any) -> None:
    assert {"GP prior", "prior"} & {task.method for task in experiment.tasks(Plan())}


def test_unknown_table_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"no data set wine in this experiment; it has breast_cancer"):
        uci.tasks(Plan(tables=("wine",)))
