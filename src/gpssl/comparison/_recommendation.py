"""One sentence on what to make of a comparison; it may say that GPSSL is not needed, or that the labels do not decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from ..evaluation._scores import HIGHER_IS_BETTER, Estimate
from ..workflows._choices import FULL, Alike
from ._rivals import COLUMNS, MEAN, PRIOR

SIGNIFICANT = 0.05
FEW_SPLITS = 10
"""With fewer, hardly any difference can be significant: see `corrected_p_value`."""


class HasDifference(Protocol):
    """A mean difference, its standard error and its p-value."""

    @property
    def mean(self) -> float:
        """GPSSL-full minus the other method."""
        ...

    @property
    def error(self) -> float:
        """Standard error, corrected for the rows that splits share."""
        ...

    @property
    def p_value(self) -> float:
        """Corrected for several tests."""
        ...


Estimates = Mapping[str, Mapping[str, Estimate]]
Differences = Mapping[str, Mapping[str, HasDifference]]


class Basis(NamedTuple):
    """How many splits of how many labels a comparison rests on."""

    n_splits: int
    n_labeled: int


class _Verdict(NamedTuple):
    sign: int
    """1 where GPSSL-full is better, −1 where it is worse, 0 where the labels do not tell."""
    score: str
    """The score that told; the first where none did."""


def deciding_scores(*, numeric: bool) -> tuple[str, str]:
    """Return the scores that decide: accuracy, then AURC; for numbers the root mean squared error, then the likelihood."""
    return ("RMSE", "NLL") if numeric else ("accuracy", "AURC")


def recommend(scores: Estimates, differences: Differences, basis: Basis, *, numeric: bool, alike: Alike) -> str:
    """Recommend a method. Each is judged against GPSSL-full by the first deciding score that shows a difference; the sentence names it."""
    deciding = deciding_scores(numeric=numeric)
    verdicts = {method: _significant(differences[method], deciding) for method in differences}
    best = _best_of_the_better(scores, verdicts, deciding)
    if best is not None:
        gain = f"{_versus(scores, best, FULL, verdicts[best].score)}; the columns {_mean(scores, COLUMNS, verdicts[best].score)}"
        return f"Use {best}: it is significantly better than GPSSL-full here ({gain})."
    if verdicts[COLUMNS].sign > 0:
        return _worth_it(scores, verdicts, alike)
    if verdicts[COLUMNS].sign < 0:
        return _not_needed("are significantly better than", _versus(scores, COLUMNS, FULL, verdicts[COLUMNS].score))
    leaning = _leaning(differences[COLUMNS], deciding)
    if leaning.sign > 0:
        return _not_decided(basis, _versus(scores, FULL, COLUMNS, leaning.score))
    return _not_needed("cannot be told from", _versus(scores, COLUMNS, FULL, leaning.score))


def _significant(differences: Mapping[str, HasDifference], deciding: tuple[str, ...]) -> _Verdict:
    """Judge by the first score with a significant difference."""
    for name in deciding:
        if differences[name].p_value < SIGNIFICANT:
            return _Verdict(1 if _gain(differences[name], name) > 0 else -1, name)
    return _Verdict(0, deciding[0])


def _leaning(differences: Mapping[str, HasDifference], deciding: tuple[str, ...]) -> _Verdict:
    """Judge by the first score whose difference is more than its standard error."""
    for name in deciding:
        if abs(differences[name].mean) > differences[name].error:
            return _Verdict(1 if _gain(differences[name], name) > 0 else -1, name)
    return _Verdict(0, deciding[0])


def _gain(difference: HasDifference, name: str) -> float:
    return difference.mean if HIGHER_IS_BETTER[name] else -difference.mean


def _best_of_the_better(scores: Estimates, verdicts: Mapping[str, _Verdict], deciding: tuple[str, ...]) -> str | None:
    """Return the best of the methods that beat GPSSL-full by the first score by which any does; None where the columns are no worse."""
    for name in deciding:
        better = [method for method, verdict in verdicts.items() if verdict == (-1, name)]
        if not better:
            continue
        rivals = better if verdicts[COLUMNS].sign > 0 else [COLUMNS, *(method for method in better if method != COLUMNS)]
        sign = 1 if HIGHER_IS_BETTER[name] else -1
        best = max(rivals, key=lambda method: sign * scores[method][name].mean)
        return None if best == COLUMNS else best
    return None


def _worth_it(scores: Estimates, verdicts: Mapping[str, _Verdict], alike: Alike) -> str:
    """Say what GPSSL-full gains over the columns, and whether its prior and its mean gain as much, unless they were left out."""
    text = f"Use GPSSL-full: it is significantly better than the columns ({_versus(scores, FULL, COLUMNS, verdicts[COLUMNS].score)})"
    prior, mean = verdicts.get(PRIOR), verdicts.get(MEAN)
    if prior is not None and prior.sign == 0:
        return (
            f"{text}; functions from the prior, which have learned nothing, cannot be told from it: the gain may be from averaging alone."
        )
    if mean is not None and mean.sign == 0:
        return f"{text}; its mean alone, which is faster, cannot be told from it."
    if prior is not None:
        text += f", and than its prior ({_versus(scores, FULL, PRIOR, prior.score)})"
    advice = " Try alike='neighbors' too." if alike is Alike.COLUMNS else ""
    return f"{text}.{advice}"


def _not_needed(ground: str, versus: str) -> str:
    return f"You do not need this: the columns {ground} GPSSL-full here ({versus})."


def _not_decided(basis: Basis, versus: str) -> str:
    advice = "use more splits, n_splits=20" if basis.n_splits < FEW_SPLITS else "label more rows"
    ground = f"{basis.n_splits} splits of {basis.n_labeled:,} labels do not show whether GPSSL-full is better than the columns"
    return f"Not decided: {ground} ({versus}); {advice}."


def _versus(scores: Estimates, one: str, other: str, name: str) -> str:
    return f"{name} {_mean(scores, one, name)} against {_mean(scores, other, name)}"


def _mean(scores: Estimates, method: str, name: str) -> str:
    return f"{scores[method][name].mean:.3g}"
