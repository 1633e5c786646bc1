"""Data sets: the paper's circles, and tables to compare methods on."""

from .circles import NOISE, QUADRANT_ROWS, RADII, Rows, even_circles, quadrant_circles
from .tables import (
    CLASSIFICATION_TABLES,
    REGRESSION_TABLES,
    Table,
    load_breast_cancer,
    load_classification,
    load_dermatology,
    load_ecoli,
    load_mice_protein,
    load_regression,
)

__all__ = [
    "CLASSIFICATION_TABLES",
    "NOISE",
    "QUADRANT_ROWS",
    "RADII",
    "REGRESSION_TABLES",
    "Rows",
    "Table",
    "even_circles",
    "load_breast_cancer",
    "load_classification",
    "load_dermatology",
    "load_ecoli",
    "load_mice_protein",
    "load_regression",
    "quadrant_circles",
]
