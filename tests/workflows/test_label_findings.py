"""What `gpssl label` says of the labels themselves, and what it writes of that on the card of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

import gpssl
from command import FEW, as_json, done, refused
from gpssl.workflows._choices import ChoiceError
from people import prices, two_groups, written


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return written(two_groups(), tmp_path / "things.csv")


# Labels that are perhaps wrong


def with_flipped_labels(load: Any, n_rows: int, n_classes: int, seed: int = 0) -> tuple[pd.DataFrame, set[int]]:
    """Some rows of a table of scikit-learn, 5 % of the labels replaced by another one; and the places of these."""
    frame = load(as_frame=True).frame
    frame = frame[frame["target"] < n_classes].sample(n_rows, random_state=seed).reset_index(drop=True)
    rng = np.random.default_rng(seed)
    flipped = rng.permutation(n_rows)[: round(0.05 * n_rows)]
    labels = frame["target"].to_numpy().copy()
    labels[flipped] = (labels[flipped] + rng.integers(1, n_classes, len(flipped))) % n_classes
    return frame.assign(target=[f"class {label}" for label in labels]), set(flipped.tolist())


@pytest.mark.parametrize(
    ("load", "n_rows", "n_classes"),
    [(load_breast_cancer, 200, 2), (load_wine, 178, 3), (load_digits, 160, 4)],
    ids=["breast cancer", "wine", "digits"],
)
def test_most_of_the_labels_that_are_most_doubtful_are_wrong(load: Any, n_rows: int, n_classes: int) -> None:
    frame, flipped = with_flipped_labels(load, n_rows, n_classes)
    frame.loc[n_rows] = frame.loc[0]
    frame.loc[n_rows, "target"] = None
    result = gpssl.label(frame, "target", n_draws=30)
    top = [one.place for one in result.suspicious[: len(flipped)]]
    assert len(top) >= len(flipped) / 2
    assert np.isin(top, list(flipped)).mean() >= 0.7
    assert all(frame["target"][one.place] == one.label != one.predicted for one in result.suspicious)
    assert all(one.probability >= 0.8 for one in result.suspicious)


def test_label_that_is_perhaps_wrong_is_shown_with_its_line(tmp_path: Path) -> None:
    frame = two_groups(120, 80)
    place = int(np.flatnonzero(frame["kind"] == "stone")[7])
    frame.loc[place, "kind"] = "flower"
    table = written(frame, tmp_path / "things.csv")
    output = done("label", table, "-t", "kind", "-o", tmp_path / "out.csv", *FEW)
    assert f"Perhaps wrong: line {place + 2} says 'flower', held-out prediction 'stone' (" in output
    found = as_json("label", table, "-t", "kind", "-o", tmp_path / "out.csv", "--force", *FEW)["suspicious"]
    assert [one["line"] for one in found] == [place + 2]
    card = gpssl.load(tmp_path / "out.gpssl").card_.notes
    assert [(one["place"], one["label"], one["predicted"]) for one in card["suspicious"]] == [(place, "flower", "stone")]


def test_number_far_from_its_prediction_is_perhaps_wrong() -> None:
    frame = prices(120, 80).set_index(pd.Index([f"house {place}" for place in range(120)]))
    name = frame.index[frame["price"].notna()][5]
    frame.loc[name, "price"] += 400.0
    found = gpssl.label(frame, "price", n_draws=10).suspicious
    assert [one.line for one in found] == [name]
    assert found[0].probability > 0.99


# One truth: what the card says


def test_card_says_what_the_run_decided(table: Path, tmp_path: Path) -> None:
    result = as_json("label", table, "-t", "kind", "--max-risk", "30%", "-o", tmp_path / "out.csv", *FEW)
    notes = gpssl.load(tmp_path / "out.gpssl").card_.notes
    assert notes["decided"] == {name: result[name] for name in ("n_predicted", "n_abstained", "counts")}
    assert notes["decided"]["n_predicted"] == 36
    assert sum(notes["decided"]["counts"].values()) == 36 - notes["decided"]["n_abstained"]
    assert notes["baseline"] == result["expectation"]["baseline_risk"]
    assert notes["importance"] == result["importance"]
    assert notes["shift"] is None
    by_frame = gpssl.label(two_groups(), "kind", max_risk=0.3, n_draws=10)
    assert by_frame.model.card_.notes["decided"] == notes["decided"]


def test_model_that_cannot_be_saved_leaves_no_results(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "out.gpssl")

    monkeypatch.setattr("gpssl.workflows._subject.save", fail)
    for command in (["label", table, "-t", "kind", *FEW], ["embed", table]):
        assert "No space left" in refused(*command, "-o", tmp_path / "out.csv")
        assert [file.name for file in tmp_path.iterdir()] == ["things.csv"]


# Which columns matter


def test_columns_that_matter_are_named(tmp_path: Path) -> None:
    frame = two_groups(120, 60)
    rng = np.random.default_rng(0)
    kinds = np.where(frame["color"] == "gray", "stone", "flower")
    frame["size"], frame["weight"], frame["color"] = np.where(kinds == "stone", 2.0, 1.0) + rng.normal(0, 0.2, 120), 1.0, "red"
    frame["noise"], frame["more noise"] = rng.normal(size=120), rng.choice(["a", "b"], 120)
    output = done("label", written(frame, tmp_path / "things.csv"), "-t", "kind", "-o", tmp_path / "out.csv", *FEW)
    assert "Columns that matter most: size (" in output
    first = gpssl.load(tmp_path / "out.gpssl").card_.notes["importance"][0]
    assert (first["name"], first["share"] > 0.8) == ("size", True)


def test_of_many_columns_those_that_tell_something_are_tried() -> None:
    frame = two_groups(80, 60).drop(columns="number")
    noise = np.random.default_rng(0).normal(size=(80, 60))
    frame = pd.concat([pd.DataFrame(noise, columns=[f"noise {place}" for place in range(60)]), frame], axis=1)
    result = gpssl.label(frame, "kind", n_draws=5)
    assert len(result.importance) == 50
    assert {"size", "color"} <= {one.name for one in result.importance}
    assert any("Of 63 columns, the 50 that are most associated with the label" in note for note in result.notes)


# The largest risk, as people write it


@pytest.mark.parametrize("text", ["0.3", "30", "30%", " 30 %"])
def test_percentages_are_shares_in_the_command(table: Path, tmp_path: Path, text: str) -> None:
    result = as_json("label", table, "-t", "kind", "--max-risk", text, "-o", tmp_path / "out.csv", *FEW)
    assert result["promise"]["max_risk"] == pytest.approx(0.3)


def test_largest_error_of_numbers_is_in_their_unit(tmp_path: Path) -> None:
    table = written(prices(), tmp_path / "prices.csv")
    result = as_json("label", table, "-t", "price", "--max-risk", "15", "-o", tmp_path / "out.csv", *FEW)
    assert result["promise"]["max_risk"] == 15
    assert "unit of the target" in refused("label", table, "-t", "price", "--max-risk", "5%", "-o", tmp_path / "new.csv", code=2)
    assert "write 0.05 or 5%" in refused("label", table, "-t", "price", "--max-risk", "few", "-o", tmp_path / "new.csv", code=2)


def test_python_wants_a_share() -> None:
    with pytest.raises(ChoiceError, match=r"max_risk: 5 is no share between 0 and 1: write 0.05 for 5 percent"):
        gpssl.label(two_groups(), "kind", max_risk=5)


def test_advice_to_use_an_option_is_not_given_while_it_is_used(tmp_path: Path) -> None:
    frame = prices(60, 30)
    table = written(frame.assign(price=frame["price"].round()), tmp_path / "prices.csv")
    assert "For numbers, pass --numeric" not in done("label", table, "-t", "price", "--classes", "-o", tmp_path / "out.csv", *FEW)
