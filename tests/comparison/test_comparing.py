"""Comparisons on a person's own table: who sees which rows and labels, what is left out, and how it is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from gpssl.cli._console import show_table
from gpssl.cli.compare import show_compared
from gpssl.comparison import _rivals
from gpssl.comparison._compare import Comparison, compare
from gpssl.comparison._deciding import Difference, Verdict
from gpssl.comparison._learners import ForestClassifier, SpreadingClassifier
from gpssl.comparison._rivals import (
    COLUMNS,
    FOREST,
    MEAN,
    OF_CLASSES,
    PRIOR,
    RIVALS,
    SELF_TRAINING,
    SPREADING,
    Candidate,
    Contest,
    Grids,
    numbers_from,
)
from gpssl.comparison._splits import (
    _can_train_together,
    _validate,
    _validate_together,
    choose_or_default,
    divide,
    rows_to_compare_on,
    with_features,
)
from gpssl.evaluation._held_out import Labeled
from gpssl.evaluation._scores import Estimate
from gpssl.kernels import for_table
from gpssl.workflows._choices import FULL, POOL
from gpssl.workflows._subject import Roles, Subject, open_subject
from gpssl.workflows._table_subject import TableSubject
from people import two_groups, written

FEW: dict[str, Any] = {"n_draws": 5, "max_inducing": 64}


@pytest.fixture(autouse=True)
def without_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take long, and are tested elsewhere; as are forests of many trees."""
    monkeypatch.delitem(RIVALS, "VICReg")
    monkeypatch.setattr(_rivals, "N_TREES", 20)


def compared(table: Path, target: str = "kind", *, n_splits: int = 2, **options: Any) -> Comparison:
    return compare(table, target, n_splits=n_splits, **FEW, **options)


# How it is shown


def test_names_of_columns_are_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    show_table("[/x]: a title " + "that is long " * 20, ["[/x]", "b"], [["[bold]a[/bold]", ":smile:"], ["[/]", r"\["]])
    title, *lines = capsys.readouterr().out.splitlines()
    assert title == "[/x]: a title " + "that is long " * 20
    assert [line.split() for line in lines] == [["[/x]", "b"], ["[bold]a[/bold]", ":smile:"], ["[/]", r"\["]]


def test_comparison_of_a_target_with_brackets_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("accuracy", "ROC AUC", "AURC", "log loss", "ECE")
    result = Comparison(
        target="[/x]",
        kind="class",
        n_rows=30,
        n_labeled=20,
        n_splits=2,
        scores={method: dict.fromkeys(names, Estimate(0.5, 0.1)) for method in (POOL, COLUMNS)},
        deciding="log loss",
        matters=0.02,
        differences={COLUMNS: Difference(-0.012, 0.1, -0.2, 0.176, 1.0, Verdict.UNDECIDED, 300, "undecided: label about 300 more rows")},
        settings={},
        left_out={"VICReg": "It needs [nn]."},
        recommendation="You do not need this.",
        notes=[],
    )
    show_compared(result, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[/x]: 30 rows, 20 labels, 2 splits (± standard error)"
    assert "Left out: VICReg. It needs [nn]." in lines
    (row,) = (line for line in lines if "300" in line)
    assert " ".join(row.split()) == "columns 0.500 ± 0.100 -0.012 (-0.200 to +0.176) undecided: label about 300 more rows"
    assert "accuracy" in lines[lines.index("Other scores, which do not decide") + 1]


# What it finds


def test_methods_are_in_their_order_and_the_pool_is_compared_with_each(tmp_path: Path) -> None:
    result = compared(written(two_groups(50, 30), tmp_path / "things.csv"))
    assert list(result.scores) == [POOL, FULL, MEAN, COLUMNS, FOREST, "kernel PCA", SPREADING, SELF_TRAINING, PRIOR]
    assert list(result.differences) == list(result.scores)[1:]
    assert result.deciding == "log loss"
    for method, difference in result.differences.items():
        expected = result.scores[POOL]["log loss"].mean - result.scores[method]["log loss"].mean
        assert difference.mean == pytest.approx(expected)
        assert difference.lower <= difference.mean <= difference.upper


def test_numbers_are_compared_by_their_likelihood(tmp_path: Path) -> None:
    frame = two_groups(60, 60).drop(columns="kind")
    frame["height"] = frame["size"].fillna(0) + np.random.default_rng(0).normal(size=60)
    result = compared(written(frame, tmp_path / "things.csv"), "height", target_kind="number")
    assert list(result.scores) == [name for name in RIVALS if name not in OF_CLASSES]
    assert (result.deciding, result.matters) == ("NLL", 0.02)


def test_sure_errors_cost_no_more_than_a_thousandth(tmp_path: Path) -> None:
    frame = two_groups(60, 60)
    frame["kind"] = np.random.default_rng(0).permutation(frame["kind"])
    losses = [row["log loss"].mean for row in compared(written(frame, tmp_path / "things.csv")).scores.values()]
    assert max(losses) < np.log(1000)


def test_few_splits_are_noted(tmp_path: Path) -> None:
    table = written(two_groups(50, 30), tmp_path / "things.csv")
    assert any(note.startswith("2 splits decide little") for note in compared(table).notes)
    assert not any("decide little" in note for note in compared(table, n_splits=10).notes)


@pytest.mark.parametrize(("n_splits", "max_rows"), [(1, 3000), (2, 19)])
def test_a_comparison_needs_splits_and_rows(n_splits: int, max_rows: int) -> None:
    with pytest.raises(ValueError, match=r"n_splits|max_rows"):
        compare(two_groups(50, 30), "kind", n_splits=n_splits, max_rows=max_rows)


def test_frames_and_files_are_compared_alike(tmp_path: Path) -> None:
    frame = two_groups(50, 30)
    table = written(frame, tmp_path / "things.csv")
    scores = [compare(one, "kind", n_splits=2, **FEW).scores for one in (frame, table)]
    assert scores[0] == scores[1]


# Who sees which rows


def labeled_groups(y: list[str], groups: list[str]) -> Labeled:
    return Labeled(np.arange(len(y)), np.arange(len(y))[:, None], np.array(y), np.array(groups))


@pytest.mark.parametrize("seed", range(10))
def test_no_group_is_on_both_sides_and_no_class_is_judged_that_was_not_trained_on(seed: int) -> None:
    labeled = labeled_groups(["a", "b", "only here"] + 9 * ["a", "b"], ["one"] * 3 + [f"{place // 2}" for place in range(18)])
    training, judged = divide(labeled.y, labeled.groups, 0.3, np.random.default_rng(seed).permutation, stratify=True)
    assert labeled.groups is not None
    assert not set(labeled.groups[training]) & set(labeled.groups[judged])
    assert set(labeled.y[judged]) <= set(labeled.y[training])
    assert len(judged) == 6
    assert (2 in training) == (0 in training)


def test_a_single_group_cannot_be_divided() -> None:
    y, groups = np.array(["a", "b"]), np.array(["one", "one"])
    training, judged = divide(y, groups, 0.3, np.random.default_rng(0).permutation, stratify=False)
    assert (len(training), len(judged)) == (2, 0)


@pytest.mark.parametrize("seed", range(4))
def test_settings_stay_where_labels_cannot_choose(seed: int) -> None:
    labeled = labeled_groups(["a"] * 20 + ["a", "b"] * 5, ["one"] * 20 + ["two"] * 10)  # held out, the second leaves one class
    models = [Candidate({"place": place}, LogisticRegression()) for place in range(2)]
    assert choose_or_default(models, labeled, seed) is models[0]


def test_groups_that_leave_one_class_get_a_sentence(tmp_path: Path) -> None:
    frame = two_groups(60, 60)
    frame["group"] = frame["kind"]
    with pytest.raises(ValueError, match="in more groups"):
        compared(written(frame, tmp_path / "things.csv"), group="group")


def subject_of(n_rows: int, n_labels: int, path: Path) -> Subject:
    return open_subject(written(two_groups(n_rows, n_labels), path), Roles("kind"))


def test_all_labels_are_used_where_all_rows_are(tmp_path: Path) -> None:
    subject = subject_of(60, 50, tmp_path / "things.csv")
    notes = list(subject.notes)
    rows, labeled = rows_to_compare_on(subject, subject.labeled(), 60, 0)
    assert (len(rows), len(labeled.y)) == (60, 50)
    assert subject.notes == notes


@pytest.mark.parametrize(("n_labels", "kept"), [(55, 20), (10, 10)])
def test_part_of_a_large_table_holds_its_labeled_rows_and_is_noted(n_labels: int, kept: int, tmp_path: Path) -> None:
    subject = subject_of(60, n_labels, tmp_path / "things.csv")
    all_labeled = subject.labeled()
    rows, labeled = rows_to_compare_on(subject, all_labeled, 40, 0)
    assert (len(rows), len(labeled.y)) == (40, kept)
    assert f"Compared on 40 of 60 rows, with {kept} of {n_labels} labels." in subject.notes
    assert set(labeled.rows["size"]) <= set(rows["size"])
    known = dict(zip(all_labeled.places, all_labeled.y, strict=True))
    assert [known[place] for place in labeled.places] == list(labeled.y)


# The methods


@pytest.mark.parametrize("n_stones", [2, 3, 6])
def test_many_columns_and_few_labels_are_compared(n_stones: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(24, 101)), columns=[f"x{place}" for place in range(101)])
    frame["kind"] = ["stone"] * n_stones + ["flower"] * (24 - n_stones)
    scores = compared(written(frame, tmp_path / "things.csv")).scores
    assert 0 <= scores[COLUMNS]["accuracy"].mean <= 1


def _cannot(contest: Contest) -> list[Candidate]:
    raise ValueError(f"It cannot be made in {contest.n_components} dimensions.")


def _cannot_learn(_contest: Contest) -> list[Candidate]:
    return [Candidate({}, PoissonRegressor(alpha=-1.0))]


@pytest.mark.parametrize("rival", [_cannot, _cannot_learn])
def test_rivals_that_cannot_be_run_are_left_out_with_the_reason(rival: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = written(two_groups(50, 30), tmp_path / "things.csv")
    monkeypatch.setitem(RIVALS, PRIOR, rival)
    result = compared(table)
    assert set(result.left_out) == {PRIOR}
    assert len(result.left_out[PRIOR]) > 20
    assert PRIOR not in result.scores
    assert PRIOR not in result.differences
    monkeypatch.setitem(RIVALS, COLUMNS, rival)
    with pytest.raises(ValueError, match=r"dimensions|alpha|could not convert"):
        compared(table)


@pytest.mark.parametrize(("kind", "n_components"), [("table", 5), ("tissue", 10)])
def test_each_kind_of_subject_has_its_dimensions(kind: Any, n_components: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RIVALS, PRIOR, _cannot)
    monkeypatch.setattr(TableSubject, "kind", kind)
    table = written(two_groups(50, 30), tmp_path / "things.csv")
    assert compare(table, "kind", n_splits=2, **FEW).left_out == {PRIOR: f"It cannot be made in {n_components} dimensions."}


def test_mean_and_draws_are_of_the_same_functions() -> None:
    contest = Contest(np.random.default_rng(0).normal(size=(30, 2)), [({}, RBF())])
    mean, full = (RIVALS[method](contest) for method in (MEAN, FULL))
    assert [model.settings["temperature"] for model in full] == ["auto", 0.1, 1.0]
    assert [model.settings["temperature"] for model in mean] == ["auto", 0.1]  # at a temperature of 1 the mean is zero
    for one, other in zip(mean, full[:2], strict=True):
        assert one.estimator.representation.estimator is other.estimator.representation.estimator


def halves(n_rows: int = 40) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Two distant groups of rows, and one label for each."""
    X = np.random.default_rng(0).normal(size=(n_rows, 2))
    X[n_rows // 2 :] += 20
    return X, np.array(["left", "right"])


@pytest.mark.parametrize("method", OF_CLASSES)
def test_unlabeled_rows_tell_groups_from_one_label_each(method: str) -> None:
    X, y = halves()
    model = RIVALS[method](Contest(X, []))[0].estimator.fit(X[[0, 39]], y)
    assert (y[model.predict_proba(X).argmax(axis=1)] == np.repeat(y, 20)).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_rows_outside_the_graph_get_what_their_neighbors_have_and_unreached_rows_the_shares() -> None:
    X, _ = halves()
    model = SpreadingClassifier(None, X, 5).fit(X[[0, 1, 2]], np.array(["a", "a", "b"]))
    np.testing.assert_allclose(model.predict_proba(X[20:]), np.tile([2 / 3, 1 / 3], (20, 1)))  # no label reaches the other group
    nearby = model.predict_proba(X[[2]] + 1e-9)
    assert not np.allclose(nearby, [[2 / 3, 1 / 3]])
    np.testing.assert_allclose(nearby.sum(axis=1), 1.0)


def test_mean_is_taken_where_there_are_only_high_temperatures() -> None:
    contest = Contest(np.random.default_rng(0).normal(size=(30, 2)), [({}, RBF())], Grids(temperatures=(1.0,)))
    assert [model.settings for model in RIVALS[MEAN](contest)] == [{"temperature": 1.0}]


def test_columns_themselves_tell_gaps() -> None:
    frame = pd.DataFrame({"gaps": [1.0, np.nan, 3.0, np.nan], "whole": [1.0, 2.0, 3.0, 4.0], "empty": [np.nan] * 4, "text": list("abab")})
    frame["day"] = pd.to_datetime(["2020-01-01", None, "2020-01-03", "2020-01-04"])
    encoder = numbers_from(frame).fit(frame)
    values = encoder.transform(frame)
    is_gap = frame["gaps"].isna().to_numpy() * 2.0 - 1
    assert any(np.allclose(column, is_gap) for column in values.T)
    assert np.isfinite(values).all()
    new = frame.assign(whole=np.nan)  # a gap where there was none
    assert encoder.transform(new).shape == values.shape
    plain = np.array([[1.0, np.nan], [2.0, 1.0], [3.0, 4.0]])
    assert numbers_from(plain).fit_transform(plain).shape == (3, 3)


@pytest.mark.parametrize("method", [COLUMNS, FOREST, "kernel PCA", MEAN, FULL, SPREADING])
def test_features_that_are_evaluated_once_change_no_prediction(method: str) -> None:
    frame = two_groups(80, 40)
    labels = frame["kind"].notna().to_numpy()
    rows = frame[["size", "weight", "color"]]
    labeled = Labeled.of(rows[labels].reset_index(drop=True), frame["kind"][labels].to_numpy().astype(str))
    contest = Contest(rows, [({}, for_table(rows))], grids=Grids(n_draws=5), max_inducing=32, encoder=numbers_from(rows), seed=0)
    candidates = RIVALS[method](contest)
    shared, known = with_features(candidates, labeled)
    assert (known.rows is labeled.rows) == (method in (FULL, SPREADING))  # functions are drawn at rows, and the others have no features
    for before, after in zip(candidates, shared, strict=True):
        assert before.settings == after.settings
        plain = clone(before.estimator).fit(labeled.take(np.arange(30)).rows, labeled.y[:30])
        quick = clone(after.estimator).fit(known.take(np.arange(30)).rows, known.y[:30])
        held_out = np.arange(30, 40)
        np.testing.assert_allclose(
            quick.predict_proba(known.take(held_out).rows), plain.predict_proba(labeled.take(held_out).rows), atol=1e-9
        )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_forest_is_scikit_learns(n_classes: int) -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], np.array(["a", "b", "c"])[y[y < n_classes]]
    rows = np.random.default_rng(0).permutation(len(y))
    training, test = rows[:60], rows[60:]
    own = ForestClassifier(40, random_state=3).fit(X[training], y[training])
    theirs = RandomForestClassifier(40, random_state=3).fit(X[training], y[training])
    np.testing.assert_array_equal(own.classes_, theirs.classes_)
    np.testing.assert_allclose(own.predict_proba(X[test]), theirs.predict_proba(X[test]), atol=1e-12)


def test_settings_that_are_judged_together_are_judged_as_they_are_alone() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, "a", "b")
    y[59] = "c"  # which is not among those that are learned from
    contest = Contest(X, [], seed=0)
    representations = [PCA(2, random_state=seed).fit(X[:, seed:] if seed == 0 else X * [1, 1, 1, 1, seed, 9]) for seed in range(3)]
    candidates = [contest.candidate({"number": number}, one) for number, one in enumerate(representations)]
    training, held_out = Labeled.of(X[:40], y[:40]), Labeled.of(X[40:], y[40:])
    together = _validate_together([one.estimator for one in candidates], training, held_out, 1e-3)
    alone = [_validate(one.estimator, training, held_out, 1e-3) for one in candidates]
    np.testing.assert_allclose(together, alone, rtol=1e-4)  # as near as Newton's steps come to the mode
    assert _can_train_together([one.estimator for one in candidates])
    assert not _can_train_together([one.estimator for one in candidates[:1]])
