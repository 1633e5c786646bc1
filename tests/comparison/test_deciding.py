"""What a comparison decides: each word that it can say, and how often it errs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t as student_t

from gpssl.comparison._compare import decides_nothing, recommend
from gpssl.comparison._deciding import MOST_LABELS, Difference, Ground, Verdict, differences_from, more_labels, what_matters
from gpssl.comparison._rivals import COLUMNS, FOREST, PRIOR, RIVALS, SPREADING
from gpssl.evaluation._scores import corrected_error
from gpssl.workflows._choices import FULL, POOL

Array = NDArray[np.float64]

RATIO = 3 / 7
MATTERS = 0.02
GROUND = Ground(RATIO, MATTERS, n_labeled=100, n_independent=100, n_splits=20)


def losses_with(mean: float, spread: float, n_splits: int = 20) -> Array:
    """Of splits with exactly this mean and standard deviation."""
    values = np.random.default_rng(0).normal(size=n_splits)
    return mean + spread * (values - values.mean()) / values.std(ddof=1)


def decided(mean: float, spread: float, n_splits: int = 20) -> Difference:
    """The pool minus a single rival, with this mean and spread over splits."""
    rival = np.linspace(0.3, 0.5, n_splits)
    losses = {POOL: rival + losses_with(mean, spread, n_splits), COLUMNS: rival}
    return differences_from(losses, replace(GROUND, n_splits=n_splits))[COLUMNS]


def test_any_method_can_be_the_one_that_is_compared() -> None:
    losses = {POOL: losses_with(0.5, 0.03), FULL: losses_with(0.6, 0.05)}
    (ours,), (theirs,) = differences_from(losses, GROUND).values(), differences_from(losses, GROUND, FULL).values()
    assert (theirs.mean, theirs.lower, theirs.upper) == pytest.approx((-ours.mean, -ours.upper, -ours.lower))
    assert (ours.verdict, theirs.verdict) == (Verdict.BETTER, Verdict.WORSE)


# Words


def test_each_word() -> None:
    assert decided(-0.1, 0.03).words == "better"
    assert decided(0.1, 0.03).words == "worse"
    assert decided(0.005, 0.005).words == "no difference that matters (less than 0.02)"
    assert decided(-0.005, 0.005).words == "no difference that matters (less than 0.02)"
    assert decided(-0.03, 0.04).words == "undecided: label about 600 more rows"
    assert decided(0.01, 1.0).words == "undecided: label more than 10,000 more rows"


def test_sure_difference_may_be_too_small_to_matter() -> None:
    found = decided(-0.005, 0.001)
    assert found.upper < 0
    assert found.verdict is Verdict.ALIKE


def test_equal_losses_make_no_difference() -> None:
    found = decided(0.0, 0.0)
    assert found.verdict is Verdict.ALIKE
    assert (found.mean, found.lower, found.upper, found.more_labels) == (0.0, 0.0, 0.0, None)


def test_few_splits_ask_for_more() -> None:
    found = decided(-0.03, 0.04, n_splits=5)
    assert found.words == "undecided: use more splits"
    assert found.more_labels is None


def test_two_splits_never_decide() -> None:
    assert decided(-1.0, 0.0, n_splits=2).verdict is Verdict.UNDECIDED
    assert decided(0.0, 0.0, n_splits=2).verdict is Verdict.UNDECIDED


def test_few_labels_decide_nothing() -> None:
    few = replace(GROUND, n_labeled=6, n_independent=6)
    rival = np.linspace(0.3, 0.5, 20)
    sure = differences_from({POOL: rival - 0.2, COLUMNS: rival, FOREST: rival + losses_with(0.1, 0.01)}, few)
    assert {difference.verdict for difference in sure.values()} == {Verdict.UNDECIDED}
    assert all(difference.more_labels is not None and difference.more_labels >= 14 for difference in sure.values())
    assert (
        decides_nothing(few, sure)
        == "Not decided: 6 labels decide nothing, whatever the scores are; label about 14 more rows, and compare again."
    )
    assert decides_nothing(GROUND, sure) is None


def test_interval_is_for_one_method_and_words_are_for_all() -> None:
    spread = 0.05
    error = corrected_error(losses_with(0.0, spread), RATIO)
    half = error * student_t.isf(0.025, 1 / (1 / 19 + 1 / 99))
    mean = -1.2 * half  # its own interval leaves zero out
    rival = np.full(20, 0.4)
    alone = differences_from({POOL: rival + losses_with(mean, spread), COLUMNS: rival}, GROUND)[COLUMNS]
    others = dict.fromkeys((COLUMNS, FOREST, SPREADING, PRIOR, FULL), rival)
    among = differences_from({POOL: rival + losses_with(mean, spread), **others}, GROUND)[COLUMNS]
    assert alone.lower == among.lower == pytest.approx(mean - half)
    assert alone.upper == among.upper == pytest.approx(mean + half)
    assert alone.upper < 0
    assert (alone.verdict, among.verdict) == (Verdict.BETTER, Verdict.UNDECIDED)


def test_what_matters_is_a_share_of_guessing() -> None:
    assert what_matters(np.array(["a", "b"] * 10), numeric=False) == pytest.approx(0.02 * np.log(2))
    assert what_matters(np.array([0] * 99 + [1]), numeric=False) == pytest.approx(0.02 * 0.0560, rel=1e-3)
    assert what_matters(np.array([1.5, 2.5]), numeric=True) == 0.02


# How many labels would decide


@pytest.mark.parametrize("mean", [-0.05, 0.001])
def test_labels_that_are_asked_for_would_decide(mean: float) -> None:
    n_labeled, spread = GROUND.n_labeled, 0.08
    error = corrected_error(losses_with(mean, spread), RATIO)
    more = more_labels(mean, error, GROUND, 1)
    assert 0 < more < MOST_LABELS
    smaller = spread * np.sqrt(n_labeled / (n_labeled + more))  # as errors shrink with the number of labels
    assert decided(mean, spread).verdict is Verdict.UNDECIDED
    assert decided(mean, smaller).verdict is (Verdict.BETTER if mean < -MATTERS else Verdict.ALIKE)


def test_labels_are_rounded_to_one_digit_and_grow_with_the_error() -> None:
    found = [more_labels(-0.03, error, GROUND, 5) for error in (0.02, 0.04, 0.08, 10.0)]
    assert found == sorted(found)
    assert found[-1] == MOST_LABELS
    assert all(len(str(count).rstrip("0")) == 1 for count in found)


# How often it errs


N_SIMULATIONS = 1000


def simulated_losses(rng: np.random.Generator, n_rows: int, n_splits: int = 20) -> Array:
    """Of two methods that are equally good: lines through one of two columns, which the target depends on alike. [2, simulations, splits]

    The loss is the squared error: the likelihood of numbers, but for a constant.
    """
    X = rng.normal(size=(N_SIMULATIONS, n_rows, 2))
    y = X.sum(axis=2, keepdims=True) + rng.normal(size=(N_SIMULATIONS, n_rows, 1))
    found = np.empty((2, N_SIMULATIONS, n_splits))
    n_test = round(0.3 * n_rows)
    for split in range(n_splits):
        order = rng.random((N_SIMULATIONS, n_rows, 1)).argsort(axis=1)
        mixed_X, mixed_y = np.take_along_axis(X, order, axis=1), np.take_along_axis(y, order, axis=1)
        training_X, training_y = mixed_X[:, n_test:], mixed_y[:, n_test:]
        slopes = (training_X * training_y).mean(axis=1, keepdims=True) / (training_X**2).mean(axis=1, keepdims=True)
        found[:, :, split] = ((mixed_y[:, :n_test] - mixed_X[:, :n_test] * slopes) ** 2).mean(axis=1).T
    return found


@pytest.mark.parametrize("n_rows", [40, 150])
def test_equal_methods_are_seldom_told_apart(n_rows: int) -> None:
    ground = Ground(RATIO, MATTERS, n_rows, n_rows, 20)
    pairs = zip(*simulated_losses(np.random.default_rng(0), n_rows), strict=True)
    verdicts = [differences_from({POOL: pool, COLUMNS: rival}, ground)[COLUMNS].verdict for pool, rival in pairs]
    told = np.mean([verdict in (Verdict.BETTER, Verdict.WORSE) for verdict in verdicts])
    assert told <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / N_SIMULATIONS)


# The sentence


def sentence(losses: dict[str, float] | None = None, /, **verdicts: Verdict) -> str:
    """Of a comparison with these verdicts, by name with underscores; better than all others. Losses are 0.5, that of the pool 0.3."""
    found = dict.fromkeys((name for name in RIVALS if name != POOL), Verdict.BETTER)
    found |= {name.replace("_", " "): verdict for name, verdict in verdicts.items()}
    differences = {
        name: Difference(0.0, 0.1, -0.1, 0.1, 0.5, verdict, 300 if verdict is Verdict.UNDECIDED else None, "")
        for name, verdict in found.items()
    }
    means = {POOL: 0.3, **dict.fromkeys(found, 0.5), **(losses or {})}
    return recommend(means, differences, "log loss", MATTERS)


def test_pool_where_it_beats_all() -> None:
    assert sentence() == (
        "Use the pool: it is better than columns, random forest, kernel PCA, label spreading, self-training and VICReg "
        "(log loss 0.3 against 0.5)."
    )


def test_pool_where_it_beats_some() -> None:
    text = sentence(columns=Verdict.UNDECIDED, random_forest=Verdict.UNDECIDED)
    assert text.startswith("Use the pool: it is better than kernel PCA, label spreading, self-training and VICReg")
    assert text.endswith("Against columns and random forest it is undecided: label about 300 more rows.")


def test_best_of_the_better_is_named() -> None:
    text = sentence({COLUMNS: 0.2, FOREST: 0.1}, columns=Verdict.WORSE, random_forest=Verdict.WORSE)
    assert text == "You do not need this: random forest is better than the pool here (log loss 0.1 against 0.3)."
    assert sentence({FULL: 0.2}, **{FULL: Verdict.WORSE}).startswith("Use GPSSL-full instead: GPSSL-full is better than the pool here")


def test_simplest_that_is_no_worse_is_named() -> None:
    text = sentence({COLUMNS: 0.301}, columns=Verdict.ALIKE, kernel_PCA=Verdict.ALIKE)
    assert text == "You do not need this: columns is no worse (less than 0.02) and simpler (log loss 0.301 against 0.3)."
    assert sentence(random_forest=Verdict.ALIKE).startswith("You do not need this: random forest is no worse")
    assert sentence(VICReg=Verdict.ALIKE).startswith("Use the pool")  # networks are not simpler
    assert sentence(None, **{FULL: Verdict.ALIKE}).startswith("Use the pool")


def test_lack_of_power_is_no_advice() -> None:
    names = ("columns", "random_forest", "kernel_PCA", "label_spreading", "self-training", "VICReg")
    undecided = dict.fromkeys(names, Verdict.UNDECIDED)
    ground = (
        "Not decided: the labels do not tell the pool from columns, random forest, kernel PCA, label spreading, self-training and VICReg."
    )
    assert sentence(None, **undecided) == f"{ground} So far the pool has the lowest log loss; label about 300 more rows."
    assert sentence({COLUMNS: 0.2}, **undecided).startswith(f"{ground} So far columns has the lowest log loss")
