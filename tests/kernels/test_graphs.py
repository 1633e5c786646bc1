from __future__ import annotations

import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import joblib
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from gpssl import GPSSL, MarginalizedClassifier
from gpssl.data._arrays import hash_rows
from gpssl.kernels import LabeledGraph, RandomWalkKernel, ShortestPathKernel, WeisfeilerLehmanKernel
from gpssl.kernels._protocol import block_kernel

Array = NDArray[np.float64]

KERNELS = [WeisfeilerLehmanKernel(2), ShortestPathKernel(), RandomWalkKernel(0.3, 3)]


@st.composite
def graphs(draw: st.DrawFn) -> nx.Graph:
    """Draw a graph with few nodes and labels, with or without edges."""
    n_nodes = draw(st.integers(1, 6))
    pairs = [(i, j) for i in range(n_nodes) for j in range(i)]
    graph = nx.Graph(draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else [])
    graph.add_nodes_from(range(n_nodes))
    for node in graph:
        graph.nodes[node]["label"] = draw(st.sampled_from("abc"))
    return graph


def random_graphs(n: int, seed: int = 0) -> list[nx.Graph]:
    """Return rings and trees in turn, with random labels."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        size = int(rng.integers(4, 12))
        graph = nx.cycle_graph(size) if i % 2 else nx.random_labeled_tree(size, seed=int(rng.integers(1000)))
        nx.set_node_attributes(graph, {node: str(rng.integers(2)) for node in graph}, "label")
        found.append(graph)
    return found


def weisfeiler_lehman(graph: nx.Graph, n_iterations: int) -> Counter[Any]:
    """Count labels that are nested tuples instead of hashes, so that nothing can collide."""
    labels = dict(graph.nodes(data="label"))
    counts: Counter[Any] = Counter((0, label) for label in labels.values())
    for step in range(1, n_iterations + 1):
        labels = {node: (labels[node], tuple(sorted((labels[other] for other in graph[node]), key=repr))) for node in graph}
        counts.update((step, label) for label in labels.values())
    return counts


def shortest_paths(graph: nx.Graph) -> Counter[Any]:
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    label = graph.nodes(data="label")
    pairs = ((u, v) for u in graph for v in lengths[u] if u != v)
    return Counter((label[u], label[v], lengths[u][v]) for u, v in pairs)


def normalized(counts: list[Counter[Any]]) -> Array:
    """Normalize the products; graphs with nothing to count have one more entry."""
    full = [count or Counter({"nothing": 1}) for count in counts]
    gram = np.array([[sum(x[key] * y[key] for key in x) for y in full] for x in full], dtype=float)
    lengths = np.sqrt(gram.diagonal())
    return gram / np.outer(lengths, lengths)


@given(st.lists(graphs(), min_size=1, max_size=6), st.integers(1, 3))
@settings(max_examples=40)
def test_weisfeiler_lehman_is_the_count_of_nested_labels(rows: list[nx.Graph], n_iterations: int) -> None:
    expected = normalized([weisfeiler_lehman(graph, n_iterations) for graph in rows])
    np.testing.assert_allclose(WeisfeilerLehmanKernel(n_iterations)(rows), expected, atol=1e-12)


@given(st.lists(graphs(), min_size=1, max_size=6))
@settings(max_examples=40)
def test_shortest_path_is_the_count_of_distances(rows: list[nx.Graph]) -> None:
    np.testing.assert_allclose(ShortestPathKernel()(rows), normalized([shortest_paths(graph) for graph in rows]), atol=1e-12)


@given(st.lists(graphs(), min_size=1, max_size=4))
@settings(max_examples=20)
def test_random_walk_is_the_count_in_the_product_graph(rows: list[nx.Graph]) -> None:
    adjacency = [nx.to_numpy_array(graph) for graph in rows]

    def walks(A: Array, B: Array) -> float:
        product = np.kron(A, B)
        return float(sum(0.3**k * np.linalg.matrix_power(product, k).sum() for k in range(4)))

    gram = np.array([[walks(A, B) for B in adjacency] for A in adjacency])
    lengths = np.sqrt(gram.diagonal())
    np.testing.assert_allclose(RandomWalkKernel(0.3, 3)(rows), gram / np.outer(lengths, lengths), atol=1e-12)


def in_grakel_format(graph: nx.Graph) -> list[Any]:
    return [{node: dict.fromkeys(graph[node], 1.0) for node in graph}, dict(graph.nodes(data="label"))]


def test_weisfeiler_lehman_and_shortest_paths_agree_with_grakel() -> None:
    from grakel.kernels import ShortestPath, WeisfeilerLehman

    rows = random_graphs(12)
    theirs = [in_grakel_format(graph) for graph in rows]
    np.testing.assert_allclose(
        WeisfeilerLehmanKernel(3)(rows), WeisfeilerLehman(n_iter=3, normalize=True).fit_transform(theirs), atol=1e-12
    )
    np.testing.assert_allclose(ShortestPathKernel()(rows), ShortestPath(normalize=True).fit_transform(theirs), atol=1e-12)


def test_random_walk_agrees_with_grakel() -> None:
    from grakel.kernels import RandomWalk

    rows = random_graphs(6)
    theirs = RandomWalk(lamda=0.2, p=3, method_type="baseline", normalize=True).fit_transform([[nx.to_numpy_array(g)] for g in rows])
    np.testing.assert_allclose(RandomWalkKernel(0.2, 3)(rows), theirs, atol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@given(st.lists(graphs(), min_size=2, max_size=7), st.integers(1, 6))
@settings(max_examples=25)
def test_kernels_are_kernels_and_blocks_of_them_agree(kernel: Kernel, rows: list[nx.Graph], split: int) -> None:
    """Rows may have labels that the points do not have."""
    gram = kernel(rows)
    np.testing.assert_allclose(gram, gram.T, atol=1e-12)
    np.testing.assert_allclose(gram.diagonal(), kernel.diag(rows), atol=1e-12)
    assert np.linalg.eigvalsh(gram)[0] > -1e-10
    few, many = rows[:split], rows[split:]
    np.testing.assert_allclose(kernel(many, few), gram[split:, :split], atol=1e-12)
    prepared = kernel.prepare(rows)
    out = np.full((len(rows), len(few)), np.nan)
    block_kernel(kernel, prepared[:split])(prepared, out)
    np.testing.assert_allclose(out, gram[:, :split], atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_blocks_may_be_filled_on_several_threads(kernel: Kernel) -> None:
    rows = kernel.prepare(random_graphs(60))
    fill = block_kernel(kernel, rows[:10])

    def block(start: int) -> Array:
        out = np.empty((6, 10))
        fill(rows[start : start + 6], out)
        return out

    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(block, range(0, 60, 6)))
    np.testing.assert_array_equal(np.vstack(parts), kernel(rows, rows[:10]))


def test_very_many_walks_are_no_problem() -> None:
    rows = [nx.complete_graph(100), nx.complete_graph(40), nx.star_graph(30), nx.path_graph(4)]
    for kernel in (RandomWalkKernel(1.0, 40), RandomWalkKernel(0.1, 1000)):
        gram = kernel(rows)
        np.testing.assert_allclose(gram.diagonal(), 1.0)
        assert np.linalg.eigvalsh(gram)[0] > -1e-10


def test_equal_graphs_are_the_same_row_in_any_order_and_format() -> None:
    labels = {"b": 1, "a": 2, "c": 2}
    one, other = nx.Graph(), nx.Graph()
    one.add_nodes_from(labels)
    one.add_edges_from([("a", "b"), ("b", "c")])
    other.add_edges_from([("c", "b"), ("b", "a")])
    for graph in (one, other):
        nx.set_node_attributes(graph, labels, "label")
    one.adj, one.degree  # noqa: B018  (NetworkX keeps these views in the graph)
    formats = [
        [[("a", "b"), ("b", "a"), ("b", "c")], labels],
        [{"a": {"b": 1.0}, "b": {"c": 1.0}, "c": {}}, labels],
        [{("a", "b"): 1.0, ("b", "c"): 2.0}, {key: np.int64(value) for key, value in labels.items()}],
    ]
    rows = WeisfeilerLehmanKernel().prepare([one, other, *formats])
    assert len({joblib.hash(row) for row in rows}) == 1
    assert rows[0] == LabeledGraph(((0, 1), (1, 2)), ("2", "1", "2"), "label")
    again = pickle.loads(pickle.dumps(WeisfeilerLehmanKernel().prepare(rows)))
    assert {joblib.hash(row) for row in again} == {joblib.hash(rows[0])}


def test_rows_may_come_as_arrays_series_and_matrices() -> None:
    kernel, rows = WeisfeilerLehmanKernel(), random_graphs(4)
    expected = kernel(rows)
    np.testing.assert_array_equal(kernel(pd.Series(rows)), expected)
    np.testing.assert_array_equal(kernel(pd.DataFrame({"graph": rows})), expected)
    pairs = [[nx.to_numpy_array(graph), dict(graph.nodes(data="label"))] for graph in rows]
    np.testing.assert_allclose(kernel(pairs), expected)


def test_graphs_without_labels_have_degrees_as_labels() -> None:
    bare = nx.path_graph(3)
    labeled = bare.copy()
    nx.set_node_attributes(labeled, dict(labeled.degree), "label")
    kernel = WeisfeilerLehmanKernel()
    assert kernel.prepare([bare])[0].labels == ("degree 1", "degree 2", "degree 1")
    assert kernel([bare], [labeled])[0, 0] == 0, "degrees that nobody asked for are no labels that somebody gave"
    assert kernel([bare, nx.star_graph(4)])[0, 1] > 0


def test_graphs_without_edges() -> None:
    bare, larger, path = nx.empty_graph(2), nx.empty_graph(5), nx.path_graph(3)
    for graph in (bare, larger, path):
        nx.set_node_attributes(graph, "a", "label")
    np.testing.assert_allclose(ShortestPathKernel()([bare, larger, path]), [[1, 1, 0], [1, 1, 0], [0, 0, 1]], atol=1e-15)
    assert WeisfeilerLehmanKernel()([bare, path])[0, 1] > 0
    assert RandomWalkKernel()([bare, path])[0, 1] > 0


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_clone_and_pickle(kernel: Kernel) -> None:
    rows = random_graphs(5)
    assert clone(kernel) == kernel
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel))(rows), clone(kernel)(rows))
    assert not kernel.requires_vector_input
    assert not kernel.is_stationary()
    assert kernel([], rows).shape == (0, 5)


def half_labeled() -> nx.Graph:
    graph = nx.path_graph(2)
    graph.nodes[0]["label"] = "a"
    return graph


def labeled_with(label: Any) -> nx.Graph:
    graph = nx.path_graph(1)
    graph.nodes[0]["label"] = label
    return graph


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([nx.path_graph(2), nx.Graph()], ValueError, "Row 1 is a graph without nodes"),
        ([nx.path_graph(2), "CCO"], TypeError, "Row 1 is no graph but str"),
        ([3.0], TypeError, "Row 0 is no graph but float"),
        ([[5, {}]], TypeError, r"Row 0 cannot be read as a graph \[edges, labels\]"),
        ([[np.ones((2, 3)), {}]], TypeError, "square matrix"),
        ([nx.DiGraph([(0, 1)])], ValueError, "Row 0 is a directed graph.*to_undirected"),
        ([nx.MultiGraph([(0, 1)])], ValueError, "Row 0 has several edges"),
        ([half_labeled()], ValueError, "Row 0: node 1 has no label"),
        ([labeled_with([1.0, 2.0])], ValueError, "labels are text or numbers"),
        ([labeled_with(float("nan"))], ValueError, "labels are text or numbers"),
        (nx.path_graph(3), TypeError, "X is a single graph"),
        ("graph", TypeError, "got str"),
    ],
)
def test_bad_rows_raise_an_error(rows: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        WeisfeilerLehmanKernel().prepare(rows)


@pytest.mark.parametrize("kernel", [WeisfeilerLehmanKernel(0), RandomWalkKernel(decay=-1), RandomWalkKernel(n_steps=0)], ids=repr)
def test_bad_parameters_raise_an_error(kernel: Kernel) -> None:
    with pytest.raises(ValueError, match=r"n_iterations|decay|n_steps"):
        kernel(random_graphs(2))


def test_gradients_are_by_no_parameter() -> None:
    values, gradient = RandomWalkKernel()(random_graphs(2), eval_gradient=True)
    assert values.shape == (2, 2)
    assert gradient.shape == (2, 2, 0)


@pytest.mark.parametrize("kernel", [*KERNELS, WeisfeilerLehmanKernel() + 0.5 * RandomWalkKernel()], ids=str)
@pytest.mark.filterwarnings("ignore:The kernel sees only:UserWarning")
def test_gpssl_learns_from_graphs(kernel: Kernel) -> None:
    rows = random_graphs(40)
    ssl = GPSSL(2, kernel=kernel, random_state=0).fit(rows)
    mean, std = ssl.transform(rows), ssl.std(rows)
    assert mean.shape == std.shape == (40, 2)
    assert np.isfinite(mean).all()
    assert ssl.sample(rows[:5], 3).shape == (3, 5, 2)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(ssl)).transform(rows), mean)
    order = np.random.default_rng(0).permutation(40)
    np.testing.assert_allclose(GPSSL(2, kernel=kernel, random_state=0).fit([rows[i] for i in order]).transform(rows), mean, atol=1e-6)


def test_classifier_tells_rings_from_trees() -> None:
    rows, y = random_graphs(60), np.arange(60) % 2
    labeled = np.where(np.arange(60) < 30, y, -1)
    model = MarginalizedClassifier(GPSSL(3, kernel=WeisfeilerLehmanKernel(), random_state=0), n_draws=20, random_state=0)
    assert (model.fit(rows, labeled).predict(rows[30:]) == y[30:]).mean() > 0.8


def test_kernels_with_other_labels_cannot_be_combined() -> None:
    kernel = WeisfeilerLehmanKernel(node_label="element") + ShortestPathKernel(node_label="charge")
    with pytest.raises(ValueError, match="must have the same"):
        GPSSL(2, kernel=kernel).fit(random_graphs(10))


def test_hashes_of_graphs_are_those_of_the_first_version() -> None:
    """Drawn functions at graphs depend on them."""
    rows = WeisfeilerLehmanKernel(3).prepare([nx.path_graph(3), nx.cycle_graph(4)])
    assert hash_rows(rows, 7).tolist() == [9336947336298143024, 18075581713171735949]
