"""Whether the pool is better than another method: one score, intervals over splits of the labels, and words for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from scipy.stats import t as student_t

from ..evaluation._scores import corrected_degrees, corrected_error, corrected_p_value, holm
from ..workflows._choices import POOL, SIGNIFICANT

Array = NDArray[np.float64]

LEAST_PROBABILITY = 1e-3
"""Smaller probabilities count as this one in the log losses of comparisons: a sure error costs 6.9 nats, so that one does not decide."""
SHARE_THAT_MATTERS = 0.02
"""The difference in log loss that matters, as a share of what guessing class shares loses."""
NATS_THAT_MATTER = 0.02
"""The difference in NLL that matters, in nats: the density at the true number is 2 % higher. Guessing is no scale there, since the NLL of
numbers changes with their unit."""
FEW_SPLITS = 10
"""With fewer, hardly any difference is decided: see `corrected_p_value`."""
FEWEST_LABELS = 20
"""Fewer labels decide nothing: splits judge by a handful of them, again and again the same ones."""
POWER = 0.8
"""How probable it is that the labels that are asked for will decide, if the difference is what it seems to be."""
MOST_LABELS = 10_000
"""More labels than these are not asked for."""


class Verdict(StrEnum):
    """What the splits say of the pool against another method."""

    BETTER = "better"
    WORSE = "worse"
    ALIKE = "no difference that matters"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Difference:
    """The deciding score of the pool minus that of another method, over splits. The score is a loss: below zero the pool is better."""

    mean: float
    error: float
    """Standard error, corrected for the rows that splits share."""
    lower: float
    upper: float
    """Ends of the 95 % interval, for this method by itself."""
    p_value: float
    """Of no difference at all, with Holm's correction over the methods."""
    verdict: Verdict
    more_labels: int | None
    """About how many more labels would decide; None where it is decided, or where there are too few splits to tell."""
    words: str
    """The verdict for people."""


def what_matters(y: NDArray[np.generic], *, numeric: bool) -> float:
    """Return the smallest difference that matters, in nats: for classes with shares s_k 0.02 Σ_k s_k log(1 / s_k), for numbers 0.02."""
    if numeric:
        return NATS_THAT_MATTER
    shares = np.unique(y, return_counts=True)[1] / len(y)
    return float(SHARE_THAT_MATTERS * -(shares @ np.log(shares)))


@dataclass(frozen=True)
class Ground:
    """What differences are judged by, for all methods alike."""

    test_to_training: float
    """Labels that are judged by, over those that are learned from."""
    matters: float
    """x, the smallest difference that matters."""
    n_labeled: int
    n_independent: int
    """Labels that are independent of each other: all, or one of each group."""
    n_splits: int

    @property
    def degrees(self) -> float:
        """Degrees of freedom of errors over splits."""
        return corrected_degrees(self.n_splits, self.n_independent)


def differences_from(losses: Mapping[str, Array], ground: Ground, one: str = POOL) -> dict[str, Difference]:
    """Compare the pool, or the method with this name, with each other method, by losses on the same splits. [splits] each

    The mean difference m has the error s of Nadeau and Bengio and is taken for Student's, with `corrected_degrees` of freedom. Two tests
    are made for each method, each with Holm's correction over the methods at 5 %:

        |m| / s           against zero: "better" or "worse"
        (x − |m|) / s     against differences of x and more, two-sided: "no difference that matters", where all of the interval is
                          within ±x. This comes first: a difference may be sure and too small to matter.
    """
    rivals = [method for method in losses if method != one]
    values = {method: (losses[one] - losses[method]).round(12) for method in rivals}
    different = holm([corrected_p_value(values[method], ground.test_to_training, ground.n_independent) for method in rivals])
    large = holm([_p_value_of_large(values[method], ground) for method in rivals])
    return {
        method: _difference(values[method], p_values, ground, len(rivals))
        for method, p_values in zip(rivals, zip(different, large, strict=True), strict=True)
    }


def _difference(values: Array, p_values: tuple[float, float], ground: Ground, n_rivals: int) -> Difference:
    mean, error = float(values.mean()), corrected_error(values, ground.test_to_training)
    half = error * float(student_t.isf(SIGNIFICANT / 2, ground.degrees))
    verdict = _verdict(mean, *p_values) if ground.n_labeled >= FEWEST_LABELS else Verdict.UNDECIDED
    asks = verdict is Verdict.UNDECIDED and ground.n_splits >= FEW_SPLITS
    more = more_labels(mean, error, ground, n_rivals) if asks else None
    return Difference(mean, error, mean - half, mean + half, p_values[0], verdict, more, _words(verdict, more, ground.matters))


def _p_value_of_large(values: Array, ground: Ground) -> float:
    """Return the p-value of a difference of at least ±x, which is small where the interval is well within."""
    mean = values.mean()
    nearest = ground.matters if mean > 0 else -ground.matters
    return corrected_p_value(values - nearest, ground.test_to_training, ground.n_independent) if abs(mean) < ground.matters else 1.0


def _verdict(mean: float, p_different: float, p_large: float) -> Verdict:
    if p_large < SIGNIFICANT:
        return Verdict.ALIKE
    if p_different < SIGNIFICANT:
        return Verdict.BETTER if mean < 0 else Verdict.WORSE
    return Verdict.UNDECIDED


def more_labels(mean: float, error: float, ground: Ground, n_rivals: int) -> int:
    """Return about how many more labels would decide, with a probability of 80 % if the difference is what it seems to be.

    Splits into constant shares leave the error s with a term var(loss of a row) / rows, so that s ∝ 1 / sqrt(labels). Differences are told
    from zero when (t + z) s = |m|, and from those that matter when (t + z) s = x − |m|, whichever comes first:

        N = n ((t + z) s / max(|m|, x − |m|))²,    t = Student's quantile at 5 % over the number of methods, z = 0.84

    N − n is rounded to one digit, is at most 10,000, and at least what is missing to 20 labels.
    """
    quantile = float(student_t.isf(SIGNIFICANT / (2 * n_rivals), ground.degrees)) + float(norm.isf(1 - POWER))
    needed = ground.n_labeled * ((quantile * error) / max(abs(mean), ground.matters - abs(mean))) ** 2
    return max(_one_digit(min(max(needed - ground.n_labeled, 1.0), MOST_LABELS)), FEWEST_LABELS - ground.n_labeled)


def _one_digit(value: float) -> int:
    """Round to one significant digit."""
    return int(float(f"{value:.0e}"))


def _words(verdict: Verdict, more: int | None, matters: float) -> str:
    if verdict is Verdict.ALIKE:
        return f"{verdict} (less than {matters:.2g})"
    if verdict is not Verdict.UNDECIDED:
        return str(verdict)
    if more is None:
        return f"{verdict}: use more splits"
    return f"{verdict}: {advice_on_labels(more)}"


def advice_on_labels(more: int) -> str:
    """Return what to do about differences that are undecided."""
    return f"label {'more than' if more >= MOST_LABELS else 'about'} {more:,} more rows"
