"""`gpssl.next_rows` for users of Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gpssl
from gpssl.workflows import NextRows
from gpssl.workflows._choices import ChoiceError
from gpssl.workflows._subject import SubjectPart
from gpssl.workflows._table_subject import TableSubject
from people import prices, two_groups


@pytest.fixture(scope="module")
def suggested() -> NextRows:
    return gpssl.next_rows(two_groups(), "kind", 6)


def test_rows_of_a_data_frame_are_named_by_its_index() -> None:
    frame = two_groups().set_index("number")
    result = gpssl.next_rows(frame, "kind", 4)
    assert [row.line for row in result.rows] == [frame.index[row.place] for row in result.rows]
    assert result.classes == ["flower", "stone"]
    shown = result.frame()
    assert shown["gpssl_row"].tolist() == [row.line for row in result.rows]
    assert shown["kind"].isna().all()
    np.testing.assert_allclose(shown["size"], frame["size"].to_numpy()[[row.place for row in result.rows]])
    assert result.model.n_labeled_ == 24


def test_advice_says_how_many_more_labels_it_takes(suggested: NextRows) -> None:
    """Without an error, 59 labels are the least that allow 5 % to be promised with 95 % confidence, 19 on average; and 9 are for 30 %."""
    assert suggested.stop is not None
    assert suggested.stop.max_risk == 0.05
    assert "5 % errors" in suggested.stop.text
    assert suggested.stop.n_more is not None
    assert suggested.stop.n_more + suggested.n_labeled >= 19
    stricter = gpssl.next_rows(two_groups(), "kind", 6, confidence=0.95)
    laxer = gpssl.next_rows(two_groups(), "kind", 6, max_risk=0.3, confidence="95%")
    assert laxer.rows == stricter.rows == suggested.rows
    assert stricter.stop is not None
    assert stricter.stop.n_more is not None
    assert stricter.stop.n_more + stricter.n_labeled >= 59
    assert laxer.stop is not None
    assert laxer.stop.n_more is not None
    assert laxer.stop.n_more < stricter.stop.n_more
    assert suggested.stop.n_more < stricter.stop.n_more


def test_few_labels_tell_nothing_and_say_so() -> None:
    result = gpssl.next_rows(two_groups(n_labels=8), "kind", 2)
    assert result.stop is not None
    assert result.stop.text == "From 8 labels nobody can tell how many more it takes: label at least 12 rows."
    assert result.stop.n_more is None


def test_labels_of_one_class_are_covered_around() -> None:
    frame = two_groups()
    frame.loc[frame["kind"] == "stone", "kind"] = None
    result = gpssl.next_rows(frame, "kind", 3)
    assert result.model is None
    assert result.stop is None
    assert frame["color"][result.rows[0].place] == "gray"  # stones, of which none has a label


def test_a_group_counts_as_one_label() -> None:
    frame = two_groups(n_rows=80, n_labels=40).assign(site=np.arange(80) // 8)
    n_sites = frame["site"][frame["kind"].notna()].nunique()
    for confidence, least in ((0.95, 59), ("average", 19)):
        stop = gpssl.next_rows(frame, "kind", 2, group="site", confidence=confidence).stop
        assert stop is not None
        assert stop.interval is not None
        assert stop.interval[0] + 40 >= least * 40 / n_sites


def test_numbers_have_advice_without_a_promise() -> None:
    result = gpssl.next_rows(prices(), "price", 2)
    assert result.stop is not None
    assert result.stop.n_more is None
    assert "root mean squared error" in result.stop.text
    assert isinstance(result.rows[0].predicted, float)


@pytest.mark.parametrize(("options", "text"), [({"n": 0}, "n: 0"), ({"max_risk": 2.0}, "max_risk"), ({"confidence": 0.0}, "confidence")])
def test_wrong_choices_are_named(options: dict[str, float], text: str) -> None:
    with pytest.raises(ChoiceError, match=text):
        gpssl.next_rows(two_groups(), "kind", **options)  # type: ignore[arg-type]


def test_labeled_rows_bring_the_error_down() -> None:
    """Ten suggested labels do better than the six that were there."""
    frame = two_groups(n_rows=200, n_labels=200, seed=3).drop(columns="color")
    truth = frame["kind"].copy()
    frame["size"] += np.random.default_rng(0).normal(0, 1.5, len(frame))
    frame.loc[6:, "kind"] = None
    assert frame["kind"].nunique() == 2

    def errors(table: pd.DataFrame) -> float:
        predicted = gpssl.label(table, "kind").frame()["kind_predicted"]
        return float((predicted != truth)[predicted.notna()].mean())

    before = errors(frame)
    for row in gpssl.next_rows(frame, "kind", 10).rows:
        frame.loc[row.place, "kind"] = truth[row.place]
    assert errors(frame) < before


def test_table_that_comes_in_parts_has_the_same_rows(suggested: NextRows, monkeypatch: pytest.MonkeyPatch) -> None:
    def part_of(subject: Any, part: Any) -> SubjectPart:
        def cells(**options: Any) -> Any:
            return subject._cells(**options).loc[part.index]

        return SubjectPart(len(part), lambda: part, cells)

    def in_parts(subject: Any) -> Iterator[SubjectPart]:
        rows = subject._frame
        return (part_of(subject, rows.iloc[start : start + 16]) for start in range(0, len(rows), 16))

    monkeypatch.setattr(TableSubject, "parts", in_parts)
    found = gpssl.next_rows(two_groups(), "kind", 6)
    assert [row.place for row in found.rows] == [row.place for row in suggested.rows]
    assert [row.reason for row in found.rows] == [row.reason for row in suggested.rows]
    assert found.frame()["number"].tolist() == two_groups()["number"][[row.place for row in found.rows]].tolist()
