"""Save models to files, load them, and read their cards.

A file is a zip of arrays and JSON, written as a whole or not at all, and read as if an enemy had written it: nothing is unpickled, no name
in the file becomes a path, and no header is believed before it has been compared with the bytes after it.
"""

from __future__ import annotations

import json
import math
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._runtime import written_beside
from ..data._frames import ColumnFacts
from ..downstream._marginal import Marginalized, inner
from ..estimator import GPSSL
from ._card import ModelCard, card_of, representation_of
from ._encoding import ARRAY_KINDS, Decoder, Encoder, ModelFileError
from ._stored_classes import FORMS

FORMAT = 1
"""Number of the file format. It grows when older versions could not read what is written; older formats stay readable."""

CARD, MODEL = "card.json", "model.json"
ARRAY = re.compile(r"arrays/[0-9]{1,9}\.npy", re.ASCII)
MOST_MEMBERS = 100_000
LARGEST_RATIO = 100
"""Largest ratio of a member's size to its size in the file. What compresses better, such as many zeros, is stored uncompressed, so that
the table of contents is enough to recognize a decompression bomb."""
SMALL = 2**16
"""Bytes up to which the ratio does not matter."""

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
    card = card_of(model, trained_on, notes)
    encoder = Encoder(FORMS)
    content = encoder.encode(model)
    _write_archive(Path(path), {CARD: {"format": FORMAT, "card": card.to_json()}, MODEL: content}, encoder.arrays)


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
    with _open_archive(Path(path)) as archive:
        card = _card_in(archive)
        try:
            model = Decoder(FORMS, archive.read_array).decode(archive.read_json(MODEL))
        except ModelFileError as error:
            raise ModelFileError(f"{path} cannot be read: {error}.") from error
        if not _is_saveable(model):
            raise ModelFileError(f"{path} holds no model, but {type(model).__name__}.")
        check_is_fitted(model, "moments_" if isinstance(model, GPSSL) else None)
        attach_card(card, model)
    return model


def read_card(path: str | PathLike[str]) -> ModelCard:
    """Read the card of a model file, without building the model."""
    with _open_archive(Path(path)) as archive:
        return _card_in(archive)


def _card_in(archive: _Archive) -> ModelCard:
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


def _write_archive(path: Path, texts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write JSON and arrays by name, to a file beside that is then renamed, so that the file is always whole."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} for the model {path.name}: make it first, or name another.")
    with written_beside(path) as beside, ZipFile(beside, "w") as archive:
        for name, content in texts.items():
            _write(archive, name, json.dumps(content, allow_nan=False, indent=1).encode("ascii"))
        for name, array in arrays.items():
            buffer = BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            _write(archive, name, buffer.getvalue())


def _write(archive: ZipFile, name: str, data: bytes) -> None:
    info = ZipInfo(name)  # without the time: the same content gives the same bytes
    small_enough = len(data) <= max(SMALL, LARGEST_RATIO // 2 * len(zlib.compress(data, 1)))
    info.compress_type = ZIP_DEFLATED if small_enough else ZIP_STORED
    archive.writestr(info, data)


class _Archive:
    """An open file. Every member is checked before any is read."""

    def __init__(self, path: Path, zipped: ZipFile) -> None:
        self.path = path
        self._zipped = zipped
        self._members = {info.filename: info for info in zipped.infolist()}
        if len(self._members) < len(zipped.infolist()) or not {CARD, MODEL} <= set(self._members):
            self._damaged("it lacks a part, or has one twice")
        if len(self._members) > MOST_MEMBERS:
            self._damaged(f"it has more than {MOST_MEMBERS:,} parts")
        for name, info in self._members.items():
            if name not in (CARD, MODEL) and not ARRAY.fullmatch(name):
                self._damaged(f"it has a part named {name[:60]!r}, which no model has")
            if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED) or info.flag_bits & 1:
                self._damaged(f"{name} is encrypted, or compressed in a way that no model is")
            if info.file_size > max(SMALL, LARGEST_RATIO * info.compress_size) or info.compress_size > os.path.getsize(self.path):
                self._damaged(f"{name} claims to be far larger than it can be")

    def _damaged(self, why: str) -> NoReturn:
        raise ModelFileError(f"{self.path} is no model of gpssl, or is damaged: {why}.")

    def read_json(self, name: str) -> Any:
        """Read what JSON allows and nothing else: no NaN, no numbers of thousands of digits."""
        return json.loads(self._zipped.read(name).decode("utf-8"), parse_constant=_no_constant)

    def read_array(self, name: str) -> NDArray[Any]:
        """Read an array of numbers or text, after comparing its shape with its bytes."""
        if not ARRAY.fullmatch(name) or name not in self._members:
            raise ModelFileError(f"the array {name[:60]!r} is missing")
        data = self._zipped.read(name)
        _check_header(BytesIO(data))
        return np.asarray(np.lib.format.read_array(BytesIO(data), allow_pickle=False))


@contextmanager
def _open_archive(path: Path) -> Iterator[_Archive]:
    """Open the file. Raise ModelFileError for whatever is wrong with it, here or in the block."""
    with open(path, "rb") as file:
        try:
            with ZipFile(file) as zipped:
                yield _Archive(path, zipped)
        except ModelFileError:
            raise
        # Whatever an unexpected content leads to (bad numbers, wrong types, too deep a nesting), it is the file's fault.
        except Exception as error:
            text = " ".join(str(error).split()).rstrip(".")[:200]
            what = f"{type(error).__name__}: {text}" if text else type(error).__name__
            raise ModelFileError(f"{path} is no model of gpssl, or is damaged ({what}).") from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _check_header(stream: BytesIO) -> None:
    """Raise ValueError for an array of objects, or one whose shape does not fit its bytes: NumPy would allocate memory for it first."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"an array of format {version}")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    if dtype.hasobject or dtype.kind not in ARRAY_KINDS or dtype.itemsize == 0:
        raise ValueError(f"an array of {dtype}, which would need code to be read")
    n_bytes = len(stream.getvalue()) - stream.tell()
    if any(size < 0 for size in shape) or math.prod(shape) * dtype.itemsize != n_bytes:
        raise ValueError(f"an array said to have shape {shape} in {n_bytes:,} bytes")
