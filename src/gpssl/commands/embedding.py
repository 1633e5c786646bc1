"""`gpssl embed`: a representation of a person's table, with its uncertainty. `gpssl transform`: the same for other rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import GPSSL
from ..files import check_writable, replacing
from ..io import load, read_card, save
from .notes import noting
from .opening import open_subject
from .settings import Settings
from .subject import Piece, Subject

Array = NDArray[np.float64]

PREFIX = "gpssl"


@dataclass(frozen=True)
class Embedded:
    """What `gpssl embed` and `gpssl transform` have done."""

    n_rows: int
    columns: list[str]
    """That were learnt from."""
    n_components: int
    residual: float
    temperature: float
    n_inducing: int
    mean_std: float
    """Of the representation, over rows and dimensions: 1 where nothing is known."""
    written: list[Path]
    notes: list[str]


def model_path(out: Path, model: Path | None) -> Path:
    """Where the model goes unless a person says otherwise: beside the results."""
    return out.with_suffix(".gpssl") if model is None else model


def embed(subject: Subject, out: Path, model: Path, settings: Settings, *, only_new: bool, force: bool) -> Embedded:
    """Learn a representation, write means and standard deviations beside the rows, and the model into a file."""
    check_outputs(subject, [out, model], force)
    notes = subject.notes
    with noting(notes):
        ssl = subject.fit(settings)
    scale = _MeanStd()
    subject.write(out, lambda piece, _: _mean_and_std(ssl, piece, scale), only_new=only_new, force=force)
    with replacing(model, force=force) as beside:
        save(ssl, beside, trained_on=subject.facts, notes=subject.card_notes())
    return _embedded(ssl, subject, scale, [out, model])


def transform(model: Path, table: Path, out: Path, *, n_draws: int, only_new: bool, force: bool) -> Embedded:
    """Means and standard deviations, or drawn functions, of a model at the rows of another table."""
    ssl, subject = open_with_model(model, table)
    check_outputs(subject, [out], force)
    notes, scale = subject.notes, _MeanStd()
    functions = ssl.draw_functions(n_draws) if n_draws else None

    def columns(piece: Piece, _where: slice) -> Any:
        moments = _mean_and_std(ssl, piece, scale)
        return moments if functions is None else moments.join(_draws(functions(piece.rows)))

    with noting(notes):
        subject.write(out, columns, only_new=only_new, force=force)
    return _embedded(ssl, subject, scale, [out])


def open_with_model(model: Path, table: Path, *, target: str | None = None) -> tuple[GPSSL, Subject]:
    """The representation of a model file, and a table read as the model's was."""
    card = read_card(model)
    loaded = load(model)
    representation = getattr(loaded, "representation_", loaded)
    representation = getattr(representation, "estimator", representation)  # of a frozen one
    return representation, open_subject(table, target=target, columns=card.columns or None)


def check_outputs(subject: Subject, outputs: list[Path], force: bool) -> None:
    """Before hours of work, not after."""
    for path in outputs:
        check_writable(path, force=force)
        if path.resolve() == subject.path.resolve():
            raise ValueError(f"{path} is the table itself: write to another file.")
    if len({path.resolve() for path in outputs}) < len(outputs):
        raise ValueError(f"{outputs[0]} cannot be both the results and the model: name another file with --model.")


class _MeanStd:
    """The mean of the standard deviations of all rows, which pass by in pieces."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, std: Array) -> None:
        self.total += float(std.sum())
        self.count += std.size

    @property
    def value(self) -> float:
        return self.total / self.count if self.count else float("nan")


def _mean_and_std(ssl: GPSSL, piece: Piece, scale: _MeanStd) -> Any:
    """gpssl_1, …, gpssl_J, and gpssl_1_std, …, gpssl_J_std. [n, 2 J]"""
    import pandas as pd

    mean, std = ssl.transform(piece.rows), ssl.std(piece.rows)
    scale.add(std)
    names = [f"{PREFIX}_{j + 1}" for j in range(mean.shape[1])]
    return pd.DataFrame(np.hstack([mean, std]), columns=[*names, *(f"{name}_std" for name in names)])


def _draws(values: Array) -> Any:
    """gpssl_1_draw_1, …: each draw is one function, the same at all rows. From [S, n, J] to [n, S J]"""
    import pandas as pd

    n_draws, n_rows, n_components = values.shape
    names = [f"{PREFIX}_{j + 1}_draw_{s + 1}" for s in range(n_draws) for j in range(n_components)]
    return pd.DataFrame(values.swapaxes(0, 1).reshape(n_rows, -1), columns=names)


def _embedded(ssl: GPSSL, subject: Subject, scale: _MeanStd, written: list[Path]) -> Embedded:
    return Embedded(
        n_rows=subject.n_rows,
        columns=[column.name for column in subject.facts],
        n_components=len(ssl.posterior_.weights.mean),
        residual=ssl.residual_,
        temperature=ssl.temperature_,
        n_inducing=len(ssl.inducing_points_),
        mean_std=scale.value,
        written=written,
        notes=subject.notes,
    )
