"""Use a model that was learned before on other rows."""

from __future__ import annotations

import re
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..downstream._marginal import Marginalized
from ..io._card import representation_of
from ..io._model_files import load
from ._embed import PREFIX, RESULTS, Embedded, RepresentationColumns
from ._label import PredictionColumns, names_of_results
from ._subject import NewColumns, SubjectPart, as_path, check_outputs, open_subject

Array = NDArray[np.float64]


def transform(
    model: Any,
    table: Any,
    *,
    n_draws: int = 0,
    out: str | PathLike[str] | None = None,
    only_new: bool = False,
    force: bool = False,
) -> Embedded:
    """Represent other rows by a model that was learned before, and predict where it has heads, as `gpssl transform` does.

    Parameters
    ----------
    model
        A path, or the `model` of what `embed` or `label` returned. A model of `label` abstains as its `max_risk` demands.
    table
        Rows, as for `embed`. A note says where they leave the ranges of the rows that the model was learned from.
    n_draws
        How many functions of the posterior to evaluate too: columns gpssl_1_draw_1, …, each the same function at all rows.
    out, only_new, force
        As for `embed`; without `out` nothing is written.

    Examples
    --------
    >>> import gpssl
    >>> from sklearn.datasets import load_wine
    >>> wines = load_wine(as_frame=True).data
    >>> model = gpssl.embed(wines[:100], n_components=2).model
    >>> gpssl.transform(model, wines[100:], n_draws=3).frame().shape
    (78, 10)
    """
    loaded = open_model(model)
    target = loaded.card_.notes.get("target", "target") if has_heads(loaded) else None
    results = RESULTS if target is None else re.compile(f"{RESULTS.pattern}|{names_of_results(target).pattern}")
    out = as_path(out)
    written = check_outputs([model, table], [out], force=force)
    subject = open_subject(table, columns=loaded.card_.columns or None, results=results)
    representation = RepresentationColumns(representation_of(loaded))
    functions = representation.ssl.draw_functions(n_draws) if n_draws else None
    predict = None if target is None else PredictionColumns.of_model(loaded, target)

    def of_part(part: SubjectPart, _where: slice) -> Any:
        frame = representation(part.rows)
        if functions is not None:
            frame = frame.join(_draws(functions(part.rows)))
        return frame if predict is None else frame.join(predict(part, np.ones(part.n_rows, dtype=bool)))

    columns = NewColumns(subject, of_part)
    with subject.noting():
        columns.write(out, only_new=only_new, force=force)
    return representation.summary(subject, loaded, columns, written, target)


def open_model(model: Any) -> Any:
    """Load a model from a file, or return one that has a card."""
    if isinstance(model, str | PathLike):
        return load(model)
    if getattr(model, "card_", None) is None:
        raise ValueError(
            "This model has no card. Pass the model that embed or label returned, or one that gpssl.load has read from a file."
        )
    return model


def has_heads(model: Any) -> bool:
    """Tell models that predict from representations alone."""
    return isinstance(model, Marginalized)


def _draws(values: Array) -> Any:
    """Return gpssl_1_draw_1, …: each draw is one function, the same at all rows. From [S, n, J] to [n, S J]"""
    import pandas as pd

    n_draws, n_rows, n_components = values.shape
    names = [f"{PREFIX}_{j + 1}_draw_{s + 1}" for s in range(n_draws) for j in range(n_components)]
    return pd.DataFrame(values.swapaxes(0, 1).reshape(n_rows, -1), columns=names)
