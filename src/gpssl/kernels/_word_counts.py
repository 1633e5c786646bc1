"""Counts of words in strings, on which the kernels for strings and graphs are built.

A pattern is a tuple of offsets. At each position of a string where it fits, the letters at these offsets are a word, and how often each
word occurs is the string's feature vector. Words are identified by 64-bit hashes of their letters (simple tabulation: one well-mixed
number for each letter in each place, added up), whose leading bits share a key with the number of the string:

    key = string (12 bits) | hash (52 − g bits) | group (g bits)

One sort of these keys brings all occurrences of a word in a string together. Among a million distinct words, two have the same hash with
a probability of about 1e-4, the same in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..data._arrays import mixed_bits
from ._protocol import Array, BlockKernel

NO_WORD = np.uint64(2**64 - 1)
"""A number after all words."""
STRING_BITS = np.uint64(12)
WORD_BITS = np.uint64(64) - STRING_BITS
MAX_STRINGS = 2**12
MAX_KEYS = 2**19
"""Keys sorted at a time, unless a single string has more: what fits in the cache, and bounds the memory."""
PLACE_BITS = np.uint64(32)
"""Letters are numbers below this many bits; their place in the word comes above."""
NO_LETTER = 2**31
"""Takes the place of a letter where the pattern's identity, not a letter, is hashed."""


class Counts(NamedTuple):
    """How often each word occurs in each string: one entry for each pair that occurs, sorted by string, then by word."""

    string: NDArray[np.intp]
    word: NDArray[np.uint64]
    value: Array
    """The number of occurrences, each with its weight."""
    coefficient: Array

    def squared_norms(self, n_strings: int) -> Array:
        """Return Σ over words of coefficient × value², for each string. [n]"""
        return np.bincount(self.string, self.coefficient * self.value**2, minlength=n_strings).astype(np.float64, copy=False)

    def matrix(self, values: Array, words: NDArray[np.uint64], n_strings: int) -> csr_array:
        """Return the values in one column for each of the given words, which are in rising order; leave other words out. [n, words]"""
        column = np.searchsorted(words, self.word)
        known = np.append(words, NO_WORD)[column] == self.word
        starts = np.searchsorted(self.string[known], np.arange(n_strings + 1))
        # SciPy keeps the type of indices: short ones, except for the largest matrices, take half the memory.
        index = np.int32 if max(len(self.word), len(words)) < 2**31 else np.int64
        return csr_array((values[known], column[known].astype(index), starts.astype(index)), shape=(n_strings, len(words)))


def write_products(vectors: csr_array, columns: csr_array, out: Array) -> None:
    """Write the inner products of sparse vectors [n, D] and sparse columns [D, m] into an array. [n, m]"""
    products = vectors @ columns
    if out.flags.c_contiguous and out.dtype == products.dtype:
        products.toarray(out=out)
    else:
        out[...] = products.toarray()


def block_of_counts(count: Callable[[NDArray[Any]], Counts], points: NDArray[Any], *, normalize: bool = False) -> BlockKernel:
    """Count in the points once, and return a function that fills in c(X, points), or k with k(x, x) = 1, block by block."""
    counts = count(points)
    words = np.unique(counts.word)
    columns = counts.matrix(counts.coefficient * counts.value, words, len(points)).T.tocsr()
    point_scale = 1 / np.sqrt(counts.squared_norms(len(points)))

    def fill(X: NDArray[Any], out: Array) -> None:
        own = count(X)
        # Norms come last, so that sums and differences are those of whole numbers, which are exact.
        write_products(own.matrix(own.value, words, len(X)), columns, out)
        if normalize:
            out *= np.outer(1 / np.sqrt(own.squared_norms(len(X))), point_scale)  # the same product for (x, y) and (y, x)

    return fill


class Pattern(NamedTuple):
    """The offsets of the letters of a word, and the weight of an occurrence."""

    offsets: tuple[int, ...]
    span: int
    """How many letters a string must have from the first letter of the word on."""
    weight: float = 1.0
    """The number that an occurrence adds to the count."""
    coefficient: float = 1.0
    """The factor of the product of two counts; the same for all patterns of one identity."""
    identity: int = 0
    """Patterns with different identities have no word in common."""


def count_words(strings: NDArray[Any], patterns: Sequence[Pattern], *, alphabet: str | None = None, max_groups: int = 1) -> Counts:
    """Count the words of all patterns in each string.

    A string shorter than the shortest pattern is a word of its own, with weight and coefficient 1. With an alphabet, letters outside
    it are all the same letter. `max_groups` is how many pairs of weight and coefficient there may be, including that of whole strings;
    words are only comparable between calls with the same `max_groups`.
    """
    group_bits = np.uint64((max_groups - 1).bit_length())
    lengths = np.fromiter(map(len, strings), dtype=np.intp, count=len(strings))
    blocks = [
        _count_in_block(encode("".join(strings[block]), alphabet), lengths[block], patterns, group_bits, block.start)
        for block in _blocks(lengths, max(1, MAX_KEYS // len(patterns)))
    ]
    return Counts(*(np.concatenate(columns) for columns in zip(*blocks, strict=True)))


def _blocks(lengths: NDArray[np.intp], max_letters: int) -> Iterator[slice]:
    """Yield slices of strings with at most `max_letters` letters in all, or one longer string; one empty slice if there are no strings."""
    ends = np.cumsum(lengths)
    start = 0
    while start < max(1, len(lengths)):
        letters_before = ends[start - 1] if start else 0
        stop = int(np.searchsorted(ends, letters_before + max_letters, side="right"))
        stop = min(max(stop, start + 1), start + MAX_STRINGS)
        yield slice(start, stop)
        start = stop


def encode(text: str, alphabet: str | None = None) -> NDArray[np.uint64]:
    """Return the code points of the letters or, with an alphabet, their places in it; all others get the place after the last."""
    code_points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    if alphabet is None:
        return code_points.astype(np.uint64)
    letters = np.sort(encode(alphabet))
    place = np.minimum(np.searchsorted(letters, code_points), len(letters) - 1)
    return np.where(letters[place] == code_points, place, len(letters)).astype(np.uint64)


def _count_in_block(
    letters: NDArray[np.uint64], lengths: NDArray[np.intp], patterns: Sequence[Pattern], group_bits: np.uint64, first: int
) -> Counts:
    """Count the words in consecutive strings, the first of which has the number `first`."""
    groups = sorted({(pattern.weight, pattern.coefficient) for pattern in patterns} | {(1.0, 1.0)})
    string = np.repeat(np.arange(len(lengths), dtype=np.uint64) << WORD_BITS, lengths)
    unsorted = [np.empty(0, dtype=np.uint64)]
    for hashes, positions, group in _hashed_words(letters, lengths, patterns):
        word = hashes >> (STRING_BITS + group_bits) << group_bits
        unsorted.append(string[positions] | word | np.uint64(groups.index(group)))
    keys = np.sort(np.concatenate(unsorted))
    without_group = keys >> group_bits
    starts = np.flatnonzero(np.diff(without_group, prepend=~without_group[:1]))  # the first always differs from its complement
    group_of = (keys & ((np.uint64(1) << group_bits) - np.uint64(1))).astype(np.intp)
    weight, coefficient = np.array(groups).T
    return Counts(
        string=(keys[starts] >> WORD_BITS).astype(np.intp) + first,
        word=keys[starts] << STRING_BITS >> (STRING_BITS + group_bits),
        value=np.add.reduceat(weight[group_of], starts) if len(starts) else np.empty(0),
        coefficient=coefficient[group_of[starts]],
    )


def _hashed_words(
    letters: NDArray[np.uint64], lengths: NDArray[np.intp], patterns: Sequence[Pattern]
) -> Iterator[tuple[NDArray[np.uint64], NDArray[Any], tuple[float, float]]]:
    """Yield hashes of words, where they begin, and their weight and coefficient: for each pattern, then for strings too short for any."""
    ends, longest = np.cumsum(lengths), lengths.max(initial=0)
    left = np.repeat(ends, lengths) - np.arange(len(letters))  # letters from each position to the end of its string
    n_places = min(max(pattern.span for pattern in patterns), longest)
    in_place = [mixed_bits(letters + (np.uint64(place + 1) << PLACE_BITS)) for place in range(n_places)]
    fits = {span: left >= span for span in {pattern.span for pattern in patterns} if span <= longest}
    for pattern in patterns:
        if pattern.span in fits:
            here = fits[pattern.span]
            n_positions = len(letters) - pattern.span + 1
            hashes = np.full(n_positions, _identity_bits(pattern.identity))
            for place, offset in enumerate(pattern.offsets):
                hashes += in_place[place][offset : offset + n_positions]
            yield hashes[here[:n_positions]], here, (pattern.weight, pattern.coefficient)
    shortest = min(pattern.span for pattern in patterns)
    for length in np.unique(lengths[lengths < shortest]):
        positions = (ends - lengths)[lengths == length]
        hashes = np.full(len(positions), _identity_bits(-int(length)))  # negative identities are those of whole strings
        for place in range(length):
            hashes += in_place[place][positions + place]
        yield hashes, positions, (1.0, 1.0)


def _identity_bits(identity: int) -> np.uint64:
    """Return a well-mixed number for each identity, different from those of letters."""
    return mixed_bits(np.array([(identity % 2**32 << 32) + NO_LETTER], dtype=np.uint64))[0]
