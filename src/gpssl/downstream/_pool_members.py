"""What a member of a pool is, and the default pool: which representations the labels choose from, for each kind of rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import Kernel

from .._runtime import MOST_TEXTS, POOL_INDUCING, POOL_TOLERANCE, TEXT_NEIGHBORS
from ..data._errors import listed
from ..data._frames import MOST_CATEGORIES
from ..data._free_text import text_columns
from ..data._rows import Rows, is_lazy, is_path
from ..estimator import GPSSL
from ..inference import Variational
from ..kernels._protocol import takes_missing_cells, takes_vectors
from ..kernels.neighbors import NeighborDiffusion
from ..kernels.standardized import StandardizedKernel
from ..kernels.vectors import NeighborRBF

Form = Literal["kernel", "draws"]

LEARNED = ((5, 1.0), (15, 10.0))
"""Dimensions and temperature, in units of one over the number of rows, of what is learned with each kernel."""
FEWEST_ROWS = 3
"""Rows for each dimension, below which none is learned."""
NAME_OF_OWN = "similar rows by the model's kernel"
GRAPH_ROWS = 2000
"""Rows that make the graph of neighbors in a pool."""
MOST_PARTS = 20_000
"""Parts of words, of three letters, by which texts are compared: the most frequent ones."""
MOST_TEXT_COLUMNS = 3
"""Columns of free text that are members of their own."""
FEWEST_TEXTS = 10
"""Texts of a column below which nobody can tell whether most rows have one of their own."""
LOOKED_AT = 100
"""Rows that tell what kind of rows they are."""
MOST_WORDS = 1
"""Words of a text up to which it is taken for a sequence of letters."""


class Member(NamedTuple):
    """One representation in a pool."""

    name: str
    """What the representation is, in words."""
    representation: Any
    """A kernel, which learns nothing; `GPSSL`; another estimator with `draw_functions` or `transform`; or one of these, fitted, in
    `sklearn.frozen.FrozenEstimator`."""
    form: Form | None = None
    """"draws": functions with a head each. "kernel": one head on the features of the posterior kernel, which needs a kernel or an estimator
    with a posterior. None is "draws" for estimators that have draws, and "kernel" for kernels; all others have their one representation."""
    weight: float = 1.0
    """How likely it is before labels are seen, relative to the others."""


def default_members(X: Any, n_rows: float | None = None, texts: Sequence[str] | None = None) -> list[Member]:
    """Return the default members for rows of this kind: each kernel as it is, and what is learned with it.

    `n_rows` is the number of rows, or the sum of their weights, where X does not tell it; `texts` are the columns of a table that hold free
    text, where its cells shall not decide.
    """
    n_rows = _count(X) if n_rows is None else n_rows
    members = []
    for name, kernel, learns in _kernels_for(X, _texts_in(X) if texts is None else list(texts)):
        members.append(Member(name, kernel, "kernel"))
        members += _learned(name, kernel, n_rows) if learns and n_rows is not None else []
    return members


def default_kernel(X: Any) -> Kernel:
    """Return the first kernel of the default pool that something is learned with, for rows of this kind."""
    return next(kernel for _, kernel, learns in _kernels_for(X, _texts_in(X)) if learns)


def members_around(ssl: GPSSL) -> list[Member]:
    """Return a fitted `GPSSL` as a member, and others with the same kernel."""
    n_rows, kernel = int(ssl.moments_.weight), ssl.kernel_
    neighbors = NeighborDiffusion(kernel=kernel, max_rows=GRAPH_ROWS)
    columns = [Member("columns", StandardizedKernel("linear"), "kernel")] if takes_vectors(kernel) or takes_missing_cells(kernel) else []
    return [
        Member(f"{NAME_OF_OWN}, {ssl.n_components} dimensions learned", FrozenEstimator(ssl), "kernel"),
        Member(NAME_OF_OWN, kernel, "kernel"),
        *_learned(NAME_OF_OWN, kernel, n_rows, LEARNED[1:]),
        Member("neighbors of neighbors", neighbors, "kernel"),
        *_learned("neighbors of neighbors", neighbors, n_rows),
        *columns,
    ]


def _learned(name: str, kernel: Kernel, n_rows: float, settings: Sequence[tuple[int, float]] = LEARNED) -> list[Member]:
    """Return members that learn with a kernel; none where rows are too few."""
    return [
        Member(f"{name}, {n_components} dimensions learned", _learner(kernel, n_components, warmth / n_rows), "kernel")
        for n_components, warmth in settings
        if n_rows > FEWEST_ROWS * n_components
    ]


def _learner(kernel: Kernel, n_components: int, temperature: float) -> GPSSL:
    return GPSSL(
        n_components,
        kernel=kernel,
        temperature=temperature,
        residual_tolerance=POOL_TOLERANCE,
        max_inducing=POOL_INDUCING,
        inference=Variational(precise=False),  # near enough: labels weigh what comes out
    )


def _count(X: Any) -> int | None:
    """Return the number of rows; None where it is known only after they are read."""
    if isinstance(X, Rows):
        return X.n_rows
    if hasattr(X, "shape"):
        return int(X.shape[0]) if isinstance(X.shape[0], int | np.integer) else None
    return len(X) if hasattr(X, "__len__") else None


def _texts_in(X: Any) -> list[Any]:
    """Return the columns of a table that hold free text."""
    if isinstance(X, Rows):
        return X.text_names
    return text_columns(X) if hasattr(X, "columns") and not is_lazy(X) else []


def _kernels_for(X: Any, texts: list[Any]) -> Iterator[tuple[str, Kernel, bool]]:
    """Yield names in plain words, kernels, and whether something is learned with them."""
    some = _some_objects(X)
    if some and all(isinstance(row, str) for row in some):
        are_words = np.median([len(row.split()) for row in some]) > MOST_WORDS
        yield from _for_words() if are_words else _for_sequences(aligned=len(set(map(len, some))) == 1)
    elif some:
        yield from _for_graphs()
    elif issparse(X) or _comes_in_parts(X):
        for neighborhood in (5, 10, 20):
            yield f"similar rows, nearest 1 in {neighborhood}", NeighborRBF(neighborhood, reduce="median"), True
    else:
        others = [name for name in _names_of_columns(X) if name not in texts] if texts else []
        _warn_of_names(X, texts)
        if not texts or others:
            yield from _for_tables()
            yield from _for_gaps(X[others] if others and not isinstance(X, Rows) else X)
        if texts:
            yield from _for_texts(texts, others)


def _warn_of_names(X: Any, texts: list[Any]) -> None:
    """Warn of columns of a data frame whose texts differ in most rows, which say little as categories: IDs, or numbers with units."""
    if isinstance(X, Rows) or not hasattr(X, "columns") or is_lazy(X):
        return
    names = [name for name in X.columns if name not in texts and _differs_in_most_rows(X[name])]
    if names:
        warnings.warn(
            f"{listed(map(str, names))}: most rows have a text of their own there, which says nothing as a category. Drop such columns; "
            "where they hold numbers with units, dates or times as text, gpssl.label and gpssl.data.open_table read them.",
            UserWarning,
            stacklevel=2,
        )


def _differs_in_most_rows(column: Any) -> bool:
    if getattr(column.dtype, "kind", "O") in "fiubMmc" or type(column.dtype).__name__ in ("CategoricalDtype", "Categorical", "Enum"):
        return False
    texts = [cell for cell in column.to_numpy().tolist() if isinstance(cell, str)]
    return len(texts) >= FEWEST_TEXTS and len(set(texts)) > MOST_CATEGORIES * len(texts)


def _names_of_columns(X: Any) -> list[Any]:
    return list(X.names or []) if isinstance(X, Rows) else list(X.columns)


def _comes_in_parts(X: Any) -> bool:
    """Return whether X holds numbers that are read part by part, for which kernels on vectors are made; files may hold any table."""
    return is_lazy(X) and not isinstance(X, Rows | np.memmap) and not is_path(X)


def _for_tables() -> Iterator[tuple[str, Kernel, bool]]:
    yield "columns", StandardizedKernel("linear"), False
    yield "columns as normal scores", StandardizedKernel("linear", scores=True), False
    yield "similar rows", StandardizedKernel("squared exponential"), True
    yield "broadly similar rows", StandardizedKernel("squared exponential", stretch=3.0), False
    yield "very similar rows", StandardizedKernel("squared exponential", stretch=0.5), True
    yield "similar rows by normal scores", StandardizedKernel("squared exponential", scores=True), True
    yield "rows alike in most columns", StandardizedKernel("laplace", stretch=2.0), True
    yield "rows alike in most columns by normal scores", StandardizedKernel("laplace", scores=True, stretch=2.0), True
    yield "rows very alike in most columns by normal scores", StandardizedKernel("laplace", scores=True), True
    yield "neighbors of neighbors", NeighborDiffusion(kernel=StandardizedKernel(), max_rows=GRAPH_ROWS), True


def _for_gaps(X: Any) -> Iterator[tuple[str, Kernel, bool]]:
    """Yield kernels that guess missing cells from the others of their row, for a table in memory with gaps."""
    if hasattr(X, "isna") and bool(X.isna().to_numpy().any()):
        from ..kernels.tables import for_table

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `_warn_of_names` tells what matters of it
            yield from _with_neighbors("similar rows, gaps guessed from other cells", for_table(X))
    elif isinstance(X, np.ndarray) and X.dtype.kind == "f" and bool(np.isnan(X).any()):
        from ..kernels.incomplete import IncompleteRBF

        yield from _with_neighbors("similar rows, gaps guessed from other cells", IncompleteRBF())


def _for_texts(texts: list[Any], others: list[Any]) -> Iterator[tuple[str, Kernel, bool]]:
    """Yield kernels for the columns of a table that hold free text: each alone, all together, and together with the other columns."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    from ..kernels.documents import TfidfKernel
    from ..kernels.tables import ColumnKernel

    words = TfidfKernel(max_rows=MOST_TEXTS)
    by_letters = TfidfKernel(
        TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), sublinear_tf=True, max_features=MOST_PARTS), max_rows=MOST_TEXTS
    )
    groups = [(f"text {name!r}", words, [name]) for name in texts]
    if len(texts) == 1:
        yield from _with_neighbors("texts with the same words", ColumnKernel(groups), TEXT_NEIGHBORS)
    else:
        yield from _with_neighbors("texts with the same words in any column", ColumnKernel(groups, combine="sum"), TEXT_NEIGHBORS)
        for group, name in zip(groups[:MOST_TEXT_COLUMNS], texts, strict=False):
            yield f"texts with the same words in {name!r}", ColumnKernel([group]), True
    parts = ColumnKernel([(name, by_letters, columns) for name, _, columns in groups], combine="sum")
    neighbors = NeighborDiffusion(TEXT_NEIGHBORS, kernel=parts, max_rows=GRAPH_ROWS)
    yield "neighbors of neighbors, texts with the same parts of words", neighbors, True
    if others:
        halves = [0.5, *[0.5 / len(texts)] * len(texts)]
        linear = ColumnKernel([("other columns", StandardizedKernel("linear"), others), *groups], combine="sum", weights=halves)
        similar = ColumnKernel([("other columns", StandardizedKernel(scores=True), others), *groups], combine="sum", weights=halves)
        yield "columns and words", linear, False
        yield from _with_neighbors("similar rows or the same words", similar, TEXT_NEIGHBORS)
        if len(texts) == 1:
            both = ColumnKernel([("other columns", StandardizedKernel(scores=True), others), *groups], weights=[0.5, 0.5])
            yield "similar rows with the same words", both, True


def _for_words() -> Iterator[tuple[str, Kernel, bool]]:
    from ..kernels.documents import TfidfKernel

    yield from _with_neighbors("texts with the same words", TfidfKernel())


def _for_sequences(*, aligned: bool) -> Iterator[tuple[str, Kernel, bool]]:
    from ..kernels.strings import PositionKernel, SpectrumKernel

    for length in (2, 3, 5):
        yield from _with_neighbors(f"sequences with the same parts of {length} letters", SpectrumKernel(length))
    if aligned:
        yield from _with_neighbors("sequences with the same letters at the same places", PositionKernel())
        yield "sequences with nearly the same letters at the same places", PositionKernel(0.5), True


def _for_graphs() -> Iterator[tuple[str, Kernel, bool]]:
    from ..kernels.graphs import WeisfeilerLehmanKernel

    for n_steps in (1, 3):
        name = f"graphs with the same surroundings of nodes, {n_steps} steps far"
        yield from _with_neighbors(name, WeisfeilerLehmanKernel(n_steps))


def _with_neighbors(name: str, kernel: Kernel, n_neighbors: int = 10) -> Iterator[tuple[str, Kernel, bool]]:
    yield name, kernel, True
    yield f"neighbors of neighbors, {name}", NeighborDiffusion(n_neighbors, kernel=kernel, max_rows=GRAPH_ROWS), True


def _some_objects(X: Any) -> list[Any]:
    """Return the first rows where rows are objects, such as texts and graphs; none for tables, arrays and whatever is read in parts."""
    if isinstance(X, Rows | str) or hasattr(X, "columns") or issparse(X) or not hasattr(X, "__len__") or len(X) == 0:
        return []
    if isinstance(X, np.ndarray):
        return list(X[:LOOKED_AT]) if X.ndim == 1 and X.dtype.kind in "OU" else []
    some = list(X[:LOOKED_AT]) if isinstance(X, list | tuple) else []
    return [] if any(isinstance(row, list | tuple | np.ndarray | int | float) for row in some) else some
