"""What commands do, called from Python: paths, data frames and AnnData in, results with the model and the new columns out."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import PoissonRegressor

import gpssl
from command import FEW, as_json, done
from gpssl.cli.compare import compare as compare_command
from gpssl.cli.embed import embed as embed_command
from gpssl.cli.label import label as label_command
from gpssl.cli.transform import transform as transform_command
from gpssl.comparison._rivals import RIVALS, Candidate
from gpssl.report import make_report
from gpssl.workflows._choices import N_COMPONENTS, ChoiceError
from people import two_groups, written

NAMES = {"n_components": "components", "n_draws": "draws", "n_splits": "splits", "random_state": "seed", "model_out": "model"}
"""Parameters and the names that the commands have for them."""


@pytest.mark.parametrize(
    ("function", "command"),
    [
        (gpssl.embed, embed_command),
        (gpssl.transform, transform_command),
        (gpssl.label, label_command),
        (gpssl.compare, compare_command),
    ],
    ids=lambda function: function.__name__,
)
def test_functions_have_the_defaults_of_the_commands(function: Any, command: Any) -> None:
    options = inspect.signature(command).parameters
    for name, parameter in inspect.signature(function).parameters.items():
        if name in ("out", "target_kind"):  # the command needs a file, and says the kind by --numeric and --classes
            continue
        option = options[NAMES.get(name, name)]
        assert option.default == (None if parameter.default == () else parameter.default), name


def test_dimensions_are_told_as_they_are() -> None:
    assert f"by default {N_COMPONENTS['table']}, for tissue {N_COMPONENTS['tissue']}." in str(gpssl.embed.__doc__)


def test_data_frame_gives_what_its_file_gives_and_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = two_groups().set_index(pd.Index([f"row {place}" for place in range(60)]))
    table = written(frame, tmp_path / "things.csv")
    done("label", table, "-t", "kind", "--max-risk", "0.3", "-o", tmp_path / "out.csv", "--only-new", *FEW)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    result = gpssl.label(frame, "kind", max_risk=0.3, n_draws=10)
    assert list((tmp_path / "empty").iterdir()) == []
    assert result.written == []
    new, expected = result.frame(), pd.read_csv(tmp_path / "out.csv")
    assert list(new.index) == list(frame.index)
    assert list(new.columns) == list(expected.columns)
    np.testing.assert_allclose(new["kind_probability"], expected["kind_probability"], rtol=1e-9)
    assert (new["kind_predicted"].isna() == frame["kind"].notna()).all()


def test_path_is_a_table_too(tmp_path: Path) -> None:
    table = written(two_groups(), tmp_path / "things.csv")
    by_path = gpssl.embed(str(table), n_components=2, ignore=["kind"], out=tmp_path / "out.csv")
    assert by_path.written == [tmp_path / "out.csv", tmp_path / "out.gpssl"]
    written_columns = pd.read_csv(tmp_path / "out.csv")[by_path.frame().columns]
    np.testing.assert_allclose(by_path.frame(), written_columns, rtol=1e-12)


def test_model_of_a_result_is_used_without_a_file() -> None:
    frame = two_groups()
    labeled = gpssl.label(frame, "kind", n_draws=10)
    again = gpssl.transform(labeled.model, frame.drop(columns="kind"))
    is_open = frame["kind"].isna()
    assert (again.frame()["kind_predicted"][is_open] == labeled.frame()["kind_predicted"][is_open]).all()
    assert again.target == "kind"
    far = frame.assign(size=900.0)
    assert any("outside of what the model was trained on" in note for note in gpssl.transform(labeled.model, far).notes)


def test_report_of_a_result_is_a_page() -> None:
    frame = two_groups()
    report = make_report(gpssl.label(frame, "kind", n_draws=10).model, frame, rivals=False)
    assert report.written == []
    assert "predicting kind" in report.html()
    assert report.summary[0].startswith("All 36 predictions are kept. Expect 0.0 % errors among all predictions")


def test_report_notes_the_rivals_that_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot_be_made(_contest: Any) -> Any:
        raise ImportError("It needs a package.")

    for name in ("kernel PCA", "VICReg", "GPSSL-mean"):
        monkeypatch.setitem(RIVALS, name, cannot_be_made)
    monkeypatch.setitem(RIVALS, "GP prior", lambda _contest: [Candidate({}, PoissonRegressor(alpha=-1.0))])
    frame = two_groups()
    report = make_report(gpssl.label(frame, "kind", n_draws=5).model, frame)
    assert {"VICReg was left out: It needs a package.", "kernel PCA was left out: It needs a package."} <= set(report.notes)
    assert any(note.startswith("GP prior was left out: ") for note in report.notes)
    assert report.content.risk_coverage is not None
    run = [
        "this model",
        "many representations, weighed by the labels",
        "logistic regression on the columns",
        "a random forest on the columns",
    ]
    assert [curve.name for curve in report.content.risk_coverage.curves][:4] == run
    assert len(report.content.risk_coverage.curves) == 6


def test_model_without_a_card_gets_a_sentence() -> None:
    rows = two_groups()[["size", "weight"]].fillna(0.0)
    with pytest.raises(ValueError, match="has no card"):
        gpssl.transform(gpssl.GPSSL(2).fit(rows), rows)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alike": "rows"}, "alike: 'rows' is neither 'columns' nor 'neighbors'"),
        ({"confidence": 2.0}, "confidence: 2 is no share"),
        ({"max_risk": 0.0}, "max_risk: 0 is no share"),
        ({"target_kind": "klass"}, "target_kind: 'klass' is neither 'class' nor 'number'"),
        ({"keep": "size"}, r"keep: 'size' is a text, not a list of names: write keep=\['size'\]"),
        ({"ignore": "size"}, r"write ignore=\['size'\]"),
    ],
)
def test_wrong_choices_name_the_parameter(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ChoiceError, match=words):
        gpssl.label(two_groups(), "kind", **options)


@pytest.mark.parametrize("n_components", [0, -1, 2.5])
def test_wrong_number_of_dimensions_gets_a_sentence(n_components: Any) -> None:
    with pytest.raises(ValueError, match=f"n_components must be a whole number of at least 1, got {n_components}"):
        gpssl.embed(two_groups(), n_components=n_components)


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (lambda frame: frame, {"target": "kin"}, "The table has no column 'kin'; did you mean 'kind'"),
        (lambda frame: frame, {"ignore": ["siz"]}, "The table has no column 'siz'; did you mean 'size'"),
        (lambda frame: frame.iloc[:0], {}, "The table has names of columns, but no rows"),
        (lambda frame: frame[["kind"]], {}, "The table has no column to learn from in its 60 .*holds the target alone"),
        (lambda frame: frame, {"target_kind": "number"}, "The target 'kind' of the table holds text"),
        (lambda frame: frame.assign(size=[1, "a"] * 30), {}, "The table cannot be read: .*column size.* values of one type"),
        (lambda frame: frame.assign(size=1j), {}, "The table cannot be read: .*column size.* values of one type"),
        (lambda frame: frame.assign(size=np.arange(60).astype(">f8")), {}, "The table cannot be read: .*column size.* values of one type"),
        (lambda frame: frame.set_axis(["kind"] * frame.shape[1], axis=1), {}, "Several columns are called 'kind'"),
    ],
)
def test_errors_about_a_data_frame_call_it_the_table(change: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        gpssl.label(change(two_groups()), **{"target": "kind", **options})
    assert "table.arrow" not in str(caught.value)


def test_what_is_no_table_gets_a_sentence() -> None:
    with pytest.raises(TypeError, match="a path, a pandas data frame or AnnData, got ndarray"):
        gpssl.embed(np.ones((3, 2)))


def test_notes_are_part_of_an_error() -> None:
    with pytest.raises(ValueError, match="lower n_components") as caught:
        gpssl.embed(two_groups(), n_components=500)
    assert any("looks like an ID" in note for note in caught.value.__notes__)


def test_json_of_a_command_has_no_model(tmp_path: Path) -> None:
    table = written(two_groups(), tmp_path / "things.csv")
    result = as_json("label", table, "-t", "kind", "-o", tmp_path / "out.csv", *FEW)
    assert not {"model", "new_columns"} & set(result)
    assert result["written"] == [str(tmp_path / "out.csv"), str(tmp_path / "out.gpssl")]


def test_tissue_in_memory_keeps_its_names() -> None:
    from experiments.simulation import simulate, simulate_reference
    from gpssl import spatial

    adata = simulate(simulate_reference(), shape=(8, 8), random_state=0)
    result = gpssl.embed(adata, n_components=2)
    assert list(result.frame().index) == list(adata.obs_names)
    assert result.model.card_.notes["kind"] == "tissue"
    spatial.embed(adata, n_components=2)
    np.testing.assert_allclose(result.frame()[["gpssl_1", "gpssl_2"]], adata.obsm["X_gpssl"], atol=1e-8)


@pytest.mark.parametrize("is_view", [False, True])
def test_tissue_in_memory_is_left_as_it_is(is_view: bool, tmp_path: Path) -> None:
    import anndata

    from experiments.simulation import simulate, simulate_reference
    from gpssl import spatial

    adata = simulate(simulate_reference(), shape=(8, 8), cells_per_spot=30, random_state=0)
    adata.obs["known"] = adata.obs["cell_type"].where(adata.obs["purity"] > 0.5)
    adata.raw = adata
    spatial.embed(adata, n_components=3)
    spatial.composition(adata, "known", n_draws=5)
    adata = adata[:60] if is_view else adata
    before = adata.copy()
    gpssl.compare(adata, "known", n_splits=2, n_draws=5)
    gpssl.label(adata, "known", n_draws=5, out=tmp_path / "labeled.h5ad")
    gpssl.embed(adata, n_components=2)
    assert adata.is_view == is_view
    assert "gpssl_label" in adata.obs
    assert adata.obsm["X_gpssl"].shape[1] == 3
    for name in ("obs", "var"):
        pd.testing.assert_frame_equal(getattr(adata, name), getattr(before, name))
    for name in ("uns", "obsm", "varm", "layers"):
        assert set(getattr(adata, name)) == set(getattr(before, name))
    np.testing.assert_array_equal(adata.obsm["X_gpssl"], before.obsm["X_gpssl"])
    np.testing.assert_array_equal(adata.X.toarray(), before.X.toarray())
    found = anndata.read_h5ad(tmp_path / "labeled.h5ad")
    assert {"known_predicted", "known_probability"} <= set(found.obs)
    assert found.raw.shape == adata.raw.shape
