"""The classes that may be in a model file, with their names there. Nothing else is read, whatever a file says.

The names are part of the format: a class that is renamed keeps its name here. Where a class is removed, or its parts change, older
files must stay readable, or else the format gets a new number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from .. import baselines, downstream
from ..core._draws import FunctionDraws, KnownRows
from ..core._features import Features
from ..core._moments import Moments, Spectrum
from ..core._objective import Objective
from ..core._posterior import DrawnWeights, GaussianWeights, PointWeights, Posterior
from ..downstream._heads import ClassifierClones, RegressorClones
from ..downstream._laplace import Laplace
from ..downstream._logistic import BayesianLogisticRegression, LogisticHeads
from ..downstream._predictors import MarginalizedClassifier
from ..estimator import GPSSL
from ..inference._mode import Mode, ModeReport
from ..inference._sampling import Sampling, SamplingReport
from ..inference._variational import OptimizationReport, Variational
from ._archive import ModelFileError
from ._encoding import Form, Forms, by_fields, by_fit, by_parameters, by_scikit_learn, check_names, check_shapes
from ._stored_kernels import KERNELS

COLUMNS = ("n_features_in_", "feature_names_in_", "_sklearn_output_config")
"""Attributes in which scikit-learn keeps the columns of rows and the form of results."""

FITTED = ("kernel_", "features_", "moments_", "_seed", "_nugget", "_spectrum", "_fitted_objective", "objective_", "report_")
HEADED = ("representation_", "functions_", "heads_", "n_labeled_", "classes_")
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
        _check_belongs(model.features_, model.moments_)
    if weights is not None:
        check_shapes(GPSSL, {"points": model.features_.points, "basis": model._spectrum.basis}, {"points": "M …", "basis": "M M"})
        # A view, as `GPSSL._infer` has it, so that sums over it run in the same order.
        model._posterior = Posterior(model.features_, model._spectrum.basis[:, : weights.mean.shape[1]], weights)
    return model


def _check_belongs(features: Features, moments: Moments) -> None:
    if moments.fingerprint != features.fingerprint or len(moments.first) != features.n_points:
        raise ModelFileError("its moments belong to another kernel or other inducing points than its own")


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
    source = vars(parts.pop("prepare")) if isinstance(parts.get("prepare"), GPSSL | baselines.GPPrior) else parts
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


def _random_state_apart(random_state: np.random.RandomState) -> dict[str, Any]:
    return dict(random_state.get_state(legacy=False))


def _random_state_together(parts: dict[str, Any]) -> np.random.RandomState:
    random_state = np.random.RandomState(0)
    random_state.set_state(parts)
    return random_state


def _pipeline() -> Form:
    """Refuse pipelines with a memory, from which scikit-learn would unpickle."""
    plain = by_scikit_learn(Pipeline)

    def take_apart(pipeline: Any) -> dict[str, Any]:
        if pipeline.memory is not None:
            raise ModelFileError("the memory of a pipeline cannot be stored: set_params(memory=None) first.")
        return plain.take_apart(pipeline)

    def put_together(parts: dict[str, Any]) -> Any:
        pipeline = plain.put_together(parts)
        if pipeline.memory is not None:
            raise ModelFileError("its pipeline has a memory, from which it would run code")
        return pipeline

    return Form(Pipeline, take_apart, put_together)


def _linear_heads() -> Form:
    from ..downstream._linear import LinearHeads

    return by_fields(LinearHeads, _LINEAR_HEADS)


def _perceptrons() -> Form:
    from ..downstream._perceptron import Perceptrons

    return by_fields(Perceptrons, _PERCEPTRONS)


_KNOWN_ROWS = {"hashes": "n", "whitened": "M n", "factor": "n n", "jitter": "n", "noise": "n F"}
_PERCEPTRONS = {"hidden_weights": "S J H", "hidden_bias": "S 1 H", "output_weights": "S H K", "output_bias": "S 1 K", "classes": "K"}
_LINEAR_HEADS = {"center": "S J", "coefficients": "S J", "covariance": "S J J", "intercept_variance": "S", "noise_variance": "S"}
_LAPLACE = {"center": "S J", "mode": "S C I", "mean": "S C I", "covariance": "S P P", "precision": "S"}

MODELS: dict[str, Callable[[], Form]] = {
    "gpssl.GPSSL": lambda: Form(GPSSL, _gpssl_apart, _gpssl_together),
    "gpssl.GPPrior": lambda: by_fit(baselines.GPPrior, ("kernel_", "posterior_", "_seed", *COLUMNS)),
    "gpssl.MarginalizedClassifier": lambda: by_fit(MarginalizedClassifier, (*HEADED, *COLUMNS), stored_as=STORED_AS),
    "gpssl.MarginalizedRegressor": lambda: by_fit(downstream.MarginalizedRegressor, (*HEADED, *COLUMNS), stored_as=STORED_AS),
    "gpssl.Variational": lambda: by_parameters(Variational),
    "gpssl.Sampling": lambda: by_parameters(Sampling),
    "gpssl.Mode": lambda: by_parameters(Mode),
    "gpssl.OptimisationReport": lambda: by_fields(OptimizationReport),
    "gpssl.SamplingReport": lambda: by_fields(SamplingReport),
    "gpssl.ModeReport": lambda: by_fields(ModeReport),
    "gpssl.Features": lambda: Form(Features, _features_apart, _features_together),
    "gpssl.Moments": lambda: by_fields(Moments, {"first": "M", "second": "M M"}),
    "gpssl.Spectrum": lambda: by_fields(Spectrum, {"eigenvalues": "r", "basis": "M M"}),
    "gpssl.Objective": lambda: by_fields(Objective),
    "gpssl.Posterior": lambda: by_fields(Posterior, {"basis": "M r"}),
    "gpssl.GaussianWeights": lambda: by_fields(GaussianWeights, {"mean": "J r", "std": "J r"}),
    "gpssl.PointWeights": lambda: by_fields(PointWeights, {"mean": "J r"}),
    "gpssl.DrawnWeights": lambda: by_fields(DrawnWeights, {"draws": "S J r"}),
    "gpssl.FunctionDraws": lambda: Form(FunctionDraws, _draws_apart, _draws_together),
    "gpssl.KnownRows": lambda: by_fields(KnownRows, _KNOWN_ROWS),
    "gpssl.BayesianLogisticRegression": lambda: by_parameters(BayesianLogisticRegression),
    "gpssl.BayesianLinearRegression": lambda: by_parameters(downstream.BayesianLinearRegression),
    "gpssl.PerceptronClassifier": lambda: by_parameters(downstream.PerceptronClassifier),
    "gpssl.LogisticHeads": lambda: by_fields(LogisticHeads, {"classes": "K", "contrasts": "K C"}),
    "gpssl.Laplace": lambda: by_fields(Laplace, _LAPLACE),
    "gpssl.LinearHeads": _linear_heads,
    "gpssl.Perceptrons": _perceptrons,
    "gpssl.ClassifierClones": lambda: by_fields(ClassifierClones, {"classes": "K"}),
    "gpssl.RegressorClones": lambda: by_fields(RegressorClones),
    "numpy.RandomState": lambda: Form(np.random.RandomState, _random_state_apart, _random_state_together),
    "sklearn.BayesianRidge": lambda: by_scikit_learn(BayesianRidge),
    "sklearn.LinearRegression": lambda: by_scikit_learn(LinearRegression),
    "sklearn.LogisticRegression": lambda: by_scikit_learn(LogisticRegression),
    "sklearn.Pipeline": _pipeline,
    "sklearn.Ridge": lambda: by_scikit_learn(Ridge),
    "sklearn.StandardScaler": lambda: by_scikit_learn(StandardScaler),
}


FORMS = Forms({**KERNELS, **MODELS}, {"gpssl.LabeledGraph": "gpssl.LabelledGraph", "gpssl.OptimizationReport": "gpssl.OptimisationReport"})
