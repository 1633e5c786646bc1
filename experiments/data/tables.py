"""Tables to compare methods on: six with classes, ten with a number to predict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpssl.datasets import Table, load_breast_cancer, load_diabetes, load_digits, load_wine

from .places import DERMATOLOGY, DISEASES, ECOLI, MICE, MICE_PROTEIN, REGRESSION_SOURCES, REPLICATES
from .sources import read_source

Array = NDArray[np.float64]


REGRESSION_TABLES = ("diabetes", *REGRESSION_SOURCES)


def load_dermatology() -> Table:
    """Load skin diseases: 366 patients, 33 graded findings and an age, which is missing for 8; six diagnoses."""
    cells = read_source(DERMATOLOGY)
    return Table("dermatology", cells.X, np.array([DISEASES[label] for label in _as_text(cells.y)]), DERMATOLOGY.columns)


def load_ecoli() -> Table:
    """Load where in the cell a protein of E. coli is found: 336 proteins, 7 scores; eight places, the rarest with two proteins."""
    cells = read_source(ECOLI)
    return Table("ecoli", cells.X, _as_text(cells.y), ECOLI.columns)


def load_mice_protein() -> Table:
    """Load protein levels in the cortex of mice: 1,080 rows of 77 proteins, 1,396 values missing; eight classes.

    The rows are 15 replicates of each of 72 mice, and `groups` says which mouse a row is of. A random split puts replicates of the same
    mouse on both sides, where they are easily recognized: its accuracies are far too good. Splits by mouse (scikit-learn's
    `GroupKFold`, `GroupShuffleSplit`, `StratifiedGroupKFold`) are the honest ones; random splits are for comparison with papers that
    used them.
    """
    cells = read_source(MICE_PROTEIN)
    labels = _as_text(cells.y)
    groups = _mice_by_position(labels) if cells.groups is None else np.array([mouse.rsplit("_", 1)[0] for mouse in cells.groups])
    return Table("mice_protein", cells.X, labels, MICE_PROTEIN.columns, groups)


def load_regression(name: str) -> Table:
    """Load one of `REGRESSION_TABLES`, on which many papers on regression with uncertainty compare.

    "diabetes" comes with scikit-learn: the progression of the disease in a year, of 442 patients.
    The target of "energy" is the heating load, that of "naval" the decay of the compressor (column 17; the decay of the turbine, column
    18, is a second target and left out). "boston" has a column that encodes the share of Black residents, on the assumption that
    house prices depend on it, and is here for comparison with older papers only; do not build anything on it.
    """
    _check_name(name, REGRESSION_TABLES)
    if name == "diabetes":
        return load_diabetes()
    source = REGRESSION_SOURCES[name]
    cells = read_source(source)
    return Table(name, cells.X, cells.y.astype(np.float64), source.columns)


def load_classification(name: str) -> Table:
    """Load one of `CLASSIFICATION_TABLES` and `FURTHER_TABLES`, by name."""
    _check_name(name, (*CLASSIFICATION_TABLES, *FURTHER_TABLES))
    return CLASSIFICATION_LOADERS[name]()


CLASSIFICATION_LOADERS: dict[str, Callable[[], Table]] = {
    "breast_cancer": load_breast_cancer,
    "dermatology": load_dermatology,
    "ecoli": load_ecoli,
    "mice_protein": load_mice_protein,
    "digits": load_digits,
    "wine": load_wine,
}

CLASSIFICATION_TABLES = ("breast_cancer", "dermatology", "ecoli", "mice_protein")
"""The paper's."""

FURTHER_TABLES = ("digits", "wine")
"""Not in the paper; both come with scikit-learn."""


def _check_name(name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise ValueError(f"There is no table {name!r}; the names are {', '.join(known)}.")


def _as_text(labels: NDArray[Any]) -> NDArray[np.str_]:
    return np.array([str(label) for label in labels])


def _mice_by_position(labels: NDArray[np.str_]) -> NDArray[np.str_]:
    """Return the mouse of each row where the source, like OpenML, leaves it out: rows of a mouse follow each other. [n]"""
    mice = np.repeat(MICE.split(), REPLICATES)
    one_class_each = len(labels) == len(mice) and all(len(set(rows)) == 1 for rows in labels.reshape(-1, REPLICATES))
    if not one_class_each:
        raise ValueError(
            "The rows of the mice are not in the order of the original file, so that it is not known which mouse a row is of. Set "
            f"GPSSL_DATA to a folder that has {MICE_PROTEIN.file}."
        )
    return mice
