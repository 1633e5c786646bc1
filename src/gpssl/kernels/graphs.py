"""Kernels between graphs. What they count in a graph, GraKeL counts, except for walks."""

from __future__ import annotations

from numbers import Integral, Real
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import GenericKernelMixin, Kernel

from ..validation import check_number
from .evaluation import BlockKernel
from .graph_rows import GraphRows, LabelledGraph

Array = NDArray[np.float64]


class _GraphKernel(GraphRows, GenericKernelMixin, Kernel):
    """Counts of something in two graphs, multiplied, and divided by their lengths.

        k(x, y) = ⟨φ(x), φ(y)⟩ / (|φ(x)| |φ(y)|)

    Graphs in which there is nothing to count, φ(x) = 0, are all alike to the kernel: k = 1 between them, 0 to all others. That is one
    more entry of φ, so k stays positive semi-definite, and k(x, x) = 1 for every graph.
    """

    def _counter(self, points: NDArray[Any]) -> _Counter:
        """What compares graphs with these."""
        raise NotImplementedError

    def block_kernel(self, points: NDArray[Any]) -> BlockKernel:
        """The work on the points once, for all blocks of rows."""
        counter = self._counter(self.prepare(points))
        squares = counter.own_squares

        def fill(X: NDArray[Any], out: Array) -> None:
            products, row_squares = counter.compare(self.prepare(X))
            scale = np.sqrt(np.outer(row_squares, squares))  # exact for k(x, x), as √(c²) = c
            np.divide(products, scale, out=out, where=scale > 0)
            out[scale == 0] = np.equal.outer(row_squares == 0, squares == 0)[scale == 0]

        return fill

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Array:
        """k(X, Y). [n, m]"""
        if eval_gradient:
            raise ValueError(f"{type(self).__name__} has no hyperparameter with a gradient.")
        rows = self.prepare(X)
        points = rows if Y is None else self.prepare(Y)
        out = np.empty((len(rows), len(points)))
        if out.size:
            self.block_kernel(points)(rows, out)
        return out

    def diag(self, X: Any) -> Array:
        """k(x, x) = 1. [n]"""
        return np.ones(len(X))

    def is_stationary(self) -> bool:
        """Graphs have no differences."""
        return False

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({parameters})"


class WeisfeilerLehmanKernel(_GraphKernel):
    """How many nodes of two graphs look alike, with their neighbourhoods out to `n_iterations` steps (Shervashidze et al., 2011).

        φ(x) = numbers of nodes with each label, at iteration 0, 1, …, n_iterations

    A node's label at the next iteration is its label and the sorted labels of its neighbours. Computed by GraKeL, which the extra
    `graphs` installs. See `GraphRows` for what a row may be.
    """

    def __init__(self, n_iterations: int = 3, *, node_label: str = "label") -> None:
        self.n_iterations = n_iterations
        self.node_label = node_label

    def _counter(self, points: NDArray[Any]) -> _Counter:
        check_number("n_iterations", self.n_iterations, Integral, at_least=1)
        return _GraKeLCounter(_grakel().WeisfeilerLehman(n_iter=int(self.n_iterations)), points)


class ShortestPathKernel(_GraphKernel):
    """How many pairs of nodes of two graphs have the same labels and the same distance (Borgwardt and Kriegel, 2005).

        φ(x) = numbers of ordered pairs of distinct, connected nodes, by both labels and the number of edges between them

    A graph without edges has no such pairs: it is like every other graph without edges, and unlike all that have some. Computed by GraKeL,
    which the extra `graphs` installs; its time grows with the cube of the number of nodes.
    """

    def __init__(self, *, node_label: str = "label") -> None:
        self.node_label = node_label

    def _counter(self, points: NDArray[Any]) -> _Counter:
        return _GraKeLCounter(_grakel().ShortestPath(), points)


class RandomWalkKernel(_GraphKernel):
    """How many walks two graphs have, by length; labels do not matter (Gärtner et al., 2003; Kang et al., 2012).

        ⟨φ(x), φ(y)⟩ = Σ_k decay^k 1ᵀ (A_x ⊗ A_y)^k 1,      φ_k(x) = decay^(k/2) 1ᵀ A_x^k 1,      k = 0, 1, …, n_steps

    The product of the two graphs never has to be built: without labels its walks are pairs of walks. A graph without edges has its nodes as
    walks of length 0. `node_label` only matters in sums and products with kernels that look at labels, which must have the same.
    """

    def __init__(self, decay: float = 0.1, n_steps: int = 4, *, node_label: str = "label") -> None:
        self.decay = decay
        self.n_steps = n_steps
        self.node_label = node_label

    def _counter(self, points: NDArray[Any]) -> _Counter:
        check_number("decay", self.decay, Real, above=0)
        check_number("n_steps", self.n_steps, Integral, at_least=1)
        return _WalkCounter(float(self.decay), int(self.n_steps), points)


class _Counter:
    """Compares graphs with points that were looked at before."""

    own_squares: Array
    """|φ(u)|² of each point. [M]"""

    def compare(self, rows: NDArray[Any]) -> tuple[Array, Array]:
        """⟨φ(x), φ(u)⟩ [n, M] and |φ(x)|² [n]."""
        raise NotImplementedError


class _GraKeLCounter(_Counter):
    """A kernel of GraKeL, without its normalisation, which is undefined where there is nothing to count."""

    def __init__(self, grakel: Any, points: NDArray[Any]) -> None:
        # GraKeL keeps what it is working on in the object, and blocks come from several threads. Little is lost: it is all Python.
        self._lock = Lock()
        self._grakel = grakel.fit(_in_grakel_format(points))
        self.own_squares = self.compare(points)[1]

    def compare(self, rows: NDArray[Any]) -> tuple[Array, Array]:
        with self._lock:
            products = self._grakel.transform(_in_grakel_format(rows))
            squared = self._grakel.diagonal()[1]
        return np.asarray(products, dtype=np.float64), np.asarray(squared, dtype=np.float64).reshape(-1)


class _WalkCounter(_Counter):
    def __init__(self, decay: float, n_steps: int, points: NDArray[Any]) -> None:
        self._decay, self._n_steps = decay, n_steps
        self._walks = self._count(points)
        self.own_squares = (self._walks**2).sum(axis=1)

    def compare(self, rows: NDArray[Any]) -> tuple[Array, Array]:
        walks = self._count(rows)
        return walks @ self._walks.T, (walks**2).sum(axis=1)

    def _count(self, graphs: NDArray[Any]) -> Array:
        """φ for each graph. [n, n_steps + 1]"""
        return np.array([self._count_in(graph) for graph in graphs]).reshape(len(graphs), self._n_steps + 1)

    def _count_in(self, graph: LabelledGraph) -> list[float]:
        adjacency, walks = graph.adjacency(), np.ones(len(graph.labels))
        counts = [float(walks.sum())]
        for _ in range(self._n_steps):
            walks = np.sqrt(self._decay) * (adjacency @ walks)
            counts.append(float(walks.sum()))
        return counts


def _in_grakel_format(rows: NDArray[Any]) -> list[list[Any]]:
    return [[graph.neighbours(), dict(enumerate(graph.labels))] for graph in rows]


def _grakel() -> Any:
    try:
        import grakel
    except ImportError as error:
        raise ImportError('Graph kernels need GraKeL: pip install "gpssl[graphs]"') from error
    return grakel
