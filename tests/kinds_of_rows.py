"""Every kernel of the library, with rows of its kind: a few dozen to train on, and a Hypothesis strategy that draws more."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as sk

from gpssl import kernels as k

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # GPyTorch warns of newer versions of PyTorch
    import gpytorch

N_TRAINING = 40


@dataclass(frozen=True)
class Kind:
    """A kernel and rows of its kind."""

    kernel: Any
    training: list[Any]
    """Rows of two classes in turn."""
    row: st.SearchStrategy[Any]
    table: Callable[[list[Any]], Any] = list
    """Turns a list of rows into what a user would pass."""


def _vectors() -> list[list[float]]:
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0, 0.0], [2.0, 2.0, 0.0]])
    return (centers[np.arange(N_TRAINING) % 2] + 0.5 * rng.standard_normal((N_TRAINING, 3))).tolist()


def _vectors_with_gaps() -> list[list[float]]:
    rows = np.array(_vectors())
    rows[np.random.default_rng(1).random(rows.shape) < 0.2] = np.nan
    return rows.tolist()


def _mixed() -> list[list[Any]]:
    rng = np.random.default_rng(2)
    return [
        [
            None if place % 7 == 3 else round(float(2 * (place % 2) + rng.standard_normal()), 2),
            None if place % 11 == 5 else str(rng.choice(["red", "green"] if place % 2 else ["blue", "green"], p=[0.8, 0.2])),
            ["low", "middle", "high"][rng.integers(2) + place % 2],
        ]
        for place in range(N_TRAINING)
    ]


def _frame(rows: list[Any]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["size", "color", "grade"])
    frame["size"] = frame["size"].astype(float)
    frame["grade"] = pd.Categorical(frame["grade"], ["low", "middle", "high"], ordered=True)
    return frame


def _categories(rows: list[Any]) -> pd.DataFrame:
    return _frame(rows)[["color", "grade"]]


def _array(rows: list[Any]) -> np.ndarray[Any, Any]:
    return np.array(rows, dtype=np.float64)


def _strings() -> list[str]:
    rng = np.random.default_rng(3)
    motifs = ["abcab", "ccbba"]
    return [
        "".join(rng.choice(list("abc"), 5)) + motifs[place % 2] * 2 + "".join(rng.choice(list("abc"), 5)) for place in range(N_TRAINING)
    ]


def _documents() -> list[str]:
    rng = np.random.default_rng(4)
    words = [["cat", "dog", "horse", "the"], ["ship", "train", "car", "the"]]
    return [" ".join(rng.choice(words[place % 2], 6)) for place in range(N_TRAINING)]


def _with_text() -> list[list[Any]]:
    """Return numbers, categories and documents, with gaps among all of them."""
    cells = zip(_mixed(), _documents(), strict=True)
    return [[size, color, None if place % 9 == 4 else text] for place, ((size, color, _), text) in enumerate(cells)]


def _frame_with_text(rows: list[Any]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["size", "color", "note"])
    return frame.astype({"size": float, "color": object, "note": object})


def _graph(edges: list[tuple[int, int]], labels: list[str]) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from((node, {"label": label}) for node, label in enumerate(labels))
    graph.add_edges_from((a, b) for a, b in edges if a != b and max(a, b) < len(labels))
    return graph


def _graphs() -> list[nx.Graph]:
    """Return rings and stars in turn."""
    rng = np.random.default_rng(5)
    shapes = [nx.cycle_graph, nx.star_graph]
    graphs = [shapes[place % 2](int(rng.integers(4, 9))) for place in range(N_TRAINING)]
    return [_graph(list(graph.edges), [str(label) for label in rng.choice(list("CN"), len(graph))]) for graph in graphs]


def _shared_letters(x: str, y: str) -> float:
    return 1.0 + sum(x.count(letter) * y.count(letter) for letter in set(x)) / 100


def _one_column(rows: list[Any]) -> np.ndarray[Any, Any]:
    return np.array(rows)[:, None]


_MOONS = np.array(_vectors())
_TWO_PARTS = nx.disjoint_union(nx.path_graph(N_TRAINING // 2), nx.cycle_graph(N_TRAINING // 2))
_NODES = [place // 2 + (N_TRAINING // 2) * (place % 2) for place in range(N_TRAINING)]

_number = st.floats(-5, 5, allow_subnormal=False)
_number_or_gap = st.one_of(_number, st.just(np.nan))
_vector = st.lists(_number, min_size=3, max_size=3)
_category = st.sampled_from(["red", "green", "blue", "never seen"])
_cells = st.tuples(
    st.one_of(st.none(), _number), st.one_of(st.none(), _category), st.one_of(st.none(), st.sampled_from(["low", "middle", "high"]))
).map(list)

_string = st.text("abcdé", min_size=1, max_size=12)
_document = st.lists(st.sampled_from(["cat", "ship", "the", "unheard", "of"]), min_size=1, max_size=6).map(" ".join)
_cells_with_text = st.tuples(
    st.one_of(st.none(), _number), st.one_of(st.none(), _category), st.one_of(st.none(), _document, st.just(""))
).map(list)
_labeled_graph = st.builds(
    _graph,
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=9),
    st.lists(st.sampled_from(["C", "N", "never seen"]), min_size=1, max_size=6),
)

_groups = [("size", k.IncompleteRBF(), ["size"]), ("color", k.CategoryKernel(), ["color"]), ("grade", k.OrdinalKernel(), ["grade"])]

KINDS: dict[str, Kind] = {
    "NeighborRBF": Kind(k.NeighborRBF(), _vectors(), _vector, _array),
    "NeighborDiffusion": Kind(k.NeighborDiffusion(5), _vectors(), _vector, _array),
    "diffusion and RBF": Kind(0.5 * k.NeighborDiffusion(5) + 0.5 * k.NeighborRBF(), _vectors(), _vector, _array),
    "IncompleteRBF": Kind(k.IncompleteRBF(), _vectors_with_gaps(), st.lists(_number_or_gap, min_size=3, max_size=3), _array),
    "CategoryKernel": Kind(k.CategoryKernel(), _mixed(), _cells, _categories),
    "OrdinalKernel": Kind(k.OrdinalKernel(), _array(_vectors()).round().tolist(), _vector, _array),
    "ColumnKernel, product": Kind(k.ColumnKernel(_groups, weights=[1.0, 0.7, 0.5]), _mixed(), _cells, _frame),
    "ColumnKernel, sum": Kind(k.ColumnKernel(_groups, combine="sum"), _mixed(), _cells, _frame),
    "ColumnKernel, scaled": Kind(2.0 * k.ColumnKernel(_groups) + sk.WhiteKernel(0.1), _mixed(), _cells, _frame),
    "NearestNeighborGP": Kind(k.NearestNeighborGP(5), _vectors(), _vector, _array),
    "for_table": Kind(k.for_table(_frame(_mixed())), _mixed(), _cells, _frame),
    "diffusion of documents": Kind(k.NeighborDiffusion(5, kernel=k.TfidfKernel()), _documents(), _document),
    "diffusion of a table": Kind(k.NeighborDiffusion(5, kernel=k.ColumnKernel(_groups)), _mixed(), _cells, _frame),
    "SpectrumKernel, counts": Kind(k.SpectrumKernel(2, normalize=False), _strings(), _string),
    "SpectrumKernel": Kind(k.SpectrumKernel(3), _strings(), _string),
    "PositionKernel": Kind(k.PositionKernel(), _strings(), _string),
    "ColumnKernel, text": Kind(
        k.ColumnKernel([("rest", k.StandardizedKernel(), ["size", "color"]), ("note", k.TfidfKernel(), ["note"])], weights=[0.5, 0.5]),
        _with_text(),
        _cells_with_text,
        _frame_with_text,
    ),
    "for_table, text": Kind(k.for_table(_frame_with_text(_with_text()), texts=["note"]), _with_text(), _cells_with_text, _frame_with_text),
    "StandardizedKernel": Kind(k.StandardizedKernel(), _mixed(), _cells, _frame),
    "StandardizedKernel, Laplace": Kind(k.StandardizedKernel("laplace", scores=True), _mixed(), _cells, _frame),
    "MismatchKernel": Kind(k.MismatchKernel(4, 1), _strings(), _string),
    "SubsequenceKernel": Kind(k.SubsequenceKernel(3, 0.5, 5), _strings(), _string),
    "spectrum and subsequences": Kind(k.SpectrumKernel(2) * k.SubsequenceKernel(2, 0.7, 4), _strings(), _string),
    "TfidfKernel": Kind(k.TfidfKernel(), _documents(), _document),
    "TfidfKernel, RBF": Kind(k.TfidfKernel(length_scale=1.0), _documents(), _document),
    "WeisfeilerLehmanKernel": Kind(k.WeisfeilerLehmanKernel(2), _graphs(), _labeled_graph),
    "ShortestPathKernel": Kind(k.ShortestPathKernel(), _graphs(), _labeled_graph),
    "RandomWalkKernel": Kind(k.RandomWalkKernel(), _graphs(), _labeled_graph),
    "NodeDiffusion": Kind(k.NodeDiffusion(_TWO_PARTS, time=20.0), _NODES, st.sampled_from(_NODES)),
    "NodeMatern": Kind(k.NodeMatern(_TWO_PARTS, length_scale=5.0), _NODES, st.sampled_from(_NODES)),
    "PairKernel": Kind(k.NeighborRBF() + 2.0 * k.PairKernel([[0, 2], [1, 3], [2, 4]]), _vectors(), _vector, _array),
    "from_gpytorch": Kind(k.from_gpytorch(gpytorch.kernels.MaternKernel(nu=1.5)), _vectors(), _vector, _array),
    "CallableKernel": Kind(k.CallableKernel(_shared_letters, vectors=False, elementwise=True), _documents(), _document),
    "PrecomputedKernel": Kind(
        k.PrecomputedKernel(sk.RBF(1.0)(_MOONS)), list(range(N_TRAINING)), st.integers(0, N_TRAINING - 1), _one_column
    ),
}
