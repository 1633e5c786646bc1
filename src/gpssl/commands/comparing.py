"""`gpssl compare`: the paper's comparison on a person's own table, and what to make of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..experiments.methods import Model
from ..experiments.protocol import probabilities_of, score_classification, score_regression
from ..experiments.splits import split_seed
from ..experiments.statistics import HIGHER_IS_BETTER, Estimate, corrected_p_value, holm
from ..progress import Progress
from .contest import MAX_ROWS, at_most, choose, divide, take
from .expecting import check_labels
from .notes import noting
from .recommending import recommend
from .rivals import FULL, RIVALS, Rows
from .settings import Settings
from .subject import Labelled, Subject, Target

Array = NDArray[np.float64]

TEST_SHARE = 0.3


@dataclass(frozen=True)
class Difference:
    """Of a method to GPSSL-full, over splits."""

    mean: float
    p_value: float
    """Of the corrected resampled t-test, with Holm's correction over the methods."""


@dataclass(frozen=True)
class Comparison:
    """What `gpssl compare` has found."""

    target: str
    kind: str
    n_rows: int
    n_labelled: int
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
    check_labels(target, subject.path.name, subject.notes)
    with noting(subject.notes):
        kernel = subject.kernel(settings)
        rows, labelled = at_most(subject, subject.labelled(), max_rows, settings.seed)
        splits = _splits(labelled, target, n_splits, settings.seed)
        candidates, left_out = _candidates(Rows(rows, kernel, settings, target.kind == "number"))
        records = _run(candidates, labelled, target, splits)
    scores = {method: {name: np.array([r[name] for r in record.scores]) for name in record.scores[0]} for method, record in records.items()}
    estimates = {method: {name: Estimate.of(values) for name, values in row.items()} for method, row in scores.items()}
    differences = _differences(scores, splits)
    return Comparison(
        target=target.name,
        kind=target.kind,
        n_rows=len(rows),
        n_labelled=len(labelled.y),
        n_splits=n_splits,
        scores=estimates,
        differences=differences,
        settings={method: record.settings for method, record in records.items() if record.settings},
        left_out=left_out,
        recommendation=recommend(estimates, differences, numeric=target.kind == "number", alike=settings.alike),
        notes=subject.notes,
    )


def _candidates(rows: Rows) -> tuple[dict[str, list[Model]], dict[str, str]]:
    """Representations of all rows, by each method; and which could not be had."""
    found: dict[str, list[Model]] = {}
    left_out: dict[str, str] = {}
    progress = Progress("representations", len(RIVALS), unit="methods")
    for method, build in RIVALS.items():
        try:
            found[method] = build(rows)
        except ImportError as error:
            left_out[method] = str(error)
        progress.advance(1)
    progress.finish()
    return found, left_out


class _Record(NamedTuple):
    scores: list[dict[str, float]]
    settings: dict[str, int]


def _run(candidates: Mapping[str, list[Model]], labelled: Labelled, target: Target, splits: list[_Split]) -> dict[str, _Record]:
    """All methods on all splits."""
    classes = np.unique(labelled.y)
    records: dict[str, _Record] = {}
    progress = Progress("comparison", len(candidates) * len(splits), unit="fits")
    for method, models in candidates.items():
        scores, chosen = [], Counter[str]()
        for split in splits:
            training, test = (take(labelled, rows) for rows in (split.training, split.test))
            model = choose(models, labelled, split.training, split.seed, regression=target.kind == "number")
            if len(models) > 1:
                chosen[_text(model.settings)] += 1
            fitted = clone(model.estimator).fit(*training)
            if target.kind == "number":
                scores.append(score_regression(test.y, fitted, test.X))
            else:
                scores.append(score_classification(test.y, probabilities_of(fitted, test.X, classes), classes))
            progress.advance(1)
        records[method] = _Record(scores, dict(chosen.most_common()))
    progress.finish()
    return records


def _splits(labelled: Labelled, target: Target, n_splits: int, seed: int) -> list[_Split]:
    seeds = [split_seed(seed, number) for number in range(n_splits)]
    parts = [divide(labelled, TEST_SHARE, np.random.default_rng(s), stratify=target.kind == "class") for s in seeds]
    if any(len(test) == 0 or len(training) < 2 for training, test in parts):
        raise ValueError(
            f"{len(labelled.y)} labels are too few to compare on: each split trains on some and judges by others. Label more rows"
            f"{'' if labelled.groups is None else ', in more groups'}."
        )
    return [_Split(training, test, s) for (training, test), s in zip(parts, seeds, strict=True)]


def _differences(scores: Mapping[str, Mapping[str, Array]], splits: list[_Split]) -> dict[str, dict[str, Difference]]:
    """GPSSL-full minus each other method, for scores that have a direction."""
    others = [method for method in scores if method != FULL]
    ratio = float(np.mean([len(split.test) / len(split.training) for split in splits]))
    found: dict[str, dict[str, Difference]] = {method: {} for method in others}
    for name in (name for name in scores[FULL] if name in HIGHER_IS_BETTER):
        values = [scores[FULL][name] - scores[method][name] for method in others]
        p_values = holm([corrected_p_value(difference, ratio) for difference in values])
        for method, difference, p_value in zip(others, values, p_values, strict=True):
            found[method][name] = Difference(float(difference.mean()), p_value)
    return found


def _text(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def ordered(comparison: Comparison, score: str) -> Iterator[str]:
    """Methods from best to worst."""
    sign = -1 if HIGHER_IS_BETTER.get(score, True) else 1
    yield from sorted(comparison.scores, key=lambda method: sign * comparison.scores[method][score].mean)
