from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from gpssl.report import _plane
from gpssl.report._plane import plane_of


def blobs(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Two groups far apart in four dimensions."""
    rng = np.random.default_rng(0)
    side = np.arange(n_rows) % 2
    return rng.normal(size=(n_rows, 4)) + 20 * side[:, None], side


def test_one_and_two_dimensions_are_drawn_as_they_are() -> None:
    mean, std = np.random.default_rng(0).normal(size=(2, 30, 2))
    one, _ = plane_of(mean[:, :1], std[:, :1], seed=0)
    np.testing.assert_array_equal(one, np.column_stack([mean[:, 0], std[:, 0]]))
    two, _ = plane_of(mean, std, seed=0)
    np.testing.assert_array_equal(two, mean)
    few, axes = plane_of(np.ones((3, 5)), np.ones((3, 5)), seed=0)
    assert few.shape == (3, 2)
    assert "dimensions 1 and 2" in axes


def test_neighbors_stay_neighbors() -> None:
    mean, side = blobs(60)
    places, axes = plane_of(mean, np.ones_like(mean), seed=0)
    nearest = NearestNeighbors(n_neighbors=5).fit(places).kneighbors(return_distance=False)
    assert (side[nearest] == side[:, None]).mean() > 0.95
    assert "t-SNE" in axes


def test_rows_beyond_the_arranged_ones_are_placed_among_their_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_plane, "TSNE_ROWS", 40)
    mean, side = blobs(200)
    places, axes = plane_of(mean, np.ones_like(mean), seed=0)
    nearest = NearestNeighbors(n_neighbors=5).fit(places).kneighbors(return_distance=False)
    assert (side[nearest] == side[:, None]).mean() > 0.95
    assert "40 rows" in axes
