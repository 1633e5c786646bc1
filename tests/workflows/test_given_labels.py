"""Labels that a person gave elsewhere find their rows again, whatever the format of the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gpssl
from command import FEW, done, refused
from gpssl.workflows._row_checksums import checksums_of, row_checksums, row_names
from gpssl.workflows._subject import Roles, open_subject

N_ROWS = 60


def flowers() -> pd.DataFrame:
    """Two kinds of flowers that are easy to tell; every third row has a label."""
    rng = np.random.default_rng(0)
    kind = np.arange(N_ROWS) % 2
    frame = pd.DataFrame(
        {
            "petal": rng.normal(3.0 * kind, 0.4).round(3),
            "sepal": (rng.normal(-2.0 * kind, 0.4)).astype(np.float32),
            "seen": pd.date_range("2024-03-30", periods=N_ROWS, freq="31h"),
            "day": pd.date_range("2024-03-30", periods=N_ROWS),
            "wild": rng.random(N_ROWS) < 0.5,
            "place": np.array(["north  side", "south, low", "“east”", "N/A"])[rng.integers(4, size=N_ROWS)],
            "number": 10**16 + 7 * np.arange(N_ROWS),
        }
    )
    frame["species"] = [None if place % 3 else truth(place) for place in range(N_ROWS)]
    return frame


def truth(place: int) -> str:
    return ("iris", "Rose")[place % 2]


def labels_of(table: Any, places: list[int], given: list[str] | None = None) -> pd.DataFrame:
    """What the page would write for these rows."""
    subject = open_subject(table, Roles("species"))
    rows = row_names(subject, np.array(places))
    checksums = row_checksums(subject, np.array(places))
    return pd.DataFrame({"row": rows, "checksum": checksums, "species": given or [truth(place) for place in places]})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "flowers.csv"
    flowers().to_csv(path, index=False)
    return path


def labeled(table: Any, labels: Any) -> gpssl.workflows.LabeledTable:
    return gpssl.label(table, "species", labels=labels, n_draws=5, n_components=2)


def write(frame: pd.DataFrame, name: str, folder: Path) -> Path:
    path = folder / name
    writers = {
        "flowers.csv": lambda: frame.to_csv(path, index=False),
        "german.csv": lambda: frame.to_csv(path, index=False, sep=";", decimal=",", encoding="utf-8-sig"),
        "flowers.tsv": lambda: frame.to_csv(path, index=False, sep="\t"),
        "flowers.parquet": lambda: frame.to_parquet(path),
        "flowers.feather": lambda: frame.astype({"place": "category"}).to_feather(path),
        "flowers.jsonl": lambda: _without_single_precision(frame).to_json(path, orient="records", lines=True, date_format="iso"),
        "flowers.xlsx": lambda: _without_single_precision(frame.astype({"number": str})).to_excel(path, index=False),
    }
    writers[name]()
    return path


def _without_single_precision(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(sepal=frame["sepal"].map(lambda cell: float(str(np.float32(cell)))))


@pytest.mark.parametrize(
    "name", ["flowers.csv", "german.csv", "flowers.tsv", "flowers.parquet", "flowers.feather", "flowers.jsonl", "flowers.xlsx"]
)
def test_checksums_do_not_depend_on_the_format(name: str, tmp_path: Path) -> None:
    frame, every = flowers(), np.arange(N_ROWS)
    expected = row_checksums(open_subject(frame, Roles("species")), every)
    assert len(set(expected)) == N_ROWS
    assert row_checksums(open_subject(write(frame, name, tmp_path), Roles("species")), every) == expected


def test_checksums_ignore_target_results_order_of_columns_and_empty_ones() -> None:
    frame = flowers()
    frame["nested"] = [[place, {"a": "b"}] for place in range(N_ROWS)]
    expected = checksums_of(frame, "species")
    results = frame.assign(
        species="iris", species_predicted="x", species_std=0.1, gpssl_1=0.5, gpssl_1_std=0.1, gpssl_reason="y", empty=None
    )
    assert checksums_of(results[results.columns[::-1]], "species") == expected
    for name in frame.columns.drop("species"):
        changed = frame.assign(**{name: frame[name].iloc[::-1].to_numpy()})
        assert checksums_of(changed, "species") != expected


def test_merged_labels_train_the_model_and_stand_in_the_results(table: Path, tmp_path: Path) -> None:
    places = [1, 2, 4, 5, 7]
    labels_of(table, places).to_csv(tmp_path / "labels.csv", index=False)
    said = done("label", table, "--target", "species", "--labels", tmp_path / "labels.csv", "-o", tmp_path / "out.csv", *FEW)
    assert "5 labels of labels.csv merged" in said
    assert "25 had a label in 'species', 35 were predicted" in said
    assert "5 labels are of rows chosen to be labeled, which are harder than others" in said
    assert "rests on the other 20 labels" in said
    before, after = pd.read_csv(table), pd.read_csv(tmp_path / "out.csv")
    is_known = before["species"].notna()
    assert (after["species"][is_known] == before["species"][is_known]).all()
    assert after["species"][places].tolist() == [truth(place) for place in places]
    assert (after["species"].isna() == after["species_predicted"].notna()).all()
    # What was written can be read again: with the labels in it, the same labels change nothing.
    again = gpssl.label(tmp_path / "out.csv", "species", labels=tmp_path / "labels.csv", n_draws=5)
    assert (again.n_labeled, again.n_predicted) == (25, 35)


def test_labels_change_what_is_predicted() -> None:
    """Labels that are all wrong make the predictions wrong: they are what the model is trained on."""
    frame = flowers().assign(species=None)
    places = list(range(30))
    right = labeled(frame, labels_of(frame, places))
    wrong = labeled(frame, labels_of(frame, places, [truth(place + 1) for place in places]))
    expected = np.array([truth(place) for place in range(30, N_ROWS)])
    assert (right.frame()["species_predicted"][30:] == expected).mean() > 0.9
    assert (wrong.frame()["species_predicted"][30:] == expected).mean() < 0.1


@pytest.mark.parametrize("name", ["flowers.parquet", "german.csv", "flowers.jsonl"])
def test_labels_of_one_format_fit_another(table: Path, name: str, tmp_path: Path) -> None:
    """The person labels a CSV file, a colleague keeps the table in another format."""
    labels = labels_of(table, [1, 2, 4])
    other = labeled(write(flowers(), name, tmp_path), labels)
    assert other.n_labeled == 23


def test_a_data_frame_is_matched_by_its_index() -> None:
    frame = flowers().set_axis([f"flower {place}" for place in range(N_ROWS)])
    result = labeled(frame, labels_of(frame, [1, 2]))
    assert result.n_labeled == 22
    assert result.frame()["species_predicted"]["flower 1"] is None
    assert frame["species"]["flower 1"] is None  # what is in memory is left as it is


def test_rows_that_moved_are_found_by_their_cells(table: Path) -> None:
    labels = labels_of(table, [1, 2, 4])
    pd.read_csv(table).sort_values("petal").to_csv(table, index=False)
    result = labeled(table, labels)
    assert result.n_labeled == 23
    assert any("moved" in note and "rows 3, 4, 6" in note for note in result.notes)


def test_one_of_equal_rows_is_enough_for_each_label() -> None:
    frame = pd.concat([flowers(), flowers().iloc[[1, 1]]], ignore_index=True)
    labels = labels_of(frame, [1, N_ROWS, N_ROWS + 1])
    assert labels["checksum"].nunique() == 1
    assert labeled(frame.iloc[::-1].reset_index(drop=True), labels).n_labeled == 23


def test_rows_that_changed_get_a_sentence(table: Path, tmp_path: Path) -> None:
    labels_of(table, [1, 2, 4]).to_csv(tmp_path / "labels.csv", index=False)
    text = table.read_text().splitlines()
    text[2] = text[2].replace(text[2].split(",")[0], "17.5", 1)
    table.write_text("\n".join(text) + "\n")
    said = refused("label", table, "--target", "species", "--labels", tmp_path / "labels.csv", "-o", tmp_path / "out.csv")
    assert "flowers.csv has changed since it was labeled: the cells of row 3 are not those that labels.csv has labels for." in said
    assert "remove it from labels.csv" in said
    assert not (tmp_path / "out.csv").exists()


def test_labels_of_another_table_get_a_sentence(table: Path, tmp_path: Path) -> None:
    labels_of(flowers().assign(petal=1.5), [1, 2]).to_csv(tmp_path / "other.csv", index=False)
    said = refused("label", table, "--target", "species", "--labels", tmp_path / "other.csv", "-o", tmp_path / "out.csv")
    assert "other.csv belongs to another table: none of its 2 rows is in flowers.csv" in said


def test_another_label_in_the_table_gets_a_sentence(table: Path) -> None:
    with pytest.raises(
        ValueError, match=r"Row 5 has the label 'Rose' in flowers\.csv and 'iris' in the frame of labels: remove one of the two"
    ):
        labeled(table, labels_of(table, [1, 3], ["Rose", "iris"]))
    assert labeled(table, labels_of(table, [1, 3], ["Rose", "rose"])).n_labeled == 21


def test_the_last_label_counts(table: Path, tmp_path: Path) -> None:
    labels_of(table, [1, 2], ["iris", "iris"]).to_csv(tmp_path / "first.csv", index=False)
    labels_of(table, [1, 4], ["Rose", "iris"]).to_csv(tmp_path / "second.csv", index=False)
    out = tmp_path / "out.csv"
    files = ["--labels", tmp_path / "first.csv", "--labels", tmp_path / "second.csv"]
    said = done("label", table, "--target", "species", *files, "-o", out, *FEW)
    assert "More than one label was given for row 3: the last one counts." in said
    assert "3 labels of first.csv, second.csv merged" in said
    assert pd.read_csv(out)["species"][[1, 2, 4]].tolist() == ["Rose", "iris", "iris"]


def test_spellings_of_a_class_are_that_class_and_new_classes_are_named(table: Path) -> None:
    result = labeled(table, labels_of(table, [1, 2, 4, 5, 7], [" rose", "IRIS ", "tulip", "Tulip", "iris"]))
    assert result.classes == ["Rose", "iris", "tulip"]
    notes = " ".join(result.notes)
    assert "'rose' as 'Rose'" in notes
    assert "'IRIS' as 'iris'" in notes
    assert "'Tulip' as 'tulip'" in notes
    assert "New classes: 'tulip' (2)." in notes


def test_cells_without_a_label_are_told(table: Path) -> None:
    result = labeled(table, labels_of(table, [1, 2, 4], ["Rose", "", "n/a"]))
    assert result.n_labeled == 21
    assert any("2 rows have no label in the frame of labels" in note for note in result.notes)


def test_a_file_without_labels_is_told(table: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("row,checksum,species\n")
    result = labeled(table, tmp_path / "labels.csv")
    assert result.n_labeled == 20
    assert "There are no labels in labels.csv." in result.notes


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["row", "species"], "has no column 'checksum': labels have the columns 'row', 'checksum' and 'species'"),
        (["checksum", "species"], "has no column 'row'"),
        (["row", "checksum"], "has no column 'species'"),
    ],
)
def test_a_file_without_the_columns_gets_a_sentence(table: Path, tmp_path: Path, columns: list[str], words: str) -> None:
    labels_of(table, [1, 2])[columns].to_csv(tmp_path / "labels.csv", index=False)
    said = refused("label", table, "--target", "species", "--labels", tmp_path / "labels.csv", "-o", tmp_path / "out.csv")
    assert f"labels.csv {words}" in said


def test_a_file_that_is_not_there_gets_a_sentence(table: Path, tmp_path: Path) -> None:
    said = refused("label", table, "--target", "species", "--labels", tmp_path / "none.csv", "-o", tmp_path / "out.csv")
    assert "There is no file" in said


def test_what_is_no_table_of_labels_is_refused(table: Path) -> None:
    with pytest.raises(TypeError, match="Labels are paths or pandas data frames, got int"):
        labeled(table, [3])


def test_texts_that_were_kept_from_being_formulas_are_themselves_again(table: Path) -> None:
    result = labeled(table, labels_of(table, [1, 2, 4], ["'=rose", "'+1", "'quoted'"]))
    assert {"=rose", "+1", "'quoted'"} < set(result.classes or [])


def test_spreadsheets_may_change_how_numbers_look(table: Path) -> None:
    labels = labels_of(table, [1, 2]).astype({"row": float})
    assert labeled(table, labels).n_labeled == 22


@pytest.mark.parametrize("name", ["row", "checksum"])
def test_a_target_may_be_called_as_the_keys_are(name: str) -> None:
    frame = flowers().rename(columns={"species": name})
    subject = open_subject(frame, Roles(name))
    keys = {"gpssl_row": [1, 2], "gpssl_checksum": row_checksums(subject, np.array([1, 2])), name: ["Rose", "iris"]}
    assert gpssl.label(frame, name, labels=pd.DataFrame(keys), n_draws=5).n_labeled == 22


def numbered() -> pd.DataFrame:
    frame = flowers()
    return frame.assign(species=np.where(np.arange(N_ROWS) % 3 == 0, frame["petal"] * 1.7 + 0.25, np.nan))


def test_numbers_are_merged(tmp_path: Path) -> None:
    numbered().to_csv(tmp_path / "flowers.csv", index=False)
    labels_of(tmp_path / "flowers.csv", [1, 2, 4], ["5.5", "0,5", "-1e-1"]).to_csv(tmp_path / "labels.csv", index=False)
    out = tmp_path / "out.csv"
    done("label", tmp_path / "flowers.csv", "--target", "species", "--labels", tmp_path / "labels.csv", "-o", out, *FEW)
    assert pd.read_csv(out)["species"][[1, 2, 4]].tolist() == [5.5, 0.5, -0.1]


def test_numbers_are_written_as_the_table_has_them(tmp_path: Path) -> None:
    """A table with decimal commas has them in the results too, and is read again as it was."""
    table = write(numbered(), "german.csv", tmp_path)
    out = tmp_path / "out.csv"
    gpssl.label(table, "species", labels=labels_of(table, [1, 2, 4], ["5.5", "12345.6789", "3"]), n_draws=5, out=out)
    assert pd.read_csv(out, sep=";", decimal=",")["species"][[1, 2, 4]].tolist() == [5.5, 12345.6789, 3]


def test_parts_of_a_large_table_get_their_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.concat([flowers().assign(copy=number) for number in range(40)], ignore_index=True)
    frame["petal"] += np.arange(len(frame)) * 1e-4
    frame.to_parquet(tmp_path / "flowers.parquet", row_group_size=500)
    places = [1, 499, 500, 1001, 2399]
    labels = labels_of(tmp_path / "flowers.parquet", places)
    monkeypatch.setattr("gpssl.data._table.MEMORY_BYTES", 0)
    gpssl.label(tmp_path / "flowers.parquet", "species", labels=labels, n_draws=5, max_inducing=20, out=tmp_path / "out.csv")
    after = pd.read_csv(tmp_path / "out.csv")["species"]
    assert after[places].tolist() == labels["species"].tolist()
    assert after.notna().sum() == 805 - sum(frame["species"].notna()[places])


def test_a_label_that_is_no_number_gets_a_sentence() -> None:
    frame = numbered()
    with pytest.raises(ValueError, match="the frame of labels has 'tall' for row 2, which is no number: correct it or remove the row"):
        labeled(frame, labels_of(frame, [1, 2], ["5.5", "tall"]))


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.jsonl"])
def test_whole_numbers_as_classes_stay_whole_numbers(name: str, tmp_path: Path) -> None:
    codes = pd.array([None if place % 3 else place % 2 for place in range(N_ROWS)], dtype="Int64")
    flowers().assign(species=codes).to_parquet(tmp_path / "flowers.parquet")
    labels = labels_of(tmp_path / "flowers.parquet", [1, 2], ["1", "0"])
    gpssl.label(tmp_path / "flowers.parquet", "species", labels=labels, n_draws=5, out=tmp_path / name)
    read = {".parquet": pd.read_parquet, ".csv": pd.read_csv, ".jsonl": lambda path: pd.read_json(path, lines=True)}
    after = read[Path(name).suffix](tmp_path / name)["species"]
    assert after[:4].tolist() == [0, 1, 0, 1]
    assert after.notna().sum() == 22


def test_the_next_rows_are_not_those_that_were_labeled(table: Path, tmp_path: Path) -> None:
    places = [place for place in range(N_ROWS) if place % 3 and place not in (7, 8)]
    labels_of(table, places).to_csv(tmp_path / "labels.csv", index=False)
    result = gpssl.next_rows(table, "species", n=2, labels=tmp_path / "labels.csv")
    assert sorted(row.place for row in result.rows) == [7, 8]
    assert "labels" in done("next", table, "--target", "species", "-n", "1", "--labels", tmp_path / "labels.csv")


def test_words_for_no_label_give_way_to_labels(tmp_path: Path) -> None:
    """A cell that says "ask Ann" has no label until Ann gives one."""
    frame = flowers()
    frame["species"] = frame["species"].fillna("ask Ann").replace("Rose", " rose")
    subject = open_subject(frame, Roles("species", unlabeled=["ask Ann"]))
    labels = pd.DataFrame({"row": [1, 2], "checksum": row_checksums(subject, np.array([1, 2])), "species": ["ROSE", "iris"]})
    result = gpssl.label(frame, "species", labels=labels, unlabeled=["ask Ann"], n_draws=5, out=tmp_path / "out.csv")
    assert (result.n_labeled, result.classes) == (22, ["iris", "rose"])
    assert pd.read_csv(tmp_path / "out.csv")["species"][:5].tolist() == ["iris", "rose", "iris", " rose", "ask Ann"]
