"""Kernels between graphs: each counts something in two graphs, such as neighborhoods, distances or walks, and compares the counts.

A row is an undirected NetworkX graph, or GraKeL's `[edges, labels]`: edges as pairs of nodes, as a dictionary of the neighbors of each
node, or as an adjacency matrix; labels as a dictionary, or left out. An edge that is given in one direction counts in both, and weights
are ignored. Labels are text or numbers and are compared as text. The nodes of a graph without labels are labeled with their number of
neighbors, "degree 3". Equal graphs are the same row. Graphs that are equal up to the names of their nodes have the same kernel, but are
different rows.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.sparse.csgraph import shortest_path
from sklearn.gaussian_process.kernels import GenericKernelMixin, Kernel

from .._validation import check_number
from ..data._arrays import as_object_rows, mixed_bits
from ._protocol import Array, BlockKernel, CallByBlocks, UnitDiagonal, full_repr
from ._word_counts import Counts, block_of_counts

_Edges = set[tuple[Any, Any]]
_Hashes = NDArray[np.uint64]

_GRAPHS_REMEMBERED = 20_000
"""Graphs whose counts are kept: a fit asks for the counts of the same graphs whenever it chooses a few more inducing graphs."""
_NOTHING = np.uint64(0)
"""Stands for a graph in which there is nothing to count."""
_STEP, _DISTANCE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
"""Odd numbers by which the hashes of different iterations, and of different distances, differ."""


@dataclass(frozen=True, slots=True)
class LabeledGraph:
    """An undirected graph whose nodes are 0, 1, …, in the order of their names; graph kernels work on such rows."""

    edges: tuple[tuple[int, int], ...]
    """Sorted edges, each with the smaller node first."""
    labels: tuple[str, ...]
    """One label for each node."""
    attribute: str
    """The `node_label` that the labels were read with."""
    hashed_as: ClassVar[str] = "gpssl.kernels.graph_rows.LabelledGraph"
    """The name that hashes of graphs are made with; it never changes, and neither do draws at graphs."""

    def adjacency(self) -> csr_array:
        """Return A, with 1 for each edge in both directions. [n, n]"""
        pairs = np.array([*self.edges, *(edge[::-1] for edge in self.edges if edge[0] != edge[1])], dtype=np.intp).reshape(-1, 2)
        return csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(self.labels), len(self.labels)))


@runtime_checkable
class _NetworkXGraph(Protocol):
    """A graph of NetworkX, which need not be imported to recognize one."""

    nodes: Any
    edges: Any
    adj: Any

    def is_directed(self) -> bool: ...

    def is_multigraph(self) -> bool: ...


def _from_networkx(graph: _NetworkXGraph, attribute: str, position: int) -> LabeledGraph:
    if graph.is_directed():
        raise ValueError(f"Row {position} is a directed graph, but these kernels are for undirected graphs. Pass graph.to_undirected().")
    if graph.is_multigraph():
        raise ValueError(f"Row {position} has several edges between two nodes; pass networkx.Graph(graph), which keeps one of them.")
    labels = {node: data[attribute] for node, data in graph.nodes(data=True) if attribute in data}
    return _canonical(set(graph.nodes), set(graph.edges), labels, attribute, position)


def _from_pair(graph: Any, attribute: str, position: int) -> LabeledGraph:
    """Read a graph in GraKeL's format."""
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


def _read_edges(edges: Any) -> tuple[set[Any], _Edges]:
    """Return the nodes that the edges name, and the edges."""
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


def _canonical(nodes: set[Any], edges: _Edges, labels: Mapping[Any, Any], attribute: str, position: int) -> LabeledGraph:
    """Return the same graph for equal graphs, in whatever order their nodes and edges were added."""
    nodes = nodes | {node for edge in edges for node in edge}
    if not nodes:
        raise ValueError(f"Row {position} is a graph without nodes, which a kernel cannot compare with others: leave it out.")
    ordered = sorted(nodes, key=lambda node: (str(node), type(node).__name__))
    place = {node: index for index, node in enumerate(ordered)}
    pairs = tuple(sorted({(min(place[a], place[b]), max(place[a], place[b])) for a, b in edges}))
    texts = [_text(labels[node], node, position) for node in ordered if node in labels]
    if not texts:
        degrees = Counter([one for one, _ in pairs] + [other for one, other in pairs if one != other])
        return LabeledGraph(pairs, tuple(f"degree {degrees[node]}" for node in range(len(ordered))), attribute)
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


_GraphCounts = tuple[_Hashes, Array]
"""What occurs in a graph: distinct hashes, in rising order, and the count of each."""


class _GraphKernel(CallByBlocks, UnitDiagonal, GenericKernelMixin, Kernel):
    """The cosine of the angle between counts of something in two graphs; a subclass counts.

        k(x, y) = ⟨φ(x), φ(y)⟩ / (|φ(x)| |φ(y)|)

    Graphs in which there is nothing to count, φ(x) = 0, are all alike to the kernel: k = 1 between them, 0 to all others. That is one
    more entry of φ, so k stays positive semi-definite, and k(x, x) = 1 for every graph.
    """

    node_label: str

    def prepare(self, X: Any) -> NDArray[Any]:
        """Return each graph as a `LabeledGraph`. [n]"""
        if isinstance(X, LabeledGraph | _NetworkXGraph):
            raise TypeError("X is a single graph; rows of a graph kernel are graphs, so pass a list of them.")
        if isinstance(X, str) or not isinstance(X, Iterable):
            raise TypeError(f"Rows of a graph kernel are graphs, in a list or an array; got {type(X).__name__}.")
        return np.fromiter((self._prepared(item, position) for position, item in enumerate(as_object_rows(X))), dtype=object)

    def _prepared(self, graph: Any, position: int) -> LabeledGraph:
        if not isinstance(graph, LabeledGraph):
            read = _from_networkx if isinstance(graph, _NetworkXGraph) else _from_pair
            return read(graph, self.node_label, position)
        if graph.attribute != self.node_label:
            raise ValueError(
                f"The labels of these graphs were read with node_label={graph.attribute!r}, but {type(self).__name__} has "
                f"node_label={self.node_label!r}. Kernels that are combined with + or * must have the same."
            )
        return graph

    def _count_in(self, graph: LabeledGraph) -> _GraphCounts:
        """Return φ(x); raise ValueError if a parameter has no meaning."""
        raise NotImplementedError

    def block_kernel(self, points: NDArray[Any]) -> BlockKernel:
        """Count in the points once, as columns of a sparse matrix, for all blocks of rows."""
        return block_of_counts(self._count, points)

    def _count(self, graphs: NDArray[Any]) -> Counts:
        """Return φ(x) / |φ(x)| of each graph."""
        found = [self._count_in(graph) for graph in graphs]
        sizes = [len(words) for words, _ in found]
        words = np.concatenate([np.empty(0, np.uint64), *(words for words, _ in found)])
        values = np.concatenate([np.empty(0), *(values / np.linalg.norm(values) for _, values in found)])
        return Counts(np.repeat(np.arange(len(found)), sizes), words, values, np.ones(len(words)))

    def __repr__(self) -> str:
        return full_repr(self)


class WeisfeilerLehmanKernel(_GraphKernel):
    """Numbers of nodes in two graphs that are alike up to `n_iterations` steps away (Shervashidze et al., 2011).

        φ(x) = numbers of nodes with each label, at iteration 0, 1, …, n_iterations

    A node's label at the next iteration is its label and the multiset of the labels of its neighbors, as a 64-bit hash. Rows are
    undirected graphs of NetworkX, or pairs `[edges, labels]` as in GraKeL.
    """

    def __init__(self, n_iterations: int = 3, *, node_label: str = "label") -> None:
        self.n_iterations = n_iterations
        self.node_label = node_label

    def _count_in(self, graph: LabeledGraph) -> _GraphCounts:
        check_number("n_iterations", self.n_iterations, Integral, at_least=1)
        return _neighborhoods(graph, int(self.n_iterations))


class ShortestPathKernel(_GraphKernel):
    """Numbers of pairs of nodes in two graphs with the same labels and the same distance (Borgwardt and Kriegel, 2005).

        φ(x) = numbers of ordered pairs of distinct, connected nodes, by both labels and the number of edges between them

    A graph without edges has no such pairs: it equals every other graph without edges, and has nothing in common with the rest. The work
    on a graph grows with the square of its nodes times its edges.
    """

    def __init__(self, *, node_label: str = "label") -> None:
        self.node_label = node_label

    def _count_in(self, graph: LabeledGraph) -> _GraphCounts:
        return _distances(graph)


class RandomWalkKernel(_GraphKernel):
    """Numbers of walks in two graphs, by length; labels do not matter (Gärtner et al., 2003; Kang et al., 2012).

        ⟨φ(x), φ(y)⟩ = Σ_k decay^k 1ᵀ (A_x ⊗ A_y)^k 1,      φ_k(x) = decay^(k/2) 1ᵀ A_x^k 1,      k = 0, 1, …, n_steps

    The product of the two graphs is never built: without labels its walks are pairs of walks. A graph without edges has its nodes as
    walks of length 0. `node_label` only matters in sums and products with kernels that look at labels, which must have the same.
    """

    def __init__(self, decay: float = 0.1, n_steps: int = 4, *, node_label: str = "label") -> None:
        self.decay = decay
        self.n_steps = n_steps
        self.node_label = node_label

    def _count_in(self, graph: LabeledGraph) -> _GraphCounts:
        check_number("decay", self.decay, Real, above=0)
        check_number("n_steps", self.n_steps, Integral, at_least=1)
        return _walks(graph, float(self.decay), int(self.n_steps))


@lru_cache(_GRAPHS_REMEMBERED)
def _neighborhoods(graph: LabeledGraph, n_iterations: int) -> _GraphCounts:
    """Count the labels at each iteration, by hashes. That of a multiset is a sum of well-mixed hashes, which has no order."""
    labels = _label_hashes(graph)
    edges = np.array(graph.edges, dtype=np.intp).reshape(-1, 2)
    proper = edges[edges[:, 0] != edges[:, 1]]
    here, there = np.concatenate([edges, proper[:, ::-1]]).T
    seen = [labels]
    for _ in range(n_iterations):
        around = np.zeros_like(labels)
        np.add.at(around, here, mixed_bits(labels[there]))
        labels = mixed_bits(mixed_bits(around) + labels * _STEP)
        seen.append(labels)
    steps = np.arange(len(seen), dtype=np.uint64)[:, None]
    return _counted(mixed_bits(np.array(seen) + steps * _STEP))


@lru_cache(_GRAPHS_REMEMBERED)
def _distances(graph: LabeledGraph) -> _GraphCounts:
    """Count pairs of nodes, by hashes of their two labels and the distance between them."""
    labels = mixed_bits(_label_hashes(graph))
    between = shortest_path(graph.adjacency(), directed=False, unweighted=True)
    one, other = np.nonzero(np.isfinite(between) & (between > 0))
    if len(one) == 0:
        return np.array([_NOTHING]), np.ones(1)
    return _counted(mixed_bits(mixed_bits(labels[one] + _STEP) + labels[other] + between[one, other].astype(np.uint64) * _DISTANCE))


@lru_cache(_GRAPHS_REMEMBERED)
def _walks(graph: LabeledGraph, decay: float, n_steps: int) -> _GraphCounts:
    """Count the walks of each length, which is the hash, and divide by the largest count: there may be very many walks."""
    adjacency, walks = graph.adjacency(), np.ones(len(graph.labels))
    logarithm, logarithms = 0.0, []
    for _ in range(n_steps + 1):
        total = float(walks.sum())
        if total == 0:
            break
        logarithm += np.log(total)
        logarithms.append(logarithm)
        walks = np.sqrt(decay) * (adjacency @ (walks / total))
    return np.arange(len(logarithms), dtype=np.uint64), np.exp(np.array(logarithms) - max(logarithms))


def _counted(hashes: _Hashes) -> _GraphCounts:
    words, values = np.unique(hashes, return_counts=True)
    return words, values.astype(np.float64)


def _label_hashes(graph: LabeledGraph) -> _Hashes:
    return np.array([_text_hash(label) for label in graph.labels], dtype=np.uint64)


@lru_cache(100_000)
def _text_hash(text: str) -> int:
    """Return a hash that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
