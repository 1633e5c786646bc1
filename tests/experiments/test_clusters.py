"""The experiment with clusters: methods find clusters that are there, and errors are counted by certainty."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from experiments import clusters
from experiments.data.examples import Examples
from experiments.few_label_protocol import few_labels_split
from experiments.plan import Plan


def _groups() -> Examples:
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    return Examples("groups", pd.DataFrame(6.0 * np.eye(4)[y] + rng.normal(size=(120, 4)), columns=list("abcd")), y.astype(str))


@pytest.mark.parametrize("method", [method for method in clusters.METHODS if "UMAP" not in method])
def test_methods_find_clusters_that_are_there(method: str) -> None:
    split = few_labels_split(_groups(), 0)
    for n_clusters in (3, None):
        found = clusters.METHODS[method](split, n_clusters)
        assert adjusted_rand_score(split.y, found.labels) > 0.9


def test_umap_is_clustered() -> None:
    pytest.importorskip("umap")
    split = few_labels_split(_groups(), 0)
    assert adjusted_rand_score(split.y, clusters.METHODS["k-means on UMAP"](split, 3).labels) > 0.9


def test_errors_are_counted_by_certainty() -> None:
    y, labels = np.array([0, 0, 0, 1, 1, 1]), np.array([1, 1, 0, 0, 0, 0])
    certainty = np.array([1.0, 0.99, 0.5, 0.7, 0.9, 0.95])
    assert clusters.errors_by_certainty(y, labels, certainty) == [[1, 1], [1, 0], [1, 0], [3, 0]]


def test_tables_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "load", lambda _: _groups())
    monkeypatch.delitem(clusters.METHODS, "k-means on UMAP")
    plan = Plan(splits=1, quick=True)
    records = [{**task._asdict(), **clusters.run(task, plan)} for task in clusters.tasks(plan)]
    assert json.loads(json.dumps(records, allow_nan=False)) == records
    blocks = clusters.report(records)
    assert set(blocks) == {"clusters", "clusters tables", "clusters certainty"}
    assert "k-means on columns" in blocks["clusters"]
    assert "| heart" in blocks["clusters tables"]
    assert "draws of the prior" in blocks["clusters certainty"]
