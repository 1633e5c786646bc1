from __future__ import annotations

import pickle
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import expm, fractional_matrix_power
from scipy.sparse import csr_array
from sklearn.base import clone

from gpssl import GPSSL
from gpssl.kernels import NodeDiffusion, NodeMatern
from gpssl.kernels import nodes as nodes_module

Array = NDArray[np.float64]


def laplacian(W: Array) -> Array:
    """Return the symmetric normalized Laplacian, with zeros for nodes without edges."""
    degrees = W.sum(axis=1)
    inverse = np.array([1 / np.sqrt(d) if d > 0 else 0.0 for d in degrees])
    return np.diag((degrees > 0).astype(float)) - inverse[:, None] * W * inverse


def unit_mean(K: Array) -> Array:
    return K / K.trace() * len(K)


@st.composite
def weights(draw: st.DrawFn) -> Array:
    """Some of the graphs have isolated nodes and several components."""
    n = draw(st.integers(1, 8))
    upper = draw(st.lists(st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0]), min_size=n * n, max_size=n * n))
    W = np.triu(np.array(upper).reshape(n, n), 1)
    return W + W.T


@given(weights(), st.floats(0.1, 5.0))
@settings(max_examples=50)
def test_diffusion_is_the_matrix_exponential(W: Array, time: float) -> None:
    kernel, nodes = NodeDiffusion(csr_array(W), time), np.arange(len(W))
    gram = kernel(nodes)
    np.testing.assert_allclose(gram, unit_mean(expm(-time * laplacian(W))), atol=1e-10)
    np.testing.assert_allclose(kernel.diag(nodes), gram.diagonal(), atol=1e-12)
    assert kernel.diag(nodes).mean() == pytest.approx(1)
    assert np.linalg.eigvalsh(gram)[0] > -1e-10


@given(weights(), st.sampled_from([0.5, 1.5, 2.0]), st.floats(0.3, 5.0))
@settings(max_examples=50)
def test_matern_is_the_power_of_a_matrix(W: Array, nu: float, length_scale: float) -> None:
    gram = NodeMatern(nx.from_numpy_array(W), nu, length_scale)(range(len(W)))
    shifted = 2 * nu / length_scale**2 * np.eye(len(W)) + laplacian(W)
    np.testing.assert_allclose(gram, unit_mean(np.real(fractional_matrix_power(shifted, -nu))), rtol=1e-8, atol=1e-10)


def test_nodes_go_by_their_names() -> None:
    graph = nx.grid_2d_graph(3, 3)
    graph.add_node("alone")
    names = [*graph.nodes]
    gram = NodeDiffusion(graph)(names)
    np.testing.assert_allclose(gram, unit_mean(expm(-laplacian(nx.to_numpy_array(graph)))), atol=1e-12)
    np.testing.assert_allclose(NodeDiffusion(graph)([(1, 1), "alone"], names[:3]), gram[[names.index((1, 1)), 9], :3])
    assert gram[9, :9].max() == 0


def test_weights_count() -> None:
    graph = nx.Graph()
    graph.add_weighted_edges_from([("a", "b", 5.0), ("b", "c", 0.1)])
    kernel = NodeDiffusion(graph)
    assert kernel(["b"], ["a"])[0, 0] > kernel(["b"], ["c"])[0, 0]


def test_truncation_stays_within_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = nx.disjoint_union(nx.grid_2d_graph(12, 12), nx.path_graph(30))
    graph.add_nodes_from(["alone", "too"])
    nodes = [*graph.nodes]
    exact = NodeDiffusion(graph, 3.0)
    gram = exact(nodes)
    monkeypatch.setattr(nodes_module, "_LARGEST_DENSE", 100)
    few = NodeDiffusion(graph, 3.0, n_eigenvectors=60)
    scale = few._scale() / exact._scale()
    error = np.linalg.norm(gram - scale * few(nodes), 2)
    assert error <= scale * few.truncation_error() + 1e-9
    assert few.truncation_error() < 1
    assert exact.truncation_error() == 0
    assert few(["alone"])[0, 0] > 0
    np.testing.assert_allclose(few(nodes), clone(few)(nodes), atol=1e-9)


def test_large_graphs_need_no_square_matrix() -> None:
    n = 20_000
    ring = np.arange(n)
    ends = np.concatenate([(ring + 1) % n, (ring - 1) % n])
    kernel = NodeMatern(csr_array((np.ones(2 * n), (np.tile(ring, 2), ends)), shape=(n, n)), length_scale=50.0, n_eigenvectors=10)
    assert kernel(ring[:5]).shape == (5, 5)
    assert kernel._laplacian.vectors.shape == (n, 10)
    assert kernel.diag(ring).mean() == pytest.approx(1)


@pytest.mark.parametrize(
    ("graph", "error", "message"),
    [
        (nx.DiGraph([(0, 1)]), ValueError, "directed"),
        (csr_array(np.array([[0.0, 1.0], [0.0, 0.0]])), ValueError, "symmetric"),
        (csr_array(np.ones((2, 3))), ValueError, "square"),
        (csr_array(np.array([[0.0, -1.0], [-1.0, 0.0]])), ValueError, "not negative"),
        ([[0, 1], [1, 0]], TypeError, "NetworkX graph or a SciPy sparse"),
        (nx.Graph(), ValueError, "no nodes"),
    ],
)
def test_bad_graphs_raise_an_error(graph: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        NodeDiffusion(graph)([0])


@pytest.mark.parametrize("name", [7, "x", [0]])
def test_unknown_nodes_raise_an_error(name: Any) -> None:
    with pytest.raises(ValueError, match=r"Row 1 is .* which is no node of the graph"):
        NodeDiffusion(nx.path_graph(3))([0, name])


def test_bad_parameters_raise_an_error() -> None:
    graph = nx.path_graph(3)
    for kernel in (NodeDiffusion(graph, 0), NodeMatern(graph, -1), NodeMatern(graph, 1, 0), NodeMatern(graph, n_eigenvectors=0)):
        with pytest.raises(ValueError, match="must be a"):
            kernel([0, 1])
    with pytest.raises(ValueError, match="gradient"):
        NodeDiffusion(graph)([0], eval_gradient=True)


def test_gpssl_learns_communities() -> None:
    graph = nx.planted_partition_graph(2, 30, 0.5, 0.02, seed=0)
    nodes = np.array([*graph.nodes])
    kernel = NodeDiffusion(graph, 5.0)
    ssl = GPSSL(1, kernel=kernel, random_state=0).fit(nodes)
    mean = ssl.transform(nodes)[:, 0]
    found = mean > np.median(mean)
    assert max((found[:30].sum() + (~found[30:]).sum()), ((~found[:30]).sum() + found[30:].sum())) > 55
    assert ssl.std(nodes[:3]).shape == (3, 1)
    assert ssl.sample(nodes[:4], 2).shape == (2, 4, 1)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(ssl)).transform(nodes)[:, 0], mean)
    np.testing.assert_array_equal(clone(kernel)(nodes), pickle.loads(pickle.dumps(kernel))(nodes))


def test_moments_of_other_graphs_do_not_add() -> None:
    one, other = nx.path_graph(20), nx.cycle_graph(20)
    fitted = [GPSSL(1, kernel=NodeDiffusion(graph), inducing=range(20), random_state=0).fit(range(20)) for graph in (one, other)]
    assert fitted[0].features_.fingerprint != fitted[1].features_.fingerprint
