"""The representation in which rows are near or far: the model's own, as the labels weigh it, or another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from ..data._arrays import row_blocks
from ..downstream._marginal import PREDICTION_ROWS, Marginalized, inner
from ..downstream._pool import RepresentationPool
from ..downstream._pool_parts import FittedPart

Array = NDArray[np.float64]

MOST_MEMBERS = 8
"""Members of a pool whose features are used: those that the labels believe in most."""
N_FEATURES = 32
"""Features of each of them: those with the largest variance."""
N_DRAWS = 10
"""Draws of a member that has draws."""


class OwnRepresentation:
    """The representations of a pool side by side, each as far as the labels believe in it.

        |z(x) − z(y)|² = Σ_m w_m |φ_m(x) − φ_m(y)|² / v_m,      v_m = Σ_a Var φ_ma

    where w_m is the share of member m, and v_m the variance of its features over the rows: each counts as far as it is believed, not as
    far as its numbers are large. Of a representation that is no pool, the mean.
    """

    def __init__(self, representation: Any, shares: Mapping[str, float] | None = None, parts: Sequence[FittedPart] | None = None) -> None:
        self._whole = inner(representation)
        self._parts: list[FittedPart] | None = None
        if isinstance(self._whole, RepresentationPool):
            drawn = self._whole.draw(N_DRAWS, self._whole.seed()) if parts is None else parts
            self._parts, self._shares = _believed(drawn, shares)

    @classmethod
    def of(cls, model: Any) -> OwnRepresentation | None:
        """Return that of a fitted model or pool; None where a model has none."""
        if isinstance(model, Marginalized):
            parts = model.functions_ if isinstance(inner(model.representation_), RepresentationPool) else None
            return cls(model.representation_, {member.name: member.share for member in model.members_}, parts)
        if isinstance(inner(model), RepresentationPool) or (hasattr(model, "transform") and hasattr(model, "posterior_")):
            return cls(model)
        return None

    def features(self, X: Any) -> list[Array]:
        """Return the features of rows under each member. [n, D_m] each"""
        if self._parts is None:
            return [np.asarray(self._whole.transform(X), dtype=np.float64)]
        rows = self._whole.check(X)
        found = [self._features_of_part(rows[block]) for block in row_blocks(len(rows), PREDICTION_ROWS)]
        return [np.concatenate(blocks) for blocks in zip(*found, strict=True)]

    def _features_of_part(self, rows: Any) -> list[Array]:
        return [_side_by_side(Z[:N_DRAWS]) for part in self._parts or () for Z in part(rows)]

    def joined(self, features: Sequence[Array]) -> Array:
        """Return the features of all members side by side, weighed. [n, D]"""
        if self._parts is None:
            return features[0]
        return np.hstack([_weighed(Z, share) for Z, share in zip(features, self._shares, strict=True)])

    def __call__(self, X: Any) -> Array:
        """Return rows as points whose distances count. [n, D]"""
        return self.joined(self.features(X))


def _believed(parts: Sequence[FittedPart], shares: Mapping[str, float] | None) -> tuple[list[FittedPart], list[float]]:
    """Return the members that count most, with few features each, and their shares; without shares, their prior weights count."""
    weight = (
        {name: float(prior) for part in parts for name, prior in zip(part.names, part.prior, strict=True)} if shares is None else shares
    )
    names = [name for part in parts for name in part.names]
    best = set(sorted(names, key=lambda name: -weight[name])[:MOST_MEMBERS])
    kept: list[FittedPart] = []
    for part in parts:
        places = [place for place, name in enumerate(part.names) if name in best]
        if places:
            kept.append(part.only(places).limited(N_FEATURES))
    return kept, [weight[name] for part in kept for name in part.names]


def _side_by_side(Z: Array) -> Array:
    """Return draws [S, n, J] side by side. [n, S J]"""
    return np.ascontiguousarray(Z.swapaxes(0, 1).reshape(Z.shape[1], -1))


def _weighed(Z: Array, share: float) -> Array:
    """Return sqrt(w / v) times the features, where v is their variance over the rows."""
    variance = float(Z.var(axis=0).sum())
    return Z * np.sqrt(share / variance) if variance > 0 else np.zeros_like(Z)


def represent(model: Any, X: Any, representation: Any = None, labeled: Any = None) -> tuple[Array, Array]:
    """Return rows, and labeled rows that are not among them, as points: by an array, an estimator with `transform`, or a function.

    None is the model's own. Raise ValueError where there is none, or where its points are not those of the rows. [n, D], [c, D]
    """
    own = OwnRepresentation.of(model if representation is None else representation)
    if own is not None:
        features = (
            own.features(X)
            if labeled is None
            else [np.concatenate(two) for two in zip(own.features(X), own.features(labeled), strict=True)]
        )
        points = own.joined(features)
        return points[: _num_samples(X)], points[_num_samples(X) :]
    if representation is None:
        name = "Without a model there" if model is None else f"{type(model).__name__} has no representation of its own: there"
        raise ValueError(
            f"{name} is nothing to measure distances in. Pass representation=GPSSL().fit(X), another fitted estimator with transform, a "
            "function of the rows, or an array with a row for each."
        )
    is_array = not callable(representation) and not hasattr(representation, "transform")
    if is_array and labeled is not None:
        raise ValueError("An array has no points for the rows in labeled: pass a function or an estimator as representation.")
    points = _points(representation, X)
    return points, np.empty((0, points.shape[1])) if labeled is None else _points(representation, labeled)


def _points(representation: Any, X: Any) -> Array:
    """Return what a representation makes of rows. [n, D]"""
    if hasattr(representation, "transform"):
        points = representation.transform(X)
    else:
        points = representation(X) if callable(representation) else representation
    values = np.asarray(points.toarray() if hasattr(points, "toarray") else points, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    n_rows = _num_samples(X)
    if values.ndim != 2 or len(values) != n_rows:
        raise ValueError(f"The representation has the shape {list(values.shape)}, where a row for each of the {n_rows:,} rows is needed.")
    if not np.isfinite(values).all():
        raise ValueError("The representation has values that are missing or infinite: fill them in, or leave these rows out.")
    return values
