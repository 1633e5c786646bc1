"""`gpssl cluster`: clusters, how sure each row is in its own, and the same from Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import gpssl
from command import as_json, done, refused
from people import written

FEW = ["--draws", "10"]


def three_groups(n_rows: int = 90) -> pd.DataFrame:
    """Three kinds of things that differ in their numbers and their color; the kind itself is not among the columns."""
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=n_rows)
    return pd.DataFrame(
        {
            "weight": (10 * kind + rng.normal(size=n_rows)).round(2),
            "length": (7 * (kind == 1) + rng.normal(size=n_rows)).round(2),
            "color": np.array(["red", "green", "blue"])[kind],
        }
    ).assign(kind=kind)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return written(three_groups().drop(columns="kind"), tmp_path / "things.csv")


def test_clusters_are_written_beside_the_rows(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "clustered.csv"
    found = as_json("cluster", table, "-o", out, *FEW)
    rows = pd.read_csv(out)
    assert (found["n_rows"], found["n_clusters"]) == (90, 3)
    assert found["columns"] == ["weight", "length", "color"]
    assert list(rows.columns[:3]) == ["weight", "length", "color"]
    assert list(rows.columns[3:]) == ["gpssl_cluster", "gpssl_cluster_probability", *(f"gpssl_cluster_{k}" for k in (1, 2, 3))]
    assert adjusted_rand_score(three_groups()["kind"], rows["gpssl_cluster"]) == 1
    assert rows["gpssl_cluster"].value_counts().sort_index().tolist() == found["sizes"]
    np.testing.assert_allclose(rows.filter(regex=r"cluster_\d").sum(axis=1), 1)
    np.testing.assert_allclose(rows["gpssl_cluster_probability"], rows.filter(regex=r"cluster_\d").max(axis=1))
    assert found["mean_probability"] == pytest.approx(rows["gpssl_cluster_probability"].mean())
    assert [Path(path).name for path in found["written"]] == ["clustered.csv", "clustered.gpssl"]


def test_what_is_printed_says_how_sure_the_rows_are(table: Path, tmp_path: Path) -> None:
    output = done("cluster", table, "-k", "2", "-o", tmp_path / "clustered.csv", *FEW)
    assert "90 rows in 2 clusters (1: " in output
    assert "with 95 % certainty or more" in output
    assert "Numbers of clusters that draws prefer, if there are any: 3 (" in output


def test_a_cloud_is_said_to_be_one(tmp_path: Path) -> None:
    cloud = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 4)).round(3), columns=list("abcd"))
    assert "Perhaps there are none" in done("cluster", written(cloud, tmp_path / "cloud.csv"), "-o", tmp_path / "out.csv", *FEW)


def test_model_puts_other_rows_into_the_same_clusters(table: Path, tmp_path: Path) -> None:
    done("cluster", table, "-o", tmp_path / "clustered.csv", *FEW)
    done("transform", tmp_path / "clustered.gpssl", table, "-o", tmp_path / "again.csv")
    first, again = pd.read_csv(tmp_path / "clustered.csv"), pd.read_csv(tmp_path / "again.csv")
    pd.testing.assert_frame_equal(again.filter(like="cluster"), first.filter(like="cluster"))
    assert "gpssl_1_std" in again
    assert "PosteriorClustering" in done("info", tmp_path / "clustered.gpssl")
    assert "Columns of an earlier run" in done("cluster", tmp_path / "again.csv", "-o", tmp_path / "more.csv", *FEW)


def test_the_same_in_python_with_the_index_of_the_frame() -> None:
    frame = three_groups().drop(columns="kind").set_axis([f"thing {place}" for place in range(90)])
    found = gpssl.cluster(frame, 3, n_draws=10)
    assert found.written == []
    assert found.frame().index.equals(frame.index)
    assert found.model.n_clusters_ == found.n_clusters == 3
    assert found.frame()["gpssl_cluster"].tolist() == (found.model.predict(frame) + 1).tolist()


def test_many_rows_are_clustered_by_a_sample_of_them() -> None:
    many = three_groups(2500)
    found = gpssl.cluster(many.drop(columns="kind"), n_draws=10)
    assert found.n_rows == sum(found.sizes) == 2500
    assert adjusted_rand_score(many["kind"], found.frame()["gpssl_cluster"]) > 0.99


def test_bad_choices_get_a_sentence(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert "many is neither auto nor a whole number" in refused("cluster", table, "-k", "many", "-o", out, code=2)
    assert "90 rows cannot form 91 clusters" in refused("cluster", table, "-k", "91", "-o", out, code=2)
    with pytest.raises(ValueError, match="n_clusters: 0 is no number of clusters"):
        gpssl.cluster(table, 0)
    with pytest.raises(ValueError, match="max_clusters: 1 is too few"):
        gpssl.cluster(table, max_clusters=1)
    assert not out.exists()
