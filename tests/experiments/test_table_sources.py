"""Tables of the experiments: counts as documented, the same from a folder and OpenML, a sentence where there is neither. No network."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.utils import Bunch

from experiments.data import places, sources
from experiments.data.tables import (
    CLASSIFICATION_TABLES,
    load_classification,
    load_dermatology,
    load_ecoli,
    load_mice_protein,
    load_regression,
)

Array = NDArray[np.float64]

has_data = (Path(os.environ.get("GPSSL_DATA", "")) / "uci_ecoli" / "ecoli.data").is_file()
needs_data = pytest.mark.skipif(not has_data, reason="GPSSL_DATA names no folder with the tables")


class Shop:
    """Stands for OpenML: gives what it has, and refuses the rest."""

    def __init__(self) -> None:
        self.bunch: Bunch | None = None
        self.error: Exception = AssertionError("a test reached for the network")
        self.asked: list[dict[str, Any]] = []

    def fetch(self, **parameters: Any) -> Bunch:
        self.asked.append(parameters)
        if self.bunch is None:
            raise self.error
        return self.bunch


@pytest.fixture(autouse=True)
def openml(monkeypatch: pytest.MonkeyPatch) -> Shop:
    """In every test of this file, so that none touches the network."""
    shop = Shop()
    monkeypatch.setattr(sources, "fetch_openml", shop.fetch)
    return shop


@pytest.fixture
def no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPSSL_DATA", raising=False)


# From the folder


@needs_data
@pytest.mark.parametrize(
    ("name", "shape", "n_missing", "counts"),
    [
        ("breast_cancer", (569, 30), 0, {"benign": 357, "malignant": 212}),
        (
            "dermatology",
            (366, 34),
            8,
            {
                "psoriasis": 112,
                "seboreic dermatitis": 61,
                "lichen planus": 72,
                "pityriasis rosea": 49,
                "cronic dermatitis": 52,
                "pityriasis rubra pilaris": 20,
            },
        ),
        ("ecoli", (336, 7), 0, {"cp": 143, "im": 77, "pp": 52, "imU": 35, "om": 20, "omL": 5, "imL": 2, "imS": 2}),
        (
            "mice_protein",
            (1080, 77),
            1396,
            {
                "c-CS-m": 150,
                "c-SC-m": 150,
                "c-CS-s": 135,
                "c-SC-s": 135,
                "t-CS-m": 135,
                "t-SC-m": 135,
                "t-SC-s": 135,
                "t-CS-s": 105,
            },
        ),
    ],
)
def test_classes_and_missing_values(name: str, shape: tuple[int, int], n_missing: int, counts: dict[str, int]) -> None:
    table = load_classification(name)
    assert table.name == name
    assert table.X.shape == shape
    assert table.X.dtype == np.float64
    assert len(table.columns) == shape[1]
    assert table.n_missing == n_missing
    assert Counter(table.y.tolist()) == counts


@needs_data
@pytest.mark.parametrize(
    ("name", "shape", "target_range"),
    [
        ("concrete", (1030, 8), (2.33, 82.6)),
        ("energy", (768, 8), (6.01, 43.1)),
        ("wine-quality-red", (1599, 11), (3, 8)),
        ("power-plant", (9568, 4), (420.26, 495.76)),
        ("boston", (506, 13), (5, 50)),
        ("kin8nm", (8192, 8), (0.04, 1.46)),
        ("naval", (11934, 16), (0.95, 1.0)),
        ("protein", (45730, 9), (0, 21)),
        ("airfoil", (1503, 5), (103.38, 140.99)),
    ],
)
def test_targets(name: str, shape: tuple[int, int], target_range: tuple[float, float]) -> None:
    table = load_regression(name)
    assert table.X.shape == shape
    assert table.X.dtype == table.y.dtype == np.float64
    assert len(table.columns) == len(set(table.columns)) == shape[1]
    assert table.n_missing == 0
    np.testing.assert_allclose((table.y.min(), table.y.max()), target_range, rtol=0.001, atol=0.01)


@needs_data
def test_dermatology_has_an_age_last() -> None:
    table = load_dermatology()
    assert table.columns[-1] == "age"
    assert np.isnan(table.X[:, -1]).sum() == 8
    assert np.nanmax(table.X[:, -1]) == 75
    assert set(np.unique(table.X[:, :-1])) == {0, 1, 2, 3}
    assert set(np.unique(table.X[:, table.columns.index("family history")])) == {0, 1}


@needs_data
def test_replicates_of_a_mouse_are_a_group() -> None:
    table = load_mice_protein()
    assert table.groups is not None
    assert table.groups[0] == "309"
    assert set(Counter(table.groups.tolist()).values()) == {15}
    assert len(set(table.groups.tolist())) == 72
    assert len(set(zip(table.groups.tolist(), table.y.tolist(), strict=True))) == 72
    assert table.columns[0] == "DYRK1A_N"
    assert table.columns[-1] == "CaNA_N"


@needs_data
def test_columns_of_the_mice_are_the_file_s() -> None:
    header = (Path(os.environ["GPSSL_DATA"]) / places.MICE_PROTEIN.file).read_text("utf-8-sig").splitlines()[0].split(",")
    assert tuple(header[1:78]) == places.MICE_PROTEIN.columns


def test_cells_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "uci_ecoli").mkdir()
    line = "AAT_ECOLI   0.49  0.29  0.48  0.50  0.56  0.24  0.35   cp\n"
    (tmp_path / "uci_ecoli" / "ecoli.data").write_text(line + "\n" + line.replace("cp", "im").replace("0.29", "?"))
    monkeypatch.setenv("GPSSL_DATA", str(tmp_path))
    table = load_ecoli()
    np.testing.assert_array_equal(table.X, [[0.49, 0.29, 0.48, 0.5, 0.56, 0.24, 0.35], [0.49, np.nan, 0.48, 0.5, 0.56, 0.24, 0.35]])
    assert table.y.tolist() == ["cp", "im"]
    assert table.n_missing == 1


# From OpenML


def as_openml_has_it(X: Array, y: NDArray[Any], names: tuple[str, ...], choices: dict[str, list[str]] | None = None) -> Bunch:
    """A table as `fetch_openml(as_frame=False, parser="liac-arff")` returns it: of a choice among few values, the number of the place."""
    data = X.copy()
    for name, values in (choices or {}).items():
        column = X[:, names.index(name)]
        data[:, names.index(name)] = [np.nan if np.isnan(value) else [float(v) for v in values].index(value) for value in column]
    return Bunch(data=data, target=y, feature_names=list(names), categories=dict(choices or {}))


@pytest.mark.usefixtures("no_folder")
def test_openml_is_asked_for_arrays_without_pandas(openml: Shop) -> None:
    openml.bunch = as_openml_has_it(np.full((2, 7), 0.5), np.array(["cp", "im"], dtype=object), places.ECOLI.columns)
    table = load_ecoli()
    assert table.y.tolist() == ["cp", "im"]
    assert table.y.dtype.kind == "U"
    (asked,) = openml.asked
    assert (asked["data_id"], asked["as_frame"], asked["parser"]) == (39, False, "liac-arff")


@pytest.mark.usefixtures("no_folder")
def test_choices_of_openml_are_decoded(openml: Shop) -> None:
    X = np.tile([[0.0], [3.0], [1.0]], 34)
    X[1, 33] = np.nan
    choices = {name: ["3", "1", "0", "2"] for name in places.DERMATOLOGY.columns[:33]}
    openml.bunch = as_openml_has_it(X, np.array(["6", "1", "2"], dtype=object), places.DERMATOLOGY.columns, choices)
    table = load_dermatology()
    np.testing.assert_array_equal(table.X, X)
    assert table.y.tolist() == ["pityriasis rubra pilaris", "psoriasis", "seboreic dermatitis"]


@pytest.mark.usefixtures("no_folder")
def test_a_second_target_and_constant_columns_of_openml(openml: Shop) -> None:
    names = places.REGRESSION_SOURCES["naval"].columns
    X = np.random.default_rng(0).random((5, 16))
    X[:, [8, 11]] = 288.0, 0.998
    kept = [position for position in range(16) if position not in (8, 11)]
    columns = (*(names[position] for position in kept), "gt_turbine_decay_state_coefficient")
    openml.bunch = as_openml_has_it(np.column_stack([X[:, kept], np.ones(5)]), np.arange(5.0), columns)
    np.testing.assert_array_equal(load_regression("naval").X, X)
    openml.bunch = as_openml_has_it(X, np.arange(5.0), names)
    np.testing.assert_array_equal(load_regression("naval").X, X)


@pytest.mark.usefixtures("no_folder")
def test_other_columns_than_expected_get_a_sentence(openml: Shop) -> None:
    openml.bunch = as_openml_has_it(np.zeros((4, 3)), np.zeros(4), ("a", "b", "c"))
    with pytest.raises(ValueError, match="data set 44959 has 3 columns where 8 were expected"):
        load_regression("concrete")


@pytest.mark.usefixtures("no_folder")
def test_rows_of_mice_in_another_order_get_a_sentence(openml: Shop) -> None:
    labels = np.array(["c-CS-m", "t-CS-m"] * 540, dtype=object)
    openml.bunch = as_openml_has_it(np.zeros((1080, 77)), labels, places.MICE_PROTEIN.columns)
    with pytest.raises(ValueError, match="not known which mouse a row is of"):
        load_mice_protein()


@needs_data
@pytest.mark.parametrize("name", [*CLASSIFICATION_TABLES[1:], *(name for name in places.REGRESSION_SOURCES if name != "power-plant")])
def test_both_ways_give_the_same_table(name: str, openml: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    load = load_classification if name in CLASSIFICATION_TABLES else load_regression
    table = load(name)
    numbers = {disease: number for number, disease in places.DISEASES.items()}
    y = np.array([numbers.get(label, label) for label in table.y.tolist()], dtype=object if name in CLASSIFICATION_TABLES else np.float64)
    openml.bunch = as_openml_has_it(table.X, y, table.columns)
    monkeypatch.delenv("GPSSL_DATA")
    again = load(name)
    assert len(openml.asked) == 1
    np.testing.assert_array_equal(again.X, table.X)
    np.testing.assert_array_equal(again.y, table.y)
    assert again.y.dtype == table.y.dtype
    assert again.columns == table.columns
    np.testing.assert_array_equal(np.array(again.groups), np.array(table.groups))


# From nowhere


@pytest.mark.parametrize(
    "error", [URLError("no route"), HTTPError("url", 503, "busy", Message(), None), TimeoutError("slow")], ids=lambda e: type(e).__name__
)
@pytest.mark.usefixtures("no_folder")
def test_neither_folder_nor_network_gets_a_sentence(error: Exception, openml: Shop) -> None:
    openml.error = error
    sentence = (
        r"set GPSSL_DATA to a folder that has uci_ecoli/ecoli\.data, or connect to the internet once so that scikit-learn can fetch "
        r"OpenML's data set 39"
    )
    with pytest.raises(FileNotFoundError, match=sentence):
        load_ecoli()


def test_a_folder_without_the_file_is_no_folder(openml: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPSSL_DATA", str(tmp_path))
    openml.error = URLError("no route")
    with pytest.raises(FileNotFoundError, match="set GPSSL_DATA to a folder that has uci_dermatology"):
        load_dermatology()
    assert len(openml.asked) == 1


@pytest.mark.usefixtures("no_folder")
def test_a_table_without_a_copy_on_openml(openml: Shop) -> None:
    with pytest.raises(FileNotFoundError, match=r"has uci_regression/power-plant\.txt\. No copy on OpenML is known"):
        load_regression("power-plant")
    assert not openml.asked


def test_names_that_are_none_get_a_sentence() -> None:
    with pytest.raises(ValueError, match="no table 'iris'; the names are breast_cancer, dermatology, ecoli, mice_protein"):
        load_classification("iris")
    with pytest.raises(ValueError, match="no table 'yacht'; the names are diabetes, concrete, energy, wine-quality-red"):
        load_regression("yacht")


def test_diabetes_comes_with_scikit_learn() -> None:
    table = load_regression("diabetes")
    assert (table.X.shape, table.y.dtype.kind, table.columns[:3]) == ((442, 10), "f", ("age", "sex", "bmi"))
    assert table.X[:, 0].max() == 79.0  # in years, not scaled


BROKEN = {
    "short row": (b"A 1 2 3 4 5 6 7 cp\nB 1 2\n", "row 2 has 3 cells, the first has 9"),
    "few columns": (b"A 1 2 cp\n", "4 cells in a row where at least 9 are expected"),
    "empty": (b"", "has no rows"),
    "words": (b"A 1 2 x 4 5 6 7 cp\n", "cells that are no numbers"),
    "bytes": (b"\xff\xfe\xff", "cannot be read"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_file_gets_a_sentence_that_names_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, sentence = BROKEN[name]
    (tmp_path / "uci_ecoli").mkdir()
    (tmp_path / "uci_ecoli" / "ecoli.data").write_bytes(content)
    monkeypatch.setenv("GPSSL_DATA", str(tmp_path))
    with pytest.raises(sources.BrokenTableError, match=rf"ecoli\.data.*{sentence}.*Restore the file"):
        load_ecoli()


def test_compressed_file_that_was_cut_off_gets_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "uci_regression").mkdir()
    (tmp_path / "uci_regression" / "kin8nm.txt.gz").write_bytes(gzip.compress(b"1 2 3\n" * 1000)[:-10])
    monkeypatch.setenv("GPSSL_DATA", str(tmp_path))
    with pytest.raises(sources.BrokenTableError, match=r"kin8nm.*cannot be read"):
        load_regression("kin8nm")
