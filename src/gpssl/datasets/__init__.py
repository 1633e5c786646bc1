"""Data sets: the paper's circles, tables to compare methods on, and rows of other kinds: texts, graphs, mixed data frames, tissue."""

from .circles import NOISE, QUADRANT_ROWS, RADII, Rows, even_circles, quadrant_circles
from .examples import Examples
from .frames import load_dermatology_frame, load_kdd_frame, load_mice_protein_frame
from .graphs import load_enzymes, load_mutag, load_proteins
from .spatial import (
    HER2ST_LABELED_SECTIONS,
    HER2ST_SECTIONS,
    load_her2st,
    load_pbmc3k,
    load_pbmc68k_reduced,
    load_signatures,
    load_tnbc_visium,
)
from .tables import (
    CLASSIFICATION_TABLES,
    FURTHER_TABLES,
    REGRESSION_TABLES,
    Table,
    load_breast_cancer,
    load_classification,
    load_dermatology,
    load_digits,
    load_ecoli,
    load_mice_protein,
    load_regression,
    load_wine,
)
from .texts import load_sms_spam, load_splice

__all__ = [
    "CLASSIFICATION_TABLES",
    "FURTHER_TABLES",
    "HER2ST_LABELED_SECTIONS",
    "HER2ST_SECTIONS",
    "NOISE",
    "QUADRANT_ROWS",
    "RADII",
    "REGRESSION_TABLES",
    "Examples",
    "Rows",
    "Table",
    "even_circles",
    "load_breast_cancer",
    "load_classification",
    "load_dermatology",
    "load_dermatology_frame",
    "load_digits",
    "load_ecoli",
    "load_enzymes",
    "load_her2st",
    "load_kdd_frame",
    "load_mice_protein",
    "load_mice_protein_frame",
    "load_mutag",
    "load_pbmc3k",
    "load_pbmc68k_reduced",
    "load_proteins",
    "load_regression",
    "load_signatures",
    "load_sms_spam",
    "load_splice",
    "load_tnbc_visium",
    "load_wine",
    "quadrant_circles",
]
