"""`gpssl label`: classes or numbers for the rows that have none, with an expectation of how often they are wrong."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from .. import GPSSL, MarginalizedClassifier, MarginalizedRegressor
from ..files import replacing
from ..io import save
from .expecting import Expectation, Promise, check_labels, expect, what_cannot_be_promised
from .notes import noting
from .outputs import check_outputs
from .predicting import Predictor
from .settings import Settings
from .subject import Subject, Target


@dataclass(frozen=True)
class LabeledTable:
    """What `gpssl label` has done."""

    target: str
    kind: str
    classes: list[str] | None
    n_rows: int
    n_labeled: int
    n_predicted: int
    n_abstained: int
    counts: dict[str, int] | None
    """How often each class was predicted and kept."""
    expectation: Expectation
    written: list[Path]
    notes: list[str]


def new_model(ssl: GPSSL, target: Target, settings: Settings) -> Any:
    """A classifier or regressor on a representation that is fitted, its heads still to be trained."""
    kind = MarginalizedClassifier if target.kind == "class" else MarginalizedRegressor
    return kind(FrozenEstimator(ssl), n_draws=settings.n_draws, random_state=settings.seed)


def label(
    subject: Subject, out: Path, model_file: Path, settings: Settings, promise: Promise, *, only_new: bool, force: bool
) -> LabeledTable:
    """Learn from all rows and the labels of some, predict the others, and write both into files."""
    check_outputs([subject.path], [out, model_file], force=force)
    target = subject.target()
    check_labels(target, subject.path.name, subject.notes)
    with noting(subject.notes):
        model = new_model(subject.fit(settings), target, settings)
        labeled = subject.labeled()
        expectation = expect(model, target, labeled, promise, settings.seed)
        fitted = model.fit(labeled.rows, labeled.y)
    subject.notes.extend(what_cannot_be_promised(expectation, promise, target))
    predict = Predictor(fitted, target.name, target.kind, None if promise.max_risk is None else expectation.threshold)
    found = {"target_kind": target.kind, "seed": settings.seed, "promise": asdict(promise), "expectation": _finite(asdict(expectation))}
    with replacing(model_file, force=force) as beside:  # both files, or none
        save(fitted, beside, trained_on=subject.facts, notes={**subject.card_notes(), **found})
        subject.write(out, lambda piece, where: predict(piece, ~target.is_known[where]), only_new=only_new, force=force)
    return LabeledTable(
        target=target.name,
        kind=target.kind,
        classes=fitted.classes_.tolist() if target.kind == "class" else None,
        n_rows=subject.n_rows,
        n_labeled=len(labeled.y),
        n_predicted=predict.n_predicted,
        n_abstained=predict.n_abstained,
        counts=predict.counts if target.kind == "class" else None,
        expectation=expectation,
        written=[out, model_file],
        notes=subject.notes,
    )


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """Infinity and NaN, which JSON has not, as words that `float` takes."""
    return {name: str(value) if isinstance(value, float) and not np.isfinite(value) else value for name, value in values.items()}
