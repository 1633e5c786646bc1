"""Populations that tables are drawn from, whose truth is known: for simulations of what `gpssl.label` promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.intp]


class Drawn(NamedTuple):
    """A table, the class of each row, and in which order its rows would be labeled by somebody who labels them."""

    frame: pd.DataFrame
    y: Codes
    order: NDArray[np.intp]


Draw = Callable[[np.random.Generator, int], Drawn]


def _table(rng: np.random.Generator, X: Array, y: Codes, ease: Array | None = None) -> Drawn:
    """Return a table whose rows are labeled in random order, those of large `ease` sooner: the keys are Gumbel's."""
    keys = rng.gumbel(size=len(y)) + (0.0 if ease is None else ease)
    return Drawn(pd.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])]), y, np.argsort(-keys))


def _normal_classes(rng: np.random.Generator, n_rows: int) -> Drawn:
    """Draw two normal classes in eight columns, which overlap: at best one row in ten is wrong."""
    y = rng.integers(2, size=n_rows)
    return _table(rng, rng.standard_normal((n_rows, 8)) + 0.45 * np.where(y, 1, -1)[:, None], y)


def _rings(rng: np.random.Generator, n_rows: int) -> Drawn:
    """Draw three rings with noise, and three columns that say nothing."""
    y = rng.integers(3, size=n_rows)
    angle, radius = rng.uniform(0, 2 * np.pi, n_rows), 1.0 + y + 0.25 * rng.standard_normal(n_rows)
    return _table(rng, np.column_stack([radius * np.cos(angle), radius * np.sin(angle), rng.standard_normal((n_rows, 3))]), y)


def _mixed_columns(rng: np.random.Generator, n_rows: int) -> Drawn:
    """Draw labels from a logistic function of two numbers and a category; a tenth of the cells are missing."""
    X, level = rng.standard_normal((n_rows, 4)), rng.integers(3, size=n_rows)
    logit = 3.0 * X[:, 0] * np.where(level == 0, 1, -1) + 2.0 * X[:, 1] + np.array([0.0, 1.0, -1.0])[level]
    y = (rng.random(n_rows) < 1 / (1 + np.exp(-2 * logit))).astype(np.intp)
    drawn = _table(rng, np.where(rng.random(X.shape) < 0.1, np.nan, X), y)
    return drawn._replace(frame=drawn.frame.assign(level=np.array(["low", "middle", "high"], dtype=object)[level]))


def _ties(rng: np.random.Generator, n_rows: int) -> Drawn:
    """Draw two columns of three values each: nine kinds of rows, which are equally certain or not at all."""
    X = rng.integers(3, size=(n_rows, 2)).astype(np.float64)
    chance = np.array([[0.02, 0.1, 0.5], [0.05, 0.3, 0.9], [0.5, 0.95, 0.99]])[X[:, 0].astype(int), X[:, 1].astype(int)]
    return _table(rng, X, (rng.random(n_rows) < chance).astype(np.intp))


def _imbalance(rng: np.random.Generator, n_rows: int) -> Drawn:
    """Draw one row in twelve from a second class, which lies two standard deviations away."""
    y = (rng.random(n_rows) < 1 / 12).astype(np.intp)
    return _table(rng, rng.standard_normal((n_rows, 5)) + 0.9 * y[:, None], y)


def _many_classes(rng: np.random.Generator, n_rows: int) -> Drawn:
    """Draw ten normal classes around random centers in six columns."""
    y, centers = rng.integers(10, size=n_rows), 1.6 * rng.standard_normal((10, 6))
    return _table(rng, centers[y] + rng.standard_normal((n_rows, 6)), y)


def _noise(rng: np.random.Generator, n_rows: int) -> Drawn:
    """Draw labels that have nothing to do with the columns: nothing may be kept."""
    return _table(rng, rng.standard_normal((n_rows, 5)), rng.integers(2, size=n_rows))


def _wrong_labels(rng: np.random.Generator, n_rows: int) -> Drawn:
    """Draw two classes that are far apart, and turn one label in twelve over."""
    y = rng.integers(2, size=n_rows)
    X = rng.standard_normal((n_rows, 4)) + 1.2 * np.where(y, 1, -1)[:, None]
    return _table(rng, X, np.where(rng.random(n_rows) < 1 / 12, 1 - y, y))


def _shift(rng: np.random.Generator, n_rows: int) -> Drawn:
    """Draw classes that a plane divides with noise; rows far from it, and on one side of another column, are labeled sooner."""
    X = rng.standard_normal((n_rows, 4))
    y = (rng.random(n_rows) < 1 / (1 + np.exp(-3 * (X[:, 0] + 0.5 * X[:, 1])))).astype(np.intp)
    return _table(rng, X, y, ease=0.8 * np.abs(X[:, 0]) + 0.6 * X[:, 2])


POPULATIONS: dict[str, Draw] = {
    "normal": _normal_classes,
    "rings": _rings,
    "mixed": _mixed_columns,
    "ties": _ties,
    "imbalance": _imbalance,
    "many classes": _many_classes,
    "noise": _noise,
    "wrong labels": _wrong_labels,
    "chosen": _normal_classes,
    "shift": _shift,
}
CHOSEN = "chosen"
"""The population of which a third of the labels are of random rows, and the others of rows that `gpssl next` chooses."""
