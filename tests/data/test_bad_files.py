"""Files and arrays that cannot be read as a table of numbers get a sentence, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from gpssl import GPSSL
from gpssl.data import Part, TableFiles
from gpssl.data._rows import SliceableRows
from row_files import (
    FRAME,
    N_ROWS,
    X,
    as_csv,
    as_parquet,
    assert_same_posterior,
    model,
    write_memmap,
)


@pytest.mark.usefixtures("small_parts")
def test_missing_value_is_named_with_its_place(tmp_path: Path) -> None:
    broken = FRAME.copy()
    broken.loc[1234, "c"] = np.nan
    broken.to_parquet(tmp_path / "rows.parquet")
    broken.to_csv(tmp_path / "rows.csv", index=False)
    mapped = write_memmap(tmp_path, broken.to_numpy())
    for source, column in ((tmp_path / "rows.parquet", "'c'"), (tmp_path / "rows.csv", "'c'"), (mapped, "2")):
        with pytest.raises(ValueError, match=rf"(?s)rows [\d,]+ to [\d,]+\).*NaN.*row 1,234, column {column}"):
            model().fit(source)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n3,x\n", "not numbers"),
        ("a,b\n" + "1,2\n" * 120_000 + "3,x\n", r"(?s)NaN.*row 120,000, column 'b'"),
        ("", "is empty"),
        ("a,b\n", "0 rows"),
        ("1,2\n3,4\n5,6\n", "first line of .* holds numbers"),
        ("a,a\n3,4\n5,6\n", "more than one column named 'a'"),
    ],
    ids=["text", "text at the end", "empty", "header only", "no header", "same name twice"],
)
@pytest.mark.parametrize("kernel", [None, RBF(1.0)], ids=["default", "RBF"])
def test_bad_files_get_a_sentence(tmp_path: Path, content: str, message: str, kernel: Any) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        model(kernel=kernel).fit(path)


def test_wrong_names_get_a_sentence(tmp_path: Path) -> None:
    path = as_parquet(tmp_path)
    with pytest.raises(FileNotFoundError, match="no file"):
        model().fit(tmp_path / "absent.parquet")
    with pytest.raises(ValueError, match=r"ends in \.py; tables are read from \.csv"):
        model().fit(__file__)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no Parquet or CSV files"):
        model().fit(tmp_path / "empty")
    with pytest.raises(ValueError, match="columns is empty"):
        TableFiles(path, columns=[])
    with pytest.raises(ValueError, match="'a' more than once"):
        TableFiles(path, columns=["a", "a"])
    with pytest.raises(ValueError, match="through Dask"):
        model().fit("s3://bucket/rows.parquet")
    with pytest.raises(ValueError, match="no column 'z'; its columns are 'a', 'b', 'c', 'd'"):
        TableFiles(path, columns=["a", "z"])
    FRAME.rename(columns={"b": "B"}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(ValueError, match=r"other columns than.*'b' instead of 'B'"):
        TableFiles(str(tmp_path / "*.parquet"))
    content = Path(path).read_bytes()
    damaged = tmp_path / "damaged.parquet"
    for broken in (content[:500], content[:1000] + bytes(3000) + content[4000:]):
        damaged.write_bytes(broken)
        with pytest.raises(ValueError, match="cannot be read as a table"):
            model().fit(damaged)


def test_weights_that_do_not_fit_get_a_sentence(tmp_path: Path) -> None:
    path = as_csv(tmp_path)
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(10,\), expected \(5000,\)"):
        model(kernel=RBF(1.0)).fit(path, sample_weight=np.ones(10))
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(5001,\), expected \(5000,\)"):
        model(kernel=RBF(1.0)).fit(path, sample_weight=np.ones(N_ROWS + 1))
    with pytest.raises(ValueError, match="a weight for each row"):
        model().fit(path, sample_weight=2.0)
    with pytest.raises(ValueError, match="Negative values"):
        model().fit(path, sample_weight=-np.ones(N_ROWS))


def test_short_lines_of_a_file_are_left_out_with_a_warning(tmp_path: Path) -> None:
    lines = ["a,b", *(f"{place % 7},{place % 5}" for place in range(40)), "3"]
    (tmp_path / "short.csv").write_text("\n".join(lines))
    with pytest.warns(UserWarning, match=r"1 row\(s\) .* left out; line 42 has 1 cells instead of 2"):
        assert TableFiles(tmp_path / "short.csv").n_rows == 40


def test_all_rows_of_a_file_as_inducing_points(tmp_path: Path) -> None:
    FRAME[:60].to_csv(tmp_path / "few.csv", index=False)
    fitted = GPSSL(2, inducing="all", random_state=0).fit(tmp_path / "few.csv")
    assert len(fitted.inducing_points_) == len(np.unique(X[:60], axis=0))


class RowsOfUnknownNumber(SliceableRows):
    """Rows that only reading counts, as partitions of Dask may be."""

    def __init__(self, rows: Any, sample_weight: Any = None) -> None:
        super().__init__(rows, sample_weight)
        self.n_rows = None

    def parts(self) -> Iterator[Part]:
        for start in range(0, len(self.X), 1000):
            rows = self.X[start : start + 1000]
            yield Part(rows, self.weight_of(start, len(rows)))
        self.check_weights_are_as_many(len(self.X))


def test_rows_of_unknown_number_get_the_same_sentences() -> None:
    with pytest.raises(ValueError, match="needs the number of rows"):
        GPSSL(2, inducing="all").fit(RowsOfUnknownNumber(X))
    with pytest.raises(ValueError, match="sample_weight has 10 entries, fewer"):
        model(kernel=RBF(1.0)).fit(RowsOfUnknownNumber(X), sample_weight=np.ones(10))
    with pytest.raises(ValueError, match="sample_weight has 5,001 entries, but there are 5,000 rows"):
        model(kernel=RBF(1.0)).fit(RowsOfUnknownNumber(X), sample_weight=np.ones(N_ROWS + 1))
    with pytest.raises(ValueError, match="One row is too few"):
        model(kernel=RBF(1.0), inducing=np.eye(2)).fit(RowsOfUnknownNumber(np.ones((1, 2))))


def test_failed_fit_from_a_file_loses_nothing(tmp_path: Path, reference: GPSSL) -> None:
    fitted = model().fit(X)
    (tmp_path / "bad.csv").write_text("a,b,c,d\n1,2,3,4\n1,,3,4\n")
    with pytest.raises(ValueError, match="NaN"):
        fitted.fit(tmp_path / "bad.csv")
    assert_same_posterior(fitted, reference)


def test_arrays_of_other_shapes_get_a_sentence(tmp_path: Path) -> None:
    for shape in ((30,), (3, 4, 5)):
        with pytest.raises(ValueError, match=r"2D|dim 3"):
            model().fit(write_memmap(tmp_path, np.ones(shape)))
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "rows.h5", "w") as file, pytest.raises(TypeError, match="pass one of its datasets"):
        model().fit(file)
    (tmp_path / "one.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="Found n_samples=1 rows; at least 2 are needed"):
        model(kernel=RBF(1.0), inducing=np.eye(2)).fit(tmp_path / "one.csv")
