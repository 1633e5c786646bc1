"""`gpssl.next_rows` for users of Python."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gpssl
from gpssl.workflows._choices import ChoiceError
from people import prices, two_groups


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


def test_advice_says_how_many_more_labels_it_takes() -> None:
    result = gpssl.next_rows(two_groups(), "kind", 2)
    assert result.stop is not None
    assert result.stop.max_risk == 0.05
    assert "5 % errors" in result.stop.text
    assert result.stop.n_more is not None
    assert result.stop.n_more + result.n_labeled >= 59
    laxer = gpssl.next_rows(two_groups(), "kind", 2, max_risk=0.3, model=None).stop
    assert laxer is not None
    assert laxer.n_more is not None
    assert laxer.n_more < result.stop.n_more


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


def test_groups_are_held_out_together() -> None:
    frame = two_groups(n_rows=80, n_labels=40).assign(site=np.arange(80) // 8)
    result = gpssl.next_rows(frame, "kind", 2, group="site")
    alone = gpssl.next_rows(frame.drop(columns="site"), "kind", 2)
    assert result.stop is not None
    assert alone.stop is not None
    assert result.stop.interval is not None
    assert alone.stop.interval is not None
    assert result.stop.interval[0] > alone.stop.interval[0]


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


def test_same_seed_gives_the_same_rows() -> None:
    first, again = (gpssl.next_rows(two_groups(), "kind", 6).rows for _ in range(2))
    assert first == again


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
