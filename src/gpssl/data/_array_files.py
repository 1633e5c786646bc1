"""Arrays in files, read as if an enemy had written them: no code, no claims that the bytes do not hold.

NumPy's own reader allocates what a header claims, and its header is a literal of Python, which fails in many ways.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

ARRAY_KINDS = "biufUMm"
"""Kinds of arrays that need no pickle: booleans, numbers, text, dates."""
LARGEST_RATIO = 100
"""Largest ratio of a member's size to its size in the file, where it is large."""
MOST_ARRAYS = 100
SMALL = 2**16
"""Bytes of an array up to which its ratio does not matter."""
USUAL = re.compile(
    rb"\x93NUMPY\x01\x00(..)\{'descr': '([<>|][a-zA-Z][0-9]{1,9}(?:\[[0-9]{0,9}[a-zA-Z]{1,3}\])?)', 'fortran_order': (False|True), "
    rb"'shape': \(((?:[0-9]{1,18}, ?)*(?:[0-9]{1,18})?)\), \} *\n",
    re.DOTALL,
)
"""The beginning of an array as NumPy writes it, which needs no parser of Python."""


def array_of(data: bytes) -> NDArray[Any]:
    """Return the array in the bytes of an `.npy` file, in the order of bytes of this machine. Raise ValueError where there is none."""
    shape, is_fortran, dtype, start = _header(data)
    if dtype.hasobject or dtype.kind not in ARRAY_KINDS or dtype.itemsize == 0:
        raise ValueError(f"an array of {dtype}, which would need code to be read")
    n_bytes = len(data) - start
    if any(size < 0 for size in shape) or math.prod(shape) * dtype.itemsize != n_bytes:
        raise ValueError(f"an array said to have shape {shape} in {n_bytes:,} bytes")
    array = np.frombuffer(data, dtype, offset=start).reshape(shape, order="F" if is_fortran else "C")
    return array.astype(dtype.newbyteorder("="), order="K", copy=True)  # which can be written to, as an array that was computed


def _header(data: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return shape, order, type and the place of the first number."""
    usual = USUAL.match(data)
    if usual is not None and usual.end() == 10 + int.from_bytes(usual[1], "little"):
        shape = tuple(int(size) for size in usual[4].decode("ascii").replace(",", " ").split())
        return shape, usual[3] == b"True", np.dtype(usual[2].decode("ascii")), usual.end()
    stream = BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"an array of format {version}")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, is_fortran, dtype = read(stream)
    except Exception as error:  # a literal of Python may fail in many ways
        raise ValueError(f"an array without a header ({' '.join(str(error).split())[:100]})") from error
    return shape, is_fortran, dtype, stream.tell()


def is_too_large(member: ZipInfo, size_of_file: int, at_least: int) -> bool:
    """Return whether a member of a zip claims to be larger than it can be: a bomb, of which the table of contents tells."""
    return member.file_size > max(at_least, LARGEST_RATIO * member.compress_size) or member.compress_size > size_of_file


def is_readable(member: ZipInfo) -> bool:
    """Return whether a member of a zip is neither encrypted nor compressed in a way that takes unknown memory."""
    return member.compress_type in (ZIP_STORED, ZIP_DEFLATED) and not member.flag_bits & 1


def arrays_in(path: Path, limits: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Return the arrays of an `.npz` file by their names. Raise ValueError where it is none, or one claims to be larger than it can be.

    Members may compress to nothing, as zeros do, up to the limit of their name; beyond it they may be `LARGEST_RATIO` times as large as in
    the file.
    """
    with open(path, "rb") as file:
        try:
            with ZipFile(file) as archive:
                members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
                if len(members) < len(archive.infolist()) or len(members) > MOST_ARRAYS:
                    raise ValueError("an array twice, or too many")
                for name, member in members.items():
                    if not is_readable(member) or is_too_large(member, os.path.getsize(path), limits.get(name, SMALL)):
                        raise ValueError(f"{name[:60]!r} claims to be far larger than it can be, or is compressed in another way")
                return {name: array_of(archive.read(member)) for name, member in members.items()}
        except Exception as error:  # whatever damaged bytes lead to
            raise ValueError(" ".join(str(error).split())[:200] or type(error).__name__) from error
