"""What `gpssl label` promises, on which labels that rests, and what it says of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpssl
from command import as_json, done
from gpssl.report import make_report
from gpssl.workflows._choices import ChoiceError
from gpssl.workflows._given_labels import empty_labels
from gpssl.workflows._row_checksums import row_checksums, row_names
from gpssl.workflows._subject import Roles, open_subject
from people import written

N_ROWS = 300


def two_clouds(n_labels: int, seed: int = 0, *, easy_first: bool = False) -> tuple[pd.DataFrame, pd.Series]:
    """Two clouds that overlap a little, labels of random rows or more often of those far out and to one side, and the truth."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=N_ROWS)
    X = rng.standard_normal((N_ROWS, 4))
    X[:, 0] += 1.5 * np.where(y, 1, -1)
    truth = pd.Series(np.where(y, "stone", "flower"))
    ease = 1.5 * X[:, 1] if easy_first else np.zeros(N_ROWS)
    known = np.argsort(-(ease + rng.gumbel(size=N_ROWS)))[:n_labels]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=truth.where(np.isin(np.arange(N_ROWS), known)))
    return frame, truth


def labels_for(frame: pd.DataFrame, truth: pd.Series, places: np.ndarray) -> pd.DataFrame:
    subject = open_subject(frame, Roles("kind"))
    rows = list(zip(row_names(subject, places), row_checksums(subject, places), strict=True))
    return empty_labels("kind", rows).assign(kind=truth[places].to_numpy())


def test_sixty_labels_keep_most_rows_on_average_and_none_with_confidence() -> None:
    frame, truth = two_clouds(60)
    found = {confidence: gpssl.label(frame, "kind", max_risk=0.04, confidence=confidence, n_draws=10) for confidence in ("auto", 0.95)}
    assert found["auto"].promise.confidence is None
    assert found["auto"].n_abstained < 0.6 * found["auto"].n_predicted
    assert found[0.95].n_abstained == found[0.95].n_predicted == 240
    result = found["auto"].frame()
    kept = result["kind_abstain"] == False  # noqa: E712  (missing where there is a label)
    assert (result["kind_predicted"][kept] != truth[kept]).mean() <= 0.1


def test_three_hundred_labels_are_promised_with_confidence() -> None:
    frame, _ = two_clouds(60)
    many = pd.concat([frame.assign(kind=np.where(frame["a"] > 0, "stone", "flower")), frame], ignore_index=True)
    assert gpssl.label(many, "kind", max_risk=0.1, n_draws=2).promise.confidence == 0.95
    assert gpssl.label(many, "kind", max_risk=0.1, n_draws=2, confidence="average").promise.confidence is None


def test_a_table_without_an_open_row_has_a_promise_for_rows_like_its_own() -> None:
    frame, truth = two_clouds(60)
    result = gpssl.label(frame.assign(kind=truth)[:100], "kind", max_risk=0.1, n_draws=3)
    assert result.n_predicted == 0
    assert result.expectation.threshold < 1
    assert any("there is none to predict" in note for note in result.notes)


def test_labels_of_chosen_rows_train_and_do_not_judge() -> None:
    """Labels of the rows that are hardest to tell apart: what is expected does not change by them, as it would if they counted."""
    frame, truth = two_clouds(60)
    hard = np.flatnonzero(frame["kind"].isna() & (frame["a"].abs() < 0.9))[:40]
    result = gpssl.label(frame, "kind", max_risk=0.1, labels=labels_for(frame, truth, hard), n_draws=10)
    assert (result.n_labeled, result.expectation.n_judged) == (100, 100)
    assert result.expectation.basis is not None
    assert (result.expectation.basis.n_labels, result.expectation.basis.n_chosen, result.expectation.basis.n_effective) == (60, 40, None)
    merged = frame.assign(kind=frame["kind"].where(~np.isin(np.arange(N_ROWS), hard), truth))
    counted = gpssl.label(merged, "kind", n_draws=10)
    assert result.expectation.risk < counted.expectation.risk
    assert any("40 labels are of rows chosen to be labeled" in note and "the other 60 labels" in note for note in result.notes)
    assert result.n_abstained < result.n_predicted


def test_labels_that_were_all_chosen_are_weighed() -> None:
    frame, truth = two_clouds(0)
    places = np.argsort(frame["a"].abs().to_numpy())[::4][:60]
    result = gpssl.label(frame, "kind", max_risk=0.2, labels=labels_for(frame, truth, np.sort(places)), n_draws=10)
    assert result.expectation.basis is not None
    assert result.expectation.basis.n_effective is not None
    assert any("60 labels are of rows chosen" in note and "tell as much as" in note for note in result.notes)


def test_labels_that_were_not_drawn_at_random_are_told_and_weighed(tmp_path: Path) -> None:
    frame, _ = two_clouds(60, easy_first=True)
    table = written(frame, tmp_path / "things.csv")
    output = " ".join(done("label", table, "-t", "kind", "--max-risk", "10%", "-o", tmp_path / "out.csv", "--draws", "10").split())
    assert "The labels were not drawn at random from this table" in output
    result = as_json("label", table, "-t", "kind", "--max-risk", "10%", "-o", tmp_path / "out.csv", "--draws", "10", "--force")
    assert 5 < result["expectation"]["basis"]["n_effective"] < 55
    assert f"60 labels that count as {result['expectation']['basis']['n_effective']:.0f}" in output
    random, _ = two_clouds(60)
    assert not any("at random" in note for note in gpssl.label(random, "kind", n_draws=10).notes)
    page = done("report", tmp_path / "out.gpssl", table, "--no-rivals")
    assert f"60 labels that count as {result['expectation']['basis']['n_effective']:.0f}" in " ".join(page.split())


def test_report_of_a_promise_on_average_promises_on_average() -> None:
    frame, _ = two_clouds(60)
    result = gpssl.label(frame, "kind", max_risk=0.1, n_draws=10)
    controls = make_report(result.model, frame, rivals=False).content.controls
    assert controls is not None
    promise, estimate = controls.promises
    assert promise.name == "on average over such tables"
    assert (promise.is_promise, estimate.is_promise) == (True, False)
    assert controls.targets[controls.start] == 0.1
    assert promise.n_kept is not None
    assert promise.n_kept[controls.start] == result.n_predicted - result.n_abstained
    assert (np.diff(promise.n_kept) >= 0).all()


def test_report_of_weighed_labels_promises_what_the_run_did() -> None:
    frame, _ = two_clouds(60, easy_first=True)
    result = gpssl.label(frame, "kind", max_risk=0.1, n_draws=10)
    controls = make_report(result.model, frame, rivals=False).content.controls
    assert controls is not None
    kept = controls.promises[0].n_kept
    assert kept is not None
    assert kept[controls.start] == result.n_predicted - result.n_abstained
    assert (kept[: controls.start] == 0).all()
    assert (kept[controls.start : -1] == kept[controls.start]).all()


@pytest.mark.parametrize("confidence", ["sometimes", 0.0, 1.5, "0%", "120%"])
def test_confidence_that_is_none_is_refused(confidence: object) -> None:
    with pytest.raises(ChoiceError, match="confidence: "):
        gpssl.label(two_clouds(30)[0], "kind", max_risk=0.1, confidence=confidence)  # type: ignore[arg-type]
