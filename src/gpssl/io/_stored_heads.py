"""How trained heads are stored, and what must hold of them: those of gpssl, and the estimators of scikit-learn that may be heads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .. import downstream
from ..downstream._gp_head import SoftmaxGP, SoftmaxHeads
from ..downstream._heads import ClassifierClones, RegressorClones
from ..downstream._laplace import Laplace
from ..downstream._linear import BayesianLinearRegression, LinearHeads
from ..downstream._logistic import BayesianLogisticRegression, LogisticHeads
from ._encoding import Form, by_fields, by_parameters, by_scikit_learn
from ._invariants import CLASSES, Content, Declaration, UnfitError
from ._stored_kernels import imported_when_met

MOST_SAMPLES = 2**16
"""Samples of weights or logits for the variance of a probability."""
MOST_JOBS = 4096
SEED = "int >=0 <18446744073709551616"
RANDOM_STATE = "None | int >=0 <4294967296 | RandomState"
JOBS = f"None | int >=-{MOST_JOBS} <={MOST_JOBS}"

CLASSIFIERS = ("gpssl.LogisticHeads", "gpssl.SoftmaxHeads", "gpssl.Perceptrons", "gpssl.ClassifierClones")
REGRESSORS = ("gpssl.LinearHeads", "gpssl.RegressorClones")
LINEAR = ("BayesianRidge", "LinearRegression", "LogisticRegression", "Ridge")
CLASSES["ClassifierHeads"] = lambda name, _: name in CLASSIFIERS
CLASSES["RegressorHeads"] = lambda name, _: name in REGRESSORS
CLASSES["RandomState"] = lambda name, _: name == "numpy.RandomState"
CLASSES["OneClassifier"] = lambda _, value: hasattr(value, "predict_proba") and hasattr(value, "classes_")
CLASSES["OneRegressor"] = lambda _, value: hasattr(value, "predict") and not hasattr(value, "predict_proba")


def check_classes(classes: Any) -> None:
    """Raise `UnfitError` unless these are different labels of classes in rising order, at least two."""
    if len(classes) < 2 or not (classes[:-1] < classes[1:]).all():
        raise UnfitError("classes that do not rise, or are fewer than two")


def _check_laplace(content: Content) -> None:
    if content.sizes["P"] != content.sizes["C"] * (content.sizes["J"] + 1):
        raise UnfitError("a covariance of other weights than its own")


def _check_logistic(content: Content) -> None:
    check_classes(content.parts["classes"])
    if content.sizes["C"] != content.sizes["K"] - 1:
        raise UnfitError("contrasts that are not one less than its classes")


def _check_softmax(content: Content) -> None:
    check_classes(content.parts["classes"])
    if content.sizes["L"] != (1 if content.sizes["K"] == 2 else content.sizes["K"]):
        raise UnfitError("latent functions that are not as many as its classes need")


def _check_clones(content: Content) -> None:
    """Raise `UnfitError` unless each head knows classes that there are, and has as many columns as the others."""
    check_classes(content.parts["classes"])
    known = set(content.parts["classes"].tolist())
    for head in content.parts["heads"]:
        if not set(np.asarray(head.classes_).tolist()) <= known:
            raise UnfitError("heads for classes that it does not have")


def _check_regressors(content: Content) -> None:
    if content.parts["noise_std"] is None and not all(type(head).__name__ == "BayesianRidge" for head in content.parts["heads"]):
        raise UnfitError("heads that do not tell the noise")


def _check_logistic_regression(content: Content) -> None:
    if "classes_" in content.parts:
        check_classes(content.parts["classes_"])
        if content.sizes.get("R") != (1 if content.sizes["K"] == 2 else content.sizes["K"]):
            raise UnfitError("coefficients for other classes than its own")


def _check_is_fitted(*names: str) -> Callable[[Content], None]:
    def check(content: Content) -> None:
        if any(name in content.parts for name in names) and not all(name in content.parts for name in names):
            raise UnfitError("only a part of what fit sets")

    return check


def _both(*checks: Callable[[Content], None]) -> Callable[[Content], None]:
    def check(content: Content) -> None:
        for one in checks:
            one(content)

    return check


# Heads of gpssl

_CLONES = Declaration({"classes": "[K] labels", "heads": "list S of OneClassifier J", "n_jobs": JOBS}, shows="S J K", also=_check_clones)
_REGRESSORS = Declaration(
    {"heads": "list S of OneRegressor J", "noise_std": "None | number >=0", "n_jobs": JOBS}, shows="S J", also=_check_regressors
)
_LAPLACE = Declaration(
    {
        "center": "[S J] moderate",
        "mode": "[S C J+1] moderate",
        "mean": "[S C J+1] moderate",
        "covariance": "[S P P] moderate covariance",
        "precision": "[S] nonnegative",
        "log_evidence": "[S]",
        "n_iterations": "[S] whole",
        "converged": "[S] flags",
    },
    shows="S J C",
    also=_check_laplace,
)
_LINEAR_HEADS = Declaration(
    {
        "center": "[S J] moderate",
        "intercept": "number",
        "coefficients": "[S J] moderate",
        "covariance": "[S J J] moderate",
        "intercept_variance": "[S] nonnegative",
        "noise_variance": "[S] nonnegative",
        "prior_precision": "[S] nonnegative",
        "log_evidence": "None | [S]",
    },
    shows="S J",
)
_LOGISTIC_HEADS = Declaration(
    {
        "classes": "[K] labels",
        "contrasts": "[K C] orthonormal",
        "posterior": "Laplace S J C",
        "predictive": "'probit' | 'sampled'",
        "n_samples": f"int >=1 <={MOST_SAMPLES}",
        "seed": SEED,
    },
    shows="S J K",
    also=_check_logistic,
)
_PERCEPTRONS = Declaration(
    {
        "classes": "[K] labels",
        "hidden_weights": "[S J H] moderate",
        "hidden_bias": "[S 1 H] moderate",
        "output_weights": "[S H K] moderate",
        "output_bias": "[S 1 K] moderate",
        "losses": "[S]",
        "epochs": "[S] whole",
    },
    shows="S J K",
    also=lambda content: check_classes(content.parts["classes"]),
)
_SOFTMAX_HEADS = Declaration(
    {
        "classes": "[K] labels",
        "center": "[S J] moderate",
        "labeled": "[S n J] moderate",
        "unit": "[S] positive",
        "scales": "[V] positive",
        "scale_weights": "[S V] shares",
        "intercept_variance": "number >0",
        "dual": "[S V L n] moderate",
        "curvature_root": "[S V L n] nonnegative moderate",
        "log_evidence": "[S]",
        "n_samples": f"int >=2 <={MOST_SAMPLES}",
        "seed": SEED,
    },
    shows="S J K",
    also=_check_softmax,
)


def _perceptrons() -> Form:
    from ..downstream._perceptron import Perceptrons  # few models have them

    return by_fields(Perceptrons, _PERCEPTRONS)


# Estimators that may be heads, of which `fit_draws` trains clones

_COLUMNS = {"n_features_in_": "int =J", "feature_names_in_": "[J] names"}
OF_SCIKIT_LEARN = {
    "BayesianRidge": Declaration(
        {},
        {
            **_COLUMNS,
            "coef_": "[J] moderate",
            "intercept_": "number",
            "alpha_": "number >0",
            "lambda_": "number >=0",
            "sigma_": "[J J] moderate covariance",
            "X_offset_": "[J] moderate",
            "X_scale_": "[J] moderate",
        },
        shows="J",
        also=_check_is_fitted("coef_", "intercept_", "alpha_", "sigma_", "n_features_in_"),
    ),
    "LinearRegression": Declaration(
        {}, {**_COLUMNS, "coef_": "[J] moderate", "intercept_": "number"}, shows="J", also=_check_is_fitted("coef_", "intercept_")
    ),
    "LogisticRegression": Declaration(
        {"n_jobs": JOBS, "random_state": RANDOM_STATE},
        {**_COLUMNS, "classes_": "[K] labels", "coef_": "[R J] moderate", "intercept_": "[R] moderate"},
        shows="J K",
        also=_both(_check_is_fitted("coef_", "intercept_", "classes_", "n_features_in_"), _check_logistic_regression),
    ),
    "Ridge": Declaration(
        {"random_state": RANDOM_STATE},
        {**_COLUMNS, "coef_": "[J] moderate", "intercept_": "number"},
        shows="J",
        also=_check_is_fitted("coef_", "intercept_"),
    ),
}
_SCALER = Declaration(
    {"copy": "bool", "with_mean": "bool", "with_std": "bool"},
    {
        **_COLUMNS,
        "mean_": "None | [J] moderate",
        "var_": "None | [J] nonnegative",
        "scale_": "None | [J] positive",
    },
    shows="J",
    also=_check_is_fitted("mean_", "scale_", "n_features_in_"),
)

HEAD_FORMS: dict[str, Callable[[], Form]] = {
    **imported_when_met("sklearn.linear_model", OF_SCIKIT_LEARN, by_scikit_learn),
    **imported_when_met("sklearn.preprocessing", {"StandardScaler": _SCALER}, by_scikit_learn),
    "gpssl.BayesianLinearRegression": partial(by_parameters, BayesianLinearRegression, Declaration()),
    "gpssl.BayesianLogisticRegression": partial(by_parameters, BayesianLogisticRegression, Declaration({"random_state": RANDOM_STATE})),
    "gpssl.ClassifierClones": lambda: by_fields(ClassifierClones, _CLONES),
    "gpssl.Laplace": lambda: by_fields(Laplace, _LAPLACE),
    "gpssl.LinearHeads": lambda: by_fields(LinearHeads, _LINEAR_HEADS),
    "gpssl.LogisticHeads": lambda: by_fields(LogisticHeads, _LOGISTIC_HEADS),
    "gpssl.PerceptronClassifier": lambda: by_parameters(downstream.PerceptronClassifier, Declaration({"random_state": RANDOM_STATE})),
    "gpssl.Perceptrons": _perceptrons,
    "gpssl.RegressorClones": lambda: by_fields(RegressorClones, _REGRESSORS),
    "gpssl.SoftmaxGP": partial(by_parameters, SoftmaxGP, Declaration({"random_state": RANDOM_STATE})),
    "gpssl.SoftmaxHeads": lambda: by_fields(SoftmaxHeads, _SOFTMAX_HEADS),
}
