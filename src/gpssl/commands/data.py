"""`gpssl datasets`: tables to try the other commands on."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..datasets import CLASSIFICATION_TABLES, FURTHER_TABLES, REGRESSION_TABLES, Table, load_classification, load_regression
from ..datasets.places import DERMATOLOGY, ECOLI, MICE_PROTEIN, REGRESSION_SOURCES
from ..datasets.sources import find_file
from ..files import check_writable, write_table

INCLUDED = ("breast_cancer", *FURTHER_TABLES, "diabetes")
"""With scikit-learn."""
SOURCES = {"dermatology": DERMATOLOGY, "ecoli": ECOLI, "mice_protein": MICE_PROTEIN, **REGRESSION_SOURCES}
GROUP = "group"


class KnownTable(NamedTuple):
    """A table that can be had."""

    name: str
    predicts: str
    place: str


class WrittenExample(NamedTuple):
    """A table that was written."""

    path: Path
    n_rows: int
    n_columns: int
    target: str
    n_labels: int


def known_tables() -> list[KnownTable]:
    """All names, and where each would be read from."""
    classes = [KnownTable(name, "classes", _place(name)) for name in (*CLASSIFICATION_TABLES, *FURTHER_TABLES)]
    return classes + [KnownTable(name, "a number", _place(name)) for name in REGRESSION_TABLES]


def _place(name: str) -> str:
    if name in INCLUDED:
        return "comes with scikit-learn"
    source = SOURCES[name]
    if find_file(source.file) is not None:
        return "GPSSL_DATA"
    return "OpenML" if source.openml_id is not None else f"not found: set GPSSL_DATA to a folder that has {source.file}"


def write_example(name: str, path: Path, *, n_labels: int | None, seed: int, force: bool) -> WrittenExample:
    """A data set as a table with a column "target", which is empty where the label was taken away."""
    import pandas as pd

    check_writable(path, force=force)
    table = load(name)
    frame = pd.DataFrame(table.X, columns=list(table.columns))
    if table.groups is not None:
        frame[GROUP] = table.groups
    frame["target"] = pd.Series(table.y).where(_kept(table, n_labels, seed))
    write_table(path, frame, force=force)
    return WrittenExample(path, len(frame), len(table.columns), "target", int(frame["target"].notna().sum()))


def load(name: str) -> Table:
    """By name, whatever it predicts."""
    if name in REGRESSION_TABLES:
        return load_regression(name)
    if name in (*CLASSIFICATION_TABLES, *FURTHER_TABLES):
        return load_classification(name)
    raise ValueError(f"There is no data set {name!r}: gpssl datasets lists them.")


def _kept(table: Table, n_labels: int | None, seed: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """So many rows at random. [n]"""
    order = np.random.default_rng(seed).permutation(len(table.y))
    return order < (len(table.y) if n_labels is None else n_labels)
