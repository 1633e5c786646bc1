"""One table in many forms, and what it is to be compared with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gpssl import GPSSL

Array = NDArray[np.float64]

N_ROWS = 5000
NAMES = ["a", "b", "c", "d"]


def make_table() -> Array:
    """More rows than any sample has, of which some are far out, some occur twice, and a third of the entries are zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, 2)) @ rng.standard_normal((2, 4)) + 0.3 * rng.standard_normal((N_ROWS, 4))
    X[rng.random(X.shape) < 1 / 3] = 0.0
    X[:3] *= 4
    X[3:100] = X[:97]
    return X


X = make_table()
X.setflags(write=False)
FRAME = pd.DataFrame(X, columns=NAMES)


def model(**parameters: Any) -> GPSSL:
    return GPSSL(3, max_inducing=60, residual_tolerance=0.05, random_state=0, **parameters)


def assert_same_posterior(one: GPSSL, other: GPSSL) -> None:
    np.testing.assert_array_equal(one.inducing_points_, other.inducing_points_)
    rows = [FRAME[::50] if hasattr(fitted, "feature_names_in_") else X[::50] for fitted in (one, other)]
    np.testing.assert_allclose(one.transform(rows[0]), other.transform(rows[1]), rtol=0, atol=1e-8)
    np.testing.assert_allclose(one.std(rows[0]), other.std(rows[1]), rtol=0, atol=1e-8)


def write_memmap(folder: Path, rows: NDArray[Any], mode: Any = "r") -> Any:
    mapped: Any = np.memmap(folder / "rows.dat", dtype=rows.dtype, mode="w+", shape=rows.shape)
    mapped[:] = rows
    mapped.flush()
    return np.memmap(folder / "rows.dat", dtype=rows.dtype, mode=mode, shape=rows.shape)


def as_memmap(folder: Path) -> Any:
    return write_memmap(folder, X)


def as_parquet(folder: Path) -> str:
    FRAME.to_parquet(folder / "rows.parquet", row_group_size=700)
    return str(folder / "rows.parquet")


def as_folder_of_files(folder: Path) -> Path:
    """Parquet files in the order of their numbers, one of them empty, one with a single row, beside what is no table."""
    (folder / "rows").mkdir()
    for i, rows in zip((1, 2, 9, 10), (FRAME[:1999], FRAME[:0], FRAME[1999:2000], FRAME[2000:]), strict=True):
        rows.to_parquet(folder / "rows" / f"part-{i}.parquet")
    for name in ("README.txt", ".hidden.parquet", "_metadata.parquet"):
        (folder / "rows" / name).write_text("not a table")
    (folder / "rows" / "folder.parquet").mkdir()
    return folder / "rows"


def as_csv(folder: Path) -> Path:
    FRAME.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def as_compressed_tsv(folder: Path) -> Path:
    FRAME.to_csv(folder / "rows.tsv.gz", index=False, sep="\t")
    return folder / "rows.tsv.gz"


def as_hdf5(folder: Path) -> Any:
    h5py = pytest.importorskip("h5py")
    return h5py.File(folder / "rows.h5", "w").create_dataset("X", data=X)
