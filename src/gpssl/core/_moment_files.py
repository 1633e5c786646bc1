"""Files of moments and checkpoints, read as if an enemy had written them: what they hold are sums that some rows may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data._array_files import arrays_in

Array = NDArray[np.float64]

FILE_VERSION = 1
UNCOMPRESSED = {"first": 2**22, "second": 2**26}
"""Bytes that arrays may have which compress to nothing, such as those of a constant kernel."""
LARGEST_WEIGHT = 1e16
ROUNDING = 1e-6
"""How far sums may be from what they must be, relative to their size: they may come from another machine, or from single precision."""
HARDLY_POSITIVE = 1e-8
"""The same for the smallest eigenvalue of a covariance."""


class StoredSums(NamedTuple):
    """What a file of moments holds."""

    sums: dict[str, Any]
    """The fields of `Moments`."""
    others: dict[str, Any]
    """Numbers that count, and texts, that a checkpoint has besides."""


def read_sums(path: Path, what: str, counts: Mapping[str, int] | None = None, texts: Iterable[str] = ()) -> StoredSums:
    """Return moments, further numbers below these limits, and texts. Raise ValueError where a file is not `what` it should be."""
    try:
        content = arrays_in(path, UNCOMPRESSED)
        version = int(_number(content, "version"))
        found = _found(content, counts or {}, texts) if version <= FILE_VERSION else None
    except ValueError as error:
        raise ValueError(f"{path} is not {what}, or is damaged: {str(error).rstrip('.')}.") from error
    if found is None:
        raise ValueError(f"{path} was written by a newer version of gpssl (format {version}); upgrade gpssl to read it.")
    return found


def _found(content: Mapping[str, NDArray[Any]], counts: Mapping[str, int], texts: Iterable[str]) -> StoredSums:
    sums: dict[str, Any] = {name: _number(content, name) for name in ("weight", "diagonal")}
    sums |= {name: _array(content, name) for name in ("first", "second")}
    check_sums(**sums)
    others: dict[str, Any] = {name: _count(content, name, below) for name, below in counts.items()}
    others |= {name: _text(content, name) for name in texts}
    return StoredSums({**sums, "fingerprint": _text(content, "fingerprint")}, others)


def check_sums(weight: float, first: Array, second: Array, diagonal: float) -> None:
    """Raise ValueError unless some rows may have these sums: the covariance of their kernel columns is then a covariance."""
    if not all(0 <= number < np.inf for number in (weight, diagonal)) or weight > LARGEST_WEIGHT:
        raise ValueError("the weight of its rows or their variance is no number that rows may have")
    n_points = first.shape[0] if first.ndim == 1 else 0
    if second.shape != (n_points, n_points) or n_points == 0:
        raise ValueError("its sums have shapes that do not fit each other")
    if not all(array.dtype == np.float64 and np.isfinite(array).all() for array in (first, second)):
        raise ValueError("its sums are not finite")
    if not _are_possible(weight, first, second):
        raise ValueError("no rows have its sums")


def _are_possible(weight: float, first: Array, second: Array) -> bool:
    largest = float(second.diagonal().max())
    if largest <= 0 or weight == 0:
        return not second.any() and not first.any()
    if not (np.abs(second - second.T) <= ROUNDING * largest).all():
        return False
    with np.errstate(all="ignore"):
        centered = (second - np.outer(first, first) / weight) / largest
        try:
            np.linalg.cholesky(centered + HARDLY_POSITIVE * np.eye(len(first)))
        except np.linalg.LinAlgError:
            return False
    return bool(np.isfinite(centered).all())


def _array(content: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    if name not in content:
        raise ValueError(f"{name!r} is missing")
    return content[name]


def _number(content: Mapping[str, NDArray[Any]], name: str) -> float:
    array = _array(content, name)
    if array.shape != () or array.dtype.kind not in "fiu" or not np.isfinite(array):
        raise ValueError(f"{name!r} is no number")
    return float(array)


def _count(content: Mapping[str, NDArray[Any]], name: str, below: int) -> int:
    array = _array(content, name)
    if array.shape != () or array.dtype.kind not in "iu" or not 0 <= int(array) < below:
        raise ValueError(f"{name!r} is no number that counts")
    return int(array)


def _text(content: Mapping[str, NDArray[Any]], name: str) -> str:
    array = _array(content, name)
    if array.shape != () or array.dtype.kind != "U":
        raise ValueError(f"{name!r} is no text")
    return str(array)
