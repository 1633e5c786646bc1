"""The default members: which kernels rows of each kind get, and how warm what is learned with them is."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import RBF, Kernel

from gpssl import GPSSL, RepresentationPool
from gpssl.core._checked_rows import check_rows
from gpssl.data._rows import SliceableRows
from gpssl.downstream._gp_head import warn_unless_converged
from gpssl.downstream._pool_members import Member, default_kernel, default_members
from gpssl.kernels import IncompleteRBF, NeighborDiffusion, NeighborRBF, PositionKernel, SpectrumKernel, StandardizedKernel
from gpssl.kernels._protocol import resolve_kernel
from messages import messages

Array = NDArray[np.float64]

X = np.random.default_rng(0).normal(size=(60, 3))


def resolved(kernel: Any, rows: Any) -> Array:
    """The kernel matrix over these rows, as a model would have it. [n, n]"""
    own = GPSSL(2, kernel=kernel)
    checked = check_rows(own, rows, kernel, reset=True)
    assert isinstance(checked, SliceableRows)
    return np.asarray(resolve_kernel(kernel, checked, seed=0)(checked.X, checked.X), dtype=np.float64)


def kernels_of(members: list[Member]) -> dict[str, Kernel]:
    """The kernels that learn nothing, by the names of their members."""
    return {member.name: member.representation for member in members if isinstance(member.representation, Kernel)}


def learners_of(members: list[Member]) -> dict[str, GPSSL]:
    return {member.name: member.representation for member in members if isinstance(member.representation, GPSSL)}


def test_what_is_learned_has_five_dimensions_at_one_nth_and_fifteen_at_ten_nths() -> None:
    learners = learners_of(default_members(X))
    assert {(learner.n_components, learner.temperature) for learner in learners.values()} == {(5, 1 / 60), (15, 10 / 60)}
    for name, learner in learners.items():
        assert name.endswith(f", {learner.n_components} dimensions learned")
        assert not learner.inference.precise  # type: ignore[union-attr]
    assert {member.form for member in default_members(X)} == {"kernel"}
    assert {member.weight for member in default_members(X)} == {1.0}


@pytest.mark.parametrize(("n_rows", "dimensions"), [(15, set()), (16, {5}), (45, {5}), (46, {5, 15}), (None, set())])
def test_each_dimension_needs_more_than_three_rows(n_rows: int | None, dimensions: set[int]) -> None:
    rows: Any = X[:n_rows] if n_rows else csr_array(X)
    members = default_members(rows) if n_rows else default_members(part for part in [X])
    assert {learner.n_components for learner in learners_of(members).values()} == dimensions
    given = default_members(X, n_rows=46.5)
    assert {learner.temperature for learner in learners_of(given).values()} == {1 / 46.5, 10 / 46.5}


def test_tables_get_their_columns_and_kernels_at_several_lengthscales() -> None:
    kernels = kernels_of(default_members(X))
    assert list(kernels) == [
        *("columns", "columns as normal scores", "similar rows", "broadly similar rows", "very similar rows"),
        *("similar rows by normal scores", "rows alike in most columns", "rows alike in most columns by normal scores"),
        *("rows very alike in most columns by normal scores", "neighbors of neighbors"),
    ]
    learned = {name.rsplit(", ", 1)[0] for name in learners_of(default_members(X))}
    assert set(kernels) - learned == {"columns", "columns as normal scores", "broadly similar rows"}
    assert isinstance(kernels["neighbors of neighbors"], NeighborDiffusion)
    # A longer lengthscale makes rows more alike.
    means = [resolved(kernels[name], X).mean() for name in ("very similar rows", "similar rows", "broadly similar rows")]
    assert means == sorted(means)
    assert len(set(means)) == 3
    # Normal scores see the order of the cells and not their size, all others see it.
    stretched = np.sign(X) * np.abs(X) ** 3
    for name, kernel in kernels.items():
        if name != "neighbors of neighbors":
            assert np.allclose(resolved(kernel, stretched), resolved(kernel, X)) == ("normal scores" in name), name


def test_gaps_are_guessed_from_other_cells() -> None:
    gaps = X.copy()
    gaps[0, 0] = np.nan
    frame = pd.DataFrame(gaps, columns=["a", "b", "c"])
    for rows in (gaps, frame):
        names = set(kernels_of(default_members(rows))) - set(kernels_of(default_members(X)))
        assert names == {
            "similar rows, gaps guessed from other cells",
            "neighbors of neighbors, similar rows, gaps guessed from other cells",
        }
    assert isinstance(kernels_of(default_members(gaps))["similar rows, gaps guessed from other cells"], IncompleteRBF)


def test_sparse_rows_get_lengthscales_by_neighbors() -> None:
    kernels = kernels_of(default_members(csr_array(X)))
    assert kernels == {f"similar rows, nearest 1 in {n}": NeighborRBF(n, reduce="median") for n in (5, 10, 20)}


def test_sequences_are_compared_by_their_parts_and_by_places_where_they_are_aligned() -> None:
    aligned = ["ABCDE", "ABDDE", "CBCDA"] * 10
    names = [f"sequences with the same parts of {length} letters" for length in (2, 3, 5)]
    kernels = kernels_of(default_members([*aligned, "ABCDEF"]))
    assert [name for name in kernels if not name.startswith("neighbors")] == names
    assert [kernels[name] for name in names] == [SpectrumKernel(2), SpectrumKernel(3), SpectrumKernel(5)]
    more = set(kernels_of(default_members(aligned))) - set(kernels)
    assert {name for name in more if not name.startswith("neighbors")} == {
        "sequences with the same letters at the same places",
        "sequences with nearly the same letters at the same places",
    }
    assert isinstance(default_kernel(aligned), SpectrumKernel)
    assert PositionKernel(0.5) in kernels_of(default_members(aligned)).values()
    words = kernels_of(default_members(["a text of words", "another text"] * 10))
    assert list(words) == ["texts with the same words", "neighbors of neighbors, texts with the same words"]


# Tables with free text


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    frame = messages(60).rename(columns={"message": "text"})
    frame["size"] = np.random.default_rng(1).normal(size=60)
    return frame[["text", "size"]]


def words(texts: Any) -> Array:
    """Cosines between texts by their words. [n, n]"""
    counts = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    return (counts @ counts.T).toarray()


def text_members(frame: pd.DataFrame, texts: list[str]) -> dict[str, Kernel]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kernels_of(default_members(frame, texts=texts))


def test_texts_and_other_columns_have_half_of_the_sum_each(table: pd.DataFrame) -> None:
    kernels = text_members(table, ["text"])
    alone = resolved(kernels["texts with the same words"], table)
    linear, scores = (resolved(kernel, table[["size"]]) for kernel in (StandardizedKernel("linear"), StandardizedKernel(scores=True)))
    np.testing.assert_allclose(resolved(kernels["columns and words"], table), (linear + alone) / 2, atol=1e-12)
    np.testing.assert_allclose(resolved(kernels["similar rows or the same words"], table), (scores + alone) / 2, atol=1e-12)
    both = resolved(kernels["similar rows with the same words"], table)
    np.testing.assert_allclose(both, (1 + scores) / 2 * (1 + alone) / 2, atol=1e-12)
    np.testing.assert_allclose(np.diagonal(alone), 1.0)
    assert np.corrcoef(alone.ravel(), words(table["text"]).ravel())[0, 1] > 0.9
    names = {name.rsplit(", ", 1)[0] for name in learners_of(default_members(table, texts=["text"]))}
    assert "columns and words" not in names
    for name in ("texts with the same words", "similar rows or the same words", "similar rows with the same words"):
        assert name in names


def test_several_texts_are_members_of_their_own_and_a_sum(table: pd.DataFrame) -> None:
    texts = ["text", "second", "third", "fourth"]
    frame = table.assign(second=table["text"][::-1].to_numpy(), third=table["text"].to_numpy(), fourth=table["text"].to_numpy())
    kernels = text_members(frame, texts)
    each = [resolved(kernels[f"texts with the same words in {name!r}"], frame) for name in texts[:3]]
    assert "texts with the same words in 'fourth'" not in kernels
    np.testing.assert_allclose(
        resolved(kernels["texts with the same words in any column"], frame), (each[0] + each[1] + each[2] + each[0]) / 4, atol=1e-12
    )
    linear = resolved(StandardizedKernel("linear"), frame[["size"]])
    mean = (each[0] + each[1] + each[2] + each[0]) / 4
    np.testing.assert_allclose(resolved(kernels["columns and words"], frame), (linear + mean) / 2, atol=1e-12)
    assert "similar rows with the same words" not in kernels


def test_texts_alone_need_no_other_columns(table: pd.DataFrame) -> None:
    kernels = text_members(table[["text"]], ["text"])
    assert list(kernels) == [
        "texts with the same words",
        "neighbors of neighbors, texts with the same words",
        "neighbors of neighbors, texts with the same parts of words",
    ]


def test_columns_whose_texts_differ_in_most_rows_are_warned_of() -> None:
    frame = pd.DataFrame({"id": [f"n{i}" for i in range(40)], "size": X[:40, 0], "kind": ["a", "b"] * 20})
    with pytest.warns(UserWarning, match="'id': most rows have a text of their own|id: most rows have a text of their own"):
        default_members(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        default_members(frame[["size", "kind"]])
        default_members(frame[:9][["id", "size"]])  # too few to tell


# Around a model


def test_a_pool_around_a_model_has_the_model_and_others_with_its_kernel() -> None:
    ssl = GPSSL(2, kernel=RBF(1.5), random_state=0).fit(X)
    pool = RepresentationPool.around(ssl, random_state=7)
    assert pool.random_state == 7
    members = [Member(*member) for member in pool.members or []]
    own = "similar rows by the model's kernel"
    assert [member.name for member in members] == [
        *(f"{own}, 2 dimensions learned", own, f"{own}, 15 dimensions learned", "neighbors of neighbors"),
        *("neighbors of neighbors, 5 dimensions learned", "neighbors of neighbors, 15 dimensions learned", "columns"),
    ]
    assert {member.form for member in members} == {"kernel"}
    assert isinstance(members[0].representation, FrozenEstimator)
    assert members[0].representation.estimator is ssl
    assert members[1].representation == RBF(1.5)
    assert members[2].representation.kernel == RBF(1.5)
    assert members[2].representation.temperature == 10 / 60
    assert members[-1].representation == StandardizedKernel("linear")
    assert isinstance(members[3].representation, NeighborDiffusion)
    assert members[3].representation.kernel == RBF(1.5)


def test_processes_that_did_not_converge_are_counted() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_unless_converged(np.array([True, True]), stacklevel=1)
    with pytest.warns(UserWarning, match="2 of 3 Gaussian processes did not converge"):
        warn_unless_converged(np.array([True, False, False]), stacklevel=1)
