"""The paper's comparison on a person's own table: which method is best there, whether the labels can tell, and what to make of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
from ..evaluation._scores import (
    HIGHER_IS_BETTER,
    Estimate,
    corrected_error,
    corrected_p_value,
    holm,
    score_classification,
    score_regression,
)
from ..workflows._choices import DECIDING, FULL, MAX_INDUCING, MAX_ROWS, N_SPLITS, SIGNIFICANT, Alike, Kind, Settings
from ..workflows._subject import Roles, open_subject
from ._rivals import COLUMNS, MEAN, PRIOR, Candidate, Contest, Grids, numbers_from, run_rivals
from ._splits import can_train, choose_or_default, divide, rows_to_compare_on, split_seed

Array = NDArray[np.float64]

TEST_SHARE = 0.3
FEW_SPLITS = 10
"""With fewer, hardly any difference can be significant: see `corrected_p_value`."""


@dataclass(frozen=True)
class Difference:
    """GPSSL-full minus another method, over splits."""

    mean: float
    error: float
    """Standard error, corrected for the rows that splits share."""
    p_value: float
    """From the corrected resampled t-test, with Holm's correction over the methods; the two scores that decide are corrected together."""


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
    differences: dict[str, dict[str, Difference]]
    """GPSSL-full minus the method, by method and score."""
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
    random_state: int = 0,
) -> Comparison:
    """Compare GPSSL with the paper's other methods on the labels of a table, as `gpssl compare` does.

    Every row trains the representations, without its label. On each random split of the labels, 70 % to learn from and 30 % to judge by,
    all methods have the same heads; methods with several settings choose by a fifth of the labels that they train on.

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
    n_components, alike, n_draws, max_inducing, target_kind, group, keep, ignore, random_state
        As for `gpssl.label`. Rows of the same `group` are never on both sides of a split.

    Examples
    --------
    >>> import gpssl
    >>> from sklearn.datasets import load_wine
    >>> wines = load_wine(as_frame=True).frame
    >>> wines.loc[wines.index % 3 > 0, "target"] = None
    >>> result = gpssl.compare(wines, "target", n_splits=2, n_draws=5)
    >>> result.n_labeled, result.n_splits, "GPSSL-full" in result.scores
    (60, 2, True)
    """
    check_number("n_splits", n_splits, Integral, at_least=2)
    check_number("max_rows", max_rows, Integral, at_least=20)
    settings = Settings(n_components, Alike(alike), "auto", n_draws, max_inducing, random_state)
    subject = open_subject(table, Roles(target, target_kind, group, keep, ignore))
    labels = subject.target()
    numeric = labels.kind == "number"
    with subject.noting():
        check_labels(labels, subject.name, subject.notes)
        kernel = subject.kernel(settings)
        rows, labeled = rows_to_compare_on(subject, subject.labeled(), max_rows, random_state)
        splits = _splits(labeled, n_splits, random_state, numeric=numeric)
        contest = contest_on(rows, kernel, settings, subject.kind, regression=numeric)
        records, left_out = run_rivals(contest, lambda method, models: _run(method, models, labeled, splits), needed=(COLUMNS, FULL))
    scores = {method: {name: np.array([r[name] for r in record.scores]) for name in record.scores[0]} for method, record in records.items()}
    estimates = {method: {name: Estimate.of(values) for name, values in row.items()} for method, row in scores.items()}
    ratio = float(np.mean([len(split.test) / len(split.training) for split in splits]))
    deciding = DECIDING[labels.kind]
    differences = differences_from(scores, ratio, deciding)
    if n_splits < FEW_SPLITS:
        subject.notes.append(f"{n_splits} splits decide little: with fewer than {FEW_SPLITS}, hardly any difference is significant.")
    return Comparison(
        target=labels.name,
        kind=labels.kind,
        n_rows=len(rows),
        n_labeled=len(labeled.y),
        n_splits=n_splits,
        scores=estimates,
        differences=differences,
        settings={method: record.settings for method, record in records.items() if record.settings},
        left_out=left_out,
        recommendation=recommend(estimates, differences, deciding, settings.alike, n_splits=n_splits, n_labeled=len(labeled.y)),
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
            scores.append(score_classification(test.y, probabilities_of(fitted, test.rows, classes), classes))
        progress.advance(1)
    progress.finish()
    return _Record(scores, dict(chosen.most_common()))


def _splits(labeled: Labeled, n_splits: int, seed: int, *, numeric: bool) -> list[_Split]:
    seeds = [split_seed(seed, number) for number in range(n_splits)]
    parts = [divide(labeled.y, labeled.groups, TEST_SHARE, np.random.default_rng(s).permutation, stratify=not numeric) for s in seeds]
    if any(len(test) == 0 or not can_train(labeled.y[training], regression=numeric) for training, test in parts):
        raise ValueError(
            f"{len(labeled.y)} labels are too few to compare on: each split trains on some and judges by others. Label more rows"
            f"{'' if labeled.groups is None else ', in more groups'}."
        )
    return [_Split(training, test, s) for (training, test), s in zip(parts, seeds, strict=True)]


def differences_from(
    scores: Mapping[str, Mapping[str, Array]], test_to_training: float, deciding: tuple[str, ...]
) -> dict[str, dict[str, Difference]]:
    """Return GPSSL-full minus each other method, for scores that have a direction. The scores that decide are one family of tests."""
    others = [method for method in scores if method != FULL]
    found: dict[str, dict[str, Difference]] = {method: {} for method in others}
    further = [(name,) for name in scores[FULL] if name in HIGHER_IS_BETTER and name not in deciding]
    for family in (deciding, *further):
        tests = [(method, name, scores[FULL][name] - scores[method][name]) for name in family for method in others]
        p_values = holm([corrected_p_value(values, test_to_training) for _, _, values in tests])
        for (method, name, values), p_value in zip(tests, p_values, strict=True):
            found[method][name] = Difference(float(values.round(12).mean()), corrected_error(values, test_to_training), p_value)
    return found


Estimates = Mapping[str, Mapping[str, Estimate]]
Differences = Mapping[str, Mapping[str, Difference]]


class _Verdict(NamedTuple):
    sign: int
    """1 where GPSSL-full is better, −1 where it is worse, 0 where the labels do not tell."""
    score: str
    """The score that told; the first where none did."""


def recommend(
    scores: Estimates, differences: Differences, deciding: tuple[str, str], alike: Alike, *, n_splits: int, n_labeled: int
) -> str:
    """Say in one sentence what to use; it may be that GPSSL is not needed, or that the labels do not decide.

    Each method is judged against GPSSL-full by the first deciding score that shows a difference; the sentence names it.
    """
    verdicts = {method: _verdict(row, deciding, lambda found: found.p_value < SIGNIFICANT) for method, row in differences.items()}
    best = _best_of_the_better(scores, verdicts, deciding)
    if best is not None:
        score = verdicts[best].score
        gain = f"{_versus(scores, best, FULL, score)}; the columns {scores[COLUMNS][score].mean:.3g}"
        return f"Use {best}: it is significantly better than GPSSL-full here ({gain})."
    if verdicts[COLUMNS].sign > 0:
        return _worth_it(scores, verdicts, alike)
    if verdicts[COLUMNS].sign < 0:
        versus = _versus(scores, COLUMNS, FULL, verdicts[COLUMNS].score)
        return f"You do not need this: the columns are significantly better than GPSSL-full here ({versus})."
    leaning = _verdict(differences[COLUMNS], deciding, lambda found: abs(found.mean) > found.error)
    if leaning.sign <= 0:
        return f"You do not need this: the columns cannot be told from GPSSL-full here ({_versus(scores, COLUMNS, FULL, leaning.score)})."
    advice = "use more splits, n_splits=20" if n_splits < FEW_SPLITS else "label more rows"
    ground = f"{n_splits} splits of {n_labeled:,} labels do not show whether GPSSL-full is better than the columns"
    return f"Not decided: {ground} ({_versus(scores, FULL, COLUMNS, leaning.score)}); {advice}."


def _verdict(differences: Mapping[str, Difference], deciding: tuple[str, ...], tells: Callable[[Difference], bool]) -> _Verdict:
    """Judge by the first score whose difference tells something."""
    for name in deciding:
        if tells(differences[name]):
            gain = differences[name].mean if HIGHER_IS_BETTER[name] else -differences[name].mean
            return _Verdict(1 if gain > 0 else -1, name)
    return _Verdict(0, deciding[0])


def _best_of_the_better(scores: Estimates, verdicts: Mapping[str, _Verdict], deciding: tuple[str, ...]) -> str | None:
    """Return the best of the methods that beat GPSSL-full by the first score by which any does; None where the columns are no worse."""
    for name in deciding:
        better = [method for method, verdict in verdicts.items() if verdict == (-1, name)]
        if not better:
            continue
        rivals = better if verdicts[COLUMNS].sign > 0 else [COLUMNS, *(method for method in better if method != COLUMNS)]
        sign = 1 if HIGHER_IS_BETTER[name] else -1
        best = max(rivals, key=lambda method: sign * scores[method][name].mean)
        return None if best == COLUMNS else best
    return None


def _worth_it(scores: Estimates, verdicts: Mapping[str, _Verdict], alike: Alike) -> str:
    """Say what GPSSL-full gains over the columns, and whether its prior and its mean gain as much, unless they were left out."""
    text = f"Use GPSSL-full: it is significantly better than the columns ({_versus(scores, FULL, COLUMNS, verdicts[COLUMNS].score)})"
    prior, mean = verdicts.get(PRIOR), verdicts.get(MEAN)
    if prior is not None and prior.sign == 0:
        return (
            f"{text}; functions from the prior, which have learned nothing, cannot be told from it: the gain may be from averaging alone."
        )
    if mean is not None and mean.sign == 0:
        return f"{text}; its mean alone, which is faster, cannot be told from it."
    if prior is not None:
        text += f", and than its prior ({_versus(scores, FULL, PRIOR, prior.score)})"
    advice = " Try alike='neighbors' too." if alike is Alike.COLUMNS else ""
    return f"{text}.{advice}"


def _versus(scores: Estimates, one: str, other: str, name: str) -> str:
    return f"{name} {scores[one][name].mean:.3g} against {scores[other][name].mean:.3g}"
