"""The same rows from anywhere: arrays, files, sparse matrices and data frames lead to the same posterior."""

from __future__ import annotations

import mmap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from gpssl import GPSSL, MarginalizedClassifier
from gpssl.data import TableFiles, open_rows, write_table
from gpssl.data import _rows as part_module
from gpssl.data._rows import SliceableRows
from gpssl.kernels import NeighborRBF
from row_files import (
    FRAME,
    N_ROWS,
    NAMES,
    X,
    as_compressed_tsv,
    as_csv,
    as_folder_of_files,
    as_hdf5,
    as_memmap,
    as_parquet,
    assert_same_posterior,
    model,
    write_memmap,
)

Array = NDArray[np.float64]


SOURCES = [
    as_memmap,
    as_parquet,
    as_folder_of_files,
    as_csv,
    as_compressed_tsv,
    as_hdf5,
    lambda _: sp.csr_array(X),
    lambda _: sp.csc_matrix(X),
    lambda _: sp.coo_array(X),
]
NAMES_OF_SOURCES = ["memmap", "parquet", "folder", "csv", "tsv.gz", "hdf5", "csr", "csc", "coo"]


@pytest.mark.parametrize("make", SOURCES, ids=NAMES_OF_SOURCES)
@pytest.mark.usefixtures("small_parts")
def test_every_source_gives_the_same_posterior(make: Any, tmp_path: Path, reference: GPSSL) -> None:
    source = make(tmp_path)
    fitted = model().fit(source)
    assert_same_posterior(fitted, reference)
    np.testing.assert_allclose(fitted.transform(source), reference.transform(X), rtol=0, atol=1e-8)
    np.testing.assert_allclose(fitted.std(source), reference.std(X), rtol=0, atol=1e-8)
    assert fitted.score(source) == pytest.approx(reference.score(X), rel=1e-8)
    np.testing.assert_allclose(fitted.sample(source, 3, random_state=1), reference.sample(X, 3, random_state=1), rtol=0, atol=1e-6)


def test_stream_of_batches_gives_the_same_posterior(reference: GPSSL) -> None:
    stream = model(kernel=reference.kernel_, inducing=reference.inducing_points_)
    for i, batch in enumerate(np.array_split(X, 7)):
        stream.partial_fit(sp.csr_array(batch) if i % 2 else batch)
    assert_same_posterior(stream, reference)


def test_file_in_the_first_batch_of_a_stream(tmp_path: Path, reference: GPSSL) -> None:
    FRAME[:4000].to_csv(tmp_path / "first.csv", index=False)
    stream = model(kernel=reference.kernel_, inducing=reference.inducing_points_)
    stream.partial_fit(tmp_path / "first.csv").partial_fit(FRAME[4000:])
    assert_same_posterior(stream, reference)


@pytest.mark.parametrize("make", [as_memmap, as_parquet, as_csv, lambda _: sp.csr_array(X)], ids=["memmap", "parquet", "csv", "csr"])
@pytest.mark.usefixtures("small_parts")
def test_weights_of_rows_in_files(make: Any, tmp_path: Path) -> None:
    weight = np.random.default_rng(1).integers(0, 3, size=N_ROWS).astype(float)
    assert_same_posterior(model().fit(make(tmp_path), sample_weight=weight), model().fit(X, sample_weight=weight))


def test_columns_of_files_are_remembered_and_compared(tmp_path: Path) -> None:
    path = as_parquet(tmp_path)
    fitted = model().fit(path)
    assert list(fitted.feature_names_in_) == NAMES
    fitted.transform(FRAME[:10])
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(FRAME[:10].rename(columns={"a": "z"}))


def test_files_without_rows_among_others(tmp_path: Path, reference: GPSSL) -> None:
    for i, rows in enumerate((FRAME[:0], FRAME[:3000], FRAME[:0], FRAME[3000:])):
        rows.to_csv(tmp_path / f"{i}.csv", index=False)
    assert_same_posterior(model().fit(tmp_path), reference)


def test_list_of_files(tmp_path: Path, reference: GPSSL) -> None:
    FRAME[:2000].to_csv(tmp_path / "one.csv", index=False)
    FRAME[2000:4000].to_parquet(tmp_path / "three.parquet")
    write_table(tmp_path / "two.jsonl", FRAME[4000:])
    names = [str(tmp_path / name) for name in ("one.csv", "three.parquet", "two.jsonl")]
    assert_same_posterior(model().fit(names), reference)
    assert_same_posterior(model().fit([Path(name) for name in names]), reference)
    assert_same_posterior(model().fit(tmp_path), reference)


def test_heads_say_what_to_do_with_files(tmp_path: Path, reference: GPSSL) -> None:
    labels = (X[:100, 0] > 0).astype(int)
    with pytest.raises(TypeError, match=r"Heads need rows in memory, got str.*FrozenEstimator"):
        MarginalizedClassifier(model()).fit(as_parquet(tmp_path), labels)
    classifier = MarginalizedClassifier(FrozenEstimator(reference), n_draws=3, random_state=0).fit(X[:100], labels)
    with pytest.raises(TypeError, match="predict part by part"):
        classifier.predict_proba(as_parquet(tmp_path))
    np.testing.assert_allclose(classifier.predict_proba(as_memmap(tmp_path)[:50]), classifier.predict_proba(X[:50]), atol=1e-12)


def test_index_of_a_data_frame_is_no_column(tmp_path: Path) -> None:
    odd = FRAME[FRAME["a"] > 0]
    odd.to_parquet(tmp_path / "odd.parquet")
    odd.rename_axis("patient").to_parquet(tmp_path / "named.parquet")
    for name in ("odd.parquet", "named.parquet"):
        assert TableFiles(tmp_path / name).names == NAMES
    assert TableFiles(tmp_path / "named.parquet", columns=["a", "patient"]).names == ["a", "patient"]
    odd.to_csv(tmp_path / "odd.csv")
    with pytest.raises(ValueError, match="column without a name; is it an index"):
        TableFiles(tmp_path / "odd.csv")


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (("float32", "int16"), np.float32),
        (("float32", "float64"), np.float64),
        (("float16", "float16"), np.float64),
        (("int8", "bool"), np.float64),
    ],
)
def test_precision_of_a_file_is_that_of_the_data_frame(kinds: tuple[str, str], expected: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(9).astype(kinds[0]), "y": np.arange(9).astype(kinds[1])})
    frame.to_parquet(tmp_path / "rows.parquet")
    (part,) = TableFiles(tmp_path / "rows.parquet").parts()
    assert part.rows.dtype == expected


def test_file_that_changed_while_it_was_open(tmp_path: Path) -> None:
    path = Path(as_parquet(tmp_path))
    rows = TableFiles(path)
    fitted = model().fit(rows)
    FRAME[:3000].to_parquet(path)
    for read in (fitted.transform, model().fit):
        with pytest.raises(ValueError, match="has changed since it was opened: run again"):
            read(rows)
    (FRAME + 1.0).to_parquet(path)
    with pytest.raises(ValueError, match="has changed since it was opened"):
        model().fit(rows)
    np.testing.assert_array_equal(model().fit(TableFiles(path)).inducing_points_, model().fit(FRAME + 1.0).inducing_points_)


def test_one_pass_for_the_sample_however_many_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []
    original = TableFiles.parts
    monkeypatch.setattr(TableFiles, "parts", lambda self: passes.append(1) or original(self))  # type: ignore[func-returns-value]
    GPSSL(2, inducing=700, random_state=0, residual_tolerance=0.5).fit(as_parquet(tmp_path))
    assert len(passes) == 3, "one for the sample, one for the rows farthest out, one for the moments"


def test_some_columns_of_a_file(tmp_path: Path) -> None:
    FRAME.assign(label="red", id=range(N_ROWS)).to_parquet(tmp_path / "labeled.parquet")
    fitted = model().fit(TableFiles(tmp_path / "labeled.parquet", columns=["b", "a"]))
    np.testing.assert_allclose(fitted.transform(FRAME[["b", "a"]]), model().fit(FRAME[["b", "a"]]).transform(FRAME[["b", "a"]]), atol=1e-8)


def test_anndata_backed_in_memory_and_its_matrix(tmp_path: Path, reference: GPSSL) -> None:
    anndata = pytest.importorskip("anndata")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # AnnData's own, and that of pandas about the option without which AnnData cannot write
        with pd.option_context("future.infer_string", False):
            cells = anndata.AnnData(sp.csr_matrix(X), var=pd.DataFrame(index=NAMES))
            cells.write_h5ad(tmp_path / "cells.h5ad")
            anndata.AnnData(sp.csc_matrix(X)).write_h5ad(tmp_path / "columns.h5ad")
            backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
            by_columns = anndata.read_h5ad(tmp_path / "columns.h5ad", backed="r")
    for source in (cells, backed, backed.X):
        assert_same_posterior(model().fit(source), reference)
    assert list(model().fit(backed).feature_names_in_) == NAMES
    with pytest.raises(ValueError, match="stored by columns"):
        model().fit(by_columns)


# Memory


def test_no_part_is_larger_than_a_part(tmp_path: Path) -> None:
    """Wide sparse rows become dense a few at a time."""
    wide = sp.random_array((2000, 40_000), density=1e-4, rng=0, format="csr")
    assert max(part.rows.nbytes for part in SliceableRows(wide).parts()) <= 5 * part_module.PART_BYTES
    long = pd.DataFrame(np.zeros((100_000, 40)), columns=[f"c{i}" for i in range(40)])
    long.to_parquet(tmp_path / "long.parquet")
    long.to_csv(tmp_path / "long.csv", index=False)
    for source in (long.to_numpy(), tmp_path / "long.parquet", tmp_path / "long.csv"):
        sizes = [part.rows.nbytes for part in open_rows(source).parts()]
        assert max(sizes) <= part_module.PART_BYTES
        assert sum(sizes) == 100_000 * 40 * 8


def resident_pages(mapped: Any) -> int:
    """Kilobytes of the mapped file that count as memory of this process."""
    address, sizes, inside = mapped.ctypes.data, 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split(" ")[0]
        if "-" in head:
            start, stop = (int(bound, 16) for bound in head.split("-"))
            inside = start <= address < stop
        elif inside and line.startswith("Rss:"):
            sizes += int(line.split()[1])
    return sizes


@pytest.mark.skipif(not Path("/proc/self/smaps").exists() or not hasattr(mmap, "MADV_DONTNEED"), reason="a question only Linux answers")
def test_mapped_pages_do_not_stay_in_memory(tmp_path: Path) -> None:
    mapped = write_memmap(tmp_path, np.ones((400_000, 8)))
    assert mapped.sum() == 400_000 * 8
    assert resident_pages(mapped) > 20_000
    for _ in open_rows(mapped).parts():
        pass
    assert resident_pages(mapped) < 5_000


def test_pages_that_were_changed_in_memory_only_are_kept(tmp_path: Path) -> None:
    mapped = write_memmap(tmp_path, X, mode="c")
    mapped[7] = 99.0
    assert open_rows(mapped).sample(10**6, seed=0).rows.max() == 99.0
    assert mapped[7, 0] == 99.0


# Types


def test_parts_of_different_types_are_one_table(tmp_path: Path) -> None:
    """Whole numbers, single and double precision in files of one folder."""
    rows = pd.DataFrame(np.random.default_rng(0).integers(-20, 20, size=(900, 3)), columns=["x", "y", "z"])
    for i, kind in enumerate((np.float32, np.int64, np.float64)):
        rows[300 * i : 300 * (i + 1)].astype(kind).to_parquet(tmp_path / f"{i}.parquet")
    fitted, expected = GPSSL(3, random_state=0).fit(tmp_path), GPSSL(3, random_state=0).fit(rows)
    np.testing.assert_allclose(fitted.transform(rows), expected.transform(rows), atol=1e-8)


# The lengthscale of many rows


@pytest.mark.usefixtures("small_parts")
def test_lengthscale_does_not_depend_on_where_rows_come_from(tmp_path: Path) -> None:
    path, order = as_parquet(tmp_path), np.random.default_rng(0).permutation(N_ROWS)
    for kernel in (NeighborRBF(), NeighborRBF(per_column=False, reduce="median"), NeighborRBF(50, max_rows=3000)):
        expected = kernel.resolve(X).length_scale
        np.testing.assert_array_equal(kernel.resolve(path).length_scale, expected)
        np.testing.assert_array_equal(kernel.resolve(X[order]).length_scale, expected)


def test_copies_of_the_farthest_rows_hide_no_others() -> None:
    """However the rows are cut, the farthest distinct ones are found behind a hundred copies of one."""
    rows = np.vstack([np.tile(X[0] * 5, (100, 1)), X])
    whole = NeighborRBF(max_rows=500).resolve(rows).length_scale
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part_module, "PART_ROWS", (1, 37))
        np.testing.assert_array_equal(NeighborRBF(max_rows=500).resolve(rows).length_scale, whole)
