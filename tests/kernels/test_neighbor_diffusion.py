"""Diffusion on the graph of nearest neighbors."""

from __future__ import annotations

import warnings
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits, make_moons
from sklearn.gaussian_process import kernels as sk

from gpssl import GPSSL, MarginalizedClassifier
from gpssl.kernels import NeighborDiffusion, NeighborRBF, TfidfKernel
from gpssl.kernels._neighbor_graph import KernelSpace, VectorSpace, diffusion_coordinates, neighbor_graph

Array = NDArray[np.float64]


def slow_graph(X: Array, n_neighbors: int) -> Array:
    """Return W_ij = exp(−d_ij² / (σ_i σ_j)) for rows of which one is among the K nearest of the other."""
    distances = cdist(X, X)
    weights = np.zeros_like(distances)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, 1 : n_neighbors + 1]
    width = np.array([distances[i, nearest[i, -1]] for i in range(len(X))])
    for i in range(len(X)):
        for j in nearest[i]:
            weights[i, j] = weights[j, i] = np.exp(-(distances[i, j] ** 2) / (width[i] * width[j]))
    return weights


def slow_kernel(X: Array, n_neighbors: int, time: int) -> Array:
    """Return the lazy walk to the power t, by multiplication, with unit diagonal."""
    weights = slow_graph(X, n_neighbors)
    degree = weights.sum(axis=1)
    walk = (np.eye(len(X)) + weights / np.sqrt(np.outer(degree, degree))) / 2
    power = np.linalg.matrix_power(walk, time)
    return power / np.sqrt(np.outer(power.diagonal(), power.diagonal()))


def graph_of(X: Array, n_neighbors: int) -> csr_array:
    return neighbor_graph(VectorSpace(X).search(X, n_neighbors + 1))


@pytest.fixture(scope="module")
def vectors() -> Array:
    return np.random.default_rng(0).standard_normal((80, 3))


def test_nearest_rows_against_sorting_all(vectors: Array) -> None:
    new = np.random.default_rng(1).standard_normal((20, 3))
    found = VectorSpace(vectors).search(new, 7)
    distances = cdist(new, vectors)
    np.testing.assert_array_equal(found.places, np.argsort(distances, axis=1)[:, :7])
    np.testing.assert_allclose(found.distances, np.sort(distances, axis=1)[:, :7])


def test_nearest_rows_do_not_depend_on_what_else_is_asked() -> None:
    """On a grid many distances are equal; the first rows count as nearer, whatever the rounding errors."""
    grid = np.random.default_rng(0).permutation(np.stack(np.meshgrid(*[np.arange(6.0)] * 3), axis=-1).reshape(-1, 3))
    search = VectorSpace(grid)
    together = search.search(grid, 9).places
    one_by_one = np.vstack([search.search(grid[[i]], 9).places for i in range(len(grid))])
    np.testing.assert_array_equal(together, one_by_one)
    squared = np.rint(cdist(grid, grid) ** 2)
    np.testing.assert_array_equal(together, np.argsort(squared, axis=1, kind="stable")[:, :9])


def test_graph_against_a_loop(vectors: Array) -> None:
    np.testing.assert_allclose(graph_of(vectors, 5).toarray(), slow_graph(vectors, 5), atol=1e-14)


@pytest.mark.parametrize("time", [2, 16])
def test_coordinates_are_those_of_the_walk(vectors: Array, time: int) -> None:
    graph = graph_of(vectors, 5)
    coordinates = diffusion_coordinates(graph, time=time, n_eigenvectors=80, seed=0)
    np.testing.assert_allclose(coordinates @ coordinates.T, slow_kernel(vectors, 5, time), atol=1e-10)


def test_few_eigenvectors_of_a_large_graph_are_enough() -> None:
    X = np.random.default_rng(0).standard_normal((600, 2))
    graph = graph_of(X, 10)
    coordinates = diffusion_coordinates(graph, time=64, n_eigenvectors=60, seed=0)
    np.testing.assert_allclose(coordinates @ coordinates.T, slow_kernel(X, 10, 64), atol=0.02)


def test_parts_without_a_connection_are_independent() -> None:
    rng = np.random.default_rng(0)
    X = np.vstack([rng.standard_normal((30, 2)) + 100 * place for place in range(9)])
    graph = graph_of(X, 5)
    coordinates = diffusion_coordinates(graph, time=None, n_eigenvectors=4, seed=0)
    part = np.repeat(np.arange(9), 30)
    similarity = coordinates @ coordinates.T
    assert np.abs(similarity[part[:, None] != part]).max() == 0
    np.testing.assert_allclose(similarity[part[:, None] == part], 1.0, err_msg="more parts than eigenvectors: one for each")
    few = X[part < 4]
    labels = np.where(np.arange(120) % 30 == 0, part[part < 4] % 2, -1)
    clf = MarginalizedClassifier(GPSSL(3, kernel=NeighborDiffusion(5, time=1e4, per_column=False)), random_state=0).fit(few, labels)
    assert clf.score(few, part[part < 4] % 2) == 1.0, "one label in each part is enough"


def test_automatic_time_leaves_as_many_directions_as_it_says(vectors: Array) -> None:
    coordinates = diffusion_coordinates(graph_of(vectors, 5), time=None, n_eigenvectors=80, seed=0)
    weights = slow_graph(vectors, 5)
    degree = weights.sum(axis=1)
    eigenvalues = (1 + np.linalg.eigvalsh(weights / np.sqrt(np.outer(degree, degree)))) / 2

    def directions(time: float) -> float:
        return float((np.clip(eigenvalues, 0, 1) ** time).sum())

    matches = [time for time in np.geomspace(1, 1e3, 400) if abs(directions(time) - 6) < 0.1]
    expected = slow_kernel(vectors, 5, round(np.median(matches)))
    np.testing.assert_allclose(coordinates @ coordinates.T, expected, atol=0.06)


def test_new_rows_are_averages_of_their_neighbors(vectors: Array) -> None:
    kernel = NeighborDiffusion(5, per_column=False).resolve(vectors)

    def average(x: Array) -> Array:
        distances = np.sqrt(((kernel.rows - x) ** 2).sum(axis=1))
        *nearest, next_one = np.argsort(distances)[:6]
        mean = (1 - (distances[nearest] / distances[next_one]) ** 2) @ kernel.coordinates[nearest]
        return mean / np.linalg.norm(mean)

    new = vectors[:3] + 0.01
    expected = np.array([average(x) for x in new]) @ np.array([average(x) for x in vectors]).T
    np.testing.assert_allclose(kernel(new, vectors), expected, atol=1e-10)


def test_prior_variance_returns_away_from_the_data() -> None:
    X, _ = make_moons(300, noise=0.05, random_state=0)
    ssl = GPSSL(2, kernel=NeighborDiffusion(), random_state=0).fit(X)
    inside, outside = ssl.std(X), ssl.std(np.array([[5.0, 5.0], [-4.0, 0.0], [0.0, 30.0]]))
    assert inside.max() < 0.7
    np.testing.assert_allclose(outside, 1.0, atol=1e-3)
    np.testing.assert_allclose(ssl.transform(np.array([[0.0, 30.0]])), 0.0, atol=1e-6)
    outward = ssl.std(np.column_stack([np.zeros(20), np.linspace(1.0, 4.0, 20)])).mean(axis=1)
    assert (np.diff(outward) > -0.02).all(), "it rises with the distance"
    assert np.abs(np.diff(ssl.std(np.column_stack([np.zeros(2000), np.linspace(0.5, 4.0, 2000)])), axis=0)).max() < 0.2
    plain = GPSSL(2, kernel=NeighborRBF(), random_state=0).fit(X)
    assert plain.std(np.array([[0.0, 30.0]])).min() > 0.99


def test_it_is_continuous_where_neighbors_change() -> None:
    X, _ = make_moons(400, noise=0.06, random_state=0)
    kernel = NeighborDiffusion().resolve(X)
    line = np.column_stack([np.linspace(-1.0, 2.0, 30_001), np.full(30_001, 0.25)])
    assert np.abs(np.diff(kernel(line, X[:20]), axis=0)).max() < 0.01


def test_one_row_far_out_changes_little() -> None:
    """It changes neither the neighbors of other rows, nor how many distances are computed again."""
    X = np.vstack([np.random.default_rng(0).standard_normal((300, 3)), [[1e9, -1e9, 1e9]]])
    search = VectorSpace(X)
    np.testing.assert_array_equal(search.search(X[:300], 5).places, VectorSpace(X[:300]).search(X[:300], 5).places)
    pairs = []
    measured = VectorSpace._squared_distances

    def count(self: VectorSpace, rows: Array, row: NDArray[np.intp], place: NDArray[np.intp]) -> Array:
        pairs.append(len(row))
        return measured(self, rows, row, place)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VectorSpace, "_squared_distances", count)
        search.search(X[:300], 5)
    assert sum(pairs) < 2 * 300 * 5


def test_rows_of_any_size_are_outside() -> None:
    ssl = GPSSL(2, kernel=NeighborDiffusion(5), random_state=0).fit(np.random.default_rng(0).standard_normal((60, 3)))
    np.testing.assert_allclose(ssl.std(np.full((1, 3), 1e200)), 1.0, atol=1e-6)


def test_kernel_that_is_zero_for_a_row_raises_an_error(vectors: Array) -> None:
    kernel = NeighborDiffusion(5, kernel=sk.DotProduct(0.0))
    with pytest.raises(ValueError, match=r"k\(x, x\) = 0.*positive on all rows"):
        GPSSL(2, kernel=kernel).fit(np.vstack([vectors, np.zeros(3)]))
    ssl = GPSSL(2, kernel=kernel, random_state=0).fit(vectors)
    with pytest.raises(ValueError, match=r"k\(x, x\) = 0"):
        ssl.transform(np.zeros((1, 3)))
    with pytest.raises(TypeError, match="must be a kernel object or None"):
        GPSSL(2, kernel=NeighborDiffusion(5, kernel="rbf")).fit(vectors)


def test_new_rows_of_the_same_kind_are_inside() -> None:
    digits = load_digits().data
    kernel = NeighborDiffusion(per_column=False, max_rows=900).resolve(digits[:900])
    similarity = kernel(digits[900:], digits[:900])
    assert np.quantile(similarity.max(axis=1), 0.05) > 0.9


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_few_labels_are_enough_where_classes_are_bands(seed: int) -> None:
    """On two moons with ten labels, a squared exponential cuts through the classes."""
    X, y = make_moons(400, noise=0.06, random_state=seed)
    labels = np.where(np.arange(400) < 10, y, -1)
    diffusion, rbf = (
        MarginalizedClassifier(GPSSL(5, kernel=kernel), random_state=0).fit(X, labels).score(X, y)
        for kernel in (NeighborDiffusion(), NeighborRBF())
    )
    assert diffusion > 0.98
    assert diffusion > rbf + 0.1


def test_duplicates_and_their_number_make_no_difference(vectors: Array) -> None:
    once, often = (NeighborDiffusion(5).resolve(X, seed=3) for X in (vectors, np.repeat(vectors, 3, axis=0)))
    np.testing.assert_allclose(once(vectors), often(vectors), atol=1e-8)


def test_a_sample_stands_for_many_rows() -> None:
    X, y = make_moons(3000, noise=0.05, random_state=0)
    kernel = NeighborDiffusion(max_rows=500).resolve(X)
    assert len(kernel.rows) == 500
    labels = np.where(np.arange(3000) < 10, y, -1)
    clf = MarginalizedClassifier(GPSSL(5, kernel=NeighborDiffusion(max_rows=500)), random_state=0).fit(X, labels)
    assert clf.score(X, y) > 0.98


def test_it_adds_to_other_kernels(vectors: Array) -> None:
    kernel = 0.5 * NeighborDiffusion(5) + 0.5 * NeighborRBF()
    ssl = GPSSL(3, kernel=kernel, random_state=0).fit(vectors)
    np.testing.assert_allclose(ssl.kernel_.diag(vectors), 1.0)
    expected = 0.5 * NeighborDiffusion(5).resolve(vectors)(vectors) + 0.5 * NeighborRBF().resolve(vectors)(vectors)
    np.testing.assert_allclose(ssl.kernel_(vectors), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (NeighborDiffusion(0), "n_neighbors must be a whole number of at least 1"),
        (NeighborDiffusion(time=-1), 'time must be a number of at least 0 or "auto"'),
        (NeighborDiffusion(time="long"), 'time must be a number of at least 0 or "auto"'),  # type: ignore[arg-type]
        (NeighborDiffusion(n_eigenvectors=0), "n_eigenvectors"),
        (NeighborDiffusion(max_rows=2), "max_rows"),
    ],
)
def test_bad_parameters_raise_an_error(vectors: Array, kernel: NeighborDiffusion, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GPSSL(2, kernel=kernel).fit(vectors)


def test_too_few_rows_and_no_rows_raise_an_error(vectors: Array) -> None:
    with pytest.raises(ValueError, match="at least 3 distinct rows, but there are 2"):
        GPSSL(2, kernel=NeighborDiffusion()).fit(np.repeat([[0.0, 1.0], [1.0, 0.0]], 5, axis=0))
    with pytest.raises(ValueError, match="takes its graph from the training rows"):
        (2.0 * NeighborDiffusion() + sk.WhiteKernel())(vectors)


def documents() -> tuple[list[str], NDArray[np.intp]]:
    """The words of two topics drift: documents far apart in time have no word in common."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    begin = rng.integers(0, 50, 300)
    topics = ["animal", "vehicle"]
    return [" ".join(f"{topics[y[i]]}{word}" for word in begin[i] + rng.choice(10, 4, replace=False)) for i in range(300)], y


def test_neighbors_by_any_kernel() -> None:
    """An RBF orders rows as Euclidean distance does, so the graph of vectors has the same edges."""
    X = np.random.default_rng(0).standard_normal((60, 2))
    by_kernel = NeighborDiffusion(5, kernel=sk.RBF(1.0)).resolve(X)
    similarity = sk.RBF(1.0)(by_kernel.rows)
    found = KernelSpace(by_kernel.rows, sk.RBF(1.0)).search(by_kernel.rows, 6)
    np.testing.assert_array_equal(found.places, np.argsort(-similarity, axis=1, kind="stable")[:, :6])
    np.testing.assert_allclose(found.distances**2, 2 - 2 * np.take_along_axis(similarity, found.places, axis=1), atol=1e-12)
    scaled = KernelSpace(by_kernel.rows, 9.0 * sk.RBF(1.0)).search(by_kernel.rows, 6)
    np.testing.assert_allclose(scaled.distances, found.distances, atol=1e-7)


@pytest.mark.parametrize("n_values", [1, 2, 6, 40])
@pytest.mark.parametrize("k", [1, 7, 79, 80])
def test_rows_that_are_as_similar_are_found_in_their_order(n_values: int, k: int) -> None:
    """A stable sort of all similarities is the slow and obvious version; the fewer values there are, the more rows are as similar."""
    X = np.random.default_rng(n_values).integers(0, n_values, (80, 2)).astype(float)
    similarity = np.round(sk.RBF(1.0)(X), 12)
    found = KernelSpace(X, sk.RBF(1.0)).search(X, k)
    np.testing.assert_array_equal(found.places, np.argsort(-similarity, axis=1, kind="stable")[:, :k])


def test_few_labels_are_enough_for_documents_of_two_topics() -> None:
    texts, y = documents()
    labels = np.where(np.arange(300) < 4, y, -1)
    scores = {}
    for name, kernel in {"diffusion": NeighborDiffusion(kernel=TfidfKernel()), "cosine": TfidfKernel()}.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            scores[name] = MarginalizedClassifier(GPSSL(5, kernel=kernel), random_state=0).fit(texts, labels).score(texts, y)
    assert scores["diffusion"] > 0.95
    assert scores["diffusion"] > scores["cosine"] + 0.05


def test_documents_that_have_nothing_in_common_with_any_return_to_the_prior() -> None:
    texts, _ = documents()
    ssl = GPSSL(3, kernel=NeighborDiffusion(kernel=TfidfKernel()), random_state=0).fit(texts)
    unknown = ["zygote quark", "plinth"]
    np.testing.assert_allclose(ssl.std(unknown), 1.0, atol=0.02)
    assert ssl.std(texts).mean() < 0.8
    with pytest.raises(ValueError, match="Row 0 is an empty string"):
        ssl.transform([""])


def test_rows_that_a_kernel_cannot_tell_apart_are_no_problem() -> None:
    texts = [" ".join(words) for words in permutations(["one", "two", "three"])] + [f"word{place} other{place % 3}" for place in range(20)]
    ssl = GPSSL(2, kernel=NeighborDiffusion(4, kernel=TfidfKernel()), random_state=0).fit(texts)
    np.testing.assert_allclose(np.ptp(ssl.transform(texts[:6]), axis=0), 0.0, atol=1e-6)
