"""Rows of all kinds and kernels that follow neighbors: who sees which rows, and short runs on data that come with scikit-learn."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from experiments import kinds, neighbors
from experiments.data.examples import Examples
from experiments.data.tables import load_classification
from experiments.figures import lines_of, lines_table, plot_lines
from experiments.kind_methods import COSTS, POOL, KernelMachine, SpreadingAmong, columns_of_letters, split_letters
from experiments.ledger import Record, Task
from experiments.methods import Budget
from experiments.plan import Plan
from experiments.reproduce import Failure, reproduce, run_one
from gpssl.kernels import NeighborRBF

has_data = (Path(os.environ.get("GPSSL_DATA", "")) / "sms_spam" / "SMSSpamCollection").is_file()
needs_data = pytest.mark.skipif(not has_data, reason="GPSSL_DATA names no folder with the data sets")

SMALL = Plan(splits=1, quick=True)


# Curves


def curve(method: str, split: int, **accuracy: float) -> Record:
    return {
        "data": "d",
        "method": method,
        "split": split,
        "accuracy": {count.removeprefix("n"): value for count, value in accuracy.items()},
    }


def test_methods_that_need_more_labels_have_empty_cells() -> None:
    records = [curve("a", 0, n5=0.5, n20=0.7), curve("b", 0, n20=0.9), curve("a", 1, n5=0.7, n20=0.9), curve("b", 1, n20=0.9)]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines_table(lines_of(records)["d"]).splitlines()]
    assert cells[0] == ["labels", "5", "20"]
    assert cells[2:] == [["a", "0.600 ± 0.100", "0.800 ± 0.100"], ["b", "", "0.900 ± 0.000"]]


def test_a_method_looks_the_same_in_all_panels() -> None:
    pytest.importorskip("matplotlib")
    lines = lines_of([curve("a", 0, n5=0.5, n20=0.7), curve("b", 0, n5=0.6, n20=0.9)])["d"]
    axes = plot_lines({"both": lines, "second alone": lines[1:]}, xlabel="labels", ylabel="accuracy")
    assert axes[0].lines[1].get_color() == axes[1].lines[0].get_color() != axes[0].lines[0].get_color()


# Splits


def test_training_and_test_rows_are_apart_and_of_the_sizes_that_were_asked_for() -> None:
    rows = Examples("numbers", [str(number) for number in range(100)], np.repeat(["a", "b"], 50))
    shares = kinds.sample(kinds.Kind("g", lambda: rows, {}, (5,), 0.7, 0.3), rows, seed=0)
    numbers = kinds.sample(kinds.Kind("g", lambda: rows, {}, (5,), 20, 30), rows, seed=0)
    assert [(len(split.train), len(split.test)) for split in (shares, numbers)] == [(70, 30), (20, 30)]
    assert set(shares.train) | set(shares.test) == set(rows.X)
    assert [label == ("a" if int(row) < 50 else "b") for row, label in zip(numbers.test, numbers.test_y, strict=True)] == [True] * 30


def test_cells_are_deleted_by_chance_and_the_same_for_the_same_seed() -> None:
    kind = kinds.KINDS["wine_thinned_30"]
    wine = load_classification("wine")
    first, again, other = (kinds.sample(kind, wine, seed).train for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.isnan(first).mean() == pytest.approx(0.3, abs=0.04)
    assert not np.array_equal(np.isnan(first), np.isnan(other))
    assert not np.isnan(wine.X).any()


# Methods


def test_every_gpssl_has_its_prior_and_every_kind_a_mean() -> None:
    for kind in kinds.KINDS.values():
        names = {re.sub(r"^GPSSL-full, (?!τ)", "", method) for method in kind.methods if re.match(r"GPSSL-full, (?!τ)", method)}
        assert names
        assert {f"GP prior, {name}" for name in names} <= set(kind.methods)
        assert any(method.startswith("GPSSL-mean") for method in kind.methods)
    assert "GP prior, diffusion" in neighbors.METHODS


def test_every_kind_has_the_pool_and_rivals_with_components_of_all_training_rows() -> None:
    for kind in kinds.KINDS.values():
        assert POOL in kind.methods
        assert any(re.search(r"PCA|LSA", method) for method in kind.methods)
    assert POOL in neighbors.METHODS


def test_gpssl_with_more_dimensions_has_rivals_with_as_many() -> None:
    for method in neighbors.METHODS:
        if method.endswith("J = 10, diffusion"):
            assert {f"{rival}, J = 10, diffusion" for rival in ("GPSSL-full", "GP prior", "kernel PCA")} <= set(neighbors.METHODS)


def test_draws_have_equal_weights_as_in_the_paper() -> None:
    """The labels weigh the draws only in the pool."""
    wine = load_classification("wine")
    rows = kinds.sample(kinds.KINDS["wine_thinned_30"], wine, seed=0).train
    methods = kinds.KINDS["wine_thinned_30"].methods
    assert methods["GPSSL-full, gaps"](rows, Budget(5, 0)).weighting == "equal"
    assert methods[POOL](rows, Budget(5, 0)).weighting == "evidence"


def test_letters_become_columns() -> None:
    np.testing.assert_array_equal(split_letters(["ACG", "TTN"]), [["A", "C", "G"], ["T", "T", "N"]])


def test_letters_have_names_for_their_columns() -> None:
    frame = columns_of_letters(["ACG", "TTN"])
    assert list(frame["position 2"]) == ["C", "T"]
    assert list(frame.columns) == ["position 1", "position 2", "position 3"]


def test_labels_spread_to_all_training_rows() -> None:
    """One label for each of two chains is enough; rows at the far end of a chain are predicted through those between."""
    chain = np.column_stack([np.arange(20.0), np.zeros(20)])
    rows = np.concatenate([chain, chain + np.array([0, 100])])
    model = SpreadingAmong(rows).fit(rows[[0, 20]], np.array(["low", "high"]))
    np.testing.assert_array_equal(model.predict(np.array([[19.2, 0.1], [19.2, 99.9]])), ["low", "high"])


def test_rows_that_no_label_reaches_get_the_shares_of_the_labels() -> None:
    rows = np.concatenate([np.zeros((20, 1)), np.full((20, 1), 9.0)]) + np.linspace(0, 1, 40)[:, None]
    model = SpreadingAmong(rows).fit(rows[:4], np.array(["a", "a", "a", "b"]))
    np.testing.assert_allclose(model.predict_proba(np.array([[9.8]])), [[0.75, 0.25]])


def test_support_vector_machine_uses_the_kernel_and_chooses_its_cost() -> None:
    wine = load_classification("wine")
    order = np.random.default_rng(0).permutation(len(wine.y))
    train, test = order[:100], order[100:]
    machine = KernelMachine(NeighborRBF()).fit(wine.X[train], wine.y[train])
    assert (machine.predict(wine.X[test]) == wine.y[test]).mean() > 0.9
    assert machine.machine_.best_params_["C"] in COSTS


@pytest.mark.filterwarnings("ignore:.*IterativeImputer.*:sklearn.exceptions.ConvergenceWarning")  # its default of ten rounds is enough
@pytest.mark.parametrize(
    "method", ["means + logistic regression", "imputation + PCA + logistic regression", "GPSSL-full, gaps", "GPSSL-full, means", POOL]
)
def test_nothing_comes_from_the_test_rows(method: str) -> None:
    """A prediction does not depend on what else is predicted, and the classifier is made from the training rows alone."""
    kind = kinds.KINDS["wine_thinned_30"]
    split = kinds.sample(kind, load_classification("wine"), seed=0)
    model = kind.methods[method](split.train, Budget(5, 0)).fit(split.train[:30], split.train_y[:30])
    together = model.predict(split.test)
    one_by_one = np.concatenate([model.predict(split.test[place : place + 1]) for place in range(10)])
    np.testing.assert_array_equal(together[:10], one_by_one)


# Short runs


def record_of(experiment: str, data: str, method: str) -> Record:
    """What is written into the ledger, warnings among it."""
    record = run_one(experiment, Task(data, 0, method), SMALL)
    assert not isinstance(record, Failure), record
    return record


@pytest.mark.parametrize("name", ["kinds", "neighbors"])
def test_quick_run_fills_tables_and_draws_pictures(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPSSL_DATA", raising=False)
    tables, written = reproduce([name], SMALL, tmp_path, tmp_path / "report.md", n_jobs=1)
    text = (tmp_path / "report.md").read_text()
    assert set(re.findall(r"\(figures/(.*?)\.png\)", text)) == {path.stem for path in written if path.suffix == ".png"}
    assert all(path.exists() for path in written)
    assert "Not run." not in text
    assert any("± " not in table and "GPSSL-full" in table for table in tables.values())  # one split has no standard error


def test_selection_needs_labels_to_choose_by() -> None:
    assert list(record_of("neighbors", "wine", neighbors.SELECTED)["accuracy"]) == ["20"]
    assert list(record_of("neighbors", "wine", "label spreading")["accuracy"]) == ["5", "10", "20"]
    whole = neighbors.run(Task("wine", 0, "columns"), Plan(splits=1))
    assert list(whole["accuracy"]) == ["5", "10", "20", "30", "50", "100"]  # there are 107 training rows


@needs_data
@pytest.mark.parametrize("data", ["splice", "MUTAG", "dermatology"])
def test_tasks_on_rows_of_all_kinds(data: str) -> None:
    kind = kinds.KINDS[data]
    usual, gpssl = (next(method for method in kind.methods if method.startswith("GPSSL-full") == ours) for ours in (False, True))
    for method in (usual, gpssl):
        record = record_of("kinds", data, method)
        assert set(kind.scores) <= set(record)
        assert all(0 < value <= 1 for score in kind.scores for value in record[score].values())
