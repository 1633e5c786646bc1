"""Changes to the parts of a model file, as somebody makes them who knows the format and means harm, and as chance makes them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model_parts import Parts, array_of, npy, with_checksums

Generator = np.random.Generator

NUMBERS = (0, 1, -1, 2, 7, 63, 1000, 10**6, 2**31, 2**63, 10**30, -(10**9), 0.0, 0.5, -0.5, 1e-300, 1e-12, 1e3, 1e12, 1e150, 1e300, -1e308)
STRANGE: tuple[Any, ...] = (
    *(None, True, False, "", "text", "\udc80", "\x00", "auto", [], [[]], {}, {"dict": []}, {"tuple": []}, {"slice": [None, None, None]}),
    *({"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, {"same": 0}, {"same": 1}, {"same": 3}, {"type": "float32"}, {"array": "x"}),
    *({"array": "arrays/0.npy"}, {"array": "arrays/1.npy"}, {"objects": [1, "a"], "shape": [2]}, {"objects": [], "shape": [0, 3]}),
    *({"scalar": 3, "dtype": "<i8"}, {"scalar": 1e300, "dtype": "<f4"}, {"scalar": "a", "dtype": "<U1"}, {"dict": [["a", 1]]}),
)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1e-300, 1e-30, 1e12, 1e100, 1e155, 1e300, -1e300, 2.0**52 + 3)
WHOLE = (0, 1, -1, 2, 3, 50, 10**6, 2**31 - 1, -(2**31), 2**62, -(2**63))
DTYPES = ("<f4", ">f8", "<f2", "<i8", "<i4", ">i4", "<i2", "|u1", "<u8", "|b1", "<U3", "<M8[s]", "<m8[D]")


def choose(rng: Generator, options: Any) -> Any:
    """Return one of the options as it is; NumPy's own choice would make an array of them."""
    return options[int(rng.integers(len(options)))]


# Arrays


def _special_cells(array: NDArray[Any], rng: Generator) -> NDArray[Any]:
    changed = array.copy()
    if changed.size and changed.dtype.kind in "fiub":
        places = rng.integers(changed.size, size=int(choose(rng, (1, 1, 2, 5))))
        values = SPECIAL if changed.dtype.kind == "f" else WHOLE
        with np.errstate(all="ignore"):
            changed.reshape(-1)[places] = np.array(choose(rng, values)).astype(changed.dtype)
    return changed


def _scaled(array: NDArray[Any], rng: Generator) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        factor = choose(rng, (0.0, -1.0, 0.5, 1.5, 1e3, 1e-3, 1e100, 1e-200, 1 + 1e-3))
        return (array * factor).astype(array.dtype) if array.dtype.kind in "fiu" else array.reshape(-1)[::-1]


def _other_shape(array: NDArray[Any], rng: Generator) -> NDArray[Any]:
    axis = int(rng.integers(array.ndim)) if array.ndim else 0
    options: list[Callable[[], NDArray[Any]]] = [
        lambda: array[None],
        lambda: array.reshape(-1),
        lambda: array.reshape(-1)[:0],
        lambda: array.T,
        lambda: np.repeat(array, 2, axis=axis) if array.ndim else array,
        lambda: np.delete(array, -1, axis=axis) if array.ndim and array.shape[axis] else array,
        lambda: np.flip(array),
        lambda: rng.permutation(array, axis=axis) if array.ndim else array,
        lambda: array.reshape(-1)[0] if array.size else array,
    ]
    return np.asarray(choose(rng, options)())


def _other_dtype(array: NDArray[Any], rng: Generator) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        try:
            return array.astype(choose(rng, DTYPES))
        except (TypeError, ValueError):
            return np.array(["a"] * 3)


def _filled(array: NDArray[Any], rng: Generator) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        value = choose(rng, SPECIAL) if array.dtype.kind == "f" else choose(rng, WHOLE)
        return np.full(array.shape, value).astype(array.dtype) if array.dtype.kind in "fiub" else array.reshape(-1)[:0]


ARRAY_CHANGES: tuple[Callable[[NDArray[Any], Generator], NDArray[Any]], ...] = (
    *(_special_cells, _special_cells, _special_cells, _scaled, _scaled, _other_shape, _other_shape, _other_dtype, _filled),
)


def change_array(parts: Parts, rng: Generator) -> Parts:
    names = [name for name in parts if name.endswith(".npy")]
    if not names:
        return change_json(parts, rng)
    name = choose(rng, names)
    how = rng.random()
    if how < 0.12:  # another member in its place
        return {**parts, name: parts[choose(rng, names)]}
    if how < 0.24:  # other bytes: numbers of any size, or another header
        content = bytearray(parts[name])
        first = 0 if how < 0.14 else min(len(content) - 1, 128)
        for place in rng.integers(first, len(content), size=int(choose(rng, (1, 1, 3)))):
            content[place] ^= int(rng.integers(1, 256))
        return {**parts, name: bytes(content)}
    try:
        array = array_of(parts[name])
    except Exception:  # what an earlier change has left is no array, which NumPy's own reader finds out in many ways
        return parts
    return {**parts, name: npy(choose(rng, ARRAY_CHANGES)(array, rng))}


# JSON


def places_in(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values."""
    found = [path]
    inside = enumerate(content) if isinstance(content, list) else content.items() if isinstance(content, dict) else ()
    for key, value in inside:
        found += places_in(value, (*path, key))
    return found


def value_at(content: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        content = content[key]
    return content


def _other_value(value: Any, content: Any, places: list[tuple[Any, ...]], rng: Generator) -> Any:
    how = rng.random()
    if isinstance(value, bool) or value is None or how < 0.3:
        return choose(rng, STRANGE)
    if how < 0.4:  # what stands elsewhere
        return json.loads(json.dumps(value_at(content, choose(rng, places))))
    if isinstance(value, int | float):
        return choose(rng, (choose(rng, NUMBERS), choose(rng, NUMBERS), value + 1, value - 1, -value, value * 2, value / 3))
    if isinstance(value, str):
        texts = [text for text in (value_at(content, place) for place in places[:400]) if isinstance(text, str)]
        return choose(rng, (choose(rng, texts), value + "x", value[:-1], value[::-1], value.upper()))
    if isinstance(value, list):
        changes: list[Callable[[], Any]] = [
            lambda: value[:-1],
            lambda: value[1:],
            lambda: [*value, *value[-1:]],
            lambda: value[::-1],
            lambda: [*value, choose(rng, STRANGE)],
            lambda: [value],
            lambda: {"tuple": value},
        ]
        return choose(rng, changes)()
    changed = dict(value)
    key = choose(rng, list(changed)) if changed else "more"
    if how < 0.6:
        changed.pop(key, None)
    elif how < 0.8:
        changed[choose(rng, ("more", "state", "number", "__class__", key + "_"))] = choose(rng, STRANGE)
    else:
        changed[key] = choose(rng, STRANGE)
    return changed


def _replaced(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = list(content) if isinstance(content, list) else dict(content)
    copy[path[0]] = _replaced(content[path[0]], path[1:], value)
    return copy


def change_json(parts: Parts, rng: Generator, name: str = "model.json") -> Parts:
    content = json.loads(parts[name])
    places = places_in(content)
    how = rng.random()
    objects = [place for place in places if isinstance(value_at(content, place), dict) and "object" in value_at(content, place)]
    if how < 0.08 and objects:  # another class, with the same state
        place = choose(rng, objects)
        other = value_at(content, choose(rng, objects))["object"]
        content = _replaced(content, (*place, "object"), other)
    elif how < 0.14 and objects:  # another object, which is met here first
        content = _replaced(content, choose(rng, objects), value_at(content, choose(rng, objects)))
    elif how < 0.2 and objects:  # the same object once more
        number = value_at(content, choose(rng, objects))["number"]
        content = _replaced(content, choose(rng, [*objects, choose(rng, places)]), {"same": number})
    elif how < 0.22:
        content = _replaced(content, choose(rng, places), _nested(int(choose(rng, (5, 250, 400))), choose(rng, STRANGE)))
    elif how < 0.26 and objects:
        content = _with_many_terms(content, objects, int(choose(rng, (3, 12, 40))), rng)
    else:
        leaves = [place for place in places if not isinstance(value_at(content, place), dict | list)]
        place = choose(rng, leaves if rng.random() < 0.6 else places)
        content = _replaced(content, place, _other_value(value_at(content, place), content, places, rng))
    return {**parts, name: json.dumps(content).encode()}


def _nested(depth: int, value: Any) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def _with_many_terms(content: Any, objects: list[tuple[Any, ...]], depth: int, rng: Generator) -> Any:
    """Put a sum or product of a kernel with itself, and of this with itself, … in its place: it takes 2 ** depth times as long."""
    kernels = [place for place in objects if "ernel" in str(place[-2:]) or "RBF" in value_at(content, place)["object"]]
    place = choose(rng, kernels or objects)
    kernel = value_at(content, place)
    for level in range(depth):
        again = {"same": kernel["number"]}
        state = {"k1": kernel, "k2": again}
        kernel = {"object": choose(rng, ("sklearn.Sum", "sklearn.Product")), "number": 10**6 + level, "state": state}
    return _replaced(content, place, kernel)


def changed_sums(content: bytes, rng: Generator) -> bytes:
    """Return the bytes of an `.npz` file with one or two arrays changed, added, taken away, or said to be larger than they are."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(int(choose(rng, (1, 1, 2)))):
        name, how = choose(rng, sorted(parts)), rng.random()
        if how < 0.05:
            del parts[name]
        elif how < 0.1:
            parts[choose(rng, ("more.npy", "weight.npy ", "../weight.npy", "first"))] = parts[name]
        elif how < 0.2:
            parts[name] = _claims_more(parts[name], rng)
        elif how < 0.3:
            parts[name] = npy(np.asarray(choose(rng, (choose(rng, NUMBERS[:13]), choose(rng, SPECIAL), "text", True, 10**18))))
        else:
            parts = change_array(parts, rng)
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", choose(rng, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


def _claims_more(content: bytes, rng: Generator) -> bytes:
    """Return an array whose header claims another shape or type, of which NumPy would allocate what it claims."""
    length = 10 + int.from_bytes(content[8:10], "little")
    shape = choose(rng, ("(1000000000,)", "(100000, 100000)", "(-1,)", "(" * 50, "(1e9,)", "(6,", "None", "(2**40,)", "(10**9,)"))
    descr = choose(rng, ("'<f8'", "'<f8'", "'|O'", "'<U1000000000'", "[('a', '<f8')]", "3", "'\\x00'"))
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(length - 11) + b"\n"
    return content[:8] + (len(header)).to_bytes(2, "little") + header + content[length:]


def changed_on_purpose(parts: Parts, rng: Generator) -> Parts:
    """Return the parts with one or two changes, and checksums that fit."""
    for _ in range(int(choose(rng, (1, 1, 1, 2)))):
        how = rng.random()
        try:
            parts = change_array(parts, rng) if how < 0.5 else change_json(parts, rng, "card.json" if how > 0.96 else "model.json")
        except (ValueError, KeyError, RecursionError):  # what the first change has left is no array or no JSON
            break
    return with_checksums(parts)


# Damage to the file as a whole


def damaged(content: bytes, rng: Generator) -> bytes:
    """Return the bytes of a file with some of them lost, changed, moved or repeated."""
    how = int(rng.integers(6))
    place = int(rng.integers(len(content)))
    if how == 0:
        return content[:place]
    if how == 1:
        return content[:place] + content[place + int(rng.integers(1, 64)) :]
    if how == 2:
        return content[:place] + rng.bytes(int(rng.integers(1, 64))) + content[place:]
    if how == 3:  # a number in the directories of the zip: sizes, offsets, flags
        place = choose(rng, [at for at in range(len(content) - 46) if content[at : at + 3] in (b"PK\x01", b"PK\x03", b"PK\x05")])
        place += int(rng.integers(4, 30))
    changed = bytearray(content)
    for at in rng.integers(place, min(len(content), place + 20), size=int(choose(rng, (1, 2, 8)))) if how == 4 else [place]:
        changed[int(at)] ^= 1 << int(rng.integers(8))
    return bytes(changed)
