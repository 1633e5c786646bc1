"""Moments in a file, and the checkpoint of a pass that was interrupted, with the model and the rows that they belong to."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

from gpssl import GPSSL
from gpssl.core import _moments
from gpssl.data import _rows

PART_ROWS = (1, 100)
X = np.random.default_rng(0).standard_normal((40, 3)) + 2 * (np.arange(40) % 2)[:, None]


def of_sums() -> GPSSL:
    """A model whose moments and checkpoints are attacked."""
    return GPSSL(2, kernel=sk.RBF(2.0), inducing=X[:6], residual_tolerance=0.9, inference="mode", random_state=0)


def rows_in_a_file(folder: Path) -> Any:
    """Rows of which a checkpoint is kept, which are read in parts."""
    return np.memmap(folder / "rows.dat", dtype=float, mode="r", shape=(600, 3))


def write_sums(folder: Path) -> None:
    """Write moments, and the checkpoint of a pass that was interrupted, each with the model beside it."""
    rows: Any = np.memmap(folder / "rows.dat", dtype=float, mode="w+", shape=(600, 3))
    rows[:] = np.random.default_rng(1).standard_normal(rows.shape)
    rows.flush()
    of_sums().fit(X).moments_.save(folder / "moments.npz")
    keep = _moments.Checkpoint.keep

    def keep_and_stop(self: Any, moments: Any, n_parts: int, *, finished: bool = False) -> None:  # noqa: ARG001  (that of the class)
        keep(self, moments, n_parts, finished=True)
        if n_parts == 2:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(_rows, "PART_ROWS", PART_ROWS)
        patch.setattr(_moments.Checkpoint, "keep", keep_and_stop)
        of_sums().fit(rows_in_a_file(folder), checkpoint=folder / "pass.npz")
