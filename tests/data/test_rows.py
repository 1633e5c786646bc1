from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from gpssl.data import _arrays as rows
from gpssl.data._arrays import as_object_rows, distinct_rows, hash_normals, hash_rows, merge_distinct_rows, row_blocks, smallest_distinct


@given(st.integers(0, 2**31 - 2), st.integers(1, 30))
@settings(max_examples=30)
def test_sample_does_not_depend_on_the_order_of_rows(seed: int, limit: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(3, size=(60, 2)).astype(float)
    weight = rng.integers(0, 3, size=60).astype(float)
    weight[0] = 1.0
    order = rng.permutation(60)
    one = distinct_rows(X, weight, limit=limit, seed=seed)
    other = distinct_rows(X[order], weight[order], limit=limit, seed=seed)
    np.testing.assert_array_equal(one.rows, other.rows)
    np.testing.assert_array_equal(one.weight, other.weight)


def test_weight_two_is_the_row_twice_for_any_limit() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3))
    weight = rng.integers(0, 4, size=500)
    repeated = np.repeat(X, weight, axis=0)
    for limit in (10, 100, 1000):
        weighted = distinct_rows(X, weight.astype(float), limit=limit, seed=1)
        plain = distinct_rows(repeated, np.ones(len(repeated)), limit=limit, seed=1)
        np.testing.assert_array_equal(weighted.rows, plain.rows)
        np.testing.assert_array_equal(weighted.weight, plain.weight)


def test_sample_is_uniform_over_rows() -> None:
    """Each of 200 rows is in a sample of 50 with probability 1/4."""
    X = np.arange(200.0)[:, None]
    counts = np.zeros(200)
    for seed in range(2000):
        counts[distinct_rows(X, np.ones(200), limit=50, seed=seed).rows[:, 0].astype(int)] += 1
    # 2,000 draws with p = 1/4 have a standard deviation of 19.4; five of them for the worst of 200.
    assert np.abs(counts - 500).max() < 100


def test_equal_numbers_have_equal_hashes_and_others_do_not() -> None:
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])
    hashes = hash_rows(X, seed=3)
    assert hashes[0] == hashes[1] != hashes[2]
    np.testing.assert_array_equal(hashes, hash_rows(X.astype(np.float32), seed=3))
    assert len(np.unique(hash_rows(np.arange(100_000.0)[:, None], seed=3))) == 100_000


def test_normal_numbers_from_hashes() -> None:
    hashes = hash_rows(np.arange(20_000.0)[:, None], seed=3)
    normal = hash_normals(hashes, 30)
    np.testing.assert_array_equal(hash_normals(hashes[7:8], 20), normal[7:8, :20])
    assert kstest(normal.ravel(), "norm").pvalue > 1e-3
    # Neither rows, nor columns, nor a row's neighbors in the sequence have to do with each other.
    n = len(hashes)
    correlations = np.atleast_2d(np.corrcoef(normal.T))[np.triu_indices(30, 1)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(n)
    assert abs(np.mean(normal[1:] * normal[:-1])) < 4.5 / np.sqrt(30 * n)
    assert abs(np.atleast_2d(np.corrcoef(normal[:, 0] ** 2, normal[:, 1] ** 2))[0, 1]) < 4.5 / np.sqrt(n)
    assert np.isfinite(hash_normals(np.array([0, 2**64 - 1], dtype=np.uint64), 1000)).all()


def test_objects_hash_by_content() -> None:
    strings = as_object_rows(["ab", "ba", "ab"])
    hashes = hash_rows(strings, seed=0)
    assert hashes[0] == hashes[2] != hashes[1]
    one, same = "".join("xy"), "".join("xy")
    pairs = as_object_rows([(one, one), (one, same)])
    hashes = hash_rows(pairs, seed=0)
    assert hashes[0] == hashes[1]
    with pytest.raises(ValueError, match="can be pickled"):
        hash_rows(as_object_rows([lambda: 0]), seed=0)
    graphs = as_object_rows([{"nodes": [1, 2]}, {"nodes": [1, 2]}, {"nodes": [2, 1]}])
    hashes = hash_rows(graphs, seed=0)
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize(("n_rows", "size", "n_blocks"), [(0, 5, 0), (1, 5, 1), (10, 5, 2), (11, 5, 3)])
def test_blocks_cover_each_row_once(n_rows: int, size: int, n_blocks: int) -> None:
    blocks = list(row_blocks(n_rows, size))
    assert len(blocks) == n_blocks
    assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(n_rows))


def test_blocks_fill_half_of_a_core_s_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    for cache, n_columns, expected in (
        (16 * 2**20, 512, 2048),
        (16 * 2**20, 500, 2048),
        (2**19, 512, 256),
        (2**30, 10, 4096),
        (0, 512, 1024),
    ):
        monkeypatch.setattr(rows, "_cache_of_one_core", lambda size=cache: size)
        assert rows.rows_in_cache(n_columns) == expected


def test_cache_is_read_as_linux_describes_it(tmp_path: Path) -> None:
    for name, text in (("size", "32768K\n"), ("shared_cpu_map", "00000000,0000000f\n")):
        (tmp_path / name).write_text(text)
    assert rows._share(tmp_path) == 8 * 2**20
    (tmp_path / "size").write_text("large")
    assert rows._share(tmp_path) == rows._share(tmp_path / "absent") == 0


def test_samples_merge_to_the_sample_of_all() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(40, size=(900, 2)).astype(float)
    weight = rng.integers(0, 3, size=900).astype(float)
    for limit in (5, 100, 5000):
        whole = distinct_rows(X, weight, limit=limit, seed=1)
        merged = distinct_rows(X[:0], weight[:0], limit=limit, seed=1)
        for start in range(0, 900, 70):
            part = slice(start, start + 70)
            merged = merge_distinct_rows(merged, distinct_rows(X[part], weight[part], limit=limit, seed=1), limit=limit)
        for name in ("rows", "weight", "hashes"):
            np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))


def test_all_missing_cells_are_alike() -> None:
    """There are many NaN, with different bits."""
    rows = np.array([[np.nan, 1.0], [-np.nan, 1.0], [np.copysign(np.nan, -1.0), 1.0]])
    assert len(np.unique(hash_rows(rows, 0))) == 1


@pytest.mark.parametrize("n_different", [1, 40, 3000, 50_000])
@pytest.mark.parametrize("limit", [1, 500, 100_000])
def test_smallest_distinct_hashes_are_those_of_all_sorted(n_different: int, limit: int) -> None:
    rng = np.random.default_rng(0)
    hashes = rng.choice(rng.integers(2**64, size=n_different, dtype=np.uint64), 20_000)
    np.testing.assert_array_equal(smallest_distinct(hashes, limit), np.unique(hashes)[:limit])
    np.testing.assert_array_equal(smallest_distinct(hashes >> np.uint64(40), limit), np.unique(hashes >> np.uint64(40))[:limit])
    assert len(smallest_distinct(hashes[:0], limit)) == 0
