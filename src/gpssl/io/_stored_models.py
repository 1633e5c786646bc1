"""How representations are stored, with the features, moments, posteriors and drawn functions of theirs, and what must hold of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import comb
from typing import Any

import numpy as np

from .. import baselines
from ..core._draws import FunctionDraws, KnownRows
from ..core._features import Features, stable_cholesky
from ..core._moment_files import check_sums
from ..core._moments import FAR_BEYOND, Moments, Spectrum
from ..core._objective import VARIANCE_FORMS, Objective
from ..core._posterior import DrawnWeights, GaussianWeights, PointWeights, Posterior
from ..data._arrays import hash_rows
from ..estimator import GPSSL
from ..inference._mode import Mode, ModeReport
from ..inference._sampling import Sampling, SamplingReport
from ..inference._variational import OptimizationReport, Variational
from ..kernels._protocol import leaves, takes_missing_cells
from ..kernels.strings import SubsequenceKernel
from ._encoding import Form, ModelFileError, by_fields, by_fit, by_parameters, check_names
from ._invariants import CLASSES, ROUNDING, Content, Declaration, UnfitError, check, probe
from ._stored_heads import RANDOM_STATE, SEED
from ._stored_kernels import MOST_PATTERNS

WEIGHTS = ("gpssl.GaussianWeights", "gpssl.PointWeights", "gpssl.DrawnWeights")
REPRESENTATIONS = (
    "gpssl.GPSSL",
    "gpssl.GPPrior",
    "gpssl.RepresentationPool",
    "sklearn.FrozenEstimator",
    "sklearn.Pipeline",
    "sklearn.StandardScaler",
)
INFERENCES = ("gpssl.Mode", "gpssl.Sampling", "gpssl.Variational")
CLASSES["Weights"] = lambda name, _: name in WEIGHTS
CLASSES["Representation"] = lambda name, _: name in REPRESENTATIONS
CLASSES["Inference"] = lambda name, _: name in INFERENCES
CLASSES["Report"] = lambda name, _: name in ("gpssl.ModeReport", "gpssl.OptimisationReport", "gpssl.SamplingReport")

COLUMNS = ("n_features_in_", "feature_names_in_", "_sklearn_output_config")
"""Attributes in which scikit-learn keeps the columns of rows and the form of results."""

FITTED = ("kernel_", "features_", "moments_", "_seed", "_nugget", "_spectrum", "_fitted_objective", "objective_", "report_")
DRAWS = ("n_draws", "n_components", "features", "directions", "seed", "rng", "known", "frozen", "outgrown", "settled")

MOST_STEPS = 10_000_000
MOST_DRAWS = 2**16
MOST_GAPS = 8
"""Columns that are left out in turn to see whether a kernel can do without their cells."""

# Features and moments


def _check_features(content: Content) -> None:
    """Raise `UnfitError` unless L Lᵀ is the kernel matrix of the points with the jitter, as far as one product with a vector tells."""
    kernel, points, factor = content.parts["kernel"], content.parts["points"], content.parts["factor"]
    if points.ndim == 2:
        content.sizes["D"] = points.shape[1]
    for leaf in leaves(kernel):
        if isinstance(leaf, SubsequenceKernel):
            longest = min(leaf.max_span, max(map(len, points)))
            if longest >= leaf.length and comb(longest, leaf.length) > MOST_PATTERNS:
                raise UnfitError("a kernel that counts too many subsequences")
    with np.errstate(all="ignore"):
        covariance = np.asarray(kernel(points, points), dtype=np.float64)
        z = probe(content.sizes["M"])
        scale = float(covariance.diagonal().mean())
        error = np.abs(covariance @ z + content.parts["jitter"] * scale * z - factor @ (factor.T @ z))
        if not (error <= ROUNDING * len(z) ** 0.5 * np.abs(covariance).max()).all():
            raise UnfitError("a factor that belongs to another kernel or other points")
        if takes_missing_cells(kernel) and points.ndim == 2:
            _check_gaps(kernel, points, covariance[:MOST_GAPS, :MOST_GAPS])


def _check_gaps(kernel: Any, points: Any, alone: Any) -> None:
    """Raise `UnfitError` unless points have the same kernel beside rows with gaps, and all of them together a covariance."""
    rows = _with_gaps(points)
    try:
        together = np.asarray(kernel(rows, rows), dtype=np.float64)
    except ValueError as error:
        if "missing" in str(error):  # one of its kernels, or the kernel for a group of columns, needs all cells, and says so
            return
        raise
    if not (np.abs(together[: len(alone), : len(alone)] - alone) <= ROUNDING * np.abs(alone).max()).all():
        raise UnfitError("a kernel for which rows are others beside rows with gaps")
    stable_cholesky(together, kernel)


def _with_gaps(points: Any) -> Any:
    """Return some points, and the first of them with each cell missing in turn, and with all of them: texts are never missing."""
    n_columns = min(points.shape[1], MOST_GAPS)
    gaps = np.repeat(points[:1], n_columns + 1, axis=0)
    are_numbers = np.array([type(cell) is not str for cell in points[0].tolist()])
    for column in range(n_columns):
        gaps[column if are_numbers[column] else -1, column] = np.nan if are_numbers[column] else gaps[-1, column]
    gaps[-1, are_numbers] = np.nan
    rows = np.concatenate([points[:MOST_GAPS], gaps])
    return rows[np.sort(np.unique(hash_rows(rows, 0), return_index=True)[1])]


def _check_moments(content: Content) -> None:
    parts = content.parts
    try:
        check_sums(parts["weight"], parts["first"], parts["second"], parts["diagonal"])
    except ValueError as error:
        raise UnfitError(f"sums that are none: {error}") from error


_FEATURES = Declaration(
    {"kernel": "Kernel", "points": "[M …] rows", "factor": "[M M] lower moderate", "jitter": "number >=0", "fingerprint": "text"},
    shows="M D",
    also=_check_features,
)
_MOMENTS = Declaration(
    {
        "weight": "number >0",
        "first": "[M]",
        "second": "[M M]",
        "diagonal": "number >=0",
        "fingerprint": "text",
    },
    shows="M",
    also=_check_moments,
)
_SPECTRUM = Declaration(
    {
        "eigenvalues": "[r] nonnegative falling",
        "basis": "[M M] orthonormal",
        "residual": "number >=0",
        "tail_sum": "number >=0",
        "tail_sum_of_squares": "number >=0",
    },
    shows="M",
)
_OBJECTIVE = Declaration(
    {
        "variance_weight": "number >=0",
        "covariance_weight": "number >=0",
        "temperature": "number >0",
        "target_std": "number >0",
        "epsilon": "number >0",
        "variance_loss": " | ".join(map(repr, VARIANCE_FORMS)),
    }
)


def _features_apart(features: Features) -> dict[str, Any]:
    """Store the fingerprint as well, which other versions of other libraries might compute differently."""
    return {**by_fields(Features).take_apart(features), "fingerprint": features.fingerprint}


def _features_together(parts: dict[str, Any]) -> Features:
    fingerprint = parts.pop("fingerprint")
    features: Features = by_fields(Features).put_together(parts)
    vars(features)["fingerprint"] = fingerprint
    return features


# Posteriors and functions drawn from them

_POSTERIOR = Declaration({"features": "Features M D?", "weights": "Weights J r", "basis": "[M r] orthonormal"}, shows="M D J")
_GAUSSIAN = Declaration({"mean": "[J r] moderate", "std": "[J r] nonnegative moderate"}, shows="J r")
_POINT = Declaration({"mean": "[J r] moderate"}, shows="J r")
_DRAWN = Declaration({"draws": "[S J r] moderate"}, shows="J r")

_KNOWN_ROWS = Declaration(
    {
        "rows": "[n …] rows",
        "hashes": "[n] hashes",
        "whitened": "[M n] moderate",
        "factor": "[n n] lower moderate",
        "jitter": "[n] nonnegative",
        "noise": "[n F] moderate",
    },
    shows="n M F",
)


def _check_draws(content: Content) -> None:
    if content.sizes["F"] != content.sizes["S"] * content.sizes["J"] or content.sizes["F"] == 0:
        raise UnfitError("functions that are not as many as it says")
    settled = content.parts["settled"]
    if settled is not None:
        check(settled, "list 2 of any", {}, content.look)
        check(settled[0], "int >=0 <=n", content.sizes, content.look)
        check(settled[1], "bool", content.sizes, content.look)
    if content.parts["known"].rows.shape[1:] != content.parts["features"].points.shape[1:]:
        raise UnfitError("known rows that have other columns than its points")


_DRAWS = Declaration(
    {
        "features": "Features M D?",
        "n_draws": "int =S",
        "n_components": "int =J",
        "directions": "[M F] moderate",
        "seed": SEED,
        "rng": "dict",
        "known": "KnownRows n M F",
        "frozen": "bool",
        "outgrown": "bool",
    },
    shows="M D S J",
    also=_check_draws,
)


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
    if columns:  # which members of a pool do not have
        _check_columns(columns, parts["features"].points)
    generator = np.random.default_rng(0)
    generator.bit_generator.state = parts["rng"]
    state = {name if name in ("n_draws", "n_components") else f"_{name}": value for name, value in parts.items()}
    draws = FunctionDraws.__new__(FunctionDraws)
    draws.__setstate__({**state, **columns, "_rng": generator})
    return draws


def _check_random_state(content: Content) -> None:
    """Raise `UnfitError` unless the place is within the numbers: NumPy would read beyond them."""
    check(content.parts["state"].get("key"), "[624] whole", {}, content.look)
    check(content.parts["state"].get("pos"), "int >=0 <=624", {}, content.look)


_RANDOM_STATE = Declaration(
    {"bit_generator": "'MT19937'", "state": "dict", "has_gauss": "int >=0 <=1", "gauss": "number"}, also=_check_random_state
)


def _random_state_together(parts: dict[str, Any]) -> np.random.RandomState:
    random_state = np.random.RandomState(0)
    random_state.set_state(parts)
    return random_state


# Representations


def _check_columns(columns: dict[str, Any], points: Any) -> None:
    """Raise ModelFileError unless a model has as many columns as its inducing points, and the names that its kernel knows."""
    n_columns = points.shape[1] if points.ndim == 2 else None
    names = columns.get("feature_names_in_")
    if columns.get("n_features_in_") != n_columns or (names is not None and (n_columns is None or len(names) != n_columns)):
        raise ModelFileError("a model in it has other columns than its inducing points")


def _check_names(model: Any, kernel: Any, points: Any) -> None:
    _check_columns(vars(model), points)
    names = vars(model).get("feature_names_in_")
    for leaf in leaves(kernel):
        known = getattr(leaf, "column_names", None)
        if known is not None and (len(known) != points.shape[1] or (names is not None and list(known) != list(names))):
            raise ModelFileError("a model in it has other columns than its kernel")


_PARAMETERS = {
    "n_components": "int >=1",
    "kernel": "None | Kernel",
    "residual_tolerance": "number >=0",
    "max_inducing": "int >=1",
    "random_state": RANDOM_STATE,
}
OF_COLUMNS = {"n_features_in_": "int >=1", "feature_names_in_": "[N] names", "sklearn_output_config": "dict"}
_GPSSL = by_fit(
    GPSSL,
    (*FITTED, "_weights", *COLUMNS),
    Declaration(
        {**_PARAMETERS, "inference": "text | Inference", "verbose": "bool | int >=0"},
        {
            **OF_COLUMNS,
            "kernel_": "Kernel",
            "features_": "Features M D?",
            "moments_": "Moments M",
            "seed": SEED,
            "nugget": "number >=0",
            "spectrum": "Spectrum M",
            "fitted_objective": "Objective",
            "objective_": "number",
            "report_": "Report",
            "weights": "Weights J r",
        },
        shows="M D J",
        also=lambda content: _check_fitted(content.parts),
    ),
)
TOGETHER = (
    ("kernel_", "features_", "moments_", "seed", "nugget"),
    ("weights", "spectrum", "fitted_objective", "objective_", "report_", "moments_"),
)
"""What `fit` sets together; of the second group, the spectrum may be there alone."""


def _check_fitted(parts: dict[str, Any]) -> None:
    for together in TOGETHER:
        missing = [name for name in together if name not in parts]
        if together[0] in parts and missing:
            raise UnfitError(f"only a part of what fit sets: {missing[0]!r} is missing")
    if "moments_" in parts and "features_" not in parts:
        raise UnfitError("moments without a kernel and inducing points")


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
        if moments.fingerprint != features.fingerprint:
            raise ModelFileError("its moments belong to another kernel or other inducing points than its own")
        if model.kernel_ is not features.kernel:
            raise ModelFileError("its kernel is another than that of its inducing points")
        own = (features.factor**2).sum(axis=1) * moments.diagonal  # k(u, u) Σ w k(x, x), by Cauchy and Schwarz
        if (moments.second.diagonal() > FAR_BEYOND * own).any():
            raise ModelFileError("its moments are larger than its kernel allows")
        _check_names(model, features.kernel, features.points)
    if weights is not None:
        basis = model._spectrum.basis
        if weights.mean.shape[1] > basis.shape[1]:
            raise ModelFileError("its posterior has more directions than its inducing points")
        # A view, as `GPSSL._infer` has it, so that sums over it run in the same order.
        model._posterior = Posterior(model.features_, basis[:, : weights.mean.shape[1]], weights)
    return model


def _prior() -> Form:
    """Return the form of the prior without learning, which is imported when a model is one."""
    fitted = {**OF_COLUMNS, "kernel_": "Kernel", "posterior_": "Posterior M D? J", "seed": SEED}
    plain = by_fit(baselines.GPPrior, ("kernel_", "posterior_", "_seed", *COLUMNS), Declaration(_PARAMETERS, fitted, shows="M D J"))

    def put_together(parts: dict[str, Any]) -> Any:
        prior = plain.put_together(parts)
        if "posterior_" in vars(prior):
            features = prior.posterior_.features
            if vars(prior).get("kernel_") is not features.kernel or "_seed" not in vars(prior):
                raise ModelFileError("its kernel is another than that of its inducing points")
            _check_names(prior, features.kernel, features.points)
        return prior

    return Form(baselines.GPPrior, plain.take_apart, put_together, plain.declaration)


# Methods of inference, and their reports

_TIES = {"n_tied": "int >=0", "n_left_out": "int >=0"}
_SAMPLING = Declaration(
    {"n_chains": f"int >=1 <={MOST_DRAWS}", "n_warmup": f"int >=1 <={MOST_STEPS}", "n_samples": f"int >=4 <={MOST_STEPS}"}
)
_VARIATIONAL = Declaration({"n_draws": f"int >=1 <={MOST_DRAWS}", "max_iterations": f"int >=1 <={MOST_STEPS}", "precise": "bool"})
_OPTIMIZED = Declaration({"start": "text", "n_iterations": "int >=0", "error": "number | any", **_TIES})

# The other forms

MODEL_FORMS: dict[str, Callable[[], Form]] = {
    "gpssl.DrawnWeights": lambda: by_fields(DrawnWeights, _DRAWN),
    "gpssl.Features": lambda: Form(Features, _features_apart, _features_together, _FEATURES),
    "gpssl.FunctionDraws": lambda: Form(FunctionDraws, _draws_apart, _draws_together, _DRAWS),
    "gpssl.GPPrior": _prior,
    "gpssl.GPSSL": lambda: Form(GPSSL, _gpssl_apart, _gpssl_together, _GPSSL.declaration),
    "gpssl.GaussianWeights": lambda: by_fields(GaussianWeights, _GAUSSIAN),
    "gpssl.KnownRows": lambda: by_fields(KnownRows, _KNOWN_ROWS),
    "gpssl.Mode": partial(by_parameters, Mode, Declaration()),
    "gpssl.ModeReport": lambda: by_fields(ModeReport, Declaration({"arrangement": "text", **_TIES})),
    "gpssl.Moments": lambda: by_fields(Moments, _MOMENTS),
    "gpssl.Objective": lambda: by_fields(Objective, _OBJECTIVE),
    "gpssl.OptimisationReport": lambda: by_fields(OptimizationReport, _OPTIMIZED),
    "gpssl.PointWeights": lambda: by_fields(PointWeights, _POINT),
    "gpssl.Posterior": lambda: by_fields(Posterior, _POSTERIOR),
    "gpssl.Sampling": partial(by_parameters, Sampling, _SAMPLING),
    "gpssl.SamplingReport": lambda: by_fields(SamplingReport, Declaration(_TIES)),
    "gpssl.Spectrum": lambda: by_fields(Spectrum, _SPECTRUM),
    "gpssl.Variational": partial(by_parameters, Variational, _VARIATIONAL),
    "numpy.RandomState": lambda: Form(
        np.random.RandomState, lambda state: dict(state.get_state(legacy=False)), _random_state_together, _RANDOM_STATE
    ),
}
