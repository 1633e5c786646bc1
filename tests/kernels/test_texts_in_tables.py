"""Texts in tables: a group of a ColumnKernel is the kernel of its column, and for_table gives texts one half."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gpssl.data import TableFiles
from gpssl.kernels import CategoryKernel, ColumnKernel, NeighborDiffusion, SpectrumKernel, StandardizedKernel, TfidfKernel, for_table
from messages import messages

N = 60


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return messages(N).drop(columns="label").assign(number=rng.normal(size=N), color=rng.choice(["red", "blue"], N))


TEXT = ("message", TfidfKernel(), ["message"])
REST = ("rest", StandardizedKernel(), ["number", "color"])


@pytest.mark.parametrize("combine", ["sum", "product"])
def test_a_group_of_texts_is_the_kernel_of_its_column(combine: str) -> None:
    X = frame()
    texts = TfidfKernel().resolve(X["message"])(X["message"])
    rest = StandardizedKernel().resolve(X[["number", "color"]])(X[["number", "color"]])
    kernel = ColumnKernel([REST, TEXT], combine=combine, weights=[0.5, 0.5]).resolve(X)  # type: ignore[arg-type]
    expected = 0.5 * rest + 0.5 * texts if combine == "sum" else (0.5 + 0.5 * rest) * (0.5 + 0.5 * texts)
    np.testing.assert_allclose(kernel(X), expected)
    np.testing.assert_allclose(kernel.diag(X), np.diag(expected))
    shuffled = X[["color", "message", "number"]]
    np.testing.assert_allclose(kernel(X, shuffled), expected)  # columns go by their names


@pytest.mark.parametrize("of_texts", [TfidfKernel(), SpectrumKernel(3), NeighborDiffusion(5, kernel=TfidfKernel())], ids=str)
def test_gaps_are_texts_without_words(of_texts: object) -> None:
    X = frame().assign(message=lambda table: table["message"].where(np.arange(N) % 10 > 0))
    gaps = np.flatnonzero(X["message"].isna())
    kernel = ColumnKernel([("message", of_texts, "message")]).resolve(X)
    np.testing.assert_allclose(kernel(X)[np.ix_(gaps, gaps)], 1.0)
    np.testing.assert_allclose(kernel(X.assign(message=X["message"].fillna("")), X), kernel(X))
    if not isinstance(of_texts, NeighborDiffusion):
        np.testing.assert_allclose(kernel(X)[np.ix_(gaps, np.setdiff1d(np.arange(N), gaps))], 0.0, atol=1e-12)


def test_prepared_rows_stay_as_they_are() -> None:
    kernel = ColumnKernel([REST, TEXT]).resolve(frame())
    rows = kernel.prepare(frame())
    assert rows.dtype == object
    assert kernel.prepare(rows) is rows


def test_for_table_gives_texts_one_half() -> None:
    X = frame()
    kernel = for_table(X, text_kernel=TfidfKernel()).resolve(X)
    columns = for_table(X.drop(columns="message")).resolve(X.drop(columns="message"))(X.drop(columns="message"))
    texts = TfidfKernel().resolve(X["message"])(X["message"])
    np.testing.assert_allclose(kernel(X), (columns + texts) / 2)
    assert for_table(X, texts=["message"]).text_columns == ("message",)
    assert for_table(X[["message"]]).resolve(X).diag(X) == pytest.approx(np.ones(N))


def test_a_sample_of_the_documents_has_the_words() -> None:
    X = frame()["message"]
    all_of_them = TfidfKernel().resolve(X)
    np.testing.assert_allclose(TfidfKernel(max_rows=N).resolve(X)(X), all_of_them(X))
    few = TfidfKernel(max_rows=5).resolve(X)
    assert len(few.vectorizer.estimator.vocabulary_) < len(all_of_them.vectorizer.estimator.vocabulary_)
    np.testing.assert_allclose(few(X), TfidfKernel(max_rows=5).resolve(X[::-1])(X))  # the same in any order of the rows
    with pytest.raises(ValueError, match="max_rows"):
        TfidfKernel(max_rows=0).resolve(X)


def test_files_are_compared_by_their_texts_part_by_part(tmp_path: object) -> None:
    path = f"{tmp_path}/rows.csv"
    frame().to_csv(path, index=False)
    kernel = ColumnKernel([REST, TEXT], combine="sum")
    rows = TableFiles(path)
    assert rows.text_names == ["message"]
    from_file = kernel.resolve(rows.for_tables(kernel.text_columns))
    np.testing.assert_allclose(from_file(frame()), kernel.resolve(frame())(frame()))


def test_what_cannot_be_gets_a_sentence() -> None:
    X = frame()
    with pytest.raises(ValueError, match="one column, which is named or counted"):
        ColumnKernel([("texts", TfidfKernel(), ["message", "color"])]).resolve(X)
    with pytest.raises(ValueError, match=r"no column 'letter' with texts.*'message'"):
        ColumnKernel([("texts", TfidfKernel(), ["letter"])]).resolve(X)
    with pytest.raises(ValueError, match="different kinds of rows"):
        NeighborDiffusion(kernel=ColumnKernel([TEXT]) + CategoryKernel()).resolve(X)
