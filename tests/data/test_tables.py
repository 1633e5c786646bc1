"""Tables as numbers: what a cell is depends on nothing but the cell."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

from gpssl.data._frames import are_codes, encode_cell, encode_table, header_of

FRAME = pd.DataFrame(
    {
        "count": [1, 2, 3, 4],
        "size": [0.5, np.nan, -1.0, 2.0],
        "color": ["red", "blue", None, "red"],
        "grade": pd.Categorical(["b", "a", None, "b"], ["b", "a"], ordered=True),
        "kind": pd.Categorical([10, 20, 10, None]),
        "flag": [True, False, True, True],
        "when": pd.to_datetime(["1970-01-02", None, "1970-01-01", "2000-01-01"]),
        "maybe": pd.array([1, None, 3, 4], dtype="Int64"),
        "text": pd.array(["x", None, "y", "x"], dtype="string"),
    }
)


def test_cells_of_every_kind() -> None:
    table = encode_table(FRAME)
    red, blue = encode_cell("red"), encode_cell("blue")
    np.testing.assert_array_equal(table[:, 0], [1, 2, 3, 4])
    np.testing.assert_array_equal(table[:, 1], [0.5, np.nan, -1, 2])
    np.testing.assert_array_equal(table[:, 2], [red, blue, np.nan, red])
    np.testing.assert_array_equal(table[:, 3], [encode_cell("b"), encode_cell("a"), np.nan, encode_cell("b")])
    np.testing.assert_array_equal(table[:, 4], [10, 20, 10, np.nan])
    np.testing.assert_array_equal(table[:, 5], [1, 0, 1, 1])
    np.testing.assert_array_equal(table[:, 6], [86400, np.nan, 0, 946684800])
    np.testing.assert_array_equal(table[:, 7], [1, np.nan, 3, 4])
    np.testing.assert_array_equal(table[:, 8], [encode_cell("x"), np.nan, encode_cell("y"), encode_cell("x")])
    assert are_codes(np.array([red, blue])).all()
    assert not are_codes(table[:, [0, 1, 4, 6]]).any()


def test_a_piece_of_a_table_comes_out_alike() -> None:
    whole = encode_table(FRAME)
    np.testing.assert_array_equal(encode_table(FRAME.iloc[[3, 1]]), whole[[3, 1]])
    np.testing.assert_array_equal(encode_table(whole), whole)
    np.testing.assert_array_equal(encode_table(FRAME.astype(object)), whole)


def test_polars_frames_are_as_good_as_those_of_pandas() -> None:
    plain = FRAME.drop(columns=["grade", "kind"])
    np.testing.assert_array_equal(encode_table(pl.from_pandas(plain)), encode_table(plain))
    assert list(header_of(pl.from_pandas(plain)).columns) == list(plain.columns)
    assert len(header_of(plain)) == 0


def test_dates_and_decimals_are_numbers() -> None:
    cells = [date(1970, 1, 2), datetime(1970, 1, 2), datetime(1970, 1, 2, tzinfo=UTC), pd.Period("1970-01-02"), Decimal("86400")]
    assert [encode_cell(cell) for cell in cells] == [86400.0] * 5


def test_codes_are_the_same_in_every_process() -> None:
    program = "from gpssl.data._frames import encode_cell; print(repr(encode_cell('red')))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert float(printed) == encode_cell("red")


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (pd.DataFrame({"a": [1.0, np.inf]}), ValueError, "infinity, in column 'a'"),
        (np.array([1.0, 2.0]), ValueError, "rows and columns"),
        ("table.csv", TypeError, "got 'table.csv': read it first"),
        (None, TypeError, "got None"),
        (csr_array(np.eye(2)), TypeError, "got a sparse matrix"),
        (pl.LazyFrame({"a": [1]}), TypeError, "collect"),
        (pd.DataFrame({"a": [1j]}, dtype=object), TypeError, "got complex"),
        (["red", "blue"], ValueError, "rows and columns"),
        (pd.DataFrame({"a": [[1, 2], [3]]}), TypeError, "must be a number, text, a category or a date, got list"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "Several columns are called 'a'"),
    ],
)
def test_what_is_no_table_gets_a_sentence(table: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        encode_table(table)
