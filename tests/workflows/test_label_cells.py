"""Labels as people write them, from the command line: spellings, words for "no label", several labels in a cell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpssl
from command import FEW, as_json, done, refused
from gpssl.data._label_cells import tidy_labels
from gpssl.data._labels import Target
from gpssl.workflows._choices import ChoiceError
from people import two_groups, written


def with_words(word: str | None, n_rows: int = 60) -> pd.DataFrame:
    """Flowers and stones, with a word where there is no label."""
    frame = two_groups(n_rows, 24)
    return frame.assign(kind=frame["kind"].where(frame["kind"].notna(), word))


def label(tmp_path: Path, frame: pd.DataFrame, *options: str) -> str:
    return " ".join(
        done("label", written(frame, tmp_path / "things.csv"), "-t", "kind", "-o", tmp_path / "out.csv", *FEW, *options).split()
    )


def test_case_and_blanks_do_not_make_a_class(tmp_path: Path) -> None:
    frame = with_words(None)
    first, second, third = frame.index[frame["kind"] == "stone"][:3]
    frame.loc[first, "kind"], frame.loc[second, "kind"], frame.loc[third, "kind"] = "Stone", "stone ", "STONE"
    output = label(tmp_path, frame)
    assert "Spellings that differ in case or blanks are one class of the target 'kind': " in output
    assert "'Stone' (1 cell) is 'stone' (" in output
    result = pd.read_csv(tmp_path / "out.csv")
    assert set(result["kind_predicted"].dropna()) == {"stone", "flower"}
    assert set(result["kind"].dropna()) == {"stone", "Stone", "stone ", "STONE", "flower"}  # cells come back as they were


@pytest.mark.parametrize("word", ["unknown", "TBD", "-", "not labeled", "-1", "unlabelled"])
def test_words_for_no_label_are_asked_about_and_taken(tmp_path: Path, word: str) -> None:
    table = written(with_words(word), tmp_path / "things.csv")
    output = " ".join(done("label", table, "-t", "kind", "-o", tmp_path / "out.csv", *FEW).split())
    option = f"--unlabeled {word!r}" if " " in word else f"--unlabeled {word}"
    assert f"36 cells say {word!r}: if they mean 'no label', pass {option}." in output
    assert "All 60 rows have a label in 'kind', so that there is none to predict: empty some cells, or pass" in output
    taken = as_json("label", table, "-t", "kind", "-o", tmp_path / "out.csv", "-f", "--unlabeled", word.lower(), *FEW)
    assert (taken["n_labeled"], taken["n_predicted"], taken["classes"]) == (24, 36, ["flower", "stone"])
    assert not any("no label" in note for note in taken["notes"])
    plain = written(with_words(None), tmp_path / "plain.csv")
    without = as_json("label", plain, "-t", "kind", "-o", tmp_path / "plain-out.csv", *FEW)
    assert taken["expectation"] == without["expectation"]


def test_a_question_mark_counts_as_missing_already(tmp_path: Path) -> None:
    for options in ([], ["--unlabeled", "?"]):
        assert "24 had a label in 'kind', 36 were predicted" in label(tmp_path, with_words("?"), "-f", *options)


def test_word_that_no_cell_says_gets_a_sentence(tmp_path: Path) -> None:
    table = written(with_words("unknown"), tmp_path / "things.csv")
    text = refused("label", table, "-t", "kind", "-o", tmp_path / "out.csv", "--unlabeled", "unknwon", *FEW)
    assert "No cell of the target 'kind' says 'unknwon'" in text
    assert "'unknown'" in text
    with pytest.raises(ChoiceError, match=r"write unlabeled=\['unknown'\]"):
        gpssl.label(with_words("unknown"), "kind", unlabeled="unknown")


def test_numbers_beside_words_for_no_label_are_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    size = rng.uniform(50, 150, 120)
    price = pd.Series((2 * size + rng.normal(0, 5, 120)).round(2)).astype(object)
    price[rng.permutation(120)[:80]] = "tbd"
    table = written(pd.DataFrame({"size": size, "kind": price}), tmp_path / "prices.csv")
    for options in ([], ["--numeric"]):
        result = as_json("label", table, "-t", "kind", "-o", tmp_path / "out.csv", "-f", "--unlabeled", "tbd", *FEW, *options)
        assert (result["kind"], result["n_labeled"], result["n_predicted"]) == ("number", 40, 80)
    coded = written(pd.DataFrame({"size": size, "kind": price.where(price != "tbd", -999)}), tmp_path / "coded.csv")
    result = as_json("label", coded, "-t", "kind", "-o", tmp_path / "out.csv", "-f", "--unlabeled", "-999", *FEW)
    assert (result["kind"], result["n_labeled"], result["n_predicted"]) == ("number", 40, 80)


def test_several_labels_in_a_cell_get_a_sentence(tmp_path: Path) -> None:
    frame = with_words(None)
    known = frame.index[frame["kind"].notna()]
    frame.loc[known[:2], "kind"] = ["stone; flower", "Flower, stone"]
    assert "2 cells hold several labels in the target 'kind', such as 'stone; flower', which counts as a class of its own" in label(
        tmp_path, frame
    )
    frame.loc[known[:2], "kind"] = "salt, pepper"  # one class with a comma in its name
    assert "several labels" not in label(tmp_path, frame, "-f")


def test_compare_and_next_take_the_words_too(tmp_path: Path) -> None:
    table = written(with_words("tbd"), tmp_path / "things.csv")
    assert "--unlabeled tbd" in " ".join(refused("next", table, "-t", "kind").split())
    assert as_json("next", table, "-t", "kind", "--unlabeled", "TBD", "-n", 3)["n_candidates"] == 36
    compared = gpssl.compare(with_words("tbd"), "kind", n_splits=2, n_draws=3, unlabeled=["tbd"])
    assert compared.n_labeled == 24


def test_report_of_a_model_knows_its_words(tmp_path: Path) -> None:
    label(tmp_path, with_words("tbd"), "--unlabeled", "tbd")
    done("report", tmp_path / "out.gpssl", tmp_path / "things.csv", "-o", tmp_path / "page.html", "--no-rivals")
    assert "tbd" not in gpssl.load(tmp_path / "out.gpssl").classes_


def test_name_of_a_class_is_its_commonest_spelling() -> None:
    values = np.array(["b", "B", "B", "a", " a", None, "c  d", "C d"], dtype=object)
    tidy = tidy_labels(Target("y", "class", values))
    assert tidy.target.values.tolist() == ["B", "B", "B", " a", " a", None, "C d", "C d"]
    assert tidy.candidates == {}
    assert tidy_labels(Target("y", "class", np.array(["-1", "1"], dtype=object))).candidates == {}  # two classes of their own
    assert tidy_labels(Target("y", "class", np.array(["-1", "0", "1"], dtype=object))).candidates == {"-1": 1}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_dates_are_no_numbers_to_predict(tmp_path: Path, ending: str) -> None:
    days = pd.Series(pd.date_range("2024-01-05", periods=30)).where(np.arange(30) % 3 > 0)
    frame = pd.DataFrame({"width": np.sin(np.arange(30)), "day": days})
    path = tmp_path / f"days.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    output = refused("label", path, "-t", "day", "--numeric", "-o", tmp_path / "out.csv")
    assert "The target 'day' holds dates, which are no numbers: give a column of days or years since some date." in output
