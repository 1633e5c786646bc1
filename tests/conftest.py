"""Data that several tests share. Arrays are read-only, so that a library which writes into its input fails."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.gaussian_process.kernels import RBF

import row_files
from gpssl import GPSSL
from gpssl.data import _rows as part_module
from gpssl.datasets import quadrant_circles
from gpssl.kernels import NeighborRBF

Array = NDArray[np.float64]

# The same examples on every machine; to look for new ones: pytest --hypothesis-profile=search
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile("fixed")


def _read_only(X: Array) -> Array:
    X.setflags(write=False)
    return X


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    """Close the figures that a test has drawn: pyplot keeps them, and warns of many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def circles() -> Array:
    return _read_only(quadrant_circles()[0])


@pytest.fixture(scope="session")
def circle_kernel(circles: Array) -> RBF:
    """The paper's rule at neighborhood 10, isotropic."""
    return NeighborRBF(per_column=False).resolve(circles)


@pytest.fixture(scope="session")
def breast_cancer() -> Array:
    return _read_only(load_breast_cancer(return_X_y=True)[0].copy())


@pytest.fixture(scope="session")
def flowers() -> tuple[Array, NDArray[np.intp]]:
    """All rows of iris, and 30 labels among 120 marks."""
    X, y = load_iris(return_X_y=True)
    labeled = np.random.default_rng(0).permutation(len(y))[:30]
    few = np.full(len(y), -1)
    few[labeled] = y[labeled]
    return X, few


@pytest.fixture(scope="session")
def reference() -> GPSSL:
    """What every source of the table in `row_files` must lead to."""
    return row_files.model().fit(row_files.X)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in many parts."""
    monkeypatch.setattr(part_module, "PART_ROWS", (1, 300))
