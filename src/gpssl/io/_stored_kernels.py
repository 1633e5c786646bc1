"""The form in which kernels, and the vectorizers, matrices and graphs among their parameters, are stored in model files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.compose import make_column_selector
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import kernels as sk

from .. import kernels as gk
from ._archive import ModelFileError
from ._encoding import Form, by_fields, by_parameters, by_scikit_learn, check_names

SPARSE = ("data", "indices", "indptr", "shape")
SELECTOR = ("pattern", "dtype_include", "dtype_exclude")


def _sparse_apart(matrix: Any) -> dict[str, Any]:
    return {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": tuple(map(int, matrix.shape))}


def _sparse_together(parts: dict[str, Any]) -> csr_array:
    check_names(csr_array, parts, SPARSE, all_of_them=True)
    matrix = csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=parts["shape"])
    matrix.check_format(full_check=True)
    return matrix


def _selector_apart(selector: Any) -> dict[str, Any]:
    return {name: getattr(selector, name) for name in SELECTOR}


def _selector_together(parts: dict[str, Any]) -> Any:
    check_names(make_column_selector, parts, SELECTOR, all_of_them=True)
    return make_column_selector(parts["pattern"], dtype_include=parts["dtype_include"], dtype_exclude=parts["dtype_exclude"])


def _for_nodes(kind: type) -> Form:
    """Store a kernel between nodes with its graph as a sparse matrix, or as edges with the names of the nodes."""
    plain = by_parameters(kind)

    def take_apart(kernel: Any) -> dict[str, Any]:
        parts = plain.take_apart(kernel)
        graph = parts.pop("graph")
        return {**parts, "graph": csr_array(graph), "nodes": None} if issparse(graph) else {**parts, **_graph_apart(graph)}

    def put_together(parts: dict[str, Any]) -> Any:
        graph, nodes = parts.pop("graph"), parts.pop("nodes")
        return plain.put_together({**parts, "graph": graph if nodes is None else _graph_together(graph, nodes)})

    return Form(kind, take_apart, put_together)


def _graph_apart(graph: Any) -> dict[str, Any]:
    """Return the positions of both nodes and the weight of each edge [E, 3], in the order of the graph: sums follow it."""
    if graph.is_multigraph():
        raise ModelFileError("a graph with several edges between two nodes cannot be stored: fit with networkx.Graph(graph)")
    places = {name: place for place, name in enumerate(graph.nodes)}
    edges = [(places[one], places[other], float(weight)) for one, other, weight in graph.edges(data="weight", default=1.0)]
    return {"graph": np.array(edges, dtype=np.float64).reshape(-1, 3), "nodes": list(graph.nodes)}


def _graph_together(edges: NDArray[Any], nodes: list[Any]) -> Any:
    try:
        import networkx as nx
    except ImportError as error:
        raise ModelFileError('this model has a graph, for which it needs NetworkX: pip install "gpssl[graphs]"') from error
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_weighted_edges_from((nodes[int(one)], nodes[int(other)], float(weight)) for one, other, weight in edges)
    return graph


def _vectorizer() -> Form:
    """Store a vectorizer, but refuse one that reads files by name: a model file could name any file."""
    plain = by_scikit_learn(TfidfVectorizer, private=("_tfidf",))

    def put_together(parts: dict[str, Any]) -> Any:
        vectorizer = plain.put_together(parts)
        if vectorizer.input != "content":
            raise ModelFileError("its vectorizer reads files")
        return vectorizer

    return Form(TfidfVectorizer, plain.take_apart, put_together)


KERNELS: dict[str, Callable[[], Form]] = {
    "gpssl.CategoryKernel": lambda: by_parameters(gk.CategoryKernel),
    "gpssl.ColumnKernel": lambda: by_parameters(gk.ColumnKernel),
    "gpssl.DiffusionKernel": lambda: by_parameters(gk.DiffusionKernel),
    "gpssl.GroupKernel": lambda: by_parameters(gk.GroupKernel),
    "gpssl.IncompleteRBF": lambda: by_parameters(gk.IncompleteRBF),
    "gpssl.LabelledGraph": lambda: by_fields(gk.LabeledGraph),
    "gpssl.MismatchKernel": lambda: by_parameters(gk.MismatchKernel),
    "gpssl.NearestNeighborGP": lambda: by_parameters(gk.NearestNeighborGP),
    "gpssl.NearestNeighborKernel": lambda: by_parameters(gk.NearestNeighborKernel),
    "gpssl.NeighborDiffusion": lambda: by_parameters(gk.NeighborDiffusion),
    "gpssl.NeighborRBF": lambda: by_parameters(gk.NeighborRBF),
    "gpssl.NodeDiffusion": lambda: _for_nodes(gk.NodeDiffusion),
    "gpssl.NodeMatern": lambda: _for_nodes(gk.NodeMatern),
    "gpssl.OrdinalKernel": lambda: by_parameters(gk.OrdinalKernel),
    "gpssl.PairKernel": lambda: by_parameters(gk.PairKernel),
    "gpssl.PrecomputedKernel": lambda: by_parameters(gk.PrecomputedKernel),
    "gpssl.RandomWalkKernel": lambda: by_parameters(gk.RandomWalkKernel),
    "gpssl.ShortestPathKernel": lambda: by_parameters(gk.ShortestPathKernel),
    "gpssl.SpectrumKernel": lambda: by_parameters(gk.SpectrumKernel),
    "gpssl.SubsequenceKernel": lambda: by_parameters(gk.SubsequenceKernel),
    "gpssl.TfidfKernel": lambda: by_parameters(gk.TfidfKernel),
    "gpssl.WeisfeilerLehmanKernel": lambda: by_parameters(gk.WeisfeilerLehmanKernel),
    "scipy.csr_array": lambda: Form(csr_array, _sparse_apart, _sparse_together),
    "sklearn.ConstantKernel": lambda: by_parameters(sk.ConstantKernel),
    "sklearn.DotProduct": lambda: by_parameters(sk.DotProduct),
    "sklearn.Exponentiation": lambda: by_parameters(sk.Exponentiation),
    "sklearn.ExpSineSquared": lambda: by_parameters(sk.ExpSineSquared),
    "sklearn.FrozenEstimator": lambda: by_parameters(FrozenEstimator),
    "sklearn.make_column_selector": lambda: Form(make_column_selector, _selector_apart, _selector_together),
    "sklearn.Matern": lambda: by_parameters(sk.Matern),
    "sklearn.Product": lambda: by_parameters(sk.Product),
    "sklearn.RationalQuadratic": lambda: by_parameters(sk.RationalQuadratic),
    "sklearn.RBF": lambda: by_parameters(sk.RBF),
    "sklearn.Sum": lambda: by_parameters(sk.Sum),
    "sklearn.TfidfTransformer": lambda: by_scikit_learn(TfidfTransformer),
    "sklearn.TfidfVectorizer": _vectorizer,
    "sklearn.WhiteKernel": lambda: by_parameters(sk.WhiteKernel),
}
