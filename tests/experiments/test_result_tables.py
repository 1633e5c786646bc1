"""Tables and curves of finished tasks."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import paper
from experiments.figures import average_curve
from experiments.ledger import Record
from experiments.tables import Scores, fill, paired_tests_table, ranks_table, scores_table, settings_table, table, verdicts_table
from gpssl.evaluation import risk_coverage_curve


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
