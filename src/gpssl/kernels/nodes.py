"""Kernels between the nodes of one graph: functions of its normalized Laplacian."""

from __future__ import annotations

from functools import cached_property
from numbers import Integral, Real
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array, issparse
from scipy.sparse.linalg import eigsh
from sklearn.gaussian_process.kernels import GenericKernelMixin, Kernel

from .._validation import check_number
from ..data._arrays import as_object_rows
from ._protocol import Array, NonStationary, full_repr, refuse_gradient
from .graphs import _NetworkXGraph

_LARGEST_DENSE = 3000
"""Linked nodes up to which all eigenvectors are computed."""
_TRUNCATED = 500
"""Eigenvectors for larger graphs."""
_SHIFT = 1e-6
"""Distance from the largest eigenvalue of I − L, so that the matrix to factorize is regular."""


class _LaplacianEigenvectors(NamedTuple):
    """The normalized Laplacian of one graph, L = U diag(λ) Uᵀ on its linked nodes."""

    places: dict[Any, int]
    """The position of each node."""
    eigenvalues: Array
    vectors: Array
    """U, with zeros for nodes without edges. [N, r]"""
    alone: NDArray[np.bool_]
    """Nodes without edges. [N]"""
    complete: bool
    """Whether these are all eigenvectors."""


class _NodeKernel(NonStationary, GenericKernelMixin, Kernel):
    """A function of the normalized Laplacian: k = s(L) / c, with c = trace s(L) / N, so that the variance is 1 on average.

    L = I − D^(−½) W D^(−½). Nodes in different components do not correlate; a node without edges has a zero row in L, and is a component.
    All eigenvectors of graphs with up to 3,000 linked nodes are used. Of larger graphs, or with `n_eigenvectors`, those of the r smallest
    eigenvalues are used (500 by default): no dense N × N matrix is formed, one sparse matrix is factorized, and `truncation_error()`
    bounds what is left out.
    """

    graph: Any
    n_eigenvectors: int | None

    def _weight(self, eigenvalues: Array) -> Array:
        """Return s(λ), which is positive and falls with λ."""
        raise NotImplementedError

    def prepare(self, X: Any) -> NDArray[Any]:
        """Return the names of nodes; raise ValueError if one is not in the graph. [n]"""
        places = self._laplacian.places
        names = [_plain(name) for name in as_object_rows(X)]
        for position, name in enumerate(names):
            if not _is_in(name, places):
                raise ValueError(f"Row {position} is {name!r}, which is no node of the graph. A node that is new needs a new graph.")
        return np.fromiter(names, dtype=object)

    def truncation_error(self) -> float:
        """Return s(λ_r) / c, a bound on the spectral norm of what the other eigenvectors would add; 0 with all eigenvectors."""
        return 0.0 if self._laplacian.complete else float(self._weight(self._laplacian.eigenvalues[-1:])[0] / self._scale())

    def _scale(self) -> float:
        """Return c, the mean variance over the nodes."""
        alone = self._laplacian.alone
        own = self._weight(np.zeros(1))[0] * alone.sum()
        return float((self._weight(self._laplacian.eigenvalues).sum() + own) / len(alone))

    @cached_property
    def _laplacian(self) -> _LaplacianEigenvectors:
        return _decompose(self.graph, self.n_eigenvectors)

    def _features(self, positions: NDArray[np.intp]) -> Array:
        """Return Φ with k = Φ Φᵀ between linked nodes. [n, r]"""
        return self._laplacian.vectors[positions] * np.sqrt(self._weight(self._laplacian.eigenvalues) / self._scale())

    def _own(self, positions: NDArray[np.intp]) -> Array:
        """Return the variance of nodes without edges, 0 for all others. [n]"""
        return self._laplacian.alone[positions] * self._weight(np.zeros(1))[0] / self._scale()

    def _positions(self, X: Any) -> NDArray[np.intp]:
        return np.array([self._laplacian.places[name] for name in self.prepare(X)], dtype=np.intp)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Array:
        """Return k(X, Y). [n, m]"""
        refuse_gradient(self, eval_gradient)
        rows = self._positions(X)
        points = rows if Y is None else self._positions(Y)
        return self._features(rows) @ self._features(points).T + np.equal.outer(rows, points) * self._own(rows)[:, None]

    def diag(self, X: Any) -> Array:
        """Return k(x, x) for each node. [n]"""
        positions = self._positions(X)
        return (self._features(positions) ** 2).sum(axis=1) + self._own(positions)

    def describe(self) -> str:
        """Return the kernel and a hash of its graph, for `SelfDescribingKernel`."""
        names, weights = _read(self.graph)
        return f"{self!r}, {self.n_eigenvectors}, {joblib.hash((list(map(str, names)), weights.indptr, weights.indices, weights.data))}"

    def __repr__(self) -> str:
        return full_repr(self, without=("graph", "n_eigenvectors"))


class NodeDiffusion(_NodeKernel):
    """Heat that spreads over a graph for some time (Kondor and Lafferty, 2002): k = exp(−time · L) / c.

    Rows are nodes: the names of a NetworkX graph, or positions in an adjacency matrix. L = I − D^(−½) W D^(−½) is the normalized
    Laplacian of the graph, and c makes the variance 1 on average. Nodes without a path between them are independent under the prior.

    Parameters
    ----------
    graph
        An undirected NetworkX graph, with weights in the attribute "weight" if it has any, or a symmetric SciPy sparse matrix.
    time
        How far a node's influence reaches.
    n_eigenvectors
        How many eigenvectors of L to use; all of them for graphs of up to 3,000 nodes, else 500.
    """

    def __init__(self, graph: Any, time: float = 1.0, *, n_eigenvectors: int | None = None) -> None:
        self.graph = graph
        self.time = time
        self.n_eigenvectors = n_eigenvectors

    def _weight(self, eigenvalues: Array) -> Array:
        check_number("time", self.time, Real, above=0)
        return np.exp(-self.time * eigenvalues)


class NodeMatern(_NodeKernel):
    """The Matérn kernel of a graph (Borovitskiy et al., 2021): k = (2ν/κ² I + L)^(−ν) / c, with κ the `length_scale`.

    Rows, L and c are those of `NodeDiffusion`.

    Parameters
    ----------
    nu, length_scale
        Smoothness and reach.
    graph, n_eigenvectors
        As in `NodeDiffusion`.
    """

    def __init__(self, graph: Any, nu: float = 1.5, length_scale: float = 1.0, *, n_eigenvectors: int | None = None) -> None:
        self.graph = graph
        self.nu = nu
        self.length_scale = length_scale
        self.n_eigenvectors = n_eigenvectors

    def _weight(self, eigenvalues: Array) -> Array:
        check_number("nu", self.nu, Real, above=0)
        check_number("length_scale", self.length_scale, Real, above=0)
        return (2 * self.nu / self.length_scale**2 + eigenvalues) ** -float(self.nu)


def _plain(name: Any) -> Any:
    """Return a number of NumPy as one of Python: they are equal, but rows are compared by a hash of their content."""
    return name.item() if isinstance(name, np.generic) else name


def _is_in(name: Any, places: dict[Any, int]) -> bool:
    try:
        return name in places
    except TypeError:  # a list or another object that cannot be the name of a node
        return False


def _decompose(graph: Any, n_eigenvectors: int | None) -> _LaplacianEigenvectors:
    """Return the eigenvectors of the normalized Laplacian with the smallest eigenvalues."""
    names, weights = _read(graph)
    if not names:
        raise ValueError("The graph has no nodes.")
    degrees = np.asarray(weights.sum(axis=1)).reshape(-1)
    linked = np.flatnonzero(degrees > 0)
    scale = diags_array(1 / np.sqrt(degrees[linked]))
    similarity = scale @ weights[linked][:, linked] @ scale  # I − L
    if n_eigenvectors is None:
        n_eigenvectors = len(linked) if len(linked) <= _LARGEST_DENSE else _TRUNCATED
    else:
        check_number("n_eigenvectors", n_eigenvectors, Integral, at_least=1)
    n_vectors = min(int(n_eigenvectors), len(linked))
    eigenvalues, vectors = _largest(similarity, n_vectors) if n_vectors else (np.empty(0), np.empty((0, 0)))
    whole = np.zeros((len(names), n_vectors))
    whole[linked] = vectors
    # The eigenvalues of L lie between 0 and 2; rounding may leave them outside.
    places = {_plain(name): position for position, name in enumerate(names)}
    return _LaplacianEigenvectors(places, np.clip(1 - eigenvalues, 0, 2), whole, degrees == 0, n_vectors == len(linked))


def _largest(similarity: csr_array, n_vectors: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues, in falling order, and their vectors."""
    n_nodes = similarity.shape[0]
    if n_nodes <= _LARGEST_DENSE or n_vectors >= n_nodes:
        eigenvalues, vectors = np.linalg.eigh(similarity.toarray())
    else:
        start = np.random.default_rng(0).standard_normal(n_nodes)  # the same result every time
        # Inverted close to its largest eigenvalue, the matrix has well separated ones: long chains converge at once instead of never.
        eigenvalues, vectors = eigsh(csc_array(similarity), k=n_vectors, sigma=1 + _SHIFT, which="LM", v0=start)
    order = np.argsort(-eigenvalues)[:n_vectors]
    return eigenvalues[order], vectors[:, order]


def _read(graph: Any) -> tuple[list[Any], csr_array]:
    """Return the names of the nodes, and the weights between them. [N, N]"""
    if issparse(graph):
        names, weights = list(range(graph.shape[0])), csr_array(graph, dtype=np.float64)
        if graph.shape[0] != graph.shape[1] or abs(weights - weights.T).max() > 1e-12 * abs(weights).max():
            raise ValueError("The adjacency matrix must be square and symmetric: the kernel is for undirected graphs.")
    elif isinstance(graph, _NetworkXGraph):
        if graph.is_directed():
            raise ValueError("The graph is directed; the kernel is for undirected ones. Pass graph.to_undirected().")
        names, weights = list(graph.nodes), _weights_of(graph)
    else:
        raise TypeError(f"graph must be a NetworkX graph or a SciPy sparse adjacency matrix, got {type(graph).__name__}.")
    if not np.isfinite(weights.data).all() or weights.data.min(initial=0.0) < 0:
        raise ValueError("The weights of the edges must be finite and not negative.")
    return names, weights


def _weights_of(graph: _NetworkXGraph) -> csr_array:
    places = {name: position for position, name in enumerate(graph.nodes)}
    entries = [(places[a], places[b], float(weight)) for a, b, weight in graph.edges(data="weight", default=1.0)]
    both = entries + [(b, a, weight) for a, b, weight in entries if a != b]
    table = np.array(both, dtype=np.float64).reshape(-1, 3)
    indices = table[:, :2].astype(np.intp)
    return csr_array((table[:, 2], (indices[:, 0], indices[:, 1])), shape=(len(places), len(places)))
