"""Files that are read part by part: the same table, the same fit, however they are cut."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

from gpssl import GPSSL
from gpssl.data import FileError, TableFiles, open_table, write_table
from gpssl.data import _table as table_module
from gpssl.data._frames import encode_table
from gpssl.kernels import CategoryKernel, for_table
from people import N_ROWS, mixed_frame


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpssl.data._delimited.BLOCK_BYTES", (4096, 4096))
    monkeypatch.setattr("gpssl.data._json_lines.JSON_BLOCK_BYTES", 4096)
    monkeypatch.setattr("gpssl.data._formats.PART_ROWS", (97, 97))


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "arrow"])
def test_nothing_depends_on_the_blocks(tmp_path: Path, ending: str, request: pytest.FixtureRequest) -> None:
    path = tmp_path / f"table.{ending}"
    write_table(path, mixed_frame())
    whole = open_table(path, target="y")
    expected, sample = whole.frame(), whole.sample(200, seed=3)
    request.getfixturevalue("small_blocks")
    table = open_table(path, target="y")
    assert len(list(table.frames())) > 10
    assert table.facts == whole.facts
    assert table.dropped == whole.dropped == {"id": "it looks like an ID: it counts the rows from 0 to 2999"}
    pd.testing.assert_frame_equal(table.frame(), expected)
    pd.testing.assert_frame_equal(table.sample(200, seed=3), sample)
    np.testing.assert_array_equal(table.target(), whole.target())


@pytest.mark.usefixtures("small_blocks")
def test_kinds_do_not_depend_on_blocks_that_mislead(tmp_path: Path) -> None:
    lines = ["a;b;c;d"]
    lines += [f"{i % 50};{i % 9};;{i % 12 + 1}/{i % 11 + 1}/2020" for i in range(2000)]
    lines += [f"{i % 50},5;word;{i % 3};{i % 12 + 1}/25/2020" for i in range(2000)]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    table = open_table(tmp_path / "table.csv")
    assert {facts.name: facts.kind for facts in table.facts} == {"a": "number", "b": "category", "c": "number", "d": "date"}
    assert table.facts[0].maximum == 49.5
    assert table.frame()["a"].iloc[-1] == 49.5


def test_sample_is_uniform_and_keeps_the_order(tmp_path: Path) -> None:
    write_table(tmp_path / "table.csv", mixed_frame())
    table = open_table(tmp_path / "table.csv")
    samples = [table.sample(300, seed=seed) for seed in range(20)]
    assert all(len(sample) == 300 and sample.index.is_monotonic_increasing for sample in samples)
    counts = np.bincount(np.concatenate([sample.index for sample in samples]) // 300, minlength=10)
    assert (np.abs(counts - 600) < 100).all()
    pd.testing.assert_frame_equal(samples[0], table.frame().loc[samples[0].index])


@pytest.mark.usefixtures("small_blocks")
def test_streamed_fit_is_that_of_the_frame(tmp_path: Path) -> None:
    write_table(tmp_path / "table.csv", mixed_frame())
    table = open_table(tmp_path / "table.csv", target="y")
    frame = table.frame()
    estimator = GPSSL(3, kernel=2.0 * for_table(table.sample(500)), max_inducing=60, residual_tolerance=0.9, random_state=0)
    streamed, whole = clone(estimator).fit(table.rows()), clone(estimator).fit(frame)
    assert streamed.feature_names_in_.tolist() == whole.feature_names_in_.tolist() == table.used
    for method in ("transform", "std"):
        expected = getattr(whole, method)(frame)
        np.testing.assert_allclose(getattr(streamed, method)(table.rows()), expected, atol=1e-8)
        np.testing.assert_allclose(getattr(streamed, method)(frame), expected, atol=1e-8)
    np.testing.assert_allclose(streamed.score(table.rows()), whole.score(frame), rtol=1e-8)
    draws = streamed.sample(table.rows(), 2)
    assert draws.shape == (2, N_ROWS, 3)


@pytest.mark.usefixtures("small_blocks")
def test_streamed_fit_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    write_table(tmp_path / "table.csv", mixed_frame())
    rows = open_table(tmp_path / "table.csv", target="y").rows()
    estimator = GPSSL(2, kernel=for_table(mixed_frame(500)[rows.names]), max_inducing=20, residual_tolerance=0.9, random_state=0)
    kept = clone(estimator).fit(rows, checkpoint=tmp_path / "pass.npz")
    np.testing.assert_array_equal(kept.transform(rows), clone(estimator).fit(rows).transform(rows))


def test_encoded_rows_need_a_kernel_for_tables(tmp_path: Path) -> None:
    write_table(tmp_path / "table.csv", mixed_frame(100))
    rows = open_table(tmp_path / "table.csv").rows()
    for kernel in (None, RBF(), CategoryKernel() + RBF()):
        with pytest.raises(TypeError, match="for_table"):
            GPSSL(2, kernel=kernel).fit(rows)


def test_other_columns_than_those_of_the_fit_are_refused(tmp_path: Path) -> None:
    write_table(tmp_path / "table.csv", mixed_frame(200))
    table = open_table(tmp_path / "table.csv")
    model = GPSSL(2, kernel=for_table(table.frame()), max_inducing=20, residual_tolerance=0.9).fit(table.rows())
    with pytest.raises(ValueError, match="feature names"):
        model.transform(open_table(tmp_path / "table.csv", ignore=["x"]).rows())


def test_rows_of_a_file_that_changes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    write_table(path, mixed_frame(200))
    for rows in (open_table(path).rows(), TableFiles(path).for_tables()):
        for n_rows in (100, 300):
            write_table(path, mixed_frame(n_rows), force=True)
            with pytest.raises(FileError, match="has changed since it was opened"):
                list(rows.parts())
        write_table(path, mixed_frame(200), force=True)


def test_categories_of_parquet_files_are_rows_of_a_kernel_for_tables(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "color": pd.Categorical(["red", None, "blue"])})
    frame.to_parquet(tmp_path / "table.parquet")
    (part,) = TableFiles(tmp_path / "table.parquet").for_tables().parts()
    np.testing.assert_array_equal(part.rows, encode_table(frame))


def test_large_tables_are_told_from_small_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_table(tmp_path / "table.csv", mixed_frame(200))
    table = open_table(tmp_path / "table.csv")
    assert table.fits_in_memory
    monkeypatch.setattr(table_module, "MEMORY_BYTES", 200 * 20)
    assert not table.fits_in_memory


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "jsonl"])
@pytest.mark.parametrize("ignored", [False, True])
def test_long_texts_make_a_table_large(tmp_path: Path, ending: str, ignored: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that are not learned from, and however well they are packed."""
    remarks = ["x" * 10_000, "y" * 10_000] * 100 if ignored else [f"{place:05d}" * 2000 for place in range(200)]
    frame = mixed_frame(200).assign(remark=remarks)
    path = tmp_path / f"table.{ending}"
    write_table(tmp_path / f"table.{ending.removesuffix('.gz')}", frame)
    if ending == "csv.gz":
        path.write_bytes(gzip.compress((tmp_path / "table.csv").read_bytes()))
    monkeypatch.setattr(table_module, "MEMORY_BYTES", 1_900_000)
    table = open_table(path, ignore=["remark"] if ignored else [])
    assert "remark" in table.dropped
    assert not table.fits_in_memory
    monkeypatch.setattr(table_module, "MEMORY_BYTES", 2_200_000)
    assert table.fits_in_memory


def test_texts_of_one_column(tmp_path: Path) -> None:
    write_table(tmp_path / "table.csv", mixed_frame(60).assign(who=[["anna", "NA", "3", ""][place % 4] for place in range(60)]))
    table = open_table(tmp_path / "table.csv", ignore=["who"])
    assert table.texts("who").tolist()[:4] == ["anna", None, "3", None]


@pytest.mark.usefixtures("small_blocks")
def test_memory_stays_bounded(tmp_path: Path) -> None:
    """NumPy's and Python's memory, for a table of ten times as many rows."""
    peaks = []
    for n_rows in (1000, 10_000):
        path = tmp_path / f"{n_rows}.csv"
        write_table(path, mixed_frame(n_rows))
        tracemalloc.start()
        table = open_table(path, target="y")
        for part in table.rows().parts():
            assert len(part.rows) < 1000
        write_table(tmp_path / "out.csv", (part[["x"]] for part in table.frames()), force=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]


def test_ten_thousand_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    names = [f"c{place}" for place in range(10_000)]
    frame = pd.DataFrame(rng.normal(size=(30, 10_000)).round(3), columns=names)
    frame["c1"] = rng.choice(["a", "b"], 30)
    frame.iloc[3, 5] = np.nan
    write_table(tmp_path / "table.csv", frame)
    table = open_table(tmp_path / "table.csv")
    found = table.frame()
    assert table.used == names
    pd.testing.assert_frame_equal(found, frame)
    model = GPSSL(2, kernel=for_table(found), random_state=0).fit(found)
    assert model.transform(table.rows()).shape == (30, 2)
