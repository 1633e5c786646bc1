"""Images of the tissue, from files."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from .packages import need


def image_size(path: Path) -> tuple[int, int]:
    """Width and height, without reading the pixels."""
    with _stream(path) as file:
        return _open(file, path).size


def read_image(path: Path, *, longest: int | None = None) -> NDArray[np.float32]:
    """Colors from 0 to 1, scaled down so that no side is longer than asked for. [h, w, 3]"""
    with _stream(path) as file:
        image = _open(file, path)
        try:
            if longest is not None:
                image.thumbnail((longest, longest))  # for JPEG this decodes no more pixels than are needed
            return np.asarray(image.convert("RGB"), dtype=np.float32) / np.float32(255)
        except OSError as error:
            raise ValueError(
                f"{path} cannot be read as an image ({error}). Restore the file, or take it away to read without an image."
            ) from error


def _stream(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _open(file: IO[bytes], path: Path) -> Any:
    pillow = need("PIL.Image")
    with warnings.catch_warnings():
        # Microscopes make images of this size; they are no attack.
        warnings.simplefilter("ignore", pillow.DecompressionBombWarning)
        try:
            return pillow.open(file)
        except OSError as error:
            raise ValueError(
                f"{path} is no image that Pillow knows. Restore the file, or take it away to read without an image."
            ) from error
