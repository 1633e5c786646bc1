"""Save models to files, load them, and read their cards."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from ..data._column_facts import ColumnFacts
from ..downstream._marginal import Marginalized
from ..estimator import GPSSL
from ._archive import CARD, MODEL, Archive, ModelFileError, open_archive, write_archive
from ._card import ModelCard, checked_notes, facts_of_rows, n_rows_of
from ._encoding import Decoder, Encoder
from ._stored_classes import FORMS

FORMAT = 1
"""Number of the file format. It grows when older versions could not read what is written; older formats stay readable."""

SAVEABLE = ("GPSSL", "GPPrior", "MarginalizedClassifier", "MarginalizedRegressor")
LIBRARIES = ("gpssl", "numpy", "scipy", "scikit-learn")
LONGEST_SETTING = 300


def save(
    model: Any, path: str | PathLike[str], *, trained_on: Any | Sequence[ColumnFacts] | None = None, notes: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted model to a file, by convention with the ending `.gpssl`, which `load` reads back to the last bit.

    The file is a zip of JSON and of NumPy's arrays: data, and no code. An older file of this name is replaced, once the new one is whole.
    Models with functions of your own in them (`CallableKernel`), with kernels of GPyTorch, or with heads of scikit-learn other than its
    linear models cannot be saved: ModelFileError says what is in the way. Rows that the model remembers are in the file, unencrypted:
    inducing points, and for a classifier or regressor the labeled rows.

    Parameters
    ----------
    model
        A fitted `GPSSL`, `MarginalizedClassifier`, `MarginalizedRegressor` or `gpssl.baselines.GPPrior`.
    path
        The file.
    trained_on
        X as given to `fit`, of which names, types, ranges and levels of the columns are kept in the card, so that the loaded model warns
        when new rows leave them; or a list of `ColumnFacts`. None: what the card of a loaded model says, or nothing.
    notes
        Further things to keep in the card: a dictionary that JSON can hold.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import gpssl
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, _ = load_breast_cancer(return_X_y=True)
    >>> ssl = gpssl.GPSSL(n_components=5, random_state=0).fit(X)
    >>> with TemporaryDirectory() as folder:
    ...     gpssl.save(ssl, Path(folder) / "cells.gpssl", trained_on=X, notes={"source": "breast cancer, Wisconsin"})
    ...     again = gpssl.load(Path(folder) / "cells.gpssl")
    >>> bool((again.transform(X) == ssl.transform(X)).all())
    True
    >>> again.card_.n_rows, again.card_.notes["source"]
    (569, 'breast cancer, Wisconsin')
    """
    if not _is_saveable(model):
        raise TypeError(
            f"A model file holds one of {', '.join(SAVEABLE)}, got {type(model).__name__}. "
            "Of a pipeline, save the step that is one of these."
        )
    check_is_fitted(model, "moments_" if isinstance(model, GPSSL) else None)
    card = card_of(model, trained_on, notes)
    encoder = Encoder(FORMS)
    content = encoder.encode(model)
    write_archive(Path(path), {CARD: {"format": FORMAT, "card": card.to_json()}, MODEL: content}, encoder.arrays)


def load(path: str | PathLike[str]) -> Any:
    """Read what `save` wrote: the model, with its card as `card_`. Nothing in a file is ever run, whoever wrote it.

    The model gives the same results as the one that was saved, to the last bit with the same versions of the libraries, and learns on with
    `refit` and `partial_fit`. It warns (`gpssl.io.OutsideTrainingRangeWarning`) when rows leave the ranges of its card, once for each
    call; rows that are read part by part (paths, Dask) are not compared. A file that is damaged, from a newer version, or no model at all
    gets a `gpssl.io.ModelFileError`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import gpssl
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> with TemporaryDirectory() as folder:
    ...     gpssl.save(gpssl.MarginalizedClassifier(random_state=0).fit(X, y), Path(folder) / "iris.gpssl", trained_on=X)
    ...     flowers = gpssl.load(Path(folder) / "iris.gpssl")
    >>> flowers.predict(X[:1])
    array([0])
    >>> print(*flowers.card_.departures([[50.0, 3.0, 4.0, 1.0]]))
    'x0': of 1 rows, 1 above 7.9, the most in training (up to 50).
    """
    with open_archive(Path(path)) as archive:
        card = _card_in(archive)
        model = _model_in(archive)
        attach_card(card, model)
    return model


def read_card(path: str | PathLike[str]) -> ModelCard:
    """Read the card of a model file, without building the model."""
    with open_archive(Path(path)) as archive:
        return _card_in(archive)


def _card_in(archive: Archive) -> ModelCard:
    content = archive.read_json(CARD)
    number = content["format"]
    if not isinstance(number, int) or number < 1:
        raise TypeError("a format without a number")
    if number > FORMAT:
        writer = str(content.get("card", {}).get("versions", {}).get("gpssl", "a newer version"))[:20]
        raise ModelFileError(
            f"{archive.path} was written by a newer version of gpssl ({writer}, format {number}; this one reads formats up to {FORMAT}). "
            "Upgrade gpssl to read it."
        )
    return ModelCard.from_json(content["card"])


def _is_saveable(model: Any) -> bool:
    """Tell models that a file may hold by the class that has this name in files; a class of the same name elsewhere is another."""
    return FORMS.name_of(type(model)) in [f"gpssl.{name}" for name in SAVEABLE]


def _model_in(archive: Archive) -> Any:
    try:
        model = Decoder(FORMS, archive.read_array).decode(archive.read_json(MODEL))
    except ModelFileError as error:
        if str(archive.path) in str(error):
            raise
        raise ModelFileError(f"{archive.path} cannot be read: {error}.") from error
    if not _is_saveable(model):
        raise ModelFileError(f"{archive.path} holds no model, but {type(model).__name__}.")
    check_is_fitted(model, "moments_" if isinstance(model, GPSSL) else None)
    return model


def attach_card(card: ModelCard, model: Any) -> None:
    """Give the card to the model and to its parts that can be called with rows: they then warn of rows that leave its ranges."""
    model.card_ = card
    representation = _representation(model)
    if _is_saveable(representation):
        representation.card_ = card
    if isinstance(model, Marginalized) and model.n_draws is not None:
        model.functions_.card_ = card


def _representation(model: Any) -> Any:
    """Return the fitted representation of a classifier or regressor; `GPSSL` and `GPPrior` are representations themselves."""
    if not isinstance(model, Marginalized):
        return model
    return model.representation_.estimator if isinstance(model.representation_, FrozenEstimator) else model.representation_


def card_of(model: Any, trained_on: Any = None, notes: Mapping[str, Any] | None = None) -> ModelCard:
    """Return the card of a fitted model, as `save` writes it."""
    known: ModelCard | None = vars(model).get("card_")
    if trained_on is None:
        columns, n_rows = (None, None) if known is None else (known.columns, known.n_rows)
    else:
        columns, n_rows = facts_of_rows(trained_on), n_rows_of(trained_on)
        _check_fits(model, columns)
    return ModelCard(
        model=type(model).__name__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
        n_rows=_weight(model) if n_rows is None else n_rows,
        columns=columns,
        settings=_settings(model),
        notes=checked_notes(known.notes if notes is None and known is not None else notes),
    )


def _check_fits(model: Any, columns: Sequence[ColumnFacts] | None) -> None:
    n_features = vars(model).get("n_features_in_")  # which rows that are no table do not have
    if columns is not None and n_features is not None and len(columns) != n_features:
        raise ValueError(f"trained_on has {len(columns)} columns, but the model was fitted to {n_features}: pass X as it was given to fit.")


def _weight(model: Any) -> int | None:
    """Return the number of rows that the moments sum up, by their weights; None where that is not whole, or there are no moments."""
    representation = _representation(model)
    if not isinstance(representation, GPSSL) or not float(representation.moments_.weight).is_integer():
        return None
    return int(representation.moments_.weight)


def _settings(model: Any) -> dict[str, Any]:
    """Return parameters and a few results as texts and numbers."""
    settings = {name: _readable(value) for name, value in model.get_params(deep=False).items()}
    representation = _representation(model)
    if isinstance(representation, GPSSL):
        settings |= {
            "residual": float(representation.residual_),
            "temperature as used": float(representation.temperature_),
            "inducing points": len(representation.inducing_points_),
            "directions": len(representation.eigenvalues_),
        }
    if "classes_" in vars(model):  # a classifier
        settings["classes"] = [_readable(value) for value in model.classes_.tolist()]
    if isinstance(model, Marginalized):
        settings["labeled rows"] = int(model.n_labeled_)
    return settings


def _readable(value: Any) -> Any:
    """Return a number or a text as it is, anything else as its `repr`, shortened."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else repr(value)
    if isinstance(value, np.ndarray):
        return f"array of shape {list(value.shape)}"
    text = " ".join((repr(value) if not isinstance(value, BaseEstimator) else str(value)).split())
    return text if len(text) <= LONGEST_SETTING else f"{text[: LONGEST_SETTING - 1]}…"
