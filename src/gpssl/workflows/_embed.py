"""`gpssl embed`: a representation of a person's table, with its uncertainty."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data._writing import replacing
from ..estimator import GPSSL
from ..io._model_files import save
from ._settings import Settings, check_outputs, noting
from ._subject import Piece, Subject

Array = NDArray[np.float64]

PREFIX = "gpssl"
RESULTS = re.compile(rf"{PREFIX}_\d+(_std|_draw_\d+)?")
"""Columns that representations are written to: what an earlier run left there is not learned from."""


@dataclass(frozen=True)
class Embedded:
    """What `gpssl embed` and `gpssl transform` have done."""

    n_rows: int
    columns: list[str]
    """That were learned from."""
    n_components: int
    residual: float
    temperature: float
    n_inducing: int
    mean_std: float
    """Of the representation, over rows and dimensions: 1 where nothing is known."""
    target: str | None
    """That was predicted too, by a model with heads."""
    written: list[Path]
    notes: list[str]


def embed(subject: Subject, out: Path, model: Path, settings: Settings, *, only_new: bool, force: bool) -> Embedded:
    """Learn a representation, write means and standard deviations beside the rows, and the model into a file."""
    check_outputs([subject.path], [out, model], force=force)
    with noting(subject.notes):
        ssl = subject.fit(settings)
    columns = Representation(ssl)
    with replacing(model, force=force) as beside:  # both files, or none
        save(ssl, beside, trained_on=subject.facts, notes=subject.card_notes())
        subject.write(out, lambda piece, _: columns(piece), only_new=only_new, force=force)
    return columns.summary(subject, [out, model])


class Representation:
    """The new columns for pieces of a table, and what they come to."""

    def __init__(self, ssl: GPSSL) -> None:
        self.ssl = ssl
        self._total, self._count = 0.0, 0

    def __call__(self, piece: Piece) -> Any:
        """gpssl_1, …, gpssl_J, and gpssl_1_std, …, gpssl_J_std. [n, 2 J]"""
        import pandas as pd

        mean, std = self.ssl.mean_and_std(piece.rows)
        self._total += float(std.sum())
        self._count += std.size
        names = [f"{PREFIX}_{j + 1}" for j in range(mean.shape[1])]
        return pd.DataFrame(np.hstack([mean, std]), columns=[*names, *(f"{name}_std" for name in names)])

    def summary(self, subject: Subject, written: list[Path], target: str | None = None) -> Embedded:
        """After all pieces."""
        return Embedded(
            n_rows=subject.n_rows,
            columns=[column.name for column in subject.facts],
            n_components=len(self.ssl.posterior_.weights.mean),
            residual=self.ssl.residual_,
            temperature=self.ssl.temperature_,
            n_inducing=len(self.ssl.inducing_points_),
            mean_std=self._total / max(1, self._count),
            target=target,
            written=written,
            notes=subject.notes,
        )
