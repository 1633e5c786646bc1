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
from gpssl.evaluation import Labeled
from gpssl.evaluation._doubts import telling_columns
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
    assert f"Perhaps wrong: row {place + 2} says 'flower', held-out prediction 'stone' (" in output
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

    monkeypatch.setattr("gpssl.workflows._subject.write_model", fail)
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


# Labels that are not like the other rows


def pure_and_mixed(labels_are_pure: bool) -> pd.DataFrame:
    """Rows between two ends; labels of rows near the ends alone, or of any."""
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 1, 300)
    frame = pd.DataFrame({f"x{number}": place + rng.normal(0, 0.15, 300) for number in range(4)})
    frame["kind"] = np.where(rng.random(300) < place, "one", "other")
    may_have = np.abs(place - 0.5) > 0.42 if labels_are_pure else np.ones(300, dtype=bool)
    chosen = rng.permutation(np.flatnonzero(may_have))[:40]
    return frame.assign(kind=frame["kind"].where(np.isin(np.arange(300), chosen)))


def test_nothing_is_promised_where_the_labels_are_not_like_the_other_rows(tmp_path: Path) -> None:
    pure = written(pure_and_mixed(labels_are_pure=True), tmp_path / "pure.csv")
    output = " ".join(done("label", pure, "-t", "kind", "-o", tmp_path / "out.csv", "--max-risk", "20%").split())
    assert "Nothing can be promised: the labels are not like the other rows." in output
    assert "of the predictions are wrong. Label some of the others, chosen at random." in output
    assert "Expect" not in output
    assert "0 predictions are kept, 260 are left to a person" in output
    notes = gpssl.load(tmp_path / "out.gpssl").card_.notes
    assert notes["shift"]["others"] < notes["shift"]["held_out"] - 0.05
    assert notes["decided"]["n_abstained"] == 260
    fair = written(pure_and_mixed(labels_are_pure=False), tmp_path / "fair.csv")
    assert "Expect" in done("label", fair, "-t", "kind", "-o", tmp_path / "fair-out.csv")


# Predictions that are no better than guessing


def test_predictions_that_are_worse_than_guessing_are_called_so(tmp_path: Path) -> None:
    frame = two_groups(100, 60)
    rng = np.random.default_rng(1)
    frame = frame[["kind"]].assign(x=rng.normal(size=100), y=rng.normal(size=100))
    frame.loc[frame["kind"].notna(), "kind"] = rng.permutation(["rare"] * 10 + ["common"] * 50)
    output = done("label", written(frame, tmp_path / "noise.csv"), "-t", "kind", "-o", tmp_path / "out.csv", *FEW)
    assert "orse than guessing: do not use these predictions." in output or "Perhaps no better than guessing" in output
    numbers = prices(80, 50).assign(price=lambda table: table["price"].where(table["price"].isna(), rng.normal(size=80)))
    output = done("label", written(numbers, tmp_path / "numbers.csv"), "-t", "price", "-o", tmp_path / "numbers-out.csv", *FEW)
    expected = gpssl.load(tmp_path / "numbers-out.gpssl").card_.notes["expectation"]
    assert ("Worse than guessing: do not use these" in output) == (expected["risk"] >= expected["baseline_risk"])


def test_predictions_that_are_worse_than_guessing_say_nothing_against_a_label() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "y": rng.normal(size=60), "kind": rng.choice(["u", "v"], 60)})
    frame.loc[40:, "kind"] = None
    result = gpssl.label(frame, "kind", alike="columns", n_draws=10, temperature=1e-6)
    assert result.expectation.risk >= result.expectation.baseline_risk
    assert result.suspicious == []


def test_comparison_by_six_labels_decides_nothing(tmp_path: Path) -> None:
    frame = two_groups(60, 60)
    known = [*frame.index[frame["kind"] == "stone"][:3], *frame.index[frame["kind"] == "flower"][:3]]
    table = written(frame.assign(kind=frame["kind"].where(frame.index.isin(known))), tmp_path / "things.csv")
    output = " ".join(done("compare", table, "-t", "kind", "--splits", 10, "--draws", 3).split())
    assert "Not decided: 6 labels decide nothing, whatever the scores are; label " in output
    assert "You do not need this" not in output


# Columns that tell the label, and rows that contradict each other


def test_column_that_tells_the_label_is_named(tmp_path: Path) -> None:
    frame = two_groups(120, 60).drop(columns="number")
    kinds = np.where(frame["color"] == "gray", "stone", "flower")
    rng = np.random.default_rng(0)
    frame["size"], frame["color"] = rng.normal(np.where(kinds == "stone", 2.0, 1.0), 0.6), rng.choice(["red", "blue"], 120)
    frame["outcome_code"] = np.where(kinds == "stone", 7, 3)
    table = written(frame, tmp_path / "things.csv")
    output = done("label", table, "-t", "kind", "-o", tmp_path / "out.csv", *FEW)
    assert (
        "'outcome_code' alone predicts all 60 labels without error: if it was filled in after the label, pass --ignore outcome_code."
        in output
    )
    ignored = done("label", table, "-t", "kind", "-o", tmp_path / "out.csv", "--ignore", "outcome_code", "--force", *FEW)
    assert "without error: if" not in ignored
    assert any("'outcome_code' alone" in note for note in gpssl.compare(frame, "kind", n_splits=2, n_draws=3).notes)
    few = frame.assign(kind=frame["kind"].where(frame["kind"].notna().cumsum() <= 20))
    assert not any("without error: if" in note for note in gpssl.label(few, "kind", n_draws=5).notes)  # 20 labels may be an accident


def test_good_measurement_is_not_taken_for_the_label() -> None:
    """With few labels, each of several columns of these tables may happen to separate them."""
    for load in (load_breast_cancer, load_wine):
        table = load(as_frame=True).frame.sample(60, random_state=4)
        labels = table.pop("target").to_numpy().astype(str)
        assert telling_columns(Labeled.of(table, labels)) == []
        assert telling_columns(Labeled.of(table.assign(score=np.char.add(labels, ".5").astype(float)), labels)) == ["score"]
    many = load_breast_cancer(as_frame=True).frame
    labels = many.pop("target").to_numpy()
    score = labels + np.random.default_rng(0).uniform(0, 0.9, len(labels))  # each number once, and all of a class below those of the other
    assert telling_columns(Labeled.of(many.assign(score=score), labels.astype(str))) == ["score"]


def test_number_in_another_unit_is_named() -> None:
    frame = prices(80, 50)
    frame["cents"] = np.where(frame["price"].notna(), 100 * frame["price"], 12345.0)
    assert any("'cents' alone predicts all 50 labels without error" in note for note in gpssl.label(frame, "price", n_draws=5).notes)


def test_equal_rows_with_different_labels_are_shown(tmp_path: Path) -> None:
    frame = two_groups(80, 50).drop(columns="number")
    first, second, third = frame.index[frame["kind"] == "stone"][:3]
    frame.loc[[second, third]] = frame.loc[[first, first]].to_numpy()
    frame.loc[second, "kind"] = "flower"
    output = done("label", written(frame, tmp_path / "things.csv"), "-t", "kind", "-o", tmp_path / "out.csv", *FEW)
    example = f"lines {first + 2} ('stone') and {second + 2} ('flower')"
    assert f"3 rows have the same cells as another row and a different label, such as {example}." in output


# The largest risk, as people write it


@pytest.mark.parametrize("text", ["0.3", "30", "30%", " 30 %"])
def test_percentages_are_shares_in_the_command(table: Path, tmp_path: Path, text: str) -> None:
    result = as_json("label", table, "-t", "kind", "--max-risk", text, "-o", tmp_path / "out.csv", *FEW)
    assert result["promise"]["max_risk"] == pytest.approx(0.3)


@pytest.mark.parametrize("text", ["500", "100%", "0 %"])
def test_percentages_that_are_no_shares_are_said_as_they_were_written(table: Path, tmp_path: Path, text: str) -> None:
    output = refused("label", table, "-t", "kind", "--max-risk", text, "-o", tmp_path / "out.csv", code=2)
    assert f"{text.strip(' %')} % is no share between 0 and 100 %: write 0.05 or 5% for five percent." in output


def test_largest_error_of_numbers_is_in_their_unit(tmp_path: Path) -> None:
    table = written(prices(), tmp_path / "prices.csv")
    result = as_json("label", table, "-t", "price", "--max-risk", "15", "-o", tmp_path / "out.csv", *FEW)
    assert result["promise"]["max_risk"] == 15
    assert "unit of the target" in refused("label", table, "-t", "price", "--max-risk", "5%", "-o", tmp_path / "new.csv", code=2)
    said = refused("label", table, "-t", "price", "--max-risk", "few", "-o", tmp_path / "new.csv", code=2)
    assert "write the largest root mean squared error" in said


def test_python_wants_a_share() -> None:
    with pytest.raises(ChoiceError, match=r"max_risk: 5 is no share between 0 and 1: write 0.05 for 5 percent"):
        gpssl.label(two_groups(), "kind", max_risk=5)


def test_advice_to_use_an_option_is_not_given_while_it_is_used(tmp_path: Path) -> None:
    frame = prices(60, 30)
    table = written(frame.assign(price=frame["price"].round()), tmp_path / "prices.csv")
    assert "For numbers, pass --numeric" not in done("label", table, "-t", "price", "--classes", "-o", tmp_path / "out.csv", *FEW)
    things = written(two_groups(200, 40).assign(code=[f"C{place}" for place in range(200)]), tmp_path / "things.csv")
    advised = done("embed", things, "-o", tmp_path / "things-out.csv")
    assert "Pass --keep COLUMN" in advised
    output = done("embed", things, "-o", tmp_path / "things-out.csv", "--force", "--keep", "code", "--max-inducing", "8")
    assert "8 inducing points leave" in output
    assert "--max-inducing" not in output
    assert "'number' (it looks like an ID" in output
    assert "Pass --keep" not in output
