from __future__ import annotations

import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.gaussian_process import kernels as sk

from gpssl.data import SliceableRows
from gpssl.kernels import MismatchKernel, SpectrumKernel, SubsequenceKernel
from gpssl.kernels import _word_counts as sequence_counts
from gpssl.kernels._protocol import resolve_kernel

Array = NDArray[np.float64]
Words = Mapping[str, float]

LETTERS = "ab🦊𝔘\udc80"
"""With an emoji, a letter beyond the basic plane, and half of a surrogate pair."""
STRINGS = st.lists(st.text(LETTERS, min_size=1, max_size=9), min_size=1, max_size=8)


# Slow and obvious


def spectrum(x: str, k: int) -> Words:
    return dict(Counter(x[i : i + k] for i in range(len(x) - k + 1))) if len(x) >= k else {x: 1}


def neighborhoods(x: str, k: int, m: int, alphabet: str) -> Words:
    """Of each word of x, all words over the alphabet and "?" that differ in at most m letters."""
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
    """The dynamic program of Lodhi et al. 2002, section 3, definition 2."""

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


# Against them


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


# Corners


def test_blocks_of_strings_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("abc"), size=rng.integers(1, 30))) for _ in range(700)]
    kernels = [SpectrumKernel(3), MismatchKernel(4, 1, "ab"), SubsequenceKernel()]
    expected = [(kernel(strings), kernel(strings[:600], strings[100:])) for kernel in kernels]
    monkeypatch.setattr(sequence_counts, "MAX_KEYS", 40)
    monkeypatch.setattr(sequence_counts, "MAX_STRINGS", 3)
    for kernel, (gram, cross) in zip(kernels, expected, strict=True):
        np.testing.assert_allclose(kernel(strings), gram, rtol=1e-13)
        np.testing.assert_allclose(kernel(strings[:600], strings[100:]), cross, rtol=1e-13)


def test_words_have_the_same_hashes_in_every_process() -> None:
    script = "from gpssl.kernels._word_counts import *; print(count_words(['ab🦊', 'b'], [Pattern((0, 1), 2)]).word.tolist())"
    here = sequence_counts.count_words(np.array(["ab🦊", "b"], dtype=object), [sequence_counts.Pattern((0, 1), 2)]).word.tolist()
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
    """Not the same as a longer one, nor as the beginning of one."""
    for kernel in (SpectrumKernel(3), MismatchKernel(3, 1, "abc"), SubsequenceKernel(3)):
        np.testing.assert_array_equal(kernel(["ab", "ab", "ba", "abc", "a"])[0], [1, 1, 0, 0, 0])


def test_small_decay_does_not_underflow() -> None:
    np.testing.assert_allclose(SubsequenceKernel(3, 1e-200)(["abcd", "abce"]), [[1, 0.5], [0.5, 1]])


def test_span_beyond_the_strings_costs_nothing_and_beyond_reason_gets_a_sentence() -> None:
    strings = ["abcab", "bca", "aab", "b"]
    np.testing.assert_array_equal(SubsequenceKernel(2, 0.5, 10**9)(strings), SubsequenceKernel(2, 0.5, 5)(strings))
    with pytest.raises(ValueError, match="exceed length by at most 1,000"):
        SubsequenceKernel(2, 0.5, 10**9)(["ab" * 600])


# The alphabet


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
def test_bad_parameters_get_a_sentence(kernel: sk.Kernel, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernel(["ab", "abc"])
