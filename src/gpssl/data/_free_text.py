"""Free text in tables: which columns hold sentences, and tables in which their cells stay text.

A column of text is one of three things. Categories recur: "red", "very satisfied with it". IDs and names say who a row is: "A-1234",
"Maria Lopez". Free text is different in most rows, and yet made of words that rows share, so that rows are alike by their words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import mixed_bits
from ._frames import MOST_CATEGORIES, check_names, encode_column, encode_table, is_missing

FEWEST_WORDS = 3
"""Words of a typical text, below which it is a name or a code."""
MOST_RECURRING = 50
"""Different texts up to which they may be categories, unless nearly each row has its own."""
FEWEST_TEXTS = 10
"""Different texts below which nobody can tell whether rows share words."""
SHARED = 0.25
"""The share of words that must occur in other texts too."""
LONGEST_NAME, NAMES = 4, 0.9
"""Texts of at most so many words are names where so large a share of them is written as names are."""
LOOKED_AT = 2000
"""Different texts that are looked at, those with the smallest hashes."""
GAP = " "
"""What a kernel for texts gets in the place of a missing cell: a text without words."""

WORD = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\W\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+(?:['’-]\w+)*")
"""A word; signs of Chinese and Japanese, which have no blanks between words, count one by one. A code with hyphens is one word."""
HAS_LETTER = re.compile(r"[^\W\d_]")
NAME = re.compile(r"[^\W\d_]+\.?([-'’][^\W\d_]+)*")


def are_sentences(texts: Collection[str], n_distinct: float, n_values: float) -> bool:
    """Return whether a column holds free text.

    `texts` are different cells of it, such as `sample_of_texts` keeps; of `n_values` cells, `n_distinct` are different.
    """
    recurs = n_distinct <= MOST_RECURRING and n_distinct <= MOST_CATEGORIES * n_values
    if recurs or len(texts) < FEWEST_TEXTS:
        return False
    words = [[word.casefold() for word in WORD.findall(text) if HAS_LETTER.search(word)] for text in texts]
    typical = float(np.median([len(one) for one in words]))
    if typical < FEWEST_WORDS or (typical <= LONGEST_NAME and _are_names(texts)):
        return False
    n_texts_with = Counter(word for one in words for word in set(one))
    n_shared = sum(n_texts_with[word] > 1 for one in words for word in one)
    return n_shared >= SHARED * sum(map(len, words))


def _are_names(texts: Collection[str]) -> bool:
    """Return whether most texts consist of words with a capital, as the names of people do."""
    return sum(map(_is_name, texts)) >= NAMES * len(texts)


def _is_name(text: str) -> bool:
    words = text.replace(",", " ").split()
    n_capitals = sum(word[0].isupper() for word in words)
    return bool(words) and all(NAME.fullmatch(word) for word in words) and n_capitals >= 2 and n_capitals >= len(words) - 1


def sample_of_texts(parts: Iterable[Collection[str]], limit: int = LOOKED_AT) -> list[str]:
    """Return at most so many different texts, the same ones for any order of the rows and any parts."""
    kept: dict[int, str] = {}
    for part in parts:
        kept.update(zip(_hashes(part), part, strict=True))
        kept = {key: kept[key] for key in sorted(kept)[:limit]}
    return list(kept.values())


def _hashes(texts: Collection[str]) -> list[int]:
    """Return a number for each text, the same in every process."""
    import zlib

    crc = np.fromiter((zlib.crc32(text.encode("utf-8", "surrogatepass")) for text in texts), dtype=np.uint64, count=len(texts))
    lengths = np.fromiter(map(len, texts), dtype=np.uint64, count=len(texts))
    return mixed_bits(crc + (lengths << np.uint64(32))).tolist()


def text_columns(frame: Any, weight: NDArray[np.float64] | None = None) -> list[Any]:
    """Return the names of the columns of a data frame that hold free text. A row of weight 2 counts as the row twice."""
    check_names(frame)
    return [name for name in frame.columns if holds_sentences(frame[name], weight)]


def holds_sentences(column: Any, weight: NDArray[np.float64] | None = None) -> bool:
    """Return whether a column of a data frame holds free text; categories by their type do not."""
    dtype = getattr(column, "dtype", None)
    if getattr(dtype, "kind", "O") in "fiubMmc" or type(dtype).__name__ in ("CategoricalDtype", "Categorical", "Enum"):
        return False
    values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column, dtype=object)
    if values.dtype.kind not in "OUT":
        return False
    weights = [1.0] * len(values) if weight is None else weight.tolist()
    counted = [(cell, count) for cell, count in zip(values.tolist(), weights, strict=True) if count > 0 and not is_missing(cell)]
    known, n_values = [cell for cell, _ in counted], sum(count for _, count in counted)
    if not known or not isinstance(known[0], str):
        return False
    distinct = {str(cell) for cell in known if isinstance(cell, str)}
    return len(distinct) > 0 and are_sentences(sample_of_texts([distinct]), len(distinct), n_values)


# Tables in which some columns stay text


def encode_with_texts(X: Any, texts: Sequence[Hashable]) -> NDArray[Any]:
    """Return the cells of a table as numbers, as `encode_table` has them, but for these columns, which stay text. [n, D] of objects

    Columns are named or, in arrays, counted; a gap among texts is a text without words. What was returned once stays as it is.
    """
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype == object and _are_encoded(X, places_of(texts, None, X.shape[1])):
        return X
    if not hasattr(X, "columns"):
        X = np.asarray(X, dtype=object)
        if X.ndim != 2:
            raise ValueError(f"Expected a table of rows and columns, got an array of shape {X.shape}. Reshape your data.")
    else:
        check_names(X)
    n_columns = int(X.shape[1])
    places = places_of(texts, X.columns if hasattr(X, "columns") else None, n_columns)
    columns = [X[name] for name in X.columns] if hasattr(X, "columns") else list(X.T)
    out = np.empty((int(X.shape[0]), n_columns), dtype=object)
    numbers = [place for place in range(n_columns) if place not in places]
    if numbers:
        out[:, numbers] = _finite(np.column_stack([encode_column(columns[place]) for place in numbers]))
    for place in places:
        out[:, place] = as_texts(columns[place])
    return out


def places_of(texts: Sequence[Hashable], names: Any, n_columns: int) -> list[int]:
    """Return the positions of columns that are named or counted. Raise ValueError for one that is not there."""
    by_name = {} if names is None else {name: place for place, name in enumerate(names)}
    places = []
    for text in texts:
        place = by_name.get(text, text)
        if not isinstance(place, int | np.integer) or not 0 <= place < n_columns:
            known = f" The columns are {', '.join(map(repr, by_name))}." if by_name else ""
            raise ValueError(f"There is no column {text!r} with texts.{known}")
        places.append(int(place))
    return places


def as_texts(column: Any) -> NDArray[Any]:
    """Return the cells of a column as texts; `GAP` for those that are missing or empty. [n]"""
    values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column, dtype=object)
    out = np.empty(len(values), dtype=object)
    out[:] = [GAP if is_missing(cell) else str(cell) or GAP for cell in values.tolist()]
    return out


def _finite(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    return encode_table(numbers)  # which refuses infinity


def _are_encoded(X: NDArray[Any], texts: Sequence[int]) -> bool:
    """Return whether all cells are numbers, and those of the columns of texts are texts that are not empty."""
    are_texts = np.isin(np.arange(X.shape[1]), list(texts))
    return all(type(cell) is str and cell for cell in _cells(X[:, are_texts])) and all(
        type(cell) is float for cell in _cells(X[:, ~are_texts])
    )


def _cells(X: NDArray[Any]) -> Iterator[Any]:
    return iter(X.ravel().tolist())
