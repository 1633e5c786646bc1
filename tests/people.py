"""Tables as people have them: for tests of the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def two_groups(n_rows: int = 60, n_labels: int = 24, seed: int = 0) -> pd.DataFrame:
    """Flowers and stones: they differ in size and color; cells are missing, and most rows have no label."""
    rng = np.random.default_rng(seed)
    is_stone = rng.random(n_rows) < 0.5
    frame = pd.DataFrame(
        {
            "number": [f"N{place:04d}" for place in range(n_rows)],
            "size": np.where(is_stone, 5.0, 1.0) + rng.normal(0, 0.5, n_rows),
            "weight": np.where(is_stone, 3.0, 1.0) + rng.normal(0, 0.5, n_rows),
            "color": np.where(is_stone, "gray", rng.choice(["red", "blue"], n_rows)),
            "kind": np.where(is_stone, "stone", "flower"),
        }
    )
    frame.loc[rng.random(n_rows) < 0.1, "weight"] = np.nan
    frame.loc[rng.permutation(n_rows)[n_labels:], "kind"] = None
    return frame


def prices(n_rows: int = 60, n_known: int = 30, seed: int = 0) -> pd.DataFrame:
    """A price that follows from size and place."""
    rng = np.random.default_rng(seed)
    size, place = rng.uniform(50, 150, n_rows), rng.choice(["town", "village"], n_rows)
    price = 2.0 * size + np.where(place == "town", 100.0, 0.0) + rng.normal(0, 5, n_rows)
    frame = pd.DataFrame({"size": size.round(2), "place": place, "price": price.round(2)})
    frame.loc[rng.permutation(n_rows)[n_known:], "price"] = np.nan
    return frame


def written(frame: pd.DataFrame, path: Path, **options: Any) -> Path:
    """As CSV."""
    frame.to_csv(path, index=False, **options)
    return path


def json_lines(path: Path) -> pd.DataFrame:
    """Values as JSON has them: pandas would turn whole numbers into others."""
    return pd.DataFrame([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()], dtype=object)


N_ROWS = 3000


def mixed_frame(n_rows: int = N_ROWS) -> pd.DataFrame:
    """Columns of all kinds, with gaps, a counter and a target."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n_rows).round(4),
            "amount": rng.lognormal(2, 3, n_rows).round(2),
            "color": rng.choice(["red", "green", "blue"], n_rows),
            "flag": rng.choice(["yes", "no"], n_rows),
            "day": np.datetime64("2020-01-01", "us") + rng.integers(0, 900, n_rows).astype("m8[D]"),
            "id": rng.permutation(n_rows),
            "y": rng.normal(size=n_rows).round(3),
        }
    )
    frame.loc[rng.random(n_rows) < 0.1, "x"] = np.nan
    frame.loc[rng.random(n_rows) < 0.1, "color"] = None
    return frame
