"""How objects are taken apart into named parts, and put together again: by parameters, by fields, by what was fitted.

Names of parts are those of constructors and attributes. An object is only ever made by a class that stands here, from parts whose names are
known beforehand; a file can choose among them, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from .archive import ModelFileError

FITTED = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*_", re.ASCII)
"""What scikit-learn calls attributes that `fit` has set."""

Shapes = Mapping[str, str]
"""Of arrays among the parts, such as {"points": "M …", "factor": "M M"}: equal letters are equal sizes, … is any number of them."""


@dataclass(frozen=True)
class Form:
    """What a class becomes in a file."""

    kind: type
    take_apart: Callable[[Any], dict[str, Any]]
    put_together: Callable[[dict[str, Any]], Any]


def by_parameters(kind: type) -> Form:
    """An object that is what it was constructed with: kernels, methods of inference, estimators before `fit`."""

    def put_together(parts: dict[str, Any]) -> Any:
        check_names(kind, parts, signature(kind).parameters)
        return kind(**parts)

    return Form(kind, lambda value: dict(value.get_params(deep=False)), put_together)


def by_fields(kind: type, shapes: Shapes | None = None) -> Form:
    """A dataclass or a named tuple."""
    names = list(signature(kind).parameters)

    def put_together(parts: dict[str, Any]) -> Any:
        check_names(kind, parts, names, all_of_them=True)
        check_shapes(kind, parts, shapes or {})
        return kind(**parts)

    return Form(kind, lambda value: {name: getattr(value, name) for name in names}, put_together)


def by_fit(kind: type, attributes: Iterable[str], stored_as: Mapping[str, str] | None = None) -> Form:
    """An estimator: its parameters and, if it is fitted, these attributes.

    In the file, private attributes have no underscore before them, and those in `stored_as` have the name given there.
    """
    named = {(stored_as or {}).get(name, name.lstrip("_")): name for name in attributes}

    def take_apart(value: Any) -> dict[str, Any]:
        fitted = {part: vars(value)[name] for part, name in named.items() if name in vars(value)}
        return {"parameters": dict(value.get_params(deep=False)), "fitted": fitted}

    def put_together(parts: dict[str, Any]) -> Any:
        estimator = constructed(kind, parts)
        check_names(kind, parts["fitted"], named)
        for part, content in parts["fitted"].items():
            setattr(estimator, named[part], content)
        return estimator

    return Form(kind, take_apart, put_together)


def by_scikit_learn(kind: type, private: Iterable[str] = ()) -> Form:
    """An estimator of scikit-learn: its parameters, and whatever ends with an underscore as all do that `fit` sets."""
    others = set(private)

    def is_fitted(name: str) -> bool:
        return name in others or FITTED.fullmatch(name) is not None

    def take_apart(value: Any) -> dict[str, Any]:
        parameters = dict(value.get_params(deep=False))
        fitted = {name: content for name, content in vars(value).items() if is_fitted(name) and name not in parameters}
        return {"parameters": parameters, "fitted": fitted}

    def put_together(parts: dict[str, Any]) -> Any:
        estimator = constructed(kind, parts)
        check_names(kind, parts["fitted"], filter(is_fitted, parts["fitted"]))
        vars(estimator).update(parts["fitted"])  # past properties, which only look up what is stored
        return estimator

    return Form(kind, take_apart, put_together)


def constructed(kind: type, parts: dict[str, Any]) -> Any:
    """The estimator before `fit`."""
    check_names(kind, parts, ("parameters", "fitted"), all_of_them=True)
    if not isinstance(parts["parameters"], dict) or not isinstance(parts["fitted"], dict):
        raise ModelFileError(f"the parts of {kind.__name__} have no names")
    check_names(kind, parts["parameters"], signature(kind).parameters)
    return kind(**parts["parameters"])


def check_names(kind: type, parts: Iterable[str], known: Iterable[str], *, all_of_them: bool = False) -> None:
    """A sentence for a part that the class does not have."""
    unknown, missing = set(parts) - set(known), set(known) - set(parts)
    if unknown:
        raise ModelFileError(
            f"{kind.__name__} has no {', '.join(map(repr, sorted(unknown)))}; it may be from a newer version of gpssl or scikit-learn"
        )
    if missing and all_of_them:
        raise ModelFileError(f"{kind.__name__} lacks {', '.join(map(repr, sorted(missing)))}")


def check_shapes(kind: type, parts: Mapping[str, Any], shapes: Shapes) -> None:
    """A sentence for arrays that do not fit each other."""
    sizes: dict[str, int] = {"1": 1}
    for name, text in shapes.items():
        letters = text.split()
        shape = parts[name].shape if isinstance(parts[name], np.ndarray) else ()
        if letters[-1] == "…":
            letters, shape = letters[:-1], shape[: len(letters) - 1]
        if len(shape) != len(letters) or any(sizes.setdefault(letter, size) != size for letter, size in zip(letters, shape, strict=True)):
            raise ModelFileError(f"{kind.__name__} has {name} of a shape that does not fit: {shape}, where [{text}] belongs")
