"""Adversarial tables: every size, scale, shape and type of cells that may make numbers overflow, vanish or coincide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array

Array = NDArray[Any]
Table = Callable[[np.random.Generator], Any]


# Arrays


def _cloud(rng: np.random.Generator, n_rows: int | None = None, n_columns: int | None = None) -> Array:
    n_rows, n_columns = n_rows or int(rng.integers(5, 60)), n_columns or int(rng.integers(1, 6))
    return rng.standard_normal((n_rows, n_columns))


def _constant(rng: np.random.Generator) -> Array:
    X = _cloud(rng)
    X[:, rng.random(X.shape[1]) < 0.7] = rng.choice([0.0, 1.0, 1e300, -1e-300, np.pi])
    return X


def _scaled(*exponents: int) -> Table:
    def table(rng: np.random.Generator) -> Array:
        X = _cloud(rng)
        return X * 10.0 ** rng.choice(exponents, size=X.shape[1])

    return table


def _mixed_scales(rng: np.random.Generator) -> Array:
    """Return columns whose cells are of all sizes from 1e-300 to 1e300."""
    X = _cloud(rng)
    return np.sign(X) * 10.0 ** rng.uniform(-300, 300, size=X.shape)


def _denormal(rng: np.random.Generator) -> Array:
    return rng.integers(0, 9, size=(int(rng.integers(3, 30)), int(rng.integers(1, 4)))) * np.nextafter(0.0, 1.0)


def _shifted(rng: np.random.Generator) -> Array:
    """Return a cloud so far from the origin that few digits are left to tell rows apart."""
    return _cloud(rng) + 10.0 ** rng.integers(6, 17)


def _collinear(rng: np.random.Generator) -> Array:
    return rng.standard_normal((int(rng.integers(5, 60)), 1)) @ rng.standard_normal((1, int(rng.integers(2, 6))))


def _far_clusters(rng: np.random.Generator) -> Array:
    X = _cloud(rng)
    return X + 10.0 ** rng.integers(2, 13) * rng.integers(0, 3, size=(len(X), 1))


def _one_far(rng: np.random.Generator) -> Array:
    X = _cloud(rng)
    X[0] = 10.0 ** rng.integers(3, 300)
    return X


def _duplicated(rng: np.random.Generator) -> Array:
    X = _cloud(rng, 3)
    return X[rng.integers(len(X), size=int(rng.integers(4, 80)))]


def _signed_zeros(rng: np.random.Generator) -> Array:
    return rng.choice([0.0, -0.0, 1.0, -1.0], size=(int(rng.integers(4, 30)), 2))


def _of_type(dtype: Any) -> Table:
    def table(rng: np.random.Generator) -> Array:
        return np.round(10 * _cloud(rng)).astype(dtype)

    return table


def _whole(rng: np.random.Generator) -> Array:
    """Return whole numbers around those beyond which not all have a place among floats."""
    kind = int(rng.integers(4))
    shape = (int(rng.integers(4, 40)), int(rng.integers(1, 4)))
    small = rng.integers(0, 5, size=shape)
    if kind == 0:
        return 2**53 + small
    if kind == 1:
        return np.iinfo(np.uint64).max - small.astype(np.uint64)
    return np.iinfo(np.int64).min + small if kind == 2 else (small - 128).astype(np.int8)


def _booleans(rng: np.random.Generator) -> Array:
    return rng.random((int(rng.integers(4, 40)), int(rng.integers(1, 5)))) < 0.5


def _with_gaps(rng: np.random.Generator) -> Array:
    X = _cloud(rng)
    X[rng.random(X.shape) < 0.3] = np.nan
    if rng.random() < 0.5:
        X[:, 0] = np.nan
    return X


def _with_infinities(rng: np.random.Generator) -> Array:
    X = _cloud(rng)
    X[0, 0] = rng.choice([np.inf, -np.inf])
    return X


def _sparse(rng: np.random.Generator) -> Any:
    X = _cloud(rng) * (rng.random() < 0.5)
    X[np.abs(X) < 0.7] = 0.0
    return [csr_array, csc_array, coo_array][int(rng.integers(3))](X)


def _objects(rng: np.random.Generator) -> Array:
    """Return cells of several types in an array of objects."""
    X = _cloud(rng).round(1).astype(object)
    cells: list[Any] = [1, True, None, "text", np.float32(2.5), np.int8(3), float("nan"), "", b"bytes", 10**40, 2j]
    for cell in rng.choice(len(cells), size=int(rng.integers(0, 4))):
        X[rng.integers(len(X)), rng.integers(X.shape[1])] = cells[cell]
    return X


ARRAYS: dict[str, Table] = {
    "ordinary": _cloud,
    "one row": lambda rng: _cloud(rng, 1),
    "two rows": lambda rng: _cloud(rng, 2),
    "three rows": lambda rng: _cloud(rng, 3),
    "one column": lambda rng: _cloud(rng, None, 1),
    "no rows": lambda _: np.empty((0, 3)),
    "no columns": lambda _: np.empty((5, 0)),
    "one dimension": lambda rng: rng.standard_normal(9),
    "three dimensions": lambda rng: rng.standard_normal((4, 3, 2)),
    "500 × 20": lambda rng: _cloud(rng, 500, 20),
    "3 × 500": lambda rng: _cloud(rng, 3, 500),
    "constant columns": _constant,
    "all equal": lambda rng: np.full((int(rng.integers(2, 30)), 3), rng.choice([0.0, 1.0, 1e300, 1e-310])),
    "large": _scaled(150, 154),
    "small": _scaled(-150, -154),
    "huge": _scaled(300, 307),
    "tiny": _scaled(-300, -308),
    "columns of all scales": _scaled(-300, -150, -8, 0, 8, 150, 300),
    "cells of all scales": _mixed_scales,
    "denormal": _denormal,
    "far from zero": _shifted,
    "Cauchy": lambda rng: rng.standard_cauchy((int(rng.integers(5, 100)), int(rng.integers(1, 4)))),
    "collinear": _collinear,
    "clusters far apart": _far_clusters,
    "one row far out": _one_far,
    "duplicates": _duplicated,
    "signed zeros": _signed_zeros,
    "whole numbers": _whole,
    "booleans": _booleans,
    "gaps": _with_gaps,
    "infinities": _with_infinities,
    "float16": _of_type(np.float16),
    "float32": lambda rng: (_cloud(rng) * 10.0 ** rng.integers(-38, 38)).astype(np.float32),
    "long double": _of_type(np.longdouble),
    "big-endian": _of_type(">f8"),
    "complex": _of_type(complex),
    "bytes": _of_type("S5"),
    "texts": _of_type("U5"),
    "dates": lambda rng: rng.integers(0, 10**6, size=(9, 2)).astype("datetime64[s]"),
    "durations": lambda rng: rng.integers(0, 10**6, size=(9, 2)).astype("timedelta64[ns]"),
    "objects": _objects,
    "sparse": _sparse,
    "masked": lambda rng: np.ma.masked_greater(_cloud(rng), 1.0),
}


# Data frames


def _numbers(rng: np.random.Generator, n_rows: int) -> Array:
    return rng.standard_normal(n_rows).round(2) * 10.0 ** rng.integers(-3, 4)


def _some_missing(rng: np.random.Generator, values: list[Any]) -> list[Any]:
    return [None if rng.random() < 0.15 else value for value in values]


COLUMNS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "float64": lambda rng, n: pd.Series(_numbers(rng, n)),
    "float32": lambda rng, n: pd.Series(_numbers(rng, n), dtype="float32"),
    "float16": lambda rng, n: pd.Series(_numbers(rng, n), dtype="float16"),
    "int64": lambda rng, n: pd.Series(rng.integers(-3, 9, n)),
    "int8": lambda rng, n: pd.Series(rng.integers(-128, 128, n), dtype="int8"),
    "uint64": lambda rng, n: pd.Series(np.iinfo(np.uint64).max - rng.integers(0, 9, n).astype(np.uint64)),
    "bool": lambda rng, n: pd.Series(rng.random(n) < 0.5),
    "large": lambda rng, n: pd.Series(1e300 * rng.standard_normal(n)),
    "small": lambda rng, n: pd.Series(1e-300 * rng.standard_normal(n)),
    "gaps": lambda rng, n: pd.Series(np.where(rng.random(n) < 0.3, np.nan, _numbers(rng, n))),
    "all missing": lambda _, n: pd.Series(np.full(n, np.nan)),
    "all None": lambda _, n: pd.Series([None] * n, dtype=object),
    "constant": lambda _, n: pd.Series([1.0] * n),
    "Int64": lambda rng, n: pd.array(_some_missing(rng, rng.integers(0, 5, n).tolist()), dtype="Int64"),
    "UInt8": lambda rng, n: pd.array(_some_missing(rng, rng.integers(0, 5, n).tolist()), dtype="UInt8"),
    "Float64": lambda rng, n: pd.array(_some_missing(rng, _numbers(rng, n).tolist()), dtype="Float64"),
    "boolean": lambda rng, n: pd.array(_some_missing(rng, (rng.random(n) < 0.5).tolist()), dtype="boolean"),
    "all NA": lambda _, n: pd.array([pd.NA] * n, dtype="Int64"),
    "arrow float": lambda rng, n: pd.array(_some_missing(rng, _numbers(rng, n).tolist()), dtype=pd.ArrowDtype(pa.float64())),
    "arrow int": lambda rng, n: pd.array(_some_missing(rng, rng.integers(0, 9, n).tolist()), dtype=pd.ArrowDtype(pa.int16())),
    "arrow text": lambda rng, n: pd.array(_some_missing(rng, rng.choice(["a", "b"], n).tolist()), dtype=pd.ArrowDtype(pa.string())),
    "arrow date": lambda rng, n: pd.array(
        _some_missing(rng, pd.to_datetime(rng.integers(0, 99, n), unit="D").to_pydatetime().tolist()),
        dtype=pd.ArrowDtype(pa.timestamp("us")),
    ),
    "categories": lambda rng, n: pd.Categorical(_some_missing(rng, rng.choice(["x", "y", "z"], n).tolist())),
    "ordered": lambda rng, n: pd.Categorical(rng.choice(["low", "high"], n), ["low", "high"], ordered=True),
    "numbers as categories": lambda rng, n: pd.Categorical(rng.integers(0, 4, n)),
    "no category": lambda _, n: pd.Categorical([None] * n, ["a"]),
    "text": lambda rng, n: pd.Series(_some_missing(rng, rng.choice(["red", "green", "blue"], n).tolist()), dtype=object),
    "string": lambda rng, n: pd.array(_some_missing(rng, rng.choice(["red", "green"], n).tolist()), dtype="string"),
    "names": lambda _, n: pd.Series([f"row {place}" for place in range(n)], dtype=object),
    "dates": lambda rng, n: pd.Series(pd.to_datetime(rng.integers(0, 10**9, n), unit="s")),
    "dates with a zone": lambda rng, n: pd.Series(pd.to_datetime(rng.integers(0, 10**9, n), unit="s", utc=True)),
    "NaT": lambda _, n: pd.Series([pd.NaT] * n),
    "durations": lambda rng, n: pd.Series(pd.to_timedelta(rng.integers(0, 10**6, n), unit="s")),
    "periods": lambda rng, n: pd.Series(pd.PeriodIndex.from_ordinals(rng.integers(0, 500, n), freq="M")),
    "intervals": lambda rng, n: pd.Series(pd.arrays.IntervalArray.from_arrays(np.zeros(n), rng.integers(1, 4, n).astype(float))),
    "sparse": lambda rng, n: pd.Series(pd.arrays.SparseArray(rng.integers(0, 2, n).astype(float), fill_value=0.0)),
    "mixed": lambda rng, n: pd.Series([[1, "a", 2.5, True, None][rng.integers(5)] for _ in range(n)], dtype=object),
    "lists": lambda _, n: pd.Series([[1, 2]] * n, dtype=object),
    "complex": lambda rng, n: pd.Series(rng.standard_normal(n) + 1j),
}


def data_frame(rng: np.random.Generator) -> pd.DataFrame:
    """Return a data frame with one to five columns of some of these types, sometimes with an index or names that are no plain texts."""
    n_rows = int(rng.choice([1, 2, 3, 12, 30, 60], p=[0.04, 0.04, 0.04, 0.2, 0.4, 0.28]))
    kinds = rng.choice(list(COLUMNS), size=int(rng.integers(1, 6)))
    frame = pd.DataFrame({f"{place} {kind}": COLUMNS[kind](rng, n_rows) for place, kind in enumerate(kinds)})
    shape = int(rng.integers(8))
    if shape == 0:
        frame.columns = pd.Index(range(frame.shape[1]))
    elif shape == 1:
        frame.columns = pd.Index(["twice"] * frame.shape[1])
    elif shape == 2:
        frame.index = pd.Index([0] * n_rows)
    elif shape == 3:
        frame.columns = pd.MultiIndex.from_tuples([("a", name) for name in frame.columns])
    return frame


def arrow_table(rng: np.random.Generator) -> Any:
    """Return such a table as Arrow has it; where Arrow cannot hold it, the frame as it is."""
    frame = data_frame(rng)
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError, KeyError):
        return frame


def polars_frame(rng: np.random.Generator) -> Any:
    """Return such a table as polars has it; where polars cannot hold it, one of simple columns."""
    table = arrow_table(rng)
    try:
        return pl.from_arrow(table)
    except Exception:  # whatever polars says of columns that it cannot hold
        return pl.DataFrame({"a": rng.standard_normal(20), "b": rng.choice(["x", "y"], 20)})


FRAMES: dict[str, Table] = {"pandas": data_frame, "arrow": arrow_table, "polars": polars_frame}
