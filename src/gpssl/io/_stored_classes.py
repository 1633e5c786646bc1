"""The classes that may be in a model file, with their names there. Nothing else is read, whatever a file says.

The names are part of the format: a class that is renamed keeps its name here. Where a class is removed, or its parts change, older
files must stay readable, or else the format gets a new number.

Classifiers, regressors, clusterings and pools are in this file, all others in `_stored_kernels.py`, `_stored_heads.py` and
`_stored_models.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core._draws import FunctionDraws
from ..downstream._marginal import inner
from ..downstream._pool import RepresentationPool, checked_members
from ..downstream._pool_members import Member
from ..downstream._pool_parts import DrawnMember, KernelMembers, TransformedMember
from ..downstream._predictors import MarginalizedClassifier, MarginalizedRegressor
from ..downstream._weighting import MemberShare
from ._encoding import Form, Forms, ModelFileError, by_fields, by_fit
from ._invariants import CLASSES, Content, Declaration, Shown, UnfitError, check
from ._stored_heads import HEAD_FORMS, JOBS, RANDOM_STATE, SEED, check_classes
from ._stored_kernels import KERNEL_FORMS
from ._stored_models import COLUMNS, MODEL_FORMS, OF_COLUMNS

CLUSTERED = (
    *("representation_", "functions_", "labels_", "probabilities_", "n_clusters_", "n_clusters_proba_", "one_cloud_proba_", "centers_"),
    *("_scale", "_seed"),
)
HEADED = (
    *("representation_", "functions_", "heads_", "n_labeled_", "classes_"),
    *("members_", "draw_weights_", "n_effective_draws_"),  # since draws are weighed
)
STORED_AS = {"n_labeled_": "n_labelled_"}
"""Attributes whose name in a file is the one they had when files of this format were first written."""

OWN = ("gpssl.Posterior", "gpssl.GPSSL", "gpssl.GPPrior")
"""Representations whose sizes are known; those of scikit-learn show the columns that they take."""
PARTS = ("gpssl.KernelMembers", "gpssl.DrawnMember", "gpssl.TransformedMember")
CLASSES["Part"] = lambda name, _: name in PARTS
CLASSES["Transformer"] = lambda name, value: name == "gpssl.Posterior" or hasattr(value, "transform")

# Columns


def _check_same_columns(*models: Any) -> None:
    """Raise ModelFileError unless all of these that are fitted to columns have the same ones."""
    known = [vars(model) for model in map(inner, models) if not type(model).__module__.startswith("sklearn.")]  # which check by themselves
    for name in COLUMNS[:2]:
        found = [list(np.atleast_1d(one[name])) for one in known if name in one]
        if any(one != found[0] for one in found) or (name == COLUMNS[0] and 0 < len(found) < len(known)):
            raise ModelFileError("models in it have different columns")


# Clusterings


def _check_clustered(content: Content) -> None:
    if "centers_" in content.parts and not all(name.lstrip("_") in content.parts for name in CLUSTERED):
        raise UnfitError("only a part of what fit sets")


def _clustering() -> Form:
    from ..clustering._estimator import PosteriorClustering  # few models are one

    declaration = Declaration(
        {"max_clusters": "int >=1", "n_draws": "int >=1", "random_state": RANDOM_STATE, "representation": "None | Representation"},
        {
            **OF_COLUMNS,
            "representation_": "Representation M",
            "functions_": "FunctionDraws S J D?",
            "labels_": "[n] whole nonnegative",
            "probabilities_": "[n K] nonnegative shares",
            "n_clusters_": "int >=1 =K",
            "n_clusters_proba_": "dict",
            "one_cloud_proba_": "number >=0 <=1",
            "centers_": "[S K J] moderate",
            "scale": "[J J] moderate",
            "seed": SEED,
        },
        shows="K",
        also=_check_clustered,
    )
    plain = by_fit(PosteriorClustering, (*CLUSTERED, *COLUMNS), declaration)

    def put_together(parts: dict[str, Any]) -> Any:
        model = plain.put_together(parts)
        if "functions_" in vars(model):
            _check_same_columns(model, model.representation_, model.functions_)
        return model

    return Form(plain.kind, plain.take_apart, put_together, declaration)


# Pools


def _show_kernel_features(content: Content) -> None:
    limit = content.parts.get("limit")
    content.sizes.update(S=1, J=content.sizes["M"] if limit is None else limit)


def _show_drawn_features(content: Content) -> None:
    content.sizes["m"] = 1


def _show_transformed(content: Content) -> None:
    content.sizes.update(m=1, S=1)
    shown = content.look(content.parts["source"])
    if shown is not None and shown.name in OWN:
        content.sizes.update({letter: size for letter, size in shown.sizes.items() if letter in "JD"})
    if shown is None or shown.name == "gpssl.RepresentationPool":
        raise UnfitError("a source that transforms no rows")


_KERNEL_MEMBERS = Declaration(
    {
        "names": "list m of text",
        "prior": "[m] nonnegative",
        "features": "Features M D?",
        "basis": "[M M] orthonormal",
        "roots": "[m M] nonnegative moderate",
        "spread": "[M] nonnegative moderate",
        "limit": "None | int >=1 <=M",
    },
    shows="m S J D",
    also=_show_kernel_features,
)
_DRAWN_MEMBER = Declaration(
    {
        "names": "list 1 of text",
        "prior": "[1] nonnegative",
        "source": "Posterior M D? J | Representation M D? J?",
        "functions": "None | FunctionDraws M D? S J",
    },
    shows="m S J D",
    also=_show_drawn_features,
)
_TRANSFORMED_MEMBER = Declaration(
    {"names": "list 1 of text", "prior": "[1] nonnegative", "source": "Transformer"}, shows="m S J D", also=_show_transformed
)


def _check_pool(content: Content) -> None:
    """Raise `UnfitError` unless all members have the columns of the pool."""
    if "fitted_" in content.parts and not content.parts["fitted_"]:
        raise UnfitError("no members")
    n_columns = content.parts.get("n_features_in_")
    for shown in map(content.look, content.parts.get("fitted_", [])):
        if shown is not None and shown.sizes.get("D", n_columns) != n_columns:
            raise UnfitError("a member with other columns than its own")


_POOL = by_fit(
    RepresentationPool,
    ("fitted_", "left_out_", *COLUMNS),
    Declaration(
        {"members": "None | list of any", "random_state": RANDOM_STATE, "verbose": "bool | int >=0"},
        {**OF_COLUMNS, "fitted_": "list of Part", "left_out_": "dict"},
        also=_check_pool,
    ),
)


def _pool_together(parts: dict[str, Any]) -> RepresentationPool:
    pool: RepresentationPool = _POOL.put_together(parts)
    if pool.members is not None:
        checked_members(pool.members)
    names = vars(pool).get("feature_names_in_")
    if names is not None and len(names) != pool.n_features_in_:
        raise ModelFileError("a pool in it has names for other columns than its own")
    return pool


# Classifiers and regressors


def _check_headed(content: Content) -> None:
    """Raise `UnfitError` unless there is a head for each member, which takes as many draws and dimensions as that gives."""
    if "heads_" not in content.parts:
        return
    if "representation_" not in content.parts:
        raise UnfitError("heads without a representation")
    is_pool = isinstance(inner(content.parts["representation_"]), RepresentationPool)
    if is_pool:
        check(content.parts.get("functions_"), "list of Part", {}, content.look)
        given: list[Shown | None] = [
            shown for part in map(content.look, content.parts["functions_"]) if part is not None for shown in [part] * part.sizes["m"]
        ]
        if content.parts["n_draws"] is not None and any(shown is None or "S" not in shown.sizes for shown in given):
            raise UnfitError("members without drawn functions")
    elif content.parts.get("n_draws") is None:
        given = [_one_draw(content.look(inner(content.parts["representation_"])))]
    else:
        check(content.parts.get("functions_"), "FunctionDraws", {}, content.look)
        given = [content.look(content.parts["functions_"])]
    heads = content.parts["heads_"] if is_pool else [content.parts["heads_"]]
    if not isinstance(heads, list) or len(heads) != len(given) or not heads:
        raise UnfitError("heads that are not as many as its members")
    n_draws = sum(_check_head(head, one, content) for head, one in zip(heads, given, strict=True))
    if "draw_weights_" in content.parts:
        check(content.parts["draw_weights_"], "[S] shares", {"S": n_draws}, content.look)


def _one_draw(shown: Shown | None) -> Shown | None:
    """Return what a representation shows whose mean is the only draw."""
    known = {} if shown is None or shown.name not in OWN else {name: size for name, size in shown.sizes.items() if name in "JD"}
    return Shown("", {**known, "S": 1})


def _check_head(head: Any, features: Shown | None, content: Content) -> int:
    """Return the number of draws. Raise `UnfitError` unless the head suits the features of a member, and the classes."""
    expected = {} if features is None else {letter: features.sizes[letter] for letter in "SJ" if letter in features.sizes}
    if "classes_" not in content.parts:
        check(head, "RegressorHeads S J", expected, content.look)
        return expected["S"]
    check(head, "ClassifierHeads S J K", expected, content.look)
    if not np.array_equal(head.classes, content.parts["classes_"]):
        raise UnfitError("heads for other classes than its own")
    return expected["S"]


def _headed(kind: type, *more: str) -> Form:
    declaration = Declaration(
        {
            "representation": "None | Representation",
            "n_draws": "None | int >=1",
            "n_jobs": JOBS,
            "random_state": RANDOM_STATE,
            "verbose": "bool | int >=0",
        },
        {
            **OF_COLUMNS,
            "representation_": "Representation",
            "functions_": "FunctionDraws | list of Part",
            "heads_": "any",
            "n_labelled_": "int >=1",
            "members_": "list of MemberShare",
            "draw_weights_": "[S] shares",
            "n_effective_draws_": "number >=0",
            **({"classes_": "[K] labels"} if "classes_" in more else {}),
        },
        shows="K",
        also=_check_headed,
    )
    plain = by_fit(kind, (*[name for name in HEADED if name != "classes_"], *more, *COLUMNS), declaration, stored_as=STORED_AS)

    def put_together(parts: dict[str, Any]) -> Any:
        model = plain.put_together(parts)
        fitted = vars(model)
        if "heads_" in fitted:
            if "classes_" in more:
                if "classes_" not in fitted:
                    raise ModelFileError("a classifier in it has no classes")
                check_classes(fitted["classes_"])
            check_is_fitted(inner(model.representation_))
            functions = fitted.get("functions_")
            _check_same_columns(model, model.representation_, *([functions] if isinstance(functions, FunctionDraws) else []))
        return model

    return Form(kind, plain.take_apart, put_together, declaration)


# All classes by their names in files

_FORMS: dict[str, Callable[[], Form]] = {
    **KERNEL_FORMS,
    **HEAD_FORMS,
    **MODEL_FORMS,
    "gpssl.DrawnMember": lambda: by_fields(DrawnMember, _DRAWN_MEMBER),
    "gpssl.KernelMembers": lambda: by_fields(KernelMembers, _KERNEL_MEMBERS),
    "gpssl.MarginalizedClassifier": partial(_headed, MarginalizedClassifier, "classes_"),
    "gpssl.MarginalizedRegressor": partial(_headed, MarginalizedRegressor),
    "gpssl.Member": lambda: by_fields(Member, Declaration({"name": "text", "form": "None | 'kernel' | 'draws'", "weight": "number >=0"})),
    "gpssl.MemberShare": lambda: by_fields(MemberShare, Declaration({"name": "text", "share": "number >=0 <=1.000001"})),
    "gpssl.PosteriorClustering": _clustering,
    "gpssl.RepresentationPool": lambda: Form(RepresentationPool, _POOL.take_apart, _pool_together, _POOL.declaration),
    "gpssl.TransformedMember": lambda: by_fields(TransformedMember, _TRANSFORMED_MEMBER),
}

FORMS = Forms(_FORMS, {"gpssl.LabeledGraph": "gpssl.LabelledGraph", "gpssl.OptimizationReport": "gpssl.OptimisationReport"})
