"""What is known of one column of a table: its kind, and the values it had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ColumnKind = Literal["number", "boolean", "date", "category"]


@dataclass(frozen=True)
class ColumnFacts:
    """Name, kind, gaps and range of one column.

    Numbers, booleans (0 and 1) and dates (seconds since 1970) have `minimum` and `maximum`; categories have `levels`, at most 1,000 of
    them, else None.
    """

    name: str
    kind: ColumnKind
    dtype: str
    n_missing: int
    minimum: float | None
    maximum: float | None
    levels: tuple[str, ...] | None
