"""The sentence at the end of a comparison: each way it can turn out."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from gpssl.comparison._compare import Difference, recommend
from gpssl.comparison._rivals import COLUMNS, MEAN, PRIOR, RIVALS
from gpssl.evaluation._scores import HIGHER_IS_BETTER, Estimate
from gpssl.workflows._choices import FULL, Alike

OTHERS = [name for name in RIVALS if name != FULL]
ERROR = 0.02
FULL_SCORES = {"accuracy": 0.8, "AURC": 0.2, "RMSE": 5.0, "NLL": 3.0}


class Gain(NamedTuple):
    """Of GPSSL-full over a method, positive where GPSSL-full is better, in any score."""

    size: float
    significant: bool = True


WORSE, BETTER, SAME = Gain(-0.1), Gain(0.1), Gain(0.0, significant=False)


def sentence(
    *gains: tuple[str, str, Gain],
    numeric: bool = False,
    alike: Alike = Alike.COLUMNS,
    n_splits: int = 20,
    others: list[str] = OTHERS,
    otherwise: Gain = BETTER,
) -> str:
    """Of a comparison with these gains by method and score. Otherwise GPSSL-full is better by the first score, equal by the second."""
    first, second = ("RMSE", "NLL") if numeric else ("accuracy", "AURC")
    known = {method: {first: otherwise, second: SAME} for method in others}
    for method, score, gain in gains:
        known[method][score] = gain
    scores = {FULL: {name: Estimate(FULL_SCORES[name], 0.01) for name in (first, second)}}
    differences: dict[str, dict[str, Difference]] = {}
    for method, row in known.items():
        means = {name: gain.size if HIGHER_IS_BETTER[name] else -gain.size for name, gain in row.items()}
        scores[method] = {name: Estimate(FULL_SCORES[name] - mean, 0.01) for name, mean in means.items()}
        differences[method] = {name: Difference(mean, ERROR, 0.01 if row[name].significant else 0.2) for name, mean in means.items()}
    return recommend(scores, differences, (first, second), alike, n_splits=n_splits, n_labeled=40)


def test_not_needed_where_the_columns_themselves_win_or_draw() -> None:
    assert sentence((COLUMNS, "accuracy", WORSE)) == (
        "You do not need this: the columns are significantly better than GPSSL-full here (accuracy 0.9 against 0.8)."
    )
    drawn = "You do not need this: the columns cannot be told from GPSSL-full here"
    assert sentence((COLUMNS, "accuracy", SAME)) == f"{drawn} (accuracy 0.8 against 0.8)."
    assert sentence((COLUMNS, "accuracy", Gain(0.5 * ERROR, significant=False))).startswith(drawn)
    assert sentence((COLUMNS, "accuracy", Gain(-5 * ERROR, significant=False))) == f"{drawn} (accuracy 0.9 against 0.8)."


def test_lack_of_power_is_no_advice() -> None:
    likely = Gain(3 * ERROR, significant=False)
    assert sentence((COLUMNS, "accuracy", likely)) == (
        "Not decided: 20 splits of 40 labels do not show whether GPSSL-full is better than the columns "
        "(accuracy 0.8 against 0.74); label more rows."
    )
    assert sentence((COLUMNS, "accuracy", likely), n_splits=5).endswith("; use more splits, n_splits=20.")
    assert "(AURC 0.2 against 0.26)" in sentence((COLUMNS, "accuracy", SAME), (COLUMNS, "AURC", likely))
    assert sentence((COLUMNS, "accuracy", Gain(-3 * ERROR, significant=False)), (COLUMNS, "AURC", likely)).startswith(
        "You do not need this"
    )


def test_score_that_told_is_told() -> None:
    assert sentence((COLUMNS, "accuracy", Gain(0.01, significant=False)), (COLUMNS, "AURC", WORSE)) == (
        "You do not need this: the columns are significantly better than GPSSL-full here (AURC 0.1 against 0.2)."
    )
    slightly_better = Gain(0.01, significant=False)
    assert sentence(("kernel PCA", "accuracy", slightly_better), ("kernel PCA", "AURC", WORSE)) == (
        "Use kernel PCA: it is significantly better than GPSSL-full here (AURC 0.1 against 0.2; the columns 0.2)."
    )
    assert "(AURC 0.2 against 0.3), and than its prior (accuracy 0.8 against 0.7)" in sentence(
        (COLUMNS, "accuracy", Gain(-0.01, significant=False)), (COLUMNS, "AURC", BETTER)
    )
    assert "and than its prior (AURC 0.2 against 0.3)" in sentence((PRIOR, "accuracy", SAME), (PRIOR, "AURC", BETTER))


def test_better_methods_are_ranked_by_the_score_that_told() -> None:
    by_first, by_second = ("VICReg", "accuracy", Gain(-0.05)), ("kernel PCA", "AURC", Gain(-0.15))
    level = ("kernel PCA", "accuracy", Gain(-0.07, significant=False))
    assert sentence(by_first, by_second, level).startswith("Use VICReg")
    higher = ("VICReg", "accuracy", Gain(-0.02, significant=False)), ("VICReg", "AURC", Gain(-0.1))
    assert sentence(*higher, by_second, ("kernel PCA", "accuracy", SAME)).startswith("Use kernel PCA")


def test_method_that_beats_gpssl_is_named_even_where_the_columns_themselves_draw() -> None:
    drawn = (COLUMNS, "accuracy", Gain(0.01, significant=False))
    assert sentence(drawn, ("kernel PCA", "accuracy", WORSE)) == (
        "Use kernel PCA: it is significantly better than GPSSL-full here (accuracy 0.9 against 0.8; the columns 0.79)."
    )


@pytest.mark.parametrize("significant", [True, False])
def test_method_that_beats_gpssl_but_not_the_columns_themselves_is_not_named(significant: bool) -> None:
    raw = (COLUMNS, "accuracy", Gain(-0.15, significant))
    assert sentence(raw, ("kernel PCA", "accuracy", WORSE)).startswith("You do not need this")


def test_gain_that_the_prior_may_have_too_is_not_claimed() -> None:
    assert "functions from the prior, which have learned nothing, cannot be told from it" in sentence((PRIOR, "accuracy", SAME))
    assert "prior" not in sentence(others=[name for name in OTHERS if name != PRIOR])


def test_mean_that_cannot_be_told_is_mentioned() -> None:
    assert "its mean alone, which is faster, cannot be told from it" in sentence((MEAN, "accuracy", SAME))


def test_gpssl_where_it_beats_all() -> None:
    assert sentence() == (
        "Use GPSSL-full: it is significantly better than the columns (accuracy 0.8 against 0.7), "
        "and than its prior (accuracy 0.8 against 0.7). Try alike='neighbors' too."
    )
    assert "Try" not in sentence(alike=Alike.NEIGHBORS)


@pytest.mark.parametrize(("numeric", "by"), [(False, "AURC"), (True, "RMSE"), (True, "NLL")])
def test_lower_scores_are_better_where_they_are(numeric: bool, by: str) -> None:
    better = [(method, by, BETTER) for method in OTHERS]
    assert sentence(*better, numeric=numeric, otherwise=SAME).startswith("Use GPSSL-full")
    assert f"({by} " in sentence(*better, numeric=numeric, otherwise=SAME)
    assert sentence((COLUMNS, by, WORSE), numeric=numeric, otherwise=SAME).startswith("You do not need this")
    assert sentence((COLUMNS, by, Gain(0.1, significant=False)), numeric=numeric, otherwise=SAME).startswith("Not decided")
    assert sentence(("VICReg", by, WORSE), numeric=numeric, otherwise=SAME).startswith("Use VICReg")
