"""Predictions for all rows of a table, part by part, however many of them the page shows."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data._labels import Target
from ..evaluation._held_out import HeldOutClasses, HeldOutNumbers, Labeled
from ..workflows._label import PredictionColumns
from ..workflows._subject import Subject
from ._content import Predictions

Array = NDArray[np.float64]
Places = NDArray[np.intp]


class Predicted(NamedTuple):
    """Predictions: by the model where a row has no label, and by models that have not seen it where it has one."""

    target: Target
    predicted: NDArray[Any]
    """Classes as texts, or numbers. [n]"""
    certainty: Array
    """[n]"""
    std: Array
    """[n]"""

    @property
    def is_decided(self) -> NDArray[np.bool_]:
        """Which rows a decision is about: those without a label, or all of them where all have one. [n]"""
        is_open = ~self.target.is_known
        return is_open if is_open.any() else np.ones_like(is_open)

    def n_kept(self, thresholds: Array) -> Places:
        """Return how many decided rows are above each threshold. [t]"""
        rising = np.sort(self.certainty[self.is_decided])
        return len(rising) - np.searchsorted(rising, thresholds, side="right")

    def counts(self) -> Counter[str]:
        """Return how often each class is predicted for rows without a label."""
        return Counter(self.predicted[~self.target.is_known].tolist())

    def shown(self, places: Places) -> Predictions:
        """Return those of the rows that the page shows."""
        is_class = self.target.kind == "class"
        predicted, std = self.predicted[places], self.std[places]
        return Predictions(
            target=self.target.name,
            predicted=predicted.tolist() if is_class else [f"{value:.6g}" for value in predicted],
            certainty=self.certainty[places],
            std=std,
            labeled=self.target.is_known[places],
            is_probability=is_class,
            values=None if is_class else predicted,
        )


def predict_all(model: Any, subject: Subject, target: Target, labeled: Labeled, held_out: HeldOutClasses | HeldOutNumbers) -> Predicted:
    """Predict all rows, those without a label exactly as `label` does, part by part: the same rows are above a threshold."""
    is_class = target.kind == "class"
    predicted: NDArray[Any] = np.empty(subject.n_rows, dtype=object if is_class else np.float64)
    certainty, std = np.empty((2, subject.n_rows))
    columns = PredictionColumns(model, target.name, None)
    for part, where in subject.numbered_parts("predicting"):
        is_open = ~target.is_known[where]
        if not is_open.any():
            continue
        found = columns(part, is_open)[is_open]
        places = np.flatnonzero(is_open) + where.start
        std[places] = found[f"{target.name}_std"]
        certainty[places] = found[f"{target.name}_probability"] if is_class else -std[places]
        values = found[f"{target.name}_predicted"]
        predicted[places] = values.astype(str) if is_class else values
    fill: Any = _held_out_classes if is_class else _held_out_numbers
    predicted[labeled.places], certainty[labeled.places], std[labeled.places] = fill(model, labeled, held_out)
    return Predicted(target, predicted, certainty, std)


def _held_out_classes(model: Any, labeled: Labeled, held_out: HeldOutClasses) -> tuple[NDArray[Any], Array, Array]:
    """Return classes and probabilities without the row's label, and how far the model's own probability varies."""
    found = model.predict_distribution(labeled.rows)
    proba = held_out.proba if np.array_equal(model.classes_, held_out.classes) else found.proba
    best = proba.argmax(axis=1)
    return model.classes_[best].astype(str), proba.max(axis=1), found.proba_std[np.arange(len(best)), best]


def _held_out_numbers(model: Any, labeled: Labeled, held_out: HeldOutNumbers) -> tuple[Array, Array, Array]:  # noqa: ARG001  (as above)
    return held_out.mean, -held_out.std, held_out.std
