"""A zip file of arrays and JSON, written as a whole or not at all, and read as if an enemy had written it.

Nothing is unpickled, no name in the file becomes a path, and no header is believed before it has been compared with the bytes after it.
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
from pathlib import Path
from typing import Any, NoReturn
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from .._runtime.atomic import written_beside

CARD, MODEL = "card.json", "model.json"
ARRAY = re.compile(r"arrays/[0-9]{1,9}\.npy", re.ASCII)
ARRAY_KINDS = "biufUMm"
"""Kinds of arrays that need no pickle: booleans, numbers, text, dates."""
MOST_MEMBERS = 100_000
LARGEST_RATIO = 100
"""Largest ratio of a member's size to its size in the file. What compresses better, such as many zeros, is stored uncompressed, so that
the table of contents is enough to recognize a decompression bomb."""
SMALL = 2**16
"""Bytes up to which the ratio does not matter."""


class ModelFileError(ValueError):
    """A file holds no model that this version can read, or a model cannot be written."""


def write_archive(path: Path, texts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
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


class Archive:
    """An open file. Every member is checked before any is read."""

    def __init__(self, path: Path, zipped: ZipFile) -> None:
        self.path = path
        self._zipped = zipped
        self._members = {info.filename: info for info in zipped.infolist()}
        self._check_members()

    def _check_members(self) -> None:
        if len(self._members) < len(self._zipped.infolist()) or not {CARD, MODEL} <= set(self._members):
            damaged(self.path, "it lacks a part, or has one twice")
        if len(self._members) > MOST_MEMBERS:
            damaged(self.path, f"it has more than {MOST_MEMBERS:,} parts")
        for name, info in self._members.items():
            if name not in (CARD, MODEL) and not ARRAY.fullmatch(name):
                damaged(self.path, f"it has a part named {name[:60]!r}, which no model has")
            if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED) or info.flag_bits & 1:
                damaged(self.path, f"{name} is encrypted, or compressed in a way that no model is")
            if info.file_size > max(SMALL, LARGEST_RATIO * info.compress_size) or info.compress_size > os.path.getsize(self.path):
                damaged(self.path, f"{name} claims to be far larger than it can be")

    def read_json(self, name: str) -> Any:
        """Read what JSON allows and nothing else: no NaN, no numbers of thousands of digits."""
        return json.loads(self._zipped.read(name).decode("utf-8"), parse_constant=_no_constant)

    def read_array(self, name: str) -> NDArray[Any]:
        """Read an array of numbers or text, after comparing its shape with its bytes."""
        if not ARRAY.fullmatch(name) or name not in self._members:
            damaged(self.path, f"the array {name[:60]!r} is missing")
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
            raise ModelFileError(f"{path} is no model of gpssl, or is damaged ({_in_short(error)}).") from error


def damaged(path: Path, why: str) -> NoReturn:
    """Raise ModelFileError for a file that is not as `save` writes it."""
    raise ModelFileError(f"{path} is no model of gpssl, or is damaged: {why}.")


def _in_short(error: Exception) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


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
