"""The page says what the run said: its promise, its decision, its warnings, over all rows of the table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gpssl
from command import as_json, done
from gpssl.comparison._deciding import Ground, differences_from, what_matters
from gpssl.evaluation._calibration import clipped_log_loss
from gpssl.evaluation._held_out import HeldOutClasses, hold_out_classes
from gpssl.io._model_files import attach_card
from gpssl.report import _making, make_report
from gpssl.report._compared import compared_with, overall
from gpssl.report._content import RiskTable
from gpssl.workflows._choices import FULL, POOL
from gpssl.workflows._row_checksums import row_checksums, row_names
from gpssl.workflows._subject import Roles, open_subject
from people import prices, written


def unclear(n_rows: int = 240, n_labels: int = 120, seed: int = 0) -> pd.DataFrame:
    """Two kinds that overlap, so that some predictions are left to a person."""
    rng = np.random.default_rng(seed)
    is_stone = rng.random(n_rows) < 0.5
    frame = pd.DataFrame({f"x{column}": np.where(is_stone, 0.9, -0.9) + rng.normal(0, 1, n_rows) for column in range(2)})
    frame["kind"] = np.where(is_stone, "stone", "flower")
    frame.loc[rng.permutation(n_rows)[n_labels:], "kind"] = None
    return frame


@pytest.fixture(scope="module")
def run() -> tuple[pd.DataFrame, Any]:
    """A table, and what label made of it with a limit: some are kept, others are not."""
    frame = unclear()
    result = gpssl.label(frame, "kind", max_risk=0.1, confidence=0.8, n_draws=5)
    assert 0 < result.n_abstained < result.n_predicted
    return frame, result


def with_notes(model: Any, **notes: Any) -> Any:
    """Give the model's card other notes; None removes one."""
    kept = {name: value for name, value in {**model.card_.notes, **notes}.items() if value is not None}
    attach_card(replace(model.card_, notes=kept), model)
    return model


def controls_of(report: Any) -> RiskTable:
    controls = report.content.controls
    assert controls is not None
    return controls


def test_the_page_opens_with_what_label_printed(tmp_path: Path) -> None:
    table = written(unclear(), tmp_path / "things.csv")
    options = ("-t", "kind", "-o", tmp_path / "out.csv", "--max-risk", "0.1", "--confidence", "0.8", "--draws", "5")
    printed = done("label", table, *options).splitlines()
    said = done("report", tmp_path / "out.gpssl", table, "--no-rivals").splitlines()
    assert said[0].startswith("To hold 10.0 % errors, with 80 % confidence: ")
    assert {said[0], said[1]} <= set(printed)
    page = (tmp_path / "out.html").read_text()
    assert said[0].replace(" %", "&nbsp;%") in page
    # A person may give the table with the results just as well.
    assert done("report", tmp_path / "out.gpssl", tmp_path / "out.csv", "--no-rivals", "--force").splitlines()[0] == said[0]


def test_the_slider_starts_where_the_run_was(run: tuple[pd.DataFrame, Any]) -> None:
    frame, result = run
    controls = controls_of(make_report(result.model, frame, rivals=False))
    promise, average = controls.promises
    assert controls.targets[controls.start] == 0.1
    assert promise.name == "with 80 % confidence"
    assert promise.threshold[controls.start] == np.nextafter(result.expectation.threshold, np.inf)
    assert controls.n_decided == result.n_predicted
    assert promise.n_kept is not None
    assert promise.n_kept[controls.start] == result.n_predicted - result.n_abstained
    assert (promise.is_promise, average.is_promise) == (True, False)
    assert "no promise" in average.name
    # Without a limit everything is kept, whatever is asked of it.
    assert controls.targets[-1] == np.inf
    assert all(one.n_kept is not None and one.n_kept[-1] == result.n_predicted for one in controls.promises)


def test_counts_are_over_all_rows_and_not_over_those_shown(run: tuple[pd.DataFrame, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    frame, result = run
    monkeypatch.setattr(_making, "MAX_POINTS", 40)
    report = make_report(result.model, frame, rivals=False)
    assert len(report.content.points.x) == 40
    controls = controls_of(report)
    counted = [np.sum(_certainty(result) > threshold) for threshold in np.nextafter(controls.promises[0].threshold, -np.inf)]
    assert controls.promises[0].n_kept is not None
    assert controls.promises[0].n_kept.tolist() == counted
    assert [one.n_predicted for one in report.content.by_class] == [_predicted(result)[one.name] for one in report.content.by_class]
    assert "To hold 10.0 %" in report.summary[0]


def _certainty(result: Any) -> Any:
    return result.frame()["kind_probability"].dropna().to_numpy()


def _predicted(result: Any) -> Any:
    return result.frame()["kind_predicted"].value_counts()


def test_without_a_limit_all_are_kept() -> None:
    frame = unclear(80, 40)
    result = gpssl.label(frame, "kind", n_draws=5)
    report = make_report(result.model, frame, rivals=False)
    assert report.summary[0].startswith("All 40 predictions are kept. Expect ")
    assert "95 % interval" in report.summary[0]
    controls = controls_of(report)
    assert controls.start == len(controls.targets) - 1


def test_numbers_open_with_their_error(tmp_path: Path) -> None:
    table = written(prices(), tmp_path / "houses.csv")
    printed = done("label", table, "-t", "price", "-o", tmp_path / "out.csv", "--max-risk", "8", "--draws", "5").splitlines()
    said = done("report", tmp_path / "out.gpssl", table, "--no-rivals").splitlines()
    assert said[0].startswith("To hold an error of 8, on average: ")
    assert said[0] in printed
    assert as_json("report", tmp_path / "out.gpssl", table, "--no-rivals", "--force")["summary"][0] == said[0]


def test_a_card_without_the_decision_is_counted_again(run: tuple[pd.DataFrame, Any]) -> None:
    frame, result = run
    said = make_report(result.model, frame, rivals=False).summary
    before = result.model.card_
    assert make_report(with_notes(result.model, decided=None), frame, rivals=False).summary == said
    attach_card(before, result.model)


def test_a_table_that_has_changed_is_told_apart(run: tuple[pd.DataFrame, Any]) -> None:
    frame, result = run
    more = pd.concat([frame, frame[frame["kind"].isna()].head(3)], ignore_index=True)
    said = make_report(result.model, more, rivals=False).summary
    assert said[0].startswith("To hold 10.0 % errors, with 80 % confidence: ")
    assert any(f"it has {result.n_predicted + 3} rows without a label, of which the same threshold keeps" in text for text in said)


def pure(n_rows: int = 300) -> pd.DataFrame:
    """Only rows that are clearly one or the other have a label, as pure spots of a tissue have."""
    x = np.random.default_rng(0).uniform(-1, 1, n_rows)
    frame = pd.DataFrame({"x": x, "kind": np.where(x > 0, "stone", "flower")})
    frame.loc[np.abs(x) < 0.8, "kind"] = None
    return frame


def test_a_shift_is_said_first_and_nothing_is_promised(tmp_path: Path) -> None:
    table = written(pure(), tmp_path / "spots.csv")
    printed = done("label", table, "-t", "kind", "-o", tmp_path / "out.csv", "--max-risk", "0.1", "--draws", "20").splitlines()
    said = done("report", tmp_path / "out.gpssl", table, "--no-rivals").splitlines()
    assert said[0].startswith("Nothing can be promised: the labels are not like the other rows.")
    assert said[0] in printed
    assert said[1].startswith("To hold 10.0 % errors, on average: 0 predictions are kept")
    assert said[1] in printed
    page = (tmp_path / "out.html").read_text()
    assert page.index("Before you use these predictions") < page.index("Nothing can be promised") < page.index("In short")


def test_a_shift_leaves_no_promise_on_the_slider(run: tuple[pd.DataFrame, Any]) -> None:
    frame, result = run
    before = result.model.card_
    sentence = "The labels are pure spots, and the other rows are not: nothing is promised."
    report = make_report(with_notes(result.model, shift=sentence), frame, rivals=False)
    assert report.content.warnings == [sentence]
    assert [promise.is_promise for promise in controls_of(report).promises] == [False]
    attach_card(before, result.model)
    assert "Before you use these predictions" not in make_report(result.model, frame, rivals=False).html()


def test_predictions_no_better_than_guessing_are_said_to_be_so() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=80), "kind": np.where(rng.random(80) < 0.85, "stone", "flower")})
    frame.loc[40:, "kind"] = None
    report = make_report(gpssl.label(frame, "kind", n_draws=5).model, frame, rivals=False)
    assert any("guessing" in warning for warning in report.content.warnings)
    assert report.summary[: len(report.content.warnings)] == list(report.content.warnings)


def test_columns_and_suspicions_come_from_the_card(run: tuple[pd.DataFrame, Any]) -> None:
    frame, result = run
    before = result.model.card_
    bare = make_report(with_notes(result.model, importance=None, suspicious=None), frame, rivals=False).html()
    assert "Which columns matter" not in bare
    assert "Labels that may be wrong" not in bare
    importance = [{"name": "x1", "increase": 0.5}, {"name": "x0", "increase": 0.25}, {"name": "<b>", "increase": -0.01}]
    suspicious = [{"place": 7, "line": 9, "label": "stone", "predicted": "flower", "probability": 0.98}]
    page = make_report(with_notes(result.model, importance=importance, suspicious=suspicious), frame, rivals=False).html()
    assert '<dt>x0</dt><dd><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="bar" width="50.00"' in page
    assert (
        '<dt>&lt;b&gt;</dt><dd><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="bar" width="0.00"'
        in page
    )
    assert '<th scope="row" class="number">9</th><td>stone</td><td>flower</td><td class="number">98.0 %</td>' in page
    attach_card(before, result.model)


def test_errors_by_class_are_those_of_held_out_labels(run: tuple[pd.DataFrame, Any]) -> None:
    frame, result = run
    by_class = make_report(result.model, frame, rivals=False).content.by_class
    labels = frame["kind"].dropna().value_counts()
    assert {one.name: one.n_labels for one in by_class} == labels.to_dict()
    assert sum(one.n_wrong for one in by_class) == round(result.expectation.risk * result.n_labeled)
    assert all(one.lower <= one.n_wrong / one.n_labels <= one.upper for one in by_class)


def test_rows_have_the_names_that_people_know(tmp_path: Path) -> None:
    frame = unclear(60, 30)
    model = gpssl.label(frame, "kind", n_draws=5).model
    path = tmp_path / "things.csv"
    frame.to_csv(path, index=False)
    assert make_report(model, path, rivals=False).content.points.rows[:2] == ["2", "3"]  # type: ignore[index]
    named = make_report(model, frame.set_axis([f"N{place}" for place in range(60)]), rivals=False)
    assert named.content.points.rows[:2] == ["N0", "N1"]  # type: ignore[index]


def held_out_with(sure: float, seed: int) -> HeldOutClasses:
    """Return ten folds of twelve labels whose class has this probability, give or take some."""
    rng = np.random.default_rng(seed)
    y = np.tile(["a", "b"], 60)
    right = np.clip(sure + rng.normal(0, 0.05, 120), 0.01, 0.99)
    proba = np.where((y == "a")[:, None], np.column_stack([right, 1 - right]), np.column_stack([1 - right, right]))
    return HeldOutClasses(y, proba, np.array(["a", "b"]), fold=np.repeat(np.arange(10), 12))


def test_decisions_are_those_of_compare() -> None:
    held_out = {
        FULL: held_out_with(0.8, 0),
        "columns": held_out_with(0.7, 1),
        POOL: held_out_with(0.9, 2),
        "GP prior": held_out_with(0.8, 0),
    }
    found = {one.name: one for one in compared_with(held_out, FULL, None)}
    assert [one.verdict for one in found.values()] == ["better", "worse", "no difference that matters"]
    losses = {
        name: np.array([clipped_log_loss(h.y[h.fold == fold], h.proba[h.fold == fold], h.classes, 1e-3) for fold in range(10)])
        for name, h in held_out.items()
    }
    ground = Ground(1 / 9, what_matters(held_out[FULL].y, numeric=False), 120, 120, 10)
    direct = differences_from(losses, ground, FULL)["columns"]
    sentence = found["logistic regression on the columns"].sentence
    assert sentence.startswith("This model is better than logistic regression on the columns: log loss ")
    assert f"{losses[FULL].mean():.3g} against {losses['columns'].mean():.3g}" in sentence
    assert f"{direct.lower:+.2g} to {direct.upper:+.2g}".replace("-", "−") in sentence
    assert overall(list(found.values())) == ["Better than this model on these labels: many representations, weighed by the labels."]


def test_rivals_are_judged_by_the_same_folds() -> None:
    from sklearn.dummy import DummyClassifier

    frame = unclear(80, 40)
    report = make_report(gpssl.label(frame, "kind", n_draws=5).model, frame)
    names = [one.name for one in report.content.compared]
    assert "logistic regression on the columns" in names
    assert report.content.risk_coverage is not None
    assert [curve.name for curve in report.content.risk_coverage.curves] == ["this model", *names]
    words = " ".join([*names, *(one.sentence for one in report.content.compared), report.html()])
    assert not [jargon for jargon in ("GPSSL-full", "GPSSL-mean", ">pool<", "GP prior") if jargon in words]
    y = np.tile([0, 1], 20)
    one, other = (hold_out_classes(DummyClassifier(), np.zeros((40, 1)), y, random_state=3).fold for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_labels_that_were_merged_are_merged_again(tmp_path: Path) -> None:
    frame = unclear(60, 30)
    table = written(frame, tmp_path / "things.csv")
    places = np.flatnonzero(frame["kind"].isna())[:4]
    subject = open_subject(table, Roles("kind"))
    given = {"row": row_names(subject, places), "checksum": row_checksums(subject, places), "kind": ["stone"] * 4}
    labels = written(pd.DataFrame(given), tmp_path / "labels.csv")
    printed = done("label", table, "-t", "kind", "--labels", labels, "-o", tmp_path / "out.csv", "--max-risk", "0.3", "--draws", "5")
    said = done("report", tmp_path / "out.gpssl", table, "--labels", labels, "--no-rivals")
    assert "This table is not the one of that run" not in said
    first = next(line for line in said.splitlines() if line.startswith("To hold"))
    assert first in printed
    assert "This table is not the one of that run" in done("report", tmp_path / "out.gpssl", table, "--no-rivals", "--force")
