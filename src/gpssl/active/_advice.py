"""When to stop labeling, in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._runtime import CONFIDENCE, percent
from ._stopping import LARGEST_FACTOR, LabelsNeeded, LearningCurve


@dataclass(frozen=True)
class StopAdvice:
    """Whether more labels are worth it, in words and numbers."""

    text: str
    """What to tell a person."""
    max_risk: float | None
    n_more: float | None
    """Labels that are missing until the risk can be promised; 0 where it can be already, infinity where it is out of reach."""
    interval: tuple[float, float] | None
    """Ends of an 80 % interval of that number."""
    is_flat: bool | None
    """Whether more labels will hardly change the predictions; None where nobody can tell."""
    risk: float | None
    """The risk with the labels that there are."""
    risk_with_twice_as_many: float | None


def stop_advice(curve: LearningCurve, max_risk: float | None, confidence: float | None = CONFIDENCE) -> StopAdvice:
    """Say how many more labels it takes until a risk can be promised, and whether more labels change anything.

    `confidence` is that of the promise; None: it is held on average.
    """
    now, then = curve.predicted_risk(curve.n_labels)[0], curve.predicted_risk(2 * curve.n_labels)[0]
    needed = None if max_risk is None else curve.labels_until(max_risk, confidence)
    more = None if needed is None else LabelsNeeded(*(max(0.0, number - curve.n_labels) for number in needed))
    sentences = [] if more is None or max_risk is None else [_about_promise(curve, more, max_risk)]
    if curve.is_flat:
        for_proof = more is not None and 0 < more.middle < np.inf
        alone = ", and are needed for the promise alone" if for_proof else ""
        sentences.append(f"More labels will hardly change these predictions{alone}: {_about_twice(curve, now, then)}.")
    elif more is None or more.middle > 0:
        sentences.append(f"Twice as many labels: {_about_twice(curve, now, then)}.")
    interval = None if more is None else (more.low, more.high)
    return StopAdvice(" ".join(sentences), max_risk, None if more is None else more.middle, interval, curve.is_flat, now, then)


def _risk(curve: LearningCurve, value: float) -> str:
    return percent(value) if curve.is_class else f"{value:.3g}"


def _about_twice(curve: LearningCurve, now: float, then: float) -> str:
    about = f"about {_risk(curve, then)} errors" if curve.is_class else f"a root mean squared error of about {_risk(curve, then)}"
    return f"{about} in the place of {_risk(curve, now)}"


def _about_promise(curve: LearningCurve, more: LabelsNeeded, max_risk: float) -> str:
    wanted = f"{percent(max_risk, 0 if max_risk >= 0.01 else 1)} errors" if curve.is_class else f"an error of {max_risk:.3g}"
    if more.middle == 0:
        return f"{wanted} can be promised for all predictions with about the labels that there are.".capitalize()
    if np.isinf(more.middle):
        level = curve.predicted_risk(LARGEST_FACTOR * curve.n_labels)
        low = f", or with {_rounded(more.low)} more labels at the least" if np.isfinite(more.low) else ""
        return (
            f"More labels will hardly bring {wanted} for all predictions{low}: errors level off at about {_risk(curve, level[0])} (between "
            f"{_risk(curve, level[1])} and {_risk(curve, level[2])}). With max_risk, label keeps the predictions that are sure enough."
        )
    if np.isfinite(more.high):
        between = f"between {_rounded(more.low)} and {_rounded(more.high)}"
    else:
        between = f"at least {_rounded(more.low)}; {curve.n_labels:,} labels cannot tell how many at most"
    return f"About {_rounded(more.middle)} more labels until {wanted} can be promised for all predictions ({between})."


def _rounded(number: float) -> str:
    """Return a number with two digits that count."""
    if number < 10:
        return f"{number:.0f}"
    digits = int(np.floor(np.log10(number))) - 1
    return f"{round(number / 10**digits) * 10**digits:,.0f}"
