"""`gpssl label`: classes or numbers for the rows that have none, with an expectation of how often they are wrong."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from ..data._labels import Target, TargetKind
from ..data._writing import replacing
from ..downstream._classifier import MarginalizedClassifier
from ..downstream._regressor import MarginalizedRegressor
from ..estimator import GPSSL
from ..evaluation._calibration import INTERVAL
from ..evaluation._expectation import Expectation, Promise, check_labels, expect, what_cannot_be_promised
from ..io._model_files import save
from ._settings import Settings, check_outputs, noting
from ._subject import Piece, Subject

Array = NDArray[np.float64]

OF_CLASSES = ("predicted", "probability", "std")
OF_NUMBERS = ("predicted", "std", "lower", "upper")
ABSTAIN = "abstain"


def names_of_results(target: str) -> re.Pattern[str]:
    """Columns that predictions are written to: what an earlier run left there is not learned from."""
    return re.compile(rf"{re.escape(target)}_({'|'.join({*OF_CLASSES, *OF_NUMBERS, ABSTAIN})})")


class Predictor:
    """The new columns for pieces of a table, and what they come to."""

    def __init__(self, model: Any, target: str, kind: TargetKind, threshold: float | None) -> None:
        self.model, self.target, self.kind, self.threshold = model, target, kind, threshold
        self.n_predicted = self.n_abstained = 0
        self.counts: dict[str, int] = {}
        """How often each class was predicted and kept."""

    def __call__(self, piece: Piece, is_open: NDArray[np.bool_]) -> Any:
        """A data frame, empty for rows that are not open because they have a label. Without a threshold, nothing abstains."""
        import pandas as pd

        columns, certainty = self._predict(piece.rows[is_open])
        kept = certainty > (-np.inf if self.threshold is None else self.threshold)
        if self.threshold is not None:
            columns[ABSTAIN] = ~kept
        self._count(columns["predicted"], kept)
        return pd.DataFrame({f"{self.target}_{name}": _spread(values, is_open) for name, values in columns.items()})

    def _predict(self, rows: Any) -> tuple[dict[str, NDArray[Any]], Array]:
        if len(rows) == 0:
            names = OF_CLASSES if self.kind == "class" else OF_NUMBERS
            empty = {name: np.empty(0) for name in names}
            return {**empty, "predicted": np.empty(0, dtype=object if self.kind == "class" else float)}, np.empty(0)
        return self._classes(rows) if self.kind == "class" else self._numbers(rows)

    def _classes(self, rows: Any) -> tuple[dict[str, NDArray[Any]], Array]:
        found = self.model.predict_distribution(rows)
        certainty = found.certainty
        return {"predicted": found.predicted.astype(object), "probability": certainty, "std": found.certainty_std}, certainty

    def _numbers(self, rows: Any) -> tuple[dict[str, NDArray[Any]], Array]:
        found = self.model.predict_distribution(rows)
        lower, upper = found.interval(INTERVAL).T
        return {"predicted": found.mean, "std": found.std, "lower": lower, "upper": upper}, -found.std

    def _count(self, predicted: NDArray[Any], kept: NDArray[np.bool_]) -> None:
        self.n_predicted += len(kept)
        self.n_abstained += int((~kept).sum())
        if self.kind == "class":
            for name, count in zip(*np.unique(predicted[kept].astype(str), return_counts=True), strict=True):
                self.counts[str(name)] = self.counts.get(str(name), 0) + int(count)


def _spread(values: NDArray[Any], places: NDArray[np.bool_]) -> Any:
    """Values at their places, nothing elsewhere, in a type that does not depend on how many there are. [n]"""
    import pandas as pd

    if values.dtype.kind == "f":
        out: NDArray[Any] = np.full(len(places), np.nan)
    else:
        out = np.full(len(places), None, dtype=object)
    out[places] = values
    return pd.array(out, dtype="boolean") if values.dtype.kind == "b" else out


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
