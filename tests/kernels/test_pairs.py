from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

from gpssl import GPSSL
from gpssl.data._rows import SliceableRows
from gpssl.kernels import GroupKernel, NeighborRBF, PairKernel
from gpssl.kernels._protocol import block_kernel
from strings import SharedLetters

Array = NDArray[np.float64]

X = np.random.default_rng(0).standard_normal((12, 2))


def resolved(pairs: Any, rows: NDArray[Any] = X) -> GroupKernel:
    return PairKernel(pairs).resolve(SliceableRows(rows, checked=True), seed=0)


def groups_by_walking(pairs: list[tuple[int, int]], n: int) -> Array:
    """Return which rows can be reached from which, one step at a time; rows in no pair reach nothing."""
    linked = np.zeros((n, n), dtype=bool)
    for one, other in pairs:
        linked[one, other] = linked[other, one] = linked[one, one] = linked[other, other] = True
    for _ in range(n):
        linked = linked | (linked.astype(int) @ linked.astype(int) > 0)
    return linked.astype(float)


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), min_size=1, max_size=12))
@settings(max_examples=60)
def test_groups_are_what_pairs_reach(pairs: list[tuple[int, int]]) -> None:
    kernel = resolved(pairs)
    gram = kernel(X)
    np.testing.assert_array_equal(gram, groups_by_walking(pairs, 12))
    np.testing.assert_array_equal(kernel.diag(X), gram.diagonal())
    assert np.linalg.eigvalsh(gram)[0] > -1e-12
    out = np.empty((7, 5))
    block_kernel(kernel, X[:5])(X[5:], out)
    np.testing.assert_array_equal(out, gram[5:, :5])


def test_rows_with_the_same_content_are_the_same_row() -> None:
    rows = X.copy()
    rows[3] = rows[1]
    kernel = resolved([[0, 1], [3, 4]], rows)
    assert kernel(rows[:1], rows[4:5])[0, 0] == 1
    assert kernel(rows[4:5].astype(np.float32), rows[:1])[0, 0] == 0, "another number is another row"


def test_new_rows_and_no_pairs_get_nothing() -> None:
    assert resolved([[0, 1]])(X + 1).max() == 0
    none = resolved(np.empty((0, 2), dtype=int))
    assert none(X).max() == none.diag(X).max() == 0


def test_kernels_clone_and_pickle() -> None:
    kernel = resolved([[0, 1], [1, 2]])
    np.testing.assert_array_equal(clone(kernel)(X), pickle.loads(pickle.dumps(kernel))(X))
    assert clone(kernel) == kernel
    values, gradient = kernel(X, eval_gradient=True)
    assert values.shape == (12, 12)
    assert gradient.shape == (12, 12, 0)
    pairs = PairKernel(np.array([[0, 1]]))
    assert clone(pairs) == pairs
    assert "1 pairs" in repr(0.5 * pairs)
    for call in (pairs, pairs.diag):
        with pytest.raises(ValueError, match="fit looks them up"):
            call(X)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([[0, 900]], "pairs points at row 900, but there are 12 rows"),
        ([0, 1], r"shape \[P, 2\]"),
        ([[0, 1, 2]], r"got shape \[1, 3\]"),
        ([[0.0, 1.0]], "whole numbers"),
        ([[0, -1]], "counted from 0; got -1"),
    ],
)
def test_bad_pairs_raise_an_error(pairs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GPSSL(2, kernel=RBF() + PairKernel(pairs)).fit(X)


@pytest.mark.parametrize("convert", [np.asarray, np.float32, csr_array, lambda X: pd.DataFrame(X, columns=["a", "b"])])
def test_every_way_to_bring_vectors(convert: Any, circles: Array) -> None:
    rows = convert(circles[:80])
    ssl = GPSSL(2, kernel=NeighborRBF() + 0.5 * PairKernel([[0, 40], [1, 41]]), random_state=0).fit(rows)
    dense = circles[:80].astype(np.float32) if convert is np.float32 else circles[:80]
    np.testing.assert_array_equal(ssl.kernel_.k2.k2(dense[[0, 1]], dense[[40, 41]]), np.eye(2))
    assert np.isfinite(ssl.transform(rows)).all()
    assert np.isfinite(ssl.std(rows)).all()
    assert ssl.sample(rows, 2).shape == (2, 80, 2)


def test_strings_may_be_paired() -> None:
    words = ["abc", "abd", "xyz", "xyw", "kkk", "aab", "zzx", "dab"]
    ssl = GPSSL(2, kernel=SharedLetters() + 2.0 * PairKernel([[0, 2], [1, 3]]), random_state=0).fit(words)
    assert ssl.transform(words).shape == (8, 2)
    assert ssl.kernel_.k2.k2(["abc"], ["xyz"])[0, 0] == 1


def gap(kernel: Any, rows: Array, pairs: NDArray[np.intp], inference: str = "variational") -> float:
    """Return the mean squared distance within pairs, relative to the spread of the representation."""
    Z = GPSSL(5, kernel=kernel, inference=inference, random_state=0).fit(rows).transform(rows)
    return float(((Z[pairs[:, 0]] - Z[pairs[:, 1]]) ** 2).sum(axis=1).mean() / Z.var(axis=0).sum())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pairs_bring_rows_together(circles: Array, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs, others = (rng.permutation(len(circles))[:100].reshape(-1, 2) for _ in range(2))
    base = NeighborRBF()
    together = gap(base + 10.0 * PairKernel(pairs), circles, pairs)
    assert together < 0.6 * gap(base, circles, pairs)
    assert together < 0.6 * gap(base + 10.0 * PairKernel(others), circles, pairs)


@pytest.mark.filterwarnings("ignore:.*inducing points leave:UserWarning")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pairs_align_two_domains(circles: Array, seed: int) -> None:
    """The data are the circles and a shifted copy; a third of the rows are known to correspond.

    Inference is by the mode, which is known in closed form: the two domains have the same eigenvalues, between which the variational
    optimizer stops early with a warning.
    """
    n, rng = len(circles), np.random.default_rng(seed)
    both = np.vstack([circles, circles + 20.0])
    kernel = NeighborRBF(per_column=False).resolve(circles)
    known = np.column_stack([np.arange(n), np.arange(n) + n])[rng.permutation(n)[: n // 3]]
    wrong = np.column_stack([known[:, 0], rng.permutation(known[:, 1])])
    aligned = gap(kernel + 30.0 * PairKernel(known), both, known, "mode")
    assert aligned < 0.8 * gap(kernel, both, known, "mode")
    assert aligned < 0.8 * gap(kernel + 30.0 * PairKernel(wrong), both, known, "mode")
