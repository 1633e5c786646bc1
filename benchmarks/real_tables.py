"""Where the real tables are, and what is said where they are not."""

from __future__ import annotations

import os
from pathlib import Path

from .report import Comparison

VARIABLE = "GPSSL_DATA"


def find_table(name: str) -> Path | None:
    """Look the file up in the folder that the environment variable names."""
    folder = os.environ.get(VARIABLE)
    path = None if folder is None else Path(folder).resolve() / name
    return path if path is not None and path.exists() else None


def not_run(title: str, setting: str, name: str) -> Comparison:
    """Say that there is nothing to say."""
    reason = f"{VARIABLE} is not set" if VARIABLE not in os.environ else f"the folder of {VARIABLE} has no {name}"
    return Comparison(title, setting, ("",), [(f"not run: {reason}",)], [])
