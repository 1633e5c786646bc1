"""`gpssl compare`: the paper's comparison on a person's own table, and what to make of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from .._runtime.progress import Progress
from ..data._labels import Target
from ..evaluation._expectation import check_labels
from ..evaluation._held_out import Labeled
from ..evaluation._scores import probabilities_of, score_classification, score_regression
from ..evaluation._statistics import HIGHER_IS_BETTER, Estimate, corrected_error, corrected_p_value, holm
from ..workflows._choices import RESIDUAL_TOLERANCE, Settings
from ..workflows._subject import Subject
from ._choice import choose_or_default
from ._recommendation import FEW_SPLITS, Basis, deciding_scores, recommend
from ._rivals import COLUMNS, FULL, RIVALS, Candidate, Contest, Grids, numbers_from
from ._splits import MAX_ROWS, at_most, can_train, divide, split_seed

Array = NDArray[np.float64]

TEST_SHARE = 0.3
N_COMPONENTS = {"table": 5, "tissue": 10}
"""As `gpssl embed` and `gpssl label` have them."""
NEEDED = (COLUMNS, FULL)
"""Without these there is no comparison; others that cannot be run are left out."""


@dataclass(frozen=True)
class Difference:
    """Of a method to GPSSL-full, over splits."""

    mean: float
    error: float
    """Standard error, corrected for the rows that splits share."""
    p_value: float
    """Of the corrected resampled t-test, with Holm's correction over the methods; of the two scores that decide, over both."""


@dataclass(frozen=True)
class Comparison:
    """What `gpssl compare` has found."""

    target: str
    kind: str
    n_rows: int
    n_labeled: int
    n_splits: int
    scores: dict[str, dict[str, Estimate]]
    """By method and score, over splits."""
    differences: dict[str, dict[str, Difference]]
    """By method and score: GPSSL-full minus the method."""
    settings: dict[str, dict[str, int]]
    """How often each setting was chosen, by method."""
    left_out: dict[str, str]
    """Methods that could not be run, and why."""
    recommendation: str
    notes: list[str]


class _Split(NamedTuple):
    training: NDArray[np.intp]
    test: NDArray[np.intp]
    seed: int


def compare(subject: Subject, settings: Settings, n_splits: int, max_rows: int = MAX_ROWS) -> Comparison:
    """All methods on the same random splits of the labels; every row trains the representations, without its label."""
    target = subject.target()
    check_labels(target, subject.name, subject.notes)
    with subject.noting():
        kernel = subject.kernel(settings)
        rows, labeled = at_most(subject, subject.labeled(), max_rows, settings.seed)
        of_kind = replace(settings, n_components=settings.n_components or N_COMPONENTS[subject.kind])
        splits = _splits(labeled, target, n_splits, settings.seed)
        candidates, left_out = _candidates(contest_on(rows, kernel, of_kind, regression=target.kind == "number"))
        records = _run(candidates, labeled, target, splits, left_out)
    scores = {method: {name: np.array([r[name] for r in record.scores]) for name in record.scores[0]} for method, record in records.items()}
    estimates = {method: {name: Estimate.of(values) for name, values in row.items()} for method, row in scores.items()}
    numeric = target.kind == "number"
    ratio = float(np.mean([len(split.test) / len(split.training) for split in splits]))
    differences = differences_from(scores, ratio, deciding_scores(numeric=numeric))
    if n_splits < FEW_SPLITS:
        subject.notes.append(f"{n_splits} splits decide little: with fewer than {FEW_SPLITS}, hardly any difference is significant.")
    return Comparison(
        target=target.name,
        kind=target.kind,
        n_rows=len(rows),
        n_labeled=len(labeled.y),
        n_splits=n_splits,
        scores=estimates,
        differences=differences,
        settings={method: record.settings for method, record in records.items() if record.settings},
        left_out=left_out,
        recommendation=recommend(estimates, differences, Basis(n_splits, len(labeled.y)), numeric=numeric, alike=settings.alike),
        notes=subject.notes,
    )


def contest_on(rows: Any, kernel: Kernel, settings: Settings, *, regression: bool) -> Contest:
    """Return what all methods are given on a person's table: mixed columns, gaps and all."""
    return Contest(
        rows,
        [({}, kernel)],
        grids=Grids(n_draws=settings.n_draws),
        n_components=settings.n_components or N_COMPONENTS["table"],
        residual_tolerance=RESIDUAL_TOLERANCE,
        max_inducing=settings.max_inducing,
        regression=regression,
        encoder=numbers_from(rows),
        seed=settings.seed,
    )


def _candidates(contest: Contest) -> tuple[dict[str, list[Candidate]], dict[str, str]]:
    """Representations of all rows, by each method; and which could not be had."""
    found: dict[str, list[Candidate]] = {}
    left_out: dict[str, str] = {}
    progress = Progress("representations", len(RIVALS), unit="methods")
    for method, build in RIVALS.items():
        try:
            found[method] = build(contest)
        except (ImportError, ValueError) as error:
            if method in NEEDED:
                raise
            left_out[method] = str(error)
        progress.advance(1)
    progress.finish()
    return found, left_out


class _Record(NamedTuple):
    scores: list[dict[str, float]]
    settings: dict[str, int]


def _run(
    candidates: Mapping[str, list[Candidate]], labeled: Labeled, target: Target, splits: list[_Split], left_out: dict[str, str]
) -> dict[str, _Record]:
    """All methods on all splits. Those that cannot learn from these labels are added to `left_out`, with the reason."""
    records: dict[str, _Record] = {}
    progress = Progress("comparison", len(candidates) * len(splits), unit="fits")
    for method, models in candidates.items():
        try:
            records[method] = _run_one(models, labeled, target, splits, progress)
        except ValueError as error:
            if method in NEEDED:
                raise
            left_out[method] = str(error)
    progress.finish()
    return records


def _run_one(models: list[Candidate], labeled: Labeled, target: Target, splits: list[_Split], progress: Progress) -> _Record:
    classes = np.unique(labeled.y)
    scores, chosen = [], Counter[str]()
    for split in splits:
        training, test = labeled.take(split.training), labeled.take(split.test)
        model = choose_or_default(models, training, split.seed, regression=target.kind == "number")
        if len(models) > 1:
            chosen[_text(model.settings)] += 1
        fitted = clone(model.estimator).fit(training.rows, training.y)
        if target.kind == "number":
            scores.append(score_regression(test.y, fitted, test.rows))
        else:
            scores.append(score_classification(test.y, probabilities_of(fitted, test.rows, classes), classes))
        progress.advance(1)
    return _Record(scores, dict(chosen.most_common()))


def _splits(labeled: Labeled, target: Target, n_splits: int, seed: int) -> list[_Split]:
    seeds = [split_seed(seed, number) for number in range(n_splits)]
    numeric = target.kind == "number"
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
    """GPSSL-full minus each other method, for scores that have a direction. Those that decide are one family of tests, as any may tell."""
    others = [method for method in scores if method != FULL]
    found: dict[str, dict[str, Difference]] = {method: {} for method in others}
    further = [(name,) for name in scores[FULL] if name in HIGHER_IS_BETTER and name not in deciding]
    for family in (deciding, *further):
        tests = [(method, name, scores[FULL][name] - scores[method][name]) for name in family for method in others]
        p_values = holm([corrected_p_value(values, test_to_training) for _, _, values in tests])
        for (method, name, values), p_value in zip(tests, p_values, strict=True):
            found[method][name] = Difference(float(values.round(12).mean()), corrected_error(values, test_to_training), p_value)
    return found


def _text(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def ordered(comparison: Comparison, score: str) -> Iterator[str]:
    """Methods from best to worst."""
    sign = -1 if HIGHER_IS_BETTER.get(score, True) else 1
    yield from sorted(comparison.scores, key=lambda method: sign * comparison.scores[method][score].mean)
