"""Rows by class, and how each class looks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..downstream.labels import labeled_rows
from .figures import Style, style_of

MAX_CLASSES = 20


class RowGroup(NamedTuple):
    """Rows that look alike."""

    name: str
    style: Style
    rows: NDArray[np.intp]


def group_by_class(y: Any, n_rows: int) -> list[RowGroup]:
    """The rows of each class; those marked as unlabeled are in no group."""
    if len(y) != n_rows:
        raise ValueError(f"There are {n_rows} rows and {len(y)} labels: pass one label for each row.")
    labels = labeled_rows(y)
    classes = np.unique(labels.values)
    if len(classes) > MAX_CLASSES:
        raise ValueError(f"{len(classes)} classes cannot be told apart in a picture: join some, to at most {MAX_CLASSES}.")
    return [RowGroup(str(label), style_of(k), labels.rows[labels.values == label]) for k, label in enumerate(classes)]
