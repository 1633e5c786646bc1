"""Rows seen through a function: some of their columns, or their values on another scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from numpy.typing import NDArray

from .part import Part
from .source import Rows


class MappedRows(Rows):
    """Rows whose parts are those of another source, each mapped by a function that works row by row."""

    def __init__(self, rows: Rows, function: Callable[[NDArray[Any]], NDArray[Any]], n_columns: int, header: Any = None) -> None:
        super().__init__(rows.sample_weight)
        self.rows, self.function = rows, function
        self.n_columns, self.n_rows = n_columns, rows.n_rows
        self.header = header

    def parts(self) -> Iterator[Part]:
        """As many as the other source has."""
        for part in self.rows.parts():
            yield Part(self.function(part.rows), part.weight)
