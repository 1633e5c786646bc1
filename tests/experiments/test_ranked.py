"""Ranks and tests over tables, from finished tasks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from experiments.ledger import Record
from experiments.ranked import (
    Layout,
    TableMeans,
    Versus,
    comparisons_table,
    corrected,
    mean_lines,
    per_table,
    ranks_of,
    signed_rank_test,
)


def _records(values: dict[str, list[list[float]]], score: str = "loss") -> list[Record]:
    """One record for each method, table and split; values are [tables][splits]."""
    return [
        {"data": f"t{place}", "split": split, "method": method, score: {"10": value}}
        for method, tables in values.items()
        for place, splits in enumerate(tables)
        for split, value in enumerate(splits)
    ]


def test_scores_are_averaged_over_splits_that_all_methods_have() -> None:
    means = TableMeans(_records({"a": [[1.0, 3.0, 100.0], [5.0]], "b": [[2.0, 2.0], [7.0, 9.0]]}), "loss", 10)
    assert means.data == ["t0", "t1"]
    assert means.of("a").tolist() == [2.0, 5.0]
    assert means.of("b").tolist() == [2.0, 7.0]


def test_tables_that_a_method_lacks_are_left_out() -> None:
    means = TableMeans(_records({"a": [[1.0], [5.0]], "b": [[2.0]]}), "loss", 10)
    assert means.data == ["t0"]


def test_equal_scores_share_their_ranks() -> None:
    means = TableMeans(_records({"a": [[1.0], [2.0]], "b": [[1.0], [1.0]], "c": [[2.0], [3.0]]}), "loss", 10)
    assert ranks_of(means, ["a", "b", "c"]) == {"a": 1.75, "b": 1.25, "c": 3.0}
    assert ranks_of(means, ["a", "c"]) == {"a": 1.0, "c": 2.0}


def test_signed_ranks_agree_with_counting_by_hand() -> None:
    # All 2^5 signs are equally likely; one of them has no win of the second, ten have ranks of wins that sum to at most 5.
    cases = [(np.arange(1.0, 6.0), 5, 1 / 32), (np.array([1.0, 2.0, 3.0, 4.0, -5.0]), 4, 10 / 32), (-np.arange(1.0, 6.0), 0, 1.0)]
    for second, won, p_value in cases:
        test = signed_rank_test(np.zeros(5), second)
        assert (test.won, test.n_tables) == (won, 5)
        assert test.p_value == pytest.approx(p_value)


def test_equal_methods_are_not_told_apart() -> None:
    assert signed_rank_test(np.ones(6), np.ones(6)) == Versus(0, 6, 1.0)


def test_tied_differences_are_tested_by_the_normal_approximation() -> None:
    difference = np.array([1.0, 1.0, 1.0, 1.0, -1.0, 0.0])
    test = signed_rank_test(np.zeros(6), difference)
    # Pratt: the zero takes rank 1, the others share rank 4; the wins of the second sum to 4 of 20, with variance Σ r² / 4 = 20.
    assert test.won == 4
    assert test.p_value == pytest.approx(norm.cdf((4 - 10) / np.sqrt(20)))


def test_p_values_are_corrected_by_holm() -> None:
    tests = corrected({name: Versus(1, 1, p) for name, p in (("a", 0.01), ("b", 0.04), ("c", 0.03))})
    assert [test.p_value for test in tests.values()] == pytest.approx([0.03, 0.06, 0.06])


LAYOUT = Layout("made", (10,), "labels", ("loss",), ("loss",))


def test_tests_say_how_many_tables_are_won() -> None:
    rng = np.random.default_rng(0)
    worse = [[1 + value] for value in rng.uniform(0.1, 1, 20)]
    text = comparisons_table(_records({"pool": [[1.0]] * 20, "worse": worse}), LAYOUT, ["pool", "worse"])
    assert "| against worse | better on 20 of 20, p < 0.001 |" in text


def test_few_tables_are_counted_and_not_tested() -> None:
    text = comparisons_table(_records({"pool": [[1.0]], "other": [[2.0]]}), LAYOUT, ["pool", "other"])
    assert "| better on 1 of 1 |" in text


def test_ablations_have_a_table_of_their_own_without_ranks() -> None:
    records = _records({"pool": [[1.0], [1.0]], "b": [[2.0], [4.0]], "pool, β = 0": [[0.0], [0.0]]})
    blocks = LAYOUT.blocks(records)
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in blocks[f"{LAYOUT.name} ablations 10"].splitlines()]
    assert cells[0] == ["10 labels", "loss"]
    assert cells[2:] == [["pool", "1.000"], ["pool, β = 0", "0.000"]]
    ranked = [[cell.strip() for cell in line.split("|")[1:-1]] for line in blocks[f"{LAYOUT.name} 10"].splitlines()]
    assert ranked[2:] == [["pool", "1.000", "1.0"], ["b", "3.000", "2.0"]]


def test_tables_have_a_row_for_each_table() -> None:
    assert per_table(_records({"a": [[1.0], [2.0]]}), LAYOUT, 10).splitlines()[2:] == [
        "| t0              | 1.000 |",
        "| t1              | 2.000 |",
    ]


def test_lines_are_means_over_tables() -> None:
    (line,) = mean_lines(_records({"a": [[1.0], [3.0]]}), "loss", [10])
    assert (line.name, list(line.x), line.y[0].mean) == ("a", [10], 2.0)


def test_tests_need_the_pool() -> None:
    records = _records({"a": [[1.0]], "b": [[2.0]]})
    blocks = LAYOUT.blocks(records)
    assert list(blocks) == ["made 10", "made tests", "made tables 10", "made figure"]
    assert "nothing is tested" in blocks["made tests"]
    assert "against a" in LAYOUT.blocks([*records, *_records({"pool": [[0.5]]})])["made tests"]
