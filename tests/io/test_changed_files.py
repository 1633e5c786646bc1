"""Files that somebody changed who knows the format: those that once loaded and then failed are refused, one change each.

Each is a model, the name of a part, and what becomes of it. `tests/attacks/test_stored_files.py` looks for more.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.gaussian_process import kernels as sk
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gpssl
from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor, RepresentationPool
from gpssl import kernels as k
from gpssl.clustering import PosteriorClustering
from gpssl.downstream import BayesianLogisticRegression
from gpssl.inference import Variational
from gpssl.io import ModelFileError
from model_parts import Parts, array_of, npy, parts_of, with_checksums, write_parts

X = np.random.default_rng(0).standard_normal((30, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(d=np.where(X[:, 0] > 0, "up", "down"))
Y = (X[:, 0] > 0).astype(int)
TEXTS = [f"{'cat' if place % 2 else 'ship'} number {place % 7}" for place in range(30)]
GRAPHS = [nx.cycle_graph(4 + place % 3) if place % 2 else nx.star_graph(3 + place % 4) for place in range(30)]
RING = np.roll(np.eye(30), 1, axis=1)


def small(**parameters: Any) -> GPSSL:
    return GPSSL(**{"n_components": 2, "max_inducing": 8, "residual_tolerance": 0.9, "inference": "mode", "random_state": 0, **parameters})


def classifier(representation: Any = None, head: Any = None, **parameters: Any) -> MarginalizedClassifier:
    given = {"n_draws": 3, "random_state": 0, **parameters}
    return MarginalizedClassifier(small() if representation is None else representation, head, **given)


def of_pool() -> MarginalizedClassifier:
    members = [("columns", k.StandardizedKernel("linear")), ("learned", small(), "kernel"), ("draws", small())]
    return classifier(RepresentationPool(members, random_state=0)).fit(X, Y)


MODELS: dict[str, Callable[[], Any]] = {
    "numbers": lambda: small(inference=Variational(precise=False)).fit(X),
    "named": lambda: small().fit(FRAME[["a", "b", "c"]]),
    "table": lambda: small().fit(FRAME),
    "batches": lambda: small().partial_fit(X),
    "seeded": lambda: small(random_state=np.random.RandomState(0)).fit(X),
    "terms": lambda: small(kernel=sk.RBF(1.0) + sk.WhiteKernel(0.1)).fit(X),
    "texts": lambda: small(kernel=k.TfidfKernel()).fit(TEXTS),
    "graphs": lambda: small(kernel=k.WeisfeilerLehmanKernel(2)).fit(GRAPHS),
    "nodes": lambda: small(kernel=k.NodeDiffusion(nx.path_graph(30))).fit(list(range(30))),
    "sparse nodes": lambda: small(kernel=k.NodeDiffusion(csr_array(RING + RING.T))).fit(np.arange(30)),
    "neighbors": lambda: small(kernel=k.NeighborDiffusion(4)).fit(X),
    "strings": lambda: small(kernel=k.SpectrumKernel(2)).fit(TEXTS),
    "classifier": lambda: classifier().fit(X, Y),
    "sampled": lambda: classifier(head=BayesianLogisticRegression(predictive="sampled")).fit(X, Y),
    "clones": lambda: classifier(head=make_pipeline(StandardScaler(), LogisticRegression())).fit(X, Y),
    "regressor": lambda: MarginalizedRegressor(small(), n_draws=3, random_state=0).fit(X, X[:, 0]),
    "ridge": lambda: MarginalizedRegressor(small(), BayesianRidge(), n_draws=3, random_state=0).fit(X, X[:, 0]),
    "pool": of_pool,
    "clusters": lambda: PosteriorClustering(2, small(), n_draws=3, random_state=0).fit(X),
}


@cache
def parts_of_model(name: str) -> Parts:
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows, few inducing points
        gpssl.save(MODELS[name](), Path(folder) / "model.gpssl")
        return parts_of(Path(folder) / "model.gpssl")


def changed(parts: Parts, part: str, change: Callable[[Any], Any]) -> Parts:
    """Return the parts of a file with the first value of this name changed, wherever it is: an array, or what it is in JSON.

    Of names that end with $ it is the last value: parameters come before what `fit` has found.
    """
    content = json.loads(parts["model.json"])
    holder, key = list(_places(content, part.rstrip("$")))[-1 if part.endswith("$") else 0]
    value = holder[key]
    if isinstance(value, dict) and "array" in value:
        with np.errstate(all="ignore"):
            array = change(array_of(parts[value["array"]]).copy())
        return {**parts, value["array"]: npy(array)}
    holder[key] = change(value)
    return {**parts, "model.json": json.dumps(content).encode()}


def _places(content: Any, part: str) -> Any:
    if isinstance(content, list):
        if len(content) == 2 and content[0] == part:
            yield content, 1
        for item in content:
            yield from _places(item, part)
    elif isinstance(content, dict):
        for key, value in content.items():
            if key == part:
                yield content, key
            yield from _places(value, part)


def to(value: Any) -> Callable[[Any], Any]:
    """Return a change to this value, or of an array to one that is full of it."""
    return lambda old: np.full_like(old, value) if isinstance(old, np.ndarray) else value


def first(value: Any) -> Callable[[Any], Any]:
    """Return a change of the first cell of an array."""

    def change(array: Any) -> Any:
        array.reshape(-1)[0] = value
        return array

    return change


def twice(array: Any) -> Any:
    return array * 2


def shorter(old: Any) -> Any:
    return old[:-1]


def deeper(kernel: Any) -> Any:
    """Return the sum of a kernel with itself, of that with itself, and so on: 2 ** 30 terms."""
    for level in range(30):
        kernel = {"object": "sklearn.Sum", "number": 1000 + level, "state": {"k1": kernel, "k2": {"same": kernel["number"]}}}
    return kernel


CHANGES: list[tuple[str, str, Callable[[Any], Any]]] = [
    *[("numbers", "factor", change) for change in (twice, np.negative, np.transpose, to(0.0), first(np.nan), shorter)],
    *[
        ("numbers", "points", change)
        for change in (twice, to(np.inf), shorter, lambda array: array.astype("U3"), lambda array: array[:, :2])
    ],
    *[
        ("numbers", "length_scale", change)
        for change in (twice, to(0.0), np.negative, first(np.nan), shorter, lambda array: array.astype("m8[D]"))
    ],
    *[("numbers", "mean", change) for change in (first(np.inf), to(1e300), shorter, lambda array: array[None])],
    *[("numbers", "std", change) for change in (np.negative, first(np.nan), to(1e300))],
    *[("numbers", "basis", change) for change in (twice, to(0.0), shorter)],
    *[("numbers", "eigenvalues", change) for change in (np.negative, lambda array: array[::-1], first(np.nan))],
    *[("numbers", "second", change) for change in (np.negative, to(1e300), first(0.0), first(np.nan))],
    *[("numbers", "weight", to(value)) for value in (0, -1.0, "30", 1e17, {"float": "nan"})],
    *[("numbers", "n_features_in_", to(value)) for value in (4, "3", None)],
    *[("numbers", "n_components", to(value)) for value in (0, -1, 2.5, "two")],
    *[("numbers", "jitter", to(value)) for value in (-1.0, "none", 1e-2)],
    *[("numbers", "seed", to(value)) for value in (-1, None, 2**65, 0.5)],
    *[("numbers", "inference", to(value)) for value in ("best", None, 3)],
    ("named", "feature_names_in_", lambda old: {"objects": old["objects"][:-1], "shape": [2]}),
    ("named", "feature_names_in_", lambda old: {**old, "objects": ["a", "a", "c"]}),
    ("table", "column_names", lambda old: old[:-1]),
    ("table", "column_names", lambda old: old[::-1]),
    ("table", "open_variance", shorter),
    ("table", "covariance", np.negative),
    ("table", "scale", to(0)),
    ("batches", "first", shorter),
    ("batches", "diagonal", to(1e-9)),
    *[("seeded", "pos", to(value)) for value in (625, -1, 10**9)],
    ("seeded", "key", shorter),
    ("terms", "kernel", deeper),
    ("terms", "noise_level", to(-1)),
    ("terms", "k1", to({"same": 0})),
    ("texts", "idf_", shorter),
    ("texts", "idf_", np.negative),
    ("texts", "n_features_in_", to(-7)),
    ("graphs", "edges", to({"tuple": [{"tuple": [0, 99]}]})),
    ("graphs", "edges", to({"tuple": [{"tuple": [0]}]})),
    ("graphs", "labels", to([])),
    ("graphs", "n_iterations", to(10**12)),
    ("nodes", "graph", first(99.0)),
    ("nodes", "graph", first(-1.0)),
    ("nodes", "nodes", lambda old: [old[0], *old[:-1]]),
    ("nodes", "time", to(-1.0)),
    ("sparse nodes", "indices", first(10**6)),
    ("sparse nodes", "indices", first(-1)),
    ("sparse nodes", "indptr", lambda array: array[::-1]),
    ("sparse nodes", "data", first(np.nan)),
    ("neighbors", "n_neighbors$", to(30)),
    ("neighbors", "n_neighbors$", to(-1)),
    ("neighbors", "coordinates", shorter),
    ("neighbors", "reach", to(0)),
    ("strings", "length", to(10**9)),
    ("classifier", "noise", lambda array: array[:, :-1]),
    ("classifier", "hashes", lambda array: array.astype(float)),
    ("classifier", "directions", first(np.inf)),
    ("classifier", "settled", to({"tuple": [31, True]})),
    ("classifier", "classes", lambda array: array[::-1]),
    ("classifier", "classes_", lambda array: array + 1),
    ("classifier", "draw_weights_", twice),
    ("classifier", "draw_weights_", shorter),
    ("classifier", "n_draws$", to(4)),
    ("classifier", "n_jobs", to(10**9)),
    ("classifier", "center", lambda array: array[:, :-1]),
    ("sampled", "covariance", np.negative),
    ("sampled", "n_samples$", to(10**9)),
    ("sampled", "predictive", to("guessed")),
    ("clones", "coef_", lambda array: array[:, :-1]),
    ("clones", "coef_", first(np.nan)),
    ("clones", "scale_", to(0.0)),
    ("clones", "classes_", lambda array: array + 7),
    ("regressor", "noise_variance", np.negative),
    ("regressor", "intercept", to({"float": "nan"})),
    ("ridge", "alpha_", to(-1.0)),
    ("ridge", "sigma_", shorter),
    ("pool", "roots", shorter),
    ("pool", "scale_weights", twice),
    ("pool", "labeled", first(np.nan)),
    ("pool", "curvature_root", to(1e200)),
    ("pool", "heads_", lambda old: old[:-1]),
    ("pool", "functions_", lambda old: old[::-1]),
    ("clusters", "centers_", first(np.inf)),
    ("clusters", "n_clusters_", to(3)),
    ("clusters", "scale", shorter),
]


@pytest.mark.parametrize(("model", "part", "change"), CHANGES, ids=lambda value: value if isinstance(value, str) else "")
def test_file_that_once_loaded_and_failed_is_refused(model: str, part: str, change: Callable[[Any], Any], tmp_path: Path) -> None:
    parts = parts_of_model(model)
    other = changed(parts, part, change)
    assert other != parts
    write_parts(tmp_path / "bad.gpssl", with_checksums(other))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers that overflow, on the way to being refused
        with pytest.raises(ModelFileError, match=r"bad.gpssl") as caught:
            gpssl.load(tmp_path / "bad.gpssl")
    assert "\n" not in str(caught.value)
    assert "has changed since it was written" not in str(caught.value)


@pytest.mark.parametrize("model", MODELS)
def test_file_that_nobody_changed_is_read(model: str, tmp_path: Path) -> None:
    write_parts(tmp_path / "good.gpssl", with_checksums(parts_of_model(model)))
    gpssl.load(tmp_path / "good.gpssl")


# Checksums


@pytest.mark.parametrize("member", ["model.json", "arrays/2.npy"])
def test_damage_is_told_from_a_change_on_purpose(member: str, tmp_path: Path) -> None:
    parts = parts_of_model("numbers")
    write_parts(tmp_path / "bad.gpssl", {**parts, member: parts[member].replace(b"1", b"2", 1) + b" "})
    with pytest.raises(ModelFileError, match=rf"damaged: its member {member} has changed since it was written. Copy or download it again"):
        gpssl.load(tmp_path / "bad.gpssl")


def test_card_has_a_checksum_too(tmp_path: Path) -> None:
    parts = parts_of_model("numbers")
    card = json.loads(parts["card.json"])
    card["card"]["n_rows"] = 31
    write_parts(tmp_path / "bad.gpssl", {**parts, "card.json": json.dumps(card).encode()})
    with pytest.raises(ModelFileError, match=r"card.json has changed"):
        gpssl.read_card(tmp_path / "bad.gpssl")


def test_a_member_more_or_less_is_damage(tmp_path: Path) -> None:
    parts = parts_of_model("numbers")
    for other in ({**parts, "arrays/99.npy": npy(np.ones(1))}, {name: part for name, part in parts.items() if name != "arrays/0.npy"}):
        write_parts(tmp_path / "bad.gpssl", other)
        with pytest.raises(ModelFileError, match="lacks a part that it was written with, or has another"):
            gpssl.load(tmp_path / "bad.gpssl")


def test_files_without_checksums_are_read(tmp_path: Path) -> None:
    parts = parts_of_model("numbers")
    card = json.loads(parts["card.json"])
    del card["checksums"]
    write_parts(tmp_path / "old.gpssl", {**parts, "card.json": json.dumps(card).encode()})
    assert gpssl.load(tmp_path / "old.gpssl").transform(X).shape == (30, 2)


def test_loading_changes_no_random_state(tmp_path: Path) -> None:
    write_parts(tmp_path / "model.gpssl", parts_of_model("classifier"))
    before = np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    one, other = gpssl.load(tmp_path / "model.gpssl"), gpssl.load(tmp_path / "model.gpssl")
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]  # noqa: NPY002
    np.testing.assert_array_equal(one.functions_(X + 1), other.functions_(X + 1))
    assert len(one.functions_._known) == 60
