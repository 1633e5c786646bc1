"""Splits, selection, ledger, statistics and tables of the experiments, and the command that runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import wilcoxon
from sklearn.metrics import roc_auc_score

from gpssl.datasets import Table, load_breast_cancer, load_classification, load_regression
from gpssl.experiments import circles, decisions, labels, paper, regression, reproduce, scaling, temperature, uci
from gpssl.experiments.comparison import Scores, paired_tests_table, ranks_table, scores_table, settings_table, verdicts_table
from gpssl.experiments.figures import average_curve
from gpssl.experiments.labels import two_classes_first
from gpssl.experiments.ledger import Ledger, Record, Task
from gpssl.experiments.markdown import fill, table
from gpssl.experiments.methods import CIRCLES, HEAD, METHODS, QUICK, TABLES, models
from gpssl.experiments.plan import Plan
from gpssl.experiments.protocol import (
    by_accuracy,
    by_likelihood,
    learn,
    macro_roc_auc,
    probabilities_of,
    score_classification,
    score_regression,
)
from gpssl.experiments.splits import divide, hold_out, pool_table, split_seed, split_table
from gpssl.experiments.statistics import Estimate, average_ranks, holm, paired_p_value
from gpssl.selective import risk_coverage_curve

Array = NDArray[np.float64]

has_data = (Path(os.environ.get("GPSSL_DATA", "")) / "uci_ecoli" / "ecoli.data").is_file()
needs_data = pytest.mark.skipif(not has_data, reason="GPSSL_DATA names no folder with the tables")

SMALL = Plan(splits=1, quick=True)


@pytest.fixture(scope="module")
def cancer() -> Table:
    return load_breast_cancer()


# Splits


def test_split_has_the_paper_s_shares_and_no_row_twice(cancer: Table) -> None:
    parts = divide(cancer, seed=3)
    assert [len(part) for part in parts] == [228, 113, 228]
    assert len(np.unique(np.concatenate(parts))) == 569


def test_split_by_group_keeps_the_rows_of_a_group_together() -> None:
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat([f"mouse {i}" for i in range(20)], 6))
    mice = Table("mice", rng.normal(size=(120, 3)), rng.choice(["a", "b"], size=120), ("p", "q", "r"), groups)
    parts = divide(mice, seed=0, by_group=True)
    found = [set(groups[part]) for part in parts]
    assert [len(names) for names in found] == [8, 4, 8]
    assert len(set.union(*found)) == 20
    assert sum(len(part) for part in parts) == 120
    split = split_table(mice, seed=0, by_group=True)
    training, held_out = hold_out(split)
    assert (len(training.y), len(held_out.y)) == (18, 6)  # three mice and one
    assert split.groups is not None
    assert len({group for group, row in zip(split.groups, split.labelled.X, strict=True) if (row == held_out.X).all(axis=1).any()}) == 1


def test_large_tables_are_sampled_anew_for_each_split(cancer: Table) -> None:
    first, second = (divide(cancer, seed=seed, max_rows=100) for seed in (0, 1))
    assert [len(part) for part in first] == [40, 20, 40]
    assert set(np.concatenate(first)) != set(np.concatenate(second))


def test_missing_values_and_scales_come_from_the_unlabelled_rows_only() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 2.0, size=(100, 2))
    X[rng.random(100) < 0.2, 0] = np.nan
    source = Table("t", X, np.repeat(["a", "b"], 50), ("p", "q"))
    parts, split = divide(source, seed=5), split_table(source, seed=5)
    train = X[parts.unlabelled]
    mean = np.nanmean(train, axis=0)
    filled = np.where(np.isnan(train), mean, train)
    expected = (np.where(np.isnan(X[parts.test]), mean, X[parts.test]) - filled.mean(axis=0)) / filled.std(axis=0)
    np.testing.assert_allclose(split.test.X, expected)
    np.testing.assert_allclose(split.unlabelled.std(axis=0), 1.0)


def test_pool_has_labels_for_all_rows_that_train_the_representation(cancer: Table) -> None:
    split = pool_table(cancer, seed=0)
    assert len(split.unlabelled) == len(split.labelled.y) == 341
    np.testing.assert_array_equal(split.unlabelled, split.labelled.X)


def test_four_fifths_of_the_labels_train_and_the_others_choose(cancer: Table) -> None:
    split = split_table(cancer, seed=0)
    training, held_out = hold_out(split)
    assert (len(training.y), len(held_out.y)) == (90, 23)
    together = np.vstack([training.X, held_out.X])
    assert len(np.unique(together, axis=0)) == len(np.unique(split.validation.X, axis=0)) == 113


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
    for source in (cancer, _poisoned(cancer, divide(cancer, seed=1).test)):
        split = split_table(source, seed=1)
        (learnt,) = learn(models(method, split.unlabelled, grids, split.seed, head=HEAD), split, by_accuracy)
        answers.append((learnt.settings, learnt.validation, learnt.estimator.predict_proba(split.labelled.X)))
    assert answers[0][:2] == answers[1][:2]
    np.testing.assert_array_equal(answers[0][2], answers[1][2])


def test_one_poisoned_row_among_those_that_train_does_show(cancer: Table) -> None:
    """So that the test above could fail: on the same labelled rows, the predictions change."""
    answers = []
    for source in (cancer, _poisoned(cancer, divide(cancer, seed=1).unlabelled[:1])):
        split = split_table(source, seed=1)
        (learnt,) = learn(models("GPSSL-mean", split.unlabelled, QUICK, split.seed, head=HEAD), split, by_accuracy)
        answers.append(learnt.estimator.predict_proba(split.labelled.X))
    assert np.abs(answers[0] - answers[1]).max() > 0.01


def test_pools_and_tables_for_regression_are_scaled_without_their_test_rows(cancer: Table) -> None:
    sugar = load_regression("diabetes")
    parts = [divide(source, seed=1).test for source in (cancer, sugar)]
    poisoned_sugar = replace(sugar, X=sugar.X + 1e6 * np.isin(np.arange(442), parts[1])[:, None])
    pools = [pool_table(source, seed=1) for source in (cancer, _poisoned(cancer, parts[0]))]
    splits = [split_table(source, seed=1) for source in (sugar, poisoned_sugar)]
    for one, other in (pools, splits):
        np.testing.assert_array_equal(one.unlabelled, other.unlabelled)
        np.testing.assert_array_equal(one.labelled.X, other.labelled.X)
        assert not np.array_equal(one.test.X, other.test.X)


# Protocol


def test_best_candidate_on_held_out_labels_is_trained_on_all_labels(cancer: Table) -> None:
    split = split_table(cancer, seed=0)
    candidates = models("GPSSL-full", split.unlabelled, replace(QUICK, n_draws=5), split.seed, head=HEAD)
    likeliest, most_accurate = learn(candidates, split, by_likelihood, by_accuracy)
    training, held_out = hold_out(split)
    column = np.searchsorted(["benign", "malignant"], held_out.y)
    probabilities = [candidate.estimator.fit(*training).predict_proba(held_out.X) for candidate in candidates]
    likelihoods = [np.log(proba[np.arange(len(column)), column]).mean() for proba in probabilities]
    accuracies = [(proba.argmax(axis=1) == column).mean() for proba in probabilities]
    assert likeliest.settings == candidates[int(np.argmax(likelihoods))].settings
    assert likeliest.validation is not None
    assert likeliest.validation.log_likelihood == pytest.approx(max(likelihoods), rel=1e-9)
    pairs = list(zip(accuracies, likelihoods, strict=True))
    assert most_accurate.settings == candidates[pairs.index(max(pairs))].settings
    assert likeliest.estimator.n_labelled_ == 113


def test_grids_are_the_paper_s() -> None:
    assert tuple(TABLES.neighborhoods) == (5, 10, 20)
    assert tuple(CIRCLES.neighborhoods) == (20, 50, 100)
    assert (len(TABLES.vicreg), len(CIRCLES.vicreg)) == (24, 36)
    assert all(setting["invariance_weight"] == setting["variance_weight"] for setting in TABLES.vicreg)
    assert {setting["learning_rate"] for setting in TABLES.vicreg} == {1e-5, 5e-5, 1e-4, 5e-4}
    assert {setting["noise"] for setting in TABLES.vicreg} == {0.1, 0.25, 0.5}


def test_area_under_roc_is_the_mean_over_classes_and_a_class_without_labels_ranks_by_chance() -> None:
    rng = np.random.default_rng(0)
    classes = np.array(["a", "b", "c"])
    y = rng.choice(classes, size=60)
    proba = rng.dirichlet([1, 1, 1], size=60)
    assert macro_roc_auc(y, proba, classes) == pytest.approx(roc_auc_score(y, proba, multi_class="ovr"))
    proba[:, 2] = 0.0
    proba /= proba.sum(axis=1, keepdims=True)
    expected = np.mean([roc_auc_score(y == "a", proba[:, 0]), roc_auc_score(y == "b", proba[:, 1]), 0.5])
    assert macro_roc_auc(y, proba, classes) == pytest.approx(expected)


def test_log_loss_alone_leaves_out_classes_without_labels() -> None:
    classes = np.array(["a", "b", "c"])
    y = np.array(["a", "b", "c", "a"])
    proba = np.array([[0.8, 0.2, 0], [0.4, 0.6, 0], [0.7, 0.3, 0], [0.3, 0.7, 0]])
    scores = score_classification(y, proba, classes)
    assert scores["accuracy"] == 0.5
    assert scores["log loss"] == pytest.approx(-np.log([0.8, 0.6, 0.3]).mean())


def test_probabilities_have_a_column_for_each_class_of_the_table() -> None:
    class Model:
        classes_ = np.array(["a", "c"])

        def predict_proba(self, X: Array) -> Array:
            return np.tile([0.3, 0.7], (len(X), 1))

    proba = probabilities_of(Model(), np.zeros((2, 1)), np.array(["a", "b", "c"]))
    np.testing.assert_array_equal(proba, [[0.3, 0, 0.7]] * 2)


def test_coverage_is_that_of_the_central_interval() -> None:
    class Model:
        def predict_draws(self, X: Array) -> tuple[Array, Array]:
            return np.zeros((1, len(X))), np.ones((1, len(X)))

    y = np.array([-1.7, -1.6, 0.0, 1.6, 1.7])  # the quantiles are ±1.645
    scores = score_regression(y, Model(), np.zeros((5, 1)))
    assert scores["coverage"] == pytest.approx(0.6)
    assert scores["RMSE"] == pytest.approx(np.sqrt((y**2).mean()))
    assert scores["NLL"] == pytest.approx(0.5 * (y**2).mean() + 0.5 * np.log(2 * np.pi))


def test_two_labels_are_of_two_classes() -> None:
    order = two_classes_first(np.array(["a", "a", "a", "b", "a"]))
    assert order.tolist() == [0, 3, 1, 2, 4]


# Ledger


PIECE: Record = {"data": "d", "split": 0, "method": "m", "scores": {"accuracy": 0.5}}


def test_ledger_returns_what_was_written_and_the_latest_of_a_piece(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "new" / "run.jsonl", {"seed": 0})
    assert ledger.records() == []
    for value in (0.5, 0.6):
        ledger.append({**PIECE, "scores": {"accuracy": value}})
    ledger.append({**PIECE, "split": 1})
    assert [record["scores"]["accuracy"] for record in ledger.records()] == [0.6, 0.5]


def test_ledger_ignores_other_protocols(tmp_path: Path) -> None:
    Ledger(tmp_path / "run.jsonl", {"seed": 0}).append(PIECE)
    assert Ledger(tmp_path / "run.jsonl", {"seed": 1}).records() == []


@pytest.mark.parametrize("n_bytes", [1, 20, 60])
def test_line_that_was_cut_off_is_no_record_and_spoils_no_other(n_bytes: int, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "run.jsonl", {"seed": 0})
    ledger.append(PIECE)
    ledger.append({**PIECE, "method": "ünfinished"})
    whole = ledger.path.read_bytes()
    first = whole.index(b"\n") + 1
    ledger.path.write_bytes(whole[: first + n_bytes])
    assert [record["method"] for record in ledger.records()] == ["m"]
    ledger.append({**PIECE, "method": "next"})
    assert [record["method"] for record in ledger.records()] == ["m", "next"]


# Statistics


def test_estimate_is_the_mean_with_its_standard_error() -> None:
    assert Estimate.of([1.0, 2.0, 3.0]) == pytest.approx((2.0, 1 / np.sqrt(3)))
    assert np.isnan(Estimate.of([1.0]).error)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]


def test_paired_test_is_wilcoxon_s_and_equal_scores_are_no_difference() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.3, 1, 20), rng.normal(0, 1, 20)
    assert paired_p_value(first, second) == pytest.approx(wilcoxon(first, second, method="exact").pvalue)
    assert paired_p_value(first, first + 1e-15) == 1.0


def test_equal_differences_of_accuracies_are_ties() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.integers(120, 140, 20), rng.integers(118, 140, 20)
    expected = wilcoxon(first - second, zero_method="pratt", method="approx").pvalue
    assert paired_p_value(first / 146, second / 146) == pytest.approx(expected, rel=1e-12)


def test_ranks_count_from_the_best_and_ties_share() -> None:
    scores = {"a": [0.9, 0.5], "b": [0.8, 0.5], "c": [0.7, 0.1]}
    assert average_ranks(scores, higher_is_better=True) == {"a": 1.25, "b": 1.75, "c": 3.0}
    assert average_ranks(scores, higher_is_better=False)["c"] == 1.0


# Tables


def _records(accuracies: dict[str, list[float]]) -> list[Record]:
    return [
        {"data": "ecoli", "split": split, "method": method, "scores": {"accuracy": value, "AURC": 1 - value}}
        for method, values in accuracies.items()
        for split, value in enumerate(values)
    ]


def test_tables_show_means_with_errors_the_best_and_the_paper_s_number() -> None:
    scores = Scores(_records({"VICReg": [0.7, 0.8], "GPSSL-full": [0.9, 0.9]}))
    lines = scores_table(scores, "ecoli", paper.UCI).splitlines()
    assert lines[0].split("|")[2].strip() == "accuracy"
    assert "0.750 ± 0.050 (0.726)" in lines[2]
    assert "**0.900 ± 0.000** (0.881)" in lines[3]
    assert "**0.100 ± 0.000** (0.057)" in lines[3]


def test_only_splits_that_all_methods_have_finished_are_compared() -> None:
    scores = Scores(_records({"VICReg": [0.7, 0.8, 0.1], "GPSSL-full": [0.9, 0.9]}))
    assert scores.splits("ecoli") == [0, 1]
    assert scores.of("ecoli", "VICReg", "accuracy").tolist() == [0.7, 0.8]


def test_tests_are_paired_and_corrected() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(0.8, 0.05, 20)
    records = _records({"GPSSL-full": list(base), "worse": list(base - 0.02), "same": list(base + rng.normal(0, 1e-3, 20))})
    scores = Scores(records)
    worse, same = paired_tests_table(scores, "accuracy").splitlines()[2:]
    assert "**+0.020, p < 0.001, better**" in worse
    assert "**" not in same
    assert "**-0.020, p < 0.001, better**" in paired_tests_table(scores, "AURC")
    few = Scores([record for record in records if record["split"] < 5])
    assert "p " not in paired_tests_table(few, "accuracy").splitlines()[2]
    ranks = ranks_table(scores).splitlines()
    assert ranks[3].split("|")[1:3] == [" worse        ", " 3.0      "]


def test_verdict_says_whether_the_paper_is_reached() -> None:
    known = {("ecoli", "GPSSL-full", "accuracy"): 0.881, ("ecoli", "GPSSL-full", "AURC"): 0.057}
    for values, verdict in (([0.9, 0.9], "at least as good"), ([0.85, 0.89], "within two"), ([0.8, 0.81], "worse")):
        lines = verdicts_table(Scores(_records({"GPSSL-full": values})), known, ["accuracy"]).splitlines()
        assert verdict in lines[2]


def test_settings_are_counted_in_their_order() -> None:
    chosen = ({"k": 20, "t": 0.1}, {"k": 5, "t": "auto"}, {"k": 20, "t": 1.0})
    records = [{"data": "d", "split": i, "method": "m", "settings": settings} for i, settings in enumerate(chosen)]
    records.append({"data": "d", "split": 0, "method": "without", "settings": {}})
    assert settings_table(records, ("k", "t")).splitlines()[2:] == ["| d    | m      | 5: 1, 20: 2 | auto: 1, 0.1: 1, 1.0: 1 |"]


def test_paper_s_table_has_all_its_numbers() -> None:
    assert len(paper.UCI) == 4 * 3 * 5
    assert paper.UCI["mice_protein", "GPSSL-full", "AURC"] == 0.078
    assert paper.UCI["dermatology", "VICReg", "accuracy"] == 0.917


def test_blocks_are_filled_in_and_other_text_stays() -> None:
    document = "before\n<!-- a -->\nold\n<!-- end of a -->\nafter\n"
    filled = fill(document, {"a": "new \\1", "b": "added"})
    assert filled == "before\n<!-- a -->\nnew \\1\n<!-- end of a -->\nafter\n\n<!-- b -->\nadded\n<!-- end of b -->\n"
    assert fill(filled, {"b": "added"}) == filled


def test_columns_of_a_table_are_aligned() -> None:
    assert table(["", "long name"], [["a", "1"]]) == "|   | long name |\n|---|-----------|\n| a | 1         |"


def test_average_curve_of_one_split_is_its_curve() -> None:
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1], size=50)
    y = rng.integers(2, size=50)
    record = {"right": (proba.argmax(axis=1) == y).astype(int).tolist(), "certainty": proba.max(axis=1).tolist()}
    curve, expected = average_curve([record, record]), risk_coverage_curve(y, proba)
    np.testing.assert_allclose(curve.risk[19::20], expected.risk)
    assert curve.aurc == pytest.approx(expected.aurc)


# Experiments, as far as the data that come with scikit-learn go


@pytest.mark.parametrize(
    ("experiment", "method"), [(labels, "GPSSL-full, τ = 1"), (temperature, "prior"), (decisions, "GP-prior"), (scaling, "GP-prior")]
)
def test_pieces_can_be_written_and_told_apart(experiment: Any, method: str) -> None:
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
def test_pieces_on_tables_with_rare_classes_missing_values_and_groups(experiment: Any, data: str) -> None:
    record = experiment.run(Task(data, 0, "GPSSL-full"), SMALL)
    assert json.loads(json.dumps(record, allow_nan=False)) == record


@needs_data
def test_mice_are_not_split_up() -> None:
    source = load_classification("mice_protein")
    assert source.groups is not None
    parts = divide(source, split_seed(0, 0), by_group=True)
    mice = [set(source.groups[part]) for part in parts]
    assert sum(map(len, mice)) == len(set.union(*mice)) == 72


@pytest.mark.parametrize("experiment", [circles, uci, regression, labels, temperature, scaling, decisions])
def test_every_comparison_has_the_prior(experiment: Any) -> None:
    assert {"GP-prior", "prior"} & {task.method for task in experiment.tasks(Plan())}


def test_unknown_table_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"no data set wine in this experiment; it has breast_cancer"):
        uci.tasks(Plan(tables=("wine",)))


FEW = ("Original", "kernel PCA", "VICReg", "GPSSL-mean", "GPSSL-full", "GP-prior")


@pytest.fixture
def _fewer_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uci, "METHODS", FEW)
    monkeypatch.setattr(circles, "METHODS", FEW)


@pytest.mark.usefixtures("_fewer_methods")
def test_same_seed_same_report_for_any_number_of_jobs(tmp_path: Path) -> None:
    reports = []
    for n_jobs in (1, 2):
        folder = tmp_path / str(n_jobs)
        _, written = reproduce.reproduce(["uci"], replace(SMALL, splits=2), folder, folder / "report.md", n_jobs=n_jobs)
        assert all(path.exists() for path in written)
        reports.append((folder / "report.md").read_text())
    assert reports[0] == reports[1]
    assert {path.name for path in (tmp_path / "1" / "figures").iterdir()} == {
        "breast_cancer_data.png",
        "breast_cancer_predictions.png",
        "breast_cancer_risk_coverage.png",
    }


@pytest.mark.usefixtures("_fewer_methods")
def test_circles_draw_the_paper_s_figures(tmp_path: Path) -> None:
    _, written = reproduce.reproduce(["circles"], SMALL, tmp_path, tmp_path / "report.md", n_jobs=1)
    names = {path.stem for path in written}
    assert {"circles_data", "circles_gpssl", "circles_gpssl_std", "circles_gpssl_distance", "circles_gpssl_average_std"} <= names
    assert {"circles_kernel_pca", "circles_vicreg", "circles_kernel_pca_distance", "circles_vicreg_distance"} <= names
    assert {"circles_probabilities", "circles_risk_coverage"} <= names
    assert all(path.stat().st_size > 5_000 for path in written if path.suffix == ".png")


KILLED = """
import os, signal, sys
from pathlib import Path
from gpssl.experiments import reproduce, uci
from gpssl.experiments.ledger import Ledger
from gpssl.experiments.plan import Plan

uci.METHODS = ("Original", "kernel PCA", "GPSSL-full", "GP-prior")
folder, kill_after = Path(sys.argv[1]), int(sys.argv[2])
append, n_written = Ledger.append, 0

def append_and_die(self, record):
    global n_written
    n_written += 1
    if n_written == kill_after:
        with self.path.open("a") as file:
            file.write('{"data": "breast_ca')  # in the middle of a line
        os.kill(os.getpid(), signal.SIGKILL)
    append(self, record)

Ledger.append = append_and_die
reproduce.reproduce(["uci"], Plan(splits=2, quick=True), folder, folder / "report.md", n_jobs=1)
"""


def test_run_that_was_killed_resumes_and_ends_with_the_same_tables(tmp_path: Path) -> None:
    def run(folder: str, kill_after: int) -> int:
        command = [sys.executable, "-c", KILLED, str(tmp_path / folder), str(kill_after)]
        return subprocess.run(command, capture_output=True, check=False, env=dict(os.environ)).returncode

    assert run("killed", 4) == -signal.SIGKILL
    finished = (tmp_path / "killed" / "uci.jsonl").read_text().splitlines()
    assert len(finished) == 4  # three pieces and half a line
    assert not (tmp_path / "killed" / "report.md").exists()
    assert run("killed", -1) == 0
    lines = (tmp_path / "killed" / "uci.jsonl").read_text().splitlines()
    assert lines[:3] == finished[:3]
    assert len(lines) == 9  # what was finished was not run again
    assert run("whole", -1) == 0
    assert (tmp_path / "killed" / "report.md").read_text() == (tmp_path / "whole" / "report.md").read_text()


def test_piece_that_fails_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(task: Task, _plan: Plan) -> Record:
        if task.method == "GP-prior":
            raise ArithmeticError("no")
        return {"scores": {"accuracy": float("nan") if task.method == "PCA" else 0.5}}

    monkeypatch.setattr(uci, "run", run)
    with pytest.raises(reproduce.FailedPiecesError, match=r"2 of 11 pieces failed.*PCA on split 0 of breast_cancer: ValueError"):
        reproduce.reproduce(["uci"], SMALL, tmp_path, tmp_path / "report.md")
    assert len((tmp_path / "uci.jsonl").read_text().splitlines()) == 9
    assert "Traceback" in capsys.readouterr().err


def test_warnings_go_into_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def run(task: Task, _plan: Plan) -> Record:
        if task.method == "PCA":
            warnings.warn("not sure", UserWarning, stacklevel=2)
        return {"scores": {"accuracy": 0.5}}

    monkeypatch.setattr(uci, "run", run)
    reproduce.run_all("uci", uci.tasks(SMALL), SMALL, Ledger(tmp_path / "uci.jsonl", {}), 1)
    assert "uci: 1 of 11 pieces came with warnings" in capsys.readouterr().err
    said = {record["method"]: record["warnings"] for record in Ledger(tmp_path / "uci.jsonl", {}).records()}
    assert (said["PCA"], said["Original"]) == (["not sure"], [])


def test_what_a_user_has_to_mend_is_said_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "report.md").mkdir()
    with pytest.raises(IsADirectoryError, match=r"name a file in it"):
        reproduce.reproduce(["decisions"], SMALL, tmp_path, tmp_path / "report.md")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"gpssl\[cli\]"):
        reproduce.reproduce(["decisions"], SMALL, tmp_path, tmp_path / "other.md")
    assert not (tmp_path / "decisions.jsonl").exists()


def test_report_forgets_tables_of_another_run_and_keeps_those_of_other_experiments(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    report.write_text("Text.\n<!-- decisions old -->\n1\n<!-- end of decisions old -->\n<!-- labels x -->\n2\n<!-- end of labels x -->\n")
    reproduce.reproduce(["decisions"], SMALL, tmp_path, report)
    text = report.read_text()
    assert text.startswith("Text.\n<!-- decisions old -->\nNot run.\n<!-- end of decisions old -->\n<!-- labels x -->\n2\n")
    assert "Printed by `gpssl reproduce decisions --quick --splits 1 --seed 0`" in text
    assert "| GP-prior " in text


def test_of_several_experiments_those_without_the_table_are_left_out(tmp_path: Path) -> None:
    plan = replace(SMALL, tables=("breast_cancer", "breast_cancer"))
    tables, _ = reproduce.reproduce(["circles", "decisions"], plan, tmp_path, tmp_path / "report.md")
    assert list(tables) == ["run decisions", "decisions"]
    assert len((tmp_path / "decisions.jsonl").read_text().splitlines()) == len(decisions.METHODS)
    with pytest.raises(ValueError, match="There is no data set wine"):
        reproduce.reproduce(["circles", "decisions"], replace(SMALL, tables=("wine",)), tmp_path, tmp_path / "report.md")
