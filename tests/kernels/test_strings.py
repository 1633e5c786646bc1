"""Kernels for strings: what all of them do, and the values of each against a slow definition."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from itertools import combinations, product
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
from gpssl.data._rows import SliceableRows
from gpssl.kernels import MismatchKernel, SpectrumKernel, SubsequenceKernel, TfidfKernel, _word_counts
from gpssl.kernels._protocol import block_kernel, preparing_kernel, resolve_kernel

Array = NDArray[np.float64]
Words = Mapping[str, float]

LETTERS = "ab🦊𝔘\udc80"
"""These include an emoji, a letter beyond the basic plane, and half of a surrogate pair."""
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


# Rows that are no strings


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
def test_rows_that_are_no_strings_raise_an_error(kernel: sk.Kernel, X: Any, message: str) -> None:
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


# In estimators


def promoters(n: int) -> tuple[list[str], NDArray[Any]]:
    """Return strings with one of two motifs in the middle."""
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


# Slow definitions of the kernels


def spectrum(x: str, k: int) -> Words:
    return dict(Counter(x[i : i + k] for i in range(len(x) - k + 1))) if len(x) >= k else {x: 1}


def neighborhoods(x: str, k: int, m: int, alphabet: str) -> Words:
    """Count, for each word of x, all words over the alphabet and "?" that differ from it in at most m letters."""
    x = "".join(letter if letter in alphabet else "?" for letter in x)
    if len(x) < k:
        return {x: 1}
    counts: dict[str, float] = defaultdict(float)
    for i in range(len(x) - k + 1):
        for letters in product(alphabet + "?", repeat=k):
            if sum(one != other for one, other in zip(x[i : i + k], letters, strict=True)) <= m:
                counts["".join(letters)] += 1
    return counts


def subsequences(x: str, k: int, decay: float, max_span: int) -> Words:
    if len(x) < k:
        return {x: 1.0}
    counts: dict[str, float] = defaultdict(float)
    for places in combinations(range(len(x)), k):
        span = places[-1] - places[0] + 1
        if span <= max_span:
            counts["".join(x[i] for i in places)] += decay**span
    return counts


def inner(one: Words, other: Words) -> float:
    return sum(count * other.get(word, 0) for word, count in one.items())


def slow_gram(strings: list[str], words_of: Callable[[str], Words]) -> Array:
    words = [words_of(x) for x in strings]
    return np.array([[inner(one, other) for other in words] for one in words], dtype=float)


def lodhi(s: str, t: str, n: int, decay: float) -> float:
    """Evaluate the dynamic program of Lodhi et al. 2002, section 3, definition 2."""

    def prime(i: int, s: str, t: str) -> float:
        if i == 0:
            return 1.0
        if min(len(s), len(t)) < i:
            return 0.0
        matches = (prime(i - 1, s[:-1], t[:j]) * decay ** (len(t) - j + 1) for j in range(len(t)) if t[j] == s[-1])
        return decay * prime(i, s[:-1], t) + sum(matches)

    if min(len(s), len(t)) < n:
        return 0.0
    matches = (prime(n - 1, s[:-1], t[:j]) * decay**2 for j in range(len(t)) if t[j] == s[-1])
    return lodhi(s[:-1], t, n, decay) + sum(matches)


# The kernels against their definitions


@given(STRINGS, st.integers(1, 4))
def test_spectrum_counts_words(strings: list[str], k: int) -> None:
    np.testing.assert_array_equal(SpectrumKernel(k, normalize=False)(strings), slow_gram(strings, lambda x: spectrum(x, k)))


@settings(max_examples=40)
@given(STRINGS, st.sampled_from([(1, 0), (2, 1), (3, 0), (3, 1), (3, 2), (4, 1)]), st.sampled_from(["a", "ab", "abc"]))
def test_mismatch_counts_neighborhoods(strings: list[str], size: tuple[int, int], alphabet: str) -> None:
    gram = MismatchKernel(*size, alphabet, normalize=False)(strings)
    np.testing.assert_array_equal(gram, slow_gram(strings, lambda x: neighborhoods(x, *size, alphabet)))


def test_mismatch_with_many_letters_and_mismatches() -> None:
    strings = ["MKVLAAGIV", "MKILSAGIV", "GGAVK", "VIG"]
    for k, m in ((5, 1), (5, 2), (4, 3)):
        expected = slow_gram(strings, lambda x, k=k, m=m: neighborhoods(x, k, m, "MKVA"))  # type: ignore[misc]
        np.testing.assert_array_equal(MismatchKernel(k, m, "MKVA", normalize=False)(strings), expected)


def test_no_mismatch_is_the_spectrum() -> None:
    strings = ["GATTACA", "TACCA", "CATACAT"]
    np.testing.assert_array_equal(MismatchKernel(3, 0, "ACGT")(strings), SpectrumKernel(3)(strings))


@given(STRINGS, st.integers(1, 3), st.sampled_from([0.3, 1.0]), st.integers(0, 4))
def test_subsequences_are_counted(strings: list[str], k: int, decay: float, more: int) -> None:
    gram = SubsequenceKernel(k, decay, k + more, normalize=False)(strings)
    np.testing.assert_allclose(gram, slow_gram(strings, lambda x: subsequences(x, k, decay, k + more)), rtol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_subsequences_with_any_gap_are_lodhi_s_kernel(k: int) -> None:
    strings = ["science", "is", "organized", "knowledge"]
    long_enough = [x for x in strings if len(x) >= k]
    expected = [[lodhi(x, y, k, 0.4) for y in long_enough] for x in long_enough]
    np.testing.assert_allclose(SubsequenceKernel(k, 0.4, 9, normalize=False)(long_enough), expected, rtol=1e-12)


def test_example_of_lodhi_s_paper() -> None:
    """k(cat, car) = λ⁴ and k(cat, cat) = 2λ⁴ + λ⁶ for two letters."""
    decay = 0.7
    np.testing.assert_allclose(SubsequenceKernel(2, decay)(["cat"], ["car"]), 1 / (2 + decay**2))


# Blocks, hashes and unusual strings


def test_blocks_of_strings_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("abc"), size=rng.integers(1, 30))) for _ in range(700)]
    kernels = [SpectrumKernel(3), MismatchKernel(4, 1, "ab"), SubsequenceKernel()]
    expected = [(kernel(strings), kernel(strings[:600], strings[100:])) for kernel in kernels]
    monkeypatch.setattr(_word_counts, "MAX_KEYS", 40)
    monkeypatch.setattr(_word_counts, "MAX_STRINGS", 3)
    for kernel, (gram, cross) in zip(kernels, expected, strict=True):
        np.testing.assert_allclose(kernel(strings), gram, rtol=1e-13)
        np.testing.assert_allclose(kernel(strings[:600], strings[100:]), cross, rtol=1e-13)


def test_words_have_the_same_hashes_in_every_process() -> None:
    script = "from gpssl.kernels._word_counts import *; print(count_words(['ab🦊', 'b'], [Pattern((0, 1), 2)]).word.tolist())"
    here = _word_counts.count_words(np.array(["ab🦊", "b"], dtype=object), [_word_counts.Pattern((0, 1), 2)]).word.tolist()
    there = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert there.stdout.strip() == str(here)


def test_no_rows() -> None:
    for kernel in (SpectrumKernel(), MismatchKernel(3, 1, "ab"), SubsequenceKernel()):
        assert kernel([]).shape == (0, 0)
        assert kernel(["ab", "abc"], []).shape == (2, 0)
        assert kernel([], ["ab"]).shape == (0, 1)


def test_short_string_is_a_word_of_its_own() -> None:
    """It equals neither a longer string nor the beginning of one."""
    for kernel in (SpectrumKernel(3), MismatchKernel(3, 1, "abc"), SubsequenceKernel(3)):
        np.testing.assert_array_equal(kernel(["ab", "ab", "ba", "abc", "a"])[0], [1, 1, 0, 0, 0])


def test_small_decay_does_not_underflow() -> None:
    np.testing.assert_allclose(SubsequenceKernel(3, 1e-200)(["abcd", "abce"]), [[1, 0.5], [0.5, 1]])


def test_span_beyond_the_strings_costs_nothing_and_a_span_too_long_raises_an_error() -> None:
    strings = ["abcab", "bca", "aab", "b"]
    np.testing.assert_array_equal(SubsequenceKernel(2, 0.5, 10**9)(strings), SubsequenceKernel(2, 0.5, 5)(strings))
    with pytest.raises(ValueError, match="exceed length by at most 1,000"):
        SubsequenceKernel(2, 0.5, 10**9)(["ab" * 600])


# The alphabet of MismatchKernel


def test_alphabet_comes_from_the_rows_that_count() -> None:
    rows = SliceableRows(np.array(["ba", "cb", "🦊"], dtype=object), np.array([1.0, 0.0, 2.0]), checked=True)
    kernel: Any = 2.0 * MismatchKernel(2)
    assert resolve_kernel(kernel, rows, seed=0).k2.alphabet == "ab🦊"
    assert kernel.k2.alphabet is None
    assert MismatchKernel(2).resolve(["ba", "cb"]).alphabet == "abc"
    assert MismatchKernel(2, 1, "xy").resolve(["ba"]).alphabet == "xy"


def test_letters_outside_the_alphabet_are_one_letter() -> None:
    kernel = MismatchKernel(3, 1, "ab")
    np.testing.assert_array_equal(kernel(["abxa", "ayz"]), kernel(["ab?a", "a??"]))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (SpectrumKernel(0), "length must be a whole number of at least 1"),
        (SpectrumKernel(2.5), "length"),  # type: ignore[arg-type]
        (MismatchKernel(3, -1, "ab"), "mismatches must be a whole number of at least 0"),
        (MismatchKernel(3, 3, "ab"), "smaller than length"),
        (MismatchKernel(3, 1, ""), "distinct letters"),
        (MismatchKernel(3, 1, "aba"), "distinct letters"),
        (MismatchKernel(3, 1), "resolve"),
        (SubsequenceKernel(decay=0), "decay must be a number above 0 and at most 1"),
        (SubsequenceKernel(decay=1.5), "decay must be a number above 0 and at most 1"),
        (SubsequenceKernel(3, max_span=2), "max_span must be a whole number of at least 3"),
    ],
    ids=str,
)
def test_bad_parameters_raise_an_error(kernel: sk.Kernel, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernel(["ab", "abc"])
