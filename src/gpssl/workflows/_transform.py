"""`gpssl transform`: a model that was learned before, on other rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data._labels import TargetKind
from ..io._model_files import load
from ._embed import PREFIX, RESULTS, Embedded, Representation
from ._label import Predictor, names_of_results
from ._opening import open_subject
from ._settings import check_outputs, noting, representation_of
from ._subject import Piece

Array = NDArray[np.float64]


def transform(model: Path, table: Path, out: Path, *, n_draws: int, only_new: bool, force: bool) -> Embedded:
    """Means and standard deviations of the representation, drawn functions, and predictions where the model has heads."""
    check_outputs([model, table], [out], force=force)
    loaded = load(model)
    ssl, notes = representation_of(loaded), loaded.card_.notes
    target = notes.get("target", "target") if hasattr(loaded, "heads_") else None
    results = RESULTS if target is None else re.compile(f"{RESULTS.pattern}|{names_of_results(target).pattern}")
    subject = open_subject(table, columns=loaded.card_.columns or None, results=results)
    columns = Representation(ssl)
    functions = ssl.draw_functions(n_draws) if n_draws else None
    predict = None if target is None else _predictor(loaded, target)

    def new_columns(piece: Piece, _where: slice) -> Any:
        frame = columns(piece)
        if functions is not None:
            frame = frame.join(_draws(functions(piece.rows)))
        return frame if predict is None else frame.join(predict(piece, np.ones(len(piece.rows), dtype=bool)))

    with noting(subject.notes):
        subject.write(out, new_columns, only_new=only_new, force=force)
    return columns.summary(subject, [out], target)


def _predictor(loaded: Any, target: str) -> Predictor:
    """With the threshold that was found when the model was trained."""
    notes = loaded.card_.notes
    kind: TargetKind = "class" if hasattr(loaded, "classes_") else "number"
    asked = notes.get("promise", {}).get("max_risk") is not None
    threshold = float(notes["expectation"]["threshold"]) if asked else None
    return Predictor(loaded, target, kind, threshold)


def _draws(values: Array) -> Any:
    """gpssl_1_draw_1, …: each draw is one function, the same at all rows. From [S, n, J] to [n, S J]"""
    import pandas as pd

    n_draws, n_rows, n_components = values.shape
    names = [f"{PREFIX}_{j + 1}_draw_{s + 1}" for s in range(n_draws) for j in range(n_components)]
    return pd.DataFrame(values.swapaxes(0, 1).reshape(n_rows, -1), columns=names)
