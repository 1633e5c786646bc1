"""The sentence at the end of a comparison: each way it can turn out."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from gpssl.commands.choices import Alike
from gpssl.commands.recommending import recommend
from gpssl.commands.rivals import FULL, MEAN, PRIOR, RAW, RIVALS
from gpssl.experiments.statistics import Estimate

OTHERS = [name for name in RIVALS if name != FULL]


class Found(NamedTuple):
    mean: float
    p_value: float


def sentence(verdicts: dict[str, int], *, numeric: bool = False, by: str | None = None, alike: Alike = Alike.COLUMNS) -> str:
    """Of a comparison in which GPSSL-full is better (1), worse (−1) or neither (0), by one score."""
    first, second = ("RMSE", "NLL") if numeric else ("accuracy", "AURC")
    by = by or first
    higher = by == "accuracy"
    scores = {name: {first: Estimate(0.8, 0.01), second: Estimate(0.2, 0.01)} for name in RIVALS}
    differences: dict[str, dict[str, Found]] = {}
    for name in OTHERS:
        verdict = verdicts.get(name, 1)
        gain = 0.1 * verdict if higher else -0.1 * verdict
        differences[name] = {first: Found(0.0, 1.0), second: Found(0.0, 1.0)}
        differences[name][by] = Found(gain, 0.01 if verdict else 0.8)
        mean = scores[FULL][by].mean - gain
        scores[name][by] = Estimate(mean, 0.01)
    return recommend(scores, differences, numeric=numeric, alike=alike)


def test_not_needed_where_the_columns_themselves_win_or_draw() -> None:
    assert sentence({RAW: -1}) == (
        "You do not need this: the columns themselves are significantly better than GPSSL-full here (accuracy 0.9 against 0.8)."
    )
    assert sentence({RAW: 0}).startswith("You do not need this: the columns themselves cannot be told from GPSSL-full here")


def test_another_method_that_wins_is_named() -> None:
    assert sentence({"kernel PCA": -1}) == "Use kernel PCA: it is significantly better than GPSSL-full here (accuracy 0.9 against 0.8)."


def test_gain_that_the_prior_has_too_is_not_claimed() -> None:
    assert "functions from the prior, which have learnt nothing, do as well" in sentence({PRIOR: 0})


def test_mean_that_does_as_well_is_mentioned() -> None:
    assert "its mean alone does as well" in sentence({MEAN: 0})


def test_gpssl_where_it_beats_all() -> None:
    assert sentence({}) == (
        "Use GPSSL-full: it is significantly better than the columns themselves (accuracy 0.8 against 0.7), and than its prior. "
        "Try --alike neighbours too."
    )
    assert "Try" not in sentence({}, alike=Alike.NEIGHBOURS)


@pytest.mark.parametrize(("numeric", "by"), [(False, "AURC"), (True, "RMSE"), (True, "NLL")])
def test_lower_scores_are_better_where_they_are(numeric: bool, by: str) -> None:
    assert sentence({}, numeric=numeric, by=by).startswith("Use GPSSL-full")
    assert f"({by} " in sentence({}, numeric=numeric, by=by)
    assert sentence({RAW: -1}, numeric=numeric, by=by).startswith("You do not need this")
