"""Dask arrays and data frames, on every scheduler: the same posterior, lazy results, and sentences for what does not fit."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from gpssl import GPSSL
from row_files import FRAME, N_ROWS, X, assert_same_posterior, model

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

distributed = pytest.importorskip("distributed")

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two worker processes, as on a cluster."""
    settings = {"distributed.worker.daemon": True, "distributed.admin.log-format": "%(message)s", "logging.distributed": "critical"}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


CHUNKS = {
    "even": (700, 4),
    "one": (N_ROWS, 4),
    "empty and single rows": ((0, 1, 1, 0, N_ROWS - 3, 1, 0), 4),
    "many": (50, 4),
}


@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_chunks_and_schedulers_do_not_matter(chunks: Any, scheduler: str, reference: GPSSL) -> None:
    with dask.config.set(scheduler=scheduler):
        assert_same_posterior(model().fit(da.from_array(X, chunks=chunks)), reference)


@pytest.mark.parametrize("n_partitions", [1, 7])
def test_data_frames(n_partitions: int, reference: GPSSL) -> None:
    frame = dd.from_pandas(FRAME, npartitions=n_partitions)
    fitted = model().fit(frame)
    assert_same_posterior(fitted, reference)
    assert list(fitted.feature_names_in_) == ["a", "b", "c", "d"]
    np.testing.assert_allclose(fitted.transform(frame).compute(), reference.transform(X), atol=1e-8)


def test_partitions_that_dask_merges(tmp_path: Path, reference: GPSSL) -> None:
    """Few columns of many files: fewer chunks than partitions."""
    for i in range(10):
        FRAME[500 * i : 500 * (i + 1)].assign(**{f"other {j}": 0.0 for j in range(40)}).to_parquet(tmp_path / f"{i}.parquet")
    frame = dd.read_parquet(tmp_path)[list(FRAME)].assign(a=lambda part: part["a"] + 0.0)
    assert len(frame.to_delayed()) < frame.npartitions
    weight = np.random.default_rng(1).integers(0, 3, size=N_ROWS).astype(float)
    fitted = model().fit(frame)
    assert_same_posterior(fitted, reference)
    assert_same_posterior(model().fit(frame, sample_weight=weight), model().fit(X, sample_weight=weight))
    np.testing.assert_allclose(fitted.transform(frame).compute(), reference.transform(X), atol=1e-8)


def test_data_frame_with_empty_partitions(reference: GPSSL) -> None:
    frame = dd.from_pandas(FRAME, npartitions=5)
    none = frame[frame["a"] > 100]
    assert_same_posterior(model().fit(dd.concat([none, frame, none])), reference)


def test_cluster_is_picked_up(client: Any, reference: GPSSL, tmp_path: Path) -> None:
    def leave_a_trace(chunk: Array) -> Array:
        (tmp_path / str(os.getpid())).touch()
        return chunk

    rows = da.from_array(X, chunks=(600, 4)).map_blocks(leave_a_trace, dtype=float, meta=np.empty((0, 0)))
    with client.as_current():
        fitted = model().fit(rows)
        representation = fitted.transform(rows).compute()
    assert {path.name for path in tmp_path.iterdir()} == {str(pid) for pid in client.run(os.getpid).values()}
    assert_same_posterior(fitted, reference)
    np.testing.assert_allclose(representation, reference.transform(X), atol=1e-8)


def test_worker_killed_in_the_middle(client: Any, reference: GPSSL, tmp_path: Path) -> None:
    """The task that was lost runs again elsewhere, and nothing is counted twice."""
    marker = tmp_path / "killed"

    def load(i: int) -> Array:
        if i == 4 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return X[500 * i : 500 * (i + 1)]

    rows = da.concatenate([da.from_delayed(dask.delayed(load)(i), (500, 4), dtype=float) for i in range(10)])
    with client.as_current():
        fitted = model(kernel=reference.kernel_, inducing=reference.inducing_points_).fit(rows)
    assert marker.exists()
    assert fitted.moments_.weight == N_ROWS
    assert_same_posterior(fitted, reference)


def test_weights() -> None:
    weight = np.random.default_rng(1).integers(0, 3, size=N_ROWS).astype(float)
    expected = model().fit(X, sample_weight=weight)
    assert_same_posterior(model().fit(da.from_array(X, chunks=(700, 4)), sample_weight=weight), expected)
    assert_same_posterior(model().fit(dd.from_pandas(FRAME, npartitions=3), sample_weight=weight), expected)
    assert_same_posterior(model().fit(da.from_array(X, chunks=(700, 4)), sample_weight=da.from_array(weight, chunks=500)), expected)
    with pytest.raises(ValueError, match="4,999 entries, but there are 5,000 rows"):
        model().fit(dd.from_pandas(FRAME, npartitions=3), sample_weight=weight[1:])


def test_sparse_chunks(reference: GPSSL) -> None:
    """As AnnData has them, lazily."""
    rows = da.from_array(X, chunks=(900, 4)).map_blocks(sp.csr_array)
    fitted = model().fit(rows)
    assert_same_posterior(fitted, reference)
    anndata = pytest.importorskip("anndata")
    assert_same_posterior(model().fit(anndata.AnnData(rows).X), reference)
    np.testing.assert_allclose(fitted.transform(rows).compute(), reference.transform(X), atol=1e-8)


def test_results_are_lazy_and_chunked_like_the_rows(reference: GPSSL) -> None:
    rows = da.from_array(X, chunks=((1000, 3000, 1000), 4))
    for name, shape in (("transform", (N_ROWS, 3)), ("std", (N_ROWS, 3))):
        lazy = getattr(reference, name)(rows)
        assert isinstance(lazy, da.Array)
        assert lazy.shape == shape
        assert lazy.chunks == ((1000, 3000, 1000), (3,))
        np.testing.assert_allclose(lazy.compute(), getattr(reference, name)(X), rtol=0, atol=1e-8)
        np.testing.assert_allclose(lazy[1500:1510].compute(), getattr(reference, name)(X[1500:1510]), rtol=0, atol=1e-8)


def test_empty_chunks_have_empty_results(reference: GPSSL) -> None:
    rows = da.from_array(X, chunks=((0, 1, 2999, 0, 2000), 4))
    for values in (reference.transform(rows), reference.std(rows), reference.sample(rows, 2)):
        assert values.compute().shape == values.shape


def test_lazy_draws_are_the_same_functions_everywhere(client: Any, reference: GPSSL) -> None:
    """On threads, on two workers, in any chunks, and evaluated row by row: one set of functions."""
    rows = da.from_array(X, chunks=(900, 4))
    functions = reference.draw_functions(6, random_state=1)
    lazy = functions(rows)
    assert lazy.shape == (6, N_ROWS, 3)
    assert lazy.chunks[1] == rows.chunks[0]
    expected = lazy.compute()
    np.testing.assert_allclose(functions(X[1234:1236]), expected[:, 1234:1236], atol=1e-8)
    np.testing.assert_allclose(reference.sample(rows.rechunk((1700, 4)), 6, random_state=1)[:, :50].compute(), expected[:, :50], atol=1e-8)
    with client.as_current():
        np.testing.assert_allclose(reference.sample(rows, 6, random_state=1).compute(), expected, atol=1e-8)
    frame = dd.from_pandas(FRAME, npartitions=4).to_dask_array(lengths=True)
    np.testing.assert_allclose(reference.sample(frame, 6, random_state=1).compute(), expected, atol=1e-8)


def test_rows_seen_before_keep_their_values_in_lazy_draws(reference: GPSSL) -> None:
    functions = reference.draw_functions(2, random_state=1)
    before = functions(X[:20])
    np.testing.assert_allclose(functions(da.from_array(X, chunks=(900, 4)))[:, :20].compute(), before, atol=1e-8)


def test_single_precision_stays(reference: GPSSL) -> None:
    lazy = reference.transform(da.from_array(X.astype(np.float32), chunks=(1000, 4)))
    assert lazy.dtype == lazy.compute().dtype == np.float32


def test_chunks_of_different_types() -> None:
    whole = np.round(X * 10)
    parts = [whole[:1000].astype(np.int32), whole[1000:2500].astype(np.float32), whole[2500:]]
    mixed = da.concatenate([da.from_array(part, chunks=(500, 4)) for part in parts])
    one, other = model().fit(mixed), model().fit(whole)
    np.testing.assert_allclose(one.transform(whole), other.transform(whole), atol=1e-8)


def test_partial_fit(reference: GPSSL) -> None:
    stream = model(kernel=reference.kernel_, inducing=reference.inducing_points_)
    stream.partial_fit(da.from_array(X[:3000], chunks=(700, 4))).partial_fit(X[3000:])
    assert_same_posterior(stream, reference)


# What does not fit gets a sentence


def test_unknown_chunk_sizes_are_explained() -> None:
    array = dd.from_pandas(FRAME, npartitions=3).to_dask_array()
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        model().fit(array)


def test_chunked_columns_are_explained() -> None:
    with pytest.raises(ValueError, match=r"4 columns in 2 chunks.*rechunk\(\{1: -1\}\)"):
        model().fit(da.from_array(X, chunks=(1000, 2)))


@pytest.mark.parametrize("name", ["array", "frame"])
def test_missing_value_is_named_with_its_partition(name: str) -> None:
    broken = FRAME.copy()
    broken.loc[1234, "c"] = np.nan
    rows = da.from_array(broken.to_numpy(), chunks=(500, 4)) if name == "array" else dd.from_pandas(broken, npartitions=10)
    places = {
        "array": r"partition 2 \(rows 1,000 to 1,499\).*row 1,234, column 2",
        "frame": r"partition 2 \(500 rows\).*row 234 of the part, column 'c'",
    }
    with pytest.raises(ValueError, match=f"(?s)In {places[name]}"):
        model().fit(rows)


def test_missing_value_in_a_sparse_chunk_is_named_with_its_partition() -> None:
    broken = X.copy()
    broken[3700, 1] = np.nan
    rows = da.from_array(broken, chunks=(1000, 4)).map_blocks(sp.csr_array)
    with pytest.raises(ValueError, match=r"(?s)In partition 3 \(rows 3,000 to 3,999\).*row 3,700, column 1"):
        model().fit(rows)


def test_what_is_no_table_of_numbers_gets_a_sentence(reference: GPSSL) -> None:
    with pytest.raises(ValueError, match="2D"):
        model().fit(da.ones(100))
    with pytest.raises(ValueError, match=r"2D.*to_frame\(\)"):
        model().fit(dd.from_pandas(FRAME, npartitions=2)["a"])
    with pytest.raises(ValueError, match="0 rows"):
        model().fit(da.empty((0, 4)))
    with pytest.raises(ValueError, match=r"Column 'color' holds str.*not numbers"):
        model().fit(dd.from_pandas(FRAME.assign(color="red"), npartitions=2))
    with pytest.raises(ValueError, match="3 features, but GPSSL is expecting 4"):
        reference.transform(da.ones((100, 3)))


# Progress


@pytest.mark.parametrize("kind", ["array", "frame"])
@pytest.mark.parametrize("where", ["here", "cluster"])
def test_progress_counts_rows_or_partitions(kind: str, where: str, client: Any, capsys: pytest.CaptureFixture[str]) -> None:
    rows = da.from_array(X, chunks=(1000, 4)) if kind == "array" else dd.from_pandas(FRAME, npartitions=5)
    if where == "cluster":
        with client.as_current():
            model(verbose=True).fit(rows)
    else:
        model(verbose=True).fit(rows)
    expected = "moments: 5,000 of 5,000 rows" if kind == "array" else "moments: 5 of 5 partitions"
    assert expected in capsys.readouterr().err
