"""What a model that has been loaded must be able to answer, whatever its file was before: finite numbers within their bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor, RepresentationPool
from gpssl.baselines import GPPrior
from gpssl.clustering import PosteriorClustering
from gpssl.core import DrawnWeights, GaussianWeights
from gpssl.kernels._protocol import kernel_diagonal

ROUNDING = 1e-6


def check_answers(model: Any, rows: Any) -> None:
    """Ask the model for everything that it can say about these rows. Raise AssertionError unless it is finite and within its bounds."""
    rows = known_to(model, named_as_in(model, rows))
    if isinstance(model, GPSSL | GPPrior):
        check_representation(model, rows)
    elif isinstance(model, MarginalizedClassifier):
        check_classifier(model, rows)
    elif isinstance(model, MarginalizedRegressor):
        check_regressor(model, rows)
    elif isinstance(model, PosteriorClustering):
        check_clusters(model, rows)
    elif isinstance(model, RepresentationPool):
        check_pool(model, rows)
    else:
        raise AssertionError(f"a {type(model).__name__}")


def named_as_in(model: Any, rows: Any) -> Any:
    """Return the rows with the names of columns that the model knows: a file may have others than its rows, and be right."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or not hasattr(rows, "columns") or len(names) != rows.shape[1]:
        return rows
    return rows.set_axis(list(names), axis=1)


def known_to(model: Any, rows: Any) -> Any:
    """Return those rows that are nodes of the graph of a model: a file may name others, and be right."""
    places = getattr(getattr(getattr(model, "kernel_", None), "_laplacian", None), "places", None)
    return rows if places is None else [row for row in rows if row in places] or list(model.inducing_points_[:2])


def finite(values: Any, *shape: int) -> NDArray[Any]:
    array = np.asarray(values)
    assert array.dtype.kind == "f", f"of {array.dtype}"
    assert np.isfinite(array).all(), "not finite"
    assert array.shape == shape, f"of shape {array.shape}, where {shape} belongs"
    return array


def check_representation(model: Any, rows: Any) -> None:
    n_rows = len(rows)
    mean = np.asarray(model.transform(rows))
    n_components = mean.shape[1]
    finite(mean, n_rows, n_components)
    std = finite(model.std(rows), n_rows, n_components)
    prior = np.sqrt(kernel_diagonal(model.kernel_, prepared(model, rows)))
    widest = largest_std(model.posterior_.weights)
    assert (std >= 0).all(), "a negative std"
    assert (std <= (prior * widest)[:, None] * (1 + ROUNDING) + ROUNDING).all(), "a std beyond that of the prior"
    finite(model.sample(rows, 2, random_state=0), 2, n_rows, n_components)
    finite(model.draw_functions(2)(rows), 2, n_rows, n_components)
    if isinstance(model, GPSSL):
        finite(model.kernel_features(rows), n_rows, model.features_.n_points)


def prepared(model: Any, rows: Any) -> NDArray[Any]:
    """Return the rows as the kernel gets them."""
    from gpssl.core._checked_rows import check_rows_in_memory

    return check_rows_in_memory(model, rows, model.kernel_, reset=False)


def largest_std(weights: Any) -> float:
    """Return how much wider than the prior the posterior may be: its weights may have larger standard deviations than one."""
    if isinstance(weights, GaussianWeights):
        return max(1.0, float(weights.std.max(initial=0.0)))
    if isinstance(weights, DrawnWeights):
        return max(1.0, float(np.sqrt(weights.draws.var(axis=0).sum(axis=1).max(initial=0.0))))
    return 1.0


def check_classifier(model: Any, rows: Any) -> None:
    n_rows, n_classes = len(rows), len(model.classes_)
    proba = finite(model.predict_proba(rows), n_rows, n_classes)
    assert (proba >= -ROUNDING).all(), "negative probabilities"
    assert np.allclose(proba.sum(axis=1), 1), "probabilities that do not sum to one"
    assert np.isin(model.predict(rows), model.classes_).all()
    distribution = model.predict_distribution(rows)
    std = finite(distribution.proba_std, n_rows, n_classes)
    assert (std >= 0).all(), "a negative std"
    assert (std <= 0.5 * np.sqrt(2) + ROUNDING).all(), "a std that no probability has"
    finite(model.predict_uncertainty(rows).total, n_rows)
    finite(model.predict_proba_draws(rows)[0], n_rows, n_classes)


def check_regressor(model: Any, rows: Any) -> None:
    n_rows = len(rows)
    finite(model.predict(rows), n_rows)
    assert (finite(model.predict_std(rows), n_rows) >= 0).all()
    interval = finite(model.predict_interval(rows), n_rows, 2)
    assert (interval[:, 0] <= interval[:, 1]).all()


def check_clusters(model: Any, rows: Any) -> None:
    proba = finite(model.predict_proba(rows), len(rows), model.n_clusters_)
    assert np.allclose(proba.sum(axis=1), 1)
    assert (model.predict(rows) < model.n_clusters_).all()


def check_pool(pool: Any, rows: Any) -> None:
    checked = pool.check(rows)
    for part in pool.draw(2, 0):
        for values in part.settle(checked):
            finite(values, len(values), len(rows), values.shape[-1])
