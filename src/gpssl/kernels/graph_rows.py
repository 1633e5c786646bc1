"""Graphs as rows: what a user has, in one immutable form that depends on its content alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

Edges = set[tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class LabeledGraph:
    """An undirected graph whose nodes are 0, 1, …, in the order of their names."""

    edges: tuple[tuple[int, int], ...]
    """Sorted, each with the smaller node first."""
    labels: tuple[str, ...]
    """One for each node."""
    attribute: str
    """The `node_label` that the labels were read with."""

    def adjacency(self) -> csr_array:
        """A, with 1 for each edge in both directions. [n, n]"""
        pairs = np.array([*self.edges, *(edge[::-1] for edge in self.edges if edge[0] != edge[1])], dtype=np.intp).reshape(-1, 2)
        return csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(self.labels), len(self.labels)))


class GraphRows:
    """What all kernels between graphs share: their rows.

    A row is an undirected NetworkX graph, or GraKeL's `[edges, labels]`: edges as pairs of nodes, as a dictionary of the neighbors of
    each node, or as an adjacency matrix; labels as a dictionary, or left out. An edge that is given in one direction counts in both, and
    weights are ignored. Labels are text or numbers and are compared as text. The nodes of a graph without labels are labeled with their
    number of neighbors, "degree 3".

    Equal graphs are the same row. Graphs that are equal up to the names of their nodes have the same kernel, but are rows of their own.
    """

    node_label: str

    def prepare(self, X: Any) -> NDArray[Any]:
        """Each graph as a `LabeledGraph`. [n]"""
        if isinstance(X, LabeledGraph) or _is_networkx(X):
            raise TypeError("X is a single graph; rows of a graph kernel are graphs, so pass a list of them.")
        items = _items(X)
        rows = np.empty(len(items), dtype=object)
        for position, item in enumerate(items):
            rows[position] = self._prepared(item, position)
        return rows

    def _prepared(self, graph: Any, position: int) -> LabeledGraph:
        if not isinstance(graph, LabeledGraph):
            return _from_networkx(graph, self.node_label, position) if _is_networkx(graph) else _from_pair(graph, self.node_label, position)
        if graph.attribute != self.node_label:
            raise ValueError(
                f"The labels of these graphs were read with node_label={graph.attribute!r}, but {type(self).__name__} has "
                f"node_label={self.node_label!r}. Kernels that are combined with + or * must have the same."
            )
        return graph


def _items(X: Any) -> list[Any]:
    """The rows one by one; of a data frame or array with one column, that column."""
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"Rows of a graph kernel are graphs, in a list or an array; got {type(X).__name__}.")
    return list(values)


def _is_networkx(graph: Any) -> bool:
    """Without importing NetworkX: who has such a graph has it."""
    return all(hasattr(graph, name) for name in ("is_directed", "is_multigraph", "nodes", "edges", "adj"))


def _from_networkx(graph: Any, attribute: str, position: int) -> LabeledGraph:
    if graph.is_directed():
        raise ValueError(f"Row {position} is a directed graph; graph kernels here are for undirected ones. Pass graph.to_undirected().")
    if graph.is_multigraph():
        raise ValueError(f"Row {position} has several edges between two nodes; pass networkx.Graph(graph), which keeps one of them.")
    labels = {node: data[attribute] for node, data in graph.nodes(data=True) if attribute in data}
    return _canonical(set(graph.nodes), set(graph.edges), labels, attribute, position)


def _from_pair(graph: Any, attribute: str, position: int) -> LabeledGraph:
    """GraKeL's format."""
    is_pair = isinstance(graph, list | tuple | np.ndarray) and 1 <= len(graph) <= 2
    if not is_pair:
        raise TypeError(
            f"Row {position} is no graph but {type(graph).__name__}: rows are NetworkX graphs, or pairs [edges, labels] as in GraKeL."
        )
    try:
        nodes, edges = _read_edges(graph[0])
        labels = dict(graph[1]) if len(graph) == 2 and graph[1] is not None else {}
    except (TypeError, ValueError, IndexError):
        raise TypeError(
            f"Row {position} cannot be read as a graph [edges, labels]: edges are pairs of nodes, a dictionary of neighbors, or a square "
            "matrix; labels are a dictionary from nodes to labels."
        ) from None
    return _canonical(nodes | set(labels), edges, labels, attribute, position)


def _read_edges(edges: Any) -> tuple[set[Any], Edges]:
    """Nodes that the edges name, and the edges."""
    if isinstance(edges, np.ndarray) or issparse(edges):
        dense = edges.toarray() if issparse(edges) else edges
        if dense.ndim != 2 or dense.shape[0] != dense.shape[1]:
            raise ValueError("An adjacency matrix is square.")
        return set(range(len(dense))), {(int(one), int(other)) for one, other in np.argwhere(dense)}
    if isinstance(edges, Mapping) and not all(isinstance(key, tuple) and len(key) == 2 for key in edges):
        pairs = {(one, other) for one, others in edges.items() for other in others}
        return set(edges), pairs
    if isinstance(edges, str):
        raise TypeError("Text has no edges.")
    return set(), {(edge[0], edge[1]) for edge in edges}


def _canonical(nodes: set[Any], edges: Edges, labels: Mapping[Any, Any], attribute: str, position: int) -> LabeledGraph:
    """The same for equal graphs, in whatever order their nodes and edges were added."""
    nodes = nodes | {node for edge in edges for node in edge}
    if not nodes:
        raise ValueError(f"Row {position} is a graph without nodes, which a kernel cannot compare with others: leave it out.")
    ordered = sorted(nodes, key=lambda node: (str(node), type(node).__name__))
    place = {node: index for index, node in enumerate(ordered)}
    pairs = tuple(sorted({(min(place[a], place[b]), max(place[a], place[b])) for a, b in edges}))
    texts = [_text(labels[node], node, position) for node in ordered if node in labels]
    if not texts:
        return LabeledGraph(pairs, _degrees(pairs, len(ordered)), attribute)
    if len(texts) < len(ordered):
        missing = next(node for node in ordered if node not in labels)
        raise ValueError(
            f"Row {position}: node {missing!r} has no label ({attribute!r}), but other nodes of the graph do. Label all of them, or none."
        )
    return LabeledGraph(pairs, tuple(texts), attribute)


def _text(label: Any, node: Any, position: int) -> str:
    is_gap = isinstance(label, Real) and label != label
    if is_gap or not isinstance(label, str | Real):
        raise ValueError(f"Row {position}: the label of node {node!r} is {label!r}; labels are text or numbers.")
    return str(label)


def _degrees(pairs: tuple[tuple[int, int], ...], n_nodes: int) -> tuple[str, ...]:
    """Labels for nodes that have none."""
    counts = [0] * n_nodes
    for one, other in pairs:
        counts[one] += 1
        counts[other] += one != other
    return tuple(f"degree {count}" for count in counts)
