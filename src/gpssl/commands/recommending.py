"""What to make of a comparison, in one sentence: also that GPSSL is not needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..experiments.statistics import HIGHER_IS_BETTER, Estimate
from .choices import Alike
from .rivals import FULL, MEAN, PRIOR, RAW

SIGNIFICANT = 0.05


class HasDifference(Protocol):
    """A mean difference and its p-value."""

    @property
    def mean(self) -> float:
        """GPSSL-full minus the other."""
        ...

    @property
    def p_value(self) -> float:
        """Corrected."""
        ...


Estimates = Mapping[str, Mapping[str, Estimate]]
Differences = Mapping[str, Mapping[str, HasDifference]]


def recommend(scores: Estimates, differences: Differences, *, numeric: bool, alike: Alike) -> str:
    """The decision is by the first score that shows a difference between GPSSL-full and the columns themselves: accuracy, then AURC.

    For numbers it is by the root mean squared error, then by the likelihood.
    """
    deciding = ("RMSE", "NLL") if numeric else ("accuracy", "AURC")
    verdicts = {method: _verdict(differences[method], deciding) for method in differences}
    first = deciding[0]
    if verdicts[RAW] <= 0:
        return _not_needed(scores, first, certain=verdicts[RAW] < 0)
    better = [method for method, verdict in verdicts.items() if verdict < 0 and method != RAW]
    if better:
        best = _best(scores, better, first)
        return f"Use {best}: it is significantly better than GPSSL-full here ({_versus(scores, best, FULL, first)})."
    gain = _versus(scores, FULL, RAW, _shown(differences[RAW], deciding))
    text = f"Use GPSSL-full: it is significantly better than the columns themselves ({gain})"
    if verdicts[PRIOR] <= 0:
        return f"{text}; functions from the prior, which have learnt nothing, do as well, so the gain is from averaging over functions."
    if verdicts[MEAN] <= 0:
        return f"{text}; its mean alone does as well, and is faster."
    hint = " Try --alike neighbours too." if alike is Alike.COLUMNS else ""
    return f"{text}, and than its prior.{hint}"


def _verdict(differences: Mapping[str, HasDifference], deciding: tuple[str, ...]) -> int:
    """1 where GPSSL-full is significantly better, −1 where it is worse, 0 where neither can be said; by the first score that tells."""
    for name in deciding:
        difference = differences[name]
        if difference.p_value < SIGNIFICANT:
            return 1 if (difference.mean > 0) == HIGHER_IS_BETTER[name] else -1
    return 0


def _shown(differences: Mapping[str, HasDifference], deciding: tuple[str, ...]) -> str:
    """The score that told."""
    return next((name for name in deciding if differences[name].p_value < SIGNIFICANT), deciding[0])


def _not_needed(scores: Estimates, name: str, *, certain: bool) -> str:
    ground = "are significantly better than" if certain else "cannot be told from"
    return f"You do not need this: the columns themselves {ground} GPSSL-full here ({_versus(scores, RAW, FULL, name)})."


def _best(scores: Estimates, methods: list[str], name: str) -> str:
    sign = 1 if HIGHER_IS_BETTER[name] else -1
    return max(methods, key=lambda method: sign * scores[method][name].mean)


def _versus(scores: Estimates, one: str, other: str, name: str) -> str:
    return f"{name} {scores[one][name].mean:.3g} against {scores[other][name].mean:.3g}"
