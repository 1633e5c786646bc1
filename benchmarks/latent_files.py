"""The latent table in files, written block by block: a table of any size takes little memory to write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.lib.format import open_memmap
from pyarrow.parquet import ParquetWriter

from gpssl.data._arrays import row_blocks

from .data import latent_block

BLOCK_ROWS = 100_000
N_COLUMNS = 30
NAMES = [f"x{j}" for j in range(N_COLUMNS)]


def write_parquet(path: Path, n_rows: int, block_rows: int = BLOCK_ROWS) -> None:
    """Write one row group for each block, otherwise as pyarrow does by default."""
    with ParquetWriter(path, pa.schema([(name, pa.float64()) for name in NAMES])) as writer:
        for i, block in enumerate(row_blocks(n_rows, block_rows)):
            rows = latent_block(block.stop - block.start, i, N_COLUMNS)
            writer.write_table(pa.table(list(rows.T.copy()), names=NAMES), row_group_size=block_rows)


def write_array(path: Path, n_rows: int) -> None:
    """Write the same rows as an array for `numpy.load(path, mmap_mode="r")`."""
    out = open_memmap(path, mode="w+", dtype=np.float64, shape=(n_rows, N_COLUMNS))
    for i, block in enumerate(row_blocks(n_rows, BLOCK_ROWS)):
        out[block] = latent_block(block.stop - block.start, i, N_COLUMNS)
