"""Checkpoints: the file in which a long pass over other files keeps its sums, so that it can go on after an interruption."""

from __future__ import annotations

import hashlib
import time
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .._runtime import put_in_place
from ..data._rows import Rows, rows_of_a_part
from ._moments import Moments, read_arrays

SECONDS_BETWEEN = 10.0
"""Time between two writings: as much work as an interruption may cost."""


class Checkpoint:
    """The moments of the first parts of some rows, in a file that exists from the first seconds of a pass to the end of the fit.

    It belongs to these files, their size and time of change, to the kernel and the inducing points, and to the seed, which it holds,
    so that a pass without a random state of its own is resumed with the same inducing points.
    """

    def __init__(self, path: str | PathLike[str], rows: Rows) -> None:
        if rows.identity is None:
            raise ValueError(
                "A checkpoint is for rows in files: a path to Parquet or CSV files, or a numpy.memmap. "
                f"Rows of {type(getattr(rows, 'X', rows)).__name__} have to be read again from the start."
            )
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"There is no folder {self.path.parent} for the checkpoint {self.path.name}.")
        self._rows = hashlib.sha256(f"{rows.identity} {rows_of_a_part(rows.n_columns)}".encode())
        if rows.sample_weight is not None:
            self._rows.update(rows.sample_weight.tobytes())
        self._content = self._read()
        self._seed = 0
        self._written = time.monotonic()

    @property
    def seed(self) -> int | None:
        """The seed of the pass that was interrupted, if there was one."""
        return None if self._content is None else int(self._content["seed"])

    def start(self, seed: int, fingerprint: str) -> None:
        """Go on if this is the pass that was interrupted; else refuse, and leave the file as it is."""
        self._seed = seed
        if self._content is None:
            return
        if (str(self._content["fingerprint"]), int(self._content["seed"])) != (fingerprint, seed):
            raise ValueError(
                f"{self.path} is a checkpoint of a pass with another kernel, other inducing points or another random_state. {ADVICE}"
            )

    def recall(self) -> tuple[Moments | None, int]:
        """Return the moments so far, and the number of parts that they sum up."""
        if self._content is None:
            return None, 0
        return Moments.from_arrays(self._content), int(self._content["n_parts"])

    def keep(self, moments: Moments, n_parts: int, *, finished: bool = False) -> None:
        """Write the moments, if the last writing is some seconds ago: to a file beside that is then renamed, so that it is always whole."""
        if time.monotonic() - self._written < SECONDS_BETWEEN and not finished:
            return
        beside = self._beside
        with open(beside, "wb") as file:
            np.savez(file, rows=self._rows.hexdigest(), seed=self._seed, n_parts=n_parts, **moments.to_arrays())
        put_in_place(beside, self.path)
        self._written = time.monotonic()

    def forget(self) -> None:
        """Remove the file, once the fit has succeeded."""
        self.path.unlink(missing_ok=True)
        self._beside.unlink(missing_ok=True)  # where a writing was interrupted

    @property
    def _beside(self) -> Path:
        return self.path.with_name(f"{self.path.name}.new")

    def _read(self) -> dict[str, Any] | None:
        if not self.path.exists():
            return None
        content = read_arrays(self.path, "a checkpoint of gpssl")
        if str(content.get("rows")) != self._rows.hexdigest():
            raise ValueError(f"{self.path} is no checkpoint of a pass over these files, or they have changed since. {ADVICE}")
        return content


ADVICE = "Delete it to begin anew, or name another file."
