"""The files that hold models, and their cards.

A file is a zip of arrays and JSON, written as a whole or not at all, and read as if an enemy had written it: nothing is unpickled, no name
in the file becomes a path, and no header is believed before it has been compared with the bytes after it. To read a card, nothing that a
model needs is imported.
"""

from __future__ import annotations

import json
import math
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from .._runtime.files import written_beside
from ._card import ModelCard
from ._encoding import ARRAY_KINDS, ModelFileError

FORMAT = 1
"""Number of the file format. It grows when older versions could not read what is written; older formats stay readable."""

CARD, MODEL = "card.json", "model.json"
ARRAY = re.compile(r"arrays/[0-9]{1,9}\.npy", re.ASCII)
MOST_MEMBERS = 100_000
LARGEST_RATIO = 100
"""Largest ratio of a member's size to its size in the file. What compresses better, such as many zeros, is stored uncompressed, so that
the table of contents is enough to recognize a decompression bomb."""
SAMPLE_PIECES, SAMPLE_BYTES = 8, 1024
"""How much of a large array is compressed to see whether it shrinks at all: most arrays of a model do not."""
WORTH_COMPRESSING = 0.9
"""Share of its size above which a member is stored as it is: most arrays hold numbers of all digits, which hardly shrink."""
SMALL = 2**16
"""Bytes up to which the ratio does not matter."""


def read_card(path: str | PathLike[str]) -> ModelCard:
    """Read the card of a model file, without building the model."""
    with open_archive(Path(path)) as archive:
        return card_in(archive)


def card_in(archive: Archive) -> ModelCard:
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


def write_archive(path: Path, texts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write JSON and arrays by name, to a file beside that is then renamed, so that the file is always whole."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} for the model {path.name}: make it first, or name another.")
    with written_beside(path) as beside, ZipFile(beside, "w") as archive:
        for name, content in texts.items():
            # Python's own encoder, which indents, takes ten times as long: only the card is for people.
            _write(archive, name, json.dumps(content, allow_nan=False, indent=1 if name == CARD else None).encode("ascii"))
        for name, array in arrays.items():
            buffer = BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            _write(archive, name, buffer.getvalue())


def _write(archive: ZipFile, name: str, data: bytes) -> None:
    info = ZipInfo(name)  # without the time: the same content gives the same bytes
    info.compress_type = ZIP_DEFLATED if _is_worth_compressing(data) else ZIP_STORED
    archive.writestr(info, data, compresslevel=1)


def _is_worth_compressing(data: bytes) -> bool:
    """Return whether data shrink, but not so much that a reader would take them for a trap. Of much data, a sample may tell that not."""
    if len(data) > SAMPLE_PIECES * SAMPLE_BYTES:
        steps = range(0, len(data) - SAMPLE_BYTES + 1, (len(data) - SAMPLE_BYTES) // (SAMPLE_PIECES - 1))
        sample = b"".join(data[first : first + SAMPLE_BYTES] for first in steps)
        if len(zlib.compress(sample, 1)) >= WORTH_COMPRESSING * len(sample):
            return False
    compressed = len(zlib.compress(data, 1))
    return compressed < WORTH_COMPRESSING * len(data) and len(data) <= max(SMALL, LARGEST_RATIO // 2 * compressed)


class Archive:
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
def open_archive(path: Path) -> Iterator[Archive]:
    """Open the file. Raise ModelFileError for whatever is wrong with it, here or in the block."""
    with open(path, "rb") as file:
        try:
            with ZipFile(file) as zipped:
                yield Archive(path, zipped)
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
