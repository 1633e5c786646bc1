"""How kernels are stored, with the vectorizers, matrices and graphs among their parameters, and what must hold of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import kernels as sk

from .. import kernels as gk
from ..kernels._columns import ColumnCode
from ._encoding import Form, ModelFileError, by_fields, by_parameters, by_scikit_learn, check_names, own_name
from ._invariants import CLASSES, Content, Declaration, Sizes, UnfitError, check

CLASSES["Kernel"] = lambda _, value: isinstance(value, sk.Kernel)
CLASSES["Weigher"] = lambda name, _: name == "sklearn.TfidfTransformer"
CLASSES["Vectorizer"] = lambda name, _: name in ("sklearn.FrozenEstimator", "sklearn.TfidfVectorizer", "sklearn.Pipeline")

LONGEST_WORD = 1000
MOST_PATTERNS = 100_000
"""Ways to choose the letters of a word; more would take minutes for a few strings."""

LENGTHS = "number >0 | list of number >0 | [D] positive | [D] floats positive | [D] whole positive"
BOUNDS = "'fixed' | list of number / list of number | [2] doubles | [D 2] doubles"
NUMBERS = "list of number | [D] doubles"
RULE = {"neighborhood": "number >0", "reduce": "'max' | 'median'", "max_rows": "int >=2", "per_column": "bool", "stretch": "number >0"}

# Kernels of scikit-learn

OF_SCIKIT_LEARN: dict[type, Declaration] = {
    sk.ConstantKernel: Declaration({"constant_value": "number >=0", "constant_value_bounds": BOUNDS}),
    sk.DotProduct: Declaration({"sigma_0": "number >=0", "sigma_0_bounds": BOUNDS}),
    sk.Exponentiation: Declaration({"kernel": "Kernel", "exponent": "number >=0"}),
    sk.ExpSineSquared: Declaration(
        {"length_scale": "number >0", "periodicity": "number >0", "length_scale_bounds": BOUNDS, "periodicity_bounds": BOUNDS}
    ),
    sk.Matern: Declaration({"length_scale": LENGTHS, "length_scale_bounds": BOUNDS, "nu": "number >0 | inf"}),
    sk.Product: Declaration({"k1": "Kernel", "k2": "Kernel"}),
    sk.RationalQuadratic: Declaration(
        {"length_scale": "number >0", "alpha": "number >0", "length_scale_bounds": BOUNDS, "alpha_bounds": BOUNDS}
    ),
    sk.RBF: Declaration({"length_scale": LENGTHS, "length_scale_bounds": BOUNDS}),
    sk.Sum: Declaration({"k1": "Kernel", "k2": "Kernel"}),
    sk.WhiteKernel: Declaration({"noise_level": "number >=0", "noise_level_bounds": BOUNDS}),
}

# Kernels of gpssl


def _check_columns(content: Content) -> None:
    for group in content.parts.get("groups", []):
        check(group, "list 3 of any", {}, content.look)
        check(group[0], "text", {}, content.look)
        check(group[1], "Kernel", {}, content.look)
    names = content.parts.get("column_names")
    if names is not None and (not all(isinstance(name, str | int | float | tuple) for name in names) or len(set(names)) < len(names)):
        raise UnfitError("column_names that are no names of columns")


def _check_gaussian(content: Content) -> None:
    """Raise `UnfitError` unless cells can be predicted from others."""
    covariance = content.parts.get("covariance")
    if covariance is None:
        return
    covariance = np.asarray(covariance, dtype=np.float64)
    variance = covariance if covariance.ndim == 1 else covariance.diagonal()
    if not (variance > 0).all() or len(variance) != content.sizes.get("D", len(variance)):
        raise UnfitError("a covariance with variances that are not positive, or too few")
    if covariance.ndim == 2:
        unit = np.sqrt(variance)
        if not np.isfinite(np.linalg.inv(covariance / np.outer(unit, unit))).all():
            raise UnfitError("a covariance that has no inverse")


def _check_mismatches(content: Content) -> None:
    length, mismatches, alphabet = content.parts.get("length", 5), content.parts.get("mismatches", 1), content.parts.get("alphabet")
    if mismatches >= length or sum(comb(length, n_wildcards) for n_wildcards in range(2 * mismatches + 1)) > MOST_PATTERNS:
        raise UnfitError("more mismatches than it can count")
    if alphabet is not None and (not alphabet or len(set(alphabet)) < len(alphabet)):
        raise UnfitError("an alphabet that is none")


def _check_positions(content: Content) -> None:
    for pair in content.parts.get("positions") or []:
        check(pair, "list 2 of any", {}, content.look)
        found: Sizes = {}
        check(pair[0], "[L] unbounded", found, content.look)
        check(pair[1], "[L] doubles", found, content.look)


def _check_vectors(content: Content) -> None:
    """Raise `UnfitError` unless the rows of a graph of neighbors suit the distance between them."""
    rows = content.parts["rows"]
    if content.parts.get("kernel") is None and (rows.ndim != 2 or rows.dtype != np.float64 or np.isnan(rows).any()):
        raise UnfitError("rows between which there are no distances")


OF_GPSSL: dict[str, Declaration] = {
    "CategoryKernel": Declaration({**RULE, "scale": "None | number >0"}),
    "ColumnKernel": Declaration(
        {"groups": "list of any", "combine": "'product' | 'sum'", "weights": f"None | {NUMBERS}", "column_names": "None | list of any"},
        also=_check_columns,
    ),
    "DiffusionKernel": Declaration(
        {
            "rows": "[n D] rows | [n] rows",
            "coordinates": "[n r] moderate",
            "scale": "None | [D] positive",
            "kernel": "None | Kernel",
            "n_neighbors": "int >=1 <n",
            "reach": "number >0",
            "fading": "number >=0",
        },
        also=_check_vectors,
    ),
    "GroupKernel": Declaration({"hashes": "[n] hashes rising", "groups": "[n] whole nonnegative"}),
    "IncompleteRBF": Declaration(
        {
            **RULE,
            "length_scale": "None | number >0 | list of number >0 | [D] positive",
            "mean": f"None | {NUMBERS}",
            "covariance": "None | list of number | list of list of number | [D D] covariance | [D] doubles",
            "open_variance": "None | list of number >=0 | [D] nonnegative",
        },
        also=_check_gaussian,
    ),
    "MismatchKernel": Declaration(
        {"length": f"int >=1 <={LONGEST_WORD}", "mismatches": "int >=0 <=100", "alphabet": "None | text", "normalize": "bool"},
        also=_check_mismatches,
    ),
    "NearestNeighborGP": Declaration({"n_neighbors": "int >=1", "kernel": "None | Kernel", "max_rows": "int >=2"}),
    "NearestNeighborKernel": Declaration(
        {"kernel": "Kernel", "rows": "[n D] doubles", "scale": "[D] positive", "n_neighbors": "int >=1 <=n"},
    ),
    "NeighborDiffusion": Declaration({"n_neighbors": "int >=1", "kernel": "None | Kernel", "per_column": "bool", "max_rows": "int >=3"}),
    "NeighborRBF": Declaration(RULE),
    "OrdinalKernel": Declaration(
        {"levels": "None | list of any", "kernel": "None | Kernel", "positions": "None | list of any"}, also=_check_positions
    ),
    "PairKernel": Declaration({"pairs": "[P 2] whole | list of list 2 of int >=0"}),
    "PositionKernel": Declaration({"stretch": "number >0", "max_rows": "int >=2", "scale": "None | number >0"}),
    "PrecomputedKernel": Declaration({"gram": "[n n] symmetric | [n n] floats symmetric | [n n] whole symmetric | list of any"}),
    "RandomWalkKernel": Declaration({"decay": "number >0", "n_steps": "int >=1 <=10000", "node_label": "text"}),
    "ShortestPathKernel": Declaration({"node_label": "text"}),
    "SpectrumKernel": Declaration({"length": f"int >=1 <={LONGEST_WORD}", "normalize": "bool"}),
    "StandardizedKernel": Declaration({"columns": "None | list of ColumnCode", "length_scale": "None | number >0", "scores": "bool"}),
    "SubsequenceKernel": Declaration(
        {"length": f"int >=1 <={LONGEST_WORD}", "decay": "number >0 <=1", "max_span": "int >=1", "normalize": "bool"}
    ),
    "TfidfKernel": Declaration(
        {"vectorizer": "None | Vectorizer", "length_scale": "None | number >0", "max_rows": "None | int >=1"},
    ),
    "WeisfeilerLehmanKernel": Declaration({"n_iterations": "int >=1 <=1000", "node_label": "text"}),
}
"""Kernels of gpssl that are stored by their parameters."""


def _kernel(name: str) -> Form:
    return by_parameters(getattr(gk, name), OF_GPSSL[name])  # imported here


# Columns of tables, and graphs, which are rows


def _check_code(content: Content) -> None:
    """Raise `UnfitError` unless the cells of a column can be encoded."""
    kind, values, n_values = content.parts["kind"], content.parts["values"], content.sizes["n"]
    if kind != "category" and not np.isfinite(values).all():
        raise UnfitError("values that are not finite")
    fits = {
        "number": n_values == 2 and values[-1] > 0,
        "scores": n_values > 0 and content.sizes["m"] == n_values and bool((values[:-1] < values[1:]).all()),
        "category": n_values > 0,
        "nothing": True,
    }
    if not fits[kind]:
        raise UnfitError(f"values that are not those of a column of kind {kind!r}")


def _check_graph(content: Content) -> None:
    edges, n_nodes = content.parts["edges"], content.sizes["N"]
    if not isinstance(edges, tuple) or not isinstance(content.parts["labels"], tuple) or not all(isinstance(edge, tuple) for edge in edges):
        raise UnfitError("edges or labels that are no tuples")
    if n_nodes == 0 or any(node >= n_nodes for edge in edges for node in edge):
        raise UnfitError("edges between nodes that are not there")


_CODE = Declaration(
    {"kind": "'number' | 'scores' | 'category' | 'nothing'", "values": "[n] unbounded", "scores": "[m]", "marks_gaps": "bool"},
    also=_check_code,
)
_GRAPH = Declaration({"edges": "list of list 2 of int >=0", "labels": "list N of text", "attribute": "text"}, also=_check_graph)

# Matrices and graphs of nodes


def _sparse_apart(matrix: Any) -> dict[str, Any]:
    return {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": tuple(map(int, matrix.shape))}


def _check_sparse(content: Content) -> None:
    """Raise `UnfitError` unless all indices are within the matrix: SciPy would write outside of its arrays."""
    n_rows, n_columns = content.parts["shape"]
    starts, columns = content.parts["indptr"], content.parts["indices"]
    if len(starts) != n_rows + 1 or starts[0] != 0 or starts[-1] != len(columns) or (starts[1:] < starts[:-1]).any():
        raise UnfitError("rows that do not begin and end within it")
    if len(columns) and not 0 <= columns.min() <= columns.max() < n_columns:
        raise UnfitError("columns that are not there")


_SPARSE = Declaration(
    {"data": "[n] doubles | [n] floats | [n] whole", "indices": "[n] whole", "indptr": "[P] whole", "shape": "list 2 of int >=0"},
    also=_check_sparse,
)


def _sparse_together(parts: dict[str, Any]) -> csr_array:
    check_names(csr_array, parts, ("data", "indices", "indptr", "shape"), all_of_them=True)
    matrix = csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=parts["shape"])
    matrix.check_format(full_check=True)
    return matrix


def _check_nodes(content: Content) -> None:
    nodes, edges = content.parts["nodes"], content.parts["graph"]
    if nodes is None:
        if content.look(edges) is None:
            raise UnfitError("no graph")
        return
    check(edges, "[E 3]", {}, content.look)
    ends = edges[:, :2]
    if not (ends == np.floor(ends)).all() or not ((ends >= 0) & (ends < len(nodes))).all() or (edges[:, 2] < 0).any():
        raise UnfitError("edges between nodes that are not there, or of negative weight")
    if not all(isinstance(node, str | int | float | tuple) for node in nodes) or len(set(nodes)) < len(nodes):
        raise UnfitError("nodes without a name of their own")


_NODES = {"nodes": "None | list of any", "n_eigenvectors": "None | int >=1"}
OF_NODES = {
    "NodeDiffusion": Declaration({**_NODES, "time": "number >0"}, also=_check_nodes),
    "NodeMatern": Declaration({**_NODES, "nu": "number >0", "length_scale": "number >0"}, also=_check_nodes),
}


def _for_nodes(name: str) -> Form:
    """Store a kernel between nodes with its graph as a sparse matrix, or as edges with the names of the nodes."""
    plain = by_parameters(getattr(gk, name))

    def take_apart(kernel: Any) -> dict[str, Any]:
        parts = plain.take_apart(kernel)
        graph = parts.pop("graph")
        return {**parts, "graph": csr_array(graph), "nodes": None} if issparse(graph) else {**parts, **_graph_apart(graph)}

    def put_together(parts: dict[str, Any]) -> Any:
        graph, nodes = parts.pop("graph"), parts.pop("nodes")
        return plain.put_together({**parts, "graph": graph if nodes is None else _graph_together(graph, nodes)})

    return Form(plain.kind, take_apart, put_together, OF_NODES[name])


def _graph_apart(graph: Any) -> dict[str, Any]:
    """Return the positions of both nodes and the weight of each edge [E, 3], in the order of the graph: sums follow it."""
    if graph.is_multigraph():
        raise ModelFileError("a graph with several edges between two nodes cannot be stored: fit with networkx.Graph(graph)")
    places = {name: place for place, name in enumerate(graph.nodes)}
    edges = [(places[one], places[other], float(weight)) for one, other, weight in graph.edges(data="weight", default=1.0)]
    return {"graph": np.array(edges, dtype=np.float64).reshape(-1, 3), "nodes": list(graph.nodes)}


def _graph_together(edges: NDArray[Any], nodes: list[Any]) -> Any:
    try:
        import networkx as nx
    except ImportError as error:
        raise ModelFileError('this model has a graph, for which it needs NetworkX: pip install "gpssl[graphs]"') from error
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_weighted_edges_from((nodes[int(one)], nodes[int(other)], float(weight)) for one, other, weight in edges)
    return graph


# Vectorizers


def check_words(content: Content) -> None:
    """Raise `UnfitError` unless each word has a column of its own: SciPy would count others outside of its arrays."""
    words = content.parts.get("vocabulary_")
    if words is None:
        return
    if not all(isinstance(word, str) for word in words):
        raise UnfitError("words that are no text")
    columns = list(words.values())
    are_columns = all(isinstance(column, int | np.integer) and not isinstance(column, bool) for column in columns)
    if not columns or not are_columns or sorted(map(int, columns)) != list(range(len(columns))):
        raise UnfitError("words without columns from 0 on, one for each")
    weights = content.look(content.parts.get("_tfidf"))
    if weights is not None and weights.sizes.get("V", len(columns)) != len(columns):
        raise UnfitError("words and weights of them that are not as many")
    content.sizes["V"] = len(columns)


_VECTORIZER = Declaration(
    {
        "input": "any",  # which has its own sentence
        "analyzer": "'word' | 'char' | 'char_wb'",
        "preprocessor": "None",
        "tokenizer": "None",
        "token_pattern": "None | text",
        "dtype": "type",
        "vocabulary": "None | list of text | dict",
        "stop_words": "None | 'english' | list of text",
        "ngram_range": "list 2 of int >=1 <=100",
    },
    {"vocabulary_": "dict", "_tfidf": "Weigher"},
    shows="V",
    also=check_words,
)
_TRANSFORMER = Declaration(fitted={"idf_": "[V] nonnegative | [V] floats nonnegative", "n_features_in_": "int =V"}, shows="V")


def _only(plain: Form, attribute: str, allowed: Any, otherwise: str) -> Form:
    """Refuse objects with another value of this attribute, which would make scikit-learn read files that a model names."""

    def checked(value: Any) -> Any:
        if getattr(value, attribute) != allowed:
            raise ModelFileError(otherwise)
        return value

    def put_together(parts: dict[str, Any]) -> Any:
        return checked(plain.put_together(parts))

    return Form(plain.kind, lambda value: plain.take_apart(checked(value)), put_together, plain.declaration)


def _vectorizer() -> Form:
    from sklearn.feature_extraction.text import TfidfVectorizer

    why = 'a vectorizer that reads files cannot be stored: set_params(input="content") first'
    return _only(by_scikit_learn(TfidfVectorizer, _VECTORIZER, private=("_tfidf",)), "input", "content", why)


def _pipeline() -> Form:
    from sklearn.pipeline import Pipeline

    why = "a pipeline with a memory, from which scikit-learn would run code, cannot be stored: set_params(memory=None) first"
    return _only(by_scikit_learn(Pipeline, _PIPELINE), "memory", None, why)


def _check_steps(content: Content) -> None:
    """Let a pipeline show what its steps do: columns of the first, classes of the last."""
    for step in content.parts["steps"]:
        check(step, "list 2 of any", {}, content.look)
        shown = content.look(step[1])
        if shown is None:
            raise UnfitError("a step that is no estimator")
        content.sizes.update({letter: size for letter, size in shown.sizes.items() if letter not in content.sizes or letter == "K"})


_PIPELINE = Declaration({"steps": "list of any", "verbose": "bool"}, shows="J K V", also=_check_steps)


def _show_inside(content: Content) -> None:
    shown = content.look(content.parts["estimator"])
    if shown is None:
        raise UnfitError("no estimator")
    content.sizes.update(shown.sizes)


FROZEN = Declaration({"estimator": "any"}, shows="M D J K V S P", also=_show_inside)


def imported_when_met(module: str, declarations: dict[str, Declaration], make: Callable[..., Form]) -> dict[str, Callable[[], Form]]:
    """Return forms of classes of another library, which few models have: they are imported when a model has one."""
    library = module.split(".")[0]
    return {f"{library}.{name}": partial(_form_of_imported, make, module, name, one) for name, one in declarations.items()}


def _form_of_imported(make: Callable[..., Form], module: str, name: str, declaration: Declaration) -> Form:
    return make(getattr(import_module(module), name), declaration)


KERNEL_FORMS: dict[str, Callable[[], Form]] = {
    **{f"gpssl.{name}": partial(_kernel, name) for name in OF_GPSSL},
    **{own_name(kind): partial(by_parameters, kind, declaration) for kind, declaration in OF_SCIKIT_LEARN.items()},
    **{f"gpssl.{name}": partial(_for_nodes, name) for name in OF_NODES},
    **imported_when_met("sklearn.compose", {"make_column_selector": Declaration({"pattern": "None | text"})}, by_fields),
    **imported_when_met("sklearn.feature_extraction.text", {"TfidfTransformer": _TRANSFORMER}, by_scikit_learn),
    "gpssl.ColumnCode": lambda: by_fields(ColumnCode, _CODE),
    "gpssl.LabelledGraph": lambda: by_fields(gk.LabeledGraph, _GRAPH),
    "scipy.csr_array": lambda: Form(csr_array, _sparse_apart, _sparse_together, _SPARSE),
    "sklearn.FrozenEstimator": lambda: by_parameters(FrozenEstimator, FROZEN),
    "sklearn.Pipeline": _pipeline,
    "sklearn.TfidfVectorizer": _vectorizer,
}
