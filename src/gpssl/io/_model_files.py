"""Save models to files, and load them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from .._runtime.threads import one_blas_thread
from ..data._frames import ColumnFacts
from ..downstream._marginal import Marginalized, inner
from ..estimator import GPSSL
from ._archive import CARD, FORMAT, MODEL, card_in, open_archive, write_archive
from ._card import ModelCard, card_of, representation_of
from ._encoding import Decoder, Encoder, ModelFileError
from ._stored_classes import FORMS
from ._trial import models_in, try_out

SAVEABLE = ("GPSSL", "GPPrior", "MarginalizedClassifier", "MarginalizedRegressor", "PosteriorClustering", "RepresentationPool")


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
    write_model(model, Path(path), card_of(model, trained_on, notes))


def write_model(model: Any, path: Path, card: ModelCard) -> None:
    """Write a fitted model and its card to a file."""
    encoder = Encoder(FORMS)
    content = encoder.encode(model)
    write_archive(path, {CARD: {"format": FORMAT, "card": card.to_json()}, MODEL: content}, encoder.arrays)


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
    with open_archive(Path(path)) as archive, one_blas_thread():
        card = card_in(archive)
        try:
            model = Decoder(FORMS, archive.read_array).decode(archive.read_json(MODEL))
        except ModelFileError as error:
            raise ModelFileError(f"{path} cannot be read: {error}.") from error
        if not _is_saveable(model):
            raise ModelFileError(f"{path} holds no model, but {type(model).__name__}.")
        check_is_fitted(model, "moments_" if isinstance(model, GPSSL) else None)
        try:
            for part in models_in(model):
                try_out(part)
        except ModelFileError as error:
            raise ModelFileError(f"{path} cannot be used: {error}.") from error
        attach_card(card, model)
    return model


def _is_saveable(model: Any) -> bool:
    """Tell models that a file may hold by the class that has this name in files; a class of the same name elsewhere is another."""
    return FORMS.name_of(type(model)) in [f"gpssl.{name}" for name in SAVEABLE]


def attach_card(card: ModelCard, model: Any) -> None:
    """Give the card to the model and to its parts that can be called with rows: they then warn of rows that leave its ranges."""
    model.card_ = card
    parts: list[Any] = [representation_of(model), *([inner(model.representation_)] if isinstance(model, Marginalized) else [])]
    for part in parts:
        if _is_saveable(part):
            part.card_ = card
    functions = vars(model).get("functions_")
    if functions is not None and not isinstance(functions, list):  # of a pool, which checks rows for all members
        functions.card_ = card
