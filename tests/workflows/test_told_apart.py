"""How sure a representation is of the differences between rows: without the shift that all of them share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

import gpssl
from command import as_json, done
from people import two_groups, written

Array = np.ndarray


@pytest.fixture(scope="module")
def wine() -> pd.DataFrame:
    return load_wine(as_frame=True).data


def test_standard_deviation_without_the_shift_is_that_of_draws(wine: pd.DataFrame) -> None:
    """Var(f(x) − mean f) in closed form, against 2,000 joint draws at all rows."""
    ssl = gpssl.embed(wine, n_components=2).model
    draws = ssl.sample(wine, 2000, random_state=1)
    expected = (draws - draws.mean(axis=1, keepdims=True)).std(axis=0)
    rows = wine.to_numpy(dtype=np.float64)
    center = ssl.features_.whiten(ssl.moments_.first / ssl.moments_.weight)
    mean, std, centered = ssl.posterior_.mean_and_stds(rows, center)
    np.testing.assert_allclose(centered, expected, rtol=0.12)
    np.testing.assert_allclose(mean, ssl.transform(wine), rtol=1e-9)
    np.testing.assert_allclose(std, ssl.std(wine), rtol=1e-9)
    np.testing.assert_allclose(ssl.posterior_.mean_and_stds(rows, np.zeros_like(center))[2], std, rtol=1e-9)
    assert centered.mean() < 0.5 * std.mean()


def test_certain_share_is_that_of_draws(wine: pd.DataFrame) -> None:
    """Var E f / (Var E f + E Var f) over rows, where each draw is centered at its own mean."""
    result = gpssl.embed(wine, n_components=3)
    draws = result.model.sample(wine, 1000, random_state=1)
    centered = draws - draws.mean(axis=1, keepdims=True)
    certain, whole = centered.mean(axis=0).var(axis=0), (centered**2).mean(axis=(0, 1))
    assert result.certain_share == pytest.approx((certain / whole).mean(), abs=0.01)
    assert result.certain_share > 0.85


def test_shift_of_all_rows_is_not_held_against_a_good_fit(tmp_path: Path, wine: pd.DataFrame) -> None:
    table = written(wine, tmp_path / "wine.csv")
    output = done("embed", table, "-o", tmp_path / "out.csv")
    assert "178 rows, 13 columns, 5 dimensions; rows are told apart well: 9" in output
    assert "% of the spread between rows is certain." in output
    assert "nothing is known" not in output
    again = done("transform", tmp_path / "out.gpssl", table, "-o", tmp_path / "again.csv")
    assert "rows are told apart well" in again
    noise = gpssl.embed(wine, n_components=2, temperature=10.0)
    assert noise.certain_share < 0.3


def test_rows_far_from_all_others_are_hardly_told_apart(tmp_path: Path) -> None:
    done("embed", written(two_groups(), tmp_path / "things.csv"), "-o", tmp_path / "out.csv", "--ignore", "kind")
    far = two_groups().assign(size=np.linspace(900, 2000, 60), weight=np.linspace(5000, 900, 60))
    output = done("transform", tmp_path / "out.gpssl", written(far, tmp_path / "far.csv"), "-o", tmp_path / "far-out.csv")
    assert "rows are told apart hardly" in output


def test_columns_that_a_dimension_depends_on_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    side = rng.choice([-1.0, 1.0], 150)
    frame = pd.DataFrame({f"alike {place}": side + rng.normal(0, 0.1, 150) for place in range(4)} | {"noise": rng.normal(0, 1, 150)})
    table = written(frame, tmp_path / "things.csv")
    assert "gpssl_1 depends most on alike" in done("embed", table, "-o", tmp_path / "out.csv", "--components", "1")
    found = as_json("embed", table, "-o", tmp_path / "out.csv", "--components", "1", "--force")["importance"]
    assert list(found) == ["gpssl_1"]
    assert found["gpssl_1"][-1]["name"] == "noise"
    assert sum(one["share"] for one in found["gpssl_1"]) == pytest.approx(1)
    assert gpssl.load(tmp_path / "out.gpssl").card_.notes["importance"] == found
