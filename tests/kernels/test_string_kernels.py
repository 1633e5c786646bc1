from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from gpssl import GPSSL, MarginalizedClassifier
from gpssl.data import SliceableRows
from gpssl.kernels import MismatchKernel, SpectrumKernel, SubsequenceKernel, TfidfKernel
from gpssl.kernels._protocol import block_kernel, preparing_kernel, resolve_kernel

Array = NDArray[np.float64]

LETTERS = "ab🦊𝔘\udc80"
"""With an emoji, a letter beyond the basic plane, and half of a surrogate pair."""
STRINGS = st.lists(st.text(LETTERS, min_size=1, max_size=9), min_size=1, max_size=8)


# What every kernel for strings does

KERNELS = [
    SpectrumKernel(2),
    SpectrumKernel(3, normalize=False),
    MismatchKernel(3, 1, "ab🦊"),
    MismatchKernel(4, 2, "a"),
    SubsequenceKernel(2, 0.5, 4),
    SubsequenceKernel(3, 1.0, 100, normalize=False),
    SpectrumKernel(2) * SubsequenceKernel(2) + 0.5 * MismatchKernel(3, 1, "ab"),
    TfidfKernel().resolve(["a b 🦊", "a a", "b"]),
]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)


@each_kernel
@settings(max_examples=30)
@given(X=STRINGS, Y=STRINGS)
def test_gram_is_symmetric_positive_and_made_of_blocks(kernel: sk.Kernel, X: list[str], Y: list[str]) -> None:
    gram = kernel(X + Y)
    tolerance = 1e-12 * max(1.0, gram.max())
    np.testing.assert_array_equal(gram, gram.T)
    assert np.linalg.eigvalsh(gram).min() > -tolerance * len(gram)
    np.testing.assert_allclose(kernel(X, Y), gram[: len(X), len(X) :], atol=tolerance)
    np.testing.assert_allclose(kernel.diag(X + Y), gram.diagonal(), atol=tolerance)
    out = np.full((len(Y), len(X)), np.nan)
    rows, points = (preparing_kernel(kernel).prepare(strings) for strings in (Y, X))  # type: ignore[union-attr]
    block_kernel(kernel, points)(rows, out)
    np.testing.assert_allclose(out, gram[len(X) :, : len(X)], atol=tolerance)


@each_kernel
def test_clone_and_pickle(kernel: sk.Kernel) -> None:
    strings = ["abab", "bb🦊", "a"]
    for copy in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        np.testing.assert_array_equal(copy(strings), kernel(strings))
    assert not kernel.is_stationary()
    assert not kernel.requires_vector_input


@each_kernel
def test_no_parameter_to_take_a_gradient_by(kernel: sk.Kernel) -> None:
    if isinstance(kernel, sk.KernelOperator):
        return
    values, gradient = kernel(["ab", "b"], eval_gradient=True)
    assert values.shape == (2, 2)
    assert gradient.shape == (2, 2, 0)
    with pytest.raises(ValueError, match="Y is None"):
        kernel(["ab"], ["b"], eval_gradient=True)


def test_kernels_say_their_parameters() -> None:
    assert repr(SubsequenceKernel(2, 0.25)) == "SubsequenceKernel(length=2, decay=0.25, max_span=6, normalize=True)"
    assert SpectrumKernel(2) == SpectrumKernel(2) != SpectrumKernel(3)


# Bad input


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("abc", "single str.*list of strings"),
        (b"abc", "single bytes"),
        (["a", ""], "Row 1 is an empty string: drop"),
        (["a", None], r"Row 1 is missing \(None\)"),
        ([float("nan"), "a"], r"Row 0 is missing \(nan\)"),
        (pd.Series(["a", pd.NA], dtype="string"), "Row 1 is missing"),
        (["a", b"b"], "Row 1 is of type bytes: decode"),
        ([1, 2], "Row 0 is of type int"),
        (np.ones(3), "Row 0 is of type float"),
        (np.ones((3, 2)), r"shape \(3, 2\).*column with the strings"),
        ([["a"], ["b"]], "Row 0 is of type list"),
        (pd.DataFrame({"one": ["a"], "two": ["b"]}), "pass the column"),
    ],
)
@pytest.mark.parametrize("kernel", [SpectrumKernel(), MismatchKernel(2), TfidfKernel()], ids=["spectrum", "mismatch", "tfidf"])
def test_rows_that_are_no_strings_get_a_sentence(kernel: sk.Kernel, X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernel.prepare(X)
    if not isinstance(X, str):  # which would be the name of a file
        with pytest.raises(ValueError, match=message):
            GPSSL(1, kernel=kernel).fit(X)


def test_kinds_of_rows_that_are_strings() -> None:
    strings = ["ab", "b🦊"]
    forms = [strings, tuple(strings), np.array(strings), np.array(strings, dtype=object)[:, None], pd.Series(strings)]
    forms += [pd.DataFrame({"text": strings}), pd.Series(strings, dtype="string"), [np.str_(x) for x in strings]]
    for form in forms:
        rows = SpectrumKernel().prepare(form)
        assert rows.tolist() == strings
        assert rows.dtype == object
        assert {type(row) for row in rows} == {str}
        assert SpectrumKernel().prepare(rows) is rows


def test_string_kernels_combine_with_each_other_only() -> None:
    strings = ["abc", "bcd", "cde"]
    kernel = SpectrumKernel(2) + TfidfKernel()
    assert resolve_kernel(kernel, SliceableRows(SpectrumKernel().prepare(strings), checked=True), seed=0)(strings).shape == (3, 3)
    assert preparing_kernel(kernel) is not None


# In the library


def promoters(n: int) -> tuple[list[str], NDArray[Any]]:
    """Strings with one of two motifs in the middle."""
    rng = np.random.default_rng(0)
    kinds = np.arange(n) % 2
    texts = [
        "".join(rng.choice(list("ACGT"), 5)) + ("TATAAT" if kind else "GGCGCC") + "".join(rng.choice(list("ACGT"), 5)) for kind in kinds
    ]
    return texts, kinds


@pytest.mark.parametrize(
    "kernel", [SpectrumKernel(), MismatchKernel(4), SubsequenceKernel(), TfidfKernel()], ids=lambda k: type(k).__name__
)
def test_representation_of_strings(kernel: sk.Kernel) -> None:
    texts, kinds = promoters(60)
    if isinstance(kernel, TfidfKernel):
        texts = [" ".join(text[i : i + 3] for i in range(len(text) - 2)) for text in texts]
    ssl = GPSSL(2, kernel=kernel, random_state=0).fit(texts)
    assert max(abs(np.corrcoef(column, kinds)[0, 1]) for column in ssl.transform(texts).T) > 0.8
    assert ssl.std(texts[:5]).shape == (5, 2)
    assert np.isfinite(ssl.sample(texts[:5], 3, random_state=0)).all()
    copy = pickle.loads(pickle.dumps(ssl))
    np.testing.assert_array_equal(copy.transform(texts[:5]), ssl.transform(texts[:5]))
    few = np.where(np.arange(60) < 10, kinds, -1)
    classifier = MarginalizedClassifier(GPSSL(2, kernel=kernel, random_state=0), n_draws=5, random_state=0).fit(texts, few)
    assert (classifier.predict(texts) == kinds).mean() > 0.9


def test_in_scikit_learn_s_gaussian_process() -> None:
    texts, kinds = promoters(30)
    model = GaussianProcessRegressor(SpectrumKernel(3), alpha=0.1).fit(texts, kinds)
    assert np.corrcoef(model.predict(texts), kinds)[0, 1] > 0.9
