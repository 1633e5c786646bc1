"""Files that somebody made to do harm, or that were damaged on the way: one sentence each, and nothing of them is run."""

from __future__ import annotations

import json
import os
import pickle
import struct
import warnings
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpssl
from gpssl import GPSSL, MarginalizedClassifier
from gpssl.io import FORMAT, ModelFileError
from gpssl.io._encoding import DEEPEST
from gpssl.kernels import ColumnKernel, TfidfKernel
from model_parts import npy, parts_of, with_checksums

X = np.random.default_rng(0).standard_normal((30, 2))


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model.gpssl"
    representation = GPSSL(2, max_inducing=8, residual_tolerance=0.9, random_state=0)
    gpssl.save(MarginalizedClassifier(representation, n_draws=3, random_state=0).fit(X, (X[:, 0] > 0).astype(int)), path, trained_on=X)
    return path


def write(path: Path, parts: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    """Write these parts with checksums that fit: whoever changes a file on purpose can compute them."""
    parts = with_checksums(parts)
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def refused(path: Path, match: str) -> None:
    """In one line."""
    with pytest.raises(ModelFileError, match=match) as caught:
        gpssl.load(path)
    assert "\n" not in str(caught.value)
    assert path.name in str(caught.value)


class Bomb:
    """Unpickled, it writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.fixture
def explosion(tmp_path: Path) -> Path:
    return tmp_path / "exploded"


def test_the_bomb_would_go_off(explosion: Path) -> None:
    pickle.loads(pickle.dumps(Bomb(explosion)))
    assert explosion.exists()


def test_pickle_in_the_place_of_a_file_is_not_run(explosion: Path, tmp_path: Path) -> None:
    path = tmp_path / "bomb.gpssl"
    path.write_bytes(pickle.dumps(Bomb(explosion)))
    refused(path, "no model of gpssl, or is damaged")
    with pytest.raises(ModelFileError):
        gpssl.read_card(path)
    assert not explosion.exists()


def test_pickle_in_every_array_is_not_run(model_file: Path, explosion: Path, tmp_path: Path) -> None:
    bomb = np.empty(1, dtype=object)
    bomb[0] = Bomb(explosion)
    parts = parts_of(model_file)
    arrays = [name for name in parts if name.endswith(".npy")]
    assert len(arrays) > 10
    for name in arrays:
        refused(write(tmp_path / "bomb.gpssl", {**parts, name: npy(bomb)}), "array of object")
        refused(write(tmp_path / "bomb.gpssl", {**parts, name: pickle.dumps(Bomb(explosion))}), "damaged")
    assert not explosion.exists()


@pytest.mark.parametrize("name", ["model.json", "card.json"])
def test_pickle_in_the_place_of_json_is_not_run(name: str, model_file: Path, explosion: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "bomb.gpssl", {**parts_of(model_file), name: pickle.dumps(Bomb(explosion))})
    refused(path, "damaged")
    assert not explosion.exists()


def with_model(model_file: Path, path: Path, content: Any) -> Path:
    """The file with another model.json."""
    return write(path, {**parts_of(model_file), "model.json": json.dumps(content).encode()})


@pytest.mark.parametrize(
    "name", ["os.system", "builtins.eval", "subprocess.Popen", "gpssl.io._encoding.Form", "GPSSL", "__import__", "gpssl.__class__"]
)
def test_classes_beyond_the_list_are_not_made(name: str, model_file: Path, tmp_path: Path) -> None:
    path = with_model(model_file, tmp_path / "bad.gpssl", {"object": name, "number": 0, "state": {"command": "true"}})
    refused(path, f"asks for '{name}', which is no part of a model")


def test_parts_beyond_the_list_are_not_set(model_file: Path, tmp_path: Path) -> None:
    for where in ("parameters", "fitted"):
        for name in ("__class__", "predict", "_represent", "__dict__", "card_"):
            content = json.loads(parts_of(model_file)["model.json"])
            content["state"][where]["dict"].append([name, "x"])
            refused(with_model(model_file, tmp_path / "bad.gpssl", content), f"MarginalizedClassifier has no '{name}'")


def test_what_is_no_model_is_refused(model_file: Path, tmp_path: Path) -> None:
    for content in (None, 3, "text", [1], {"object": "sklearn.RBF", "number": 0, "state": {}}):
        refused(with_model(model_file, tmp_path / "bad.gpssl", content), "holds no model")
    unfitted = {"object": "gpssl.GPSSL", "number": 0, "state": {"parameters": {"dict": []}, "fitted": {"dict": []}}}
    refused(with_model(model_file, tmp_path / "bad.gpssl", unfitted), "not fitted")
    refused(with_model(model_file, tmp_path / "bad.gpssl", {"code": "import os"}), "unknown kind")
    refused(with_model(model_file, tmp_path / "bad.gpssl", {"same": 7}), "damaged")


def test_vectorizer_that_reads_files_and_pipeline_with_a_cache_are_refused(model_file: Path, tmp_path: Path) -> None:
    """Both are ways by which scikit-learn would open a file that the model names; a cache would be unpickled."""
    for name, parameters, match in (
        ("sklearn.TfidfVectorizer", [["input", "filename"]], "reads files"),
        ("sklearn.Pipeline", [["steps", []], ["memory", "cache"]], "would run code"),
    ):
        content = {"object": name, "number": 0, "state": {"parameters": {"dict": parameters}, "fitted": {"dict": []}}}
        refused(with_model(model_file, tmp_path / "bad.gpssl", content), match)


# Damage


def test_no_file_of_ours(tmp_path: Path, model_file: Path) -> None:
    path = tmp_path / "other.gpssl"
    for content in (b"", b"text", b"PK\x03\x04", bytes(1000)):
        path.write_bytes(content)
        refused(path, "no model of gpssl")
    np.savez(tmp_path / "arrays.npz", x=np.arange(3))
    refused(tmp_path / "arrays.npz", "lacks a part")
    parts = parts_of(model_file)
    refused(write(path, {name: content for name, content in parts.items() if name != "card.json"}), "lacks a part")
    refused(write(path, {name: content for name, content in parts.items() if name != "arrays/3.npy"}), "arrays/3.npy' is missing")
    with pytest.raises(FileNotFoundError):
        gpssl.load(tmp_path / "absent.gpssl")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(data=st.data())
def test_truncated_and_flipped_files_get_a_sentence(data: st.DataObject, model_file: Path, tmp_path: Path) -> None:
    content = bytearray(model_file.read_bytes())
    path = tmp_path / "damaged.gpssl"
    if data.draw(st.booleans()):
        path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
        refused(path, "no model of gpssl")
        return
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    try:
        model = gpssl.load(path)
    except ModelFileError:
        return
    # A flipped bit that changes nothing, such as one of the times in the table of contents.
    np.testing.assert_array_equal(model.predict_proba(X), gpssl.load(model_file).predict_proba(X))


def test_names_that_lead_elsewhere_are_refused(model_file: Path, tmp_path: Path) -> None:
    parts = parts_of(model_file)
    for name in ("../../outside.npy", "/etc/passwd", "arrays/../../x.npy", "arrays/a.npy", "evil.py", "arrays/1.npy\n", "arrays/١.npy"):
        refused(write(tmp_path / "bad.gpssl", {**parts, name: b"x"}), "which no model has")
    path = with_model(model_file, tmp_path / "bad.gpssl", {"array": "../../outside.npy"})
    refused(path, "is missing")
    assert [entry.name for entry in tmp_path.iterdir()] == ["bad.gpssl"]


def test_same_name_twice_is_refused(model_file: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "bad.gpssl", parts_of(model_file))
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("model.json", b"{}")
    refused(path, "has one twice")


def test_decompression_bombs_are_not_unpacked(model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("read")

    parts = parts_of(model_file)
    bombs = [write(tmp_path / f"{name}.gpssl", {**parts, f"{name}.json": b" " * 10**8}) for name in ("model", "card")]
    bombs.append(write(tmp_path / "array.gpssl", {**parts, "arrays/0.npy": npy(np.zeros(10**7))}))
    bombs.append(write(tmp_path / "lzma.gpssl", parts, zipfile.ZIP_LZMA))
    monkeypatch.setattr(zipfile.ZipFile, "read", never)
    for path, match in zip(bombs, [*["far larger than it can be"] * 3, "compressed in a way"], strict=True):
        refused(path, match)


def test_size_that_the_table_of_contents_makes_smaller_does_not_help_a_bomb(model_file: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "bomb.gpssl", {**parts_of(model_file), "model.json": b" " * 10**7})
    content = path.read_bytes()
    assert content.count(struct.pack("<I", 10**7)) == 2
    path.write_bytes(content.replace(struct.pack("<I", 10**7), struct.pack("<I", 1000)))
    refused(path, "damaged")


def header(text: str) -> bytes:
    padded = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded


@pytest.mark.parametrize(
    "array",
    [
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}") + bytes(8),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}") + bytes(16),
        header("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,)}"),
        header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}") + bytes(8),
        header("{'descr': '|V8', 'fortran_order': False, 'shape': (1,)}") + bytes(8),
        header("__import__('os').system('true')"),
        header("(" * 5000),
        b"\x93NUMPY\x09\x00",
        b"",
    ],
)
def test_absurd_headers_of_arrays_are_refused(array: bytes, model_file: Path, tmp_path: Path) -> None:
    refused(write(tmp_path / "bad.gpssl", {**parts_of(model_file), "arrays/0.npy": array}), "damaged")


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"tuple": [' * 5000 + b"]}" * 5000,
        json.dumps(None).encode() + b"x",
        b'{"scalar": NaN, "dtype": "<f8"}',
        b"Infinity",
        b"1" * 10_000,
        b"\xff\xfe",
        b'{"scalar": 1, "dtype": "O"}',
        b'{"type": "testing"}',
        b'{"float": "3"}',
        b'{"objects": [1, 2], "shape": [3]}',
        b'{"object": "gpssl.GPSSL", "number": 0, "state": []}',
    ],
)
def test_json_that_no_model_has_is_refused(text: bytes, model_file: Path, tmp_path: Path) -> None:
    refused(write(tmp_path / "bad.gpssl", {**parts_of(model_file), "model.json": text}, zipfile.ZIP_STORED), "damaged|cannot be read")


def test_nesting_is_limited(model_file: Path, tmp_path: Path) -> None:
    text = b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1)
    refused(write(tmp_path / "bad.gpssl", {**parts_of(model_file), "model.json": text}), "nested too deeply")


def test_arrays_that_do_not_fit_each_other_are_refused(model_file: Path, tmp_path: Path) -> None:
    """Each array of the model in turn loses its last column or entry, or becomes a vector of text."""
    parts = parts_of(model_file)
    checked = 0
    for name in (name for name in parts if name.endswith(".npy")):
        array = np.lib.format.read_array(BytesIO(parts[name]))
        for other in (array[..., :-1] if array.ndim else array, np.array([["a"]] * 3)):
            try:
                gpssl.load(write(tmp_path / "bad.gpssl", {**parts, name: npy(other)}))
            except ModelFileError:
                checked += 1
    assert checked >= 30


# Versions


def with_card(model_file: Path, path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    parts = parts_of(model_file)
    content = json.loads(parts["card.json"])
    change(content)
    return write(path, {**parts, "card.json": json.dumps(content).encode()})


def test_newer_format_gets_a_sentence(model_file: Path, tmp_path: Path) -> None:
    def newer(content: dict[str, Any]) -> None:
        content["format"] = FORMAT + 1
        content["card"]["versions"]["gpssl"] = "7.1.0"
        content["card"]["feelings"] = "mixed"

    path = with_card(model_file, tmp_path / "new.gpssl", newer)
    refused(path, rf"newer version of gpssl \(7.1.0, format {FORMAT + 1}.*Upgrade gpssl")
    with pytest.raises(ModelFileError, match="newer version"):
        gpssl.read_card(path)


@pytest.mark.parametrize("number", [0, -1, "1", None, 1.5])
def test_format_that_is_no_number_is_refused(number: Any, model_file: Path, tmp_path: Path) -> None:
    refused(with_card(model_file, tmp_path / "bad.gpssl", lambda content: content.update(format=number)), "damaged")


@pytest.mark.parametrize("change", [{"columns": 3}, {"columns": [{"name": "a"}]}, {"notes": [1]}, {"more": 1}], ids=str)
def test_card_that_is_none_is_refused(change: dict[str, Any], model_file: Path, tmp_path: Path) -> None:
    refused(with_card(model_file, tmp_path / "bad.gpssl", lambda content: content["card"].update(change)), "damaged")


# Texts


@pytest.mark.parametrize(
    "harm",
    [lambda words: words[0].__setitem__(1, 10**9), lambda words: words[0].__setitem__(1, -1), lambda words: words.pop()],
    ids=["beyond the last column", "before the first", "fewer words than weights"],
)
def test_words_outside_of_their_columns_are_refused(harm: Callable[[Any], Any], tmp_path: Path) -> None:
    """SciPy would count them outside of its arrays."""
    frame = pd.DataFrame({"text": [f"{word} and {other} here" for word in "abcdef" for other in "uvwxyz"], "number": np.arange(36.0)})
    path = tmp_path / "model.gpssl"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = ColumnKernel([("text", TfidfKernel(), ["text"])])
        gpssl.save(GPSSL(2, kernel=kernel, max_inducing=8, residual_tolerance=0.9, random_state=0).fit(frame), path, trained_on=frame)
    parts = parts_of(path)
    name, content = next((name, json.loads(part)) for name, part in parts.items() if name.endswith(".json") and b"vocabulary_" in part)
    harm(_found(content, "vocabulary_")["dict"])
    refused(write(path, {**parts, name: json.dumps(content).encode()}), "words")


def _found(content: Any, key: str) -> Any:
    """Return what a name stands for, wherever it is in the JSON of a model."""
    if isinstance(content, list):
        pairs = [(item[0], item[1]) for item in content if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str)]
        inside = [*content]
    else:
        pairs, inside = (list(content.items()), list(content.values())) if isinstance(content, dict) else ([], [])
    for name, value in pairs:
        if name == key:
            return value
    return next((found for item in inside if (found := _found(item, key)) is not None), None)
