"""Tables with free text, from the command and from Python: messages are labeled, embedded and stored by their words."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import gpssl
from command import as_json, done
from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor, RepresentationPool
from gpssl.kernels import for_table
from messages import messages

N = 160


def partly_labeled(frame: pd.DataFrame, n_labels: int = 24) -> pd.DataFrame:
    return frame.assign(label=frame["label"].where(np.arange(len(frame)) < n_labels))


def mixed(n: int = N) -> pd.DataFrame:
    """Return messages with a number, a category, a date and gaps: the label is whether the message sells and the sender is new."""
    rng = np.random.default_rng(1)
    frame = messages(n)
    age = rng.normal(size=n)
    sells = frame["label"] == "spam"
    day = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D")
    return frame.assign(
        label=np.where(sells == (age > 0), "yes", "no"),
        age=np.where(rng.random(n) < 0.05, np.nan, age),
        channel=rng.choice(["mail", "phone", "post"], n),
        day=day,
        message=frame["message"].where(rng.random(n) > 0.05),
    )


def errors(predicted: Any, truth: Any, is_open: NDArray[np.bool_]) -> float:
    return float((np.asarray(predicted)[is_open] != np.asarray(truth)[is_open]).mean())


def test_messages_are_labeled_from_the_command(tmp_path: Path) -> None:
    truth = messages(N)
    partly_labeled(truth).to_csv(tmp_path / "sms.csv", index=False)
    printed = done("label", tmp_path / "sms.csv", "--target", "label", "-o", tmp_path / "out.csv")
    assert "Free text, compared by its words: 'message'." in printed
    found = pd.read_csv(tmp_path / "out.csv")
    assert list(found["message"]) == list(truth["message"])
    assert errors(found["label_predicted"], truth["label"], found["label"].isna().to_numpy()) <= 0.05

    # The model is stored with its words, and predicts other messages in a file.
    assert "free text" in done("info", tmp_path / "out.gpssl")
    messages(50, seed=7).drop(columns="label").to_csv(tmp_path / "new.csv", index=False)
    done("transform", tmp_path / "out.gpssl", tmp_path / "new.csv", "-o", tmp_path / "new_out.csv")
    new = pd.read_csv(tmp_path / "new_out.csv")
    assert errors(new["label_predicted"], messages(50, seed=7)["label"], np.ones(50, dtype=bool)) <= 0.1


def test_messages_have_a_map(tmp_path: Path) -> None:
    messages(N).drop(columns="label").assign(number=np.random.default_rng(0).normal(size=N)).to_csv(tmp_path / "sms.csv", index=False)
    found = as_json("embed", tmp_path / "sms.csv", "--components", "2", "-o", tmp_path / "out.csv")
    assert found["columns"] == ["message", "number"]
    Z = pd.read_csv(tmp_path / "out.csv")[["gpssl_1", "gpssl_2"]].to_numpy()
    sells = (messages(N)["label"] == "spam").to_numpy()
    nearer = np.linalg.norm(Z - Z[sells].mean(axis=0), axis=1) < np.linalg.norm(Z - Z[~sells].mean(axis=0), axis=1)
    assert (nearer == sells).mean() > 0.9  # the text counts
    fit = np.linalg.lstsq(np.column_stack([Z, np.ones(N)]), pd.read_csv(tmp_path / "out.csv")["number"], rcond=None)
    assert fit[1][0] < 0.9 * N  # and so does the number


def test_text_and_other_columns_are_learned_from_together() -> None:
    frame = mixed()
    result = gpssl.label(partly_labeled(frame, 80), "label")
    is_open = np.arange(N) >= 80
    assert errors(result.frame()["label_predicted"], frame["label"], is_open) < 0.3  # one of them alone tells nothing
    assert any("words" in member.name and "similar rows" in member.name for member in result.members)


def test_what_does_not_fit_in_memory_gets_the_same_predictions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = partly_labeled(messages(N), 30).assign(number=np.random.default_rng(0).normal(size=N))
    table.to_csv(tmp_path / "table.csv", index=False)
    whole = gpssl.label(tmp_path / "table.csv", "label").frame()
    monkeypatch.setattr("gpssl.data._table.MEMORY_BYTES", 0)
    in_parts = gpssl.label(tmp_path / "table.csv", "label").frame()
    pd.testing.assert_frame_equal(in_parts, whole, atol=1e-4, rtol=1e-4)
    embedded = gpssl.embed(tmp_path / "table.csv", n_components=2, ignore=["label"]).frame()
    monkeypatch.undo()
    expected = gpssl.embed(tmp_path / "table.csv", n_components=2, ignore=["label"]).frame()
    pd.testing.assert_frame_equal(embedded, expected, atol=1e-3, rtol=1e-3)


# Data frames in estimators


@pytest.mark.filterwarnings("ignore:.*inducing points leave")
def test_data_frames_go_straight_into_estimators() -> None:
    frame = mixed()
    X, y = frame.drop(columns="label"), frame["label"].where(np.arange(N) < 100, other="")
    codes = np.where(y == "", -1, (y == "yes").astype(int))
    classifier = MarginalizedClassifier(random_state=0).fit(X, codes)
    assert errors(classifier.predict(X), frame["label"] == "yes", np.arange(N) >= 100) < 0.3
    numbers = np.where(np.arange(N) < 100, (frame["label"] == "yes") * 1.0, np.nan)
    assert np.isfinite(MarginalizedRegressor(random_state=0).fit(X, numbers).predict(X)).all()
    ssl = GPSSL(2, random_state=0).fit(X)
    np.testing.assert_array_equal(ssl.transform(X), GPSSL(2, kernel=for_table(X), random_state=0).fit(X).transform(X))
    pool = RepresentationPool.for_rows(X, random_state=0).fit(X)
    assert pool.left_out_ == {}
    assert ssl.partial_fit(X.head(20)).moments_.weight == N + 20


@pytest.mark.filterwarnings("ignore:.*inducing points leave")
def test_texts_of_all_types_are_the_same() -> None:
    X = mixed().drop(columns=["label", "day"])
    expected = GPSSL(2, random_state=0).fit(X).transform(X)
    for dtype in ("string", "string[pyarrow]"):
        other = X.astype({"message": dtype})
        np.testing.assert_allclose(GPSSL(2, random_state=0).fit(other).transform(other), expected)


@pytest.mark.filterwarnings("ignore:.*inducing points leave")
def test_polars_frames_with_text() -> None:
    polars = pytest.importorskip("polars")
    X = mixed().drop(columns=["label", "day"])
    frame = polars.DataFrame({name: [None if cell != cell else cell for cell in X[name]] for name in X.columns})
    ssl = GPSSL(2, random_state=0).fit(frame)
    np.testing.assert_allclose(ssl.transform(frame), GPSSL(2, random_state=0).fit(X).transform(X))


def test_the_card_of_a_frame_knows_its_texts(tmp_path: Path) -> None:
    X = mixed().drop(columns="label")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*inducing points leave")
        gpssl.save(GPSSL(2, random_state=0).fit(X), tmp_path / "model.gpssl", trained_on=X)
    model = gpssl.load(tmp_path / "model.gpssl")
    assert {facts.name: facts.kind for facts in model.card_.columns}["message"] == "text"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # texts that nobody has seen are no departure
        model.transform(X.assign(message="win a free prize that nobody has heard of"))
