"""The classes that may be in a model file, with their names there. Nothing else is read, whatever a file says.

The names are part of the format: a class that is renamed keeps its name here. Where a class is removed, or its parts change, older
files must stay readable, or else the format gets a new number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import kernels as sk

from .. import baselines, downstream
from .. import kernels as gk
from ..core._draws import FunctionDraws, KnownRows
from ..core._features import Features
from ..core._moments import Moments, Spectrum
from ..core._objective import Objective
from ..core._posterior import DrawnWeights, GaussianWeights, PointWeights, Posterior
from ..downstream._gp_head import SoftmaxGP, SoftmaxHeads
from ..downstream._heads import ClassifierClones, RegressorClones
from ..downstream._laplace import Laplace
from ..downstream._linear import BayesianLinearRegression, LinearHeads
from ..downstream._logistic import BayesianLogisticRegression, LogisticHeads
from ..downstream._pool import RepresentationPool
from ..downstream._pool_members import Member
from ..downstream._pool_parts import DrawnMember, KernelMembers, TransformedMember
from ..downstream._predictors import MarginalizedClassifier, MarginalizedRegressor
from ..downstream._weighting import MemberShare
from ..estimator import GPSSL
from ..inference._mode import Mode, ModeReport
from ..inference._sampling import Sampling, SamplingReport
from ..inference._variational import OptimizationReport, Variational
from ..kernels._columns import ColumnCode
from ._encoding import Form, Forms, ModelFileError, by_fields, by_fit, by_parameters, by_scikit_learn, check_names, check_shapes, own_name

# Kernels, and the vectorizers, matrices and graphs among their parameters


def _sparse_apart(matrix: Any) -> dict[str, Any]:
    return {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": tuple(map(int, matrix.shape))}


def _sparse_together(parts: dict[str, Any]) -> csr_array:
    check_names(csr_array, parts, ("data", "indices", "indptr", "shape"), all_of_them=True)
    matrix = csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=parts["shape"])
    matrix.check_format(full_check=True)
    return matrix


def _for_nodes(kind: type) -> Form:
    """Store a kernel between nodes with its graph as a sparse matrix, or as edges with the names of the nodes."""
    plain = by_parameters(kind)

    def take_apart(kernel: Any) -> dict[str, Any]:
        parts = plain.take_apart(kernel)
        graph = parts.pop("graph")
        return {**parts, "graph": csr_array(graph), "nodes": None} if issparse(graph) else {**parts, **_graph_apart(graph)}

    def put_together(parts: dict[str, Any]) -> Any:
        graph, nodes = parts.pop("graph"), parts.pop("nodes")
        return plain.put_together({**parts, "graph": graph if nodes is None else _graph_together(graph, nodes)})

    return Form(kind, take_apart, put_together)


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


KERNELS = (
    *("CategoryKernel", "ColumnKernel", "DiffusionKernel", "GroupKernel", "IncompleteRBF", "MismatchKernel", "NearestNeighborGP"),
    *("NearestNeighborKernel", "NeighborDiffusion", "NeighborRBF", "OrdinalKernel", "PairKernel", "PositionKernel", "PrecomputedKernel"),
    *("RandomWalkKernel", "ShortestPathKernel", "SpectrumKernel", "StandardizedKernel", "SubsequenceKernel", "TfidfKernel"),
    "WeisfeilerLehmanKernel",
)
"""Kernels of gpssl that are stored by their parameters."""


def _kernel(name: str) -> Form:
    return by_parameters(getattr(gk, name))  # imported here


# Models, and what they consist of

CLUSTERED = (
    *("representation_", "functions_", "labels_", "probabilities_", "n_clusters_", "n_clusters_proba_", "one_cloud_proba_", "centers_"),
    *("_scale", "_seed"),
)
COLUMNS = ("n_features_in_", "feature_names_in_", "_sklearn_output_config")
"""Attributes in which scikit-learn keeps the columns of rows and the form of results."""

FITTED = ("kernel_", "features_", "moments_", "_seed", "_nugget", "_spectrum", "_fitted_objective", "objective_", "report_")
HEADED = (
    *("representation_", "functions_", "heads_", "n_labeled_", "classes_"),
    *("members_", "draw_weights_", "n_effective_draws_"),  # since draws are weighed
)
STORED_AS = {"n_labeled_": "n_labelled_"}
"""Attributes whose name in a file is the one they had when files of this format were first written."""
DRAWS = ("n_draws", "n_components", "features", "directions", "seed", "rng", "known", "frozen", "outgrown", "settled")

_GPSSL = by_fit(GPSSL, (*FITTED, "_weights", *COLUMNS))
_FEATURES = by_fields(Features, {"points": "M …", "factor": "M M"})


def _gpssl_apart(model: GPSSL) -> dict[str, Any]:
    """Store only the weights of the posterior: the other parts have the rest of it."""
    parts = _GPSSL.take_apart(model)
    if "_posterior" in vars(model):  # computed when it is first used
        parts["fitted"]["weights"] = model._posterior.weights
    if "features_" in vars(model) and hasattr(parts["parameters"]["inducing"], "columns"):
        parts["parameters"]["inducing"] = model.features_.points  # the data frame as the kernel has prepared it
    return parts


def _gpssl_together(parts: dict[str, Any]) -> GPSSL:
    model: GPSSL = _GPSSL.put_together(parts)
    weights = model.__dict__.pop("_weights", None)
    if "moments_" in vars(model):
        features, moments = model.features_, model.moments_
        if moments.fingerprint != features.fingerprint or len(moments.first) != features.n_points:
            raise ModelFileError("its moments belong to another kernel or other inducing points than its own")
    if weights is not None:
        check_shapes(GPSSL, {"points": model.features_.points, "basis": model._spectrum.basis}, {"points": "M …", "basis": "M M"})
        # A view, as `GPSSL._infer` has it, so that sums over it run in the same order.
        model._posterior = Posterior(model.features_, model._spectrum.basis[:, : weights.mean.shape[1]], weights)
    return model


def _features_apart(features: Features) -> dict[str, Any]:
    """Store the fingerprint as well, which other versions of other libraries might compute differently."""
    return {**_FEATURES.take_apart(features), "fingerprint": features.fingerprint}


def _features_together(parts: dict[str, Any]) -> Features:
    fingerprint = str(parts.pop("fingerprint"))
    features: Features = _FEATURES.put_together(parts)
    vars(features)["fingerprint"] = fingerprint
    return features


def _draws_apart(draws: FunctionDraws) -> dict[str, Any]:
    parts = {name.lstrip("_"): value for name, value in draws.__getstate__().items() if name != "card_"}
    return {**parts, "rng": parts["rng"].bit_generator.state}


def _draws_together(parts: dict[str, Any]) -> FunctionDraws:
    """Build the functions. Files of 0.1.0 have, instead of the columns, the model that the functions were drawn from, as "prepare"."""
    is_old = parts.get("prepare") is not None and isinstance(parts["prepare"], GPSSL | baselines.GPPrior)
    source = vars(parts.pop("prepare")) if is_old else parts
    columns = {name: source[name] for name in COLUMNS[:2] if name in source}
    parts = {name: value for name, value in parts.items() if name not in columns}
    check_names(FunctionDraws, parts, DRAWS, all_of_them=True)
    known = parts["known"]
    if not isinstance(parts["features"], Features) or not isinstance(known, KnownRows):
        raise ModelFileError("its functions belong to no model")
    arrays = {"points": parts["features"].points, "directions": parts["directions"], "whitened": known.whitened, "noise": known.noise}
    check_shapes(FunctionDraws, arrays, {"points": "M …", "directions": "M F", "whitened": "M n", "noise": "n F"})
    if arrays["directions"].shape[1] != parts["n_draws"] * parts["n_components"]:
        raise ModelFileError("its functions are not as many as it says")
    generator = np.random.default_rng(0)
    generator.bit_generator.state = parts["rng"]
    state = {name if name in ("n_draws", "n_components") else f"_{name}": value for name, value in parts.items()}
    draws = FunctionDraws.__new__(FunctionDraws)
    draws.__setstate__({**state, **columns, "_rng": generator})
    return draws


def _random_state_together(parts: dict[str, Any]) -> np.random.RandomState:
    random_state = np.random.RandomState(0)
    random_state.set_state(parts)
    return random_state


# All classes by their names in files


def _only(plain: Form, attribute: str, allowed: Any, otherwise: str) -> Form:
    """Refuse objects with another value of this attribute, which would make scikit-learn read files that a model names."""

    def checked(value: Any) -> Any:
        if getattr(value, attribute) != allowed:
            raise ModelFileError(otherwise)
        return value

    return Form(plain.kind, lambda value: plain.take_apart(checked(value)), lambda parts: checked(plain.put_together(parts)))


def _pipeline() -> Form:
    from sklearn.pipeline import Pipeline

    why = "a pipeline with a memory, from which scikit-learn would run code, cannot be stored: set_params(memory=None) first"
    return _only(by_scikit_learn(Pipeline), "memory", None, why)


def _vectorizer() -> Form:
    from sklearn.feature_extraction.text import TfidfVectorizer

    why = 'a vectorizer that reads files cannot be stored: set_params(input="content") first'
    plain = _only(by_scikit_learn(TfidfVectorizer, private=("_tfidf",)), "input", "content", why)

    def put_together(parts: dict[str, Any]) -> Any:
        vectorizer = plain.put_together(parts)
        _check_words(vectorizer)
        return vectorizer

    return Form(TfidfVectorizer, plain.take_apart, put_together)


def _check_words(vectorizer: Any) -> None:
    """Raise ModelFileError unless each word has a column of its own: SciPy would count others outside of its arrays."""
    words = vars(vectorizer).get("vocabulary_")
    if words is None:
        return
    columns: list[Any] = list(words.values()) if isinstance(words, dict) else [None]
    are_columns = all(isinstance(column, int | np.integer) and not isinstance(column, bool) for column in columns)
    if not are_columns or sorted(map(int, columns)) != list(range(len(columns))) or not all(isinstance(word, str) for word in words):
        raise ModelFileError("the words of its texts have no columns from 0 on, one for each")
    weigher = vars(vectorizer).get("_tfidf")
    weights = None if weigher is None else vars(weigher).get("idf_")
    if weights is not None and np.shape(weights) != (len(columns),):
        raise ModelFileError("the words of its texts and their weights are not as many")


def _perceptrons() -> Form:
    from ..downstream._perceptron import Perceptrons  # few models have them

    return by_fields(Perceptrons, _PERCEPTRONS)


def _clustering() -> Form:
    from ..clustering._estimator import PosteriorClustering  # few models are one

    return by_fit(PosteriorClustering, (*CLUSTERED, *COLUMNS))


def _imported_when_met(make: Callable[[type], Form], module: str, *names: str) -> dict[str, Callable[[], Form]]:
    """Return forms of classes of another library, which few models have: they are imported when a model has one."""
    library = module.split(".")[0]
    return {f"{library}.{name}": partial(_form_of_imported, make, module, name) for name in names}


def _form_of_imported(make: Callable[[type], Form], module: str, name: str) -> Form:
    return make(getattr(import_module(module), name))


def _under_their_own_names(make: Callable[[type], Form], *kinds: type) -> dict[str, Callable[[], Form]]:
    """Return forms by the classes' names. A class that is renamed moves to the list of those with a name of their own in files."""
    return {own_name(kind): partial(make, kind) for kind in kinds}


_KNOWN_ROWS = {"hashes": "n", "whitened": "M n", "factor": "n n", "jitter": "n", "noise": "n F"}
_PERCEPTRONS = {"hidden_weights": "S J H", "hidden_bias": "S 1 H", "output_weights": "S H K", "output_bias": "S 1 K", "classes": "K"}
_LINEAR_HEADS = {"center": "S J", "coefficients": "S J", "covariance": "S J J", "intercept_variance": "S", "noise_variance": "S"}
_SOFTMAX_HEADS = {
    "classes": "K",
    "center": "S J",
    "labeled": "S n J",
    "unit": "S",
    "scales": "V",
    "scale_weights": "S V",
    "dual": "S V L n",
    "curvature_root": "S V L n",
    "log_evidence": "S",
}
_LAPLACE = {"center": "S J", "mode": "S C I", "mean": "S C I", "covariance": "S P P", "precision": "S"}

_FORMS: dict[str, Callable[[], Form]] = {
    **{f"gpssl.{name}": partial(_kernel, name) for name in KERNELS},
    **_under_their_own_names(by_parameters, sk.ConstantKernel, sk.DotProduct, sk.Exponentiation, sk.ExpSineSquared, sk.Matern, sk.Product),
    **_under_their_own_names(by_parameters, sk.RationalQuadratic, sk.RBF, sk.Sum, sk.WhiteKernel, FrozenEstimator),
    **_under_their_own_names(by_parameters, Mode, Sampling, Variational),
    **_under_their_own_names(by_parameters, BayesianLinearRegression, BayesianLogisticRegression, SoftmaxGP),
    **_under_their_own_names(by_fields, ColumnCode, DrawnMember, Member, MemberShare, TransformedMember),
    **_under_their_own_names(by_fields, ModeReport, Objective, RegressorClones, SamplingReport),
    **_imported_when_met(by_fields, "sklearn.compose", "make_column_selector"),
    **_imported_when_met(by_scikit_learn, "sklearn.linear_model", "BayesianRidge", "LinearRegression", "LogisticRegression", "Ridge"),
    **_imported_when_met(by_scikit_learn, "sklearn.preprocessing", "StandardScaler"),
    **_imported_when_met(by_scikit_learn, "sklearn.feature_extraction.text", "TfidfTransformer"),
    "gpssl.ClassifierClones": lambda: by_fields(ClassifierClones, {"classes": "K"}),
    "gpssl.DrawnWeights": lambda: by_fields(DrawnWeights, {"draws": "S J r"}),
    "gpssl.Features": lambda: Form(Features, _features_apart, _features_together),
    "gpssl.FunctionDraws": lambda: Form(FunctionDraws, _draws_apart, _draws_together),
    "gpssl.GPPrior": lambda: by_fit(baselines.GPPrior, ("kernel_", "posterior_", "_seed", *COLUMNS)),
    "gpssl.GPSSL": lambda: Form(GPSSL, _gpssl_apart, _gpssl_together),
    "gpssl.GaussianWeights": lambda: by_fields(GaussianWeights, {"mean": "J r", "std": "J r"}),
    "gpssl.KnownRows": lambda: by_fields(KnownRows, _KNOWN_ROWS),
    "gpssl.LabelledGraph": lambda: by_fields(gk.LabeledGraph),
    "gpssl.Laplace": lambda: by_fields(Laplace, _LAPLACE),
    "gpssl.LinearHeads": lambda: by_fields(LinearHeads, _LINEAR_HEADS),
    "gpssl.LogisticHeads": lambda: by_fields(LogisticHeads, {"classes": "K", "contrasts": "K C"}),
    "gpssl.MarginalizedClassifier": lambda: by_fit(MarginalizedClassifier, (*HEADED, *COLUMNS), stored_as=STORED_AS),
    "gpssl.MarginalizedRegressor": lambda: by_fit(MarginalizedRegressor, (*HEADED, *COLUMNS), stored_as=STORED_AS),
    "gpssl.KernelMembers": lambda: by_fields(KernelMembers, {"prior": "m", "basis": "M M", "roots": "m M", "spread": "M"}),
    "gpssl.PosteriorClustering": _clustering,
    "gpssl.RepresentationPool": lambda: by_fit(RepresentationPool, ("fitted_", "left_out_", *COLUMNS)),
    "gpssl.SoftmaxHeads": lambda: by_fields(SoftmaxHeads, _SOFTMAX_HEADS),
    "gpssl.Moments": lambda: by_fields(Moments, {"first": "M", "second": "M M"}),
    "gpssl.NodeDiffusion": lambda: _for_nodes(gk.NodeDiffusion),
    "gpssl.NodeMatern": lambda: _for_nodes(gk.NodeMatern),
    "gpssl.OptimisationReport": lambda: by_fields(OptimizationReport),
    "gpssl.PerceptronClassifier": lambda: by_parameters(downstream.PerceptronClassifier),
    "gpssl.Perceptrons": _perceptrons,
    "gpssl.PointWeights": lambda: by_fields(PointWeights, {"mean": "J r"}),
    "gpssl.Posterior": lambda: by_fields(Posterior, {"basis": "M r"}),
    "gpssl.Spectrum": lambda: by_fields(Spectrum, {"eigenvalues": "r", "basis": "M M"}),
    "numpy.RandomState": lambda: Form(np.random.RandomState, lambda state: dict(state.get_state(legacy=False)), _random_state_together),
    "scipy.csr_array": lambda: Form(csr_array, _sparse_apart, _sparse_together),
    "sklearn.Pipeline": _pipeline,
    "sklearn.TfidfVectorizer": _vectorizer,
}

FORMS = Forms(_FORMS, {"gpssl.LabeledGraph": "gpssl.LabelledGraph", "gpssl.OptimizationReport": "gpssl.OptimisationReport"})
