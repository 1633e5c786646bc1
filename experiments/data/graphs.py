"""Graphs with classes, as NetworkX graphs whose nodes have an attribute "label"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from .examples import Examples, TextFile, read_lines


def load_mutag() -> Examples:
    """Load molecules, mutagenic or not: 188 graphs of atoms of 7 kinds; classes "1" and "-1"."""
    return _load_tu("MUTAG")


def load_enzymes() -> Examples:
    """Load enzymes of six classes, "1" to "6", 100 each: 600 graphs of parts of the protein of 3 kinds. Attributes are left out."""
    return _load_tu("ENZYMES")


def load_proteins() -> Examples:
    """Load proteins, enzyme or not: 1,113 graphs of parts of the protein of 3 kinds; classes "0" and "1"."""
    file = read_lines("graphs/PROTEINS/PROTEINS.txt")
    numbers = _numbers(file, None)
    (n_graphs,), *rest = numbers
    lines = iter(rest)
    try:
        found = [_next_graph(lines) for _ in range(n_graphs)]
    except (StopIteration, ValueError) as error:
        raise file.broken(f"does not have the {n_graphs} graphs that it begins with") from error
    return Examples("PROTEINS", [graph for graph, _ in found], np.array([label for _, label in found]))


def _next_graph(lines: Iterator[Sequence[int]]) -> tuple[Any, str]:
    """Read a graph and its class from the line "nodes class" and a line "label neighbors neighbor …" for each node, counted from 0."""
    n_nodes, label = next(lines)
    nodes = [next(lines) for _ in range(n_nodes)]
    edges = [(node, other) for node, (_, _, *others) in enumerate(nodes) for other in others]
    return new_graph(range(n_nodes), [node[0] for node in nodes], edges), str(label)


def _load_tu(name: str) -> Examples:
    """Read the files of the TU collection: nodes are counted from 1 over all graphs, and edges are pairs of them."""
    files = {part: read_lines(f"graphs/{name}/{name}_{part}.txt") for part in ("A", "graph_indicator", "graph_labels", "node_labels")}
    cells = {part: _numbers(file, ",") for part, file in files.items()}
    graph_of, labels, classes = ([row[0] for row in cells[part]] for part in ("graph_indicator", "node_labels", "graph_labels"))
    if len(graph_of) != len(labels):
        raise files["node_labels"].broken(f"has {len(labels)} labels of {len(graph_of)} nodes")
    if not 1 <= min(graph_of) <= max(graph_of) <= len(classes):
        raise files["graph_indicator"].broken(f"names graphs that are none of the {len(classes)}")
    edges: list[list[Sequence[int]]] = [[] for _ in classes]
    for pair in cells["A"]:
        if len(pair) != 2 or not all(1 <= node <= len(labels) for node in pair):
            raise files["A"].broken(f"has an edge {pair} between nodes that are not there")
        edges[graph_of[pair[0] - 1] - 1].append(pair)
    nodes: list[list[int]] = [[] for _ in classes]
    for node, graph in enumerate(graph_of, start=1):
        nodes[graph - 1].append(node)
    graphs = [new_graph(mine, [labels[node - 1] for node in mine], pairs) for mine, pairs in zip(nodes, edges, strict=True)]
    return Examples(name, graphs, np.array([str(label) for label in classes]))


def new_graph(nodes: Iterable[int], labels: Iterable[Any], edges: Iterable[Sequence[int]]) -> Any:
    """Return a NetworkX graph without directions, each edge once."""
    try:
        networkx: Any = import_module("networkx")
    except ImportError as error:
        raise ImportError("Graphs need NetworkX: pip install networkx.") from error
    graph = networkx.Graph()
    graph.add_nodes_from((node, {"label": label}) for node, label in zip(nodes, labels, strict=True))
    graph.add_edges_from(edges)
    return graph


def _numbers(file: TextFile, delimiter: str | None) -> list[list[int]]:
    """Read whole numbers, line by line."""
    try:
        return [[int(cell) for cell in line.split(delimiter)] for line in file.lines]
    except ValueError as error:
        raise file.broken(f"has cells that are no whole numbers ({error})") from error
