"""Encode objects as JSON and arrays, and decode them. A file yields only objects that `_stored_classes.py` lists.

| in Python                     | in JSON                                         |
|-------------------------------|-------------------------------------------------|
| None, booleans, whole numbers, text | as they are                               |
| floats                        | with all digits; `{"float": "nan"}`, "inf", "-inf" |
| lists                         | lists                                           |
| tuples, dictionaries, slices  | `{"tuple": […]}`, `{"dict": [[key, value], …]}`, `{"slice": […]}` |
| NumPy's scalars               | `{"scalar": value, "dtype": "<f8"}`             |
| NumPy's types                 | `{"type": "float64"}`                           |
| arrays                        | `{"array": "arrays/3.npy"}`                     |
| arrays of objects             | `{"objects": […], "shape": […]}`                |
| objects                       | `{"object": its name, "number": n, "state": {…}}` and, when met again, `{"same": n}` |
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data._array_files import ARRAY_KINDS

if TYPE_CHECKING:
    from ._invariants import Declaration, Shown

FITTED = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*_", re.ASCII)
"""Names that scikit-learn gives to attributes that `fit` has set."""
DEEPEST = 300
"""Levels of lists and objects within each other."""
TYPES: dict[str, type] = {kind.__name__: kind for kind in (*np.sctypeDict.values(), np.number, np.integer, np.floating)}
"""NumPy's types by name, which are parameters of vectorizers and of functions that select columns."""

MOST_VALUES = 2_000_000
"""Objects within each other, each counted as often as it is met: a sum of a sum of … of the same kernels would take forever."""
MOST_TERMS = 5000
"""The same within a kernel."""


class ModelFileError(ValueError):
    """A file holds no model that this version can read, or a model cannot be written."""


@dataclass(frozen=True)
class Form:
    """How objects of a class are taken apart for a file, and put together again."""

    kind: type
    take_apart: Callable[[Any], dict[str, Any]]
    put_together: Callable[[dict[str, Any]], Any]
    declaration: Declaration | None = None
    """What must hold of its parts before they are put together."""


class Forms:
    """Forms by their names in files. Each is made when it is first asked for: a model imports the classes that it consists of."""

    def __init__(self, makers: Mapping[str, Callable[[], Form]], renamed: Mapping[str, str]) -> None:
        self._makers = {name: cache(maker) for name, maker in makers.items()}
        self._renamed = renamed

    def __contains__(self, name: str) -> bool:
        return name in self._makers

    def __getitem__(self, name: str) -> Form:
        return self._makers[name]()

    def name_of(self, kind: type) -> str | None:
        """Return the name of a class in files; None where it has no form."""
        name = self._renamed.get(own_name(kind), own_name(kind))
        return name if name in self and self[name].kind is kind else None


def own_name(kind: type) -> str:
    """Return the name of a class in files, unless it was renamed since: its library and its own name."""
    return f"{kind.__module__.split('.')[0]}.{kind.__name__}"


def by_parameters(kind: type, declaration: Declaration | None = None) -> Form:
    """Store an object by its constructor's parameters: kernels, methods of inference, estimators before `fit`."""

    def put_together(parts: dict[str, Any]) -> Any:
        check_names(kind, parts, signature(kind).parameters)
        return with_checked_parameters(kind(**parts))

    return Form(kind, lambda value: dict(value.get_params(deep=False)), put_together, declaration)


def by_fields(kind: type, declaration: Declaration | None = None) -> Form:
    """Store a dataclass or a named tuple by its fields. Those with a default may be missing from a file: they are younger than it."""
    names = list(signature(kind).parameters)
    younger = {name for name, field in signature(kind).parameters.items() if field.default is not field.empty}

    def put_together(parts: dict[str, Any]) -> Any:
        check_names(kind, parts, names)
        check_names(kind, set(parts) - younger, set(names) - younger, all_of_them=True)
        return kind(**parts)

    return Form(kind, lambda value: {name: getattr(value, name) for name in names}, put_together, declaration)


def by_fit(
    kind: type, attributes: Iterable[str], declaration: Declaration | None = None, stored_as: Mapping[str, str] | None = None
) -> Form:
    """Store an estimator by its parameters and, if it is fitted, these attributes.

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

    return Form(kind, take_apart, put_together, declaration)


def by_scikit_learn(kind: type, declaration: Declaration | None = None, private: Iterable[str] = ()) -> Form:
    """Store an estimator of scikit-learn by its parameters and the attributes that `fit` sets, which end with an underscore."""
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
        vars(estimator).update(parts["fitted"])  # not by setattr: some are properties that only look up what is stored
        estimator._validate_params()
        return estimator

    return Form(kind, take_apart, put_together, declaration)


def constructed(kind: type, parts: dict[str, Any]) -> Any:
    """Construct the estimator from its parameters, as it was before `fit`."""
    check_names(kind, parts, ("parameters", "fitted"), all_of_them=True)
    if not isinstance(parts["parameters"], dict) or not isinstance(parts["fitted"], dict):
        raise ModelFileError(f"the parts of {kind.__name__} have no names")
    check_names(kind, parts["parameters"], signature(kind).parameters)
    return with_checked_parameters(kind(**parts["parameters"]))


def with_checked_parameters(value: Any) -> Any:
    """Return an object whose parameters `fit` would take. A kernel that takes something from training rows is checked when it has it."""
    check = getattr(value, "_check_parameters", None)
    if check is not None and getattr(value, "is_resolved", True):
        check()
    return value


def check_names(kind: type, parts: Iterable[str], known: Iterable[str], *, all_of_them: bool = False) -> None:
    """Raise ModelFileError for a part that the class does not have or, with `all_of_them`, for one that is missing."""
    unknown, missing = set(parts) - set(known), set(known) - set(parts)
    if unknown:
        raise ModelFileError(
            f"{kind.__name__} has no {', '.join(map(repr, sorted(unknown)))}; it may be from a newer version of gpssl or scikit-learn"
        )
    if missing and all_of_them:
        raise ModelFileError(f"{kind.__name__} lacks {', '.join(map(repr, sorted(missing)))}")


class Encoder:
    """Encodes objects as JSON and collects their arrays in `arrays`."""

    def __init__(self, forms: Forms) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._forms = forms
        self._names: dict[int, str] = {}
        self._met: dict[int, tuple[int, Any]] = {}
        self._path: list[str] = []

    def encode(self, value: Any) -> Any:
        """Return the value as JSON. Raise ModelFileError that says what cannot be stored, and where it is."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) in (list, tuple):
            items = [self._within(f"[{place}]", item) for place, item in enumerate(value)]
            return items if type(value) is list else {"tuple": items}
        if type(value) is dict:
            return {"dict": [[self.encode(key), self._within(_place(key), item)] for key, item in value.items()]}
        if isinstance(value, np.generic | np.ndarray):
            return self._encode_numpy(value)
        return self._encode_other(value)

    def _within(self, place: str, value: Any) -> Any:
        self._path.append(place)
        encoded = self.encode(value)
        self._path.pop()
        return encoded

    def _encode_numpy(self, value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype.kind == "O":
            return {"objects": [self._within(f"[{place}]", cell) for place, cell in enumerate(value.ravel())], "shape": list(value.shape)}
        is_long_double = value.dtype.str[1:] == "f16"  # which differ between machines
        if value.dtype.kind not in ARRAY_KINDS or value.dtype.itemsize == 0 or is_long_double:
            raise self._refusal(f"an array of {value.dtype}")
        if isinstance(value, np.generic):
            if value.dtype.kind in "Mm":
                raise self._refusal(f"a number of type {value.dtype}")
            return {"scalar": self.encode(value.item()), "dtype": value.dtype.str}
        name = self._names.setdefault(id(value), f"arrays/{len(self.arrays)}.npy")
        self.arrays[name] = value
        return {"array": name}

    def _encode_other(self, value: Any) -> Any:
        if isinstance(value, slice):
            return {"slice": [self.encode(part) for part in (value.start, value.stop, value.step)]}
        if isinstance(value, type) and issubclass(value, np.generic):
            return {"type": value.__name__}
        if id(value) in self._met:
            return {"same": self._met[id(value)][0]}
        name = self._forms.name_of(type(value))
        if name is None:
            is_function = callable(value) and hasattr(value, "__qualname__")
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            raise self._refusal(f"the function {value.__qualname__}" if is_function else f"of class {kind}")
        try:
            parts = self._forms[name].take_apart(value)
        except ModelFileError as error:
            raise ModelFileError(f"{self._where()}: {error}") from error
        state = {part: self._within("" if part in ("parameters", "fitted") else f".{part}", content) for part, content in parts.items()}
        number = len(self._met)
        self._met[id(value)] = (number, value)  # kept, so that no other object gets its id
        return {"object": name, "number": number, "state": state}

    def _where(self) -> str:
        return f"model{''.join(self._path)}"

    def _refusal(self, what: str) -> ModelFileError:
        return ModelFileError(
            f"{self._where()} is {what}, which a model file cannot hold: it holds data, and classes of gpssl and scikit-learn that it "
            f"knows, but no code. {_advice(self._path)}"
        )


def _place(key: Any) -> str:
    return f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r}]"


def _advice(path: list[str]) -> str:
    if any(part in (".kernel_", ".kernel") for part in path):
        return (
            "Use a kernel of gpssl.kernels or scikit-learn; where only the parameter `kernel` is in the way (a function that selects "
            "columns), set_params(kernel=model.kernel_) puts the concrete one in its place."
        )
    if any(part in (".head", ".heads_") for part in path):
        return "Use a head of gpssl.downstream, or one of scikit-learn's linear models."
    return "Put a number, a text or an array in its place before saving, or use pickle, whose files run code when they are read."


class Decoder:
    """Decodes JSON to objects; `read_array` returns the array of a name."""

    def __init__(self, forms: Forms, read_array: Callable[[str], NDArray[Any]]) -> None:
        self._forms = forms
        self._read_array = cache(read_array)
        self._objects: dict[int, Any] = {}
        self._shown: dict[int, Shown] = {}
        self._n_values: dict[int, int] = {}
        self._n_within = 0
        self._depth = 0

    def decode(self, value: Any) -> Any:
        """Return the object that was encoded."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise ModelFileError("objects are nested too deeply")
        decoded = self._decode(value)
        self._depth -= 1
        return decoded

    def _decode(self, value: Any) -> Any:
        match value:
            case list():
                return [self.decode(item) for item in value]
            case {"object": str(name), "number": int(number), "state": dict(state)}:
                return self._object(name, number, state)
            case {"same": int(number)}:
                self._count(number)
                return self._objects[number]
            case {"array": name}:
                return self._read_array(str(name))
            case {"objects": cells}:
                return self._array_of_objects(cells, value["shape"])
            case {"scalar": content}:
                return self._scalar(self.decode(content), np.dtype(str(value["dtype"])))
            case {"type": name}:
                return TYPES[str(name)]
            case {"float": text}:
                return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[text]
            case {"tuple": items}:
                return tuple(self.decode(item) for item in items)
            case {"dict": pairs}:
                return {self.decode(key): self.decode(item) for key, item in pairs}
            case {"slice": parts}:
                start, stop, step = (self.decode(part) for part in parts)
                return slice(start, stop, step)
            case dict():
                raise ModelFileError(f"a value of unknown kind, {str(sorted(map(str, value)))[:80]}")
        return value

    def _object(self, name: str, number: int, state: dict[str, Any]) -> Any:
        if name not in self._forms:
            raise ModelFileError(
                f"it asks for {name[:80]!r}, which is no part of a model that this version of gpssl knows; it may be from a newer version"
            )
        if number in self._objects:
            raise ModelFileError(f"two of its objects have the number {number}")
        form, before, self._n_within = self._forms[name], self._n_within, 0
        parts = {part: self.decode(content) for part, content in state.items()}
        shown = form.declaration.check(name, parts, self.look) if form.declaration else None
        value = self._objects[number] = form.put_together(parts)
        if shown is not None:
            self._shown[id(value)] = shown  # the object is kept, so that no other gets its id
        within, self._n_within = self._n_within + 1, before
        self._n_values[number] = within
        if within > MOST_TERMS and hasattr(value, "is_stationary"):
            raise ModelFileError(f"a kernel in it has more than {MOST_TERMS:,} terms")
        self._count(number)
        return value

    def look(self, value: Any) -> Shown | None:
        """Return what an object of this file shows to those that hold it."""
        return self._shown.get(id(value))

    def _count(self, number: int) -> None:
        """Count the objects within each other, those of one that is met again once more."""
        self._n_within += self._n_values[number]
        if self._n_within > MOST_VALUES:
            raise ModelFileError("it has the same objects within each other too often")

    def _array_of_objects(self, cells: list[Any], shape: list[int]) -> NDArray[Any]:
        array = np.empty(len(cells), dtype=object)
        for place, cell in enumerate(cells):
            array[place] = self.decode(cell)
        return array.reshape([int(size) for size in shape])

    def _scalar(self, content: Any, dtype: np.dtype[Any]) -> Any:
        if dtype.kind not in "biufU" or not isinstance(content, bool | int | float | str):
            raise ModelFileError(f"a number of type {dtype}")
        return dtype.type(content)
