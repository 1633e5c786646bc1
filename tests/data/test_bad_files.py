"""Files and arrays that cannot be read as a table of numbers get a sentence, and nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from gpssl import GPSSL
from gpssl.data import TableFiles
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
        ("a,b\n1,2\n3\n", "cannot be read as a table"),
        ("a,b\n" + "1,2\n" * 1_200_000 + "3,x\n", "cannot be read as a table of numbers"),
        ("", "cannot be read as a table"),
        ("a,b\n", "0 rows"),
        ("1,2\n3,4\n5,6\n", "first line of .* holds numbers"),
        ("a,a\n3,4\n5,6\n", "more than one column named 'a'"),
    ],
    ids=["text", "short line", "text at the end", "empty", "header only", "no header", "same name twice"],
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
    with pytest.raises(ValueError, match="neither a Parquet nor a CSV"):
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
    with pytest.raises(ValueError, match="no column 'z'; it has a, b, c, d"):
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
    with pytest.raises(ValueError, match="sample_weight has 10 entries, fewer"):
        model(kernel=RBF(1.0)).fit(path, sample_weight=np.ones(10))
    with pytest.raises(ValueError, match="sample_weight has 5,001 entries, but there are 5,000 rows"):
        model(kernel=RBF(1.0)).fit(path, sample_weight=np.ones(N_ROWS + 1))
    with pytest.raises(ValueError, match="a weight for each row"):
        model().fit(path, sample_weight=2.0)
    with pytest.raises(ValueError, match="Negative values"):
        model().fit(path, sample_weight=-np.ones(N_ROWS))


def test_all_rows_as_inducing_points_of_a_file_that_does_not_say_how_many(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs to know the number of rows"):
        GPSSL(2, inducing="all").fit(as_csv(tmp_path))


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
    with pytest.raises(ValueError, match="One row is too few"):
        model(kernel=RBF(1.0), inducing=np.eye(2)).fit(tmp_path / "one.csv")
