"""The files that hold models, and their cards.

A file is a zip of arrays and JSON, written as a whole or not at all, and read as if an enemy had written it: nothing is unpickled, no name
in the file becomes a path, and no header is believed before it has been compared with the bytes after it. To read a card, nothing that a
model needs is imported.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from .._runtime.files import written_beside
from ..data._array_files import LARGEST_RATIO, array_of, is_readable, is_too_large
from ._card import ModelCard
from ._encoding import ModelFileError

FORMAT = 1
"""Number of the file format. It grows when older versions could not read what is written; older formats stay readable."""

CARD, MODEL = "card.json", "model.json"
ARRAY = re.compile(r"arrays/[0-9]{1,9}\.npy", re.ASCII)
MOST_MEMBERS = 100_000
SAMPLE_PIECES, SAMPLE_BYTES = 8, 1024
"""How much of a large array is compressed to see whether it shrinks at all: most arrays of a model do not."""
CHECKSUMS = "checksums"
"""Where the card has the checksum of each member, and its own. They tell damage from a change that somebody made, and are no signature:
whoever can write a file can compute them. Files of 0.1.0 have none."""
WORTH_COMPRESSING = 0.9
"""Share of its size above which a member is stored as it is: most arrays hold numbers of all digits, which hardly shrink."""
SMALL = 2**16
"""Bytes up to which the ratio of a member's size to its size in the file does not matter. Beyond, what compresses better than
`LARGEST_RATIO`, such as many zeros, is stored uncompressed, so that the table of contents is enough to recognize a decompression bomb."""


def read_card(path: str | PathLike[str]) -> ModelCard:
    """Read the card of a model file, without building the model."""
    with open_archive(Path(path)) as archive:
        return card_in(archive)


def card_in(archive: Archive) -> ModelCard:
    """Return the card, and let the archive know the checksums in it."""
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
    archive.expect(content)
    return ModelCard.from_json(content["card"])


def write_archive(path: Path, texts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write JSON and arrays by name, to a file beside that is then renamed, so that the file is always whole."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} for the model {path.name}: make it first, or name another.")
    checksums = {}
    with written_beside(path) as beside, ZipFile(beside, "w") as archive:
        for name, content in texts.items():
            if name != CARD:
                # Python's own encoder, which indents, takes ten times as long: only the card is for people.
                checksums[name] = _write(archive, name, json.dumps(content, allow_nan=False).encode("ascii"))
        for name, array in arrays.items():
            buffer = BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            checksums[name] = _write(archive, name, buffer.getvalue())
        card = texts[CARD]
        card = {**card, CHECKSUMS: {**checksums, "card": checksum_of_card(card["card"])}}
        _write(archive, CARD, json.dumps(card, allow_nan=False, indent=1).encode("ascii"))


def checksum_of_card(card: Any) -> str:
    """Return the checksum of a card, which cannot be that of the member that it is in."""
    return hashlib.sha256(json.dumps(card, sort_keys=True).encode()).hexdigest()


def _write(archive: ZipFile, name: str, data: bytes) -> str:
    """Write a member, and return its checksum."""
    info = ZipInfo(name)  # without the time: the same content gives the same bytes
    info.compress_type = ZIP_DEFLATED if _is_worth_compressing(data) else ZIP_STORED
    archive.writestr(info, data, compresslevel=1)
    return hashlib.sha256(data).hexdigest()


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
        self._checksums: dict[str, str] | None = None
        if len(self._members) < len(zipped.infolist()) or not {CARD, MODEL} <= set(self._members):
            self._damaged("it lacks a part, or has one twice")
        if len(self._members) > MOST_MEMBERS:
            self._damaged(f"it has more than {MOST_MEMBERS:,} parts")
        for name, info in self._members.items():
            if name not in (CARD, MODEL) and not ARRAY.fullmatch(name):
                self._damaged(f"it has a part named {name[:60]!r}, which no model has")
            if not is_readable(info):
                self._damaged(f"{name} is encrypted, or compressed in a way that no model is")
            if is_too_large(info, os.path.getsize(self.path), SMALL):
                self._damaged(f"{name} claims to be far larger than it can be")

    def _damaged(self, why: str) -> NoReturn:
        raise ModelFileError(f"{self.path} is no model of gpssl, or is damaged: {why}.")

    def _changed(self, name: str) -> NoReturn:
        raise ModelFileError(f"{self.path} is damaged: its member {name} has changed since it was written. Copy or download it again.")

    def expect(self, content: dict[str, Any]) -> None:
        """Remember the checksums beside a card, if there are some; from now on, members must have them."""
        if CHECKSUMS not in content:
            return
        checksums = {str(name): str(known) for name, known in content[CHECKSUMS].items()}
        if checksums.pop("card", None) != checksum_of_card(content["card"]):
            self._changed(CARD)
        if set(checksums) != set(self._members) - {CARD}:
            self._damaged("it lacks a part that it was written with, or has another")
        self._checksums = checksums

    def _read(self, name: str) -> bytes:
        """Return the bytes of a member. Raise ModelFileError where they are not those that were written."""
        try:
            data = self._zipped.read(name)
        except (BadZipFile, zlib.error, EOFError):
            self._changed(name)
        if self._checksums is not None and name != CARD and hashlib.sha256(data).hexdigest() != self._checksums[name]:
            self._changed(name)
        return data

    def read_json(self, name: str) -> Any:
        """Read what JSON allows and nothing else: no NaN, no numbers of thousands of digits."""
        return json.loads(self._read(name).decode("utf-8"), parse_constant=_no_constant)

    def read_array(self, name: str) -> NDArray[Any]:
        """Read an array of numbers or text, after comparing its shape with its bytes."""
        if not ARRAY.fullmatch(name) or name not in self._members:
            raise ModelFileError(f"the array {name[:60]!r} is missing")
        return array_of(self._read(name))


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
