"""Consecutive rows of a file, as a model takes them and as the person had them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from .columns import Column
from .typed import canonical

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Piece:
    """A part of a table, read once; what is made of its cells is made when it is asked for."""

    batch: pa.RecordBatch
    """As it stands in the file."""
    columns: list[Column]
    """All of the file. [D]"""
    used: list[str]
    """Those to learn from."""
    first: int
    """Where in the file the first row is."""

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    @property
    def _index(self) -> pd.RangeIndex:
        return pd.RangeIndex(self.first, self.first + len(self))

    def rows(self) -> pd.DataFrame:
        """The columns to learn from: numbers and booleans as float64, dates as datetime64, categories as text. [n, D used]"""
        places = {column.name: place for place, column in enumerate(self.columns)}
        return pd.DataFrame(
            {name: self.columns[places[name]].values(canonical(self.batch.column(places[name]))) for name in self.used}, index=self._index
        )

    def cells(self, *, typed: bool) -> pd.DataFrame:
        """All columns as they were, for a file of text or, with `typed`, for one that knows numbers and dates. [n, D]"""
        values = {column.name: column.written(self.batch.column(place), typed=typed) for place, column in enumerate(self.columns)}
        return pd.DataFrame({name: pd.Series(cells).set_axis(self._index) for name, cells in values.items()})
