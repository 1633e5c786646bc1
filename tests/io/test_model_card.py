"""Cards: what a model was trained on, and warnings about rows that are unlike it."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import gpssl
from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor
from gpssl.baselines import GPPrior
from gpssl.data._frames import ColumnFacts
from gpssl.io import ModelCard, OutsideTrainingRangeWarning, facts_of_rows
from gpssl.kernels import SpectrumKernel, for_table
from kinds_of_rows import KINDS

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (60, 2))
Y = (X[:, 0] > 0.5).astype(int)
INSIDE, OUTSIDE = np.full((3, 2), 0.5), np.array([[0.5, 0.5], [7.0, 0.5], [0.5, -1.0]])
LOW, HIGH = X.min(axis=0), X.max(axis=0)


def small(**parameters: Any) -> GPSSL:
    return GPSSL(2, max_inducing=12, residual_tolerance=0.9, random_state=0, **parameters)


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [20.0, 40.0, None, 90.0],
            "height": [150, 160, 170, 180],
            "married": [True, False, True, False],
            "born": pd.to_datetime(["1990-01-01", "2000-01-01", "1980-06-01", None]),
            "town": ["Ulm", None, "Bern", "Ulm"],
            "grade": pd.Categorical(["low", "high", "low", "low"], ["low", "middle", "high"], ordered=True),
        }
    )


def loaded(model: Any, folder: Path, trained_on: Any = X, **more: Any) -> Any:
    gpssl.save(model, folder / "model.gpssl", trained_on=trained_on, **more)
    return gpssl.load(folder / "model.gpssl")


def card(columns: Any) -> ModelCard:
    return ModelCard("GPSSL", "2026-01-01T00:00:00+00:00", {}, columns=facts_of_rows(columns))


# Facts


def test_facts_of_a_data_frame() -> None:
    facts = facts_of_rows(frame())
    assert facts == (
        ColumnFacts("age", "number", "float64", 1, 20.0, 90.0, None),
        ColumnFacts("height", "number", "int64", 0, 150.0, 180.0, None),
        ColumnFacts("married", "boolean", "bool", 0, 0.0, 1.0, None),
        ColumnFacts("born", "date", "datetime64[ns]", 1, 328665600.0, 946684800.0, None),
        ColumnFacts("town", "category", "object", 1, None, None, ("Bern", "Ulm")),
        ColumnFacts("grade", "category", "category", 0, None, None, ("high", "low")),
    )
    assert all(type(end) is float for one in facts or () for end in (one.minimum, one.maximum) if end is not None)


def test_facts_of_polars_and_of_nullable_columns_are_those_of_pandas() -> None:
    expected = [(one.kind, one.n_missing, one.minimum, one.maximum, one.levels) for one in facts_of_rows(frame()) or ()]
    for other in (pl.from_pandas(frame()), frame().convert_dtypes()):
        assert [(one.kind, one.n_missing, one.minimum, one.maximum, one.levels) for one in facts_of_rows(other) or ()] == expected


def test_facts_of_arrays_and_of_what_is_no_table() -> None:
    assert facts_of_rows(X) == facts_of_rows(csr_array(X)) == facts_of_rows(X.tolist())
    assert [one.name for one in facts_of_rows(X) or ()] == ["x0", "x1"]
    assert facts_of_rows(["text", "more text"]) is None
    assert facts_of_rows([object(), object()]) is None
    for rows in (KINDS["WeisfeilerLehmanKernel"].training, [[{(0, 1)}, {0: "C"}]] * 2, [[1.0], [1.0, 2.0]], []):
        assert facts_of_rows(rows) is None
    assert facts_of_rows(np.zeros((2, 10_001))) is None
    empty = facts_of_rows(pd.DataFrame({"a": [np.nan, np.nan], "b": [None, None]}))
    assert [(one.minimum, one.levels, one.n_missing) for one in empty or ()] == [(None, None, 2), (None, (), 2)]
    many = facts_of_rows(pd.DataFrame({"id": [f"a{i}" for i in range(1001)]}))
    assert [one.levels for one in many or ()] == [None]
    with pytest.raises(TypeError, match="rows in memory"):
        facts_of_rows("rows.parquet")


# Departures


def test_departures_say_which_column_and_how_many_rows() -> None:
    new = pd.DataFrame(
        {
            "grade": ["middle", "low", "awful"],
            "town": ["Ulm", "Rome", None],
            "born": pd.to_datetime(["2030-05-01", "1990-01-01", None]),
            "married": [1.0, np.nan, 0.0],
            "height": [10, 1000, 2000],
            "age": [None, 50.0, 20.0],
            "unrelated": [1, 2, 3],
        }
    )
    assert card(frame()).departures(new) == [
        "'height': of 3 rows, 1 below 150, the least in training (down to 10); 2 above 180, the most in training (up to 2000).",
        "'married': of 3 rows, 1 missing, where none was in training.",
        "'born': of 3 rows, 1 above 2000-01-01 00:00:00, the most in training (up to 2030-05-01 00:00:00).",
        "'town': of 3 rows, 1 with levels that training did not have ('Rome').",
        "'grade': of 3 rows, 2 with levels that training did not have ('awful', 'middle').",
    ]
    assert card(frame()).departures(frame()) == []


def test_departures_of_other_forms_of_the_same_rows() -> None:
    of_array = card(X)
    assert of_array.departures(INSIDE) == []
    expected = of_array.departures(OUTSIDE)
    assert [sentence[:4] for sentence in expected] == ["'x0'", "'x1'"]
    for same in (OUTSIDE.tolist(), OUTSIDE.astype(object), pd.DataFrame(OUTSIDE, columns=["a", "b"]), csr_array(OUTSIDE)):
        assert of_array.departures(same) == expected
    named = card(pd.DataFrame(X, columns=["a", "b"]))
    assert [sentence[:3] for sentence in named.departures(OUTSIDE)] == ["'a'", "'b'"]
    assert named.departures(pd.DataFrame(OUTSIDE[:, ::-1], columns=["b", "a"])) == named.departures(OUTSIDE)
    for nothing in (OUTSIDE[:, :1], np.empty((0, 2)), ["text"], "file.parquet", da.from_array(OUTSIDE)):
        assert of_array.departures(nothing) == []


def test_text_where_numbers_were_and_numbers_where_levels_were() -> None:
    of_mixed = card(pd.DataFrame({"size": [1.0, 2.0], "code": pd.Categorical([1, 2])}))
    assert of_mixed.departures(pd.DataFrame({"size": ["big", "2"], "code": [1.0, 2.0]})) == [
        "'size': of 2 rows, 2 hold text, where training had a number."
    ]
    assert of_mixed.departures(pd.DataFrame({"size": [1.5], "code": [3]})) == [
        "'code': of 1 rows, 1 with levels that training did not have ('3')."
    ]


def test_card_without_columns_departs_from_nothing() -> None:
    assert ModelCard("GPSSL", "", {}).departures(OUTSIDE) == []


# Warnings


def how_often(call: Any, *rows: Any) -> int:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call(*rows)
    assert {one.category for one in told} <= {OutsideTrainingRangeWarning}
    return len(told)


def test_every_use_warns_once(tmp_path: Path) -> None:
    model = loaded(small().fit(X), tmp_path)
    functions = model.draw_functions(2)
    for use in (model.transform, model.std, model.sample, model.score, functions, functions.one_row_at_a_time):
        assert how_often(use, INSIDE) == how_often(use, X) == 0
        assert how_often(use, OUTSIDE) == 1
    with pytest.warns(OutsideTrainingRangeWarning, match=r"'x0': of 3 rows, 1 above .*'x1': of 3 rows, 1 below"):
        model.transform(OUTSIDE)


@pytest.mark.parametrize("n_draws", [3, None])
def test_predictions_warn_once_however_many_blocks_they_are_made_in(n_draws: int | None, tmp_path: Path) -> None:
    many = np.tile(OUTSIDE, (1000, 1))
    classifier = loaded(MarginalizedClassifier(small(), n_draws=n_draws, random_state=0).fit(X, Y), tmp_path)
    for use in (classifier.predict, classifier.predict_proba, classifier.predict_proba_std, classifier.predict_uncertainty):
        assert how_often(use, many) == how_often(use, OUTSIDE) == 1
        assert how_often(use, INSIDE) == 0
    regressor = loaded(MarginalizedRegressor(small(), n_draws=n_draws).fit(X, X[:, 0]), tmp_path)
    for use in (regressor.predict, regressor.predict_interval, regressor.predict_std):
        assert how_often(use, many) == 1
    assert how_often(classifier.representation_.transform, OUTSIDE) == 1
    if n_draws:
        assert how_often(classifier.functions_, OUTSIDE) == how_often(classifier.functions_.one_row_at_a_time, OUTSIDE) == 1


def test_prior_and_frozen_representations_warn_too(tmp_path: Path) -> None:
    prior = loaded(GPPrior(2, max_inducing=5, random_state=0).fit(X), tmp_path)
    for use in (prior.transform, prior.std, prior.sample):
        assert how_often(use, OUTSIDE) == 1
    frozen = loaded(MarginalizedClassifier(FrozenEstimator(small().fit(X)), n_draws=2).fit(X, Y), tmp_path)
    assert how_often(frozen.predict, OUTSIDE) == how_often(frozen.representation_.transform, OUTSIDE) == 1


def test_rows_read_part_by_part_are_not_compared(tmp_path: Path) -> None:
    model = loaded(small().fit(X), tmp_path)
    assert how_often(model.transform, da.from_array(OUTSIDE)) == 0


def test_rows_that_do_not_fit_get_their_error_first(tmp_path: Path) -> None:
    model = loaded(small().fit(X), tmp_path)
    with pytest.raises(ValueError, match="2 features"):
        model.transform(np.full((3, 5), 99.0))


def test_warning_of_many_columns_names_a_few(tmp_path: Path) -> None:
    wide = RNG.uniform(0, 1, (30, 9))
    model = loaded(small().fit(wide), tmp_path, wide)
    with pytest.warns(OutsideTrainingRangeWarning, match=r"'x4'.* And 4 more columns\.$"):
        model.transform(wide + 5)


def test_card_is_forgotten_when_the_model_learns_from_other_rows(tmp_path: Path) -> None:
    model = loaded(small().fit(X), tmp_path)
    assert not hasattr(clone(model), "card_")
    assert model.refit(temperature=0.1).card_ == model.card_
    assert how_often(model.partial_fit, OUTSIDE) == 0
    assert not hasattr(model, "card_")
    again = gpssl.load(tmp_path / "model.gpssl")
    assert not hasattr(again.fit(X), "card_")
    classifier = loaded(MarginalizedClassifier(small(), n_draws=2).fit(X, Y), tmp_path)
    assert not hasattr(classifier.fit(X, Y), "card_")
    assert not hasattr(classifier.representation_, "card_")
    prior = loaded(GPPrior(2, max_inducing=5).fit(X), tmp_path)
    assert not hasattr(prior.fit(X), "card_")


def test_mixed_frame_of_a_classifier(tmp_path: Path) -> None:
    rows = pd.DataFrame({"size": RNG.uniform(0, 1, 40), "town": ["Ulm", "Bern"] * 20})
    model = MarginalizedClassifier(small(kernel=for_table(rows)), n_draws=2, random_state=0).fit(rows, np.arange(40) % 2)
    model = loaded(model, tmp_path, rows)
    assert how_often(model.predict, rows) == 0
    with pytest.warns(OutsideTrainingRangeWarning, match="'Rome'"):
        model.predict(pd.DataFrame({"town": ["Rome"], "size": [0.5]})[["size", "town"]])


# What a card says


def test_card_comes_back_and_can_be_read_alone(tmp_path: Path) -> None:
    model = MarginalizedClassifier(small(), n_draws=4, random_state=7).fit(X, np.where(Y == 1, "yes", "no"))
    before = datetime.now(UTC).replace(microsecond=0)
    gpssl.save(model, tmp_path / "model.gpssl", trained_on=X, notes={"target": "answer", "accuracy": [0.5, 1 / 3]})
    read = gpssl.read_card(tmp_path / "model.gpssl")
    assert read == gpssl.load(tmp_path / "model.gpssl").card_
    assert read.model == "MarginalizedClassifier"
    assert before <= datetime.fromisoformat(read.created) <= datetime.now(UTC)
    assert read.versions["gpssl"] == gpssl.__version__
    assert set(read.versions) == {"python", "gpssl", "numpy", "scipy", "scikit-learn"}
    assert read.n_rows == 60
    assert read.columns == facts_of_rows(X)
    assert read.notes == {"target": "answer", "accuracy": [0.5, 1 / 3]}
    assert {"n_draws": 4, "random_state": 7, "classes": ["no", "yes"], "labeled rows": 60}.items() <= read.settings.items()
    assert read.settings["representation"].startswith("GPSSL(max_inducing=12")
    assert read.settings["residual"] == model.representation_.residual_


def test_settings_of_a_representation(tmp_path: Path) -> None:
    model = small(inducing=X[:7], temperature=0.25).fit(X)
    settings = loaded(model, tmp_path).card_.settings
    assert settings["temperature"] == settings["temperature as used"] == 0.25
    assert settings["inducing"] == "array of shape [7, 2]"
    assert settings["inducing points"] == 7
    assert settings["directions"] == len(model.eigenvalues_)


def test_columns_may_come_as_facts_and_stay_when_saved_again(tmp_path: Path) -> None:
    facts = [ColumnFacts("a", "number", "float64", 0, 0.0, 1.0, None), ColumnFacts("b", "boolean", "float64", 0, 0.0, 1.0, None)]
    model = loaded(small().fit(X), tmp_path, facts, notes={"by": "me"})
    assert model.card_.columns == tuple(facts)
    assert model.card_.n_rows == 60  # as the moments have it
    again = loaded(model, tmp_path, None)
    assert (again.card_.columns, again.card_.notes, again.card_.n_rows) == (tuple(facts), {"by": "me"}, 60)
    refitted = loaded(model.refit(n_components=1), tmp_path, None)
    assert refitted.card_.columns == tuple(facts)
    assert refitted.card_.settings["n_components"] == 1


def test_rows_with_other_columns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="trained_on has 1 columns, but the model was fitted to 2"):
        gpssl.save(small().fit(X), tmp_path / "model.gpssl", trained_on=X[:, :1])


def test_rows_that_are_no_table_have_a_card_without_columns(tmp_path: Path) -> None:
    texts = ["".join(RNG.choice(list("abc"), 8)) for _ in range(30)]
    model = loaded(small(kernel=SpectrumKernel(2)).fit(texts), tmp_path, texts)
    assert (model.card_.n_rows, model.card_.columns) == (30, None)
    assert how_often(model.transform, ["zzzz"]) == 0


@pytest.mark.parametrize("notes", [{"x": np.nan}, {"x": object()}, [1], "text"], ids=["NaN", "an object", "a list", "text"])
def test_notes_that_json_cannot_hold_are_refused(notes: Any, tmp_path: Path) -> None:
    with pytest.raises((TypeError, ValueError), match="notes must be"):
        gpssl.save(small().fit(X), tmp_path / "model.gpssl", notes=notes)
    assert list(tmp_path.iterdir()) == []
