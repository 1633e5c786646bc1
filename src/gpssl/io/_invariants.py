"""The vocabulary in which classes declare what their parts are, and the checks of these declarations when a file is read.

A declaration is a text for each part. What stands between | are alternatives:

| text                       | the part is                                                                       |
|----------------------------|-----------------------------------------------------------------------------------|
| `any`, `None`, `'hinge'`   | anything that a file can hold; None; this text                                    |
| `bool`, `text`, `type`     | true or false; a text; a type of NumPy                                            |
| `int >=1`, `number >0 <=1` | a finite number within bounds, which may be sizes: `int =J`, `int <V`             |
| `[M M] lower`              | an array of doubles with this shape and these properties (`KINDS`, `PROPERTIES`)  |
| `[M …] rows`               | … stands for any number of sizes                                                  |
| `list of text`             | a list or tuple of such parts; `list S of …` has S of them                        |
| `Features M D`             | an object of such a class (`CLASSES`), which has these sizes                      |

Equal letters are equal sizes, of all parts of an object and of the objects in it; `J+1`, `K-1` and `C*I` are computed. An object shows
its sizes to those that hold it. A letter with a question mark, `D?`, is not compared where the object does not show it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._encoding import ModelFileError

Array = NDArray[np.float64]
Sizes = dict[str, int]

ROUNDING = 1e-6
"""How far numbers may be from what they must be, relative to their size: they may come from another machine."""
INVERTED = 1e-3
"""The same for the inverse of a matrix that hardly has one."""
LARGEST = 1e154
"""The size of numbers whose squares are finite."""
SMALLEST = 1e-290
"""The size of numbers by which others can be divided."""
LARGEST_NUMBER = 1e300
JITTER = 1e-8
"""Added to a covariance, relative to its largest variance, before its factorization tells whether it is one."""


class UnfitError(Exception):
    """A part is not what was declared, for this reason."""


class Shown(NamedTuple):
    """What an object shows to those that hold it."""

    name: str
    """The name of its class in files."""
    sizes: Sizes


Look = Callable[[Any], Shown | None]
"""Returns what an object of the file shows; None for values that are no such object."""
Check = Callable[[Any, Sizes, Look], None]


class Content(NamedTuple):
    """What is known of an object before it is put together."""

    parts: dict[str, Any]
    """Its parts by their names; of estimators, parameters and what `fit` sets."""
    sizes: Sizes
    look: Look


@dataclass(frozen=True)
class Declaration:
    """What must hold of the parts of an object."""

    parts: Mapping[str, str] = field(default_factory=dict)
    """Texts of the vocabulary for parts by their names. Those that are missing from a file, or have no text, are not checked."""
    fitted: Mapping[str, str] = field(default_factory=dict)
    """The same for what `fit` sets, where an object has both."""
    shows: str = ""
    """The sizes that those who hold the object compare with others."""
    also: Callable[[Content], None] | None = None
    """Raises `UnfitError` for what cannot be said in the vocabulary. It may add to the sizes."""

    def check(self, name: str, parts: Mapping[str, Any], look: Look) -> Shown:
        """Return what the object shows. Raise ModelFileError unless its parts are what was declared."""
        sizes: Sizes = {}
        is_fitted = set(parts) == {"parameters", "fitted"}
        groups = [(self.parts, parts["parameters"]), (self.fitted, parts["fitted"])] if is_fitted else [(self.parts, parts)]
        together = {part: value for _, values in groups for part, value in values.items()}
        try:
            for texts, values in groups:
                for part, text in texts.items():
                    if part in values:
                        _check_part(part, values[part], text, sizes, look)
            if self.also is not None:
                self.also(Content(together, sizes, look))
        except UnfitError as error:
            raise ModelFileError(f"{name.split('.')[-1]} has {error}") from error
        return Shown(name, {letter: sizes[letter] for letter in self.shows.split() if letter in sizes})


def _check_part(part: str, value: Any, text: str, sizes: Sizes, look: Look) -> None:
    try:
        check(value, text, sizes, look)
    except UnfitError as error:
        raise UnfitError(f"{part} {error}") from error


def check(value: Any, text: str, sizes: Sizes, look: Look) -> None:
    """Raise `UnfitError` unless the value is what the text says; add the sizes that it tells."""
    reasons = []
    for alternative in _alternatives(text):
        found = dict(sizes)
        try:
            alternative(value, found, look)
        except UnfitError as error:
            reasons.append(str(error))
        else:
            sizes.update(found)
            return
    raise UnfitError(
        max(reasons, key=len) if isinstance(value, np.ndarray) else f"{reasons[0] if len(reasons) == 1 else _unlike(value, text)}"
    )


def _unlike(value: Any, text: str) -> str:
    return f"that is {_shortened(value)}, where {text} belongs"


def _shortened(value: Any) -> str:
    if isinstance(value, bool | int | float | str | None):
        text = repr(value)
        return text if len(text) <= 40 else f"{text[:39]}…"
    return f"of class {type(value).__name__}"


@cache
def _alternatives(text: str) -> tuple[Check, ...]:
    return tuple(_parsed(alternative.strip()) for alternative in text.split("|"))


def _parsed(text: str) -> Check:
    first, *words = text.split()
    if text.startswith("["):
        sizes, _, properties = text[1:].partition("]")
        return partial(_check_array, text, sizes.split(), properties.split())
    if text.startswith("'") or text in ("None", "inf"):
        return partial(_check_same, {"None": None, "inf": inf}.get(text, text[1:-1]))
    if first == "list":
        before, _, of = text.partition(" of ")
        return partial(_check_list, before.split()[1:], of.replace("/", "|"))
    if first in ("int", "number"):
        return partial(_check_number, text, int if first == "int" else float, [_bound(word) for word in words])
    if first in PLAIN:
        return partial(_check_plain, text, PLAIN[first])
    return partial(_check_object, first, words)


def _check_same(expected: str | float | None, value: Any, sizes: Sizes, look: Look) -> None:  # noqa: ARG001  (one signature for all checks)
    if type(value) is not type(expected) or value != expected:
        raise UnfitError(_unlike(value, repr(expected)))


PLAIN: dict[str, Any] = {
    "any": object,
    "bool": (bool, np.bool_),
    "text": str,
    "type": type,
    "dict": dict,
}


def _check_plain(text: str, kinds: Any, value: Any, sizes: Sizes, look: Look) -> None:  # noqa: ARG001
    if not isinstance(value, kinds):
        raise UnfitError(_unlike(value, text))


def _bound(word: str) -> tuple[str, str]:
    found = re.fullmatch(r"(>=|<=|>|<|=)(.+)", word)
    if found is None:
        raise ValueError(f"{word!r} is no bound")
    return found[1], found[2]


COMPARED: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda value, bound: value >= bound,
    "<=": lambda value, bound: value <= bound,
    ">": lambda value, bound: value > bound,
    "<": lambda value, bound: value < bound,
    "=": lambda value, bound: value == bound,
}


def _check_number(text: str, kind: type, bounds: list[tuple[str, str]], value: Any, sizes: Sizes, look: Look) -> None:  # noqa: ARG001
    kinds: Any = (int, np.integer) if kind is int else (int, float, np.integer, np.floating)
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise UnfitError(_unlike(value, text))
    number = value.item() if isinstance(value, np.generic) else value
    if not abs(number) < LARGEST_NUMBER or not isfinite(number):
        raise UnfitError(_unlike(value, text))
    for sign, bound in bounds:
        if sign == "=" and bound.isalpha() and value >= 0:
            _match(bound, int(value), sizes, text)
        elif not COMPARED[sign](value, _number(bound, sizes)):
            raise UnfitError(_unlike(value, text))


def _number(text: str, sizes: Sizes) -> float:
    """Return a bound: a number, or a size that is known."""
    return float(text) if text[0] in "-.0123456789" else float(_size(text, sizes) or 0)


def _size(text: str, sizes: Sizes) -> int | None:
    """Return the size that a letter or an expression of letters stands for; None where it is not known yet."""
    if text.isdecimal():
        return int(text)
    for sign, combine in (("*", int.__mul__), ("+", int.__add__), ("-", int.__sub__)):
        left, found, right = text.partition(sign)
        if found:
            one, other = _size(left, sizes), _size(right, sizes)
            return None if one is None or other is None else combine(one, other)
    return sizes.get(text)


def _match(text: str, size: int, sizes: Sizes, whole: str) -> None:
    expected = _size(text, sizes)
    if expected is None and text.isalpha():
        sizes[text] = size
    elif expected != size:
        raise UnfitError(f"of a size that does not fit: {size}, where {text} of {whole} is {expected}")


def _check_list(size: list[str], text: str, value: Any, sizes: Sizes, look: Look) -> None:
    if not isinstance(value, list | tuple):
        raise UnfitError(_unlike(value, f"a list of {text}"))
    if size:
        _match(size[0], len(value), sizes, f"list {size[0]}")
    for item in value:
        check(item, text, sizes, look)


# Objects

CLASSES: dict[str, Callable[[str, Any], bool]] = {}
"""Classes, by their names in declarations: from the name in files and the object, whether it is one. Rooms of this folder add theirs."""


def _check_object(kind: str, letters: list[str], value: Any, sizes: Sizes, look: Look) -> None:
    shown = look(value)
    if shown is None or not (CLASSES[kind](shown.name, value) if kind in CLASSES else shown.name == f"gpssl.{kind}"):
        raise UnfitError(_unlike(value, f"{kind} with {' '.join(letters)}" if letters else kind))
    for letter in letters:
        required, name = not letter.endswith("?"), letter.rstrip("?")
        if name in shown.sizes:
            _match(name, shown.sizes[name], sizes, kind)
        elif required:
            raise UnfitError(f"of class {shown.name.split('.')[-1]} that is not fitted")


# Arrays


def _is_real(array: NDArray[Any]) -> bool:
    return array.dtype == np.float64


def _is_of_labels(array: NDArray[Any]) -> bool:
    """Return whether an array has labels of classes: all text, or all numbers; in an array of objects as well."""
    kinds = {type(label) for label in array.ravel().tolist()} if array.dtype.kind == "O" else set()
    return array.dtype.kind in "biufU" or kinds <= {str} or kinds <= {int, float, bool}


CELLS = (str, float, int, bool, tuple)


def _is_of_rows(array: NDArray[Any]) -> bool:
    """Return whether an array has rows: numbers, of which NaN is a gap, or objects that kernels know."""
    if array.dtype.kind != "O":
        return array.dtype == np.float64 and not np.isinf(array).any()
    return all(type(cell) in CELLS or type(cell).__name__ == "LabeledGraph" for cell in array.ravel().tolist())


def _is_of_names(array: NDArray[Any]) -> bool:
    cells = array.ravel().tolist()
    return array.dtype.kind in "OU" and all(type(cell) is str for cell in cells) and len(set(cells)) == len(cells)


KINDS: dict[str, tuple[Callable[[NDArray[Any]], bool], str]] = {
    "doubles": (_is_real, "that are not finite doubles"),
    "floats": (lambda array: array.dtype in (np.float32, np.float64), "that are not finite numbers of 4 or 8 bytes"),
    "unbounded": (lambda array: _is_real(array) and not np.isnan(array).any(), "that are no doubles, or are NaN"),
    "whole": (lambda array: array.dtype.kind in "iu", "that are no whole numbers"),
    "hashes": (lambda array: array.dtype == np.uint64, "that are no hashes"),
    "flags": (lambda array: array.dtype.kind == "b", "that are not true or false"),
    "labels": (_is_of_labels, "that are no labels"),
    "rows": (_is_of_rows, "that are no rows"),
    "names": (_is_of_names, "that are no names of columns"),
}
"""What the cells of an array may be, and what is said where they are not."""
FINITE = ("doubles", "floats")


def _is_lower(array: Array) -> bool:
    return not np.triu(array, 1).any() and bool((array.diagonal() >= SMALLEST).all())


def _is_symmetric(array: Array, rounding: float = ROUNDING) -> bool:
    return bool((np.abs(array - array.swapaxes(-2, -1)) <= rounding * np.abs(array).max(initial=0.0)).all())


def is_covariance(array: Array) -> bool:
    """Return whether matrices [..., n, n] are symmetric and positive semi-definite, up to rounding."""
    if array.size == 0:
        return True
    diagonal = np.diagonal(array, axis1=-2, axis2=-1)
    unit = diagonal.max(axis=-1)
    if not _is_symmetric(array, INVERTED) or (diagonal < 0).any() or not (np.abs(array) <= (1 + INVERTED) * unit[..., None, None]).all():
        return False
    safe = np.where(unit > 0, unit, 1.0)[..., None, None]
    try:
        np.linalg.cholesky(array / safe + JITTER * np.eye(array.shape[-1]))
    except np.linalg.LinAlgError:
        return False
    return True


def _is_orthonormal(array: Array) -> bool:
    """Return whether Qᵀ(Q z) = z, for one z that has no pattern: that is as good as QᵀQ = I, and much quicker."""
    z = probe(array.shape[1])
    return bool((np.abs(array.T @ (array @ z) - z) <= ROUNDING).all())


def probe(size: int) -> Array:
    """Return numbers without a pattern, none of them small: the same ones every time. [n]"""
    z = np.cos(np.arange(1, size + 1, dtype=np.float64) ** 2)
    return z + np.copysign(0.5, z)


def _is_rising(array: NDArray[Any]) -> bool:
    return bool((array[:-1] < array[1:]).all())


PROPERTIES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "lower": (_is_lower, "that is not lower triangular with a positive diagonal"),
    "symmetric": (_is_symmetric, "that is not symmetric"),
    "covariance": (is_covariance, "that is no covariance"),
    "orthonormal": (_is_orthonormal, "whose columns are not orthonormal"),
    "moderate": (lambda array: bool((np.abs(array) <= LARGEST).all()), "with numbers too large to be computed with"),
    "positive": (lambda array: bool((array >= SMALLEST).all()), "with numbers that are not positive"),
    "nonnegative": (lambda array: bool((array >= 0).all()), "with negative numbers"),
    "shares": (lambda array: bool((np.abs(array.sum(axis=-1) - 1) <= ROUNDING).all() and (array >= 0).all()), "that are no shares of one"),
    "falling": (lambda array: bool((array[:-1] >= array[1:]).all()), "that do not fall"),
    "rising": (_is_rising, "that do not rise"),
}
"""What an array may have to be, and what is said where it is not."""


def _check_array(text: str, letters: list[str], words: list[str], value: Any, sizes: Sizes, look: Look) -> None:  # noqa: ARG001
    if not isinstance(value, np.ndarray):
        raise UnfitError(_unlike(value, text))
    shape = value.shape
    if letters and letters[-1] == "…":
        letters, shape = letters[:-1], shape[: len(letters) - 1]
    if len(shape) != len(letters):
        raise UnfitError(f"of a shape that does not fit: {list(value.shape)}, where {text} belongs")
    for letter, size in zip(letters, shape, strict=True):
        expected = _size(letter, sizes)
        if expected is None and letter.isalpha():
            sizes[letter] = size
        elif expected != size:
            raise UnfitError(f"of a shape that does not fit: {list(value.shape)}, where {text} belongs, and {letter} is {expected}")
    kind = next((word for word in words if word in KINDS), "doubles")
    is_of_kind, otherwise = KINDS[kind]
    if not is_of_kind(value) or (kind in FINITE and not np.isfinite(value).all()):
        raise UnfitError(f"with cells {otherwise}")
    for word in words:
        if word not in KINDS:
            holds, otherwise = PROPERTIES[word]
            if not holds(value):
                raise UnfitError(otherwise)
