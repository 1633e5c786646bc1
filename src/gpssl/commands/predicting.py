"""New columns with what a model predicts for the rows of a table."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .expecting import INTERVAL
from .subject import Piece, TargetKind

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
        proba, std = self.model.predict_proba(rows), self.model.predict_proba_std(rows)
        best, certainty = proba.argmax(axis=1), proba.max(axis=1)
        predicted = self.model.classes_[best].astype(object)
        return {"predicted": predicted, "probability": certainty, "std": std[np.arange(len(best)), best]}, certainty

    def _numbers(self, rows: Any) -> tuple[dict[str, NDArray[Any]], Array]:
        lower, upper = self.model.predict_interval(rows, INTERVAL).T
        std = self.model.predict_std(rows)
        return {"predicted": self.model.predict(rows), "std": std, "lower": lower, "upper": upper}, -std

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
