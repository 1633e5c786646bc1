"""The paper's concentric circles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rows = tuple[NDArray[np.float64], NDArray[np.intp]]

RADII = (0.5, 1.0)
NOISE = 0.2
QUADRANT_ROWS = (300, 100, 50, 0)
"""Training rows in the top right, top left, bottom left and bottom right quadrant."""


def quadrant_circles(rows: tuple[int, int, int, int] = QUADRANT_ROWS, seed: int = 0) -> Rows:
    """The paper's concentric circles (section 3.2): rows, and the circle that each comes from.

    In each quadrant, counted counter-clockwise from the top right, a row has a radius of 0.5 or 1 with equal probability, a uniform angle,
    and Gaussian noise of standard deviation 0.2 in both coordinates.
    """
    return _circles(np.repeat(np.arange(4), rows), np.random.default_rng(seed))


def even_circles(n_rows: int, seed: int = 0) -> Rows:
    """The same circles with rows in all quadrants alike: the paper's labeled rows and test rows (section 3.3.1)."""
    rng = np.random.default_rng(seed)
    return _circles(rng.integers(4, size=n_rows), rng)


def _circles(quadrant: NDArray[np.intp], rng: np.random.Generator) -> Rows:
    circle = rng.integers(len(RADII), size=len(quadrant))
    angle = (quadrant + rng.random(len(quadrant))) * np.pi / 2
    radius = np.array(RADII)[circle]
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + NOISE * rng.standard_normal(X.shape), circle
