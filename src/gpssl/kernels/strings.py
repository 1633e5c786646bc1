"""Kernels for strings: two strings are alike if the same words occur in them, or if they have the same letters at the same places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from math import comb, factorial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import GenericKernelMixin, Kernel

from .._runtime.threads import map_on_threads
from .._validation import check_number
from ..data._arrays import as_object_rows, row_blocks
from ..data._frames import is_missing
from ._protocol import Array, BlockKernel, NonStationary, TakesStrings, full_repr, not_resolved, training_rows
from ._word_counts import Counts, Pattern, block_of_counts, count_words, encode, write_products

_ROWS_AT_A_TIME = 256
"""Few enough that a block needs little memory beside the result, and that all threads have work to the end."""
_MAX_GAPS = 1000
"""Letters left out of a subsequence: more would leave too few bits to distinguish words."""


class _StringKernel(TakesStrings, NonStationary, GenericKernelMixin, Kernel):
    """A kernel whose rows are strings. A subclass has a method `block_kernel`, and overrides `diag` if k(x, x) is not 1."""

    block_kernel: Callable[[NDArray[Any]], BlockKernel]

    def prepare(self, X: Any) -> NDArray[Any]:
        """Return the strings of a list, an array, a Series or a data frame with one column, as an array of objects. [n]"""
        if isinstance(X, str | bytes):
            raise ValueError(
                f"X is a single {type(X).__name__}, {X[:20]!r}: {type(self).__name__} takes a list of strings, one for each row."
            )
        rows = as_object_rows(X).astype(object, copy=False)
        if rows.ndim != 1:
            raise ValueError(
                f"X has the shape {rows.shape}, and {type(self).__name__} takes one string a row: pass the column with the strings."
            )
        if all(type(row) is str and row for row in rows):
            return rows
        return np.fromiter((_checked(row, number) for number, row in enumerate(rows)), dtype=object, count=len(rows))

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return k(X, Y) [n, m]; with `eval_gradient`, k(X, X) and its gradient by no parameter [n, n, 0]."""
        if eval_gradient and Y is not None:
            raise ValueError("The gradient can only be evaluated when Y is None.")
        rows = self.prepare(X)
        if Y is not None:
            return self._fill_in(rows, self.prepare(Y))
        values = self._gram(rows)
        return (values, np.empty((len(rows), len(rows), 0))) if eval_gradient else values

    def _fill_in(self, rows: NDArray[Any], points: NDArray[Any]) -> Array:
        """Return k(rows, points), computed block by block on several threads. [n, m]"""
        fill = self.block_kernel(points)
        values = np.empty((len(rows), len(points)))
        map_on_threads(lambda block: fill(rows[block], values[block]), list(row_blocks(len(rows), _ROWS_AT_A_TIME)))
        return values

    def _gram(self, rows: NDArray[Any]) -> Array:
        """Return k(rows, rows). [n, n]"""
        return self._fill_in(rows, rows)

    def diag(self, X: Any) -> Array:
        """Return k(x, x) = 1 for each row. [n]"""
        return np.ones(len(self.prepare(X)))

    def __repr__(self) -> str:
        return full_repr(self)


def _checked(row: Any, number: int) -> str:
    """Return the row as a plain `str`; raise ValueError if it is not a string or empty."""
    if isinstance(row, str) and row:
        return str(row)
    if isinstance(row, str):
        raise ValueError(f"Row {number} is an empty string: drop such rows, or write a text that stands for them.")
    if isinstance(row, bytes):
        raise ValueError(f"Row {number} is of type bytes: decode such rows first, for example with row.decode('utf-8').")
    if is_missing(row):
        raise ValueError(f"Row {number} is missing ({row}): drop such rows, or write a text that stands for a gap.")
    raise ValueError(f"Row {number} is of type {type(row).__name__}, not a string: convert such rows first, for example with str(row).")


class _WordKernel(_StringKernel):
    """Inner products of counts of words; a subclass counts them.

        k(x, y) = c(x, y) / √(c(x, x) c(y, y)),      c(x, y) = Σ over words u of φ_u(x) φ_u(y)

    and c itself where `normalize` is false. A string shorter than `length` has no such word: it counts as a word of its own, and
    has nothing in common with any string but its copies.
    """

    normalize: bool

    def _count(self, strings: NDArray[Any]) -> Counts:
        """Count the words in each string; raise ValueError if a parameter has no meaning."""
        raise NotImplementedError

    def block_kernel(self, points: NDArray[Any]) -> BlockKernel:
        """Count the words of the points once, and return a function that fills in k(X, points) block by block."""
        return block_of_counts(self._count, points, normalize=self.normalize)

    def _gram(self, rows: NDArray[Any]) -> Array:
        """Return k(rows, rows); of two entries that are equal by symmetry, one is computed. [n, n]"""
        counts = self._count(rows)
        words = np.unique(counts.word)
        left = counts.matrix(counts.value, words, len(rows))
        right = counts.matrix(counts.coefficient * counts.value, words, len(rows))
        scale = 1 / np.sqrt(counts.squared_norms(len(rows))) if self.normalize else np.ones(len(rows))
        values = np.empty((len(rows), len(rows)))

        def fill(block: slice) -> None:
            products = np.empty((block.stop - block.start, len(rows) - block.start))
            write_products(left[block], right[block.start :].T.tocsr(), products)
            products *= np.outer(scale[block], scale[block.start :])
            values[block, block.start :] = products
            values[block.stop :, block] = products[:, block.stop - block.start :].T

        map_on_threads(fill, list(row_blocks(len(rows), _ROWS_AT_A_TIME)))
        return values

    def diag(self, X: Any) -> Array:
        """Return k(x, x) for each row: 1, unless `normalize` is false. [n]"""
        rows = self.prepare(X)
        return np.ones(len(rows)) if self.normalize else self._count(rows).squared_norms(len(rows))


class SpectrumKernel(_WordKernel):
    """Counts of the same words of k letters in two strings (Leslie, Eskin and Noble 2002).

        φ_u(x) = number of positions at which x has the word u of k consecutive letters

    A letter is a Unicode code point. A string shorter than `length` counts as a word of its own.

    Parameters
    ----------
    length
        k, the letters in a word. For messages in a natural language 3 to 5, for proteins 3 to 5, for DNA 5 to 10.
    normalize
        Whether k(x, x) = 1. Otherwise long strings have larger values.
    """

    def __init__(self, length: int = 3, *, normalize: bool = True) -> None:
        self.length = length
        self.normalize = normalize

    def _count(self, strings: NDArray[Any]) -> Counts:
        check_number("length", self.length, Integral, at_least=1)
        return count_words(strings, [Pattern(tuple(range(self.length)), self.length)])


class MismatchKernel(_WordKernel):
    """Counts of words of k letters in two strings, of which a few letters may differ (Leslie et al. 2004).

        φ_u(x) = number of positions at which x has a word that differs from u in at most m letters,      u any word over the alphabet

    No such u is enumerated. P_d(x, y), the number of pairs of a word of x and a word of y that differ in d letters, follows from W_j, the
    number of pairs that agree outside a set of j places, summed over the sets:

        W_j = Σ_d C(k − d, j − d) P_d,      c(x, y) = Σ_d I(d) P_d,      d ≤ min(2m, k)

    where I(d) is the number of words within m letters of both of two words that differ in d. All are whole numbers, so the result is
    exact as long as they are below 2⁵³.

    A string shorter than `length` counts as a word of its own.

    Parameters
    ----------
    length, mismatches
        k, the letters in a word, and m < k, how many of them may differ. The work grows like Σ_j≤2m C(k, j).
    alphabet
        The letters, as a string: "ACGT" for DNA. All others are taken for one further letter, so the alphabet has A = len(alphabet) + 1
        letters. None: the letters of the training rows.
    normalize
        Whether k(x, x) = 1. Otherwise long strings have larger values.
    """

    def __init__(self, length: int = 5, mismatches: int = 1, alphabet: str | None = None, *, normalize: bool = True) -> None:
        self.length = length
        self.mismatches = mismatches
        self.alphabet = alphabet
        self.normalize = normalize

    @property
    def is_resolved(self) -> bool:
        """Whether nothing is left to be taken from the training rows."""
        return self.alphabet is not None

    def resolve(self, X: Any, sample_weight: Array | None = None, seed: int = 0) -> MismatchKernel:
        """Return the kernel with the alphabet of these strings, if it has none."""
        alphabet = self.alphabet
        if alphabet is None:
            rows = training_rows(self, X, sample_weight)
            codes = rows.reduce(lambda part: np.unique(encode("".join(part.rows[part.weight > 0]))), np.union1d)
            alphabet = codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
        kernel = MismatchKernel(self.length, self.mismatches, alphabet, normalize=self.normalize)
        kernel._check_parameters()
        return kernel

    def _check_parameters(self) -> None:
        check_number("length", self.length, Integral, at_least=1)
        check_number("mismatches", self.mismatches, Integral, at_least=0)
        if self.mismatches >= self.length:
            raise ValueError(
                f"mismatches must be smaller than length, got {self.mismatches} and {self.length}: otherwise any two words are the same."
            )
        if self.alphabet is None:
            raise not_resolved(self, "alphabet")
        if not isinstance(self.alphabet, str) or not self.alphabet or len(set(self.alphabet)) < len(self.alphabet):
            raise ValueError(f'alphabet must be a string of distinct letters such as "ACGT", or None, got {self.alphabet!r}.')

    def _count(self, strings: NDArray[Any]) -> Counts:
        self._check_parameters()
        assert self.alphabet is not None
        coefficients = _wildcard_coefficients(self.length, self.mismatches, len(self.alphabet) + 1)
        kept = [
            (coefficient, places)
            for n_wildcards, coefficient in enumerate(coefficients)
            for places in combinations(range(self.length), self.length - n_wildcards)
        ]
        patterns = [
            Pattern(places, self.length, coefficient=float(coefficient), identity=identity)
            for identity, (coefficient, places) in enumerate(kept)
        ]
        return count_words(strings, patterns, alphabet=self.alphabet, max_groups=len(coefficients) + 1)


class SubsequenceKernel(_WordKernel):
    """Counts of the same letters in the same order in two strings, with gaps (Lodhi et al. 2002).

        φ_u(x) = Σ over positions i₁ < … < i_k with x[i] = u and span(i) ≤ max_span of decay^span(i),      span(i) = i_k − i₁ + 1

    It is Lodhi's kernel where `max_span` is at least the length of the string; longer subsequences have little weight.

    A string shorter than `length` counts as a word of its own.

    Parameters
    ----------
    length
        k, the letters in a subsequence.
    decay
        The factor for each letter from the first to the last, above 0 and at most 1; with small values, only subsequences without
        gaps count.
    max_span
        The largest number of letters from the first to the last. The work grows like C(max_span, length).
    normalize
        Whether k(x, x) = 1. Otherwise long strings have larger values.
    """

    def __init__(self, length: int = 3, decay: float = 0.5, max_span: int = 6, *, normalize: bool = True) -> None:
        self.length = length
        self.decay = decay
        self.max_span = max_span
        self.normalize = normalize

    def _count(self, strings: NDArray[Any]) -> Counts:
        check_number("length", self.length, Integral, at_least=1)
        check_number("decay", self.decay, Real, above=0, at_most=1)
        check_number("max_span", self.max_span, Integral, at_least=self.length, otherwise="(the length)")
        longest = min(self.max_span, max(map(len, strings), default=0))
        if longest - self.length > _MAX_GAPS:
            raise ValueError(
                f"max_span may exceed length by at most {_MAX_GAPS:,} in strings that long, got max_span={self.max_span:,} and "
                f"length={self.length:,}."
            )
        # The longest span that counts may depend on the strings, but the hashes of words may not.
        max_groups = min(self.max_span - self.length, _MAX_GAPS) + 2
        return count_words(strings, list(self._patterns(max(longest, self.length))), max_groups=max_groups)

    def _patterns(self, longest: int) -> Iterator[Pattern]:
        """Yield all ways to choose the letters from at most `longest` consecutive ones, the first of which is chosen."""
        # decay^length is common to all and cancels in the normalized kernel, where it could underflow.
        common = self.length if self.normalize else 0
        for others in combinations(range(1, longest), self.length - 1):
            offsets = (0, *others)
            span = offsets[-1] + 1
            yield Pattern(offsets, span, weight=float(self.decay) ** (span - common))


def _wildcard_coefficients(length: int, mismatches: int, n_letters: int) -> list[int]:
    """Return the whole numbers b_j with Σ_d I(d) P_d = Σ_j b_j W_j:      b_d = I(d) − Σ_{j > d} C(k − d, j − d) b_j"""
    largest = min(2 * mismatches, length)
    coefficients = [0] * (largest + 1)
    for d in range(largest, -1, -1):
        above = sum(comb(length - d, j - d) * coefficients[j] for j in range(d + 1, largest + 1))
        coefficients[d] = _words_near_both(d, length, mismatches, n_letters) - above
    return coefficients


def _words_near_both(distance: int, length: int, mismatches: int, n_letters: int) -> int:
    """Return I(d), the number of words within m letters of both of two words that differ in d places.

    In the places where the two differ, such a word has the first one's letter in a of them, the second one's in b, and another in the
    other e = d − a − b; in the places where they are the same it has another letter in s. Then d − a + s ≤ m and d − b + s ≤ m, and
    there are d! / (a! b! e!) · (A − 2)^e · C(k − d, s) · (A − 1)^s such words.
    """
    total = 0
    for a in range(distance + 1):
        for b in range(distance - a + 1):
            others = distance - a - b
            ways = factorial(distance) // (factorial(a) * factorial(b) * factorial(others)) * (n_letters - 2) ** others
            most = min(mismatches - distance + min(a, b), length - distance)
            total += ways * sum(comb(length - distance, s) * (n_letters - 1) ** s for s in range(most + 1))
    return total


class PositionKernel(_StringKernel):
    """k(x, y) = exp(−½ H(x, y) / h), where H is the number of places at which two strings of the same length differ.

    It is for sequences that are aligned, such as windows around a site of a genome. h is the median of H between two different training
    strings, times the square of `stretch`. A string of another length than the training strings differs in all places that only one has.

    Parameters
    ----------
    stretch
        The factor by which √h is multiplied, as a lengthscale would be.
    max_rows
        With more distinct strings than this, a sample of this size sets h.
    scale
        h. None: found at `fit`.
    """

    def __init__(self, stretch: float = 1.0, *, max_rows: int = 500, scale: float | None = None) -> None:
        self.stretch = stretch
        self.max_rows = max_rows
        self.scale = scale

    @property
    def is_resolved(self) -> bool:
        """Whether nothing is left to be taken from the training rows."""
        return self.scale is not None

    def resolve(self, X: Any, sample_weight: Array | None = None, seed: int = 0) -> PositionKernel:
        """Return the kernel with the scale of these strings."""
        check_number("stretch", self.stretch, Real, above=0)
        check_number("max_rows", self.max_rows, Integral, at_least=2)
        if self.scale is not None:
            check_number("scale", self.scale, Real, above=0)
            return PositionKernel(**self.get_params(deep=False))
        rows = training_rows(self, X, sample_weight).sample(int(self.max_rows), seed).rows
        different = _n_different(_letters(rows), _letters(rows))
        between = different[different > 0]
        typical = float(np.median(between)) if len(between) else 1.0
        return PositionKernel(self.stretch, max_rows=self.max_rows, scale=float(self.stretch) ** 2 * typical)

    def block_kernel(self, points: NDArray[Any]) -> BlockKernel:
        """Return a function that counts the places at which rows differ from the points."""
        if self.scale is None:
            raise not_resolved(self, "scale")
        letters, scale = _letters(points), float(self.scale)

        def fill(X: NDArray[Any], out: Array) -> None:
            out[...] = np.exp(-0.5 / scale * _n_different(_letters(X), letters))

        return fill


def _letters(strings: NDArray[Any]) -> NDArray[np.uint32]:
    """Return the letters as numbers, 0 beyond the end of a string. [n, longest]"""
    padded = np.array(strings, dtype=str)
    return padded.view(np.uint32).reshape(len(padded), -1) if len(padded) else np.empty((0, 0), dtype=np.uint32)


def _n_different(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> Array:
    """Return at how many places each string of one set differs from each of the other. [n, m]"""
    length = max(one.shape[1], other.shape[1])
    left, right = (np.pad(letters, ((0, 0), (0, length - letters.shape[1]))) for letters in (one, other))
    return length * cdist(left, right, "hamming") if length else np.zeros((len(one), len(other)))
