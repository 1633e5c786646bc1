"""What `label` says of its predictions, in the words that the command prints and the report opens with: one truth, told once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._runtime import percent
from ..evaluation._promises import Basis, Expectation, RiskLimit
from ..evaluation._shift import Shift


def expected(expectation: Expectation) -> str:
    """Return how wrong all predictions are expected to be."""
    if expectation.shift is not None:
        return _not_alike(expectation, expectation.shift)
    weighed = "" if expectation.n_effective is None else f" that count as {expectation.n_effective:.0f}"
    if expectation.interval is not None:
        low, high = expectation.interval
        return (
            f"Expect {percent(expectation.risk)} errors among all predictions (cross-validation on {expectation.n_used:,} labels{weighed}; "
            f"95 % interval {percent(low)} to {percent(high)}; "
            f"always guessing the most frequent class: {percent(expectation.baseline_risk)})."
        )
    return (
        f"Expect a root mean squared error of {expectation.risk:.4g} (cross-validation on {expectation.n_used:,} numbers{weighed}; always "
        f"guessing their mean: {expectation.baseline_risk:.4g}). Of these, {percent(expectation.interval_coverage or 0.0, 0)} were within "
        "their 90 % intervals."
    )


def _not_alike(expectation: Expectation, shift: Shift) -> str:
    """Return why nothing can be promised for rows that are not like those with a label."""
    start, advice = "Nothing can be promised: the labels are not like the other rows.", "Label some of the others, chosen at random."
    if expectation.interval is not None:
        return (
            f"{start} Labels that are held out are predicted with a mean probability of {percent(shift.held_out, 0)} "
            f"({percent(expectation.risk)} errors), rows without a label with {percent(shift.others, 0)}: by these probabilities about "
            f"{percent(1 - shift.others, 0)} of the predictions are wrong. {advice}"
        )
    return (
        f"{start} Labels that are held out are predicted with a standard deviation of {shift.held_out:.4g} (root mean squared error "
        f"{expectation.risk:.4g}), rows without a label with {shift.others:.4g}. {advice}"
    )


def promised(expectation: Expectation, limit: RiskLimit, n_predicted: int, n_abstained: int) -> str:
    """Return what is kept to hold the limit that a person has set, and what is left to a person."""
    if limit.max_risk is None:
        raise ValueError("Without max_risk nothing is promised.")
    if expectation.interval is not None:
        sure = "on average" if limit.confidence is None else f"with {percent(limit.confidence, 0)} confidence"
        wanted = f"{percent(limit.max_risk)} errors, {sure}"
        risk = f"{percent(expectation.kept_risk)} errors"
    else:
        wanted, risk = f"an error of {limit.max_risk:g}, on average", f"an error of {expectation.kept_risk:.4g}"
    kept = f"{n_predicted - n_abstained:,} predictions are kept, {n_abstained:,} are left to a person"
    judged = "" if expectation.coverage == 0 else f" (in cross-validation {percent(expectation.coverage, 0)} were kept, at {risk})"
    return f"To hold {wanted}: {kept}{judged}."


def expectation_of(notes: Mapping[str, Any]) -> Expectation | None:
    """Return what the card of a model that `label` trained says of its predictions; None where it says nothing."""
    stored = notes.get("expectation")
    if not isinstance(stored, Mapping):
        return None
    values = {name: _number(stored[name]) for name in Expectation.__dataclass_fields__ if name in stored}
    interval = values.get("interval")
    values["interval"] = None if interval is None else (float(interval[0]), float(interval[1]))
    try:
        values["basis"] = None if values.get("basis") is None else Basis(**values["basis"])
        values["shift"] = None if values.get("shift") is None else Shift(**values["shift"])
        return Expectation(**values)
    except TypeError:  # a card of another version lacks some of it
        return None


def limit_of(notes: Mapping[str, Any]) -> RiskLimit:
    """Return what was asked of the run that trained the model, by its card; nothing where it does not say."""
    stored = notes.get("promise") or {}
    return RiskLimit(**{name: stored[name] for name in RiskLimit.__dataclass_fields__ if name in stored})


def _number(value: Any) -> Any:
    """Return infinity and NaN, which cards hold as words, as numbers."""
    return float(value) if isinstance(value, str) and value in ("inf", "-inf", "nan") else value
