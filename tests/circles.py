"""The paper's concentric circles, section 3.2."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

QUADRANT_ROWS = (300, 100, 50, 0)
"""Training rows in the top right, top left, bottom left and bottom right quadrant."""


def quadrant_circles(rows: tuple[int, ...] = QUADRANT_ROWS, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Rows on circles of radius 0.5 and 1 with noise of 0.2, and which circle each row comes from."""
    rng = np.random.default_rng(seed)
    quadrant = np.repeat(np.arange(4), rows)
    circle = rng.integers(2, size=len(quadrant))
    angle = (quadrant + rng.random(len(quadrant))) * np.pi / 2
    radius = np.where(circle == 1, 1.0, 0.5)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + 0.2 * rng.standard_normal(X.shape), circle
