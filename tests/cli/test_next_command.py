"""`gpssl next`: rows to label, the reason for each, and a file to fill in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from command import as_json, done, refused
from people import prices, two_groups, written


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return written(two_groups(), tmp_path / "things.csv")


def test_rows_are_named_by_their_lines_with_a_reason_each(table: Path) -> None:
    found = as_json("next", table, "--target", "kind", "-n", "5")
    cells = pd.read_csv(table)
    assert (found["n_rows"], found["n_labeled"], found["n_candidates"]) == (60, 24, 36)
    assert len(found["rows"]) == 5
    for row in found["rows"]:
        assert row["line"] == row["place"] + 2
        assert pd.isna(cells["kind"][row["place"]])
        assert row["predicted"] in ("stone", "flower")
        assert row["reason"]
        np.testing.assert_allclose(sum(row["probabilities"].values()), 1.0)
    output = done("next", table, "--target", "kind", "-n", "5")
    assert all(f"{row['line']}  {row['predicted']}" in output for row in found["rows"])


def test_file_of_suggested_rows_can_be_filled_in(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "to-label.csv"
    found = as_json("next", table, "--target", "kind", "-n", "7", "-o", out)
    written_rows, cells = pd.read_csv(out), pd.read_csv(table)
    assert written_rows["gpssl_rank"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert written_rows["gpssl_row"].tolist() == [row["line"] for row in found["rows"]]
    assert written_rows["gpssl_reason"].tolist() == [row["reason"] for row in found["rows"]]
    assert written_rows["kind"].isna().all()
    assert list(written_rows.columns[3:]) == list(cells.columns)
    assert written_rows["number"].tolist() == cells["number"][written_rows["gpssl_row"] - 2].tolist()


def test_table_without_any_label_is_covered(tmp_path: Path) -> None:
    path = written(two_groups().assign(kind=None), tmp_path / "bare.csv")
    found = as_json("next", path, "--target", "kind", "-n", "4")
    assert found["n_labeled"] == 0
    assert [row["predicted"] for row in found["rows"]] == [None] * 4
    colors = two_groups()["color"][[row["place"] for row in found["rows"]]]
    assert (colors == "gray").any()
    assert (colors != "gray").any()
    assert "rows without a label" in done("next", path, "--target", "kind", "-n", "4")


def test_numbers_have_a_prediction_and_its_uncertainty(tmp_path: Path) -> None:
    path = written(prices(), tmp_path / "houses.csv")
    found = as_json("next", path, "--target", "price", "-n", "3")
    assert found["kind"] == "number"
    assert all(isinstance(row["predicted"], float) and "±" in row["reason"] for row in found["rows"])


def test_more_rows_than_there_are_get_a_note(table: Path) -> None:
    output = done("next", table, "--target", "kind", "-n", "100")
    assert "Only 36 rows have no label: all of them are suggested." in output


@pytest.mark.parametrize("labels", [["", "", ""], ["p", "", ""], ["p", "q", ""]])
def test_a_table_of_three_rows_is_enough(tmp_path: Path, labels: list[str]) -> None:
    path = tmp_path / "three.csv"
    pd.DataFrame({"width": [1, 3, 5], "height": [2, 4, 1], "kind": labels}).to_csv(path, index=False)
    found = as_json("next", path, "--target", "kind")
    assert sorted(row["line"] for row in found["rows"]) == [place + 2 for place, label in enumerate(labels) if not label]


def test_no_candidates_left_is_a_sentence(tmp_path: Path) -> None:
    path = written(two_groups(n_labels=60), tmp_path / "all.csv")
    assert "All 60 rows of all.csv have a label in 'kind': there is none left to suggest." in refused("next", path, "--target", "kind")


def test_model_of_label_is_used(table: Path, tmp_path: Path) -> None:
    done("label", table, "--target", "kind", "-o", tmp_path / "labeled.csv")
    fresh = as_json("next", table, "--target", "kind", "-n", "5")
    again = as_json("next", table, "--target", "kind", "-n", "5", "--model", tmp_path / "labeled.gpssl")
    assert [row["place"] for row in again["rows"]] == [row["place"] for row in fresh["rows"]]


def test_model_that_predicts_nothing_is_refused(table: Path, tmp_path: Path) -> None:
    done("embed", table, "-o", tmp_path / "embedded.csv", "--ignore", "kind")
    text = refused("next", table, "--target", "kind", "--model", tmp_path / "embedded.gpssl", code=2)
    assert "predicts nothing" in text
