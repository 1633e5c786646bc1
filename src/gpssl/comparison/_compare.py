"""The paper's comparison on a person's own table: which method is best there, whether the labels can tell, and what to make of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.gaussian_process.kernels import Kernel

from .._runtime import N_DRAWS, RESIDUAL_TOLERANCE
from .._runtime.progress import Progress
from .._validation import check_number
from ..data._labels import TargetKind
from ..evaluation._held_out import Labeled, check_labels, probabilities_of
from ..evaluation._scores import HIGHER_IS_BETTER, Estimate, score_classification, score_regression
from ..workflows._choices import DECIDING, MAX_INDUCING, MAX_ROWS, N_SPLITS, POOL, Alike, Kind, Settings
from ..workflows._label_findings import notes_on_rows
from ..workflows._subject import Roles, open_subject
from ._deciding import (
    FEW_SPLITS,
    FEWEST_LABELS,
    LEAST_PROBABILITY,
    Difference,
    Ground,
    Verdict,
    advice_on_labels,
    differences_from,
    what_matters,
)
from ._rivals import COLUMNS, OURS, SIMPLER, Candidate, Contest, Grids, numbers_from, run_rivals
from ._splits import can_train, choose_or_default, divide, rows_to_compare_on, split_seed, with_features

Array = NDArray[np.float64]

TEST_SHARE = 0.3


@dataclass(frozen=True)
class Comparison:
    """What `compare` has found."""

    target: str
    kind: str
    n_rows: int
    n_labeled: int
    n_splits: int
    scores: dict[str, dict[str, Estimate]]
    """Means and standard errors over splits, by method and score."""
    deciding: str
    """The score that decides: the log loss, or the negative log likelihood of numbers."""
    matters: float
    """The smallest difference in it that matters, in nats."""
    differences: dict[str, Difference]
    """The pool minus the method in that score, with an interval and in words, by method."""
    settings: dict[str, dict[str, int]]
    """How often each setting was chosen, by method."""
    left_out: dict[str, str]
    """Methods that could not be run, and why."""
    recommendation: str
    notes: list[str]

    def ordered(self, score: str) -> list[str]:
        """Return the methods from best to worst."""
        return sorted(self.scores, key=lambda method: self.scores[method][score].mean, reverse=HIGHER_IS_BETTER.get(score, True))


class _Split(NamedTuple):
    training: NDArray[np.intp]
    test: NDArray[np.intp]
    seed: int


def compare(
    table: Any,
    target: str,
    *,
    n_splits: int = N_SPLITS,
    max_rows: int = MAX_ROWS,
    n_components: int | None = None,
    alike: Literal["columns", "neighbors"] | Alike = Alike.COLUMNS,
    n_draws: int = N_DRAWS,
    max_inducing: int = MAX_INDUCING,
    target_kind: TargetKind | None = None,
    group: str | None = None,
    keep: Sequence[str] = (),
    ignore: Sequence[str] = (),
    unlabeled: Sequence[str] = (),
    sheet: str | None = None,
    random_state: int = 0,
) -> Comparison:
    """Compare the pool, which is the default, with the paper's methods and with simpler ones on the labels of a table.

    `gpssl compare` does it. Every row trains the representations, without its label. Each random split of the labels leaves 70 % to learn
    from and 30 % to judge by; methods with several settings choose by a fifth of the labels that they learn from.

    One score decides: the log loss, in which probabilities below 0.001 count as 0.001, and for numbers the negative log likelihood. The
    pool is said to be better or worse where the splits show it (the corrected resampled t-test of Nadeau and Bengio, 2003, with Holm's
    correction over the methods), to make no difference that matters where the interval is within ±2 % of what guessing class shares
    loses, for numbers ±0.02 nats, and else to be undecided, with the number of labels that would decide.

    Parameters
    ----------
    table
        A path, a pandas data frame or AnnData, as for `gpssl.embed`.
    target
        The column to predict; cells without a label are empty.
    n_splits
        Random splits of the labels. With fewer than ten, hardly any difference is significant.
    max_rows
        Rows that are used of larger tables: kernel PCA needs a matrix of rows by rows.
    n_components, alike, n_draws, max_inducing
        As for `gpssl.label`, for the paper's methods; the pool has settings of its own.
    target_kind, group, keep, ignore, unlabeled, sheet, random_state
        As for `gpssl.label`. Rows of the same `group` are never on both sides of a split.

    Examples
    --------
    >>> import gpssl
    >>> from sklearn.datasets import load_wine
    >>> wines = load_wine(as_frame=True).frame
    >>> wines.loc[wines.index % 3 > 0, "target"] = None
    >>> result = gpssl.compare(wines, "target", n_splits=2, n_draws=5)
    >>> result.n_labeled, result.n_splits, result.deciding, "GPSSL-full" in result.differences
    (60, 2, 'log loss', True)
    """
    check_number("n_splits", n_splits, Integral, at_least=2)
    check_number("max_rows", max_rows, Integral, at_least=20)
    settings = Settings(n_components, Alike(alike), "auto", n_draws, max_inducing, random_state)
    subject = open_subject(table, Roles(target, target_kind, group, keep, ignore, unlabeled, sheet))
    labels = subject.target()
    numeric = labels.kind == "number"
    with subject.noting(settings):
        check_labels(labels, subject.name, subject.notes)
        kernel = subject.kernel(settings)
        rows, labeled = rows_to_compare_on(subject, subject.labeled(), max_rows, random_state)
        subject.notes.extend(notes_on_rows(labeled, subject))
        splits = _splits(labeled, n_splits, random_state, numeric=numeric)
        contest = contest_on(rows, kernel, settings, subject.kind, regression=numeric)
        records, left_out = run_rivals(contest, lambda method, models: _run(method, models, labeled, splits), needed=(POOL, COLUMNS))
    scores = {method: {name: np.array([r[name] for r in record.scores]) for name in record.scores[0]} for method, record in records.items()}
    estimates = {method: {name: Estimate.of(values) for name, values in row.items()} for method, row in scores.items()}
    ratio = float(np.mean([len(split.test) / len(split.training) for split in splits]))
    score, matters = DECIDING[labels.kind], what_matters(labeled.y, numeric=numeric)
    n_independent = len(labeled.y) if labeled.groups is None else len(np.unique(labeled.groups))
    ground = Ground(ratio, matters, len(labeled.y), n_independent, n_splits)
    differences = differences_from({method: row[score] for method, row in scores.items()}, ground)
    if n_splits < FEW_SPLITS:
        subject.notes.append(f"{n_splits} splits decide little: with fewer than {FEW_SPLITS}, hardly any difference is decided.")
    return Comparison(
        target=labels.name,
        kind=labels.kind,
        n_rows=len(rows),
        n_labeled=len(labeled.y),
        n_splits=n_splits,
        scores=estimates,
        deciding=score,
        matters=matters,
        differences=differences,
        settings={method: record.settings for method, record in records.items() if record.settings},
        left_out=left_out,
        recommendation=decides_nothing(ground, differences)
        or recommend({method: row[score].mean for method, row in estimates.items()}, differences, score, matters),
        notes=subject.notes,
    )


def contest_on(rows: Any, kernel: Kernel, settings: Settings, kind: Kind, *, regression: bool) -> Contest:
    """Return what all methods are given on a person's table: mixed columns, gaps and all."""
    return Contest(
        rows,
        [({}, kernel)],
        grids=Grids(n_draws=settings.n_draws),
        n_components=settings.n_components_for(kind),
        residual_tolerance=RESIDUAL_TOLERANCE,
        max_inducing=settings.max_inducing,
        regression=regression,
        encoder=numbers_from(rows),
        seed=settings.seed,
    )


class _Record(NamedTuple):
    scores: list[dict[str, float]]
    settings: dict[str, int]


def _run(method: str, models: list[Candidate], labeled: Labeled, splits: list[_Split]) -> _Record:
    """Train and score one method on all splits."""
    models, labeled = with_features(models, labeled)
    classes = np.unique(labeled.y)
    scores, chosen = [], Counter[str]()
    progress = Progress(method, len(splits), unit="splits")
    for split in splits:
        training, test = labeled.take(split.training), labeled.take(split.test)
        model = choose_or_default(models, training, split.seed)
        if len(models) > 1:
            chosen[", ".join(f"{name}={value}" for name, value in model.settings.items())] += 1
        fitted = clone(model.estimator).fit(training.rows, training.y)
        if is_regressor(fitted):
            scores.append(score_regression(test.y, fitted, test.rows))
        else:
            scores.append(_score_classes(fitted, test, classes))
        progress.advance(1)
    progress.finish()
    return _Record(scores, dict(chosen.most_common()))


def _score_classes(fitted: Any, test: Labeled, classes: NDArray[Any]) -> dict[str, float]:
    proba = probabilities_of(fitted, test.rows, classes)
    return score_classification(test.y, proba, classes, least_probability=LEAST_PROBABILITY)


def _splits(labeled: Labeled, n_splits: int, seed: int, *, numeric: bool) -> list[_Split]:
    seeds = [split_seed(seed, number) for number in range(n_splits)]
    parts = [divide(labeled.y, labeled.groups, TEST_SHARE, np.random.default_rng(s).permutation, stratify=not numeric) for s in seeds]
    if any(len(test) == 0 or not can_train(labeled.y[training], regression=numeric) for training, test in parts):
        raise ValueError(
            f"{len(labeled.y)} labels are too few to compare on: each split trains on some and judges by others. Label more rows"
            f"{'' if labeled.groups is None else ', in more groups'}."
        )
    return [_Split(training, test, s) for (training, test), s in zip(parts, seeds, strict=True)]


def decides_nothing(ground: Ground, differences: Mapping[str, Difference]) -> str | None:
    """Return the sentence on labels that are too few to decide anything, with how many would; None where they are not."""
    if ground.n_labeled >= FEWEST_LABELS:
        return None
    more = [difference.more_labels for difference in differences.values() if difference.more_labels is not None]
    advice = advice_on_labels(min(more, default=FEWEST_LABELS - ground.n_labeled))
    return f"Not decided: {ground.n_labeled} labels decide nothing, whatever the scores are; {advice}, and compare again."


def recommend(losses: Mapping[str, float], differences: Mapping[str, Difference], score: str, matters: float) -> str:
    """Say in one sentence whether to use the pool; it may be that it is not needed, or that the labels do not decide.

    A method that is better comes first, the best of them; then the simplest one that is no worse.
    """
    found = {method: difference.verdict for method, difference in differences.items()}
    better = [method for method, verdict in found.items() if verdict is Verdict.WORSE]
    if better:
        best = min(better, key=lambda method: losses[method])
        start = f"Use {best} instead" if best in OURS else "You do not need this"
        return f"{start}: {best} is better than the pool here ({_versus(losses, best, POOL, score)})."
    alike = [method for method in SIMPLER if found.get(method) is Verdict.ALIKE]
    if alike:
        versus = _versus(losses, alike[0], POOL, score)
        return f"You do not need this: {alike[0]} is no worse (less than {matters:.2g}) and simpler ({versus})."
    return _worth_it(losses, differences, score)


def _worth_it(losses: Mapping[str, float], differences: Mapping[str, Difference], score: str) -> str:
    """Say what the pool is better than, or that this is not decided; only methods that are not of this library count."""
    others = {method: difference for method, difference in differences.items() if method not in OURS}
    beaten = [method for method, difference in others.items() if difference.verdict is Verdict.BETTER]
    open_ones = {method: difference for method, difference in others.items() if difference.verdict is Verdict.UNDECIDED}
    lowest = min((POOL, *others), key=lambda method: losses[method])
    if not beaten:
        so_far = f"So far {lowest} has the lowest {score}" if lowest != POOL else f"So far the pool has the lowest {score}"
        return f"Not decided: the labels do not tell the pool from {_listed(open_ones)}. {so_far}; {_advice(open_ones)}."
    text = f"Use the pool: it is better than {_listed(beaten)} ({_versus(losses, POOL, min(beaten, key=lambda m: losses[m]), score)})"
    return f"{text}. Against {_listed(open_ones)} it is undecided: {_advice(open_ones)}." if open_ones else f"{text}."


def _advice(undecided: Mapping[str, Difference]) -> str:
    """Return what decides the first that can be decided."""
    more = [difference.more_labels for difference in undecided.values() if difference.more_labels is not None]
    return advice_on_labels(min(more)) if more else f"use more splits, n_splits={N_SPLITS}"


def _listed(names: Sequence[str] | Mapping[str, Difference]) -> str:
    """Return names in a row, with "and" before the last."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _versus(losses: Mapping[str, float], one: str, other: str, score: str) -> str:
    return f"{score} {losses[one]:.3g} against {losses[other]:.3g}"
