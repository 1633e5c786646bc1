"""Every kernel of the library, with rows of its kind: a few dozen to learn from, and a Hypothesis strategy for more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as sk

from gpssl import kernels as k

N_TRAINING = 40


@dataclass(frozen=True)
class Kind:
    """A kernel and the rows that it is for."""

    kernel: Any
    training: list[Any]
    """Rows of two classes, one after the other in turn."""
    row: st.SearchStrategy[Any]
    table: Callable[[list[Any]], Any] = list
    """From a list of rows to what a user would pass."""


def _vectors() -> list[list[float]]:
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0, 0.0], [2.0, 2.0, 0.0]])
    return (centres[np.arange(N_TRAINING) % 2] + 0.5 * rng.standard_normal((N_TRAINING, 3))).tolist()


def _vectors_with_gaps() -> list[list[float]]:
    rows = np.array(_vectors())
    rows[np.random.default_rng(1).random(rows.shape) < 0.2] = np.nan
    return rows.tolist()


def _mixed() -> list[list[Any]]:
    rng = np.random.default_rng(2)
    return [
        [
            None if place % 7 == 3 else round(float(2 * (place % 2) + rng.standard_normal()), 2),
            None if place % 11 == 5 else str(rng.choice(["red", "green"] if place % 2 else ["blue", "green"], p=[0.8, 0.2])),
            ["low", "middle", "high"][rng.integers(2) + place % 2],
        ]
        for place in range(N_TRAINING)
    ]


def _frame(rows: list[Any]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["size", "color", "grade"])
    frame["size"] = frame["size"].astype(float)
    frame["grade"] = pd.Categorical(frame["grade"], ["low", "middle", "high"], ordered=True)
    return frame


def _categories(rows: list[Any]) -> pd.DataFrame:
    return _frame(rows)[["color", "grade"]]


def _array(rows: list[Any]) -> np.ndarray[Any, Any]:
    return np.array(rows, dtype=np.float64)


_number = st.floats(-5, 5, allow_subnormal=False)
_number_or_gap = st.one_of(_number, st.just(np.nan))
_vector = st.lists(_number, min_size=3, max_size=3)
_category = st.sampled_from(["red", "green", "blue", "never seen"])
_cells = st.tuples(
    st.one_of(st.none(), _number), st.one_of(st.none(), _category), st.one_of(st.none(), st.sampled_from(["low", "middle", "high"]))
).map(list)

_groups = [("size", k.IncompleteRBF(), ["size"]), ("color", k.CategoryKernel(), ["color"]), ("grade", k.OrdinalKernel(), ["grade"])]

KINDS: dict[str, Kind] = {
    "NeighborRBF": Kind(k.NeighborRBF(), _vectors(), _vector, _array),
    "NeighborDiffusion": Kind(k.NeighborDiffusion(5), _vectors(), _vector, _array),
    "diffusion and RBF": Kind(0.5 * k.NeighborDiffusion(5) + 0.5 * k.NeighborRBF(), _vectors(), _vector, _array),
    "IncompleteRBF": Kind(k.IncompleteRBF(), _vectors_with_gaps(), st.lists(_number_or_gap, min_size=3, max_size=3), _array),
    "CategoryKernel": Kind(k.CategoryKernel(), _mixed(), _cells, _categories),
    "OrdinalKernel": Kind(k.OrdinalKernel(), _array(_vectors()).round().tolist(), _vector, _array),
    "ColumnKernel, product": Kind(k.ColumnKernel(_groups, weights=[1.0, 0.7, 0.5]), _mixed(), _cells, _frame),
    "ColumnKernel, sum": Kind(k.ColumnKernel(_groups, combine="sum"), _mixed(), _cells, _frame),
    "ColumnKernel, scaled": Kind(2.0 * k.ColumnKernel(_groups) + sk.WhiteKernel(0.1), _mixed(), _cells, _frame),
}
