"""The rows of a file as numbers, part by part, for kernels that work on tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..sources import Part, Rows, rows_of_a_part
from ..threads import map_in_order, n_blas_threads
from .columns import Column, header_of_columns
from .delimited import TableSource
from .errors import FileError


class EncodedRows(Rows):
    """Numbers as they are, dates as seconds, codes for categories and NaN for gaps, as `gpssl.tables` has them."""

    are_encoded = True

    def __init__(self, source: TableSource, columns: list[Column], n_rows: int) -> None:
        super().__init__()
        self.source, self.columns = source, columns
        self.n_rows, self.n_columns = n_rows, len(columns)
        self.names = [column.name for column in columns]
        self.header = header_of_columns(columns)

    @property
    def identity(self) -> str:
        """The file with size and time of change, and how its columns are read."""
        state = os.stat(self.source.path)
        columns = [f"{column.name} {column.kind} {column.reading}" for column in self.columns]
        return "\n".join([f"{self.source.path.resolve()} {state.st_size} {state.st_mtime_ns}", *columns])

    def parts(self) -> Iterator[Part]:
        """Blocks of the file, cut to a size that suits the memory."""
        size, first = rows_of_a_part(self.n_columns), 0
        for rows in map_in_order(self._encode, self.source.batches(self.names or []), n_threads=n_blas_threads()):
            for start in range(0, len(rows), size):
                part = rows[start : start + size]
                yield Part(part, self.weight_of(first, len(part)))
                first += len(part)
        if first != self.n_rows:
            raise FileError(f"{self.source.path} has {first:,} rows now, but had {self.n_rows:,}: leave it alone while it is read.")
        self.check_weights_are_as_many(first)

    def _encode(self, batch: Any) -> NDArray[np.float64]:
        out = np.empty((batch.num_rows, self.n_columns))
        for place, column in enumerate(self.columns):
            out[:, place] = column.encoded(batch.column(place))
        return out
