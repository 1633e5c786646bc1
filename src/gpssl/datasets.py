"""Tables to try things on: those that come with scikit-learn, and the paper's circles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn.datasets
from numpy.typing import NDArray

__all__ = [
    "NOISE",
    "QUADRANT_ROWS",
    "RADII",
    "TABLES",
    "ExampleFile",
    "Table",
    "even_circles",
    "load_breast_cancer",
    "load_diabetes",
    "load_digits",
    "load_wine",
    "quadrant_circles",
    "write_example",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Rows, what is to be predicted from them, and what their columns are called."""

    name: str
    X: Array
    """NaN where a value is missing. [n, D]"""
    y: NDArray[Any]
    """Labels as strings, or targets as floats. [n]"""
    columns: tuple[str, ...]
    """[D]"""
    groups: NDArray[np.str_] | None = None
    """Which rows belong together and should not be split, such as repeated measurements of a mouse. [n]"""

    @property
    def predicts(self) -> str:
        """What the target holds, in words."""
        return "a number" if self.y.dtype.kind == "f" else f"{len(np.unique(self.y))} classes"

    @property
    def n_missing(self) -> int:
        """How many values of X are missing."""
        return int(np.isnan(self.X).sum())


def load_breast_cancer() -> Table:
    """Load Wisconsin diagnostic breast cancer, 569 rows of 30 columns, "malignant" or "benign": comes with scikit-learn.

    Examples
    --------
    >>> from gpssl.datasets import load_breast_cancer
    >>> table = load_breast_cancer()
    >>> table.X.shape, str(table.y[0]), table.n_missing
    ((569, 30), 'malignant', 0)
    """
    return _from_scikit_learn("breast_cancer", sklearn.datasets.load_breast_cancer())


def load_digits() -> Table:
    """Load handwritten digits, 1,797 pictures of 8 × 8 pixels, "0" to "9": comes with scikit-learn."""
    return _from_scikit_learn("digits", sklearn.datasets.load_digits())


def load_wine() -> Table:
    """Load chemical analyses of 178 wines in 13 columns, of three cultivars: comes with scikit-learn."""
    return _from_scikit_learn("wine", sklearn.datasets.load_wine())


def load_diabetes() -> Table:
    """Load the progression of diabetes in a year, of 442 patients with 10 columns: comes with scikit-learn."""
    bunch = sklearn.datasets.load_diabetes(scaled=False)
    return Table("diabetes", bunch.data, bunch.target, tuple(bunch.feature_names))


TABLES: dict[str, Callable[[], Table]] = {
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
    "wine": load_wine,
    "diabetes": load_diabetes,
}
"""Functions that load a table, by its name."""


class ExampleFile(NamedTuple):
    """A table that was written to a file."""

    path: Path
    n_rows: int
    n_columns: int
    target: str
    n_labels: int


def write_example(name: str, path: str | PathLike[str], *, n_labels: int | None = None, seed: int = 0, force: bool = False) -> ExampleFile:
    """Write a table with a column "target", of which `n_labels` random cells are filled in and the others empty."""
    import pandas as pd

    from .data import write_table

    if name not in TABLES:
        raise ValueError(f"There is no data set {name!r}; there are {', '.join(TABLES)}.")
    table = TABLES[name]()
    order = np.random.default_rng(seed).permutation(len(table.y))
    frame = pd.DataFrame(table.X, columns=list(table.columns))
    frame["target"] = pd.Series(table.y).where(order < (len(table.y) if n_labels is None else n_labels))
    write_table(path, frame, force=force)
    return ExampleFile(Path(path), len(frame), len(table.columns), "target", int(frame["target"].notna().sum()))


def _from_scikit_learn(name: str, bunch: Any) -> Table:
    return Table(
        name, bunch.data, np.array([str(label) for label in bunch.target_names[bunch.target]]), tuple(map(str, bunch.feature_names))
    )


_Circles = tuple[Array, NDArray[np.intp]]

RADII = (0.5, 1.0)
NOISE = 0.2
QUADRANT_ROWS = (300, 100, 50, 0)
"""Training rows in the top right, top left, bottom left and bottom right quadrant."""


def quadrant_circles(rows: tuple[int, int, int, int] = QUADRANT_ROWS, seed: int = 0) -> _Circles:
    """Draw the paper's concentric circles (section 3.2): rows, and the circle that each comes from.

    In each quadrant, counted counter-clockwise from the top right, a row has a radius of 0.5 or 1 with equal probability, a uniform angle,
    and Gaussian noise of standard deviation 0.2 in both coordinates.
    """
    return _circles(np.repeat(np.arange(4), rows), np.random.default_rng(seed))


def even_circles(n_rows: int, seed: int = 0) -> _Circles:
    """Draw the same circles with rows in all quadrants alike: the paper's labeled rows and test rows (section 3.3.1)."""
    rng = np.random.default_rng(seed)
    return _circles(rng.integers(4, size=n_rows), rng)


def _circles(quadrant: NDArray[np.intp], rng: np.random.Generator) -> _Circles:
    circle = rng.integers(len(RADII), size=len(quadrant))
    angle = (quadrant + rng.random(len(quadrant))) * np.pi / 2
    radius = np.array(RADII)[circle]
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + NOISE * rng.standard_normal(X.shape), circle
