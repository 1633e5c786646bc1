"""A trial of a model that was just read: what it says about some of its own rows must be finite.

Whatever is handed to compiled code has been checked before, by the declarations of its classes. A trial finds numbers that are right one
by one and too large together. It draws nothing at random, and keeps nothing but what a prediction would compute anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core._checked_rows import rows_in_memory
from ..core._draws import FunctionDraws
from ..core._posterior import Posterior
from ..downstream._marginal import Marginalized, inner
from ..downstream._pool import RepresentationPool
from ..downstream._pool_parts import KernelMembers, PoolRows
from ..estimator import GPSSL
from ..kernels._protocol import kind_of_rows
from ._encoding import ModelFileError, own_name

Array = NDArray[np.float64]

N_ROWS = 4
ROUNDING = 1e-6


def try_out(model: Any) -> None:
    """Raise ModelFileError unless the model gives finite numbers, and probabilities that sum to one, for some of its own rows."""
    with np.errstate(all="ignore"):
        for values in _values_of(model):
            if not np.isfinite(values).all():
                raise ModelFileError("it gives no finite numbers for its own inducing points")


def _values_of(model: Any) -> Iterator[Array]:
    if isinstance(model, Marginalized):
        for head, Z in _heads_and_features(model):
            yield from _predicted(head, Z)
    elif isinstance(model, RepresentationPool):
        for part in model.fitted_:
            yield from _features_of(part)
    elif isinstance(vars(model).get("functions_"), FunctionDraws):  # of a clustering
        from ..clustering._kmeans import nearest

        yield nearest(_drawn(model.functions_) @ model._scale, model.centers_)[1]
    else:
        yield from _mean_and_std(model)


def _heads_and_features(model: Marginalized) -> Iterator[tuple[Any, Array]]:
    """Yield each head with the features of rows that it knows. [S, n, J]"""
    if isinstance(inner(model.representation_), RepresentationPool):
        heads = iter(model.heads_)
        for part in model.functions_:
            own = [next(heads) for _ in part.names]
            yield from zip(own, _features_of(part), strict=False)  # other estimators have no rows of their own
    elif model.n_draws is not None:
        yield model.heads_, _drawn(model.functions_)
    else:
        for means in _mean_and_std(inner(model.representation_)):
            yield model.heads_, means[:1]


def _predicted(head: Any, Z: Array) -> Iterator[Array]:
    if hasattr(head, "predict_normal"):
        yield from head.predict_normal(Z)
        return
    proba = head.predict_proba(Z)
    if not (np.abs(proba.sum(axis=2) - 1) <= ROUNDING).all():
        raise ModelFileError("its probabilities do not sum to one")
    yield proba


def _mean_and_std(source: Any) -> Iterator[Array]:
    """Yield mean and standard deviation at some inducing points, where they are known. [2, n, J]"""
    posterior = source if isinstance(source, Posterior) else vars(source).get("_posterior", vars(source).get("posterior_"))
    if isinstance(posterior, Posterior):
        found = posterior.mean_and_std(posterior.features.points[:N_ROWS])
        if _is_prior(source):
            found[0] = 0.0
        yield found


def _features_of(part: Any) -> Iterator[Array]:
    """Yield the features of some inducing points, for each member. [S, n, J]"""
    if isinstance(part, KernelMembers):
        points = part.features.points[:N_ROWS]
        yield from part(PoolRows(points, {kind_of_rows(part.kernel): points}))
    elif isinstance(getattr(part, "functions", None), FunctionDraws):
        yield _drawn(part.functions)
    else:
        for found in _mean_and_std(inner(part.source)):
            yield found[:1]


def _drawn(functions: FunctionDraws) -> Array:
    """Return drawn functions at some inducing points, each by itself, so that nothing is drawn or remembered. [S, n, J]"""
    return np.asarray(functions.one_row_at_a_time(rows_in_memory(functions._features.points[:N_ROWS])), dtype=np.float64)


def models_in(model: Any) -> Iterator[Any]:
    """Yield the model, and the representations in it that can be used by themselves."""
    yield model
    representation = vars(model).get("representation_")
    fitted = None if representation is None else inner(representation)
    if isinstance(fitted, GPSSL) or _is_prior(fitted):
        yield fitted


def _is_prior(value: Any) -> bool:
    """Return whether this is the prior without learning, whose room is imported for models only that are one."""
    return own_name(type(value)) == "gpssl.GPPrior"
