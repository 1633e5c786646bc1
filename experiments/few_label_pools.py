"""The pool in the experiments with few labels, the same pool without some of its parts, and its single kernels.

What is left when a part is taken away is a matter of weights alone: all members are fitted and their heads trained once for a split and
a number of labels, and each ablation weighs the same predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from gpssl import MarginalizedClassifier, RepresentationPool
from gpssl.downstream import Member, MemberShare
from gpssl.downstream._marginal import POWER
from gpssl.downstream._weighting import draw_weights
from gpssl.kernels import StandardizedKernel

from .few_label_protocol import UNLABELED, Array, Split

Codes = NDArray[np.intp]
Predictor = Callable[[Codes], Array]

SOFTMAX_GP = "softmax GP"
POOL = "pool"
STRETCHES = (0.25, 0.5, 1.0, 2.0)
"""Lengthscales of the softmax GP, of which the evidence chooses one."""
CHOOSING = 1e3
"""A power of the evidence that leaves one member."""
EVEN = 1e-12
"""A power that keeps all members, and computes their evidence."""
ABLATION_DRAWS = 20
MOST_REMEMBERED = 3
"""Numbers of labels for which predictions are remembered."""


def pool_for(split: Split) -> RepresentationPool:
    """Return the default pool, fitted to all rows of a split."""
    return _fitted_pool(_Key(split))


class _Key:
    """A split that equals another one with the same rows, for the memory of what was fitted: each task draws its split anew."""

    def __init__(self, split: Split) -> None:
        self.split = split
        self.content = (split.seed, split.numbers.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.content == other.content

    def __hash__(self) -> int:
        return hash(self.content)


@lru_cache(maxsize=1)
def _fitted_pool(key: _Key) -> RepresentationPool:
    return RepresentationPool(random_state=_generator(key.split)).fit(key.split.frame)


def _generator(split: Split) -> np.random.RandomState:
    """Return the source of what is random in the pool, apart from that of the rows."""
    return np.random.RandomState(split.seed)


def pool(split: Split) -> Predictor:
    """Predict with all defaults."""
    return _predictor(pool_for(split), split)


def softmax_gp(split: Split) -> Predictor:
    """Predict by a Gaussian process with a softmax of all classes, a squared exponential, and the lengthscale of the highest evidence."""
    members = [Member(f"lengthscale {stretch}", StandardizedKernel(stretch=stretch)) for stretch in STRETCHES]
    return _predictor(RepresentationPool(members, random_state=_generator(split)).fit(split.frame), split, power=CHOOSING)


def draws_only(split: Split) -> Predictor:
    """Predict with the same kernels, dimensions and temperatures as draws, each with a head of its own, without posterior kernels."""
    members = RepresentationPool.for_rows(split.frame).members or []
    members = [member._replace(form="draws") for member in members if hasattr(member.representation, "draw_functions")]
    return _predictor(RepresentationPool(members, random_state=_generator(split)).fit(split.frame), split, n_draws=ABLATION_DRAWS)


def _predictor(fitted: RepresentationPool, split: Split, **settings: Any) -> Predictor:
    classifier = MarginalizedClassifier(FrozenEstimator(fitted), random_state=split.seed, **settings)
    return lambda marked: classifier.fit(split.frame, marked).predict_proba(split.frame[marked == UNLABELED])


# Ablations


class MemberPredictions(NamedTuple):
    """What each member of the default pool predicts, and how likely the labels are under it."""

    members: list[MemberShare]
    proba: Array
    """[members, n, K]"""


_REMEMBERED: dict[tuple[_Key, bytes], MemberPredictions] = {}


def member_predictions(split: Split, marked: Codes) -> MemberPredictions:
    """Train the heads of all members, and predict the rows without a label; once for all ablations."""
    key = (_Key(split), marked.tobytes())
    if key not in _REMEMBERED:
        if len(_REMEMBERED) > MOST_REMEMBERED:
            _REMEMBERED.clear()
        classifier = MarginalizedClassifier(FrozenEstimator(pool_for(split)), power=EVEN, random_state=split.seed).fit(split.frame, marked)
        _REMEMBERED[key] = MemberPredictions(classifier.members_, classifier.predict_proba_draws(split.frame[marked == UNLABELED]))
    return _REMEMBERED[key]


def reweighed(keep: Callable[[str], bool] = lambda _: True, power: float = POWER) -> Callable[[Split], Predictor]:
    """Return the pool with some of its members and another power of the evidence."""

    def predictor(split: Split) -> Predictor:
        def predict(marked: Codes) -> Array:
            found = member_predictions(split, marked)
            kept = [place for place, member in enumerate(found.members) if keep(member.name)]
            evidence = [np.array([found.members[place].log_evidence]) for place in kept]
            weights = np.concatenate(draw_weights(evidence, [1.0] * len(kept), power))
            return np.tensordot(weights, found.proba[kept], axes=1)

        return predict

    return predictor


def is_learned(name: str) -> bool:
    """Return whether a member of the default pool has learned something."""
    return name.endswith("learned")


def is_columns(name: str) -> bool:
    """Return whether a member is the columns themselves."""
    return name.startswith("columns")


ABLATIONS: dict[str, Callable[[Split], Predictor]] = {
    "pool without learning": reweighed(lambda name: not is_learned(name)),
    "pool without columns": reweighed(lambda name: not is_columns(name)),
    "pool of what is learned": reweighed(is_learned),
    "pool, β = 0": reweighed(power=0.0),
    "pool, β = ¼": reweighed(power=0.25),
    "pool, β = 1": reweighed(power=1.0),
    "pool of draws": draws_only,
}
"""The pool with a part changed. All its members are posterior kernels, or kernels as they are; draws take their place in the last."""
